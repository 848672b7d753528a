/* What happens to single units: gates, states and their derivatives, dropout, sums of rows. */
#include "lanes/lanes.h"
#include "math/draws.h"
#include "model/rnn/rnn_fast_kernels.h"

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* --- functions of the gates --- */

/*
 * 1 / (1 + 2^y), where y is -x or -2x in units of ln 2: as 2^n times a polynomial of degree 5 for the rest
 * within +-1/2 (error below 1e-7). What is no number stays none.
 */
INLINE floats logistic2(floats y)
{
    y = floats_max(floats_all(-126), floats_min(floats_all(126), y));
    floats whole = floats_round(y), rest = y - whole, power = floats_all(1.32647261e-3f);

    power = floats_fma(power, rest, floats_all(9.67151299e-3f));
    power = floats_fma(power, rest, floats_all(5.55073358e-2f));
    power = floats_fma(power, rest, floats_all(2.40222424e-1f));
    power = floats_fma(power, rest, floats_all(6.93147004e-1f));
    power = floats_fma(power, rest, floats_all(1));
    return floats_reciprocal(floats_scale(power, whole) + 1);
}

INLINE floats sigmoid(floats x)
{
    return logistic2(x * -1.44269504f);
}

INLINE floats hyperbolic(floats x)
{
    return floats_fma(logistic2(x * (-2 * 1.44269504f)), floats_all(2), floats_all(-1));
}

/* x (1 - x), of derivatives. */
INLINE floats slope(floats x)
{
    return floats_fma(-x, x, x);
}

INLINE floats one_minus_square(floats x)
{
    return floats_fma(-x, x, floats_all(1));
}

/* --- steps: of the units of a vector, row by row --- */

INLINE floats load_or_0(const float *from, size_t at)
{
    return from ? floats_load(from + at) : (floats){0};
}

/* Gate `gate` of units from `unit` on: its sum. */
INLINE floats sum_of(const pace__rnn_step *step, size_t row, size_t unit, size_t gate)
{
    size_t at = gate * BLOCK + unit, from = step->slots ? step->slots[row] : row;

    if (!step->start)
        return floats_load(step->sums + row * step->sums_stride + at);
    floats start = floats_load(step->start + from * step->start_stride + at);

    return step->sums ? floats_load(step->sums + row * step->sums_stride + at) + start : start;
}

/* The gates of units from `unit` on. */
INLINE size_t gates_of(size_t unit)
{
    return unit / BLOCK * BLOCK_GATES + unit % BLOCK;
}

/* What is stored waits for its line of the cache, and what is multiplied next waits for all that is stored before. */
INLINE void fetch_ahead(const pace__rnn_step *step, const float *gates, size_t row, size_t at, bool lstm)
{
    UNROLL
    for (int gate = 0; gate < 4; gate++) {
        __builtin_prefetch(gates + step->gates_ahead + gate * BLOCK, 1, 3);
        if (step->slots_ahead)
            __builtin_prefetch(step->start_ahead + step->slots_ahead[row] * step->start_stride +
                               gate * BLOCK);
    }
    __builtin_prefetch(step->state + at + step->units_ahead, 1, 3);
    if (lstm) {
        __builtin_prefetch(step->cell + at + step->units_ahead, 1, 3);
        __builtin_prefetch(step->squashed + at + step->units_ahead, 1, 3);
    }
}

static void lstm_step(const pace__rnn_step *step)
{
    for (size_t unit = 0; unit < BLOCK; unit += LANES) {
        for (size_t row = 0; row < step->rows; row++) {
            float *gates = step->gates + row * step->gates_stride + unit;
            size_t at = row * step->stride + unit;
            floats i = sigmoid(sum_of(step, row, unit, 0)), f = sigmoid(sum_of(step, row, unit, 1));
            floats g = hyperbolic(sum_of(step, row, unit, 2)), o = sigmoid(sum_of(step, row, unit, 3));
            floats cell = floats_fma(f, load_or_0(step->cell_before, at), i * g);
            floats squashed = hyperbolic(cell);

            if (step->fetches && unit == 0)
                fetch_ahead(step, gates, row, at, true);
            floats_store(gates, i);
            floats_store(gates + BLOCK, f);
            floats_store(gates + 2 * BLOCK, g);
            floats_store(gates + 3 * BLOCK, o);
            floats_store(step->cell + at, cell);
            floats_store(step->squashed + at, squashed);
            floats_store(step->state + at, o * squashed);
        }
    }
}

static void gru_step(const pace__rnn_step *step)
{
    for (size_t unit = 0; unit < BLOCK; unit += LANES) {
        for (size_t row = 0; row < step->rows; row++) {
            float *gates = step->gates + row * step->gates_stride + unit;
            size_t at = row * step->stride + unit;
            floats reset = sigmoid(sum_of(step, row, unit, 0)), z = sigmoid(sum_of(step, row, unit, 1));
            floats half = sum_of(step, row, unit, 3);
            floats n = hyperbolic(floats_fma(reset, half, sum_of(step, row, unit, 2)));

            if (step->fetches && unit == 0)
                fetch_ahead(step, gates, row, at, false);
            floats_store(gates, reset);
            floats_store(gates + BLOCK, z);
            floats_store(gates + 2 * BLOCK, n);
            floats_store(gates + 3 * BLOCK, half);
            floats_store(step->state + at, floats_fma(z, load_or_0(step->state_before, at) - n, n));
        }
    }
}

/* --- steps back --- */

/* From above, and from the next word. */
INLINE floats d_state_of(const pace__rnn_back *back, size_t row, size_t unit, floats d_state)
{
    return back->d_output ? d_state + floats_load(back->d_output + row * back->d_output_stride + unit)
                          : d_state;
}

/* One of four gates, whose derivatives are added up, too. */
INLINE void put_gate(float *gates, floats sums[4], int gate, floats d)
{
    floats_store(gates + (size_t)gate * BLOCK, d);
    sums[gate] += d;
}

INLINE void add_bias(float *d_bias, const floats sums[4])
{
    UNROLL
    for (size_t gate = 0; gate < 4; gate++)
        floats_store(d_bias + gate * BLOCK, floats_load(d_bias + gate * BLOCK) + sums[gate]);
}

/* The next block's are far away, and every row has its own. */
INLINE void fetch_next(const pace__rnn_back *back, const float *gates, size_t at)
{
    UNROLL
    for (size_t gate = 0; gate < 4; gate++)
        __builtin_prefetch(gates + BLOCK_GATES + gate * BLOCK);
    __builtin_prefetch(back->squashed + at + BLOCK);
    if (back->cell_before)
        __builtin_prefetch(back->cell_before + at + BLOCK);
}

static void lstm_back(const pace__rnn_back *back)
{
    for (size_t unit = 0; unit < back->blocks * BLOCK; unit += LANES) {
        floats bias[4] = {0};

        for (size_t row = 0; row < back->rows; row++) {
            const float *gates = back->gates + row * back->gates_stride + gates_of(unit);
            float *d_gates = back->d_gates + row * back->d_gates_stride + gates_of(unit);
            size_t at = row * back->stride + unit, d_at = row * back->d_stride + unit;
            floats i = floats_load(gates), f = floats_load(gates + BLOCK);
            floats g = floats_load(gates + 2 * BLOCK), o = floats_load(gates + 3 * BLOCK);
            floats squashed = floats_load(back->squashed + at);
            floats d_state = d_state_of(back, row, unit, floats_load(back->d_state + d_at));
            floats d_cell =
                floats_fma(d_state * o, one_minus_square(squashed), floats_load(back->d_cell + d_at));

            put_gate(d_gates, bias, 0, d_cell * g * slope(i));
            put_gate(d_gates, bias, 1, d_cell * load_or_0(back->cell_before, at) * slope(f));
            put_gate(d_gates, bias, 2, d_cell * i * one_minus_square(g));
            put_gate(d_gates, bias, 3, d_state * squashed * slope(o));
            floats_store(back->d_cell + d_at, d_cell * f);
            if (unit % BLOCK == 0)
                fetch_next(back, gates, at);
        }
        add_bias(back->d_bias + gates_of(unit), bias);
    }
}

static void gru_back(const pace__rnn_back *back)
{
    for (size_t unit = 0; unit < back->blocks * BLOCK; unit += LANES) {
        floats bias[4] = {0};

        for (size_t row = 0; row < back->rows; row++) {
            const float *gates = back->gates + row * back->gates_stride + gates_of(unit);
            float *d_gates = back->d_gates + row * back->d_gates_stride + gates_of(unit);
            size_t at = row * back->stride + unit, d_at = row * back->d_stride + unit;
            floats reset = floats_load(gates), z = floats_load(gates + BLOCK);
            floats n = floats_load(gates + 2 * BLOCK), half = floats_load(gates + 3 * BLOCK);
            floats d_state = d_state_of(back, row, unit,
                                        floats_load(back->d_state + d_at) + floats_load(back->d_cell + d_at));
            floats d_n = floats_fma(-d_state, z, d_state) * one_minus_square(n);

            put_gate(d_gates, bias, 0, d_n * half * slope(reset));
            put_gate(d_gates, bias, 1, d_state * (load_or_0(back->state_before, at) - n) * slope(z));
            put_gate(d_gates, bias, 2, d_n);
            put_gate(d_gates, bias, 3, d_n * reset);
            floats_store(back->d_cell + d_at, d_state * z);
        }
        add_bias(back->d_bias + gates_of(unit), bias);
    }
}

/* --- rows --- */

INLINE void sum_vectors(int vectors, const float *from, size_t stride, const uint32_t *list, size_t listed,
                        float *sum)
{
    floats sums[8];

    UNROLL
    for (int v = 0; v < vectors; v++)
        sums[v] = (floats){0};
    for (size_t i = 0; i < listed; i++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[v] += floats_load(from + list[i] * stride + (size_t)v * LANES);
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        floats_store(sum + (size_t)v * LANES, sums[v]);
}

static void sum_rows(const float *from, size_t stride, const uint32_t *list, size_t listed, float *sum,
                     size_t count)
{
    size_t at = 0;

    for (; at + 8 * LANES <= count; at += 8 * LANES)
        sum_vectors(8, from + at, stride, list, listed, sum + at);
    for (; at < count; at += LANES)
        sum_vectors(1, from + at, stride, list, listed, sum + at);
}

/* --- dropout --- */

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

INLINE longs mix64(longs x) /* pace__mix64 */
{
    x = (x ^ (x >> 30)) * longs_all(UINT64_C(0xbf58476d1ce4e5b9));
    x = (x ^ (x >> 27)) * longs_all(UINT64_C(0x94d049bb133111eb));
    return x ^ (x >> 31);
}

/* Eight numbers of the stream are 16 units, lowest first. */
static void draw(uint64_t key, uint32_t limit, uint32_t first_unit, size_t blocks, uint16_t *kept)
{
    static const uint64_t numbers[8] = {0,          GOLDEN,     2 * GOLDEN, 3 * GOLDEN,
                                        4 * GOLDEN, 5 * GOLDEN, 6 * GOLDEN, 7 * GOLDEN};
    uint64_t next = key + first_unit / 2 * GOLDEN;

    if (first_unit % 2) {
        pace__rnn_cells_plain.draw(key, limit, first_unit, blocks, kept);
        return;
    }
    for (size_t block = 0; block < blocks; block++, next += 8 * GOLDEN) {
        unsigned bits = 0;

        UNROLL
        for (int part = 0; part < BLOCK / LANES; part++) {
            words x = (words)mix64(longs_load(numbers + part * LANES / 2) + next);

            bits |= ints_to_bits((ints)(x >= limit)) << (part * LANES);
        }
        kept[block] = (uint16_t)bits;
    }
}

static void drop(const uint16_t *kept, size_t blocks, float scale, const float *from, float *to)
{
    static const int32_t bit[BLOCK] = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                       1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};

    for (size_t unit = 0; unit < blocks * BLOCK; unit += LANES) {
        ints dropped = (ints_load(bit + unit % BLOCK) & kept[unit / BLOCK]) == 0;

        floats_store(to + unit, (floats)(~dropped & (ints)(floats_load(from + unit) * scale)));
    }
}

const pace__rnn_cells PACE__SET(pace__rnn_cells) = {
    .lstm_step = lstm_step,
    .gru_step = gru_step,
    .lstm_back = lstm_back,
    .gru_back = gru_back,
    .sum_rows = sum_rows,
    .draw = draw,
    .drop = drop,
};

/* Kernels for every CPU: products by math/gemm.h, the rest in loops that compilers make vectors of. */
#include "model/rnn/rnn_fast_kernels.h"
#include "math/draws.h"
#include "math/gemm.h"

#include <math.h>
#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* --- functions of the gates --- */

/* 1 / (1 + 2^-y); the arithmetic of rnn_cells_lanes.c, without branches. */
static inline float logistic2(float y)
{
    y = y < -126 ? -126 : y > 126 ? 126 : y;
    float shifted = y + 12582912.0f; /* to the nearest integer: 1.5 x 2^23 has no fraction */
    float rest = (shifted - 12582912.0f) - y;
    float power = 1.32647261e-3f;
    uint32_t bits, exponent;
    float scale;

    /* The integer is read from the bits: what is no number has none, and a conversion may do anything. */
    memcpy(&bits, &shifted, sizeof bits);
    exponent = (127 - (bits - 0x4b400000u)) << 23;
    power = power * rest + 9.67151299e-3f;
    power = power * rest + 5.55073358e-2f;
    power = power * rest + 2.40222424e-1f;
    power = power * rest + 6.93147004e-1f;
    power = power * rest + 1;
    memcpy(&scale, &exponent, sizeof scale);
    return 1 / (1 + power * scale);
}

static inline float sigmoid(float x)
{
    return logistic2(x * 1.44269504f);
}

static inline float hyperbolic(float x)
{
    return 2 * logistic2(x * (2 * 1.44269504f)) - 1;
}

/* --- steps --- */

/* A row's sums, where its gates will be. */
static float *sum_up(const pace__rnn_step *step, size_t row)
{
    float *gates = step->gates + row * step->gates_stride;
    const float *start = step->start + (step->slots ? step->slots[row] : row) * step->start_stride;

    if (step->sums != step->gates)
        memcpy(gates, step->sums ? step->sums + row * step->sums_stride : start, BLOCK_GATES * sizeof *gates);
    for (int i = 0; step->sums && step->start && i < BLOCK_GATES; i++)
        gates[i] += start[i];
    return gates;
}

static void lstm_step(const pace__rnn_step *step)
{
    static const float zeros[BLOCK];

    for (size_t row = 0; row < step->rows; row++) {
        size_t at = row * step->stride;
        float *restrict gates = sum_up(step, row);
        float *restrict cell = step->cell + at, *restrict squashed = step->squashed + at;
        float *restrict state = step->state + at;
        const float *restrict before = step->cell_before ? step->cell_before + at : zeros;

        for (int u = 0; u < BLOCK; u++) {
            float i = sigmoid(gates[u]), f = sigmoid(gates[BLOCK + u]);
            float g = hyperbolic(gates[2 * BLOCK + u]), o = sigmoid(gates[3 * BLOCK + u]);

            gates[u] = i;
            gates[BLOCK + u] = f;
            gates[2 * BLOCK + u] = g;
            gates[3 * BLOCK + u] = o;
            cell[u] = f * before[u] + i * g;
            squashed[u] = hyperbolic(cell[u]);
            state[u] = o * squashed[u];
        }
    }
}

static void gru_step(const pace__rnn_step *step)
{
    static const float zeros[BLOCK];

    for (size_t row = 0; row < step->rows; row++) {
        size_t at = row * step->stride;
        float *restrict gates = sum_up(step, row);
        float *restrict state = step->state + at;
        const float *restrict before = step->state_before ? step->state_before + at : zeros;

        for (int u = 0; u < BLOCK; u++) {
            float r = sigmoid(gates[u]), z = sigmoid(gates[BLOCK + u]);
            float n = hyperbolic(gates[2 * BLOCK + u] + r * gates[3 * BLOCK + u]);

            gates[u] = r;
            gates[BLOCK + u] = z;
            gates[2 * BLOCK + u] = n;
            state[u] = n + z * (before[u] - n);
        }
    }
}

/* d_state with what comes from above; 16 units of a row. Of a GRU the next word's d_cell is a part of it. */
static void load_d_state(const pace__rnn_back *back, size_t row, size_t block, bool gru, float d_state[BLOCK])
{
    size_t at = row * back->d_stride + block * BLOCK;

    memcpy(d_state, back->d_state + at, BLOCK * sizeof *d_state);
    for (int u = 0; gru && u < BLOCK; u++)
        d_state[u] += back->d_cell[at + (size_t)u];
    for (int u = 0; back->d_output && u < BLOCK; u++)
        d_state[u] += back->d_output[row * back->d_output_stride + block * BLOCK + (size_t)u];
}

/* A block's derivatives, and their sums. */
static void put_gates(const pace__rnn_back *back, size_t row, size_t block, const float d[BLOCK_GATES])
{
    memcpy(back->d_gates + row * back->d_gates_stride + block * BLOCK_GATES, d, BLOCK_GATES * sizeof *d);
    for (size_t i = 0; i < BLOCK_GATES; i++)
        back->d_bias[block * BLOCK_GATES + i] += d[i];
}

static void lstm_back(const pace__rnn_back *back)
{
    static const float zeros[BLOCK];

    for (size_t row = 0; row < back->rows; row++) {
        for (size_t block = 0; block < back->blocks; block++) {
            size_t at = row * back->stride + block * BLOCK;
            const float *restrict gates = back->gates + row * back->gates_stride + block * BLOCK_GATES;
            float *restrict d_cells = back->d_cell + row * back->d_stride + block * BLOCK;
            const float *restrict squashed = back->squashed + at;
            const float *restrict before = back->cell_before ? back->cell_before + at : zeros;
            float d_state[BLOCK], d[BLOCK_GATES];

            load_d_state(back, row, block, false, d_state);
            for (int u = 0; u < BLOCK; u++) {
                float i = gates[u], f = gates[BLOCK + u], g = gates[2 * BLOCK + u], o = gates[3 * BLOCK + u];
                float d_cell = d_cells[u] + d_state[u] * o * (1 - squashed[u] * squashed[u]);

                d[u] = d_cell * g * (i - i * i);
                d[BLOCK + u] = d_cell * before[u] * (f - f * f);
                d[2 * BLOCK + u] = d_cell * i * (1 - g * g);
                d[3 * BLOCK + u] = d_state[u] * squashed[u] * (o - o * o);
                d_cells[u] = d_cell * f;
            }
            put_gates(back, row, block, d);
        }
    }
}

static void gru_back(const pace__rnn_back *back)
{
    static const float zeros[BLOCK];

    for (size_t row = 0; row < back->rows; row++) {
        for (size_t block = 0; block < back->blocks; block++) {
            size_t at = row * back->stride + block * BLOCK;
            const float *restrict gates = back->gates + row * back->gates_stride + block * BLOCK_GATES;
            float *restrict d_before = back->d_cell + row * back->d_stride + block * BLOCK;
            const float *restrict before = back->state_before ? back->state_before + at : zeros;
            float d_state[BLOCK], d[BLOCK_GATES];

            load_d_state(back, row, block, true, d_state);
            for (int u = 0; u < BLOCK; u++) {
                float r = gates[u], z = gates[BLOCK + u], n = gates[2 * BLOCK + u];
                float d_n = d_state[u] * (1 - z) * (1 - n * n);

                d[u] = d_n * gates[3 * BLOCK + u] * (r - r * r);
                d[BLOCK + u] = d_state[u] * (before[u] - n) * (z - z * z);
                d[2 * BLOCK + u] = d_n;
                d[3 * BLOCK + u] = d_n * r;
                d_before[u] = d_state[u] * z;
            }
            put_gates(back, row, block, d);
        }
    }
}

/* --- products: weights of idle gates are 0, so nothing has to be left out --- */

static void begin_product(const pace__rnn_product *p)
{
    for (size_t row = 0; row < p->rows; row++) {
        const float *start = p->start + (p->slots ? p->slots[row] : row) * p->start_stride;

        if (start != p->result + row * p->result_stride)
            memcpy(p->result + row * p->result_stride, start, p->columns * sizeof *p->result);
    }
}

static void product(const pace__rnn_product *p)
{
    bool adds = p->start;

    if (p->start)
        begin_product(p);
    for (int f = 0; f < 2; f++) {
        const pace__rnn_factor *by = &p->factor[f];

        for (size_t column = 0; by->a && column < p->columns; column += BLOCK)
            pace__gemm(false, p->rows, p->columns - column < BLOCK ? p->columns - column : BLOCK, by->inner,
                       by->a, by->a_stride, by->panels + column * by->inner, BLOCK, adds, p->result + column,
                       p->result_stride);
        adds = adds || by->a;
    }
}

static void outer(const pace__rnn_outer *o)
{
    for (size_t column = 0; column < o->columns; column += BLOCK)
        pace__gemm(true, o->rows, BLOCK, o->words, o->a, o->a_stride, o->b + column, o->b_stride, true,
                   o->sums + column * o->sums_rows, BLOCK);
}

const pace__rnn_products pace__rnn_products_plain = {.product = product, .outer = outer};

/* --- rows --- */

static void sum_rows(const float *from, size_t stride, const uint32_t *list, size_t listed, float *sum,
                     size_t count)
{
    memset(sum, 0, count * sizeof *sum);
    for (size_t i = 0; i < listed; i++) {
        const float *row = from + list[i] * stride;

        for (size_t u = 0; u < count; u++)
            sum[u] += row[u];
    }
}

static void draw(uint64_t key, uint32_t limit, uint32_t first_unit, size_t blocks, uint16_t *kept)
{
    for (size_t block = 0; block < blocks; block++) {
        unsigned bits = 0;

        for (unsigned u = 0; u < BLOCK; u++) {
            uint32_t unit = first_unit + (uint32_t)block * BLOCK + u;

            bits |= (unsigned)(pace__drop_bits(key, unit) >= limit) << u;
        }
        kept[block] = (uint16_t)bits;
    }
}

static void drop(const uint16_t *kept, size_t blocks, float scale, const float *from, float *to)
{
    for (size_t i = 0; i < blocks * BLOCK; i++)
        to[i] = kept[i / BLOCK] >> (i % BLOCK) & 1 ? from[i] * scale : 0;
}

const pace__rnn_cells pace__rnn_cells_plain = {
    .lstm_step = lstm_step,
    .gru_step = gru_step,
    .lstm_back = lstm_back,
    .gru_back = gru_back,
    .sum_rows = sum_rows,
    .draw = draw,
    .drop = drop,
};

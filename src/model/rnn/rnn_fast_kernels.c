/* Kernels for every CPU: products by math/gemm.h, the rest in loops that compilers make vectors of. */
#include "model/rnn/rnn_fast_kernels.h"
#include "math/draws.h"
#include "math/gemm.h"

#include <math.h>
#include <string.h>

#define LANES PACE__RNN_LANES
#define PANEL PACE__RNN_PANEL

/* --- functions of the gates --- */

/* 1 / (1 + 2^-y); the arithmetic of the AVX-512 kernel, without branches. */
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

/* The sums of a block's gates for all rows. */
static void step_sums(const pace__rnn_step *step, size_t block)
{
    float *gates = step->gates + block * PANEL;
    size_t hidden = step->blocks * LANES;

    for (size_t row = 0; row < step->rows; row++)
        memcpy(gates + row * step->gates_stride,
               step->start + (step->slots ? step->slots[row] * step->start_stride : 0) + block * PANEL,
               PANEL * sizeof *gates);
    if (step->input)
        pace__gemm(false, step->rows, PANEL, step->inputs, step->input, step->input_stride,
                   step->input_weights + block * step->inputs * PANEL, PANEL, true, gates,
                   step->gates_stride);
    if (step->state_before)
        pace__gemm(false, step->rows, PANEL, hidden, step->state_before, step->stride,
                   step->state_weights + block * hidden * PANEL, PANEL, true, gates, step->gates_stride);
}

static void lstm_step(const pace__rnn_step *step)
{
    static const float zeros[LANES];

    for (size_t block = 0; block < step->blocks; block++) {
        step_sums(step, block);
        for (size_t row = 0; row < step->rows; row++) {
            size_t at = row * step->stride + block * LANES;
            float *restrict gates = step->gates + row * step->gates_stride + block * PANEL;
            float *restrict cell = step->cell + at, *restrict squashed = step->squashed + at;
            float *restrict state = step->state + at;
            const float *restrict before = step->cell_before ? step->cell_before + at : zeros;

            for (int u = 0; u < LANES; u++) {
                float i = sigmoid(gates[u]), f = sigmoid(gates[LANES + u]);
                float g = hyperbolic(gates[2 * LANES + u]), o = sigmoid(gates[3 * LANES + u]);

                gates[u] = i;
                gates[LANES + u] = f;
                gates[2 * LANES + u] = g;
                gates[3 * LANES + u] = o;
                cell[u] = f * before[u] + i * g;
                squashed[u] = hyperbolic(cell[u]);
                state[u] = o * squashed[u];
            }
        }
    }
}

static void gru_step(const pace__rnn_step *step)
{
    static const float zeros[LANES];

    for (size_t block = 0; block < step->blocks; block++) {
        step_sums(step, block);
        for (size_t row = 0; row < step->rows; row++) {
            size_t at = row * step->stride + block * LANES;
            float *restrict gates = step->gates + row * step->gates_stride + block * PANEL;
            float *restrict state = step->state + at;
            const float *restrict before = step->state_before ? step->state_before + at : zeros;

            for (int u = 0; u < LANES; u++) {
                float r = sigmoid(gates[u]), z = sigmoid(gates[LANES + u]);
                float n = hyperbolic(gates[2 * LANES + u] + r * gates[3 * LANES + u]);

                gates[u] = r;
                gates[LANES + u] = z;
                gates[2 * LANES + u] = n;
                state[u] = n + z * (before[u] - n);
            }
        }
    }
}

/* d_state with what comes from above; 16 units of a row. */
static void load_d_state(const pace__rnn_back *back, size_t row, size_t block, float d_state[LANES])
{
    memcpy(d_state, back->d_state + row * back->d_stride + block * LANES, LANES * sizeof *d_state);
    for (int u = 0; back->d_output && u < LANES; u++)
        d_state[u] += back->d_output[row * back->d_output_stride + block * LANES + (size_t)u];
}

static void add_bias(const pace__rnn_back *back, size_t block, const float *gates)
{
    for (size_t i = 0; i < PANEL; i++)
        back->d_bias[block * PANEL + i] += gates[i];
}

static void lstm_back(const pace__rnn_back *back)
{
    static const float zeros[LANES];

    for (size_t row = 0; row < back->rows; row++) {
        for (size_t block = 0; block < back->blocks; block++) {
            size_t at = row * back->stride + block * LANES;
            float *restrict gates = back->gates + row * back->gates_stride + block * PANEL;
            float *restrict d_cells = back->d_cell + row * back->d_stride + block * LANES;
            const float *restrict squashed = back->squashed + at;
            const float *restrict before = back->cell_before ? back->cell_before + at : zeros;
            float d_state[LANES];

            load_d_state(back, row, block, d_state);
            for (int u = 0; u < LANES; u++) {
                float i = gates[u], f = gates[LANES + u], g = gates[2 * LANES + u], o = gates[3 * LANES + u];
                float d_cell = d_cells[u] + d_state[u] * o * (1 - squashed[u] * squashed[u]);

                gates[u] = d_cell * g * (i - i * i);
                gates[LANES + u] = d_cell * before[u] * (f - f * f);
                gates[2 * LANES + u] = d_cell * i * (1 - g * g);
                gates[3 * LANES + u] = d_state[u] * squashed[u] * (o - o * o);
                d_cells[u] = d_cell * f;
            }
            add_bias(back, block, gates);
        }
    }
}

static void gru_back(const pace__rnn_back *back)
{
    static const float zeros[LANES];

    for (size_t row = 0; row < back->rows; row++) {
        for (size_t block = 0; block < back->blocks; block++) {
            size_t at = row * back->stride + block * LANES;
            float *restrict gates = back->gates + row * back->gates_stride + block * PANEL;
            float *restrict d_before = back->d_state + row * back->d_stride + block * LANES;
            const float *restrict before = back->state_before ? back->state_before + at : zeros;
            float d_state[LANES];

            load_d_state(back, row, block, d_state);
            for (int u = 0; u < LANES; u++) {
                float r = gates[u], z = gates[LANES + u], n = gates[2 * LANES + u];
                float d_n = d_state[u] * (1 - z) * (1 - n * n);

                gates[u] = d_n * gates[3 * LANES + u] * (r - r * r);
                gates[LANES + u] = d_state[u] * (before[u] - n) * (z - z * z);
                gates[2 * LANES + u] = d_n;
                gates[3 * LANES + u] = d_n * r;
                d_before[u] = d_state[u] * z;
            }
            add_bias(back, block, gates);
        }
    }
}

/* --- products: weights of idle gates are 0, so nothing has to be left out --- */

static void product(const pace__rnn_product *p)
{
    for (size_t row = 0; p->start && p->start != p->result && row < p->rows; row++)
        memcpy(p->result + row * p->result_stride, p->start + row * p->start_stride,
               p->columns * sizeof *p->result);
    for (size_t column = 0; column < p->columns; column += PANEL) {
        size_t columns = p->columns - column < PANEL ? p->columns - column : PANEL;

        pace__gemm(false, p->rows, columns, p->inner, p->a, p->a_stride, p->panels + column * p->inner,
                   (columns + LANES - 1) / LANES * LANES, p->start, p->result + column, p->result_stride);
    }
}

static void outer(const pace__rnn_outer *o)
{
    for (size_t column = 0; column < o->columns; column += PANEL)
        pace__gemm(true, o->rows, PANEL, o->words, o->a, o->a_stride, o->b + column, o->b_stride, true,
                   o->sums + column * o->sums_rows, PANEL);
}

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

        for (unsigned u = 0; u < LANES; u++) {
            uint32_t unit = first_unit + (uint32_t)block * LANES + u;

            bits |= (unsigned)(pace__drop_bits(key, unit) >= limit) << u;
        }
        kept[block] = (uint16_t)bits;
    }
}

static void drop(const uint16_t *kept, size_t blocks, float scale, const float *from, float *to)
{
    for (size_t i = 0; i < blocks * LANES; i++)
        to[i] = kept[i / LANES] >> (i % LANES) & 1 ? from[i] * scale : 0;
}

const pace__rnn_kernels pace__rnn_portable = {
    .lstm_step = lstm_step,
    .gru_step = gru_step,
    .lstm_back = lstm_back,
    .gru_back = gru_back,
    .product = product,
    .outer = outer,
    .sum_rows = sum_rows,
    .draw = draw,
    .drop = drop,
};

/*
 * A matrix product here is a register tile of up to 6 rows by 4 vectors: in each turn 4 loads of weights and
 * a broadcast per row feed 24 multiply-adds, so that the two multipliers, not the loads, are the limit, even
 * where the weights come from the second-level cache. Narrow results take 12 rows by 2 vectors.
 */
#include "model/rnn/rnn.h"
#include "model/rnn/rnn_fast_kernels.h"

#include <immintrin.h>

#define LANES PACE__RNN_LANES
#define PANEL PACE__RNN_PANEL
#define ALL   PACE__RNN_ALL

#define INLINE static inline __attribute__((always_inline))

#define WIDE_ROWS   6
#define NARROW_ROWS 12

/* From so many turns ahead weights are fetched. */
#define WEIGHTS_AHEAD 8

/* Words whose part of a panel, and of the other side, stays in the first-level cache. */
#define OUTER_WORDS 96
/* Rows that are packed together, if there are so many columns to use them. */
#define OUTER_ROWS   256
#define OUTER_PACKED (4 * PANEL)

/* Some rows of `left`: tiles of nearly equal size, none above `most`. */
INLINE size_t tile_rows(size_t left, size_t most)
{
    size_t tiles = (left + most - 1) / most;

    return (left + tiles - 1) / tiles;
}

/* --- functions of the gates --- */

/*
 * 1 / (1 + 2^y), where y is -x or -2x in units of ln 2: as 2^n times a polynomial of degree 5 for the rest
 * within +-1/2 (error below 1e-7), and a reciprocal that is improved once. What is no number stays none.
 */
INLINE __m512 logistic2(__m512 y)
{
    const __m512 one = _mm512_set1_ps(1);

    y = _mm512_min_ps(_mm512_set1_ps(126), y);
    __m512 whole = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 rest = _mm512_sub_ps(y, whole);
    __m512 power = _mm512_set1_ps(1.32647261e-3f);

    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(9.67151299e-3f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(5.55073358e-2f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(2.40222424e-1f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(6.93147004e-1f));
    power = _mm512_fmadd_ps(power, rest, one);
    __m512 below = _mm512_add_ps(one, _mm512_scalef_ps(power, whole));
    __m512 guess = _mm512_rcp14_ps(below);

    return _mm512_mul_ps(guess, _mm512_fnmadd_ps(below, guess, _mm512_set1_ps(2)));
}

INLINE __m512 sigmoid(__m512 x)
{
    return logistic2(_mm512_mul_ps(x, _mm512_set1_ps(-1.44269504f)));
}

INLINE __m512 hyperbolic(__m512 x)
{
    __m512 half = logistic2(_mm512_mul_ps(x, _mm512_set1_ps(-2 * 1.44269504f)));

    return _mm512_fmadd_ps(half, _mm512_set1_ps(2), _mm512_set1_ps(-1));
}

/* --- tiles --- */

/* sums (rows, vectors) += a (rows, inner) x weights (inner, vectors), with strides for each way. */
INLINE void accumulate(__m512 sums[NARROW_ROWS][4], int rows, int vectors, int idle, const float *a,
                       size_t row_stride, size_t inner_stride, const float *weights, size_t weights_stride,
                       size_t inner)
{
    for (size_t i = 0; i < inner; i++) {
        __m512 weight[4];

#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) {
            const float *at = weights + i * weights_stride + (size_t)v * LANES;

            if (v == idle)
                continue;
            weight[v] = _mm512_loadu_ps(at);
            _mm_prefetch((const char *)(at + WEIGHTS_AHEAD * weights_stride), _MM_HINT_T0);
        }
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            __m512 x = _mm512_set1_ps(a[(size_t)r * row_stride + i * inner_stride]);

#pragma GCC unroll 16
            for (int v = 0; v < vectors; v++) {
                if (v != idle)
                    sums[r][v] = _mm512_fmadd_ps(x, weight[v], sums[r][v]);
            }
        }
    }
}

INLINE void clear(__m512 sums[NARROW_ROWS][4], int rows)
{
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
        for (int v = 0; v < 4; v++)
            sums[r][v] = _mm512_setzero_ps();
    }
}

/* Calls tile(rows, ...) with a constant. */
#define CASE(count, tile, ...)                                                                               \
    case count:                                                                                              \
        tile(count, __VA_ARGS__);                                                                            \
        break;
#define WIDE_CASES(tile, ...)                                                                                \
    CASE(1, tile, __VA_ARGS__)                                                                               \
    CASE(2, tile, __VA_ARGS__)                                                                               \
    CASE(3, tile, __VA_ARGS__)                                                                               \
    CASE(4, tile, __VA_ARGS__) CASE(5, tile, __VA_ARGS__) CASE(6, tile, __VA_ARGS__)
#define NARROW_CASES(tile, ...)                                                                              \
    WIDE_CASES(tile, __VA_ARGS__)                                                                            \
    CASE(7, tile, __VA_ARGS__)                                                                               \
    CASE(8, tile, __VA_ARGS__)                                                                               \
    CASE(9, tile, __VA_ARGS__)                                                                               \
    CASE(10, tile, __VA_ARGS__) CASE(11, tile, __VA_ARGS__) CASE(12, tile, __VA_ARGS__)

/* --- steps forward --- */

/*
 * What a tile reads and writes at its end may be far away. It is fetched while the tile multiplies, a row
 * each FETCH turns: all at once would keep the weights waiting. Tiles of fewer turns than FETCH_FROM do without.
 */
#define FETCH      8
#define FETCH_FROM 96

INLINE void fetch(const float *line, int lines)
{
#pragma GCC unroll 16
    for (int i = 0; i < lines; i++)
        _mm_prefetch((const char *)(line + (size_t)i * LANES), _MM_HINT_T0);
}

INLINE void fetch_to_write(const float *line, int lines)
{
#pragma GCC unroll 16
    for (int i = 0; i < lines; i++)
        __builtin_prefetch(line + (size_t)i * LANES, 1, 3);
}

INLINE const float *start_of(const pace__rnn_step *step, size_t block, size_t row)
{
    return step->start + (step->slots ? step->slots[row] : 0) * step->start_stride + block * PANEL;
}

/* Adds the states' products, and fetches where the tile's sums begin and where its gates go. */
INLINE void add_states(__m512 sums[NARROW_ROWS][4], int rows, int idle, const pace__rnn_step *step,
                       size_t block, size_t row)
{
    size_t inner = step->blocks * LANES, i = 0;
    const float *before = step->state_before + row * step->stride;
    const float *weights = step->state_weights + block * inner * PANEL;

    for (size_t r = 0; r < (size_t)rows && inner >= FETCH_FROM; r++, i += FETCH) {
        fetch(start_of(step, block, row + r), 4);
        fetch_to_write(step->gates + (row + r) * step->gates_stride + block * PANEL, 4);
        accumulate(sums, rows, 4, idle, before + i, step->stride, 1, weights + i * PANEL, PANEL, FETCH);
    }
    accumulate(sums, rows, 4, idle, before + i, step->stride, 1, weights + i * PANEL, PANEL, inner - i);
}

INLINE void step_sums(__m512 sums[NARROW_ROWS][4], int rows, bool gru, const pace__rnn_step *step,
                      size_t block, size_t row)
{
    clear(sums, rows);
    if (step->state_before)
        add_states(sums, rows, gru ? 2 : ALL, step, block, row);
    if (step->input)
        accumulate(sums, rows, 4, gru ? 3 : ALL, step->input + row * step->input_stride, step->input_stride,
                   1, step->input_weights + block * step->inputs * PANEL, PANEL, step->inputs);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const float *start = start_of(step, block, row + (size_t)r);

#pragma GCC unroll 16
        for (int v = 0; v < 4; v++)
            sums[r][v] = _mm512_add_ps(sums[r][v], _mm512_loadu_ps(start + (size_t)v * LANES));
    }
}

INLINE __m512 load_or_0(const float *from, size_t at)
{
    return from ? _mm512_loadu_ps(from + at) : _mm512_setzero_ps();
}

INLINE void lstm_tile(int rows, const pace__rnn_step *step, size_t block, size_t row)
{
    __m512 sums[NARROW_ROWS][4];

    step_sums(sums, rows, false, step, block, row);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        size_t at = (row + (size_t)r) * step->stride + block * LANES;
        float *gates = step->gates + (row + (size_t)r) * step->gates_stride + block * PANEL;
        __m512 i = sigmoid(sums[r][0]), f = sigmoid(sums[r][1]);
        __m512 g = hyperbolic(sums[r][2]), o = sigmoid(sums[r][3]);
        __m512 cell = _mm512_fmadd_ps(f, load_or_0(step->cell_before, at), _mm512_mul_ps(i, g));
        __m512 squashed = hyperbolic(cell);

        _mm512_storeu_ps(gates, i);
        _mm512_storeu_ps(gates + LANES, f);
        _mm512_storeu_ps(gates + 2 * LANES, g);
        _mm512_storeu_ps(gates + 3 * LANES, o);
        _mm512_storeu_ps(step->cell + at, cell);
        _mm512_storeu_ps(step->squashed + at, squashed);
        _mm512_storeu_ps(step->state + at, _mm512_mul_ps(o, squashed));
    }
}

INLINE void gru_tile(int rows, const pace__rnn_step *step, size_t block, size_t row)
{
    __m512 sums[NARROW_ROWS][4];

    step_sums(sums, rows, true, step, block, row);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        size_t at = (row + (size_t)r) * step->stride + block * LANES;
        float *gates = step->gates + (row + (size_t)r) * step->gates_stride + block * PANEL;
        __m512 reset = sigmoid(sums[r][0]), z = sigmoid(sums[r][1]);
        __m512 n = hyperbolic(_mm512_fmadd_ps(reset, sums[r][3], sums[r][2]));
        __m512 before = load_or_0(step->state_before, at);

        _mm512_storeu_ps(gates, reset);
        _mm512_storeu_ps(gates + LANES, z);
        _mm512_storeu_ps(gates + 2 * LANES, n);
        _mm512_storeu_ps(gates + 3 * LANES, sums[r][3]);
        _mm512_storeu_ps(step->state + at, _mm512_fmadd_ps(z, _mm512_sub_ps(before, n), n));
    }
}

#define STEP(tile)                                                                                           \
    for (size_t block = 0; block < step->blocks; block++) {                                                  \
        for (size_t row = 0, rows; row < step->rows; row += rows) {                                          \
            rows = tile_rows(step->rows - row, WIDE_ROWS);                                                   \
            switch (rows) {                                                                                  \
                WIDE_CASES(tile, step, block, row)                                                           \
            }                                                                                                \
        }                                                                                                    \
    }

static void lstm_step(const pace__rnn_step *step)
{
    STEP(lstm_tile)
}

static void gru_step(const pace__rnn_step *step){STEP(gru_tile)}

/* --- steps back --- */

INLINE void add_bias(float *d_bias, const __m512 sums[4])
{
#pragma GCC unroll 16
    for (size_t v = 0; v < 4; v++)
        _mm512_storeu_ps(d_bias + v * LANES, _mm512_add_ps(_mm512_loadu_ps(d_bias + v * LANES), sums[v]));
}

/* x (1 - x), of derivatives. */
INLINE __m512 slope(__m512 x)
{
    return _mm512_fnmadd_ps(x, x, x);
}

INLINE __m512 one_minus_square(__m512 x)
{
    return _mm512_fnmadd_ps(x, x, _mm512_set1_ps(1));
}

INLINE __m512 d_state_of(const pace__rnn_back *back, size_t row, size_t block)
{
    __m512 d_state = _mm512_loadu_ps(back->d_state + row * back->d_stride + block * LANES);

    if (back->d_output)
        d_state = _mm512_add_ps(
            d_state, _mm512_loadu_ps(back->d_output + row * back->d_output_stride + block * LANES));
    return d_state;
}

INLINE void store_gates(float *gates, __m512 bias[4], __m512 a, __m512 b, __m512 c, __m512 d)
{
    _mm512_storeu_ps(gates, a);
    _mm512_storeu_ps(gates + LANES, b);
    _mm512_storeu_ps(gates + 2 * LANES, c);
    _mm512_storeu_ps(gates + 3 * LANES, d);
    bias[0] = _mm512_add_ps(bias[0], a);
    bias[1] = _mm512_add_ps(bias[1], b);
    bias[2] = _mm512_add_ps(bias[2], c);
    bias[3] = _mm512_add_ps(bias[3], d);
}

static void lstm_back(const pace__rnn_back *back)
{
    for (size_t block = 0; block < back->blocks; block++) {
        __m512 bias[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};

        for (size_t row = 0; row < back->rows; row++) {
            float *gates = back->gates + row * back->gates_stride + block * PANEL;
            float *d_cell_at = back->d_cell + row * back->d_stride + block * LANES;
            size_t at = row * back->stride + block * LANES;
            __m512 i = _mm512_loadu_ps(gates), f = _mm512_loadu_ps(gates + LANES);
            __m512 g = _mm512_loadu_ps(gates + 2 * LANES), o = _mm512_loadu_ps(gates + 3 * LANES);
            __m512 squashed = _mm512_loadu_ps(back->squashed + at), d_state = d_state_of(back, row, block);
            __m512 d_cell = _mm512_fmadd_ps(_mm512_mul_ps(d_state, o), one_minus_square(squashed),
                                            _mm512_loadu_ps(d_cell_at));

            store_gates(gates, bias, _mm512_mul_ps(_mm512_mul_ps(d_cell, g), slope(i)),
                        _mm512_mul_ps(_mm512_mul_ps(d_cell, load_or_0(back->cell_before, at)), slope(f)),
                        _mm512_mul_ps(_mm512_mul_ps(d_cell, i), one_minus_square(g)),
                        _mm512_mul_ps(_mm512_mul_ps(d_state, squashed), slope(o)));
            _mm512_storeu_ps(d_cell_at, _mm512_mul_ps(d_cell, f));
            fetch_to_write(gates + PANEL, 4);
            fetch(back->squashed + at + LANES, 1);
            if (back->cell_before)
                fetch(back->cell_before + at + LANES, 1);
        }
        add_bias(back->d_bias + block * PANEL, bias);
    }
}

static void gru_back(const pace__rnn_back *back)
{
    for (size_t block = 0; block < back->blocks; block++) {
        __m512 bias[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};

        for (size_t row = 0; row < back->rows; row++) {
            float *gates = back->gates + row * back->gates_stride + block * PANEL;
            size_t at = row * back->stride + block * LANES;
            __m512 reset = _mm512_loadu_ps(gates), z = _mm512_loadu_ps(gates + LANES);
            __m512 n = _mm512_loadu_ps(gates + 2 * LANES), half = _mm512_loadu_ps(gates + 3 * LANES);
            __m512 d_state = d_state_of(back, row, block);
            __m512 d_n = _mm512_mul_ps(_mm512_fnmadd_ps(d_state, z, d_state), one_minus_square(n));
            __m512 before = load_or_0(back->state_before, at);

            store_gates(gates, bias, _mm512_mul_ps(_mm512_mul_ps(d_n, half), slope(reset)),
                        _mm512_mul_ps(_mm512_mul_ps(d_state, _mm512_sub_ps(before, n)), slope(z)), d_n,
                        _mm512_mul_ps(d_n, reset));
            _mm512_storeu_ps(back->d_state + row * back->d_stride + block * LANES, _mm512_mul_ps(d_state, z));
        }
        add_bias(back->d_bias + block * PANEL, bias);
    }
}

/* --- products --- */

INLINE void product_tile(int rows, int vectors, const pace__rnn_product *p, size_t column, size_t row,
                         __mmask16 last)
{
    const float *a = p->a + row * p->a_stride, *weights = p->panels + column * p->inner;
    __m512 sums[NARROW_ROWS][4];

#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const float *start = p->start + (row + (size_t)r) * p->start_stride + column;

#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++)
            sums[r][v] = !p->start ? _mm512_setzero_ps()
                                   : _mm512_maskz_loadu_ps(v == vectors - 1 ? last : 0xffff,
                                                           start + (size_t)v * LANES);
    }
    if (p->idle == ALL) {
        accumulate(sums, rows, vectors, ALL, a, p->a_stride, 1, weights, (size_t)vectors * LANES, p->inner);
    } else {
        for (size_t i = 0; i < p->inner; i += LANES) {
            if ((int)(i / LANES % PACE__RNN_GATES) != p->idle)
                accumulate(sums, rows, vectors, ALL, a + i, p->a_stride, 1,
                           weights + i * (size_t)vectors * LANES, (size_t)vectors * LANES, LANES);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        float *result = p->result + (row + (size_t)r) * p->result_stride + column;

#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++)
            _mm512_mask_storeu_ps(result + (size_t)v * LANES, v == vectors - 1 ? last : 0xffff, sums[r][v]);
    }
}

#define PRODUCT_PANEL(vectors, most, CASES)                                                                  \
    static void product_panel_##vectors(const pace__rnn_product *p, size_t column, __mmask16 last)           \
    {                                                                                                        \
        for (size_t row = 0, rows; row < p->rows; row += rows) {                                             \
            rows = tile_rows(p->rows - row, most);                                                           \
            switch (rows) {                                                                                  \
                CASES(product_tile, vectors, p, column, row, last)                                           \
            }                                                                                                \
        }                                                                                                    \
    }

PRODUCT_PANEL(1, NARROW_ROWS, NARROW_CASES)
PRODUCT_PANEL(2, NARROW_ROWS, NARROW_CASES)
PRODUCT_PANEL(3, WIDE_ROWS, WIDE_CASES)
PRODUCT_PANEL(4, WIDE_ROWS, WIDE_CASES)

static void product(const pace__rnn_product *p)
{
    static void (*const panels[])(const pace__rnn_product *, size_t, __mmask16) = {
        product_panel_1, product_panel_2, product_panel_3, product_panel_4};

    for (size_t column = 0; column < p->columns; column += PANEL) {
        size_t columns = p->columns - column < PANEL ? p->columns - column : PANEL;
        size_t vectors = (columns + LANES - 1) / LANES;

        panels[vectors - 1](p, column, (__mmask16)(0xffff >> (vectors * LANES - columns)));
    }
}

/*
 * Words and rows of an outer product, with one panel of its columns. If there are more panels, a is packed:
 * the rows of each tile lie side by side, word behind word, and are read from one end to the other.
 */
typedef struct outer_part {
    size_t words, rows;
    bool packed;
    const float *a;
    size_t a_stride;
    const float *b;
    size_t b_stride;
    float *sums;
} outer_part;

INLINE void outer_tile(int rows, int idle, const outer_part *o, size_t row)
{
    const float *a = o->packed ? o->a + row * o->words : o->a + row;
    size_t a_stride = o->packed ? (size_t)rows : o->a_stride, i = 0;
    float *at = o->sums + row * PANEL;
    __m512 sums[NARROW_ROWS][4];

    clear(sums, rows);
    for (size_t r = 0; r < (size_t)rows && o->words >= FETCH_FROM; r++, i += FETCH) {
        fetch_to_write(at + r * PANEL, 4);
        accumulate(sums, rows, 4, idle, a + i * a_stride, 1, a_stride, o->b + i * o->b_stride, o->b_stride,
                   FETCH);
    }
    accumulate(sums, rows, 4, idle, a + i * a_stride, 1, a_stride, o->b + i * o->b_stride, o->b_stride,
               o->words - i);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
        for (int v = 0; v < 4; v++) {
            float *to = at + (size_t)(r * PANEL + v * LANES);

            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]));
        }
    }
}

#define OUTER_PANEL(name, idle)                                                                              \
    static void name(const outer_part *o)                                                                    \
    {                                                                                                        \
        for (size_t row = 0, rows; row < o->rows; row += rows) {                                             \
            rows = tile_rows(o->rows - row, WIDE_ROWS);                                                      \
            switch (rows) {                                                                                  \
                WIDE_CASES(outer_tile, idle, o, row)                                                         \
            }                                                                                                \
        }                                                                                                    \
    }

OUTER_PANEL(outer_panel, ALL)
OUTER_PANEL(outer_panel_but_2, 2)
OUTER_PANEL(outer_panel_but_3, 3)

/* See outer_part. */
static void pack_rows(const float *a, size_t stride, size_t rows_all, size_t words, float *to)
{
    for (size_t row = 0, rows; row < rows_all; row += rows) {
        rows = tile_rows(rows_all - row, WIDE_ROWS);
        __mmask16 mask = (__mmask16)((1u << rows) - 1);

        for (size_t word = 0; word < words; word++, to += rows)
            _mm512_mask_storeu_ps(to, mask, _mm512_maskz_loadu_ps(mask, a + word * stride + row));
    }
}

static void outer_group(const pace__rnn_outer *o, size_t row, size_t rows, size_t word, size_t words)
{
    _Alignas(64) float packed[OUTER_WORDS * OUTER_ROWS];
    outer_part part = {.words = words,
                       .rows = rows,
                       .packed = o->columns >= OUTER_PACKED,
                       .a = o->a + word * o->a_stride + row,
                       .a_stride = o->a_stride,
                       .b_stride = o->b_stride};

    if (part.packed) {
        pack_rows(part.a, o->a_stride, rows, words, packed);
        part.a = packed;
    }
    for (size_t column = 0; column < o->columns; column += PANEL) {
        part.b = o->b + word * o->b_stride + column;
        part.sums = o->sums + column * o->sums_rows + row * PANEL;
        if (o->idle == 2)
            outer_panel_but_2(&part);
        else if (o->idle == 3)
            outer_panel_but_3(&part);
        else
            outer_panel(&part);
    }
}

static void outer(const pace__rnn_outer *o)
{
    for (size_t word = 0; word < o->words; word += OUTER_WORDS) {
        size_t words = o->words - word < OUTER_WORDS ? o->words - word : OUTER_WORDS;

        for (size_t row = 0; row < o->rows; row += OUTER_ROWS)
            outer_group(o, row, o->rows - row < OUTER_ROWS ? o->rows - row : OUTER_ROWS, word, words);
    }
}

/* --- rows --- */

INLINE void sum_vectors(int vectors, const float *from, size_t stride, const uint32_t *list, size_t listed,
                        float *sum)
{
    __m512 sums[8];

#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++)
        sums[v] = _mm512_setzero_ps();
    for (size_t i = 0; i < listed; i++) {
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++)
            sums[v] = _mm512_add_ps(sums[v], _mm512_loadu_ps(from + list[i] * stride + (size_t)v * LANES));
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++)
        _mm512_storeu_ps(sum + (size_t)v * LANES, sums[v]);
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

/* Eight numbers of the stream are 16 units, lowest first. */
static void draw(uint64_t key, uint32_t limit, uint32_t first_unit, size_t blocks, uint16_t *kept)
{
    const __m512i step = _mm512_set1_epi64((long long)(8 * UINT64_C(0x9e3779b97f4a7c15)));
    const __m512i limits = _mm512_set1_epi32((int)limit);

    if (first_unit % 2) {
        pace__rnn_portable.draw(key, limit, first_unit, blocks, kept);
        return;
    }
    uint64_t first = key + first_unit / 2 * UINT64_C(0x9e3779b97f4a7c15);
    __m512i places = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                        _mm512_set1_epi64((long long)UINT64_C(0x9e3779b97f4a7c15)));

    places = _mm512_add_epi64(places, _mm512_set1_epi64((long long)first));
    for (size_t block = 0; block < blocks; block++) {
        __m512i x = _mm512_xor_si512(places, _mm512_srli_epi64(places, 30)); /* pace__mix64 */

        x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)UINT64_C(0xbf58476d1ce4e5b9)));
        x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 27));
        x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)UINT64_C(0x94d049bb133111eb)));
        x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
        kept[block] = _mm512_cmpge_epu32_mask(x, limits);
        places = _mm512_add_epi64(places, step);
    }
}

static void drop(const uint16_t *kept, size_t blocks, float scale, const float *from, float *to)
{
    const __m512 scales = _mm512_set1_ps(scale);

    for (size_t block = 0; block < blocks; block++)
        _mm512_storeu_ps(to + block * LANES,
                         _mm512_maskz_mul_ps(kept[block], scales, _mm512_loadu_ps(from + block * LANES)));
}

const pace__rnn_kernels pace__rnn_avx512 = {
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

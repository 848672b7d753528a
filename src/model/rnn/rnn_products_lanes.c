/*
 * A matrix product here is a register tile of some rows by one or several panels of 16 columns. In each turn a load for
 * each vector of weights and a broadcast for each row feed rows x vectors multiply-adds, so that the two multipliers,
 * not the loads, are the limit, even where the weights come from the second-level cache.
 */
#include "lanes/lanes.h"
#include "model/rnn/rnn_fast_kernels.h"

#define BLOCK PACE__RNN_BLOCK
#define GATES PACE__RNN_GATES

/* Vectors of a panel. */
#define PARTS (BLOCK / LANES)

/* Sums in registers: three quarters of them. */
#define SUMS (LANES_REGISTERS * 3 / 4)

/* A tile of AVX-512 is at most the four gates of 6 rows, or fewer panels of more rows. */
#if LANES == 16
#define TILE_PANELS 4
#else
#define TILE_PANELS 1
#endif
#define ROWS_MAX 12

/* From so many turns ahead weights are fetched. */
#define WEIGHTS_AHEAD 8

/* No panel is idle. */
#define ALL (-1)

/* Words whose part of a tile's panels, and of the other side, stays near. With twice as many AVX-512 is 1 % faster, AVX2 2 %
 * slower (Zen 4, states of 32 to 256 units). */
#define OUTER_WORDS (LANES == 16 ? 192 : 96)
/* Rows that are packed together, if there are so many columns to use them. */
#define OUTER_ROWS   256
#define OUTER_PACKED (16 * BLOCK)

/* --- tiles --- */

typedef floats tile[ROWS_MAX][TILE_PANELS * PARTS];

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The most rows of a tile. */
INLINE size_t most_rows(int panels)
{
    return least(ROWS_MAX, SUMS / PARTS / (size_t)panels);
}

/* Some rows of `left`: tiles of nearly equal size, none above `most`. */
INLINE size_t tile_rows(size_t left, size_t most)
{
    size_t tiles = (left + most - 1) / most;

    return (left + tiles - 1) / tiles;
}

/* Calls run(rows, ...) with a constant. */
#define CASE(count, most, run, ...)                                                                          \
    case count:                                                                                              \
        if (count <= (most))                                                                                 \
            run(count, __VA_ARGS__);                                                                         \
        break;
#define ROWS_CASES(...)                                                                                      \
    CASE(1, __VA_ARGS__)                                                                                     \
    CASE(2, __VA_ARGS__)                                                                                     \
    CASE(3, __VA_ARGS__)                                                                                     \
    CASE(4, __VA_ARGS__)                                                                                     \
    CASE(5, __VA_ARGS__)                                                                                     \
    CASE(6, __VA_ARGS__)                                                                                     \
    CASE(7, __VA_ARGS__)                                                                                     \
    CASE(8, __VA_ARGS__)                                                                                     \
    CASE(9, __VA_ARGS__) CASE(10, __VA_ARGS__) CASE(11, __VA_ARGS__) CASE(12, __VA_ARGS__)

#if TILE_PANELS == 4
#define PANELS_CASES(...)                                                                                    \
    CASE(1, 4, __VA_ARGS__) CASE(2, 4, __VA_ARGS__) CASE(3, 4, __VA_ARGS__) CASE(4, 4, __VA_ARGS__)
#else
#define PANELS_CASES(...) CASE(1, 1, __VA_ARGS__)
#endif

/* A matrix, read along its inner dimension: from one row, or panel, to the next, and from one turn to the next. */
typedef struct operand {
    const float *at;
    size_t stride, turn;
} operand;

INLINE operand skip(operand from, size_t turns)
{
    return (operand){from.at + turns * from.turn, from.stride, from.turn};
}

/* sums (rows, panels) += a (rows, turns) x weights (turns, panels), but for panel `idle`. */
INLINE void accumulate(tile sums, int rows, int panels, int idle, operand a, operand weights, size_t turns)
{
    for (size_t i = 0; i < turns; i++) {
        floats weight[TILE_PANELS * PARTS];

        UNROLL
        for (int p = 0; p < panels; p++) {
            const float *at = weights.at + i * weights.turn + (size_t)p * weights.stride;

            if (p == idle)
                continue;
            __builtin_prefetch(at + WEIGHTS_AHEAD * weights.turn);
            UNROLL
            for (int v = 0; v < PARTS; v++)
                weight[p * PARTS + v] = floats_load(at + v * LANES);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            floats x = floats_all(a.at[(size_t)r * a.stride + i * a.turn]);

            UNROLL
            for (int v = 0; v < panels * PARTS; v++) {
                if (v / PARTS != idle)
                    sums[r][v] = floats_fma(x, weight[v], sums[r][v]);
            }
        }
    }
}

INLINE void clear(tile sums, int rows, int panels)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < panels * PARTS; v++)
            sums[r][v] = (floats){0};
    }
}

/*
 * What a tile reads and writes at its end may be far away. It is fetched while the tile multiplies, a row
 * each FETCH turns: all at once would keep the weights waiting. Tiles of fewer turns than FETCH_FROM do without.
 */
#define FETCH      8
#define FETCH_FROM 96

INLINE void fetch(const float *line, int panels, size_t stride)
{
    UNROLL
    for (int p = 0; p < panels; p++)
        __builtin_prefetch(line + (size_t)p * stride);
}

INLINE void fetch_to_write(const float *line, int panels, size_t stride)
{
    UNROLL
    for (int p = 0; p < panels; p++)
        __builtin_prefetch(line + (size_t)p * stride, 1, 3);
}

/* Tiles of one panel are left out as a whole. */
INLINE bool is_idle(int panels, size_t column, int idle)
{
    return panels == 1 && idle && (int)(column / BLOCK % GATES) == idle;
}

/* --- products --- */

/* Where a product's tile is. */
typedef struct place {
    size_t row, column, columns;
} place;

INLINE const float *start_of(const pace__rnn_product *p, const place *at, int r)
{
    size_t row = at->row + (size_t)r;

    return p->start + (p->slots ? p->slots[row] : row) * p->start_stride + at->column;
}

INLINE float *result_of(const pace__rnn_product *p, const place *at, int r)
{
    return p->result + (at->row + (size_t)r) * p->result_stride + at->column;
}

INLINE void add_start(tile sums, int rows, int panels, const pace__rnn_product *p, const place *at)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        const float *start = start_of(p, at, r);

        UNROLL
        for (int v = 0; v < panels * PARTS; v++) {
            size_t before = (size_t)v * LANES;

            if (before + LANES <= at->columns)
                sums[r][v] += floats_load(start + before);
            else if (before < at->columns)
                sums[r][v] += floats_load_first(start + before, at->columns - before);
        }
    }
}

INLINE void put_result(tile sums, int rows, int panels, const pace__rnn_product *p, const place *at)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *result = result_of(p, at, r);

        UNROLL
        for (int v = 0; v < panels * PARTS; v++) {
            size_t before = (size_t)v * LANES;

            if (before + LANES <= at->columns)
                floats_store(result + before, sums[r][v]);
            else if (before < at->columns)
                floats_store_first(result + before, sums[r][v], at->columns - before);
        }
    }
}

/* As accumulate, where `idle` is known only now: either gate of a GRU, or none. */
INLINE void accumulate_but(tile sums, int rows, int panels, int idle, operand a, operand weights,
                           size_t turns)
{
    if (panels == GATES && idle == 2)
        accumulate(sums, rows, panels, 2, a, weights, turns);
    else if (panels == GATES && idle == 3)
        accumulate(sums, rows, panels, 3, a, weights, turns);
    else
        accumulate(sums, rows, panels, ALL, a, weights, turns);
}

/* Fetches what the tile will need while it multiplies; returns the turns that this took. */
INLINE size_t multiply_and_fetch(tile sums, int rows, int panels, const pace__rnn_product *p, int idle,
                                 operand a, operand weights, const place *at)
{
    size_t i = 0;

    for (int r = 0; r < rows; r++, i += FETCH) {
        if (p->start)
            fetch(start_of(p, at, r), panels, BLOCK);
        fetch_to_write(result_of(p, at, r), panels, BLOCK);
        accumulate_but(sums, rows, panels, idle, skip(a, i), skip(weights, i), FETCH);
    }
    return i;
}

INLINE void multiply(tile sums, int rows, int panels, const pace__rnn_product *p, const pace__rnn_factor *f,
                     const place *at)
{
    operand a = {f->a + at->row * f->a_stride, f->a_stride, 1};
    operand weights = {f->panels + at->column * f->inner, f->inner * BLOCK, BLOCK};
    size_t i = 0;

    if (f->idle_a) {
        for (; i < f->inner; i += BLOCK) {
            if ((int)(i / BLOCK % GATES) != f->idle_a)
                accumulate(sums, rows, panels, ALL, skip(a, i), skip(weights, i), BLOCK);
        }
    } else if (!is_idle(panels, at->column, f->idle)) {
        if (f->inner >= FETCH_FROM)
            i = multiply_and_fetch(sums, rows, panels, p, f->idle, a, weights, at);
        accumulate_but(sums, rows, panels, f->idle, skip(a, i), skip(weights, i), f->inner - i);
    }
}

INLINE void product_tile(int rows, int panels, const pace__rnn_product *p, const place *at)
{
    tile sums;

    clear(sums, rows, panels);
    for (int f = 0; f < 2; f++) {
        if (p->factor[f].a)
            multiply(sums, rows, panels, p, &p->factor[f], at);
    }
    if (p->start)
        add_start(sums, rows, panels, p, at);
    put_result(sums, rows, panels, p, at);
}

INLINE void product_panels(int panels, const pace__rnn_product *p, size_t column)
{
    place at = {.column = column, .columns = p->columns - column};

    for (size_t rows; at.row < p->rows; at.row += rows) {
        rows = tile_rows(p->rows - at.row, most_rows(panels));
        switch (rows) {
            ROWS_CASES(most_rows(panels), product_tile, panels, p, &at)
        }
    }
}

static void product(const pace__rnn_product *p)
{
    for (size_t column = 0; column < p->columns; column += TILE_PANELS * BLOCK) {
        switch (least(TILE_PANELS, (p->columns - column + BLOCK - 1) / BLOCK)) {
            PANELS_CASES(product_panels, p, column)
        }
    }
}

/*
 * Words and rows of an outer product, with some panels of its columns. If there are many more, a is packed:
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
    size_t sums_stride; /* from one panel to the next */
    int idle;
} outer_part;

INLINE void outer_tile(int rows, int panels, const outer_part *o, size_t row)
{
    operand a = {o->a + row, 1, o->a_stride}, b = {o->b, BLOCK, o->b_stride};
    float *at = o->sums + row * BLOCK;
    size_t i = 0;
    tile sums;

    if (o->packed)
        a = (operand){o->a + row * o->words, 1, (size_t)rows};
    clear(sums, rows, panels);
    for (int r = 0; r < rows && o->words >= FETCH_FROM; r++, i += FETCH) {
        fetch_to_write(at + (size_t)r * BLOCK, panels, o->sums_stride);
        accumulate_but(sums, rows, panels, o->idle, skip(a, i), skip(b, i), FETCH);
    }
    accumulate_but(sums, rows, panels, o->idle, skip(a, i), skip(b, i), o->words - i);
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < panels * PARTS; v++) {
            float *to =
                at + (size_t)(v / PARTS) * o->sums_stride + (size_t)r * BLOCK + (size_t)(v % PARTS) * LANES;

            floats_store(to, floats_load(to) + sums[r][v]);
        }
    }
}

INLINE void outer_panels(int panels, const outer_part *o)
{
    for (size_t row = 0, rows; row < o->rows; row += rows) {
        rows = tile_rows(o->rows - row, most_rows(panels));
        switch (rows) {
            ROWS_CASES(most_rows(panels), outer_tile, panels, o, row)
        }
    }
}

INLINE void pack_tile(int rows, const float *from, size_t stride, size_t turns, float *to)
{
    for (size_t word = 0; word < turns; word++)
        memcpy(to + word * (size_t)rows, from + word * stride, (size_t)rows * sizeof *to);
}

/* See outer_part. */
static void pack_rows(const outer_part *o, float *to)
{
    for (size_t row = 0, rows; row < o->rows; row += rows) {
        rows = tile_rows(o->rows - row, most_rows(TILE_PANELS));
        switch (rows) {
            ROWS_CASES(most_rows(TILE_PANELS), pack_tile, o->a + row, o->a_stride, o->words,
                       to + row * o->words)
        }
    }
}

static void outer_group(const pace__rnn_outer *o, size_t row, size_t rows, size_t word, size_t turns)
{
    _Alignas(64) float packed[OUTER_WORDS * OUTER_ROWS];
    outer_part part = {.words = turns,
                       .rows = rows,
                       .a = o->a + word * o->a_stride + row,
                       .a_stride = o->a_stride,
                       .b_stride = o->b_stride,
                       .sums_stride = o->sums_rows * BLOCK,
                       .idle = o->idle};

    if (o->columns >= OUTER_PACKED) {
        pack_rows(&part, packed);
        part.packed = true;
        part.a = packed;
    }
    for (size_t column = 0; column < o->columns; column += TILE_PANELS * BLOCK) {
        if (is_idle(TILE_PANELS, column, o->idle))
            continue;
        part.b = o->b + word * o->b_stride + column;
        part.sums = o->sums + column * o->sums_rows + row * BLOCK;
        outer_panels(TILE_PANELS, &part);
    }
}

static void outer(const pace__rnn_outer *o)
{
    for (size_t word = 0; word < o->words; word += OUTER_WORDS) {
        size_t turns = least(o->words - word, OUTER_WORDS);

        for (size_t row = 0; row < o->rows; row += OUTER_ROWS)
            outer_group(o, row, least(o->rows - row, OUTER_ROWS), word, turns);
    }
}

const pace__rnn_products PACE__SET(pace__rnn_products) = {.product = product, .outer = outer};

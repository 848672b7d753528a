/* math/bf16.h by instructions on pairs: a register tile of up to 8 rows by 3 panels. */
#include "math/products_bf16.h"
#include "lanes/pairs.h"

#include <stdbool.h>

#define PANEL PACE__BF16_PANEL
#define PAIRS (2 * PANEL) /* elements of a panel for each two of the inner dimension */

#define ROWS   8 /* a turned a has so many rows side by side: (rows / 8, words / 2, 8, 2) */
#define PANELS 3

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- products --- */

/* How a is read: from one row, pair of the inner dimension, and tile to the next. */
typedef struct reading {
    size_t row, pair;
    bool turned;
} reading;

typedef floats tile[ROWS][PANELS];

INLINE void accumulate(tile sums, int rows, int panels, const pace__bf16 *a, reading by, const pace__bf16 *b,
                       size_t panel, size_t pairs)
{
    for (size_t i = 0; i < pairs; i++, a += by.pair, b += PAIRS) {
        words y[PANELS];

        UNROLL
        for (int p = 0; p < panels; p++)
            y[p] = words_load(b + (size_t)p * panel);
        UNROLL
        for (int r = 0; r < rows; r++) {
            words x = pairs_all(a + (size_t)r * by.row);

            UNROLL
            for (int p = 0; p < panels; p++)
                sums[r][p] = pairs_dot(sums[r][p], x, y[p]);
        }
    }
}

/* Where a tile is, and how many of the columns of its last panel are there. */
typedef struct place {
    size_t row, panel, last;
} place;

/* What is added and written at the end of a tile may be far away: it is fetched while the tile multiplies. */
INLINE void fetch(int rows, int panels, const pace__bf16_product *p, const place *at)
{
    UNROLL
    for (int i = 0; i < rows * panels; i++) {
        size_t row = at->row + (size_t)(i / panels), panel = at->panel + (size_t)(i % panels);

        if (p->start && p->start != p->result)
            __builtin_prefetch(pace__bf16_start(p, row, panel));
        __builtin_prefetch(p->result + row * p->result_stride + panel * p->result_panel, 1, 3);
    }
}

INLINE void clear(tile sums, int rows, int panels)
{
    UNROLL
    for (int i = 0; i < rows * panels; i++)
        sums[i / panels][i % panels] = (floats){0};
}

INLINE void store(tile sums, int rows, int panels, const pace__bf16_product *p, const place *at)
{
    UNROLL
    for (int i = 0; i < rows * panels; i++) {
        size_t row = at->row + (size_t)(i / panels), panel = at->panel + (size_t)(i % panels);
        size_t count = i % panels + 1 == panels ? at->last : PANEL;
        floats sum = sums[i / panels][i % panels];

        if (p->start)
            sum += floats_load_first(pace__bf16_start(p, row, panel), count);
        floats_store_first(p->result + row * p->result_stride + panel * p->result_panel, sum, count);
    }
}

INLINE void product_tile(int rows, int panels, const pace__bf16_product *p, reading by, const place *at)
{
    size_t segments = p->segments ? p->segments : 1, segment = pace__bf16_panel(p->inner);
    size_t panel = p->panel_stride ? p->panel_stride : segments * segment;
    const pace__bf16 *a =
        p->a + at->row / (by.turned ? ROWS : 1) * (by.turned ? ROWS * pace__bf16_padded(p->inner) : by.row);
    const pace__bf16 *b = p->panels + at->panel * panel;
    tile sums;

    fetch(rows, panels, p, at);
    clear(sums, rows, panels);
    for (size_t s = 0; s < segments; s++, b += segment)
        accumulate(sums, rows, panels, a + (p->segments ? p->offsets[s] : 0), by, b, panel,
                   (p->inner + 1) / 2);
    if (p->also)
        accumulate(sums, rows, panels, p->also->a + at->row * p->also->a_stride,
                   (reading){.row = p->also->a_stride, .pair = 2},
                   p->also->panels + at->panel * pace__bf16_panel(p->also->inner),
                   pace__bf16_panel(p->also->inner), (p->also->inner + 1) / 2);
    store(sums, rows, panels, p, at);
}

#define CASE(rows, ...)                                                                                      \
    case rows:                                                                                               \
        product_tile(rows, __VA_ARGS__);                                                                     \
        break;

INLINE void product_panels(int panels, const pace__bf16_product *p, reading by, place at)
{
    for (size_t rows; at.row < p->rows; at.row += rows) {
        size_t left = p->rows - at.row, tiles = (left + ROWS - 1) / ROWS;

        rows = by.turned ? least(left, ROWS) : (left + tiles - 1) / tiles;
        switch (rows) {
            CASE(1, panels, p, by, &at)
            CASE(2, panels, p, by, &at)
            CASE(3, panels, p, by, &at)
            CASE(4, panels, p, by, &at)
            CASE(5, panels, p, by, &at)
            CASE(6, panels, p, by, &at)
            CASE(7, panels, p, by, &at)
            CASE(8, panels, p, by, &at)
        }
    }
}

/* Tiles of nearly equal width. */
INLINE void product_by(const pace__bf16_product *p, reading by)
{
    size_t all = (p->columns + PANEL - 1) / PANEL;

    for (size_t panel = 0, panels; panel < all; panel += panels) {
        size_t left = all - panel, tiles = (left + PANELS - 1) / PANELS;

        panels = (left + tiles - 1) / tiles;
        place at = {.panel = panel, .last = least(p->columns - (panel + panels - 1) * PANEL, PANEL)};

        if (panels == 1)
            product_panels(1, p, by, at);
        else if (panels == 2)
            product_panels(2, p, by, at);
        else
            product_panels(3, p, by, at);
    }
}

static void product(const pace__bf16_product *p)
{
    product_by(p, (reading){.row = p->a_stride, .pair = 2});
}

static void outer(const pace__bf16_product *o)
{
    pace__bf16_product whole = *o;

    whole.segments = 0;
    product_by(&whole, (reading){.row = 2, .pair = 2 * ROWS, .turned = true});
}

/* --- packing --- */

void pace__bf16_narrow_v4(const float *from, size_t from_stride, size_t rows, size_t count, pace__bf16 *to,
                          size_t to_stride)
{
    size_t padded = pace__bf16_padded(count);

    for (size_t row = 0; row < rows; row++, from += from_stride, to += to_stride) {
        size_t i = 0;

        for (; i + LANES <= count; i += LANES)
            halves_store(to + i, floats_load(from + i));
        for (; i < padded; i += LANES)
            halves_store(to + i, i < count ? floats_load_first(from + i, count - i) : (floats){0});
    }
}

void pace__bf16_pair_v4(const pace__bf16 *from, size_t stride, size_t inner, size_t columns,
                        pace__bf16 *panels)
{
    size_t padded = pace__bf16_padded(inner);

    for (size_t column = 0; column < columns; column += PANEL, panels += padded * PANEL) {
        for (size_t i = 0; i < padded; i += 2)
            words_store(panels + i * PANEL, pairs_of_rows(from + column, stride, i, inner, columns - column));
    }
}

INLINE void sum_vectors(int vectors, const pace__bf16 *from, size_t stride, const uint32_t *list,
                        size_t listed, float *sum)
{
    floats sums[8] = {0};

    for (size_t i = 0; i < listed; i++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[v] += halves_load(from + list[i] * stride + (size_t)v * LANES);
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        floats_store(sum + (size_t)v * LANES, sums[v]);
}

void pace__bf16_sum_rows_v4(const pace__bf16 *from, size_t stride, const uint32_t *list, size_t listed,
                            float *sum, size_t count)
{
    size_t at = 0;

    for (; at + 8 * LANES <= count; at += 8 * LANES)
        sum_vectors(8, from + at, stride, list, listed, sum + at);
    for (; at < count; at += LANES)
        sum_vectors(1, from + at, stride, list, listed, sum + at);
}

static void turn(const pace__bf16 *from, size_t stride, size_t words_count, size_t rows, pace__bf16 *to)
{
    size_t padded = pace__bf16_padded(words_count);

    for (size_t row = 0; row < rows; row += 2 * ROWS, to += 2 * ROWS * padded) {
        for (size_t word = 0; word < padded; word += 2) {
            words both = pairs_of_rows(from + row, stride, word, words_count, rows - row);

            words_store_halves(to + word * ROWS, to + (padded + word) * ROWS, both);
        }
    }
}

static void nothing(void)
{
}

const pace__bf16_kernels pace__bf16_pairs_v4 = {
    .name = "avx512-bf16",
    .begin = nothing,
    .end = nothing,
    .product = product,
    .outer = outer,
    .narrow = pace__bf16_narrow_v4,
    .pair = pace__bf16_pair_v4,
    .turn = turn,
    .sum_rows = pace__bf16_sum_rows_v4,
};

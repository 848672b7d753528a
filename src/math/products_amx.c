/*
 * math/bf16.h on tiles: 2 x 2 of them hold the sums of 32 rows by 32 columns, or, where there are at most 16 rows, 1 x 4
 * those of 64 columns. Tiles 0 to 3 are sums, 4 and 5 rows of a, 6 and 7 panels.
 */
#include "lanes/pairs.h"
#include "lanes/tiles.h"
#include "math/products_bf16.h"

#include <stdbool.h>

#define PANEL PACE__BF16_PANEL
#define INNER PACE__BF16_INNER
#define ROWS  16 /* of a tile */

/* So many rows in the upper tiles, so many in the lower ones. */
#define SHAPE(upper, lower)                                                                                  \
    {                                                                                                        \
        .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},                                         \
        .rows = {upper, upper, lower, lower, upper, lower, 16, 16},                                          \
    }
#define SHAPES(of)                                                                                           \
    {                                                                                                        \
        of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), of(13),       \
            of(14), of(15), of(16)                                                                           \
    }
#define SHAPE_ONE(rows) SHAPE(rows, rows)
#define SHAPE_TWO(rows) SHAPE(16, rows)

/* By the rows of the last tile, less 1. */
static const tiles_shape one_tile[ROWS] = SHAPES(SHAPE_ONE), two_tiles[ROWS] = SHAPES(SHAPE_TWO);

#define WHOLE (&two_tiles[ROWS - 1])

/* What is multiplied: some rows with some panels, and where panels are. */
typedef struct place {
    size_t row, rows, panel, panels;
} place;

/* Where a tile of floats is in memory; of a panel that has fewer columns, a copy. */
typedef struct square {
    float *at;
    size_t stride; /* bytes */
    float copy[ROWS][PANEL];
} square;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t columns_of(const pace__bf16_product *p, size_t panel)
{
    return least(p->columns - panel * PANEL, PANEL);
}

static size_t rows_of(const place *at, size_t row)
{
    return least(at->rows - row, ROWS);
}

/* --- sums from memory and back --- */

static void find_start(const pace__bf16_product *p, const place *at, size_t row, size_t panel, square *from)
{
    size_t columns = columns_of(p, at->panel + panel);
    const float *start = pace__bf16_start(p, at->row + row, at->panel + panel);

    from->at = (float *)start;
    from->stride = p->start_stride * sizeof *start;
    if (columns == PANEL)
        return;
    for (size_t r = 0; r < rows_of(at, row); r++)
        memcpy(from->copy[r], pace__bf16_start(p, at->row + row + r, at->panel + panel),
               columns * sizeof *start);
    from->at = from->copy[0];
    from->stride = sizeof from->copy[0];
}

static void find_result(const pace__bf16_product *p, const place *at, size_t row, size_t panel, square *to)
{
    to->at = p->result + (at->row + row) * p->result_stride + (at->panel + panel) * p->result_panel;
    to->stride = p->result_stride * sizeof *to->at;
    if (columns_of(p, at->panel + panel) < PANEL) {
        to->at = to->copy[0];
        to->stride = sizeof to->copy[0];
    }
}

static void copy_result(const pace__bf16_product *p, const place *at, size_t row, size_t panel,
                        const square *from)
{
    size_t columns = columns_of(p, at->panel + panel);

    for (size_t r = 0; columns < PANEL && r < rows_of(at, row); r++)
        memcpy(p->result + (at->row + row + r) * p->result_stride + (at->panel + panel) * p->result_panel,
               from->copy[r], columns * sizeof from->copy[r][0]);
}

/* For tile numbers, which are written: `row` and `panel` are those of the tile. */
#define START(tile, row, panel)                                                                              \
    do {                                                                                                     \
        if (p->start) {                                                                                      \
            find_start(p, at, row, panel, &memory);                                                          \
            tile_load(tile, memory.at, memory.stride);                                                       \
        } else {                                                                                             \
            tile_zero(tile);                                                                                 \
        }                                                                                                    \
    } while (0)
#define FINISH(tile, row, panel)                                                                             \
    do {                                                                                                     \
        find_result(p, at, row, panel, &memory);                                                             \
        tile_store(memory.at, memory.stride, tile);                                                          \
        copy_result(p, at, row, panel, &memory);                                                             \
    } while (0)

/* --- products --- */

/* a and b along the inner dimension: one turn multiplies 32 of it. */
typedef struct walk {
    const pace__bf16 *a, *b;
    size_t a_stride; /* bytes */
    size_t lower;    /* from the upper rows of a to the lower ones */
    size_t panel;    /* from one panel to the next */
    size_t turns;
} walk;

static walk walk_of(const pace__bf16_product *p, const place *at, size_t segment)
{
    size_t segments = p->segments ? p->segments : 1, size = pace__bf16_panel(p->inner);
    size_t panel = p->panel_stride ? p->panel_stride : segments * size;

    return (walk){.a = p->a + at->row * p->a_stride + (p->segments ? p->offsets[segment] : 0),
                  .b = p->panels + at->panel * panel + segment * size,
                  .a_stride = p->a_stride * sizeof *p->a,
                  .lower = ROWS * p->a_stride,
                  .panel = panel,
                  .turns = pace__bf16_padded(p->inner) / INNER};
}

#define PAIRS_BYTES (2 * PANEL * sizeof(pace__bf16))

INLINE void multiply_square(walk w, bool right)
{
    for (size_t i = 0; i < w.turns; i++, w.a += INNER, w.b += INNER * PANEL) {
        tile_load(4, w.a, w.a_stride);
        tile_load(6, w.b, PAIRS_BYTES);
        tile_dot(0, 4, 6);
        tile_load(5, w.a + w.lower, w.a_stride);
        tile_dot(2, 5, 6);
        if (right) {
            tile_load(7, w.b + w.panel, PAIRS_BYTES);
            tile_dot(1, 4, 7);
            tile_dot(3, 5, 7);
        }
    }
}

INLINE void multiply_line(walk w, size_t panels)
{
    for (size_t i = 0; i < w.turns; i++, w.a += INNER, w.b += INNER * PANEL) {
        tile_load(4, w.a, w.a_stride);
        tile_load(6, w.b, PAIRS_BYTES);
        tile_dot(0, 4, 6);
        if (panels > 1) {
            tile_load(7, w.b + w.panel, PAIRS_BYTES);
            tile_dot(1, 4, 7);
        }
        if (panels > 2) {
            tile_load(6, w.b + 2 * w.panel, PAIRS_BYTES);
            tile_dot(2, 4, 6);
        }
        if (panels > 3) {
            tile_load(7, w.b + 3 * w.panel, PAIRS_BYTES);
            tile_dot(3, 4, 7);
        }
    }
}

INLINE void square_of(const pace__bf16_product *p, const place *at, bool right)
{
    square memory;

    START(0, 0, 0);
    START(2, ROWS, 0);
    if (right) {
        START(1, 0, 1);
        START(3, ROWS, 1);
    }
    for (size_t s = 0; s < (p->segments ? p->segments : 1); s++)
        multiply_square(walk_of(p, at, s), right);
    if (p->also)
        multiply_square(walk_of(p->also, at, 0), right);
    FINISH(0, 0, 0);
    FINISH(2, ROWS, 0);
    if (right) {
        FINISH(1, 0, 1);
        FINISH(3, ROWS, 1);
    }
}

INLINE void line_of(const pace__bf16_product *p, const place *at, size_t panels)
{
    square memory;

    START(0, 0, 0);
    if (panels > 1)
        START(1, 0, 1);
    if (panels > 2)
        START(2, 0, 2);
    if (panels > 3)
        START(3, 0, 3);
    for (size_t s = 0; s < (p->segments ? p->segments : 1); s++)
        multiply_line(walk_of(p, at, s), panels);
    if (p->also)
        multiply_line(walk_of(p->also, at, 0), panels);
    FINISH(0, 0, 0);
    if (panels > 1)
        FINISH(1, 0, 1);
    if (panels > 2)
        FINISH(2, 0, 2);
    if (panels > 3)
        FINISH(3, 0, 3);
}

static void squares(const pace__bf16_product *p, place at, size_t panels)
{
    for (; at.panel + 1 < panels; at.panel += 2)
        square_of(p, &at, true);
    if (at.panel < panels)
        square_of(p, &at, false);
}

static void lines(const pace__bf16_product *p, place at, size_t panels)
{
    for (; at.panel < panels; at.panel += 4) {
        switch (least(panels - at.panel, 4)) {
        case 1:
            line_of(p, &at, 1);
            break;
        case 2:
            line_of(p, &at, 2);
            break;
        case 3:
            line_of(p, &at, 3);
            break;
        default:
            line_of(p, &at, 4);
        }
    }
}

static void product(const pace__bf16_product *p)
{
    size_t panels = (p->columns + PANEL - 1) / PANEL;
    place at = {0};

    for (; at.row < p->rows; at.row += at.rows) {
        at.rows = least(p->rows - at.row, 2 * ROWS);
        /* Only the last tile of a product can have fewer rows: then tiles get another shape, and their old one back. */
        bool cut = at.rows % ROWS;

        if (cut && at.rows > ROWS)
            tiles_configure(&two_tiles[at.rows % ROWS - 1]);
        else if (cut)
            tiles_configure(&one_tile[at.rows - 1]);
        if (at.rows > ROWS)
            squares(p, at, panels);
        else
            lines(p, at, panels);
        if (cut)
            tiles_configure(WHOLE);
    }
}

/* A turned a: (rows, padded words) */
static void outer(const pace__bf16_product *o)
{
    pace__bf16_product whole = *o;

    whole.segments = 0;
    whole.a_stride = pace__bf16_padded(o->inner);
    product(&whole);
}

static void turn(const pace__bf16 *from, size_t stride, size_t words_count, size_t rows, pace__bf16 *to)
{
    size_t padded = pace__bf16_padded(words_count);

    for (size_t row = 0; row < rows; row += ROWS, to += ROWS * padded) {
        for (size_t word = 0; word < padded; word += INNER) {
            words pairs[ROWS];

            UNROLL
            for (size_t i = 0; i < ROWS; i++)
                pairs[i] = pairs_of_rows(from + row, stride, word + 2 * i, words_count, rows - row);
            words_turn(pairs);
            UNROLL
            for (size_t i = 0; i < ROWS; i++)
                words_store(to + i * padded + word, pairs[i]);
        }
    }
}

static void begin(void)
{
    tiles_configure(WHOLE);
}

static void end(void)
{
    tiles_release();
}

/* The test that has tiles in C gives its table another name. */
#ifdef LANES_TILES_IN_C
#define pace__bf16_tiles_v4 pace__bf16_tiles_in_c
extern const pace__bf16_kernels pace__bf16_tiles_in_c;
#endif

const pace__bf16_kernels pace__bf16_tiles_v4 = {
    .name = "amx",
    .begin = begin,
    .end = end,
    .product = product,
    .outer = outer,
    .narrow = pace__bf16_narrow_v4,
    .pair = pace__bf16_pair_v4,
    .turn = turn,
    .sum_rows = pace__bf16_sum_rows_v4,
};

/*
 * bf16.h - products of matrices of bf16, the upper halves of floats, with sums in floats: what `--precision bf16` computes
 * with.
 *
 * There are three *ways*: instructions on tiles (AMX), on pairs (AVX512_BF16), and plain C, which imitates them, for tests
 * and bug reports. A way is a table of functions; which one goes with the kernels in use is pace__bf16_use's to say.
 *
 *     result (rows, columns) = start + a (rows, inner) x b (inner, columns)
 *
 * a is kept as *rows* of bf16. b is kept as *panels* of 16 columns, in which two neighbours of the inner dimension lie side
 * by side: (panels, inner / 2, 16, 2). Derivatives of weights are sums over words or pixels, a (words, rows) transposed x
 * b (words, columns): for these b is packed in panels as well, and a is `turned`, into a layout that only the way knows.
 *
 *     kernels->narrow(...)          floats -> rows                  when they are computed, once for all products
 *     kernels->pair(...)            rows (inner, columns) -> panels
 *     kernels->turn(...)            rows (words, rows) -> a of an outer product
 *     pace__bf16_pack(...)          floats, in any order -> panels  of weights, once in a step
 *
 * 1. Memory is padded along the inner dimension: rows and panels go on to pace__bf16_padded(inner). All of the above write
 * zeros there. Where rows of a were not made by `narrow`, or are parts of longer ones, what lies behind the last element, up
 * to the padding, can be read and is finite: it is multiplied with zeros of the panels, or not at all.
 * 2. Results are the same on any number of threads, and differ between ways by the rounding of sums. Packed operands are the
 * same bits in all of them (but for turned ones), so that numbers are rounded alike: to the nearest, ties to even; what is
 * no number stays none; what is too small for a normal float is 0.
 * 3. A thread calls begin() before its first product or outer, and end() after its last. They are cheap; between them it
 * may do anything else.
 */
#ifndef MATH_BF16_H
#define MATH_BF16_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t pace__bf16;

#define PACE__BF16_PANEL 16
#define PACE__BF16_INNER 32 /* the inner dimension is padded to a multiple of this */

typedef struct pace__bf16_product {
    size_t rows, columns; /* of the last panel, columns behind the last one are neither read nor written */
    /* a: a row has `segments` parts of `inner` elements each, which may be anywhere: the filter of a convolution sees the
     * channels of several pixels. Panels have the segments one behind the other, each of them padded. */
    const pace__bf16 *a;
    size_t a_stride; /* from one row to the next, in elements, as all strides here */
    size_t inner;
    size_t segments;       /* 0: one, where a is */
    const size_t *offsets; /* (segments) from a */
    const pace__bf16 *panels;
    size_t panel_stride; /* 0: they lie side by side */
    /* NULL: 0. With a stride of 0 the same row for all; may be the result itself. */
    const float *start;
    size_t start_stride, start_panel;
    float *result;
    size_t result_stride,
        result_panel; /* from one row to the next; from one panel's columns to the next one's */
    /* Another product of as many rows and columns, whose a x panels are added; NULL: none. No start or result of its own. */
    const struct pace__bf16_product *also;
} pace__bf16_product;

typedef struct pace__bf16_kernels {
    const char *name; /* "amx", "avx512-bf16", "emulated" */
    void (*begin)(void);
    void (*end)(void);
    void (*product)(const pace__bf16_product *product);
    /* The same with a turned a, whose `inner` elements are words; a_stride and segments are not used. */
    void (*outer)(const pace__bf16_product *outer);
    /* to (rows, padded count) = from (rows, count) */
    void (*narrow)(const float *from, size_t from_stride, size_t rows, size_t count, pace__bf16 *to,
                   size_t to_stride);
    /* Panels, side by side, of rows (inner, columns); `columns` of them are read. */
    void (*pair)(const pace__bf16 *from, size_t stride, size_t inner, size_t columns, pace__bf16 *panels);
    /* Of rows (words, rows) pace__bf16_turned elements. */
    void (*turn)(const pace__bf16 *from, size_t stride, size_t inner, size_t rows, pace__bf16 *to);
    /* sum (count) = the sum of the listed rows, in their order; the same bits in all ways. count: a multiple of 16. */
    void (*sum_rows)(const pace__bf16 *from, size_t stride, const uint32_t *list, size_t listed, float *sum,
                     size_t count);
} pace__bf16_kernels;

typedef enum pace__bf16_way {
    PACE__BF16_PLAIN,
    PACE__BF16_PAIRS, /* AVX512_BF16 */
    PACE__BF16_TILES, /* AMX */
    PACE__BF16_WAYS
} pace__bf16_way;

/*
 * The way that goes with the kernels in use; on every rank, before threads are started. PACE_USAGE with a message if this
 * CPU, or the kernel of its system, has none for them.
 */
pace_status pace__bf16_use(const pace_log *log, const pace__bf16_kernels **kernels);
/* The same of other kernels, on a CPU of these abilities (base/cpu.h). */
pace_status pace__bf16_choose(int set, unsigned abilities, const pace_log *log, pace__bf16_way *way);
/* NULL: this program has no such way. */
const pace__bf16_kernels *pace__bf16_of(pace__bf16_way way);

/*
 * Panels of floats: element (i, column) of (inner, columns) is from[i * inner_stride + column * column_stride]. Columns of
 * the last panel that are not there become 0. For what is packed seldom: it looks at one number at a time.
 */
void pace__bf16_pack(const float *from, size_t inner_stride, size_t column_stride, size_t inner,
                     size_t columns, pace__bf16 *panels);

/* What row `row` starts with, of a product that has a start. */
static inline const float *pace__bf16_start(const pace__bf16_product *product, size_t row, size_t panel)
{
    return product->start + row * product->start_stride + panel * product->start_panel;
}

/* --- sizes, in elements --- */

static inline size_t pace__bf16_padded(size_t inner)
{
    return (inner + PACE__BF16_INNER - 1) / PACE__BF16_INNER * PACE__BF16_INNER;
}

/* From one panel to the next. */
static inline size_t pace__bf16_panel(size_t inner)
{
    return pace__bf16_padded(inner) * PACE__BF16_PANEL;
}

static inline size_t pace__bf16_panels(size_t inner, size_t columns)
{
    return (columns + PACE__BF16_PANEL - 1) / PACE__BF16_PANEL * pace__bf16_panel(inner);
}

static inline size_t pace__bf16_turned(size_t inner, size_t rows)
{
    return (rows + PACE__BF16_PANEL - 1) / PACE__BF16_PANEL * pace__bf16_panel(inner);
}

/* --- single numbers --- */

static inline float pace__bf16_widen(pace__bf16 value)
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;

    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

static inline pace__bf16 pace__bf16_round(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    uint32_t size = bits & 0x7fffffff;

    if (size > 0x7f800000)
        return (pace__bf16)(bits >> 16 | 0x40);
    if (size < 0x00800000)
        return (pace__bf16)(bits >> 16 & 0x8000);
    return (pace__bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif

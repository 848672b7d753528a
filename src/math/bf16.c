#include "math/bf16.h"
#include "base/cpu.h"
#include "math/products_bf16.h"

#include <stdbool.h>

#define PANEL PACE__BF16_PANEL

/* --- which way --- */

pace_status pace__bf16_choose(int set, unsigned abilities, const pace_log *log, pace__bf16_way *way)
{
    unsigned tiles = PACE__CPU_AVX512BF16 | PACE__CPU_AMX_TILE | PACE__CPU_AMX_BF16;

    if (set == PACE_KERNELS_PLAIN) {
        *way = PACE__BF16_PLAIN;
    } else if (set != PACE_KERNELS_V4) {
        return pace_fail(
            log, PACE_USAGE,
            "--precision bf16 needs AVX512_BF16 or AMX, and with them the kernels v4: those in use are %s; "
            "--kernels plain imitates it, tens of times slower",
            pace_kernels_name(set));
    } else if (!(abilities & PACE__CPU_AVX512BF16)) {
        return pace_fail(log, PACE_USAGE,
                         "--precision bf16 needs a CPU with AVX512_BF16 or AMX, and this one has neither; "
                         "--kernels plain imitates it, tens of times slower");
    } else {
        *way = (abilities & tiles) == tiles ? PACE__BF16_TILES : PACE__BF16_PAIRS;
    }
    return PACE_OK;
}

pace_status pace__bf16_use(const pace_log *log, const pace__bf16_kernels **kernels)
{
    pace__bf16_way way = PACE__BF16_PLAIN;
    pace_status status = pace__bf16_choose(pace_kernels_in_use(), pace__cpu_abilities(), log, &way);

    if (status)
        return status;
    if (way == PACE__BF16_TILES && !pace__cpu_allow_tiles())
        way = PACE__BF16_PAIRS; /* a system that has no room for them */
    *kernels = pace__bf16_of(way);
    return PACE_OK;
}

const char *pace_kernels_bf16(void)
{
    const pace__bf16_kernels *kernels;

    return pace__bf16_use(NULL, &kernels) ? NULL : kernels->name;
}

/* --- packing --- */

void pace__bf16_pack(const float *from, size_t inner_stride, size_t column_stride, size_t inner,
                     size_t columns, pace__bf16 *panels)
{
    size_t padded = pace__bf16_padded(inner);

    for (size_t first = 0; first < columns; first += PANEL, panels += padded * PANEL) {
        size_t count = columns - first < PANEL ? columns - first : PANEL;

        memset(panels, 0, padded * PANEL * sizeof *panels);
        for (size_t i = 0; i < inner; i++) {
            for (size_t column = 0; column < count; column++)
                panels[i / 2 * 2 * PANEL + column * 2 + i % 2] =
                    pace__bf16_round(from[i * inner_stride + (first + column) * column_stride]);
        }
    }
}

static void narrow(const float *from, size_t from_stride, size_t rows, size_t count, pace__bf16 *to,
                   size_t to_stride)
{
    for (size_t row = 0; row < rows; row++, from += from_stride, to += to_stride) {
        for (size_t i = 0; i < pace__bf16_padded(count); i++)
            to[i] = i < count ? pace__bf16_round(from[i]) : 0;
    }
}

static void pair(const pace__bf16 *from, size_t stride, size_t inner, size_t columns, pace__bf16 *panels)
{
    memset(panels, 0, pace__bf16_panels(inner, columns) * sizeof *panels);
    for (size_t i = 0; i < inner; i++) {
        for (size_t column = 0; column < columns; column++)
            panels[column / PANEL * pace__bf16_panel(inner) + i / 2 * 2 * PANEL + column % PANEL * 2 +
                   i % 2] = from[i * stride + column];
    }
}

/* (rows, padded words) */
static void turn(const pace__bf16 *from, size_t stride, size_t words, size_t rows, pace__bf16 *to)
{
    size_t padded = pace__bf16_padded(words);

    for (size_t row = 0; row < rows; row++) {
        for (size_t word = 0; word < padded; word++)
            to[row * padded + word] = word < words ? from[word * stride + row] : 0;
    }
}

/* --- products --- */

static float dot(const pace__bf16_product *p, size_t row, size_t column, float sum)
{
    size_t padded = pace__bf16_padded(p->inner), segments = p->segments ? p->segments : 1;
    size_t stride = p->panel_stride ? p->panel_stride : segments * padded * PANEL;
    const pace__bf16 *b = p->panels + column / PANEL * stride + column % PANEL * 2;

    for (size_t s = 0; s < segments; s++, b += padded * PANEL) {
        const pace__bf16 *a = p->a + row * p->a_stride + (p->segments ? p->offsets[s] : 0);

        for (size_t i = 0; i < p->inner; i++)
            sum += pace__bf16_widen(a[i]) * pace__bf16_widen(b[i / 2 * 2 * PANEL + i % 2]);
    }
    return sum;
}

static void product(const pace__bf16_product *p)
{
    for (size_t row = 0; row < p->rows; row++) {
        for (size_t column = 0; column < p->columns; column++) {
            size_t panel = column / PANEL, lane = column % PANEL;
            float start = p->start ? pace__bf16_start(p, row, panel)[lane] : 0;

            p->result[row * p->result_stride + panel * p->result_panel + lane] = dot(p, row, column, start);
        }
    }
}

static void outer(const pace__bf16_product *o)
{
    pace__bf16_product rows = *o;

    rows.a_stride = pace__bf16_padded(o->inner);
    rows.segments = 0;
    product(&rows);
}

static void nothing(void)
{
}

static const pace__bf16_kernels plain = {
    .name = "emulated",
    .begin = nothing,
    .end = nothing,
    .product = product,
    .outer = outer,
    .narrow = narrow,
    .pair = pair,
    .turn = turn,
};

/* --- ways --- */

const pace__bf16_kernels *pace__bf16_of(pace__bf16_way way)
{
#if PACE__HAS_BF16
    if (way != PACE__BF16_PLAIN)
        return way == PACE__BF16_TILES ? &pace__bf16_tiles_v4 : &pace__bf16_pairs_v4;
#endif
    return way == PACE__BF16_PLAIN ? &plain : NULL;
}

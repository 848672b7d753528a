/*
 * Parameters are read and written one by one: gather and scatter were measured at twice the time, because a
 * gather costs more than the loads it stands for and cannot be fed by a store that is still on its way, and
 * frequent ids are updated by nearly every row. What is the same for many rows, or for the columns of a row,
 * is done in vectors. Not in the widest ones: a row waits for the parameters that the row before it has changed, the
 * longer the more of them a vector has to wait for (an AMD EPYC of Zen 4: 45 ns a row, and 29 with half the width).
 */
#define LANES_32
#include "math/functions_lanes.h"
#include "model/linear/logreg.h"

/* Rows ahead of the one being summed whose cold parameters are fetched. */
#define PREFETCH_ROWS 32
#define GROUPS_MAX    (PACE__FAST_COLUMNS_MAX / PACE__GROUP_COLUMNS)

/* --- dots --- */

/* Where `width` is an argument it is a constant. */
INLINE void prefetch_row(const float *parameters, size_t width, const pace__stripe *stripe,
                         const uint32_t *ids)
{
    for (uint32_t i = 0; i < stripe->cold_count; i++)
        __builtin_prefetch(parameters + width * ids[stripe->cold[i]]);
}

/* The ids that prefetch_row will read later. Another thread has put them there: they may be in its cache. */
INLINE void prefetch_ids(const uint32_t *ids, const pace__stripe *stripe)
{
    for (uint32_t column = stripe->column_first; column < stripe->column_last; column += 16)
        __builtin_prefetch(ids + column);
}

/* A row's sums by group, into a column of sums; as pace__group_sum does. */
INLINE void sum_groups(const float *parameters, size_t width, const uint32_t *ids, const uint32_t *end,
                       float *sums)
{
    for (; ids + PACE__GROUP_COLUMNS <= end; ids += PACE__GROUP_COLUMNS, sums += PACE__BLOCK_ROWS)
        *sums = (parameters[width * ids[0]] + parameters[width * ids[1]]) +
                (parameters[width * ids[2]] + parameters[width * ids[3]]);
    if (ids < end)
        *sums = pace__group_sum(parameters, width, ids, (uint32_t)(end - ids));
}

/* sums[group][i]: of row first + i. */
INLINE void sum_rows(const pace__logreg *model, size_t width, const pace__rows *rows, size_t first,
                     size_t count, const pace__stripe *stripe, float sums[][PACE__BLOCK_ROWS])
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t *ids = rows->ids + (first + i) * model->columns;

        if (first + i + PREFETCH_ROWS < rows->rows) {
            const uint32_t *ahead = ids + (size_t)PREFETCH_ROWS * model->columns;

            prefetch_row(model->parameters, width, stripe, ahead);
            prefetch_ids(ahead + (size_t)PREFETCH_ROWS * model->columns, stripe);
        }
        sum_groups(model->parameters, width, ids + stripe->column_first, ids + stripe->column_last,
                   &sums[0][i]);
    }
}

static void dots_of(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                    const pace__stripe *stripe, int64_t *dots)
{
    _Alignas(64) float sums[GROUPS_MAX][PACE__BLOCK_ROWS];
    _Alignas(64) int32_t whole[PACE__BLOCK_ROWS];
    uint32_t columns = stripe->column_last - stripe->column_first;
    uint32_t groups = (columns + PACE__GROUP_COLUMNS - 1) / PACE__GROUP_COLUMNS;

    if (model->optim.width == 1)
        sum_rows(model, 1, rows, first, count, stripe, sums);
    else
        sum_rows(model, 2, rows, first, count, stripe, sums);
    /* Behind the last row there is rubbish in the sums, and then in `whole`. */
    for (size_t at = 0; at < count; at += LANES) {
        ints sum = {0};

        for (uint32_t group = 0; group < groups; group++) {
            floats x = floats_max(floats_load(&sums[group][at]), floats_all(-PACE__GROUP_MAX));

            sum += floats_to_ints(floats_min(x, floats_all(PACE__GROUP_MAX)) * (1 / PACE__DOT_UNIT));
        }
        ints_store(whole + at, sum);
    }
    for (size_t i = 0; i < count; i++)
        dots[i] = whole[i];
}

/* --- gradient --- */

/* Rows behind the last have a dot product of 0. */
static double gradient_of(const pace__rows *rows, size_t first, size_t count, const int64_t *dots,
                          float *gradient)
{
    _Alignas(64) float logit[PACE__BLOCK_ROWS] = {0}, label[PACE__BLOCK_ROWS] = {0};
    _Alignas(64) float error[PACE__BLOCK_ROWS], loss[PACE__BLOCK_ROWS];

    for (size_t i = 0; i < count; i++) {
        logit[i] = (float)dots[i] * PACE__DOT_UNIT;
        label[i] = rows->label[first + i];
    }
    for (size_t at = 0; at < count; at += LANES) {
        floats z = floats_load(logit + at), y = floats_load(label + at);
        floats small = floats_exp_negative(-floats_abs(z)), above = 1 / (1 + small);

        floats_store(error + at, floats_where(z >= 0, above, small * above) - y);
        floats_store(loss + at, floats_log1p_unit(small) + (floats_max(z, floats_all(0)) - y * z));
    }
    memcpy(gradient, error, count * sizeof *gradient);
    memset(loss + count, 0, (PACE__BLOCK_ROWS - count) * sizeof *loss);
    return pace__block_sum(loss);
}

/* --- updates: {weight, squared-gradient sum} pairs of 8 bytes, moved as doubles --- */

#define PAIRS (LANES / 2)

/* Within each 128 bits of two vectors of pairs: all first, all second; and back. */
#if LANES == 4
#define FIRSTS(a, b)  __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define SECONDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define LOWS(a, b)    __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGHS(a, b)   __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif LANES == 8
#define FIRSTS(a, b)  __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14)
#define SECONDS(a, b) __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15)
#define LOWS(a, b)    __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGHS(a, b)   __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#endif

/* Updates the parameters of LANES ids, and stores the first `count` of them. */
INLINE void update_lanes(double *pairs, const uint32_t *ids, int count, floats square, floats step)
{
    floats a = (floats)doubles_pick(pairs, ids), b = (floats)doubles_pick(pairs, ids + PAIRS);
    floats sums = SECONDS(a, b) + square, weights = FIRSTS(a, b) - floats_over_root(step, sums);

    doubles_put(pairs, ids, (doubles)LOWS(weights, sums), count < PAIRS ? count : PAIRS);
    doubles_put(pairs, ids + PAIRS, (doubles)HIGHS(weights, sums), count - PAIRS);
}

/* The last, fewer than LANES: `count` is a constant. Other lanes have the first id, and are not stored. */
INLINE void update_rest(double *pairs, const uint32_t *ids, int count, floats square, floats step)
{
    uint32_t all[LANES];

    UNROLL
    for (int i = 0; i < LANES; i++)
        all[i] = ids[i < count ? i : 0];
    update_lanes(pairs, all, count, square, step);
}

/* Row after row, but all roots at once. */
static void update_bias(float *bias, float lr, const float *gradient, size_t count)
{
    _Alignas(64) float sums[PACE__BLOCK_ROWS], steps[PACE__BLOCK_ROWS];

    for (size_t i = 0; i < PACE__BLOCK_ROWS; i++) { /* behind the last row: anything */
        float each = i < count ? gradient[i] : 0;

        sums[i] = bias[1] += each * each;
        steps[i] = lr * each;
    }
    for (size_t at = 0; at < count; at += LANES)
        floats_store(steps + at, floats_over_root(floats_load(steps + at), floats_load(sums + at)));
    for (size_t i = 0; i < count; i++)
        bias[0] -= steps[i];
}

#define REST(count)                                                                                          \
    case count:                                                                                              \
        update_rest(pairs, ids, count, square, step);                                                        \
        break;

static void adagrad(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                    const pace__stripe *stripe, const float *gradient)
{
    double *pairs = (double *)model->parameters;
    uint32_t columns = stripe->column_last - stripe->column_first;

    for (size_t i = 0; i < count; i++) {
        const uint32_t *ids = rows->ids + (first + i) * model->columns + stripe->column_first;
        const uint32_t *end = ids + columns / LANES * LANES;
        floats square = floats_all(gradient[i] * gradient[i]),
               step = floats_all(model->optim.lr * gradient[i]);

        for (; ids < end; ids += LANES)
            update_lanes(pairs, ids, LANES, square, step);
        switch (columns % LANES) {
            REST(1)
            REST(2)
            REST(3)
#if LANES > 4
            REST(4)
            REST(5)
            REST(6)
            REST(7)
#endif
        }
    }
    if (stripe->index == 0)
        update_bias(model->bias, model->optim.lr, gradient, count);
}

const pace__logreg_kernels PACE__SET(pace__logreg) = {
    .dots = dots_of, .gradient = gradient_of, .adagrad = adagrad};

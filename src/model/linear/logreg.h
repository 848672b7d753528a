/*
 * logreg.h - sparse logistic regression: its parameters, and the arithmetic of a block of rows.
 *
 * p(label = 1) = sigmoid(bias + sum of weight[id] * value). Parameters live in one array by compact id,
 * `width` floats each (optim.h); the one behind the last is "unseen" and stays 0.
 *
 * Threads share the work by *columns*: a pace__stripe is the part of every row's entries that one thread owns:
 * a range of columns where rows have columns, else the ids of every count-th group of 16. Each thread
 * computes the dot products of its entries, the sums of all are added up, and each thread updates the
 * parameters of its own entries. Nothing but the sums crosses.
 *
 * 1. A dot product is a sum of integers in units of 2^-20: integer sums do not depend on their order, so any
 * split into stripes gives the same bits. The terms are the products weight * value, each limited to
 * +-PACE__PRODUCT_MAX; or, where rows have columns and all values are 1, the float sums of
 * PACE__GROUP_COLUMNS neighbouring columns' weights, each limited to +-PACE__GROUP_MAX; what is no number
 * counts as the least. Stripes end at such groups. Neither can overflow: 2^22 x 2^20 x the 2^20 entries of
 * the longest row is below 2^63, and 128 x 2^20 x (12 groups and the bias, which has the same limit) below
 * 2^31.
 * 2. A parameter has one owner, and sees its rows in order. With 1, the model does not depend on the number
 * of threads.
 *
 * A block of rows goes: dots (each stripe) -> add up -> gradient -> update (each stripe). In the exact rule,
 * accumulate for all rows of a step takes the place of update, and one apply follows.
 */
#ifndef MODEL_LINEAR_LOGREG_H
#define MODEL_LINEAR_LOGREG_H

#include "base/cpu.h"
#include "math/batch.h"
#include "optim/optim.h"

#define PACE__BLOCK_ROWS    64
#define PACE__DOT_UNIT      0x1p-20f
#define PACE__PRODUCT_MAX   0x1p22f
#define PACE__GROUP_COLUMNS 4
#define PACE__GROUP_MAX     128.0f
/* Rows of more columns than this take the general way. */
#define PACE__FAST_COLUMNS_MAX 48

typedef struct pace__logreg_kernels pace__logreg_kernels;

typedef struct pace__logreg {
    uint32_t ids;     /* parameters 0 .. ids - 1, and "unseen" */
    uint32_t columns; /* 0: rows differ in length */
    pace__optim optim;
    bool fast; /* columns of ones under AdaGrad, without penalties: what the kernels of a set are for */
    const pace__logreg_kernels *kernels;
    float *parameters; /* (ids + 1, width) */
    float bias[PACE__OPTIM_WIDTH_MAX];
    bool cold[PACE__FAST_COLUMNS_MAX]; /* columns worth a prefetch */
} pace__logreg;

/* One thread's part of every row. */
typedef struct pace__stripe {
    unsigned index, count;
    uint32_t column_first, column_last;   /* with columns */
    uint8_t cold[PACE__FAST_COLUMNS_MAX]; /* its columns that are worth a prefetch: others' would be taken
                                             away from their owners */
    uint32_t cold_count;
} pace__stripe;

/* The summed gradients of a step, of one stripe's parameters. */
typedef struct pace__gradients {
    float *sums;     /* (ids + 1) zero between steps; shared by all stripes, each touches its own ids */
    uint64_t *marks; /* (ids / 64 + 1) of this stripe: which ids are in the list */
    size_t marks_bytes;
    uint32_t *list; /* (list_max + 1) ids of this step, and one that does not count */
    size_t count, list_max;
    float bias;
} pace__gradients;

/* `plain` goes the general way: for tests, and where training rows may have the id "unseen", which fast kernels
 * would update. */
pace_status pace__logreg_init(pace__logreg *model, uint32_t ids, uint32_t columns, bool has_values,
                              const pace__optim *optim, bool plain, const pace_log *log);
void pace__logreg_release(pace__logreg *model);
size_t pace__logreg_bytes(const pace__logreg *model);

/* Outside, in checkpoints and on shards, the bias is the last key of `parameters`, whose place in the model
 * means "unseen". Put writes it there, in these parameters or a copy of them; take moves it to `bias` and
 * leaves the place as it was. */
void pace__logreg_put_bias(const pace__logreg *model, float *parameters);
void pace__logreg_take_bias(pace__logreg *model);

/*
 * A view is a model of weights alone, for dots and gradient: `ids` changes from batch to batch, the bias is
 * weight 0, parameters are `weights` one float each, and they are the caller's. It computes the same bits as
 * a model with these weights that pace__logreg_init makes from the same arguments. Not to be released.
 */
void pace__logreg_view_init(pace__logreg *view, uint32_t columns, bool has_values, const pace__optim *optim,
                            bool plain);
/* weights has count + 1 elements; the last, "unseen", is set to 0. */
void pace__logreg_view_set(pace__logreg *view, float *weights, uint32_t count);

/* Finds the columns whose ids spread over more than the nearest cache, from a piece of rows. Changes speed
 * only. */
void pace__logreg_look_ahead(pace__logreg *model, const pace__rows *rows);

pace__stripe pace__logreg_stripe(const pace__logreg *model, unsigned index, unsigned count);

/*
 * Sets dots[0..count) to the stripe's part of the dot products of rows first .. first + count; stripe 0
 * includes the bias. `now` is the number of rows before this block in the whole run: parameters with a
 * penalty are brought up to it.
 */
void pace__logreg_dots(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                       const pace__stripe *stripe, uint64_t now, int64_t *dots);

/* gradient[i] = p - label of row first + i, from the whole dot products; at most PACE__BLOCK_ROWS rows. Returns
 * the sum of the rows' log-losses. */
double pace__logreg_gradient(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                             const int64_t *dots, float *gradient);

/* The block rule's update: row after row; stripe 0 includes the bias. */
void pace__logreg_update(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                         const pace__stripe *stripe, const float *gradient);

/* The exact rule's. `sums` is zeroed memory of ids + 1 floats, shared by all stripes. */
pace_status pace__gradients_init(pace__gradients *gradients, const pace__logreg *model, float *sums,
                                 uint64_t batch, uint32_t row_entries_max, const pace_log *log);
void pace__gradients_release(pace__gradients *gradients);
void pace__logreg_accumulate(const pace__logreg *model, pace__gradients *gradients, const pace__rows *rows,
                             size_t first, size_t count, const pace__stripe *stripe, const float *gradient);
/* One update per parameter that was touched; clears the sums. */
void pace__logreg_apply(pace__logreg *model, pace__gradients *gradients, const pace__stripe *stripe,
                        uint64_t rows_in_step);

/* The weights (ids) as they are at row `now`, without changing anything. */
void pace__logreg_weights(const pace__logreg *model, uint64_t now, float *weight);

/* Logits of all rows as the model stands at row `now`, in double precision, without changing anything. */
void pace__logreg_logits(const pace__logreg *model, uint64_t now, const pace__rows *rows, float *logits);

/* The same from plain weights, (ids + 1) of them; of one row, unrounded. */
double pace__linear_logit(const float *weight, float bias, const pace__rows *rows, size_t row);
void pace__linear_logits(const float *weight, float bias, const pace__rows *rows, float *logits);

/* The sum of the weights of up to PACE__GROUP_COLUMNS ids, in the order that all kernels use. */
static inline float pace__group_sum(const float *parameters, size_t width, const uint32_t *ids,
                                    uint32_t count)
{
    float weight[PACE__GROUP_COLUMNS] = {0};

    for (uint32_t i = 0; i < count; i++)
        weight[i] = parameters[ids[i] * width];
    return (weight[0] + weight[1]) + (weight[2] + weight[3]);
}

/* The sum of a block's losses, 0 behind the last row: halves are added up, which is the same for vectors of any width. */
static inline double pace__block_sum(float *loss)
{
    for (size_t half = PACE__BLOCK_ROWS / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++)
            loss[i] += loss[i + half];
    }
    return (double)loss[0];
}

/* --- the kernels behind: equal bits, whatever the set --- */

struct pace__logreg_kernels {
    /* Of `fast` models: what pace__logreg_dots and pace__logreg_update say, dots without the bias. */
    void (*dots)(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                 const pace__stripe *stripe, int64_t *dots);
    void (*adagrad)(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                    const pace__stripe *stripe, const float *gradient);
    /* Of all. */
    double (*gradient)(const pace__rows *rows, size_t first, size_t count, const int64_t *dots,
                       float *gradient);
};

PACE__TABLES(pace__logreg_kernels, pace__logreg)

#endif

/*
 * steps.h - steps and rows: the arithmetic of "step t is the next `batch` rows of the order".
 *
 * Rows are places in the endless sequence of the sample order, epoch after epoch; steps count from the run's
 * beginning; the last step of an epoch is short, none crosses epochs.
 */
#ifndef PS_STEPS_H
#define PS_STEPS_H

#include <assert.h>
#include <stdint.h>

typedef struct pace__steps {
    uint64_t rows, batch; /* in an epoch, in a step; 1 <= batch <= rows */
    uint64_t per_epoch;
} pace__steps;

static inline pace__steps pace__steps_make(uint64_t rows, uint64_t batch)
{
    assert(rows >= 1 && batch >= 1);
    batch = batch < rows ? batch : rows;
    return (pace__steps){rows, batch, (rows + batch - 1) / batch};
}

/* Rows that steps 0 .. step - 1 hold: the place of the step's first row. */
static inline uint64_t pace__steps_rows_before(const pace__steps *steps, uint64_t step)
{
    uint64_t in_epoch = step % steps->per_epoch * steps->batch;

    return step / steps->per_epoch * steps->rows + (in_epoch < steps->rows ? in_epoch : steps->rows);
}

static inline uint64_t pace__steps_rows_in(const pace__steps *steps, uint64_t step)
{
    return pace__steps_rows_before(steps, step + 1) - pace__steps_rows_before(steps, step);
}

/* The step that a place belongs to: also how many whole steps lie before it. */
static inline uint64_t pace__steps_of(const pace__steps *steps, uint64_t place)
{
    return place / steps->rows * steps->per_epoch + place % steps->rows / steps->batch;
}

/* Worker `index` of `count`: its part of a step's rows. */
static inline void pace__steps_slice(const pace__steps *steps, uint64_t step, unsigned index, unsigned count,
                                     uint64_t *first, uint64_t *rows)
{
    assert(index < count);
    uint64_t all = pace__steps_rows_in(steps, step), begin = all * index / count;

    *first = pace__steps_rows_before(steps, step) + begin;
    *rows = all * (index + 1) / count - begin;
}

#endif

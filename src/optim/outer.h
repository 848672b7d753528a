/*
 * outer.h - replicas of a row of parameters that several workers have trained, each by steps of its own, become one row.
 * Pure arithmetic.
 *
 * Between two merges worker i has updated the row in n_i of N steps, and moved it by d_i. Had all made these steps together,
 * about
 *
 *     n = N (1 - (1 - n_1/N) (1 - n_2/N) ...)
 *
 * of them would have touched it: as many as of independent workers somebody does. So the row has moved by n times what it moves
 * in a step of one worker on average:
 *
 *     d = n / (n_1 + n_2 + ...) x (d_1 + d_2 + ...)
 *
 * What every step of everyone touches, which is all of a network but its word vectors, moves by the mean; what one worker alone
 * has touched moves as that has moved it; words that each have met at times of their own are added up, not averaged away.
 *
 * On top is a momentum from merge to merge (Nesterov's, as DiLoCo has it): v = momentum v + d, and the row moves by
 * rate (d + momentum v). The rule's own state (optim.h), like Adam's means, becomes the mean of that of the workers, each weighed
 * by its n_i: it stays between theirs, so that a mean of squares stays one.
 */
#ifndef OPTIM_OUTER_H
#define OPTIM_OUTER_H

#include <stddef.h>
#include <stdint.h>

typedef struct pace__outer {
    float rate, momentum;
} pace__outer;

/* What a worker has made of a row. */
typedef struct pace__outer_side {
    const float *row; /* (parts, dim) */
    uint32_t steps;   /* that have updated it; 0: none, and `row` may be anything */
} pace__outer_side;

/* n / (n_1 + n_2 + ...): what the sum of all changes is multiplied with. Of sides with no steps at all, 0. */
double pace__outer_gain(const pace__outer_side *sides, unsigned count, uint32_t steps);

/*
 * The sides, in their order, merged into the row, (parts + 1, dim): weights, the rule's state, and the velocity. It is as it was
 * when they set out from it. `steps` of everyone lie between.
 */
void pace__outer_merge(const pace__outer *outer, const pace__outer_side *sides, unsigned count,
                       uint32_t steps, unsigned dim, unsigned parts, float *row);

/* Statistics (model/model.h): no momentum. */
void pace__outer_merge_statistics(const pace__outer_side *sides, unsigned count, uint32_t steps, unsigned dim,
                                  float *row);

#endif

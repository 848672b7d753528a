/*
 * optim.h - what becomes of a parameter when a gradient arrives. Pure arithmetic on a parameter's few floats.
 *
 * A parameter is `width` floats: its weight first, then the rule's state. With lazy regularisation one more
 * holds, as bits, when the parameter was last brought up to date (a *stamp*). Every rule is the same function in the
 * exact rule (gradient: the sum over a step's rows) and in the block rule (gradient: one row's).
 *
 *     sgd       w -= lr g                      (exact rule: g is the mean over the step);  n += g^2, if it is to be kept,
 *               times the rows of a step in the exact rule: what they would have added one by one to a rate of lr over them
 *     momentum  m = momentum m + g;  w -= lr m                               (the same)
 *     adagrad   n += g^2;  w -= lr g / sqrt(n);  n starts at 1; by pace__over_root
 *     ftrl      FTRL-proximal with alpha = lr, beta = 1: L1 and L2 are part of its closed form
 *     adam      m, v decaying means of g, g^2 (0.999), corrected for their start;
 *               w -= lr m / (sqrt(v) + 1e-8)
 *
 * momentum and adam are *lazy*: a parameter's state moves only in steps whose rows touch it.
 *
 * Parameters that always go together, like the numbers of an embedding, are a *row* of `dim` of them: first
 * all their weights, then all their first floats of state, and so on. A row of one is a parameter.
 *
 * Regularisation. Each row adds l1 |w| + l2 w^2 / 2 to its loss. For sgd and adagrad the penalty is applied
 * as the flow dw/dt = -rate (l2 w + l1 sign w), t in rows, rate = lr (sgd) or lr / sqrt(n) (adagrad),
 * stopping at 0. Its solution is known, and following it for a rows and then for b rows is following it for a
 * + b: so bringing a parameter up to date only when it is needed is exact while the rate stays the same. With
 * a learning-rate schedule the rows in between count, all of them, at the rate of the step that has the last
 * one: exact for what every step needs. So whoever reads weights as they are before the first row of step t
 * does so at the rate of step t - 1, and begin_step(t) comes after. momentum and adam use rate = lr, apart
 * from the gradient's path (decoupled decay); in ftrl they weigh against the sum over all rows, so its l1 and
 * l2 are those of the whole run, not of each row.
 *
 * A stamp is a count of rows in 32 bits that neither wraps nor has an end (docs/decisions/0026): exact below
 * 2^31, above that rounded down to its first 27 bits. 1. Stamps rise with the rows. 2. A parameter is brought
 * up to what its stamp says, not further: nothing is lost or charged twice, it is late by 1 in 2^26 at most.
 */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include "math/functions.h"

#include <math.h>
#include <paceline/train.h>
#include <stdint.h>
#include <string.h>

#define PACE__OPTIM_WIDTH_MAX 4

typedef struct pace__optim {
    int kind; /* PACE_SGD ... */
    float lr; /* of this step */
    float momentum;
    float l1, l2;
    unsigned width; /* floats per parameter */
    bool lazy;      /* the last float holds the stamp up to which the penalty has been applied */
    float
        squares; /* sgd: what each counts in a sum of squared gradients, kept behind the weight; 0: none is kept */
    bool velocity;                  /* the last float is not the rule's: outer.h */
    float correction1, correction2; /* adam's, of this step */
    uint64_t before; /* updates of another run, whose state it goes on with: adam's has had its start */
} pace__optim;

pace__optim pace__optim_make(int kind, double lr, double momentum, double l1, double l2);

/* Of sgd, for whoever merges by it (flow.h). Before anything is made by the rule. `rows`: of a step in the exact rule, else 1. */
void pace__optim_keep_squares(pace__optim *optim, uint64_t rows);

/* For whoever merges rows (outer.h); and the rule without it: its floats are the first of those. No lazy penalties. */
void pace__optim_keep_velocity(pace__optim *optim);
pace__optim pace__optim_inner(const pace__optim *optim);

/* For sgd and momentum it depends on what a gradient is: one row's, or the mean over a step (exact rule). */
double pace__optim_default_lr(int kind, bool exact);

/* The learning rate of step `step` (from 0) of `steps`. */
double pace__schedule_lr(int schedule, double lr, int64_t warmup, uint64_t step, uint64_t steps);

/* Sets what depends on the step: its rate, and how many updates of this run went before (for adam). */
void pace__optim_begin_step(pace__optim *optim, double lr, uint64_t updates);

/* What the sum of a step's gradients is multiplied with: sgd and momentum take the mean over its rows. */
float pace__optim_scale(const pace__optim *optim, uint64_t rows_in_step);

/* A new parameter's floats; and those of a row. */
void pace__optim_init(const pace__optim *optim, float *parameter);
void pace__optim_init_row(const pace__optim *optim, unsigned dim, float *row);

/* Floats that the rule itself keeps of a weight, right behind it: without stamps, and what those who merge keep. */
unsigned pace__optim_planes(const pace__optim *optim);

/* The state of a row whose weights come from elsewhere, with what the rule has kept of them or as it begins: in ftrl they
 * follow from it. */
void pace__optim_adopt_row(const pace__optim *optim, unsigned dim, float *row);

/* Updates every parameter of a row by scale x its gradient. Penalties are for rows of one. */
void pace__optim_update_row(const pace__optim *optim, unsigned dim, float *row, const float *gradients,
                            float scale);

/* Are all floats of a row numbers: its weights, and the rule's state? A sum of squares that has overflowed is none, and
 * keeps its weight where it is for ever. */
bool pace__optim_is_finite(const pace__optim *optim, unsigned dim, const float *row);

/* --- inline: called for every entry --- */

/* The penalty's flow for `rows` rows. */
static inline float pace__penalty_flow(const pace__optim *optim, float w, float rate, float rows)
{
    float size = fabsf(w), time = rate * rows;

    if (optim->l2 > 0) {
        float lost = -expm1f(-optim->l2 * time); /* 1 - exp(), also where that is tiny */

        size = size - size * lost - optim->l1 / optim->l2 * lost;
    } else {
        size -= optim->l1 * time;
    }
    return size > 0 ? copysignf(size, w) : 0;
}

#define PACE__STAMP_EXACT    (UINT32_C(1) << 31) /* stamps below are rows */
#define PACE__STAMP_BITS     26                  /* of larger ones, besides the first, which is 1 */
#define PACE__STAMP_ROWS_MAX (UINT64_MAX >> 1)

/* At most PACE__STAMP_ROWS_MAX rows. */
static inline uint32_t pace__stamp_of(uint64_t rows)
{
    if (rows < PACE__STAMP_EXACT)
        return (uint32_t)rows;
    unsigned bits = 63 - (unsigned)__builtin_clzll(rows); /* behind the first: 31 to 62 */
    uint32_t kept = (uint32_t)(rows >> (bits - PACE__STAMP_BITS)) & ((1u << PACE__STAMP_BITS) - 1);

    return PACE__STAMP_EXACT | (bits - 31) << PACE__STAMP_BITS | kept;
}

static inline uint64_t pace__stamp_rows(uint32_t stamp)
{
    if (stamp < PACE__STAMP_EXACT)
        return stamp;
    unsigned bits = 31 + (stamp >> PACE__STAMP_BITS) % 32;
    uint64_t kept = stamp & ((1u << PACE__STAMP_BITS) - 1);

    return (UINT64_C(1) << PACE__STAMP_BITS | kept) << (bits - PACE__STAMP_BITS);
}

static inline uint32_t pace__optim_stamp(const pace__optim *optim, const float *parameter)
{
    uint32_t stamp;

    memcpy(&stamp, &parameter[optim->width - 1], sizeof stamp);
    return stamp;
}

/* The weight as it is at row `now`, without changing anything. One that was brought up further is as it is:
 * time does not go back. */
static inline float pace__optim_weight(const pace__optim *optim, const float *parameter, uint64_t now)
{
    if (!optim->lazy || parameter[0] == 0)
        return parameter[0];
    uint32_t last = pace__optim_stamp(optim, parameter), stamp = pace__stamp_of(now);
    float rate = optim->kind == PACE_ADAGRAD ? optim->lr / sqrtf(parameter[1]) : optim->lr;

    return stamp > last ? pace__penalty_flow(optim, parameter[0], rate,
                                             (float)(pace__stamp_rows(stamp) - pace__stamp_rows(last)))
                        : parameter[0];
}

/* Applies the penalty up to row `now`. Only for lazy ones. */
static inline void pace__optim_catch_up(const pace__optim *optim, float *parameter, uint64_t now)
{
    uint32_t stamp = pace__stamp_of(now);

    parameter[0] = pace__optim_weight(optim, parameter, now);
    if (stamp > pace__optim_stamp(optim, parameter))
        memcpy(&parameter[optim->width - 1], &stamp, sizeof stamp);
}

/* The weight that follows from FTRL's state. */
static inline float pace__ftrl_weight(const pace__optim *optim, float z, float n)
{
    return fabsf(z) <= optim->l1 ? 0
                                 : -(z - copysignf(optim->l1, z)) / ((1 + sqrtf(n)) / optim->lr + optim->l2);
}

static inline void pace__ftrl_update(const pace__optim *optim, float *parameter, float g)
{
    float w = parameter[0], z = parameter[1], n = parameter[2];
    float larger = n + g * g;
    float sigma = (sqrtf(larger) - sqrtf(n)) / optim->lr;

    z += g - sigma * w;
    parameter[1] = z;
    parameter[2] = larger;
    parameter[0] = pace__ftrl_weight(optim, z, larger);
}

static inline void pace__optim_update(const pace__optim *optim, float *parameter, float g)
{
    switch (optim->kind) {
    case PACE_SGD:
        parameter[0] -= optim->lr * g;
        if (optim->squares > 0)
            parameter[1] += optim->squares * (g * g);
        break;
    case PACE_MOMENTUM:
        parameter[1] = optim->momentum * parameter[1] + g;
        parameter[0] -= optim->lr * parameter[1];
        break;
    case PACE_ADAGRAD:
        parameter[1] += g * g;
        parameter[0] -= pace__over_root(optim->lr * g, parameter[1]);
        break;
    case PACE_FTRL:
        pace__ftrl_update(optim, parameter, g);
        break;
    case PACE_ADAM:
        parameter[1] += (1 - optim->momentum) * (g - parameter[1]);
        parameter[2] += (1 - 0.999f) * (g * g - parameter[2]);
        parameter[0] -= optim->lr * optim->correction1 * parameter[1] /
                        (sqrtf(optim->correction2 * parameter[2]) + 1e-8f);
        break;
    }
}

#endif

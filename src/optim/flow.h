/*
 * flow.h - merging what several workers have made of the same parameters, each on rows of its own. Pure arithmetic.
 *
 * Between two merges worker i has moved a parameter's weight by d_i and its sum of squared gradients by q_i. Adding the
 * d_i up overshoots: where all workers learned the same, they would go W times too far. Their mean forgets what only one
 * of them has seen. So a change is taken for what caused it: steps of size s against a force that its own success wears
 * off have carried the weight by
 *
 *     d = force x reach(n, q),   reach(n, q) = s g(q (c + s)),   g(x) = (1 - e^-x) / x
 *
 * where s is the rule's step while the sum rises from n to n + q, and c is the *damping*: how fast other parameters, which
 * follow the same rows, use up the same force. The forces are added up, in the order of the workers, and one such flow of
 * all their squares is what the merged parameter does:
 *
 *     w += reach(n, sum of q) x sum of (d_i / reach(n, q_i)),   n += sum of q
 *
 * 1. A parameter that one worker alone has moved moves exactly as that worker has moved it.
 * 2. The damping is measured, not chosen: over all parameters of an exchange, with q a worker's mean share of squares and
 *    q_b that of the bias, which every row moves,
 *
 *        c = sqrt(A A2) / q_b,   A = sum of q s,   A2 = sum of q^2 s / q_b
 *
 * 3. Everything is sums in a given order of functions without a library: the same bits on every machine.
 *
 * FTRL's weight is what its state says before penalties, -lr z / (1 + sqrt(n)). SGD has s = lr, and a sum of
 * squares for this alone (pace__optim_keep_squares).
 *
 * A lazy penalty (optim.h) is no force of a worker's own rows: it acts on all rows of the order, and every worker has it
 * acted out. So changes are measured from where the penalty alone would have brought the parameter: all that is merged
 * stands at the same row (pace__flow_later), and the penalty counts once.
 */
#ifndef OPTIM_FLOW_H
#define OPTIM_FLOW_H

#include "base/cpu.h"
#include "math/bf16.h"
#include "optim/optim.h"

/* A parameter as it is merged, or a change of one: of its weight, and of its sum of squares. */
typedef struct pace__flow_point {
    float w, n;
} pace__flow_point;

/* Rules whose parameters can be merged so, from their own state. */
bool pace__flow_has(const pace__optim *optim);

/* --- parameters, as they are kept and as they are merged --- */

/* What a parameter is known by: two floats from which the others follow. They travel as they are, or as changes (below). */
static inline pace__flow_point pace__flow_pack(const pace__optim *optim, const float *parameter)
{
    return optim->kind == PACE_FTRL ? (pace__flow_point){parameter[1], parameter[2]}
                                    : (pace__flow_point){parameter[0], parameter[1]};
}

static inline pace__flow_point pace__flow_from(const pace__optim *optim, pace__flow_point packed)
{
    if (optim->kind == PACE_FTRL)
        packed.w = -packed.w * optim->lr / (1 + sqrtf(packed.n));
    return packed;
}

static inline pace__flow_point pace__flow_to(const pace__optim *optim, pace__flow_point point)
{
    if (optim->kind == PACE_FTRL)
        point.w = -point.w * (1 + sqrtf(point.n)) / optim->lr;
    return point;
}

static inline void pace__flow_unpack(const pace__optim *optim, pace__flow_point packed, float *parameter)
{
    if (optim->kind == PACE_FTRL) {
        parameter[1] = packed.w;
        parameter[2] = packed.n;
        parameter[0] = pace__ftrl_weight(optim, packed.w, packed.n);
    } else {
        parameter[0] = packed.w;
        parameter[1] = packed.n;
    }
}

/* --- time, which only lazy penalties know --- */

/* Of a parameter that was last brought up at row `since`: what it is at row `now`, which is not before. */
static inline pace__flow_point pace__flow_later(const pace__optim *optim, pace__flow_point packed,
                                                uint64_t since, uint64_t now)
{
    if (optim->lazy && now > since && packed.w != 0)
        packed.w = pace__penalty_flow(
            optim, packed.w, optim->kind == PACE_ADAGRAD ? optim->lr / sqrtf(packed.n) : optim->lr,
            (float)(pace__stamp_rows(pace__stamp_of(now)) - pace__stamp_rows(pace__stamp_of(since))));
    return packed;
}

/* A parameter's own two floats, at row `now`; it stays as it is. */
static inline pace__flow_point pace__flow_pack_at(const pace__optim *optim, const float *parameter,
                                                  uint64_t now)
{
    pace__flow_point packed = pace__flow_pack(optim, parameter);

    if (optim->lazy)
        packed.w = pace__optim_weight(optim, parameter, now);
    return packed;
}

/* Two floats of a parameter that stands at row `now`. */
static inline void pace__flow_unpack_at(const pace__optim *optim, pace__flow_point packed, uint64_t now,
                                        float *parameter)
{
    pace__flow_unpack(optim, packed, parameter);
    if (optim->lazy) {
        uint32_t stamp = pace__stamp_of(now);

        memcpy(&parameter[optim->width - 1], &stamp, sizeof stamp);
    }
}

/* --- changes, and what is left of them on a narrow wire --- */

/* What has brought a parameter from `before` to `now`, both packed and at the same row: beside the penalty, which is in
 * both. Where nothing but the penalty has moved it, nothing. */
static inline pace__flow_point pace__flow_change(const pace__optim *optim, pace__flow_point now,
                                                 pace__flow_point before)
{
    pace__flow_point to = pace__flow_from(optim, now), from = pace__flow_from(optim, before);
    float q = to.n - from.n;

    return (pace__flow_point){optim->lazy && q == 0 ? 0 : to.w - from.w, q};
}

/* A packed parameter that a change has moved: the same bits for everyone. Without a change it stays in its own. */
static inline pace__flow_point pace__flow_moved(const pace__optim *optim, pace__flow_point packed,
                                                pace__flow_point change)
{
    pace__flow_point from = pace__flow_from(optim, packed);

    if (change.w == 0 && change.n == 0)
        return packed;
    return pace__flow_to(optim, (pace__flow_point){from.w + change.w, from.n + change.n});
}

/* A change as bf16. Parameters themselves are never rounded: eight binary digits of a sum that grows by less than a
 * hundredth would say nothing. */
typedef struct pace__flow_narrow {
    pace__bf16 w, n;
} pace__flow_narrow;

static inline pace__flow_narrow pace__flow_round(pace__flow_point change)
{
    return (pace__flow_narrow){pace__bf16_round(change.w), pace__bf16_round(change.n)};
}

static inline pace__flow_point pace__flow_widen(pace__flow_narrow change)
{
    return (pace__flow_point){pace__bf16_widen(change.w), pace__bf16_widen(change.n)};
}

/* --- merging --- */

/* How large a rule's steps are: it divides the rate by what it adds to the root, and by the root, or not. */
typedef struct pace__flow_rule {
    float lr, beta, root;
} pace__flow_rule;

static inline pace__flow_rule pace__flow_rule_of(const pace__optim *optim)
{
    return (pace__flow_rule){optim->lr, optim->kind == PACE_ADAGRAD ? 0 : 1, optim->kind == PACE_SGD ? 0 : 1};
}

/* Their mean, per unit of gradient, while the sum of squares rises from n to n + q. */
static inline float pace__flow_step_by(pace__flow_rule rule, float n, float q)
{
    return 2 * rule.lr / (2 * rule.beta + rule.root * (sqrtf(n + q) + sqrtf(n)));
}

static inline float pace__flow_step(const pace__optim *optim, float n, float q)
{
    return pace__flow_step_by(pace__flow_rule_of(optim), n, q);
}

static inline float pace__flow_reach_by(float s, float damping, float q)
{
    float x = q * (damping + s);
    float small = 1 - x * (0.5f - x * (1.0f / 6)), large = (1 - pace__exp_negative(-x)) / x;

    return s * (x < 0.02f ? small : large);
}

static inline float pace__flow_reach(const pace__optim *optim, float damping, float n, float q)
{
    return pace__flow_reach_by(pace__flow_step(optim, n, q), damping, q);
}

/* Merges parameters of a rule that pace__flow_has, changes in the order of the workers: changes[i] are worker i's (count) of them; `points` become
 * the merged ones. What one worker alone has changed becomes what it has. */
void pace__flow_merge(const pace__optim *optim, float damping, const pace__flow_point *const *changes,
                      unsigned workers, pace__flow_point *points, size_t count);

/* --- the kernels behind: equal bits, whatever the set --- */

#define PACE__FLOW_BLOCK 64

/* Parameters as they were, and what is added up. */
typedef struct pace__flow_block {
    float w[PACE__FLOW_BLOCK], n[PACE__FLOW_BLOCK];
    float force[PACE__FLOW_BLOCK], squares[PACE__FLOW_BLOCK];
    float change[PACE__FLOW_BLOCK];  /* of the last worker that has changed it */
    float workers[PACE__FLOW_BLOCK]; /* that have */
} pace__flow_block;

typedef struct pace__flow_kernels {
    /* A worker's changes d and q; and when all are added: w and n become the merged ones. */
    void (*add)(pace__flow_rule rule, float damping, const float *d, const float *q, pace__flow_block *to);
    void (*end)(pace__flow_rule rule, float damping, pace__flow_block *to);
} pace__flow_kernels;

PACE__TABLES(pace__flow_kernels, pace__flow)

/* --- the damping --- */

/* Sums that may be made in parts, and added up. */
typedef struct pace__damping {
    double a, a2;  /* of q s, and of q^2 s */
    double bias_q; /* of the bias, if it is among them */
} pace__damping;

/* A parameter whose squares have risen by `squares` from n on, of all workers together. */
static inline void pace__damping_add(pace__damping *sum, const pace__optim *optim, unsigned workers, float n,
                                     float squares)
{
    float q = squares / (float)workers, s = pace__flow_step(optim, n, q);

    sum->a += (double)(q * s);
    sum->a2 += (double)(q * q * s);
}

/* From the sums over all. Where the bias has hardly moved there is nothing to measure: `before` stays. */
float pace__damping_of(const pace__damping *sum, float before);

#endif

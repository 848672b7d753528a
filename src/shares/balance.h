/*
 * balance.h - what share of a step each worker should have, decided from what each has measured.
 *
 * Plain values: no clock, no link, nothing random. Whoever measures hands over sums (pace__timing), whoever decides asks
 * for a division, and acts on it (roles/sharing.h); so all of it is tested without processes.
 *
 *     pace__balance_learn(&balance, worker, &timing);                   // of the steps since it last reported
 *     ...
 *     if (pace__balance_decide(&balance, rows_now, rows_next, &gain))   // every few steps
 *         ... from a later step on, worker i has rows_next[i] rows ...
 *
 * **What a step costs** a worker is fixed_s + row_s x rows: small parts of a step do not scale with their rows. Both are
 * fitted to what was measured, older steps counting less: the more they vary, the longer they are remembered. As far as a
 * worker's rows hardly differ, or noise leaves it open, nothing tells the two apart: then the same part of a step is taken to be fixed as
 * of those whose shares have changed. How sure that is, is known, too: of the rows that were measured, and less so of others.
 *
 * **Noise** is how steps vary, or how reports do that follow each other, whichever is more: what holds up a process (others that use its
 * core) lasts for longer than a step.
 *
 * **A change** shows in two reports, one after the other, that are both far off, and on the same side, in most of their steps; in four,
 * if it was some of their steps that took so long; or in ten, if each of them might be noise. Then what was known of the worker is scaled
 * to them, and older steps are forgotten. Pauses that are fewer are left out: they say nothing of rows.
 *
 * **A new division** is the one at which all would be done at the same time, as far as limits allow, and as far as it is beyond doubt: the
 * less a worker is known, the less its share changes. It is made only if steps become shorter by more than MARGIN even if those who are
 * to have fewer rows only seemed to be slow, those who are to have more only seemed to be fast, and rows cost more than they seem to, as far
 * as they may by the noise of what is known: what is stationary is left alone. A share grows at most to GROWTH times what it was in one
 * decision, since far from what was measured little is known.
 *
 * Rows are those of a whole step. Of texts they are not counted but weighed by their words: rows of mean length.
 */
#ifndef SHARES_BALANCE_H
#define SHARES_BALANCE_H

#include "ps/steps.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

/* A share is at most so many even ones: buffers have room for it. */
#define PACE__SHARE_EVEN_MAX 4

/* What a worker has measured in some steps. */
typedef struct pace__timing {
    double steps, rows, seconds; /* sums: of 1, rows r and seconds t of each step, and of */
    double rows_rows, rows_seconds, seconds_seconds; /* r r, r t and t t */
} pace__timing;

static inline void pace__timing_add(pace__timing *timing, double rows, double seconds)
{
    timing->steps += 1;
    timing->rows += rows;
    timing->seconds += seconds;
    timing->rows_rows += rows * rows;
    timing->rows_seconds += rows * seconds;
    timing->seconds_seconds += seconds * seconds;
}

/* Are they sums of real steps? From a peer, anything may come. */
bool pace__timing_is_valid(const pace__timing *timing);

/* What a step of r rows costs a worker: fixed_s + row_s r seconds. */
typedef struct pace__cost {
    double fixed_s;
    double row_s; /* infinite: it gets nothing done; 0: it takes no time; NaN: not known */
    double noise; /* relative standard error of the above, of as many rows as there were: */
    double rows;
    double row_s_error; /* standard error of row_s: of what other numbers of rows cost */
} pace__cost;

/*
 * The rows of a step of `batch`, so that the slowest worker is done as early as can be; most[i] is the largest share of
 * worker i, and all together have room for the batch. Sums are exact; of equal workers the first have the rows that are
 * left over. A worker of which nothing is known counts as the mean of the others.
 */
void pace__divide(const pace__cost *cost, unsigned workers, uint64_t batch, const uint32_t *most,
                  uint32_t *rows);

/* The largest share that a worker of a job may get, in rows. */
uint64_t pace__share_max(uint64_t batch, unsigned workers);
/* Even shares, as pace__steps_slice has them. */
void pace__share_evenly(uint64_t batch, unsigned workers, uint32_t *rows);

bool pace__share_is_even(const uint32_t *rows, uint64_t batch, unsigned workers);

/* The part of a step that a worker has: rows (workers) of a whole step, or NULL: even shares. */
void pace__share_slice(const pace__steps *order, uint64_t step, const uint32_t *rows, unsigned worker,
                       unsigned workers, uint64_t *first, uint64_t *count);

/* --- the balancer --- */

typedef struct pace__speed {
    pace__timing known; /* older steps counting less */
    pace__timing odd;   /* the last reports, if they were far off: they are not in `known` yet */
    bool slower;        /* which way they were off */
    unsigned witnesses; /* how much they say together */
    pace__timing last;  /* report */
    /* By how much reports differ from those before them, squared: a step's relative variance, if steps knew nothing of each other. Of so
     * many reports. */
    double spread, spread_reports;
    double held,
        held_reports; /* the sum of the same over those that were far off: if that was a change, it was no noise */
} pace__speed;

typedef struct pace__balance {
    unsigned workers;
    uint64_t batch;
    double fixed_part;     /* of what a step of an even share costs: that without rows; ... */
    double fixed_variance; /* ... which is known so well */
    pace__speed *speed;    /* (workers) */
    pace__cost *cost;      /* (workers) scratch */
    uint32_t *most;        /* (workers) scratch */
} pace__balance;

pace_status pace__balance_open(pace__balance *balance, unsigned workers, uint64_t batch, const pace_log *log);
void pace__balance_close(pace__balance *balance); /* a zeroed one is allowed */

void pace__balance_learn(pace__balance *balance, unsigned worker, const pace__timing *timing);

/* What is known of a worker; row_s is NaN before its first report. */
pace__cost pace__balance_cost(const pace__balance *balance, unsigned worker);

/* True: `next` is better than `now` by the fraction *gain of the time of a step, which is more than noise. Else they are the
 * same. */
bool pace__balance_decide(pace__balance *balance, const uint32_t *now, uint32_t *next, double *gain);

#endif

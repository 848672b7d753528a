/*
 * rounds.h - when workers that train by themselves (mode local-sgd) merge: a function of the data, the number of workers
 * and --exchange alone. Nothing here depends on time, so that the same rows give the same bits.
 *
 * The order of rows is walked in *rounds*, one behind the other. The rows of a round are cut into one stretch for each
 * worker. Behind it the *hot* parameters are merged: everyone sends what it has changed when it has trained its stretch,
 * and takes the merged ones in the middle of its stretch of the next round. Some rounds end in a *flush*, behind which
 * everything is merged, and nothing is under way: the clean states of a job.
 *
 *     rows  0        same                                            epoch ends
 *           | everyone | 0 1 2 | 0  1  2 |  0    1    2  |    ...     | 0 1 2 ...
 *            the start    round             rounds grow          flush
 *
 * 1. The first rows are trained by all workers, who need no exchange for that: what is learned from them decides where
 *    all begin to differ. They count once.
 * 2. A round has as many rows as make a fixed part of the rows before it, but 16 to 400,000 of each worker; the last one
 *    in front of a flush has what is left, up to half as many more. Where workers update once per step (the exact rule), rounds
 *    are whole steps, and so are stretches that are long enough; the last one in front of a flush has what is left.
 * 3. Flushes are where steps end (ps/steps.h): at the ends of epochs, at the end of training, and in long epochs every
 *    `flush_rows` rows. The end of the start is one, too, without any message.
 * 4. Networks are trained by steps, of which each worker has its part (pace__plan_slice): every round is so many whole steps,
 *    and all end in a flush. A round has as many as make an eighth of those before it, but at least one and at most what
 *    --exchange says; the last one of an epoch has what is left.
 */
#ifndef SHARES_ROUNDS_H
#define SHARES_ROUNDS_H

#include "ps/steps.h"

#include <stdbool.h>

typedef struct pace__rounds {
    unsigned workers;
    uint64_t epoch;      /* rows of one */
    uint64_t same;       /* rows of the start */
    uint64_t flush_rows; /* of an epoch, between flushes */
    uint64_t last;       /* where training ends */
    double growth;       /* a round's part of the rows before it */
    uint64_t step;       /* rounds have whole ones of so many rows: of a step in the exact rule, else 1 */
    uint64_t batch;      /* rows of a step, of networks; else 0 */
} pace__rounds;

typedef struct pace__round {
    uint64_t first, last; /* places in the order */
    bool same;            /* everyone trains all of it */
    bool flush;           /* behind it everything is merged */
} pace__round;

/* `entries` are those of all rows of an epoch; `exchange`: rows between flushes at most, 0: as it thinks best; `exact`: workers
 * update once per step, else row after row. */
pace__rounds pace__rounds_make(const pace__steps *order, uint64_t steps, uint64_t entries, unsigned workers,
                               uint64_t exchange, bool exact);

/* Of workers that take their parts of steps, and average: everything is merged behind every round. The longest have as many steps as bring
 * each worker `exchange` rows; 0: PACE__ROUND_STEPS. */
#define PACE__ROUND_STEPS 32
pace__rounds pace__rounds_of_steps(const pace__steps *order, uint64_t steps, unsigned workers,
                                   uint64_t exchange);

/* The round that begins at `first`, which is 0 or the end of another, and before rounds->last. */
pace__round pace__round_at(const pace__rounds *rounds, uint64_t first);

/* A worker's stretch of a round: its first place, and how many. */
void pace__round_stretch(const pace__rounds *rounds, const pace__round *round, unsigned worker,
                         uint64_t *first, uint64_t *rows);

/* Rounds and flushes with messages from `first` on, up to `last`. */
void pace__rounds_count(const pace__rounds *rounds, uint64_t first, uint64_t last, uint64_t *count,
                        uint64_t *flushes);

/* How many rows of its stretch a worker trains before it takes what was merged of the round before. */
uint64_t pace__round_lag(const pace__rounds *rounds, uint64_t rows);

/* --- which parameters are hot --- */

#define PACE__HOT_MAX 16384
/* Rows of the order in which they are counted. */
#define PACE__HOT_ROWS 100000

/*
 * Writes the hot ones among `keys` to list (PACE__HOT_MAX), rising, and returns how many: all of them if they are not
 * more than that; else the last, which is the bias, and those that counts says were met most often; of equals, the
 * first.
 */
uint32_t pace__hot_choose(const uint32_t *counts, uint64_t keys, uint32_t *list);

#endif

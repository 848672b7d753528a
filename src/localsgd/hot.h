/*
 * hot.h - the parameters that most rows need, merged after every round (shares/rounds.h) while the next one is trained.
 *
 * Each worker has a replica of all of them, and merges an equal part of them for everyone (its *share*). Behind a round:
 *
 *     send      what this replica has changed since `base` goes to those who merge it          stage CHANGES
 *     poll      when all have sent theirs: what they measure of the damping, to all                  PARTS
 *               when that has come: the damping; the own share is merged (optim/flow.h), to all      MERGED
 *     take      when all shares are there: the replica becomes them, and what it has changed since it sent
 *
 * 1. One exchange is under way at a time: take comes before the next send. Both come at rows that the schedule says, so
 *    nothing depends on who was fast; poll, which may come at any time, changes nothing but messages.
 * 2. `merged` is the same on all workers whenever nothing is under way, and `base` where the replica was when it last sent
 *    or took: what it has changed is measured from there.
 * 3. Sums are made in the order of the workers. So the same rows and workers give the same bits.
 * 4. On a narrow wire changes travel as bf16, and so do merged parameters: as their changes since the last exchange. Who
 *    has merged a share takes from it what it sends, so 2 stays true.
 * 5. With a lazy penalty (optim/flow.h), `base` and `merged` stand at row `place`: the end of the round that was last sent.
 */
#ifndef LOCALSGD_HOT_H
#define LOCALSGD_HOT_H

#include "model/linear/logreg.h"
#include "net/link.h"
#include "optim/flow.h"

/* Of a round: what a worker tells all others, and what all of them come to. */
typedef struct pace__hot_word {
    pace__damping damping; /* of its share */
    double loss;           /* of its rows */
    uint64_t rows;
    uint64_t stop; /* the chief: it wants no further round */
} pace__hot_word;

typedef enum pace__hot_stage {
    PACE__HOT_IDLE,
    PACE__HOT_CHANGES,
    PACE__HOT_PARTS,
    PACE__HOT_MERGED
} pace__hot_stage;

/* With each other worker. */
typedef struct pace__hot_peer {
    pace__request changes, word, share;                /* received */
    pace__request changes_sent, word_sent, share_sent; /* sent */
} pace__hot_peer;

typedef struct pace__hot {
    uint32_t count;
    uint32_t *keys; /* (count) rising */
    float damping;  /* of the last exchange */
    uint64_t busy_ns;

    /* private */
    pace__link *link;
    const pace_log *log;
    unsigned workers, self;
    bool narrow;
    pace__hot_stage stage;
    pace__optim optim;         /* of the exchange under way */
    uint64_t place;            /* rows of the order that base and merged stand behind */
    pace__flow_point *base;    /* (count), like the next packed: pace__flow_pack */
    pace__flow_point *merged;  /* (count) */
    pace__flow_point *changes; /* (count) that were sent */
    pace__flow_point *others;  /* (workers, share) changes of the own share */
    pace__flow_point *points;  /* (share) that are being merged */
    char *changes_out; /* what travels: changes, others and merged themselves, or if narrow, rounded */
    char *others_in;
    char *shares;
    pace__hot_word *words; /* (workers) */
    pace__hot_peer *peers; /* (workers) */
    int *silent;           /* (workers) who is waited for */
} pace__hot;

/* The keys are copied. `narrow`: what is sent is sent as bf16. To be closed, after a failure, too. */
pace_status pace__hot_open(pace__hot *hot, pace__link *link, unsigned workers, const uint32_t *keys,
                           uint32_t count, bool narrow, const pace_log *log);
/* Behind the last take; after a failure, behind pace__link_fail. */
void pace__hot_close(pace__hot *hot);

/* All replicas are the same, and stand at row `place`: here is where changes begin. */
void pace__hot_begin(pace__hot *hot, pace__logreg *model, uint64_t place);

/* With the rule as it is at the end of the round, at row `place`. `own` says loss, rows and stop. */
pace_status pace__hot_send(pace__hot *hot, pace__logreg *model, const pace__optim *optim, uint64_t place,
                           const pace__hot_word *own);
pace_status pace__hot_poll(pace__hot *hot, bool *busy);
/* Waits for it, at row `now`. *all has the sums over all workers; without an exchange under way it is zeroed, and nothing
 * happens. */
pace_status pace__hot_take(pace__hot *hot, pace__logreg *model, uint64_t now, pace__hot_word *all);

/* Where a key's floats are. */
static inline float *pace__replica_at(pace__logreg *model, uint64_t key)
{
    return key == model->ids ? model->bias : model->parameters + key * model->optim.width;
}

#endif

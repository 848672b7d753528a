/*
 * average.h - replicas of a network that workers have trained by steps of their own, merged row by row: what flush.h is for
 * logistic regression.
 *
 * Key k belongs to worker k mod W, its *owner*, which has its row in a table (ps/table.h) as it was behind the last flush, with
 * the rule's state and, behind that, the velocity (optim/outer.h). At a flush every worker sends each owner the rows of its keys
 * that it has updated since; the owner merges them, in the order of the workers, and sends all that anybody has updated to all.
 * So of word vectors only those travel that somebody has met.
 *
 *     pace__average_touch(&average, keys, count);           // after every own step
 *     ...
 *     pace__average_collect(&average, ...);                 // to the owners; behind it the tables are a clean state
 *     pace__average_share(&average, end, &ended);           // and back, unless training ends
 *
 * 1. Behind share all replicas are the same, and the same as the tables: whoever goes on from there, a resumed job too, goes on
 *    alike.
 * 2. Tables change in collect alone, when all that belongs to it has come. The chief may say there that it is to end instead: then
 *    nothing is merged, and the tables are what they were.
 * 3. Rows of data are merged once: everyone says which of the order its changes are of, and an owner takes them only where its
 *    table stands, if all together are what lies between.
 * 4. Receives are posted as soon as the flush before is over: so a worker that is still at its steps hears of an end.
 *
 * Messages (mail.h): the rows of keys with a bit; on the way to the owner, each behind the number of steps that have updated it. A
 * head's loss is that of the sender's rows.
 */
#ifndef LOCALSGD_AVERAGE_H
#define LOCALSGD_AVERAGE_H

#include "localsgd/mail.h"
#include "optim/outer.h"
#include "ps/table.h"

/* What was trained since the last flush; by a worker, or by all. */
typedef struct pace__trained {
    uint64_t rows;
    double loss;
    bool end; /* the chief: it is to end, and this is not to be merged */
} pace__trained;

typedef struct pace__average {
    uint64_t keys_sent; /* so far, to owners */
    uint64_t busy_ns;

    /* private */
    const pace_log *log;
    pace__mail mail;
    pace__outer outer;
    pace__table *replica, *table;
    uint32_t *touched; /* (keys) own steps that have updated each since the last flush */
    uint64_t place;    /* rows of the order that are in the table */
    uint64_t *changed; /* (words) of the table, by the last collect */
    pace__outer_side *sides;
} pace__average;

/* The tables stay the caller's, and in place: the replica has all keys, the table those that this worker owns. */
pace_status pace__average_open(pace__average *average, pace__link *link, unsigned workers,
                               const pace__outer *outer, pace__table *replica, pace__table *table,
                               uint64_t place, const pace_log *log);
void pace__average_close(pace__average *average); /* a zeroed one is allowed */

/* The tables were dealt out: the replicas become what they say. */
pace_status pace__average_begin(pace__average *average);

/* An own step has updated these rows of the replica. */
void pace__average_touch(pace__average *average, const uint32_t *keys, size_t count);

/* Has the chief said that it is to end? Never waits. */
pace_status pace__average_look(pace__average *average, bool *end);

/* Rows up to `place`, which were `steps` steps of everyone; *all is what all have trained, and whether it is to end. */
pace_status pace__average_collect(pace__average *average, uint64_t place, uint32_t steps,
                                  const pace__trained *own, pace__trained *all);

/* `end`, of the chief: nothing more is trained. *ended: it has said so. */
pace_status pace__average_share(pace__average *average, bool end, bool *ended);

#endif

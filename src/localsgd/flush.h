/*
 * flush.h - everything merged: the parameters that are not hot, and the clean states of a job.
 *
 * Key k belongs to worker k mod W, its *owner*, which has it in a table (ps/table.h) as it was behind the last flush:
 * what checkpoints, scores and the model are made of. At a flush every worker sends each owner the parameters of its keys
 * that it has changed; the owner merges them (optim/flow.h), in the order of the workers, from where they were; then
 * it sends all that have changed to all, and every replica is the same again.
 *
 *     pace__flush_collect     changes to owners, merged there: behind it the tables are a clean state
 *     pace__flush_share       and back, unless training ends
 *
 * 1. What travels are the parameters themselves, not differences: what one worker alone has changed is taken over as it
 *    is, and no replica needs to keep more than what it was like (`base`).
 *    On a narrow wire they are differences, as bf16: of what a worker has changed, from `base`; of what is shared, from the
 *    table before, which is the same as every base. The owner takes what it shares for what it has merged, so that table and
 *    replicas are the same to the bit. What does not travel is not rounded, nor is what is dealt out at the start.
 * 2. An owner merges when it has what all have changed, since the damping is measured over all of it.
 * 3. Rows are merged once: everyone says which rows of the order its changes are of, and an owner takes them only
 *    where its table stands.
 *
 * Messages (mail.h): packed parameters of keys with a bit, or their changes.
 */
#ifndef LOCALSGD_FLUSH_H
#define LOCALSGD_FLUSH_H

#include "localsgd/hot.h"
#include "localsgd/mail.h"
#include "ps/table.h"

typedef struct pace__flush {
    uint64_t keys_sent, keys_merged; /* so far, by this worker */
    float damping;                   /* of the last one */
    uint64_t busy_ns;

    /* private */
    pace__mail mail;
    bool narrow;
    pace__logreg *model; /* the replica */
    pace__table *table;  /* of the keys that it owns */
    pace__optim optim;   /* the rule as it was at the last flush */
    uint64_t place;      /* rows that are in the table */
    float bias_n;        /* of the bias, in the table's state */
    float *base;         /* (ids, width) the replica behind the last flush */
    size_t base_bytes;
    uint64_t *changed; /* (words) of the table, by the last collect */
    size_t *filled;    /* (workers) parameters in messages to owners */
    pace__damping *parts;
    float *sides; /* (workers, 2, a block and one) changes that are being merged */
} pace__flush;

pace_status pace__flush_open(pace__flush *flush, pace__link *link, unsigned workers, pace__logreg *model,
                             pace__table *table, uint64_t place, bool narrow, const pace_log *log);
void pace__flush_close(pace__flush *flush);
/* The tables were dealt out, and the replicas become what they say. */
pace_status pace__flush_begin(pace__flush *flush);

/* Parameters that are the same everywhere need no message: hot ones, and those of the start. */
void pace__flush_put(pace__flush *flush, const uint32_t *keys, uint32_t count);

/* All replicas are the same, since everyone has trained the same rows: up to `place` they are in the tables, without a
 * word. Before it, pace__flush_put is told of those that occur in these rows: others have not changed. */
void pace__flush_agree(pace__flush *flush, const pace__optim *optim, uint64_t place);

/* Rows up to `place`, of which this worker has trained `rows`. */
pace_status pace__flush_collect(pace__flush *flush, const pace__optim *optim, uint64_t place, uint64_t rows);

/* `end`, of the chief: nothing more is trained. *ended: it has said so. */
pace_status pace__flush_share(pace__flush *flush, bool end, bool *ended);

#endif

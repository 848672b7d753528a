/*
 * wire.h - what workers and shards send each other.
 *
 * One message per worker, shard and step carries the gradients of one batch and the keys of a later one; the
 * answer carries the weights of those keys. Gradients come in the order in which their keys were sent before:
 * keys travel once. All ranks of a job run the same program on the same kind of machine, which the first
 * exchange makes sure of (roles/greet.c), so structs travel as they are.
 *
 *     push   pace__push, float gradients[][dim], uint32_t places[]
 *            pace__push, bf16 gradients[][dim], a gap to the next 4 bytes, uint32_t places[]     (--wire bf16)
 *     reply  pace__reply, float weights[][dim]                              (exchange by weights)
 *            pace__reply, float sums[][dim], uint32_t places[]              (merged gradients, for replicas)
 */
#ifndef PS_WIRE_H
#define PS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

/* Tags of the link; the ones from PACE__TAG_REDUCE on belong to net/reduce.h. */
enum {
    PACE__TAG_PUSH,
    PACE__TAG_REPLY,
    PACE__TAG_ASK, /* for rows: counter.h */
    PACE__TAG_TICKET,
    PACE__TAG_FETCH, /* whole shards and lists of keys: snapshot.h */
    PACE__TAG_FETCHED,
    PACE__TAG_GO, /* the rest: roles/process.h */
    PACE__TAG_SCORES,
    PACE__TAG_END,
    PACE__TAG_REPORT,
    PACE__TAG_SAVE, /* checkpoints: roles/saving.c */
    PACE__TAG_SAVED,
    PACE__TAG_LOST,  /* a worker: roles/losses.c */
    PACE__TAG_CLOCK, /* a profile: roles/collect.c */
    PACE__TAG_SPANS,
    PACE__TAG_SPEED, /* shares of steps: roles/sharing.c */
    PACE__TAG_SHARES,
    PACE__TAG_REDUCE,                      /* and one more, each */
    PACE__TAG_POOL = PACE__TAG_REDUCE + 2, /* roles/pool.h */
};

enum { PACE__PUSH_GRADIENTS = 1, PACE__PUSH_KEYS = 2, PACE__PUSH_END = 4 };
/* LATE, with slices of their own (slices.h): what came is not wanted any more, and there are no weights. */
enum { PACE__REPLY_END = 1, PACE__REPLY_LATE = 2 };

typedef struct pace__push {
    uint64_t flags;
    /* With PUSH_GRADIENTS: their rows, a part of that step; with PUSH_END instead: the job ends before that
     * step; with slices, and neither: the step whose weights are wanted, or that is waited for. */
    uint64_t first, rows, step;
    uint64_t slice;     /* of the gradients */
    double loss;        /* sum over those rows */
    uint64_t gradients; /* rows of them */
    uint64_t now;       /* with PUSH_KEYS: penalties are applied up to this row before the weights are read */
    uint64_t keys;
} pace__push;

/* Words of 4 bytes that so many gradients take. */
static inline uint64_t pace__push_words(uint64_t gradients, bool narrow)
{
    return narrow ? gradients / 2 + gradients % 2 : gradients;
}

typedef struct pace__reply {
    uint64_t flags;
    uint64_t rows_done; /* applied on this shard, and their loss */
    double loss;
    uint64_t weights;    /* rows of weights, or of sums and their places */
    uint64_t step, gate; /* with slices: where this shard stands, and the chief's next gate */
} pace__reply;

#endif

/*
 * reduce.h - sums of dense gradients over all workers, in buckets, while the backward pass goes on.
 *
 * The gradients of a step are one flat array, the same on every worker, cut into buckets that become ready
 * one after the other (the last layers first). A bucket that is ready is started; polling moves all started
 * buckets on; at the end of the step finish() waits for the rest. Afterwards every worker holds the same
 * sums, bit for bit.
 *
 *     pace__reduce_start(reduce, bucket);          // after the layer that fills it
 *     pace__reduce_poll(reduce);                   // now and then, from the backward pass
 *     status = pace__reduce_finish(reduce);        // then apply the update
 *
 * Ordered (default): each bucket is split evenly over the workers; everyone sends every owner its piece, the
 * owner adds the pieces in the order of the workers (so the result depends on their number, not on who was
 * fast) and sends the sum to all. By MPI: MPI_Iallreduce, whose order is its own business.
 *
 * At most PACE__REDUCE_WINDOW buckets are on their way at a time; more that were started wait for their turn.
 * So memory is that of the pieces of one window, about as much as the buckets in it.
 */
#ifndef NET_REDUCE_H
#define NET_REDUCE_H

#include "net/link.h"

#define PACE__REDUCE_BUCKETS_MAX 4096
#define PACE__REDUCE_WINDOW      32

typedef struct pace__reduce pace__reduce;

typedef struct pace__reduce_plan {
    int workers;          /* ranks 0 .. workers - 1 of the link take part */
    bool by_mpi;          /* `workers` must be the link's then */
    int tag;              /* and tag + 1 are used on the link */
    float *gradients;     /* the flat array; stays the caller's */
    const size_t *bounds; /* (buckets + 1) bucket b is gradients[bounds[b]] .. gradients[bounds[b + 1]] */
    size_t buckets;       /* at most PACE__REDUCE_BUCKETS_MAX */
} pace__reduce_plan;

/*
 * Cuts `count` floats into buckets of at most `bucket_floats`; bounds has room for
 * PACE__REDUCE_BUCKETS_MAX + 1; returns how many buckets (buckets grow where there would be more than the
 * maximum). Pure.
 */
size_t pace__reduce_cut(size_t count, size_t bucket_floats, size_t *bounds);

/* The bounds are copied. */
pace_status pace__reduce_create(pace__link *link, const pace__reduce_plan *plan, const pace_log *log,
                                pace__reduce **reduce);
/* NULL is allowed. Nothing may be under way; after a failure, pace__link_fail comes first. */
void pace__reduce_free(pace__reduce *reduce);

/* Every worker starts the same buckets in the same order, each at most once per step. From then on until
 * finish() the bucket belongs to the reduction. None of these waits, except finish. */
pace_status pace__reduce_start(pace__reduce *reduce, size_t bucket);
pace_status pace__reduce_poll(pace__reduce *reduce);
pace_status pace__reduce_finish(pace__reduce *reduce);

#endif

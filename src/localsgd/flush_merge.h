/*
 * flush_merge.h - the part of a flush (flush.h) that computes: what all workers have sent to this owner, and checked it is, becomes
 * what its table holds.
 */
#ifndef LOCALSGD_FLUSH_MERGE_H
#define LOCALSGD_FLUSH_MERGE_H

#include "localsgd/flush.h"

/* Of the table: a parameter with its state. */
static inline float *pace__flush_record(const pace__flush *flush, uint32_t place)
{
    return flush->table->records + place * flush->table->stride;
}

/* This owner's part of the sums that the damping follows from. */
pace__damping pace__flush_measure(const pace__flush *flush, const pace__optim *optim);

/* By the damping of all, in flush->damping; which places somebody has changed is in flush->changed. */
void pace__flush_merge(pace__flush *flush, const pace__optim *optim, uint64_t place);

#endif

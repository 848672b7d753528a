/*
 * spill.h - the external shuffle: records go in keyed, and come out in the order of their keys, with bounded
 * memory.
 *
 * A record is a 64-bit key and some bytes. Writers (one per thread) append it to one of PACE__SPILL_BUCKETS
 * files, chosen by the key's top bits; a visit loads one bucket, orders it by key, and hands the records out.
 * If keys are distinct and mixed (base/random.h), the result is a uniform shuffle that depends on the keys
 * alone: not on threads, processes, buffers or the number of buckets. A bucket too large for memory is split
 * by its next bits first.
 *
 * Buckets are the unit of work: each can be visited by another thread, and, since a bucket is a range of
 * keys, bucket b's first record has the rank rows(0) + ... + rows(b - 1) in the whole order.
 *
 * Several processes shuffle together: each has a spill of its own, publishes it when it has written all, and
 * opens those of the others. A visit then merges the same bucket of all of them.
 */
#ifndef PREP_SPILL_H
#define PREP_SPILL_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__SPILL_BITS    6
#define PACE__SPILL_BUCKETS (1u << PACE__SPILL_BITS)
/* A larger record cannot be spilled. */
#define PACE__SPILL_RECORD_MAX ((size_t)256 << 20)
/* Bytes behind a record that belong to nobody else: long words may overrun it. */
#define PACE__SPILL_SLACK 8

typedef struct pace__spill pace__spill;
typedef struct pace__spill_writer pace__spill_writer;

/* Files are DIRECTORY/NAME-00 and so on. `memory` bounds what one visit loads. */
pace_status pace__spill_create(const char *directory, const char *name, size_t memory, const pace_log *log,
                               pace__spill **spill);
/* Keeps the first `bytes` of what is appended in memory instead of files. At most once, before the first
 * append. */
pace_status pace__spill_keep(pace__spill *spill, size_t bytes);
/* Removes the files. NULL is allowed. */
void pace__spill_free(pace__spill *spill);

pace_status pace__spill_writer_create(pace__spill *spill, pace__spill_writer **writer);
/* Room for a record of `size` bytes, to be filled by the caller before the next call, who may write rubbish over the
 * PACE__SPILL_SLACK bytes behind it. `weight` adds to the bucket's sum of weights. */
pace_status pace__spill_append(pace__spill_writer *writer, uint64_t key, size_t size, uint64_t weight,
                               void **record);
/* Writes out what is buffered. Every writer must be flushed before the first visit. */
pace_status pace__spill_flush(pace__spill_writer *writer);
void pace__spill_writer_free(pace__spill_writer *writer);

uint64_t pace__spill_rows(const pace__spill *spill, uint32_t bucket);
uint64_t pace__spill_weight(const pace__spill *spill, uint32_t bucket);
uint64_t pace__spill_bytes(const pace__spill *spill); /* of all buckets, split ones counted again */

/* What another process must know of a spill to read it. */
typedef struct pace__spill_index {
    uint64_t rows[PACE__SPILL_BUCKETS], weight[PACE__SPILL_BUCKETS], bytes[PACE__SPILL_BUCKETS];
} pace__spill_index;

/* Ends writing: other processes, on other hosts too, find the files complete. Not of a spill that keeps
 * something in memory. */
pace_status pace__spill_publish(pace__spill *spill, pace__spill_index *index);
/* A spill that another process has published, to be visited. pace__spill_free leaves its files alone. */
pace_status pace__spill_open(const char *directory, const char *name, const pace__spill_index *index,
                             size_t memory, const pace_log *log, pace__spill **spill);

/* Memory for visits, kept from one to the next: fresh pages are slow. Zeroed at first. Where several may visit
 * the same bucket at the same time, `owner` tells them apart. */
typedef struct pace__spill_scratch {
    void *memory;
    size_t size;
    uint32_t owner;
} pace__spill_scratch;

void pace__spill_scratch_release(pace__spill_scratch *scratch);

/*
 * Hands out a bucket's records in key order; stops at the first status that is not PACE_OK and returns it. At
 * least PACE__SPILL_SLACK readable bytes follow each record.
 */
typedef pace_status pace__spill_visitor(void *arg, const void *record, size_t size);
pace_status pace__spill_visit(pace__spill *spill, uint32_t bucket, pace__spill_scratch *scratch,
                              pace__spill_visitor *visitor, void *arg);

/* The same over all of these spills together, and only the records first .. last - 1 of the bucket. */
pace_status pace__spill_visit_all(pace__spill *const *spills, size_t count, uint32_t bucket, uint64_t first,
                                  uint64_t last, pace__spill_scratch *scratch, pace__spill_visitor *visitor,
                                  void *arg);

/* Removes the bucket's file, also if another process has made it: it will not be visited again. */
void pace__spill_drop(pace__spill *spill, uint32_t bucket);

#endif

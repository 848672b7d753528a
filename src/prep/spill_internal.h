/*
 * spill_internal.h - what writing a spill (spill.c) and visiting it (spill_visit.c) share.
 */
#ifndef PREP_SPILL_INTERNAL_H
#define PREP_SPILL_INTERNAL_H

#include "prep/spill.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Per writer and bucket: all of a writer's buffers stay in the level 2 cache. */
#define PACE__SPILL_BUFFER ((size_t)32 << 10)

/* In front of every record. */
typedef struct pace__spill_header {
    uint64_t key;
    uint32_t size;
} __attribute__((packed)) pace__spill_header;

/* A writer's buffer that stays in memory when it is full; whole records. */
typedef struct pace__kept_block {
    struct pace__kept_block *next;
    size_t size;
    char bytes[PACE__SPILL_BUFFER + PACE__SPILL_SLACK];
} pace__kept_block;

/* A bucket's bytes are those of its kept blocks, newest first, and then those of its file. */
typedef struct pace__bucket {
    char *path;
    int fd; /* -1: dropped, or of another process and not opened */
    pace__kept_block *_Atomic blocks;
    atomic_uint_fast64_t file_bytes, rows, weight;
} pace__bucket;

struct pace__spill {
    const pace_log *log;
    char *directory, *name;
    size_t memory;
    unsigned shift; /* how many top bits of the key are already used up */
    bool foreign;   /* another process has written it */
    atomic_uint_fast64_t bytes;
    pace__kept_block *blocks; /* (blocks_max) */
    size_t blocks_max;
    atomic_size_t blocks_used;
    pace__bucket buckets[PACE__SPILL_BUCKETS];
};

/* One whose keys agree in their first `shift` bits. */
pace_status pace__spill_create_below(const char *directory, const char *name, size_t memory, unsigned shift,
                                     const pace_log *log, pace__spill **spill);

#endif

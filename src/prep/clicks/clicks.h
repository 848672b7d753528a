/*
 * clicks.h - the two passes of `prep clicks`, and what they share.
 *
 * Pass 1 (clicks_read.c) parses each input row once and spills it under a key made of its file and byte
 * offset; on the way it notes which ids occur. Between the passes the ids get their numbers and the parts
 * their sizes. Pass 2 (clicks_write.c) visits the spill in key order, which is the shuffle, renumbers the ids
 * and writes the rows to their final places.
 *
 * A spilled row begins with the label (1 byte). A Criteo row goes on with each entry's place in its column's
 * range, in as many bytes as that range needs (pace__packing: half of what plain ids take, and the spill is
 * what bounds prep), then the values, if it has any. A numbered row goes on with its ids (8 bytes each) and
 * values.
 */
#ifndef PREP_CLICKS_CLICKS_H
#define PREP_CLICKS_CLICKS_H

#include "data/formats/parse.h"
#include "data/store/store.h"
#include "files/staging.h"
#include "prep/clicks/idmap.h"
#include "prep/spill.h"

#include <paceline/prep.h>
#include <stdatomic.h>

/* Two streams of rows: those of the inputs, and those of --test files. */
enum { PACE__INPUTS, PACE__TESTS, PACE__STREAMS };

/* Where each column's place lies in a spilled row. */
typedef struct pace__packing {
    uint32_t offset[PACE__CRITEO_COLUMNS];
    uint64_t mask[PACE__CRITEO_COLUMNS];
    uint32_t bytes;                     /* of all */
    uint8_t wide[PACE__CRITEO_COLUMNS]; /* columns whose ids spread over more than the caches hold, wide_count
                                           of them */
    uint32_t wide_count;
} pace__packing;

typedef struct pace__clicks {
    const pace_prep_clicks_config *config;
    const pace_log *log;
    pace_registry *registry;
    int threads;
    int format;
    pace__encoding encoding;
    bool like; /* encoding and numbering come from elsewhere */
    pace__staging staging;
    pace__idmap *idmap;
    pace__spill *spills[PACE__STREAMS]; /* NULL: no such stream */
    pace__packing packing;              /* of PACE__CRITEO */
    bool has_values; /* values are spilled; whether they are written is not_all_ones' matter */

    /* Found by pass 1. */
    atomic_uint_fast64_t largest_id, longest_row, bad_rows;
    atomic_bool not_all_ones;
    atomic_bool failed; /* a thread has given up: the others need not go on */
    uint64_t bytes_read;

    /* Decided between the passes. */
    uint64_t held_out; /* the first so many rows of the input stream, in key order, become test rows */
    pace__store_info info;
    pace__part *parts;
    uint64_t *part_entry[PACE__STREAMS]; /* see clicks_write.c */

    /* Counted by pass 2. */
    atomic_uint_fast64_t positives, unseen;
} pace__clicks;

pace__packing pace__packing_of(const pace__encoding *encoding);

/* How many entries a spilled row of that size has. */
size_t pace__spilled_entries(const pace__clicks *job, size_t size);

pace_status pace__clicks_read(pace__clicks *job, int stream, const char *const *paths, size_t count,
                              uint32_t first_file);
pace_status pace__clicks_write(pace__clicks *job);

#endif

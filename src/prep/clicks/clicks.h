/*
 * clicks.h - the two passes of `prep clicks`, and what they share.
 *
 * The job is processes on a link (prep/job.h), one of them as a rule, each with threads. All of them go through
 *     read     (clicks_read.c)     each process its share of the input: parses each row once and spills it under
 *                                  a key made of its file and byte offset; on the way it notes which ids occur
 *     plan     (clicks_run.c)      between the passes the ids get their numbers (clicks_ids.c) and the parts
 *                                  their sizes (clicks_parts.c)
 *     write    (clicks_write.c)    each process some buckets of all spills in key order, which is the shuffle:
 *                                  renumbers the ids and writes the rows to their final places
 *
 * What is in a row, and where it goes, follows from the input alone: not from processes, threads or memory.
 *
 * A spilled row begins with the label (1 byte). A row with columns (Criteo's, a table's) goes on with each entry's place in its column's
 * range, in as many bytes as that range needs (pace__packing: half of what plain ids take, and the spill is
 * what bounds prep), then the values, if it has any. A numbered row goes on with its ids (8 bytes each) and
 * values.
 */
#ifndef PREP_CLICKS_CLICKS_H
#define PREP_CLICKS_CLICKS_H

#include "data/formats/parse.h"
#include "data/store/store.h"
#include "prep/clicks/idmap.h"
#include "prep/parts.h"
#include "prep/spills.h"

#include <stdatomic.h>

/* Where a column's place lies in a spilled row. */
typedef struct pace__packed {
    uint64_t base; /* of the column's ids */
    uint64_t mask; /* of a place */
    uint32_t index, offset;
    uint32_t direct_at; /* of a direct column's first place in the table */
} pace__packed;

/*
 * All columns. First the direct ones, of few possible ids, whose numbers stand side by side in a table in the order of their
 * places: it is asked right away. For the ids of the others, which are seldom in the cache, the id map is asked for many at
 * once.
 */
typedef struct pace__packing {
    uint32_t bytes;
    uint32_t direct_count, direct_entries;
    uint32_t count; /* of all columns; 0: rows have none */
    pace__packed columns[PACE__COLUMNS_MAX];
} pace__packing;

/* Of one process, and then of all. Numbers only: it travels. */
typedef struct pace__click_counts {
    uint64_t bad, bytes_read;
    uint64_t largest_id, longest_row, not_all_ones;
    uint64_t rows_written, bytes_written, bytes_spilled;
    uint64_t positives, unseen; /* training rows; entries whose id does not occur in training */
    uint64_t threads;
} pace__click_counts;

typedef struct pace__clicks {
    const pace_prep_clicks_config *config;
    pace__prep_job prep;
    pace__rank rank;
    int threads;

    /* Settled from the options. */
    int format;
    pace__encoding encoding;
    bool like; /* encoding and numbering come from elsewhere */
    pace__idmap *idmap;
    pace__packing packing; /* of encodings with columns */
    bool has_values;       /* values are spilled; whether they are written is not_all_ones' matter */
    /* An input that can be read only once, of which the first rows had to be seen; NULL: there is none. */
    pace__input *early;
    pace__chunk first; /* its first chunk, until that is read */
    atomic_size_t first_size;

    /* Found by pass 1, counted by both. */
    pace__spills spills[PACE__STREAMS];
    pace__click_counts counts, *all; /* its own, and (ranks) those of all when they last met */

    /* Decided between the passes; the same in all processes. */
    uint64_t divided[PACE__SETS]; /* the rows of the input stream, in key order: pace__prep_divide */
    pace__store_info info;
    uint32_t *direct;     /* (packing.direct_entries) the numbers of the direct columns' ids */
    pace__part *parts;    /* (parts) */
    uint64_t *part_entry; /* (sets, parts + 1): pace__clicks_part_entry */
} pace__clicks;

/* Options to what the passes need; `prep` is the pace__clicks. */
pace_status pace__clicks_settle(void *prep, const pace_log *log);
/* Tables: what their columns are, from what is said and the first rows. */
pace_status pace__clicks_choose_columns(pace__clicks *job, const pace_log *log);
/* PACE_FORMAT_CSV or _TSV if the file is certainly such a table, else unchanged. */
pace_status pace__clicks_detect_sheet(const pace__clicks *job, const char *path, const pace_log *log,
                                      int *format);

static inline bool pace__is_sheet(int format)
{
    return format == PACE_FORMAT_CSV || format == PACE_FORMAT_TSV;
}

/* How the set was made, as far as it decides the bytes; NULL when out of memory. */
char *pace__clicks_command(const pace__clicks *job);

pace__packing pace__packing_of(const pace__encoding *encoding);
/* How many entries a spilled row of that size has. */
size_t pace__spilled_entries(const pace__clicks *job, size_t size);
/* Rows of a stream, once all have read it. */
uint64_t pace__clicks_rows(const pace__clicks *job, int stream);
/* The stream that the rows of a set come from. */
static inline int pace__clicks_stream_of(const pace__clicks *job, int set)
{
    return set == PACE__TEST && job->config->common.test.count > 0 ? PACE__TESTS : PACE__INPUTS;
}

/* This process's share of a stream. */
pace_status pace__clicks_read(pace__clicks *job, int stream);

/* The ids of all processes get their numbers. */
pace_status pace__clicks_number_ids(pace__clicks *job);

/* Lays out the parts, for all processes to write to. */
pace_status pace__clicks_open_parts(pace__clicks *job);
/* The entry at which a part of a set begins, in the stream that its rows come from. */
static inline uint64_t pace__clicks_part_entry(const pace__clicks *job, int set, uint32_t part)
{
    return job->part_entry[(size_t)set * (job->info.parts + 1) + part];
}

/* This process's buckets, and then its parts: on return all rows are written, by all. */
pace_status pace__clicks_write(pace__clicks *job);

/* Both passes, with what is between them. Takes over the link; rank 0 fills the result. */
pace_status pace__clicks_run(pace__clicks *job, pace__link *link, pace_prep_clicks_result *result);

#endif

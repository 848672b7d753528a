/*
 * reviews.h - `prep reviews`: a map-reduce, and what its phases share.
 *
 * The job is ranks on a link (net/link.h): threads of this process, or processes. All of them go through
 *     map      (reviews_map.c)     read, tokenise, count the words, spill the rows under a key of file and
 *                                  offset, in local ids (words.h)
 *     reduce   (reviews_words.c)   merge the counts, each rank one range of hashes; rank 0 makes the
 *                                  vocabulary; each rank translates its own local ids
 *     map      of --test files, whose words do not count: in ids of the vocabulary
 *     survey   (reviews_rows.c)    how many rows there are where, duplicates left out
 *     write    (reviews_write.c)   each rank some parts: the rows of its parts in key order, which is the
 *                                  shuffle
 * With a vocabulary from elsewhere nothing is counted, and map spills in its ids at once.
 *
 * What is in a row, and where it goes, follows from the input alone: not from ranks, nor from memory.
 *
 * pace__reviews is what the ranks of one process have in common (prep/job.h); its first rank opens and closes it.
 * pace__reviews_rank is one rank's own.
 */
#ifndef PREP_REVIEWS_REVIEWS_H
#define PREP_REVIEWS_REVIEWS_H

#include "data/store/store.h"
#include "data/text/reviews.h"
#include "prep/common.h"
#include "prep/parts.h"
#include "prep/reviews/lengths.h"
#include "prep/reviews/words.h"
#include "prep/spills.h"
#include "prep/start.h"

#include <paceline/prep.h>
#include <pthread.h>
#include <stdatomic.h>

_Static_assert(PACE__RANKS_MAX == PACE_PREP_RANKS_MAX, "a result has room for every rank");

#define PACE__DROPS_MAX     64
#define PACE__POSITIVE_AUTO 4.0 /* and 1.0 if no rating is above that */
#define PACE__RATING_USUAL  5.0 /* the best one, of which 4 and more are positive */

/* --- the spilled form of a row: this, for --dedup a twin, and the ids --- */

typedef struct pace__review_head {
    uint32_t source; /* whose local ids: PACE__SOURCE_GENERATIONS x rank + generation */
    uint8_t flags;
} __attribute__((packed)) pace__review_head;

typedef struct pace__review_twin {
    uint64_t hash;  /* of its words, and of all of it if words do not say all */
    uint64_t place; /* file and offset */
} __attribute__((packed)) pace__review_twin;

#define PACE__SOURCE_GENERATIONS (UINT32_C(1) << 22)
#define PACE__SOURCE_VOCABULARY  UINT32_MAX /* the ids are those of the vocabulary */

enum {
    PACE__ROW_POSITIVE = 1, /* its rating reaches --positive, or PACE__POSITIVE_AUTO */
    PACE__ROW_REACHES_1 = 2,
    PACE__ROW_NARROW = 4, /* ids have 16 bits */
};

/* The same as a weight of the spill, so that positives of a bucket are known without a visit. */
static inline uint64_t pace__row_weight(unsigned flags)
{
    return (flags & PACE__ROW_POSITIVE ? 1 : 0) | (flags & PACE__ROW_REACHES_1 ? UINT64_C(1) << 32 : 0);
}

/* --- what is counted --- */

/* Of one rank, and then summed up over all. Numbers only: it travels. */
typedef struct pace__review_counts {
    uint64_t bad, dropped, cut, empty, too_long, words, stopped;
    uint64_t rows_mapped[PACE__STREAMS], bytes_mapped[PACE__STREAMS];
    uint64_t above_1;                    /* rows whose rating is above 1 */
    uint64_t above_usual;                /* rows that stay whose rating is above PACE__RATING_USUAL */
    uint64_t lengths[PACE__LENGTH_BINS]; /* texts of the inputs by their words, stop words left out */
    uint64_t distinct, generations;      /* of its own counter */
    uint64_t word_bytes, bytes_spilled;
    uint64_t stored, unknown, rows_written, bytes_written;
} pace__review_counts;

/* Rows of each bucket, and how many of them are positive (as pace__row_weight). */
typedef struct pace__review_survey {
    uint64_t rows[PACE__SPILL_BUCKETS], weight[PACE__SPILL_BUCKETS];
} pace__review_survey;

/* Local ids to ids of the vocabulary, of all ranks and generations: files that are mapped. */
typedef struct pace__review_table {
    const uint32_t *ids;
    size_t count;
} pace__review_table;

/* --- one process --- */

typedef struct pace__reviews {
    const pace_prep_reviews_config *config;
    pace__prep_job prep;

    /* Settled from the options. */
    pace__review_options options[PACE__STREAMS];
    pace__review_files files[PACE__STREAMS];
    double positive; /* NAN: auto, and --like does not know it */
    double drop[PACE__DROPS_MAX];
    size_t drop_count;
    const pace__word *stops;
    uint32_t stop_count;
    pace__word *own_stops, *kept_stops; /* read from a file; the array of those that are kept */
    uint32_t own_stop_count;
    pace__encoding encoding;
    pace__vocabulary *vocabulary;
    bool known; /* the vocabulary is, from the beginning */
    bool
        open_length; /* the texts tell how long rows are: until they have, encoding.length is the most it may be */

    /* Shared by the ranks of this process. */
    size_t memory; /* of one rank */
    pace__input *input;
    pace__bad_rows bad;
    pace__spills spills[PACE__STREAMS];
    pace__review_table *tables; /* (table_count) */
    size_t table_count;
    uint32_t table_first[PACE__RANKS_MAX + 1]; /* rank's first */
    pthread_mutex_t hdf5;

    /* Decided before the rows are written; the same in all processes. */
    pace__review_survey survey[PACE__STREAMS];
    uint64_t divided[PACE__SETS]; /* the rows of the inputs: pace__prep_divide */
    uint64_t duplicates;
    bool from_1; /* ratings from 1 on are positive: PACE__ROW_REACHES_1 */
    pace__store_info info;
} pace__reviews;

/* --- one rank --- */

typedef struct pace__reviews_rank {
    pace__reviews *job;
    pace__rank me;
    pace__word_counter *counter;
    char counter_name[32];
    pace__review_counts counts, *all;         /* its own, and (ranks) those of all when they last met */
    pace_prep_phase phases[PACE_PREP_PHASES]; /* rank 0 */
} pace__reviews_rank;

/* Reads this rank's share of a stream. */
pace_status pace__reviews_map(pace__reviews_rank *self, int stream);

/* Vocabulary, and the tables for local ids. */
pace_status pace__reviews_reduce(pace__reviews_rank *self);
void pace__reviews_close_tables(pace__reviews *job);
char *pace__reviews_table_path(const pace__reviews *job, int rank, uint32_t generation);
const pace__review_table *pace__reviews_table(const pace__reviews *job, uint32_t source);

/* Fills survey, duplicates, divided, and rows and positives of info. What is positive is known before. */
pace_status pace__reviews_survey(pace__reviews_rank *self);
/* Rows first .. last - 1 of a bucket, duplicates left out. */
pace_status pace__reviews_visit(const pace__reviews_rank *self, int stream, uint32_t bucket, uint64_t first,
                                uint64_t last, pace__spill_scratch *scratch, pace__spill_visitor *visitor,
                                void *arg);

/* This rank's parts. */
pace_status pace__reviews_write(pace__reviews_rank *self);

/* All phases of one rank, which takes over the link; rank 0 fills the result. */
pace_status pace__reviews_run_rank(pace__reviews *job, pace__link *link, pace_prep_reviews_result *result);

/* Whatever a rank that has failed has left open, and the prep. */
void pace__reviews_close(pace__reviews *job);

/* Options to what the phases need; `prep` is the pace__reviews. A job that was not settled can be released,
 * too. */
pace_status pace__reviews_settle(void *prep, const pace_log *log);
/* Only files, ratings and stop words: for --map. */
pace_status pace__reviews_settle_filter(pace__reviews *job, const pace_log *log);
/* --drop. */
bool pace__reviews_drops(const pace__reviews *job, double rating);
void pace__reviews_release(pace__reviews *job);
/* Ratings from here on are positive; once from_1 is decided. */
double pace__reviews_threshold(const pace__reviews *job);
/* How the set was made, as far as it decides the bytes; NULL when out of memory. */
char *pace__reviews_command(const pace__reviews *job);

/* --- the result as records, for whoever has started the processes: see prep/start.h --- */

extern const pace__result_field pace__reviews_result_fields[];
void pace__reviews_emit_more(pace_registry *registry, const void *result);
void pace__reviews_take_more(void *result, const pace_record *record);

#endif

/*
 * prep.h - from raw files to a data set that can be trained on.
 *
 * pace_prep_clicks reads Criteo rows, svmlight or TFRecord files (plain, .gz, .zst, "-" for standard input),
 * turns each row into feature ids, shuffles the rows once over the whole input with bounded memory, and
 * writes DIR/part-00000.h5 and so on. The result is the same bytes for any number of threads and any memory
 * limit. The directory appears only when it is complete.
 */
#ifndef PACELINE_PREP_H
#define PACELINE_PREP_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

enum { PACE_FORMAT_AUTO, PACE_FORMAT_CRITEO, PACE_FORMAT_SVMLIGHT, PACE_FORMAT_TFRECORD };
enum { PACE_HASH_AUTO, PACE_HASH_ON, PACE_HASH_OFF };
enum { PACE_NUMERIC_BINS, PACE_NUMERIC_VALUES };

typedef struct pace_prep_clicks_config {
    pace_texts inputs; /* the positional arguments */
    const char *output;
    int format;       /* PACE_FORMAT_* */
    int64_t features; /* size of the id space; 0: Criteo 33,762,578, else the largest id + 1 */
    int hash;         /* PACE_HASH_*: auto is on for criteo, off for the others */
    int numeric;      /* PACE_NUMERIC_*: what becomes of Criteo's integer columns */
    double holdout;   /* fraction of the rows that become /test */
    pace_texts test;  /* files whose rows become /test */
    const char *like; /* a data set or run directory to take the encoding from */
    int64_t threads;  /* 0: one per core */
    uint64_t memory;  /* bytes */
    int64_t parts;
    int64_t seed;
    int64_t max_bad_rows;
    const char *on_part; /* shell command run for each finished part; its path is in $PACELINE_PART */
    bool force;
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
} pace_prep_clicks_config;

/* Rows for every field but `inputs` and `stop`. */
extern const pace_option pace_prep_clicks_options[];

enum {
    PACE_REVIEWS_AUTO,
    PACE_REVIEWS_JSONL,
    PACE_REVIEWS_CSV,
    PACE_REVIEWS_TSV,
    PACE_REVIEWS_TAB,
    PACE_REVIEWS_LINES,
    PACE_REVIEWS_FOLDER
};
enum { PACE_TRUNCATE_HEAD, PACE_TRUNCATE_TAIL, PACE_TRUNCATE_BOTH }; /* what is kept */
enum { PACE_PAD_END, PACE_PAD_FRONT };

typedef struct pace_prep_result {
    uint64_t train_rows, test_rows, bad_rows;
    uint64_t bytes_read;    /* after decompression */
    uint64_t bytes_written; /* size of the parts */
    uint64_t bytes_spilled; /* written to and read back from temporary files */
    uint64_t features;      /* size of the id space */
    uint64_t features_seen; /* different ids in the input rows (those held out included, --test files not) */
    uint64_t
        unseen_entries;   /* entries of --test rows (or of a --like set) with another id: their weight is 0 */
    double positive_rate; /* of the training rows */
    double seconds, parse_seconds, write_seconds;
} pace_prep_result;

pace_status pace_prep_clicks(const pace_prep_clicks_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_result *result);

#endif

/*
 * prep.h - from raw files to a data set that can be trained on, and from its parts to one file.
 *
 * Every prep shuffles its rows once over the whole input and writes DIR/part-00000.h5 and so on. The work is
 * shared by threads of this process, by processes that it starts through mpirun, or by those that mpirun or srun
 * have started; the result is the same bytes for any number of them and any memory limit. The directory appears
 * only when it is complete.
 *
 * pace_prep_clicks reads Criteo rows, svmlight, TFRecord files or tables with a header (plain, .gz, .zst, "-" for
 * standard input) and turns each row into feature ids.
 *
 * pace_prep_reviews reads texts with a rating (JSON-lines, CSV, ...) and writes rows of words, numbered by a
 * vocabulary that it counts from the same texts.
 * Limits of its memory: merging counted words takes a buffer for each file of them, 4 KiB at least, so that
 * with more than 10,000 files (very little memory, very many different words) that comes on top; and with
 * --dedup all rows with one and the same text are loaded together.
 *
 * pace_prep_images reads pictures (a folder per class of JPEG and PNG files, or a table of their paths; IDX and CIFAR
 * files; TFRecords),
 * brings them to one size and writes rows of 8-bit pixels. Pictures that cannot be read are named, counted, and
 * left out.
 *
 * pace_merge puts the rows of a data set's parts into one HDF5 file.
 */
#ifndef PACELINE_PREP_H
#define PACELINE_PREP_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>
#include <stdio.h>

/* What every prep has. */
typedef struct pace_prep_common {
    pace_texts inputs; /* the positional arguments */
    const char *output;
    pace_texts test;   /* inputs whose rows become /test */
    double holdout;    /* fraction of the rows that become /test */
    double validation; /* fraction of the same rows that become /validation */
    const char *like;  /* a data set or run directory to take the encoding from */
    bool force;
    int64_t seed;
    int64_t parts;
    const char *on_part; /* shell command run for each finished part; its path is in $PACELINE_PART */
    int64_t processes;   /* above 1: started through mpirun */
    int64_t threads;     /* of each process; 0: one per core, or 1 with several processes */
    const char *mpirun;  /* NULL: the one of this build */
    uint64_t memory;     /* bytes, of each process */
    int64_t max_bad_rows;
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
} pace_prep_common;

/* --- clicks --- */

enum {
    PACE_FORMAT_AUTO,
    PACE_FORMAT_CRITEO,
    PACE_FORMAT_SVMLIGHT,
    PACE_FORMAT_TFRECORD,
    PACE_FORMAT_CSV,
    PACE_FORMAT_TSV
};
enum { PACE_HASH_AUTO, PACE_HASH_ON, PACE_HASH_OFF };
enum { PACE_NUMERIC_BINS, PACE_NUMERIC_VALUES };

typedef struct pace_prep_clicks_config {
    pace_prep_common common;
    int format;       /* PACE_FORMAT_* */
    int64_t features; /* size of the id space; 0: Criteo and tables 33,762,578, else the largest id + 1 */
    int hash;         /* PACE_HASH_*: auto is on for criteo and tables, off for the others */
    int numeric;      /* PACE_NUMERIC_*: what becomes of Criteo's integer columns, and numbers of tables */
    /* Of tables: the label's column (NULL: as in `like`, or "label"), and what others are. Items are names, or
     * several with commas between. Columns that are not named are what their first rows look like. */
    const char *label_field;
    pace_texts numeric_fields, category_fields, ignore_fields;
} pace_prep_clicks_config;

/* Rows for every field but `inputs` and `stop`, as of all configs here. */
extern const pace_option_table pace_prep_clicks_tables[];

typedef struct pace_prep_clicks_result {
    bool elsewhere; /* another rank of this job has the result */
    uint64_t train_rows, test_rows, validation_rows, bad_rows;
    uint64_t bytes_read;    /* after decompression */
    uint64_t bytes_written; /* size of the parts */
    uint64_t bytes_spilled; /* written to and read back from temporary files */
    uint64_t features;      /* size of the id space */
    uint64_t features_seen; /* different ids in the input rows (those held out included, --test files not) */
    uint64_t
        unseen_entries;   /* entries of --test rows (or of a --like set) with another id: their weight is 0 */
    double positive_rate; /* of the training rows */
    double seconds, parse_seconds, write_seconds;
    uint64_t ranks, processes; /* threads of all processes */
    double skew;               /* the largest share of a process over the mean, of rows written */
} pace_prep_clicks_result;

pace_status pace_prep_clicks(const pace_prep_clicks_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_clicks_result *result);

/* --- reviews --- */

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

typedef struct pace_prep_reviews_config {
    pace_prep_common common;
    int format; /* PACE_REVIEWS_* */
    const char *text_field, *label_field;
    /* Ratings from this number on are positive. "auto": with `like`, as in that data set; else 4, or 1 if no
     * rating is above 1. */
    const char *positive;
    pace_texts drop;        /* rows with one of these ratings are left out */
    int64_t vocab;          /* words, without the special ones */
    const char *vocabulary; /* a file of words to take instead of counting */
    int64_t length;         /* words that are kept of a text */
    const char *stopwords;  /* a file, "english" or "none" */
    bool keep_negations;    /* negations are no stop words, whatever the list says */
    int truncate, pad;      /* PACE_TRUNCATE_*, PACE_PAD_* */
    bool dedup;             /* of texts with the same words only the first stays */
    bool map, reduce;       /* filters: see pace_prep_reviews_filter */
} pace_prep_reviews_config;

extern const pace_option_table pace_prep_reviews_tables[];

#define PACE_PREP_RANKS_MAX 1024

enum { PACE_PREP_MAP, PACE_PREP_REDUCE, PACE_PREP_MAP_TEST, PACE_PREP_WRITE, PACE_PREP_PHASES };
/* "map", ...: as in progress and phase records. */
extern const char *const pace_prep_phase_names[PACE_PREP_PHASES];

typedef struct pace_prep_phase {
    double seconds; /* 0: there was no such phase */
    /* map: texts and bytes read; reduce: different words, and bytes of their files; write: rows and bytes of
     * the parts */
    uint64_t rows, bytes;
    double skew; /* the largest share of a rank over the mean: of bytes read, different words, rows written */
} pace_prep_phase;

typedef struct pace_prep_reviews_result {
    bool elsewhere; /* another rank of this job has the result */
    uint64_t train_rows, test_rows, validation_rows;
    uint64_t train_positives, test_positives, validation_positives;
    uint64_t bad_rows, dropped, duplicates; /* left out: not readable, by --drop, by --dedup */
    double positive;                        /* ratings from here on are positive */
    uint64_t words, stop_words;             /* read, stop words included; of them stop words */
    uint64_t distinct;                      /* different words but stop words; 0: they were not counted */
    uint64_t vocabulary;                    /* ids, the special ones included */
    uint64_t stored, unknown;               /* words in the rows; of them not in the vocabulary */
    uint64_t cut, empty;                    /* texts longer than a row; texts without a word */
    uint64_t length;                        /* words that a row has room for */
    uint64_t
        length_whole; /* room that 95 % of the input texts need at most, in round numbers; 0: more than there can be */
    uint64_t too_long;                  /* what was dropped because no word is that long */
    uint64_t bytes_read, bytes_written; /* after decompression; size of the parts */
    uint64_t bytes_spilled;             /* rows that went through temporary files */
    uint64_t word_bytes;                /* counted words in temporary files */
    double seconds;
    pace_prep_phase phases[PACE_PREP_PHASES];
    uint64_t ranks, processes;
    uint64_t rank_bytes[PACE_PREP_RANKS_MAX]; /* what each rank has read */
    uint64_t rank_rows[PACE_PREP_RANKS_MAX];  /* and written */
    double bytes_skew, rows_skew;             /* of these, the largest over the mean */
} pace_prep_reviews_result;

pace_status pace_prep_reviews(const pace_prep_reviews_config *config, const pace_log *log,
                              pace_registry *registry, pace_prep_reviews_result *result);

/*
 * The two halves of counting words as filters, so that another map-reduce can run them. config->map: reads
 * reviews (the inputs; none: standard input) and writes "word<TAB>count" lines, each word once, in no useful
 * order; config->reduce: reads such lines, sorted, and adds up those of the same word.
 */
pace_status pace_prep_reviews_filter(const pace_prep_reviews_config *config, FILE *in, FILE *out,
                                     const pace_log *log);

/* --- images --- */

enum {
    PACE_IMAGES_AUTO,
    PACE_IMAGES_FOLDERS,
    PACE_IMAGES_IDX,
    PACE_IMAGES_CIFAR,
    PACE_IMAGES_TFRECORD,
    PACE_IMAGES_CSV
};
enum { PACE_FIT_CROP, PACE_FIT_PAD, PACE_FIT_STRETCH };
enum { PACE_CHANNELS_AUTO, PACE_CHANNELS_GREY, PACE_CHANNELS_RGB }; /* auto: grey if all sources are */

typedef struct pace_prep_images_config {
    pace_prep_common common;
    int format;                           /* PACE_IMAGES_* */
    int64_t size;                         /* pixels, height and width; 0: that of IDX and CIFAR, else 160 */
    int fit;                              /* PACE_FIT_* */
    int channels;                         /* PACE_CHANNELS_* */
    const char *path_field, *label_field; /* columns of csv; NULL: "path" and "label" */
} pace_prep_images_config;

extern const pace_option_table pace_prep_images_tables[];

typedef struct pace_prep_images_result {
    bool elsewhere; /* another rank of this job has the result */
    uint64_t train_rows, test_rows, validation_rows, bad_rows;
    uint64_t classes, height, width, channels;
    uint64_t turned;                    /* by their EXIF orientation */
    uint64_t bytes_read, bytes_written; /* of the sources; size of the parts */
    double seconds;
    uint64_t ranks, processes;
    double skew; /* the largest share of a rank's time over the mean */
} pace_prep_images_result;

pace_status pace_prep_images(const pace_prep_images_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_images_result *result);

/* --- merge --- */

typedef struct pace_merge_config {
    const char *data; /* the positional argument: a data set */
    const char *output;
    int64_t sets;
    bool force;
    const _Atomic int *stop;
} pace_merge_config;

/* Rows for every field but `data` and `stop`. */
extern const pace_option pace_merge_options[];

typedef struct pace_merge_result {
    uint64_t train_rows, test_rows, validation_rows, sets, bytes;
    double seconds;
} pace_merge_result;

/*
 * One HDF5 file with the groups set0, set1, ... of training rows in their order, equal in size to one row, and
 * test and validation, if the data set has such rows. Each has the arrays that parts have, in chunks of rows.
 */
pace_status pace_merge(const pace_merge_config *config, const pace_log *log, pace_registry *registry,
                       pace_merge_result *result);

#endif

/*
 * store.h - a prepared data set on disk: DIR/part-00000.h5 ..., DIR/ids.h5 (of texts: DIR/vocabulary.txt; of
 * pictures: DIR/classes.txt and DIR/images.txt) and DIR/checksums.json. HDF5 is touched only in store*.c and
 * merge_file.c.
 *
 * Each part has the groups /train and, if there are such rows at all, /test and /validation. A sparse set holds in each
 *     label    u8  (rows)
 *     ids      u32 (rows x columns)             where every row has the same columns
 *     values   f32 (rows x columns)             only if some value is not 1
 * or
 *     label    u8  (rows)
 *     indptr   u64 (rows + 1)
 *     indices  u32 (entries)
 *     values   f32 (entries)                    only if some value is not 1
 * in contiguous little-endian layout, so that any program may map or pread the rows. Ids on disk are
 * *compact*: numbered by column and frequency in 0 .. ids_seen; ids.h5 holds /original, u64 (ids_seen), the
 * original id of each. The compact id ids_seen means "does not occur in training"; its weight is 0 for ever.
 *
 * A set of texts (encoding.kind PACE__TEXT) holds in each
 *     label    u8  (rows)
 *     tokens   u32 (rows x columns)             the words' ids, padding (0) in front of them or behind
 *     length   u32 (rows)                       how many of the columns are words, 1 or more
 * Its ids are those of the vocabulary (vocabulary.h), all of them below ids_seen: there is no ids.h5.
 *
 * A set of pictures (PACE__IMAGE) holds in each
 *     label    u16 (rows)                       the class, below encoding.classes
 *     pixels   u8  (rows x height x width x channels)
 *     source   u32 (rows)                       the line of DIR/images.txt, from 0, that names the picture
 * and has DIR/classes.txt (class_names.h) and DIR/images.txt (image_names.h). A set of features
 * (PACE__FEATURES) has `features`, f32 (rows x columns), in the place of pixels; its images.txt is a copy of
 * that of the pictures. Neither has an ids.h5; `columns` is what a row has of pixel bytes, or floats.
 *
 * Every group also has `sums`, u64, a checksum for every few rows (data/store/sums.h).
 *
 * Attributes of every part's root tell how the set was made. Files are written in a directory that is renamed
 * when all is complete (files/staging.h), so an existing data set is a whole one. What was damaged later is
 * found on opening: by checksums.json (data/store/checksums.h), if it is there, before HDF5 looks at a file;
 * and in arrays when they are read, by their sums. Sets of other programs and of earlier versions may lack
 * either: they open all the same, damage to metadata is for HDF5 to find, and of rows only what is out of range
 * is noticed. pace__store_warn says so.
 */
#ifndef DATA_STORE_STORE_H
#define DATA_STORE_STORE_H

#include "data/formats/encoding.h"
#include "data/input/input_files.h"
#include "data/store/checksums.h"

#include <paceline/log.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

enum { PACE__TRAIN, PACE__TEST, PACE__VALIDATION, PACE__SETS };
/* "train", "test", "validation": as groups and records call them. */
extern const char *const pace__set_names[PACE__SETS];

#define PACE__PARTS_MAX 4096
/* A longer command is cut when it is written. */
#define PACE__COMMAND_BYTES_MAX ((size_t)1000 << 10)

/* What is true of the whole set. Of texts, columns and row_entries_max are encoding.length, ids_seen is
 * encoding.features, and there are no values. Of pictures and features, they are pace__encoding_columns, and
 * ids_seen is 0. */
typedef struct pace__store_info {
    pace__encoding encoding;
    uint32_t columns; /* 0: rows differ in length */
    bool has_values;
    bool like; /* numbered as another set or model: training rows, too, may have the id "unseen" */
    uint32_t ids_seen;
    uint32_t row_entries_max; /* the longest row */
    uint32_t parts;
    int64_t seed;
    uint64_t rows[PACE__SETS];
    uint64_t entries[PACE__SETS];
    uint64_t positives[PACE__SETS]; /* rows with label 1 (of pictures: of class 1); UINT64_MAX: unknown. Texts
                                       and pictures must have it */
    double positive;                /* of texts: ratings from here on have label 1; NAN: unknown */
    char *command;                  /* how it was made; NULL: unknown; owned by whoever filled the struct */
} pace__store_info;

/* Validation rows came late: a set without them is not told of at all, so that files and words of before stay as they are. */
static inline bool pace__store_tells(const pace__store_info *info, int set)
{
    return set != PACE__VALIDATION || info->rows[set] > 0;
}

/* Of all sets. */
static inline uint64_t pace__store_rows(const pace__store_info *info)
{
    return info->rows[PACE__TRAIN] + info->rows[PACE__TEST] + info->rows[PACE__VALIDATION];
}

static inline uint64_t pace__store_entries(const pace__store_info *info)
{
    return info->entries[PACE__TRAIN] + info->entries[PACE__TEST] + info->entries[PACE__VALIDATION];
}

/* Where one set's arrays lie in a part file. An array that is absent or empty has offset 0. */
typedef struct pace__part_set {
    uint64_t rows, entries;
    uint64_t label_at, start_at, ids_at, values_at;
    uint64_t length_at;                         /* of texts */
    uint64_t pixels_at, features_at, source_at; /* of pictures and features; their label_at is of u16 */
    uint64_t sums_at;
    uint64_t lead; /* rows of its first block of sums that are in the part before */
    atomic_uint_fast64_t
        *checked; /* a bit for each block that was compared with its sum (sums.h); NULL when it
                                      is written, and if it has no sums */
    uint64_t
        *sums; /* all of them, where a set has few enough to keep; NULL: they are read when they are needed */
} pace__part_set;

typedef struct pace__part {
    char *path;
    int fd;
    struct timespec written; /* when that was, as it was opened */
    pace__part_set sets[PACE__SETS];
    struct pace__near *near;         /* where a nearer copy may be (near.h); NULL: nowhere */
    const struct pace__part *source; /* of a copy: the part that it is a copy of; else NULL */
} pace__part;

/* Has somebody written to it since it was opened? One system call; by the file's time, so an accident is seen, not who wants
 * to hide it. */
bool pace__part_was_written(const pace__part *part);

/* DIR/part-00000.h5 and so on, to be freed by the caller; NULL when out of memory. */
char *pace__part_path(const char *directory, uint32_t index);

/* --- writing --- */

/* Creates the part with its arrays in place but unwritten; sets[].rows, .entries and .lead say how large. The
 * caller fills them by pwrite on part->fd, and `sums` behind them (data/store/sums.h). Of pictures, the directory has its classes.txt already. */
pace_status pace__part_create(const char *directory, uint32_t index, const pace__store_info *info,
                              pace__part *part, const pace_log *log);
pace_status pace__part_sync(pace__part *part, const pace_log *log);
void pace__part_close(pace__part *part); /* a zeroed part is allowed */

/* Only of sparse sets. Texts have pace__vocabulary_write, pictures pace__class_names_write and an
 * images.txt. */
pace_status pace__ids_write(const char *directory, const uint64_t *original, uint32_t count,
                            const pace_log *log);

/* Opens what was written, as a check, and writes checksums.json: the last thing to be done to a set. */
pace_status pace__store_seal(const char *directory, const pace_log *log);

/* --- reading --- */

typedef struct pace__store {
    char *path;
    pace__store_info info;
    pace__part *parts;
    pace__checksums checksums;
    uint64_t
        carved; /* validation rows that are the last ones of /train; 0: those of a group of their own, or none */
} pace__store;

/* Checks every part: it is as checksums.json says, attributes agree, arrays have the right types and
 * sizes, files are as long as they should be; and that ids.h5, vocabulary.txt or classes.txt fits them. How
 * many lines images.txt has is not looked at. */
pace_status pace__store_open(const char *directory, pace__store *store, const pace_log *log);
void pace__store_close(pace__store *store);

/* Whether all parts that have rows have sums of them. */
bool pace__store_has_sums(const pace__store *store);

/* Says what damage to this set would not be noticed, if there is any: it has no checksums.json, or no sums. */
void pace__store_warn(const pace__store *store, const pace_log *log);

/* The original ids, info.ids_seen of them, to be freed by the caller. Texts and pictures have none:
 * PACE_BAD_DATA. */
pace_status pace__store_read_ids(const pace__store *store, uint64_t **original, const pace_log *log);

/*
 * The last rows of /train, this fraction of them, are read as the set PACE__VALIDATION from now on, and no longer as
 * PACE__TRAIN; what `info` tells of rows follows. `parts` stay as they are. 0: all are training rows again. The set has
 * no validation rows of its own. PACE_USAGE if that leaves none to train on, or to validate on.
 */
pace_status pace__store_carve(pace__store *store, double fraction, const pace_log *log);

/* The group of the parts that has a set's rows, and which of its rows is the first of them. */
int pace__store_group(const pace__store *store, int set, uint64_t *first);

/* The part that holds row `row` of a group; *first is the part's first row. */
uint32_t pace__store_part_of(const pace__store *store, int group, uint64_t row, uint64_t *first);

#endif

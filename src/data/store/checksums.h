/*
 * checksums.h - DIR/checksums.json: what the files of a data set were when it was made.
 *
 * HDF5 trusts its files: metadata that is damaged in the wrong place can crash the library. So every file
 * is compared with what was written before HDF5 sees it. For ids.h5 (of texts: vocabulary.txt; of pictures
 * and features: classes.txt and images.txt) that is all of its bytes; for a part its size, and everything
 * but its arrays, which would take too long and are checked when they are read (sums.h).
 * The file's last line is a checksum of the file itself.
 *
 *     {"format":"paceline checksums","version":2,"files":[
 *     {"name":"ids.h5","bytes":2912,"arrays":[],"xxh3":"(32 digits)"},
 *     {"name":"part-00000.h5","bytes":9000,"arrays":[[2048,400],[4096,1600]],"xxh3":"(32 digits)"}],
 *     "checksum":"(32 digits)"}
 *
 * The sums are XXH3, 128 bits, of a file's bytes without those of `arrays`, each [offset, bytes]. They find
 * accidents, and files of another data set; they are no defence against someone who wants to deceive.
 * Version 1, which is read as well, is of parts without sums.
 */
#ifndef DATA_STORE_CHECKSUMS_H
#define DATA_STORE_CHECKSUMS_H

#include "math/batch.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

#define PACE__CHECKSUMS_NAME      "checksums.json"
#define PACE__CHECKSUMS_BYTES_MAX ((size_t)4 << 20)
/* label, indptr, indices, values (or label, tokens, length; or label, pixels, source) and sums of three sets. */
#define PACE__ARRAYS_MAX 15
#define PACE__XXH3_HEX   33

/* Of a few rows: all their arrays. Tells data sets of the same size apart. */
uint64_t pace__rows_checksum(const pace__rows *rows);

typedef struct pace__extent {
    uint64_t at, bytes;
} pace__extent;

typedef struct pace__file_sum {
    uint64_t bytes;
    unsigned arrays;
    pace__extent array[PACE__ARRAYS_MAX]; /* by place; none empty, none overlapping another */
    char xxh3[PACE__XXH3_HEX];
} pace__file_sum;

/* What stands beside the parts: ids.h5; of texts, vocabulary.txt; of pictures and features, classes.txt and
 * images.txt. */
enum { PACE__BESIDE_IDS, PACE__BESIDE_VOCABULARY, PACE__BESIDE_CLASSES };

/* File 0 is ids.h5, vocabulary.txt or classes.txt; file p + 1 is part p; images.txt is behind the last
 * part. A zeroed one means that nothing is known. */
typedef struct pace__checksums {
    uint32_t count;
    pace__file_sum *files;
    int beside; /* PACE__BESIDE_* */
} pace__checksums;

/* Sets sum->bytes and sum->xxh3 by reading the file; the arrays are given, in any order, some empty. */
pace_status pace__checksums_add(int fd, const char *path, pace__file_sum *sum, const pace_log *log);

/* Writes DIR/checksums.json; it is on disk when this returns. */
pace_status pace__checksums_write(const char *directory, const pace__checksums *sums, const pace_log *log);

/* No such file is PACE_OK and a zeroed `sums`: earlier versions and other programs write none. */
pace_status pace__checksums_read(const char *directory, pace__checksums *sums, const pace_log *log);
void pace__checksums_release(pace__checksums *sums);

/* Compares an open file with what is known of file `index`. PACE_BAD_DATA names `path` and what is wrong. */
pace_status pace__checksums_verify(const pace__checksums *sums, uint32_t index, int fd, const char *path,
                                   const pace_log *log);

#endif

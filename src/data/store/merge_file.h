/*
 * merge_file.h - all rows of a data set in one HDF5 file, in groups, for other programs to read.
 *
 *     pace__merge_file *file;
 *     pace__merge_file_create(temporary, path, &store, sets, log, &file);
 *     pace__merge_file_begin(file, "set0");
 *     pace__merge_file_append(file, &rows);             // any number of times
 *     pace__merge_file_begin(file, "test");             // ends the one before
 *     ...
 *     status = pace__merge_file_close(file, status);
 *
 * A group has the arrays that parts have (store.h), but in chunks of rows, so that a slice is read without its
 * neighbours; starts (indptr) count from the group's first entry. The root's attributes tell of the data set;
 * of texts /vocabulary holds the word of each id, else /original the original id of each id.
 */
#ifndef DATA_STORE_MERGE_FILE_H
#define DATA_STORE_MERGE_FILE_H

#include "data/store/store.h"
#include "math/batch.h"

typedef struct pace__merge_file pace__merge_file;

/* Cuts and fills the file at `path`; messages call it `name`. The store must outlive it. */
pace_status pace__merge_file_create(const char *path, const char *name, const pace__store *store,
                                    uint32_t sets, const pace_log *log, pace__merge_file **file);
pace_status pace__merge_file_begin(pace__merge_file *file, const char *name);
pace_status pace__merge_file_append(pace__merge_file *file, const pace__rows *rows);
/* Frees it in any case. `status` other than PACE_OK: what is in the file is of no use, and that is returned. */
pace_status pace__merge_file_close(pace__merge_file *file, pace_status status);

#endif

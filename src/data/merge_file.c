#include "data/merge_file.h"

#include "base/file.h"
#include "data/store_internal.h"
#include "data/vocabulary.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

/* Of a chunk; several of them fit HDF5's cache. */
#define CHUNK_BYTES ((size_t)128 << 10)

/* The arrays of a group. */
enum { LABEL, IDS, LENGTH, START, VALUES, ARRAYS };

struct pace__merge_file {
    const pace__store_info *info;
    const pace_log *log;
    char *path;
    hid_t file, group;      /* the group: -1 if none is open */
    hid_t array[ARRAYS];    /* -1: it has none */
    uint64_t rows, entries; /* of the group so far */
    uint64_t *start;        /* (start_max) scratch */
    size_t start_max;
};

static pace_status failed(const pace__merge_file *self)
{
    return pace_fail(self->log, PACE_IO, "%s: cannot write: %s", self->path,
                     errno ? strerror(errno) : "HDF5 error");
}

/* --- attributes --- */

static bool put_attributes(const pace__merge_file *self, uint32_t sets)
{
    const pace__store_info *info = self->info;
    bool text = info->encoding.kind == PACE__TEXT;
    char *encoding = pace__encoding_to_json(&info->encoding);
    bool ok = encoding && pace__hdf5_put_text(self->file, "kind", text ? "text" : "sparse") &&
              pace__hdf5_put_text(self->file, "encoding", encoding) &&
              pace__hdf5_put_text(self->file, "command", info->command ? info->command : "") &&
              pace__hdf5_put_number(self->file, "features", (int64_t)info->encoding.features) &&
              pace__hdf5_put_number(self->file, "columns", info->columns) &&
              pace__hdf5_put_number(self->file, "ids_seen", info->ids_seen) &&
              pace__hdf5_put_number(self->file, "row_entries_max", info->row_entries_max) &&
              pace__hdf5_put_number(self->file, "seed", info->seed) &&
              pace__hdf5_put_number(self->file, "train_rows", (int64_t)info->rows[PACE__TRAIN]) &&
              pace__hdf5_put_number(self->file, "test_rows", (int64_t)info->rows[PACE__TEST]) &&
              pace__hdf5_put_number(self->file, "sets", sets);

    free(encoding);
    return ok;
}

/* --- what ids stand for --- */

static bool put_list(hid_t file, const char *name, hid_t type, uint64_t count, const void *values)
{
    hsize_t size = count;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_obj_track_times(properties, false);
    hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    bool ok = array >= 0 && (count == 0 || H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);

    H5Dclose(array);
    H5Pclose(properties);
    H5Sclose(space);
    return ok;
}

/* As texts of equal size, filled with zeros. */
static pace_status put_vocabulary(const pace__merge_file *self, const pace__store *store)
{
    pace__vocabulary *vocabulary;
    pace_status status = pace__vocabulary_read(store->path, &self->info->encoding, self->log, &vocabulary);

    if (status)
        return status;
    uint32_t count = pace__vocabulary_ids(vocabulary), width = 1;

    for (uint32_t id = 0; id < count; id++) {
        uint32_t size = pace__vocabulary_word(vocabulary, id).size;

        width = size > width ? size : width;
    }
    char *words = calloc(count, width);
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    for (uint32_t id = 0; words && id < count; id++) {
        pace__word word = pace__vocabulary_word(vocabulary, id);

        memcpy(words + (size_t)id * width, word.text, word.size);
    }
    if (!words)
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    else if (!put_list(self->file, "vocabulary", type, count, words))
        status = failed(self);
    H5Tclose(type);
    free(words);
    pace__vocabulary_free(vocabulary);
    return status;
}

static pace_status put_originals(const pace__merge_file *self, const pace__store *store)
{
    uint64_t *original;
    pace_status status = pace__store_read_ids(store, &original, self->log);

    if (status)
        return status;
    if (!put_list(self->file, "original", H5T_STD_U64LE, self->info->ids_seen, original))
        status = failed(self);
    free(original);
    return status;
}

/* --- groups --- */

/* One that grows: how many entries a group has is known at its end. */
static hid_t create_array(hid_t group, const char *name, hid_t type, uint32_t columns)
{
    size_t width = H5Tget_size(type) * (columns ? columns : 1);
    hsize_t sizes[2] = {0, columns}, most[2] = {H5S_UNLIMITED, columns};
    hsize_t chunk[2] = {CHUNK_BYTES / width > 0 ? CHUNK_BYTES / width : 1, columns};
    hid_t space = H5Screate_simple(columns ? 2 : 1, sizes, most);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_chunk(properties, columns ? 2 : 1, chunk);
    H5Pset_obj_track_times(properties, false);
    hid_t array = H5Dcreate2(group, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);

    H5Pclose(properties);
    H5Sclose(space);
    return array;
}

/* Elements (or rows of columns) behind those that are there. */
static bool append(hid_t array, hid_t type, uint64_t at, uint64_t count, uint32_t columns, const void *values)
{
    hsize_t sizes[2] = {at + count, columns}, first[2] = {at, 0}, block[2] = {count, columns};
    int rank = columns ? 2 : 1;

    if (count == 0)
        return true;
    if (H5Dset_extent(array, sizes) < 0)
        return false;
    hid_t space = H5Dget_space(array), memory = H5Screate_simple(rank, block, NULL);
    bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, block, NULL) >= 0 &&
              H5Dwrite(array, type, memory, space, H5P_DEFAULT, values) >= 0;

    H5Sclose(memory);
    H5Sclose(space);
    return ok;
}

static bool close_group(pace__merge_file *self)
{
    bool ok = true;

    if (self->group < 0)
        return true;
    if (self->array[START] >= 0)
        ok = append(self->array[START], H5T_NATIVE_UINT64, self->rows, 1, 0, &self->entries);
    for (int i = 0; i < ARRAYS; i++) {
        if (self->array[i] >= 0)
            ok = H5Dclose(self->array[i]) >= 0 && ok;
        self->array[i] = -1;
    }
    ok = H5Gclose(self->group) >= 0 && ok;
    self->group = -1;
    return ok;
}

pace_status pace__merge_file_begin(pace__merge_file *self, const char *name)
{
    const pace__store_info *info = self->info;
    bool text = info->encoding.kind == PACE__TEXT, ok = close_group(self);
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);

    H5Pset_obj_track_times(properties, false);
    self->group = ok ? H5Gcreate2(self->file, name, H5P_DEFAULT, properties, H5P_DEFAULT) : -1;
    H5Pclose(properties);
    self->rows = self->entries = 0;
    if (self->group < 0)
        return failed(self);
    self->array[LABEL] = create_array(self->group, "label", H5T_STD_U8LE, 0);
    self->array[IDS] = create_array(self->group,
                                    text            ? "tokens"
                                    : info->columns ? "ids"
                                                    : "indices",
                                    H5T_STD_U32LE, info->columns);
    ok = self->array[LABEL] >= 0 && self->array[IDS] >= 0;
    if (text)
        ok = (self->array[LENGTH] = create_array(self->group, "length", H5T_STD_U32LE, 0)) >= 0 && ok;
    if (!info->columns)
        ok = (self->array[START] = create_array(self->group, "indptr", H5T_STD_U64LE, 0)) >= 0 && ok;
    if (info->has_values)
        ok =
            (self->array[VALUES] = create_array(self->group, "values", H5T_IEEE_F32LE, info->columns)) >= 0 &&
            ok;
    return ok ? PACE_OK : failed(self);
}

/* Starts of these rows, counted from the group's first entry. */
static bool append_starts(pace__merge_file *self, const pace__rows *rows)
{
    if (rows->rows > self->start_max) {
        free(self->start);
        self->start_max = rows->rows;
        self->start = malloc(self->start_max * sizeof *self->start);
    }
    if (!self->start) {
        self->start_max = 0;
        return false;
    }
    for (size_t i = 0; i < rows->rows; i++)
        self->start[i] = self->entries + rows->start[i] - rows->start[0];
    return append(self->array[START], H5T_NATIVE_UINT64, self->rows, rows->rows, 0, self->start);
}

pace_status pace__merge_file_append(pace__merge_file *self, const pace__rows *rows)
{
    uint32_t columns = self->info->columns;
    uint64_t first = pace__row_start(rows, 0), last = pace__row_start(rows, rows->rows);
    uint64_t count = columns ? rows->rows : last - first, at = columns ? self->rows : self->entries;

    errno = 0; /* HDF5 does not always set it */
    bool ok = append(self->array[LABEL], H5T_NATIVE_UINT8, self->rows, rows->rows, 0, rows->label) &&
              append(self->array[IDS], H5T_NATIVE_UINT32, at, count, columns, rows->ids + first);

    if (self->array[LENGTH] >= 0)
        ok = ok && append(self->array[LENGTH], H5T_NATIVE_UINT32, self->rows, rows->rows, 0, rows->length);
    if (self->array[START] >= 0)
        ok = ok && append_starts(self, rows);
    if (self->array[VALUES] >= 0)
        ok = ok && append(self->array[VALUES], H5T_NATIVE_FLOAT, at, count, columns, rows->values + first);
    self->rows += rows->rows;
    self->entries += last - first;
    return ok ? PACE_OK : failed(self);
}

/* --- the file --- */

pace_status pace__merge_file_create(const char *path, const pace__store *store, uint32_t sets,
                                    const pace_log *log, pace__merge_file **file)
{
    pace__merge_file *self = calloc(1, sizeof *self);

    pace__hdf5_silence();
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);

    if (self)
        *self = (pace__merge_file){.info = &store->info, .log = log, .file = -1, .group = -1};
    for (int i = 0; self && i < ARRAYS; i++)
        self->array[i] = -1;
    if (!self || !(self->path = strdup(path))) {
        free(self);
        H5Pclose(access);
        H5Pclose(creation);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    H5Pset_obj_track_times(creation, false);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    errno = 0;
    self->file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(access);
    H5Pclose(creation);
    pace_status status = self->file >= 0 && put_attributes(self, sets) ? PACE_OK : failed(self);

    if (!status)
        status = store->info.encoding.kind == PACE__TEXT ? put_vocabulary(self, store)
                                                         : put_originals(self, store);
    if (status)
        return pace__merge_file_close(self, status);
    *file = self;
    return PACE_OK;
}

pace_status pace__merge_file_close(pace__merge_file *self, pace_status status)
{
    bool ok = close_group(self);

    errno = 0;
    if (self->file >= 0)
        ok = H5Fclose(self->file) >= 0 && ok;
    if (!status && !ok)
        status = failed(self);
    free(self->start);
    free(self->path);
    free(self);
    return status;
}

#include "data/store/merge_file.h"

#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/store/store_internal.h"
#include "data/text/vocabulary.h"
#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a chunk; several of them fit HDF5's cache. */
#define CHUNK_BYTES ((size_t)128 << 10)

/* The arrays of a group. */
enum { LABEL, IDS, LENGTH, START, VALUES, PIXELS, FEATURES, SOURCE, ARRAYS };

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
    const char *kind = pace__store_kinds[pace__store_kind(&info->encoding)];
    char *encoding = pace__encoding_to_json(&info->encoding);
    bool ok = encoding && pace__hdf5_put_text(self->file, "kind", kind) &&
              pace__hdf5_put_text(self->file, "encoding", encoding) &&
              pace__hdf5_put_text(self->file, "command", info->command ? info->command : "") &&
              pace__hdf5_put_number(self->file, "features", (int64_t)info->encoding.features) &&
              pace__hdf5_put_number(self->file, "columns", info->columns) &&
              pace__hdf5_put_number(self->file, "ids_seen", info->ids_seen) &&
              pace__hdf5_put_number(self->file, "row_entries_max", info->row_entries_max) &&
              pace__hdf5_put_number(self->file, "seed", info->seed) &&
              pace__hdf5_put_number(self->file, "train_rows", (int64_t)info->rows[PACE__TRAIN]) &&
              pace__hdf5_put_number(self->file, "test_rows", (int64_t)info->rows[PACE__TEST]) &&
              (info->rows[PACE__VALIDATION] == 0 ||
               pace__hdf5_put_number(self->file, "validation_rows", (int64_t)info->rows[PACE__VALIDATION])) &&
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

/* Texts of equal size, filled with zeros. */
static bool put_texts(hid_t file, const char *name, uint32_t count, size_t width, const char *texts)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    bool ok = put_list(file, name, type, count, texts);

    H5Tclose(type);
    return ok;
}

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

    for (uint32_t id = 0; words && id < count; id++) {
        pace__word word = pace__vocabulary_word(vocabulary, id);

        memcpy(words + (size_t)id * width, word.text, word.size);
    }
    if (!words)
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    else if (!put_texts(self->file, "vocabulary", count, width, words))
        status = failed(self);
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

static pace_status put_class_names(const pace__merge_file *self, const pace__store *store)
{
    pace__class_names names;
    size_t width;
    pace_status status = pace__class_names_read(store->path, &self->info->encoding, self->log, &names);

    if (status)
        return status;
    char *texts = pace__class_names_table(&names, &width);

    if (!texts)
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    else if (!put_texts(self->file, "class_names", names.count, width, texts))
        status = failed(self);
    free(texts);
    pace__class_names_release(&names);
    return status;
}

/* --- groups --- */

/* Sizes of an array: those of a row behind the first, which is set by who uses it. */
typedef struct shape {
    int rank;
    hsize_t sizes[4];
} shape;

static shape shape_of(uint32_t columns)
{
    return (shape){columns ? 2 : 1, {0, columns}};
}

static shape shape_of_pixels(const pace__encoding *encoding)
{
    return (shape){4, {0, encoding->height, encoding->width, encoding->channels}};
}

/* One that grows: how many entries a group has is known at its end. */
static hid_t create_array(hid_t group, const char *name, hid_t type, shape each)
{
    size_t width = H5Tget_size(type);
    shape most = each, chunk = each;

    for (int i = 1; i < each.rank; i++)
        width *= each.sizes[i];
    most.sizes[0] = H5S_UNLIMITED;
    chunk.sizes[0] = CHUNK_BYTES / width > 0 ? CHUNK_BYTES / width : 1;
    hid_t space = H5Screate_simple(each.rank, each.sizes, most.sizes);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_chunk(properties, each.rank, chunk.sizes);
    H5Pset_obj_track_times(properties, false);
    hid_t array = H5Dcreate2(group, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);

    H5Pclose(properties);
    H5Sclose(space);
    return array;
}

/* Elements (or rows of columns) behind those that are there. */
static bool append(hid_t array, hid_t type, uint64_t at, uint64_t count, shape each, const void *values)
{
    shape sizes = each, block = each;
    hsize_t first[4] = {at};

    sizes.sizes[0] = at + count;
    block.sizes[0] = count;
    if (count == 0)
        return true;
    if (H5Dset_extent(array, sizes.sizes) < 0)
        return false;
    hid_t space = H5Dget_space(array), memory = H5Screate_simple(each.rank, block.sizes, NULL);
    bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, block.sizes, NULL) >= 0 &&
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
        ok = append(self->array[START], H5T_NATIVE_UINT64, self->rows, 1, shape_of(0), &self->entries);
    for (int i = 0; i < ARRAYS; i++) {
        if (self->array[i] >= 0)
            ok = H5Dclose(self->array[i]) >= 0 && ok;
        self->array[i] = -1;
    }
    ok = H5Gclose(self->group) >= 0 && ok;
    self->group = -1;
    return ok;
}

/* Creates one of the group's arrays. */
static bool add_array(pace__merge_file *self, int which, const char *name, hid_t type, shape each)
{
    self->array[which] = create_array(self->group, name, type, each);
    return self->array[which] >= 0;
}

static bool add_pictures(pace__merge_file *self)
{
    const pace__encoding *encoding = &self->info->encoding;
    bool ok = add_array(self, LABEL, "label", H5T_STD_U16LE, shape_of(0)) &&
              add_array(self, SOURCE, "source", H5T_STD_U32LE, shape_of(0));

    if (encoding->kind == PACE__IMAGE)
        return ok && add_array(self, PIXELS, "pixels", H5T_STD_U8LE, shape_of_pixels(encoding));
    return ok && add_array(self, FEATURES, "features", H5T_IEEE_F32LE, shape_of(self->info->columns));
}

static bool add_sparse_or_text(pace__merge_file *self)
{
    const pace__store_info *info = self->info;
    bool text = info->encoding.kind == PACE__TEXT;
    const char *ids = text ? "tokens" : info->columns ? "ids" : "indices";

    return add_array(self, LABEL, "label", H5T_STD_U8LE, shape_of(0)) &&
           add_array(self, IDS, ids, H5T_STD_U32LE, shape_of(info->columns)) &&
           (!text || add_array(self, LENGTH, "length", H5T_STD_U32LE, shape_of(0))) &&
           (info->columns || add_array(self, START, "indptr", H5T_STD_U64LE, shape_of(0))) &&
           (!info->has_values || add_array(self, VALUES, "values", H5T_IEEE_F32LE, shape_of(info->columns)));
}

pace_status pace__merge_file_begin(pace__merge_file *self, const char *name)
{
    bool ok = close_group(self);
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);

    H5Pset_obj_track_times(properties, false);
    self->group = ok ? H5Gcreate2(self->file, name, H5P_DEFAULT, properties, H5P_DEFAULT) : -1;
    H5Pclose(properties);
    self->rows = self->entries = 0;
    if (self->group < 0)
        return failed(self);
    ok = pace__has_classes(&self->info->encoding) ? add_pictures(self) : add_sparse_or_text(self);
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
    return append(self->array[START], H5T_NATIVE_UINT64, self->rows, rows->rows, shape_of(0), self->start);
}

static bool append_pictures(pace__merge_file *self, const pace__rows *rows)
{
    const pace__encoding *encoding = &self->info->encoding;
    uint64_t at = self->rows, count = rows->rows;
    bool ok = append(self->array[LABEL], H5T_NATIVE_UINT16, at, count, shape_of(0), rows->classes) &&
              append(self->array[SOURCE], H5T_NATIVE_UINT32, at, count, shape_of(0), rows->source);

    if (encoding->kind == PACE__IMAGE)
        return ok && append(self->array[PIXELS], H5T_NATIVE_UINT8, at, count, shape_of_pixels(encoding),
                            rows->pixels);
    return ok && append(self->array[FEATURES], H5T_NATIVE_FLOAT, at, count, shape_of(rows->columns),
                        rows->features);
}

static bool append_sparse_or_text(pace__merge_file *self, const pace__rows *rows)
{
    uint32_t columns = self->info->columns;
    shape one = shape_of(0), each = shape_of(columns);
    uint64_t first = pace__row_start(rows, 0), last = pace__row_start(rows, rows->rows);
    uint64_t count = columns ? rows->rows : last - first, at = columns ? self->rows : self->entries;
    bool ok = append(self->array[LABEL], H5T_NATIVE_UINT8, self->rows, rows->rows, one, rows->label) &&
              append(self->array[IDS], H5T_NATIVE_UINT32, at, count, each, rows->ids + first);

    if (self->array[LENGTH] >= 0)
        ok = ok && append(self->array[LENGTH], H5T_NATIVE_UINT32, self->rows, rows->rows, one, rows->length);
    if (self->array[START] >= 0)
        ok = ok && append_starts(self, rows);
    if (self->array[VALUES] >= 0)
        ok = ok && append(self->array[VALUES], H5T_NATIVE_FLOAT, at, count, each, rows->values + first);
    return ok;
}

pace_status pace__merge_file_append(pace__merge_file *self, const pace__rows *rows)
{
    errno = 0; /* HDF5 does not always set it */
    bool ok = rows->classes ? append_pictures(self, rows) : append_sparse_or_text(self, rows);

    self->entries += pace__row_start(rows, rows->rows) - pace__row_start(rows, 0);
    self->rows += rows->rows;
    return ok ? PACE_OK : failed(self);
}

/* --- names of pictures --- */

/* The bytes of images.txt, as they are: names differ too much in length for a table of them. */
static pace_status copy_names(pace__merge_file *self, int fd, const char *path, uint64_t bytes)
{
    hid_t array = create_array(self->file, "images", H5T_STD_U8LE, shape_of(0));
    uint8_t *buffer = malloc(CHUNK_BYTES);
    pace_status status = array < 0 ? failed(self) : PACE_OK;

    if (!status && !buffer)
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    for (uint64_t at = 0; at < bytes && !status; at += CHUNK_BYTES) {
        size_t count = bytes - at < CHUNK_BYTES ? (size_t)(bytes - at) : CHUNK_BYTES;

        status = pace__pread_all(fd, buffer, count, at, path, self->log);
        if (!status && !append(array, H5T_NATIVE_UINT8, at, count, shape_of(0), buffer))
            status = failed(self);
    }
    free(buffer);
    if (array >= 0)
        H5Dclose(array);
    return status;
}

static pace_status put_image_names(pace__merge_file *self, const pace__store *store)
{
    struct stat info;
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, store->path);
    int fd = -1;
    pace_status status = path ? pace__open(path, PACE__TO_READ, self->log, &fd)
                              : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status && fstat(fd, &info) != 0)
        status = pace_fail(self->log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!status)
        status = copy_names(self, fd, path, (uint64_t)info.st_size);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

/* What ids, or classes and sources, stand for. */
static pace_status put_meanings(pace__merge_file *self, const pace__store *store)
{
    if (store->info.encoding.kind == PACE__TEXT)
        return put_vocabulary(self, store);
    if (!pace__has_classes(&store->info.encoding))
        return put_originals(self, store);
    pace_status status = put_class_names(self, store);

    return status ? status : put_image_names(self, store);
}

/* --- the file --- */

pace_status pace__merge_file_create(const char *path, const char *name, const pace__store *store,
                                    uint32_t sets, const pace_log *log, pace__merge_file **file)
{
    pace__merge_file *self = calloc(1, sizeof *self);

    pace__hdf5_silence();
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);

    if (self)
        *self = (pace__merge_file){.info = &store->info, .log = log, .file = -1, .group = -1};
    for (int i = 0; self && i < ARRAYS; i++)
        self->array[i] = -1;
    if (!self || !(self->path = strdup(name))) {
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
        status = put_meanings(self, store);
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

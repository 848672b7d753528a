/* One part of a data set as HDF5 finds it: attributes, and where arrays lie. */
#include "data/store/store_internal.h"
#include "data/store/sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of a sparse row; and of any: a picture has bytes. */
#define ROW_ENTRIES_MAX (1 << 20)
#define COLUMNS_MAX     (PACE__PICTURE_SIDE_MAX * PACE__PICTURE_SIDE_MAX * 3)

static bool get_number(hid_t object, const char *name, int64_t *value)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);

    if (attribute < 0)
        return false;
    hid_t type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    bool ok = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 1 &&
              H5Aread(attribute, H5T_NATIVE_INT64, value) >= 0;

    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return ok;
}

/* NAN if it is not there. */
static double get_real(hid_t object, const char *name)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    double value = NAN;

    if (attribute < 0)
        return NAN;
    hid_t type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);

    if (H5Tget_class(type) != H5T_FLOAT || H5Sget_simple_extent_npoints(space) != 1 ||
        H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0 || !isfinite(value))
        value = NAN;
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
}

#define TEXT_MAX ((size_t)1 << 20)

char *pace__hdf5_get_text(hid_t object, const char *name)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);

    if (attribute < 0)
        return NULL;
    hid_t type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    size_t size = H5Tget_size(type);
    char *text = NULL;

    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && size > 0 && size <= TEXT_MAX &&
        H5Sget_simple_extent_npoints(space) == 1)
        text = calloc(1, size + 1);
    if (text && H5Aread(attribute, type, text) < 0) {
        free(text);
        text = NULL;
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

/* The numbers of a part's attributes, each with the limit that keeps later arithmetic safe. */
static bool get_info(hid_t file, pace__store_info *info, int64_t *index)
{
    int64_t columns, like, seen, longest, parts, rows[PACE__SETS], entries[PACE__SETS], positives[PACE__SETS];
    const int64_t count_max = INT64_C(1) << 48;
    bool ok = get_number(file, "columns", &columns) && columns >= 0 && columns <= COLUMNS_MAX &&
              get_number(file, "like", &like) && like >= 0 && like <= 1 &&
              get_number(file, "ids_seen", &seen) && seen >= 0 && seen < UINT32_MAX &&
              get_number(file, "row_entries_max", &longest) && longest >= 0 && longest <= COLUMNS_MAX &&
              get_number(file, "parts", &parts) && parts >= 1 && parts <= PACE__PARTS_MAX &&
              get_number(file, "part", index) && get_number(file, "seed", &info->seed);

    for (int set = 0; ok && set < PACE__SETS; set++) {
        char name[32];

        rows[set] = entries[set] = positives[set] = 0;
        snprintf(name, sizeof name, "%s_rows", pace__set_names[set]);
        if (set == PACE__VALIDATION && H5Aexists(file, name) == 0)
            continue;
        ok = get_number(file, name, &rows[set]) && rows[set] >= 0 && rows[set] <= count_max;
        snprintf(name, sizeof name, "%s_entries", pace__set_names[set]);
        ok = ok && get_number(file, name, &entries[set]) && entries[set] >= 0 && entries[set] <= count_max;
        snprintf(name, sizeof name, "%s_positives", pace__set_names[set]);
        if (ok && !get_number(file, name, &positives[set]))
            positives[set] = -1;
        ok = ok && positives[set] <= rows[set];
    }
    if (!ok)
        return false;
    info->columns = (uint32_t)columns;
    info->like = like == 1;
    info->ids_seen = (uint32_t)seen;
    info->row_entries_max = (uint32_t)longest;
    info->parts = (uint32_t)parts;
    info->positive = get_real(file, "positive");
    for (int set = 0; set < PACE__SETS; set++) {
        info->rows[set] = (uint64_t)rows[set];
        info->entries[set] = (uint64_t)entries[set];
        info->positives[set] = positives[set] < 0 ? UINT64_MAX : (uint64_t)positives[set];
    }
    return true;
}

/* What a set says twice must agree. */
static bool is_sound(const pace__store_info *info)
{
    const pace__encoding *encoding = &info->encoding;
    bool text = pace__is_text(info);

    if (encoding->kind == PACE__SHEET && info->columns != encoding->sheet.columns)
        return false;
    if (!text && !pace__has_classes(encoding))
        return info->columns <= ROW_ENTRIES_MAX && info->row_entries_max <= ROW_ENTRIES_MAX;
    return info->columns == (text ? encoding->length : pace__encoding_columns(encoding)) &&
           info->row_entries_max == info->columns && info->ids_seen == (text ? encoding->features : 0) &&
           info->positives[PACE__TRAIN] != UINT64_MAX && info->positives[PACE__TEST] != UINT64_MAX &&
           info->positives[PACE__VALIDATION] != UINT64_MAX;
}

/* The sizes of an array's rows: none, columns, or height, width and channels. */
typedef struct shape {
    int rank;
    hsize_t sizes[3];
} shape;

static bool get_array(hid_t parent, const char *name, hid_t type, uint64_t *rows, shape inner,
                      uint64_t file_bytes, uint64_t *at)
{
    hid_t array = H5Dopen2(parent, name, H5P_DEFAULT);

    if (array < 0)
        return false;
    hid_t found = H5Dget_type(array);
    hid_t space = H5Dget_space(array);
    hid_t properties = H5Dget_create_plist(array);
    hsize_t sizes[4] = {0};
    uint64_t bytes = H5Tget_size(type);
    bool ok = H5Tequal(found, type) > 0 && H5Pget_layout(properties) == H5D_CONTIGUOUS &&
              H5Sget_simple_extent_ndims(space) == inner.rank + 1 &&
              H5Sget_simple_extent_dims(space, sizes, NULL) == inner.rank + 1;

    if (ok && *rows == UINT64_MAX)
        *rows = sizes[0];
    ok =
        ok && sizes[0] == *rows && *rows < UINT64_C(1) << 48 && !__builtin_mul_overflow(bytes, *rows, &bytes);
    for (int i = 0; ok && i < inner.rank; i++)
        ok = sizes[i + 1] == inner.sizes[i] && !__builtin_mul_overflow(bytes, inner.sizes[i], &bytes);
    if (ok && *rows > 0) {
        haddr_t offset = H5Dget_offset(array);

        ok = offset != HADDR_UNDEF && offset <= file_bytes && bytes <= file_bytes - offset;
        *at = offset;
    }
    H5Pclose(properties);
    H5Sclose(space);
    H5Tclose(found);
    H5Dclose(array);
    return ok;
}

bool pace__hdf5_get_array(hid_t parent, const char *name, hid_t type, uint64_t *rows, uint64_t columns,
                          uint64_t file_bytes, uint64_t *at)
{
    return get_array(parent, name, type, rows, (shape){columns ? 1 : 0, {columns}}, file_bytes, at);
}

static bool get_pictures(hid_t group, const pace__store_info *info, uint64_t file_bytes, pace__part_set *set)
{
    const pace__encoding *encoding = &info->encoding;
    shape pixels = {3, {encoding->height, encoding->width, encoding->channels}};
    bool ok =
        pace__hdf5_get_array(group, "label", H5T_STD_U16LE, &set->rows, 0, file_bytes, &set->label_at) &&
        pace__hdf5_get_array(group, "source", H5T_STD_U32LE, &set->rows, 0, file_bytes, &set->source_at);

    set->entries = set->rows * info->columns;
    if (encoding->kind == PACE__IMAGE)
        return ok &&
               get_array(group, "pixels", H5T_STD_U8LE, &set->rows, pixels, file_bytes, &set->pixels_at);
    return ok && pace__hdf5_get_array(group, "features", H5T_IEEE_F32LE, &set->rows, info->columns,
                                      file_bytes, &set->features_at);
}

static bool get_sparse_or_text(hid_t group, const pace__store_info *info, uint64_t file_bytes,
                               pace__part_set *set)
{
    bool values = info->has_values;
    bool ok = pace__hdf5_get_array(group, "label", H5T_STD_U8LE, &set->rows, 0, file_bytes, &set->label_at);
    if (ok && pace__is_text(info)) {
        set->entries = set->rows * info->columns;
        ok = pace__hdf5_get_array(group, "tokens", H5T_STD_U32LE, &set->rows, info->columns, file_bytes,
                                  &set->ids_at) &&
             pace__hdf5_get_array(group, "length", H5T_STD_U32LE, &set->rows, 0, file_bytes, &set->length_at);
    } else if (ok && info->columns) {
        set->entries = set->rows * info->columns;
        ok = pace__hdf5_get_array(group, "ids", H5T_STD_U32LE, &set->rows, info->columns, file_bytes,
                                  &set->ids_at);
        if (values)
            ok = ok && pace__hdf5_get_array(group, "values", H5T_IEEE_F32LE, &set->rows, info->columns,
                                            file_bytes, &set->values_at);
    } else if (ok) {
        uint64_t starts = set->rows + 1;

        set->entries = UINT64_MAX;
        ok =
            pace__hdf5_get_array(group, "indptr", H5T_STD_U64LE, &starts, 0, file_bytes, &set->start_at) &&
            pace__hdf5_get_array(group, "indices", H5T_STD_U32LE, &set->entries, 0, file_bytes, &set->ids_at);
        if (values)
            ok = ok && pace__hdf5_get_array(group, "values", H5T_IEEE_F32LE, &set->entries, 0, file_bytes,
                                            &set->values_at);
    }
    return ok;
}

/* Data sets of earlier versions and other programs have none. */
static bool get_sums(hid_t group, const pace__store_info *info, uint64_t file_bytes, pace__part_set *set)
{
    uint64_t blocks = pace__sum_blocks(&info->encoding, set);

    if (H5Lexists(group, "sums", H5P_DEFAULT) <= 0)
        return true;
    if (!pace__hdf5_get_array(group, "sums", H5T_STD_U64LE, &blocks, 0, file_bytes, &set->sums_at))
        return false;
    set->checked = calloc(blocks / 64 + 1, sizeof *set->checked);
    return set->checked != NULL;
}

/* `before`: its rows in the parts before. */
static bool get_set(hid_t file, const char *name, const pace__store_info *info, uint64_t before,
                    uint64_t file_bytes, pace__part_set *set)
{
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);

    if (group < 0)
        return false;
    set->rows = UINT64_MAX;
    set->lead = before % pace__sum_rows(&info->encoding);
    bool values = H5Lexists(group, "values", H5P_DEFAULT) > 0;
    bool ok = values == info->has_values &&
              (pace__has_classes(&info->encoding) ? get_pictures(group, info, file_bytes, set)
                                                  : get_sparse_or_text(group, info, file_bytes, set)) &&
              get_sums(group, info, file_bytes, set);

    H5Gclose(group);
    return ok;
}

/* The index of a part's `kind` in pace__store_kinds; -1: none of them. */
static int get_kind(hid_t file)
{
    char *text = pace__hdf5_get_text(file, "kind");
    int kind = -1;

    for (int i = 0; text && i < PACE__STORE_KINDS; i++) {
        if (strcmp(text, pace__store_kinds[i]) == 0)
            kind = i;
    }
    free(text);
    return kind;
}

pace_status pace__part_read(hid_t file, uint32_t index, const uint64_t before[PACE__SETS],
                            pace__store_info *info, pace__part *part, const pace_log *log)
{
    struct stat status;
    int64_t version = 0, own_index = -1;
    int kind = get_kind(file);

    if (kind < 0 || !get_number(file, "format_version", &version))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged, or not a part of a data set", part->path);
    if (version != PACE__STORE_VERSION)
        return pace_fail(
            log, PACE_BAD_DATA,
            "%s: has format version %lld, but this paceline reads version %d: prepare the data again",
            part->path, (long long)version, PACE__STORE_VERSION);
    if (!get_info(file, info, &own_index))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: its attributes are missing or out of range",
                         part->path);
    if (own_index != index)
        return pace_fail(log, PACE_BAD_DATA, "%s: this is part %lld under another name", part->path,
                         (long long)own_index);
    char *json = pace__hdf5_get_text(file, "encoding");

    if (!json)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: attribute 'encoding' is missing", part->path);
    pace_status parsed = pace__encoding_from_json(json, part->path, &info->encoding, log);

    free(json);
    if (parsed)
        return parsed;
    if (kind != pace__store_kind(&info->encoding) || !is_sound(info))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: its attributes contradict its encoding",
                         part->path);
    if (fstat(part->fd, &status) != 0)
        return pace_fail(log, PACE_IO, "%s: %s", part->path, strerror(errno));
    part->written = status.st_mtim;
    info->has_values = kind == PACE__STORE_SPARSE && H5Lexists(file, "train/values", H5P_DEFAULT) > 0;
    for (int set = 0; set < PACE__SETS; set++) {
        if (set != PACE__TRAIN && info->rows[set] == 0)
            continue;
        if (!get_set(file, pace__set_names[set], info, before[set], (uint64_t)status.st_size,
                     &part->sets[set]))
            return pace_fail(log, PACE_BAD_DATA,
                             "%s: damaged: an array of /%s is missing, has another shape, or ends beyond the "
                             "file's %lld bytes",
                             part->path, pace__set_names[set], (long long)status.st_size);
    }
    return PACE_OK;
}

bool pace__part_was_written(const pace__part *part)
{
    struct stat status;

    return fstat(part->fd, &status) != 0 || status.st_mtim.tv_sec != part->written.tv_sec ||
           status.st_mtim.tv_nsec != part->written.tv_nsec;
}

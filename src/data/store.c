#include "data/store.h"

#include "data/store_internal.h"
#include "data/vocabulary.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool pace__is_store(const char *directory)
{
    char *path = pace__part_path(directory, 0);
    bool found = path && pace__exists(path);

    free(path);
    return found;
}

/* --- reading --- */

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

/* A fixed-length text attribute as a new string, or NULL. */
static char *get_text(hid_t object, const char *name)
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
    bool ok = get_number(file, "columns", &columns) && columns >= 0 && columns <= 1 << 20 &&
              get_number(file, "like", &like) && like >= 0 && like <= 1 &&
              get_number(file, "ids_seen", &seen) && seen >= 0 && seen < UINT32_MAX &&
              get_number(file, "row_entries_max", &longest) && longest >= 0 && longest <= 1 << 20 &&
              get_number(file, "parts", &parts) && parts >= 1 && parts <= PACE__PARTS_MAX &&
              get_number(file, "part", index) && get_number(file, "seed", &info->seed);

    for (int set = 0; ok && set < PACE__SETS; set++) {
        char name[32];

        snprintf(name, sizeof name, "%s_rows", pace__set_names[set]);
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

/* What a set of texts says twice must agree. */
static bool is_sound_text(const pace__store_info *info)
{
    const pace__encoding *encoding = &info->encoding;

    return info->columns == encoding->length && info->row_entries_max == info->columns &&
           info->ids_seen == encoding->features && info->positives[PACE__TRAIN] != UINT64_MAX &&
           info->positives[PACE__TEST] != UINT64_MAX;
}

/*
 * Looks an array up: its type must be `type`, its layout contiguous, its first size *rows (or, if *rows is
 * UINT64_MAX, anything: it is set), its second `columns`, and all of it must lie within the file.
 */
static bool get_array(hid_t parent, const char *name, hid_t type, uint64_t *rows, uint64_t columns,
                      uint64_t file_bytes, uint64_t *at)
{
    hid_t array = H5Dopen2(parent, name, H5P_DEFAULT);

    if (array < 0)
        return false;
    hid_t found = H5Dget_type(array);
    hid_t space = H5Dget_space(array);
    hid_t properties = H5Dget_create_plist(array);
    int dimensions = H5Sget_simple_extent_ndims(space);
    hsize_t sizes[2] = {0, 0};
    bool ok = H5Tequal(found, type) > 0 && H5Pget_layout(properties) == H5D_CONTIGUOUS &&
              dimensions == (columns ? 2 : 1) && H5Sget_simple_extent_dims(space, sizes, NULL) == dimensions;

    if (ok && *rows == UINT64_MAX)
        *rows = sizes[0];
    ok = ok && sizes[0] == *rows && (columns == 0 || sizes[1] == columns) && *rows < UINT64_C(1) << 48;
    if (ok && *rows > 0) {
        uint64_t bytes = H5Tget_size(type);
        haddr_t offset = H5Dget_offset(array);

        ok = !__builtin_mul_overflow(bytes, *rows, &bytes) &&
             !__builtin_mul_overflow(bytes, columns ? columns : 1, &bytes) && offset != HADDR_UNDEF &&
             offset <= file_bytes && bytes <= file_bytes - offset;
        *at = offset;
    }
    H5Pclose(properties);
    H5Sclose(space);
    H5Tclose(found);
    H5Dclose(array);
    return ok;
}

static bool get_set(hid_t file, const char *name, pace__store_info *info, uint64_t file_bytes,
                    pace__part_set *set)
{
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);

    if (group < 0)
        return false;
    set->rows = UINT64_MAX;
    bool ok = get_array(group, "label", H5T_STD_U8LE, &set->rows, 0, file_bytes, &set->label_at);
    bool values = H5Lexists(group, "values", H5P_DEFAULT) > 0;

    ok = ok && values == info->has_values;

    if (ok && pace__is_text(info)) {
        set->entries = set->rows * info->columns;
        ok = get_array(group, "tokens", H5T_STD_U32LE, &set->rows, info->columns, file_bytes, &set->ids_at) &&
             get_array(group, "length", H5T_STD_U32LE, &set->rows, 0, file_bytes, &set->length_at);
    } else if (ok && info->columns) {
        set->entries = set->rows * info->columns;
        ok = get_array(group, "ids", H5T_STD_U32LE, &set->rows, info->columns, file_bytes, &set->ids_at);
        if (values)
            ok = ok && get_array(group, "values", H5T_IEEE_F32LE, &set->rows, info->columns, file_bytes,
                                 &set->values_at);
    } else if (ok) {
        uint64_t starts = set->rows + 1;

        set->entries = UINT64_MAX;
        ok = get_array(group, "indptr", H5T_STD_U64LE, &starts, 0, file_bytes, &set->start_at) &&
             get_array(group, "indices", H5T_STD_U32LE, &set->entries, 0, file_bytes, &set->ids_at);
        if (values)
            ok = ok &&
                 get_array(group, "values", H5T_IEEE_F32LE, &set->entries, 0, file_bytes, &set->values_at);
    }
    H5Gclose(group);
    return ok;
}

static pace_status read_part(hid_t file, uint32_t index, pace__store_info *info, pace__part *part,
                             const pace_log *log)
{
    struct stat status;
    int64_t version = 0, own_index = -1;
    char *kind = get_text(file, "kind");
    bool text = kind && strcmp(kind, pace__store_kinds[1]) == 0;
    bool known = (text || (kind && strcmp(kind, pace__store_kinds[0]) == 0)) &&
                 get_number(file, "format_version", &version);

    free(kind);
    if (!known)
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
    char *json = get_text(file, "encoding");

    if (!json)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: attribute 'encoding' is missing", part->path);
    pace_status parsed = pace__encoding_from_json(json, part->path, &info->encoding, log);

    free(json);
    if (parsed)
        return parsed;
    if (text != pace__is_text(info) || (text && !is_sound_text(info)))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: its attributes contradict its encoding",
                         part->path);
    if (fstat(part->fd, &status) != 0)
        return pace_fail(log, PACE_IO, "%s: %s", part->path, strerror(errno));
    info->has_values = !text && H5Lexists(file, "train/values", H5P_DEFAULT) > 0;
    for (int set = 0; set < PACE__SETS; set++) {
        if (set == PACE__TEST && info->rows[set] == 0)
            continue;
        if (!get_set(file, pace__set_names[set], info, (uint64_t)status.st_size, &part->sets[set]))
            return pace_fail(log, PACE_BAD_DATA,
                             "%s: damaged: an array of /%s is missing, has another shape, or ends beyond the "
                             "file's %lld bytes",
                             part->path, pace__set_names[set], (long long)status.st_size);
    }
    return PACE_OK;
}

/* Opens file `index` of the checksums, and compares it with them. */
static pace_status open_checked(const pace__store *store, uint32_t index, const char *path, int *fd,
                                const pace_log *log)
{
    struct stat info;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */

    if (opened < 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    pace_status status = fstat(opened, &info) == 0 && S_ISREG(info.st_mode)
                             ? pace__checksums_verify(&store->checksums, index, opened, path, log)
                             : pace_fail(log, PACE_BAD_DATA, "%s: damaged: not a file", path);

    if (status)
        close(opened);
    else
        *fd = opened;
    return status;
}

static pace_status open_part(const pace__store *store, uint32_t index, pace__store_info *info,
                             pace__part *part, const pace_log *log)
{
    part->fd = -1;
    part->path = pace__part_path(store->path, index);
    if (!part->path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = open_checked(store, index + 1, part->path, &part->fd, log);

    if (status)
        return status;
    hid_t file = H5Fopen(part->path, H5F_ACC_RDONLY, H5P_DEFAULT);

    if (file < 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged or cut short: HDF5 cannot open it", part->path);
    status = read_part(file, index, info, part, log);
    if (!status)
        info->command = get_text(file, "command");
    H5Fclose(file);
    return status;
}

static bool same_command(const pace__store_info *one, const pace__store_info *other)
{
    return strcmp(one->command ? one->command : "", other->command ? other->command : "") == 0;
}

static bool same_encoding(const pace__encoding *one, const pace__encoding *other)
{
    return one->kind == other->kind && one->features == other->features && one->length == other->length &&
           one->truncate == other->truncate && one->pad_front == other->pad_front &&
           one->vocabulary == other->vocabulary;
}

/* All parts must tell the same story as the first, and together have the rows that it promises. */
static pace_status check_parts(const pace__store *store, const pace__store_info *others, const pace_log *log)
{
    const pace__store_info *info = &store->info;
    uint64_t rows[PACE__SETS] = {0}, entries[PACE__SETS] = {0};

    for (uint32_t i = 0; i < info->parts; i++) {
        if (others[i].parts != info->parts || others[i].ids_seen != info->ids_seen ||
            others[i].columns != info->columns || others[i].seed != info->seed ||
            !same_encoding(&others[i].encoding, &info->encoding) ||
            others[i].rows[PACE__TRAIN] != info->rows[PACE__TRAIN] ||
            others[i].rows[PACE__TEST] != info->rows[PACE__TEST] ||
            others[i].positives[PACE__TRAIN] != info->positives[PACE__TRAIN] ||
            others[i].positives[PACE__TEST] != info->positives[PACE__TEST] ||
            others[i].has_values != info->has_values || !same_command(&others[i], info))
            return pace_fail(log, PACE_BAD_DATA, "%s: belongs to another data set than %s",
                             store->parts[i].path, store->parts[0].path);
        for (int set = 0; set < PACE__SETS; set++) {
            rows[set] += store->parts[i].sets[set].rows;
            entries[set] += store->parts[i].sets[set].entries;
        }
    }
    for (int set = 0; set < PACE__SETS; set++) {
        if (rows[set] != info->rows[set] || entries[set] != info->entries[set])
            return pace_fail(log, PACE_BAD_DATA, "%s: /%s has %llu rows in its parts, but %llu were written",
                             store->path, pace__set_names[set], (unsigned long long)rows[set],
                             (unsigned long long)info->rows[set]);
    }
    return PACE_OK;
}

static pace_status open_parts(pace__store *store, const pace_log *log)
{
    pace__part first = {.fd = -1};
    pace_status status = open_part(store, 0, &store->info, &first, log);
    uint32_t parts = store->info.parts;

    if (status) {
        pace__part_close(&first);
        return status;
    }
    pace__store_info *infos = calloc(parts, sizeof *infos);

    store->parts = calloc(parts, sizeof *store->parts);
    if (!infos || !store->parts) {
        pace__part_close(&first);
        status = pace_fail(log, PACE_FAILED, "out of memory");
        goto free_infos;
    }
    store->parts[0] = first;
    infos[0] = store->info;
    for (uint32_t i = 1; i < parts; i++)
        store->parts[i].fd = -1;
    for (uint32_t i = 1; i < parts && !status; i++) {
        status = open_part(store, i, &infos[i], &store->parts[i], log);
    }
    if (!status)
        status = check_parts(store, infos, log);
    for (uint32_t i = 1; i < parts; i++)
        free(infos[i].command);
free_infos:
    free(infos);
    return status;
}

/* Opens ids.h5 and finds its array. */
static pace_status open_ids(const pace__store *store, const char *path, int *fd, uint64_t *at,
                            const pace_log *log)
{
    uint64_t count = store->info.ids_seen;
    struct stat info;
    int opened = -1;
    pace_status status = open_checked(store, 0, path, &opened, log);

    if (status)
        return status;
    pace__hdf5_silence();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    bool ok = file >= 0 && fstat(opened, &info) == 0 &&
              get_array(file, "original", H5T_STD_U64LE, &count, 0, (uint64_t)info.st_size, at);

    if (file >= 0)
        H5Fclose(file);
    if (!ok) {
        close(opened);
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: damaged, or of another data set: /original should hold %u ids", path,
                         store->info.ids_seen);
    }
    *fd = opened;
    return PACE_OK;
}

/*
 * The vocabulary, without parsing it: its checksum is that of the bytes that the set was sealed with. A set
 * that is not sealed has the file compared with its encoding.
 */
static pace_status check_vocabulary(const pace__store *store, const pace_log *log)
{
    pace__vocabulary *vocabulary = NULL;
    int fd;
    char *path = pace__format("%s/" PACE__VOCABULARY_NAME, store->path);
    pace_status status =
        path ? open_checked(store, 0, path, &fd, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        close(fd);
    if (!status && store->checksums.count == 0)
        status = pace__vocabulary_read(store->path, &store->info.encoding, log, &vocabulary);
    pace__vocabulary_free(vocabulary);
    free(path);
    return status;
}

/* A training run needs the ids only when it is done: too late to learn that they are not there. */
static pace_status check_ids(const pace__store *store, const pace_log *log)
{
    uint64_t at;
    int fd;
    char *path = pace__format("%s/ids.h5", store->path);
    pace_status status =
        path ? open_ids(store, path, &fd, &at, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        close(fd);
    free(path);
    return status;
}

pace_status pace__store_open(const char *directory, pace__store *store, const pace_log *log)
{
    struct stat info;

    pace__hdf5_silence();
    *store = (pace__store){0};
    if (stat(directory, &info) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: no such data set: %s", directory, strerror(errno));
    if (!pace__is_store(directory))
        return pace_fail(log, PACE_NO_INPUT,
                         "%s: not a data set: it has no part-00000.h5 (make one with 'paceline prep')",
                         directory);
    store->path = strdup(directory);
    if (!store->path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__checksums_read(directory, &store->checksums, log);

    if (!status)
        status = open_parts(store, log);
    if (!status && store->checksums.count > 0 && store->checksums.text != pace__is_text(&store->info))
        status = pace_fail(log, PACE_BAD_DATA, "%s/" PACE__CHECKSUMS_NAME ": damaged, or of another data set",
                           directory);
    if (!status)
        status = pace__is_text(&store->info) ? check_vocabulary(store, log) : check_ids(store, log);
    if (status)
        pace__store_close(store);
    return status;
}

void pace__store_close(pace__store *store)
{
    for (uint32_t i = 0; store->parts && i < store->info.parts; i++)
        pace__part_close(&store->parts[i]);
    free(store->parts);
    free(store->info.command);
    pace__checksums_release(&store->checksums);
    free(store->path);
    *store = (pace__store){0};
}

pace_status pace__store_read_ids(const pace__store *store, uint64_t **original, const pace_log *log)
{
    uint64_t count = store->info.ids_seen, at = 0;
    int fd = -1;

    if (pace__is_text(&store->info))
        return pace_fail(log, PACE_BAD_DATA, "%s: a data set of texts: it has words, but no feature ids",
                         store->path);
    char *path = pace__format("%s/ids.h5", store->path);
    uint64_t *ids = path ? malloc((count + 1) * sizeof *ids) : NULL;
    pace_status status =
        ids ? open_ids(store, path, &fd, &at, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__pread_all(fd, ids, count * sizeof *ids, at, path, log);
        close(fd);
    }
    for (uint64_t i = 0; i < count && !status; i++) {
        if (ids[i] >= store->info.encoding.features)
            status =
                pace_fail(log, PACE_BAD_DATA, "%s: damaged: entry %llu is %llu, beyond the %llu features",
                          path, (unsigned long long)i, (unsigned long long)ids[i],
                          (unsigned long long)store->info.encoding.features);
    }
    if (status)
        free(ids);
    else
        *original = ids;
    free(path);
    return status;
}

/* --- sealing --- */

static void add_array(pace__file_sum *sum, uint64_t at, uint64_t count, size_t width)
{
    if (at != 0)
        sum->array[sum->arrays++] = (pace__extent){at, count * width};
}

static pace_status sum_part(const pace__part *part, pace__file_sum *sum, const pace_log *log)
{
    for (int i = 0; i < PACE__SETS; i++) {
        const pace__part_set *set = &part->sets[i];

        add_array(sum, set->label_at, set->rows, sizeof(uint8_t));
        add_array(sum, set->start_at, set->rows + 1, sizeof(uint64_t));
        add_array(sum, set->ids_at, set->entries, sizeof(uint32_t));
        add_array(sum, set->values_at, set->entries, sizeof(float));
        add_array(sum, set->length_at, set->rows, sizeof(uint32_t));
    }
    return pace__checksums_add(part->fd, part->path, sum, log);
}

/* All of ids.h5 or vocabulary.txt: it is small, and nothing else tells the ids of one set from as many of
 * another. */
static pace_status sum_ids(const pace__store *store, pace__file_sum *sum, const pace_log *log)
{
    int fd = -1;
    char *path =
        pace__format("%s/%s", store->path, pace__is_text(&store->info) ? PACE__VOCABULARY_NAME : "ids.h5");
    pace_status status =
        path ? open_checked(store, 0, path, &fd, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__checksums_add(fd, path, sum, log);
        close(fd);
    }
    free(path);
    return status;
}

pace_status pace__store_seal(const char *directory, const pace_log *log)
{
    pace__store store;
    pace_status status = pace__store_open(directory, &store, log);

    if (status)
        return status;
    pace__checksums sums = {.count = store.info.parts + 1,
                            .files = calloc(store.info.parts + 1, sizeof *sums.files),
                            .text = pace__is_text(&store.info)};

    status = sums.files ? sum_ids(&store, &sums.files[0], log) : pace_fail(log, PACE_FAILED, "out of memory");
    for (uint32_t i = 0; i < store.info.parts && !status; i++)
        status = sum_part(&store.parts[i], &sums.files[i + 1], log);
    if (!status)
        status = pace__checksums_write(directory, &sums, log);
    pace__checksums_release(&sums);
    pace__store_close(&store);
    return status;
}

uint32_t pace__store_part_of(const pace__store *store, int set, uint64_t row, uint64_t *first)
{
    uint64_t start = 0;
    uint32_t part = 0;

    assert(row < store->info.rows[set]);
    while (row >= start + store->parts[part].sets[set].rows)
        start += store->parts[part++].sets[set].rows;
    *first = start;
    return part;
}

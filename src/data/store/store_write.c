/* Making the files of a data set: HDF5 lays them out, and who has the rows fills them. */
#include "data/picture/class_names.h"
#include "data/store/store_internal.h"
#include "data/store/sums.h"
#include "files/open.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger ones would only make every part longer. */
#define CLASS_NAMES_ATTRIBUTE_MAX ((uint64_t)256 << 10)

/* `stored` is the type in the file, `given` that of the value. */
static bool put_attribute(hid_t object, const char *name, hid_t stored, hid_t given, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, given, value) >= 0;

    H5Aclose(attribute);
    H5Sclose(space);
    return ok;
}

bool pace__hdf5_put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, strlen(text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    bool ok = put_attribute(object, name, type, type, text);

    H5Tclose(type);
    return ok;
}

bool pace__hdf5_put_number(hid_t object, const char *name, int64_t value)
{
    return put_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

static bool put_real(hid_t object, const char *name, double value)
{
    return put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

/* A command that names thousands of files says nothing more at its end. */
static bool put_command(hid_t object, const char *command)
{
    size_t size = strlen(command);

    if (size <= PACE__COMMAND_BYTES_MAX)
        return pace__hdf5_put_text(object, "command", command);
    for (size = PACE__COMMAND_BYTES_MAX; size > 0 && (command[size] & 0xc0) == 0x80;)
        size--; /* not within a character */
    char *cut = pace__format("%.*s ...", (int)size, command);
    bool ok = cut && pace__hdf5_put_text(object, "command", cut);

    free(cut);
    return ok;
}

/*
 * Into a file that is there, and was opened by us. It has deterministic bytes: no time stamps. The format of HDF5 1.8 has checksums on all metadata, so
 * that HDF5 notices damage instead of following it (the older one can crash the library), and takes
 * attributes above 64 KiB.
 */
static hid_t create_file(const char *path)
{
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_obj_track_times(creation, false);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    errno = 0; /* HDF5 does not always set it */
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);

    H5Pclose(access);
    H5Pclose(creation);
    return file;
}

/* Creates an array and says where its bytes lie. */
static bool put_shaped(hid_t parent, const char *name, hid_t type, int rank, const hsize_t *sizes,
                       uint64_t *at)
{
    hid_t space = H5Screate_simple(rank, sizes, NULL);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_layout(properties, H5D_CONTIGUOUS);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(properties, false);
    hid_t array = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    haddr_t offset = array >= 0 && sizes[0] > 0 ? H5Dget_offset(array) : 0;
    bool ok = array >= 0 && offset != HADDR_UNDEF;

    H5Dclose(array);
    H5Pclose(properties);
    H5Sclose(space);
    *at = offset;
    return ok;
}

static bool put_array(hid_t parent, const char *name, hid_t type, uint64_t rows, uint64_t columns,
                      uint64_t *at)
{
    return put_shaped(parent, name, type, columns ? 2 : 1, (hsize_t[]){rows, columns}, at);
}

/* Pixels have their real shape, so that other programs see pictures. */
static bool put_pictures(hid_t group, const pace__store_info *info, pace__part_set *set)
{
    const pace__encoding *encoding = &info->encoding;
    hsize_t sizes[4] = {set->rows, encoding->height, encoding->width, encoding->channels};
    bool ok = put_array(group, "label", H5T_STD_U16LE, set->rows, 0, &set->label_at) &&
              put_array(group, "source", H5T_STD_U32LE, set->rows, 0, &set->source_at);

    if (encoding->kind == PACE__IMAGE)
        return ok && put_shaped(group, "pixels", H5T_STD_U8LE, 4, sizes, &set->pixels_at);
    return ok && put_array(group, "features", H5T_IEEE_F32LE, set->rows, info->columns, &set->features_at);
}

static bool put_sparse_or_text(hid_t group, const pace__store_info *info, pace__part_set *set)
{
    bool ok = put_array(group, "label", H5T_STD_U8LE, set->rows, 0, &set->label_at);

    if (pace__is_text(info)) {
        ok = ok && put_array(group, "tokens", H5T_STD_U32LE, set->rows, info->columns, &set->ids_at) &&
             put_array(group, "length", H5T_STD_U32LE, set->rows, 0, &set->length_at);
    } else if (info->columns) {
        ok = ok && put_array(group, "ids", H5T_STD_U32LE, set->rows, info->columns, &set->ids_at);
    } else {
        ok = ok && put_array(group, "indptr", H5T_STD_U64LE, set->rows + 1, 0, &set->start_at);
        ok = ok && put_array(group, "indices", H5T_STD_U32LE, set->entries, 0, &set->ids_at);
    }
    if (info->has_values && info->columns)
        ok = ok && put_array(group, "values", H5T_IEEE_F32LE, set->rows, info->columns, &set->values_at);
    else if (info->has_values)
        ok = ok && put_array(group, "values", H5T_IEEE_F32LE, set->entries, 0, &set->values_at);
    return ok;
}

static bool put_set(hid_t file, const char *name, const pace__store_info *info, pace__part_set *set)
{
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);

    H5Pset_obj_track_times(properties, false);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, properties, H5P_DEFAULT);
    bool ok =
        group >= 0 &&
        (pace__has_classes(&info->encoding) ? put_pictures(group, info, set)
                                            : put_sparse_or_text(group, info, set)) &&
        put_array(group, "sums", H5T_STD_U64LE, pace__sum_blocks(&info->encoding, set), 0, &set->sums_at);

    H5Gclose(group);
    H5Pclose(properties);
    return ok;
}

/* A list of texts, each in the same number of bytes. */
static bool put_texts(hid_t object, const char *name, uint32_t count, size_t width, const char *texts)
{
    hsize_t size = count;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, type, texts) >= 0;

    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
    return ok;
}

/* For people and other programs: what is read again is classes.txt. */
static bool put_class_names(hid_t file, const pace__class_names *names)
{
    size_t width;
    char *texts = pace__class_names_table(names, &width);
    bool small = (uint64_t)names->count * width <= CLASS_NAMES_ATTRIBUTE_MAX;
    bool ok = texts && (!small || put_texts(file, "class_names", names->count, width, texts));

    free(texts);
    return ok;
}

static bool put_picture_attributes(hid_t file, const pace__encoding *encoding, const pace__class_names *names)
{
    return pace__hdf5_put_number(file, "height", encoding->height) &&
           pace__hdf5_put_number(file, "width", encoding->width) &&
           pace__hdf5_put_number(file, "channels", encoding->channels) &&
           pace__hdf5_put_number(file, "classes", encoding->classes) &&
           (names->count == 0 || put_class_names(file, names));
}

static bool put_attributes(hid_t file, const pace__store_info *info, uint32_t index)
{
    static const char *const beside[PACE__STORE_KINDS] = {
        [PACE__STORE_SPARSE] = "ids.h5:/original holds the original id of each id here",
        [PACE__STORE_TEXT] = "vocabulary.txt has a line for each id, from 3 on",
        [PACE__STORE_IMAGE] = "classes.txt has a line for each label, images.txt for each source, from 0 on",
        [PACE__STORE_FEATURES] =
            "classes.txt has a line for each label, images.txt for each source, from 0 on"};
    char *encoding = pace__encoding_to_json(&info->encoding);
    int kind = pace__store_kind(&info->encoding);
    bool ok = encoding && pace__hdf5_put_text(file, "kind", pace__store_kinds[kind]) &&
              pace__hdf5_put_text(file, "encoding", encoding) && put_command(file, info->command) &&
              pace__hdf5_put_number(file, "format_version", PACE__STORE_VERSION) &&
              pace__hdf5_put_number(file, "features", (int64_t)info->encoding.features) &&
              pace__hdf5_put_number(file, "columns", info->columns) &&
              pace__hdf5_put_number(file, "like", info->like) &&
              pace__hdf5_put_number(file, "ids_seen", info->ids_seen) &&
              pace__hdf5_put_number(file, "row_entries_max", info->row_entries_max) &&
              pace__hdf5_put_number(file, "part", index) &&
              pace__hdf5_put_number(file, "parts", info->parts) &&
              pace__hdf5_put_number(file, "seed", info->seed) &&
              pace__hdf5_put_text(file, "relabelling", beside[kind]);

    for (int set = 0; ok && set < PACE__SETS; set++) {
        char name[32];

        if (!pace__store_tells(info, set))
            continue;

        snprintf(name, sizeof name, "%s_rows", pace__set_names[set]);
        ok = pace__hdf5_put_number(file, name, (int64_t)info->rows[set]);
        snprintf(name, sizeof name, "%s_entries", pace__set_names[set]);
        ok = ok && pace__hdf5_put_number(file, name, (int64_t)info->entries[set]);
        snprintf(name, sizeof name, "%s_positives", pace__set_names[set]);
        if (kind != PACE__STORE_SPARSE)
            ok = ok && pace__hdf5_put_number(file, name, (int64_t)info->positives[set]);
    }
    if (ok && pace__is_text(info) && !isnan(info->positive))
        ok = put_real(file, "positive", info->positive);
    free(encoding);
    return ok;
}

/* The file with its attributes and arrays. */
static bool create_part(const pace__store_info *info, uint32_t index, const pace__class_names *names,
                        pace__part *part)
{
    bool pictures = pace__has_classes(&info->encoding);
    hid_t file = create_file(part->path);
    bool ok = file >= 0 && put_attributes(file, info, index) &&
              (!pictures || put_picture_attributes(file, &info->encoding, names)) &&
              put_set(file, "train", info, &part->sets[PACE__TRAIN]);

    for (int set = PACE__TEST; set < PACE__SETS; set++) {
        if (info->rows[set] > 0)
            ok = ok && put_set(file, pace__set_names[set], info, &part->sets[set]);
    }
    return (file < 0 || H5Fclose(file) >= 0) && ok;
}

pace_status pace__part_create(const char *directory, uint32_t index, const pace__store_info *info,
                              pace__part *part, const pace_log *log)
{
    pace__class_names names = {0};
    pace_status status = PACE_OK;

    pace__hdf5_silence();
    part->fd = -1;
    part->path = pace__part_path(directory, index);
    if (!part->path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (info->encoding.kind == PACE__IMAGE) /* features are for paceline itself */
        status = pace__class_names_read(directory, &info->encoding, log, &names);
    if (!status)
        status = pace__open(part->path, PACE__TO_CREATE, log, &part->fd); /* HDF5 writes into the same one */
    if (!status && !create_part(info, index, &names, part))
        status = pace_fail(log, PACE_IO, "%s: cannot create: %s", part->path,
                           errno ? strerror(errno) : "HDF5 error");
    pace__class_names_release(&names);
    return status;
}

pace_status pace__part_sync(pace__part *part, const pace_log *log)
{
    if (fsync(part->fd) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot sync: %s", part->path, strerror(errno));
    return PACE_OK;
}

void pace__part_close(pace__part *part)
{
    if (part->path && part->fd >= 0)
        close(part->fd);
    for (int set = 0; set < PACE__SETS; set++) {
        free(part->sets[set].checked);
        free(part->sets[set].sums);
    }
    free(part->path);
    *part = (pace__part){.fd = -1};
}

pace_status pace__ids_write(const char *directory, const uint64_t *original, uint32_t count,
                            const pace_log *log)
{
    pace__hdf5_silence();
    char *path = pace__format("%s/ids.h5", directory);

    if (!path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    uint64_t at = 0;
    int fd = -1;
    pace_status status = pace__open(path, PACE__TO_CREATE, log, &fd);
    hid_t file = status ? -1 : create_file(path);
    bool ok = file >= 0 && put_array(file, "original", H5T_STD_U64LE, count, 0, &at);

    if (file >= 0 && H5Fclose(file) < 0)
        ok = false;
    if (!status && !ok)
        status =
            pace_fail(log, PACE_IO, "%s: cannot create: %s", path, errno ? strerror(errno) : "HDF5 error");
    if (!status)
        status = pace__pwrite_all(fd, original, (size_t)count * sizeof *original, at, path, log);
    if (!status && fsync(fd) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

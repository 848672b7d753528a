#include "data/store/store.h"

#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/store/store_internal.h"
#include "data/store/sums.h"
#include "data/text/vocabulary.h"
#include "files/open.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const pace__set_names[PACE__SETS] = {"train", "test", "validation"};

char *pace__part_path(const char *directory, uint32_t index)
{
    return pace__format("%s/" PACE__PART_NAME, directory, index);
}

/* --- reading --- */

/* Opens file `index` of the checksums, and compares it with them. */
static pace_status open_checked(const pace__store *store, uint32_t index, const char *path, int *fd,
                                const pace_log *log)
{
    int opened;
    pace_status status = pace__open(path, PACE__TO_READ, log, &opened);

    if (status)
        return status;
    status = pace__checksums_verify(&store->checksums, index, opened, path, log);
    if (status)
        close(opened);
    else
        *fd = opened;
    return status;
}

/* HDF5 does not say why it cannot open a file that we have open: perhaps there is no descriptor left. */
static pace_status check_descriptors(const char *path, const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (!status)
        close(fd);
    return status;
}

/* Adds the part's rows to those of the parts before it. */
static pace_status open_part(const pace__store *store, uint32_t index, uint64_t before[PACE__SETS],
                             pace__store_info *info, pace__part *part, const pace_log *log)
{
    part->fd = -1;
    part->path = pace__part_path(store->path, index);
    if (!part->path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = open_checked(store, index + 1, part->path, &part->fd, log);

    if (status)
        return status;
    hid_t file = H5Fopen(part->path, H5F_ACC_RDONLY, H5P_DEFAULT);

    if (file < 0 && (status = check_descriptors(part->path, log)) != PACE_OK)
        return status;
    if (file < 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged or cut short: HDF5 cannot open it", part->path);
    status = pace__part_read(file, index, before, info, part, log);
    if (!status)
        info->command = pace__hdf5_get_text(file, "command");
    H5Fclose(file);
    for (int set = 0; set < PACE__SETS; set++)
        before[set] += part->sets[set].rows;
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
           one->vocabulary == other->vocabulary && one->height == other->height &&
           one->width == other->width && one->channels == other->channels && one->fit == other->fit &&
           one->classes == other->classes && one->class_names == other->class_names &&
           one->origin == other->origin;
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
            memcmp(others[i].rows, info->rows, sizeof info->rows) != 0 ||
            memcmp(others[i].positives, info->positives, sizeof info->positives) != 0 ||
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
    uint64_t before[PACE__SETS] = {0};
    pace__part first = {.fd = -1};
    pace_status status = open_part(store, 0, before, &store->info, &first, log);
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
        status = open_part(store, i, before, &infos[i], &store->parts[i], log);
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
              pace__hdf5_get_array(file, "original", H5T_STD_U64LE, &count, 0, (uint64_t)info.st_size, at);

    if (file >= 0)
        H5Fclose(file);
    if (file < 0)
        status = check_descriptors(path, log);
    if (!status && !ok)
        status =
            pace_fail(log, PACE_BAD_DATA, "%s: damaged, or of another data set: /original should hold %u ids",
                      path, store->info.ids_seen);
    if (status)
        close(opened);
    else
        *fd = opened;
    return status;
}

/*
 * The vocabulary, without parsing it: its checksum is that of the bytes that the set was sealed with. A set
 * that is not sealed has the file compared with its encoding.
 */
static pace_status check_vocabulary(const pace__store *store, const pace_log *log)
{
    pace__vocabulary *vocabulary = NULL;
    int fd = -1;
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

/* The names of the pictures, without counting them: there may be millions. */
static pace_status check_images(const pace__store *store, const pace_log *log)
{
    int fd = -1;
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, store->path);
    pace_status status = path ? open_checked(store, store->info.parts + 1, path, &fd, log)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        close(fd);
    free(path);
    return status;
}

/* Names of classes are few: they are compared with the encoding, sealed or not. */
static pace_status check_classes(const pace__store *store, const pace_log *log)
{
    pace__class_names names = {0};
    int fd = -1;
    char *path = pace__format("%s/" PACE__CLASS_NAMES_FILE, store->path);
    pace_status status =
        path ? open_checked(store, 0, path, &fd, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        close(fd);
        status = pace__class_names_read(store->path, &store->info.encoding, log, &names);
    }
    pace__class_names_release(&names);
    free(path);
    return status ? status : check_images(store, log);
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

/* PACE__BESIDE_* */
static int beside_of(const pace__store *store)
{
    if (pace__has_classes(&store->info.encoding))
        return PACE__BESIDE_CLASSES;
    return pace__is_text(&store->info) ? PACE__BESIDE_VOCABULARY : PACE__BESIDE_IDS;
}

/* What stands beside the parts. */
static pace_status check_beside(const pace__store *store, const pace_log *log)
{
    static pace_status (*const check[])(const pace__store *,
                                        const pace_log *) = {[PACE__BESIDE_IDS] = check_ids,
                                                             [PACE__BESIDE_VOCABULARY] = check_vocabulary,
                                                             [PACE__BESIDE_CLASSES] = check_classes};
    int beside = beside_of(store);

    if (store->checksums.count > 0 && store->checksums.beside != beside)
        return pace_fail(log, PACE_BAD_DATA, "%s/" PACE__CHECKSUMS_NAME ": damaged, or of another data set",
                         store->path);
    return check[beside](store, log);
}

pace_status pace__store_open(const char *directory, pace__store *store, const pace_log *log)
{
    struct stat info;

    pace__hdf5_silence();
    *store = (pace__store){0};
    if (stat(directory, &info) != 0 && errno == ENOENT)
        return pace_fail(log, PACE_NO_INPUT, "%s: no such data set: %s", directory, strerror(errno));
    if (pace__check_directory(directory, log))
        return PACE_NO_INPUT;
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
    if (!status)
        status = check_beside(store, log);
    if (status)
        pace__store_close(store);
    else
        pace__sums_keep(store);
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

bool pace__store_has_sums(const pace__store *store)
{
    bool all = true;

    for (uint32_t i = 0; i < store->info.parts; i++) {
        for (int set = 0; set < PACE__SETS; set++)
            all = all && (store->parts[i].sets[set].checked || store->parts[i].sets[set].rows == 0);
    }
    return all;
}

void pace__store_warn(const pace__store *store, const pace_log *log)
{
    if (store->checksums.count == 0)
        pace_say(log, PACE_WARN,
                 "%s: has no " PACE__CHECKSUMS_NAME
                 ": damage to its files may go unnoticed; 'paceline prep' writes one",
                 store->path);
    if (!pace__store_has_sums(store))
        pace_say(
            log, PACE_WARN,
            "%s: its rows have no checksums, as an earlier paceline or another program wrote them: damage to "
            "them may go unnoticed; prepared again, they have",
            store->path);
}

pace_status pace__store_read_ids(const pace__store *store, uint64_t **original, const pace_log *log)
{
    uint64_t count = store->info.ids_seen, at = 0;
    int fd = -1;

    if (beside_of(store) != PACE__BESIDE_IDS)
        return pace_fail(log, PACE_BAD_DATA, "%s: a data set of %s, but no feature ids", store->path,
                         pace__is_text(&store->info) ? "texts: it has words" : "pictures: it has classes");
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

static pace_status sum_part(const pace__store *store, uint32_t index, pace__file_sum *sum,
                            const pace_log *log)
{
    const pace__part *part = &store->parts[index];

    for (int i = 0; i < PACE__SETS; i++) {
        const pace__part_set *set = &part->sets[i];
        uint64_t blocks = pace__sum_blocks(&store->info.encoding, set);

        add_array(sum, set->label_at, set->rows, set->source_at ? sizeof(uint16_t) : sizeof(uint8_t));
        add_array(sum, set->start_at, set->rows + 1, sizeof(uint64_t));
        add_array(sum, set->ids_at, set->entries, sizeof(uint32_t));
        add_array(sum, set->values_at, set->entries, sizeof(float));
        add_array(sum, set->length_at, set->rows, sizeof(uint32_t));
        add_array(sum, set->source_at, set->rows, sizeof(uint32_t));
        add_array(sum, set->pixels_at, set->entries, sizeof(uint8_t));
        add_array(sum, set->features_at, set->entries, sizeof(float));
        add_array(sum, set->sums_at, blocks, sizeof(uint64_t));
    }
    return pace__checksums_add(part->fd, part->path, sum, log);
}

/* All of a file: nothing else tells the ids of one set from as many of another. */
static pace_status sum_file(const pace__store *store, uint32_t index, const char *name, pace__file_sum *sum,
                            const pace_log *log)
{
    int fd = -1;
    char *path = pace__format("%s/%s", store->path, name);
    pace_status status =
        path ? open_checked(store, index, path, &fd, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__checksums_add(fd, path, sum, log);
        close(fd);
    }
    free(path);
    return status;
}

static pace_status sum_all(const pace__store *store, pace__checksums *sums, const pace_log *log)
{
    static const char *const names[] = {[PACE__BESIDE_IDS] = "ids.h5",
                                        [PACE__BESIDE_VOCABULARY] = PACE__VOCABULARY_NAME,
                                        [PACE__BESIDE_CLASSES] = PACE__CLASS_NAMES_FILE};
    uint32_t parts = store->info.parts;
    pace_status status = sum_file(store, 0, names[sums->beside], &sums->files[0], log);

    for (uint32_t i = 0; i < parts && !status; i++)
        status = sum_part(store, i, &sums->files[i + 1], log);
    if (!status && sums->beside == PACE__BESIDE_CLASSES)
        status = sum_file(store, parts + 1, PACE__IMAGE_NAMES_FILE, &sums->files[parts + 1], log);
    return status;
}

pace_status pace__store_seal(const char *directory, const pace_log *log)
{
    pace__store store;
    pace_status status = pace__store_open(directory, &store, log);

    if (status)
        return status;
    int beside = beside_of(&store);
    uint32_t count = store.info.parts + 1 + (beside == PACE__BESIDE_CLASSES);
    pace__checksums sums = {.count = count, .files = calloc(count, sizeof *sums.files), .beside = beside};

    status = sums.files ? sum_all(&store, &sums, log) : pace_fail(log, PACE_FAILED, "out of memory");
    if (!status)
        status = pace__checksums_write(directory, &sums, log);
    pace__checksums_release(&sums);
    pace__store_close(&store);
    return status;
}

uint32_t pace__store_part_of(const pace__store *store, int group, uint64_t row, uint64_t *first)
{
    uint64_t start = 0;
    uint32_t part = 0;

    while (row >= start + store->parts[part].sets[group].rows) {
        start += store->parts[part++].sets[group].rows;
        assert(part < store->info.parts);
    }
    *first = start;
    return part;
}

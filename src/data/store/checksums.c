#include "data/store/checksums.h"

#include "base/json.h"
#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/text/vocabulary.h"
#include "files/file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define FORMAT        "paceline checksums"
#define VERSION       2
#define PIECE_BYTES   ((size_t)1 << 16)
#define FILE_NAME_MAX 24
#define INTEGER_MAX   9007199254740992.0 /* doubles are exact up to here */
#define ENDING_BYTES  (sizeof "\"checksum\":\"\"}\n" - 1 + PACE__XXH3_HEX - 1)

static const char *const beside_names[] = {[PACE__BESIDE_IDS] = "ids.h5",
                                           [PACE__BESIDE_VOCABULARY] = PACE__VOCABULARY_NAME,
                                           [PACE__BESIDE_CLASSES] = PACE__CLASS_NAMES_FILE};

/* Of `count` files. */
static bool is_part(uint32_t index, uint32_t count, int beside)
{
    return index > 0 && !(beside == PACE__BESIDE_CLASSES && index == count - 1);
}

static void name_of(uint32_t index, uint32_t count, int beside, char name[FILE_NAME_MAX])
{
    if (!is_part(index, count, beside))
        snprintf(name, FILE_NAME_MAX, "%s", index ? PACE__IMAGE_NAMES_FILE : beside_names[beside]);
    else
        snprintf(name, FILE_NAME_MAX, "part-%05" PRIu32 ".h5", index - 1);
}

static void to_hex(XXH128_hash_t hash, char hex[PACE__XXH3_HEX])
{
    snprintf(hex, PACE__XXH3_HEX, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
}

/* --- sums --- */

typedef struct summing {
    int fd;
    const char *path;
    const pace_log *log;
    XXH3_state_t *state;
    char *buffer;
} summing;

static pace_status sum_range(const summing *self, uint64_t begin, uint64_t end)
{
    while (begin < end) {
        size_t bytes = end - begin < PIECE_BYTES ? (size_t)(end - begin) : PIECE_BYTES;
        pace_status status = pace__pread_all(self->fd, self->buffer, bytes, begin, self->path, self->log);

        if (status)
            return status;
        XXH3_128bits_update(self->state, self->buffer, bytes);
        begin += bytes;
    }
    return PACE_OK;
}

static pace_status sum_around_arrays(const summing *self, const pace__file_sum *sum, char hex[PACE__XXH3_HEX])
{
    pace_status status = PACE_OK;
    uint64_t at = 0;

    XXH3_128bits_reset(self->state);
    for (unsigned i = 0; i < sum->arrays && !status; i++) {
        status = sum_range(self, at, sum->array[i].at);
        at = sum->array[i].at + sum->array[i].bytes;
    }
    if (!status)
        status = sum_range(self, at, sum->bytes);
    if (!status)
        to_hex(XXH3_128bits_digest(self->state), hex);
    return status;
}

/* The sum of the file's bytes, sum->bytes of them, around the arrays of `sum`. */
static pace_status compute(int fd, const char *path, const pace__file_sum *sum, char hex[PACE__XXH3_HEX],
                           const pace_log *log)
{
    summing self = {fd, path, log, XXH3_createState(), malloc(PIECE_BYTES)};
    pace_status status = self.state && self.buffer ? sum_around_arrays(&self, sum, hex)
                                                   : pace_fail(log, PACE_FAILED, "out of memory");

    free(self.buffer);
    XXH3_freeState(self.state);
    return status;
}

static int by_place(const void *left, const void *right)
{
    const pace__extent *a = left, *b = right;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* Arrays rise, have bytes, and lie apart from each other in the file. */
static bool is_apart(const pace__file_sum *sum)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < sum->arrays; i++) {
        const pace__extent *array = &sum->array[i];

        if (array->bytes == 0 || array->at < end || array->at > sum->bytes ||
            array->bytes > sum->bytes - array->at)
            return false;
        end = array->at + array->bytes;
    }
    return true;
}

pace_status pace__checksums_add(int fd, const char *path, pace__file_sum *sum, const pace_log *log)
{
    struct stat info;
    unsigned kept = 0;

    if (fstat(fd, &info) != 0)
        return pace_fail(log, PACE_IO, "%s: %s", path, strerror(errno));
    sum->bytes = (uint64_t)info.st_size;
    for (unsigned i = 0; i < sum->arrays; i++) {
        if (sum->array[i].bytes > 0)
            sum->array[kept++] = sum->array[i];
    }
    sum->arrays = kept;
    qsort(sum->array, kept, sizeof *sum->array, by_place);
    if (!is_apart(sum))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: arrays overlap", path);
    return compute(fd, path, sum, sum->xxh3, log);
}

/* A file that is not what it should be: says which one it is, if it is one of the set's. */
static pace_status refuse(const pace__checksums *sums, uint32_t index, uint64_t size, int fd,
                          const char *path, const pace_log *log)
{
    char hex[PACE__XXH3_HEX] = "";

    for (uint32_t other = 1; other < sums->count; other++) {
        const pace__file_sum *sum = &sums->files[other];

        if (other == index || sum->bytes != size || !is_part(other, sums->count, sums->beside))
            continue;
        pace_status status = compute(fd, path, sum, hex, log);

        if (status)
            return status;
        if (strcmp(hex, sum->xxh3) == 0)
            return pace_fail(log, PACE_BAD_DATA, "%s: this is part %" PRIu32 " under another name", path,
                             other - 1);
    }
    if (size != sums->files[index].bytes)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: damaged, or of another data set: it has %" PRIu64
                         " bytes, but " PACE__CHECKSUMS_NAME " says %" PRIu64,
                         path, size, sums->files[index].bytes);
    return pace_fail(
        log, PACE_BAD_DATA,
        "%s: damaged, or of another data set: its checksum is not the one in " PACE__CHECKSUMS_NAME, path);
}

pace_status pace__checksums_verify(const pace__checksums *sums, uint32_t index, int fd, const char *path,
                                   const pace_log *log)
{
    char hex[PACE__XXH3_HEX] = "";
    struct stat info;

    if (sums->count == 0)
        return PACE_OK;
    if (index >= sums->count)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: of another data set: " PACE__CHECKSUMS_NAME " knows only %" PRIu32 " parts",
                         path, sums->count - 1 - (sums->beside == PACE__BESIDE_CLASSES));
    if (fstat(fd, &info) != 0)
        return pace_fail(log, PACE_IO, "%s: %s", path, strerror(errno));
    const pace__file_sum *sum = &sums->files[index];
    uint64_t size = (uint64_t)info.st_size;
    pace_status status = size == sum->bytes ? compute(fd, path, sum, hex, log) : PACE_OK;

    if (!status && strcmp(hex, sum->xxh3) != 0)
        status = refuse(sums, index, size, fd, path, log);
    return status;
}

/* --- writing --- */

static void put_file(pace__json *json, const pace__checksums *sums, uint32_t index)
{
    const pace__file_sum *sum = &sums->files[index];
    char name[FILE_NAME_MAX];

    name_of(index, sums->count, sums->beside, name);
    pace__json_raw(json, index ? ",\n{\"name\":" : "\n{\"name\":");
    pace__json_string(json, name);
    pace__json_raw(json, ",\"bytes\":");
    pace__json_unsigned(json, sum->bytes);
    pace__json_raw(json, ",\"arrays\":[");
    for (unsigned i = 0; i < sum->arrays; i++) {
        pace__json_raw(json, i ? ",[" : "[");
        pace__json_unsigned(json, sum->array[i].at);
        pace__json_raw(json, ",");
        pace__json_unsigned(json, sum->array[i].bytes);
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "],\"xxh3\":");
    pace__json_string(json, sum->xxh3);
    pace__json_raw(json, "}");
}

static void put_body(pace__json *json, const pace__checksums *sums)
{
    pace__json_raw(json, "{\"format\":\"" FORMAT "\",\"version\":");
    pace__json_integer(json, VERSION);
    pace__json_raw(json, ",\"files\":[");
    for (uint32_t i = 0; i < sums->count; i++)
        put_file(json, sums, i);
    pace__json_raw(json, "],\n");
}

/* The last line, which closes the object: a checksum of everything before it. */
static void make_ending(const char *text, size_t size, char ending[ENDING_BYTES + 1])
{
    char hex[PACE__XXH3_HEX];

    to_hex(XXH3_128bits(text, size), hex);
    snprintf(ending, ENDING_BYTES + 1, "\"checksum\":\"%s\"}\n", hex);
}

pace_status pace__checksums_write(const char *directory, const pace__checksums *sums, const pace_log *log)
{
    pace__json json = {0};

    put_body(&json, sums);
    size_t size = json.size;
    char *text = malloc(size + ENDING_BYTES + 1), *path = pace__format("%s/" PACE__CHECKSUMS_NAME, directory);
    pace_status status = PACE_OK;

    if (text && path) {
        json = (pace__json){.text = text, .capacity = size};
        put_body(&json, sums);
        make_ending(text, size, text + size);
        status = pace__write_file_atomically(path, text, size + ENDING_BYTES, log);
    } else {
        status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    free(path);
    free(text);
    return status;
}

/* --- reading --- */

static bool get_integer(const cJSON *item, uint64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= INTEGER_MAX))
        return false;
    *value = (uint64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static bool get_arrays(const cJSON *list, pace__file_sum *sum)
{
    const cJSON *pair;

    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(pair, list)
    {
        if (sum->arrays == PACE__ARRAYS_MAX || !cJSON_IsArray(pair) || cJSON_GetArraySize(pair) != 2 ||
            !get_integer(pair->child, &sum->array[sum->arrays].at) ||
            !get_integer(pair->child->next, &sum->array[sum->arrays].bytes))
            return false;
        sum->arrays++;
    }
    return true;
}

/* File `index` of `count`. The first one's name says what kind of set it is. */
static bool get_file(const cJSON *object, uint32_t index, uint32_t count, int *beside, pace__file_sum *sum)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "name"));
    const char *xxh3 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "xxh3"));
    char expected[FILE_NAME_MAX];

    for (int i = PACE__BESIDE_IDS; index == 0 && name && i <= PACE__BESIDE_CLASSES; i++)
        *beside = strcmp(name, beside_names[i]) == 0 ? i : *beside;
    name_of(index, count, *beside, expected);
    if (!name || strcmp(name, expected) != 0 || !xxh3 || strlen(xxh3) != PACE__XXH3_HEX - 1 ||
        !get_integer(cJSON_GetObjectItemCaseSensitive(object, "bytes"), &sum->bytes) ||
        !get_arrays(cJSON_GetObjectItemCaseSensitive(object, "arrays"), sum))
        return false;
    memcpy(sum->xxh3, xxh3, PACE__XXH3_HEX);
    return is_apart(sum);
}

static pace_status get_files(const cJSON *list, const char *path, pace__checksums *sums, const pace_log *log)
{
    const cJSON *file;

    if (!cJSON_IsArray(list) || !list->child)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: it has no list of files", path);
    uint32_t count = (uint32_t)cJSON_GetArraySize(list);

    sums->files = calloc(count, sizeof *sums->files);
    if (!sums->files)
        return pace_fail(log, PACE_FAILED, "out of memory");
    cJSON_ArrayForEach(file, list)
    {
        if (!get_file(file, sums->count, count, &sums->beside, &sums->files[sums->count]))
            return pace_fail(log, PACE_BAD_DATA, "%s: damaged: entry %" PRIu32 " is not as it should be",
                             path, sums->count);
        sums->count++;
    }
    return PACE_OK;
}

static pace_status parse(const char *text, size_t size, const char *path, pace__checksums *sums,
                         const pace_log *log)
{
    char ending[ENDING_BYTES + 1] = "";

    if (size >= ENDING_BYTES)
        make_ending(text, size - ENDING_BYTES, ending);
    if (size < ENDING_BYTES || memcmp(text + size - ENDING_BYTES, ending, ENDING_BYTES) != 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: its own checksum is wrong", path);
    cJSON *object = cJSON_ParseWithLength(text, size);
    const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "format"));
    uint64_t version = 0;
    pace_status status;

    if (!format || strcmp(format, FORMAT) != 0 ||
        !get_integer(cJSON_GetObjectItemCaseSensitive(object, "version"), &version))
        status = pace_fail(log, PACE_BAD_DATA, "%s: not the checksums of a data set", path);
    else if (version < 1 || version > VERSION)
        status =
            pace_fail(log, PACE_BAD_DATA, "%s: has version %" PRIu64 ", but this paceline reads version %d",
                      path, version, VERSION);
    else
        status = get_files(cJSON_GetObjectItemCaseSensitive(object, "files"), path, sums, log);
    cJSON_Delete(object);
    return status;
}

static pace_status read_path(const char *path, pace__checksums *sums, const pace_log *log)
{
    struct stat info;
    char *text = NULL;
    size_t size = 0;

    if (stat(path, &info) != 0)
        return errno == ENOENT ? PACE_OK : pace_fail(log, PACE_IO, "%s: %s", path, strerror(errno));
    pace_status status = pace__read_file(path, PACE__CHECKSUMS_BYTES_MAX, &text, &size, log);

    if (status)
        return status;
    status = parse(text, size, path, sums, log);
    free(text);
    return status;
}

pace_status pace__checksums_read(const char *directory, pace__checksums *sums, const pace_log *log)
{
    char *path = pace__format("%s/" PACE__CHECKSUMS_NAME, directory);
    pace__checksums found = {0};
    pace_status status = path ? read_path(path, &found, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(path);
    if (status)
        pace__checksums_release(&found);
    *sums = found;
    return status;
}

void pace__checksums_release(pace__checksums *sums)
{
    free(sums->files);
    *sums = (pace__checksums){0};
}

static uint64_t pictures_checksum(const pace__rows *rows)
{
    uint64_t entries = (uint64_t)rows->rows * rows->columns;
    uint64_t sum = XXH3_64bits(rows->classes, rows->rows * sizeof *rows->classes);

    sum = XXH3_64bits_withSeed(rows->source, rows->rows * sizeof *rows->source, sum);
    if (rows->pixels)
        sum = XXH3_64bits_withSeed(rows->pixels, entries, sum);
    if (rows->features)
        sum = XXH3_64bits_withSeed(rows->features, entries * sizeof *rows->features, sum);
    return sum;
}

uint64_t pace__rows_checksum(const pace__rows *rows)
{
    if (rows->classes)
        return pictures_checksum(rows);
    uint64_t first = pace__row_start(rows, 0), entries = pace__row_start(rows, rows->rows) - first;
    uint64_t sum = XXH3_64bits(rows->label, rows->rows);

    sum = XXH3_64bits_withSeed(rows->ids + first, entries * sizeof *rows->ids, sum);
    if (rows->values)
        sum = XXH3_64bits_withSeed(rows->values + first, entries * sizeof *rows->values, sum);
    if (rows->length)
        sum = XXH3_64bits_withSeed(rows->length, rows->rows * sizeof *rows->length, sum);
    return sum;
}

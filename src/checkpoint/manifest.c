/*
 * The text of a manifest. A manifest has exactly one text, so that reading can end with writing it again:
 * whatever differs - an unknown member, one that stands twice, another spelling of a number - is refused.
 *
 * Reading goes from one to the next, and each may rely on those before:
 *
 *     size, seal      the bytes are those that were written; no NUL among them
 *     JSON            an object
 *     numbers         each in its range
 *     lists           as long as the numbers say; sizes that fit keys, parts and width
 *     the text again  nothing else was in it
 *
 * What was read can so be written, and what can be written was checked by whoever made it: another is a bug.
 */
#include "base/json.h"
#include "checkpoint/internal.h"
#include "files/file.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define FORMAT         "paceline checkpoint 2"
#define FORMAT_OLD     "paceline checkpoint 1" /* has an empty list of shares in the place of divisions */
#define CHECKSUM_START "  \"checksum\": \""
#define CHECKSUM_END   "\"\n}\n"
#define CHECKSUM_HEX   16u

_Static_assert(sizeof CHECKSUM_START - 1 + CHECKSUM_HEX + sizeof CHECKSUM_END - 1 ==
                   PACE__MANIFEST_TAIL_BYTES,
               "the last lines of a manifest");

/* The members that are one number each, in their order: reals are doubles, others uint64_t. */
static const struct field {
    const char *name;
    size_t offset;
    bool is_real;
    uint64_t min, max;
    bool is_late; /* 0 is not written: manifests of before do not have it, and most have nothing to say */
} fields[] = {
    {"step", offsetof(pace__manifest, position.step), false, 0, PACE__CHECKPOINT_STEP_MAX},
    {"incarnation", offsetof(pace__manifest, incarnation), false, 0, PACE__MANIFEST_INTEGER_MAX},
    {"best_logloss", offsetof(pace__manifest, position.best_logloss), true},
    {"worse", offsetof(pace__manifest, position.worse), false, 0, PACE__MANIFEST_INTEGER_MAX},
    {"best_step", offsetof(pace__manifest, position.best_step), false, 0, PACE__CHECKPOINT_STEP_MAX,
     .is_late = true},
    {"epoch_loss", offsetof(pace__manifest, position.epoch_loss), true},
    {"epoch_rows", offsetof(pace__manifest, position.epoch_rows), false, 0, PACE__MANIFEST_INTEGER_MAX},
    {"last_epoch_loss", offsetof(pace__manifest, position.last_epoch_loss), true},
    {"seconds", offsetof(pace__manifest, position.seconds), true},
    {"keys", offsetof(pace__manifest, keys), false, 1, PACE__MANIFEST_INTEGER_MAX},
};
#define FIELDS (sizeof fields / sizeof *fields)

static bool is_text(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        unsigned length = pace__utf8_length(text, left);

        if (length == 0)
            return false;
        text += length;
        left -= length;
    }
    return true;
}

void pace__manifest_release(pace__manifest *manifest)
{
    free(manifest->job);
    free(manifest->part);
    pace__divisions_release(&manifest->divisions);
    *manifest = (pace__manifest){0};
}

/* --- writing --- */

/* As hexadecimal digits, which are exact. NaNs are all the same. */
static void write_real(pace__json *json, double value)
{
    char text[40];

    if (isnan(value))
        value = NAN;
    snprintf(text, sizeof text, "\"%a\"", value);
    pace__json_raw(json, text);
}

static void write_name(pace__json *json, const char *name)
{
    pace__json_raw(json, "  \"");
    pace__json_raw(json, name);
    pace__json_raw(json, "\": ");
}

static void write_integer(pace__json *json, const char *name, uint64_t value)
{
    write_name(json, name);
    pace__json_unsigned(json, value);
    pace__json_raw(json, ",\n");
}

static void write_field(pace__json *json, const struct field *field, const void *value)
{
    if (field->is_late && *(const uint64_t *)value == 0)
        return;
    if (!field->is_real) {
        write_integer(json, field->name, *(const uint64_t *)value);
        return;
    }
    write_name(json, field->name);
    write_real(json, *(const double *)value);
    pace__json_raw(json, ",\n");
}

static void write_divisions(pace__json *json, const pace__divisions *divisions)
{
    write_name(json, "divisions");
    pace__json_raw(json, "[");
    for (size_t i = 0; i < divisions->count; i++) {
        pace__json_raw(json, i ? ",\n    {\"from\": " : "\n    {\"from\": ");
        pace__json_unsigned(json, divisions->from[i]);
        pace__json_raw(json, ", \"rows\": [");
        for (unsigned worker = 0; worker < divisions->workers; worker++) {
            pace__json_raw(json, worker ? ", " : "");
            pace__json_unsigned(json, divisions->rows[i * divisions->workers + worker]);
        }
        pace__json_raw(json, "]}");
    }
    pace__json_raw(json, "],\n");
}

static void write_lists(pace__json *json, const pace__manifest *manifest)
{
    if (manifest->is_old)
        pace__json_raw(json, "  \"shares\": [],\n");
    else
        write_divisions(json, &manifest->divisions);
    write_integer(json, "parts", manifest->parts);
    write_name(json, "files");
    pace__json_raw(json, "[");
    for (unsigned i = 0; i < manifest->parts; i++) {
        const pace__part_record *record = &manifest->part[i];

        pace__json_raw(json, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        pace__json_string(json, record->name);
        pace__json_raw(json, ", \"bytes\": ");
        pace__json_unsigned(json, record->bytes);
        pace__json_raw(json, ", \"sha256\": ");
        pace__json_string(json, record->sha256);
        pace__json_raw(json, "}");
    }
    pace__json_raw(json, "],\n");
}

/* All but the last lines. */
static void write_body(pace__json *json, const pace__manifest *manifest)
{
    pace__json_raw(json, manifest->is_old ? "{\n  \"format\": \"" FORMAT_OLD "\",\n"
                                          : "{\n  \"format\": \"" FORMAT "\",\n");
    for (size_t i = 0; i < FIELDS; i++)
        write_field(json, &fields[i], (const char *)manifest + fields[i].offset);
    write_integer(json, "width", manifest->width);
    write_name(json, "job");
    pace__json_string(json, manifest->job);
    pace__json_raw(json, ",\n");
    write_lists(json, manifest);
}

void pace__manifest_seal(const char *text, size_t size, char tail[PACE__MANIFEST_TAIL_BYTES])
{
    char lines[PACE__MANIFEST_TAIL_BYTES + 1];

    snprintf(lines, sizeof lines, CHECKSUM_START "%016" PRIx64 CHECKSUM_END,
             (uint64_t)XXH3_64bits(text, size));
    memcpy(tail, lines, PACE__MANIFEST_TAIL_BYTES);
}

static void assert_writable(const pace__manifest *manifest)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const void *value = (const char *)manifest + fields[i].offset;

        assert(fields[i].is_real ||
               (*(const uint64_t *)value >= fields[i].min && *(const uint64_t *)value <= fields[i].max));
    }
    assert(manifest->width > 0 && manifest->width <= PACE__CHECKPOINT_WIDTH_MAX);
    assert(manifest->parts > 0 && manifest->parts <= PACE__CHECKPOINT_PARTS_MAX);
    assert(manifest->part && manifest->divisions.count <= PACE__DIVISIONS_SAVED);
    assert(!manifest->is_old || manifest->divisions.count == 0);
    assert(manifest->position.best_step <= manifest->position.step);
    assert(manifest->job && strlen(manifest->job) <= PACE__CHECKPOINT_JOB_MAX && is_text(manifest->job));
}

char *pace__manifest_text(const pace__manifest *manifest, size_t *size)
{
    pace__json json = {0};

    assert_writable(manifest);
    write_body(&json, manifest);
    size_t body = json.size;

    assert(body + PACE__MANIFEST_TAIL_BYTES <= PACE__MANIFEST_BYTES_MAX);
    char *text = malloc(body + PACE__MANIFEST_TAIL_BYTES);

    if (!text)
        return NULL;
    json = (pace__json){.text = text, .capacity = body};
    write_body(&json, manifest);
    assert(json.size == body); /* the same again */
    pace__manifest_seal(text, body, text + body);
    *size = body + PACE__MANIFEST_TAIL_BYTES;
    return text;
}

/* --- reading --- */

typedef struct source {
    const char *name;
    const pace_log *log;
} source;

static pace_status damaged(const source *from, const char *what)
{
    return pace_fail(from->log, PACE_BAD_DATA, "%s: damaged: %s", from->name, what);
}

static pace_status check_size(const source *from, uint64_t bytes)
{
    if (bytes <= PACE__MANIFEST_BYTES_MAX)
        return PACE_OK;
    return pace_fail(from->log, PACE_BAD_DATA, "%s: damaged: %" PRIu64 " bytes, more than the limit of %zu",
                     from->name, bytes, PACE__MANIFEST_BYTES_MAX);
}

/* What stands before the last lines is what was written. */
static pace_status check_seal(const source *from, const char *text, size_t size)
{
    char expected[PACE__MANIFEST_TAIL_BYTES];

    assert(size <= PACE__MANIFEST_BYTES_MAX);
    if (size < PACE__MANIFEST_TAIL_BYTES)
        return damaged(from, "it does not end with its checksum: cut short");
    const char *tail = text + size - PACE__MANIFEST_TAIL_BYTES;
    size_t start = sizeof CHECKSUM_START - 1, end = start + CHECKSUM_HEX;

    pace__manifest_seal(text, size - PACE__MANIFEST_TAIL_BYTES, expected);
    if (memcmp(tail, expected, start) != 0 ||
        memcmp(tail + end, expected + end, sizeof CHECKSUM_END - 1) != 0)
        return damaged(from, "it does not end with its checksum: cut short, or something was appended");
    if (memcmp(tail, expected, sizeof expected) != 0)
        return damaged(from, "its text does not have the checksum that it ends with");
    if (memchr(text, '\0', size))
        return damaged(from, "not a text");
    return PACE_OK;
}

/* cJSON reads too far in some texts that have no NUL behind them. */
static pace_status parse_json(const source *from, const char *text, size_t size, cJSON **root)
{
    char *copy = malloc(size + 1);

    if (!copy)
        return pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->name);
    memcpy(copy, text, size);
    copy[size] = '\0';
    *root = cJSON_ParseWithLength(copy, size + 1);
    free(copy);
    if (cJSON_IsObject(*root))
        return PACE_OK;
    cJSON_Delete(*root);
    return damaged(from, "not a JSON object");
}

static bool read_integer(const cJSON *item, uint64_t min, uint64_t max, uint64_t *value)
{
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;

    if (!(number >= (double)min && number <= (double)max) || number != floor(number))
        return false;
    *value = (uint64_t)number;
    return true;
}

static bool read_real(const cJSON *item, double *value)
{
    const char *text = cJSON_GetStringValue(item);
    char *end;

    if (!text || !*text)
        return false;
    *value = strtod(text, &end);
    return !*end;
}

static pace_status get_integer(const source *from, const cJSON *root, const char *name, uint64_t min,
                               uint64_t max, uint64_t *value)
{
    if (read_integer(cJSON_GetObjectItemCaseSensitive(root, name), min, max, value))
        return PACE_OK;
    return pace_fail(from->log, PACE_BAD_DATA,
                     "%s: damaged: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64, from->name,
                     name, min, max);
}

static pace_status get_field(const source *from, const cJSON *root, const struct field *field, void *value)
{
    if (field->is_late && !cJSON_HasObjectItem(root, field->name))
        return PACE_OK;
    if (!field->is_real)
        return get_integer(from, root, field->name, field->min, field->max, value);
    if (read_real(cJSON_GetObjectItemCaseSensitive(root, field->name), value))
        return PACE_OK;
    return pace_fail(from->log, PACE_BAD_DATA, "%s: damaged: \"%s\" is not a number as a text", from->name,
                     field->name);
}

static pace_status get_numbers(const source *from, const cJSON *root, pace__manifest *manifest)
{
    const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "format"));
    uint64_t width = 0, parts = 0;
    pace_status status = PACE_OK;

    manifest->is_old = format && strcmp(format, FORMAT_OLD) == 0;
    if (!format || (!manifest->is_old && strcmp(format, FORMAT) != 0))
        return pace_fail(from->log, PACE_BAD_DATA,
                         "%s: its format is neither \"" FORMAT "\" nor \"" FORMAT_OLD
                         "\": not written by this version or one before",
                         from->name);
    for (size_t i = 0; i < FIELDS && !status; i++)
        status = get_field(from, root, &fields[i], (char *)manifest + fields[i].offset);
    if (!status && manifest->position.best_step > manifest->position.step)
        status = damaged(from, "its best step is still to come");
    if (!status)
        status = get_integer(from, root, "width", 1, PACE__CHECKPOINT_WIDTH_MAX, &width);
    if (!status)
        status = get_integer(from, root, "parts", 1, PACE__CHECKPOINT_PARTS_MAX, &parts);
    manifest->width = (unsigned)width;
    manifest->parts = (unsigned)parts;
    return status;
}

static pace_status get_job(const source *from, const cJSON *root, pace__manifest *manifest)
{
    const char *job = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "job"));

    if (!job || strlen(job) > PACE__CHECKPOINT_JOB_MAX || !is_text(job))
        return damaged(from, "\"job\" is not a text, or too long");
    manifest->job = strdup(job);
    return manifest->job ? PACE_OK : pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->name);
}

/* One more of a list whose steps rise, all of as many workers as the first. */
static bool read_division(const cJSON *item, uint32_t *rows, pace__divisions *divisions)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(item, "rows"), *number;
    int workers = cJSON_GetArraySize(list);
    uint64_t from, value;
    unsigned worker = 0;

    if (!read_integer(cJSON_GetObjectItemCaseSensitive(item, "from"), 0, PACE__CHECKPOINT_STEP_MAX, &from) ||
        !cJSON_IsArray(list) || workers < 1 || workers > PACE__SHARES_MAX)
        return false;
    if (divisions->count > 0 &&
        (divisions->workers != (unsigned)workers || divisions->from[divisions->count - 1] >= from))
        return false;
    cJSON_ArrayForEach(number, list)
    {
        if (!read_integer(number, 0, UINT32_MAX, &value))
            return false;
        rows[worker++] = (uint32_t)value;
    }
    return pace__division_batch(rows, (unsigned)workers) > 0 &&
           pace__divisions_add(divisions, from, (unsigned)workers, rows);
}

static pace_status get_divisions(const source *from, const cJSON *root, pace__manifest *manifest)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, manifest->is_old ? "shares" : "divisions"),
                *item;
    uint32_t rows[PACE__SHARES_MAX];

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > (manifest->is_old ? 0 : PACE__DIVISIONS_SAVED))
        return damaged(from, "how steps are divided among workers is not a list, or too long");
    cJSON_ArrayForEach(item, list)
    {
        if (!read_division(item, rows, &manifest->divisions))
            return damaged(from, "one of its divisions is not a step behind the one before and the rows of "
                                 "each worker");
    }
    return PACE_OK;
}

static bool is_sha256(const char *text)
{
    return strlen(text) == PACE__SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == PACE__SHA256_HEX - 1;
}

/* NULL, or what is wrong with it. */
static const char *read_record(const cJSON *item, unsigned part, const pace__manifest *manifest,
                               pace__part_record *record)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
    const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(item, "bytes");
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "sha256"));
    uint64_t places = pace__part_places(manifest->keys, part, manifest->parts);

    /* The only name that it can have: what is read never depends on a path in a file. */
    pace__part_name(part, manifest->parts, record->name);
    if (!name || strcmp(name, record->name) != 0)
        return "it has another name";
    if (!read_integer(bytes, 0, PACE__MANIFEST_INTEGER_MAX, &record->bytes) ||
        !pace__part_bytes_fit(record->bytes, places, manifest->width))
        return "its size does not fit its keys";
    if (!sha256 || !is_sha256(sha256))
        return "it has no SHA-256";
    memcpy(record->sha256, sha256, sizeof record->sha256);
    return NULL;
}

static pace_status get_files(const source *from, const cJSON *root, pace__manifest *manifest)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "files"), *item;
    unsigned part = 0;

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)manifest->parts)
        return pace_fail(from->log, PACE_BAD_DATA, "%s: damaged: \"files\" is not a list of its %u parts",
                         from->name, manifest->parts);
    manifest->part = calloc(manifest->parts, sizeof *manifest->part);
    if (!manifest->part)
        return pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->name);
    cJSON_ArrayForEach(item, list)
    {
        assert(part < manifest->parts);
        pace__part_record *record = &manifest->part[part];
        const char *wrong = read_record(item, part++, manifest, record);

        if (wrong)
            return pace_fail(from->log, PACE_BAD_DATA, "%s: damaged: its entry for %s: %s", from->name,
                             record->name, wrong);
    }
    return PACE_OK;
}

/* Everything that was not asked for is found here. */
static pace_status check_text(const source *from, const char *text, size_t size,
                              const pace__manifest *manifest)
{
    size_t again_size = 0;
    char *again = pace__manifest_text(manifest, &again_size);

    if (!again)
        return pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->name);
    bool same = again_size == size && memcmp(again, text, size) == 0;

    free(again);
    return same ? PACE_OK : damaged(from, "it has members or spellings that a manifest does not have");
}

static pace_status get_all(const source *from, const char *text, size_t size, pace__manifest *manifest)
{
    cJSON *root = NULL;
    pace_status status = parse_json(from, text, size, &root);

    if (status)
        return status;
    status = get_numbers(from, root, manifest);
    if (!status)
        status = get_job(from, root, manifest);
    if (!status)
        status = get_divisions(from, root, manifest);
    if (!status)
        status = get_files(from, root, manifest);
    cJSON_Delete(root);
    return status ? status : check_text(from, text, size, manifest);
}

pace_status pace__manifest_parse(const char *text, size_t size, const char *name, const pace_log *log,
                                 pace__manifest *manifest)
{
    source from = {name, log};
    pace_status status = check_size(&from, size);

    *manifest = (pace__manifest){0};
    if (!status)
        status = check_seal(&from, text, size);
    if (!status)
        status = get_all(&from, text, size, manifest);
    if (status)
        pace__manifest_release(manifest);
    return status;
}

static pace_status read_text(const char *path, const pace_log *log, char **text, size_t *size)
{
    uint64_t bytes = 0;
    int fd = -1;
    pace_status status = pace__checkpoint_open(path, log, &fd, &bytes);

    if (status)
        return status;
    char *buffer = NULL;

    status = check_size(&(source){path, log}, bytes);
    if (!status) {
        buffer = malloc((size_t)bytes + 1);
        status = buffer ? pace__pread_all(fd, buffer, (size_t)bytes, 0, path, log)
                        : pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    }
    close(fd);
    if (status) {
        free(buffer);
        return status;
    }
    *text = buffer;
    *size = (size_t)bytes;
    return PACE_OK;
}

pace_status pace__manifest_read(const char *directory, const pace_log *log, pace__manifest *manifest)
{
    char *path = pace__format("%s/" PACE__MANIFEST_NAME, directory), *text = NULL;
    size_t size = 0;

    *manifest = (pace__manifest){0};
    pace_status status =
        path ? read_text(path, log, &text, &size) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__manifest_parse(text, size, path, log, manifest);
        free(text);
    }
    free(path);
    return status;
}

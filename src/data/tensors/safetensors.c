#include "data/tensors/safetensors.h"

#include "base/json.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie in memory");

#define LENGTH_BYTES 8u
#define DATA_ALIGN   8u
/* Offsets pass through doubles: beyond this, two of them could look the same. */
#define INTEGER_MAX ((UINT64_C(1) << 53) - 1)
/* {"name": {"shape": [1]}} is as deep as a header goes. */
#define DEPTH_MAX 3u
#define METADATA  "__metadata__"

static const struct {
    const char *name;
    uint8_t bytes;
} dtypes[PACE__DTYPES] = {
    [PACE__BOOL] = {"BOOL", 1}, [PACE__U8] = {"U8", 1},   [PACE__I8] = {"I8", 1},
    [PACE__U16] = {"U16", 2},   [PACE__I16] = {"I16", 2}, [PACE__F16] = {"F16", 2},
    [PACE__BF16] = {"BF16", 2}, [PACE__U32] = {"U32", 4}, [PACE__I32] = {"I32", 4},
    [PACE__F32] = {"F32", 4},   [PACE__U64] = {"U64", 8}, [PACE__I64] = {"I64", 8},
    [PACE__F64] = {"F64", 8},
};

const char *pace__dtype_name(pace__dtype dtype)
{
    return dtypes[dtype].name;
}

size_t pace__dtype_bytes(pace__dtype dtype)
{
    return dtypes[dtype].bytes;
}

/* False if the product is above INTEGER_MAX. */
static bool multiply(uint64_t *product, uint64_t factor)
{
    return !__builtin_mul_overflow(*product, factor, product) && *product <= INTEGER_MAX;
}

static bool shape_elements(const uint64_t *shape, unsigned rank, uint64_t *elements)
{
    *elements = 1;
    for (unsigned i = 0; i < rank; i++) {
        if (!multiply(elements, shape[i]))
            return false;
    }
    return true;
}

/* Text without control characters, so that it can stand in a one-line message. */
static bool is_plain(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        unsigned length = pace__utf8_length(text, left);

        if (length == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
        text += length;
        left -= length;
    }
    return true;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorts the texts; one that occurs twice, or NULL. */
static const char *find_repeated(const char **texts, size_t count)
{
    qsort(texts, count, sizeof *texts, compare_texts);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(texts[i - 1], texts[i]) == 0)
            return texts[i];
    }
    return NULL;
}

/* Writing ------------------------------------------------------------------------------------------------ */

static uint64_t tensor_bytes(const pace__tensor *tensor)
{
    uint64_t bytes;
    bool fits = tensor->rank <= PACE__TENSOR_RANK_MAX &&
                shape_elements(tensor->shape, tensor->rank, &bytes) &&
                multiply(&bytes, dtypes[tensor->dtype].bytes);

    assert(fits);
    (void)fits;
    return bytes;
}

/* Names come from our own code: a wrong one is a bug. False when out of memory. */
static bool check_names(const pace__tensor *tensors, size_t count)
{
    assert(count <= PACE__TENSORS_MAX);
    const char **names = malloc((count + 1) * sizeof *names);

    if (!names)
        return false;
    for (size_t i = 0; i < count; i++) {
        names[i] = tensors[i].name;
        assert(is_plain(names[i]) && strlen(names[i]) <= PACE__TENSOR_NAME_MAX);
        assert(strcmp(names[i], METADATA) != 0);
    }
    const char *repeated = find_repeated(names, count);

    assert(!repeated);
    (void)repeated;
    free(names);
    return true;
}

static void write_metadata(pace__json *json, const pace__text_pair *metadata, size_t count)
{
    pace__json_raw(json, "\"" METADATA "\":{");
    for (size_t i = 0; i < count; i++) {
        pace__json_raw(json, i ? "," : "");
        pace__json_string(json, metadata[i].key);
        pace__json_raw(json, ":");
        pace__json_string(json, metadata[i].value);
    }
    pace__json_raw(json, "}");
}

static void write_entry(pace__json *json, const pace__tensor *tensor, uint64_t begin)
{
    pace__json_string(json, tensor->name);
    pace__json_raw(json, ":{\"dtype\":");
    pace__json_string(json, dtypes[tensor->dtype].name);
    pace__json_raw(json, ",\"shape\":[");
    for (unsigned i = 0; i < tensor->rank; i++) {
        pace__json_raw(json, i ? "," : "");
        pace__json_unsigned(json, tensor->shape[i]);
    }
    pace__json_raw(json, "],\"data_offsets\":[");
    pace__json_unsigned(json, begin);
    pace__json_raw(json, ",");
    pace__json_unsigned(json, begin + tensor_bytes(tensor));
    pace__json_raw(json, "]}");
}

static void write_header(pace__json *json, const pace__tensor *tensors, size_t count,
                         const pace__text_pair *metadata, size_t metadata_count)
{
    uint64_t begin = 0;

    pace__json_raw(json, "{");
    if (metadata_count > 0)
        write_metadata(json, metadata, metadata_count);
    for (size_t i = 0; i < count; i++) {
        pace__json_raw(json, i || metadata_count ? "," : "");
        write_entry(json, &tensors[i], begin);
        begin += tensor_bytes(&tensors[i]);
    }
    pace__json_raw(json, "}");
    while (json->size % DATA_ALIGN)
        pace__json_raw(json, " ");
}

/* Length and header, to be freed by the caller; NULL when out of memory. */
static char *make_header(const pace__tensor *tensors, size_t count, const pace__text_pair *metadata,
                         size_t metadata_count, size_t *size)
{
    pace__json json = {0};

    write_header(&json, tensors, count, metadata, metadata_count);
    assert(json.size <= PACE__SAFETENSORS_HEADER_MAX);
    char *bytes = malloc(LENGTH_BYTES + json.size);

    if (!bytes)
        return NULL;
    uint64_t length = json.size;

    memcpy(bytes, &length, LENGTH_BYTES);
    json = (pace__json){.text = bytes + LENGTH_BYTES, .capacity = length};
    write_header(&json, tensors, count, metadata, metadata_count);
    *size = LENGTH_BYTES + length;
    return bytes;
}

typedef struct output {
    int fd;
    const char *path;
    pace__sha256 *sha;
    char *buffer; /* PACE__TENSOR_PIECE_BYTES */
    const pace_log *log;
} output;

static pace_status put(output *out, const void *bytes, size_t size)
{
    pace__sha256_update(out->sha, bytes, size);
    return pace__write_all(out->fd, bytes, size, out->path, out->log);
}

/* In pieces even from memory, so that the checksum finds in the cache what was just written. */
static pace_status put_tensor(output *out, const pace__tensor *tensor)
{
    uint64_t bytes = tensor_bytes(tensor);
    pace_status status = PACE_OK;

    assert(bytes == 0 || !tensor->data != !tensor->fill);
    for (uint64_t at = 0; at < bytes && !status;) {
        uint64_t left = bytes - at;
        size_t piece = left < PACE__TENSOR_PIECE_BYTES ? (size_t)left : PACE__TENSOR_PIECE_BYTES;
        const void *source = out->buffer;

        if (tensor->data)
            source = (const char *)tensor->data + at;
        else
            status = tensor->fill(tensor->user, at, out->buffer, piece);
        if (!status)
            status = put(out, source, piece);
        at += piece;
    }
    return status;
}

static pace_status put_all(output *out, const char *header, size_t header_size, const pace__tensor *tensors,
                           size_t count)
{
    pace_status status = put(out, header, header_size);

    for (size_t i = 0; i < count && !status; i++)
        status = put_tensor(out, &tensors[i]);
    return status;
}

pace_status pace__safetensors_write(const char *path, const pace__tensor *tensors, size_t count,
                                    const pace__text_pair *metadata, size_t metadata_count,
                                    char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    size_t header_size = 0;
    pace__new_file file;
    pace_status status;

    if (!check_names(tensors, count))
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    char *header = make_header(tensors, count, metadata, metadata_count, &header_size);
    output out = {
        .path = path, .sha = pace__sha256_create(), .buffer = malloc(PACE__TENSOR_PIECE_BYTES), .log = log};

    if (!header || !out.sha || !out.buffer)
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    else
        status = pace__new_file_begin(path, log, &file);
    if (!status) {
        out.fd = file.fd;
        status = pace__new_file_end(&file, put_all(&out, header, header_size, tensors, count));
    }
    pace__sha256_finish(out.sha, status ? NULL : sha256);
    free(out.buffer);
    free(header);
    return status;
}

/* Reading ------------------------------------------------------------------------------------------------ */

struct pace__safetensors {
    char *path;
    int fd; /* -1: from memory */
    const char *memory;
    uint64_t data_start;   /* of the data part in the file */
    cJSON *header;         /* owns the names and the metadata */
    const cJSON *metadata; /* NULL: none */
    size_t count;
    pace__tensor_info *tensors;        /* by place */
    const pace__tensor_info **by_name; /* the same, sorted by name */
};

/* What a complaint about contents needs. */
typedef struct source {
    const char *path;
    const pace_log *log;
} source;

/* Names are checked to be short and plain before they are put into a message. */
static pace_status bad_tensor(const source *from, const char *name, const char *what)
{
    return pace_fail(from->log, PACE_BAD_DATA, "%s: tensor \"%.128s\": %s", from->path, name, what);
}

static pace_status bad_byte(const source *from, size_t place, const char *what)
{
    return pace_fail(from->log, PACE_BAD_DATA, "%s: byte %zu: %s", from->path, LENGTH_BYTES + place, what);
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

typedef struct scanner {
    bool in_string, in_array;
    unsigned depth, array_items;
} scanner;

/* NULL, or what is wrong with a character inside a string. An escaped character is skipped by moving *at. */
static const char *scan_in_string(scanner *scan, const char *text, size_t length, size_t *at)
{
    char character = text[*at];

    if (character == '"')
        scan->in_string = false;
    if ((unsigned char)character < 0x20)
        return "control character in a text";
    if (character == '\\') {
        /* The text behind the parser is C strings: a NUL would make two names one. */
        if (length - *at >= 6 && memcmp(text + *at + 1, "u0000", 5) == 0)
            return "NUL character in a text";
        ++*at;
    }
    return NULL;
}

static const char *scan_outside(scanner *scan, const char *text, size_t length, size_t at)
{
    char character = text[at];

    switch (character) {
    case '"':
        scan->in_string = true;
        return NULL;
    case '[':
        scan->in_array = true;
        scan->array_items = 1;
        return ++scan->depth > DEPTH_MAX ? "nested too deep" : NULL;
    case '{':
        return ++scan->depth > DEPTH_MAX ? "nested too deep" : NULL;
    case ']':
        scan->in_array = false;
        return scan->depth-- == 0 ? "closing bracket without an opening one" : NULL;
    case '}':
        return scan->depth-- == 0 ? "closing bracket without an opening one" : NULL;
    case ',':
        return scan->in_array && ++scan->array_items > PACE__TENSOR_RANK_MAX ? "list of more than 8 numbers"
                                                                             : NULL;
    case '0':
        return (at == 0 || !is_digit(text[at - 1])) && at + 1 < length && is_digit(text[at + 1])
                   ? "number with a leading zero"
                   : NULL;
    default:
        return is_digit(character) || character == ':' || character == ' ' || character == '\n' ||
                       character == '\t' || character == '\r'
                   ? NULL
                   : "unexpected character in the header";
    }
}

/*
 * Refuses what cJSON would let through, or would spend much memory on, before it sees the header: only texts,
 * whole numbers, lists and objects as deep as a header goes.
 */
static pace_status scan_header(const source *from, const char *text, size_t length)
{
    scanner scan = {0};

    if (length == 0 || text[0] != '{')
        return bad_byte(from, 0, "the header does not start with '{': not a safetensors file");
    for (size_t at = 0; at < length; at++) {
        size_t here = at;
        const char *wrong =
            scan.in_string ? scan_in_string(&scan, text, length, &at) : scan_outside(&scan, text, length, at);

        if (wrong)
            return bad_byte(from, here, wrong);
    }
    for (size_t at = 0, character; at < length; at += character) {
        character = pace__utf8_length(text + at, length - at);
        if (character == 0)
            return bad_byte(from, at, "the header is not UTF-8");
    }
    return PACE_OK;
}

/* `text` has a NUL behind it. */
static pace_status parse_header(const source *from, const char *text, size_t length, cJSON **header)
{
    const char *end = NULL;
    pace_status status = scan_header(from, text, length);

    if (status)
        return status;
    cJSON *parsed = cJSON_ParseWithLengthOpts(text, length + 1, &end, false);

    if (!parsed)
        return bad_byte(from, end ? (size_t)(end - text) : 0, "the header is not valid JSON");
    end += strspn(end, " \t\r\n");
    if (end != text + length) {
        cJSON_Delete(parsed);
        return bad_byte(from, (size_t)(end - text), "text behind the header's JSON");
    }
    *header = parsed;
    return PACE_OK;
}

/* Keys of an object are distinct, and at most `count_max`. `what` they are called: "tensors". */
static pace_status check_keys(const source *from, const cJSON *object, size_t count_max, const char *what)
{
    size_t count = (size_t)cJSON_GetArraySize(object), at = 0;
    const cJSON *child;

    if (count > count_max)
        return pace_fail(from->log, PACE_BAD_DATA, "%s: %zu %s, more than the limit of %zu", from->path,
                         count, what, count_max);
    const char **keys = malloc((count + 1) * sizeof *keys);

    if (!keys)
        return pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->path);
    cJSON_ArrayForEach(child, object) keys[at++] = child->string;
    const char *repeated = find_repeated(keys, count);

    free(keys);
    if (!repeated)
        return PACE_OK;
    return pace_fail(from->log, PACE_BAD_DATA, "%s: two %s are named \"%.128s\"", from->path, what,
                     is_plain(repeated) ? repeated : "(unprintable)");
}

static pace_status check_metadata(const source *from, const cJSON *metadata)
{
    const cJSON *pair;

    if (!cJSON_IsObject(metadata))
        return pace_fail(from->log, PACE_BAD_DATA, "%s: " METADATA " is not an object", from->path);
    cJSON_ArrayForEach(pair, metadata)
    {
        if (!cJSON_IsString(pair))
            return pace_fail(from->log, PACE_BAD_DATA, "%s: a value of " METADATA " is not a text",
                             from->path);
    }
    return check_keys(from, metadata, PACE__TENSOR_METADATA_MAX, "metadata entries");
}

/* The scan has seen to it that numbers are whole and not negative. */
static bool get_integer(const cJSON *item, uint64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble <= (double)INTEGER_MAX))
        return false;
    *value = (uint64_t)item->valuedouble;
    return true;
}

static bool get_dtype(const cJSON *item, pace__dtype *dtype)
{
    for (int i = 0; cJSON_IsString(item) && i < PACE__DTYPES; i++) {
        if (strcmp(item->valuestring, dtypes[i].name) == 0) {
            *dtype = (pace__dtype)i;
            return true;
        }
    }
    return false;
}

/* NULL, or what is wrong. */
static const char *parse_shape(const cJSON *shape, pace__tensor_info *tensor)
{
    const cJSON *size;

    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > PACE__TENSOR_RANK_MAX)
        return "its shape is not a list of at most 8 sizes";
    cJSON_ArrayForEach(size, shape)
    {
        if (!get_integer(size, &tensor->shape[tensor->rank++]))
            return "a size in its shape is not an integer below 2^53";
    }
    tensor->bytes = dtypes[tensor->dtype].bytes;
    if (!shape_elements(tensor->shape, tensor->rank, &tensor->elements) ||
        !multiply(&tensor->bytes, tensor->elements))
        return "its shape has more than 2^53 bytes";
    return NULL;
}

static const char *parse_offsets(const cJSON *offsets, pace__tensor_info *tensor)
{
    uint64_t end;

    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2)
        return "its data_offsets are not a list of two";
    if (!get_integer(offsets->child, &tensor->begin) || !get_integer(offsets->child->next, &end))
        return "one of its data_offsets is not an integer below 2^53";
    if (end < tensor->begin || end - tensor->begin != tensor->bytes)
        return "its data_offsets do not span what dtype and shape ask for";
    return NULL;
}

static pace_status parse_entry(const source *from, const cJSON *entry, pace__tensor_info *tensor)
{
    const char *name = entry->string, *wrong;

    if (strlen(name) > PACE__TENSOR_NAME_MAX || !is_plain(name))
        return pace_fail(from->log, PACE_BAD_DATA,
                         "%s: a tensor's name has control characters or more than %d bytes", from->path,
                         PACE__TENSOR_NAME_MAX);
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(entry, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");

    if (!cJSON_IsObject(entry) || !dtype || !shape || !offsets || cJSON_GetArraySize(entry) != 3)
        return bad_tensor(from, name, "its entry is not dtype, shape and data_offsets, each once");
    *tensor = (pace__tensor_info){.name = name};
    if (!get_dtype(dtype, &tensor->dtype))
        return bad_tensor(from, name, "its dtype is not a known one");
    wrong = parse_shape(shape, tensor);
    if (!wrong)
        wrong = parse_offsets(offsets, tensor);
    return wrong ? bad_tensor(from, name, wrong) : PACE_OK;
}

static int compare_places(const void *left, const void *right)
{
    const pace__tensor_info *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp((*(const pace__tensor_info *const *)left)->name,
                  (*(const pace__tensor_info *const *)right)->name);
}

/*
 * The tensors, sorted by place, fill the data part from its first byte to its last, without gap or overlap.
 */
static pace_status check_places(const source *from, const pace__safetensors *file, uint64_t data_bytes)
{
    uint64_t end = 0;

    for (size_t i = 0; i < file->count; i++) {
        const pace__tensor_info *tensor = &file->tensors[i];

        if (tensor->begin < end)
            return bad_tensor(from, tensor->name, "its data overlaps that of another");
        if (tensor->begin > end)
            return bad_tensor(from, tensor->name,
                              "its data does not follow that of the one before: there is a gap");
        end += tensor->bytes;
    }
    if (end == data_bytes)
        return PACE_OK;
    return pace_fail(from->log, PACE_BAD_DATA,
                     "%s: tensors of %" PRIu64 " bytes, but %" PRIu64 " follow the header: %s", from->path,
                     end, data_bytes, end > data_bytes ? "the file was cut" : "something was appended");
}

static pace_status parse_entries(const source *from, pace__safetensors *file)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, file->header)
    {
        pace_status status;

        if (strcmp(entry->string, METADATA) == 0) {
            file->metadata = entry;
            status = check_metadata(from, entry);
        } else {
            status = parse_entry(from, entry, &file->tensors[file->count]);
            file->count++;
        }
        if (status)
            return status;
    }
    return PACE_OK;
}

static pace_status parse_tensors(const source *from, pace__safetensors *file, uint64_t data_bytes)
{
    pace_status status = check_keys(from, file->header, PACE__TENSORS_MAX, "tensors");

    if (status)
        return status;
    size_t room = (size_t)cJSON_GetArraySize(file->header) + 1;

    file->tensors = calloc(room, sizeof *file->tensors);
    file->by_name = calloc(room, sizeof *file->by_name);
    if (!file->tensors || !file->by_name)
        return pace_fail(from->log, PACE_FAILED, "%s: out of memory", from->path);
    status = parse_entries(from, file);
    if (status)
        return status;
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_places);
    for (size_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_names);
    return check_places(from, file, data_bytes);
}

/* From the file or from memory. */
static pace_status read_at(const pace__safetensors *file, void *buffer, size_t bytes, uint64_t offset,
                           const pace_log *log)
{
    if (file->fd >= 0)
        return pace__pread_all(file->fd, buffer, bytes, offset, file->path, log);
    if (bytes > 0)
        memcpy(buffer, file->memory + offset, bytes);
    return PACE_OK;
}

static pace_status read_length(const source *from, const pace__safetensors *file, uint64_t size,
                               uint64_t *length)
{
    if (size < LENGTH_BYTES)
        return pace_fail(from->log, PACE_BAD_DATA, "%s: %" PRIu64 " bytes: too short for a safetensors file",
                         from->path, size);
    pace_status status = read_at(file, length, LENGTH_BYTES, 0, from->log);

    if (status)
        return status;
    if (*length > PACE__SAFETENSORS_HEADER_MAX)
        return pace_fail(
            from->log, PACE_BAD_DATA,
            "%s: not a safetensors file: its first 8 bytes are no length of a header (of at most "
            "%zu bytes)",
            from->path, PACE__SAFETENSORS_HEADER_MAX);
    if (*length > size - LENGTH_BYTES)
        return pace_fail(from->log, PACE_BAD_DATA,
                         "%s: header of %" PRIu64 " bytes, but only %" PRIu64 " follow: the file was cut",
                         from->path, *length, size - LENGTH_BYTES);
    return PACE_OK;
}

static pace_status load(pace__safetensors *file, uint64_t size, const pace_log *log)
{
    source from = {file->path, log};
    uint64_t length = 0;
    pace_status status = read_length(&from, file, size, &length);

    if (status)
        return status;
    char *text = malloc(length + 1);

    if (!text)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", file->path);
    text[length] = '\0';
    status = read_at(file, text, length, LENGTH_BYTES, log);
    if (!status)
        status = parse_header(&from, text, length, &file->header);
    free(text);
    if (status)
        return status;
    file->data_start = LENGTH_BYTES + length;
    return parse_tensors(&from, file, size - file->data_start);
}

/* Takes over `fd`, also when it fails. */
static pace_status open_source(int fd, const void *memory, uint64_t size, const char *path,
                               const pace_log *log, pace__safetensors **file)
{
    pace__safetensors *opened = calloc(1, sizeof *opened);
    char *name = strdup(path);
    pace_status status;

    if (!opened || !name) {
        free(opened);
        free(name);
        if (fd >= 0)
            close(fd);
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    }
    *opened = (pace__safetensors){.path = name, .fd = fd, .memory = memory};
    status = load(opened, size, log);
    if (status)
        pace__safetensors_close(opened);
    else
        *file = opened;
    return status;
}

pace_status pace__safetensors_open(const char *path, const pace_log *log, pace__safetensors **file)
{
    struct stat info;
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (!status && fstat(fd, &info) != 0) {
        close(fd);
        status = pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    if (status)
        return status;
    return open_source(fd, NULL, (uint64_t)info.st_size, path, log, file);
}

pace_status pace__safetensors_open_memory(const void *bytes, size_t size, const char *name,
                                          const pace_log *log, pace__safetensors **file)
{
    return open_source(-1, bytes, size, name, log, file);
}

void pace__safetensors_close(pace__safetensors *file)
{
    if (!file)
        return;
    free(file->by_name);
    free(file->tensors);
    cJSON_Delete(file->header);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

size_t pace__safetensors_count(const pace__safetensors *file)
{
    return file->count;
}

const pace__tensor_info *pace__safetensors_at(const pace__safetensors *file, size_t index)
{
    assert(index < file->count);
    return &file->tensors[index];
}

const pace__tensor_info *pace__safetensors_find(const pace__safetensors *file, const char *name)
{
    pace__tensor_info wanted = {.name = name};
    const pace__tensor_info *key = &wanted;
    const pace__tensor_info **found =
        bsearch(&key, file->by_name, file->count, sizeof *file->by_name, compare_names);

    return found ? *found : NULL;
}

const char *pace__safetensors_metadata(const pace__safetensors *file, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(file->metadata, key);

    return value ? value->valuestring : NULL;
}

pace_status pace__safetensors_read(const pace__safetensors *file, const pace__tensor_info *tensor,
                                   uint64_t offset, void *buffer, size_t bytes, const pace_log *log)
{
    assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    return read_at(file, buffer, bytes, file->data_start + tensor->begin + offset, log);
}

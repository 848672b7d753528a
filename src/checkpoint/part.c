/*
 * The files with the parameters: written by their holders, checked and read as a whole.
 *
 * 1. A part is a short header and the floats of its places, nothing behind them: where the floats begin
 *    follows from the sizes, which the manifest vouches for.
 * 2. Every byte of a part goes through the checksum, once, in the order of the file.
 * 3. The places of all parts together are the keys, each once: place p of part s is key p x parts + s.
 */
#include "checkpoint/internal.h"
#include "data/tensors/safetensors.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "paceline checkpoint part"
#define TENSOR "parameters"
/* Length, JSON and padding; with the longest numbers it has about 200 bytes. */
#define HEADER_BYTES_MAX 512u
#define HEADER_BYTES_MIN 16u
#define PIECE_BYTES      ((size_t)1 << 20)

void pace__part_name(unsigned part, unsigned parts, char name[PACE__PART_NAME_MAX])
{
    assert(part < parts && parts <= PACE__CHECKPOINT_PARTS_MAX);
    snprintf(name, PACE__PART_NAME_MAX, "part-%05u-of-%05u.safetensors", part, parts);
}

uint64_t pace__part_places(uint64_t keys, unsigned part, unsigned parts)
{
    assert(part < parts);
    return keys / parts + (part < keys % parts);
}

bool pace__part_bytes_fit(uint64_t bytes, uint64_t places, unsigned width)
{
    uint64_t floats = places * width * sizeof(float);

    return bytes >= floats + HEADER_BYTES_MIN && bytes <= floats + HEADER_BYTES_MAX;
}

/* --- writing --- */

static pace_status write_file(const char *path, unsigned part, unsigned parts, const pace__tensor *tensor,
                              pace__part_record *record, const pace_log *log)
{
    char numbers[2][16];
    struct stat info;

    snprintf(numbers[0], sizeof numbers[0], "%u", part);
    snprintf(numbers[1], sizeof numbers[1], "%u", parts);
    pace__text_pair metadata[] = {{"format", FORMAT}, {"part", numbers[0]}, {"parts", numbers[1]}};
    pace_status status = pace__safetensors_write(path, tensor, 1, metadata, 3, record->sha256, log);

    if (!status && stat(path, &info) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot be found again: %s", path, strerror(errno));
    if (status) {
        unlink(path); /* it may be there already when the directory cannot be synced */
        return status;
    }
    record->bytes = (uint64_t)info.st_size;
    return PACE_OK;
}

pace_status pace__part_write(const char *directory, unsigned part, unsigned parts, const float *parameters,
                             uint64_t places, unsigned width, pace__part_record *record, const pace_log *log)
{
    pace__tensor tensor = {.name = TENSOR,
                           .dtype = PACE__F32,
                           .rank = 2,
                           .shape = {places, width},
                           .data = places > 0 ? parameters : NULL};
    pace__part_record made = {0};

    assert(width > 0 && width <= PACE__CHECKPOINT_WIDTH_MAX);
    assert(parameters || places == 0);
    pace__part_name(part, parts, made.name);
    char *path = pace__format("%s/%s", directory, made.name);

    if (!path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = write_file(path, part, parts, &tensor, &made, log);

    free(path);
    if (!status) {
        assert(pace__part_bytes_fit(made.bytes, places, width));
        *record = made;
    }
    return status;
}

/* --- reading --- */

pace_status pace__checkpoint_open(const char *path, const pace_log *log, int *fd, uint64_t *bytes)
{
    struct stat info;
    char why[PACE__WHY_BYTES];
    int opened = pace__try_open(path, PACE__TO_READ, why);

    if (opened < 0 && errno == ENOENT)
        return pace_fail(log, PACE_BAD_DATA, "%s: missing", path);
    if (opened < 0)
        return pace_fail(log, errno == ENOTSUP ? PACE_BAD_DATA : PACE_IO, "%s: %s", path, why);
    if (fstat(opened, &info) != 0) {
        close(opened);
        return pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    *fd = opened;
    *bytes = (uint64_t)info.st_size;
    return PACE_OK;
}

/* A part that is being read. */
typedef struct input {
    const pace__manifest *manifest;
    unsigned part;
    uint64_t places;
    char *path;
    int fd;
    uint64_t at; /* bytes read */
    pace__sha256 *sha;
    char *buffer; /* PIECE_BYTES */
    const pace_log *log;
} input;

static const pace__part_record *record_of(const input *in)
{
    return &in->manifest->part[in->part];
}

static pace_status read_piece(input *in, size_t bytes)
{
    assert(bytes <= PIECE_BYTES && bytes <= record_of(in)->bytes - in->at);
    pace_status status = pace__pread_all(in->fd, in->buffer, bytes, in->at, in->path, in->log);

    if (status)
        return status;
    pace__sha256_update(in->sha, in->buffer, bytes);
    in->at += bytes;
    return PACE_OK;
}

/* What the buffer has of `count` places from `first` on goes to where its keys are. */
static void scatter(const input *in, uint64_t first, size_t count, float *parameters)
{
    assert(first < in->places && count <= in->places - first);
    size_t width = in->manifest->width, parts = in->manifest->parts, bytes = width * sizeof *parameters;
    float *to = parameters + (in->part + first * parts) * width;

    for (size_t i = 0; i < count; i++, to += parts * width)
        memcpy(to, in->buffer + i * bytes, bytes);
}

/* Once through the file. Where its floats begin follows from its size; that the header agrees is looked at
 * later, when the checksum has vouched for it. */
static pace_status read_all(input *in, float *parameters)
{
    size_t place_bytes = in->manifest->width * sizeof(float), most = PIECE_BYTES / place_bytes;

    assert(most > 0);
    pace_status status = read_piece(in, (size_t)(record_of(in)->bytes - in->places * place_bytes));

    for (uint64_t first = 0; first < in->places && !status;) {
        uint64_t left = in->places - first;
        size_t count = left < most ? (size_t)left : most;

        status = read_piece(in, count * place_bytes);
        if (!status && parameters)
            scatter(in, first, count, parameters);
        first += count;
    }
    assert(status || in->at == record_of(in)->bytes); /* invariant 2 */
    return status;
}

static pace_status check_sha256(input *in, float *parameters)
{
    char found[PACE__SHA256_HEX];

    in->sha = pace__sha256_create();
    if (!in->sha)
        return pace_fail(in->log, PACE_FAILED, "%s: out of memory", in->path);
    pace_status status = read_all(in, parameters);

    pace__sha256_finish(in->sha, status ? NULL : found);
    if (!status && strcmp(found, record_of(in)->sha256) != 0)
        status = pace_fail(in->log, PACE_BAD_DATA, "%s: damaged: its SHA-256 is %s, the manifest says %s",
                           in->path, found, record_of(in)->sha256);
    return status;
}

static bool has_number(const pace__safetensors *file, const char *key, unsigned number)
{
    const char *text = pace__safetensors_metadata(file, key);
    char expected[16];

    snprintf(expected, sizeof expected, "%u", number);
    return text && strcmp(text, expected) == 0;
}

static pace_status check_header(const input *in)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(in->path, in->log, &file);

    if (status)
        return status == PACE_NO_INPUT ? PACE_BAD_DATA : status; /* gone while it was read */
    const pace__tensor_info *tensor = pace__safetensors_find(file, TENSOR);
    const char *format = pace__safetensors_metadata(file, "format");

    if (!format || strcmp(format, FORMAT) != 0 || !has_number(file, "part", in->part) ||
        !has_number(file, "parts", in->manifest->parts))
        status = pace_fail(in->log, PACE_BAD_DATA, "%s: not part %u of %u of a checkpoint", in->path,
                           in->part, in->manifest->parts);
    else if (pace__safetensors_count(file) != 1 || !tensor || tensor->dtype != PACE__F32 ||
             tensor->rank != 2 || tensor->shape[0] != in->places || tensor->shape[1] != in->manifest->width)
        status =
            pace_fail(in->log, PACE_BAD_DATA, "%s: not one tensor \"" TENSOR "\" of %" PRIu64 " x %u floats",
                      in->path, in->places, in->manifest->width);
    pace__safetensors_close(file);
    return status;
}

static pace_status load_part(input *in, float *parameters)
{
    uint64_t bytes = 0;
    pace_status status = pace__checkpoint_open(in->path, in->log, &in->fd, &bytes);

    if (status)
        return status;
    if (bytes != record_of(in)->bytes)
        status = pace_fail(in->log, PACE_BAD_DATA,
                           "%s: damaged: it has %" PRIu64 " bytes, the manifest says %" PRIu64, in->path,
                           bytes, record_of(in)->bytes);
    else
        status = check_sha256(in, parameters);
    close(in->fd);
    return status ? status : check_header(in);
}

pace_status pace__checkpoint_load(const char *directory, const pace__manifest *manifest, float *parameters,
                                  const pace_log *log)
{
    char *buffer = malloc(PIECE_BYTES);
    pace_status status = buffer ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    for (unsigned part = 0; part < manifest->parts && !status; part++) {
        const pace__part_record *record = &manifest->part[part];
        input in = {.manifest = manifest,
                    .part = part,
                    .places = pace__part_places(manifest->keys, part, manifest->parts),
                    .path = pace__format("%s/%s", directory, record->name),
                    .buffer = buffer,
                    .log = log};

        assert(pace__part_bytes_fit(record->bytes, in.places, manifest->width));
        status = in.path ? load_part(&in, parameters) : pace_fail(log, PACE_FAILED, "out of memory");
        free(in.path);
    }
    free(buffer);
    return status;
}

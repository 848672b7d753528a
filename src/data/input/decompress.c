#include "data/input/decompress.h"

#include "files/crc32c.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define RAW_BYTES ((size_t)256 << 10)

struct pace__stream {
    int fd;
    const char *path;
    const pace__watch *watch;
    const pace_log *log;
    int kind;
    bool raw_ended; /* read() has returned 0 */
    bool at_start;  /* between gzip members or zstd frames: the only place where the file may end */
    uint64_t raw_total;
    uint64_t bytes_out;
    struct inflate_state *gzip;
    ZSTD_DStream *zstd;
    size_t raw_at, raw_size; /* raw[raw_at .. raw_size) is still to be decoded */
    uint8_t raw[RAW_BYTES];
};

static bool is_tfrecord(const uint8_t *first)
{
    uint32_t crc;

    memcpy(&crc, first + 8, sizeof crc);
    return pace__masked_crc32c(first, 8) == crc;
}

int pace__compression_of(const void *first, size_t size)
{
    const uint8_t *bytes = first;
    int kind = PACE__PLAIN;

    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        kind = PACE__GZIP;
    else if (size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0)
        kind = PACE__ZSTD;
    else if (size >= 4 && (bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0)
        kind = PACE__ZSTD; /* a skippable frame: parallel compressors put one in front */
    /* A TFRecord of 559,903 bytes starts like gzip; the checksum of its length tells them apart. */
    if (kind != PACE__PLAIN && size >= PACE__MAGIC_BYTES && is_tfrecord(bytes))
        kind = PACE__PLAIN;
    return kind;
}

static pace_status read_some(pace__stream *stream, void *buffer, size_t size, size_t *got)
{
    pace_status status = stream->watch ? pace__await_bytes(stream->fd, stream->watch) : PACE_OK;
    ssize_t count;

    if (status)
        return status;
    do
        count = read(stream->fd, buffer, size);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return pace_fail(stream->log, PACE_IO, "%s: cannot read at byte %llu: %s", stream->path,
                         (unsigned long long)stream->raw_total, strerror(errno));
    stream->raw_ended = count == 0;
    stream->raw_total += (uint64_t)count;
    *got = (size_t)count;
    return PACE_OK;
}

/* Makes raw bytes available, unless the file has ended. */
static pace_status refill(pace__stream *stream)
{
    if (stream->raw_at < stream->raw_size || stream->raw_ended)
        return PACE_OK;
    stream->raw_at = stream->raw_size = 0;
    return read_some(stream, stream->raw, RAW_BYTES, &stream->raw_size);
}

/* Pipes may deliver single bytes. */
static pace_status read_magic(pace__stream *stream)
{
    while (stream->raw_size < PACE__MAGIC_BYTES && !stream->raw_ended) {
        size_t got = 0;
        pace_status status =
            read_some(stream, stream->raw + stream->raw_size, RAW_BYTES - stream->raw_size, &got);

        if (status)
            return status;
        stream->raw_size += got;
    }
    return PACE_OK;
}

static void reset_gzip(pace__stream *stream)
{
    isal_inflate_reset(stream->gzip);
    stream->gzip->crc_flag = ISAL_GZIP;
}

static pace_status start_decoder(pace__stream *stream)
{
    stream->kind = pace__compression_of(stream->raw, stream->raw_size);
    stream->at_start = true;
    if (stream->kind == PACE__GZIP) {
        stream->gzip = malloc(sizeof *stream->gzip);
        if (!stream->gzip)
            return pace_fail(stream->log, PACE_FAILED, "%s: out of memory", stream->path);
        isal_inflate_init(stream->gzip);
        reset_gzip(stream);
    } else if (stream->kind == PACE__ZSTD) {
        stream->zstd = ZSTD_createDStream();
        if (!stream->zstd)
            return pace_fail(stream->log, PACE_FAILED, "%s: out of memory", stream->path);
    }
    return PACE_OK;
}

pace_status pace__stream_open(int fd, const char *path, const pace__watch *watch, const pace_log *log,
                              pace__stream **stream)
{
    pace__stream *new = malloc(sizeof *new);

    if (!new)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    memset(new, 0, offsetof(pace__stream, raw));
    new->fd = fd;
    new->path = path;
    new->watch = watch;
    new->log = log;
    pace_status status = read_magic(new);

    if (!status)
        status = start_decoder(new);
    if (status) {
        pace__stream_close(new);
        return status;
    }
    *stream = new;
    return PACE_OK;
}

void pace__stream_close(pace__stream *stream)
{
    if (!stream)
        return;
    ZSTD_freeDStream(stream->zstd);
    free(stream->gzip);
    free(stream);
}

static pace_status cut_short(const pace__stream *stream, const char *kind)
{
    return pace_fail(
        stream->log, PACE_BAD_DATA,
        "%s: %s data is cut short behind uncompressed byte %llu (compressed byte %llu): copy the file again",
        stream->path, kind, (unsigned long long)stream->bytes_out, (unsigned long long)stream->raw_total);
}

static pace_status damaged(const pace__stream *stream, const char *kind, const char *reason)
{
    return pace_fail(stream->log, PACE_BAD_DATA, "%s: %s data is damaged behind uncompressed byte %llu: %s",
                     stream->path, kind, (unsigned long long)stream->bytes_out, reason);
}

static const char *gzip_reason(int error)
{
    switch (error) {
    case ISAL_INVALID_BLOCK:
        return "invalid block";
    case ISAL_INVALID_SYMBOL:
        return "invalid symbol";
    case ISAL_INVALID_LOOKBACK:
        return "reference to before the start";
    case ISAL_INVALID_WRAPPER:
        return "what follows is no gzip member";
    case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
        return "wrong checksum";
    default:
        return "no progress";
    }
}

/*
 * The decoders make one step: they take some raw bytes, append to `out`, and count what they appended. They
 * may be called without raw bytes left, to flush what they hold back.
 */
static pace_status step_gzip(pace__stream *stream, uint8_t *out, size_t room, size_t *made)
{
    struct inflate_state *gzip = stream->gzip;

    /* The decoder would wait for a whole header before it looks. */
    if (stream->at_start && stream->raw[stream->raw_at] != 0x1f)
        return damaged(stream, "gzip", gzip_reason(ISAL_INVALID_WRAPPER));
    gzip->next_in = stream->raw + stream->raw_at;
    gzip->avail_in = (uint32_t)(stream->raw_size - stream->raw_at);
    gzip->next_out = out;
    gzip->avail_out = (uint32_t)(room < UINT32_MAX ? room : UINT32_MAX);
    stream->at_start = false;
    int result = isal_inflate(gzip);
    size_t raw_before = stream->raw_at;

    *made = (size_t)(gzip->next_out - out);
    stream->bytes_out += *made;
    stream->raw_at = stream->raw_size - gzip->avail_in;
    if (result < ISAL_DECOMP_OK)
        return damaged(stream, "gzip", gzip_reason(result));
    if (gzip->block_state == ISAL_BLOCK_FINISH) {
        stream->at_start = true;
        reset_gzip(stream);
    } else if (*made == 0 && stream->raw_at == raw_before) {
        return stream->raw_ended ? cut_short(stream, "gzip") : damaged(stream, "gzip", gzip_reason(result));
    }
    return PACE_OK;
}

static pace_status step_zstd(pace__stream *stream, uint8_t *out, size_t room, size_t *made)
{
    ZSTD_inBuffer in = {stream->raw, stream->raw_size, stream->raw_at};
    ZSTD_outBuffer buffer = {out, room, 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &buffer, &in);
    bool progress = buffer.pos > 0 || in.pos > stream->raw_at;

    *made = buffer.pos;
    stream->bytes_out += buffer.pos;
    stream->raw_at = in.pos;
    if (ZSTD_isError(result))
        return damaged(stream, "zstd", ZSTD_getErrorName(result));
    stream->at_start = result == 0;
    if (!stream->at_start && !progress)
        return stream->raw_ended ? cut_short(stream, "zstd") : damaged(stream, "zstd", "no progress");
    return PACE_OK;
}

static pace_status step_plain(pace__stream *stream, uint8_t *out, size_t room, size_t *made)
{
    size_t held = stream->raw_size - stream->raw_at;

    if (held == 0) {
        /* Large reads go straight to where they are wanted. */
        pace_status status = read_some(stream, out, room, made);

        if (!status)
            stream->bytes_out += *made;
        return status;
    }
    *made = held < room ? held : room;
    memcpy(out, stream->raw + stream->raw_at, *made);
    stream->raw_at += *made;
    stream->bytes_out += *made;
    return PACE_OK;
}

static pace_status step(pace__stream *stream, uint8_t *out, size_t room, size_t *made)
{
    switch (stream->kind) {
    case PACE__GZIP:
        return step_gzip(stream, out, room, made);
    case PACE__ZSTD:
        return step_zstd(stream, out, room, made);
    default:
        return step_plain(stream, out, room, made);
    }
}

pace_status pace__stream_read(pace__stream *stream, void *buffer, size_t size, size_t *got)
{
    size_t filled = 0;

    while (filled < size) {
        size_t made = 0;
        pace_status status = stream->kind == PACE__PLAIN ? PACE_OK : refill(stream);

        if (status)
            return status;
        if (stream->raw_ended && stream->raw_at == stream->raw_size && stream->at_start)
            break;
        status = step(stream, (uint8_t *)buffer + filled, size - filled, &made);
        if (status)
            return status;
        filled += made;
    }
    *got = filled;
    return PACE_OK;
}

uint64_t pace__stream_raw_bytes(const pace__stream *stream)
{
    return stream->raw_total;
}

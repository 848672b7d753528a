#include "events/proto.h"

#include "base/json.h"
#include "files/crc32c.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define VARINT_BYTES_MAX 10
#define HEADER_BYTES     12

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static bool is_whole(const pace__proto *out)
{
    return out->size <= out->capacity;
}

static void put(pace__proto *out, const void *bytes, size_t size)
{
    if (is_whole(out) && size <= out->capacity - out->size)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static size_t make_varint(uint64_t value, uint8_t bytes[VARINT_BYTES_MAX])
{
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    return size;
}

static void put_varint(pace__proto *out, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];

    put(out, bytes, make_varint(value, bytes));
}

static void put_tag(pace__proto *out, unsigned field, unsigned type)
{
    assert(field > 0);
    put_varint(out, (uint64_t)field << 3 | type);
}

void pace__proto_number(pace__proto *out, unsigned field, uint64_t value)
{
    put_tag(out, field, WIRE_VARINT);
    put_varint(out, value);
}

void pace__proto_real(pace__proto *out, unsigned field, double value)
{
    put_tag(out, field, WIRE_FIXED64);
    put(out, &value, sizeof value);
}

void pace__proto_single(pace__proto *out, unsigned field, float value)
{
    put_tag(out, field, WIRE_FIXED32);
    put(out, &value, sizeof value);
}

void pace__proto_text(pace__proto *out, unsigned field, const char *text, size_t size)
{
    put_tag(out, field, WIRE_BYTES);
    put_varint(out, size);
    for (size_t at = 0; at < size;) {
        unsigned length = pace__utf8_length(text + at, size - at);

        put(out, length ? text + at : "?", length ? length : 1);
        at += length ? length : 1;
    }
}

/* --- messages --- */

size_t pace__proto_begin(pace__proto *out, unsigned field)
{
    put_tag(out, field, WIRE_BYTES);
    return out->size;
}

/* How long a message is, is known behind it, and stands before it: it moves by as many bytes as that takes. */
void pace__proto_end(pace__proto *out, size_t begun)
{
    uint8_t length[VARINT_BYTES_MAX];

    assert(begun <= out->size);
    size_t size = out->size - begun, bytes = make_varint(size, length);

    out->size += bytes;
    if (!is_whole(out))
        return;
    memmove(out->bytes + begun + bytes, out->bytes + begun, size);
    memcpy(out->bytes + begun, length, bytes);
}

size_t pace__proto_record_begin(pace__proto *out)
{
    static const uint8_t room[HEADER_BYTES];

    put(out, room, sizeof room);
    return out->size;
}

void pace__proto_record_end(pace__proto *out, size_t begun)
{
    assert(begun >= HEADER_BYTES && begun <= out->size);
    uint64_t length = out->size - begun;
    uint32_t length_crc = pace__masked_crc32c(&length, sizeof length);
    uint32_t crc = is_whole(out) ? pace__masked_crc32c(out->bytes + begun, length) : 0;

    put(out, &crc, sizeof crc);
    if (!is_whole(out))
        return;
    memcpy(out->bytes + begun - HEADER_BYTES, &length, sizeof length);
    memcpy(out->bytes + begun - HEADER_BYTES + sizeof length, &length_crc, sizeof length_crc);
}

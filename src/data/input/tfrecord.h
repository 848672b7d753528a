/*
 * tfrecord.h - TFRecord files of tf.Example, as far as their readers share it: the frame of a record, and the
 * wire format inside, without a protobuf library.
 *
 *     record    u64 length, u32 checksum of it, data, u32 checksum of the data
 *     Example   { Features features = 1; }
 *     Features  { map<string, Feature> feature = 1; }   a map is repeated { key = 1; value = 2; }
 *     Feature   { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
 *     FloatList { repeated float value = 1; }           packed or not; Int64List likewise; BytesList: never
 *
 * Everything is inline: whoever reads millions of small records names what is to be done with a feature, and
 * the compiler makes one loop of it.
 */
#ifndef DATA_INPUT_TFRECORD_H
#define DATA_INPUT_TFRECORD_H

#include "files/crc32c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- the frame --- */

#define PACE__RECORD_HEADER   12
#define PACE__RECORD_FOOTER   4
#define PACE__RECORD_OVERHEAD (PACE__RECORD_HEADER + PACE__RECORD_FOOTER)

/* The length that a header (PACE__RECORD_HEADER bytes) tells; false if its checksum is wrong: then it would
 * lead anywhere. */
static inline bool pace__record_length(const void *header, uint64_t *length)
{
    uint32_t crc;

    memcpy(length, header, sizeof *length);
    memcpy(&crc, (const char *)header + sizeof *length, sizeof crc);
    return pace__masked_crc32c(header, sizeof *length) == crc;
}

/* Whether the data are what the footer right behind them says. */
static inline bool pace__record_is_sound(const void *data, size_t length)
{
    uint32_t crc;

    memcpy(&crc, (const char *)data + length, sizeof crc);
    return pace__masked_crc32c(data, length) == crc;
}

/* --- the wire --- */

#define PACE__VARINT_BYTES_MAX 10

enum { PACE__WIRE_VARINT = 0, PACE__WIRE_FIXED64 = 1, PACE__WIRE_BYTES = 2, PACE__WIRE_FIXED32 = 5 };

typedef struct pace__span {
    const uint8_t *at, *end;
} pace__span;

typedef struct pace__wire_field {
    uint64_t number;
    uint32_t type;
    uint64_t scalar;  /* of VARINT, FIXED64 and FIXED32 */
    pace__span bytes; /* of BYTES; else empty */
} pace__wire_field;

static inline size_t pace__span_size(pace__span span)
{
    return (size_t)(span.end - span.at);
}

static inline bool pace__span_is(pace__span span, const char *text)
{
    return pace__span_size(span) == strlen(text) && memcmp(span.at, text, strlen(text)) == 0;
}

static inline bool pace__wire_long_varint(pace__span *from, uint64_t *value)
{
    uint64_t result = 0;

    for (unsigned i = 0; i < PACE__VARINT_BYTES_MAX && from->at + i < from->end; i++) {
        uint64_t byte = from->at[i];

        result |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            from->at += i + 1;
            *value = result;
            /* The tenth byte holds the 64th bit and nothing else. */
            return i < PACE__VARINT_BYTES_MAX - 1 || byte <= 1;
        }
    }
    return false;
}

/* Tags and lengths are of one byte nearly always, which is predicted well. */
static inline bool pace__wire_varint(pace__span *from, uint64_t *value)
{
    if (from->at == from->end || *from->at >= 0x80)
        return pace__wire_long_varint(from, value);
    *value = *from->at++;
    return true;
}

static inline bool pace__wire_fixed(pace__span *from, size_t size, uint64_t *value)
{
    if (pace__span_size(*from) < size)
        return false;
    *value = 0;
    memcpy(value, from->at, size);
    from->at += size;
    return true;
}

static inline bool pace__wire_bytes(pace__span *from, pace__span *bytes)
{
    uint64_t size;

    if (!pace__wire_varint(from, &size) || size > pace__span_size(*from))
        return false;
    *bytes = (pace__span){from->at, from->at + size};
    from->at += size;
    return true;
}

static inline bool pace__wire_next(pace__span *from, pace__wire_field *field)
{
    uint64_t tag;

    if (!pace__wire_varint(from, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    field->number = tag >> 3;
    field->type = tag & 7;
    field->bytes = (pace__span){from->at, from->at};
    switch (field->type) {
    case PACE__WIRE_VARINT:
        return pace__wire_varint(from, &field->scalar);
    case PACE__WIRE_FIXED64:
        return pace__wire_fixed(from, 8, &field->scalar);
    case PACE__WIRE_FIXED32:
        return pace__wire_fixed(from, 4, &field->scalar);
    case PACE__WIRE_BYTES:
        return pace__wire_bytes(from, &field->bytes);
    default:
        return false; /* groups: gone from the wire format before tf.Example came */
    }
}

/* --- tf.Example --- */

enum { PACE__TF_BYTES = 1, PACE__TF_FLOATS = 2, PACE__TF_INTEGERS = 3 };
enum { PACE__TF_SOUND, PACE__TF_MALFORMED, PACE__TF_TWO_LISTS, PACE__TF_OTHER_LIST };

/* What is done with a feature; false: no more of them are wanted. */
typedef bool pace__tf_visitor(void *user, pace__span name, pace__span feature);

/*
 * The one list of a Feature and its kind (0: none, an empty list), which must be among the bits of `kinds`.
 * Returns PACE__TF_*.
 */
static inline int pace__tf_list(pace__span feature, unsigned kinds, pace__span *list, uint64_t *kind)
{
    *kind = 0;
    *list = (pace__span){feature.end, feature.end};
    while (feature.at < feature.end) {
        pace__wire_field field;

        if (!pace__wire_next(&feature, &field))
            return PACE__TF_MALFORMED;
        if (field.type != PACE__WIRE_BYTES || field.number > PACE__TF_INTEGERS)
            continue;
        if (*kind != 0)
            return PACE__TF_TWO_LISTS;
        if (!(kinds >> field.number & 1))
            return PACE__TF_OTHER_LIST;
        *list = field.bytes;
        *kind = field.number;
    }
    return PACE__TF_SOUND;
}

static inline bool pace__tf_visit_entry(pace__span entry, pace__tf_visitor *visit, void *user,
                                        bool *malformed)
{
    pace__span key = {entry.end, entry.end}, value = key;

    while (entry.at < entry.end) {
        pace__wire_field field;

        if (!pace__wire_next(&entry, &field)) {
            *malformed = true;
            return false;
        }
        if (field.number == 1 && field.type == PACE__WIRE_BYTES)
            key = field.bytes;
        else if (field.number == 2 && field.type == PACE__WIRE_BYTES)
            value = field.bytes;
    }
    return visit(user, key, value);
}

static inline bool pace__tf_visit_features(pace__span features, pace__tf_visitor *visit, void *user,
                                           bool *malformed)
{
    while (features.at < features.end) {
        pace__wire_field field;

        if (!pace__wire_next(&features, &field)) {
            *malformed = true;
            return false;
        }
        if (field.number == 1 && field.type == PACE__WIRE_BYTES &&
            !pace__tf_visit_entry(field.bytes, visit, user, malformed))
            return false;
    }
    return true;
}

/* All features of an Example, in the order of the file. False: the visitor has returned false, or the message
 * is malformed. */
static inline bool pace__tf_visit(pace__span message, pace__tf_visitor *visit, void *user, bool *malformed)
{
    *malformed = false;
    while (message.at < message.end) {
        pace__wire_field field;

        if (!pace__wire_next(&message, &field)) {
            *malformed = true;
            return false;
        }
        if (field.number == 1 && field.type == PACE__WIRE_BYTES &&
            !pace__tf_visit_features(field.bytes, visit, user, malformed))
            return false;
    }
    return true;
}

#endif

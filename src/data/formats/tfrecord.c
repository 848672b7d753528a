/* Rows of tf.Example: looked at are the features "label", "index" and "value". */
#include "data/input/tfrecord.h"

#include "data/formats/parse.h"
#include "data/formats/varints.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES       5 /* of each of the three */
#define REASON_BYTES_MAX 200

/* A row on its way. A function that finds it bad writes the reason and returns false. */
typedef struct tf_example {
    pace__raw_rows *rows;
    const pace_log *log;
    pace_status status; /* not PACE_OK: the job has failed, and that was told */
    bool has_label, has_index, has_value;
    double label;
    size_t labels, ids, values; /* how many there are */
    size_t start;               /* of the row's entries in `rows` */
    char reason[REASON_BYTES_MAX];
} tf_example;

__attribute__((format(printf, 2, 3))) static bool bad(tf_example *example, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(example->reason, sizeof example->reason, format, arguments);
    va_end(arguments);
    return false;
}

static bool malformed(tf_example *example)
{
    return bad(example, "malformed tf.Example message");
}

static bool reserve(tf_example *example, size_t entries)
{
    example->status = pace__raw_rows_reserve(example->rows, example->start + entries, example->log);
    return example->status == PACE_OK;
}

static bool too_many(tf_example *example)
{
    return bad(example, "more than %u entries in a row", PACE__ROW_ENTRIES_MAX);
}

static bool take_packed_ids(tf_example *example, pace__span packed)
{
    /* An id takes a byte at least. */
    size_t bytes = pace__span_size(packed), left = PACE__ROW_ENTRIES_MAX - example->ids;
    size_t room = bytes < left ? bytes : left, count;

    if (!reserve(example, example->ids + room))
        return false;
    switch (pace__varints_of(pace_kernels_in_use())
                ->unpack(packed, example->rows->ids + example->start + example->ids, room, &count)) {
    case PACE__PACKED_SOUND:
        example->ids += count;
        return true;
    case PACE__PACKED_TOO_MANY:
        return too_many(example);
    default:
        return malformed(example);
    }
}

static bool take_id(tf_example *example, uint64_t id)
{
    if (example->ids == PACE__ROW_ENTRIES_MAX)
        return too_many(example);
    if (!reserve(example, example->ids + 1))
        return false;
    example->rows->ids[example->start + example->ids++] = id;
    return true;
}

static bool take_packed_values(tf_example *example, pace__span packed)
{
    size_t bytes = (size_t)(packed.end - packed.at), count = bytes / sizeof(float);

    if (bytes % sizeof(float) != 0)
        return malformed(example);
    if (count > PACE__ROW_ENTRIES_MAX - example->values)
        return too_many(example);
    if (!reserve(example, example->values + count))
        return false;
    memcpy(example->rows->values + example->start + example->values, packed.at, bytes);
    example->values += count;
    return true;
}

static bool take_value(tf_example *example, uint64_t bits)
{
    uint32_t low = (uint32_t)bits;

    return take_packed_values(example, (pace__span){(const uint8_t *)&low, (const uint8_t *)(&low + 1)});
}

static bool take_ids(tf_example *example, pace__span list)
{
    while (list.at < list.end) {
        pace__wire_field field;

        if (!pace__wire_next(&list, &field))
            return malformed(example);
        if (field.number == 1 && field.type == PACE__WIRE_BYTES) {
            if (!take_packed_ids(example, field.bytes))
                return false;
        } else if (field.number == 1 && field.type == PACE__WIRE_VARINT) {
            if (!take_id(example, field.scalar))
                return false;
        }
    }
    return true;
}

static bool take_values(tf_example *example, pace__span list)
{
    while (list.at < list.end) {
        pace__wire_field field;

        if (!pace__wire_next(&list, &field))
            return malformed(example);
        if (field.number == 1 && field.type == PACE__WIRE_BYTES) {
            if (!take_packed_values(example, field.bytes))
                return false;
        } else if (field.number == 1 && field.type == PACE__WIRE_FIXED32) {
            if (!take_value(example, field.scalar))
                return false;
        }
    }
    return true;
}

static void set_label(tf_example *example, bool real, uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof value);
    example->label = real ? (double)value : (double)(int64_t)bits;
    example->labels++;
}

static bool take_label(tf_example *example, pace__span list, bool real)
{
    while (list.at < list.end) {
        pace__wire_field field;
        uint64_t bits;

        if (!pace__wire_next(&list, &field))
            return malformed(example);
        if (field.number != 1)
            continue;
        if (field.type == (real ? PACE__WIRE_FIXED32 : PACE__WIRE_VARINT))
            set_label(example, real, field.scalar);
        while (field.bytes.at < field.bytes.end) {
            if (!(real ? pace__wire_fixed(&field.bytes, sizeof(float), &bits)
                       : pace__wire_varint(&field.bytes, &bits)))
                return malformed(example);
            set_label(example, real, bits);
        }
    }
    return true;
}

/*
 * The one list of a Feature and its kind, which must be among the bits of `kinds`. A map should have each key
 * once: with two of them, readers differ in which one they take.
 */
static bool find_list(tf_example *example, const char *name, bool *has, pace__span feature, unsigned kinds,
                      pace__span *list, uint64_t *kind)
{
    if (*has)
        return bad(example, "feature \"%s\" is there twice", name);
    *has = true;
    switch (pace__tf_list(feature, kinds, list, kind)) {
    case PACE__TF_SOUND:
        return true;
    case PACE__TF_TWO_LISTS:
        return bad(example, "\"%s\" has more than one list", name);
    case PACE__TF_OTHER_LIST:
        return bad(example, "\"%s\" is no list of %s", name,
                   kinds == 1u << PACE__TF_FLOATS     ? "float"
                   : kinds == 1u << PACE__TF_INTEGERS ? "int64"
                                                      : "int64 or float");
    default:
        return malformed(example);
    }
}

static bool take_named(tf_example *example, const uint8_t *name, pace__span feature)
{
    pace__span list;
    uint64_t kind;

    if (memcmp(name, "index", NAME_BYTES) == 0)
        return find_list(example, "index", &example->has_index, feature, 1u << PACE__TF_INTEGERS, &list,
                         &kind) &&
               take_ids(example, list);
    if (memcmp(name, "value", NAME_BYTES) == 0)
        return find_list(example, "value", &example->has_value, feature, 1u << PACE__TF_FLOATS, &list,
                         &kind) &&
               take_values(example, list);
    if (memcmp(name, "label", NAME_BYTES) == 0)
        return find_list(example, "label", &example->has_label, feature,
                         1u << PACE__TF_INTEGERS | 1u << PACE__TF_FLOATS, &list, &kind) &&
               take_label(example, list, kind == PACE__TF_FLOATS);
    return true;
}

static bool take_feature(void *user, pace__span name, pace__span feature)
{
    return pace__span_size(name) != NAME_BYTES || take_named(user, name.at, feature);
}

static bool take_example(tf_example *example, pace__span message)
{
    bool is_malformed;

    return pace__tf_visit(message, take_feature, example, &is_malformed) ||
           (is_malformed && malformed(example));
}

static bool check_label(tf_example *example, bool optional)
{
    if (example->labels == 0)
        return optional || bad(example, "no feature \"label\"");
    if (example->labels > 1)
        return bad(example, "\"label\" has %zu numbers", example->labels);
    if (example->label != -1 && example->label != 0 && example->label != 1)
        return bad(example, "\"label\" is %.9g, not -1, 0 or 1", example->label);
    return true;
}

static bool check_values(tf_example *example)
{
    float *values = example->rows->values + example->start;
    uint32_t infinite = 0;

    for (size_t i = 0; i < example->values; i++) {
        uint32_t bits;

        memcpy(&bits, values + i, sizeof bits);
        infinite |= (bits & 0x7f800000) == 0x7f800000;
    }
    if (infinite)
        return bad(example, "\"value\" holds a number that is not finite");
    if (!example->has_value) {
        for (size_t i = 0; i < example->ids; i++)
            values[i] = 1;
    } else if (example->values != example->ids) {
        return bad(example, "\"index\" has %zu numbers, \"value\" has %zu", example->ids, example->values);
    }
    return true;
}

static bool check_ids(tf_example *example, uint64_t limit)
{
    const uint64_t *ids = example->rows->ids + example->start;
    uint64_t highest = 0;

    if (!example->has_index)
        return bad(example, "no feature \"index\"");
    for (size_t i = 0; i < example->ids; i++)
        highest = ids[i] > highest ? ids[i] : highest;
    if (highest > INT64_MAX)
        return bad(example, "\"index\" holds the negative number %lld", (long long)highest);
    if (example->ids > 0 && highest >= limit)
        return bad(example, "\"index\" holds %llu, not below the %s of %llu", (unsigned long long)highest,
                   limit < PACE__FEATURES_MAX ? "number of features" : "limit", (unsigned long long)limit);
    return true;
}

/* Appends the row to rows, or returns false with the reason. */
static bool parse_record(tf_example *example, const pace__parser *parser, pace__span data)
{
    const pace__encoding *encoding = parser->encoding;
    pace__raw_rows *rows = example->rows;
    bool bounded = encoding->features != 0 && !encoding->hashed && !parser->ids_unbounded;

    if (!pace__record_is_sound(data.at, pace__span_size(data)))
        return bad(example, "the checksum of its data is wrong: damaged");
    if (!take_example(example, data) || !check_label(example, parser->labels_optional) ||
        !check_ids(example, bounded ? encoding->features : PACE__FEATURES_MAX) || !check_values(example))
        return false;
    for (size_t i = 0; encoding->hashed && i < example->ids; i++)
        rows->ids[example->start + i] = pace__number_hash(rows->ids[example->start + i], encoding->features);
    rows->label[rows->rows] = example->label > 0;
    rows->start[rows->rows + 1] = example->start + example->ids;
    return true;
}

pace_status pace__parse_tfrecord(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                 pace__raw_rows *rows)
{
    assert(parser->encoding->kind == PACE__NUMBERED);
    rows->rows = 0;
    rows->start[0] = 0;
    while (*at < chunk->size && rows->rows < PACE__RAW_ROWS) {
        const uint8_t *record = (const uint8_t *)chunk->data + *at;
        size_t left = chunk->size - *at;
        uint64_t length;
        tf_example example;

        assert(left >= PACE__RECORD_HEADER + PACE__RECORD_FOOTER);
        memcpy(&length, record, sizeof length);
        assert(length <= left - PACE__RECORD_HEADER - PACE__RECORD_FOOTER);
        memset(&example, 0, offsetof(tf_example, reason));
        example.rows = rows;
        example.log = parser->bad->log;
        example.start = rows->start[rows->rows];
        if (parse_record(&example, parser,
                         (pace__span){record + PACE__RECORD_HEADER, record + PACE__RECORD_HEADER + length})) {
            rows->offset[rows->rows++] = chunk->offset + *at;
        } else {
            pace_status status = example.status
                                     ? example.status
                                     : pace__bad_row(parser->bad, chunk, *at, "%s", example.reason);

            if (status)
                return status;
        }
        *at += PACE__RECORD_HEADER + (size_t)length + PACE__RECORD_FOOTER;
    }
    return PACE_OK;
}

/*
 * event_reader.h - event files read back, by code that shares nothing with what writes them: records, checksums bit by bit,
 * and fields by their numbers.
 *
 *     read_events(path, &events);
 *     double loss = scalar_of(&events, "train/loss", 100);
 *
 * Include it behind support.h.
 */
#ifndef UNIT_EVENT_READER_H
#define UNIT_EVENT_READER_H

#include "support.h"

#define READ_VALUES 32

typedef struct stretch {
    const uint8_t *at;
    size_t size;
} stretch;

typedef struct read_value {
    char tag[64];
    bool has_scalar;
    float scalar;
    stretch plugin, content,
        text; /* of a plugin's value: its name, what it says, the first string of the tensor */
} read_value;

typedef struct read_event {
    double wall_s;
    int64_t step;
    char version[32];
    int session; /* status of a session log; -1: none */
    size_t count;
    read_value value[READ_VALUES];
} read_event;

typedef struct read_file {
    char *bytes;
    size_t size, count;
    read_event *event;
} read_file;

/* --- checksums --- */

static inline uint32_t slow_masked_crc32c(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* --- fields --- */

static inline uint64_t read_varint(stretch *from)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        assert_true(from->size > 0 && shift < 64);
        uint8_t byte = *from->at++;

        from->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

typedef struct read_field {
    unsigned number, type;
    uint64_t integer;
    stretch bytes;
} read_field;

static inline stretch cut(stretch *from, size_t size)
{
    stretch taken = {from->at, size};

    assert_true(size <= from->size);
    from->at += size;
    from->size -= size;
    return taken;
}

static inline bool next_field(stretch *from, read_field *field)
{
    if (from->size == 0)
        return false;
    uint64_t tag = read_varint(from);

    *field = (read_field){.number = (unsigned)(tag >> 3), .type = tag & 7};
    assert_true(field->number > 0);
    if (field->type == 0)
        field->integer = read_varint(from);
    else if (field->type == 2)
        field->bytes = cut(from, read_varint(from));
    else
        field->bytes = cut(from, field->type == 1 ? 8 : 4);
    assert_true(field->type <= 2 || field->type == 5);
    return true;
}

static inline double double_of(const read_field *field)
{
    double value;

    assert_int_equal(field->type, 1);
    memcpy(&value, field->bytes.at, sizeof value);
    return value;
}

/* The field of that number in a message; it must be there. */
static inline read_field field_of(stretch message, unsigned number)
{
    read_field field = {0};

    while (next_field(&message, &field)) {
        if (field.number == number)
            return field;
    }
    fail_msg("there is no field %u", number);
    return field;
}

static inline bool stretch_is(stretch bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.at, text, bytes.size) == 0;
}

static inline void copy_text(stretch from, char *text, size_t size)
{
    assert_true(from.size < size);
    memcpy(text, from.at, from.size);
    text[from.size] = '\0';
}

/* --- events --- */

static inline read_value parse_value(stretch message)
{
    read_value value = {0};
    read_field field = {0};

    while (next_field(&message, &field)) {
        if (field.number == 1)
            copy_text(field.bytes, value.tag, sizeof value.tag);
        if (field.number == 2) {
            assert_int_equal(field.type, 5);
            memcpy(&value.scalar, field.bytes.at, sizeof value.scalar);
            value.has_scalar = true;
        }
        if (field.number == 8 && field_of(field.bytes, 1).integer == 7)
            value.text = field_of(field.bytes, 8).bytes;
        if (field.number == 9) {
            stretch plugin = field_of(field.bytes, 1).bytes;

            assert_int_equal(field_of(field.bytes, 4).integer, 2);
            value.plugin = field_of(plugin, 1).bytes;
            value.content = field_of(plugin, 2).bytes;
        }
    }
    return value;
}

static inline read_event parse_event(stretch message)
{
    read_event event = {.session = -1};
    read_field field = {0};

    while (next_field(&message, &field)) {
        if (field.number == 1)
            event.wall_s = double_of(&field);
        if (field.number == 2)
            event.step = (int64_t)field.integer;
        if (field.number == 3)
            copy_text(field.bytes, event.version, sizeof event.version);
        if (field.number == 7)
            event.session = (int)field_of(field.bytes, 1).integer;
        if (field.number == 5) {
            read_field value = {0};

            while (next_field(&field.bytes, &value)) {
                assert_true(event.count < READ_VALUES && value.number == 1);
                event.value[event.count++] = parse_value(value.bytes);
            }
        }
    }
    return event;
}

/* All records of a file, each of which must be whole. */
static inline void read_events(const char *path, read_file *file)
{
    assert_ok(pace__read_file(path, 1 << 26, &file->bytes, &file->size, &said_log));
    stretch rest = {(const uint8_t *)file->bytes, file->size};
    size_t room = 0;

    file->count = 0;
    file->event = NULL;
    while (rest.size > 0) {
        stretch header = cut(&rest, 12), data, footer;
        uint64_t length;
        uint32_t length_crc, crc;

        memcpy(&length, header.at, 8);
        memcpy(&length_crc, header.at + 8, 4);
        assert_int_equal(length_crc, slow_masked_crc32c(header.at, 8));
        data = cut(&rest, length);
        footer = cut(&rest, 4);
        memcpy(&crc, footer.at, 4);
        assert_int_equal(crc, slow_masked_crc32c(data.at, data.size));
        if (file->count == room) {
            room = 2 * room + 16;
            file->event = realloc(file->event, room * sizeof *file->event);
            assert_non_null(file->event);
        }
        file->event[file->count++] = parse_event(data);
    }
}

static inline void free_events(read_file *file)
{
    free(file->bytes);
    free(file->event);
}

/* The value of a tag at a step, the last if there are several; NULL: none. */
static inline const read_value *find_value(const read_file *file, const char *tag, int64_t step)
{
    const read_value *found = NULL;

    for (size_t i = 0; i < file->count; i++) {
        for (size_t j = 0; j < file->event[i].count && file->event[i].step == step; j++) {
            if (strcmp(file->event[i].value[j].tag, tag) == 0)
                found = &file->event[i].value[j];
        }
    }
    return found;
}

static inline double scalar_of(const read_file *file, const char *tag, int64_t step)
{
    const read_value *value = find_value(file, tag, step);

    if (!value || !value->has_scalar)
        fail_msg("there is no %s at step %lld", tag, (long long)step);
    return value->scalar;
}

/* How many values a tag has. */
static inline size_t count_tag(const read_file *file, const char *tag)
{
    size_t count = 0;

    for (size_t i = 0; i < file->count; i++) {
        for (size_t j = 0; j < file->event[i].count; j++)
            count += strcmp(file->event[i].value[j].tag, tag) == 0;
    }
    return count;
}

#endif

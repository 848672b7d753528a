/*
 * made_pictures.h - files of pictures, made by tests. A pixel's value is a function of the picture's number, its
 * place and its channel, so that everyone can tell what should have come out.
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_MADE_PICTURES_H
#define UNIT_MADE_PICTURES_H

#include "files/crc32c.h"
#include "support.h"

typedef struct bytes_made {
    uint8_t *at;
    size_t size, room;
} bytes_made;

static inline void add_bytes(bytes_made *made, const void *bytes, size_t size)
{
    if (made->size + size > made->room) {
        made->room = 2 * (made->size + size) + 64;
        made->at = realloc(made->at, made->room);
        assert_non_null(made->at);
    }
    if (size > 0)
        memcpy(made->at + made->size, bytes, size);
    made->size += size;
}

static inline void add_byte(bytes_made *made, unsigned byte)
{
    add_bytes(made, &(uint8_t){(uint8_t)byte}, 1);
}

static inline void add_big(bytes_made *made, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        add_byte(made, value >> shift & 0xff);
}

/* Writes and forgets them. */
static inline void put_bytes(const char *path, bytes_made *made)
{
    assert_int_equal(pace__write_file_atomically(path, made->at ? made->at : (uint8_t *)"", made->size, NULL),
                     PACE_OK);
    free(made->at);
    *made = (bytes_made){0};
}

static inline uint8_t made_pixel(uint64_t picture, uint32_t y, uint32_t x, uint32_t channel)
{
    return (uint8_t)(pace__mix64(picture * 7919 + y * 251 + x * 31 + channel) >> 56);
}

/* --- PNG, not compressed --- */

static inline uint32_t png_crc(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? 0xedb88320 ^ crc >> 1 : crc >> 1;
    }
    return ~crc;
}

static inline void add_png_chunk(bytes_made *made, const char *type, const uint8_t *bytes, size_t size)
{
    add_big(made, (uint32_t)size);
    size_t start = made->size;

    add_bytes(made, type, 4);
    add_bytes(made, bytes, size);
    add_big(made, png_crc(made->at + start, made->size - start));
}

/* channels: 1 or 3. Sides so small that the rows are below 64 KiB. */
static inline bytes_made made_png(uint64_t picture, uint32_t height, uint32_t width, uint32_t channels)
{
    bytes_made made = {0}, head = {0}, rows = {0}, data = {0};
    uint32_t low = 1, high = 0;

    for (uint32_t y = 0; y < height; y++) {
        add_byte(&rows, 0); /* no filter */
        for (uint32_t i = 0; i < width * channels; i++)
            add_byte(&rows, made_pixel(picture, y, i / channels, i % channels));
    }
    for (size_t i = 0; i < rows.size; i++) {
        low = (low + rows.at[i]) % 65521;
        high = (high + low) % 65521;
    }
    add_bytes(&data, "\x78\x01\x01", 3); /* one stored block */
    add_byte(&data, rows.size & 0xff);
    add_byte(&data, (unsigned)(rows.size >> 8));
    add_byte(&data, ~rows.size & 0xff);
    add_byte(&data, (unsigned)(~rows.size >> 8 & 0xff));
    add_bytes(&data, rows.at, rows.size);
    add_big(&data, high << 16 | low);
    add_big(&head, width);
    add_big(&head, height);
    add_byte(&head, 8);
    add_byte(&head, channels == 3 ? 2 : 0);
    add_bytes(&head, "\0\0\0", 3);
    add_bytes(&made, "\x89PNG\r\n\x1a\n", 8);
    add_png_chunk(&made, "IHDR", head.at, head.size);
    add_png_chunk(&made, "IDAT", data.at, data.size);
    add_png_chunk(&made, "IEND", NULL, 0);
    free(head.at);
    free(rows.at);
    free(data.at);
    return made;
}

static inline void put_png(const char *path, uint64_t picture, uint32_t side, uint32_t channels)
{
    bytes_made made = made_png(picture, side, side, channels);

    put_bytes(path, &made);
}

/* --- IDX --- */

static inline bytes_made made_idx(uint64_t first, uint32_t count, uint32_t side, uint32_t channels)
{
    bytes_made made = {0};
    bool grey = channels == 1;

    add_big(&made, grey ? 0x803 : 0x804);
    add_big(&made, count);
    add_big(&made, side);
    add_big(&made, side);
    if (!grey)
        add_big(&made, channels);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < side * side * channels; k++)
            add_byte(&made, made_pixel(first + i, k / channels / side, k / channels % side, k % channels));
    }
    return made;
}

static inline bytes_made made_idx_labels(uint32_t count, uint32_t classes)
{
    bytes_made made = {0};

    add_big(&made, 0x801);
    add_big(&made, count);
    for (uint32_t i = 0; i < count; i++)
        add_byte(&made, i % classes);
    return made;
}

/* --- CIFAR: label i % classes; pixels in planes --- */

static inline bytes_made made_cifar(uint64_t first, uint32_t count, uint32_t classes, bool fine)
{
    bytes_made made = {0};

    for (uint32_t i = 0; i < count; i++) {
        if (fine)
            add_byte(&made, 7);
        add_byte(&made, i % classes);
        for (uint32_t k = 0; k < 3 * 32 * 32; k++)
            add_byte(&made, made_pixel(first + i, k % 1024 / 32, k % 32, k / 1024));
    }
    return made;
}

/* --- TFRecord --- */

static inline void add_varint(bytes_made *made, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_byte(made, (unsigned)(value & 0x7f) | 0x80);
    add_byte(made, (unsigned)value);
}

static inline void add_field(bytes_made *made, unsigned number, bytes_made *inside)
{
    add_varint(made, number << 3 | 2);
    add_varint(made, inside->size);
    add_bytes(made, inside->at, inside->size);
    free(inside->at);
    *inside = (bytes_made){0};
}

/* One entry of the map; `list` is the value's list, of kind 1 (bytes) or 3 (int64). */
static inline void add_feature(bytes_made *features, const char *name, unsigned kind, bytes_made *list)
{
    bytes_made key = {0}, feature = {0}, entry = {0};

    add_bytes(&key, name, strlen(name));
    add_field(&feature, kind, list);
    add_field(&entry, 1, &key);
    add_field(&entry, 2, &feature);
    add_field(features, 1, &entry);
}

static inline void add_bytes_feature(bytes_made *features, const char *name, const void *bytes, size_t size)
{
    bytes_made value = {0}, list = {0};

    add_bytes(&value, bytes, size);
    add_field(&list, 1, &value);
    add_feature(features, name, 1, &list);
}

static inline void add_integer_feature(bytes_made *features, const char *name, int64_t number, bool packed)
{
    bytes_made value = {0}, list = {0};

    if (packed) {
        add_varint(&value, (uint64_t)number);
        add_field(&list, 1, &value);
    } else {
        add_varint(&list, 1 << 3);
        add_varint(&list, (uint64_t)number);
    }
    add_feature(features, name, 3, &list);
}

/* Takes the features, which become an Example in a record. */
static inline void add_record(bytes_made *file, bytes_made *features)
{
    bytes_made example = {0};

    add_field(&example, 1, features);
    uint64_t length = example.size;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length);
    uint32_t data_crc = pace__masked_crc32c(example.at, example.size);

    add_bytes(file, &length, sizeof length);
    add_bytes(file, &crc, sizeof crc);
    add_bytes(file, example.at, example.size);
    add_bytes(file, &data_crc, sizeof data_crc);
    free(example.at);
}

/* `text` may be NULL. */
static inline void add_encoded_record(bytes_made *file, uint64_t picture, int64_t label, const char *text)
{
    bytes_made features = {0}, png = made_png(picture, 12, 12, 3);

    add_bytes_feature(&features, "image/encoded", png.at, png.size);
    add_integer_feature(&features, "image/class/label", label, true);
    if (text)
        add_bytes_feature(&features, "image/class/text", text, strlen(text));
    free(png.at);
    add_record(file, &features);
}

#endif

#include "gen/click_format.h"

#include "files/crc32c.h"

#include <stdlib.h>
#include <string.h>

#define DECIMALS 10000 /* of numeric values in numbered formats */

/* A bijection on 32 bits, so that texts are as distinct as numbers. The constants are arbitrary odd ones. */
static uint32_t scramble(uint32_t number)
{
    number += 0x6b43a9b5u;
    number = (number ^ number >> 16) * 0xa3d8c7b5u;
    number = (number ^ number >> 15) * 0x5bd1ce97u;
    return number ^ number >> 16;
}

/* Eight digits at once: nibbles are spread to bytes, and those above 9 moved on to the letters. */
static char *put_hexadecimal(char *at, uint32_t number)
{
    uint64_t x = number;

    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    uint64_t letters = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u;

    x = __builtin_bswap64(x + 0x3030303030303030u + letters * ('a' - '0' - 10));
    memcpy(at, &x, sizeof x);
    return at + sizeof x;
}

/* For numbers up to PACE__CLICK_INTEGER_MAX, eight digits: halves, quarters, eighths in lanes of one word. */
static char *put_decimal(char *at, uint32_t number)
{
    uint64_t x = number / 10000 | (uint64_t)(number % 10000) << 32;
    uint64_t high = (x * 10486 >> 20) & 0x0000007f0000007fu; /* hundreds */

    x = high | (x - 100 * high) << 16;
    high = (x * 103 >> 10) & 0x000f000f000f000fu; /* tens */
    x = high | (x - 10 * high) << 8;
    unsigned zeros =
        (unsigned)__builtin_ctzll(x | UINT64_C(1) << 56) / 8; /* in front; the last digit stays */

    x = (x + 0x3030303030303030u) >> (8 * zeros);
    memcpy(at, &x, sizeof x);
    return at + 8 - zeros;
}

char *pace__click_write_criteo(const pace__click_model *model, const pace__click_row *row, char *at)
{
    const uint32_t *offsets = pace__click_offsets(model);

    /* Missing fields are written, too, and then overwritten: branches on them would be mispredicted. */
    *at++ = row->clicked ? '1' : '0';
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        int32_t value = row->integers[c];

        *at++ = '\t';
        *at = '-';
        at += value < 0 && value != PACE__MISSING_INTEGER;
        char *end = put_decimal(at, value == PACE__MISSING_INTEGER ? 0 : (uint32_t)abs(value));

        at = value == PACE__MISSING_INTEGER ? at : end;
    }
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        *at++ = '\t';
        char *end = put_hexadecimal(at, scramble(offsets[c] + row->ranks[c]));

        at = row->ranks[c] == PACE__MISSING_RANK ? at : end;
    }
    *at++ = '\n';
    return at;
}

/* A row as numbered features: ids ascending, values in units of 1 / DECIMALS. */
typedef struct numbered {
    unsigned count;
    uint32_t ids[PACE__CRITEO_COLUMNS];
    uint32_t values[PACE__CRITEO_COLUMNS];
} numbered;

static void number_features(const pace__click_model *model, const pace__click_row *row, numbered *features)
{
    const uint32_t *offsets = pace__click_offsets(model);
    unsigned count = 0;

    /* Each feature is written, and overwritten by the next if it does not count: nothing to mispredict. */
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        int32_t value = row->integers[c];

        features->ids[count] = c + 1;
        features->values[count] = (uint32_t)(row->logs[c] * DECIMALS + 0.5);
        count += value >= 0;
    }
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        features->ids[count] = PACE__CLICK_FIRST_CATEGORY + offsets[c] + row->ranks[c];
        features->values[count] = DECIMALS;
        count += row->ranks[c] != PACE__MISSING_RANK;
    }
    features->count = count;
}

char *pace__click_write_svmlight(const pace__click_model *model, const pace__click_row *row, char *at)
{
    numbered features;

    number_features(model, row, &features);
    *at++ = row->clicked ? '1' : '0';
    for (unsigned i = 0; i < features.count; i++) {
        uint32_t value = features.values[i];

        *at++ = ' ';
        at = put_decimal(at, features.ids[i]);
        *at++ = ':';
        if (features.ids[i] >= PACE__CLICK_FIRST_CATEGORY) {
            *at++ = '1';
            continue;
        }
        at = put_decimal(at, value / DECIMALS);
        char *point = at;

        at = put_decimal(
            at, DECIMALS + value % DECIMALS); /* five digits: all zeros are kept, and the first makes room */
        *point = '.';
    }
    *at++ = '\n';
    return at;
}

/* Protocol buffers: fields begin with number << 3 | kind. Those here are all number 1 .. 3 with a length. */
#define FIELD(number) ((number) << 3 | 2)

static char *put_varint(char *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (char)(number | 0x80);
    *at++ = (char)number;
    return at;
}

static unsigned varint_size(uint64_t number)
{
    unsigned size = 1;

    for (; number >= 0x80; number >>= 7)
        size++;
    return size;
}

/* Bytes of a field with contents of `size`, with its tag and length. */
static unsigned field_size(unsigned size)
{
    return 1 + varint_size(size) + size;
}

static char *put_field(char *at, unsigned number, unsigned size)
{
    *at++ = (char)FIELD(number);
    return put_varint(at, size);
}

/* `size` bytes of packed elements sit in a list in a Feature in an entry of the map. */
#define INT64_LIST 3
#define FLOAT_LIST 2

static unsigned entry_size(unsigned name_size, unsigned size)
{
    return field_size(name_size) + field_size(field_size(field_size(size)));
}

static char *put_entry(char *at, const char *name, unsigned list, const void *elements, unsigned size)
{
    unsigned name_size = (unsigned)strlen(name);

    at = put_field(at, 1, entry_size(name_size, size));
    at = put_field(at, 1, name_size);
    memcpy(at, name, name_size);
    at = put_field(at + name_size, 2, field_size(field_size(size)));
    at = put_field(at, list, field_size(size));
    at = put_field(at, 1, size);
    memcpy(at, elements, size);
    return at + size;
}

static char *put_example(char *at, bool clicked, const numbered *features)
{
    char label[10], ids[PACE__CRITEO_COLUMNS * 5], *ids_end = ids;
    float values[PACE__CRITEO_COLUMNS];

    for (unsigned i = 0; i < features->count; i++) {
        ids_end = put_varint(ids_end, features->ids[i]);
        values[i] = (float)(features->values[i] / (double)DECIMALS);
    }
    unsigned label_size = (unsigned)(put_varint(label, clicked ? 1 : UINT64_MAX) - label);
    unsigned ids_size = (unsigned)(ids_end - ids), values_size = features->count * (unsigned)sizeof *values;

    at = put_field(at, 1,
                   field_size(entry_size(5, label_size)) + field_size(entry_size(5, ids_size)) +
                       field_size(entry_size(5, values_size)));
    at = put_entry(at, "index", INT64_LIST, ids, ids_size);
    at = put_entry(at, "label", INT64_LIST, label, label_size);
    return put_entry(at, "value", FLOAT_LIST, values, values_size);
}

char *pace__click_write_tfrecord(const pace__click_model *model, const pace__click_row *row, char *at)
{
    numbered features;

    number_features(model, row, &features);
    char *example = at + sizeof(uint64_t) + sizeof(uint32_t);
    char *end = put_example(example, row->clicked, &features);
    uint64_t size = (uint64_t)(end - example);
    uint32_t size_crc = pace__masked_crc32c(&size, sizeof size), crc = pace__masked_crc32c(example, size);

    memcpy(at, &size, sizeof size);
    memcpy(at + sizeof size, &size_crc, sizeof size_crc);
    memcpy(end, &crc, sizeof crc);
    return end + sizeof crc;
}

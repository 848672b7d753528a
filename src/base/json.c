#include "base/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(pace__json *json, const char *bytes, size_t size)
{
    if (json->size < json->capacity) {
        size_t room = json->capacity - json->size;

        memcpy(json->text + json->size, bytes, size < room ? size : room);
    }
    json->size += size;
}

void pace__json_raw(pace__json *json, const char *text)
{
    append(json, text, strlen(text));
}

void pace__json_integer(pace__json *json, int64_t value)
{
    char digits[24];

    append(json, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value));
}

void pace__json_unsigned(pace__json *json, uint64_t value)
{
    char digits[24];

    append(json, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value));
}

void pace__json_real(pace__json *json, double value)
{
    char digits[32];
    int size = 0;

    if (!isfinite(value)) {
        pace__json_raw(json, "null");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        size = snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    append(json, digits, (size_t)size);
}

static unsigned lead_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

unsigned pace__utf8_length(const char *text, size_t size)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned length = lead_length(byte[0]);

    if (length > size)
        return 0;
    for (unsigned i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    }
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
    if ((byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
        (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f))
        return 0;
    return length;
}

static void append_ascii(pace__json *json, char character)
{
    char escape[8];

    if (character == '"' || character == '\\') {
        append(json, (char[]){'\\', character}, 2);
    } else if (character == '\n') {
        append(json, "\\n", 2);
    } else if (character == '\t') {
        append(json, "\\t", 2);
    } else if ((unsigned char)character < 0x20 || character == 0x7f) {
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)character);
        append(json, escape, 6);
    } else {
        append(json, &character, 1);
    }
}

void pace__json_string(pace__json *json, const char *text)
{
    size_t left = strlen(text);

    append(json, "\"", 1);
    while (left > 0) {
        unsigned length = pace__utf8_length(text, left);

        if (length == 0) {
            append(json, "\\ufffd", 6);
            length = 1;
        } else if (length == 1) {
            append_ascii(json, *text);
        } else {
            append(json, text, length);
        }
        text += length;
        left -= length;
    }
    append(json, "\"", 1);
}

char *pace__json_valid(char *text)
{
    size_t left = text ? strlen(text) : 0, used = 0;
    char *valid = text ? malloc(3 * left + 1) : NULL;

    for (const char *at = text; valid && left > 0;) {
        unsigned length = pace__utf8_length(at, left);

        memcpy(valid + used, length ? at : "\xef\xbf\xbd", length ? length : 3);
        used += length ? length : 3;
        at += length ? length : 1;
        left -= length ? length : 1;
    }
    if (valid)
        valid[used] = '\0';
    free(text);
    return valid;
}

int pace__json_choice(const cJSON *object, const char *member, const char *const *names, int count)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, member));

    for (int i = 0; text && i < count; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
    }
    return -1;
}

bool pace__json_count(const cJSON *object, const char *member, uint64_t *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, member);
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;

    if (!(number >= 0 && number < (double)PACE__JSON_COUNT_MAX) || number != floor(number))
        return false;
    *value = (uint64_t)number;
    return true;
}

#include "serve/texts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_FIRST 4096

static bool make_room(pace__served_text *text, size_t more)
{
    size_t larger = text->capacity ? text->capacity : AT_FIRST;

    while (larger < text->size + more)
        larger *= 2;
    if (larger == text->capacity)
        return true;
    char *moved = realloc(text->bytes, larger);

    if (!moved) {
        text->failed = true;
        return false;
    }
    text->bytes = moved;
    text->capacity = larger;
    return true;
}

void pace__served_add_bytes(pace__served_text *text, const void *bytes, size_t size)
{
    if (!make_room(text, size))
        return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

void pace__served_add(pace__served_text *text, const char *format, ...)
{
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);

    va_end(arguments);
    if (size >= 0 && make_room(text, (size_t)size + 1)) {
        vsnprintf(text->bytes + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
}

void pace__served_add_json(pace__served_text *text, void (*put)(pace__json *json, const void *user),
                           const void *user)
{
    pace__json json = {0};

    put(&json, user);
    size_t size = json.size;

    if (!make_room(text, size))
        return;
    json = (pace__json){.text = text->bytes + text->size, .capacity = size};
    put(&json, user);
    text->size += size;
}

void pace__served_release(pace__served_text *text)
{
    free(text->bytes);
    *text = (pace__served_text){0};
}

/*
 * model_bytes.h - what the fuzz targets of networks' files share: a file's header, put together from the input.
 */
#ifndef FUZZ_MODEL_BYTES_H
#define FUZZ_MODEL_BYTES_H

#include "fuzzing.h"

#define TEXT_MAX 512

static inline size_t take_text(const uint8_t **data, size_t *size, char text[TEXT_MAX])
{
    size_t used = 0;

    for (char next = 1; used + 1 < TEXT_MAX && next; used += next != 0) {
        take(data, size, &next, 1);
        text[used] = next;
    }
    text[used] = '\0';
    return used;
}

/* A text as it stands in the header's JSON. */
static inline void append_text(char *header, const char *text)
{
    char *at = header + strlen(header);

    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at = '\0';
}

static inline void append_tensor(char *header, const char *name, const char *dtype, unsigned rank,
                                 const uint64_t *shape, size_t *offset, size_t bytes)
{
    char *at = header + strlen(header);

    at += sprintf(at, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, dtype);
    for (unsigned i = 0; i < rank; i++)
        at += sprintf(at, "%s%u", i ? "," : "", (unsigned)shape[i]);
    sprintf(at, "],\"data_offsets\":[%zu,%zu]}", *offset, *offset + bytes);
    *offset += bytes;
}

#endif

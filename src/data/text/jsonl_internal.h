/*
 * jsonl_internal.h - what the plain and the fast walker share. Internal to jsonl*.c, and for their tests.
 *
 * The plain walker goes byte by byte and says what is wrong with a line. The fast one has its own way
 * through the outermost object and through strings; arrays and objects in it are left to
 * pace__jsonl_walk_value, which uses its strings. It only says that something is wrong with a line; then the
 * plain one is asked.
 */
#ifndef DATA_TEXT_JSONL_INTERNAL_H
#define DATA_TEXT_JSONL_INTERNAL_H

#include "base/cpu.h"
#include "data/text/jsonl.h"

#include <string.h>

typedef struct pace__jsonl_walk pace__jsonl_walk;

/* `at` is behind the opening quote, and gets behind the closing one. False: not valid, the error is set. */
typedef bool pace__jsonl_string_fn(pace__jsonl_walk *walk, bool *escaped);

struct pace__jsonl_walk {
    const char *line;
    size_t size;
    size_t at;
    unsigned depth; /* objects and arrays that are open */
    pace__jsonl_string_fn *string;
    pace__jsonl_error error;
};

/* The value at walk->at, which gets behind it. */
bool pace__jsonl_walk_value(pace__jsonl_walk *walk, pace__jsonl_value *value);

typedef struct pace__jsonl_kernels {
    /* False: the line is not valid, or one that is left to the plain walk; the values are set anyway. */
    bool (*find)(const pace__jsonl_fields *fields, const char *line, size_t size, pace__jsonl_value *values);
    /* pace__jsonl_decode */
    size_t (*decode)(const char *text, size_t size, char *out);
} pace__jsonl_kernels;

PACE__TABLES(pace__jsonl_kernels, pace__jsonl)

/* The escape at text[0] == '\\': its bytes (2, 6, 12 for a pair, 0 if it is none), and its character. */
unsigned pace__jsonl_escape(const char *text, size_t size, uint32_t *character);

/* Which of the fields the name, which is text with escapes, is; -1 if none. */
int pace__jsonl_match_escaped(const pace__jsonl_fields *fields, const char *text, size_t size);

/* The same for one without escapes. 8 bytes are readable. */
static inline int pace__jsonl_match(const pace__jsonl_fields *fields, const char *text, size_t size)
{
    uint64_t first;

    memcpy(&first, text, sizeof first);
    if (size < sizeof first)
        first &= ((uint64_t)1 << (8 * size)) - 1;
    for (unsigned i = 0; i < fields->count; i++) {
        if (fields->first[i] == first && fields->size[i] == size && memcmp(fields->name[i], text, size) == 0)
            return (int)i;
    }
    return -1;
}

static inline bool pace__jsonl_is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static inline size_t pace__jsonl_skip_blanks(const char *line, size_t size, size_t at)
{
    while (at < size && pace__jsonl_is_blank(line[at]))
        at++;
    return at;
}

static inline size_t pace__jsonl_skip_digits(const char *line, size_t size, size_t at)
{
    while (at < size && (unsigned)(line[at] - '0') < 10)
        at++;
    return at;
}

/* Moves *at behind the number there. False if there is none: *at is where a digit is missing. */
static inline bool pace__jsonl_number(const char *line, size_t size, size_t *at)
{
    size_t first = *at + (*at < size && line[*at] == '-'), end = pace__jsonl_skip_digits(line, size, first);

    /* A zero in front is all there is in front of the point. */
    if (end > first && line[first] == '0')
        end = first + 1;
    if (end > first && end < size && line[end] == '.') {
        first = end + 1;
        end = pace__jsonl_skip_digits(line, size, first);
    }
    if (end > first && end < size && (line[end] | 0x20) == 'e') {
        first = end + 1;
        first += first < size && (line[first] == '+' || line[first] == '-');
        end = pace__jsonl_skip_digits(line, size, first);
    }
    *at = end;
    return end > first;
}

#endif

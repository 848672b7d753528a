/*
 * jsonl.h - fields of a line of JSON: a strict walk over one object that finds up to 8 of its members.
 *
 * The whole line has to be one JSON object as RFC 8259 has it, in UTF-8, with nothing but blanks (space, tab,
 * \r, \n) around it, whether or not the fields are found early: no trailing commas, no control characters in
 * strings, no lone surrogates, no numbers like 01 or +1, at most PACE__JSONL_DEPTH_MAX objects and arrays in
 * each other. Numbers are checked and left as text; any size is allowed.
 *
 * Only members of the outermost object are found, by their name; a name that is written with escapes is
 * decoded first. Of members with the same name the last one counts, as in Python.
 *
 * tokens.h has an example.
 */
#ifndef DATA_TEXT_JSONL_H
#define DATA_TEXT_JSONL_H

#include "data/text/tokens.h" /* PACE__TEXT_PADDING */

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__JSONL_FIELDS_MAX 8
#define PACE__JSONL_NAME_MAX   64
#define PACE__JSONL_DEPTH_MAX  64

/* Which fields are wanted. */
typedef struct pace__jsonl_fields {
    unsigned count;
    uint32_t size[PACE__JSONL_FIELDS_MAX]; /* of the names */
    uint64_t
        first[PACE__JSONL_FIELDS_MAX]; /* their first 8 bytes, to compare these first; filled with zeros */
    char name[PACE__JSONL_FIELDS_MAX][PACE__JSONL_NAME_MAX];
} pace__jsonl_fields;

typedef enum pace__jsonl_kind {
    PACE__JSONL_MISSING,
    PACE__JSONL_NULL,
    PACE__JSONL_FALSE,
    PACE__JSONL_TRUE,
    PACE__JSONL_NUMBER,
    PACE__JSONL_STRING,
    PACE__JSONL_ARRAY,
    PACE__JSONL_OBJECT,
} pace__jsonl_kind;

typedef struct pace__jsonl_value {
    const char *text; /* in the line; a string's is without its quotes; NULL if missing */
    size_t size;
    pace__jsonl_kind kind;
    bool escaped; /* a string with escapes: pace__jsonl_decode */
} pace__jsonl_value;

typedef struct pace__jsonl_error {
    size_t offset;      /* of the first byte that is wrong; the line's size if it ends too early */
    const char *reason; /* "... is expected", a constant */
} pace__jsonl_error;

/* Names of 1 to PACE__JSONL_NAME_MAX bytes of UTF-8, all different, or PACE_USAGE. They are copied. */
pace_status pace__jsonl_fields_init(pace__jsonl_fields *fields, const char *const *names, unsigned count,
                                    const pace_log *log);

/*
 * values[i] is what fields->name[i] has in the line. False if the line is not valid: then only *error is set,
 * else only the values. PACE__TEXT_PADDING bytes behind the line are readable.
 */
bool pace__jsonl_find(const pace__jsonl_fields *fields, const char *line, size_t size,
                      pace__jsonl_value *values, pace__jsonl_error *error);

/*
 * Writes the string that pace__jsonl_find has found to `out` without its escapes; returns its bytes, at most
 * `size`. It is valid UTF-8 and may hold NULs. `out`, which is not in the line, has room for size +
 * PACE__TEXT_PADDING bytes, so that it can be tokenised.
 */
size_t pace__jsonl_decode(const char *text, size_t size, char *out);

#endif

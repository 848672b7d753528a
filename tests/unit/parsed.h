/*
 * parsed.h - for tests of parsers: everything that a parser makes of a text, in one place, to be looked at
 * or compared.
 */
#ifndef TESTS_PARSED_H
#define TESTS_PARSED_H

#include "data/formats/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct parsed_text {
    pace_status status;
    uint64_t bad;
    size_t rows, entries;
    uint8_t *label;
    uint64_t *offset;
    size_t *start; /* rows + 1 */
    uint64_t *ids;
    float *values;
    char messages[PACE__BAD_ROWS_SHOWN + 2][PACE_LOG_TEXT_MAX];
    size_t message_count;
} parsed_text;

typedef struct parse_case {
    pace__parse_fn *parse;
    const pace__encoding *encoding;
    bool labels_optional, ids_unbounded;
    uint64_t bad_max;
    const char *text;
    size_t size;
} parse_case;

#define PARSED_OFFSET 1000 /* of the chunk in its file */

static inline void parsed_log(void *user, pace_level level, const char *text)
{
    parsed_text *result = user;

    (void)level;
    assert(result->message_count < PACE__BAD_ROWS_SHOWN + 2);
    strcpy(result->messages[result->message_count++], text);
}

static inline void *parsed_grow(void *array, size_t bytes)
{
    void *grown = realloc(array, bytes + 1);

    assert(grown);
    return grown;
}

static inline void parsed_append(parsed_text *parsed, const pace__raw_rows *rows)
{
    size_t count = parsed->rows + rows->rows, entries = parsed->entries + rows->start[rows->rows];

    parsed->label = parsed_grow(parsed->label, count);
    parsed->offset = parsed_grow(parsed->offset, count * sizeof *parsed->offset);
    parsed->start = parsed_grow(parsed->start, (count + 1) * sizeof *parsed->start);
    parsed->ids = parsed_grow(parsed->ids, entries * sizeof *parsed->ids);
    parsed->values = parsed_grow(parsed->values, entries * sizeof *parsed->values);
    parsed->start[0] = 0;
    for (size_t i = 0; i < rows->rows; i++) {
        parsed->label[parsed->rows + i] = rows->label[i];
        parsed->offset[parsed->rows + i] = rows->offset[i] - PARSED_OFFSET;
        parsed->start[parsed->rows + i + 1] = parsed->entries + rows->start[i + 1];
    }
    for (size_t i = 0; i < rows->start[rows->rows]; i++) {
        parsed->ids[parsed->entries + i] = rows->ids[i];
        parsed->values[parsed->entries + i] = rows->values[i];
    }
    parsed->rows = count;
    parsed->entries = entries;
}

/* The text is parsed from a buffer of exactly its size and the slack, which is full of digits. */
static inline pace__chunk parsed_chunk(const char *text, size_t size)
{
    char *buffer = parsed_grow(NULL, size + PACE__CHUNK_SLACK);

    memcpy(buffer, text, size);
    memset(buffer + size, '7', PACE__CHUNK_SLACK);
    return (pace__chunk){.data = buffer, .size = size, .offset = PARSED_OFFSET, .buffer = buffer};
}

/* Fills *result, to be released by parsed_release. */
static inline void parsed_run(const parse_case *test, parsed_text *result)
{
    *result = (parsed_text){0};
    pace_log log = {parsed_log, result};
    pace__bad_rows bad = {.max = test->bad_max, .log = &log};
    pace__parser parser = {test->encoding, test->labels_optional, test->ids_unbounded, &bad};
    pace__chunk chunk = parsed_chunk(test->text, test->size);
    pace__raw_rows rows;
    pace_status status = pace__raw_rows_init(&rows, &log);

    assert(!status);
    /* Values are left alone by PACE_NUMERIC_BINS: make them comparable. */
    memset(rows.values, 0, rows.entries_max * sizeof *rows.values);
    for (size_t at = 0; !result->status && at < chunk.size;) {
        size_t before = at;

        result->status = test->parse(&parser, &chunk, &at, &rows);
        assert(result->status || (at > before && at <= chunk.size && rows.rows <= PACE__RAW_ROWS));
        if (!result->status)
            parsed_append(result, &rows);
    }
    result->bad = atomic_load(&bad.count);
    pace__raw_rows_release(&rows);
    free(chunk.buffer);
}

static inline void parsed_release(parsed_text *parsed)
{
    free(parsed->label);
    free(parsed->offset);
    free(parsed->start);
    free(parsed->ids);
    free(parsed->values);
}

/* NULL if both are the same, else what differs. */
static inline const char *parsed_difference(const parsed_text *a, const parsed_text *b, bool with_values)
{
    if (a->status != b->status || a->bad != b->bad || a->message_count != b->message_count)
        return "status or number of bad rows";
    for (size_t i = 0; i < a->message_count; i++) {
        if (strcmp(a->messages[i], b->messages[i]) != 0)
            return "message";
    }
    if (a->rows != b->rows || a->entries != b->entries)
        return "number of rows or entries";
    if (a->rows == 0)
        return NULL;
    if (memcmp(a->label, b->label, a->rows) != 0)
        return "labels";
    if (memcmp(a->offset, b->offset, a->rows * sizeof *a->offset) != 0)
        return "offsets";
    if (memcmp(a->start, b->start, (a->rows + 1) * sizeof *a->start) != 0)
        return "starts";
    if (memcmp(a->ids, b->ids, a->entries * sizeof *a->ids) != 0)
        return "ids";
    if (with_values && memcmp(a->values, b->values, a->entries * sizeof *a->values) != 0)
        return "values";
    return NULL;
}

#endif

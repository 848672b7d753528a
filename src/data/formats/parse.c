#include "data/formats/parse.h"

#include "data/formats/criteo.h"
#include "data/formats/sheet_rows.h"
#include "data/formats/svmlight.h"
#include "data/input/input_files.h"

#include <assert.h>
#include <paceline/prep.h>
#include <stdarg.h>
#include <stdio.h>

pace__parse_fn *pace__parser_of(int format)
{
    switch (format) {
    case PACE_FORMAT_CRITEO:
        return pace__criteo_of(pace_kernels_in_use())->parse;
    case PACE_FORMAT_SVMLIGHT:
        return pace__svmlight_of(pace_kernels_in_use())->parse;
    case PACE_FORMAT_CSV:
    case PACE_FORMAT_TSV:
        return pace__parse_table;
    default:
        assert(format == PACE_FORMAT_TFRECORD);
        return pace__parse_tfrecord;
    }
}

int pace__boundary_of(int format)
{
    assert(format != PACE_FORMAT_AUTO);
    return format == PACE_FORMAT_TFRECORD ? PACE__TFRECORDS
           : format == PACE_FORMAT_CSV    ? PACE__CSV
                                          : PACE__LINES;
}

/* From 1; 0: nobody can tell. */
static uint64_t line_of(const pace__input *input, const pace__chunk *chunk, size_t at)
{
    if (chunk->line > 0)
        return chunk->line + pace__count_lines(chunk->data, at);
    return input ? pace__input_line_of(input, chunk->file, chunk->offset + at) : 0;
}

/* "FILE:LINE", or what comes closest to it. */
static void name_place(const pace__input *input, const pace__chunk *chunk, size_t at, char *text, size_t size)
{
    unsigned long long byte = chunk->offset + at;
    const char *path = input ? pace__input_path(input, chunk->file) : "-";

    if (pace__is_standard_input(path))
        path = "standard input";
    if (input && pace__input_boundary(input) == PACE__TFRECORDS) {
        snprintf(text, size, "%s: record at byte %llu", path, byte);
        return;
    }
    unsigned long long line = line_of(input, chunk, at);

    if (line > 0)
        snprintf(text, size, "%s:%llu", path, line);
    else
        snprintf(text, size, "%s: byte %llu", path, byte);
}

pace_status pace__bad_row(pace__bad_rows *bad, const pace__chunk *chunk, size_t at, const char *format, ...)
{
    char place[PACE_LOG_TEXT_MAX], reason[PACE_LOG_TEXT_MAX];
    uint64_t count = atomic_fetch_add(&bad->count, 1) + 1;
    bool fatal = count > bad->max;
    va_list arguments;

    /* Finding a line's number reads the file again: not for rows that nobody is told of. */
    if (fatal ? count > bad->max + 1 : count > PACE__BAD_ROWS_SHOWN)
        return fatal ? PACE_BAD_DATA : PACE_OK;
    name_place(bad->input, chunk, at, place, sizeof place);
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (fatal && bad->max > 0)
        return pace_fail(bad->log, PACE_BAD_DATA,
                         "%s: %s, after %llu skipped rows: that is all --max-bad-rows allows", place, reason,
                         (unsigned long long)bad->max);
    if (fatal)
        return pace_fail(bad->log, PACE_BAD_DATA, "%s: %s (--max-bad-rows N skips such rows)", place, reason);
    pace_say(bad->log, PACE_WARN, "%s: %s: row skipped%s", place, reason,
             count == PACE__BAD_ROWS_SHOWN ? "; more of them are counted but not shown" : "");
    return PACE_OK;
}

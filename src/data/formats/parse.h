/*
 * parse.h - raw bytes to rows: Criteo TSV, svmlight, TFRecord of tf.Example, tables.
 *
 * One call turns the next records of a chunk into rows. A bad record is reported with its file, line or
 * offset, and reason; up to bad->max of them are skipped and counted, one more ends the job with
 * PACE_BAD_DATA. Parsers keep no state between calls and may run on many chunks at once; that of tables has a reader,
 * one per thread, which knows the header.
 */
#ifndef DATA_FORMATS_PARSE_H
#define DATA_FORMATS_PARSE_H

#include "base/cpu.h"
#include "data/formats/rows.h"
#include "data/input/input.h"

#include <stdatomic.h>

/* Shared by all threads of a job. */
typedef struct pace__bad_rows {
    uint64_t max; /* how many are skipped before the job fails */
    atomic_uint_fast64_t count;
    const pace__input *input; /* NULL: the chunks are of standard input */
    const pace_log *log;
} pace__bad_rows;

/* The first PACE__BAD_ROWS_SHOWN are shown as warnings, in full. */
#define PACE__BAD_ROWS_SHOWN 10

typedef struct pace__parser {
    const pace__encoding *encoding;
    bool labels_optional; /* predict: rows may come without their label */
    bool ids_unbounded;   /* numbered ids beyond features are let through: --like and predict treat them as
                             unseen */
    pace__bad_rows *bad;
    struct pace__sheet_reader *sheet; /* of csv and tsv (sheet_rows.h) */
} pace__parser;

/*
 * Clears `rows`, then fills it from chunk->data + *at on, and moves *at behind what it took. Done when *at ==
 * chunk->size.
 */
typedef pace_status pace__parse_fn(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                   pace__raw_rows *rows);

/* A format of which there is a parser for every set of kernels (base/cpu.h): all give the same rows. */
typedef struct pace__parse_kernels {
    pace__parse_fn *parse;
} pace__parse_kernels;

pace__parse_fn pace__parse_tfrecord;

/* The parser, of the kernels in use, and the record boundary of a PACE_FORMAT_* (not AUTO). */
pace__parse_fn *pace__parser_of(int format);
int pace__boundary_of(int format);

/* For parsers: counts and reports one bad record; PACE_OK if it may be skipped. */
pace_status pace__bad_row(pace__bad_rows *bad, const pace__chunk *chunk, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

/*
 * reviews.h - raw reviews, whatever the format, as texts with a rating.
 *
 * Formats:
 *     jsonl    one JSON object a line; the text and rating fields by name
 *     csv      a header line, then records with commas; fields may be quoted with ", which is doubled inside,
 *              and quoted fields may hold newlines
 *     tsv      a header line, then one record a line with tabs; nothing is quoted
 *     tab      LABEL<TAB>TEXT, one a line, no header
 *     lines    one text a line; the label comes with the file: FILE=LABEL
 *     folder   a directory with a sub-directory per label (pos and neg, or numbers), one text per file *.txt
 *
 * A rating is any finite number. The words pos, positive, true and neg, negative, false (any case) are 1 and
 * 0. In jsonl it may be a number, true, false, or a string that holds one of these.
 *
 * What is wrong with a record is a bad row (parse.h): it names file, line and reason, and is skipped and
 * counted as far as allowed: broken JSON, invalid UTF-8, a missing field or column, a text that is no string,
 * a rating that is no number, a text without any character but blanks, a file that cannot be split into
 * records. Blank lines are no records and are passed over; a BOM at the beginning of a file, too.
 */
#ifndef DATA_TEXT_REVIEWS_H
#define DATA_TEXT_REVIEWS_H

#include "data/formats/parse.h"
#include "data/input/input.h"
#include "data/text/jsonl.h"

typedef struct pace__review_options {
    int format;                           /* PACE_REVIEWS_*; never AUTO */
    const char *text_field, *label_field; /* of jsonl, csv, tsv */
    /* predict: a record may have no rating (no field, an empty one, no column, no tab), or one that cannot be
     * read; and its text may be empty. Of lines, blank ones are records, too: every line is. */
    bool labels_optional;
} pace__review_options;

/* The files that the command's words stand for. */
typedef struct pace__review_files {
    size_t count;
    char **paths;
    double *rating; /* (count) of lines and folder; NAN: in the records */
} pace__review_files;

/*
 * Settles format and files: *format may be AUTO before. A word FILE=LABEL is lines (unless a file of that
 * whole name exists), a directory is folder; other files are told by their first bytes, decompressed: '{' is
 * jsonl; a first line that has both fields as columns, divided by tabs or commas, is tsv or csv; else it is
 * PACE_USAGE that says what was looked for, and, for a table, which columns there are. All words must be of
 * one format. Missing files are PACE_NO_INPUT. Files of a folder are ordered by their path. Headers of csv and
 * tsv files that can be read twice are checked here already, so that a missing column (PACE_USAGE) is told once.
 */
pace_status pace__review_files_find(const pace_texts *words, pace__review_options *options,
                                    const pace_log *log, pace__review_files *files);
void pace__review_files_release(pace__review_files *files);

/* Of a PACE_REVIEWS_*, as the option --format has it. */
const char *pace__review_format_name(int format);

/* The boundary (input.h) that chunks of a format have. */
int pace__review_boundary(int format);

typedef struct pace__review {
    const char *text; /* valid UTF-8, PACE__TEXT_PADDING readable bytes behind it; until the next call */
    size_t size;
    double rating;   /* NAN: it has none */
    uint64_t offset; /* of the record in its uncompressed file */
} pace__review;

/* Reads the records of chunks, in any order of chunks. One per thread. */
typedef struct pace__review_reader pace__review_reader;

pace_status pace__review_reader_create(const pace__review_options *options, const pace__review_files *files,
                                       pace__bad_rows *bad, const pace_log *log,
                                       pace__review_reader **reader);
void pace__review_reader_free(pace__review_reader *reader); /* NULL is allowed */

/*
 * The next record of the chunk from *at on, which moves behind it; *found is false when there is none left.
 * For csv and tsv the reader reads the header of a file for itself, before that file's first chunk, if the
 * chunk does not begin with it; for that, bad->input must be the chunk's.
 */
pace_status pace__review_next(pace__review_reader *reader, const pace__chunk *chunk, size_t *at, bool *found,
                              pace__review *review);

#endif

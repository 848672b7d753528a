/*
 * reviews_internal.h - what finding files and reading them share: headers of tables, messages on what is
 * there.
 */
#ifndef DATA_TEXT_REVIEWS_INTERNAL_H
#define DATA_TEXT_REVIEWS_INTERNAL_H

#include "data/input/header.h"
#include "data/text/reviews.h"

#include <paceline/prep.h>

/* What the header of a table says. */
typedef struct pace__table_header {
    uint32_t columns;
    uint32_t text, label; /* PACE__NO_COLUMN: not there */
    size_t size;          /* of all up to the first record */
} pace__table_header;

static inline char pace__separator_of(int format)
{
    return format == PACE_REVIEWS_CSV ? ',' : '\t';
}

static inline bool pace__has_header(int format)
{
    return format == PACE_REVIEWS_CSV || format == PACE_REVIEWS_TSV;
}

/*
 * Looks for the columns in the first line that is not blank, behind a BOM. False if there is no such line,
 * or it does not end within the text and `complete` is false. Of columns with the same name the first counts.
 */
bool pace__table_header_find(const pace__review_options *options, char separator, const char *text,
                             size_t size, bool complete, pace__table_header *header);

static inline bool pace__table_header_fits(const pace__review_options *options,
                                           const pace__table_header *header)
{
    return header->text != PACE__NO_COLUMN && (header->label != PACE__NO_COLUMN || options->labels_optional);
}

/*
 * The header of a table that has to be one, from the first bytes of a file. PACE_USAGE if a column is
 * missing; a file of blank lines has a header of no columns.
 */
pace_status pace__table_header_read(const pace__review_options *options, const char *path, const char *text,
                                    size_t size, bool complete, const pace_log *log,
                                    pace__table_header *header);

#endif

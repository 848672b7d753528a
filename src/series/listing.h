/*
 * listing.h - a table of texts, as a terminal, Markdown and CSV have it; and files of what is put into a stream, whole or not
 * at all.
 *
 *     pace__listing listing = {.rows = 3, .columns = 2, .user = figures, .heading = heading, .is_left = is_left, .cell = cell};
 *     pace__listing_put_text(out, &listing);
 */
#ifndef SERIES_LISTING_H
#define SERIES_LISTING_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PACE__LISTING_TEXT 128

typedef struct pace__listing {
    size_t rows, columns;
    const void *user;
    const char *(*heading)(const void *user, size_t column);
    bool (*is_left)(const void *user, size_t column);
    /* May write into `text`; what it returns is read before it is called again. */
    const char *(*cell)(const void *user, size_t row, size_t column, char text[PACE__LISTING_TEXT]);
} pace__listing;

void pace__listing_put_text(FILE *out, const pace__listing *listing);
void pace__listing_put_markdown(FILE *out, const pace__listing *listing);

/* With the comma before it: names may have anything in them. */
void pace__csv_put_quoted(FILE *out, const char *text);
/* What is no number is empty. */
void pace__csv_put_number(FILE *out, double value);

typedef pace_status pace__put_fn(FILE *out, const void *user, const pace_log *log);

/* What it puts, to be freed. */
pace_status pace__put_in_memory(pace__put_fn *put, const void *user, const pace_log *log, char **text,
                                size_t *size);
/* Into DIRECTORY/name: readers see the old file or the new one. */
pace_status pace__put_in_file(const char *directory, const char *name, pace__put_fn *put, const void *user,
                              const pace_log *log);

#endif

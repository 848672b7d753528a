#include "series/listing.h"

#include "files/file.h"

#include <math.h>
#include <stdlib.h>

/* --- a terminal --- */

/* Columns that a terminal shows of a text: all bytes but those that go on with a character. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const pace__listing *listing, size_t column)
{
    char text[PACE__LISTING_TEXT];
    int width = width_of(listing->heading(listing->user, column));

    for (size_t row = 0; row < listing->rows; row++) {
        int own = width_of(listing->cell(listing->user, row, column, text));

        width = own > width ? own : width;
    }
    return width;
}

/* Blanks are owed until something follows: no line ends with them. Returns how many there are then. */
static int put_padded(FILE *out, const char *text, int width, bool right, int owed)
{
    int blanks = width - width_of(text);

    owed += right ? blanks : 0;
    if (*text) {
        fprintf(out, "%*s%s", owed, "", text);
        owed = 0;
    }
    return owed + (right ? 0 : blanks) + 2;
}

static void put_line(FILE *out, const pace__listing *listing, const int *widths, size_t row)
{
    char text[PACE__LISTING_TEXT];
    int owed = 0;

    for (size_t i = 0; i < listing->columns; i++)
        owed = put_padded(out,
                          row < listing->rows ? listing->cell(listing->user, row, i, text)
                                              : listing->heading(listing->user, i),
                          widths[i], !listing->is_left(listing->user, i), owed);
    fputc('\n', out);
}

void pace__listing_put_text(FILE *out, const pace__listing *listing)
{
    int *widths = calloc(listing->columns + 1, sizeof *widths); /* without memory there is nothing */

    for (size_t i = 0; widths && i < listing->columns; i++)
        widths[i] = column_width(listing, i);
    if (widths)
        put_line(out, listing, widths, listing->rows);
    for (size_t row = 0; widths && row < listing->rows; row++)
        put_line(out, listing, widths, row);
    free(widths);
}

/* --- Markdown --- */

/* Names may have what ends a cell. */
static void put_cell(FILE *out, const char *text)
{
    fputc(' ', out);
    for (; *text; text++) {
        if (*text == '|' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputs(" |", out);
}

void pace__listing_put_markdown(FILE *out, const pace__listing *listing)
{
    char text[PACE__LISTING_TEXT];

    fputc('|', out);
    for (size_t i = 0; i < listing->columns; i++)
        put_cell(out, listing->heading(listing->user, i));
    fputs("\n|", out);
    for (size_t i = 0; i < listing->columns; i++)
        fputs(listing->is_left(listing->user, i) ? "---|" : "--:|", out);
    for (size_t row = 0; row < listing->rows; row++) {
        fputs("\n|", out);
        for (size_t i = 0; i < listing->columns; i++)
            put_cell(out, listing->cell(listing->user, row, i, text));
    }
    fputc('\n', out);
}

/* --- CSV --- */

void pace__csv_put_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

void pace__csv_put_quoted(FILE *out, const char *text)
{
    fputs(",\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* --- files --- */

pace_status pace__put_in_memory(pace__put_fn *put, const void *user, const pace_log *log, char **text,
                                size_t *size)
{
    FILE *out = open_memstream(text, size);

    if (!out)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = put(out, user, log);
    bool failed = ferror(out) != 0;

    failed |= fclose(out) != 0;
    if (!status && failed)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}

pace_status pace__put_in_file(const char *directory, const char *name, pace__put_fn *put, const void *user,
                              const pace_log *log)
{
    char *path = pace__format("%s/%s", directory, name), *text;
    size_t size;
    pace_status status = path ? pace__put_in_memory(put, user, log, &text, &size)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__write_file_atomically(path, text, size, log);
        free(text);
    }
    free(path);
    return status;
}

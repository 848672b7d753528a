/*
 * sheet.h - the columns of a table with a header (csv, tsv): what each of them is, and how its cells become places in
 * the range of ids that the column owns (encoding.h).
 *
 * Columns are known by their names alone, so that another day's file may have them in another order. A column is a
 * *number*, a *category*, *ignored*, or the label; the others that a file may have are new, and left out.
 *
 * A category is its text, hashed as Criteo's are. A number is measured in steps of a power of ten from an origin: a
 * whole number is a count from 0 as a rule, years are counted from about their middle, a share of 1 in hundredths
 * (data/guess/guess.h). Steps have Criteo's logarithmic bins, and as many again below the origin; or one weight times the
 * logarithm. What is missing (an empty cell; of numbers also NA, null, ?, ...) has a place of its own.
 *
 *     pace__sheet_column columns[] = {{"age", PACE__COLUMN_NUMBER}, {"city", PACE__COLUMN_CATEGORY}, {"sold", PACE__COLUMN_LABEL}};
 *     status = pace__sheet_make(columns, 3, "cars.csv", &sheet, log);
 *     status = pace__encoding_sheet(features, PACE_NUMERIC_BINS, &sheet, &encoding, log);
 */
#ifndef DATA_FORMATS_SHEET_H
#define DATA_FORMATS_SHEET_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All columns together, the label and those that are left out among them. */
#define PACE__SHEET_COLUMNS_MAX 512
/* Of all names, with a NUL each: what says them must fit an attribute of HDF5, 64 KiB. */
#define PACE__SHEET_NAMES_BYTES (16 << 10)

typedef enum pace__column_kind {
    PACE__COLUMN_NUMBER,
    PACE__COLUMN_CATEGORY,
    PACE__COLUMN_IGNORED,
    PACE__COLUMN_LABEL,
} pace__column_kind;

/* A value is value / 10^exponent - origin steps. */
typedef struct pace__scale {
    int64_t origin;
    int32_t exponent; /* -PACE__POWER_OF_TEN_MAX .. PACE__POWER_OF_TEN_MAX */
} pace__scale;

#define PACE__SCALE_ORIGIN_MAX (INT64_C(1) << 53)

typedef struct pace__sheet_column {
    const char *name;
    pace__column_kind kind;
    pace__scale steps;
} pace__sheet_column;

/* Plain values, without pointers: an encoding is copied as it is. In order: numbers, categories, ignored columns, each
 * by name; then the label. */
typedef struct pace__sheet {
    uint32_t columns; /* numbers and categories: those that become features */
    uint32_t numbers;
    uint32_t ignored;
    uint32_t name_at[PACE__SHEET_COLUMNS_MAX];
    pace__scale steps[PACE__SHEET_COLUMNS_MAX]; /* of numbers */
    char names[PACE__SHEET_NAMES_BYTES];
} pace__sheet;

/*
 * Orders the columns. PACE_BAD_DATA, told as one of `where`: a name twice, empty, with control characters or bytes that
 * are no UTF-8; no label or two; no features; more than the limits.
 */
pace_status pace__sheet_make(pace__sheet_column *columns, size_t count, const char *where, pace__sheet *sheet,
                             const pace_log *log);

static inline const char *pace__sheet_name(const pace__sheet *sheet, uint32_t column)
{
    return sheet->names + sheet->name_at[column];
}

static inline uint32_t pace__sheet_label(const pace__sheet *sheet)
{
    return sheet->columns + sheet->ignored;
}

/* Which of all columns, the label included, or PACE__SHEET_NONE. */
#define PACE__SHEET_NONE UINT32_MAX
uint32_t pace__sheet_find(const pace__sheet *sheet, const char *name);

/* The same features of the same names. Other labels and ignored columns change nothing for a model. */
bool pace__sheets_agree(const pace__sheet *a, const pace__sheet *b);

/* --- cells --- */

/* False if the text is no finite number. A missing one is NAN. */
bool pace__sheet_number(const char *text, size_t size, double *value);
/* 0/1, -1/+1, no/yes, false/true and their first letters, in any case; false if it is none of these. */
bool pace__sheet_label_of(const char *text, size_t size, uint8_t *label);

double pace__sheet_steps(pace__scale steps, double value);

/* Places of a number's column: bin 0 is for what is missing. */
#define PACE__SHEET_BINS 512
uint32_t pace__sheet_bin(double steps);
float pace__sheet_value(double steps);

#endif

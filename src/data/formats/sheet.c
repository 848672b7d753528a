#include "data/formats/sheet.h"

#include "base/json.h"
#include "data/formats/encoding.h"
#include "data/input/decimal.h"
#include "data/input/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Beyond the last of Criteo's bins, which are those of whole numbers. */
#define STEPS_MAX 1e9

/* --- names --- */

static bool is_name(const char *name)
{
    size_t size = strlen(name);

    for (size_t at = 0; at < size;) {
        unsigned length = pace__utf8_length(name + at, size - at);

        if (length == 0 || (unsigned char)name[at] < ' ' || name[at] == 0x7f)
            return false;
        at += length;
    }
    return size > 0;
}

static int in_order(const void *left, const void *right)
{
    const pace__sheet_column *a = left, *b = right;

    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const pace__sheet_column *)left)->name, ((const pace__sheet_column *)right)->name);
}

/* Leaves the columns in the order of their names. */
static pace_status check_names(pace__sheet_column *columns, size_t count, const char *where,
                               const pace_log *log)
{
    qsort(columns, count, sizeof *columns, by_name);
    for (size_t i = 0; i < count; i++) {
        const char *name = columns[i].name;

        if (!is_name(name))
            return pace_fail(
                log, PACE_BAD_DATA,
                "%s: the name of a column is \"%s\": names are UTF-8, not empty, without control characters",
                where, pace__show(name, strlen(name)).text);
        if (i > 0 && strcmp(columns[i - 1].name, name) == 0)
            return pace_fail(log, PACE_BAD_DATA, "%s: two columns are called \"%s\"", where,
                             pace__show(name, strlen(name)).text);
    }
    return PACE_OK;
}

static size_t count_of(const pace__sheet_column *columns, size_t count, pace__column_kind kind)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += columns[i].kind == kind;
    return found;
}

static pace_status check_columns(pace__sheet_column *columns, size_t count, const char *where,
                                 const pace_log *log)
{
    size_t labels = count_of(columns, count, PACE__COLUMN_LABEL), bytes = 0;

    if (count > PACE__SHEET_COLUMNS_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: %zu columns: at most %d are possible", where, count,
                         PACE__SHEET_COLUMNS_MAX);
    for (size_t i = 0; i < count; i++)
        bytes += strlen(columns[i].name) + 1;
    if (bytes > PACE__SHEET_NAMES_BYTES)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: the names of the columns have %zu bytes together: at most %d are possible",
                         where, bytes, PACE__SHEET_NAMES_BYTES);
    if (labels != 1)
        return pace_fail(log, PACE_BAD_DATA, "%s: %zu columns are the label, instead of one", where, labels);
    if (count_of(columns, count, PACE__COLUMN_IGNORED) + 1 == count)
        return pace_fail(log, PACE_BAD_DATA, "%s: there is no column besides the label to learn from", where);
    return check_names(columns, count, where, log);
}

pace_status pace__sheet_make(pace__sheet_column *columns, size_t count, const char *where, pace__sheet *sheet,
                             const pace_log *log)
{
    pace_status status = check_columns(columns, count, where, log);
    size_t at = 0;

    if (status)
        return status;
    qsort(columns, count, sizeof *columns, in_order);
    memset(sheet, 0, sizeof *sheet);
    sheet->numbers = (uint32_t)count_of(columns, count, PACE__COLUMN_NUMBER);
    sheet->columns = sheet->numbers + (uint32_t)count_of(columns, count, PACE__COLUMN_CATEGORY);
    sheet->ignored = (uint32_t)count_of(columns, count, PACE__COLUMN_IGNORED);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(columns[i].name) + 1;

        memcpy(sheet->names + at, columns[i].name, size);
        sheet->name_at[i] = (uint32_t)at;
        if (columns[i].kind == PACE__COLUMN_NUMBER)
            sheet->steps[i] = columns[i].steps;
        at += size;
    }
    return PACE_OK;
}

uint32_t pace__sheet_find(const pace__sheet *sheet, const char *name)
{
    for (uint32_t i = 0; i <= pace__sheet_label(sheet); i++) {
        if (strcmp(pace__sheet_name(sheet, i), name) == 0)
            return i;
    }
    return PACE__SHEET_NONE;
}

bool pace__sheets_agree(const pace__sheet *a, const pace__sheet *b)
{
    if (a->columns != b->columns || a->numbers != b->numbers)
        return false;
    for (uint32_t i = 0; i < a->columns; i++) {
        if (strcmp(pace__sheet_name(a, i), pace__sheet_name(b, i)) != 0 ||
            a->steps[i].origin != b->steps[i].origin || a->steps[i].exponent != b->steps[i].exponent)
            return false;
    }
    return true;
}

/* --- cells --- */

static bool is_word(const char *word, const char *text, size_t size)
{
    return strlen(word) == size && strncasecmp(word, text, size) == 0;
}

static bool is_missing(const char *text, size_t size)
{
    static const char *const words[] = {"na", "nan", "n/a", "null", "none", "?", "\\n"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is_word(words[i], text, size))
            return true;
    }
    return size == 0;
}

bool pace__sheet_number(const char *text, size_t size, double *value)
{
    if (pace__decimal_parse(text, size, value))
        return true;
    *value = NAN;
    return is_missing(text, size);
}

bool pace__sheet_label_of(const char *text, size_t size, uint8_t *label)
{
    static const struct {
        const char *word;
        uint8_t label;
    } words[] = {{"true", 1}, {"false", 0}, {"yes", 1}, {"no", 0}, {"t", 1}, {"f", 0}, {"y", 1}, {"n", 0}};
    double value;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is_word(words[i].word, text, size)) {
            *label = words[i].label;
            return true;
        }
    }
    if (!pace__decimal_parse(text, size, &value) || (value != 0 && value != 1 && value != -1))
        return false;
    *label = value == 1;
    return true;
}

double pace__sheet_steps(pace__scale steps, double value)
{
    double power = pace__power_of_ten[abs(steps.exponent)];

    return (steps.exponent < 0 ? value * power : value / power) - (double)steps.origin;
}

uint32_t pace__sheet_bin(double steps)
{
    if (isnan(steps))
        return 0;
    double held = fmin(fmax(steps, -STEPS_MAX), STEPS_MAX);
    int64_t whole = (int64_t)(held < 0 ? held - 0.5 : held + 0.5);

    return whole < 0 ? PACE__BINS + pace__integer_bin(-whole) : pace__integer_bin(whole);
}

float pace__sheet_value(double steps)
{
    return steps < 0 ? -pace__logarithmic(-steps) : pace__logarithmic(steps);
}

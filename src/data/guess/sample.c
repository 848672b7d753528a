#include "data/guess/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static pace_status out_of_memory(const pace_log *log)
{
    return pace_fail(log, PACE_FAILED, "out of memory for the first rows of a table");
}

/* 007 is a code, 0.7 and 0 are numbers. */
static bool has_leading_zero(const char *text, size_t size)
{
    size_t sign = size > 0 && (*text == '-' || *text == '+');

    return size > sign + 1 && text[sign] == '0' && text[sign + 1] >= '0' && text[sign + 1] <= '9';
}

static void look_at(pace__sheet_sample *sample, size_t row, uint32_t column, const pace__csv_cell *cell)
{
    pace__csv_cell text = pace__csv_cell_trim(*cell);
    pace__sheet_cell *to = &sample->cells[row * sample->columns + column];
    bool number = pace__sheet_number(text.text, text.size, &to->number);

    to->text = text.text;
    to->size = text.size;
    sample->text[column] |= !number || has_leading_zero(text.text, text.size);
}

/* The cells of a row; false if it is not a whole and good one. */
static bool take_row(pace__csv_cells *cells, pace__csv_cell *row, uint32_t columns, bool complete)
{
    uint32_t count = 0;
    pace__csv_cell_end end;
    pace__csv_cell cell;

    cells->junk = false;
    do {
        end = pace__csv_cells_next(cells, &cell);
        if (count < columns)
            row[count] = cell;
        count++;
    } while (end == PACE__CSV_CELL_MORE);
    bool whole = end == PACE__CSV_CELL_LAST && (complete || cells->at < cells->size);

    return whole && count == columns && !cells->junk;
}

static pace_status reserve_row(pace__sheet_sample *sample, size_t *room, const pace_log *log)
{
    if (sample->rows < *room)
        return PACE_OK;
    size_t wanted = *room ? 2 * *room : 64;
    pace__sheet_cell *cells = realloc(sample->cells, wanted * sample->columns * sizeof *cells);

    if (!cells)
        return out_of_memory(log);
    sample->cells = cells;
    *room = wanted;
    return PACE_OK;
}

static pace_status take_rows(pace__sheet_sample *sample, char separator, const char *bytes, size_t size,
                             bool complete, const pace_log *log)
{
    pace__csv_cells cells = pace__csv_cells_of(bytes, size, separator);
    pace__csv_cell row[PACE__SHEET_COLUMNS_MAX];
    pace_status status = PACE_OK;
    size_t room = 0;

    while (!status && cells.at < size && sample->rows < PACE__SHEET_SAMPLE_ROWS_MAX) {
        bool good = take_row(&cells, row, sample->columns, complete);

        status = good ? reserve_row(sample, &room, log) : PACE_OK;
        if (status || !good)
            continue;
        for (uint32_t column = 0; column < sample->columns; column++)
            look_at(sample, sample->rows, column, &row[column]);
        sample->rows++;
    }
    return status;
}

pace_status pace__sheet_sample_take(uint32_t columns, char separator, const char *bytes, size_t size,
                                    bool complete, const pace_log *log, pace__sheet_sample *sample)
{
    *sample = (pace__sheet_sample){.columns = columns, .text = calloc(columns + 1, sizeof *sample->text)};
    pace_status status =
        sample->text ? take_rows(sample, separator, bytes, size, complete, log) : out_of_memory(log);

    if (status)
        pace__sheet_sample_release(sample);
    return status;
}

void pace__sheet_sample_release(pace__sheet_sample *sample)
{
    free(sample->cells);
    free(sample->text);
    *sample = (pace__sheet_sample){0};
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static size_t count_different(uint64_t *prints, size_t count)
{
    size_t different = count > 0;

    qsort(prints, count, sizeof *prints, by_size);
    for (size_t i = 1; i < count; i++)
        different += prints[i] != prints[i - 1];
    return different;
}

pace__sheet_facts pace__sheet_facts_of(const pace__sheet_sample *sample, uint32_t column, uint64_t *scratch)
{
    bool numbers = !sample->text[column];
    pace__sheet_facts facts = {.whole = numbers, .rising = numbers};
    double before = -INFINITY;

    for (size_t row = 0; row < sample->rows; row++) {
        const pace__sheet_cell *cell = &sample->cells[row * sample->columns + column];

        if (numbers ? isnan(cell->number) : cell->size == 0)
            continue;
        scratch[facts.values++] = XXH3_64bits(cell->text, cell->size);
        facts.whole &= numbers && cell->number == trunc(cell->number);
        facts.rising &= numbers && cell->number > before;
        before = cell->number;
    }
    facts.different = count_different(scratch, facts.values);
    facts.numbers = numbers && facts.values > 0;
    return facts;
}

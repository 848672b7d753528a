/* Several runs beside each other: options that differ, and what came of them. */
#include "report/compare.h"
#include "report/markup.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct result_row {
    const char *name, *path;
    pace__unit unit;
} result_row;

static const result_row results[] = {{"Training time", "seconds", PACE__SECONDS},
                                     {"Steps", "steps", PACE__COUNT},
                                     {"Rows", "samples", PACE__COUNT},
                                     {"Rows a second", "samples_per_second", PACE__COUNT},
                                     {"Training loss", "train_loss", PACE__REAL},
                                     {"Validation log-loss", "validation.logloss", PACE__REAL},
                                     {"Validation accuracy", "validation.accuracy", PACE__REAL},
                                     {"Step of the model", "best.step", PACE__COUNT},
                                     {"Test log-loss", "test.logloss", PACE__REAL},
                                     {"Test AUC", "test.auc", PACE__REAL},
                                     {"Test accuracy", "test.accuracy", PACE__REAL},
                                     {"Test F1", "test.f1", PACE__REAL},
                                     {"Bytes sent", "bytes_sent", PACE__BYTES},
                                     {"Bytes received", "bytes_received", PACE__BYTES},
                                     {"Rounds", "rounds", PACE__COUNT},
                                     {"Flushes", "flushes", PACE__COUNT},
                                     {"Parameters merged a row", "keys_per_row", PACE__REAL},
                                     {"Bytes sent a row", "bytes_per_row", PACE__REAL},
                                     {"Restarts", "restarts", PACE__COUNT},
                                     {"Rows computed twice", "rows_computed_twice", PACE__COUNT},
                                     {"Checkpoints", "checkpoints", PACE__COUNT},
                                     {"Stood still for them", "checkpoint_stall_s", PACE__SECONDS}};

static void begin_beside(FILE *out, const pace__page_run *runs, size_t count, const char *first, bool numbers)
{
    fprintf(out, "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th>%s</th>", first);
    for (size_t i = 0; i < count; i++) {
        fputs(numbers ? "<th class=\"n\">" : "<th>", out);
        pace__text(out, runs[i].name);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
}

/* What a run that has not finished does not have is known by its records, in part. */
static double result_of(const pace__history *history, const result_row *row)
{
    double value = pace__history_number(history, row->path);

    return !isnan(value)                       ? value
           : strcmp(row->path, "seconds") == 0 ? pace__page_seconds(history)
           : strcmp(row->path, "steps") == 0   ? pace__page_steps(history)
                                               : NAN;
}

static void put_results(FILE *out, const pace__page_run *runs, size_t count)
{
    begin_beside(out, runs, count, "Result", true);
    pace__row_begin(out);
    pace__put_cell(out, "Run");
    for (size_t i = 0; i < count; i++)
        pace__put_cell_number(out, pace__standing_name(runs[i].history->standing));
    pace__row_end(out);
    for (size_t row = 0; row < sizeof results / sizeof *results; row++) {
        pace__row_begin(out);
        pace__put_cell(out, results[row].name);
        for (size_t i = 0; i < count; i++)
            pace__put_cell_amount(out, result_of(runs[i].history, &results[row]), results[row].unit);
        pace__row_end(out);
    }
    pace__row_begin(out);
    pace__put_cell(out, "Bottleneck");
    for (size_t i = 0; i < count; i++)
        pace__put_cell_number(out, pace__cause_name(runs[i].verdict.cause));
    pace__row_end(out);
    pace__table_end(out);
}

static void put_compared(FILE *out, const pace__page_run *runs, size_t count, const pace__compared *rows,
                         size_t row_count)
{
    begin_beside(out, runs, count, "Option", false);
    for (size_t row = 0; row < row_count; row++) {
        pace__row_begin(out);
        pace__put_cell(out, rows[row].name);
        for (size_t i = 0; i < count; i++)
            pace__put_cell(out, pace__history_setting(runs[i].history, rows[row].name));
        pace__row_end(out);
    }
    pace__table_end(out);
}

static void put_same(FILE *out, const pace__page_run *run, const pace__compared *rows, size_t row_count)
{
    static const char *const headings[] = {"Option", "Value", NULL};

    pace__table_begin(out, headings);
    for (size_t row = 0; row < row_count; row++) {
        pace__row_begin(out);
        pace__put_cell(out, rows[row].name);
        pace__put_cell(out, pace__history_setting(run->history, rows[row].name));
        pace__row_end(out);
    }
    pace__table_end(out);
}

void pace__page_put_comparison(FILE *out, const pace__page_run *runs, size_t count)
{
    pace__history *histories[PACE__PAGE_RUNS_MAX];
    size_t row_count, differing = 0;

    for (size_t i = 0; i < count; i++)
        histories[i] = (pace__history *)runs[i].history;
    pace__compared *rows = pace__compare_settings(histories, count, &row_count);

    while (differing < row_count && rows[differing].differs)
        differing++;
    fputs("<section id=\"comparison\"><h2>Runs beside each other</h2>\n<h3>Options that differ</h3>\n", out);
    if (differing > 0)
        put_compared(out, runs, count, rows, differing);
    else
        fputs("<p>None, as far as the runs say.</p>\n", out);
    fputs("<h3>What came of them</h3>\n", out);
    put_results(out, runs, count);
    if (row_count > differing) {
        fputs("<details class=\"numbers\"><summary>Options that are the same</summary>\n", out);
        put_same(out, &runs[0], rows + differing, row_count - differing);
        fputs("</details>\n", out);
    }
    fputs("</section>\n", out);
    free(rows);
}

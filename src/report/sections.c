/* What is said of all runs of a page together: at its head, what they have come to, how they went. */
#include "report/compare.h"
#include "report/markup.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the head --- */

static void put_fact(FILE *out, const char *name, const char *value)
{
    fputs("<div><dt>", out);
    pace__text(out, name);
    fputs("</dt><dd>", out);
    pace__text(out, value);
    fputs("</dd></div>\n", out);
}

static void put_amount(FILE *out, const char *name, double value, pace__unit unit)
{
    char text[PACE__AMOUNT_TEXT];

    if (!isnan(value))
        put_fact(out, name, pace__amount(value, unit, text));
}

static double steps_of(const pace__history *history)
{
    double steps = pace__history_number(history, "steps");

    if (isnan(steps) && history->step_count > 0)
        steps = (double)history->step[history->step_count - 1].step;
    return steps;
}

static double seconds_of(const pace__history *history)
{
    double seconds = pace__history_number(history, "seconds");

    return isnan(seconds) && history->last_t > 0 ? history->last_t : seconds;
}

/* "killed at step 1,200 of 5,000" */
static void put_standing(FILE *out, const pace__history *history)
{
    char text[2 * PACE__AMOUNT_TEXT + 64], at[PACE__AMOUNT_TEXT], of[PACE__AMOUNT_TEXT];
    double steps = steps_of(history);

    if (history->standing == PACE__STANDS_DONE || isnan(steps))
        snprintf(text, sizeof text, "%s", pace__standing_name(history->standing));
    else if (history->steps == 0)
        snprintf(text, sizeof text, "%s at step %s", pace__standing_name(history->standing),
                 pace__amount(steps, PACE__COUNT, at));
    else
        snprintf(text, sizeof text, "%s at step %s of %s", pace__standing_name(history->standing),
                 pace__amount(steps, PACE__COUNT, at), pace__amount((double)history->steps, PACE__COUNT, of));
    put_fact(out, "Run", text);
}

static const char *kind_of(const pace__history *history)
{
    const char *model = pace__history_text(history, "model");

    model = model ? model : pace__history_setting(history, "model");
    return model ? model : "a model";
}

static const char *mode_of(const pace__history *history)
{
    const char *mode = pace__history_text(history, "mode");

    mode = mode ? mode : pace__history_setting(history, "mode");
    return mode ? mode : "unknown";
}

static void put_facts(FILE *out, const pace__history *history)
{
    fputs("<dl class=\"facts\">\n", out);
    put_standing(out, history);
    put_amount(out, "Training time", seconds_of(history), PACE__SECONDS);
    put_amount(out, "Steps", steps_of(history), PACE__COUNT);
    put_amount(out, "Rows", pace__history_number(history, "samples"), PACE__COUNT);
    put_amount(out, "Rows a second", pace__history_number(history, "samples_per_second"), PACE__COUNT);
    put_amount(out, "Training loss", pace__history_number(history, "train_loss"), PACE__REAL);
    put_amount(out, "Test log-loss", pace__history_number(history, "test.logloss"), PACE__REAL);
    put_amount(out, "Test AUC", pace__history_number(history, "test.auc"), PACE__REAL);
    put_amount(out, "Test accuracy", pace__history_number(history, "test.accuracy"), PACE__REAL);
    put_amount(out, "Restarts", (double)history->state.restarts, PACE__COUNT);
    fputs("</dl>\n", out);
}

static void put_lacks(FILE *out, const pace__page_run *run, bool named)
{
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX && run->history->lacks[i]; i++) {
        fputs("<p class=\"lack\">", out);
        if (named) {
            pace__text(out, run->name);
            fputs(": ", out);
        }
        pace__text(out, run->history->lacks[i]);
        fputs(".</p>\n", out);
    }
}

/* "logreg on data/clicks, ps-async, 2 workers, 1 server" */
static void put_subtitle(FILE *out, const pace__history *history)
{
    const char *data = pace__history_setting(history, "data");
    char count[PACE__AMOUNT_TEXT];

    fputs("<p class=\"subtitle\">", out);
    pace__text(out, kind_of(history));
    if (data) {
        fputs(" on ", out);
        pace__text(out, data);
    }
    fputs(", mode ", out);
    pace__text(out, mode_of(history));
    if (history->role_count > 1)
        fprintf(out, ", %s roles", pace__amount((double)history->role_count, PACE__COUNT, count));
    fputs("</p>\n", out);
}

void pace__page_put_header(FILE *out, const pace__page_run *runs, size_t count)
{
    fputs("<header>\n<h1>", out);
    if (count == 1)
        pace__text(out, runs[0].name);
    else
        fprintf(out, "%zu runs", count);
    fputs("</h1>\n", out);
    if (count == 1) {
        put_subtitle(out, runs[0].history);
        put_facts(out, runs[0].history);
    }
    for (size_t i = 0; i < count; i++)
        put_lacks(out, &runs[i], count > 1);
    fputs("<noscript><p class=\"lack\">Charts need JavaScript; the numbers behind them open without "
          "it.</p></noscript>\n"
          "</header>\n",
          out);
}

/* --- the verdict --- */

/* What a cause means, for a reader who has not met the word. */
static const char *meaning_of(pace__cause cause)
{
    static const char *const meanings[PACE__CAUSES] = {
        [PACE__CAUSE_COMPUTE] = "workers compute",
        [PACE__CAUSE_DATA] = "workers read rows",
        [PACE__CAUSE_NETWORK] = "workers wait while bytes are under way between hosts",
        [PACE__CAUSE_SERVER] = "workers wait while the busiest server works",
        [PACE__CAUSE_STRAGGLER] = "workers wait for the slowest of them",
        [PACE__CAUSE_STEPS] = "workers wait for others, and messages are small: steps are too small",
        [PACE__CAUSE_CHECKPOINT] = "training stands still for checkpoints",
        [PACE__CAUSE_SCORING] = "training stands still to score, or has ended and scores"};

    return meanings[cause];
}

/* A bar as wide as the page: rectangles have attributes, so it needs neither script nor style of its own. */
static void put_cause_bar(FILE *out, const pace__verdict *verdict)
{
    double at = 0;

    fputs("<svg class=\"bar\" width=\"100%\" height=\"28\" role=\"img\" aria-label=\"shares of the time by "
          "cause\">",
          out);
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        double width = verdict->all_s > 0 ? 100 * verdict->taken_s[cause] / verdict->all_s : 0;

        if (width >= 0.05)
            fprintf(out, "<rect class=\"c-%s\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"28\"/>",
                    pace__cause_name(cause), at, width);
        at += width;
    }
    fputs("</svg>\n", out);
}

static void put_causes(FILE *out, const pace__verdict *verdict)
{
    char share[PACE__AMOUNT_TEXT], time[PACE__AMOUNT_TEXT];

    put_cause_bar(out, verdict);
    fputs("<ul class=\"legend causes\">\n", out);
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        double taken_s = verdict->taken_s[cause];

        if (!(taken_s > 0))
            continue;
        fprintf(out, "<li><span class=\"swatch c-%s\"></span><b>%s</b> %s (%s): %s</li>\n",
                pace__cause_name(cause), pace__cause_name(cause),
                pace__amount(taken_s / verdict->all_s, PACE__SHARE, share),
                pace__amount(taken_s, PACE__SECONDS, time), meaning_of(cause));
    }
    fputs("</ul>\n", out);
}

void pace__page_put_verdict(FILE *out, const pace__page_run *run)
{
    const pace__verdict *verdict = &run->verdict;
    char all[PACE__AMOUNT_TEXT], without[PACE__AMOUNT_TEXT];

    if (verdict->cause == PACE__CAUSE_NONE) {
        fputs("<p>There is no verdict on where the time went: too little of it was recorded.</p>\n", out);
        return;
    }
    fprintf(out, "<p class=\"verdict\"><b>%s", pace__cause_name(verdict->cause));
    if (verdict->who >= 0) {
        fputs(", ", out);
        pace__text(out, run->history->roles[verdict->who].name);
    }
    fputs(":</b> ", out);
    pace__text(out, verdict->evidence);
    fprintf(out, ". Of %s, %s would be left without it, at best.</p>\n",
            pace__amount(verdict->all_s, PACE__SECONDS, all),
            pace__amount(verdict->without_s, PACE__SECONDS, without));
    if (verdict->advice[0]) {
        fputs("<p class=\"advice\">What may help: ", out);
        pace__text(out, verdict->advice);
        fputs(".</p>\n", out);
    }
    put_causes(out, verdict);
}

/* --- runs beside each other --- */

typedef struct result_row {
    const char *name, *path;
    pace__unit unit;
} result_row;

static const result_row results[] = {{"Training time", "seconds", PACE__SECONDS},
                                     {"Steps", "steps", PACE__COUNT},
                                     {"Rows", "samples", PACE__COUNT},
                                     {"Rows a second", "samples_per_second", PACE__COUNT},
                                     {"Training loss", "train_loss", PACE__REAL},
                                     {"Test log-loss", "test.logloss", PACE__REAL},
                                     {"Test AUC", "test.auc", PACE__REAL},
                                     {"Test accuracy", "test.accuracy", PACE__REAL},
                                     {"Test F1", "test.f1", PACE__REAL},
                                     {"Bytes sent", "bytes_sent", PACE__BYTES},
                                     {"Bytes received", "bytes_received", PACE__BYTES},
                                     {"Restarts", "restarts", PACE__COUNT},
                                     {"Rows computed twice", "rows_computed_twice", PACE__COUNT},
                                     {"Checkpoints", "checkpoints", PACE__COUNT},
                                     {"Stood still for them", "checkpoint_stall_s", PACE__SECONDS}};

static void begin_beside(FILE *out, const pace__page_run *runs, size_t count, const char *first)
{
    const char *headings[PACE__PAGE_RUNS_MAX + 2];

    headings[0] = first;
    for (size_t i = 0; i < count; i++)
        headings[i + 1] = runs[i].name;
    headings[count + 1] = NULL;
    pace__table_begin(out, headings);
}

/* What a run that has not finished does not have is known by its records, in part. */
static double result_of(const pace__history *history, const result_row *row)
{
    double value = pace__history_number(history, row->path);

    return !isnan(value)                       ? value
           : strcmp(row->path, "seconds") == 0 ? seconds_of(history)
           : strcmp(row->path, "steps") == 0   ? steps_of(history)
                                               : NAN;
}

static void put_results(FILE *out, const pace__page_run *runs, size_t count)
{
    begin_beside(out, runs, count, "Result");
    pace__row_begin(out);
    pace__cell(out, "Run");
    for (size_t i = 0; i < count; i++)
        pace__cell(out, pace__standing_name(runs[i].history->standing));
    pace__row_end(out);
    for (size_t row = 0; row < sizeof results / sizeof *results; row++) {
        pace__row_begin(out);
        pace__cell(out, results[row].name);
        for (size_t i = 0; i < count; i++)
            pace__cell_amount(out, result_of(runs[i].history, &results[row]), results[row].unit);
        pace__row_end(out);
    }
    pace__row_begin(out);
    pace__cell(out, "Bottleneck");
    for (size_t i = 0; i < count; i++)
        pace__cell(out, pace__cause_name(runs[i].verdict.cause));
    pace__row_end(out);
    pace__table_end(out);
}

static void put_compared(FILE *out, const pace__page_run *runs, size_t count, const pace__compared *rows,
                         size_t row_count)
{
    begin_beside(out, runs, count, "Option");
    for (size_t row = 0; row < row_count; row++) {
        pace__row_begin(out);
        pace__cell(out, rows[row].name);
        for (size_t i = 0; i < count; i++)
            pace__cell(out, pace__history_setting(runs[i].history, rows[row].name));
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
        put_compared(out, runs, 1, rows + differing, row_count - differing);
        fputs("</details>\n", out);
    }
    fputs("</section>\n", out);
    free(rows);
}

/* --- curves --- */

static size_t rows_for(size_t all, size_t runs)
{
    size_t most = PACE__CURVE_ROWS / runs > 6 ? PACE__CURVE_ROWS / runs : 6;

    return all < most ? all : most;
}

static void put_step_rows(FILE *out, const pace__page_run *run, size_t runs)
{
    const pace__history *history = run->history;
    size_t shown = rows_for(history->step_count, runs);

    for (size_t i = 0; i < shown; i++) {
        const pace__step_record *step = &history->step[pace__table_place(i, shown, history->step_count)];

        pace__row_begin(out);
        if (runs > 1)
            pace__cell(out, run->name);
        pace__cell_amount(out, (double)step->step, PACE__COUNT);
        pace__cell_amount(out, step->t, PACE__SECONDS);
        pace__cell_amount(out, step->epoch, PACE__REAL);
        pace__cell_amount(out, step->loss, PACE__REAL);
        pace__cell_amount(out, step->lr, PACE__REAL);
        pace__cell_amount(out, step->rows_per_s, PACE__COUNT);
        pace__row_end(out);
    }
}

static void put_steps(FILE *out, const pace__page_run *runs, size_t count)
{
    static const char *const headings[] = {"Run",   ">Step", ">Time",          ">Epoch",
                                           ">Loss", ">Rate", ">Rows a second", NULL};

    pace__table_begin(out, headings + (count == 1));
    for (size_t i = 0; i < count; i++)
        put_step_rows(out, &runs[i], count);
    pace__table_end(out);
}

static void put_eval_rows(FILE *out, const pace__page_run *run, size_t runs)
{
    const pace__history *history = run->history;
    size_t shown = rows_for(history->eval_count, runs);

    for (size_t i = 0; i < shown; i++) {
        const pace__eval_record *eval = &history->eval[pace__table_place(i, shown, history->eval_count)];

        pace__row_begin(out);
        if (runs > 1)
            pace__cell(out, run->name);
        pace__cell_amount(out, (double)eval->step, PACE__COUNT);
        pace__cell_amount(out, eval->t, PACE__SECONDS);
        pace__cell_amount(out, eval->logloss, PACE__REAL);
        pace__cell_amount(out, eval->auc, PACE__REAL);
        pace__cell_amount(out, eval->accuracy, PACE__REAL);
        pace__cell_amount(out, eval->f1, PACE__REAL);
        pace__cell_amount(out, (double)eval->rows, PACE__COUNT);
        pace__row_end(out);
    }
}

static void put_evals(FILE *out, const pace__page_run *runs, size_t count)
{
    static const char *const headings[] = {"Run",       ">Step", ">Time", ">Log-loss", ">AUC",
                                           ">Accuracy", ">F1",   ">Rows", NULL};

    pace__table_begin(out, headings + (count == 1));
    for (size_t i = 0; i < count; i++)
        put_eval_rows(out, &runs[i], count);
    pace__table_end(out);
}

/* Is there a line to draw: two scores that are numbers, of one run? */
static bool has_line(const pace__page_run *runs, size_t count, bool auc)
{
    for (size_t i = 0; i < count; i++) {
        const pace__history *history = runs[i].history;
        size_t points = 0;

        for (size_t j = 0; j < history->eval_count; j++)
            points += isfinite(auc ? history->eval[j].auc : history->eval[j].accuracy);
        if (points > 1)
            return true;
    }
    return false;
}

static void put_eval_figure(FILE *out, const pace__page_run *runs, size_t count, const char *chart,
                            const char *title)
{
    pace__figure_begin(out, chart, -1, title);
    pace__figure_table(out);
    put_evals(out, runs, count);
    pace__figure_end(out);
}

void pace__page_put_curves(FILE *out, const pace__page_run *runs, size_t count)
{
    size_t steps = 0, evals = 0;

    for (size_t i = 0; i < count; i++) {
        steps += runs[i].history->step_count;
        evals += runs[i].history->eval_count;
    }
    fputs("<section id=\"curves\"><h2>How it went</h2>\n", out);
    if (steps == 0)
        fputs("<p class=\"lack\">No step was recorded.</p>\n", out);
    if (steps + evals > 0)
        fputs("<fieldset class=\"switch\"><legend>Against</legend>"
              "<label><input type=\"radio\" name=\"axis\" value=\"step\" checked> steps</label>"
              "<label><input type=\"radio\" name=\"axis\" value=\"t\"> time</label></fieldset>\n",
              out);
    fputs("<div class=\"charts\">\n", out);
    if (steps > 0) {
        pace__figure_begin(out, "loss", -1,
                           "Loss: of training, since the record before; and of the test rows");
        pace__figure_table(out);
        put_steps(out, runs, count);
        pace__figure_end(out);
    }
    if (has_line(runs, count, true))
        put_eval_figure(out, runs, count, "auc", "AUC of the test rows");
    if (has_line(runs, count, false))
        put_eval_figure(out, runs, count, "accuracy", "Accuracy on the test rows");
    if (steps > 0) {
        pace__figure_begin(out, "speed", -1, "Throughput: rows a second, of all workers");
        pace__figure_table(out);
        put_steps(out, runs, count);
        pace__figure_end(out);
    }
    fputs("</div>\n", out);
    if (evals > 0 && !has_line(runs, count, false)) {
        fputs("<h3>Scores on the test rows</h3>\n", out);
        put_evals(out, runs, count);
    }
    fputs("</section>\n", out);
}

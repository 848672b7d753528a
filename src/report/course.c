/* How runs went: loss, scores and throughput against steps or time. */
#include "report/markup.h"
#include "report/page.h"

#include <math.h>

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
            pace__put_cell(out, run->name);
        pace__put_cell_amount(out, (double)step->step, PACE__COUNT);
        pace__put_cell_amount(out, step->t, PACE__SECONDS);
        pace__put_cell_amount(out, step->epoch, PACE__REAL);
        pace__put_cell_amount(out, step->loss, PACE__REAL);
        pace__put_cell_amount(out, step->lr, PACE__REAL);
        pace__put_cell_amount(out, step->rows_per_s, PACE__COUNT);
        pace__row_end(out);
    }
}

static void put_steps(FILE *out, const pace__page_run *runs, size_t count)
{
    static const char *const headings[] = {"Run",   ">Step",          ">Time",          ">Epoch",
                                           ">Loss", ">Learning rate", ">Rows a second", NULL};

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
            pace__put_cell(out, run->name);
        pace__put_cell_amount(out, (double)eval->step, PACE__COUNT);
        pace__put_cell_amount(out, eval->t, PACE__SECONDS);
        pace__put_cell_amount(out, eval->logloss, PACE__REAL);
        pace__put_cell_amount(out, eval->auc, PACE__REAL);
        pace__put_cell_amount(out, eval->accuracy, PACE__REAL);
        pace__put_cell_amount(out, eval->f1, PACE__REAL);
        pace__put_cell_amount(out, (double)eval->rows, PACE__COUNT);
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

/* Which rows the scores on the way are of. */
static const char *scored_rows(const pace__page_run *runs, size_t count)
{
    size_t validating = 0;

    for (size_t i = 0; i < count; i++)
        validating += runs[i].history->of_validation;
    return validating == 0 ? "test" : validating == count ? "validation" : "validation or test";
}

static void put_eval_figure(FILE *out, const pace__page_run *runs, size_t count, const char *chart,
                            const char *what)
{
    char title[64];

    snprintf(title, sizeof title, "%s of the %s rows", what, scored_rows(runs, count));
    pace__figure_begin(out, chart, -1, title);
    pace__figure_table(out);
    put_evals(out, runs, count);
    pace__figure_end(out);
}

void pace__page_put_curves(FILE *out, const pace__page_run *runs, size_t count)
{
    size_t steps = 0, evals = 0;
    char title[128];

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
        snprintf(title, sizeof title, "Loss: of training, since the record before; and of the %s rows",
                 scored_rows(runs, count));
        pace__figure_begin(out, "loss", -1, title);
        pace__figure_table(out);
        put_steps(out, runs, count);
        pace__figure_end(out);
    }
    if (has_line(runs, count, true))
        put_eval_figure(out, runs, count, "auc", "AUC");
    if (has_line(runs, count, false))
        put_eval_figure(out, runs, count, "accuracy", "Accuracy");
    if (steps > 0) {
        pace__figure_begin(out, "speed", -1, "Throughput: rows a second, of all workers");
        pace__figure_table(out);
        put_steps(out, runs, count);
        pace__figure_end(out);
    }
    fputs("</div>\n", out);
    if (evals > 0 && !has_line(runs, count, false)) {
        fprintf(out, "<h3>Scores on the %s rows</h3>\n", scored_rows(runs, count));
        put_evals(out, runs, count);
    }
    fputs("</section>\n", out);
}

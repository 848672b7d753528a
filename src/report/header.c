/* The head of a page: what the run is and has come to, or which runs there are, and what they lack. */
#include "report/markup.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

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

double pace__page_steps(const pace__history *history)
{
    double steps = pace__history_number(history, "steps");

    if (isnan(steps) && history->step_count > 0)
        steps = (double)history->step[history->step_count - 1].step;
    return steps;
}

double pace__page_seconds(const pace__history *history)
{
    double seconds = pace__history_number(history, "seconds");

    return isnan(seconds) && history->last_t > 0 ? history->last_t : seconds;
}

/* Of a run that has not ended: "1,200 of 5,000". */
static void put_steps_taken(FILE *out, const pace__history *history)
{
    char text[2 * PACE__AMOUNT_TEXT + 8], at[PACE__AMOUNT_TEXT], of[PACE__AMOUNT_TEXT];
    double steps = pace__page_steps(history);

    if (history->standing == PACE__STANDS_DONE || isnan(steps) || history->steps == 0) {
        put_amount(out, "Steps", steps, PACE__COUNT);
        return;
    }
    snprintf(text, sizeof text, "%s of %s", pace__amount(steps, PACE__COUNT, at),
             pace__amount((double)history->steps, PACE__COUNT, of));
    put_fact(out, "Steps", text);
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

/* Those that were used, whatever was asked for: "v4", or "v4, then v3" of a run that went on with others. */
static void put_kernels(FILE *out, const pace__history *history)
{
    char text[4 * PACE__KERNELS_TEXT] = "";
    const char *last = "";

    for (size_t i = 0; i < history->mark_count; i++) {
        const char *now = history->mark[i].kernels;
        size_t used = strlen(text);

        if (!now[0] || strcmp(now, last) == 0)
            continue;
        snprintf(text + used, sizeof text - used, "%s%s", used ? ", then " : "", now);
        last = now;
    }
    if (text[0])
        put_fact(out, "Kernels", text);
}

static void put_facts(FILE *out, const pace__history *history)
{
    fputs("<dl class=\"facts\">\n", out);
    put_fact(out, "Run", pace__standing_name(history->standing));
    put_amount(out, "Training time", pace__page_seconds(history), PACE__SECONDS);
    put_steps_taken(out, history);
    put_amount(out, "Rows", pace__history_number(history, "samples"), PACE__COUNT);
    put_amount(out, "Rows a second", pace__history_number(history, "samples_per_second"), PACE__COUNT);
    put_amount(out, "Training loss", pace__history_number(history, "train_loss"), PACE__REAL);
    put_amount(out, "Validation log-loss", pace__history_number(history, "validation.logloss"), PACE__REAL);
    put_amount(out, "Step of the model", pace__history_number(history, "best.step"), PACE__COUNT);
    put_amount(out, "Test log-loss", pace__history_number(history, "test.logloss"), PACE__REAL);
    put_amount(out, "Test AUC", pace__history_number(history, "test.auc"), PACE__REAL);
    put_amount(out, "Test accuracy", pace__history_number(history, "test.accuracy"), PACE__REAL);
    /* Of workers that merge. */
    put_amount(out, "Rounds", pace__history_number(history, "rounds"), PACE__COUNT);
    put_amount(out, "Flushes", pace__history_number(history, "flushes"), PACE__COUNT);
    put_amount(out, "Steps between flushes", pace__history_number(history, "round_steps"), PACE__COUNT);
    put_amount(out, "Damping", pace__history_number(history, "damping"), PACE__REAL);
    put_amount(out, "Jumps of the loss", pace__history_number(history, "loss_jumps"), PACE__COUNT);
    put_amount(out, "Restarts", history->state.incarnation ? (double)history->state.restarts : NAN,
               PACE__COUNT);
    put_kernels(out, history);
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

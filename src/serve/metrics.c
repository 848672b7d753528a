/*
 * The figures of a view in Prometheus's text format: base units, _total behind what only grows (it begins anew when the job
 * was started again, which a scraper takes for what it is), and nothing where nothing is known.
 */
#include "serve/texts.h"

#include "verdict/verdict.h"

#include <math.h>
#include <string.h>

#define LABEL_TEXT    1100
#define CHARACTER_MAX 5 /* bytes of one, with what stands in front */

static void begin(pace__served_text *text, const char *name, const char *type, const char *help)
{
    pace__served_add(text, "# HELP paceline_%s %s\n# TYPE paceline_%s %s\n", name, help, name, type);
}

static void put_one(pace__served_text *text, const char *name, const char *type, const char *help,
                    double value)
{
    if (!isfinite(value))
        return;
    begin(text, name, type, help);
    pace__served_add(text, "paceline_%s %.17g\n", name, value);
}

/* Backslashes, quotes and ends of lines have a backslash in front; bytes that are no UTF-8 become U+FFFD; a long text is cut. */
static const char *label(const char *value, char text[LABEL_TEXT])
{
    size_t used = 0;

    for (unsigned length; value && *value && used + CHARACTER_MAX < LABEL_TEXT;
         value += length ? length : 1) {
        length = pace__utf8_length(value, strlen(value));
        if (*value == '\\' || *value == '"' || *value == '\n')
            text[used++] = '\\';
        const char *bytes = length == 0 ? "\xef\xbf\xbd" : *value == '\n' ? "n" : value;
        unsigned count = length == 0 ? 3 : length;

        memcpy(text + used, bytes, count);
        used += count;
    }
    text[used] = '\0';
    return text;
}

/* --- the run --- */

static void put_info(pace__served_text *text, const pace__view *view)
{
    char run[LABEL_TEXT], model[LABEL_TEXT], mode[LABEL_TEXT];

    begin(text, "run_info", "gauge", "The run that is looked at.");
    pace__served_add(text, "paceline_run_info{run=\"%s\",model=\"%s\",mode=\"%s\"} 1\n",
                     label(view->history->path, run),
                     label(pace__history_setting(view->history, "model"), model),
                     label(pace__history_setting(view->history, "mode"), mode));
    begin(text, "run_standing", "gauge", "1 for how the run stands, 0 for how it does not.");
    for (pace__standing standing = PACE__STANDS_UNKNOWN; standing <= PACE__STANDS_DONE; standing++)
        pace__served_add(text, "paceline_run_standing{standing=\"%s\"} %d\n", pace__standing_name(standing),
                         view->standing == standing);
}

static void put_run(pace__served_text *text, const pace__view *view)
{
    const pace__history *history = view->history;
    const pace__step_record *newest = view->newest;

    put_info(text, view);
    put_one(text, "restarts_total", "counter", "Starts after a process was lost.",
            (double)history->state.restarts);
    put_one(text, "training_seconds_total", "counter", "Seconds of training, of all starts.",
            history->last_t);
    put_one(text, "step", "gauge", "Step of the newest record.", (double)view->step);
    put_one(text, "steps_planned", "gauge", "Steps that the run is to have.",
            view->steps ? (double)view->steps : NAN);
    put_one(text, "remaining_seconds", "gauge", "Time until the last step, by the rows of the last minute.",
            view->left_s);
    put_one(text, "rows_total", "counter", "Rows trained on, by the newest record of a step.",
            newest ? (double)newest->rows : NAN);
    put_one(text, "epoch", "gauge", "Passes over the training rows.", newest ? newest->epoch : NAN);
    put_one(text, "loss", "gauge", "Training loss of the newest record.", newest ? newest->loss : NAN);
    put_one(text, "learning_rate", "gauge", "Learning rate of the newest record.", newest ? newest->lr : NAN);
    put_one(text, "unreadable_lines", "gauge", "Lines of metrics.jsonl that cannot be read.",
            (double)history->unreadable);
}

static void put_test_scores(pace__served_text *text, const pace__eval_record *scored)
{
    put_one(text, "test_step", "gauge", "Step of the newest test scores.", (double)scored->step);
    put_one(text, "test_logloss", "gauge", "Log-loss on the test rows.", scored->logloss);
    put_one(text, "test_auc_ratio", "gauge", "Area under the ROC curve on the test rows.", scored->auc);
    put_one(text, "test_accuracy_ratio", "gauge", "Accuracy on the test rows.", scored->accuracy);
}

static void put_validation_scores(pace__served_text *text, const pace__eval_record *scored)
{
    put_one(text, "validation_step", "gauge", "Step of the newest validation scores.", (double)scored->step);
    put_one(text, "validation_logloss", "gauge", "Log-loss on the validation rows.", scored->logloss);
    put_one(text, "validation_auc_ratio", "gauge", "Area under the ROC curve on the validation rows.",
            scored->auc);
    put_one(text, "validation_accuracy_ratio", "gauge", "Accuracy on the validation rows.", scored->accuracy);
}

static void put_scores(pace__served_text *text, const pace__view *view)
{
    const pace__history *history = view->history;

    if (view->scored && history->of_validation)
        put_validation_scores(text, view->scored);
    else if (view->scored)
        put_test_scores(text, view->scored);
    if (history->has_tested)
        put_test_scores(text, &history->tested);
}

static void put_bottleneck(pace__served_text *text, const pace__verdict *verdict)
{
    if (verdict->cause == PACE__CAUSE_NONE)
        return;
    begin(text, "bottleneck_seconds", "gauge",
          "Seconds of the time that is looked at (the last minute of a run that goes on), by cause.");
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++)
        pace__served_add(text, "paceline_bottleneck_seconds{cause=\"%s\"} %.17g\n", pace__cause_name(cause),
                         verdict->taken_s[cause]);
}

/* --- roles --- */

typedef struct figure {
    const char *name, *label, *type, *help; /* the label: what stands behind role="...", or "" */
    double (*of)(const pace__role_view *role);
} figure;

#define FIGURE_OF(name, expression)                                                                          \
    static double name(const pace__role_view *role)                                                          \
    {                                                                                                        \
        return (expression);                                                                                 \
    }

FIGURE_OF(rows, role->newest.rows)
FIGURE_OF(data_s, role->newest.data_s)
FIGURE_OF(compute_s, role->newest.compute_s)
FIGURE_OF(communicate_s, role->newest.communicate_s)
FIGURE_OF(still_s, role->newest.still_s)
FIGURE_OF(wait_s, role->newest.wait_s)
FIGURE_OF(user_s, role->newest.user_s)
FIGURE_OF(system_s, role->newest.system_s)
FIGURE_OF(delay_s, role->newest.delay_s)
FIGURE_OF(rss_bytes, role->newest.rss_bytes)
FIGURE_OF(minor_faults, role->newest.minor_faults)
FIGURE_OF(major_faults, role->newest.major_faults)
FIGURE_OF(sent_bytes, role->newest.own_sent_bytes)
FIGURE_OF(received_bytes, role->newest.own_received_bytes)
FIGURE_OF(read_bytes, role->newest.read_bytes)
FIGURE_OF(write_bytes, role->newest.write_bytes)
FIGURE_OF(requests, role->newest.looks > 0 ? role->newest.requests : NAN)
FIGURE_OF(looks, role->newest.looks > 0 ? role->newest.looks : NAN)
FIGURE_OF(pushes, role->newest.pushes > 0 ? role->newest.pushes : NAN)
FIGURE_OF(stale_pushes, role->newest.pushes > 0 ? role->newest.stale_pushes : NAN)
FIGURE_OF(row_share, role->row_share)

/* Those of one name follow each other, and the first has the help. */
static const figure figures[] = {
    {"role_rows_total", "", "counter", "Rows that the role has computed.", rows},
    {"role_rows_ratio", "", "gauge", "The role's share of the rows.", row_share},
    {"role_time_seconds_total", ",state=\"data\"", "counter", "Seconds of training, by what the role did.",
     data_s},
    {"role_time_seconds_total", ",state=\"compute\"", "counter", NULL, compute_s},
    {"role_time_seconds_total", ",state=\"communicate\"", "counter", NULL, communicate_s},
    {"role_time_seconds_total", ",state=\"still\"", "counter", NULL, still_s},
    {"role_time_seconds_total", ",state=\"wait\"", "counter", NULL, wait_s},
    {"role_cpu_seconds_total", ",mode=\"user\"", "counter", "Processor time of the role's process.", user_s},
    {"role_cpu_seconds_total", ",mode=\"system\"", "counter", NULL, system_s},
    {"role_cpu_delay_seconds_total", "", "counter",
     "Time in which threads were ready and no processor was free.", delay_s},
    {"role_resident_memory_bytes", "", "gauge", "Memory of the role's process.", rss_bytes},
    {"role_page_faults_total", ",kind=\"minor\"", "counter", "Page faults of the role's process.",
     minor_faults},
    {"role_page_faults_total", ",kind=\"major\"", "counter", NULL, major_faults},
    {"role_exchange_sent_bytes_total", "", "counter", "Bytes sent to other roles in training steps.",
     sent_bytes},
    {"role_exchange_received_bytes_total", "", "counter",
     "Bytes received from other roles in training steps.", received_bytes},
    {"role_disk_read_bytes_total", "", "counter", "Bytes read from disks.", read_bytes},
    {"role_disk_written_bytes_total", "", "counter", "Bytes written to disks.", write_bytes},
    {"role_requests_total", "", "counter", "Requests that the role's shard has answered.", requests},
    {"role_looks_total", "", "counter",
     "Times at which the shard found requests: requests / looks wait, on average.", looks},
    {"role_pushes_total", "", "counter", "Pushes that the role's shard has applied.", pushes},
    {"role_stale_pushes_total", "", "counter",
     "Pushes that were applied between the reading of weights and these, added up.", stale_pushes},
};

static bool is_known(const pace__view *view, const figure *which)
{
    for (size_t i = 0; i < view->role_count; i++) {
        if (view->roles[i].is_known && isfinite(which->of(&view->roles[i])))
            return true;
    }
    return false;
}

static void put_figure(pace__served_text *text, const pace__view *view, const figure *which)
{
    if (!is_known(view, which))
        return;
    if (which->help)
        begin(text, which->name, which->type, which->help);
    for (size_t i = 0; i < view->role_count; i++) {
        double value = view->roles[i].is_known ? which->of(&view->roles[i]) : NAN;

        if (isfinite(value))
            pace__served_add(text, "paceline_%s{role=\"%s\"%s} %.17g\n", which->name, view->roles[i].name,
                             which->label, value);
    }
}

void pace__metrics_put(pace__served_text *text, const pace__view *view)
{
    put_run(text, view);
    put_scores(text, view);
    put_bottleneck(text, &view->verdict);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        put_figure(text, view, &figures[i]);
}

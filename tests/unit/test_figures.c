/* One job, and everything that shows it: progress, records, event files, a page's metrics, the summary and the report say
 * the same. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "event_reader.h"
#include "support.h"

#include "jobs.h"
#include "serve/texts.h"
#include "view/view.h"

#define STEPS 18

/* What a terminal gets to see. */
typedef struct shown {
    double step_loss, progress_loss, logloss;
    double lowest, highest; /* loss of a step */
    int64_t steps, rows_done, worker_rows;
} shown;

static void look_at(void *user, const pace_record *record)
{
    shown *self = user;
    const pace_field *loss = pace_record_find(record, "loss"), *logloss = pace_record_find(record, "logloss");

    if (strcmp(record->kind, "step") == 0) {
        self->step_loss = loss->value.real;
        self->lowest = fmin(self->lowest, loss->value.real);
        self->highest = fmax(self->highest, loss->value.real);
        self->steps = pace_record_find(record, "step")->value.integer;
    } else if (strcmp(record->kind, "progress") == 0 &&
               strcmp(pace_record_find(record, "phase")->value.text, "train") == 0) {
        self->rows_done = pace_record_find(record, "done")->value.integer;
        self->progress_loss = loss ? loss->value.real : self->progress_loss;
    } else if (strcmp(record->kind, "sample") == 0 &&
               strcmp(pace_record_find(record, "role")->value.text, "worker1") == 0) {
        self->worker_rows = pace_record_find(record, "rows")->value.integer;
    } else if (strcmp(record->kind, "eval") == 0 && logloss) {
        self->logloss = logloss->value.real;
    }
}

/* Of a tag at a step, in whichever of the chief's files it is. */
static double told_by_events(void **state, const char *tag, int64_t step)
{
    DIR *directory = opendir(in(state, "run/events/chief"));
    double scalar = NAN;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[PATH_MAX];
        read_file events;

        if (!strstr(entry->d_name, "tfevents"))
            continue;
        snprintf(path, sizeof path, "%s/%s", in(state, "run/events/chief"), entry->d_name);
        read_events(path, &events);
        if (find_value(&events, tag, step))
            scalar = scalar_of(&events, tag, step);
        free_events(&events);
    }
    closedir(directory);
    return scalar;
}

static void assert_figure(const char *text, const char *name, double value)
{
    char line[128];

    snprintf(line, sizeof line, "\n%s %.17g\n", name, value);
    if (!strstr(text, line))
        fail_msg("nothing says%sin:\n%s", line, text);
}

static double number_in(const cJSON *object, const char *name)
{
    const cJSON *number = cJSON_GetObjectItem(object, name);

    assert_non_null(number);
    return number->valuedouble;
}

static shown train_and_look(void **state)
{
    pace_train_config config = {.data = in(state, "set"),
                                .run = in(state, "run"),
                                .cluster = {.deadline = 60, .threads = 1},
                                .length = {.batch = 100, .epochs = 2},
                                .optimiser = {.rule = PACE_SGD, .lr = 0.1, .exact = true},
                                .records = {.log_every = 1, .eval_every = 3},
                                .faults.keep = 2,
                                .seed = 7,
                                .force = true};
    pace_registry *registry = pace_registry_create();
    pace_train_result result;
    shown self = {
        .step_loss = NAN, .progress_loss = NAN, .logloss = NAN, .lowest = INFINITY, .highest = -INFINITY};
    pace_sink sink = {look_at, &self};

    lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 1, -1, false});
    said_clear();
    pace_registry_attach(registry, &sink);
    assert_ok(train_ranks(&config, registry, &result));
    pace_registry_free(registry);
    assert_int_equal(self.steps, STEPS);
    assert_true(self.logloss == result.test.logloss);
    return self;
}

static void everyone_says_the_same(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = 900, .test = 100, .ids = 50, .columns = 7, .parts = 2, .seed = 3});

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    shown told = train_and_look(state);
    pace__history *history;
    pace__view view;
    pace__served_text text = {0};

    assert_int_equal(told.rows_done, 1800);
    assert_true(told.progress_loss >= told.lowest &&
                told.progress_loss <= told.highest); /* of several steps */
    assert_ok(pace__history_open(in(state, "run"), &said_log, &history));
    assert_int_equal(history->step_count, STEPS);
    assert_true(history->step[STEPS - 1].loss == told.step_loss);
    assert_true(history->eval[history->eval_count - 1].logloss == told.logloss);
    assert_true(number_in(cJSON_GetObjectItem(history->summary, "test"), "logloss") == told.logloss);

    assert_true(pace__view_make(history, &view));
    pace__metrics_put(&text, &view);
    pace__served_add_bytes(&text, "", 1);
    assert_figure(text.bytes, "paceline_loss", told.step_loss);
    assert_figure(text.bytes, "paceline_step", STEPS);
    assert_figure(text.bytes, "paceline_role_rows_total{role=\"worker1\"}", (double)told.worker_rows);
    assert_true(view.roles[0].newest.rows + view.roles[1].newest.rows == 1800);
    assert_figure(text.bytes, "paceline_role_exchange_sent_bytes_total{role=\"worker1\"}",
                  view.roles[1].newest.own_sent_bytes);

    assert_true(fabs(told_by_events(state, "train/loss", STEPS) - told.step_loss) <= 1e-6); /* of 32 bits */
    assert_true(fabs(told_by_events(state, "test/logloss", STEPS) - told.logloss) <= 1e-6);

    char *report = get_text(in(state, "run/report.html")), fact[64];

    snprintf(fact, sizeof fact, "Test log-loss</dt><dd>%.5f<", told.logloss);
    assert_non_null(strstr(report, fact));
    free(report);
    pace__served_release(&text);
    pace__view_release(&view);
    pace__history_close(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everyone_says_the_same, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a history says at one moment: rates, shares, where the run stands, what is left. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/json.h"
#include "support.h"
#include "view/view.h"

#include "made_runs.h"

#include <cjson/cJSON.h>

static pace__history *look(const made_run *run)
{
    pace__history *history;

    assert_int_equal(pace__history_open(run->path, &said_log, &history), PACE_OK);
    return history;
}

static pace__view view_of(const pace__history *history)
{
    pace__view view;

    assert_true(pace__view_make(history, &view));
    return view;
}

static const pace__role_view *role_of(const pace__view *view, const char *name)
{
    int role = pace__history_role(view->history, name);

    assert_true(role >= 0);
    return &view->roles[role];
}

/* Two workers of 300 and 100 rows a second for half a minute, who wait for a server; then 600 and 200. */
static void put_seconds(made_run *run, int from, int to)
{
    static double rows;

    if (from == 1)
        rows = 0;
    for (int t = from; t <= to; t++) {
        rows += t <= 30 ? 100 : 200;
        made_sample(run, (made_state){.role = "chief",
                                      .waits_for = "ps0",
                                      .t = t,
                                      .rows = 3 * rows,
                                      .compute_s = 0.25 * t,
                                      .wait_s = 0.75 * t,
                                      .cpu_s = 5 + 0.5 * t,
                                      .rss_bytes = 1 << 20});
        made_flow(run, t, "chief", "ps0", 1000.0 * t, 3000.0 * t);
        made_sample(run, (made_state){.role = "worker1", .t = t, .rows = rows, .compute_s = t, .cpu_s = t});
        made_sample(run, (made_state){.role = "ps0",
                                      .t = t,
                                      .communicate_s = 0.1 * t,
                                      .wait_s = 0.9 * t,
                                      .cpu_s = 0.1 * t,
                                      .requests = 30.0 * t,
                                      .looks = 20.0 * t});
    }
}

static void a_run_that_goes_on_is_seen_by_its_last_seconds(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_hold(&run);
    made_standing(&run, PACE__RUN_RUNNING);
    made_start(&run, 0, 1000);
    put_seconds(&run, 1, 60);
    made_step(&run, 40, 200, 0.5);
    pace__history *history = look(&run);
    pace__view view = view_of(history);
    const pace__role_view *chief = role_of(&view, "chief"), *ps = role_of(&view, "ps0");

    assert_int_equal(view.standing, PACE__STANDS_RUNNING);
    assert_float_equal(chief->rows_per_s, 600, 1e-6);
    assert_float_equal(role_of(&view, "worker1")->rows_per_s, 200, 1e-6);
    assert_float_equal(chief->row_share, 0.75, 1e-6);
    assert_true(isnan(ps->row_share));
    assert_float_equal(view.rows_per_s, 800, 1e-6);
    assert_float_equal(chief->wait, 0.75, 1e-6);
    assert_string_equal(view.roles[chief->waits_for].name, "ps0");
    assert_float_equal(chief->cores, 0.5, 1e-6);
    assert_float_equal(chief->sent_per_s, 1000, 1e-6);
    assert_float_equal(chief->received_per_s, 3000, 1e-6);
    assert_float_equal(ps->queue, 1.5, 1e-6);
    /* 9,000 rows of the chief's at 300 a second, then 18,000 at 600; and a third of it: 36,000 in batches of 100. */
    assert_int_equal(view.step, 200);
    assert_float_equal(view.position, 360, 1e-6);
    assert_true(view.left_s > 60 && view.left_s < 120);
    pace__view_release(&view);
    pace__history_close(history);
    made_end(&run, PACE__RUN_RUNNING);
}

static void any_other_is_seen_as_a_whole(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_start(&run, 0, 360);
    put_seconds(&run, 1, 60);
    made_end(&run, PACE__RUN_RUNNING);
    pace__history *history = look(&run);
    pace__view view = view_of(history);

    assert_int_equal(view.standing, PACE__STANDS_KILLED);
    assert_float_equal(role_of(&view, "chief")->rows_per_s, 450, 1e-6);
    assert_float_equal(role_of(&view, "chief")->cores, 0.5, 1e-6); /* without the 5 s before training */
    assert_true(isnan(view.left_s));
    assert_float_equal(view.position, 360, 1e-6);
    pace__view_release(&view);
    pace__history_close(history);
}

/* Nobody has heard of worker1 for six seconds: what it did before is no rate of now. */
static void who_is_silent_does_nothing(void **state)
{
    static const double expected[] = {200, 100, 0};

    for (int i = 0; i < 3; i++) {
        made_run run = made_begin(in(state, "run"));

        made_hold(&run);
        made_standing(&run, PACE__RUN_RUNNING);
        made_start(&run, 0, 1000);
        put_seconds(&run, 1, 60);
        for (int t = 61; t <= 61 + 5 * i + 5 * (i == 2); t++) /* its next one is due at 61 */
            made_sample(&run, (made_state){.role = "chief", .t = t, .rows = 27000, .wait_s = 0.75 * t});
        pace__history *history = look(&run);
        pace__view view = view_of(history);

        assert_float_equal(role_of(&view, "worker1")->rows_per_s, expected[i], 1e-6);
        assert_true(role_of(&view, "worker1")->is_silent == (i > 0));
        pace__view_release(&view);
        pace__history_close(history);
        made_end(&run, PACE__RUN_RUNNING);
    }
}

/* Of a whole run, whom the summary names: not whoever was last waited for. */
static void whom_it_waited_for(void **state)
{
    for (int running = 0; running < 2; running++) {
        made_run run = made_begin(in(state, "run"));

        if (running)
            made_hold(&run);
        made_start(&run, 0, 360);
        for (int t = 1; t <= 30; t++)
            made_sample(&run, (made_state){.role = "chief",
                                           .waits_for = t == 30 ? "worker1" : "ps0",
                                           .waited_for = "ps0",
                                           .t = t,
                                           .wait_s = t});
        made_standing(&run, PACE__RUN_RUNNING);
        pace__history *history = look(&run);
        pace__view view = view_of(history);

        assert_string_equal(view.roles[role_of(&view, "chief")->waits_for].name, running ? "worker1" : "ps0");
        pace__view_release(&view);
        pace__history_close(history);
        made_end(&run, PACE__RUN_RUNNING);
    }
}

static void what_is_not_there_is_not_a_number(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_end(&run, PACE__RUN_INTERRUPTED);
    pace__history *history = look(&run);
    pace__view view = view_of(history);

    assert_null(view.newest);
    assert_null(view.scored);
    assert_int_equal(view.role_count, 0);
    assert_true(isnan(view.rows_per_s));
    assert_int_equal(view.verdict.cause, PACE__CAUSE_NONE);
    pace__view_release(&view);
    pace__history_close(history);
}

/* After a restart counts begin anew, and roles that have not spoken since are not shown with old figures. */
static void a_restart_begins_anew(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_start(&run, 0, 1000);
    put_seconds(&run, 1, 20);
    made_line(&run,
              "{\"kind\":\"start\",\"t\":20,\"step\":50,\"steps\":1000,\"incarnation\":2,\"restarts\":1}");
    made_sample(&run, (made_state){.role = "chief", .t = 22, .seconds = 2, .rows = 100, .compute_s = 2});
    made_end(&run, PACE__RUN_RUNNING);
    pace__history *history = look(&run);
    pace__view view = view_of(history);

    assert_float_equal(role_of(&view, "chief")->rows_per_s, 50, 1e-6);
    assert_true(isnan(role_of(&view, "chief")->cores));
    assert_false(role_of(&view, "worker1")->is_known);
    assert_int_equal(view.step, 50);
    assert_float_equal(view.position, 51, 1e-6);
    pace__view_release(&view);
    pace__history_close(history);
}

static void losses_are_means_of_stretches(void **state)
{
    made_run run = made_begin(in(state, "run"));
    double losses[8];

    made_start(&run, 0, 100);
    for (unsigned i = 0; i < 10; i++)
        made_step(&run, i, i + 1, 10 - i);
    made_line(&run, "{\"kind\":\"step\",\"t\":11,\"step\":11,\"loss\":null}");
    made_end(&run, PACE__RUN_DONE);
    pace__history *history = look(&run);

    assert_int_equal(pace__view_losses(history, 2, losses), 2);
    assert_float_equal(losses[0], 8, 1e-9); /* 10, 9, 8, 7, 6 */
    assert_float_equal(losses[1], 3, 1e-9); /* 5, 4, 3, 2, 1, and one that is none */
    assert_int_equal(pace__view_losses(history, 8, losses), 8);
    assert_float_equal(losses[0], 10, 1e-9);
    pace__history_close(history);
}

static void it_can_be_read_as_json(void **state)
{
    made_run run = made_begin(in(state, "ru\"n"));
    char text[8192];
    pace__json json = {.text = text, .capacity = sizeof text - 1};

    made_start(&run, 0, 1000);
    put_seconds(&run, 1, 30);
    made_step(&run, 31, 100, 0.25);
    made_end(&run, PACE__RUN_FAILED);
    pace__history *history = look(&run);
    pace__view view = view_of(history);

    pace__view_put(&json, &view);
    assert_true(json.size < json.capacity);
    text[json.size] = '\0';
    cJSON *object = cJSON_Parse(text);
    const cJSON *chief = cJSON_GetArrayItem(cJSON_GetObjectItem(object, "roles"), 0);

    assert_non_null(object);
    assert_string_equal(cJSON_GetObjectItem(object, "standing")->valuestring, "failed");
    assert_float_equal(cJSON_GetObjectItem(object, "loss")->valuedouble, 0.25, 0);
    assert_float_equal(cJSON_GetObjectItem(chief, "rows")->valuedouble, 9000, 0);
    assert_float_equal(cJSON_GetObjectItem(chief, "rows_per_s")->valuedouble, 300, 0);
    assert_float_equal(cJSON_GetObjectItem(chief, "bytes_sent")->valuedouble, 30000, 0);
    assert_string_equal(cJSON_GetObjectItem(chief, "waits_for")->valuestring, "ps0");
    cJSON_Delete(object);
    pace__view_release(&view);
    pace__history_close(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_that_goes_on_is_seen_by_its_last_seconds, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(any_other_is_seen_as_a_whole, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(who_is_silent_does_nothing, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(whom_it_waited_for, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_a_number, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_restart_begins_anew, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(losses_are_means_of_stretches, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(it_can_be_read_as_json, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

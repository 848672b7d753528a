/* Steps by events: against cases that have a formula, and what decisions of a job do in them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "plan/simulate.h"
#include "ps/tickets.h"

#include <math.h>
#include <string.h>

#define PERCENT 0.01

static pace__scene scene_of(bool synchronous, unsigned workers, unsigned servers)
{
    return (pace__scene){.synchronous = synchronous,
                         .workers = workers,
                         .servers = servers,
                         .batch = 1000 * workers,
                         .steps = 400,
                         .row_s = 1e-5, /* 10 ms a step */
                         .push_s = 1e-4,
                         .slow = 1,
                         .staleness = PACE__STALENESS_UNBOUNDED,
                         .depth = 1,
                         .seed = 7};
}

static pace__simulated play(pace__scene scene)
{
    pace__simulated made;

    assert_int_equal(pace__simulate(&scene, NULL, &made), PACE_OK);
    return made;
}

static void is_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= PERCENT * wanted))
        fail_msg("%g instead of %g", value, wanted);
}

/* One after the other: rows, a push, the server for all workers, the answer. */
static void a_synchronous_step_is_a_sum(void **state)
{
    pace__scene scene = scene_of(true, 8, 1);

    (void)state;
    scene.serve_s = 5e-4;
    scene.latency_s = 1e-4;
    is_near(play(scene).step_s, 0.01 + 1e-4 + 8 * 5e-4 + 2e-4);
    scene.servers = 2;
    is_near(play(scene).step_s, 0.01 + 2e-4 + 8 * 5e-4 + 2e-4);
    scene.serve_s = 0;
    scene.link_bytes_s = 1e6;
    scene.push_bytes = 2000;
    scene.answer_bytes = 1000;
    scene.servers =
        1; /* its link has to take eight; who is answered first goes on while others are answered */
    is_near(play(scene).step_s, 0.01 + 1e-4 + 8 * 2e-3 + 1e-3 + 2e-4);
}

static void asynchronous_workers_fill_the_server_or_do_not(void **state)
{
    pace__scene scene = scene_of(false, 4, 1);

    (void)state;
    scene.serve_s = 1e-4;
    scene.latency_s = 1e-4;
    is_near(play(scene).step_s, 0.01 + 1e-4 + 1e-4 + 2e-4); /* a step is a push of each */
    scene.serve_s = 0.01;
    pace__simulated full = play(scene);

    is_near(full.step_s, 4 * 0.01);
    assert_true(full.server_busy > 0.98 && full.queue > 1.5);
    scene.serve_s = 0;
    scene.link_bytes_s = 1e6;
    scene.push_bytes = 2e4; /* 20 ms on the one link */
    is_near(play(scene).step_s, 4 * 0.02);
}

/* A second batch under way hides what a push takes to be answered. */
static void depth_hides_the_answer(void **state)
{
    pace__scene scene = scene_of(false, 2, 1);

    (void)state;
    scene.latency_s = 4e-3;
    is_near(play(scene).step_s, 0.0101 + 8e-3);
    scene.depth = 2;
    is_near(play(scene).step_s, 0.0101);
}

/* The mean of the larger of two normal numbers is their mean and 1 / sqrt(pi) deviations. */
static void synchronous_workers_wait_for_the_slowest(void **state)
{
    pace__scene scene = scene_of(true, 2, 1);

    (void)state;
    scene.steps = 20000;
    scene.straggle = 0.2;
    is_near(play(scene).step_s, 1e-4 + 0.01 * (1 + 0.2 / sqrt(acos(-1))));
    scene.straggle = 0;
    scene.slow_workers = 1;
    scene.slow = 3;
    is_near(play(scene).step_s, 1e-4 + 0.03);
}

/* shares/balance.h decides: of four workers one takes three times as long for a row, so three tenths of the rows are each of the
 * others'. */
static void shares_follow_speed(void **state)
{
    pace__scene scene = scene_of(true, 4, 1);

    (void)state;
    scene.slow_workers = 1;
    scene.slow = 3;
    scene.steps = 2000;
    scene.balance_every = 4;
    double best_s = 1e-4 + 0.01 * 4 / (3 + 1.0 / 3), step_s = play(scene).step_s;

    assert_true(step_s < 1.05 * best_s && step_s >= best_s * 0.99);
}

/* ps/tickets.h holds back who is ahead. Each at its own speed if not; with no step ahead, all wait for the slowest in each. */
static void who_is_ahead_is_held_back(void **state)
{
    pace__scene scene = scene_of(false, 4, 1);

    (void)state;
    scene.slow_workers = 1;
    scene.slow = 4;
    is_near(play(scene).step_s, 4 / (3 / 0.0101 + 1 / 0.0401));
    scene.staleness = 0;
    is_near(play(scene).step_s, 0.0401);
}

static void the_same_seed_is_the_same_run(void **state)
{
    pace__scene scene = scene_of(false, 8, 2);
    pace__simulated first, second;

    (void)state;
    scene.straggle = 0.3;
    first = play(scene);
    second = play(scene);
    assert_memory_equal(&first, &second, sizeof first);
    scene.seed++;
    assert_true(play(scene).seconds != first.seconds);
}

/* Shards on the workers: every one has a link that carries its pushes to the others, and theirs. */
static void workers_may_hold_the_shards(void **state)
{
    pace__scene scene = scene_of(true, 4, 0);

    (void)state;
    scene.serve_s = 1e-4;
    is_near(play(scene).step_s, 0.01 + 4e-4 + 4e-4);
    scene.workers = scene.batch = 1;
    assert_true(play(scene).step_s > 0);
}

static void many_workers_take_seconds(void **state)
{
    pace__scene scene = scene_of(true, 256, 8);
    uint64_t begin_ns = pace__now_ns();

    (void)state;
    scene.steps = 200;
    scene.straggle = 0.1;
    scene.serve_s = 1e-5;
    play(scene);
    assert_true(pace__seconds_since(begin_ns) < 5);
    scene = scene_of(false, 1000, 4);
    scene.steps = 100;
    scene.depth = 2;
    scene.serve_s = 1e-6;
    assert_true(play(scene).rows_s > 0);
    scene.workers = PACE__SCENE_WORKERS_MAX + 1;
    assert_int_equal(pace__simulate(&scene, NULL, &(pace__simulated){0}), PACE_USAGE);
}

static void keep_error(void *user, pace_level level, const char *text)
{
    (void)level;
    snprintf(user, PACE_LOG_TEXT_MAX, "%s", text);
}

/* A scene of too many events is refused at once: half of it would be a wrong answer. What a scene has is as many as were counted
 * beforehand. */
static void events_have_a_limit(void **state)
{
    char text[PACE_LOG_TEXT_MAX] = "";
    pace_log log = {keep_error, text};
    pace__scene scene = scene_of(true, 8, 2);

    (void)state;
    assert_int_equal(play(scene).events, 400 * 8 * (1 + 3 * 2));
    scene = scene_of(true, 2000, 0);
    scene.steps = 200;
    assert_int_equal(pace__simulate(&scene, &log, &(pace__simulated){0}), PACE_USAGE);
    assert_non_null(strstr(text, "2.4e+09 events"));
    assert_non_null(strstr(text, "no more than 1e+09"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synchronous_step_is_a_sum),
        cmocka_unit_test(asynchronous_workers_fill_the_server_or_do_not),
        cmocka_unit_test(depth_hides_the_answer),
        cmocka_unit_test(synchronous_workers_wait_for_the_slowest),
        cmocka_unit_test(shares_follow_speed),
        cmocka_unit_test(who_is_ahead_is_held_back),
        cmocka_unit_test(the_same_seed_is_the_same_run),
        cmocka_unit_test(workers_may_hold_the_shards),
        cmocka_unit_test(many_workers_take_seconds),
        cmocka_unit_test(events_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

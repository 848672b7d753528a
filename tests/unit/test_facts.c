/* What records tell of a job: who was away, what came behind the last step, how a model is trained. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"
#include "verdict/facts.h"

#include "made_runs.h"

#include <time.h>

#define SYNC "model: logreg\nmode: ps-sync\nbatch: 100\nworkers: 2\nthreads: 1\n"

static pace__verdict verdict_of(made_run *run, double since_t)
{
    pace__history *history;
    pace__verdict verdict;

    made_end(run, PACE__RUN_RUNNING);
    assert_ok(pace__history_open(run->path, &said_log, &history));
    pace__verdict_from(history, since_t, &verdict);
    pace__history_close(history);
    return verdict;
}

static void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
}

/* Who computes three tenths of its time, and waits. */
static void put_second(made_run *run, const char *role, double t, double idle_s)
{
    double busy_s = 0.3 * (t - idle_s);

    made_sample(run, (made_state){.role = role,
                                  .t = t,
                                  .rows = 100 * busy_s,
                                  .compute_s = busy_s,
                                  .wait_s = t - busy_s,
                                  .cpu_s = busy_s});
}

/* Twenty seconds of a chief, a worker and a server; one of them says nothing from second 5 to 15, and all stand still. */
static made_run twenty_seconds(void **state, const char *options, const char *away)
{
    made_run run = made_begin_as(in(state, "run"), options);

    made_start(&run, 0, 1000);
    for (int t = 1; t <= 20; t++) {
        double idle_s = t <= 5 ? 0 : t < 15 ? t - 5 : 10;
        const char *const roles[] = {"chief", "worker1", "ps0"};

        for (int i = 0; i < 3; i++) {
            if (t <= 5 || t >= 15 || (strcmp(roles[i], away) != 0 && strcmp(away, "chief") != 0))
                put_second(&run, roles[i], t + 0.01 * i, idle_s);
        }
    }
    return run;
}

/* It was not waiting for a step that is too small. Of a chief that is away, who makes the records, nobody is heard. */
static void who_was_away(void **state)
{
    static const char *const roles[] = {"worker1", "ps0", "chief"};

    for (int i = 0; i < 3; i++) {
        made_run run = twenty_seconds(state, SYNC, roles[i]);
        pace__verdict verdict = verdict_of(&run, 0);
        char expected[64];

        assert_string_equal(pace__cause_name(verdict.cause), "stall");
        snprintf(expected, sizeof expected, "%s was away for about ", roles[i]);
        assert_says(verdict.evidence, expected);
        assert_true(verdict.taken_s[PACE__CAUSE_STALL] > 8 && verdict.taken_s[PACE__CAUSE_STALL] < 10);
        if (i == 0)
            assert_says(verdict.advice, "--backup-workers 1");
    }
}

/* Still away, as far as anybody knows. */
static void who_is_away_now(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_start(&run, 0, 1000);
    for (int t = 1; t <= 20; t++) {
        put_second(&run, "chief", t, t > 5 ? t - 5 : 0);
        if (t <= 5)
            put_second(&run, "worker1", t, 0);
    }
    pace__verdict verdict = verdict_of(&run, 0);

    assert_string_equal(pace__cause_name(verdict.cause), "stall");
    assert_says(verdict.evidence, "worker1 was away for about 14 s");
}

/* Late by a sample or two, or at work all the time: nothing is said of it. */
static void who_was_not_away(void **state)
{
    made_run late = made_begin(in(state, "late")), busy = made_begin(in(state, "busy"));

    made_start(&late, 0, 1000);
    made_start(&busy, 0, 1000);
    for (int t = 1; t <= 20; t++) {
        put_second(&late, "chief", t, 0);
        if (t % 3 != 2)
            put_second(&late, "worker1", t + 0.5, 0);
        put_second(&busy, "chief", t, 0);
        if (t < 6 || t > 15)
            made_sample(&busy, (made_state){.role = "worker1", .t = t, .compute_s = t});
    }
    assert_true(verdict_of(&late, 0).taken_s[PACE__CAUSE_STALL] == 0);
    assert_true(verdict_of(&busy, 0).taken_s[PACE__CAUSE_STALL] == 0);
}

/* The last step was taken after 2 s, the chief waited for somebody until 12, and scored until 13. */
static void waiting_behind_the_last_step_is_no_scoring(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_start(&run, 0, 10);
    put_second(&run, "chief", 1, 0);
    put_second(&run, "worker1", 1, 0);
    made_step(&run, 2, 10, 0.5);
    for (int t = 3; t <= 12; t++)
        put_second(&run, "chief", t, t - 2);
    put_second(&run, "worker1", 12, 10);
    made_sample(&run,
                (made_state){.role = "chief", .t = 13, .seconds = 12, .compute_s = 0.2, .wait_s = 11.8});
    pace__verdict verdict = verdict_of(&run, 0);

    assert_true(fabs(verdict.all_s - 13) < 1e-6);
    assert_true(fabs(verdict.taken_s[PACE__CAUSE_SCORING] - 1) < 1e-6);
    assert_string_equal(pace__cause_name(verdict.cause), "stall");
}

/* By what their kind says of them, whatever they are called. */
static void networks_are_averaged(void **state)
{
    static const struct {
        const char *options, *advice;
    } jobs[] = {
        {"model: rnn\nmode: local-sgd\nbatch: 100\nworkers: 2\nthreads: 1\n", "averaged less often"},
        {"model: cnn\nmode: local-sgd\nbatch: 100\nworkers: 2\nthreads: 1\n", "averaged less often"},
        {"model: logreg\nmode: local-sgd\nbatch: 100\nworkers: 2\nthreads: 1\n", "fewer --workers"},
        {"model: newer\nmode: local-sgd\nbatch: 100\nworkers: 2\nthreads: 1\n", "fewer --workers"},
    };

    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        made_run run = made_begin_as(in(state, "run"), jobs[i].options);

        made_start(&run, 0, 1000);
        for (int t = 1; t <= 20; t++) {
            put_second(&run, "chief", t, 0);
            put_second(&run, "worker1", t, 0);
        }
        assert_says(verdict_of(&run, 0).advice, jobs[i].advice);
    }
}

/* Samples of a second each, of two days. (In time that the process has computed: looking at all for each took minutes.) */
static void long_runs_are_judged_at_once(void **state)
{
    enum { LONG = 172800 };
    pace__seen_role roles[2] = {{.name = "chief"}, {.name = "worker1"}};
    pace__mark start = {.kind = PACE__MARK_START};
    pace__history history = {
        .roles = roles, .role_count = 2, .starts = 1, .last_t = LONG, .mark = &start, .mark_count = 1};
    pace__verdict verdict;

    (void)state;
    for (int role = 0; role < 2; role++) {
        roles[role].count = LONG;
        roles[role].samples = calloc(LONG, sizeof *roles[role].samples);
        assert_non_null(roles[role].samples);
        for (int i = 0; i < LONG; i++)
            roles[role].samples[i] =
                (pace__sample){.t = i + 0.1 * role, .seconds = i, .compute_s = 0.9 * i, .wait_s = 0.1 * i};
    }
    clock_t begin = clock();

    pace__verdict_from(&history, 0, &verdict);
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 10);
    assert_int_equal(verdict.cause, PACE__CAUSE_COMPUTE);
    free(roles[0].samples);
    free(roles[1].samples);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_was_away),          TEST(who_is_away_now),
        TEST(who_was_not_away),      TEST(waiting_behind_the_last_step_is_no_scoring),
        TEST(networks_are_averaged), cmocka_unit_test(long_runs_are_judged_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

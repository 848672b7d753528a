/* Injected faults: each fires once per run. What can be written is in test_inject_lists.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/inject.h"
#include "support.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define SECONDS_MAX 30 /* for anything that is waited for */

static const pace__cluster full = {.workers = 3, .ps = 2, .evaluator = true};

/* --- firing --- */

static pace__faults opened(void **state, const char *text, int rank)
{
    pace__faults faults;

    assert_ok(pace__faults_open(&faults, text, &full, rank, *state, &said_log));
    return faults;
}

/* Times become "T". */
static char *recorded(void **state)
{
    static char text[4096];

    text[0] = '\0';
    if (!pace__exists(in(state, "faults")))
        return text;
    char *found = get_text(in(state, "faults")), *rest;

    for (char *line = strtok_r(found, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *stamp = strrchr(line, ' ');

        assert_non_null(stamp);
        assert_int_equal(strlen(stamp), 21);
        assert_int_equal(stamp[20], 'Z');
        strcpy(stamp + 1, "T");
        strcat(strcat(text, line), "\n");
    }
    free(found);
    return text;
}

static pid_t start_child(void (*work)(void **state), void **state)
{
    fflush(NULL);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(2 * SECONDS_MAX); /* if nobody comes to kill it */
        work(state);
        _exit(7);
    }
    return child;
}

/* Its exit code, or minus the signal that ended it. */
static int end_of(pid_t child)
{
    uint64_t start_ns = pace__now_ns();
    int status;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (pace__seconds_since(start_ns) > SECONDS_MAX) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            fail_msg("a child did not end");
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Steps 1 to 9 with everything around them. Says in a file how far it came. */
static void train(pace__faults *faults, void **state)
{
    char text[32];

    pace__faults_at(faults, PACE__AT_START, 0);
    for (uint64_t step = 1; step < 10; step++) {
        pace__faults_at(faults, PACE__AT_STEP, step);
        snprintf(text, sizeof text, "%llu", (unsigned long long)step);
        put_text(in(state, "step"), text);
    }
    pace__faults_at(faults, PACE__AT_EVAL, 9);
    pace__faults_at(faults, PACE__AT_CHECKPOINT, 9);
    pace__faults_at(faults, PACE__AT_END, 9);
}

#define TWO_KILLS "kill:ps0@step=4,kill:chief@step=2,slow:ps0=1x,kill:ps0@step=4,kill:ps0@end"

static void suffer_kills(void **state)
{
    pace__faults faults = opened(state, TWO_KILLS, 3);

    train(&faults, state);
}

static void each_kill_fires_once_per_run(void **state)
{
    static const struct {
        const char *step, *record;
        int end;
    } starts[] = {
        {"3", "1 kill:ps0@step=4 T\n", -SIGKILL},
        {"3", "1 kill:ps0@step=4 T\n2 kill:ps0@step=4 T\n", -SIGKILL},
        {"9", "1 kill:ps0@step=4 T\n2 kill:ps0@step=4 T\n1 kill:ps0@end T\n", -SIGKILL},
        {"9", "1 kill:ps0@step=4 T\n2 kill:ps0@step=4 T\n1 kill:ps0@end T\n", 7},
    };

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        assert_int_equal(end_of(start_child(suffer_kills, state)), starts[i].end);
        char *step = get_text(in(state, "step"));

        assert_string_equal(step, starts[i].step);
        free(step);
        assert_string_equal(recorded(state), starts[i].record);
    }
}

/* What fires without ending: stalls of a millisecond. */
static const struct {
    const char *text;
    pace__moment moment;
    uint64_t step;
} moments[] = {
    {"stall:worker1=0.001@step=50", PACE__AT_STEP, 57},
    {"stall:worker1=0.001s", PACE__AT_STEP, 0},
    {"stall:worker1=0.001@start", PACE__AT_START, 0},
    {"stall:worker1=0.001@checkpoint", PACE__AT_CHECKPOINT, 9},
    {"stall:worker1=0.001@eval", PACE__AT_EVAL, 9},
    {"stall:worker1=0.001@end", PACE__AT_END, 9},
};

static void moments_are_kept_apart(void **state)
{
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        pace__faults faults = opened(state, moments[i].text, 1);

        for (int other = PACE__AT_STEP; other <= PACE__AT_END; other++) {
            if (other != (int)moments[i].moment && other != PACE__AT_TIME)
                pace__faults_at(&faults, (pace__moment)other, 999);
        }
        if (i == 0)
            pace__faults_at(&faults, PACE__AT_STEP, 49);
        assert_string_equal(said, "");
        pace__faults_at(&faults, moments[i].moment, moments[i].step);
        char wanted[128];

        snprintf(wanted, sizeof wanted, "W injected: %s\n", moments[i].text);
        assert_string_equal(said, wanted);
        pace__faults_at(&faults, moments[i].moment, moments[i].step);
        assert_string_equal(said, wanted); /* once */
        said_clear();
        pace__faults_close(&faults);
    }
}

static void times_count_from_the_start(void **state)
{
    pace__faults faults = opened(state, "stall:worker1=0.001@time=3600,stall:worker1=0.001@time=0.05s", 1);

    faults.start_ns -= 7200 * UINT64_C(1000000000); /* opened two hours ago: training begins now */
    pace__faults_at(&faults, PACE__AT_START, 0);
    uint64_t start_ns = pace__now_ns();

    assert_true(faults.start_ns <= start_ns);
    while (!said[0] && pace__seconds_since(start_ns) < SECONDS_MAX)
        pace__faults_at(&faults, PACE__AT_EVAL, 0); /* whatever the moment */
    assert_true(pace__seconds_since(faults.start_ns) >= 0.05);
    assert_string_equal(said, "W injected: stall:worker1=0.001@time=0.05s\n");
    pace__faults_close(&faults);
}

static uint64_t read_clock(void *user)
{
    return *(uint64_t *)user;
}

static void times_go_by_the_clock_that_is_given(void **state)
{
    uint64_t now_ns = 123;
    pace__faults faults = opened(state, "stall:worker1=0.001@time=3600", 1);

    pace__faults_go_by(&faults, &(pace__clock){read_clock, &now_ns});
    now_ns += 3600 * UINT64_C(1000000000) - 1;
    pace__faults_at(&faults, PACE__AT_TIME, 0);
    assert_string_equal(said, "");
    now_ns++;
    pace__faults_at(&faults, PACE__AT_TIME, 0);
    assert_string_equal(said, "W injected: stall:worker1=0.001@time=3600\n");
    pace__faults_close(&faults);
}

static void a_stall_takes_its_time(void **state)
{
    pace__faults faults = opened(state, "stall:worker1=0.05@step=3", 1);
    uint64_t start_ns = pace__now_ns();

    pace__faults_at(&faults, PACE__AT_STEP, 3);
    assert_true(pace__seconds_since(start_ns) >= 0.05);
    assert_string_equal(recorded(state), "1 stall:worker1=0.05@step=3 T\n");
    pace__faults_close(&faults);
}

static void ignore_signal(int number)
{
    (void)number;
}

static void suffer_stall(void **state)
{
    struct sigaction action = {.sa_handler = ignore_signal};
    pace__faults faults = opened(state, "stall:worker1@step=3", 1);

    sigaction(SIGTERM, &action, NULL);
    train(&faults, state);
}

/* A fork that stalls does not end by a signal that it handles; SIGKILL ends it. */
static void a_stall_for_ever_is_for_ever(void **state)
{
    pid_t child = start_child(suffer_stall, state);
    uint64_t start_ns = pace__now_ns();
    int status;

    while (!strstr(recorded(state), "\n") && pace__seconds_since(start_ns) < SECONDS_MAX)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < 50; i++) {
        kill(child, SIGTERM);
        assert_int_equal(waitpid(child, &status, WNOHANG), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(child, SIGKILL);
    assert_int_equal(end_of(child), -SIGKILL);
    char *step = get_text(in(state, "step"));

    assert_string_equal(step, "2");
    free(step);
    assert_string_equal(recorded(state), "1 stall:worker1@step=3 T\n");
}

/* --- the record --- */

static void what_cannot_be_recorded_does_not_fire(void **state)
{
    pace__faults faults;

    assert_ok(
        pace__faults_open(&faults, "kill:worker1,kill:worker1", &full, 1, in(state, "missing"), &said_log));
    for (uint64_t step = 0; step < 10; step++)
        pace__faults_at(&faults, PACE__AT_STEP, step);
    char wanted[1024];

    snprintf(wanted, sizeof wanted,
             "W %s: cannot record an injected fault: cannot open: No such file or directory: kill:worker1 "
             "does not fire\n",
             in(state, "missing/faults"));
    assert_int_equal(strlen(said), 2 * strlen(wanted));
    assert_said(wanted);
    pace__faults_close(&faults);
    said_clear();
    /* Nor does one whose record cannot be read. */
    assert_int_equal(mkdir(in(state, "faults"), 0777), 0);
    assert_failed(pace__faults_open(&faults, "kill:worker1", &full, 1, *state, &said_log), PACE_NO_INPUT,
                  "/faults: is a directory, not a file");
    pace__faults_close(&faults);
    /* Who has no faults does not look. */
    assert_ok(pace__faults_open(&faults, "kill:worker2,slow:worker1=2", &full, 1, *state, &said_log));
    assert_int_equal(faults.count, 0);
    assert_true(pace__faults_slowness(&faults, 0) == 2);
    pace__faults_close(&faults);
}

static void links_are_not_followed(void **state)
{
    pace__faults faults = opened(state, "kill:worker1", 1);

    assert_int_equal(symlink(in(state, "elsewhere"), faults.record), 0);
    pace__faults_at(&faults, PACE__AT_STEP, 0);
    assert_said("cannot record an injected fault: is a link, not a file: kill:worker1 does not fire");
    assert_false(pace__exists(in(state, "elsewhere")));
    pace__faults_close(&faults);
}

static void only_whole_lines_of_equal_text_count(void **state)
{
    static const char list[] = "stall:worker1=0.001,stall:worker1=0.001,stall:worker1=0.0010";
    static const struct {
        const char *record;
        uint64_t spent;
    } cases[] = {
        {"1 stall:worker1=0.001 2026-01-31T12:00:00Z\n", 1},
        {"2 stall:worker1=0.001 2026-01-31T12:00:00Z\n1 stall:worker1=0.0010 2026-01-31T12:00:00Z\n", 6},
        {"3 stall:worker1=0.001 2026-01-31T12:00:00Z\n1 stall:worker2 2026-01-31T12:00:00Z\n", 0},
        {"1 stall:worker1=0.001 2026-01-31T12:00", 0},
        {"1 stall:worker1=0.001 2026-01-31T12:00\n\n2 stall:worker1=0.001 2026-01-31T12:00:00Z\n", 2},
        {"1 stall:work\n", 0},
        {"99999999999999999999 stall:worker1=0.001 2026-01-31T12:00:00Z\n", 0},
        {"\n\n \n%s%n\x80\xff", 0},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(in(state, "faults"), cases[i].record);
        pace__faults faults = opened(state, list, 1);

        assert_int_equal(faults.spent, cases[i].spent);
        pace__faults_at(&faults, PACE__AT_STEP, 0);
        pace__faults_close(&faults);
        faults = opened(state, list, 1); /* what a cut line has left does not hide what comes behind it */
        assert_int_equal(faults.spent, 7);
        pace__faults_close(&faults);
    }
}

/* Nobody's line is lost or mixed with another's. */
static void ranks_record_at_the_same_time(void **state)
{
    enum { RANKS = 4, STALLS = 8 };
    static const char *const names[RANKS] = {"chief", "worker1", "worker2", "ps0"};
    pid_t children[RANKS];
    unsigned lines = 0;

    fflush(NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        char list[256] = "";

        for (int i = 0; i < STALLS; i++)
            strcat(strcat(strcat(list, i ? ",stall:" : "stall:"), names[rank]), "=0.001");
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0) {
            pace__faults faults = opened(state, list, rank);

            pace__faults_at(&faults, PACE__AT_STEP, 0);
            _exit(7);
        }
    }
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(end_of(children[rank]), 7);
    const char *text = recorded(state);

    for (const char *line = text; (line = strchr(line, '\n')); line++)
        lines++;
    assert_int_equal(lines, RANKS * STALLS);
    for (int i = 0; i < RANKS * STALLS; i++) {
        char line[64];

        snprintf(line, sizeof line, "%d stall:%s=0.001 T\n", 1 + i / RANKS, names[i % RANKS]);
        assert_non_null(strstr(text, line));
    }
}

/* --- corruption --- */

static void make_checkpoint(void **state)
{
    assert_int_equal(mkdir(in(state, "step"), 0777), 0);
    put_text(in(state, "step/manifest.json"), "{}");
    put_text(in(state, "step/part-0"), "123456789");
    put_text(in(state, "step/part-1"), "123456789");
    assert_int_equal(mkdir(in(state, "step/zz-no-file"), 0777), 0);
    assert_int_equal(symlink("/proc/self/exe", in(state, "step/link")), 0);
}

static void assert_file(const char *path, const char *wanted)
{
    char *found = get_text(path);

    assert_string_equal(found, wanted);
    free(found);
}

static void a_checkpoint_is_corrupted(void **state)
{
    static const char list[] = "corrupt-checkpoint@step=100,corrupt-checkpoint@step=100,kill:worker1";
    pace__faults faults = opened(state, list, 0);

    make_checkpoint(state);
    pace__faults_at(&faults, PACE__AT_STEP, 500); /* not a matter of steps alone */
    pace__faults_corrupt(&faults, in(state, "step"), 99);
    assert_string_equal(recorded(state), "");
    pace__faults_corrupt(&faults, in(state, "step"), 150);
    assert_string_equal(recorded(state), "1 corrupt-checkpoint@step=100 T\n");
    assert_said("W injected: corrupt-checkpoint@step=100: byte 4 of ");
    assert_said("/step/part-0\n");
    assert_file(in(state, "step/part-0"), "123446789");
    assert_file(in(state, "step/part-1"), "123456789");
    assert_file(in(state, "step/manifest.json"), "{}");
    pace__faults_close(&faults);
    /* The second one, in the next life, is for another checkpoint; then there are none. */
    faults = opened(state, list, 0);
    pace__faults_corrupt(&faults, in(state, "step"), 200);
    assert_file(in(state, "step/part-0"), "123456789");
    pace__faults_corrupt(&faults, in(state, "step"), 300);
    assert_file(in(state, "step/part-0"), "123456789");
    assert_string_equal(recorded(state),
                        "1 corrupt-checkpoint@step=100 T\n2 corrupt-checkpoint@step=100 T\n");
    pace__faults_close(&faults);
}

static void there_may_be_nothing_to_corrupt(void **state)
{
    pace__faults faults = opened(state, "corrupt-checkpoint,corrupt-checkpoint", 0);

    assert_int_equal(mkdir(in(state, "empty"), 0777), 0);
    put_text(in(state, "empty/nothing"), "");
    pace__faults_corrupt(&faults, in(state, "empty"), 1);
    assert_said("/empty: no file to corrupt: corrupt-checkpoint does not fire");
    said_clear();
    pace__faults_corrupt(&faults, in(state, "missing"), 2);
    assert_said("/missing: no file to corrupt");
    assert_string_equal(recorded(state), "");
    pace__faults_close(&faults);
}

/* --- slowness --- */

static void slowness_multiplies_what_work_takes(void **state)
{
    pace__faults faults = opened(state, "slow:worker1=2x,slow:worker1=1.5x,slow:worker2=100x", 1);

    assert_true(pace__faults_slowness(&faults, 0) == 3);
    assert_false(pace__exists(in(state, "faults")));
    uint64_t start_ns = pace__now_ns(), busy_ns = 0;

    for (int i = 0; i < 2000; i++) { /* 2 us each: most calls do not sleep */
        pace__faults_drag(&faults, 0, 2000);
        busy_ns += 2000;
        assert_true(faults.debt_ns < 50000);
    }
    /* What is owed was slept, but for what is still owed. */
    assert_true(pace__now_ns() - start_ns + 50000 >= 2 * busy_ns);
    /* What was slept too long is taken from what comes next. */
    faults.debt_ns = -3000000;
    start_ns = pace__now_ns();
    pace__faults_drag(&faults, 0, 5000000);
    int64_t slept_ns = (int64_t)(pace__now_ns() - start_ns);

    assert_true(slept_ns >= 7000000);
    assert_in_range(-faults.debt_ns, 1, slept_ns - 7000000);
    pace__faults_close(&faults);
}

/* From the first step that is named until before the last: nothing else counts, so a restart changes nothing. */
static void slowness_has_its_steps(void **state)
{
    pace__faults faults =
        opened(state,
               "slow:worker1=2x@step=200..400,slow:worker1=3x@step=300,slow:worker1=5@step=..1k,"
               "slow:worker1=7x@step=2k..,slow:chief=11x",
               1);
    static const struct {
        uint64_t step;
        double factor;
    } wanted[] = {{0, 5},    {199, 5},  {200, 10}, {299, 10}, {300, 30},  {399, 30},
                  {400, 15}, {999, 15}, {1000, 3}, {1999, 3}, {2000, 21}, {PACE__FAULT_STEP_MAX, 21}};

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_true(pace__faults_slowness(&faults, wanted[i].step) == wanted[i].factor);
    pace__faults_close(&faults);
    faults = opened(state, "slow:worker1=1000x@step=2..3", 1);
    assert_int_equal(pace__faults_drag(&faults, 1, UINT64_C(3600000000000)), 0);
    assert_true(pace__faults_drag(&faults, 2, 10000) >= 9000000);
    assert_int_equal(pace__faults_drag(&faults, 3, UINT64_C(3600000000000)), 0);
    assert_false(pace__exists(in(state, "faults")));
    pace__faults_close(&faults);
}

static void without_slowness_nothing_is_owed(void **state)
{
    pace__faults faults = opened(state, NULL, 1);
    uint64_t start_ns = pace__now_ns();

    assert_true(pace__faults_slowness(&faults, 0) == 1);
    pace__faults_drag(&faults, 0, UINT64_C(3600000000000));
    pace__faults_at(&faults, PACE__AT_STEP, 1);
    pace__faults_corrupt(&faults, in(state, "missing"), 1);
    assert_true(pace__seconds_since(start_ns) < SECONDS_MAX);
    assert_int_equal(faults.debt_ns, 0);
    assert_string_equal(said, "");
    pace__faults_close(&faults);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_kill_fires_once_per_run),
        TEST(moments_are_kept_apart),
        TEST(times_count_from_the_start),
        TEST(times_go_by_the_clock_that_is_given),
        TEST(a_stall_takes_its_time),
        TEST(a_stall_for_ever_is_for_ever),
        TEST(what_cannot_be_recorded_does_not_fire),
        TEST(links_are_not_followed),
        TEST(only_whole_lines_of_equal_text_count),
        TEST(ranks_record_at_the_same_time),
        TEST(a_checkpoint_is_corrupted),
        TEST(there_may_be_nothing_to_corrupt),
        TEST(slowness_multiplies_what_work_takes),
        TEST(slowness_has_its_steps),
        TEST(without_slowness_nothing_is_owed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

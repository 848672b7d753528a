/* A job under a launcher, where the launcher is a shell script: its start, its end, and requests to stop. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"

#include "launchers.h"

#include <errno.h>
#include <paceline/relay.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- a job that goes well ---- */

static void count_rows(void *user, const pace_record *record)
{
    if (strcmp(record->kind, "progress") == 0)
        *(int64_t *)user += pace_record_find(record, "done")->value.integer;
}

static void test_good_job(void **state)
{
    int64_t rows = 0;
    pace_sink sink = {count_rows, &rows};
    pace_registry *registry = pace_registry_create();

    assert_non_null(registry);
    pace_registry_attach(registry, &sink);
    assert_ok(run(state, (setting){.registry = registry},
                  "hello; echo 'some noise' >&2; echo 'more noise'\n"
                  "frame 0 I 'reading data'; frame 1 W 'slow disk'\n"
                  "frame 0 R '{\"kind\":\"progress\",\"fields\":[[\"done\",\"int\",\"40\"]]}'\n"
                  "frame 1 R '{\"kind\":\"progress\",\"fields\":[[\"done\",\"int\",\"500\"]]}'\n"
                  "frame 0 R '{\"kind\":\"progress\",\"fields\":[[\"done\",\"int\",\"2\"]]}'\n"
                  "done_well\n"));
    assert_string_equal(said, "I reading data\nW worker1: slow disk\n");
    assert_int_equal(rows, 42); /* only the chief's */
    pace_registry_free(registry);
}

/* Success is the chief's word. */
static void test_launcher_fails_after_the_end(void **state)
{
    assert_ok(run(state, (setting){0}, "hello; done_well; frame 1 E 'too late to matter'; exit 3\n"));
    assert_int_equal(errors_said(), 0);
    assert_said("W worker1 (rank 1, host nodeb): too late to matter\n");
    assert_said("exit code 3");
}

static void test_success_without_the_chief(void **state)
{
    assert_last_words(run(state, (setting){0}, "hello; frame 1 X 0; frame 2 X 0; exit 0\n"), PACE_LOST,
                      "the launcher ended well, but the chief never said");
    assert_last_words(run(state, (setting){0}, "hello; frame 0 X 65; exit 0\n"), PACE_BAD_DATA,
                      "chief (rank 0, host nodea) ended with exit code 65 and did not say why");
}

/* ---- the start ---- */

static void test_missing_hello(void **state)
{
    put_text(in(state, "hosts"), "nodea\nnodeb\nnodec\n");
    assert_last_words(run(state, (setting){.contact_s = 0.3, .hosts = in(state, "hosts")},
                          "frame 1 H \"other 102 - $version\"; echo 'ssh: no route' >&2; exec sleep 60\n"),
                      PACE_LOST,
                      "2 of 3 processes did not start within 0.3 s: chief on nodea, ps0 on nodec\n");
    assert_said("W launcher: ssh: no route\n");
    assert_last_words(run(state, (setting){0}, "frame 0 H \"nodea 1 - $version\"; exit 1\n"), PACE_LOST,
                      "the launcher ended with exit code 1 before all processes had started: worker1 on ");
}

static void test_no_program(void **state)
{
    assert_last_words(
        run(state, (setting){0},
            "echo 'mpirun was unable to launch the specified application as it could not access'\n"
            "echo 'or execute an executable:'; echo; echo 'Executable: /opt/paceline'; echo 'Node: nodeb'\n"
            "exit 132\n"),
        PACE_FAILED, "host nodeb cannot run /opt/paceline: ");
    assert_last_words(
        run(state, (setting){.engine = "HYDRA"},
            "echo '[proxy:0:1@nodec] HYDU_create_process (launch.c:73): execvp error on file /opt/paceline "
            "(No such file or directory)' >&2; exit 255\n"),
        PACE_FAILED, "host nodec cannot run /opt/paceline: ");
}

static void test_no_launcher(void **state)
{
    pace__launch_plan plan = {
        .cluster = three, .words = command, .launcher = in(state, "none"), .first_contact_s = 9};

    assert_failed(pace__launch(&plan, &said_log, NULL), PACE_FAILED, "none: there is no such file");
    plan.hosts = in(state, "no-hosts");
    assert_failed(pace__launch(&plan, &said_log, NULL), PACE_NO_INPUT, "no-hosts");
    put_text(plan.hosts, "nodea slots=2\n");
    assert_failed(pace__launch(&plan, &said_log, NULL), PACE_USAGE, "2 slots for 3 processes: 1 are missing");
}

static void test_other_version(void **state)
{
    assert_last_words(run(state, (setting){0}, "hello; frame 2 H 'nodec 103 - 9.8.7'; exec sleep 60\n"),
                      PACE_FAILED, "ps0 (rank 2, host nodec) runs paceline 9.8.7, but this is paceline ");
}

/* ---- requests to stop ---- */

static void test_stop(void **state)
{
    static const char body[] = "trap 'frame 0 E \"interrupted at step 5\"; frame 0 X 75; exit 75' USR1\n"
                               "hello; while :; do sleep 0.02; done\n";
    _Atomic int stop = 1;

    assert_last_words(run(state, (setting){.stop = &stop}, body), PACE_INTERRUPTED,
                      "chief (rank 0, host nodea): interrupted at step 5\n");
}

/* The chief has saved and said so, but another rank takes too long to end. */
static void test_stop_that_takes_long(void **state)
{
    static const char body[] = "trap 'frame 0 E \"interrupted at step 5\"; exec sleep 60' USR1\n"
                               "hello; while :; do sleep 0.02; done\n";
    _Atomic int stop = 1;

    assert_last_words(run(state, (setting){.stop = &stop, .ending_s = 0.2}, body), PACE_INTERRUPTED,
                      "chief (rank 0, host nodea): interrupted at step 5\n");
}

/* Told by a signal, and the time for it is over. */
static void test_late_stop_kills(void **state)
{
    _Atomic int stop = 3;

    assert_last_words(run(state, (setting){.stop = &stop}, "trap '' USR1 TERM; hello; exec sleep 60\n"),
                      PACE_INTERRUPTED, "told to stop, and not done within the time for it: killed\n");
}

static void test_second_stop_kills(void **state)
{
    _Atomic int stop = 2;

    assert_last_words(run(state, (setting){.stop = &stop}, "trap '' USR1; hello; exec sleep 60\n"),
                      PACE_FAILED, "killed on a second request to stop\n");
    /* Not even SIGTERM helps. */
    assert_last_words(run(state, (setting){.stop = &stop}, "trap '' USR1 TERM; hello; exec sleep 60\n"),
                      PACE_FAILED, "killed on a second request to stop\n");
}

/* A rank that has not said hello would die of the signal: it comes later. */
static void test_stop_waits_for_hello(void **state)
{
    _Atomic int stop = 1;

    assert_ok(run(state, (setting){.stop = &stop},
                  "trap 'echo early >\"$0.early\"; exit 1' USR1\n"
                  "i=0; while [ $i -lt 20 ]; do sleep 0.02; i=$((i+1)); done\n"
                  "trap 'done_well; exit 0' USR1\n"
                  "hello; while :; do sleep 0.02; done\n"));
    assert_false(pace__exists(in(state, "mpirun.early")));
}

/* Whose parent dies becomes our child then. qemu's user mode is the one Linux that does not know how. */
static void adopt_orphans(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return;
    assert_int_equal(errno, EINVAL);
    skip();
}

/* The launcher does not outlive whoever started it, even by SIGKILL. */
static void test_launcher_dies_with_us(void **state)
{
    const char *started = in(state, "mpirun.started");
    uint64_t start_ns = pace__now_ns();
    int code;

    adopt_orphans();
    pid_t parent = fork();

    assert_true(parent >= 0);
    if (parent == 0) {
        run(state, (setting){0},
            "hello; echo $$ >\"$0.started.tmp\"; mv \"$0.started.tmp\" \"$0.started\"; exec sleep 60\n");
        _exit(1);
    }
    while (!pace__exists(started) && pace__seconds_since(start_ns) < 20)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    char *text = get_text(started);
    pid_t launcher = (pid_t)atol(text), ended = 0;

    free(text);
    assert_true(launcher > 1);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, &code, 0), parent);
    while (ended == 0 && pace__seconds_since(start_ns) < 20)
        ended = waitpid(launcher, &code, WNOHANG);
    assert_int_equal(ended, launcher);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGTERM);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* Ranks do not outlive their launcher, either. */
static void test_ranks_die_with_launcher(void **state)
{
    int report[2], code;
    char byte;
    pid_t rank = 0, ended = 0;
    uint64_t start_ns;

    (void)state;
    adopt_orphans();
    assert_int_equal(pipe(report), 0);
    pid_t launcher = fork();

    assert_true(launcher >= 0);
    if (launcher == 0) {
        rank = fork();
        if (rank == 0) {
            pace_relay relay;

            setenv(PACE_RELAY_VARIABLE, "1", 1);
            pace_relay_init(&relay, STDERR_FILENO);
            rank = getpid();
            if (write(report[1], &rank, sizeof rank) != sizeof rank)
                _exit(1);
        }
        close(report[1]);
        for (;;)
            pause();
    }
    close(report[1]);
    assert_int_equal(read(report[0], &rank, sizeof rank), sizeof rank);
    assert_int_equal(kill(launcher, SIGKILL), 0);
    assert_int_equal(waitpid(launcher, &code, 0), launcher);
    start_ns = pace__now_ns();
    while (ended == 0 && pace__seconds_since(start_ns) < 20)
        ended = waitpid(rank, &code, WNOHANG);
    if (ended == 0)
        kill(rank, SIGTERM);
    assert_int_equal(ended, rank);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
    assert_int_equal(read(report[0], &byte, 1), 0);
    close(report[0]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void)
{
#define LAUNCH_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        LAUNCH_TEST(test_good_job),
        LAUNCH_TEST(test_launcher_fails_after_the_end),
        LAUNCH_TEST(test_success_without_the_chief),
        LAUNCH_TEST(test_missing_hello),
        LAUNCH_TEST(test_no_program),
        LAUNCH_TEST(test_no_launcher),
        LAUNCH_TEST(test_other_version),
        LAUNCH_TEST(test_stop),
        LAUNCH_TEST(test_stop_that_takes_long),
        LAUNCH_TEST(test_late_stop_kills),
        LAUNCH_TEST(test_second_stop_kills),
        LAUNCH_TEST(test_stop_waits_for_hello),
        LAUNCH_TEST(test_launcher_dies_with_us),
        cmocka_unit_test(test_ranks_die_with_launcher),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

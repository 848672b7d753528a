/* Ranks that fail or die under a launcher: the one error that is said, and jobs that go on without them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"

#include "launchers.h"

/* ---- failures ---- */

static void test_failing_rank(void **state)
{
    assert_last_words(run(state, (setting){0},
                          "hello; frame 1 E 'part-3.h5: bad label'; frame 1 X 65; echo noise\n"
                          "frame 0 I 'still going'\n"
                          "frame 0 E 'worker1 (rank 1, host nodeb), step 7: part-3.h5: bad label'\n"
                          "frame 2 E 'the chief is gone'; frame 2 X 1; exit 1\n"),
                      PACE_BAD_DATA, "worker1 (rank 1, host nodeb), step 7: part-3.h5: bad label\n");
    assert_said("I still going\nW ps0 (rank 2, host nodec): the chief is gone\nE worker1");
    assert_not_said("noise");
}

static void test_all_ranks_fail_alike(void **state)
{
    assert_last_words(
        run(state, (setting){0},
            "hello; for r in 2 0 1; do frame $r E 'data: no such directory'; frame $r X 66; done; exit 66\n"),
        PACE_NO_INPUT, "ps0 (rank 2, host nodec): data: no such directory\n");
    assert_not_said("W ");
}

/* Without an exit line, as after MPI_Abort, the launcher's code counts, if it is one of ours. */
static void test_aborted_job(void **state)
{
    assert_last_words(
        run(state, (setting){0},
            "hello; frame 0 E 'disk full'\n"
            "echo 'MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD' >&2; exit 74\n"),
        PACE_IO, "chief (rank 0, host nodea): disk full\n");
    assert_last_words(run(state, (setting){0}, "hello; frame 0 E 'diverged'; exit 17\n"), PACE_FAILED,
                      "chief (rank 0, host nodea): diverged\n");
}

/* One rank has failed, the others wait for it. */
static void test_others_are_ended(void **state)
{
    assert_last_words(run(state, (setting){.ending_s = 0.2},
                          "hello; frame 2 E 'port in use'; frame 2 X 74; exec sleep 60\n"),
                      PACE_IO, "ps0 (rank 2, host nodec): port in use\n");
}

static void test_silent_death(void **state)
{
    assert_last_words(run(state, (setting){0},
                          "hello; echo ------ >&2\n"
                          "echo 'mpirun noticed that process rank 1 with PID 0 on node nodeb exited on "
                          "signal 9 (Killed).' >&2\n"
                          "exit 137\n"),
                      PACE_LOST, "worker1 (rank 1, host nodeb) was killed by signal 9 (Killed)\n");
    assert_not_said("---");
    /* What others say of it comes before. */
    assert_last_words(run(state, (setting){0},
                          "hello; frame 0 E 'lost the connection'\n"
                          "echo 'mpirun noticed that process rank 2 with PID 0 on node nodec exited on "
                          "signal 11 (Segmentation fault).'\n"
                          "exit 139\n"),
                      PACE_LOST, "ps0 (rank 2, host nodec) was killed by signal 11");
    assert_said("W chief (rank 0, host nodea): lost the connection\n");
}

static void test_silent_death_mpich(void **state)
{
    static const char ending[] =
        "echo '=   PID 101 RUNNING AT nodea' >&2; echo '=   EXIT CODE: 9' >&2\n"
        "echo 'YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)' >&2\n"
        "exit 11\n";
    char body[1024];

    snprintf(body, sizeof body,
             "hello; echo '[mpiexec@nodea] Exit codes: [nodea] 9' >&2; echo '[nodeb] 139' >&2; echo "
             "'[nodec-11] 0' >&2\n%s",
             ending);
    assert_last_words(run(state, (setting){.engine = "HYDRA build details:"}, body), PACE_LOST,
                      "worker1 (rank 1, host nodeb) was killed by signal 11");
    snprintf(body, sizeof body, "hello; echo '[mpiexec@nodea] Exit codes: [nodea] 11,11,2816' >&2\n%s",
             ending);
    assert_last_words(
        run(state, (setting){.engine = "HYDRA build details:"}, body), PACE_LOST,
        "a process of the job was killed by signal 11 (Segmentation fault), the first of: chief, worker1\n");
    assert_last_words(run(state, (setting){.engine = "HYDRA build details:"},
                          "hello; echo '=   PID 103 RUNNING AT nodec'; echo '=   EXIT CODE: 9'; exit 255\n"),
                      PACE_LOST, "ps0 (rank 2, host nodec) was killed by signal 9");
}

static void test_nobody_says_why(void **state)
{
    assert_last_words(run(state, (setting){0}, "hello; echo 'strange things' >&2; exit 5\n"), PACE_LOST,
                      "the launcher ended with exit code 5, and no process said why");
    assert_said("W launcher: strange things\n");
    assert_last_words(run(state, (setting){0}, "hello; kill -KILL $$\n"), PACE_LOST,
                      "the launcher ended as if by signal 9");
    /* The last lines of many. */
    assert_last_words(run(state, (setting){0},
                          "hello; i=0; while [ $i -lt 80 ]; do i=$((i+1)); echo line $i.; done; exit 1\n"),
                      PACE_LOST, "the launcher ended with exit code 1");
    assert_not_said("line 30.");
    assert_said("line 31.");
    assert_said("line 80.");
}

/* Ranks know of a loss too, and the launcher may pass their exit code on. */
/* A job that has run is lost with a host, and may be started again; one that never has ends with that, and with no more
 * of the launcher's words than tell why. */
static void test_host_without_answer(void **state)
{
    const char *unknown = "echo 'ssh: Could not resolve hostname nodeb: Name or service not known' >&2\n"
                          "echo 'ORTE was unable to reliably start one or more daemons.' >&2; exit 1\n",
               *no_route = "echo 'ssh: connect to host nodeb port 22: No route to host' >&2; exit 1\n",
               *no_connection = "echo 'A process or daemon was unable to complete a TCP connection' >&2\n"
                                "echo '  Local host:    nodeb' >&2; exit 1\n";

    assert_last_words(run(state, (setting){0}, unknown), PACE_FAILED,
                      "host nodeb cannot be reached: Name or service not known; not started: chief on ");
    assert_not_said("W ");
    assert_last_words(run(state, (setting){.again = true}, no_route), PACE_LOST,
                      "host nodeb cannot be reached: No route to host; not started: ");
    assert_not_said("W ");
    assert_last_words(run(state, (setting){0}, no_connection), PACE_FAILED,
                      "host nodeb cannot be reached; not started: ");
    assert_said("W launcher: A process or daemon was unable");
}

static void test_lost_by_word(void **state)
{
    assert_last_words(run(state, (setting){0},
                          "hello; frame 0 E 'worker1 (rank 1, host nodeb): no sign of life'; frame 0 X 69\n"
                          "exit 1\n"),
                      PACE_LOST, "worker1 (rank 1, host nodeb): no sign of life\n");
    assert_last_words(run(state, (setting){0}, "hello; frame 0 E 'ps0 is gone'; exit 69\n"), PACE_LOST,
                      "chief (rank 0, host nodea): ps0 is gone\n");
    assert_last_words(run(state, (setting){0}, "hello; exit 65\n"), PACE_BAD_DATA,
                      "the launcher ended with exit code 65, and no process said why\n");
}

/* ---- deaths that the others survive ---- */

static void test_survived_death(void **state)
{
    assert_ok(run(state, (setting){.outlives = true},
                  "started; state 1 'ABORTED BY SIGNAL'; state 1 'WAITPID FIRED'\n"
                  "read order && echo \"$order\" >\"$0.order\"\n"
                  "frame 1 E 'late words'; frame 1 X 1\n" /* nobody waits for it any more */
                  "frame 0 I 'go on'; frame 0 X 0; frame 2 X 0; exit 0\n"));
    char *order = get_text(in(state, "mpirun.order")), *words = get_text(in(state, "mpirun.words"));

    assert_string_equal(order, "lost 1\n");
    assert_non_null(strstr(words, "--enable-recovery\n"));
    assert_non_null(strstr(words, "--mca\nstate_base_verbose\n1\n"));
    assert_string_equal(said,
                        "W worker1 (rank 1, host nodeb) was killed by a signal; the others go on without it\n"
                        "W worker1: late words\nI go on\n");
    free(words);
    free(order);
}

/* Only Open MPI can do it. */
static void test_no_survivors(void **state)
{
    assert_last_words(run(state, (setting){.outlives = true, .engine = "HYDRA"},
                          "started; state 1 'ABORTED BY SIGNAL'; read order && done_well; exit 9\n"),
                      PACE_LOST, "the launcher ended with exit code 9, and no process said why\n");
    assert_last_words(run(state, (setting){0}, "started; read order && done_well; exit 9\n"), PACE_LOST,
                      "the launcher ended with exit code 9, and no process said why\n");
}

static void test_deaths_that_end(void **state)
{
    setting outlives = {.outlives = true, .ending_s = 60};
    uint64_t start_ns = pace__now_ns();

    /* Too early; and not a worker. */
    assert_last_words(run(state, outlives, "hello; state 1 'ABORTED BY SIGNAL'; exec sleep 60\n"), PACE_LOST,
                      "worker1 (rank 1, host nodeb) was killed by a signal\n");
    assert_last_words(
        run(state, outlives,
            "started; state 1 'ABORTED BY SIGNAL'; state 2 'ABORTED BY SIGNAL'; exec sleep 60\n"),
        PACE_LOST, "ps0 (rank 2, host nodec) was killed by a signal\n");
    assert_not_said("go on");
    /* The chief notices before us, in its own way. */
    for (int i = 1; i <= 2; i++) {
        char body[256];

        snprintf(
            body, sizeof body,
            "started; state %d 'ABORTED BY SIGNAL'; frame 0 E 'no answer'; frame 0 X 69; exec sleep 60\n", i);
        assert_last_words(run(state, outlives, body), PACE_LOST,
                          i == 1 ? "worker1 (rank 1, host nodeb) was killed by a signal\n"
                                 : "ps0 (rank 2, host nodec) was killed by a signal\n");
        assert_said("W chief (rank 0, host nodea): no answer\n");
    }
    assert_last_words(run(state, outlives, "started; state 0 'ABORTED BY SIGNAL'; exec sleep 60\n"),
                      PACE_LOST, "chief (rank 0, host nodea) was killed by a signal\n");
    assert_last_words(run(state, outlives, "started; state 1 'CALLED ABORT'; exec sleep 60\n"), PACE_LOST,
                      "worker1 (rank 1, host nodeb) ended without a word\n");
    /* A launcher that ends at once does not hide it. */
    assert_last_words(run(state, outlives, "started; state 2 'ABORTED BY SIGNAL'; exit 0\n"), PACE_LOST,
                      "ps0 (rank 2, host nodec) was killed by a signal\n");
    assert_true(pace__seconds_since(start_ns) < 30);
}

/* Leaving without MPI_Finalize is a death only without a word, which may come later than the news. */
static void test_leaving_is_no_death(void **state)
{
    assert_ok(run(state, (setting){.outlives = true},
                  "started; state 1 'TERMINATED WITHOUT SYNC'; sleep 0.2; frame 1 X 0\n"
                  "sleep 1.2; frame 0 X 0; frame 2 X 0; state 2 'TERMINATED WITHOUT SYNC'; exit 0\n"));
    assert_string_equal(said, "");
    assert_ok(run(state, (setting){.outlives = true},
                  "started; state 1 'TERMINATED WITHOUT SYNC'; read order; frame 0 X 0; frame 2 X 0\n"));
    assert_string_equal(said,
                        "W worker1 (rank 1, host nodeb) ended without a word; the others go on without it\n");
}

/* An error ends the job, as it does otherwise; but nobody else will end it. */
static void test_errors_are_no_deaths(void **state)
{
    uint64_t start_ns = pace__now_ns();

    assert_last_words(run(state, (setting){.outlives = true, .ending_s = 60},
                          "started; frame 1 E 'disk full'; frame 1 X 74\n"
                          "state 1 'EXITED WITH NON-ZERO STATUS'\n"
                          "frame 0 E 'worker1 (rank 1, host nodeb), step 7: disk full'; frame 0 X 74\n"
                          "while :; do frame 2 I waiting; sleep 0.05; done\n"),
                      PACE_IO, "worker1 (rank 1, host nodeb), step 7: disk full\n");
    /* The chief does not notice, and goes on talking. The status is only in mpirun's words. */
    assert_last_words(run(state, (setting){.outlives = true, .ending_s = 0.3},
                          "started; frame 1 E 'bad label'\n"
                          "echo 'MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD' >&2\n"
                          "echo 'with errorcode 65.' >&2; state 1 'CALLED ABORT'\n"
                          "while :; do frame 0 I going; sleep 0.05; done\n"),
                      PACE_BAD_DATA, "worker1 (rank 1, host nodeb): bad label\n");
    assert_true(pace__seconds_since(start_ns) < 20);
}

static void test_launcher_stays(void **state)
{
    uint64_t start_ns = pace__now_ns();

    assert_ok(run(state, (setting){.outlives = true},
                  "started; state 1 'ABORTED BY SIGNAL'; read order; frame 2 X 0; frame 0 X 0\n"
                  "exec sleep 60\n"));
    assert_not_said("exit code");
    assert_true(pace__seconds_since(start_ns) < 20);
}

/* It ends the ranks, as it says, and then waits for something for ever. */
static void test_launcher_stays_while_it_ends(void **state)
{
    assert_failed(run(state, (setting){.outlives = true, .ending_s = 0.3},
                      "hello; state 0 'KILLED BY INTERNAL COMMAND'; exec sleep 1000\n"),
                  PACE_LOST, "");
}

/* A rank is killed while MPI begins, and mpirun says so, and then waits for something for ever; it may not even end when it
 * is told to. */
static void test_launcher_stays_after_a_death(void **state)
{
    uint64_t start_ns = pace__now_ns();

    assert_last_words(
        run(state, (setting){.ending_s = 0.3},
            "hello; echo 'mpirun noticed that process rank 1 with PID 0 on node nodeb exited on "
            "signal 9 (Killed).' >&2\n"
            "trap '' TERM; while :; do sleep 1; done\n"),
        PACE_LOST, "worker1 (rank 1, host nodeb) was killed by signal 9 (Killed)\n");
    assert_true(pace__seconds_since(start_ns) < 20);
}

/* What MPI refuses when it begins, it refuses again; but who was killed may live the next time. */
static void test_jobs_that_never_began(void **state)
{
    setting first = {.says_start = true}, again = {.says_start = true, .again = true},
            outlives = {.says_start = true, .outlives = true};

    assert_last_words(run(state, first, "hello; echo 'no such component' >&2; exit 1\n"), PACE_FAILED,
                      "the launcher ended with exit code 1 before training began, and no process said why");
    assert_said("W launcher: no such component\n");
    assert_last_words(run(state, again, "hello; exit 1\n"), PACE_LOST,
                      "the launcher ended with exit code 1,");
    assert_last_words(run(state, first, "started; exit 1\n"), PACE_LOST,
                      "the launcher ended with exit code 1,");
    assert_last_words(run(state, first, "hello; kill -KILL $$\n"), PACE_LOST,
                      "the launcher ended as if by signal 9");
    assert_last_words(run(state, outlives, "hello; state 1 'CALLED ABORT'; exec sleep 60\n"), PACE_FAILED,
                      "worker1 (rank 1, host nodeb) ended without a word before training began\n");
    assert_last_words(run(state, outlives, "hello; state 1 'ABORTED BY SIGNAL'; exec sleep 60\n"), PACE_LOST,
                      "worker1 (rank 1, host nodeb) was killed by a signal before training began\n");
    assert_last_words(
        run(state, outlives, "hello; state 1 'ABORTED BY SIGNAL'; state 0 'CALLED ABORT'; exit 1\n"),
        PACE_LOST, "worker1 (rank 1, host nodeb) was killed by a signal before training began\n");
}

static void test_lost_host(void **state)
{
    setting outlives = {.outlives = true};

    assert_ok(run(state, outlives,
                  "started; state 1 RUNNING 2; state 1 RUNNING 0; state 2 RUNNING 1; no_host 2\n"
                  "read order; frame 0 I \"$order\"; frame 0 X 0; frame 2 X 0; no_host 1\n"));
    assert_string_equal(said,
                        "W worker1 (rank 1, host nodeb) was lost with its host; the others go on without it\n"
                        "I lost 1\n");
    assert_last_words(run(state, outlives, "started; state 2 RUNNING 2; no_host 2; exec sleep 60\n"),
                      PACE_LOST, "ps0 (rank 2, host nodec) was lost with its host\n");
    assert_last_words(run(state, outlives, "started; no_host 2; exec sleep 60\n"), PACE_LOST,
                      "the launcher has lost the connection to one of the hosts\n");
}

static void test_other_ends(void **state)
{
    _Atomic int stop = 1;

    /* Not started, and mpirun says nothing else about it. */
    put_text(in(state, "hosts"), "nodea\nnodeb\nnodec\n");
    assert_last_words(run(state, (setting){.outlives = true, .hosts = in(state, "hosts")},
                          "state 1 'FAILED TO LAUNCH'; exec sleep 60\n"),
                      PACE_FAILED, "host nodeb cannot run /opt/paceline: ");
    /* Somebody has ended mpirun, and it has ended the ranks. */
    assert_last_words(run(state, (setting){.outlives = true},
                          "started; state 1 'KILLED BY INTERNAL COMMAND'; state 1 'ABORTED BY SIGNAL'\n"
                          "state 0 'ABORTED BY SIGNAL'; exit 1\n"),
                      PACE_LOST, "the launcher ended with exit code 1, and no process said why\n");
    /* Stopping works without those who are gone. */
    assert_last_words(
        run(state, (setting){.outlives = true, .stop = &stop},
            "trap 'frame 0 E \"interrupted at step 5\"; frame 0 X 75; sleep 0.7; frame 2 X 75; exit 0' USR1\n"
            "started; state 1 'ABORTED BY SIGNAL'; while :; do sleep 0.02; done\n"),
        PACE_INTERRUPTED, "chief (rank 0, host nodea): interrupted at step 5\n");
}

static void test_event_lines(void **state)
{
    static const struct {
        const char *line;
        bool event;
        pace__event_kind kind;
        int number, speaker;
    } cases[] = {
        {"[a.b-c:00083] [[46,0],0] ACTIVATE PROC [[46,1],12] STATE ABORTED BY SIGNAL AT ../x.c:1", true,
         PACE__EVENT_KILLED, 12, 0},
        {"half a line[a:00083] [[46,0],3] ACTIVATE PROC [[46,1],0] STATE RUNNING AT ../x.c:1", true,
         PACE__EVENT_RUNNING, 0, 3},
        {"[a:00083] [[46,0],0] ACTIVATE PROC [[46,1],2] STATE NORMALLY TERMINATED AT ../x.c:1", true,
         PACE__EVENT_NONE, 2, 0},
        {"[a:00083] [[46,0],0] ACTIVATE PROC [[46,0],2] STATE COMMUNICATION FAILURE AT ../x.c:1", true,
         PACE__EVENT_NO_DAEMON, 2, 0},
        /* Daemons lose each other and the launcher in the end. */
        {"[a:00083] [[46,0],1] ACTIVATE PROC [[46,0],2] STATE COMMUNICATION FAILURE AT ../x.c:1", true,
         PACE__EVENT_NONE, 2, 1},
        {"[a:00083] [[46,0],0] ACTIVATE JOB [46,1] STATE RUNNING AT ../x.c:1", true, PACE__EVENT_NONE, 0, 0},
        {"[a:00083] [[46,0],0] ACTIVATE JOB NULL STATE DAEMONS TERMINATED AT ../x.c:1", true,
         PACE__EVENT_NONE, 0, 0},
        {"[a:00083] PMIX ERROR: BAD-PARAM in file ../pmix_event_notification.c at line 1033", true,
         PACE__EVENT_NONE, 0, 0},
        {"[a:00083] PMIX ERROR: UNREACHABLE in file ../x.c at line 3", false, PACE__EVENT_NONE, 0, 0},
        {"[a:00083] [[46,0],0] ACTIVATE", false, PACE__EVENT_NONE, 0, 0},
        {"they said [x] ACTIVATE PROC [[46,1],2] STATE ABORTED BY SIGNAL", false, PACE__EVENT_NONE, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__event event;

        if (pace__event_line(cases[i].line, &event) != cases[i].event || event.kind != cases[i].kind ||
            (cases[i].event && (event.number != cases[i].number || event.speaker != cases[i].speaker)))
            fail_msg("wrong about \"%s\"", cases[i].line);
    }
}

int main(void)
{
#define LAUNCH_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        LAUNCH_TEST(test_failing_rank),
        LAUNCH_TEST(test_all_ranks_fail_alike),
        LAUNCH_TEST(test_aborted_job),
        LAUNCH_TEST(test_others_are_ended),
        LAUNCH_TEST(test_silent_death),
        LAUNCH_TEST(test_silent_death_mpich),
        LAUNCH_TEST(test_nobody_says_why),
        LAUNCH_TEST(test_host_without_answer),
        LAUNCH_TEST(test_lost_by_word),
        LAUNCH_TEST(test_survived_death),
        LAUNCH_TEST(test_no_survivors),
        LAUNCH_TEST(test_deaths_that_end),
        LAUNCH_TEST(test_leaving_is_no_death),
        LAUNCH_TEST(test_errors_are_no_deaths),
        LAUNCH_TEST(test_launcher_stays),
        LAUNCH_TEST(test_lost_host),
        LAUNCH_TEST(test_launcher_stays_while_it_ends),
        LAUNCH_TEST(test_launcher_stays_after_a_death),
        LAUNCH_TEST(test_jobs_that_never_began),
        LAUNCH_TEST(test_other_ends),
        cmocka_unit_test(test_event_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

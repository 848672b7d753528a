/* A job under a launcher, where the launcher is a shell script that says what ranks would say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "launch/internal.h"
#include "options/internal.h"
#include "support.h"

#include <paceline/kernels.h>
#include <paceline/relay.h>
#include <paceline/version.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Chief, worker1, ps0. */
static const pace__cluster three = {.workers = 2, .ps = 1};
static char *const command[] = {(char[]){"/opt/paceline"}, (char[]){"train"}, (char[]){"--run=a b"}, NULL};

/* What every script starts with: who it is, frames, and the ranks' first words. */
static const char *const preamble =
    "[ \"$1\" = --version ] && { echo \"$engine\"; exit 0; }\n"
    "printf '%s\\n' \"$@\" >\"$0.words\"; env >\"$0.env\"\n"
    "frame() { printf '@paceline %05d %s. %-236s\\n' \"$1\" \"$2\" \"$3\" >&2; }\n"
    "hello() { frame 0 H \"nodea 101 - $version\"; frame 1 H \"nodeb 102 - $version\"; frame 2 H \"nodec 103 "
    "- $version\"; }\n"
    "done_well() { frame 0 X 0; frame 1 X 0; frame 2 X 0; }\n"
    "started() { hello; frame 0 R '{\"kind\":\"start\",\"fields\":[]}'; }\n"
    "state() { echo \"[nodea:00083] [[46,0],${3:-0}] ACTIVATE PROC [[46,1],$1] STATE $2 AT ../a.c:1\" >&2; "
    "}\n"
    "no_host() { echo \"[nodea:00083] [[46,0],0] ACTIVATE PROC [[46,0],$1] STATE COMMUNICATION FAILURE AT "
    "../a.c:1\" >&2; }\n";

static const char *put_script(void **state, const char *engine, const char *body)
{
    const char *path = in(state, "mpirun");
    char *text =
        pace__format("#!/bin/sh\nengine='%s'\nversion='%s'\n%s%s", engine, pace_version(), preamble, body);

    assert_non_null(text);
    put_text(path, text);
    assert_int_equal(chmod(path, 0755), 0);
    free(text);
    return path;
}

typedef struct setting {
    const char *engine; /* NULL: Open MPI */
    const char *hosts;
    double contact_s; /* 0: 30 */
    double ending_s;
    bool outlives;
    const _Atomic int *stop;
    pace_registry *registry;
} setting;

static pace_status run(void **state, setting with, const char *body)
{
    pace__launch_plan plan = {
        .cluster = three,
        .hosts = with.hosts,
        .words = command,
        .launcher = put_script(state, with.engine ? with.engine : "mpirun (Open MPI) 4.1.4", body),
        .first_contact_s = with.contact_s > 0 ? with.contact_s : 30,
        .ending_s = with.ending_s,
        .outlives_workers = with.outlives,
        .stop = with.stop};

    said_clear();
    return pace__launch(&plan, &said_log, with.registry);
}

/* The job failed with one error, which is the last line, and begins like this. */
static void assert_last_words(pace_status status, pace_status expected, const char *words)
{
    if (status != expected || errors_said() != 1)
        fail_msg("status %d, not %d, with %d errors; the messages are:\n%s", status, expected, errors_said(),
                 said);
    const char *last = said + strlen(said) - 1;

    while (last > said && last[-1] != '\n')
        last--;
    if (last[0] != 'E' || strncmp(last + 2, words, strlen(words)) != 0)
        fail_msg("the last words do not begin with \"%s\"; the messages are:\n%s", words, said);
}

static void assert_not_said(const char *part)
{
    if (strstr(said, part))
        fail_msg("something says \"%s\"; the messages are:\n%s", part, said);
}

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

    assert_failed(pace__launch(&plan, &said_log, NULL), PACE_FAILED, "none: No such file or directory");
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

/* The launcher does not outlive whoever started it, even by SIGKILL. */
static void test_launcher_dies_with_us(void **state)
{
    const char *started = in(state, "mpirun.started");
    uint64_t start_ns = pace__now_ns();
    int code;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* so that it becomes our child then */
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
    assert_int_equal(pipe(report), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
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

/* ---- words and environment ---- */

static void assert_words(char **words, const char *wanted)
{
    char text[4096] = "";

    assert_non_null(words);
    for (char **word = words; *word; word++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", word == words ? "" : "|", *word);
    assert_string_equal(text, wanted);
    pace_options_free_words(words);
}

static void test_launcher_words(void **state)
{
    static const pace__host hosts[] = {{"a", 9, 0}, {"b", 9, 0}};
    static const int host_of[] = {1, 1, 0, 1};
    pace__launch_plan plan = {.cluster = {.workers = 2, .ps = 1, .evaluator = true}, .words = command};

    (void)state;
    assert_words(pace__launcher_words(PACE__OPEN_MPI, "m", &plan, "/w d", NULL, NULL),
                 "m|--bind-to|none|--mca|odls_base_num_threads|0|-x|PACELINE_RELAY|-wdir|/w "
                 "d|--host|localhost:4|-n|4|/opt/paceline|train|--run=a b");
    assert_words(pace__launcher_words(PACE__OPEN_MPI, "m", &plan, "/w", hosts, host_of),
                 "m|--bind-to|none|--mca|odls_base_num_threads|0"
                 "|-x|PACELINE_RELAY|-wdir|/w|--host|b:2|-n|2|/opt/paceline|train|--run=a b"
                 "|:|-x|PACELINE_RELAY|-wdir|/w|--host|a:1|-n|1|/opt/paceline|train|--run=a b"
                 "|:|-x|PACELINE_RELAY|-wdir|/w|--host|b:1|-n|1|/opt/paceline|train|--run=a b");
    assert_words(pace__launcher_words(PACE__MPICH, "m", &plan, "/w", hosts, host_of),
                 "m|-print-all-exitcodes|-genv|PACELINE_RELAY|1|-wdir|/w|-hosts|b:2,a:1,b:1|-n|4|/opt/"
                 "paceline|train|--run=a b");
}

static void test_launcher_environment(void **state)
{
    char *const variables[] = {(char[]){"HOME=/root"}, (char[]){"PACELINE_BATCH=7"},
                               (char[]){"OMPI_MCA_rmaps_base_oversubscribe=0"}, (char[]){"PACELINE_RELAY=0"},
                               NULL};

    (void)state;
    assert_words(pace__launcher_environment(variables, 0, 4, 4, false),
                 "HOME=/root|OMPI_MCA_rmaps_base_oversubscribe=0|PACELINE_RELAY=1|"
                 "OMPI_MCA_orte_keep_fqdn_hostnames=1");
    assert_words(pace__launcher_environment(variables + 3, 2, 5, 4, true),
                 "PACELINE_RELAY=3|OMPI_ALLOW_RUN_AS_ROOT=1|OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1|"
                 "OMPI_MCA_rmaps_base_oversubscribe=1|OMPI_MCA_orte_keep_fqdn_hostnames=1|"
                 "OMPI_MCA_mpi_yield_when_idle=1");
}

/* What arrives at the launcher is what was planned. */
static void test_words_arrive(void **state)
{
    setenv("PACELINE_BATCH", "7", 1);
    put_text(in(state, "hosts"), "nodea roles=ps\nnodeb slots=2 roles=worker\n");
    assert_ok(run(state, (setting){.hosts = in(state, "hosts")}, "hello; done_well\n"));
    unsetenv("PACELINE_BATCH");
    char *words = get_text(in(state, "mpirun.words")), *environment = get_text(in(state, "mpirun.env"));

    assert_non_null(strstr(words, "--host\nnodeb:2\n-n\n2\n/opt/paceline\ntrain\n--run=a b\n:\n"));
    assert_non_null(strstr(words, "--host\nnodea:1\n-n\n1\n/opt/paceline\n"));
    assert_non_null(strstr(environment, "PACELINE_RELAY=1\n"));
    assert_null(strstr(environment, "PACELINE_BATCH"));
    free(environment);
    free(words);
}

typedef struct small_config {
    int64_t batch;
} small_config;

static const pace_option table[] = {
    {"batch", 0, PACE_OPT_INT, offsetof(small_config, batch), "512", "N", "rows"},
    {0},
};

/* A verb of two words, two tables with a struct each, arguments that look like options. */
static void test_launch_words(void **state)
{
    typedef struct two_configs {
        small_config first;
        int64_t rest;
    } two_configs;
    static const pace_option rest[] = {{"rest", 0, PACE_OPT_INT, 0, "1", "N", "of it"}, {0}};
    const pace_option_table tables[] = {{rest, offsetof(two_configs, rest)}, {table, 0}, {0}};
    static const char *const wanted[] = {"prep", "clicks", "--rest=2", "--batch=32", "--", "-a", "b", NULL};
    const char *arguments[] = {"-a", "b"};
    char **words;

    pace_option_part parts[PACE_OPTIONS_TABLES_MAX];

    (void)state;
    if (pace_kernels_asked() != PACE_KERNELS_AUTO)
        skip(); /* they would be a word, too: test_own_program */
    pace__options_parts(tables, &(two_configs){{32}, 2}, parts);
    assert_int_equal(pace__launch_words("prep clicks", parts, &(pace_texts){arguments, 2}, NULL, &words),
                     PACE_OK);
    for (size_t i = 0; wanted[i]; i++)
        assert_string_equal(words[i + 1], wanted[i]);
    assert_null(words[8]);
    pace_options_free_words(words);
}

static void test_own_program(void **state)
{
    char own[4096], **words;
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    (void)state;
    assert_true(length > 0);
    own[length] = '\0';
    assert_int_equal(pace__launch_words("train", PACE_PARTS(table, &(small_config){32}), NULL, NULL, &words),
                     PACE_OK);
    assert_string_equal(words[0], own);
    assert_string_equal(words[1], "train");
    assert_string_equal(words[2], "--batch=32");
    /* Ranks compute with the kernels that this process was asked for, if it was. */
    bool asked = pace_kernels_asked() != PACE_KERNELS_AUTO;
    char *kernels = pace__format("--kernels=%s", pace_kernels_name(pace_kernels_asked()));

    if (asked)
        assert_string_equal(words[3], kernels);
    assert_null(words[3 + asked]);
    free(kernels);
    pace_options_free_words(words);
}

static void test_engines(void **state)
{
    (void)state;
    assert_int_equal(pace__engine_of("/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4\n"), PACE__OPEN_MPI);
    assert_int_equal(pace__engine_of("/usr/bin/mpirun", "HYDRA build details:\n    Version: 4.0.2\n"),
                     PACE__MPICH);
    assert_int_equal(pace__engine_of("/usr/bin/mpiexec.hydra", ""), PACE__MPICH);
    assert_int_equal(pace__engine_of("/opt/mpich/bin/mpirun", ""), PACE__OPEN_MPI);
}

int main(void)
{
#define LAUNCH_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        LAUNCH_TEST(test_good_job),
        LAUNCH_TEST(test_launcher_fails_after_the_end),
        LAUNCH_TEST(test_success_without_the_chief),
        LAUNCH_TEST(test_failing_rank),
        LAUNCH_TEST(test_all_ranks_fail_alike),
        LAUNCH_TEST(test_aborted_job),
        LAUNCH_TEST(test_others_are_ended),
        LAUNCH_TEST(test_silent_death),
        LAUNCH_TEST(test_silent_death_mpich),
        LAUNCH_TEST(test_nobody_says_why),
        LAUNCH_TEST(test_lost_by_word),
        LAUNCH_TEST(test_survived_death),
        LAUNCH_TEST(test_no_survivors),
        LAUNCH_TEST(test_deaths_that_end),
        LAUNCH_TEST(test_leaving_is_no_death),
        LAUNCH_TEST(test_errors_are_no_deaths),
        LAUNCH_TEST(test_launcher_stays),
        LAUNCH_TEST(test_lost_host),
        LAUNCH_TEST(test_other_ends),
        cmocka_unit_test(test_event_lines),
        LAUNCH_TEST(test_missing_hello),
        LAUNCH_TEST(test_no_program),
        LAUNCH_TEST(test_no_launcher),
        LAUNCH_TEST(test_other_version),
        LAUNCH_TEST(test_stop),
        LAUNCH_TEST(test_second_stop_kills),
        LAUNCH_TEST(test_stop_waits_for_hello),
        LAUNCH_TEST(test_launcher_dies_with_us),
        cmocka_unit_test(test_ranks_die_with_launcher),
        LAUNCH_TEST(test_words_arrive),
        cmocka_unit_test(test_launcher_words),
        cmocka_unit_test(test_launcher_environment),
        cmocka_unit_test(test_own_program),
        cmocka_unit_test(test_launch_words),
        cmocka_unit_test(test_engines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

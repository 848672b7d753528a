/* Event files for TensorBoard: records and fields, restarts, disks that are full, things in their place, long runs. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "events/directory.h"
#include "events/events.h"
#include "files/file.h"

#include "event_reader.h"
#include "support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB          ((off_t)1 << 20)
#define FILE_1       "events.out.tfevents.0000000001.paceline"
#define FILE_2       "events.out.tfevents.0000000002.paceline"
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char names[][PACE__EVENT_ROLE_TEXT] = {"chief", "worker1", "ps0"};

/* --- records --- */

static void emit(pace__events *events, const char *kind, double seconds, const pace_field *fields,
                 size_t count)
{
    const pace_sink *sink = pace__events_sink(events);

    sink->record(sink->user, &(pace_record){kind, seconds, fields, count});
}

static void put_start(pace__events *events, double seconds, int64_t step, int64_t steps)
{
    pace_field fields[] = {PACE_INT("step", step), PACE_INT("steps", steps)};

    emit(events, "start", seconds, fields, COUNT(fields));
}

static void put_step(pace__events *events, double seconds, int64_t step, double loss)
{
    pace_field fields[] = {PACE_INT("step", step), PACE_REAL("epoch", 0.5), PACE_REAL("loss", loss),
                           PACE_REAL("lr", 0.125), PACE_REAL("rows_per_s", 4096)};

    emit(events, "step", seconds, fields, COUNT(fields));
}

static void put_eval(pace__events *events, double seconds, int64_t step, double logloss, double auc)
{
    pace_field fields[] = {PACE_INT("step", step), PACE_REAL("epoch", 0.5),       PACE_TEXT("set", "test"),
                           PACE_INT("n", 100),     PACE_REAL("logloss", logloss), PACE_REAL("auc", auc)};

    emit(events, "eval", seconds, fields, COUNT(fields));
}

/* Of a rank that has done this for so many seconds: 200 rows a second, half a core, half of the time waiting. */
static void put_sample(pace__events *events, double seconds, const char *role, double trained_s)
{
    bool server = strncmp(role, "ps", 2) == 0;
    pace_field fields[] = {PACE_TEXT("role", role),
                           PACE_REAL("seconds", trained_s),
                           PACE_INT("rows", server ? 0 : 200 * trained_s),
                           PACE_REAL("data_s", 0.125 * trained_s),
                           PACE_REAL("compute_s", 0.25 * trained_s),
                           PACE_REAL("communicate_s", 0.125 * trained_s),
                           PACE_REAL("wait_s", 0.5 * trained_s),
                           PACE_TEXT("waits_for", "ps0"),
                           PACE_REAL("user_s", 7 + 0.375 * trained_s),
                           PACE_REAL("system_s", 3 + 0.125 * trained_s),
                           PACE_INT("rss_bytes", 4096 * 1024),
                           PACE_INT("net_sent_bytes", 1000000 + 1024 * trained_s),
                           PACE_INT("read_bytes", 500 + 64 * trained_s),
                           PACE_INT("requests", 30 * trained_s),
                           PACE_INT("looks", 10 * trained_s),
                           PACE_INT("pushes", 20 * trained_s),
                           PACE_INT("stale_pushes", 50 * trained_s)};

    emit(events, "sample", seconds, fields, server ? COUNT(fields) : COUNT(fields) - 4);
}

static pace__events_plan plan_of(void **state, size_t roles)
{
    return (pace__events_plan){.directory = in(state, "events"), .roles = roles, .role = names};
}

static pace__events *open_events(const pace__events_plan *plan)
{
    pace__events *events = pace__events_open(plan, &said_log);

    assert_non_null(events);
    return events;
}

static off_t bytes_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* --- what is written --- */

static void scalars_are_read_back(void **state)
{
    pace__events_plan plan = plan_of(state, 3);
    double before_s = (double)time(NULL);
    pace__events *events = open_events(&plan);
    read_file chief, server;

    put_start(events, 5, 0, 1000);
    put_step(events, 6.5, 100, 0.75);
    put_sample(events, 6.75, "ps0", 1);
    put_sample(events, 7.75, "ps0", 2);
    put_sample(events, 7.75, "nobody", 2);
    put_eval(events, 8, 90, 0.5, 0.625);
    pace__events_close(events, PACE__EVENTS_SUCCESS);
    assert_string_equal(said, "");
    read_events(in(state, "events/chief/" FILE_1), &chief);
    assert_string_equal(chief.event[0].version, "brain.Event:2");
    assert_true(scalar_of(&chief, "train/loss", 100) == 0.75 && scalar_of(&chief, "train/lr", 100) == 0.125);
    assert_true(scalar_of(&chief, "train/rows_per_s", 100) == 4096);
    assert_true(scalar_of(&chief, "test/logloss", 90) == 0.5 && scalar_of(&chief, "test/auc", 90) == 0.625);
    assert_null(find_value(&chief, "test/epoch", 90));
    /* Time goes by the registry's clock. */
    assert_true(chief.event[1].wall_s >= before_s + 1 && chief.event[1].wall_s < before_s + 60);
    assert_float_equal((chief.event[2].wall_s - chief.event[1].wall_s), 1.5, 1e-6);
    read_events(in(state, "events/ps0/" FILE_1), &server);
    assert_int_equal(server.count, 3);
    assert_true(scalar_of(&server, "system/cpu", 100) == 0.5);
    assert_true(scalar_of(&server, "time/wait", 100) == 0.5 && scalar_of(&server, "time/data", 100) == 0.125);
    assert_true(scalar_of(&server, "system/net_sent_bytes_per_s", 100) == 1024);
    assert_true(scalar_of(&server, "system/disk_read_bytes_per_s", 100) == 64);
    assert_true(scalar_of(&server, "system/memory_bytes", 100) == 4194304);
    assert_true(scalar_of(&server, "server/queue", 100) == 3);
    assert_true(scalar_of(&server, "server/staleness", 100) == 2.5);
    assert_null(find_value(&server, "throughput/rows_per_s", 100));
    /* What the kernel counts begins before training: the first sample is there to be compared with. */
    assert_int_equal(count_tag(&server, "system/cpu"), 1);
    assert_int_equal(count_tag(&server, "time/wait"), 2);
    free_events(&chief);
    free_events(&server);
}

static void numbers_that_are_none(void **state)
{
    pace__events_plan plan = plan_of(state, 1);
    pace__events *events = open_events(&plan);
    read_file chief;

    put_start(events, 0, 0, 10);
    put_step(events, 1, 1, NAN);
    put_step(events, 2, 2, INFINITY);
    put_eval(events, 3, 2, 0.5, NAN);
    pace__events_close(events, PACE__EVENTS_FAILURE);
    read_events(in(state, "events/chief/" FILE_1), &chief);
    assert_true(isnan(scalar_of(&chief, "train/loss", 1)) && isinf(scalar_of(&chief, "train/loss", 2)));
    assert_null(find_value(&chief, "test/auc", 2));
    assert_true(scalar_of(&chief, "test/logloss", 2) == 0.5);
    free_events(&chief);
}

/* Rows tell where training stands between two records of steps; never backwards. */
static void samples_stand_where_training_does(void **state)
{
    pace__events_plan plan = plan_of(state, 2);
    pace__events *events = open_events(&plan);
    pace_field scoring[] = {PACE_TEXT("phase", "scoring"), PACE_INT("done", 9000), PACE_INT("total", 10000)};
    read_file worker;

    put_start(events, 0, 0, 1000);
    for (int64_t second = 1; second <= 4; second++) {
        pace_field rows[] = {PACE_TEXT("phase", "train"), PACE_INT("done", 600 * second),
                             PACE_INT("total", 10000)};

        emit(events, "progress", (double)second, rows, COUNT(rows));
        emit(events, "progress", (double)second, scoring, COUNT(scoring));
        put_sample(events, (double)second, "worker1", (double)second);
        put_step(events, (double)second, 60 * second - 5, 0.5);
    }
    pace__events_close(events, PACE__EVENTS_OPEN);
    read_events(in(state, "events/worker1/" FILE_1), &worker);
    for (int64_t second = 1; second <= 4; second++)
        assert_true(scalar_of(&worker, "throughput/rows_per_s", 60 * second) == 200);
    free_events(&worker);
}

static void options_and_configuration(void **state)
{
    static const pace__hparam hparams[] = {{"lr", PACE__HPARAM_NUMBER, .number = 0.25},
                                           {"exact", PACE__HPARAM_FLAG, .number = 1},
                                           {"mode", PACE__HPARAM_TEXT, .text = "ps-\xff"}};
    pace__events_plan plan = plan_of(state, 2);
    read_file chief, end, worker;

    plan.config = "# a comment\nlr: 0.25\n\nmode: ps-sync\n# checksum: 12\n";
    plan.hparams = hparams;
    plan.hparams_count = 3;
    pace__events_close(open_events(&plan), PACE__EVENTS_FAILURE);
    read_events(in(state, "events/chief/" FILE_1), &chief);
    read_events(in(state, "events/chief/" FILE_1 "-end"), &end);
    read_events(in(state, "events/worker1/" FILE_1), &worker);
    assert_int_equal(worker.count, 1); /* no steps at all */
    const read_value *text = find_value(&chief, "config.yaml", 0),
                     *session = find_value(&chief, "_hparams_/session_start_info", 0),
                     *experiment = find_value(&chief, "_hparams_/experiment", 0),
                     *ended = find_value(&end, "_hparams_/session_end_info", 0);

    assert_true(text && session && experiment && ended);
    assert_true(stretch_is(text->plugin, "text"));
    assert_true(stretch_is(text->text, "    lr: 0.25\n    mode: ps-sync\n"));
    assert_true(stretch_is(session->plugin, "hparams") && stretch_is(experiment->plugin, "hparams"));
    stretch options = field_of(session->content, 3).bytes;
    read_field entry = {0};

    for (int i = 0; i < 3; i++) {
        assert_true(next_field(&options, &entry));
        stretch value = field_of(entry.bytes, 2).bytes;
        read_field number = i == 0 ? field_of(value, 2) : (read_field){0};

        assert_true(stretch_is(field_of(entry.bytes, 1).bytes, hparams[i].name));
        assert_true(i != 0 || double_of(&number) == 0.25);
        assert_true(i != 1 || field_of(value, 4).integer == 1);
        assert_true(i != 2 || stretch_is(field_of(value, 3).bytes, "ps-?")); /* readers want UTF-8 */
    }
    assert_int_equal(field_of(field_of(ended->content, 4).bytes, 1).integer, 2);
    read_field info = field_of(field_of(experiment->content, 2).bytes, 5);

    assert_true(stretch_is(field_of(field_of(info.bytes, 1).bytes, 2).bytes, "test/logloss"));
    free_events(&chief);
    free_events(&end);
    free_events(&worker);
}

/* --- starts behind starts --- */

static void a_run_that_goes_on(void **state)
{
    pace__events_plan plan = plan_of(state, 2);
    pace__events *events = open_events(&plan);
    read_file second;

    put_start(events, 0, 0, 100);
    put_step(events, 1, 30, 0.5);
    pace__events_close(events, PACE__EVENTS_FAILURE);
    assert_true(pace__exists(in(state, "events/chief/" FILE_1 "-end")));
    plan.goes_on = true;
    plan.step = 20;
    events = open_events(&plan);
    assert_false(pace__exists(in(state, "events/chief/" FILE_1 "-end"))); /* readers believe the first end */
    put_start(events, 0, 20, 100);
    put_step(events, 1, 30, 0.25);
    pace__events_close(events, PACE__EVENTS_OPEN);
    for (int i = 0; i < 2; i++) {
        read_events(in(state, i ? "events/worker1/" FILE_2 : "events/chief/" FILE_2), &second);
        assert_string_equal(second.event[0].version, "brain.Event:2");
        /* All from here on is dropped; what is of step 20 is not repeated. */
        assert_int_equal(second.event[1].session, 1);
        assert_int_equal(second.event[1].step, 21);
        assert_true(i || scalar_of(&second, "train/loss", 30) == 0.25);
        free_events(&second);
    }
    assert_int_equal(count_entries(in(state, "events/chief")), 2);
    assert_string_equal(said, "");
}

static void only_own_files_are_removed(void **state)
{
    static const char *const others[] = {
        "events/notes", "events/chief/notes", "events/chief/events.out.tfevents.1700000000.host.1.0",
        "events/chief/events.out.tfevents.1.paceline", "events/eval/" FILE_1};
    pace__events_plan plan = plan_of(state, 3);

    pace__events_close(open_events(&plan), PACE__EVENTS_SUCCESS);
    assert_ok(pace__make_dirs(in(state, "events/eval"), &said_log));
    assert_ok(pace__make_dirs(in(state, "precious"), &said_log));
    for (size_t i = 0; i < COUNT(others); i++)
        put_text(in(state, others[i]), "mine");
    put_text(in(state, "precious/" FILE_1), "mine");
    assert_int_equal(symlink(in(state, "precious"), in(state, "events/worker7")), 0);
    assert_ok(pace__event_files_remove(in(state, "events"), &said_log));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(pace__exists(in(state, others[i])));
    assert_true(pace__exists(in(state, "precious/" FILE_1)));
    assert_int_equal(count_entries(in(state, "events/chief")), 3);
    assert_false(pace__exists(in(state, "events/worker1")) || pace__exists(in(state, "events/ps0")));
    assert_ok(pace__event_files_remove(in(state, "missing"), &said_log));
}

static void names_of_roles(void **state)
{
    (void)state;
    assert_true(pace__is_event_role("chief") && pace__is_event_role("worker12") &&
                pace__is_event_role("ps0"));
    assert_false(pace__is_event_role("worker") || pace__is_event_role("worker1/x") ||
                 pace__is_event_role("..") || pace__is_event_role("") || pace__is_event_role("ps-1"));
}

/* --- what goes wrong --- */

static size_t warnings_said(void)
{
    size_t count = said[0] == 'W';

    for (const char *at = said; (at = strstr(at, "\nW ")); at++)
        count++;
    return count;
}

static void a_full_disk_is_told_once(void **state)
{
    pace__events_plan plan = plan_of(state, 1);
    pace__events *events = open_events(&plan);
    const char *path = in(state, "events/chief/" FILE_1);
    struct rlimit limit;
    read_file chief;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t unlimited = limit.rlim_cur;

    signal(SIGXFSZ, SIG_IGN);
    put_start(events, 0, 0, 100);
    put_step(events, 2, 1, 0.5);
    limit.rlim_cur = (rlim_t)bytes_of(path) + 10; /* the next record is written in part */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    put_step(events, 4, 2, 0.5);
    put_step(events, 6, 3, 0.5);
    limit.rlim_cur = unlimited;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    put_step(events, 8, 4, 0.5);
    pace__events_close(events, PACE__EVENTS_SUCCESS);
    assert_int_equal(warnings_said(), 1);
    assert_said(FILE_1 ": cannot write: File too large: event files lack something, training goes on");
    read_events(path, &chief); /* whole records */
    assert_int_equal(count_tag(&chief, "train/loss"), 2);
    assert_true(find_value(&chief, "train/loss", 1) && find_value(&chief, "train/loss", 4));
    free_events(&chief);
}

/* In the place of one role's directory; the others have theirs. */
static void check_planted(void **state, const char *text)
{
    pace__events_plan plan = plan_of(state, 3);
    pace__events *events = open_events(&plan);

    put_start(events, 0, 0, 100);
    put_sample(events, 1, "worker1", 1);
    put_sample(events, 3, "ps0", 3);
    pace__events_close(events, PACE__EVENTS_SUCCESS);
    assert_int_equal(warnings_said(), 1);
    assert_said(text);
    assert_true(pace__exists(in(state, "events/ps0/" FILE_1)));
    assert_int_equal(count_entries(in(state, "elsewhere")), 0);
    assert_ok(pace__remove_tree(in(state, "events"), &said_log));
    said_clear();
}

static void things_in_the_place_of_a_role(void **state)
{
    assert_ok(pace__make_dirs(in(state, "elsewhere"), &said_log));
    assert_ok(pace__make_dirs(in(state, "events"), &said_log));
    assert_int_equal(symlink(in(state, "elsewhere"), in(state, "events/worker1")), 0);
    check_planted(state, "events/worker1: is a link");
    assert_ok(pace__make_dirs(in(state, "events"), &said_log));
    assert_int_equal(mkfifo(in(state, "events/worker1"), 0600), 0);
    check_planted(state, "events/worker1: cannot make the directory");
    assert_ok(pace__make_dirs(in(state, "events"), &said_log));
    put_text(in(state, "events/worker1"), "mine");
    check_planted(state, "events/worker1: cannot make the directory");
}

static void no_place_at_all(void **state)
{
    pace__events_plan plan = plan_of(state, 3);

    put_text(in(state, "events"), "a file");
    pace__events *events = open_events(&plan);

    put_start(events, 0, 0, 100);
    put_step(events, 2, 1, 0.5);
    put_sample(events, 4, "ps0", 4);
    pace__events_close(events, PACE__EVENTS_SUCCESS);
    assert_int_equal(warnings_said(), 1);
    assert_said("events: cannot make the directory: there is a file of that name");
}

/* A run of another start has written more than there is room for numbers: nothing of it is replaced. */
static void numbers_that_are_used_up(void **state)
{
    pace__events_plan plan = plan_of(state, 1);

    assert_ok(pace__make_dirs(in(state, "events/chief"), &said_log));
    put_text(in(state, "events/chief/events.out.tfevents.9999999999.paceline"), "old");
    pace__events_close(open_events(&plan), PACE__EVENTS_SUCCESS);
    assert_said("numbers of event files are used up");
    assert_int_equal(count_entries(in(state, "events/chief")), 1);
}

/* --- runs that last --- */

static off_t bytes_in(void **state, size_t roles, const char (*role)[PACE__EVENT_ROLE_TEXT])
{
    off_t bytes = 0;

    for (size_t i = 0; i < roles; i++) {
        char path[128];

        snprintf(path, sizeof path, "events/%s/" FILE_1, role[i]);
        bytes += bytes_of(in(state, path));
    }
    return bytes;
}

/* Half a day of 64 roles, steps that are seldom, and in the end scores every second. */
static void a_long_run_keeps_small_files(void **state)
{
    enum { ROLES = 64, SECONDS = 12 * 3600, GAP = 200 };
    char role[ROLES][PACE__EVENT_ROLE_TEXT] = {"chief"};
    pace__events_plan plan = plan_of(state, ROLES);
    read_file chief, worker;

    for (int i = 1; i < ROLES; i++)
        snprintf(role[i], sizeof role[i], "worker%d", i);
    plan.role = (const char(*)[PACE__EVENT_ROLE_TEXT])role;
    pace__events *events = open_events(&plan);

    put_start(events, 0, 0, SECONDS);
    for (int64_t second = 1; second <= SECONDS; second++) {
        for (int i = 0; i < ROLES; i++)
            put_sample(events, (double)second, role[i], (double)second);
        if (second % GAP == 0)
            put_step(events, (double)second, second, 0.5);
        if (second > SECONDS / 2)
            put_eval(events, (double)second, second, 0.5, 0.75);
    }
    pace__events_close(events, PACE__EVENTS_SUCCESS);
    assert_in_range(bytes_in(state, ROLES, plan.role), 10 * MIB, 20 * MIB);
    assert_said("a sample of each role is written every 2 s");
    assert_said("a sample of each role is written every 1024 s");
    read_events(in(state, "events/chief/" FILE_1), &chief);
    read_events(in(state, "events/worker63/" FILE_1), &worker);
    /* What is seldom is all there; of what is not, the last. */
    assert_int_equal(count_tag(&chief, "train/loss"), SECONDS / GAP);
    assert_true(count_tag(&chief, "test/auc") < 2000);
    assert_true(find_value(&chief, "train/loss", SECONDS) && find_value(&chief, "test/auc", SECONDS));
    assert_true(count_tag(&chief, "thinned") >= 10);
    double gap_s = 0;

    for (size_t i = 2; i < worker.count; i++) { /* what is between is in the means */
        double next_s = worker.event[i].wall_s - worker.event[i - 1].wall_s;

        assert_true(next_s > gap_s - 1e-3 && next_s < 2 * gap_s + 2);
        assert_true(worker.event[i].value[0].has_scalar);
        gap_s = next_s;
    }
    assert_float_equal(scalar_of(&worker, "throughput/rows_per_s", worker.event[worker.count - 1].step), 200,
                       1e-3);
    free_events(&chief);
    free_events(&worker);
}

/* However often it is started: the level goes by what is there. */
static void a_resumed_run_goes_on_as_sparse(void **state)
{
    pace__events_plan plan = plan_of(state, 1);
    read_file chief;

    pace__events_close(open_events(&plan), PACE__EVENTS_OPEN);
    assert_int_equal(truncate(in(state, "events/chief/" FILE_1), 8 * MIB), 0);
    plan.goes_on = true;
    pace__events *events = open_events(&plan);

    put_start(events, 0, 0, 100);
    for (int second = 1; second <= 8; second++)
        put_sample(events, second, "chief", second);
    pace__events_close(events, PACE__EVENTS_OPEN);
    read_events(in(state, "events/chief/" FILE_2), &chief);
    assert_int_equal(count_tag(&chief, "time/wait"), 2);
    free_events(&chief);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scalars_are_read_back),
        TEST(numbers_that_are_none),
        TEST(samples_stand_where_training_does),
        TEST(options_and_configuration),
        TEST(a_run_that_goes_on),
        TEST(only_own_files_are_removed),
        TEST(names_of_roles),
        TEST(a_full_disk_is_told_once),
        TEST(things_in_the_place_of_a_role),
        TEST(no_place_at_all),
        TEST(numbers_that_are_used_up),
        TEST(a_long_run_keeps_small_files),
        TEST(a_resumed_run_goes_on_as_sparse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

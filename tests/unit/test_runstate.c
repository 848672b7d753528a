/* What a run remembers: its state, and rows counted by processes that are killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "launch/cluster.h"
#include "run/runstate.h"
#include "support.h"

#include <signal.h>
#include <sys/wait.h>

#define SECONDS_MAX 30 /* for anything that is waited for */
#define ROWS_BYTES  ((size_t)PACE__ROWS_PAGE * PACE__WORKERS_MAX)

/* --- state.json --- */

static void assert_state(void **state, const pace__runstate *wanted)
{
    pace__runstate found = {.incarnation = 99, .restarts = 99, .checkpoint = 99, .has_checkpoint = true};

    assert_ok(pace__runstate_read(*state, &said_log, &found));
    assert_int_equal(found.id, wanted->id);
    assert_int_equal(found.incarnation, wanted->incarnation);
    assert_int_equal(found.restarts, wanted->restarts);
    assert_int_equal(found.has_checkpoint, wanted->has_checkpoint);
    assert_int_equal(found.checkpoint, wanted->checkpoint);
    assert_int_equal(found.ending, wanted->ending);
}

static void states_are_read_back(void **state)
{
    static const pace__runstate cases[] = {
        {0},
        {.incarnation = 3, .restarts = 2, .has_checkpoint = true, .checkpoint = 1200},
        {.incarnation = 1, .ending = PACE__RUN_INTERRUPTED},
        {.incarnation = 2, .has_checkpoint = true, .ending = PACE__RUN_DONE}, /* of step 0 */
        {.id = (UINT64_C(1) << 53) - 1,
         .incarnation = (UINT64_C(1) << 53) - 1,
         .restarts = (UINT64_C(1) << 53) - 1,
         .has_checkpoint = true,
         .checkpoint = 999999999999,
         .ending = PACE__RUN_FAILED},
    };

    assert_state(state, &(pace__runstate){0}); /* no file yet */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(pace__runstate_write(*state, &cases[i], &said_log));
        assert_state(state, &cases[i]);
    }
    assert_ok(pace__runstate_write(*state, &cases[1], &said_log));
    char *text = get_text(in(state, "state.json"));

    assert_string_equal(
        text, "{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1200, \"ending\": \"running\"}\n");
    free(text);
    assert_int_equal(count_entries(*state), 1);
}

static void assert_damaged(void **state, const char *text, size_t size, const char *why)
{
    pace__runstate found = {.incarnation = 99};
    char wanted[1024];

    assert_ok(pace__write_file_atomically(in(state, "state.json"), text, size, &said_log));
    snprintf(wanted, sizeof wanted, "E %s: damaged: %s", in(state, "state.json"), why);
    pace_status status = pace__runstate_read(*state, &said_log, &found);

    if (status != PACE_BAD_DATA)
        fail_msg("status %d for '%.*s'", status, (int)size, text);
    assert_failed(status, PACE_BAD_DATA, wanted);
    assert_int_equal(found.incarnation, 99);
    assert_failed(pace__runstate_check(*state, 3, &said_log), PACE_BAD_DATA, wanted);
}

static void damaged_states_are_named(void **state)
{
    static const char whole[] =
        "{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1200, \"ending\": \"running\"}\n";
    static const char *const cases[][2] = {
        {"[]", "not a JSON object"},
        {"null", "not a JSON object"},
        {"{}", "incarnation is"},
        {"{\"incarnation\": \"3\", \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "incarnation is"},
        {"{\"incarnation\": -3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}", "incarnation is"},
        {"{\"incarnation\": 3.5, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "incarnation is"},
        {"{\"incarnation\": 1e300, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "incarnation is"},
        {"{\"incarnation\": 1e999, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "incarnation is"},
        {"{\"Incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}", "incarnation is"},
        {"{\"incarnation\": 3, \"restarts\": null, \"checkpoint\": 1, \"ending\": \"done\"}", "restarts is"},
        {"{\"incarnation\": 3, \"restarts\": [2], \"checkpoint\": 1, \"ending\": \"done\"}", "restarts is"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"ending\": \"done\"}", "checkpoint is"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": false, \"ending\": \"done\"}",
         "checkpoint is"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": -1, \"ending\": \"done\"}", "checkpoint is"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"over\"}",
         "ending is none of"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": 2}", "ending is none of"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1}", "ending is none of"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\", \"incarnation\": 4}",
         "it has members"},
        {"{\"id\": 0, \"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "id is"},
        {"{\"id\": \"1\", \"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}",
         "id is"},
        {"{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 1, \"ending\": \"done\"}}", "not JSON"},
    };

    for (size_t size = 0; size + 2 < sizeof whole; size++) /* without the newline it is still whole */
        assert_damaged(state, whole, size, "not JSON");
    assert_damaged(state, whole, sizeof whole, "not JSON"); /* a NUL behind it */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_damaged(state, cases[i][0], strlen(cases[i][0]), cases[i][1]);
    char *large = tiny_alloc(1 << 20);

    memset(large, ' ', 1 << 20);
    assert_ok(pace__write_file_atomically(in(state, "state.json"), large, 1 << 20, &said_log));
    free(large);
    assert_failed(pace__runstate_check(*state, 3, &said_log), PACE_BAD_DATA, "state.json: 1048576 bytes");
}

static void states_that_cannot_be_written(void **state)
{
    pace__runstate some = {.incarnation = 1};

    assert_failed(pace__runstate_write(in(state, "missing"), &some, &said_log), PACE_IO,
                  "/missing/state.json");
    assert_int_equal(mkdir(in(state, "state.json"), 0777), 0);
    assert_failed(pace__runstate_write(*state, &some, &said_log), PACE_IO, "/state.json");
    assert_failed(pace__runstate_read(*state, &said_log, &some), PACE_BAD_DATA, "/state.json");
}

static void old_incarnations_are_refused(void **state)
{
    pace__runstate now = {.incarnation = 3};
    char wanted[1024];

    assert_ok(pace__runstate_write(*state, &now, &said_log));
    assert_ok(pace__runstate_check(*state, 3, &said_log));
    now.incarnation = 4;
    assert_ok(pace__runstate_write(*state, &now, &said_log));
    snprintf(wanted, sizeof wanted,
             "E %s: the run is at incarnation 4 now, and this process is of incarnation 3: it may not change "
             "the run "
             "any more\n",
             (const char *)*state);
    pace_status status = pace__runstate_check(*state, 3, &said_log);

    assert_string_equal(said, wanted);
    assert_failed(status, PACE_FAILED, wanted);
    assert_ok(pace__runstate_check(*state, 4, &said_log));
    assert_int_equal(unlink(in(state, "state.json")), 0); /* whose it is cannot be told */
    assert_failed(pace__runstate_check(*state, 4, &said_log), PACE_NO_INPUT, "no state.json any more");
    put_text(in(state, "state.json"), "{");
    assert_failed(pace__runstate_check(*state, 4, &said_log), PACE_BAD_DATA, "damaged");
}

/* --- rows --- */

static uint64_t file_bytes(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* Polls until the sum is reached. */
static void wait_for_rows(void **state, uint64_t sum)
{
    uint64_t start_ns = pace__now_ns();

    while (pace__row_count_all(*state) < sum) {
        if (pace__seconds_since(start_ns) > SECONDS_MAX)
            fail_msg("%llu of %llu rows", (unsigned long long)pace__row_count_all(*state),
                     (unsigned long long)sum);
        sched_yield();
    }
}

/* A process that counts `rows` one by one, and then waits to be killed. */
static pid_t start_counting(void **state, int rank, uint64_t rows)
{
    fflush(NULL);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child > 0)
        return child;
    pace__row_count count;

    alarm(2 * SECONDS_MAX); /* if nobody comes to kill it */
    pace__row_count_open(&count, *state, rank);
    while (count.shared && rows-- > 0)
        pace__row_count_add(&count, 1);
    for (;;)
        pause();
}

static void kill_child(pid_t child)
{
    int status;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void counts_survive_their_processes(void **state)
{
    pace__row_count rows;

    assert_int_equal(pace__row_count_all(*state), 0);
    pid_t child = start_counting(state, 5, 1234567);

    wait_for_rows(state, 1234567);
    kill_child(child);
    assert_int_equal(pace__row_count_all(*state), 1234567);
    pace__row_count_open(&rows, *state, 5); /* the next incarnation goes on */
    assert_true(rows.shared);
    assert_int_equal(atomic_load(rows.count), 1234567);
    pace__row_count_add(&rows, 3);
    assert_int_equal(pace__row_count_all(*state), 1234570);
    pace__row_count_close(&rows);
    assert_int_equal(pace__row_count_all(*state), 1234570);
    assert_int_equal(file_bytes(in(state, "rows")), 6 * PACE__ROWS_PAGE); /* no longer than need be */
}

static void processes_do_not_disturb_each_other(void **state)
{
    enum { CHILDREN = 4, ROWS = 1000000 };
    static const int ranks[CHILDREN] = {0, 1, 2, PACE__WORKERS_MAX - 1};
    pid_t children[CHILDREN];

    for (int i = 0; i < CHILDREN; i++)
        children[i] = start_counting(state, ranks[i], ROWS + (uint64_t)i);
    wait_for_rows(state, CHILDREN * UINT64_C(1000000) + 6);
    for (int i = 0; i < CHILDREN; i++)
        kill_child(children[i]);
    for (int i = 0; i < CHILDREN; i++) {
        pace__row_count rows;

        pace__row_count_open(&rows, *state, ranks[i]);
        assert_int_equal(atomic_load(rows.count), ROWS + i);
        pace__row_count_close(&rows);
    }
    assert_int_equal(pace__row_count_all(*state), CHILDREN * UINT64_C(1000000) + 6);
}

static void files_of_other_sizes(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   7,
                                   8,
                                   17,
                                   PACE__ROWS_PAGE,
                                   PACE__ROWS_PAGE + 7,
                                   PACE__ROWS_PAGE + 8,
                                   ROWS_BYTES,
                                   ROWS_BYTES + 1};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t *bytes = tiny_alloc(sizes[i] + 8);
        pace__row_count rows;

        for (size_t k = 0; k + 8 <= sizes[i]; k += PACE__ROWS_PAGE)
            bytes[k / 8] = 10;
        assert_ok(pace__write_file_atomically(in(state, "rows"), bytes, sizes[i], &said_log));
        uint64_t pages = (sizes[i] + PACE__ROWS_PAGE - 8) / PACE__ROWS_PAGE;
        uint64_t counts = pages < PACE__WORKERS_MAX ? pages : PACE__WORKERS_MAX;

        assert_int_equal(pace__row_count_all(*state), 10 * counts);
        pace__row_count_open(&rows, *state, PACE__WORKERS_MAX - 1);
        assert_true(rows.shared);
        pace__row_count_add(&rows, 5);
        assert_int_equal(pace__row_count_all(*state), 10 * counts + 5);
        assert_int_equal(file_bytes(in(state, "rows")), sizes[i] < ROWS_BYTES ? ROWS_BYTES : sizes[i]);
        pace__row_count_close(&rows);
        free(bytes);
    }
}

/* Where there is no file to count in, a rank counts for itself. */
static void assert_own(const char *run, int rank)
{
    pace__row_count rows;

    pace__row_count_open(&rows, run, rank);
    assert_false(rows.shared);
    assert_ptr_equal(rows.count, &rows.own);
    pace__row_count_add(&rows, 7);
    pace__row_count_add(&rows, 8);
    assert_int_equal(atomic_load(rows.count), 15);
    assert_int_equal(pace__row_count_all(run), 0);
    pace__row_count_close(&rows);
}

static void without_a_file_ranks_count_for_themselves(void **state)
{
    assert_own(*state, PACE__WORKERS_MAX); /* a ps */
    assert_false(pace__exists(in(state, "rows")));
    assert_own(in(state, "missing"), 3);
    assert_int_equal(mkdir(in(state, "rows"), 0777), 0);
    assert_own(*state, 3);
    assert_int_equal(rmdir(in(state, "rows")), 0);
    assert_int_equal(mkfifo(in(state, "rows"), 0777), 0); /* and nobody waits for the other end */
    assert_own(*state, 3);
    assert_int_equal(unlink(in(state, "rows")), 0);
    assert_int_equal(symlink("/dev/zero", in(state, "rows")), 0);
    assert_own(*state, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(states_are_read_back),           TEST(damaged_states_are_named),
        TEST(states_that_cannot_be_written),  TEST(old_incarnations_are_refused),
        TEST(counts_survive_their_processes), TEST(processes_do_not_disturb_each_other),
        TEST(files_of_other_sizes),           TEST(without_a_file_ranks_count_for_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where generated click logs go: what is not overwritten, disks that fill up, kills, pipes, and the progress. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/output.h"

#include "click_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pace_status run_to(fixture *f, const char *path, int64_t rows, bool force)
{
    pace_gen_clicks_result result;
    pace_gen_clicks_config config = {.output = path, .rows = rows, .seed = 1, .threads = 2, .force = force};

    f->message[0] = '\0';
    return pace_gen_clicks(&config, &f->log, NULL, &result);
}

static void test_refuses_to_overwrite(void **state)
{
    fixture *f = *state;
    char *path = path_of(f, "kept"), *bytes;
    size_t size;

    assert_int_equal(pace__write_file_atomically(path, "mine", 4, NULL), PACE_OK);
    assert_int_equal(run_to(f, path, 10, false), PACE_USAGE);
    assert_non_null(strstr(f->message, "exists; use --force"));
    assert_int_equal(pace__read_file(path, 100, &bytes, &size, NULL), PACE_OK);
    assert_string_equal(bytes, "mine");
    free(bytes);
    assert_int_equal(run_to(f, path, 10, true), PACE_OK);
    assert_int_equal(pace__read_file(path, FILE_BYTES_MAX, &bytes, &size, NULL), PACE_OK);
    assert_true(size > 1000);
    free(bytes);
    assert_int_equal(count_files(f), 1);
    free(path);
}

static void test_bad_targets(void **state)
{
    fixture *f = *state;
    char *path = path_of(f, "absent/clicks");

    assert_int_equal(run_to(f, f->dir, 10, true), PACE_USAGE);
    assert_non_null(strstr(f->message, "is a directory"));
    assert_int_equal(run_to(f, path, 10, true), PACE_IO);
    assert_non_null(strstr(f->message, strerror(ENOENT)));
    assert_non_null(strstr(f->message, path));
    assert_int_equal(run_to(f, "/dev/null", 10, false), PACE_OK);
    assert_int_equal(run_to(f, NULL, 10, false), PACE_USAGE);
    assert_int_equal(run_to(f, "/dev/null", 0, false), PACE_USAGE);
    free(path);
}

static void test_full_disk(void **state)
{
    fixture *f = *state;

    /* Many more chunks than threads: those that wait for their turn must be let go. */
    assert_int_equal(run_to(f, "/dev/full", 100000, false), PACE_IO);
    assert_non_null(strstr(f->message, "/dev/full"));
    assert_non_null(strstr(f->message, strerror(ENOSPC)));
}

/* A file size limit fails the write in the middle of a regular file. */
static void test_failed_write_leaves_nothing(void **state)
{
    fixture *f = *state;
    char *path = path_of(f, "clicks");
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        pace_gen_clicks_result result;
        pace_gen_clicks_config config = {.output = path, .rows = 100000, .seed = 1, .threads = 2};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){3000000, 3000000});
        _exit(pace_gen_clicks(&config, NULL, NULL, &result));
    }
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PACE_IO);
    assert_int_equal(count_files(f), 0);
    free(path);
}

static void kill_self(void *user, const pace_record *record)
{
    (void)user;
    (void)record;
    kill(getpid(), SIGKILL);
}

static void test_killed_job_leaves_no_whole_file(void **state)
{
    fixture *f = *state;
    char *path = path_of(f, "clicks");
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        pace_gen_clicks_result result;
        pace_gen_clicks_config config = {.output = path, .rows = 1000000, .seed = 1, .threads = 2};
        pace_registry *registry = pace_registry_create();

        pace_registry_attach(registry, &(pace_sink){kill_self, NULL});
        pace_gen_clicks(&config, NULL, registry, &result);
        _exit(0);
    }
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(pace__exists(path));
    free(path);
}

/* Runs with standard output replaced by `fd`. */
static pace_status run_to_standard_output(fixture *f, int fd, int64_t rows)
{
    int kept = dup(STDOUT_FILENO);

    fflush(stdout);
    assert_true(kept >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
    pace_status status = run_to(f, "-", rows, false);

    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    return status;
}

static void test_standard_output(void **state)
{
    fixture *f = *state;
    char *path = path_of(f, "streamed"), *streamed, *direct;
    size_t streamed_size, direct_size;
    int fd = open(path, O_WRONLY | O_CREAT, 0666);

    assert_true(fd >= 0);
    assert_int_equal(run_to_standard_output(f, fd, 5000), PACE_OK);
    close(fd);
    assert_int_equal(pace__read_file(path, FILE_BYTES_MAX, &streamed, &streamed_size, NULL), PACE_OK);
    unlink(path);
    direct = generate(f, PACE_GEN_CRITEO, 5000, 1, 1, &direct_size, NULL);
    assert_int_equal(streamed_size, direct_size);
    assert_memory_equal(streamed, direct, direct_size);
    free(direct);
    free(streamed);
    free(path);
}

static void test_closed_pipe(void **state)
{
    fixture *f = *state;
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(run_to_standard_output(f, ends[1], 5000), PACE_IO);
    assert_non_null(strstr(f->message, "standard output"));
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
}

typedef struct watch {
    int64_t done, total;
    int records;
} watch;

static void watch_progress(void *user, const pace_record *record)
{
    watch *w = user;
    int64_t done = pace_record_find(record, "done")->value.integer;

    assert_string_equal(record->kind, "progress");
    assert_string_equal(pace_record_find(record, "phase")->value.text, "gen");
    assert_string_equal(pace_record_find(record, "unit")->value.text, "rows");
    assert_true(done > w->done);
    w->done = done;
    w->total = pace_record_find(record, "total")->value.integer;
    w->records++;
}

static void test_progress_is_told(void **state)
{
    fixture *f = *state;
    watch seen = {0};
    pace_registry *registry = pace_registry_create();
    pace_gen_clicks_result result;
    pace_gen_clicks_config config = {.output = "/dev/null", .rows = 200000, .seed = 1, .threads = 2};

    assert_non_null(registry);
    pace_registry_attach(registry, &(pace_sink){watch_progress, &seen});
    assert_int_equal(pace_gen_clicks(&config, &f->log, registry, &result), PACE_OK);
    assert_int_equal(seen.done, config.rows);
    assert_int_equal(seen.total, config.rows);
    assert_true(seen.records > 2);
    pace_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refuses_to_overwrite, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_targets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_write_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_job_leaves_no_whole_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_standard_output, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed_pipe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_progress_is_told, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

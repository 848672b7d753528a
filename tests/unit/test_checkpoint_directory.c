/* The directory of checkpoints: what is listed, kept and removed, and what failed writes leave there. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "checkpoints.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

/* --- the directory of checkpoints --- */

/* "12.3 10.1" */
static void assert_listed(const char *root, const char *expected, size_t unfinished_expected)
{
    pace__checkpoint_entry *entries = NULL;
    size_t count = 99, unfinished = 99;
    char found[1024] = "", path[1024];

    assert_ok(pace__checkpoint_list(root, &said_log, &entries, &count, &unfinished));
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(found);

        snprintf(found + used, sizeof found - used, "%s%" PRIu64 ".%" PRIu64, i ? " " : "", entries[i].step,
                 entries[i].incarnation);
        snprintf(path, sizeof path, "%s/step-%012" PRIu64 ".%04" PRIu64, root, entries[i].step,
                 entries[i].incarnation);
        assert_string_equal(entries[i].path, path);
    }
    assert_string_equal(found, expected);
    assert_int_equal(unfinished, unfinished_expected);
    pace__checkpoint_list_free(entries, count);
}

static void begin_only(const char *root, uint64_t step, uint64_t incarnation)
{
    char *path;

    assert_ok(pace__checkpoint_begin(root, step, incarnation, &said_log, &path));
    free(path);
}

static void the_list_is_newest_first(void **state)
{
    const char *root = in(state, "run/checkpoints");

    assert_listed(root, "", 0);
    pace__checkpoint_prune(root, 1, 1, 1); /* of nothing */
    put_small(root, 90, 2);
    put_small(root, 1000, 1);
    put_small(root, 100, 10);
    put_small(root, 100, 2);
    put_small(root, PACE__CHECKPOINT_STEP_MAX, 1);
    put_small(root, 0, 123456);
    begin_only(root, 2000, 3);
    begin_only(root, 5, 1);
    assert_listed(root, "999999999999.1 1000.1 100.10 100.2 90.2 0.123456", 2);
    pace__checkpoint_entry *entries;
    size_t count;

    assert_ok(pace__checkpoint_list(root, &said_log, &entries, &count, NULL));
    assert_int_equal(count, 6);
    assert_ok(check(entries[0].path));
    pace__checkpoint_list_free(entries, count);
    put_text(in(state, "file"), "");
    assert_failed(pace__checkpoint_list(in(state, "file"), &said_log, &entries, &count, NULL), PACE_IO,
                  "file: cannot list the directory: Not a directory");
}

static const char *const strange_names[] = {"step-000000000007.safetensors",
                                            "step-7.0001",
                                            "step-000000000007.001",
                                            "step-0000000000070.0001",
                                            "step-000000000007.00001",
                                            "step-000000000007",
                                            "step-000000000007.0001.old",
                                            "step- 00000000007.0001",
                                            "step-+00000000007.0001",
                                            "xstep-000000000007.0001",
                                            "Step-000000000007.0001",
                                            "step-000000000007.-001",
                                            "best"};
#define STRANGE_NAMES (sizeof strange_names / sizeof *strange_names)

/* Names that are nearly a checkpoint's: neither listed nor counted nor removed. */
static void strange_names_are_left_alone(void **state)
{
    const char *root = in(state, "root");

    put_small(root, 10, 1);
    for (size_t i = 0; i < STRANGE_NAMES; i++) {
        char inside[256];

        snprintf(inside, sizeof inside, "%s/" PACE__MANIFEST_NAME, strange_names[i]);
        assert_int_equal(mkdir(file_of(root, strange_names[i]), 0777), 0);
        put_text(file_of(root, inside), "{}");
    }
    put_text(file_of(root, "step-000000000005.0001"), "a file"); /* the right name, but no directory */
    put_text(file_of(root, "step-000000000006.safetensors"), "an old checkpoint");
    assert_int_equal(symlink("step-000000000010.0001", file_of(root, "step-000000000008.0001")), 0);
    assert_listed(root, "10.1", 0);
    pace__checkpoint_prune(root, 1, 10, 1);
    assert_int_equal(count_entries(root), STRANGE_NAMES + 4);
    for (size_t i = 0; i < STRANGE_NAMES; i++)
        assert_int_equal(count_entries(file_of(root, strange_names[i])), 1);
    assert_listed(root, "10.1", 0);
}

static void the_newest_are_kept(void **state)
{
    const char *root = *state;

    for (uint64_t step = 1; step <= 6; step++)
        put_small(root, 10 * step, 1);
    pace__checkpoint_prune(root, 3, 60, 1);
    assert_listed(root, "60.1 50.1 40.1", 0);
    pace__checkpoint_prune(root, 1, 60, 1);
    assert_listed(root, "60.1", 0);
    pace__checkpoint_prune(root, 0, 60, 1);
    assert_listed(root, "60.1", 0);
    assert_int_equal(count_entries(root), 1);
}

static void put_with_best(const char *root, uint64_t step, uint64_t best)
{
    float *parameters = make_parameters(5, 2, step);
    pace__manifest manifest = make_manifest(step, 1, 5, 2, 2);

    manifest.position.best_step = best;
    free(write_checkpoint(root, parameters, &manifest));
    pace__manifest_release(&manifest);
    free(parameters);
}

/* Whichever of them the run goes on from, its best is there. */
static void the_best_of_each_stays_with_it(void **state)
{
    const char *root = *state;

    put_with_best(root, 10, 10);
    put_with_best(root, 20, 20);
    put_with_best(root, 30, 20);
    put_with_best(root, 40, 20);
    put_with_best(root, 50, 50);
    pace__checkpoint_prune(root, 2, 50, 1);
    assert_listed(root, "50.1 40.1 20.1", 0);
    put_with_best(root, 60, 50);
    pace__checkpoint_prune(root, 2, 60, 1);
    assert_listed(root, "60.1 50.1", 0); /* nobody names 20 any more */
    put_with_best(root, 70, 50);
    pace__checkpoint_prune(root, 1, 70, 1);
    assert_listed(root, "70.1 50.1", 0);
    begin_only(root, 50, 2); /* not whole: it takes nobody's place */
    put_with_best(root, 80, 50);
    pace__checkpoint_prune(root, 1, 80, 3);
    assert_listed(root, "80.1 50.1", 0);
}

/* Resumed from 20, the run has now written 30: 40 and 50, and the first 30, were passed over. */
static void what_was_passed_over_goes(void **state)
{
    const char *root = *state;

    for (uint64_t step = 1; step <= 5; step++)
        put_small(root, 10 * step, 1);
    begin_only(root, 60, 1);
    begin_only(root, 15, 1);
    put_small(root, 30, 2);
    begin_only(root, 25, 2);
    pace__checkpoint_prune(root, 3, 30, 2);
    assert_listed(root, "30.2 20.1 10.1", 0);
    assert_int_equal(count_entries(root), 3);
}

/* What is under way, and what a later incarnation does to a process that does not know that it is late. */
static void others_are_left_alone(void **state)
{
    const char *root = *state;

    put_small(root, 10, 1);
    put_small(root, 20, 1);
    put_small(root, 30, 1);
    begin_only(root, 40, 1);
    put_small(root, 15, 2);
    begin_only(root, 18, 2);
    put_small(root, 50, 2);
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_listed(root, "50.2 30.1 20.1 15.2", 2);
}

/* Something of the user's makes a directory stay, but it no longer counts, and its own files are gone. */
static void only_own_files_are_removed(void **state)
{
    const char *root = *state;
    char *path = write_small(root, 10, 1);

    put_text(file_of(path, "notes.txt"), "precious");
    put_text(file_of(path, "part-00000-of-00002.safetensors.bak"), "precious");
    put_text(file_of(path, "part-00002-of-00002.safetensors"), "no such part");
    put_text(file_of(path, "part-00001-of-00009.safetensors.tmp-0123456789abcdef"), "a leftover");
    put_text(file_of(path, "manifest.json.tmp-0123456789abcdef"), "a leftover");
    put_small(root, 20, 1);
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_listed(root, "20.1", 1);
    assert_int_equal(count_entries(path), 3);
    assert_true(pace__exists(file_of(path, "notes.txt")));
    free(path);
    path = write_small(root, 15, 1);
    assert_int_equal(unlink(file_of(path, PACE__MANIFEST_NAME)), 0);
    assert_int_equal(mkdir(file_of(path, PACE__MANIFEST_NAME), 0777), 0); /* cannot be removed as a file */
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_int_equal(count_entries(path), 3);
    assert_failed(pace__checkpoint_begin(root, 15, 1, &said_log, &(char *){NULL}), PACE_IO,
                  "manifest.json: cannot be removed");
    free(path);
}

static void an_earlier_try_is_cleared_away(void **state)
{
    char *path = write_small(*state, 10, 1), *again = NULL;

    put_text(file_of(path, "part-00000-of-00001.safetensors.tmp-fedcba9876543210"), "half");
    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &again));
    assert_string_equal(again, path);
    assert_int_equal(count_entries(path), 0);
    assert_listed(*state, "", 1);
    free(again);
    free(path);
    path = write_small(*state, 10, 1);
    assert_ok(check(path));
    pace__checkpoint_discard(path);
    assert_false(pace__exists(path));
    pace__checkpoint_discard(path); /* of nothing */
    free(path);
    put_text(in(state, "file"), "");
    assert_failed(pace__checkpoint_begin(in(state, "file"), 1, 1, &said_log, &again), PACE_IO, "file");
}

/* --- writing fails --- */

static void a_part_that_is_not_there_is_not_committed(void **state)
{
    float *parameters = make_parameters(5, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 5, 2, 2);
    char *path = write_checkpoint(*state, parameters, &manifest);
    const char *part = file_of(path, small_files[2]);

    assert_int_equal(unlink(file_of(path, PACE__MANIFEST_NAME)), 0);
    assert_int_equal(truncate(part, 100), 0);
    assert_failed(pace__checkpoint_commit(path, &manifest, &said_log), PACE_IO, "has 100 bytes, but");
    assert_int_equal(unlink(part), 0);
    assert_failed(pace__checkpoint_commit(path, &manifest, &said_log), PACE_IO, part);
    assert_int_equal(count_entries(path), 1);
    assert_listed(*state, "", 1);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

static void limit_files_to(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A disk that fills up half-way, as the size limit of a process plays it. */
static void a_disk_that_fills_up_leaves_nothing(void **state)
{
    float *parameters = make_parameters(1000, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 1000, 2, 1);
    struct rlimit old;
    char *path = NULL;

    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &path));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files_to(4000);
    pace_status part = write_part(path, parameters, 0, &manifest);

    limit_files_to(old.rlim_cur);
    assert_failed(part, PACE_IO, "part-00000-of-00001.safetensors: cannot write: File too large");
    assert_int_equal(count_entries(path), 0);
    assert_string_equal(manifest.part[0].name, "");
    assert_ok(write_part(path, parameters, 0, &manifest));
    limit_files_to(300);
    pace_status commit = pace__checkpoint_commit(path, &manifest, &said_log);

    limit_files_to(old.rlim_cur);
    signal(SIGXFSZ, SIG_DFL);
    assert_failed(commit, PACE_IO, "manifest.json: cannot write: File too large");
    assert_int_equal(count_entries(path), 1);
    assert_listed(*state, "", 1);
    pace__checkpoint_discard(path);
    assert_int_equal(count_entries(*state), 0);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

/* Links that somebody has put where files are to be are replaced, not followed. */
static void links_in_the_way_lead_nowhere(void **state)
{
    float *parameters = make_parameters(5, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 5, 2, 1);
    char *path = NULL, *found;

    put_text(in(state, "victim"), "precious");
    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &path));
    assert_int_equal(symlink(in(state, "victim"), file_of(path, "part-00000-of-00001.safetensors")), 0);
    assert_int_equal(symlink(in(state, "victim"), file_of(path, "part-00000-of-00001.safetensors.tmp")), 0);
    assert_int_equal(symlink(in(state, "victim"), file_of(path, PACE__MANIFEST_NAME)), 0);
    assert_ok(write_part(path, parameters, 0, &manifest));
    assert_ok(pace__checkpoint_commit(path, &manifest, &said_log));
    found = get_text(in(state, "victim"));
    assert_string_equal(found, "precious");
    free(found);
    assert_loads(path, parameters, 5, 2);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

#define with_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_directory(the_list_is_newest_first),
        with_directory(strange_names_are_left_alone),
        with_directory(the_newest_are_kept),
        with_directory(the_best_of_each_stays_with_it),
        with_directory(what_was_passed_over_goes),
        with_directory(others_are_left_alone),
        with_directory(only_own_files_are_removed),
        with_directory(an_earlier_try_is_cleared_away),
        with_directory(a_part_that_is_not_there_is_not_committed),
        with_directory(a_disk_that_fills_up_leaves_nothing),
        with_directory(links_in_the_way_lead_nowhere),
    };

    return cmocka_run_group_tests_name("checkpoint directory", tests, NULL, NULL);
}

/* Output directories that appear whole or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/staging.h"

#include "support.h"

#include <sys/wait.h>

/* What stands in for a data set: a directory with this file and nothing else. */
static pace_status check_ours(const char *directory, const pace_log *log)
{
    char *path = pace__format("%s/ours.h5", directory);
    bool found = path && pace__exists(path);

    free(path);
    if (!found)
        return pace_fail(log, PACE_USAGE, "%s: not ours", directory);
    return count_entries(directory) == 1 ? PACE_OK
                                         : pace_fail(log, PACE_USAGE, "%s: more than ours", directory);
}

static const pace__staging_kind kind = {"test", "stand-in", check_ours};

static void begin(const char *target, bool force, pace__staging *staging)
{
    assert_ok(pace__staging_begin(&kind, target, force, staging, &said_log));
}

static void refuse(const char *target, bool force, pace_status expected, const char *message)
{
    pace__staging staging = {.lock = -7};

    assert_int_equal(pace__staging_begin(&kind, target, force, &staging, &said_log), expected);
    assert_int_equal(errors_said(), 1);
    assert_said(target);
    assert_said(message);
    assert_int_equal(staging.lock, -7);
    said_clear();
}

static void write_into(const pace__staging *staging, const char *text)
{
    char *path = pace__format("%s/ours.h5", staging->directory);

    put_text(path, text);
    free(path);
}

static void commit(const char *target, bool force, const char *text)
{
    pace__staging staging;

    begin(target, force, &staging);
    write_into(&staging, text);
    assert_ok(pace__staging_commit(&staging, &said_log));
}

static void assert_holds(const char *target, const char *text)
{
    char *path = pace__format("%s/ours.h5", target), *found = get_text(path);

    assert_string_equal(found, text);
    assert_int_equal(count_entries(target), 1);
    free(found);
    free(path);
}

static void nothing_is_visible_before_the_commit(void **state)
{
    const char *target = in(state, "set");
    pace__staging staging;

    begin(target, false, &staging);
    write_into(&staging, "new");
    assert_false(pace__exists(target));
    assert_ok(pace__staging_commit(&staging, &said_log));
    assert_holds(target, "new");
    assert_int_equal(count_entries(*state), 1);
    assert_null(staging.directory);
    pace__staging_abandon(&staging, &said_log); /* of a committed one: nothing happens */
    assert_holds(target, "new");
    assert_string_equal(said, "");
}

static void parents_and_slashes(void **state)
{
    commit(in(state, "a/b/set//"), false, "new");
    assert_holds(in(state, "a/b/set"), "new");
    assert_int_equal(count_entries(in(state, "a/b")), 1);
}

static void names_without_a_directory_work(void **state)
{
    char here[512];

    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(*state), 0);
    commit("set", false, "new");
    assert_holds("set", "new");
    commit("set", true, "newer");
    assert_holds("set", "newer");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(count_entries(*state), 1);
}

static void abandoning_leaves_nothing(void **state)
{
    pace__staging staging, zeroed = {0};

    begin(in(state, "set"), false, &staging);
    write_into(&staging, "half");
    pace__staging_abandon(&staging, &said_log);
    pace__staging_abandon(&staging, &said_log);
    pace__staging_abandon(&zeroed, &said_log);
    assert_int_equal(count_entries(*state), 0);
    assert_string_equal(said, "");
    commit(in(state, "set"), false, "whole");
    assert_holds(in(state, "set"), "whole");
}

static void an_existing_set_is_refused(void **state)
{
    const char *target = in(state, "set");

    commit(target, false, "old");
    refuse(target, false, PACE_USAGE, "already holds a stand-in (--force replaces it)");
    assert_holds(target, "old");
    assert_int_equal(count_entries(*state), 1);
}

static void force_replaces_a_set(void **state)
{
    const char *target = in(state, "set");
    pace__staging staging;

    commit(target, false, "old");
    begin(target, true, &staging);
    write_into(&staging, "new");
    assert_holds(target, "old"); /* until the end */
    assert_ok(pace__staging_commit(&staging, &said_log));
    assert_holds(target, "new");
    assert_int_equal(count_entries(*state), 1);
}

static void abandoning_keeps_the_old_set(void **state)
{
    const char *target = in(state, "set");
    pace__staging staging;

    commit(target, false, "old");
    begin(target, true, &staging);
    write_into(&staging, "new");
    pace__staging_abandon(&staging, &said_log);
    assert_holds(target, "old");
    assert_int_equal(count_entries(*state), 1);
}

static void other_peoples_directories_are_never_replaced(void **state)
{
    const char *target = in(state, "thesis");

    assert_ok(pace__make_dirs(target, &said_log));
    put_text(in(state, "thesis/chapter1"), "years of work");
    refuse(target, false, PACE_USAGE, "not ours");
    refuse(target, true, PACE_USAGE, "not ours");
    put_text(in(state, "thesis/ours.h5"), "a set among them");
    refuse(target, false, PACE_USAGE, "more than ours"); /* no word of --force, which would not help */
    refuse(target, true, PACE_USAGE, "more than ours");
    put_text(in(state, "file"), "x");
    refuse(in(state, "file"), true, PACE_USAGE, "not a directory");
    assert_true(pace__exists(in(state, "thesis/chapter1")) && pace__exists(in(state, "file")));
    assert_int_equal(count_entries(*state), 2);
}

static void an_empty_directory_is_taken(void **state)
{
    assert_ok(pace__make_dirs(in(state, "set"), &said_log));
    commit(in(state, "set"), false, "new");
    assert_holds(in(state, "set"), "new");
    assert_int_equal(count_entries(*state), 1);
}

static void two_at_once_are_told_apart(void **state)
{
    const char *target = in(state, "set");
    pace__staging first, other;

    begin(target, false, &first);
    write_into(&first, "first");
    refuse(target, false, PACE_FAILED, "another test is writing this stand-in");
    refuse(target, true, PACE_FAILED, "another test is writing this stand-in");
    begin(in(state, "other"), false, &other); /* another target is free */
    pace__staging_abandon(&other, &said_log);
    assert_ok(pace__staging_commit(&first, &said_log));
    assert_holds(target, "first");
}

/* A commit may fail behind its rename, for which a rename stands here. The name is free for another job by
 * then, and what lies under it is the other's. */
static void abandoning_spares_who_came_after(void **state)
{
    const char *target = in(state, "set");
    pace__staging first, second;

    begin(target, false, &first);
    assert_int_equal(rename(first.directory, in(state, "renamed")), 0);
    begin(target, false, &second);
    write_into(&second, "second");
    pace__staging_abandon(&first, &said_log);
    assert_ok(pace__staging_commit(&second, &said_log));
    assert_holds(target, "second");
    assert_string_equal(said, "");
}

/* A process that ends without abandoning, as a killed one does. */
static void die_in(const char *target)
{
    pid_t child = fork();
    int result;

    assert_true(child >= 0);
    if (child == 0) {
        pace__staging staging;
        bool ok = pace__staging_begin(&kind, target, false, &staging, NULL) == PACE_OK;
        char *directory = pace__format("%s/deep/deeper", staging.directory);

        ok = ok && pace__make_dirs(directory, NULL) == PACE_OK;
        char *file = pace__format("%s/spill", directory);

        ok = ok && pace__write_file_atomically(file, "x", 1, NULL) == PACE_OK;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

static void what_a_killed_one_left_is_removed(void **state)
{
    const char *target = in(state, "set");
    pace__staging staging;

    die_in(target);
    assert_int_equal(count_entries(*state), 1);
    begin(target, false, &staging);
    assert_said("W ");
    assert_said("an interrupted test");
    assert_int_equal(count_entries(staging.directory), 0);
    write_into(&staging, "new");
    assert_ok(pace__staging_commit(&staging, &said_log));
    assert_holds(target, "new");
    assert_int_equal(count_entries(*state), 1);
}

/* Killed between the two renames of a commit: the old set was moved away. The next one clears it up. */
static void an_old_set_left_behind_is_removed(void **state)
{
    commit(in(state, ".set.old"), false, "older");
    commit(in(state, "set"), false, "old");
    commit(in(state, "set"), true, "new");
    assert_holds(in(state, "set"), "new");
    assert_int_equal(count_entries(*state), 1);
}

static void a_target_needs_a_name(void **state)
{
    static const char *const targets[] = {"", "/", ".", "..", "x/.."};

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        refuse(targets[i], false, PACE_USAGE, "give the new directory a name");
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
    put_text(in(state, "file"), "x");
    pace__staging staging;

    assert_failed(pace__staging_begin(&kind, in(state, "file/set"), false, &staging, &said_log), PACE_IO,
                  in(state, "file"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_visible_before_the_commit),
        TEST(parents_and_slashes),
        TEST(names_without_a_directory_work),
        TEST(abandoning_leaves_nothing),
        TEST(an_existing_set_is_refused),
        TEST(force_replaces_a_set),
        TEST(abandoning_keeps_the_old_set),
        TEST(other_peoples_directories_are_never_replaced),
        TEST(an_empty_directory_is_taken),
        TEST(two_at_once_are_told_apart),
        TEST(abandoning_spares_who_came_after),
        TEST(what_a_killed_one_left_is_removed),
        TEST(an_old_set_left_behind_is_removed),
        TEST(a_target_needs_a_name),
        TEST(a_place_that_cannot_be_written_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

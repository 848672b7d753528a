/* Output directories that appear whole or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/staging.h"

#include "support.h"

#include <fcntl.h>
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
    assert_int_equal(count_entries(staging.directory), 1); /* the mark */
    write_into(&staging, "new");
    assert_ok(pace__staging_commit(&staging, &said_log));
    assert_holds(target, "new");
    assert_int_equal(count_entries(*state), 1);
}

/* Where names cannot be exchanged, a commit may be killed between its renames: the old set was moved away. */
static void an_old_set_that_was_moved_away_is_back(void **state)
{
    commit(in(state, "old"), false, "old");
    assert_int_equal(rename(in(state, "old"), in(state, ".set.old")), 0);
    refuse(in(state, "set"), false, PACE_USAGE, "already holds a stand-in");
    assert_holds(in(state, "set"), "old");
    commit(in(state, "older"), false, "older");
    assert_int_equal(rename(in(state, "older"), in(state, ".set.old")), 0); /* behind the second rename */
    commit(in(state, "set"), true, "new");
    assert_holds(in(state, "set"), "new");
    assert_int_equal(count_entries(*state), 1);
}

/* Killed behind the exchange: what lies there is the old set, whole, or with a mark in what is left of it. */
static void an_old_set_that_was_exchanged_is_removed(void **state)
{
    for (int removing = 0; removing < 2; removing++) {
        commit(in(state, "old"), false, "old");
        assert_int_equal(rename(in(state, "old"), in(state, ".set.partial")), 0);
        if (removing) {
            put_text(in(state, ".set.partial/.paceline"), "");
            assert_int_equal(rename(in(state, ".set.partial/ours.h5"), in(state, ".set.partial/half")), 0);
        }
        commit(in(state, "set"), removing, "new");
        assert_holds(in(state, "set"), "new");
        assert_int_equal(count_entries(*state), 1);
    }
}

static void refuse_partial(const char *target, const char *message)
{
    pace__staging staging;

    assert_int_equal(pace__staging_begin(&kind, target, true, &staging, &said_log), PACE_USAGE);
    assert_said("/.set.partial: ");
    assert_failed(PACE_USAGE, PACE_USAGE, message);
}

/* What somebody else has put under the name that is written to stays as it is, and the error names it. */
static void what_is_not_ours_is_left(void **state)
{
    const char *target = in(state, "set"), *partial = in(state, ".set.partial");
    char *text;

    assert_ok(pace__make_dirs(in(state, "precious"), &said_log));
    put_text(in(state, "precious/chapter1"), "years of work");
    assert_int_equal(symlink("precious", partial), 0);
    refuse_partial(target, "is in the way");
    assert_false(pace__staging_sweep(&kind, target, &said_log));
    assert_int_equal(unlink(partial), 0);
    put_text(partial, "a file");
    refuse_partial(target, "is in the way");
    assert_int_equal(unlink(partial), 0);
    assert_int_equal(rename(in(state, "precious"), partial), 0);
    refuse_partial(target, "was not written by paceline: move it away");
    assert_false(pace__staging_sweep(&kind, target, &said_log));
    text = get_text(in(state, ".set.partial/chapter1"));
    assert_string_equal(text, "years of work");
    free(text);
    assert_int_equal(count_entries(*state), 1);
}

/* Links inside what is removed are removed, and what they lead to stays. */
static void links_are_not_followed(void **state)
{
    char *text;

    assert_ok(pace__make_dirs(in(state, "precious"), &said_log));
    put_text(in(state, "precious/chapter1"), "years of work");
    die_in(in(state, "set"));
    assert_int_equal(symlink(in(state, "precious"), in(state, ".set.partial/spill")), 0);
    commit(in(state, "set"), false, "new");
    assert_holds(in(state, "set"), "new");
    text = get_text(in(state, "precious/chapter1"));
    assert_string_equal(text, "years of work");
    free(text);
    assert_int_equal(symlink("precious", in(state, "link")), 0);
    refuse(in(state, "link"), true, PACE_USAGE, "exists and is not a directory");
}

/* Somebody looks all the time while sets replace each other: there always is one. */
static void there_is_no_moment_without_a_set(void **state)
{
    const char *target = in(state, "set"), *done = in(state, "done");

    commit(target, false, "0");
    if (renameat2(AT_FDCWD, target, AT_FDCWD, target, RENAME_EXCHANGE) != 0)
        skip(); /* this file system cannot */
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        for (long looks = 0;; looks++) {
            if (access(target, F_OK) != 0)
                _exit(1);
            if (access(done, F_OK) == 0)
                _exit(looks > 0 ? 0 : 2);
        }
    }
    for (int i = 0; i < 300; i++)
        commit(target, true, "next");
    put_text(done, "");
    int result;

    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
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
        TEST(an_old_set_that_was_moved_away_is_back),
        TEST(an_old_set_that_was_exchanged_is_removed),
        TEST(what_is_not_ours_is_left),
        TEST(links_are_not_followed),
        TEST(there_is_no_moment_without_a_set),
        TEST(a_target_needs_a_name),
        TEST(a_place_that_cannot_be_written_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

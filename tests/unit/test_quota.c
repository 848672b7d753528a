/* Limits of groups of processes, as a kernel shows them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "watch/quota.h"

#include "support.h"

static void make(void **state, const char *directory)
{
    char path[512];

    snprintf(path, sizeof path, "%s", in(state, directory));
    assert_int_equal(mkdir(path, 0700), 0);
}

static void put(void **state, const char *name, const char *text)
{
    FILE *file = fopen(in(state, name), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void no_group_has_no_limit(void **state)
{
    assert_true(isinf(pace__quota_of("", in(state, "")).cores));
    assert_true(isinf(pace__quota_of("garbage\n:\n4:cpu\n", in(state, "")).cores));
    assert_true(isinf(pace__quota_of("0::/a\n1:cpu,cpuacct:/a\n", in(state, "")).cores));
}

static void the_first_version_has_two_files(void **state)
{
    const char *groups = "5:cpuset:/\n4:cpu,cpuacct:/a/b\n0::/\n";

    make(state, "cpu");
    make(state, "cpu/a");
    make(state, "cpu/a/b");
    put(state, "cpu/a/b/cpu.cfs_period_us", "7000\n");
    put(state, "cpu/a/b/cpu.cfs_quota_us", "-1\n");
    assert_true(isinf(pace__quota_of(groups, in(state, "")).cores));
    put(state, "cpu/a/b/cpu.cfs_quota_us", "3500\n");
    pace__quota half = pace__quota_of(groups, in(state, ""));

    assert_float_equal(half.cores, 0.5, 1e-9);
    assert_float_equal(half.period_s, 0.007, 1e-9);
    assert_float_equal(pace__quota_pause_s(&half), 0.0035, 1e-9);
    put(state, "cpu/a/cpu.cfs_period_us", "100000\n"); /* the group around it has less */
    put(state, "cpu/a/cpu.cfs_quota_us", "25000\n");
    assert_float_equal(pace__quota_of(groups, in(state, "")).cores, 0.25, 1e-9);
    assert_true(isinf(pace__quota_of("5:cpuset:/a/b\n", in(state, "")).cores));
}

static void the_second_version_has_one(void **state)
{
    put(state, "cpu.max", "max 100000\n");
    assert_true(isinf(pace__quota_of("0::/\n", in(state, "")).cores));
    put(state, "cpu.max", "150000 100000\n"); /* the group of a container, whatever it is called outside */
    assert_float_equal(pace__quota_of("0::/docker/abc\n", in(state, "")).cores, 1.5, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_group_has_no_limit, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(the_first_version_has_two_files, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(the_second_version_has_one, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

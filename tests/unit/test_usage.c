/* What a process has taken of its machine, against what the kernel says elsewhere, and against what was done. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "watch/usage.h"

#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static double processor_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Until this process has taken so many seconds of processors. */
static void *burn(void *user)
{
    const double *until_s = user;

    while (processor_s() < *until_s)
        continue;
    return NULL;
}

static void processor_time_of_all_threads_counts(void **state)
{
    pace__usage before = {0}, after = {0};
    double start_s = processor_s(), until_s = start_s + 0.3;
    pthread_t other;

    (void)state;
    pace__usage_read(&before);
    assert_int_equal(pthread_create(&other, NULL, burn, &until_s), 0);
    burn(&until_s);
    assert_int_equal(pthread_join(other, NULL), 0);
    pace__usage_read(&after);
    double took_s = after.user_s + after.system_s - before.user_s - before.system_s,
           expected_s = processor_s() - start_s;

    assert_true(took_s > 0.95 * 0.3 && took_s <= 1.05 * expected_s);
}

static void memory_is_seen_to_come_and_go(void **state)
{
    pace__usage before = {0}, with = {0};

    (void)state;
    pace__usage_read(&before);
    char *memory = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    memset(memory, 1, 64 * MIB);
    pace__usage_read(&with);
    munmap(memory, 64 * MIB);
    pace__usage after = with;

    pace__usage_read(&after);
    assert_true(with.rss_bytes >= before.rss_bytes + 60 * MIB);
    assert_true(after.rss_bytes <= with.rss_bytes - 60 * MIB);
    assert_true(after.rss_max_bytes >= with.rss_bytes);
    assert_true(with.minor_faults > before.minor_faults);
}

/* The figures of a file of /proc whose lines are NAME VALUE... */
static unsigned long long told(const char *path, const char *name, int column)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    unsigned long long found = 0;

    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        char *at = line + strspn(line, " ");

        if (strncmp(at, name, strlen(name)) != 0)
            continue;
        at += strlen(name);
        for (int i = 0; i < column; i++)
            found = strtoull(at, &at, 10);
    }
    free(line);
    fclose(file);
    return found;
}

static void disks_and_networks_are_the_kernels(void **state)
{
    char *text = malloc(4 * MIB);
    int fd = open(in(state, "file"), O_CREAT | O_RDWR, 0600);
    pace__usage before = {0}, after = {0};

    pace__usage_read(&before);
    assert_int_equal(before.write_bytes, told("/proc/self/io", "write_bytes:", 1));
    memset(text, 'x', 4 * MIB);
    assert_int_equal(write(fd, text, 4 * MIB), 4 * MIB);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    pace__usage_read(&after);
    assert_int_equal(after.write_bytes, told("/proc/self/io", "write_bytes:", 1)); /* 0 more on a tmpfs */
    assert_int_equal(after.read_bytes, told("/proc/self/io", "read_bytes:", 1));
    assert_true(after.loopback_bytes <= told("/proc/self/net/dev", "lo:", 9));
    assert_true(after.loopback_bytes >= before.loopback_bytes);
    free(text);
}

/* Invariant 1: also those of threads that are gone. */
static void counts_never_fall(void **state)
{
    pace__usage usage = {.delay_s = 1e9, .read_bytes = UINT64_MAX, .net_sent_bytes = UINT64_MAX};

    (void)state;
    pace__usage_read(&usage);
    assert_true(usage.delay_s == 1e9 && usage.read_bytes == UINT64_MAX && usage.net_sent_bytes == UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(processor_time_of_all_threads_counts),
        TEST(memory_is_seen_to_come_and_go),
        TEST(disks_and_networks_are_the_kernels),
        TEST(counts_never_fall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* metrics.jsonl of runs that last: which records are kept, and that the file does not grow for ever. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/file.h"
#include "run/records.h"

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIB ((off_t)1 << 20)

static off_t size_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void put(pace__records *records, const char *kind, double seconds, int64_t number)
{
    static const char filling[] =
        "about as many bytes as a sample has, since how soon a file is full depends on that. "
        "about as many bytes as a sample has, since how soon a file is full depends on that. "
        "about as many bytes as a sample has, since how soon a file is full depends on that. ";
    pace_field fields[] = {PACE_INT("number", number), PACE_TEXT("filling", filling)};

    records->sink.record(records->sink.user, &(pace_record){kind, seconds, fields, 2});
}

/* The numbers of all records of that kind, in order; *count of them. */
static long *numbers_of(const char *path, const char *kind, size_t *count)
{
    FILE *file = fopen(path, "r");
    char line[PACE__RECORD_LINE_MAX], begin[64];
    long *numbers = NULL;

    assert_non_null(file);
    snprintf(begin, sizeof begin, "{\"kind\":\"%s\"", kind);
    for (*count = 0; fgets(line, sizeof line, file);) {
        const char *number = strstr(line, "\"number\":");

        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        numbers = realloc(numbers, (*count + 1) * sizeof *numbers);
        numbers[(*count)++] = strtol(number + 9, NULL, 10);
    }
    fclose(file);
    return numbers;
}

/* Days of samples of eight ranks, and scores between. */
static void a_long_run_keeps_a_small_file(void **state)
{
    enum { SECONDS = 4 * 24 * 3600, RANKS = 8, SCORES = 960, STEPS = 100 };
    pace__records records;
    const char *path = in(state, "metrics.jsonl");
    size_t samples, scores, steps;

    said_clear();
    assert_ok(pace__records_open(&records, path, &said_log));
    for (int64_t second = 0; second < SECONDS; second++) {
        for (int rank = 0; rank < RANKS; rank++)
            put(&records, "sample", (double)second + 0.1 * rank, second);
        if (second % (SECONDS / SCORES) == 0)
            put(&records, "eval", (double)second, second);
        if (second % (SECONDS / STEPS) == 0)
            put(&records, "step", (double)second, second);
    }
    pace__records_close(&records);
    assert_in_range(size_of(path), 10 * MIB, 20 * MIB);
    long *kept = numbers_of(path, "sample", &samples), *eval = numbers_of(path, "eval", &scores),
         *few = numbers_of(path, "step", &steps);

    assert_int_equal(scores, SCORES);
    assert_true(kept[samples - 1] > SECONDS / 2);
    for (size_t i = RANKS; i < samples; i++) { /* all ranks at the same seconds, and less and less often */
        long gap = kept[i] - kept[i - RANKS],
             before = i >= 2 * RANKS ? kept[i - RANKS] - kept[i - 2 * RANKS] : 1;

        assert_true(gap >= before && gap <= 3 * before && kept[i / RANKS * RANKS] == kept[i]);
    }
    assert_said("samples are recorded every 2 s, and at most 16 steps in that time");
    assert_said("samples are recorded every 1024 s");
    assert_int_equal(steps, STEPS); /* they are the loss curve */
    free(few);
    free(kept);
    free(eval);
}

static void put_steps(pace__records *records, int64_t first, int64_t last)
{
    for (int64_t step = first; step < last; step++) {
        put(records, "step", (double)step * 1e-3, step);
        put(records, "resources", (double)step * 1e-3, step);
    }
}

/* Steps are counted, whatever their time; what goes with one is kept with it. A resumed run goes on as sparse. */
static void of_many_steps_some_are_kept(void **state)
{
    enum { STEPS = 200000 };
    pace__records records;
    const char *path = in(state, "metrics.jsonl");
    size_t steps, others, again;

    assert_ok(pace__records_open(&records, path, &said_log));
    put_steps(&records, 0, STEPS);
    pace__records_close(&records);
    assert_true(size_of(path) < 20 * MIB);
    long *kept = numbers_of(path, "step", &steps), *with = numbers_of(path, "resources", &others);

    assert_int_equal(steps, others);
    assert_memory_equal(kept, with, steps * sizeof *kept);
    assert_true(kept[1] == 1 && kept[steps - 1] - kept[steps - 2] >= 8);
    assert_ok(pace__records_open(&records, path, &said_log));
    put_steps(&records, STEPS, STEPS + 8);
    pace__records_close(&records);
    free(numbers_of(path, "step", &again));
    assert_int_equal(again, steps + 1);
    free(kept);
    free(with);
}

/* What a rank had said stays, though the step was not to be. */
static void going_back_keeps_samples(void **state)
{
    pace__records records;
    const char *path = in(state, "metrics.jsonl");
    pace_field step = PACE_INT("step", 9);
    size_t samples;
    char *text;
    size_t size;

    assert_ok(pace__records_open(&records, path, &said_log));
    put(&records, "sample", 1, 7);
    records.sink.record(records.sink.user, &(pace_record){"step", 2, &step, 1});
    assert_ok(pace__records_go_back(&records, 5));
    pace__records_close(&records);
    free(numbers_of(path, "sample", &samples));
    assert_int_equal(samples, 1);
    assert_ok(pace__read_file(path, 4096, &text, &size, NULL));
    assert_null(strstr(text, "\"step\""));
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_run_keeps_a_small_file),
        TEST(of_many_steps_some_are_kept),
        TEST(going_back_keeps_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

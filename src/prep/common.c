#include "prep/common.h"

#include "data/input/input.h"
#include "data/input/input_files.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- inputs --- */

typedef struct identity {
    dev_t device;
    ino_t file;
} identity;

static int by_identity(const void *left, const void *right)
{
    const identity *a = left, *b = right;

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->file < b->file ? -1 : a->file > b->file;
}

static bool identify(const char *path, identity *found)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return false;
    *found = (identity){info.st_dev, info.st_ino};
    return true;
}

/* The same file may have two names. */
static pace_status check_overlap(const char *const *inputs, size_t input_count, const char *const *tests,
                                 size_t test_count, const pace_log *log)
{
    identity *known = malloc(input_count * sizeof *known), each;
    size_t count = 0;
    pace_status status = known ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    for (size_t i = 0; i < input_count && !status; i++)
        count += identify(inputs[i], &known[count]);
    if (!status)
        qsort(known, count, sizeof *known, by_identity);
    for (size_t i = 0; i < test_count && !status; i++) {
        if (identify(tests[i], &each) && bsearch(&each, known, count, sizeof each, by_identity))
            status = pace_fail(
                log, PACE_USAGE,
                "%s: both an input and --test: a model must not be tested on its training rows", tests[i]);
    }
    free(known);
    return status;
}

/* A name that means something else in every process: what a shell calls a pipe. */
static bool is_own_stream(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static bool has_standard_input(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pace__is_standard_input(paths[i]) || is_own_stream(paths[i]))
            return true;
    }
    return false;
}

pace_status pace__prep_check_files(const char *const *inputs, size_t input_count, const char *const *tests,
                                   size_t test_count, int64_t processes, const pace_log *log)
{
    pace_status status = PACE_OK;

    if (input_count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    if (input_count + test_count > PACE__INPUT_FILES_MAX)
        return pace_fail(log, PACE_USAGE, "%zu input files: at most %u are possible",
                         input_count + test_count, PACE__INPUT_FILES_MAX);
    if (test_count > 0)
        status = check_overlap(inputs, input_count, tests, test_count, log);
    if (!status && processes > 1 &&
        (has_standard_input(inputs, input_count) || has_standard_input(tests, test_count)))
        status = pace_fail(
            log, PACE_USAGE,
            "standard input and pipes of the shell can be read by one process only: leave out --processes");
    return status;
}

pace_status pace__prep_check_bad_rows(uint64_t bad, int64_t max_bad_rows, const pace_log *log)
{
    return bad <= (uint64_t)max_bad_rows
               ? PACE_OK
               : pace_fail(log, PACE_BAD_DATA, "%" PRIu64 " bad rows, but --max-bad-rows is %" PRId64, bad,
                           max_bad_rows);
}

static uint64_t set_apart(const char *option, double fraction, uint64_t rows, const char *set,
                          const pace_log *log)
{
    uint64_t apart = (uint64_t)llround(fraction * (double)rows);

    if (fraction > 0 && apart == 0)
        pace_say(log, PACE_WARN, "--%s %g of %" PRIu64 " rows is none: there will be no %s set", option,
                 fraction, rows, set);
    return apart;
}

static pace_status refuse_division(const pace_prep_common *config, uint64_t rows, const pace_log *log)
{
    if (config->validation <= 0)
        return pace_fail(log, PACE_USAGE, "--holdout %g of %" PRIu64 " rows leaves none to train on",
                         config->holdout, rows);
    if (config->holdout <= 0)
        return pace_fail(log, PACE_USAGE, "--validation %g of %" PRIu64 " rows leaves none to train on",
                         config->validation, rows);
    return pace_fail(log, PACE_USAGE,
                     "--holdout %g and --validation %g of %" PRIu64
                     " rows leave none to train on: both are fractions of all rows",
                     config->holdout, config->validation, rows);
}

pace_status pace__prep_divide(const pace_prep_common *config, uint64_t rows, const pace_log *log,
                              uint64_t divided[PACE__SETS])
{
    uint64_t test = set_apart("holdout", config->holdout, rows, "test", log),
             validation = set_apart("validation", config->validation, rows, "validation", log);

    if (test >= rows || validation >= rows - test)
        return refuse_division(config, rows, log);
    divided[PACE__TRAIN] = rows - test - validation;
    divided[PACE__TEST] = test;
    divided[PACE__VALIDATION] = validation;
    return PACE_OK;
}

uint64_t pace__prep_rows_before(const uint64_t divided[PACE__SETS], int set)
{
    return set == PACE__TEST         ? 0
           : set == PACE__VALIDATION ? divided[PACE__TEST]
                                     : divided[PACE__TEST] + divided[PACE__VALIDATION];
}

int pace__prep_set_of(const uint64_t divided[PACE__SETS], uint64_t place)
{
    return place < divided[PACE__TEST]                               ? PACE__TEST
           : place < divided[PACE__TEST] + divided[PACE__VALIDATION] ? PACE__VALIDATION
                                                                     : PACE__TRAIN;
}

void pace__prep_say_one_class(const char *what, uint64_t rows, uint64_t positives, const char *look_at,
                              const pace_log *log)
{
    if (positives == 0 || positives == rows)
        pace_say(log, PACE_WARN, "all training %s are %s: look at %s", what,
                 positives ? "positive" : "negative", look_at);
}

int pace__prep_threads(int64_t wanted, int usual, uint64_t memory, uint64_t each, const pace_log *log)
{
    int threads = wanted ? (int)wanted : usual;
    uint64_t most = memory / each;

    if ((uint64_t)threads <= most)
        return threads;
    pace_say(log, wanted ? PACE_WARN : PACE_INFO,
             "--memory is enough for %" PRIu64 " of %d threads: each takes %" PRIu64 " MiB", most, threads,
             each >> 20);
    return (int)most;
}

int pace__prep_processes(int wanted, int cores)
{
    int most = cores * PACE__PROCESSES_PER_CORE;

    return wanted < most ? wanted : most;
}

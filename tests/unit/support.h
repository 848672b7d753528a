/*
 * support.h - what the unit tests of the data path share: a directory of their own, a log that remembers, and
 * tiny data sets that are made without prep.
 *
 *     static void my_test(void **state)
 *     {
 *         tiny_set set = tiny_make((tiny_plan){.train = 1000, .test = 100, .ids = 300, .columns = 5, .parts =
 * 3}); tiny_write(&set, in(state, "set")); assert_int_equal(pace__store_open(in(state, "set"), &store,
 * &said_log), PACE_OK);
 *         ...
 *         tiny_free(&set);
 *     }
 *     cmocka_unit_test_setup_teardown(my_test, make_directory, remove_directory)
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_SUPPORT_H
#define UNIT_SUPPORT_H

#include "base/random.h"
#include "data/store/store.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "files/sha256.h"
#include "math/batch.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a log that remembers --- */

#define SAID_MAX 65536

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[SAID_MAX]; /* every message, a line each, as "E text" */

static void said_write(void *user, pace_level level, const char *text)
{
    (void)user;
    pthread_mutex_lock(&said_lock);
    size_t used = strlen(said);

    snprintf(said + used, sizeof said - used, "%c %s\n", "EWID"[level], text);
    pthread_mutex_unlock(&said_lock);
}

static const pace_log said_log = {.write = said_write};

static inline void said_clear(void)
{
    said[0] = '\0';
}

static inline void assert_said(const char *part)
{
    if (!strstr(said, part))
        fail_msg("nothing says \"%s\"; the messages are:\n%s", part, said);
}

static inline int errors_said(void)
{
    int count = said[0] == 'E';

    for (const char *at = said; (at = strstr(at, "\nE ")); at++)
        count++;
    return count;
}

static inline void assert_ok(pace_status status)
{
    if (status)
        fail_msg("status %d; the messages are:\n%s", status, said);
}

/* The status, exactly one error, and what it says. */
static inline void assert_failed(pace_status status, pace_status expected, const char *part)
{
    if (status != expected || errors_said() != 1)
        fail_msg("status %d, not %d, with %d errors; the messages are:\n%s", status, expected, errors_said(),
                 said);
    assert_said(part);
    said_clear();
}

/* For threads: a failed cmocka assertion may jump only on the thread that runs the test. */
#define require(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s does not hold; the messages are:\n%s", __FILE__, __LINE__,            \
                    #condition, said);                                                                       \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* --- a directory for each test --- */

/* cmocka fixtures: *state is the path. */
static inline int make_directory(void **state)
{
    const char *root = getenv("TMPDIR");
    char *directory = pace__format("%s/paceline-test.XXXXXX", root && *root ? root : "/tmp");

    *state = directory;
    said_clear();
    return directory && mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    pace_status status = pace__remove_tree(*state, NULL);

    free(*state);
    return status ? -1 : 0;
}

/* A path in the test's directory; a few of them live at a time. */
static inline const char *in(void **state, const char *name)
{
    static char paths[32][512];
    static unsigned turn;
    char *path = paths[turn++ % 32];

    int size = snprintf(path, sizeof paths[0], "%s/%s", (const char *)*state, name);

    assert_true(size > 0 && (size_t)size < sizeof paths[0]);
    return path;
}

static inline void put_text(const char *path, const char *text)
{
    assert_int_equal(pace__write_file_atomically(path, text, strlen(text), NULL), PACE_OK);
}

static inline char *get_text(const char *path)
{
    char *bytes;
    size_t size;

    assert_ok(pace__read_file(path, 1 << 26, &bytes, &size, &said_log));
    return bytes;
}

static inline void copy_file(const char *from, const char *to)
{
    char *bytes;
    size_t size;

    assert_ok(pace__read_file(from, 1 << 26, &bytes, &size, &said_log));
    assert_ok(pace__write_file_atomically(to, bytes, size, &said_log));
    free(bytes);
}

/* Files and directories in it, hidden ones too. */
static inline size_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    size_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static inline void hash_file(const char *path, char hex[PACE__SHA256_HEX])
{
    assert_ok(pace__sha256_file(path, hex, &said_log));
}

static inline void assert_same_file(const char *left, const char *right)
{
    char a[PACE__SHA256_HEX], b[PACE__SHA256_HEX];

    hash_file(left, a);
    hash_file(right, b);
    if (strcmp(a, b) != 0)
        fail_msg("%s and %s differ", left, right);
}

/* --- tiny data sets --- */

typedef struct tiny_plan {
    uint64_t train, test, validation; /* rows */
    uint32_t ids;                     /* compact ids; original ids are 5 * id + 3 */
    uint32_t columns;                 /* 0: rows of 0 to 2 * entries ids */
    uint32_t entries;                 /* mean length of a row without columns; 0: 6 */
    bool has_values;
    bool unseen; /* some entries are "never seen in training" */
    uint32_t parts;
    uint64_t seed;
} tiny_plan;

typedef struct tiny_rows {
    uint64_t *start; /* (rows + 1) with columns too */
    uint32_t *ids;
    float *values;
    uint8_t *label;
} tiny_rows;

typedef struct tiny_set {
    tiny_plan plan;
    pace__store_info info;
    tiny_rows rows[PACE__SETS];
} tiny_set;

static inline void *tiny_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes + 1);

    assert_non_null(memory);
    return memory;
}

/* The planted weight of an id: what a model should find. */
static inline float tiny_weight(uint32_t id)
{
    return (float)(pace__mix64(id + 17) >> 40) * 0x1p-23f - 1;
}

static inline uint32_t tiny_id(const tiny_plan *plan, uint32_t column, pace__random *random)
{
    uint32_t low = 0, high = plan->ids;

    if (plan->columns) {
        low = (uint32_t)((uint64_t)plan->ids * column / plan->columns);
        high = (uint32_t)((uint64_t)plan->ids * (column + 1) / plan->columns);
    }
    if (plan->unseen && pace__random_below(random, 8) == 0)
        return plan->ids;
    /* Small ids are frequent, as prep numbers them. */
    return low + (uint32_t)((double)(high - low) * pow(pace__random_unit(random), 2));
}

/* Rows of one set. Without columns the ids of a row rise, as prep leaves them. */
static inline tiny_rows tiny_fill(const tiny_plan *plan, uint64_t rows, pace__random *random)
{
    uint32_t mean = plan->entries ? plan->entries : 6, most = plan->columns ? plan->columns : 2 * mean;
    tiny_rows set = {tiny_alloc((rows + 1) * 8), tiny_alloc(rows * most * 4), tiny_alloc(rows * most * 4),
                     tiny_alloc(rows)};

    for (uint64_t row = 0; row < rows; row++) {
        uint64_t at = set.start[row];
        uint32_t count = plan->columns ? plan->columns : (uint32_t)pace__random_below(random, most + 1);
        double logit = -0.5;
        uint32_t last = UINT32_MAX;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = tiny_id(plan, i, random);
            float value = plan->has_values ? (float)(int)pace__random_below(random, 9) * 0.25f - 0.75f : 1;

            if (!plan->columns && last != UINT32_MAX && id <= last)
                continue;
            set.ids[at] = last = id;
            set.values[at++] = value;
            logit += id < plan->ids ? tiny_weight(id) * value : 0;
        }
        set.start[row + 1] = at;
        set.label[row] = pace__random_unit(random) < 1 / (1 + exp(-logit));
    }
    return set;
}

static inline void tiny_measure(tiny_set *set)
{
    const tiny_plan *plan = &set->plan;

    set->info =
        (pace__store_info){.encoding = {.kind = PACE__NUMBERED, .features = 5 * (uint64_t)plan->ids + 3},
                           .columns = plan->columns,
                           .has_values = plan->has_values,
                           .ids_seen = plan->ids,
                           .parts = plan->parts ? plan->parts : 1,
                           .seed = (int64_t)plan->seed,
                           .rows = {plan->train, plan->test, plan->validation},
                           .command = "made by a test"};
    for (int i = 0; i < PACE__SETS; i++) {
        set->info.entries[i] = set->rows[i].start[set->info.rows[i]];
        for (uint64_t row = 0; row < set->info.rows[i]; row++) {
            uint64_t length = set->rows[i].start[row + 1] - set->rows[i].start[row];

            if (length > set->info.row_entries_max)
                set->info.row_entries_max = (uint32_t)length;
        }
    }
}

static inline tiny_set tiny_make(tiny_plan plan)
{
    pace__random random = pace__random_at(plan.seed, 1);
    tiny_set set = {.plan = plan};

    set.rows[PACE__TRAIN] = tiny_fill(&plan, plan.train, &random);
    set.rows[PACE__TEST] = tiny_fill(&plan, plan.test, &random);
    set.rows[PACE__VALIDATION] = tiny_fill(&plan, plan.validation, &random);
    tiny_measure(&set);
    return set;
}

static inline void tiny_free(tiny_set *set)
{
    for (int i = 0; i < PACE__SETS; i++) {
        free(set->rows[i].start);
        free(set->rows[i].ids);
        free(set->rows[i].values);
        free(set->rows[i].label);
    }
}

/* All rows of a set as a model sees them. */
static inline pace__rows tiny_view(const tiny_set *set, int which)
{
    const tiny_rows *rows = &set->rows[which];

    return (pace__rows){.rows = set->info.rows[which],
                        .columns = set->info.columns,
                        .start = set->info.columns ? NULL : rows->start,
                        .ids = rows->ids,
                        .values = set->info.has_values ? rows->values : NULL,
                        .label = rows->label};
}

static inline void tiny_put(const pace__part *part, uint64_t at, const void *from, size_t bytes)
{
    assert_ok(pace__pwrite_all(part->fd, from, bytes, at, part->path, &said_log));
}

static inline void tiny_write_rows(const tiny_set *set, int which, const pace__part *part, uint64_t first)
{
    const tiny_rows *rows = &set->rows[which];
    const pace__part_set *to = &part->sets[which];
    uint64_t base = rows->start[first];

    tiny_put(part, to->label_at, rows->label + first, to->rows);
    tiny_put(part, to->ids_at, rows->ids + base, to->entries * 4);
    if (set->info.has_values)
        tiny_put(part, to->values_at, rows->values + base, to->entries * 4);
    for (uint64_t row = 0; !set->info.columns && row <= to->rows; row++) {
        uint64_t start = rows->start[first + row] - base;

        tiny_put(part, to->start_at + row * 8, &start, 8);
    }
}

/* What part->sets[which].lead is, for a part whose first row is `first`. */
static inline uint64_t tiny_lead(const pace__store_info *info, uint64_t first)
{
    return first % pace__sum_rows(&info->encoding);
}

/* All rows of the part are in their places. */
static inline void tiny_finish(const pace__store_info *info, pace__part *part)
{
    for (int which = 0; which < PACE__SETS; which++)
        assert_ok(pace__sums_again(info, part, which, 0, part->sets[which].rows, &said_log));
    assert_ok(pace__part_sync(part, &said_log));
    pace__part_close(part);
}

/* As if an earlier version had written the set: of its rows, only what is out of range is noticed. */
static inline void tiny_forget_sums(pace__store *store)
{
    for (uint32_t i = 0; i < store->info.parts; i++) {
        for (int which = 0; which < PACE__SETS; which++) {
            free(store->parts[i].sets[which].checked);
            store->parts[i].sets[which].checked = NULL;
        }
    }
}

static inline uint64_t tiny_part_first(const tiny_set *set, int which, uint32_t part)
{
    return set->info.rows[which] * part / set->info.parts;
}

/* As prep would leave it. */
static inline void tiny_write(const tiny_set *set, const char *directory)
{
    uint64_t *original = tiny_alloc(set->info.ids_seen * sizeof *original);

    assert_ok(pace__make_dirs(directory, &said_log));
    for (uint32_t i = 0; i < set->info.parts; i++) {
        pace__part part = {.fd = -1};

        for (int which = 0; which < PACE__SETS; which++) {
            uint64_t first = tiny_part_first(set, which, i), last = tiny_part_first(set, which, i + 1);

            part.sets[which].lead = tiny_lead(&set->info, first);
            part.sets[which].rows = last - first;
            part.sets[which].entries = set->rows[which].start[last] - set->rows[which].start[first];
        }
        assert_ok(pace__part_create(directory, i, &set->info, &part, &said_log));
        for (int which = 0; which < PACE__SETS; which++) {
            if (set->info.rows[which] > 0)
                tiny_write_rows(set, which, &part, tiny_part_first(set, which, i));
        }
        tiny_finish(&set->info, &part);
    }
    for (uint32_t id = 0; id < set->info.ids_seen; id++)
        original[id] = 5 * (uint64_t)id + 3;
    assert_ok(pace__ids_write(directory, original, set->info.ids_seen, &said_log));
    free(original);
}

#endif

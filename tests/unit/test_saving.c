/* One part of a checkpoint: copied, written in the background, reported once. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "roles/saving.h"
#include "threads/thread.h"

#include "support.h"

#define WIDTH     2
#define SECONDS   30 /* within which anything is written */
#define PLACES    1000
#define BIG_BYTES ((size_t)32 << 20) /* takes a while to write */

static void fill(float *to, size_t count, float first)
{
    for (size_t i = 0; i < count; i++)
        to[i] = first + (float)i;
}

static void begin_rows(pace__part_saver *saver, const char *directory, uint64_t places, unsigned width,
                       const float *from)
{
    assert_ok(pace__part_saver_begin(saver, directory, 0, 1, places, width, &said_log));
    assert_non_null(saver->copy);
    if (places > 0)
        memcpy(saver->copy, from, (size_t)places * width * sizeof *from);
}

static void begin(pace__part_saver *saver, const char *directory, uint64_t places, const float *from)
{
    begin_rows(saver, directory, places, WIDTH, from);
}

static void await(pace__part_saver *saver)
{
    uint64_t start_ns = pace__now_ns();
    unsigned turns = 0;

    while (!pace__part_saver_done(saver)) {
        if (pace__seconds_since(start_ns) > SECONDS)
            fail_msg("not done after %d s", SECONDS);
        pace__back_off(&turns);
    }
}

/* What the part holds, as a checkpoint of one. */
static void assert_holds_rows(const char *directory, const pace__part_record *record, uint64_t places,
                              unsigned width, float first)
{
    pace__part_record part = *record;
    pace__manifest manifest = {.incarnation = 1,
                               .position = {.step = 3, .best_logloss = INFINITY, .last_epoch_loss = NAN},
                               .keys = places,
                               .width = width,
                               .job = "rows=1",
                               .parts = 1,
                               .part = &part};
    float *found = tiny_alloc((size_t)places * width * sizeof *found);

    assert_ok(pace__checkpoint_commit(directory, &manifest, &said_log));
    assert_ok(pace__checkpoint_load(directory, &manifest, found, &said_log));
    for (size_t i = 0; i < (size_t)places * width; i++)
        assert_true(found[i] == first + (float)i);
    free(found);
}

static void assert_holds(const char *directory, const pace__part_record *record, uint64_t places, float first)
{
    assert_holds_rows(directory, record, places, WIDTH, first);
}

static char *make_checkpoint(void **state, uint64_t step)
{
    char *directory;

    assert_ok(pace__checkpoint_begin(*state, step, 1, &said_log, &directory));
    return directory;
}

/* --- */

/* Training goes on with the parameters as soon as they are copied. */
static void a_copy_is_what_it_was(void **state)
{
    static float parameters[PLACES * WIDTH];
    pace__part_saver saver = {0};

    for (uint64_t step = 1; step <= 5; step++) { /* the same saver again and again */
        char *directory = make_checkpoint(state, step);

        fill(parameters, PLACES * WIDTH, (float)step);
        begin(&saver, directory, PLACES, parameters);
        memset(parameters, 0, sizeof parameters);
        pace__part_saver_write(&saver);
        memset(parameters, 0xff, sizeof parameters);
        await(&saver);
        assert_int_equal(saver.status, PACE_OK);
        assert_string_equal(saver.reason, "");
        assert_string_equal(saver.record.name, "part-00000-of-00001.safetensors");
        assert_holds(directory, &saver.record, PLACES, (float)step);
        free(directory);
    }
    pace__part_saver_close(&saver);
    assert_string_equal(said, "");
}

static void done_is_said_once(void **state)
{
    static float parameters[PLACES * WIDTH];
    char *directory = make_checkpoint(state, 1);
    pace__part_saver saver = {0};

    assert_false(pace__part_saver_done(&saver)); /* nothing was begun */
    begin(&saver, directory, PLACES, parameters);
    assert_false(pace__part_saver_done(&saver)); /* nor written */
    pace__part_saver_write(&saver);
    assert_true(saver.under_way);
    await(&saver);
    assert_false(saver.under_way);
    for (int i = 0; i < 3; i++)
        assert_false(pace__part_saver_done(&saver));
    pace__part_saver_close(&saver);
    free(directory);
}

/* Whoever decides what a failure means tells it: here it is only kept. */
static void a_failure_is_kept(void **state)
{
    static float parameters[PLACES * WIDTH];
    char *directory = make_checkpoint(state, 1);
    pace__part_saver saver = {0};

    fill(parameters, PLACES * WIDTH, 7);
    begin(&saver, in(state, "missing"), PLACES, parameters);
    pace__part_saver_write(&saver);
    await(&saver);
    assert_int_equal(saver.status, PACE_IO);
    assert_non_null(strstr(saver.reason, in(state, "missing/part-00000-of-00001.safetensors")));
    assert_non_null(strstr(saver.reason, "No such file"));
    assert_string_equal(said, "");
    begin(&saver, directory, PLACES, parameters); /* and the next is none the worse for it */
    pace__part_saver_write(&saver);
    await(&saver);
    assert_int_equal(saver.status, PACE_OK);
    assert_string_equal(saver.reason, "");
    assert_holds(directory, &saver.record, PLACES, 7);
    pace__part_saver_close(&saver);
    assert_string_equal(said, "");
    free(directory);
}

/* The file is whole, or not there: a saver that is closed has let go of its thread. */
static void closing_waits(void **state)
{
    uint64_t places = BIG_BYTES / WIDTH / sizeof(float);
    float *parameters = tiny_alloc(BIG_BYTES);
    char *directory = make_checkpoint(state, 1);
    pace__part_saver saver = {0};
    struct stat info;

    pace__part_saver_close(&saver); /* one that was never used */
    begin(&saver, directory, places, parameters);
    pace__part_saver_write(&saver);
    pace__part_saver_close(&saver);
    assert_true(!saver.under_way && !saver.copy && !saver.background);
    char *path = pace__format("%s/part-00000-of-00001.safetensors", directory);

    assert_int_equal(stat(path, &info), 0);
    assert_true((size_t)info.st_size > BIG_BYTES);
    assert_int_equal(count_entries(directory), 1); /* no temporary file */
    begin(&saver, directory, places, parameters);  /* begun, and never written */
    pace__part_saver_close(&saver);
    free(path);
    free(directory);
    free(parameters);
}

/* Keys with a row of parameters each; one saver for jobs of any width. */
static void rows_may_be_long(void **state)
{
    static const unsigned widths[] = {3, 300, 3 * 4096, PACE__CHECKPOINT_WIDTH_MAX};
    float *parameters = tiny_alloc((size_t)7 * PACE__CHECKPOINT_WIDTH_MAX * sizeof *parameters);
    pace__part_saver saver = {0};

    fill(parameters, (size_t)7 * PACE__CHECKPOINT_WIDTH_MAX, 1);
    for (uint64_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char *directory = make_checkpoint(state, i + 1);

        begin_rows(&saver, directory, 7, widths[i], parameters);
        pace__part_saver_write(&saver);
        await(&saver);
        assert_int_equal(saver.status, PACE_OK);
        assert_holds_rows(directory, &saver.record, 7, widths[i], 1);
        free(directory);
    }
    pace__part_saver_close(&saver);
    assert_string_equal(said, "");
    free(parameters);
}

/* A shard may have no keys at all. */
static void a_part_may_be_empty(void **state)
{
    char *directory = make_checkpoint(state, 1);
    pace__part_saver saver = {0};

    assert_ok(pace__part_saver_begin(&saver, directory, 2, 3, 0, WIDTH, &said_log));
    pace__part_saver_write(&saver);
    await(&saver);
    assert_int_equal(saver.status, PACE_OK);
    assert_string_equal(saver.record.name, "part-00002-of-00003.safetensors");
    pace__part_saver_close(&saver);
    free(directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_what_it_was), TEST(done_is_said_once), TEST(a_failure_is_kept),
        TEST(closing_waits),         TEST(rows_may_be_long),  TEST(a_part_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rates and passes that fit a data set: what sets that were tried get, where they begin and end, and that nobody knows is an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/defaults.h"

static pace__dataset set_of(uint64_t rows, uint32_t ids, double entries)
{
    return (pace__dataset){
        .kind = PACE__ROWS_SPARSE, .rows = rows, .ids = ids, .entries = (uint64_t)((double)rows * entries)};
}

static void assert_defaults(pace__dataset data, double rate, int64_t epochs)
{
    if (pace__sparse_rate(&data) != rate || pace__sparse_epochs(&data) != epochs)
        fail_msg("%u rows, %u ids: %g and %d, not %g and %d", (unsigned)data.rows, data.ids,
                 pace__sparse_rate(&data), (int)pace__sparse_epochs(&data), rate, (int)epochs);
}

static void sets_that_were_tried(void **state)
{
    (void)state;
    assert_defaults(set_of(900000, 1187441, 39), 0.07, 1);
    assert_defaults(set_of(8000, 60000, 39), 0.07, 1);
    assert_defaults(set_of(26049, 123, 13.87), 0.14, 10);
    assert_defaults(set_of(39800, 300, 11.65), 0.17, 10);
    assert_defaults(set_of(640, 105, 13.87), 0.14, 1); /* too few rows to pass often */
    assert_defaults(set_of(90000, 2000, 39), 0.07, 1); /* rows of many entries */
}

static void rates_have_limits(void **state)
{
    (void)state;
    for (double entries = 1; entries < 1000; entries *= 1.1) {
        pace__dataset data = set_of(1000000, 100, entries);

        assert_true(pace__sparse_rate(&data) >= 0.07 && pace__sparse_rate(&data) <= 0.3);
    }
    assert_defaults(set_of(1000000, 10, 1), 0.3, 1);
}

static void passes_become_fewer_with_rows(void **state)
{
    (void)state;
    assert_defaults(set_of(50000, 100, 20), 0.1, 10);
    assert_defaults(set_of(100000, 100, 20), 0.1, 5);
    assert_defaults(set_of(500000, 100, 20), 0.1, 1);
    assert_defaults(set_of(UINT64_C(1) << 40, 100, 20), 0.1, 1);
    assert_defaults(set_of(999, 100, 20), 0.1, 1);
    assert_defaults(set_of(1000, 100, 20), 0.1, 10);
}

static void what_is_not_known_changes_nothing(void **state)
{
    pace__dataset values = set_of(50000, 100, 10);

    (void)state;
    assert_defaults((pace__dataset){0}, 0.07, 1); /* --help */
    assert_defaults(set_of(1000, 100, 0), 0.07, 10);
    values.has_values = 1; /* they may be of any size */
    assert_true(pace__sparse_rate(&values) == 0.07);
}

/* Of a factorization machine. */
static void pairs_move_a_prediction_too(void **state)
{
    pace__dataset clicks = set_of(900000, 1187441, 39), a9a = set_of(26049, 123, 13.87),
                  w8a = set_of(39800, 300, 11.65), none = {0};

    (void)state;
    assert_true(pace__pairs_rate(&clicks) == 0.03);
    assert_true(pace__pairs_rate(&a9a) == 0.07);
    assert_true(pace__pairs_rate(&w8a) == 0.09);
    assert_true(pace__pairs_rate(&none) == 0.07);
    w8a.has_values = 1;
    assert_true(pace__pairs_rate(&w8a) == 0.07);
    for (double entries = 1; entries < 1000; entries *= 1.1) {
        pace__dataset data = set_of(1000000, 100, entries);

        assert_true(pace__pairs_rate(&data) >= 0.03 && pace__pairs_rate(&data) <= 0.15);
    }
}

static void assert_texts(uint64_t rows, uint32_t columns, bool is_long, int64_t epochs)
{
    pace__dataset data = {
        .kind = PACE__ROWS_TEXT, .rows = rows, .columns = columns, .entries = rows * columns};

    if (pace__long_texts(&data) != is_long || pace__text_epochs(&data, 128) != epochs)
        fail_msg("%u rows of %u words: long %d, epochs %d", (unsigned)rows, columns, pace__long_texts(&data),
                 (int)pace__text_epochs(&data, 128));
}

static void long_texts_are_read_otherwise(void **state)
{
    pace__dataset sparse = set_of(1000, 100, 300);

    (void)state;
    assert_texts(100000, 100, false, 3);
    assert_texts(1000, 100, false, 3); /* few short texts: more passes cost more than they teach */
    assert_texts(100000, 101, true, 4);
    assert_texts(1066, 120, true, 8);
    assert_texts(2000, 430, true, 5);
    assert_texts(2048, 430, true, 4);
    assert_texts(1, 1000, true, 8);
    assert_texts(UINT64_C(1) << 40, 1000, true, 4);
    assert_texts(0, 0, false, 3); /* --help */
    sparse.columns = 300;
    assert_false(pace__long_texts(&sparse));
}

static void few_pictures_are_passed_more_often(void **state)
{
    static const struct {
        uint64_t rows;
        int64_t batch, epochs;
    } cases[] = {{0, 128, 10},    {1, 128, 40},   {800, 128, 40},
                 {1600, 128, 21}, {1600, 32, 10}, {60000, 128, 10}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__dataset data = {.kind = PACE__ROWS_PICTURES, .rows = cases[i].rows};

        assert_int_equal(pace__picture_epochs(&data, cases[i].batch), cases[i].epochs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_that_were_tried),
        cmocka_unit_test(rates_have_limits),
        cmocka_unit_test(passes_become_fewer_with_rows),
        cmocka_unit_test(what_is_not_known_changes_nothing),
        cmocka_unit_test(pairs_move_a_prediction_too),
        cmocka_unit_test(long_texts_are_read_otherwise),
        cmocka_unit_test(few_pictures_are_passed_more_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The cells of a study: what options and kinds make of them, and prices. Plain values. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "study/matrix.h"
#include "study/prices.h"

#include <paceline/study.h>
#include <paceline/train.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The cells of a matrix as one text, " | " between two; static. */
static const char *cells_of(const pace__matrix *matrix)
{
    static char text[8192];
    pace__cell_of *cells;
    size_t count;
    char words[PACE__CELL_TEXT];

    assert_ok(pace__matrix_cells(matrix, &said_log, &cells, &count));
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " | " : "",
                 pace__cell_words(&cells[i], matrix->kind == PACE__PREP, words));
    free(cells);
    return text;
}

static pace__numbers axis(pace__study_axis which, const char *text)
{
    pace__numbers numbers = {0};

    assert_ok(pace__axis_read(which, text, &said_log, &numbers));
    return numbers;
}

static void a_kind_varies_one_axis(void **state)
{
    (void)state;
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__SCALING, .slots = 4}),
                        "allreduce, 1 worker | allreduce, 2 workers | allreduce, 4 workers");
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__SCALING, .slots = 1}),
                        "allreduce, 1 worker | allreduce, 2 workers");
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__SERVERS, .slots = 2}),
                        "ps-sync, 2 workers, 0 ps | ps-sync, 2 workers, 1 ps | ps-sync, 2 workers, 2 ps");
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__BATCH, .network = true}),
                        "ps-sync, 2 workers, 0 ps, batch 32 | ps-sync, 2 workers, 0 ps, batch 128 | "
                        "ps-sync, 2 workers, 0 ps, batch 512");
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__BALANCE}),
                        "allreduce, 2 workers | allreduce, 2 workers, balance epoch | allreduce, 2 workers, "
                        "balance auto");
    assert_string_equal(cells_of(&(pace__matrix){.kind = PACE__PREP, .slots = 2}), "1 process | 2 processes");
}

/* Servers say nothing to all-reduce, workers nothing to mode local: there are no cells twice. */
static void axes_that_say_nothing_are_left_out(void **state)
{
    pace__matrix matrix = {.kind = PACE__MODES,
                           .axis = {[PACE__AXIS_MODE] = axis(PACE__AXIS_MODE, "local,allreduce,ps-async"),
                                    [PACE__AXIS_WORKERS] = axis(PACE__AXIS_WORKERS, "2,4"),
                                    [PACE__AXIS_PS] = axis(PACE__AXIS_PS, "0,1")}};

    (void)state;
    assert_string_equal(
        cells_of(&matrix),
        "local, 1 worker | allreduce, 2 workers | allreduce, 4 workers | ps-async, 2 workers, "
        "0 ps | ps-async, 4 workers, 0 ps | ps-async, 2 workers, 1 ps | ps-async, 4 workers, 1 ps");
    matrix = (pace__matrix){.kind = PACE__BALANCE,
                            .axis = {[PACE__AXIS_MODE] = axis(PACE__AXIS_MODE, "ps-async")}};
    assert_string_equal(cells_of(&matrix), "ps-async, 2 workers, 0 ps");
}

static void weak_has_the_same_steps_of_larger_batches(void **state)
{
    pace__matrix matrix = {.kind = PACE__WEAK, .rows = 1001, .batch_usual = 100, .slots = 2};
    pace__cell_of *cells;
    size_t count;

    (void)state;
    assert_ok(pace__matrix_cells(&matrix, &said_log, &cells, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(cells[i].batch, 100 * cells[i].workers);
        assert_int_equal(cells[i].steps, 11);
    }
    free(cells);
    assert_int_equal(pace__matrix_workers_max(&matrix), 2);
}

static void batches_have_the_same_rows(void **state)
{
    pace__matrix matrix = {.kind = PACE__BATCH, .rows = 20000};
    pace__cell_of *cells;
    size_t count;

    (void)state;
    assert_ok(pace__matrix_cells(&matrix, &said_log, &cells, &count));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(cells[i].batch * cells[i].steps, 20000);
    free(cells);
}

static void lists_are_read(void **state)
{
    pace__numbers numbers = axis(PACE__AXIS_BATCH, "100,1k,1M,100");

    (void)state;
    assert_int_equal(numbers.count, 3);
    assert_int_equal(numbers.value[1], 1000);
    assert_int_equal(numbers.value[2], 1000000);
    assert_int_equal(axis(PACE__AXIS_MODE, "ps-ssp").value[0], PACE_MODE_PS_SSP);
    assert_int_equal(axis(PACE__AXIS_BALANCE, "auto,off").value[0], 2);
}

static void wrong_lists_are_refused(void **state)
{
    static const struct {
        pace__study_axis axis;
        const char *text, *said;
    } cases[] = {
        {PACE__AXIS_WORKERS, "1,,2", "--workers: \"\""},
        {PACE__AXIS_WORKERS, "0", "--workers: \"0\""},
        {PACE__AXIS_WORKERS, "1,2000", "--workers: \"2000\""},
        {PACE__AXIS_PS, "-1", "--ps: \"-1\""},
        {PACE__AXIS_BATCH, "1;2", "--batch: \"1;2\""},
        {PACE__AXIS_MODE, "auto", "unknown mode 'auto'"},
        {PACE__AXIS_MODE, "ps-snyc", "did you mean ps-sync?"},
        {PACE__AXIS_BALANCE, "on", "there is: off, epoch, auto"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__numbers numbers = {.count = 7};

        said_clear();
        assert_int_equal(pace__axis_read(cases[i].axis, cases[i].text, &said_log, &numbers), PACE_USAGE);
        assert_said(cases[i].said);
        assert_int_equal(numbers.count, 7); /* as it was */
    }
}

static void too_many_cells_are_refused(void **state)
{
    pace__matrix matrix = {.kind = PACE__MODES};
    pace__cell_of *cells;
    size_t count;

    (void)state;
    for (int i = 0; i < PACE__AXIS_MAX; i++) {
        matrix.axis[PACE__AXIS_WORKERS].value[i] = matrix.axis[PACE__AXIS_BATCH].value[i] = i + 1;
    }
    matrix.axis[PACE__AXIS_WORKERS].count = matrix.axis[PACE__AXIS_BATCH].count = PACE__AXIS_MAX;
    assert_int_equal(pace__matrix_cells(&matrix, &said_log, &cells, &count), PACE_USAGE);
    assert_said("a study has room for");
}

/* --- prices --- */

static void prices_are_read(void **state)
{
    pace__prices prices;

    (void)state;
    assert_ok(pace__prices_parse("# types\n\nsmall 0.09 EUR\r\nlarge  0.36 EUR slots=4 speed=1.5 # fast\n",
                                 "p", &said_log, &prices));
    assert_int_equal(prices.count, 2);
    assert_int_equal(prices.of[0].slots, 1);
    assert_int_equal(prices.of[1].slots, 4);
    pace__bill bill = pace__bill_of(&prices.of[1], 5, 3600);

    assert_int_equal(bill.machines, 2);
    assert_true(bill.seconds == 2400);
    assert_true(bill.money > 0.4799 && bill.money < 0.4801);
}

static void wrong_prices_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"", "there is no machine type in it"},
        {"small 0.1", "p:1: a line has a name, a price"},
        {"small free EUR", "p:1: 'free' is no price"},
        {"small -1 EUR", "p:1: '-1' is no price"},
        {"small 1 euro", "p:1: 'euro' is no currency"},
        {"small 1 EUR\nlarge 2 USD",
         "p:2: the price of large is in USD, that of small in EUR: all must be in one currency"},
        {"small 1 EUR\nsmall 2 EUR", "p:2: small has a price already"},
        {"small 1 EUR slots=0", "p:1: 'slots=0'"},
        {"small 1 EUR slots=1.5", "p:1: 'slots=1.5'"},
        {"small 1 EUR cores=4", "p:1: 'cores=4'"},
        {"a 1 EUR b c d e f g", "p:1: more than 8 words"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__prices prices = {.count = 3};

        said_clear();
        assert_int_equal(pace__prices_parse(cases[i][0], "p", &said_log, &prices), PACE_USAGE);
        assert_said(cases[i][1]);
        assert_int_equal(prices.count, 3);
    }
}

/* There may be a thousand, and each asks its hosts. */
static void a_stop_is_heard_while_cells_are_checked(void **state)
{
    _Atomic int stop = 1;
    pace_study_config config = {.kind = "scaling",
                                .data = "nowhere",
                                .model = "logreg",
                                .output = "nowhere",
                                .repeat = 1,
                                .dry_run = true,
                                .stop = &stop};
    pace_study_result result;

    (void)state;
    said_clear();
    assert_int_equal(pace_study(&config, &said_log, NULL, &result), PACE_INTERRUPTED);
    assert_said("nothing was run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_varies_one_axis),
        cmocka_unit_test(axes_that_say_nothing_are_left_out),
        cmocka_unit_test(weak_has_the_same_steps_of_larger_batches),
        cmocka_unit_test(batches_have_the_same_rows),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(wrong_lists_are_refused),
        cmocka_unit_test(too_many_cells_are_refused),
        cmocka_unit_test(prices_are_read),
        cmocka_unit_test(wrong_prices_are_refused),
        cmocka_unit_test(a_stop_is_heard_while_cells_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The rows of texts and clicks that a model gets wrong: all of them, in words, the surest first, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "score/wrong_rows.h"

#include "text_models.h"

#define TESTS 100 /* of the fixture */

static size_t lines_of(const char *text)
{
    size_t lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static pace_status eval_errors(void **state, const char *model, bool force)
{
    pace_eval_config config = {
        .run = in(state, model), .data = in(state, "set"), .errors = in(state, "errors"), .force = force};
    pace_scores scores;

    return pace_eval(&config, &said_log, NULL, &scores);
}

/* "part-00001.h5", row and label of a line, and what is behind them; the row of the set. */
static size_t read_place(char **at, const tiny_texts *set, unsigned *label, double *probability)
{
    unsigned part;
    size_t row;
    int used;

    assert_int_equal(sscanf(*at, "part-%u.h5\t%zu\t%u\t%lf\t%n", &part, &row, label, probability, &used), 4);
    *at += used;
    return tiny_texts_first(set, PACE__TEST, part) + row;
}

/* The words of a row, and the end of the line. */
static void assert_words(char **at, const fixture *self, const pace__rows *rows, size_t row)
{
    for (uint32_t i = 0; i < rows->length[row]; i++) {
        pace__word word = pace__vocabulary_word(self->set.vocabulary, pace__row_words(rows, row)[i]);

        assert_memory_equal(*at, word.text, word.size);
        assert_int_equal((*at)[word.size], i + 1 < rows->length[row] ? ' ' : '\n');
        *at += word.size + 1;
    }
}

static void texts_in_words(void **state)
{
    fixture self = make_fixture(state, true);
    pace__rows rows = tiny_texts_view(&self.set, PACE__TEST);

    for (int m = 0; m < 2; m++) {
        float logits[TESTS];
        size_t wrong = 0;
        double last = 1;

        expected_logits(&self, models[m], &rows, logits);
        for (size_t i = 0; i < TESTS; i++)
            wrong += (logits[i] > 0) != rows.label[i];
        assert_ok(eval_errors(state, models[m], m > 0));
        char *text = get_text(in(state, "errors")), *at = text;

        assert_true(wrong > 5);
        assert_int_equal(lines_of(text), wrong);
        for (size_t i = 0; i < wrong; i++) {
            unsigned label;
            double probability;
            size_t row = read_place(&at, &self.set, &label, &probability);

            assert_int_equal(label, rows.label[row]);
            assert_float_equal(probability, 1 / (1 + exp(-(double)logits[row])), 1e-5);
            assert_true((probability > 0.5) != label);
            assert_true(fabs(probability - 0.5) <= last);
            last = fabs(probability - 0.5);
            assert_words(&at, &self, &rows, row);
        }
        free(text);
    }
    free_fixture(&self);
}

static void other_files_are_left_alone(void **state)
{
    fixture self = make_fixture(state, false);
    size_t entries = count_entries(*state);

    put_text(in(state, "errors"), "precious");
    assert_failed(eval_errors(state, "linear", false), PACE_USAGE, "--force");
    char *text = get_text(in(state, "errors"));

    assert_string_equal(text, "precious");
    free(text);
    said_clear();
    assert_ok(eval_errors(state, "linear", true));
    assert_int_equal(count_entries(*state), entries + 1);
    free_fixture(&self);
}

/* A model that takes every row for a 1: id 5 i + 3 is the data set's, as "?" is what no training row has. */
static void clicks_by_feature(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = 30, .test = 80, .ids = 20, .unseen = true, .has_values = true});
    pace__rows rows = tiny_view(&set, PACE__TEST);
    uint64_t original[] = {3};
    size_t wrong = 0;

    for (size_t i = 0; i < rows.rows; i++)
        wrong += !rows.label[i];
    tiny_write(&set, in(state, "set"));
    linear_write(in(state, "clicks"), &set.info.encoding, original, (float[]){0}, 1, 1, 0.25f, NULL);
    assert_ok(eval_errors(state, "clicks", false));
    char *text = get_text(in(state, "errors")), *at = text;

    assert_int_equal(lines_of(text), wrong);
    for (size_t row = 0; row < rows.rows; row++) { /* all are as sure: they are in order */
        char place[64];

        if (rows.label[row])
            continue;
        snprintf(place, sizeof place, "part-00000.h5\t%zu\t0\t0.562176501\t", row);
        assert_memory_equal(at, place, strlen(place));
        at += strlen(place);
        for (uint64_t i = rows.start[row]; i < rows.start[row + 1]; i++) {
            char name[16] = "?", expected[64];

            if (rows.ids[i] < 20)
                snprintf(name, sizeof name, "%u", 5 * rows.ids[i] + 3);
            snprintf(expected, sizeof expected, "%s:%.6g", name, (double)rows.values[i]);
            assert_memory_equal(at, expected, strlen(expected));
            at += strlen(expected) + (i + 1 < rows.start[row + 1]);
        }
        assert_int_equal(*at++, '\n');
    }
    free(text);
    tiny_free(&set);
}

/* Mistakes that are made up: whatever the order in which they come, the surest are kept. */
static void memory_is_bounded(void **state)
{
    fixture self = make_fixture(state, false);
    pace__rows rows = tiny_texts_view(&self.set, PACE__TEST);
    pace_eval_config config = {.run = in(state, "linear"), .data = in(state, "set")};
    pace__scorer scorer;
    pace__store store;
    pace__wrong_rows wrong;

    config.errors = in(state, "errors");
    assert_ok(pace__scorer_open(config.run, &said_log, &scorer));
    assert_ok(pace__store_open(config.data, &store, &said_log));
    assert_ok(pace__wrong_rows_open(&store, &scorer, PACE__TEST, &config, 2000, &wrong, &said_log));
    for (size_t i = 0; i < TESTS; i++) {
        pace__mistake mistake = {
            .row = i, .predicted = 1, .probability = 0.5 + (double)(i * 37 % TESTS) / 1000};

        assert_ok(pace__wrong_rows_add(&wrong, &mistake, &rows, i));
        assert_true(wrong.bytes <= 2000);
    }
    assert_ok(pace__wrong_rows_close(&wrong, PACE_OK));
    assert_said("of 100 mistakes");
    char *text = get_text(config.errors), *at = text;
    size_t kept = lines_of(text);

    assert_true(kept > 5 && kept < 50);
    for (size_t i = 0; i < kept; i++) {
        unsigned label;
        double probability;
        size_t row = read_place(&at, &self.set, &label, &probability);

        assert_int_equal(row * 37 % TESTS, TESTS - 1 - i);
        assert_words(&at, &self, &rows, row);
    }
    free(text);
    pace__store_close(&store);
    pace__scorer_close(&scorer);
    free_fixture(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_in_words),
        TEST(other_files_are_left_alone),
        TEST(clicks_by_feature),
        TEST(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

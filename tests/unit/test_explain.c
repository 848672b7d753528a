/* Why a model gives a row its logit: reasons against the sums and the rows that they stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/fm/fm_file.h"
#include "score/explain.h"

#include "text_models.h"

#define NAME_MAX_BYTES 600
#define REASONS        1000

typedef struct told {
    char name[NAME_MAX_BYTES];
    double amount;
} told;

/* What was written for a row; how many. */
static size_t reasons_of(pace__explainer *why, const pace__rows *rows, size_t row, double logit, told *found)
{
    char *text = NULL, *rest;
    size_t size = 0, count = 0;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    assert_ok(pace__explain(why, rows, row, logit));
    pace__explanation_write(why, file);
    assert_int_equal(fclose(file), 0);
    for (char *name = strtok_r(text, "\t", &rest); name; name = strtok_r(NULL, "\t", &rest), count++) {
        const char *amount = strtok_r(NULL, "\t", &rest);

        assert_true(amount && count < REASONS && strlen(name) < NAME_MAX_BYTES);
        strcpy(found[count].name, name);
        found[count].amount = strtod(amount, NULL);
        assert_true(count == 0 || fabs(found[count].amount) <= fabs(found[count - 1].amount));
    }
    free(text);
    return count;
}

static double sum_of(const told *found, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += found[i].amount;
    return sum;
}

/* Asked for fewer, the first of them. */
static void assert_first(pace__scorer *scorer, const pace__rows *rows, size_t row, double logit,
                         const told *all, size_t count, size_t max)
{
    told *few = tiny_alloc(REASONS * sizeof *few);
    pace__explainer why;

    assert_ok(pace__explainer_init(&why, scorer, max, &said_log));
    assert_int_equal(reasons_of(&why, rows, row, logit, few), max < count ? max : count);
    for (size_t i = 0; i < max && i < count; i++) {
        assert_string_equal(few[i].name, all[i].name);
        assert_float_equal(few[i].amount, all[i].amount, 0);
    }
    pace__explainer_release(&why);
    free(few);
}

/* --- texts --- */

static void words_and_pairs_are_the_logit(void **state)
{
    for (int front = 0; front < 2; front++) {
        fixture self = make_fixture(state, front);
        pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
        told *found = tiny_alloc(REASONS * sizeof *found);
        pace__scorer scorer;
        pace__explainer why;
        size_t pairs = 0;

        assert_ok(pace__scorer_open(in(state, "linear"), &said_log, &scorer));
        assert_ok(pace__explainer_init(&why, &scorer, REASONS, &said_log));
        for (size_t row = 0; row < ROWS; row++) {
            double logit = linear_logit(&self, pace__row_words(&rows, row), rows.length[row]);
            size_t count = reasons_of(&why, &rows, row, logit, found);

            assert_float_equal(0.125 + sum_of(found, count), logit, 1e-4);
            pairs += count > 0 && strchr(found[0].name, ' ') != NULL;
            if (row % 50 == 0)
                assert_first(&scorer, &rows, row, logit, found, count, 1 + row / 50);
        }
        assert_true(pairs > 0);
        pace__explainer_release(&why);
        pace__explainer_release(&why); /* twice is fine */
        pace__scorer_close(&scorer);
        free(found);
        free_fixture(&self);
    }
}

/* The logit of a text without a word, by the plain implementation. */
static double logit_without(const fixture *self, const pace__rows *rows, size_t row, uint32_t word)
{
    uint32_t ids[LENGTH] = {0}, kept = 0;
    const uint32_t *words = pace__row_words(rows, row);
    float logit;

    for (uint32_t i = 0; i < rows->length[row]; i++) {
        if (words[i] != word)
            ids[kept++] = words[i];
    }
    if (kept == 0)
        ids[kept++] = PACE__ID_EMPTY;
    if (rows->front) {
        memmove(ids + LENGTH - kept, ids, kept * sizeof *ids);
        memset(ids, 0, (LENGTH - kept) * sizeof *ids);
    }
    pace__rows one = {.rows = 1,
                      .columns = LENGTH,
                      .ids = ids,
                      .label = rows->label,
                      .length = &kept,
                      .front = rows->front};

    rnn_logits(self, &one, &logit);
    return (double)logit;
}

static void words_count_by_what_is_gone_without_them(void **state)
{
    for (int front = 0; front < 2; front++) {
        fixture self = make_fixture(state, front);
        pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
        told *found = tiny_alloc(REASONS * sizeof *found);
        float logits[ROWS];
        pace__scorer scorer;
        pace__explainer why;

        assert_ok(pace__scorer_open(in(state, "rnn"), &said_log, &scorer));
        assert_ok(pace__explainer_init(&why, &scorer, REASONS, &said_log));
        rnn_logits(&self, &rows, logits);
        for (size_t row = 0; row < ROWS; row += 7) {
            size_t count = reasons_of(&why, &rows, row, (double)logits[row], found);

            assert_true(count >= 1 || pace__row_words(&rows, row)[0] == PACE__ID_EMPTY);
            for (size_t i = 0; i < count; i++) {
                const char *name = found[i].name;
                uint32_t word = name[0] == '<' ? PACE__ID_UNKNOWN
                                               : PACE__ID_WORDS + (uint32_t)strtoul(name + 1, NULL, 10);

                assert_float_equal(found[i].amount,
                                   (double)logits[row] - logit_without(&self, &rows, row, word), 1e-4);
            }
            assert_first(&scorer, &rows, row, (double)logits[row], found, count, 2);
        }
        pace__explainer_release(&why);
        pace__scorer_close(&scorer);
        free(found);
        free_fixture(&self);
    }
}

/* --- clicks --- */

/* Rows of places, as predict makes them: the id behind the last is of what the model does not know. */
static tiny_set make_clicks(bool has_values)
{
    return tiny_make((tiny_plan){.train = 60,
                                 .test = 60,
                                 .ids = 40,
                                 .columns = has_values ? 0 : 12,
                                 .unseen = true,
                                 .has_values = has_values,
                                 .seed = 3});
}

static void features_of_clicks_are_the_logit(void **state)
{
    tiny_set set = make_clicks(true);
    pace__rows rows = tiny_view(&set, PACE__TEST);
    told *found = tiny_alloc(REASONS * sizeof *found);
    uint64_t original[40];
    float weight[40];
    pace__scorer scorer;
    pace__explainer why;
    size_t all = 0;

    for (uint32_t i = 0; i < 40; i++) {
        original[i] = 5 * (uint64_t)i + 3;
        weight[i] = i % 5 ? tiny_weight(i) : 0;
    }
    linear_write(in(state, "clicks"), &set.info.encoding, original, weight, 1, 40, 0.25f, NULL);
    assert_ok(pace__scorer_open(in(state, "clicks"), &said_log, &scorer));
    assert_ok(pace__explainer_init(&why, &scorer, REASONS, &said_log));
    for (size_t row = 0; row < rows.rows; row++) {
        double expected = 0.25;

        for (uint64_t at = rows.start[row]; at < rows.start[row + 1]; at++)
            expected += rows.ids[at] < 40 ? (double)weight[rows.ids[at]] * (double)rows.values[at] : 0;
        size_t count = reasons_of(&why, &rows, row, expected, found);

        all += count;
        assert_float_equal(0.25 + sum_of(found, count), expected, 1e-4);
        for (size_t i = 0; i < count; i++) {
            uint64_t id = strtoull(found[i].name, NULL, 10);
            double sum = 0;

            assert_int_equal(id % 5, 3);
            for (uint64_t at = rows.start[row]; at < rows.start[row + 1]; at++)
                sum += rows.ids[at] == id / 5 ? (double)weight[id / 5] * (double)rows.values[at] : 0;
            assert_float_equal(found[i].amount, sum, 1e-5 * (1 + fabs(sum)));
        }
    }
    assert_true(all > 0);
    pace__explainer_release(&why);
    pace__scorer_close(&scorer);
    free(found);
    tiny_free(&set);
}

enum { FACTORS = 5, IDS = 40 };

static void write_fm(void **state, const tiny_set *set)
{
    pace__origin origin = make_origin(&set->info.encoding);
    float weights[(IDS + 1) * (1 + FACTORS)] = {0};
    uint64_t original[IDS];

    for (uint32_t i = 0; i < IDS; i++)
        original[i] = 5 * (uint64_t)i + 3;
    for (size_t i = 0; i <= IDS * (1 + FACTORS); i++) /* the bias has no factors */
        weights[i] = tiny_weight((uint32_t)i) / 2;
    origin.original = original;
    assert_ok(pace__fm_file_write(in(state, "fm"), &origin, weights, FACTORS, IDS, NULL, &said_log));
    free(origin.encoding);
}

static void features_and_pairs_are_the_logit(void **state)
{
    for (int has_values = 0; has_values < 2; has_values++) {
        tiny_set set = make_clicks(has_values);
        pace__rows rows = tiny_view(&set, PACE__TEST);
        told *found = tiny_alloc(REASONS * sizeof *found);
        double bias = (double)(tiny_weight(IDS * (1 + FACTORS)) / 2), logits[60];
        pace__scorer scorer;
        pace__explainer why;
        size_t pairs = 0;

        write_fm(state, &set);
        assert_ok(pace__scorer_open(in(state, "fm"), &said_log, &scorer));
        assert_ok(pace__explainer_init(&why, &scorer, REASONS, &said_log));
        assert_ok(pace__model_answers(scorer.model, &rows, logits));
        for (size_t row = 0; row < rows.rows; row++) {
            size_t count = reasons_of(&why, &rows, row, logits[row], found);

            assert_float_equal(bias + sum_of(found, count), logits[row], 1e-3);
            for (size_t i = 0; i < count; i++)
                pairs += strstr(found[i].name, " * ") != NULL;
            for (size_t max = 1; max < 40; max += 6) /* what is left out is really lighter */
                assert_first(&scorer, &rows, row, logits[row], found, count, max);
        }
        assert_true(pairs > 0);
        pace__explainer_release(&why);
        pace__scorer_close(&scorer);
        free(found);
        tiny_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(words_and_pairs_are_the_logit),
        TEST(words_count_by_what_is_gone_without_them),
        TEST(features_of_clicks_are_the_logit),
        TEST(features_and_pairs_are_the_logit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

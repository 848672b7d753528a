/* Models on texts, linear and recurrent, used: logits of stored rows and raw texts, eval, inspect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text_models.h"

static void rows_of_a_set_get_the_models_logits(void **state)
{
    for (int front = 0; front < 2; front++) {
        fixture self = make_fixture(state, front);
        pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
        float expected[ROWS], found[ROWS];
        pace__store store;

        assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
        for (int m = 0; m < 2; m++) {
            pace__scorer scorer;

            assert_ok(pace__scorer_open(in(state, models[m]), &said_log, &scorer));
            assert_ok(pace__scorer_fit(&scorer, &store));
            assert_ok(pace__scorer_logits(&scorer, &rows, found));
            expected_logits(&self, models[m], &rows, expected);
            for (size_t i = 0; i < ROWS; i++)
                assert_float_equal(found[i], expected[i], 1e-5);
            pace__scorer_close(&scorer);
            pace__scorer_close(&scorer); /* twice is fine */
        }
        pace__store_close(&store);
        free_fixture(&self);
    }
}

/* A model of clicks: the ids of rows are the data set's, and those that it never saw have no weight. */
static void rows_of_clicks_get_the_models_logits(void **state)
{
    enum { IDS = 40, CLICKS = 200 };
    tiny_set set =
        tiny_make((tiny_plan){.train = 9, .test = CLICKS, .ids = IDS, .unseen = true, .has_values = true});
    pace__rows rows = tiny_view(&set, PACE__TEST);
    uint64_t original[IDS / 2];
    float weight[IDS / 2], found[CLICKS];
    pace__scorer scorer;
    pace__store store;

    for (uint32_t i = 0; i < IDS / 2; i++) { /* the model knows every other one */
        original[i] = 5 * (2 * i) + 3;
        weight[i] = tiny_weight(2 * i);
    }
    tiny_write(&set, in(state, "set"));
    linear_write(in(state, "clicks"), &set.info.encoding, original, weight, 1, IDS / 2, 0.25f, NULL);
    assert_ok(pace__scorer_open(in(state, "clicks"), &said_log, &scorer));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    for (int round = 0; round < 2; round++) /* twice is fine */
        assert_ok(pace__scorer_fit(&scorer, &store));
    pace__store_close(&store);
    assert_ok(pace__scorer_logits(&scorer, &rows, found));
    uint64_t unseen = 0;

    for (size_t row = 0; row < CLICKS; row++) {
        double expected = 0.25;

        for (uint64_t at = rows.start[row]; at < rows.start[row + 1]; at++) {
            uint32_t id = rows.ids[at];

            unseen += id == IDS;
            expected += id < IDS && id % 2 == 0 ? (double)(tiny_weight(id) * rows.values[at]) : 0;
        }
        assert_float_equal(found[row], expected, 1e-5);
    }
    assert_true(unseen > 0);
    pace__scorer_close(&scorer);
    tiny_free(&set);
}

static void add_text(pace__text_batch *batch, const char *text)
{
    char padded[256] = "";

    snprintf(padded, sizeof padded - PACE__TEXT_PADDING, "%s", text);
    assert_ok(pace__text_batch_add(batch, padded, strlen(text)));
}

static void assert_words(const pace__text_batch *batch, size_t row, const uint32_t *ids, uint32_t count)
{
    assert_int_equal(batch->rows.length[row], count);
    assert_memory_equal(pace__row_words(&batch->rows, row), ids, count * sizeof *ids);
    for (uint32_t i = 0; i < LENGTH - count; i++) {
        const uint32_t *all = batch->rows.ids + row * LENGTH;

        assert_int_equal(batch->rows.front ? all[i] : all[LENGTH - 1 - i], PACE__ID_PAD);
    }
}

static void texts_become_rows_as_prep_makes_them(void **state)
{
    for (int front = 0; front < 2; front++) {
        fixture self = make_fixture(state, front);
        pace__text_batch batch;
        pace__scorer scorer;
        float expected[4], found[4];

        assert_ok(pace__scorer_open(in(state, "linear"), &said_log, &scorer));
        assert_ok(pace__text_batch_init(&batch, &scorer));
        add_text(&batch, "w0 w0 w0 w0 w0 w0 w0 w0 w0 w0 w0 w0 w0"); /* what is overwritten must not show */
        pace__text_batch_clear(&batch);
        add_text(&batch, "The W7, of w1<br>somewhere w7!");
        add_text(&batch, "the of"); /* only stop words */
        add_text(&batch, "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11");
        add_text(&batch, "w2");
        assert_int_equal(batch.rows.rows, 4);
        assert_words(&batch, 0, (uint32_t[]){10, 4, PACE__ID_UNKNOWN, 10}, 4);
        assert_words(&batch, 1, (uint32_t[]){PACE__ID_EMPTY}, 1);
        assert_words(&batch, 2, (uint32_t[]){3, 4, 5, 6, 7, 8, 9, 10, 11}, 9);
        assert_words(&batch, 3, (uint32_t[]){5}, 1);
        assert_ok(pace__scorer_logits(&scorer, &batch.rows, found));
        expected_logits(&self, "linear", &batch.rows, expected);
        for (size_t i = 0; i < 4; i++)
            assert_float_equal(found[i], expected[i], 1e-5);
        assert_float_equal(found[1], 0.125, 0); /* nothing but the bias */
        pace__text_batch_release(&batch);
        pace__scorer_close(&scorer);
        free_fixture(&self);
    }
}

/* --- eval --- */

static void eval_scores_texts(void **state)
{
    fixture self = make_fixture(state, false);
    pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
    float logits[ROWS];

    for (int m = 0; m < 2; m++) {
        pace_eval_config config = {
            .run = in(state, models[m]), .data = in(state, "set"), .set = PACE_SET_TRAIN};
        pace_scores scores;
        uint64_t right = 0;

        expected_logits(&self, models[m], &rows, logits);
        for (size_t i = 0; i < ROWS; i++)
            right += (logits[i] > 0) == rows.label[i];
        assert_ok(pace_eval(&config, &said_log, NULL, &scores));
        assert_int_equal(scores.n, ROWS);
        assert_float_equal(scores.accuracy, (double)right / ROWS, 1e-12);
        config.set = PACE_SET_AUTO;
        assert_ok(pace_eval(&config, &said_log, NULL, &scores));
        assert_int_equal(scores.n, 100);
    }
    free_fixture(&self);
}

static void refuse_eval(void **state, const char *model, const char *set, const char *message)
{
    pace_eval_config config = {.run = in(state, model), .data = in(state, set)};
    pace_scores scores = {.n = 77};

    said_clear();
    assert_failed(pace_eval(&config, &said_log, NULL, &scores), PACE_BAD_DATA, message);
    assert_int_equal(scores.n, 77);
}

/* Its JSON is that of the scores, whether mistakes are written or not. */
static void classes_are_those_of_pictures(void **state)
{
    fixture self = make_fixture(state, false);
    pace_eval_config config = {.run = in(state, "linear"), .data = in(state, "set")};

    for (int with = 0; with < 2; with++) {
        pace_eval_result result;

        config.errors = with ? in(state, "errors.tsv") : NULL;
        assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
        assert_int_equal(result.classes.classes, 0);
        assert_int_equal(result.worst_count, 0);
        char *all = pace_eval_result_to_json(&result), *scores = pace_scores_to_json(&result.scores);

        assert_string_equal(all, scores);
        free(all);
        free(scores);
        pace_eval_result_release(&result);
    }
    free_fixture(&self);
}

static void sets_that_do_not_fit_are_refused(void **state)
{
    fixture self = make_fixture(state, false);
    tiny_texts longer =
        tiny_texts_make((tiny_texts_plan){.train = 5, .words = WORDS, .length = LENGTH + 1, .seed = 1});
    tiny_texts larger =
        tiny_texts_make((tiny_texts_plan){.train = 5, .words = WORDS + 1, .length = LENGTH, .seed = 1});
    tiny_set sparse = tiny_make((tiny_plan){.train = 9, .ids = 5, .columns = 2});
    pace__encoding numbered = {.kind = PACE__NUMBERED, .features = 100};

    tiny_texts_write(&longer, in(state, "longer"));
    tiny_texts_write(&larger, in(state, "larger"));
    tiny_write(&sparse, in(state, "sparse"));
    linear_write(in(state, "clicks"), &numbered, (uint64_t[]){3}, (float[]){1}, 1, 1, 0, NULL);
    for (int m = 0; m < 2; m++) {
        refuse_eval(state, models[m], "longer", "length 9 against 10");
        refuse_eval(state, models[m], "larger", "the model knows another vocabulary");
        refuse_eval(state, models[m], "sparse", "the data holds numbers as they are");
    }
    refuse_eval(state, "clicks", "set", "the data holds words of texts");
    tiny_texts_free(&longer);
    tiny_texts_free(&larger);
    tiny_free(&sparse);
    free_fixture(&self);
}

/* --- inspect --- */

static cJSON *inspect(const char *path)
{
    pace_inspect_config config = {.path = path, .top = 3};
    char *json;

    assert_ok(pace_inspect(&config, &said_log, &json));
    cJSON *object = cJSON_Parse(json);

    free(json);
    assert_non_null(object);
    return object;
}

/* "train.rows" */
static const cJSON *member(const cJSON *object, const char *path)
{
    char names[64], *rest = names;

    snprintf(names, sizeof names, "%s", path);
    while (rest) {
        object = cJSON_GetObjectItemCaseSensitive(object, strsep(&rest, "."));
        if (!object)
            fail_msg("there is no %s", path);
    }
    return object;
}

static double number(const cJSON *object, const char *path)
{
    return cJSON_GetNumberValue(member(object, path));
}

static const char *text(const cJSON *object, const char *path)
{
    return cJSON_GetStringValue(member(object, path));
}

static void texts_are_described(void **state)
{
    fixture self = make_fixture(state, true);
    cJSON *set = inspect(in(state, "set"));

    assert_string_equal(text(set, "what"), "data set");
    assert_string_equal(text(set, "kind"), "text");
    assert_true(number(set, "train.rows") == ROWS);
    assert_true(number(set, "train.positives") == (double)self.set.info.positives[PACE__TRAIN]);
    assert_true(number(set, "test.rows") == 100);
    assert_true(number(set, "vocabulary.words") == WORDS);
    assert_true(number(set, "vocabulary.stop_words") == 2);
    assert_string_equal(cJSON_GetArrayItem(member(set, "vocabulary.first"), 1)->valuestring, "w1");
    assert_true(number(set, "encoding.length") == LENGTH);
    assert_string_equal(text(set, "encoding.truncate"), "head");
    assert_string_equal(text(set, "encoding.pad"), "front");
    cJSON_Delete(set);
    set = inspect(in(state, "set/part-00001.h5"));
    assert_true(number(set, "part.train_rows") == ROWS / 2);
    cJSON_Delete(set);
    free_fixture(&self);
}

static void models_on_texts_are_described(void **state)
{
    fixture self = make_fixture(state, false);
    uint32_t ids = pace__ngram_ids(self.set.info.ids_seen, 2);

    /* The heaviest are a word and an n-gram. */
    self.weight[PACE__ID_WORDS + 4] = 9;
    self.weight[self.set.info.ids_seen + 55] = -8;
    linear_write_text(in(state, "linear"), &self.set.info.encoding, self.set.vocabulary, 2, self.weight, ids,
                      0, NULL);
    cJSON *linear = inspect(in(state, "linear")), *rnn = inspect(in(state, "rnn"));
    const cJSON *heaviest = member(linear, "heaviest");

    assert_string_equal(text(linear, "what"), "model");
    assert_string_equal(text(linear, "model"), "logreg");
    assert_true(number(linear, "ngram") == 2);
    assert_true(number(linear, "features") == ids);
    assert_string_equal(text(cJSON_GetArrayItem(heaviest, 0), "feature"), "w4");
    assert_string_equal(text(cJSON_GetArrayItem(heaviest, 1), "feature"), "n-gram 55");
    assert_string_equal(text(rnn, "what"), "model");
    assert_string_equal(text(rnn, "model"), "rnn");
    double dense = (double)pace__rnn_dense(&self.config);

    assert_true(number(rnn, "parameters") == dense + 33 * 6);
    assert_true(number(rnn, "config.hidden") == 5);
    assert_string_equal(text(rnn, "config.cell"), "lstm");
    assert_true(number(rnn, "vocabulary.words") == WORDS);
    assert_true(cJSON_GetArraySize(member(rnn, "tensors")) > 5);
    cJSON_Delete(rnn);
    cJSON_Delete(linear);
    free_fixture(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_a_set_get_the_models_logits),
        TEST(rows_of_clicks_get_the_models_logits),
        TEST(texts_become_rows_as_prep_makes_them),
        TEST(eval_scores_texts),
        TEST(classes_are_those_of_pictures),
        TEST(sets_that_do_not_fit_are_refused),
        TEST(texts_are_described),
        TEST(models_on_texts_are_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Models on pictures, used: logits of stored rows, eval with its mistakes by name, inspect. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "score/scorer.h"

#include "tiny_network.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>
#include <paceline/score.h>

static void logits_of_stored_rows(void **state)
{
    fixture self = make_fixture(state, 4, false);
    const float *expected = expected_logits(&self, PACE__TRAIN);
    float logits[ROWS * 4];
    pace__rows rows = tiny_pictures_view(&self.set, PACE__TRAIN);
    pace__scorer scorer;
    pace__store store;

    assert_ok(pace__scorer_open(in(state, "model"), &said_log, &scorer));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_ok(pace__scorer_fit(&scorer, &store));
    assert_int_equal(pace__scorer_outputs(&scorer), 4);
    assert_string_equal(scorer.saved.names.items[3], "class 3");
    assert_ok(pace__scorer_logits(&scorer, &rows, logits));
    for (size_t i = 0; i < ROWS * 4; i++)
        assert_float_equal(logits[i], expected[i], TOLERANCE);
    pace__store_close(&store);
    pace__scorer_close(&scorer);
    free_fixture(&self);
}

static void assert_scores(fixture *self, const pace_eval_result *result, int set)
{
    const float *logits = expected_logits(self, set);
    uint64_t n = 0, right = 0;
    double probability;

    for (size_t i = 0; i < ROWS; i++)
        right += predicted(self, logits, i, &probability) == self->set.classes[set][i];
    for (uint32_t c = 0; c < self->set.plan.classes; c++)
        n += result->classes.n[c];
    assert_int_equal(n, ROWS);
    assert_int_equal(result->scores.n, ROWS);
    assert_float_equal(result->scores.accuracy, (double)right / ROWS, 1e-12);
    assert_int_equal(result->mistakes, ROWS - right);
    assert_true(result->mistakes > PACE_EVAL_WORST); /* else there is nothing to choose from */
    assert_int_equal(result->worst_count, PACE_EVAL_WORST);
}

/* Are the named ones really taken for that, and is no other mistake surer? */
static void assert_worst(fixture *self, const pace_eval_result *result, int set)
{
    const float *logits = expected_logits(self, set);
    double last = result->worst[PACE_EVAL_WORST - 1].probability;
    size_t surer = 0;

    for (size_t i = 0; i < ROWS; i++) {
        double probability;
        uint32_t class = predicted(self, logits, i, &probability);

        surer += class != self->set.classes[set][i] && probability > last + TOLERANCE;
    }
    assert_true(surer < PACE_EVAL_WORST);
    for (size_t w = 0; w < PACE_EVAL_WORST; w++) {
        const pace_mistake *mistake = &result->worst[w];
        double probability;
        unsigned source;
        size_t row = 0;

        assert_int_equal(sscanf(mistake->path, "class %*u/%u.jpg", &source), 1);
        while (row < ROWS && self->set.source[set][row] != source)
            row++;
        assert_true(row < ROWS);
        assert_int_equal(predicted(self, logits, row, &probability), mistake->predicted);
        assert_int_equal(self->set.classes[set][row], mistake->actual);
        assert_float_equal(mistake->probability, probability, TOLERANCE);
        assert_true(w == 0 || mistake->probability <= result->worst[w - 1].probability);
    }
}

/* As many lines as mistakes, in the order of the rows, each with names and a probability. */
static void assert_errors_file(fixture *self, const char *path, int set)
{
    char *text = get_text(path), *line = text;
    const float *logits = expected_logits(self, set);

    for (size_t i = 0; i < ROWS; i++) {
        double probability, found;
        uint32_t class = predicted(self, logits, i, &probability);
        char expected[200];

        if (class == self->set.classes[set][i])
            continue;
        snprintf(expected, sizeof expected, "class %u/%u.jpg\t%s\t%s\t",
                 self->set.source[set][i] % self->set.plan.classes, self->set.source[set][i],
                 class_name(self, self->set.classes[set][i]), class_name(self, class));
        assert_memory_equal(line, expected, strlen(expected));
        assert_int_equal(sscanf(line + strlen(expected), "%lf", &found), 1);
        assert_float_equal(found, probability, TOLERANCE);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(*line, 0);
    free(text);
}

static void eval_names_mistakes(void **state)
{
    fixture self = make_fixture(state, 7, false);
    pace_eval_config config = {
        .run = in(state, "model"), .data = in(state, "set"), .errors = in(state, "errors.tsv")};
    pace_eval_result result;
    pace_scores scores;

    assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
    assert_int_equal(result.scores.classes, 7);
    assert_true(result.scores.top5 > result.scores.accuracy && isnan(result.scores.auc));
    assert_scores(&self, &result, PACE__TEST);
    assert_worst(&self, &result, PACE__TEST);
    assert_errors_file(&self, config.errors, PACE__TEST);
    assert_int_equal(count_entries(*state), 3); /* nothing temporary is left */
    config.errors = NULL;
    assert_ok(pace_eval(&config, &said_log, NULL, &scores));
    assert_memory_equal(&scores, &result.scores, sizeof scores);
    pace_eval_result_release(&result);
    config.set = PACE_SET_TRAIN;
    assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
    assert_scores(&self, &result, PACE__TRAIN);
    assert_worst(&self, &result, PACE__TRAIN);
    pace_eval_result_release(&result);
    free_fixture(&self);
}

static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!item)
        fail_msg("no \"%s\"", name);
    return item;
}

static void eval_as_json(void **state)
{
    fixture self = make_fixture(state, 3, false);
    pace_eval_config config = {.run = in(state, "model"), .data = in(state, "set")};
    pace_eval_result result;

    assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
    char *text = pace_eval_result_to_json(&result);
    cJSON *object = cJSON_Parse(text);

    assert_non_null(object);
    assert_int_equal(member(object, "n")->valueint, ROWS);
    assert_true(cJSON_IsNull(member(object, "auc")));
    assert_int_equal(cJSON_GetArraySize(member(object, "classes")), 3);
    assert_string_equal(member(member(object, "classes")->child, "name")->valuestring, "class 0");
    uint64_t sum = 0;

    for (int i = 0; i < 9; i++) {
        int count =
            cJSON_GetArrayItem(cJSON_GetArrayItem(member(object, "confusion"), i / 3), i % 3)->valueint;

        assert_int_equal(count, result.classes.confusion[i]);
        sum += (uint64_t)count;
    }
    assert_int_equal(sum, ROWS);
    assert_int_equal(member(object, "mistakes")->valueint, result.mistakes);
    assert_int_equal(cJSON_GetArraySize(member(object, "errors")), PACE_EVAL_WORST);
    assert_string_equal(member(member(object, "errors")->child, "path")->valuestring, result.worst[0].path);
    cJSON_Delete(object);
    free(text);
    pace_eval_result_release(&result);
    free_fixture(&self);
}

/* With one logit or with two: a yes/no label that has names. */
static void two_classes(void **state)
{
    for (int one = 0; one < 2; one++) {
        fixture self = make_fixture(state, 2, one);
        pace_eval_config config = {.run = in(state, "model"), .data = in(state, "set")};
        pace_eval_result result;

        assert_int_equal(self.net.outputs, one ? 1 : 2);
        assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
        assert_scores(&self, &result, PACE__TEST);
        assert_worst(&self, &result, PACE__TEST);
        assert_true(result.scores.auc > 0 && result.scores.auc < 1 && result.scores.classes <= 2);
        assert_int_equal(result.classes.confusion[3], result.scores.true_positives);
        assert_int_equal(result.classes.confusion[1], result.scores.false_positives);
        char *text = pace_eval_result_to_json(&result);
        cJSON *object = cJSON_Parse(text);

        assert_int_equal(member(member(object, "confusion"), "tp")->valueint, result.scores.true_positives);
        assert_int_equal(cJSON_GetArraySize(member(object, "classes")), 2);
        cJSON_Delete(object);
        free(text);
        pace_eval_result_release(&result);
        free_fixture(&self);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

static void a_failed_eval_leaves_no_file(void **state)
{
    fixture self = make_fixture(state, 3, false);
    pace_eval_config config = {
        .run = in(state, "model"), .data = in(state, "set"), .errors = in(state, "none/errors.tsv")};
    pace_eval_result result = {.mistakes = 77};

    said_clear();
    assert_failed(pace_eval_fully(&config, &said_log, NULL, &result), PACE_IO, "cannot create");
    config.errors = "-";
    assert_failed(pace_eval_fully(&config, &said_log, NULL, &result), PACE_USAGE, "--errors takes a file");
    config.errors = in(state, "errors.tsv");
    put_text(in(state, "set/images.txt"), "only one\n");
    unlink(in(state, "set/checksums.json"));
    assert_int_equal(pace_eval_fully(&config, &said_log, NULL, &result), PACE_BAD_DATA);
    assert_int_equal(result.mistakes, 77);
    assert_int_equal(count_entries(*state), 2);
    free_fixture(&self);
}

/* --- inspect --- */

static void inspect_a_network(void **state)
{
    fixture self = make_fixture(state, 3, false);
    pace_inspect_config config = {.path = in(state, "model"), .top = 1};
    const cJSON *layer;
    double parameters = 0;
    char *text;

    assert_ok(pace_inspect(&config, &said_log, &text));
    cJSON *object = cJSON_Parse(text);

    assert_string_equal(member(object, "model")->valuestring, "cnn");
    assert_string_equal(member(object, "arch")->valuestring, "small");
    assert_float_equal(member(object, "width")->valuedouble, 0.25, 1e-9);
    assert_string_equal(member(object, "input")->valuestring, "11x12x3");
    assert_int_equal(cJSON_GetArraySize(member(object, "classes")), 3);
    assert_int_equal(cJSON_GetArraySize(member(object, "layers")), self.net.units + 1);
    cJSON_ArrayForEach(layer, member(object, "layers")) parameters +=
        member(layer, "parameters")->valuedouble;
    assert_float_equal(member(object, "parameters")->valuedouble, parameters, 0.5);
    assert_float_equal(parameters, (double)self.net.weights, 0.5);
    cJSON_Delete(object);
    free(text);
    free_fixture(&self);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(logits_of_stored_rows), test(eval_names_mistakes),          test(eval_as_json),
        test(two_classes),           test(a_failed_eval_leaves_no_file), test(inspect_a_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Models on texts, linear and recurrent, used: logits of stored rows and raw texts, eval, predict, inspect. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "score/scorer.h"
#include "score/typed.h"

#include "model_files.h"
#include "support.h"
#include "tiny_texts.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>
#include <paceline/prep.h>
#include <paceline/score.h>

#define WORDS  30
#define LENGTH 9
#define ROWS   700

/* A data set DIR/set, and models on it that were never trained: DIR/linear and DIR/rnn. */
typedef struct fixture {
    tiny_texts set;
    unsigned ngram;
    float *weight; /* by feature */
    pace__rnn_config config;
    float *embedding, *dense;
} fixture;

static void write_linear(void **state, fixture *self)
{
    uint32_t ids = pace__ngram_ids(self->set.info.ids_seen, self->ngram);

    self->weight = tiny_alloc(ids * sizeof *self->weight);
    for (uint32_t id = 0; id < ids; id++) /* zeros between them, as a model has that was trained */
        self->weight[id] = id % 3 ? tiny_weight(id) : 0;
    linear_write_text(in(state, "linear"), &self->set.info.encoding, self->set.vocabulary, self->ngram,
                      self->weight, ids, 0.125f, NULL);
}

static void write_rnn(void **state, fixture *self)
{
    pace__rnn_config *config = &self->config;
    char *text;
    size_t size;

    *config = (pace__rnn_config){.words = self->set.info.ids_seen,
                                 .length = self->set.plan.length,
                                 .embed = 6,
                                 .hidden = 5,
                                 .layers = 1,
                                 .pooling = PACE_POOL_MEAN,
                                 .weight = {1, 1},
                                 .seed = 4};
    self->embedding = tiny_alloc((size_t)config->words * config->embed * sizeof *self->embedding);
    self->dense = tiny_alloc(pace__rnn_dense(config) * sizeof *self->dense);
    pace__rnn_init_dense(config, self->dense);
    for (uint32_t word = 0; word < config->words; word++)
        pace__rnn_init_word(config, word, self->embedding + (size_t)word * config->embed);
    assert_ok(pace__vocabulary_to_text(self->set.vocabulary, &said_log, &text, &size));
    rnn_write(in(state, "rnn"), config, &self->set.info.encoding, text, size, self->embedding, config->embed,
              self->dense, NULL);
    free(text);
}

static fixture make_fixture(void **state, bool front)
{
    fixture self = {.set = tiny_texts_make((tiny_texts_plan){.train = ROWS,
                                                             .test = 100,
                                                             .words = WORDS,
                                                             .length = LENGTH,
                                                             .front = front,
                                                             .parts = 2,
                                                             .seed = 8}),
                    .ngram = 2};

    tiny_texts_write(&self.set, in(state, "set"));
    write_linear(state, &self);
    write_rnn(state, &self);
    return self;
}

static void free_fixture(fixture *self)
{
    tiny_texts_free(&self->set);
    free(self->weight);
    free(self->embedding);
    free(self->dense);
}

/* --- logits --- */

static bool seen(const uint32_t *list, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == id)
            return true;
    }
    return false;
}

/* A text's words, and its pairs of words, each once. */
static double linear_logit(const fixture *self, const uint32_t *words, uint32_t length)
{
    uint32_t found[2 * LENGTH], count = 0;
    double sum = 0.125;

    for (uint32_t i = 0; i < length && words[0] != PACE__ID_EMPTY; i++) {
        uint32_t pair = i + 1 < length ? pace__ngram_id(words + i, 2, self->set.info.ids_seen) : words[i];

        if (!seen(found, count, words[i]))
            found[count++] = words[i];
        if (!seen(found, count, pair))
            found[count++] = pair;
    }
    for (uint32_t i = 0; i < count; i++)
        sum += self->weight[found[i]];
    return sum;
}

static void rnn_logits(const fixture *self, const pace__rows *rows, float *logits)
{
    pace__rnn_batch batch = {
        .rows = rows, .slots = self->config.words, .embedding = self->embedding, .dense = self->dense};

    assert_ok(pace__rnn_plain_logits(&self->config, &batch, logits, &said_log));
}

static void expected_logits(const fixture *self, const char *model, const pace__rows *rows, float *logits)
{
    if (strcmp(model, "rnn") == 0) {
        rnn_logits(self, rows, logits);
        return;
    }
    for (size_t i = 0; i < rows->rows; i++)
        logits[i] = (float)linear_logit(self, pace__row_words(rows, i), rows->length[i]);
}

static const char *const models[] = {"linear", "rnn"};

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

static void errors_are_those_of_pictures(void **state)
{
    fixture self = make_fixture(state, false);
    pace_eval_config config = {
        .run = in(state, "linear"), .data = in(state, "set"), .errors = in(state, "errors.tsv")};
    pace_eval_result result;

    said_clear();
    assert_failed(pace_eval_fully(&config, &said_log, NULL, &result), PACE_USAGE, "--errors is for pictures");
    assert_false(pace__exists(config.errors));
    config.errors = NULL;
    assert_ok(pace_eval_fully(&config, &said_log, NULL, &result));
    assert_int_equal(result.classes.classes, 0);
    char *all = pace_eval_result_to_json(&result), *scores = pace_scores_to_json(&result.scores);

    assert_string_equal(all, scores);
    free(all);
    free(scores);
    pace_eval_result_release(&result);
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

/* --- predict --- */

static double sigmoid(double logit)
{
    return 1 / (1 + exp(-logit));
}

static void assert_predictions(const char *path, const double *logits, size_t count)
{
    char *text = get_text(path), *at = text;

    for (size_t i = 0; i < count; i++) {
        char *end;

        assert_float_equal(strtod(at, &end), sigmoid(logits[i]), 1e-6);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_int_equal(*at, '\0');
    free(text);
}

/* The last record says that all of it is done. */
static void look_at_progress(void *user, const pace_record *record)
{
    bool *whole = user;

    if (strcmp(record->kind, "progress") == 0)
        *whole = strcmp(pace_record_find(record, "phase")->value.text, "predict") == 0 &&
                 pace_record_find(record, "done")->value.integer ==
                     pace_record_find(record, "total")->value.integer;
}

static pace_status predict(void **state, const char *model, const char *input, int format, uint64_t *rows)
{
    const char *inputs[] = {input};
    pace_registry *registry = pace_registry_create();
    bool whole = false;
    pace_sink sink = {look_at_progress, &whole};
    pace_predict_config config = {.inputs = {inputs, 1},
                                  .run = in(state, model),
                                  .output = in(state, "out"),
                                  .format = format,
                                  .force = true};

    said_clear();
    pace_registry_attach(registry, &sink);
    pace_status status = pace_predict(&config, &said_log, registry, rows);

    pace_registry_free(registry);
    assert_true(whole || status || *rows == 0);
    return status;
}

static void files_of_texts_are_predicted(void **state)
{
    fixture self = make_fixture(state, false);
    const double expected[] = {linear_logit(&self, (uint32_t[]){4, 5}, 2),
                               linear_logit(&self, (uint32_t[]){6}, 1)};
    const double of_lines[] = {expected[0], 0.125, expected[1]}; /* of a blank one: the bias */
    uint64_t rows = 0;

    put_text(in(state, "lines"), "w1 w2\n\nthe w3");
    put_text(in(state, "json"),
             "{\"reviewText\":\"w1 \\u0077\\u0032\"}\n{\"overall\":5,\"reviewText\":\"w3\"}\n");
    assert_ok(predict(state, "linear", in(state, "lines"), PACE_FORMAT_AUTO, &rows));
    assert_int_equal(rows, 3);
    assert_predictions(in(state, "out"), of_lines, 3);
    assert_ok(predict(state, "linear", in(state, "lines"), PACE_PREDICT_LINES, &rows));
    assert_predictions(in(state, "out"), of_lines, 3);
    assert_ok(predict(state, "linear", in(state, "json"), PACE_FORMAT_AUTO, &rows));
    assert_predictions(in(state, "out"), expected, 2);
    assert_ok(predict(state, "linear", in(state, "json"), PACE_PREDICT_JSONL, &rows));
    assert_predictions(in(state, "out"), expected, 2);
    free_fixture(&self);
}

/* JSON must not be read as if its lines were texts, because of another file. */
static void files_of_two_formats_are_refused(void **state)
{
    fixture self = make_fixture(state, false);
    const char *inputs[] = {in(state, "lines"), in(state, "json")};
    pace_predict_config config = {
        .inputs = {inputs, 2}, .run = in(state, "linear"), .output = in(state, "out")};
    uint64_t rows = 0;

    put_text(in(state, "lines"), "w1 w2\n");
    put_text(in(state, "json"), "{\"reviewText\":\"w1\"}\n");
    assert_failed(pace_predict(&config, &said_log, NULL, &rows), PACE_USAGE, in(state, "lines"));
    config.inputs.count = 1;
    assert_ok(pace_predict(&config, &said_log, NULL, &rows));
    assert_int_equal(rows, 1);
    free_fixture(&self);
}

/* More than a batch of texts, in order. */
static void many_texts_are_predicted_in_order(void **state)
{
    enum { TEXTS = 3 * PACE__TEXT_BATCH_ROWS + 17 };
    fixture self = make_fixture(state, true);
    double *expected = tiny_alloc(TEXTS * sizeof *expected);
    FILE *file = fopen(in(state, "lines"), "w");
    uint64_t rows = 0;

    assert_non_null(file);
    for (uint32_t i = 0; i < TEXTS; i++) {
        uint32_t words[] = {PACE__ID_WORDS + i % 7, PACE__ID_WORDS + i % 11};

        fprintf(file, "w%u w%u\n", i % 7, i % 11);
        expected[i] = linear_logit(&self, words, 2);
    }
    assert_int_equal(fclose(file), 0);
    assert_ok(predict(state, "linear", in(state, "lines"), PACE_FORMAT_AUTO, &rows));
    assert_int_equal(rows, TEXTS);
    assert_predictions(in(state, "out"), expected, TEXTS);
    free(expected);
    free_fixture(&self);
}

static void bad_texts_leave_nothing_behind(void **state)
{
    fixture self = make_fixture(state, false);
    uint64_t rows = 77;

    put_text(in(state, "json"), "{\"reviewText\":\"w1\"}\n{\"reviewText\":7}\n");
    size_t entries = count_entries(*state);

    assert_failed(predict(state, "linear", in(state, "json"), PACE_FORMAT_AUTO, &rows), PACE_BAD_DATA, ":2");
    assert_int_equal(access(in(state, "out"), F_OK), -1);
    assert_int_equal(count_entries(*state), entries);
    assert_failed(predict(state, "linear", in(state, "json"), PACE_FORMAT_CRITEO, &rows), PACE_USAGE,
                  "trained on texts");
    assert_failed(predict(state, "linear", in(state, "none"), PACE_FORMAT_AUTO, &rows), PACE_NO_INPUT,
                  in(state, "none"));
    assert_int_equal(rows, 77);
    free_fixture(&self);
}

static void models_of_clicks_take_no_texts(void **state)
{
    pace__encoding numbered = {.kind = PACE__NUMBERED, .features = 100};
    uint64_t rows;

    linear_write(in(state, "clicks"), &numbered, (uint64_t[]){3}, (float[]){1}, 1, 1, 0, NULL);
    put_text(in(state, "lines"), "w1 w2\n");
    assert_failed(predict(state, "clicks", in(state, "lines"), PACE_PREDICT_LINES, &rows), PACE_USAGE,
                  "the input is texts");
}

/* --- vocabularies of which a piece of the rows has a small part only --- */

enum { LARGE_ROWS = 1200, LARGE_TEXTS = 150 };

/* LARGE_TEXTS lines of one word each, from the whole vocabulary, beside their logits. */
static void write_lines(const fixture *self, const char *path, double *expected)
{
    uint32_t words = self->set.plan.words, columns = self->set.plan.length;
    uint32_t *ids = tiny_alloc(LARGE_TEXTS * columns * sizeof *ids), length[LARGE_TEXTS];
    uint8_t label[LARGE_TEXTS] = {0};
    float logits[LARGE_TEXTS];
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (uint32_t i = 0; i < LARGE_TEXTS; i++) {
        uint32_t word = words - 1 - i * (words / LARGE_TEXTS);

        fprintf(file, "w%u\n", word);
        ids[i * columns] = PACE__ID_WORDS + word;
        length[i] = 1;
    }
    assert_int_equal(fclose(file), 0);
    pace__rows rows = {.rows = LARGE_TEXTS, .columns = columns, .ids = ids, .label = label, .length = length};

    rnn_logits(self, &rows, logits);
    for (size_t i = 0; i < LARGE_TEXTS; i++)
        expected[i] = (double)logits[i];
    free(ids);
}

static void check_large(void **state, uint32_t words, uint32_t length)
{
    fixture self = {
        .set = tiny_texts_make((tiny_texts_plan){
            .train = LARGE_ROWS, .test = 20, .words = words, .length = length, .seed = words + length})};
    pace_eval_config eval = {.run = in(state, "rnn"), .data = in(state, "set"), .set = PACE_SET_TRAIN};
    pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
    float expected[LARGE_ROWS], found[LARGE_ROWS];
    double answers[LARGE_TEXTS];
    pace__scorer scorer;
    pace_scores scores;
    uint64_t answered = 0;

    tiny_texts_write(&self.set, in(state, "set"));
    write_rnn(state, &self);
    assert_ok(pace__scorer_open(in(state, "rnn"), &said_log, &scorer));
    assert_ok(pace__scorer_logits(&scorer, &rows, found));
    rnn_logits(&self, &rows, expected);
    for (size_t i = 0; i < LARGE_ROWS; i++)
        assert_float_equal(found[i], expected[i], 1e-5);
    pace__scorer_close(&scorer);
    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_int_equal(scores.n, LARGE_ROWS);
    write_lines(&self, in(state, "lines"), answers);
    assert_ok(predict(state, "rnn", in(state, "lines"), PACE_FORMAT_AUTO, &answered));
    assert_int_equal(answered, LARGE_TEXTS);
    assert_predictions(in(state, "out"), answers, LARGE_TEXTS);
    free_fixture(&self);
}

static void vocabularies_may_be_larger_than_any_piece(void **state)
{
    static const uint32_t cases[][2] = {{600, 1}, {10000, 16}, {30000, 3}}; /* words, length */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_large(state, cases[i][0], cases[i][1]);
}

/* --- as it is typed --- */

typedef struct talk {
    const char *run, *output;
    pace_status status;
    uint64_t rows;
} talk;

static void *predict_standard_input(void *arg)
{
    talk *self = arg;
    const char *inputs[] = {"-"};
    pace_predict_config config = {.inputs = {inputs, 1}, .run = self->run, .output = self->output};

    self->status = pace_predict(&config, &said_log, NULL, &self->rows);
    return NULL;
}

/* Puts a pipe in the place of standard input; returns the end to write to. */
static int replace_standard_input(int *saved)
{
    int ends[2];

    *saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    return ends[1];
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Each line is answered before the next one is sent. */
static void lines_are_answered_at_once(void **state)
{
    fixture self = make_fixture(state, false);
    talk own = {.run = strdup(in(state, "linear")), .output = strdup(in(state, "answers"))};
    int saved, to;
    pthread_t thread;
    char line[64];

    assert_int_equal(mkfifo(own.output, 0600), 0);
    to = replace_standard_input(&saved);
    assert_int_equal(pthread_create(&thread, NULL, predict_standard_input, &own), 0);
    FILE *answers = fopen(own.output, "r");

    assert_non_null(answers);
    for (uint32_t i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "w%u the\n", i);
        send_text(to, line);
        assert_non_null(fgets(line, sizeof line, answers));
        assert_float_equal(atof(line), sigmoid(linear_logit(&self, (uint32_t[]){3 + i}, 1)), 1e-6);
    }
    send_text(to, "w8"); /* no newline: answered at the end */
    close(to);
    assert_non_null(fgets(line, sizeof line, answers));
    assert_float_equal(atof(line), sigmoid(linear_logit(&self, (uint32_t[]){11}, 1)), 1e-6);
    assert_null(fgets(line, sizeof line, answers));
    pthread_join(thread, NULL);
    fclose(answers);
    assert_ok(own.status);
    assert_int_equal(own.rows, 6);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    free((void *)own.run);
    free((void *)own.output);
    free_fixture(&self);
}

static void json_on_standard_input_is_recognised(void **state)
{
    fixture self = make_fixture(state, false);
    talk own = {.run = in(state, "linear"), .output = in(state, "out")};
    int saved, to = replace_standard_input(&saved);

    send_text(to, "\n {\"reviewText\": \"w1 w2\"}\n");
    close(to);
    predict_standard_input(&own);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    assert_ok(own.status);
    assert_predictions(in(state, "out"), (double[]){linear_logit(&self, (uint32_t[]){4, 5}, 2)}, 1);
    free_fixture(&self);
}

static void typed_lines_come_whole(void **state)
{
    int ends[2];
    pace__chunk chunk = {0};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pace__typed typed = {.fd = ends[0], .name = "standard input", .log = &said_log};

    send_text(ends[1], "one\ntwo\nthr");
    assert_ok(pace__typed_next(&typed, &chunk));
    assert_int_equal(chunk.size, 8);
    assert_memory_equal(chunk.data, "one\ntwo\n", 8);
    assert_int_equal(chunk.offset, 0);
    send_text(ends[1], "ee\n");
    assert_ok(pace__typed_next(&typed, &chunk));
    assert_int_equal(chunk.size, 6);
    assert_memory_equal(chunk.data, "three\n", 6);
    assert_int_equal(chunk.offset, 8);
    send_text(ends[1], "four");
    close(ends[1]);
    assert_ok(pace__typed_next(&typed, &chunk));
    assert_int_equal(chunk.size, 4);
    assert_memory_equal(chunk.data, "four", 4);
    assert_int_equal(chunk.offset, 14);
    assert_ok(pace__typed_next(&typed, &chunk));
    assert_int_equal(chunk.size, 0);
    assert_ok(pace__typed_next(&typed, &chunk)); /* stays at the end */
    assert_int_equal(chunk.size, 0);
    pace__chunk_release(&chunk);
    close(ends[0]);
}

static void compressed_standard_input_is_refused(void **state)
{
    int ends[2];
    pace__chunk chunk = {0};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pace__typed typed = {.fd = ends[0], .name = "standard input", .log = &said_log};

    said_clear();
    send_text(ends[1], "\x1f\x8b\x08\x03");
    assert_failed(pace__typed_next(&typed, &chunk), PACE_BAD_DATA, "zcat");
    pace__chunk_release(&chunk);
    close(ends[0]);
    close(ends[1]);
}

static void lines_without_end_are_refused(void **state)
{
    pace__typed typed = {.fd = open("/dev/zero", O_RDONLY), .name = "standard input", .log = &said_log};
    pace__chunk chunk = {0};

    (void)state;
    said_clear();
    assert_failed(pace__typed_next(&typed, &chunk), PACE_BAD_DATA, "standard input");
    pace__chunk_release(&chunk);
    close(typed.fd);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_a_set_get_the_models_logits),
        TEST(rows_of_clicks_get_the_models_logits),
        TEST(texts_become_rows_as_prep_makes_them),
        TEST(eval_scores_texts),
        TEST(errors_are_those_of_pictures),
        TEST(sets_that_do_not_fit_are_refused),
        TEST(files_of_texts_are_predicted),
        TEST(files_of_two_formats_are_refused),
        TEST(many_texts_are_predicted_in_order),
        TEST(bad_texts_leave_nothing_behind),
        TEST(models_of_clicks_take_no_texts),
        TEST(vocabularies_may_be_larger_than_any_piece),
        TEST(lines_are_answered_at_once),
        TEST(json_on_standard_input_is_recognised),
        TEST(typed_lines_come_whole),
        TEST(compressed_standard_input_is_refused),
        TEST(lines_without_end_are_refused),
        TEST(texts_are_described),
        TEST(models_on_texts_are_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

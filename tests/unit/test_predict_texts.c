/* Models on texts, linear and recurrent, used: predict, of files and as it is typed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text_models.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

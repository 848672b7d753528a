/*
 * text_models.h - models on texts that were never trained, and what they must answer. Include it behind <cmocka.h>.
 */
#ifndef UNIT_TEXT_MODELS_H
#define UNIT_TEXT_MODELS_H

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

static inline void write_linear(void **state, fixture *self)
{
    uint32_t ids = pace__ngram_ids(self->set.info.ids_seen, self->ngram);

    self->weight = tiny_alloc(ids * sizeof *self->weight);
    for (uint32_t id = 0; id < ids; id++) /* zeros between them, as a model has that was trained */
        self->weight[id] = id % 3 ? tiny_weight(id) : 0;
    linear_write_text(in(state, "linear"), &self->set.info.encoding, self->set.vocabulary, self->ngram,
                      self->weight, ids, 0.125f, NULL);
}

static inline void write_rnn(void **state, fixture *self)
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

static inline fixture make_fixture(void **state, bool front)
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

static inline void free_fixture(fixture *self)
{
    tiny_texts_free(&self->set);
    free(self->weight);
    free(self->embedding);
    free(self->dense);
}

/* --- logits --- */

static inline bool seen(const uint32_t *list, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == id)
            return true;
    }
    return false;
}

/* A text's words, and its pairs of words, each once. */
static inline double linear_logit(const fixture *self, const uint32_t *words, uint32_t length)
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

static inline void rnn_logits(const fixture *self, const pace__rows *rows, float *logits)
{
    pace__rnn_batch batch = {
        .rows = rows, .slots = self->config.words, .embedding = self->embedding, .dense = self->dense};

    assert_ok(pace__rnn_plain_logits(&self->config, &batch, logits, &said_log));
}

static inline void expected_logits(const fixture *self, const char *model, const pace__rows *rows,
                                   float *logits)
{
    if (strcmp(model, "rnn") == 0) {
        rnn_logits(self, rows, logits);
        return;
    }
    for (size_t i = 0; i < rows->rows; i++)
        logits[i] = (float)linear_logit(self, pace__row_words(rows, i), rows->length[i]);
}

static const char *const models[] = {"linear", "rnn"};

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

#endif

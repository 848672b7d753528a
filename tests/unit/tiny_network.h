/*
 * tiny_network.h - a tiny data set of pictures, DIR/set, and a network on it that was never trained, DIR/model:
 * for tests of those who use a model, which have to compute the same. Include it behind <cmocka.h>.
 */
#ifndef UNIT_TINY_NETWORK_H
#define UNIT_TINY_NETWORK_H

#include "metrics/softmax.h"

#include "model_files.h"
#include "support.h"
#include "tiny_pictures.h"

#define ROWS      60 /* of training, and as many of the test */
#define SIDE      11
#define COLUMNS   (SIDE * (SIDE + 1) * 3)
#define TOLERANCE 2e-4 /* between implementations of the network */

typedef struct fixture {
    tiny_pictures set;
    pace__cnn_config config;
    pace__cnn_net net;
    float *weights, *stats;
    float *logits[PACE__SETS]; /* once they were asked for */
} fixture;

/* Its head does not think everything equally likely. */
static inline void write_model(void **state, fixture *self, bool one_logit)
{
    pace__random random = pace__random_at(6, 6);

    self->config = (pace__cnn_config){.arch = PACE_ARCH_SMALL,
                                      .width = 0.25f,
                                      .height = SIDE,
                                      .side = SIDE + 1,
                                      .channels = 3,
                                      .classes = self->set.plan.classes,
                                      .one_logit = one_logit,
                                      .epsilon = 1e-3f,
                                      .mean = {120, 120, 120},
                                      .deviation = {60, 60, 60},
                                      .weight = {1, 1},
                                      .seed = 7};
    assert_ok(pace__cnn_net_make(&self->config, &said_log, &self->net));
    self->weights = tiny_alloc(self->net.weights * sizeof *self->weights);
    self->stats = tiny_alloc(self->net.stats * sizeof *self->stats);
    pace__cnn_init(&self->config, &self->net, self->weights, self->stats);
    for (size_t i = self->net.head_weight_at; i < self->net.weights; i++)
        self->weights[i] = (float)(pace__random_unit(&random) * 6 - 3);
    cnn_write(in(state, "model"), &self->config, &self->set.info.encoding, &self->set.names, self->weights,
              self->stats, NULL);
}

static inline fixture make_fixture(void **state, uint32_t classes, bool one_logit)
{
    fixture self = {
        .set = tiny_pictures_make((tiny_pictures_plan){
            .train = ROWS, .test = ROWS, .side = SIDE, .channels = 3, .classes = classes, .seed = 5})};

    tiny_pictures_write(&self.set, in(state, "set"));
    assert_ok(pace__store_seal(in(state, "set"), &said_log));
    write_model(state, &self, one_logit);
    return self;
}

static inline void free_fixture(fixture *self)
{
    tiny_pictures_free(&self->set);
    free(self->weights);
    free(self->stats);
    free(self->logits[PACE__TRAIN]);
    free(self->logits[PACE__TEST]);
}

static inline const char *class_name(const fixture *self, uint32_t class)
{
    return self->set.names.items[class];
}

/* Of all rows of a set, by the plain implementation, from the values that were written. */
static inline const float *expected_logits(fixture *self, int set)
{
    pace__rows rows = tiny_pictures_view(&self->set, set);
    pace__cnn_plan plan = {.config = &self->config, .rows_max = 8, .threads = 1, .plain = true};
    pace__cnn *cnn;

    if (self->logits[set])
        return self->logits[set];
    self->logits[set] = tiny_alloc(ROWS * self->net.outputs * sizeof(float));
    assert_ok(pace__cnn_create(&plan, &said_log, &cnn));
    assert_ok(pace__cnn_logits(cnn, &rows, self->weights, self->stats, self->logits[set]));
    pace__cnn_free(cnn);
    return self->logits[set];
}

/* What a row is taken for, and the probability of that. */
static inline uint32_t predicted(const fixture *self, const float *logits, size_t row, double *probability)
{
    float pair[2] = {0, logits[row]};
    const float *all = self->net.outputs == 1 ? pair : logits + row * self->net.outputs;
    pace__softmax found;

    assert_true(pace__softmax_of(all, self->set.plan.classes, &found));
    *probability = pace__softmax_probability(&found, found.most);
    return found.best;
}

#endif

/*
 * made_models.h - models as those see them who spread their training: plans, batches and a weight for every key.
 * Include it behind <cmocka.h>.
 *
 *     made *self = make_model(&plan, 100, 2);
 *     fetch(self, &rows);
 *     ...
 *     free_made(self);
 */
#ifndef UNIT_MADE_MODELS_H
#define UNIT_MADE_MODELS_H

#include "data/store/describe.h"

#include "model_files.h"
#include "tiny_texts.h"

static inline void assert_near(double found, double expected, double tolerance, const char *what, size_t at)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s %zu: %.9g instead of %.9g", what, at, found, expected);
}

/* A weight for every key, of some size. */
static inline float weight_of(uint64_t key)
{
    return (float)((double)(pace__mix64(key + 99) >> 11) * 0x1p-53 - 0.5);
}

static const pace__rnn_config usual = {.embed = 5,
                                       .hidden = 4,
                                       .layers = 2,
                                       .dense = 3,
                                       .cell = PACE_CELL_LSTM,
                                       .pooling = PACE_POOL_MEAN,
                                       .both = true,
                                       .dropout = 0.3f,
                                       .loss = PACE_LOSS_BCE,
                                       .focal = 2,
                                       .weight = {1, 2},
                                       .seed = 7};

/* --- plans, to be released --- */

static inline pace__model_plan logreg_plan(const pace__store_info *info, unsigned ngram, int rule)
{
    pace__dataset data = pace__store_describe(info);
    pace__model_plan plan;

    assert_ok(pace__logreg_model_plan(&data, ngram, &said_log, &plan));
    plan.optim = pace__optim_make(rule, 0.1, 0, 0, 0);
    return plan;
}

static inline pace__model_plan rnn_plan_of(const pace__store_info *info, const pace__rnn_config *config)
{
    pace__dataset data = pace__store_describe(info);
    pace__model_plan plan;

    assert_ok(pace__rnn_model_plan(&data, config, 0, &said_log, &plan));
    return plan;
}

static inline pace__model_plan rnn_plan(const tiny_texts *set, unsigned variant)
{
    pace__rnn_config config = usual;

    config.words = set->info.ids_seen;
    config.length = set->plan.length;
    config.cell = variant & 1 ? PACE_CELL_GRU : PACE_CELL_LSTM;
    config.both = variant & 2;
    config.layers = 1 + variant % 3;
    config.embed = variant & 1 ? 7 : 5;
    config.pooling = (int)(variant % 3);
    config.dense = variant & 4 ? 3 : 0;
    config.dropout = variant & 2 ? 0.3f : 0;
    return rnn_plan_of(&set->info, &config);
}

static inline pace__rnn_own *own_of(const pace__model_plan *plan)
{
    return plan->own;
}

/* --- some rows, and what a model makes of them --- */

typedef struct made {
    pace__model_plan plan;
    pace__shape shape;
    pace__model *model;
    pace__model_batch batch;
    pace__task task;
    size_t room; /* rows of parameters in task.weights and .sums */
} made;

static inline made *make_model(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    made *self = tiny_alloc(sizeof *self);

    said_clear();
    self->plan = *plan;
    self->shape = plan->shape;
    assert_ok(pace__model_create(plan, rows_max, threads, false, &said_log, &self->model));
    assert_true(pace__model_memory(plan, rows_max, threads, false) > 0);
    self->room = pace__model_keys_max(plan, rows_max) + 1;
    self->task = (pace__task){.batch = &self->batch,
                              .weights = tiny_alloc(self->room * self->shape.dim * sizeof(float)),
                              .sums = tiny_alloc(self->room * self->shape.dim * sizeof(float))};
    return self;
}

static inline void free_made(made *self)
{
    pace__model_batch_release(&self->batch);
    pace__model_free(self->model);
    free(self->task.weights);
    free(self->task.sums);
    free(self);
}

/* The keys of the rows, and their weights, as a worker gets them; what must be set holds something else. */
static inline void fetch(made *self, const pace__rows *rows)
{
    unsigned dim = self->shape.dim;
    const pace__key_batch *keys = &self->batch.keys;

    assert_ok(pace__model_find(self->model, rows, PACE__NO_PLACE, &self->batch));
    assert_true(keys->count < self->room);
    assert_int_equal(self->batch.sparse + self->shape.dense_rows, keys->count);
    for (size_t i = 0; i < self->room * dim; i++)
        self->task.sums[i] = self->task.weights[i] = 1e9f;
    for (uint32_t slot = 0; slot < keys->count; slot++) {
        assert_true(keys->keys[slot] < self->shape.keys);
        for (unsigned at = 0; at < dim; at++)
            self->task.weights[slot * dim + at] = weight_of((uint64_t)keys->keys[slot] * dim + at);
    }
}

/* Weights of all keys, as for scoring. */
static inline float *all_weights(const pace__shape *shape)
{
    size_t count = (size_t)shape->keys * shape->dim;
    float *weights = tiny_alloc((count + shape->dim) * sizeof *weights);

    for (size_t i = 0; i < count; i++)
        weights[i] = weight_of(i);
    return weights;
}

/* --- what is called on the way --- */

typedef struct calls {
    unsigned count, most;
    size_t first; /* of the last */
} calls;

static inline pace_status count_calls(void *user, size_t first)
{
    calls *self = user;

    assert_true(self->count == 0 || first <= self->first);
    self->first = first;
    self->count++;
    return self->count == self->most ? PACE_BAD_DATA : PACE_OK;
}

#endif

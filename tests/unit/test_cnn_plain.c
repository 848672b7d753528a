/* The convolutional network in its plain form: gradients against finite differences, what training and
 * inference share, several workers, what is frozen. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/convnet/cnn.h"

#include "support.h"

#define ROWS 5

/* The thread sanitizer makes plain loops twenty times slower and has nothing to find in gradients: fewer are
 * measured. */
#ifdef __SANITIZE_THREAD__
#define SPARING 7
#else
#define SPARING 1
#endif

/* Pictures and values of a network, and room for its gradients. */
typedef struct problem {
    pace__cnn_config config;
    pace__cnn_net net;
    pace__rows rows;
    uint8_t *pixels;
    uint16_t classes[ROWS];
    uint32_t source[ROWS];
    float *weights, *stats; /* all of them */
    float *sums, *stats_sums;
    pace__cnn_batch batch;
    pace__cnn *cnn;
} problem;

static pace__cnn_config make_config(int arch, float width, uint32_t side, uint32_t classes)
{
    return (pace__cnn_config){.arch = arch,
                              .width = width,
                              .height = side,
                              .side = side,
                              .channels = 3,
                              .classes = classes,
                              .epsilon = 1e-3f,
                              .momentum = 0.1f,
                              .mean = {120, 110, 130},
                              .deviation = {60, 70, 80},
                              .weight = {1, 1},
                              .seed = 5};
}

/* To a multiple of 2^-12, so that adding a smaller power of 2 is exact. */
static float rounded(double value)
{
    return (float)(round(value * 4096) / 4096);
}

static double draw(pace__random *random, double low, double high)
{
    return low + (high - low) * pace__random_unit(random);
}

/* First values, but none that hides an error: gamma not 1 (or 0), beta and bias not 0, statistics of their
 * own. */
static void draw_values(problem *self, pace__random *random)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned count = pace__cnn_tensors(&self->net, tensors);

    pace__cnn_init(&self->config, &self->net, self->weights, self->stats);
    for (unsigned t = 0; t < count; t++) {
        float *values = (tensors[t].stats ? self->stats : self->weights) + tensors[t].at;
        bool positive = strstr(tensors[t].name, ".gamma") || strstr(tensors[t].name, ".variance");

        for (size_t i = 0; i < tensors[t].size; i++)
            values[i] = tensors[t].decays ? rounded((double)values[i])
                        : positive        ? rounded(draw(random, 0.5, 1.5))
                                          : rounded(draw(random, -0.5, 0.5));
    }
}

/* The network of the problem with another number of frozen units, or rows at a time. */
static void create(problem *self, uint64_t rows_max)
{
    pace__cnn_plan plan = {.config = &self->config,
                           .frozen_weights = self->weights,
                           .frozen_stats = self->stats,
                           .rows_max = rows_max,
                           .threads = 1,
                           .trains = true,
                           .plain = true};

    pace__cnn_free(self->cnn);
    self->cnn = NULL;
    assert_ok(pace__cnn_net_make(&self->config, &said_log, &self->net));
    assert_ok(pace__cnn_create(&plan, &said_log, &self->cnn));
    self->batch.weights = self->weights + self->net.trained_at;
    self->batch.stats = self->stats + self->net.stats_trained_at;
}

static void problem_init(problem *self, const pace__cnn_config *config)
{
    pace__random random = pace__random_at(17, 1);
    uint32_t columns = config->height * config->side * config->channels;

    *self = (problem){.config = *config};
    assert_ok(pace__cnn_net_make(config, &said_log, &self->net));
    self->pixels = tiny_alloc((size_t)ROWS * columns);
    for (size_t i = 0; i < (size_t)ROWS * columns; i++)
        self->pixels[i] = (uint8_t)pace__random_next(&random);
    for (uint32_t row = 0; row < ROWS; row++) {
        self->classes[row] = (uint16_t)((row + 1) % config->classes);
        self->source[row] = row;
    }
    self->rows = (pace__rows){.rows = ROWS,
                              .columns = columns,
                              .pixels = self->pixels,
                              .classes = self->classes,
                              .source = self->source};
    self->weights = tiny_alloc(self->net.weights * 4);
    self->stats = tiny_alloc(self->net.stats * 4);
    self->sums = tiny_alloc(self->net.weights * 4);
    self->stats_sums = tiny_alloc(self->net.stats * 4);
    draw_values(self, &random);
    self->batch = (pace__cnn_batch){.rows = &self->rows,
                                    .place = 1000,
                                    .step_rows = ROWS,
                                    .sums = self->sums,
                                    .stats_sums = self->stats_sums};
    create(self, ROWS);
}

static void problem_free(problem *self)
{
    pace__cnn_free(self->cnn);
    free(self->pixels);
    free(self->weights);
    free(self->stats);
    free(self->sums);
    free(self->stats_sums);
}

static uint32_t unit_number(const problem *self, const char *name)
{
    uint32_t u = pace__cnn_find_unit(&self->net, name);

    assert_int_not_equal(u, UINT32_MAX);
    return u;
}

static void assert_close(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.12g, not %.12g", what, found, expected);
}

/* --- gradients --- */

/* The weights of a tensor move together, each up or down as `signs` says. */
static double loss_moved(problem *self, const pace__cnn_tensor *tensor, const float *signs, float step)
{
    float *values = self->weights + tensor->at;

    for (size_t i = 0; i < tensor->size; i++)
        values[i] += signs[i] * step;
    assert_ok(pace__cnn_gradient(self->cnn, &self->batch));
    for (size_t i = 0; i < tensor->size; i++)
        values[i] -= signs[i] * step;
    return self->batch.loss;
}

/* A tensor's derivative along a direction in which all of its weights move: measured less computed, as a part
 * of all slopes. */
static double slope_error(problem *self, const pace__cnn_tensor *tensor, const float *gradient,
                          pace__random *random)
{
    const float step = 0x1p-21f;
    float *signs = tiny_alloc(tensor->size * sizeof *signs);
    double expected = 0, size = 0.1;

    for (size_t i = 0; i < tensor->size; i++) {
        double slope = (double)gradient[tensor->at - self->net.trained_at + i];

        signs[i] = pace__random_next(random) >> 63 ? 1 : -1;
        expected += slope * (double)signs[i];
        size += fabs(slope);
    }
    double up = loss_moved(self, tensor, signs, step), down = loss_moved(self, tensor, signs, -step);

    free(signs);
    return ((up - down) / (2 * (double)step) - expected) / size;
}

/* One of a hundred thousand activations may bend just where it is measured. That is so in one direction; a
 * wrong gradient is wrong in all of them. */
static void check_tensor(problem *self, const pace__cnn_tensor *tensor, const float *gradient,
                         pace__random *random)
{
    double error = 1;

    for (int direction = 0; direction < 4 && !(fabs(error) <= 2e-5); direction++)
        error = slope_error(self, tensor, gradient, random);
    if (!(fabs(error) <= 2e-5))
        fail_msg("%s moves the loss by something else, %g of all slopes", tensor->name, error);
}

/* Of every `stride`-th unit, and the head. */
static void check_some_gradients(const pace__cnn_config *config, uint32_t stride)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    pace__random random = pace__random_at(23, 1);
    problem self;

    problem_init(&self, config);
    unsigned count = pace__cnn_tensors(&self.net, tensors), checked = 0;
    size_t trained = self.net.weights - self.net.trained_at;
    float *gradient = tiny_alloc(trained * sizeof *gradient);

    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    memcpy(gradient, self.sums, trained * sizeof *gradient);
    for (unsigned t = 0; t < count; t++) {
        bool skipped = t < 5 * self.net.units && t / 5 % stride != 0;

        if (skipped || tensors[t].stats || tensors[t].at < self.net.trained_at)
            continue;
        check_tensor(&self, &tensors[t], gradient, &random);
        checked++;
    }
    if (stride == 1)
        assert_int_equal(checked, 3 * (self.net.units - config->first_trained) + 2);
    free(gradient);
    problem_free(&self);
}

static void check_gradients(const pace__cnn_config *config)
{
    check_some_gradients(config, SPARING);
}

static void gradients_of_small(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 0.1f, 9, 3);

    (void)state;
    check_gradients(&config);
    config.height = 12; /* not square; and all that the head has */
    config.smoothing = 0.2f;
    config.dropout = 0.4f;
    check_gradients(&config);
    config.same = true;
    check_gradients(&config);
}

static void gradients_of_one_logit(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 0.1f, 8, 2);

    (void)state;
    config.channels = 1;
    config.one_logit = true;
    config.weight[0] = 0.5f;
    config.weight[1] = 2;
    config.smoothing = 0.1f;
    check_gradients(&config);
    config.one_logit = false;
    check_gradients(&config);
}

static void gradients_of_resnet20(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);

    (void)state;
    check_gradients(&config);
    config.same = true;
    check_gradients(&config);
}

static void gradients_of_mobilenet_v1(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V1, 0.1f, 32, 4);

    (void)state;
    config.same = true;
    config.epsilon =
        0.5f; /* five values per channel at the end: without it the slopes are too steep to measure */
    check_some_gradients(&config, 3 * SPARING); /* depthwise and pointwise in turn */
}

static void gradients_of_mobilenet_v2(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V2, 0.1f, 32, 4);

    (void)state;
    config.epsilon = 0.5f;
    check_some_gradients(&config, 5 * SPARING); /* expand, depthwise and project in turn */
}

static void gradients_behind_frozen_layers(void **state)
{
    /* In the middle of a block whose beginning is added to its end; at a shortcut; only the head. */
    static const char *const names[] = {"stage1.block1.conv2", "stage2.block0.shortcut",
                                        "stage3.block1.conv1", "head"};
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pace__cnn_net net;

        assert_ok(pace__cnn_net_make(&config, &said_log, &net));
        pace__cnn_config frozen = config;

        frozen.first_trained = pace__cnn_find_unit(&net, names[i]);
        frozen.dropout = 0.25f;
        check_gradients(&frozen);
    }
}

/* --- training and inference --- */

/* The loss of logits, and no dropout: what gradient's is. */
static double loss_of_logits(problem *self)
{
    float *logits = tiny_alloc((size_t)ROWS * self->net.outputs * 4);
    float *slopes = tiny_alloc(self->net.outputs * sizeof *slopes);
    double loss = 0;

    assert_ok(pace__cnn_logits(self->cnn, &self->rows, self->batch.weights, self->batch.stats, logits));
    for (size_t row = 0; row < ROWS; row++)
        loss += pace__cnn_loss(&self->config, logits + row * self->net.outputs, self->classes[row], slopes);
    free(logits);
    free(slopes);
    return loss;
}

/* With momentum 1 the running statistics become those of the batch; a network that uses them computes what
 * training did, if its variances are the biased ones. */
static void check_statistics(pace__cnn_config config)
{
    problem self;

    config.momentum = 1;
    problem_init(&self, &config);
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    double loss = self.batch.loss;

    for (uint32_t u = config.first_trained; u < self.net.units; u++) {
        const pace__cnn_unit *unit = &self.net.unit[u];
        float count = (float)(ROWS * unit->height * unit->width);

        for (uint32_t c = 0; c < unit->channels; c++) {
            size_t mean = unit->mean_at + c, variance = unit->variance_at + c;

            self.stats[mean] -= self.stats_sums[mean - self.net.stats_trained_at];
            self.stats[variance] -= self.stats_sums[variance - self.net.stats_trained_at];
            assert_true(self.stats[variance] >= 0);
            self.stats[variance] *= (count - 1) / count;
        }
    }
    create(&self,
           ROWS); /* frozen values are read when they are needed, or copied: as the implementation likes */
    assert_close(loss_of_logits(&self), loss, 1e-4, "loss");
    problem_free(&self);
}

static void statistics_are_those_of_the_batch(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);

    (void)state;
    check_statistics(config);
    config.first_trained = 7;
    check_statistics(config);
    check_statistics(make_config(PACE_ARCH_SMALL, 0.1f, 9, 2));
    check_statistics(make_config(PACE_ARCH_MOBILENET_V1, 0.1f, 64, 2));
}

/* Mean and variance of the first layer by hand; momentum goes part of the way. */
static void statistics_move_by_momentum(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 0.04f, 4, 2);
    problem self;

    (void)state;
    config.channels = 1;
    config.momentum = 0.25f;
    problem_init(&self, &config);
    assert_int_equal(self.net.unit[0].channels, 1);
    double sum = 0, squares = 0, count = ROWS * 16, deviation;

    for (int i = 0; i < ROWS * 16; i++) {
        int row = i / 16, y = i / 4 % 4, x = i % 4;
        double z = 0;

        for (int k = 0; k < 9; k++) {
            int from_y = y + k / 3 - 1, from_x = x + k % 3 - 1;

            if (from_y >= 0 && from_y < 4 && from_x >= 0 && from_x < 4)
                z += (double)self.weights[k] * (self.pixels[row * 16 + from_y * 4 + from_x] - 120.0) / 60;
        }
        sum += z;
        squares += z * z;
    }
    deviation = (squares - sum * sum / count) / (count - 1);
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    assert_close((double)self.stats_sums[0], 0.25 * ((double)self.stats[0] - sum / count), 1e-6, "mean");
    assert_close((double)self.stats_sums[1], 0.25 * ((double)self.stats[1] - deviation), 1e-6, "variance");
    problem_free(&self);
}

static void logits_do_not_depend_on_pieces(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);
    float together[ROWS * 4], pieces[ROWS * 4], frozen[ROWS * 4];
    problem self;

    (void)state;
    config.dropout = 0.5f; /* of training only */
    problem_init(&self, &config);
    assert_ok(pace__cnn_logits(self.cnn, &self.rows, self.batch.weights, self.batch.stats, together));
    create(&self, 2);
    self.rows.classes = NULL; /* nobody knows them */
    self.rows.source = NULL;
    assert_ok(pace__cnn_logits(self.cnn, &self.rows, self.batch.weights, self.batch.stats, pieces));
    assert_memory_equal(together, pieces, sizeof together);
    self.config.first_trained = unit_number(&self, "stage2.block1.conv2");
    create(&self, 3);
    assert_ok(pace__cnn_logits(self.cnn, &self.rows, self.batch.weights, self.batch.stats, frozen));
    assert_memory_equal(together, frozen, sizeof together);
    for (int i = 4; i < 8; i++)
        assert_true(together[i] != together[i - 4]);
    problem_free(&self);
}

/* What is trained on features is what is trained on the pictures that they are of. */
static void features_stand_for_pictures(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);
    problem self;

    (void)state;
    config.dropout = 0.3f;
    problem_init(&self, &config);
    self.config.first_trained = self.net.units;
    create(&self, ROWS);
    uint32_t count = self.net.features;
    size_t weights = self.net.weights - self.net.trained_at;
    float *features = tiny_alloc((size_t)ROWS * count * 4), *expected = tiny_alloc(weights * 4);
    float logits[ROWS * 4], expected_logits[ROWS * 4];

    assert_int_equal(weights, (count + 1) * 4);
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    memcpy(expected, self.sums, weights * 4);
    double loss = self.batch.loss;

    assert_ok(pace__cnn_logits(self.cnn, &self.rows, self.batch.weights, NULL, expected_logits));
    assert_ok(pace__cnn_features(self.cnn, &self.rows, features));
    self.rows.pixels = NULL;
    self.rows.features = features;
    self.rows.columns = count;
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    assert_close(self.batch.loss, loss, 1e-6, "loss");
    for (size_t i = 0; i < weights; i++)
        assert_close((double)self.sums[i], (double)expected[i], 1e-6, "gradient");
    assert_ok(pace__cnn_logits(self.cnn, &self.rows, self.batch.weights, NULL, logits));
    for (int i = 0; i < ROWS * 4; i++)
        assert_close((double)logits[i], (double)expected_logits[i], 1e-6, "logit");
    free(features);
    free(expected);
    problem_free(&self);
}

/* --- several workers --- */

#define WORKERS 3

/* Where workers meet to add up. */
typedef struct meeting {
    pthread_barrier_t barrier;
    float values[WORKERS][PACE__CNN_SUM_MAX];
    size_t count[WORKERS];
} meeting;

typedef struct worker {
    meeting *at;
    unsigned number;
    unsigned calls;
    problem *self;
    pace__rows rows;
    pace__cnn_batch batch;
    pthread_t thread;
} worker;

static pace_status add_up(void *user, float *values, size_t count)
{
    worker *self = user;
    meeting *at = self->at;

    self->calls++;
    require(count <= PACE__CNN_SUM_MAX);
    memcpy(at->values[self->number], values, count * sizeof *values);
    at->count[self->number] = count;
    pthread_barrier_wait(&at->barrier);
    for (unsigned other = 0; other < WORKERS; other++)
        require(at->count[other] == count);
    for (size_t i = 0; i < count; i++) {
        values[i] = 0;
        for (unsigned other = 0; other < WORKERS; other++)
            values[i] += at->values[other][i];
    }
    pthread_barrier_wait(&at->barrier);
    return PACE_OK;
}

static void *work(void *argument)
{
    worker *self = argument;

    require(pace__cnn_gradient(self->self->cnn, &self->batch) == PACE_OK);
    return NULL;
}

static void start_worker(worker *self, size_t first, size_t last)
{
    problem *whole = self->self;

    self->rows = pace__rows_slice(&whole->rows, first, last - first);
    self->batch = whole->batch;
    self->batch.rows = &self->rows;
    self->batch.place += first;
    self->batch.sums = tiny_alloc(whole->net.weights * 4);
    self->batch.stats_sums = tiny_alloc(whole->net.stats * 4);
    self->batch.sum = add_up;
    self->batch.user = self;
    assert_int_equal(pthread_create(&self->thread, NULL, work, self), 0);
}

/* Three workers, one of them without rows, against one with all of them. */
static void check_workers(const pace__cnn_config *config)
{
    static meeting at;
    static const size_t first[WORKERS + 1] = {0, 3, 3, ROWS};
    worker workers[WORKERS] = {0};
    problem self;
    double loss = 0;

    problem_init(&self, config);
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    assert_int_equal(pthread_barrier_init(&at.barrier, NULL, WORKERS), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.at = &at, .number = i, .self = &self};
        start_worker(&workers[i], first[i], first[i + 1]);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        loss += workers[i].batch.loss;
        assert_int_equal(workers[i].calls, workers[0].calls);
    }
    assert_close(loss, self.batch.loss, 1e-5, "loss");
    for (size_t i = 0; i < self.net.weights - self.net.trained_at; i++) {
        float sum = workers[0].batch.sums[i] + workers[1].batch.sums[i] + workers[2].batch.sums[i];

        assert_close((double)sum, (double)self.sums[i], 1e-4, "gradient");
    }
    for (size_t i = 0; i < self.net.stats - self.net.stats_trained_at; i++) {
        float sum =
            workers[0].batch.stats_sums[i] + workers[1].batch.stats_sums[i] + workers[2].batch.stats_sums[i];

        assert_close((double)sum, (double)self.stats_sums[i], 1e-5, "statistics");
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        free(workers[i].batch.sums);
        free(workers[i].batch.stats_sums);
    }
    pthread_barrier_destroy(&at.barrier);
    problem_free(&self);
}

static void workers_are_one(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);

    (void)state;
    config.dropout = 0.3f;
    check_workers(&config);
    config.first_trained = 9;
    check_workers(&config);
    config.first_trained = 21; /* only the head: nothing to add up */
    check_workers(&config);
    config = make_config(PACE_ARCH_SMALL, 0.1f, 8, 2);
    config.one_logit = true;
    check_workers(&config);
}

typedef struct stopper {
    unsigned calls, last;
} stopper;

static pace_status stop(void *user, float *values, size_t count)
{
    stopper *self = user;

    (void)values;
    (void)count;
    return ++self->calls == self->last ? PACE_LOST : PACE_OK;
}

/* At every one of the calls, forward and backward. */
static void a_step_ends_when_told(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 0.1f, 8, 2);
    problem self;
    stopper told = {0};

    (void)state;
    problem_init(&self, &config);
    self.batch.sum = stop;
    self.batch.user = &told;
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    unsigned calls = told.calls;

    assert_true(calls >= 8); /* at least once forward and once backward, of four layers */
    for (unsigned last = 1; last <= calls; last++) {
        told = (stopper){.last = last};
        assert_int_equal(pace__cnn_gradient(self.cnn, &self.batch), PACE_LOST);
        assert_int_equal(told.calls, last);
    }
    problem_free(&self);
}

/* --- readiness --- */

typedef struct watcher {
    const problem *self;
    float *copy; /* of sums as they were when they were said to be complete */
    size_t complete;
    unsigned calls, steps, last; /* `last`: at which a status is returned; 0: never */
} watcher;

static pace_status watch(void *user, size_t first)
{
    watcher *self = user;
    const problem *of = self->self;

    assert_true(first <= self->complete);
    memcpy(self->copy + first, of->sums + first, (self->complete - first) * sizeof *self->copy);
    self->steps += first < self->complete;
    self->complete = first;
    return ++self->calls == self->last ? PACE_FAILED : PACE_OK;
}

static void tells_what_is_complete(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 0.2f, 8, 4);
    problem self;

    (void)state;
    config.first_trained = 4;
    problem_init(&self, &config);
    size_t count = self.net.weights - self.net.trained_at;
    watcher seen = {.self = &self, .copy = tiny_alloc(count * sizeof(float)), .complete = count};

    self.batch.ready = watch;
    self.batch.user = &seen;
    assert_ok(pace__cnn_gradient(self.cnn, &self.batch));
    assert_int_equal(seen.complete, 0);
    assert_true(seen.steps > 3 && seen.calls > seen.steps);
    assert_memory_equal(seen.copy, self.sums, count * sizeof(float));
    unsigned calls = seen.calls;

    for (unsigned last = 1; last <= calls; last += 5) {
        seen = (watcher){.self = &self, .copy = seen.copy, .complete = count, .last = last};
        assert_int_equal(pace__cnn_gradient(self.cnn, &self.batch), PACE_FAILED);
        assert_int_equal(seen.calls, last);
    }
    free(seen.copy);
    problem_free(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_small),
        cmocka_unit_test(gradients_of_one_logit),
        cmocka_unit_test(gradients_of_resnet20),
        cmocka_unit_test(gradients_of_mobilenet_v1),
        cmocka_unit_test(gradients_of_mobilenet_v2),
        cmocka_unit_test(gradients_behind_frozen_layers),
        cmocka_unit_test(statistics_are_those_of_the_batch),
        cmocka_unit_test(statistics_move_by_momentum),
        cmocka_unit_test(logits_do_not_depend_on_pieces),
        cmocka_unit_test(features_stand_for_pictures),
        cmocka_unit_test(workers_are_one),
        cmocka_unit_test(a_step_ends_when_told),
        cmocka_unit_test(tells_what_is_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The fast convolutional network against the plain one: every architecture, frozen parts, odd sizes, both
 * sets of kernels; the same bits for any number of threads; batch norm over several workers; what `ready` is
 * told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/random.h"
#include "math/bf16.h"
#include "model/convnet/cnn.h"
#include "model/convnet/cnn_fast.h"
#include "support.h"

#include <math.h>
#include <pthread.h>

#define SEED 20250311

/* A batch with everything that it points to. */
typedef struct made {
    pace__cnn_config config;
    pace__cnn_net net;
    pace__cnn_plan plan;
    pace__rows rows;
    pace__cnn_batch batch;
    uint8_t *pixels;
    uint16_t *classes;
    uint32_t *source;
    float *features;
    float *weights, *stats; /* all of them */
    size_t sums, stats_sums;
} made;

static const pace__cnn_config usual = {
    .arch = PACE_ARCH_SMALL,
    .width = 0.5f,
    .height = 9,
    .side = 11,
    .channels = 3,
    .classes = 3,
    .epsilon = 1e-3f,
    .momentum = 0.1f,
    .mean = {120, 130, 110},
    .deviation = {60, 50, 70},
    .weight = {1, 1},
    .seed = 5,
};

static float *floats(size_t count)
{
    float *values = calloc(count ? count : 1, sizeof *values);

    assert_non_null(values);
    return values;
}

static float draw(pace__random *random, float low, float high)
{
    return low + (high - low) * (float)pace__random_unit(random);
}

/* First values; but batch norms that do something, also in front of additions. */
static void make_values(made *it, pace__random *random)
{
    pace__cnn_init(&it->config, &it->net, it->weights, it->stats);
    for (uint32_t u = 0; u < it->net.units; u++) {
        const pace__cnn_unit *unit = &it->net.unit[u];

        for (uint32_t i = 0; i < unit->channels; i++) {
            it->weights[unit->gamma_at + i] = draw(random, 0.6f, 1.6f);
            it->weights[unit->beta_at + i] = draw(random, -0.3f, 0.9f);
            it->stats[unit->mean_at + i] = draw(random, -0.3f, 0.3f);
            it->stats[unit->variance_at + i] = draw(random, 0.5f, 2);
        }
    }
}

static void make_rows(made *it, size_t rows, pace__random *random)
{
    uint32_t columns = it->config.height * it->config.side * it->config.channels;

    it->pixels = calloc(rows * columns + 1, 1);
    it->classes = calloc(rows + 1, sizeof *it->classes);
    it->source = calloc(rows + 1, sizeof *it->source);
    assert_true(it->pixels && it->classes && it->source);
    for (size_t i = 0; i < rows * columns; i++)
        it->pixels[i] = (uint8_t)pace__random_below(random, 256);
    for (size_t row = 0; row < rows; row++)
        it->classes[row] = (uint16_t)pace__random_below(random, it->config.classes);
    it->rows = (pace__rows){
        .rows = rows, .columns = columns, .pixels = it->pixels, .classes = it->classes, .source = it->source};
}

static made *make(pace__cnn_config config, size_t rows, size_t rows_max)
{
    made *it = calloc(1, sizeof *it);
    pace__random random = pace__random_at(SEED, rows);

    assert_non_null(it);
    it->config = config;
    assert_ok(pace__cnn_net_make(&it->config, &said_log, &it->net));
    it->weights = floats(it->net.weights);
    it->stats = floats(it->net.stats);
    make_values(it, &random);
    make_rows(it, rows, &random);
    it->sums = it->net.weights - it->net.trained_at;
    it->stats_sums = it->net.stats - it->net.stats_trained_at;
    it->batch = (pace__cnn_batch){
        .rows = &it->rows,
        .place = 7,
        .weights = it->weights + it->net.trained_at,
        .stats = it->stats + it->net.stats_trained_at,
        .step_rows = rows + 3, /* others have some of the step, but these rows go by themselves */
        .sums = floats(it->sums),
        .stats_sums = floats(it->stats_sums)};
    it->plan = (pace__cnn_plan){.config = &it->config,
                                .frozen_weights = it->weights,
                                .frozen_stats = it->stats,
                                .rows_max = rows_max,
                                .threads = 1,
                                .trains = true};
    return it;
}

static void unmake(made *it)
{
    free(it->pixels);
    free(it->classes);
    free(it->source);
    free(it->features);
    free(it->weights);
    free(it->stats);
    free(it->batch.sums);
    free(it->batch.stats_sums);
    free(it);
}

/* Small pictures are not cut into pieces unless tiles are smaller still. */
#define SMALL_TILE ((size_t)6 << 10)

static pace__cnn_fast *create_tiled(const made *it, const pace__cnn_kernels *kernels, size_t tile_bytes)
{
    pace__cnn_fast *fast = NULL;

    assert_ok(pace__cnn_fast_create_with(&it->plan, &it->net, kernels, tile_bytes, &said_log, &fast));
    return fast;
}

static pace__cnn_fast *create(const made *it, const pace__cnn_kernels *kernels)
{
    return create_tiled(it, kernels, PACE__CNN_TILE_BYTES);
}

static const pace__cnn_kernels *best_kernels(void)
{
    return pace__cnn_of(pace_kernels_in_use());
}

/* Kernels of bf16 for this CPU, or those that imitate them; NULL: the thread sanitizer's loops have none. */
static const pace__bf16_kernels *bf16_kernels(void)
{
    const pace__bf16_kernels *kernels;

#ifdef __SANITIZE_THREAD__
    return NULL;
#endif
    return pace__bf16_use(NULL, &kernels) ? pace__bf16_of(PACE__BF16_PLAIN) : kernels;
}

/* --- comparing --- */

static void assert_near(const char *what, const char *name, const float *found, const float *expected,
                        size_t count, double tolerance)
{
    double apart = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double difference = (double)found[i] - (double)expected[i];

        apart += difference * difference;
        norm += (double)expected[i] * (double)expected[i];
    }
    if (!(sqrt(apart) <= tolerance * sqrt(norm) + 1e-5))
        fail_msg("seed %d, %s: %s is %g apart of a norm of %g", SEED, what, name, sqrt(apart), sqrt(norm));
}

/* Every tensor that is trained. */
static void assert_same_gradients(const char *what, const made *it, const pace__cnn_batch *found,
                                  const pace__cnn_batch *expected)
{
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned count = pace__cnn_tensors(&it->net, tensors);

    for (unsigned i = 0; i < count; i++) {
        size_t from = tensors[i].stats ? it->net.stats_trained_at : it->net.trained_at;

        if (tensors[i].at < from)
            continue;
        size_t at = tensors[i].at - from;

        assert_near(what, tensors[i].name, (tensors[i].stats ? found->stats_sums : found->sums) + at,
                    (tensors[i].stats ? expected->stats_sums : expected->sums) + at, tensors[i].size, 2e-3);
    }
    if (!(fabs(found->loss - expected->loss) <= 1e-4 * (1 + fabs(expected->loss))))
        fail_msg("%s: the loss is %g, not %g", what, found->loss, expected->loss);
}

/* A batch with results of its own. */
static pace__cnn_batch another(const made *it)
{
    pace__cnn_batch batch = it->batch;

    batch.sums = floats(it->sums);
    batch.stats_sums = floats(it->stats_sums);
    for (size_t i = 0; i < it->sums; i++)
        batch.sums[i] = 99; /* everything has to be written */
    return batch;
}

static void drop_batch(pace__cnn_batch *batch)
{
    free(batch->sums);
    free(batch->stats_sums);
}

/* Gradients and logits of one way to cut rows into tiles. */
static void compare_tiled(const char *what, const made *it, size_t tile_bytes, const float *expected)
{
    pace__cnn_fast *fast = create_tiled(it, best_kernels(), tile_bytes);
    pace__cnn_batch found = another(it);
    size_t count = it->rows.rows * it->net.outputs;
    float *logits = floats(count);

    /* Twice: what is left of a step must not show in the next one. */
    assert_ok(pace__cnn_fast_gradient(fast, &found));
    assert_ok(pace__cnn_fast_gradient(fast, &found));
    assert_same_gradients(what, it, &found, &it->batch);
    assert_ok(pace__cnn_fast_logits(fast, &it->rows, it->batch.weights, it->batch.stats, false, logits));
    assert_near(what, "logits", logits, expected, count, 1e-4);
    free(logits);
    drop_batch(&found);
    pace__cnn_fast_free(fast);
}

static void compare(const char *what, pace__cnn_config config, size_t rows, size_t rows_max)
{
    made *it = make(config, rows, rows_max);
    float *expected = floats(rows * it->net.outputs);

    assert_ok(pace__cnn_plain_gradient(&it->plan, &it->net, &it->batch, &said_log));
    assert_ok(pace__cnn_plain_logits(&it->plan, &it->net, &it->rows, it->batch.weights, it->batch.stats,
                                     false, expected, &said_log));
    compare_tiled(what, it, PACE__CNN_TILE_BYTES, expected);
    compare_tiled(what, it, SMALL_TILE, expected);
    free(expected);
    unmake(it);
}

static void is_as_plain(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    compare("small", config, 10, 13);
    config.same = true;
    config.smoothing = 0.1f;
    config.dropout = 0.3f;
    compare("small, SAME, smoothing, dropout", config, 5, 5);
    config.first_trained = 2;
    compare("small from conv3", config, 9, 16);
    config.first_trained = 4;
    compare("head of small", config, 9, 16);
    config = usual;
    config.channels = 1;
    config.classes = 2;
    config.one_logit = true;
    config.weight[0] = 0.5f;
    compare("small, grey, one logit", config, 1, 1);
    config.width = 1.1f;
    config.one_logit = false;
    compare("small, grey, wider", config, 3, 8);
    config.classes = 40;
    compare("small, 40 classes", config, 19, 19);
}

static void residuals_are_as_plain(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    config.arch = PACE_ARCH_RESNET20;
    config.width = 0.3f;
    compare("resnet20", config, 6, 6);
    config.same = true;
    config.first_trained = 9; /* the shortcut of stage 2, which reads a frozen unit as well */
    compare("resnet20 from the middle", config, 5, 8);
}

static void mobilenets_are_as_plain(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    config.arch = PACE_ARCH_MOBILENET_V2;
    config.width = 0.25f;
    config.height = 40;
    config.side = 33;
    compare("mobilenet-v2", config, 4, 4);
    config.same = true;
    config.first_trained = 30;
    compare("mobilenet-v2 from the middle", config, 3, 3);
    config.arch = PACE_ARCH_MOBILENET_V1;
    config.first_trained = 0;
    config.height = config.side = 32;
    compare("mobilenet-v1", config, 4, 4);
}

/* --- kernels and threads --- */

static void assert_same_bits(const made *it, const pace__cnn_batch *found, const pace__cnn_batch *expected)
{
    assert_memory_equal(found->sums, expected->sums, it->sums * sizeof(float));
    assert_memory_equal(found->stats_sums, expected->stats_sums, it->stats_sums * sizeof(float));
    assert_true(found->loss == expected->loss);
}

static void bits_do_not_depend_on_threads(void **state)
{
    pace__cnn_config configs[3] = {usual, usual, usual};

    (void)state;
    configs[0].dropout = 0.2f;
    configs[2].width = 1.3f;
    configs[1].arch = PACE_ARCH_RESNET20;
    configs[1].width = 0.3f;
    configs[1].classes = 20;
    configs[1].first_trained = 7;
    for (int c = 0; c < 3; c++) {
        made *it = make(configs[c], 37, 40);
        float *logits[2] = {floats(37 * 20), floats(37 * 20)};

        it->plan.bf16 = c == 2 ? bf16_kernels() : NULL;
        for (int threads = 1; threads <= 3; threads++) {
            it->plan.threads = threads;
            pace__cnn_fast *fast = create_tiled(it, best_kernels(), SMALL_TILE);
            pace__cnn_batch found = another(it);

            assert_ok(pace__cnn_fast_gradient(fast, threads == 1 ? &it->batch : &found));
            assert_ok(pace__cnn_fast_logits(fast, &it->rows, it->batch.weights, it->batch.stats, false,
                                            logits[threads > 1]));
            if (threads > 1) {
                assert_same_bits(it, &found, &it->batch);
                assert_memory_equal(logits[0], logits[1], 37 * it->net.outputs * sizeof(float));
            }
            drop_batch(&found);
            pace__cnn_fast_free(fast);
        }
        free(logits[0]);
        free(logits[1]);
        unmake(it);
    }
}

static void kernels_have_equal_bits(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    config.arch = PACE_ARCH_MOBILENET_V2;
    config.width = 0.25f;
    config.height = config.side = 32;
    made *it = make(config, 3, 3);

    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        pace__cnn_fast *fast = create_tiled(it, pace__cnn_of(set), SMALL_TILE);
        pace__cnn_batch found = another(it);

        assert_ok(pace__cnn_fast_gradient(fast, set == PACE_KERNELS_PLAIN ? &it->batch : &found));
        if (set != PACE_KERNELS_PLAIN)
            assert_same_bits(it, &found, &it->batch);
        drop_batch(&found);
        pace__cnn_fast_free(fast);
    }
    unmake(it);
}

/* --- bf16 --- */

/*
 * Numbers are rounded to 8 bits: relative errors are up to 2^-8, of sums of many products less. One number in some hundred
 * of what comes near 0 then ends on the other side of a ReLU, so that gradients are apart by some hundredths, growing with
 * the layers: few of them are compared, and of those what convolutions and head have. Where a tap or a pass is missing it is
 * several tenths.
 */
static void assert_near_weights(const char *what, const made *it, const pace__cnn_batch *found,
                                const pace__cnn_batch *expected)
{
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned count = pace__cnn_tensors(&it->net, tensors);

    for (unsigned i = 0; i < count; i++) {
        size_t at = tensors[i].at - it->net.trained_at;

        if (tensors[i].decays && tensors[i].at >= it->net.trained_at)
            assert_near(what, tensors[i].name, found->sums + at, expected->sums + at, tensors[i].size, 0.15);
    }
    assert_true(fabs(found->loss - expected->loss) <= 0.01 * expected->loss);
}

static void compare_precisions(const char *what, pace__cnn_config config, size_t rows)
{
    made *it = make(config, rows, rows);
    pace__cnn_batch found = another(it);
    pace__cnn_fast *floats_only = create_tiled(it, best_kernels(), SMALL_TILE);

    it->plan.bf16 = bf16_kernels();
    pace__cnn_fast *rounded = create_tiled(it, best_kernels(), SMALL_TILE);

    assert_ok(pace__cnn_fast_gradient(floats_only, &it->batch));
    assert_ok(pace__cnn_fast_gradient(rounded, &found));
    assert_near_weights(what, it, &found, &it->batch);
    assert_true(memcmp(found.sums, it->batch.sums, it->sums * sizeof *found.sums) != 0);
    pace__cnn_fast_free(floats_only);
    pace__cnn_fast_free(rounded);
    drop_batch(&found);
    unmake(it);
}

static void bf16_is_near(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    if (!bf16_kernels())
        skip();
    config.height = config.side = 20;
    compare_precisions("small", config, 24);
    config.same = true;
    config.first_trained = 2;
    compare_precisions("small from conv3", config, 9);
    config.arch = PACE_ARCH_RESNET20;
    config.first_trained = 15; /* stage 3: stride 2, a shortcut, additions */
    compare_precisions("resnet20 from stage 3", config, 24);
    config.arch = PACE_ARCH_MOBILENET_V1;
    config.height = config.side = 96;
    config.first_trained = 23;
    compare_precisions("mobilenet-v1 from dw12", config, 16);
}

/* --- several workers --- */

#define WORKERS 3

/* Adds up in the order of workers, when all have come. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    float values[WORKERS][PACE__CNN_SUM_MAX];
    int came, left, calls;
} meeting;

typedef struct worker {
    meeting *at;
    int number;
    const made *it;
    pace__rows rows;
    pace__cnn_batch batch;
    pace_status status;
} worker;

static pace_status meet(void *user, float *values, size_t count)
{
    worker *me = user;
    meeting *at = me->at;

    pthread_mutex_lock(&at->lock);
    while (at->left > 0)
        pthread_cond_wait(&at->changed, &at->lock);
    memcpy(at->values[me->number], values, count * sizeof *values);
    if (++at->came == WORKERS) {
        at->left = WORKERS;
        at->calls++;
    }
    pthread_cond_broadcast(&at->changed);
    while (at->left == 0)
        pthread_cond_wait(&at->changed, &at->lock);
    for (size_t i = 0; i < count; i++) {
        values[i] = 0;
        for (int w = 0; w < WORKERS; w++)
            values[i] += at->values[w][i];
    }
    at->came--;
    if (--at->left == 0)
        pthread_cond_broadcast(&at->changed);
    pthread_mutex_unlock(&at->lock);
    return PACE_OK;
}

static void *run_worker(void *arg)
{
    worker *me = arg;
    pace__cnn_plan plan = me->it->plan;
    pace__cnn_fast *fast;

    plan.threads = me->number == 0 ? 2 : 1;
    me->status = pace__cnn_fast_create(&plan, &me->it->net, &said_log, &fast);
    require(me->status == PACE_OK);
    me->status = pace__cnn_fast_gradient(fast, &me->batch);
    pace__cnn_fast_free(fast);
    return NULL;
}

/* Workers with 0 rows, some, and the rest. */
static void run_workers(const made *it, meeting *at, worker *workers)
{
    static const size_t first[WORKERS + 1] = {0, 5, 5, 11};
    pthread_t threads[WORKERS];

    for (int w = 0; w < WORKERS; w++) {
        workers[w] = (worker){.at = at, .number = w, .it = it, .batch = another(it)};
        workers[w].rows = pace__rows_slice(&it->rows, first[w], first[w + 1] - first[w]);
        workers[w].batch.rows = &workers[w].rows;
        workers[w].batch.place = it->batch.place + first[w];
        workers[w].batch.step_rows = it->rows.rows;
        workers[w].batch.sum = meet;
        workers[w].batch.user = &workers[w];
        assert_int_equal(pthread_create(&threads[w], NULL, run_worker, &workers[w]), 0);
    }
    for (int w = 0; w < WORKERS; w++)
        pthread_join(threads[w], NULL);
}

static meeting *open_meeting(void)
{
    meeting *at = calloc(1, sizeof *at);

    assert_non_null(at);
    pthread_mutex_init(&at->lock, NULL);
    pthread_cond_init(&at->changed, NULL);
    return at;
}

/* Planes of what no healthy network has. */
#define STRANGE 10

typedef struct planes {
    _Alignas(64) float from[STRANGE * PACE__CNN_LANES], y[STRANGE * PACE__CNN_LANES],
        back[STRANGE * PACE__CNN_LANES];
    double sums[PACE__CNN_LANES], products[PACE__CNN_LANES];
} planes;

static planes strange_planes(const pace__cnn_kernels *kernels, pace__cnn_act act)
{
    static const float strange[STRANGE] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f, 6, -1, 7};
    float ones[PACE__CNN_LANES], zeros[PACE__CNN_LANES] = {0};
    planes got = {.sums = {0}};
    pace__cnn_mask mask = {.n = STRANGE,
                           .act = act,
                           .d_y = got.from,
                           .y = got.y,
                           .z = got.from,
                           .mean = zeros,
                           .to = got.back,
                           .sums = got.sums,
                           .products = got.products};

    for (size_t i = 0; i < PACE__CNN_LANES; i++)
        ones[i] = i % 5 ? 1 : strange[i % STRANGE];
    for (size_t i = 0; i < STRANGE * PACE__CNN_LANES; i++)
        got.from[i] = strange[(i + i / PACE__CNN_LANES) % STRANGE];
    kernels->apply(act, STRANGE, got.from, ones, zeros, NULL, got.y);
    kernels->mask(&mask);
    return got;
}

static void compare_strange(const pace__cnn_kernels *kernels, pace__cnn_act act)
{
    planes one = strange_planes(&pace__cnn_plain, act), other = strange_planes(kernels, act);

    for (size_t at = 0; at < STRANGE * PACE__CNN_LANES; at++) {
        assert_true(isnan(one.y[at]) ? isnan(other.y[at]) : one.y[at] == other.y[at]);
        assert_true(isnan(one.back[at]) ? isnan(other.back[at]) : one.back[at] == other.back[at]);
        assert_true(!isnan(one.from[at]) || isnan(one.y[at])); /* and is not hidden */
    }
    for (size_t lane = 0; lane < PACE__CNN_LANES; lane++) {
        assert_int_equal(isnan(one.sums[lane]), isnan(other.sums[lane]));
        assert_int_equal(isnan(one.products[lane]), isnan(other.products[lane]));
    }
}

static void strange_numbers_are_alike(void **state)
{
    static const pace__cnn_act acts[] = {PACE__ACT_NONE, PACE__ACT_RELU, PACE__ACT_RELU6};

    (void)state;
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        for (int i = 0; i < 3 && pace_kernels_run(set); i++)
            compare_strange(pace__cnn_of(set), acts[i]);
    }
}

static void workers_are_as_one(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    config.dropout = 0.2f;
    made *it = make(config, 11, 16);
    worker workers[WORKERS];
    meeting *at = open_meeting();
    pace__cnn_batch all = another(it);

    it->batch.step_rows = 11;
    assert_ok(pace__cnn_plain_gradient(&it->plan, &it->net, &it->batch, &said_log));
    run_workers(it, at, workers);
    memset(all.sums, 0, it->sums * sizeof(float));
    all.loss = 0;
    for (int w = 0; w < WORKERS; w++) {
        assert_ok(workers[w].status);
        for (size_t i = 0; i < it->sums; i++)
            all.sums[i] += workers[w].batch.sums[i];
        for (size_t i = 0; i < it->stats_sums; i++)
            all.stats_sums[i] += workers[w].batch.stats_sums[i];
        all.loss += workers[w].batch.loss;
        drop_batch(&workers[w].batch);
    }
    assert_same_gradients("three workers", it, &all, &it->batch);
    drop_batch(&all);
    free(at);
    unmake(it);
}

/* --- ready --- */

typedef struct listener {
    size_t first, calls;
    size_t fail_at; /* call; 0: never */
    bool rose;
} listener;

static pace_status listen(void *user, size_t first)
{
    listener *it = user;

    it->calls++;
    if (first > it->first)
        it->rose = true;
    it->first = first;
    return it->calls == it->fail_at ? PACE_FAILED : PACE_OK;
}

static void ready_falls_to_zero(void **state)
{
    (void)state;
    for (uint32_t first = 0; first <= 4; first += 2) {
        pace__cnn_config config = usual;
        listener heard = {.first = SIZE_MAX};

        config.first_trained = first;
        made *it = make(config, 20, 20);

        it->plan.threads = 2;
        pace__cnn_fast *fast = create(it, best_kernels());

        it->batch.ready = listen;
        it->batch.user = &heard;
        assert_ok(pace__cnn_fast_gradient(fast, &it->batch));
        assert_int_equal(heard.first, 0);
        assert_false(heard.rose);
        assert_true(heard.calls >= 1 + (4 - first));
        heard = (listener){.first = SIZE_MAX, .fail_at = 1};
        assert_int_equal(pace__cnn_fast_gradient(fast, &it->batch), PACE_FAILED);
        assert_int_equal(heard.calls, 1);
        pace__cnn_fast_free(fast);
        unmake(it);
    }
}

/* --- features --- */

static void features_are_what_the_head_reads(void **state)
{
    static const uint32_t classes[] = {2, 40};

    (void)state;
    for (int c = 0; c < 2; c++) {
        pace__cnn_config config = usual;

        config.first_trained = 4;
        config.dropout = 0.4f;
        config.classes = classes[c];
        made *it = make(config, 21, 32);
        size_t width = it->net.features, outputs = it->net.outputs;
        pace__cnn_fast *fast = create(it, best_kernels());
        pace__cnn_batch found = another(it);
        float *logits = floats(21 * outputs), *again = floats(21 * outputs);

        it->features = floats(21 * width);
        assert_ok(pace__cnn_fast_gradient(fast, &it->batch));
        assert_ok(pace__cnn_fast_logits(fast, &it->rows, it->batch.weights, it->batch.stats, false, logits));
        assert_ok(
            pace__cnn_fast_logits(fast, &it->rows, it->batch.weights, it->batch.stats, true, it->features));
        pace__rows rows = it->rows;

        rows.pixels = NULL;
        rows.features = it->features;
        rows.columns = (uint32_t)width;
        found.rows = &rows;
        assert_ok(pace__cnn_fast_gradient(fast, &found));
        assert_same_bits(it, &found, &it->batch);
        assert_ok(pace__cnn_fast_logits(fast, &rows, it->batch.weights, it->batch.stats, false, again));
        assert_memory_equal(again, logits, 21 * outputs * sizeof(float));
        free(logits);
        free(again);
        drop_batch(&found);
        pace__cnn_fast_free(fast);
        unmake(it);
    }
}

static void large_pictures_come_in_pieces(void **state)
{
    pace__cnn_config config = usual;
    unsigned slices = 0, strips = 0;

    (void)state;
    config.arch = PACE_ARCH_MOBILENET_V2;
    config.width = 0.35f;
    config.height = config.side = 128;
    made *it = make(config, 1, 1);
    pace__cnn_fast *fast = create(it, best_kernels());

    for (uint32_t u = 0; u < it->net.units; u++) {
        slices += fast->part[u].slice > 0;
        strips += fast->part[u].strip > 0;
        assert_true(fast->part[u].pieces == 1 || fast->part[u].tile == 1);
    }
    assert_true(slices > 0 && strips > 0);
    pace__cnn_fast_free(fast);
    unmake(it);
}

static void memory_is_foretold(void **state)
{
    pace__cnn_config config = usual;

    (void)state;
    config.arch = PACE_ARCH_MOBILENET_V2;
    config.height = config.side = 64;
    made *it = make(config, 2, 8);
    pace__cnn_fast *fast = create(it, best_kernels());
    double told = (double)pace__cnn_fast_memory(&it->plan, &it->net);

    assert_true(told > 0.8 * (double)fast->memory_size && told < 1.25 * (double)fast->memory_size);
    pace__cnn_fast_free(fast);
    unmake(it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_plain),
        cmocka_unit_test(residuals_are_as_plain),
        cmocka_unit_test(mobilenets_are_as_plain),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(kernels_have_equal_bits),
        cmocka_unit_test(bf16_is_near),
        cmocka_unit_test(strange_numbers_are_alike),
        cmocka_unit_test(workers_are_as_one),
        cmocka_unit_test(ready_falls_to_zero),
        cmocka_unit_test(features_are_what_the_head_reads),
        cmocka_unit_test(large_pictures_come_in_pieces),
        cmocka_unit_test(memory_is_foretold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

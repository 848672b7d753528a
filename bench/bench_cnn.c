/*
 * bench_cnn [REPEAT [SHAPE [profile]]]: training steps of convolutional networks, forward and back, on one
 * thread and on two; the network that is not in training; and its head alone. Where the CPU has instructions for it,
 * training steps follow once more as SHAPE-bf16 (math/bf16.h). bench/cnn_torch.py prints the same table for PyTorch.
 *
 *     shape threads ms cpu_ms
 *
 * of all shapes or of one; the best of REPEAT steps each: by the clock, and processor time of all threads.
 * The optimiser, plain momentum, is part of a step, on one thread. With `profile` a line per unit follows:
 * milliseconds of its forward pass and of its way back, and what computes its convolutions.
 */
#include "base/random.h"
#include "math/bf16.h"
#include "model/convnet/cnn.h"
#include "model/convnet/cnn_fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct shape {
    const char *name;
    int arch;
    uint32_t side, channels, classes;
    size_t rows;
    enum { WHOLE, INFER, HEAD } what;
    float width; /* 0: 1 */
} shape;

static const shape shapes[] = {
    {"mobilenet-v2-160", PACE_ARCH_MOBILENET_V2, 160, 3, 10, 32, WHOLE},
    {"mobilenet-v1-128", PACE_ARCH_MOBILENET_V1, 128, 3, 10, 32, WHOLE},
    {"small-28", PACE_ARCH_SMALL, 28, 1, 10, 128, WHOLE},
    {"small-32", PACE_ARCH_SMALL, 32, 3, 10, 128, WHOLE},
    {"resnet20-32", PACE_ARCH_RESNET20, 32, 3, 10, 128, WHOLE},
    {"mobilenet-v2-160-infer", PACE_ARCH_MOBILENET_V2, 160, 3, 10, 32, INFER},
    {"mobilenet-v1-025-160-infer", PACE_ARCH_MOBILENET_V1, 160, 3, 2, 256, INFER, 0.25f},
    {"mobilenet-v2-160-head", PACE_ARCH_MOBILENET_V2, 160, 3, 2, 512, HEAD},
};

typedef struct data {
    pace__cnn_config config;
    pace__cnn_net net;
    pace__rows rows;
    pace__cnn_batch batch;
    float *weights, *stats, *momentum, *found, *features;
    uint8_t *pixels;
    uint16_t *classes;
} data;

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fill_rows(data *it, const shape *of)
{
    pace__random random = pace__random_at(1, 2);
    size_t columns = (size_t)of->side * of->side * of->channels;

    it->pixels = malloc(of->rows * columns);
    it->classes = calloc(of->rows, sizeof *it->classes);
    it->features = calloc(of->rows * it->net.features, sizeof *it->features);
    for (size_t i = 0; i < of->rows * columns; i++)
        it->pixels[i] = (uint8_t)pace__random_below(&random, 256);
    for (size_t i = 0; i < of->rows; i++)
        it->classes[i] = (uint16_t)pace__random_below(&random, of->classes);
    for (size_t i = 0; i < of->rows * it->net.features; i++)
        it->features[i] = (float)pace__random_unit(&random);
    it->rows = (pace__rows){.rows = of->rows, .columns = (uint32_t)columns, .pixels = it->pixels};
    it->rows.classes = it->classes;
    if (of->what == HEAD) {
        it->rows.pixels = NULL;
        it->rows.columns = it->net.features;
        it->rows.features = it->features;
    }
}

static data *make(const shape *of)
{
    data *it = calloc(1, sizeof *it);

    it->config = (pace__cnn_config){.arch = of->arch,
                                    .width = of->width > 0 ? of->width : 1,
                                    .height = of->side,
                                    .side = of->side,
                                    .channels = of->channels,
                                    .classes = of->classes,
                                    .epsilon = 1e-5f,
                                    .momentum = 0.1f,
                                    .mean = {128, 128, 128},
                                    .deviation = {64, 64, 64},
                                    .weight = {1, 1},
                                    .seed = 3};
    pace__cnn_net_make(&it->config, NULL, &it->net);
    it->config.first_trained = of->what == WHOLE ? 0 : it->net.units;
    pace__cnn_net_make(&it->config, NULL, &it->net);
    it->weights = malloc(it->net.weights * sizeof *it->weights);
    it->stats = malloc(it->net.stats * sizeof *it->stats);
    it->momentum = calloc(it->net.weights, sizeof *it->momentum);
    it->found = calloc(of->rows * it->net.features, sizeof *it->found);
    pace__cnn_init(&it->config, &it->net, it->weights, it->stats);
    fill_rows(it, of);
    it->batch.rows = &it->rows;
    it->batch.weights = it->weights + it->net.trained_at;
    it->batch.stats = it->stats + it->net.stats_trained_at;
    it->batch.step_rows = of->rows;
    it->batch.sums = malloc(it->net.weights * sizeof *it->weights);
    it->batch.stats_sums = malloc(it->net.stats * sizeof *it->stats);
    return it;
}

static void unmake(data *it)
{
    free(it->weights);
    free(it->stats);
    free(it->momentum);
    free(it->found);
    free(it->features);
    free(it->pixels);
    free(it->classes);
    free(it->batch.sums);
    free(it->batch.stats_sums);
    free(it);
}

/* As PyTorch's SGD. */
static void update(data *it)
{
    size_t count = it->net.weights - it->net.trained_at;
    float *weights = it->weights + it->net.trained_at, rate = 1e-3f / (float)it->rows.rows;

    for (size_t i = 0; i < count; i++) {
        it->momentum[i] = 0.9f * it->momentum[i] + it->batch.sums[i];
        weights[i] -= rate * it->momentum[i];
    }
}

static void step(data *it, pace__cnn_fast *fast, const shape *of)
{
    if (of->what == INFER) {
        pace__cnn_fast_logits(fast, &it->rows, it->batch.weights, it->batch.stats, true, it->found);
        return;
    }
    pace__cnn_fast_gradient(fast, &it->batch);
    update(it);
}

static void print_profile(const data *it, const pace__cnn_fast *fast)
{
    double all[2] = {0, 0};

    for (uint32_t u = it->config.first_trained; u < it->net.units; u++) {
        const pace__cnn_part *part = &fast->part[u];

        printf("  %-24s %4u -> %4u, %3u x %3u tile %u / %-2u %8.2f %8.2f  %s, %s, %s\n", part->unit->name,
               part->unit->in_channels, part->unit->channels, part->unit->height, part->unit->width,
               part->tile, part->pieces, (double)part->forward_ns * 1e-6, (double)part->back_ns * 1e-6,
               part->forward ? pace__conv_name(part->forward) : "own",
               part->weigh ? pace__conv_name(part->weigh) : "own",
               part->data ? pace__conv_name(part->data) : "-");
        all[0] += (double)part->forward_ns * 1e-6;
        all[1] += (double)part->back_ns * 1e-6;
    }
    printf("  %-24s %31s %8.2f %8.2f\n", "all", "", all[0], all[1]);
}

static void measure(const shape *of, const char *name, const pace__bf16_kernels *bf16, int threads,
                    int repeat, bool profile)
{
    data *it = make(of);
    double best = 1e9, best_cpu = 1e9, start = seconds(CLOCK_MONOTONIC);
    pace__cnn_fast *fast;
    pace__cnn_plan plan = {.config = &it->config,
                           .frozen_weights = it->weights,
                           .frozen_stats = it->stats,
                           .rows_max = of->rows,
                           .threads = threads,
                           .trains = of->what != INFER,
                           .bf16 = bf16};
    pace_status status = pace__cnn_fast_create(&plan, &it->net, NULL, &fast);
    double creation = seconds(CLOCK_MONOTONIC) - start;

    if (status) {
        printf("%-28s failed\n", name);
        unmake(it);
        return;
    }
    for (int i = 0; i < repeat; i++) {
        double start_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

        start = seconds(CLOCK_MONOTONIC);
        step(it, fast, of);
        best = fmin(best, seconds(CLOCK_MONOTONIC) - start);
        best_cpu = fmin(best_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - start_cpu);
    }
    printf("%-28s %d %9.2f %9.2f\n", name, threads, best * 1e3, best_cpu * 1e3);
    if (profile) {
        printf("  made in %.0f ms, %.0f MB\n", creation * 1e3, (double)fast->memory_size * 1e-6);
        print_profile(it, fast);
    }
    fflush(stdout);
    pace__cnn_fast_free(fast);
    unmake(it);
}

static void measure_threads(const shape *of, const pace__bf16_kernels *bf16, const char *only, int repeat,
                            bool profile)
{
    int many = of->what == HEAD ? 20 * repeat : repeat;
    char name[48];

    snprintf(name, sizeof name, "%s%s", of->name, bf16 ? "-bf16" : "");
    for (int threads = 1; threads <= 2 && (!only || strcmp(only, name) == 0); threads++)
        measure(of, name, bf16, threads, many, profile);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 10;
    const char *only = argc > 2 && strcmp(argv[2], "all") != 0 ? argv[2] : NULL;
    bool profile = argc > 3 && strcmp(argv[3], "profile") == 0;
    const pace__bf16_kernels *bf16;

    if (pace__bf16_use(NULL, &bf16))
        bf16 = NULL;

    printf("%-28s t %9s %9s\n", "shape", "ms", "cpu_ms");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int rounds = 0; rounds < (bf16 && shapes[i].what == WHOLE ? 2 : 1); rounds++)
            measure_threads(&shapes[i], rounds ? bf16 : NULL, only, repeat, profile);
    }
    return 0;
}

/*
 * bench_rnn [REPEAT [SHAPE [PRECISION]]]: a training step of the recurrent network, forward and back, without
 * optimiser, on one thread and on two. bench/rnn_torch.py prints the same table for PyTorch.
 *
 * Words follow Zipf's law over a vocabulary of 20,000. Lengths are all 100 ("full"), or lognormal with median
 * 50, cut at 100 ("real"). Prints a line per shape:
 *
 *     shape lengths threads slots ms cpu_ms
 *
 * of all shapes or of one, in floats (f32) or by products of bf16; the best of REPEAT steps each: by the clock, and processor time of all threads.
 */
#include "gen/zipf.h"
#include "model/rnn/rnn.h"
#include "model/rnn/rnn_fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS  20000
#define LENGTH 100

typedef struct shape {
    const char *name;
    size_t rows;
    uint32_t embed, hidden, layers, dense;
    int cell;
    float dropout;
    bool both;
} shape;

static const shape shapes[] = {
    {"A", 128, 100, 32, 2, 32, PACE_CELL_LSTM, 0, false},
    {"B64-H128", 64, 128, 128, 1, 0, PACE_CELL_LSTM, 0, false},
    {"B256-H128", 256, 128, 128, 1, 0, PACE_CELL_LSTM, 0, false},
    {"B64-H256", 64, 128, 256, 1, 0, PACE_CELL_LSTM, 0, false},
    {"B256-H256", 256, 128, 256, 1, 0, PACE_CELL_LSTM, 0, false},
    {"A-gru", 128, 100, 32, 2, 32, PACE_CELL_GRU, 0, false},
    {"A-drop", 128, 100, 32, 2, 32, PACE_CELL_LSTM, 0.5f, false},
    {"A-both", 128, 100, 32, 2, 32, PACE_CELL_LSTM, 0, true},
};

typedef struct data {
    pace__rnn_config config;
    pace__rows rows;
    pace__rnn_batch batch;
    uint32_t *ids, *length, *slot_of;
    uint8_t *label;
} data;

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint32_t draw_length(pace__random *random)
{
    double normal =
        sqrt(-2 * log(1 - pace__random_unit(random))) * cos(6.283185307 * pace__random_unit(random));
    double length = 50 * exp(0.6 * normal);

    return length < 1 ? 1 : length > LENGTH ? LENGTH : (uint32_t)length;
}

static void make_rows(data *it, const shape *of, bool full)
{
    pace__random random = pace__random_at(1, 2);
    static pace__zipf zipf;

    pace__zipf_init(&zipf, WORDS, 1.0);
    it->ids = calloc(of->rows * LENGTH, sizeof *it->ids);
    it->length = calloc(of->rows, sizeof *it->length);
    it->label = calloc(of->rows, 1);
    it->slot_of = calloc(WORDS, sizeof *it->slot_of);
    for (size_t row = 0; row < of->rows; row++) {
        it->length[row] = full ? LENGTH : draw_length(&random);
        it->label[row] = (uint8_t)pace__random_below(&random, 2);
        for (size_t i = 0; i < it->length[row]; i++) {
            uint32_t word = pace__zipf_draw(&zipf, pace__random_next(&random), &random);

            if (!it->slot_of[word])
                it->slot_of[word] = ++it->batch.slots;
            it->ids[row * LENGTH + i] = it->slot_of[word] - 1;
        }
    }
    it->rows = (pace__rows){
        .rows = of->rows, .columns = LENGTH, .ids = it->ids, .label = it->label, .length = it->length};
    it->batch.rows = &it->rows;
}

static void make_parameters(data *it)
{
    size_t dense = pace__rnn_dense(&it->config), slots = it->batch.slots, embed = it->config.embed;
    float *weights = malloc(dense * sizeof *weights), *words = malloc(slots * embed * sizeof *words);

    pace__rnn_init_dense(&it->config, weights);
    for (size_t slot = 0; slot < slots; slot++)
        pace__rnn_init_word(&it->config, (uint32_t)slot + 1, words + slot * embed);
    it->batch.dense = weights;
    it->batch.embedding = words;
    it->batch.dense_sums = malloc(dense * sizeof *weights);
    it->batch.embedding_sums = malloc(slots * embed * sizeof *words);
}

static data make(const shape *of, bool full, bool bf16)
{
    data it = {.config = {.words = WORDS,
                          .length = LENGTH,
                          .embed = of->embed,
                          .hidden = of->hidden,
                          .layers = of->layers,
                          .dense = of->dense,
                          .cell = of->cell,
                          .both = of->both,
                          .dropout = of->dropout,
                          .weight = {1, 1},
                          .bf16 = bf16}};

    make_rows(&it, of, full);
    make_parameters(&it);
    return it;
}

static void unmake(data *it)
{
    free(it->ids);
    free(it->length);
    free(it->label);
    free(it->slot_of);
    free((void *)it->batch.dense);
    free((void *)it->batch.embedding);
    free(it->batch.dense_sums);
    free(it->batch.embedding_sums);
}

static void measure(const shape *of, bool full, bool bf16, int threads, int repeat)
{
    data it = make(of, full, bf16);
    double best = 1e9, best_cpu = 1e9;
    pace__rnn_fast *fast;

    if (pace__rnn_fast_create(&it.config, of->rows, threads, NULL, &fast)) {
        printf("%-10s failed\n", of->name);
        return;
    }
    for (int i = 0; i < repeat; i++) {
        double start = seconds(CLOCK_MONOTONIC), start_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

        pace__rnn_fast_gradient(fast, &it.batch);
        best = fmin(best, seconds(CLOCK_MONOTONIC) - start);
        best_cpu = fmin(best_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - start_cpu);
    }
    size_t words = 0;

    for (size_t row = 0; row < of->rows; row++)
        words += it.length[row];
    printf("%-10s %-5s %d %6u %9.2f %9.2f %7zu\n", of->name, full ? "full" : "real", threads, it.batch.slots,
           best * 1e3, best_cpu * 1e3, words);
    fflush(stdout);
    pace__rnn_fast_free(fast);
    unmake(&it);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 20;
    const char *only = argc > 2 && strcmp(argv[2], "all") != 0 ? argv[2] : NULL;
    bool bf16 = argc > 3 && strcmp(argv[3], "bf16") == 0;

    printf("%-10s %-5s %s %6s %9s %9s %7s\n", "shape", "rows", "t", "slots", "ms", "cpu_ms", "words");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (only && strcmp(only, shapes[i].name) != 0)
            continue;
        for (int full = 1; full >= 0; full--) {
            for (int threads = 1; threads <= 2; threads++)
                measure(&shapes[i], full, bf16, threads, repeat);
        }
    }
    return 0;
}

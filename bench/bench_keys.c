/*
 * bench_keys [REPEAT]: what a worker that holds no parameters does with a batch, on one thread: find its
 * keys, dot products and gradients on the fetched weights, sums by slot. Rows are made up in the shape of the
 * Criteo logs: 13 columns of few ids, 26 of 3 to 500,000, 2 million ids in all, Zipf's law in each column,
 * the frequent ids first.
 *
 * Prints a line per batch size: keys per row, and nanoseconds of CPU time per row (best of REPEAT) of
 *
 *     copy        copying the ids: as fast as touching all of them can be
 *     plain       finding keys with the plain kernel
 *     find        finding keys
 *     dots        dot products and gradients
 *     sums        accumulating
 *
 * each with its ratio to copy. CPU time, because the ratios should hold on a busy machine too.
 */
#include "base/memory.h"
#include "gen/zipf.h"
#include "model/keys.h"
#include "model/linear/logreg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COLUMNS 39
#define ROWS    200000
#define IDS_MAX 2100000

static const uint32_t cardinalities[COLUMNS] = {
    40,    90,     60,     30,     120,  70, 50,     40,  80, 10,    25,   20,     40, /* binned integers */
    1460,  583,    500000, 350000, 305,  24, 12517,  633, 3,  93145, 5683, 450000, 3194, 27,
    14992, 120000, 10,     5652,   2173, 4,  300000, 18,  15, 70000, 105,  60000};

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint32_t make_rows(uint32_t *ids, uint8_t *label)
{
    pace__random random = pace__random_at(1, 2);
    static pace__zipf zipf;
    uint32_t offset = 0;

    for (size_t column = 0; column < COLUMNS; column++) {
        pace__zipf_init(&zipf, cardinalities[column], 1.08);
        for (size_t row = 0; row < ROWS; row++)
            ids[row * COLUMNS + column] =
                offset + pace__zipf_draw(&zipf, pace__random_next(&random), &random);
        offset += cardinalities[column];
    }
    for (size_t row = 0; row < ROWS; row++)
        label[row] = pace__random_below(&random, 4) == 0;
    return offset;
}

typedef struct bench {
    pace__rows rows;
    pace__key_finder finder, plain;
    pace__key_batch batch;
    pace__logreg view;
    float *weights, *sums, *gradient;
    uint32_t *copy;
    uint64_t keys;
} bench;

enum { COPY, PLAIN, FIND, DOTS, SUMS, PARTS };
static const char *const names[PARTS] = {"copy", "plain", "find", "dots", "sums"};

static void dots_and_gradient(bench *self)
{
    pace__stripe all = pace__logreg_stripe(&self->view, 0, 1);
    const pace__rows *rows = &self->batch.rows;
    int64_t dots[PACE__BLOCK_ROWS];

    for (size_t at = 0; at < rows->rows; at += PACE__BLOCK_ROWS) {
        size_t count = rows->rows - at < PACE__BLOCK_ROWS ? rows->rows - at : PACE__BLOCK_ROWS;

        pace__logreg_dots(&self->view, rows, at, count, &all, 0, dots);
        pace__logreg_gradient(&self->view, rows, at, count, dots, self->gradient + at);
    }
}

/* Adds each part's time to ns. */
static void run_batch(bench *self, const pace__rows *rows, double ns[PARTS])
{
    double at[PARTS + 1];

    at[COPY] = cpu_ns();
    memcpy(self->copy, rows->ids, rows->rows * COLUMNS * sizeof *self->copy);
    at[PLAIN] = cpu_ns();
    pace__keys_find(&self->plain, rows, &self->batch);
    at[FIND] = cpu_ns();
    pace__keys_find(&self->finder, rows, &self->batch);
    double fetch = cpu_ns();

    memset(self->weights, 0, (self->batch.count + 1) * sizeof *self->weights);
    memset(self->sums, 0, (self->batch.count + 1) * sizeof *self->sums);
    pace__logreg_view_set(&self->view, self->weights, self->batch.count);
    at[DOTS] = cpu_ns();
    dots_and_gradient(self);
    at[SUMS] = cpu_ns();
    pace__keys_accumulate(&self->batch, 0, rows->rows, self->gradient, self->sums);
    at[PARTS] = cpu_ns();
    for (int part = 0; part < PARTS; part++)
        ns[part] += (part == FIND ? fetch : at[part + 1]) - at[part];
    self->keys += self->batch.count;
}

static void run(bench *self, size_t batch_rows, int repeat)
{
    double best[PARTS];
    size_t rows = ROWS / batch_rows * batch_rows;

    for (int turn = 0; turn < repeat; turn++) {
        double ns[PARTS] = {0};

        self->keys = 0;
        for (size_t at = 0; at < rows; at += batch_rows) {
            pace__rows batch = pace__rows_slice(&self->rows, at, batch_rows);

            run_batch(self, &batch, ns);
        }
        for (int part = 0; part < PARTS; part++)
            best[part] = turn == 0 || ns[part] < best[part] ? ns[part] : best[part];
    }
    printf("%6zu rows  %5.2f keys/row ", batch_rows, (double)self->keys / (double)rows);
    for (int part = 0; part < PARTS; part++)
        printf("  %s %5.1f ns (%.1f)", names[part], best[part] / (double)rows, best[part] / best[COPY]);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const size_t batch_rows[] = {500, 1250, 5000, 10000};
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    uint32_t *ids = pace__pages_alloc((size_t)ROWS * COLUMNS * sizeof *ids);
    uint8_t *label = pace__pages_alloc(ROWS);
    bench self = {0};

    if (!ids || !label)
        return 1;
    uint32_t all = make_rows(ids, label);

    self.rows = (pace__rows){.rows = ROWS, .columns = COLUMNS, .ids = ids, .label = label};
    self.weights = pace__pages_alloc(IDS_MAX * sizeof *self.weights);
    self.sums = pace__pages_alloc(IDS_MAX * sizeof *self.sums);
    self.gradient = pace__pages_alloc(10000 * sizeof *self.gradient);
    self.copy = pace__pages_alloc(10000 * COLUMNS * sizeof *self.copy);
    if (!self.weights || !self.sums || !self.gradient || !self.copy || all >= IDS_MAX ||
        pace__key_finder_init(&self.finder, all, false, NULL) ||
        pace__key_finder_init(&self.plain, all, true, NULL) ||
        pace__key_batch_init(&self.batch, all, 10000 * COLUMNS, NULL))
        return 1;
    pace__logreg_view_init(&self.view, COLUMNS, false, &optim, false);
    printf("%u ids, kernels %s; CPU time per row, and as a multiple of copying the ids\n", all,
           pace_kernels_name(pace_kernels_in_use()));
    for (size_t i = 0; i < sizeof batch_rows / sizeof *batch_rows; i++)
        run(&self, batch_rows[i], argc > 1 ? atoi(argv[1]) : 7);
    pace__key_batch_release(&self.batch);
    pace__key_finder_release(&self.plain);
    pace__key_finder_release(&self.finder);
    return 0;
}

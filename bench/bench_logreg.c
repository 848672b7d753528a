/*
 * bench_logreg DIR: what the arithmetic alone costs. Loads a data set's training rows into memory and makes
 * one AdaGrad pass over them, in stored order, on one thread:
 *
 *     plain    one row after the other: sum, sigmoid, update; the loop that one would write first, with a
 * prefetch kernels  the trainer's block kernels, without reader, threads and records
 *
 * Prints one line each: name, seconds, million rows/s, mean loss.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "data/store/reader.h"
#include "model/linear/logreg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void to_stderr(void *user, pace_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

static const pace_log stderr_log = {.write = to_stderr};

/* All rows of a set of columns. */
static pace__rows load(const pace__store *store)
{
    uint64_t rows = store->info.rows[PACE__TRAIN], at = 0;
    uint32_t columns = store->info.columns;
    uint32_t *ids = pace__pages_alloc(rows * columns * sizeof *ids);
    uint8_t *label = pace__pages_alloc(rows);
    pace__reader_plan plan = {
        .set = PACE__TRAIN, .sequential = true, .batch = PACE__PIECE_ROWS, .last = rows, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;

    if (!ids || !label || pace__reader_create(store, &plan, &stderr_log, &reader))
        exit(1);
    while (!pace__reader_next(reader, 0, &piece) && piece) {
        memcpy(ids + at * columns, piece->rows.ids, piece->rows.rows * columns * sizeof *ids);
        memcpy(label + at, piece->rows.label, piece->rows.rows);
        at += piece->rows.rows;
    }
    pace__reader_free(reader);
    return (pace__rows){.rows = at, .columns = columns, .ids = ids, .label = label};
}

static double plain_pass(const pace__rows *rows, float *pairs, float lr)
{
    double loss = 0;
    float bias[2] = {0, 1};

    for (size_t row = 0; row < rows->rows; row++) {
        const uint32_t *ids = rows->ids + row * rows->columns;
        float z = bias[0];

        if (row + 8 < rows->rows)
            for (uint32_t c = 0; c < rows->columns; c++)
                __builtin_prefetch(pairs + 2 * (size_t)ids[8 * rows->columns + c]);
        for (uint32_t c = 0; c < rows->columns; c++)
            z += pairs[2 * (size_t)ids[c]];
        float p = 1 / (1 + expf(-z)), g = p - rows->label[row];

        loss -= log(rows->label[row] ? p : 1 - p);
        for (uint32_t c = 0; c < rows->columns; c++) {
            float *pair = pairs + 2 * (size_t)ids[c];

            pair[1] += g * g;
            pair[0] -= lr * g / sqrtf(pair[1]);
        }
        bias[1] += g * g;
        bias[0] -= lr * g / sqrtf(bias[1]);
    }
    return loss;
}

static double kernel_pass(const pace__rows *rows, pace__logreg *model)
{
    pace__stripe all = pace__logreg_stripe(model, 0, 1);
    int64_t dots[2][PACE__BLOCK_ROWS];
    float gradient[PACE__BLOCK_ROWS];
    double loss = 0;
    size_t blocks = rows->rows / PACE__BLOCK_ROWS, turn = 0;

    pace__logreg_dots(model, rows, 0, PACE__BLOCK_ROWS, &all, 0, dots[0]);
    for (size_t block = 0; block < blocks; block++, turn ^= 1) {
        if (block + 1 < blocks)
            pace__logreg_dots(model, rows, (block + 1) * PACE__BLOCK_ROWS, PACE__BLOCK_ROWS, &all, 0,
                              dots[turn ^ 1]);
        loss += pace__logreg_gradient(model, rows, block * PACE__BLOCK_ROWS, PACE__BLOCK_ROWS, dots[turn],
                                      gradient);
        pace__logreg_update(model, rows, block * PACE__BLOCK_ROWS, PACE__BLOCK_ROWS, &all, gradient);
    }
    return loss;
}

static void report(const char *name, uint64_t start_ns, double loss, size_t rows)
{
    double seconds = pace__seconds_since(start_ns);

    printf("%-8s %.3f s  %.2f million rows/s  mean loss %.5f\n", name, seconds, (double)rows / seconds * 1e-6,
           loss / (double)rows);
}

int main(int argc, char **argv)
{
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    pace__store store;
    pace__logreg model;

    if (argc != 2 || pace__store_open(argv[1], &store, &stderr_log) || store.info.columns == 0) {
        fprintf(stderr, "usage: bench_logreg DIR   (a data set whose rows have columns)\n");
        return 64;
    }
    pace__rows rows = load(&store);

    for (int turn = 0; turn < 3; turn++) {
        if (pace__logreg_init(&model, store.info.ids_seen, store.info.columns, false, &optim, false,
                              &stderr_log))
            return 1;
        uint64_t start_ns = pace__now_ns();
        double loss = plain_pass(&rows, model.parameters, optim.lr);

        report("plain", start_ns, loss, rows.rows);
        pace__logreg_release(&model);
        if (pace__logreg_init(&model, store.info.ids_seen, store.info.columns, false, &optim, false,
                              &stderr_log))
            return 1;
        pace__rows head = pace__rows_slice(&rows, 0, rows.rows < 4096 ? rows.rows : 4096);

        pace__logreg_look_ahead(&model, &head);
        start_ns = pace__now_ns();
        loss = kernel_pass(&rows, &model);
        report("kernels", start_ns, loss, rows.rows);
        pace__logreg_release(&model);
    }
    pace__store_close(&store);
    return 0;
}

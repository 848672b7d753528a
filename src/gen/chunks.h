/*
 * chunks.h - rows made by many threads, written in order.
 *
 * The rows of a file come in chunks of a fixed size. A chunk has a random stream of its own, which follows
 * from the seed and the chunk's place; so any thread may make any chunk, and neither bytes nor sums depend on
 * the number of threads. Fewer rows are the beginning of more rows.
 */
#ifndef GEN_CHUNKS_H
#define GEN_CHUNKS_H

#include "base/random.h"

#include <paceline/log.h>
#include <paceline/registry.h>
#include <stdbool.h>
#include <stddef.h>

#define PACE__GEN_ROWS_MAX 1e12

/* What is known about rows that were made. */
typedef struct pace__made {
    uint64_t rows, bytes, positives;
    double loss;  /* sum of -log of the probability that the planted model gives to the label */
    double right; /* labels that it guesses on average, the sum of max(p, 1 - p); 0 if nobody asks */
} pace__made;

/*
 * Draws one row, writes it to `at`, adds its label, loss and chance to be guessed to `made`, returns the byte
 * behind it.
 */
typedef char *pace__make_row_fn(const void *population, pace__random *random, char *at, pace__made *made);

typedef struct pace__chunk_plan {
    const char *output; /* a path, or "-" for standard output */
    bool force;         /* replace an existing file */
    const _Atomic int *stop;
    int64_t rows, seed, threads;
    uint64_t chunk_rows;  /* another size gives other rows for the same seed */
    size_t row_bytes_max; /* make_row may touch that many */
    pace__make_row_fn *make_row;
    const void *population; /* for make_row; threads share it */
} pace__chunk_plan;

/* PACE_USAGE: output, rows or threads make no sense. `made` is set on success. */
pace_status pace__write_chunks(const pace__chunk_plan *plan, const pace_log *log, pace_registry *registry,
                               pace__made *made);

/* Share of positive rows; the mean log-loss of a model that always says that share. */
double pace__made_rate(const pace__made *made);
double pace__made_null_logloss(const pace__made *made);

#endif

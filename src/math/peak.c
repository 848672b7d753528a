#include "math/peak.h"

#include "base/clock.h"
#include "base/memory.h"
#include "math/gemm.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define SIDE         384
#define TRY_S        0.15
#define TRIES_MIN    20
#define STREAM_MIN   ((size_t)128 << 20)
#define STREAM_MAX   ((size_t)1 << 30)
#define STREAM_TRIES 3

double pace__peak_gflops(void)
{
    float *matrix = pace__pages_alloc(3 * (size_t)SIDE * SIDE * sizeof *matrix);
    float *a = matrix, *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;
    double best_s = INFINITY;

    if (!matrix)
        return 0;
    for (size_t i = 0; i < 2 * (size_t)SIDE * SIDE; i++)
        matrix[i] = (float)(i % 7) * 0.125f;
    pace__gemm_alone();
    pace__gemm(false, SIDE, SIDE, SIDE, a, SIDE, b, SIDE, false, c, SIDE); /* its code is made now */
    uint64_t start_ns = pace__now_ns();

    for (int i = 0; i < TRIES_MIN || pace__seconds_since(start_ns) < TRY_S; i++) {
        uint64_t try_ns = pace__now_ns();

        pace__gemm(false, SIDE, SIDE, SIDE, a, SIDE, b, SIDE, false, c, SIDE);
        best_s = fmin(best_s, pace__seconds_since(try_ns));
    }
    pace__pages_free(matrix, 3 * (size_t)SIDE * SIDE * sizeof *matrix);
    return 2.0 * SIDE * SIDE * SIDE / best_s * 1e-9;
}

static size_t stream_bytes(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_AVPHYS_PAGES),
         page = sysconf(_SC_PAGESIZE);
    size_t bytes = cache > 0 ? 2 * (size_t)cache : 0,
           spare = pages > 0 ? (size_t)pages * (size_t)page / 8 : 0;

    bytes = bytes < STREAM_MIN ? STREAM_MIN : bytes > STREAM_MAX ? STREAM_MAX : bytes;
    return spare < bytes ? 0 : bytes / 64 * 64; /* what fits into a cache says nothing of memory */
}

/* Sanitizers would look at every word, for the seconds of a test. */
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))

/* So that each page is a page of its own. */
UNWATCHED static void fill(uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = i | 1;
}

UNWATCHED static uint64_t add_up(const uint64_t *words, size_t count)
{
    uint64_t sums[8] = {0}, sum = 0;

    for (size_t i = 0; i + 8 <= count; i += 8) {
        for (size_t j = 0; j < 8; j++)
            sums[j] += words[i + j];
    }
    for (size_t j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

double pace__peak_gbytes_s(void)
{
    size_t bytes = stream_bytes();
    uint64_t *words = bytes ? pace__pages_alloc(bytes) : NULL;
    volatile uint64_t seen = 0; /* what is added up is looked at */
    double best_s = INFINITY;

    if (!words)
        return 0;
    fill(words, bytes / sizeof *words);
    for (int i = 0; i < STREAM_TRIES; i++) {
        uint64_t try_ns = pace__now_ns();

        seen += add_up(words, bytes / sizeof *words);
        best_s = fmin(best_s, pace__seconds_since(try_ns));
    }
    pace__pages_free(words, bytes);
    return seen ? (double)bytes / best_s * 1e-9 : 0;
}

/*
 * Gradients by products of bf16 against those of floats: every cell, depth, direction and pooling, with every way that this
 * CPU can go; the same bits for any number of threads; logits that do not know about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "math/bf16.h"
#include "rnn_batches.h"
#include "support.h"

/*
 * A number that is rounded to bf16 is off by 2^-9 of itself at most. An error goes through a few products, and through gates,
 * from word to word; of a whole tensor, in which errors are of either sign, that made up .008 where tensors are not of a
 * single number. A product that is missing changes a tensor by far more. ReLUs and maxima have corners: a unit that lands on
 * the other side has another derivative altogether.
 */
#define TOLERANCE         0.03
#define TOLERANCE_CORNERS 0.3

#if PACE__HAS_BF16
extern const pace__bf16_kernels pace__bf16_tiles_in_c;
#endif

static size_t find_ways(const pace__bf16_kernels *ways[4])
{
    size_t count = 0;

    ways[count++] = pace__bf16_of(PACE__BF16_PLAIN);
#if PACE__HAS_BF16
    unsigned abilities = pace__cpu_abilities(), tiles = PACE__CPU_AMX_TILE | PACE__CPU_AMX_BF16;

    if (pace__cpu_runs(PACE_KERNELS_V4) && abilities & PACE__CPU_AVX512BF16) {
        ways[count++] = pace__bf16_of(PACE__BF16_PAIRS);
        ways[count++] = &pace__bf16_tiles_in_c;
        if ((abilities & tiles) == tiles && pace__cpu_allow_tiles())
            ways[count++] = pace__bf16_of(PACE__BF16_TILES);
    }
#endif
    return count;
}

/* The length of the difference of two vectors, in terms of that of the second. */
static double distance(const float *values, const float *expected, size_t count)
{
    double apart = 0, all = 1e-30;

    for (size_t i = 0; i < count; i++) {
        apart += pow((double)values[i] - (double)expected[i], 2);
        all += pow((double)expected[i], 2);
    }
    return sqrt(apart / all);
}

static void assert_near(const made *it, const char *way, const char *name, const float *values,
                        const float *expected, size_t count)
{
    double apart = distance(values, expected, count);

    bool corners = it->config.dense || it->config.pooling == PACE_POOL_MAX;

    if (!(apart <= (corners ? TOLERANCE_CORNERS : TOLERANCE)))
        fail_msg("%s: %s is %g of itself away from that of floats", way, name, apart);
}

static void assert_near_network(const made *it, const char *way, const results *got, const results *expected)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(&it->config, tensors);
    size_t dense = it->dense_size, embedding = it->embedding_size;

    for (unsigned t = 0; t < count; t++)
        assert_near(it, way, tensors[t].name, got->values + tensors[t].at, expected->values + tensors[t].at,
                    tensors[t].size);
    assert_near(it, way, "embedding", got->values + dense, expected->values + dense, embedding);
    assert_memory_equal(got->values + dense + embedding, expected->values + dense + embedding,
                        it->rows.rows * sizeof(float)); /* logits */
    assert_true(fabs(got->loss - expected->loss) <= TOLERANCE * fabs(expected->loss));
}

static void try(pace__rnn_config config, size_t rows, bool full, uint64_t seed)
{
    made it = make(config, rows, full, seed);
    /* As training begins with: where gates are far from linear, and words add up, errors grow on the way. */
    float scale = 2 / sqrtf((float)config.hidden);

    for (size_t i = 0; i < it.dense_size; i++)
        it.dense[i] *= scale;
    int set = pace_kernels_in_use();
    results plain = run_fast(&it, 1, set);
    const pace__bf16_kernels *ways[4];
    size_t count = find_ways(ways);

    it.config.bf16 = true;
    for (size_t way = 0; way < count; way++) {
        results one = run_with(&it, 1, set, ways[way]), more = run_with(&it, 2, set, ways[way]);

        assert_near_network(&it, ways[way]->name, &one, &plain);
        assert_same_bits(&more, &one);
        free(one.values);
        free(more.values);
    }
    free(plain.values);
    unmake(&it);
}

static void every_network_is_near_that_of_floats(void **state)
{
    uint64_t seed = 0;

    (void)state;
    for (unsigned kind = 0; kind < 2 * 3 * 2 * 3 * 2; kind++) {
        pace__rnn_config config = usual;

        config.cell = kind % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
        config.layers = 1 + kind / 2 % 3;
        config.both = kind / 6 % 2;
        config.pooling = (int[]){PACE_POOL_LAST, PACE_POOL_MEAN, PACE_POOL_MAX}[kind / 12 % 3];
        config.dropout = kind / 36 ? 0.4f : 0;
        config.dense = kind % 5 < 2 ? 0 : 13;
        try(config, 33, kind % 3, ++seed);
    }
}

static void sizes_need_not_be_round(void **state)
{
    static const uint32_t hidden[] = {1, 15, 16, 17, 32, 50, 64, 70};
    uint64_t seed = 100;

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof hidden / sizeof *hidden; i++) {
        pace__rnn_config config = usual;

        config.cell = i % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
        config.hidden = hidden[i / 2];
        config.embed = (uint32_t[]){1, 16, 33, 100, 64}[i % 5];
        config.layers = 2;
        config.both = i % 3 == 0;
        config.dense = (uint32_t[]){0, 1, 64, 65}[i % 4];
        config.length = 5;
        try(config, 40, i % 2, ++seed);
    }
}

/* Several groups of words and of slots, tasks of several blocks. */
static void networks_may_be_large(void **state)
{
    pace__rnn_config config = usual;

    (void)state;
    config.hidden = 261;
    config.embed = 140;
    config.length = 60;
    try(config, 17, false, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_is_near_that_of_floats),
        cmocka_unit_test(sizes_need_not_be_round),
        cmocka_unit_test(networks_may_be_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

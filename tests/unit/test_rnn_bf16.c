/*
 * Gradients by products of bf16 against those of floats: every cell, depth, direction and pooling, with every way that this
 * CPU can go; the same bits for any number of threads; logits that do not know about it.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bf16_ways.h"
#include "rnn_batches.h"
#include "support.h"
#include "thinned.h"

/*
 * A number that is rounded to bf16 is off by 2^-9 of itself at most. An error goes through a few products, and through gates,
 * from word to word; of a whole tensor, in which errors are of either sign, that made up .008 where tensors are not of a
 * single number. A product that is missing changes a tensor by far more. ReLUs and maxima have corners: a unit that lands on
 * the other side has another derivative altogether.
 */
#define TOLERANCE         0.03
#define TOLERANCE_CORNERS 0.3

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

/* By one of the ways, or by all. */
#define EVERY_WAY UINT_MAX

static void try(pace__rnn_config config, size_t rows, bool full, unsigned only, uint64_t seed)
{
    made it = make(config, rows, full, seed);
    /* As training begins with: where gates are far from linear, and words add up, errors grow on the way. */
    float scale = 2 / sqrtf((float)config.hidden);

    for (size_t i = 0; i < it.dense_size; i++)
        it.dense[i] *= scale;
    int set = pace_kernels_in_use();
    results plain = run_fast(&it, 1, set);
    const pace__bf16_kernels *ways[1 + WAYS_MAX] = {pace__bf16_of(PACE__BF16_PLAIN)};
    size_t count = 1 + find_ways(ways + 1);

    it.config.bf16 = true;
    for (size_t way = 0; way < count; way++) {
        if (only != EVERY_WAY && way != only % count)
            continue;
        results one = run_with(&it, 1, set, ways[way]), more = run_with(&it, 2, set, ways[way]);

        assert_near_network(&it, ways[way]->name, &one, &plain);
        assert_same_bits(&more, &one);
        free(one.values);
        free(more.values);
    }
    free(plain.values);
    unmake(&it);
}

/* What a network makes of products does not depend on how these are computed: the ways take turns, and each meets every cell
 * and depth (the first six kinds), in some direction and pooling. */
static void every_network_is_near_that_of_floats(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < NETWORKS; kind += THINNED(5))
        try(any_network(kind), 33, kind % 3, kind + kind / 6, kind + 1);
}

static void sizes_need_not_be_round(void **state)
{
    uint64_t seed = 100;

    (void)state;
    for (unsigned i = 0; i < ODD_NETWORKS; i++)
        try(odd_network(i), 40, i % 2, EVERY_WAY, ++seed);
}

/* Several groups of words and of slots, tasks of several blocks. */
static void networks_may_be_large(void **state)
{
    pace__rnn_config config = usual;

    (void)state;
    config.hidden = 261;
    config.embed = 140;
    config.length = 60;
    try(config, 17, false, EVERY_WAY, 150);
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

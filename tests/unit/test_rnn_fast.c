/*
 * The fast recurrent network against the plain one: every cell, depth, direction and pooling, with every set
 * of kernels; the same bits for any number of threads; what `ready` is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/random.h"
#include "math/gemm.h"
#include "model/rnn/rnn.h"
#include "rnn_batches.h"
#include "support.h"
#include "thinned.h"

/* Within `tolerance` of the largest of a tensor. */
static void assert_close(const float *values, const float *expected, size_t count, double tolerance,
                         const char *name)
{
    double largest = 1e-6;

    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)values[i] - (double)expected[i]) / largest;

        if (!(error <= tolerance))
            fail_msg("%s[%zu] is %g, not %g; the largest is %g; seed %d", name, i, (double)values[i],
                     (double)expected[i], largest, SEED);
    }
}

static void assert_same_network(const made *it, const results *got, const results *expected)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(&it->config, tensors);
    size_t dense = it->dense_size, embedding = it->embedding_size;

    for (unsigned t = 0; t < count; t++)
        assert_close(got->values + tensors[t].at, expected->values + tensors[t].at, tensors[t].size, 5e-5,
                     tensors[t].name);
    assert_close(got->values + dense, expected->values + dense, embedding, 5e-5, "embedding");
    assert_close(got->values + dense + embedding, expected->values + dense + embedding, it->rows.rows, 1e-5,
                 "logits");
    assert_true(fabs(got->loss - expected->loss) <= 1e-5 * fabs(expected->loss));
}

/* Every set of kernels, and the same on more threads, against the plain network. */
static void try(pace__rnn_config config, size_t rows, bool full, uint64_t seed)
{
    made it = make(config, rows, full, seed);
    results plain = run_plain(&it);

    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        results fast = run_fast(&it, 1, set), more = run_fast(&it, 2, set);

        assert_same_network(&it, &fast, &plain);
        assert_same_bits(&more, &fast);
        free(fast.values);
        free(more.values);
    }
    free(plain.values);
    unmake(&it);
}

/* --- the tests --- */

static void every_network_is_the_plain_one(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < NETWORKS; kind += THINNED(5))
        try(any_network(kind), 6, false, kind + 1);
}

static void sizes_need_not_be_round(void **state)
{
    uint64_t seed = 100;

    (void)state;
    for (unsigned i = 0; i < ODD_NETWORKS; i++) {
        pace__rnn_config config = odd_network(i);

        config.dropout = 0.25f;
        try(config, 13, i % 2, ++seed);
    }
}

/* Large enough for what small ones do without: fetching ahead, packed rows, tasks of several blocks. */
static void states_may_be_large(void **state)
{
    pace__rnn_config config = usual;

    (void)state;
    config.hidden = 261;
    config.embed = 140;
    config.layers = 1;
    config.length = 8;
    config.cell = PACE_CELL_LSTM;
    try(config, 20, true, 150);
}

static void batches_of_every_size(void **state)
{
    static const size_t rows[] = {0, 1, 2, 31, 32, 33, 100};
    uint64_t seed = 200;

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        pace__rnn_config config = usual;

        config.cell = i % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
        config.layers = 2;
        config.dropout = 0.5f;
        config.dense = 8;
        config.length = i % 3 == 0 ? 1 : 13;
        try(config, rows[i / 2], i % 2, ++seed);
    }
}

static void losses_and_weights_count(void **state)
{
    (void)state;
    for (int loss = 0; loss < 3; loss++) {
        pace__rnn_config config = usual;

        config.loss = (int[]){PACE_LOSS_BCE, PACE_LOSS_FOCAL, PACE_LOSS_HINGE}[loss];
        config.focal = 2;
        config.weight[0] = 0.5f;
        config.weight[1] = 3;
        try(config, 20, false, 300 + (uint64_t)loss);
    }
}

/* More chunks than sums, so that some of them share. */
static void threads_do_not_change_bits(void **state)
{
    (void)state;
    for (int i = 2 * PACE_KERNELS_PLAIN; i < 2 * PACE__KERNELS_END; i++) {
        pace__rnn_config config = usual;

        if (!pace_kernels_run(i / 2))
            continue;

        config.cell = i % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
        config.layers = 2;
        config.both = i % 2;
        config.dropout = 0.3f;
        config.hidden = 5;
        config.length = 3;
        made it = make(config, 600, false, 400 + (uint64_t)i);
        results one = run_fast(&it, 1, i / 2);

        for (int threads = 2; threads <= 5; threads += threads - 1) {
            results more = run_fast(&it, threads, i / 2);

            assert_same_bits(&more, &one);
            free(more.values);
        }
        free(one.values);
        unmake(&it);
    }
}

/* Rows do not notice their neighbours: logits are those of the row alone, up to rounding. */
static void a_batch_is_its_rows(void **state)
{
    pace__rnn_config config = usual;

    (void)state;
    config.both = true;
    config.layers = 2;
    made it = make(config, 40, false, 500);
    results all = run_fast(&it, 2, PACE_KERNELS_PLAIN);
    pace__rnn_fast *fast;

    assert_ok(pace__rnn_fast_create(&config, 60, 1, &said_log, &fast));
    for (size_t row = 0; row < 40; row++) {
        pace__rows one = pace__rows_slice(&it.rows, row, 1);
        pace__rnn_batch batch = it.batch;
        float logit;

        batch.rows = &one;
        assert_ok(pace__rnn_fast_logits(fast, &batch, &logit));
        assert_true(fabsf(logit - all.values[it.dense_size + it.embedding_size + row]) < 1e-4f);
    }
    pace__rnn_fast_free(fast);
    free(all.values);
    unmake(&it);
}

/* What is no number is not hidden. */
static void no_number_stays_none(void **state)
{
    (void)state;
    for (int i = 2 * PACE_KERNELS_PLAIN; i < 2 * PACE__KERNELS_END; i++) {
        pace__rnn_config config = usual;

        if (!pace_kernels_run(i / 2))
            continue;

        config.cell = i % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
        config.dense = 4;
        made it = make(config, 3, true, 600);

        it.embedding[(size_t)it.ids[0] * config.embed] = NAN;
        results got = run_fast(&it, 1, i / 2);

        assert_true(isnan(got.values[it.dense_size + it.embedding_size]));
        assert_true(isnan(got.loss));
        free(got.values);
        unmake(&it);
    }
}

/* --- strange numbers --- */

static const float strange[] = {NAN,     INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f,
                                -1e-39f, -0.0f,    100,       -100,  0.5f};
#define STRANGE (sizeof strange / sizeof *strange)

/* What a step leaves: gates, and then cell, squashed and state. */
typedef struct step_results {
    float gates[STRANGE][PACE__RNN_BLOCK_GATES], rest[3][STRANGE][PACE__RNN_BLOCK];
} step_results;

static step_results strange_step(const pace__rnn_cells *cells, bool gru, size_t turn)
{
    float sums[STRANGE][PACE__RNN_BLOCK_GATES], cell[STRANGE][PACE__RNN_BLOCK];
    step_results got = {0};
    pace__rnn_step step = {.rows = STRANGE,
                           .start = sums[0],
                           .start_stride = PACE__RNN_BLOCK_GATES,
                           .cell_before = cell[0],
                           .gates = got.gates[0],
                           .gates_stride = PACE__RNN_BLOCK_GATES,
                           .cell = got.rest[0][0],
                           .squashed = got.rest[1][0],
                           .state = got.rest[2][0],
                           .stride = PACE__RNN_BLOCK};

    for (size_t row = 0; row < STRANGE; row++) {
        for (size_t i = 0; i < PACE__RNN_BLOCK_GATES; i++)
            sums[row][i] = (i / PACE__RNN_BLOCK + turn) % 2 ? 0.25f : strange[(row + i) % STRANGE];
        for (size_t i = 0; i < PACE__RNN_BLOCK; i++)
            cell[row][i] = strange[(2 * row + i + turn) % STRANGE];
    }
    if (gru)
        cells->gru_step(&step);
    else
        cells->lstm_step(&step);
    return got;
}

/* Gates that are infinite are open or closed, in all kernels. */
static void strange_numbers_are_alike(void **state)
{
    (void)state;
    for (size_t turn = 0; turn < 8 * PACE__KERNELS_END; turn++) {
        int set = (int)(turn / 8);

        if (!pace_kernels_run(set))
            continue;
        step_results one = strange_step(&pace__rnn_cells_plain, turn % 2, turn / 2 % 4),
                     other = strange_step(pace__rnn_cells_of(set), turn % 2, turn / 2 % 4);
        const float *expected = one.gates[0], *found = other.gates[0];

        for (size_t i = 0; i < sizeof one / sizeof(float); i++) {
            assert_int_equal(isnan(found[i]), isnan(expected[i]));
            assert_true(isnan(expected[i]) || found[i] == expected[i] ||
                        fabs((double)found[i] - expected[i]) <= 1e-5 * fmax(1, fabs((double)expected[i])));
        }
    }
}

/* --- ready --- */

typedef struct listener {
    const made *it;
    const float *expected;
    pthread_t thread;
    size_t first, calls, fail_at;
    size_t words_calls;
    double loss;
} listener;

static pace_status listen_to(void *user, size_t first)
{
    listener *self = user;

    assert_true(pthread_equal(pthread_self(), self->thread));
    assert_true(first <= self->first);
    self->first = first;
    if (++self->calls == self->fail_at)
        return PACE_INTERRUPTED;
    assert_memory_equal(self->it->batch.dense_sums + first, self->expected + first,
                        (self->it->dense_size - first) * sizeof(float));
    return PACE_OK;
}

/* Before the input weights of layer 0 are. */
static pace_status listen_to_words(void *user, double loss)
{
    listener *self = user;
    const made *it = self->it;

    assert_true(pthread_equal(pthread_self(), self->thread));
    assert_true(self->first > 0);
    assert_memory_equal(it->batch.embedding_sums, self->expected + it->dense_size,
                        it->embedding_size * sizeof(float));
    self->loss = loss;
    self->words_calls++;
    return self->fail_at == SIZE_MAX ? PACE_INTERRUPTED : PACE_OK;
}

static made make_large(void)
{
    pace__rnn_config config = usual;

    config.layers = 3;
    config.hidden = 40;
    config.length = 25;
    return make(config, 64, true, 700);
}

static void the_caller_hears_of_complete_sums(void **state)
{
    made it = make_large();
    results expected = run_fast(&it, 1, PACE_KERNELS_PLAIN);
    listener hears = {.it = &it, .expected = expected.values, .thread = pthread_self()};

    (void)state;
    hears.first = it.dense_size;
    it.batch.ready = listen_to;
    it.batch.words_ready = listen_to_words;
    it.batch.user = &hears;
    spoil(&it);
    pace__rnn_fast *fast;

    assert_ok(pace__rnn_fast_create_with(&it.config, 64, 3, PACE_KERNELS_PLAIN, NULL, &said_log, &fast));
    assert_ok(pace__rnn_fast_gradient(fast, &it.batch));
    assert_int_equal(hears.first, 0);
    assert_true(hears.calls > 4); /* the head, three layers, and chances in between */
    assert_int_equal(hears.words_calls, 1);
    assert_true(hears.loss == it.batch.loss);
    hears.fail_at = SIZE_MAX;
    hears.first = it.dense_size;
    assert_int_equal(pace__rnn_fast_gradient(fast, &it.batch), PACE_INTERRUPTED);
    assert_true(hears.first > 0);
    pace__rnn_fast_free(fast);
    free(expected.values);
    unmake(&it);
}

static void the_caller_can_stop(void **state)
{
    made it = make_large();
    results expected = run_fast(&it, 1, PACE_KERNELS_PLAIN);
    pace__rnn_fast *fast;

    (void)state;
    it.batch.ready = listen_to;
    assert_ok(pace__rnn_fast_create_with(&it.config, 64, 2, PACE_KERNELS_PLAIN, NULL, &said_log, &fast));
    for (size_t at = 1; at <= 5; at++) {
        listener hears = {.it = &it, .expected = expected.values, .thread = pthread_self(), .fail_at = at};

        hears.first = it.dense_size;
        it.batch.user = &hears;
        assert_int_equal(pace__rnn_fast_gradient(fast, &it.batch), PACE_INTERRUPTED);
        assert_int_equal(hears.calls, at);
    }
    /* And go on as if nothing had been. */
    it.batch.ready = NULL;
    spoil(&it);
    assert_ok(pace__rnn_fast_gradient(fast, &it.batch));
    assert_memory_equal(it.batch.dense_sums, expected.values, it.dense_size * sizeof(float));
    pace__rnn_fast_free(fast);
    free(expected.values);
    unmake(&it);
}

static void memory_grows_with_rows_and_threads(void **state)
{
    uint64_t one = pace__rnn_fast_memory(&usual, 100, 1);

    (void)state;
    assert_true(pace__rnn_fast_memory(&usual, 200, 1) > one);
    assert_true(pace__rnn_fast_memory(&usual, 100, 2) > one);
    /* At least the gates of every word. */
    assert_true(one > 100 * (uint64_t)usual.length * 4 * usual.hidden * sizeof(float));
}

static void products_are_right(void **state)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, -1, 2, 0, 1, 3}, c[4] = {10, 10, 10, 10};

    (void)state;
    pace__gemm_alone();
    pace__gemm(false, 2, 2, 3, a, 3, b, 2, false, c, 2); /* (1 2 3; 4 5 6) x (1 -1; 2 0; 1 3) */
    assert_memory_equal(c, ((float[]){8, 8, 20, 14}), sizeof c);
    pace__gemm(true, 2, 2, 3, a, 2, b, 2, true, c, 2); /* (1 3 5; 2 4 6) x the same */
    assert_memory_equal(c, ((float[]){20, 22, 36, 30}), sizeof c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(every_network_is_the_plain_one),
        cmocka_unit_test(sizes_need_not_be_round),
        cmocka_unit_test(states_may_be_large),
        cmocka_unit_test(batches_of_every_size),
        cmocka_unit_test(losses_and_weights_count),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(a_batch_is_its_rows),
        cmocka_unit_test(strange_numbers_are_alike),
        cmocka_unit_test(no_number_stays_none),
        cmocka_unit_test(the_caller_hears_of_complete_sums),
        cmocka_unit_test(the_caller_can_stop),
        cmocka_unit_test(memory_grows_with_rows_and_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

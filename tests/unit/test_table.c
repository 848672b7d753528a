/* A job's parameters spread over tables, against one plain array of them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/shares.h"
#include "ps/table.h"

#include "support.h"

#define KEYS       103
#define DIM_MAX    100
#define SHARDS_MAX 5
#define BATCH_MAX  40

static const unsigned dims[] = {1, 3, DIM_MAX};
static const int kinds[] = {PACE_SGD, PACE_MOMENTUM, PACE_ADAGRAD, PACE_FTRL, PACE_ADAM};
static const double penalties[][2] = {{0, 0}, {0.01, 0}, {0, 0.1}, {0.002, 0.05}}; /* l1, l2 */
static uint64_t seed_now;

static int print_seed(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed_now);
    return 0;
}

/* --- the plain array, and the tables that must agree with it --- */

typedef struct both {
    pace__random random;
    pace__optim optim;
    unsigned dim, shards;
    bool sums;
    float (*plain)[PACE__OPTIM_WIDTH_MAX]; /* (KEYS x dim) every parameter by itself */
    float *sum;                            /* (KEYS x dim) */
    bool touched[KEYS];
    pace__table tables[SHARDS_MAX];
} both;

static both make_both(uint64_t seed, unsigned dim, pace__optim optim, unsigned shards, bool sums)
{
    both self = {.random = pace__random_at(seed_now = seed, 7),
                 .optim = optim,
                 .dim = dim,
                 .shards = shards,
                 .sums = sums,
                 .plain = tiny_alloc((size_t)KEYS * dim * sizeof *self.plain),
                 .sum = tiny_alloc((size_t)KEYS * dim * sizeof *self.sum)};

    for (unsigned i = 0; i < KEYS * dim; i++)
        pace__optim_init(&self.optim, self.plain[i]);
    for (unsigned shard = 0; shard < shards; shard++) {
        pace__table_plan plan = {KEYS, dim, shard, shards, sums, self.optim};

        assert_ok(pace__table_init(&self.tables[shard], &plan, &said_log));
        assert_int_equal(self.tables[shard].floats, dim * optim.width);
    }
    return self;
}

static void release_both(both *self)
{
    for (unsigned shard = 0; shard < self->shards; shard++)
        pace__table_release(&self->tables[shard]);
    free(self->plain);
    free(self->sum);
}

static pace__optim optim_of(int kind, const double penalty[2])
{
    return pace__optim_make(kind, 0.05, 0.9, penalty[0], penalty[1]);
}

static void begin_step(both *self, uint64_t step)
{
    double lr = 0.05 / (double)(1 + step % 5);

    pace__optim_begin_step(&self->optim, lr, step);
    for (unsigned shard = 0; shard < self->shards; shard++)
        pace__optim_begin_step(&self->tables[shard].optim, lr, step);
}

/* Every float of every parameter: a row is all its weights, then all their first floats of state, and so on.
 */
static void compare(const both *self)
{
    float row[DIM_MAX * PACE__OPTIM_WIDTH_MAX], expected[DIM_MAX * PACE__OPTIM_WIDTH_MAX];
    unsigned dim = self->dim, floats = dim * self->optim.width;

    for (unsigned key = 0; key < KEYS; key++) {
        for (unsigned i = 0; i < floats; i++)
            expected[i] = self->plain[key * dim + i % dim][i / dim];
        pace__table_read(&self->tables[key % self->shards], key / self->shards, 1, row);
        assert_memory_equal(row, expected, floats * sizeof *row);
    }
}

/* --- batches --- */

/* Distinct keys with a row each, and the same by shard. */
typedef struct batch {
    uint32_t count, keys[BATCH_MAX];
    float values[BATCH_MAX * DIM_MAX];
    uint32_t counts[SHARDS_MAX], places[SHARDS_MAX][BATCH_MAX];
    float by_shard[SHARDS_MAX][BATCH_MAX * DIM_MAX];
} batch;

static void random_batch(both *self, batch *made)
{
    unsigned wanted = (unsigned)pace__random_below(&self->random, BATCH_MAX), dim = self->dim;
    bool taken[KEYS] = {0};

    made->count = 0;
    memset(made->counts, 0, sizeof made->counts);
    for (unsigned i = 0; i < wanted; i++) {
        uint32_t key = (uint32_t)pace__random_below(&self->random, KEYS), shard = key % self->shards;
        float *values = made->values + made->count * dim;

        if (taken[key])
            continue;
        taken[key] = true;
        made->keys[made->count++] = key;
        for (unsigned at = 0; at < dim; at++)
            values[at] = (float)(pace__random_unit(&self->random) * 4 - 2);
        made->places[shard][made->counts[shard]] = key / self->shards;
        memcpy(made->by_shard[shard] + made->counts[shard]++ * dim, values, dim * sizeof *values);
    }
}

/* --- the same on both sides --- */

static void add(both *self)
{
    unsigned dim = self->dim;
    batch made;

    random_batch(self, &made);
    for (uint32_t i = 0; i < made.count * dim; i++) {
        uint32_t key = made.keys[i / dim];
        float *sum = &self->sum[key * dim + i % dim];

        *sum = self->touched[key] ? *sum + made.values[i] : made.values[i];
    }
    for (uint32_t i = 0; i < made.count; i++)
        self->touched[made.keys[i]] = true;
    for (unsigned shard = 0; shard < self->shards; shard++)
        pace__table_add(&self->tables[shard], made.places[shard], made.by_shard[shard], made.counts[shard]);
}

/* What merged gradients are made of. */
static void check_sums(const both *self)
{
    unsigned expected = 0, found = 0, dim = self->dim;

    for (unsigned key = 0; key < KEYS; key++)
        expected += self->touched[key];
    for (unsigned shard = 0; shard < self->shards; shard++) {
        const pace__table *table = &self->tables[shard];
        float sums[KEYS * DIM_MAX];

        pace__table_sums(table, sums);
        for (uint32_t i = 0; i < table->touched_count; i++) {
            uint32_t key = table->touched[i] * self->shards + shard;

            assert_true(self->touched[key]);
            assert_memory_equal(sums + i * dim, self->sum + key * dim, dim * sizeof *sums);
        }
        found += table->touched_count;
    }
    assert_int_equal(found, expected);
}

static void apply(both *self, float scale, bool discard)
{
    for (unsigned i = 0; i < KEYS * self->dim; i++) {
        if (self->touched[i / self->dim] && !discard)
            pace__optim_update(&self->optim, self->plain[i], self->sum[i] * scale);
    }
    memset(self->touched, 0, sizeof self->touched);
    for (unsigned shard = 0; shard < self->shards; shard++)
        pace__table_apply(&self->tables[shard], scale, discard);
}

static void update(both *self, float scale)
{
    unsigned dim = self->dim;
    batch made;

    random_batch(self, &made);
    for (uint32_t i = 0; i < made.count * dim; i++)
        pace__optim_update(&self->optim, self->plain[made.keys[i / dim] * dim + i % dim],
                           made.values[i] * scale);
    for (unsigned shard = 0; shard < self->shards; shard++)
        pace__table_update(&self->tables[shard], made.places[shard], made.by_shard[shard], made.counts[shard],
                           scale);
}

/* A parameter's weight at row `now`: penalties are applied up to there, except to the bias. */
static bool is_penalised(const both *self, uint32_t parameter)
{
    return self->optim.lazy && parameter / self->dim != KEYS - 1;
}

static float plain_weight(const both *self, uint32_t parameter, uint64_t now)
{
    const float *record = self->plain[parameter];

    return is_penalised(self, parameter) ? pace__optim_weight(&self->optim, record, now) : record[0];
}

static void look(both *self, uint64_t now, bool peek)
{
    unsigned dim = self->dim;
    float weights[BATCH_MAX * DIM_MAX];
    batch made;

    random_batch(self, &made);
    for (unsigned shard = 0; shard < self->shards; shard++) {
        pace__table *table = &self->tables[shard];

        if (peek)
            pace__table_peek(table, made.places[shard], made.counts[shard], now, weights);
        else
            pace__table_weights(table, made.places[shard], made.counts[shard], now, weights);
        for (uint32_t i = 0; i < made.counts[shard] * dim; i++) {
            uint32_t key = made.places[shard][i / dim] * self->shards + shard;
            float expected = plain_weight(self, key * dim + i % dim, now);

            assert_memory_equal(&weights[i], &expected, sizeof expected);
        }
    }
    for (uint32_t i = 0; i < made.count * dim && !peek; i++) {
        uint32_t parameter = made.keys[i / dim] * dim + i % dim;

        if (is_penalised(self, parameter))
            pace__optim_catch_up(&self->optim, self->plain[parameter], now);
    }
}

/* --- everything in any order --- */

static void run(both *self, int steps)
{
    static const uint64_t starts[] = {100, (UINT64_C(1) << 31) - 1500, (UINT64_C(1) << 32) - 1500,
                                      (UINT64_C(1) << 33) - 1500}; /* borders are passed on the way */
    uint64_t now = starts[seed_now % 4];
    float scales[] = {1, 0.25f, 1.0f / 3};

    for (unsigned key = 0; key < KEYS && self->optim.lazy;
         key += 2) { /* half of them (dim is 1) as of row `now`; the others have not been seen yet */
        pace__optim_catch_up(&self->optim, self->plain[key], now);
        pace__table_write(&self->tables[key % self->shards], key / self->shards, 1, self->plain[key]);
    }
    for (int step = 0; step < steps; step++) {
        float scale = scales[pace__random_below(&self->random, 3)];

        begin_step(self, (uint64_t)step);
        look(self, now - pace__random_below(&self->random, 60), false); /* some are late */
        look(self, now - pace__random_below(&self->random, 60), true);
        for (uint64_t parts = pace__random_below(&self->random, 4); parts > 0 && self->sums; parts--)
            add(self);
        if (self->sums) {
            check_sums(self);
            apply(self, scale, pace__random_below(&self->random, 8) == 0);
        } else {
            update(self, scale);
        }
        compare(self);
        now += pace__random_below(&self->random, 60);
    }
}

static void agree(unsigned dim, int kind, const double penalty[2], uint64_t *seed)
{
    pace__optim optim = optim_of(kind, penalty);

    if (optim.lazy && dim > 1)
        return; /* rows have no penalty of this kind */
    for (unsigned shards = 1; shards <= SHARDS_MAX; shards += dim > 10 ? 2 : 1) {
        for (int sums = 0; sums < 2; sums++) {
            both self = make_both(++*seed, dim, optim, shards, sums);

            run(&self, dim > 10 ? 30 : 120);
            release_both(&self);
        }
    }
}

static void agrees(void **state)
{
    uint64_t seed = 0;

    (void)state;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            for (size_t p = 0; p < sizeof penalties / sizeof *penalties; p++)
                agree(dims[d], kinds[kind], penalties[p], &seed);
        }
    }
}

/* --- rounds --- */

/* Records that were touched in rounds 1, 2, 3 must not look as if they had a sum when these numbers come
 * again. */
static void rounds_wrap_around(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t before = i / 2;
        both self = make_both(100 + i, dims[i % 2], optim_of(PACE_ADAGRAD, penalties[0]), 2, true);

        for (int step = 0; step < 4; step++) {
            begin_step(&self, (uint64_t)step);
            add(&self);
            apply(&self, 1, false);
        }
        self.tables[0].round = self.tables[1].round = UINT32_MAX - before;
        for (int step = 4; step < 14; step++) {
            begin_step(&self, (uint64_t)step);
            add(&self);
            add(&self);
            check_sums(&self);
            apply(&self, 1, step % 3 == 0);
            compare(&self);
            assert_true(self.tables[0].round != 0);
        }
        assert_true(self.tables[0].round < 14);
        release_both(&self);
    }
}

/* A place that occurs twice in what one worker sends is one row with the sum of both. */
static void a_place_twice(void **state)
{
    const uint32_t places[] = {3, 3, 1, 3};

    (void)state;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        unsigned dim = dims[d];
        pace__table_plan plan = {5, dim, 0, 1, true, pace__optim_make(PACE_SGD, 1, 0, 0, 0)};
        static const float gradients[] = {1, 2, 10, 4}, expected[] = {0, -5, 0, -3.5f, 0};
        float rows[4 * DIM_MAX], after[5 * DIM_MAX];
        pace__table table;

        for (unsigned i = 0; i < 4 * dim; i++)
            rows[i] = gradients[i / dim] * (float)(i % dim + 1);
        assert_ok(pace__table_init(&table, &plan, &said_log));
        pace__table_add(&table, places, rows, 4);
        assert_int_equal(table.touched_count, 2);
        pace__table_apply(&table, 0.5f, false);
        pace__table_read(&table, 0, 5, after);
        for (unsigned i = 0; i < 5 * dim; i++)
            assert_true(after[i] == expected[i / dim] * (float)(i % dim + 1));
        pace__table_release(&table);
    }
}

/* Running statistics: what comes is subtracted, whatever the rule, rate and scale; their neighbours learn. */
static void statistics(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3};

    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (unsigned shard = 0; shard < 2; shard++) {
            /* Of the keys 0 .. 7 on two shards, 2, 3 and 4 are statistics: places 1 and 2 of the first shard, place
             * 1 of the second. */
            pace__table_plan plan = {8, 2, shard, 2, true, pace__optim_make(kinds[kind], 0.1, 0.9, 0, 0),
                                     2, 3};
            float gradients[] = {1, 2, 1, 2, 1, 2, 1, 2}, after[4 * 2 * PACE__OPTIM_WIDTH_MAX];
            pace__table table;

            assert_ok(pace__table_init(&table, &plan, &said_log));
            pace__optim_begin_step(&table.optim, 0.1, 0);
            pace__table_add(&table, all, gradients, 4);
            pace__table_add(&table, all, gradients, 4);
            pace__table_apply(&table, 0.25f, false);
            pace__table_update(&table, all, gradients, 4, 0.25f);
            pace__table_read(&table, 0, 4, after);
            for (unsigned place = 0; place < 4; place++) {
                const float *row = after + place * table.floats;
                bool is = place == 1 || (shard == 0 && place == 2);

                assert_true((row[0] == -3 && row[1] == -6) == is);
                assert_true(row[0] < 0 && row[1] < 0);
            }
            pace__table_release(&table);
        }
    }
}

/* --- time --- */

/* Scores look at rows that a pull was already ahead of: what has been taken off is not put back, and no more
 * is taken. */
static void a_look_back(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        pace__table_plan plan = {3, 1, 0, 1, false, pace__optim_make(kinds[kind], 0.1, 0.9, 0, 0.01)};
        const uint32_t places[] = {0, 1, 2};
        const float gradients[] = {-1, 1, -1};
        pace__table table;
        float early[3], late[3], back[3];

        assert_ok(pace__table_init(&table, &plan, &said_log));
        pace__table_update(&table, places, gradients, 3, 1);
        pace__table_weights(&table, places, 3, 10, early);
        pace__table_weights(&table, places, 3, 1000, late);
        pace__table_peek(&table, places, 3, 990, back);
        assert_memory_equal(back, late, sizeof back);
        pace__table_weights(&table, places, 3, 990, back);
        assert_memory_equal(back, late, sizeof back);
        assert_true(plan.optim.lazy ? late[0] < early[0] && late[0] > 0 : late[0] == early[0]);
        assert_true(late[2] == early[2]); /* the bias */
        pace__table_release(&table);
    }
}

/* --- what lies where --- */

static void check_spread(uint64_t keys, unsigned dim, unsigned shards)
{
    uint64_t places = 0, free_places = 0;

    for (unsigned shard = 0; shard < shards; shard++) {
        pace__table_plan plan = {keys, dim, shard, shards, true, pace__optim_make(PACE_ADAM, 1, 0, 0, 0)};
        pace__table table;

        assert_ok(pace__table_init(&table, &plan, &said_log));
        assert_true(table.places == keys / shards || table.places == keys / shards + (keys % shards > 0));
        assert_int_equal(table.floats, 3 * dim);
        assert_int_equal(table.stride, 4 * dim + 1); /* the sums and their round */
        assert_true(pace__table_bytes(&plan) >= table.places * table.stride * sizeof(float));
        places += table.places;
        if (table.free_place != UINT32_MAX) {
            assert_int_equal((uint64_t)table.free_place * shards + shard, keys - 1);
            free_places++;
        }
        assert_true(pace__table_places_valid(&table, NULL, 0));
        assert_false(pace__table_places_valid(&table, &table.places, 1));
        assert_false(pace__table_places_valid(&table, (uint32_t[]){0, UINT32_MAX, 0}, 3));
        if (table.places > 0)
            assert_true(pace__table_places_valid(&table, (uint32_t[]){0, table.places - 1}, 2));
        pace__table_release(&table);
    }
    assert_int_equal(places, keys);
    assert_int_equal(free_places, keys > 0);
}

static void parameters_are_spread(void **state)
{
    static const uint64_t keys[] = {0, 1, 2, 7, 8, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        for (unsigned shards = 1; shards <= 9; shards++) {
            check_spread(keys[i], 1, shards);
            check_spread(keys[i], 7, shards);
        }
    }
}

/* Keys of a column are numbered by frequency: batches of such rows put the same load on every shard. */
static void load_is_even(void **state)
{
    enum { COLUMNS = 10, COLUMN_KEYS = 2000, ROWS = 256, BATCHES = 20 };
    static bool seen[COLUMNS * COLUMN_KEYS];
    pace__random random = pace__random_at(seed_now = 5, 0);

    (void)state;
    for (unsigned shards = 2; shards <= 16; shards++) {
        double load[16] = {0};

        for (int i = 0; i < BATCHES; i++) {
            memset(seen, 0, sizeof seen);
            for (int entry = 0; entry < ROWS * COLUMNS; entry++) {
                /* Frequency falls with the number, like 1 / (number + 1). */
                unsigned rank = (unsigned)pow(COLUMN_KEYS, pace__random_unit(&random)) - 1;
                unsigned key = (unsigned)(entry % COLUMNS) * COLUMN_KEYS + rank;

                load[key % shards] += !seen[key]; /* a key goes once with a batch */
                seen[key] = true;
            }
        }
        pace__shares even = {0};

        for (unsigned shard = 0; shard < shards; shard++)
            pace__shares_add(&even, load[shard]);
        assert_true(pace__shares_skew(&even) < 1.08);
    }
}

/* --- for checkpoints --- */

static void check_stretches(unsigned dim)
{
    both self = make_both(11, dim, optim_of(PACE_FTRL, penalties[3]), 3, true);
    size_t floats = (size_t)dim * self.optim.width;
    float *all = tiny_alloc(KEYS * floats * sizeof *all), *again = tiny_alloc(KEYS * floats * sizeof *all);

    for (int step = 0; step < 10; step++) {
        add(&self);
        apply(&self, 1, false);
    }
    add(&self); /* sums are no part of it */
    for (unsigned shard = 0; shard < 3; shard++) {
        pace__table *table = &self.tables[shard], copy;

        assert_ok(pace__table_init(&copy, &table->plan, &said_log));
        pace__table_read(table, 0, table->places, all);
        pace__table_read(table, 5, 7, again);
        assert_memory_equal(again, all + 5 * floats, 7 * floats * sizeof(float));
        for (uint32_t first = 0; first < table->places; first += 10) {
            uint32_t count = table->places - first < 10 ? table->places - first : 10;

            pace__table_write(&copy, first, count, all + first * floats);
        }
        pace__table_read(&copy, 0, copy.places, again);
        assert_memory_equal(again, all, copy.places * floats * sizeof(float));
        pace__table_write(table, 0, table->places, all);
        pace__table_release(&copy);
    }
    check_sums(&self);
    apply(&self, 1, false);
    compare(&self);
    release_both(&self);
    free(all);
    free(again);
}

static void stretches(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        check_stretches(dims[d]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(agrees, print_seed),
        cmocka_unit_test_teardown(rounds_wrap_around, print_seed),
        cmocka_unit_test(a_place_twice),
        cmocka_unit_test(statistics),
        cmocka_unit_test(a_look_back),
        cmocka_unit_test(parameters_are_spread),
        cmocka_unit_test_teardown(load_is_even, print_seed),
        cmocka_unit_test(stretches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

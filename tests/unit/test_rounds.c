/* The schedule of workers that train by themselves, and the parameters that they merge often. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "shares/rounds.h"

#include <stdlib.h>

static pace__rounds make_as(bool exact, uint64_t rows, uint64_t batch, uint64_t steps, unsigned workers,
                            uint64_t exchange)
{
    pace__steps order = pace__steps_make(rows, batch);

    return pace__rounds_make(&order, steps ? steps : 2 * order.per_epoch, rows * 39, workers, exchange,
                             exact);
}

static pace__rounds make(uint64_t rows, uint64_t batch, uint64_t steps, unsigned workers, uint64_t exchange)
{
    return make_as(false, rows, batch, steps, workers, exchange);
}

/* Every place belongs to one worker, those of the start to all; flushes are where steps end, and where they have to be. */
static void walk(bool exact, uint64_t rows, uint64_t batch, uint64_t steps, unsigned workers,
                 uint64_t exchange)
{
    pace__rounds rounds = make_as(exact, rows, batch, steps, workers, exchange);
    pace__round round;
    uint64_t flushed = 0;

    for (uint64_t place = 0; place < rounds.last; place = round.last) {
        uint64_t next = place;

        round = pace__round_at(&rounds, place);
        assert_true(round.first == place && round.last > place && round.last <= rounds.last);
        assert_int_equal(place / rows, (round.last - 1) / rows); /* no round crosses an epoch's end */
        for (unsigned i = 0; i < workers; i++) {
            uint64_t first, count;

            pace__round_stretch(&rounds, &round, i, &first, &count);
            assert_true(pace__round_lag(&rounds, count) <= count * 2 / 3);
            assert_true(!exact || batch == 1 || pace__round_lag(&rounds, count) % batch == 0);
            if (round.same) {
                assert_true(first == 0 && count == round.last);
                continue;
            }
            assert_true(first == next && count <= 600000);
            next = first + count;
        }
        assert_true(round.same || next == round.last);
        if (round.last % rows == 0 || round.last == rounds.last)
            assert_true(round.flush);
        else
            assert_true(!exact || round.last % rows % batch == 0);
        if (!round.flush)
            continue;
        assert_true(round.last % rows % batch == 0 || round.last == rounds.last);
        assert_true(!exchange || round.last - flushed < exchange + batch || round.same);
        flushed = round.last;
    }
    assert_int_equal(flushed, rounds.last);
}

static void test_walks(void **state)
{
    pace__random random = pace__random_at(8, 8);

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint64_t rows = 1 + pace__random_next(&random) % (i % 3 ? 2000 : 300000);
        uint64_t batch = 1 + pace__random_next(&random) % 512;
        uint64_t steps = i % 2 ? 0 : 1 + pace__random_next(&random) % 900;
        unsigned workers = 1 + (unsigned)(pace__random_next(&random) % (i % 5 ? 9 : 64));

        walk(i % 7 == 0, rows, batch < rows ? batch : rows, steps, workers,
             i % 4 ? 0 : 1 + pace__random_next(&random) % 50000);
    }
}

static void test_growth(void **state)
{
    pace__rounds rounds = make(2000000, 512, 0, 8, 0);
    uint64_t before = 0, longest = 0;
    pace__round round;

    (void)state;
    assert_int_equal(rounds.same, 31744); /* a 64th, in whole steps */
    round = pace__round_at(&rounds, 0);
    assert_true(round.same && round.flush && round.last == 31744);
    round = pace__round_at(&rounds, 31744);
    assert_int_equal(round.last - round.first, 8 * 31 * 64); /* half of it, over eight, in whole blocks */
    for (uint64_t place = 31744; place < 2000000; place = round.last) {
        round = pace__round_at(&rounds, place);
        assert_true(round.flush || round.last - round.first >= before);
        before = round.last - round.first;
        longest = before > longest ? before : longest;
    }
    assert_true(longest >= 8 * 16 * 64 && longest <= 8 * 150000);
    assert_int_equal(make(30000000, 512, 0, 8, 0).same, 32768);
    assert_int_equal(make(200000, 512, 0, 8, 0).same, 4096);
    assert_int_equal(make(8000, 100, 0, 8, 0).same, 1000);
    rounds = make(30000000, 512, 0, 2, 0);
    round = pace__round_at(&rounds, 1024 * 10000);
    assert_int_equal(round.last - round.first, 2 * 400000);         /* no more */
    assert_true(make(100000, 512, 0, 8, 0).growth < rounds.growth); /* of small sets */
    pace__steps order = pace__steps_make(2000000, 512);

    for (uint64_t columns = 11; columns < 300; columns += 89) /* of rows with few or many */
        assert_true(pace__rounds_make(&order, 9000, 2000000 * columns, 8, 0, false).growth < rounds.growth);
}

/* Steps that nobody has to share: rounds are whole ones, and so are stretches that are long enough. */
static void test_whole_steps(void **state)
{
    pace__rounds rounds = make_as(true, 60000, 128, 0, 4, 0);
    pace__round round = pace__round_at(&rounds, 4096);
    uint64_t first, count;

    (void)state;
    assert_int_equal(rounds.same, 4096);
    assert_int_equal(round.last, 4096 + 128); /* .03 of it, 30 rows of each */
    for (uint64_t place = 4096; place < 50000; place = round.last) {
        round = pace__round_at(&rounds, place);
        pace__round_stretch(&rounds, &round, 3, &first, &count);
        assert_true(round.last % 128 == 0);
        if (count >= 128)
            assert_true(first % 128 == 0 && count % 128 == 0);
    }
    assert_int_equal(count, 2 * 128);
    assert_int_equal(pace__round_lag(&rounds, 3 * 128), 2 * 128);
    assert_int_equal(pace__round_lag(&rounds, 128), 0);
}

/* Walking on from a flush is walking through it. */
static void test_long_epochs(void **state)
{
    pace__rounds rounds = make(100000, 100, 0, 4, 30000);
    unsigned flushes = 0;

    (void)state;
    for (uint64_t place = 0; place < 100000;) {
        pace__round round = pace__round_at(&rounds, place);

        flushes += round.flush;
        place = round.last;
    }
    assert_int_equal(flushes, 1 + 4);                     /* the start, 30,000, 60,000, 90,000, the end */
    assert_true(pace__round_at(&rounds, 0).last == 4100); /* whole steps */
}

/* Of networks: so many whole steps that each worker has its rows, and a flush behind each; the last of an epoch is shorter. */
static void test_steps(void **state)
{
    static const struct {
        uint64_t first, last;
    } known[] = {{0, 100},      {100, 200},     {1600, 1800},  {2300, 2500},   {2400, 2700},  {3200, 3600},
                 {9600, 10000}, {10000, 10030}, {9700, 10030}, {10030, 10430}, {11800, 12030}};
    pace__steps order = pace__steps_make(10030, 100);                 /* 101 in an epoch */
    pace__rounds rounds = pace__rounds_of_steps(&order, 121, 3, 103); /* steps of 34 rows: four */
    uint64_t count, flushes;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        pace__round round = pace__round_at(&rounds, known[i].first);

        assert_int_equal(round.last, known[i].last);
        assert_true(round.first == known[i].first && round.flush && !round.same);
    }
    pace__rounds_count(&rounds, 0, 10030, &count, &flushes);
    /* Up to 1600 by one step, to 2400 by two, to 3300 by three, then by four; the last has three. */
    assert_true(count == flushes && count == 16 + 4 + 3 + 17);
    order = pace__steps_make(1030, 100);
    assert_int_equal(pace__rounds_of_steps(&order, 20, 3, 102).flush_rows, 300);
    assert_int_equal(pace__rounds_of_steps(&order, 20, 3, 1).flush_rows, 100);
    assert_int_equal(pace__rounds_of_steps(&order, 20, 3, UINT64_MAX).flush_rows, 1100);
    order = pace__steps_make(100000, 100);
    assert_int_equal(pace__rounds_of_steps(&order, 20, 3, 0).flush_rows, 3200);
}

/* --- hot ones --- */

static void test_few(void **state)
{
    uint32_t list[PACE__HOT_MAX];

    (void)state;
    assert_int_equal(pace__hot_choose(NULL, 100, list), 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(list[i], i);
}

typedef struct counted {
    uint32_t key, count;
} counted;

static int hotter(const void *a, const void *b)
{
    const counted *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int lower(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void check_hot(uint32_t keys, uint32_t most)
{
    uint32_t *counts = calloc(keys, sizeof *counts), *list = malloc(PACE__HOT_MAX * sizeof *list),
             *expected = malloc(PACE__HOT_MAX * sizeof *expected), wanted = 0;
    counted *all = malloc(keys * sizeof *all);
    pace__random random = pace__random_at(4, keys);

    assert_true(counts && list && expected && all);
    for (uint32_t key = 0; key + 1 < keys; key++) {
        counts[key] = (uint32_t)(pace__random_next(&random) % most);
        all[key] = (counted){key, counts[key]};
    }
    qsort(all, keys - 1, sizeof *all, hotter);
    while (wanted < PACE__HOT_MAX - 1 && wanted < keys - 1 && all[wanted].count > 0) {
        expected[wanted] = all[wanted].key;
        wanted++;
    }
    expected[wanted++] = keys - 1;
    qsort(expected, wanted, sizeof *expected, lower);
    assert_int_equal(pace__hot_choose(counts, keys, list), wanted);
    assert_memory_equal(list, expected, wanted * sizeof *list);
    free(all);
    free(expected);
    free(list);
    free(counts);
}

static void test_hot(void **state)
{
    (void)state;
    check_hot(100000, 5000); /* few equals */
    check_hot(100000, 4);    /* mostly equals */
    check_hot(100000, 2);
    check_hot(PACE__HOT_MAX + 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks),       cmocka_unit_test(test_growth), cmocka_unit_test(test_whole_steps),
        cmocka_unit_test(test_long_epochs), cmocka_unit_test(test_steps),  cmocka_unit_test(test_few),
        cmocka_unit_test(test_hot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "shares/rounds.h"

#include <assert.h>
#include <string.h>

/* Of a worker, in a round. */
#define ROUND_ROWS_MIN 16
#define ROUND_ROWS_MAX 400000
/* Rows that a kernel computes together: stretches that are long enough have whole ones. */
#define BLOCK_ROWS 64
/* Of the start: a part of an epoch, but no more than is cheaper to train by all than to merge in short rounds; where that
 * is little, up to a larger part. */
#define SAME_ROWS_MAX   32768
#define SAME_PART       64
#define SAME_ROWS_SMALL 4096
#define SAME_PART_SMALL 8
/* Of a worker, between two flushes of a long epoch. */
#define FLUSH_ROWS ((uint64_t)8 << 20)

/* Many rows of some columns can wait longer: what a round changes is little beside what is known. Where rows have only a few,
 * each of them has more to say (w8a: docs/decisions/0043). */
#define LARGE_ROWS      1000000
#define FEW_ENTRIES     24
#define LARGE_ENTRIES   64
#define WIDE_ENTRIES    128
#define GROWTH_OF_LARGE 0.5
#define GROWTH_OF_WIDE  0.01
#define GROWTH          0.03
/* Of texts, whose rows have any number of entries. */
#define GROWTH_OF_EXACT 0.03
/* Of networks, which change most at the beginning (docs/decisions/0049). */
#define GROWTH_OF_STEPS 0.125

static double growth_of(uint64_t rows, uint64_t entries, bool exact)
{
    uint64_t columns = entries / rows;

    if (exact)
        return GROWTH_OF_EXACT;
    if (columns > WIDE_ENTRIES)
        return GROWTH_OF_WIDE;
    if (rows >= LARGE_ROWS && columns >= FEW_ENTRIES && columns <= LARGE_ENTRIES)
        return GROWTH_OF_LARGE;
    return GROWTH;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t rows_of_start(uint64_t rows)
{
    return most(least(SAME_ROWS_MAX, rows / SAME_PART), least(SAME_ROWS_SMALL, rows / SAME_PART_SMALL));
}

/* To whole steps of an epoch, which ends with a short one. */
static uint64_t whole_steps(const pace__steps *order, uint64_t rows)
{
    return least((rows + order->batch - 1) / order->batch * order->batch, order->rows);
}

pace__rounds pace__rounds_make(const pace__steps *order, uint64_t steps, uint64_t entries, unsigned workers,
                               uint64_t exchange, bool exact)
{
    uint64_t flush_rows = exchange ? exchange : FLUSH_ROWS * workers;

    assert(workers > 0 && order->rows > 0);
    pace__rounds rounds = {.workers = workers,
                           .epoch = order->rows,
                           .same = whole_steps(order, rows_of_start(order->rows)),
                           .flush_rows = whole_steps(order, flush_rows),
                           .last = pace__steps_rows_before(order, steps),
                           .growth = growth_of(order->rows, entries, exact),
                           .step = exact ? order->batch : 1};

    rounds.same = workers > 1 ? least(rounds.same, rounds.last) : 0;
    return rounds;
}

pace__rounds pace__rounds_of_steps(const pace__steps *order, uint64_t steps, unsigned workers,
                                   uint64_t exchange)
{
    uint64_t own = (order->batch + workers - 1) / workers; /* rows of a worker's step */
    uint64_t wanted = exchange ? exchange / own + (exchange % own > 0) : PACE__ROUND_STEPS;

    return (pace__rounds){.workers = workers,
                          .epoch = order->rows,
                          .flush_rows = least(wanted, order->per_epoch) * order->batch,
                          .last = pace__steps_rows_before(order, steps),
                          .growth = GROWTH_OF_STEPS,
                          .batch = order->batch};
}

/* The first place behind `place` where everything is merged. */
static uint64_t next_flush(const pace__rounds *rounds, uint64_t place)
{
    uint64_t begin = place / rounds->epoch * rounds->epoch, end = begin + rounds->epoch;
    uint64_t next = begin + (place % rounds->epoch / rounds->flush_rows + 1) * rounds->flush_rows;

    return least(least(next, end), rounds->last);
}

/* Rows of a stretch that are trained together. */
static uint64_t block_of(const pace__rounds *rounds)
{
    return rounds->step > 1 ? rounds->step : BLOCK_ROWS;
}

static uint64_t rows_of_round(const pace__rounds *rounds, uint64_t seen)
{
    double wanted = rounds->growth * (double)seen / rounds->workers;
    uint64_t rows = wanted > ROUND_ROWS_MAX   ? ROUND_ROWS_MAX
                    : wanted < ROUND_ROWS_MIN ? ROUND_ROWS_MIN
                                              : (uint64_t)wanted;
    uint64_t block = block_of(rounds), all = (rows > block ? rows / block * block : rows) * rounds->workers;

    return (all + rounds->step - 1) / rounds->step * rounds->step;
}

static pace__round round_of_steps(const pace__rounds *rounds, uint64_t first)
{
    uint64_t wanted = (uint64_t)(rounds->growth * (double)first) / rounds->batch * rounds->batch;
    uint64_t last = first + least(most(wanted, rounds->batch), rounds->flush_rows);
    uint64_t epoch_end = (first / rounds->epoch + 1) * rounds->epoch;

    return (pace__round){first, least(least(last, epoch_end), rounds->last), .flush = true};
}

pace__round pace__round_at(const pace__rounds *rounds, uint64_t first)
{
    assert(first < rounds->last);
    if (rounds->batch > 0)
        return round_of_steps(rounds, first);
    uint64_t flush = next_flush(rounds, first), all = rows_of_round(rounds, first);

    if (first < rounds->same)
        return (pace__round){first, rounds->same, .same = true, .flush = true};
    if (flush - first < all + all / 2)
        all = flush - first;
    return (pace__round){first, first + all, .flush = first + all == flush};
}

void pace__round_stretch(const pace__rounds *rounds, const pace__round *round, unsigned worker,
                         uint64_t *first, uint64_t *rows)
{
    uint64_t all = round->last - round->first, begin = all * worker / rounds->workers;

    assert(worker < rounds->workers);
    *first = round->same ? round->first : round->first + begin;
    *rows = round->same ? all : all * (worker + 1) / rounds->workers - begin;
}

void pace__rounds_count(const pace__rounds *rounds, uint64_t first, uint64_t last, uint64_t *count,
                        uint64_t *flushes)
{
    *count = *flushes = 0;
    for (uint64_t place = first; place < least(last, rounds->last);) {
        pace__round round = pace__round_at(rounds, place);

        *count += !round.same;
        *flushes += round.flush && !round.same;
        place = round.last;
    }
}

uint64_t pace__round_lag(const pace__rounds *rounds, uint64_t rows)
{
    uint64_t block = block_of(rounds);

    return rows * 2 / 3 / block * block;
}

/* --- which parameters are hot --- */

/* Counts above this are all the same. */
#define COUNT_MAX 16383

uint32_t pace__hot_choose(const uint32_t *counts, uint64_t keys, uint32_t *list)
{
    static const uint32_t room = PACE__HOT_MAX - 1; /* beside the bias */
    uint64_t by[COUNT_MAX + 1] = {0}, above = 0;
    uint32_t limit = COUNT_MAX, found = 0;

    for (uint32_t key = 0; keys <= PACE__HOT_MAX && key < keys; key++)
        list[found++] = key;
    if (found > 0 || keys == 0)
        return found;
    for (uint64_t key = 0; key + 1 < keys; key++)
        by[counts[key] < COUNT_MAX ? counts[key] : COUNT_MAX]++;
    while (limit > 1 && above + by[limit] <= room)
        above += by[limit--];
    uint64_t equals = by[limit] < room - above ? by[limit] : room - above; /* that are taken */

    for (uint64_t key = 0; key + 1 < keys; key++) {
        uint32_t count = counts[key] < COUNT_MAX ? counts[key] : COUNT_MAX;

        if (count < limit || (count == limit && equals == 0))
            continue;
        equals -= count == limit;
        list[found++] = (uint32_t)key;
    }
    list[found++] = (uint32_t)(keys - 1);
    return found;
}

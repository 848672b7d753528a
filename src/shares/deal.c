#include "shares/deal.h"

#include <assert.h>

uint64_t pace__deal_rows_max(uint64_t batch, unsigned workers)
{
    uint64_t even = (batch + workers - 1) / workers, most = even + (even + 1) / 2;

    return most < batch ? most : batch;
}

static uint64_t sum_of(const uint32_t *words, uint64_t rows)
{
    uint64_t sum = 0;

    for (uint64_t row = 0; row < rows; row++)
        sum += words[row];
    return sum;
}

/* Between two rows: at the one that has `wanted` words before it, or nearly; *before are the words before `row`. */
static uint64_t cut_at(const uint32_t *words, uint64_t rows, uint64_t wanted, uint64_t row, uint64_t *before)
{
    for (; row < rows && *before + words[row] / 2 < wanted; row++)
        *before += words[row];
    return row;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Of `all` words, those of the first `end` workers; `before` are the rows of their shares. */
static uint64_t words_of(uint64_t all, const pace__hands *hands, unsigned end, uint64_t before)
{
    if (!hands->shares)
        return all * end / hands->workers;
    /* Words of a step and rows of a batch are below 2^63 each, not their product. */
    return end == hands->workers ? all : (uint64_t)((__uint128_t)all * before / hands->batch);
}

void pace__deal(const uint32_t *words, uint64_t rows, const pace__hands *hands, unsigned index,
                uint64_t *begin, uint64_t *share)
{
    uint64_t all = sum_of(words, rows), before = 0, cut = 0, first = 0, last = 0, shares = 0;

    assert(index < hands->workers && rows <= hands->workers * hands->rows_max);
    for (unsigned end = 1; end <= index + 1; end++) {
        /* rows that all others together have room for */
        uint64_t behind = (hands->workers - end) * hands->rows_max;

        shares += hands->shares ? hands->shares[end - 1] : 0;
        cut = cut_at(words, rows, words_of(all, hands, end, shares), cut, &before);
        first = last;
        last = within(cut, rows > behind ? rows - behind : 0, first + hands->rows_max);
        last = within(last, first, rows);
    }
    *begin = first;
    *share = last - first;
}

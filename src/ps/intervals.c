/*
 * 1. The window rises: low < first of the first interval, and each ends before the next one begins, with a
 *    gap of a row at least. Intervals that touch are one, and one that touches low is not in the window.
 * 2. The rows in the set are those below low and those of the window: an interval is in it whole if the one
 *    that ends behind its first row has it (find), and not at all if that one begins behind its last.
 */
#include "ps/intervals.h"

#include <assert.h>
#include <string.h>

void pace__intervals_init(pace__intervals *set, uint64_t low)
{
    set->low = low;
    set->count = 0;
}

/* The first interval of the window that ends behind `row`: it has the row, or is the next above it. */
static size_t find(const pace__intervals *set, uint64_t row)
{
    size_t from = 0, to = set->count;

    while (from < to) {
        size_t middle = (from + to) / 2;

        if (set->window[middle].last > row)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* Invariant 1, at the interval and on both sides of it. */
static bool rises_at(const pace__intervals *set, size_t at)
{
    const pace__interval *window = set->window;
    uint64_t below = at == 0 ? set->low : window[at - 1].last;

    return at >= set->count || (below < window[at].first && window[at].first < window[at].last &&
                                (at + 1 == set->count || window[at].last < window[at + 1].first));
}

static void move_tail(pace__intervals *set, size_t from, size_t to)
{
    assert(from <= set->count && set->count - from + to <= PACE__INTERVALS_MAX);
    memmove(&set->window[to], &set->window[from], (set->count - from) * sizeof *set->window);
    set->count = set->count - from + to;
}

/* Rows of which none is in, in front of interval `at` of the window. */
static pace__interval_result insert(pace__intervals *set, size_t at, uint64_t first, uint64_t last)
{
    bool touches_next = at < set->count && set->window[at].first == last;
    /* What ends where the rows begin grows, and may then reach the interval behind them. */
    uint64_t *end = first == set->low                             ? &set->low
                    : at > 0 && set->window[at - 1].last == first ? &set->window[at - 1].last
                                                                  : NULL;

    if (end) {
        *end = touches_next ? set->window[at].last : last;
        if (touches_next)
            move_tail(set, at + 1, at);
    } else if (touches_next) {
        set->window[at].first = first;
    } else {
        if (set->count == PACE__INTERVALS_MAX)
            return PACE__INTERVAL_FULL;
        move_tail(set, at, at + 1);
        set->window[at] = (pace__interval){first, last};
    }
    assert(rises_at(set, at) && (at == 0 || rises_at(set, at - 1)));
    return PACE__INTERVAL_NEW;
}

pace__interval_result pace__intervals_add(pace__intervals *set, uint64_t first, uint64_t last)
{
    assert(first <= last);
    if (first == last)
        return PACE__INTERVAL_NEW;
    if (pace__intervals_has(set, first, last))
        return PACE__INTERVAL_REPEAT;
    size_t at = find(set, first);

    if (first < set->low || (at < set->count && set->window[at].first < last)) /* invariant 2 */
        return PACE__INTERVAL_OVERLAP;
    return insert(set, at, first, last);
}

bool pace__intervals_has(const pace__intervals *set, uint64_t first, uint64_t last)
{
    assert(first <= last);
    if (first == last || last <= set->low)
        return true;
    size_t at = find(set, first);

    return at < set->count && set->window[at].first <= first && last <= set->window[at].last;
}

uint64_t pace__intervals_rows(const pace__intervals *set)
{
    uint64_t rows = set->low;

    for (size_t i = 0; i < set->count; i++)
        rows += set->window[i].last - set->window[i].first;
    return rows;
}

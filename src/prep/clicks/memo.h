/*
 * memo.h - the numbers of the ids that a thread has asked an id map for lately.
 *
 * A few ids make up most entries. In the map each of them lies in a cache line of its own, and behind some arithmetic with
 * bits; here they lie side by side, and those that are asked for often stay in the cache. An id has one slot, which belongs
 * to the id that was asked for last.
 *
 *     for each id
 *         asked = pace__memo_look(memo, asked, id, numbers, at);   // numbers[at] is right, or the map has to be asked
 *     unknown += pace__memo_settle(memo, asked, map, numbers);     // now all are; asked starts again at 0
 *
 * At most PACE__MEMO_ASKED are looked for before the next settlement, as `asked` may have become that large.
 */
#ifndef PREP_CLICKS_MEMO_H
#define PREP_CLICKS_MEMO_H

#include "prep/clicks/idmap.h"

#define PACE__MEMO_SLOTS (1u << 15)
#define PACE__MEMO_ASKED 512

typedef struct pace__memo {
    uint64_t slots[PACE__MEMO_SLOTS]; /* an id above, its number below */
    /* What the map has to be asked for, and where its answers go. */
    uint64_t ids[PACE__MEMO_ASKED + 1];
    uint32_t at[PACE__MEMO_ASKED + 1];
} pace__memo;

void pace__memo_clear(pace__memo *memo);

/* Returns how many the map has to be asked for. Without a branch: what is known and what is not has no pattern. */
static inline size_t pace__memo_look(pace__memo *memo, size_t asked, uint64_t id, uint32_t *numbers,
                                     size_t at)
{
    uint64_t slot = memo->slots[id % PACE__MEMO_SLOTS];

    numbers[at] = (uint32_t)slot;
    memo->ids[asked] = id;
    memo->at[asked] = (uint32_t)at;
    return asked + (slot >> 32 != id);
}

/* Asks the map. Returns how many of those ids do not occur. */
size_t pace__memo_settle(pace__memo *memo, size_t asked, const pace__idmap *map, uint32_t *numbers);

#endif

#include "prep/clicks/memo.h"

#include <assert.h>

void pace__memo_clear(pace__memo *memo)
{
    for (uint32_t i = 0; i < PACE__MEMO_SLOTS; i++)
        memo->slots[i] = (uint64_t)(i ^ 1) << 32; /* an id that belongs elsewhere */
}

/* Ids that do not occur are asked for again each time: somebody counts them. */
size_t pace__memo_settle(pace__memo *memo, size_t asked, const pace__idmap *map, uint32_t *numbers)
{
    uint32_t answers[PACE__MEMO_ASKED], none = pace__idmap_count(map);

    assert(asked <= PACE__MEMO_ASKED);
    size_t unknown = pace__idmap_find(map, memo->ids, asked, answers);

    for (size_t i = 0; i < asked; i++) {
        uint64_t id = memo->ids[i];

        numbers[memo->at[i]] = answers[i];
        if (answers[i] != none && id <= UINT32_MAX)
            memo->slots[id % PACE__MEMO_SLOTS] = id << 32 | answers[i];
    }
    return unknown;
}

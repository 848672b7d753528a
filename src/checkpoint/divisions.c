#include "checkpoint/divisions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void free_arrays(pace__divisions *divisions)
{
    if (!divisions->from)
        return;
    free(divisions->from - divisions->gone);
    free(divisions->rows - divisions->gone * divisions->workers);
}

/* Of the same workers, to the beginning of these arrays, which may be their own. */
static void move(pace__divisions *divisions, uint64_t *from, uint32_t *rows)
{
    memmove(from, divisions->from, divisions->count * sizeof *from);
    memmove(rows, divisions->rows, divisions->count * divisions->workers * sizeof *rows);
}

/* Moved where at least as many were forgotten, or where there is twice the room: each one once, on average. */
static bool make_room(pace__divisions *divisions, unsigned workers)
{
    bool same = divisions->workers == workers && divisions->room > 0;
    size_t room = same ? 2 * divisions->room : 8, gone = divisions->gone;

    if (same && gone + divisions->count < divisions->room)
        return true;
    bool stays = same && gone >= divisions->count;
    uint64_t *from = stays ? divisions->from - gone : malloc(room * sizeof *from);
    uint32_t *rows = stays ? divisions->rows - gone * workers : malloc(room * workers * sizeof *rows);

    if (!from || !rows) {
        free(from);
        free(rows);
        return false;
    }
    if (same)
        move(divisions, from, rows);
    if (!stays)
        free_arrays(divisions);
    *divisions = (pace__divisions){.workers = workers,
                                   .count = same ? divisions->count : 0, /* invariant 2 */
                                   .from = from,
                                   .rows = rows,
                                   .room = stays ? divisions->room : room};
    return true;
}

bool pace__divisions_add(pace__divisions *divisions, uint64_t from, unsigned workers, const uint32_t *rows)
{
    assert(workers >= 1 && workers <= PACE__SHARES_MAX);
    if (!make_room(divisions, workers))
        return false;
    while (divisions->count > 0 && divisions->from[divisions->count - 1] >= from) /* invariant 1 */
        divisions->count--;
    divisions->from[divisions->count] = from;
    memcpy(divisions->rows + divisions->count * workers, rows, workers * sizeof *rows);
    divisions->count++;
    return true;
}

/* Of those that begin at `step` or before. */
static size_t count_begun(const pace__divisions *divisions, uint64_t step)
{
    size_t low = 0, high = divisions->count;

    while (low < high) { /* all before `low` have begun, none from `high` on */
        size_t middle = low + (high - low) / 2;

        if (divisions->from[middle] <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const uint32_t *pace__divisions_at(const pace__divisions *divisions, uint64_t step)
{
    size_t begun = count_begun(divisions, step);

    return begun > 0 ? divisions->rows + (begun - 1) * divisions->workers : NULL;
}

void pace__divisions_forget(pace__divisions *divisions, uint64_t step)
{
    size_t begun = count_begun(divisions, step), past = begun > 0 ? begun - 1 : 0;

    if (past == 0)
        return;
    divisions->count -= past;
    divisions->gone += past;
    divisions->from += past;
    divisions->rows += past * divisions->workers;
}

void pace__divisions_release(pace__divisions *divisions)
{
    free_arrays(divisions);
    *divisions = (pace__divisions){0};
}

uint64_t pace__division_batch(const uint32_t *rows, unsigned workers)
{
    uint64_t sum = 0;

    if (workers > PACE__SHARES_MAX)
        return 0;
    for (unsigned i = 0; i < workers; i++)
        sum += rows[i];
    return sum <= UINT32_MAX ? sum : 0;
}

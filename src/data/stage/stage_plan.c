#include "data/stage/stage_plan.h"

#include <assert.h>

/* Does `one` have a larger share of training rows? */
static bool is_hotter(const pace__stage_part *one, const pace__stage_part *other)
{
    double mine = one->rows[1] ? (double)one->rows[0] / (double)one->rows[1] : 0;
    double theirs = other->rows[1] ? (double)other->rows[0] / (double)other->rows[1] : 0;

    return mine > theirs;
}

/* By insertion: preps make parts alike, so nearly nothing moves. */
void pace__stage_order(const pace__stage_part *parts, uint32_t count, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && is_hotter(&parts[i], &parts[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static uint64_t less(uint64_t from, uint64_t taken)
{
    return from > taken ? from - taken : 0;
}

uint64_t pace__stage_room(const pace__stage_disk *disk)
{
    uint64_t room = less(disk->free, disk->size / PACE__STAGE_FREE_SHARE);
    uint64_t allowed = disk->bytes_max ? less(disk->bytes_max, disk->used) : room;

    return allowed < room ? allowed : room;
}

uint64_t pace__stage_choose(const pace__stage_part *parts, const uint32_t *order, uint32_t count,
                            uint64_t room, uint64_t files, bool *taken, uint32_t *first)
{
    uint64_t bytes = 0;

    *first = PACE__STAGE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = order[i];
        const pace__stage_part *part = &parts[at];

        assert(at < count);
        taken[at] = !part->there && !part->out && part->bytes <= room - bytes && files > 0;
        if (!taken[at])
            continue;
        bytes += part->bytes;
        files--;
        *first = *first == PACE__STAGE_NONE ? at : *first;
    }
    assert(bytes <= room);
    return bytes;
}

/* Of those that stay. */
static pace__stage_file *oldest(pace__stage_file *files, uint32_t count)
{
    pace__stage_file *found = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!files[i].leaves && (!found || files[i].used_s < found->used_s))
            found = &files[i];
    }
    return found;
}

bool pace__stage_evict(pace__stage_file *files, uint32_t count, uint64_t room, uint64_t bytes)
{
    uint64_t all = room;

    for (uint32_t i = 0; i < count; i++) {
        all += files[i].bytes;
        files[i].leaves = false;
    }
    if (all < bytes)
        return false;
    while (room < bytes) {
        pace__stage_file *next = oldest(files, count);

        assert(next); /* all together are enough */
        next->leaves = true;
        room += next->bytes;
    }
    return true;
}

uint64_t pace__stage_rest_ns(uint64_t bytes, uint64_t took_ns, uint64_t rate)
{
    double wanted_ns = rate ? (double)bytes * 1e9 / (double)rate : 0;
    uint64_t slow_ns = wanted_ns > (double)took_ns ? (uint64_t)(wanted_ns - (double)took_ns) : 0;

    return slow_ns > took_ns ? slow_ns : took_ns;
}

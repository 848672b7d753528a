/*
 * The last rows of /train as validation rows. Nothing is copied: `parts` have them where they were, and whoever reads
 * the set finds them behind those that are left (pace__store_group).
 */
#include "data/store/store.h"
#include "files/file.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define COUNT_BYTES 65536 /* of labels that are read at a time */

int pace__store_group(const pace__store *store, int set, uint64_t *first)
{
    bool carved = set == PACE__VALIDATION && store->carved > 0;

    *first = carved ? store->info.rows[PACE__TRAIN] : 0;
    return carved ? PACE__TRAIN : set;
}

/* Of rows `row` on in a part, those whose label is 1. */
static pace_status count_positives(const pace__part *part, uint64_t row, bool classes, uint64_t *positives,
                                   const pace_log *log)
{
    const pace__part_set *from = &part->sets[PACE__TRAIN];
    size_t width = classes ? sizeof(uint16_t) : sizeof(uint8_t);
    uint8_t *labels = malloc(COUNT_BYTES);
    pace_status status = labels ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    while (row < from->rows && !status) {
        size_t most = COUNT_BYTES / width, rows = from->rows - row < most ? (size_t)(from->rows - row) : most;

        status =
            pace__pread_all(part->fd, labels, rows * width, from->label_at + row * width, part->path, log);
        for (size_t i = 0; i < rows && !status; i++)
            *positives += labels[i * width] == 1 && (!classes || labels[i * width + 1] == 0);
        row += rows;
    }
    free(labels);
    return status;
}

/* The entries of a part in front of row `row` of /train. */
static pace_status entries_before(const pace__store *store, const pace__part *part, uint64_t row,
                                  uint64_t *entries, const pace_log *log)
{
    const pace__part_set *from = &part->sets[PACE__TRAIN];

    *entries = row * store->info.columns;
    if (store->info.columns)
        return PACE_OK;
    pace_status status = pace__pread_all(part->fd, entries, sizeof *entries,
                                         from->start_at + row * sizeof *entries, part->path, log);

    if (!status && *entries > from->entries)
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: indptr is beyond its end", part->path);
    return status;
}

/* What the rows of /train from `row` on hold. */
static pace_status measure(const pace__store *store, uint64_t row, uint64_t *entries, uint64_t *positives,
                           const pace_log *log)
{
    uint64_t first, before = 0;
    uint32_t index = pace__store_part_of(store, PACE__TRAIN, row, &first);
    bool classes = pace__has_classes(&store->info.encoding), known = *positives != UINT64_MAX;
    pace_status status = entries_before(store, &store->parts[index], row - first, &before, log);

    *entries = 0;
    *positives = known ? 0 : UINT64_MAX;
    row -= first;
    for (; index < store->info.parts && !status; index++) {
        *entries += store->parts[index].sets[PACE__TRAIN].entries - before;
        if (known)
            status = count_positives(&store->parts[index], row, classes, positives, log);
        row = before = 0;
    }
    return status;
}

static void move(pace__store_info *info, int from, int to, uint64_t rows, uint64_t entries,
                 uint64_t positives)
{
    bool known = info->positives[from] != UINT64_MAX;

    info->rows[from] -= rows;
    info->rows[to] += rows;
    info->entries[from] -= entries;
    info->entries[to] += entries;
    info->positives[from] -= known ? positives : 0;
    info->positives[to] = known ? info->positives[to] + positives : UINT64_MAX;
}

static void put_back(pace__store *store)
{
    pace__store_info *info = &store->info;

    if (store->carved == 0)
        return;
    if (info->positives[PACE__TRAIN] == UINT64_MAX)
        info->positives[PACE__VALIDATION] = 0;
    move(info, PACE__VALIDATION, PACE__TRAIN, info->rows[PACE__VALIDATION], info->entries[PACE__VALIDATION],
         info->positives[PACE__VALIDATION]);
    store->carved = 0;
}

pace_status pace__store_carve(pace__store *store, double fraction, const pace_log *log)
{
    put_back(store);
    if (fraction <= 0)
        return PACE_OK;
    assert(store->info.rows[PACE__VALIDATION] == 0);
    uint64_t all = store->info.rows[PACE__TRAIN], rows = (uint64_t)llround(fraction * (double)all), entries,
             positives = store->info.positives[PACE__TRAIN];

    if (rows == 0 || rows >= all)
        return pace_fail(log, PACE_USAGE,
                         "--validation %g of the %llu training rows of %s leaves none to %s on", fraction,
                         (unsigned long long)all, store->path, rows == 0 ? "validate" : "train");
    pace_status status = measure(store, all - rows, &entries, &positives, log);

    if (status)
        return status;
    move(&store->info, PACE__TRAIN, PACE__VALIDATION, rows, entries, positives);
    store->carved = rows;
    return PACE_OK;
}

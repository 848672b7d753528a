#include "data/fetch.h"

#include "base/file.h"
#include "math/scan.h"

#include <assert.h>
#include <fcntl.h>

uint64_t pace__usual_entries(const pace__store_info *info, uint64_t rows)
{
    if (info->columns)
        return rows * info->columns;
    uint64_t all_rows = info->rows[PACE__TRAIN] + info->rows[PACE__TEST];
    uint64_t all_entries = info->entries[PACE__TRAIN] + info->entries[PACE__TEST];

    return (all_entries / (all_rows ? all_rows : 1) + 1) * rows;
}

/* --- which rows --- */

pace__run pace__fetch_next(const pace__fetch *self, pace__walk *at, uint64_t rows_max)
{
    uint64_t rows = self->store->info.rows[self->set], epoch = at->place / rows, part_first, count;

    if (epoch != at->epoch || at->order.rows == 0) {
        at->order = self->sequential ? pace__order_sequential(rows)
                                     : pace__order_make(rows, (uint64_t)self->seed, epoch);
        at->epoch = epoch;
    }
    uint64_t row = pace__order_row(&at->order, at->place % rows, &count);
    const pace__part *part =
        &self->store->parts[pace__store_part_of(self->store, self->set, row, &part_first)];
    const pace__part_set *set = &part->sets[self->set];

    row -= part_first;
    if (count > set->rows - row)
        count = set->rows - row;
    if (count > rows_max)
        count = rows_max;
    return (pace__run){.part = part,
                       .set = set,
                       .row = row,
                       .entry = row * self->store->info.columns,
                       .rows = (size_t)count,
                       .entries = count * self->store->info.columns};
}

/* --- reading them --- */

pace_status pace__fetch_starts(const pace__fetch *self, pace__run *run, uint64_t base, uint64_t *start)
{
    const char *path = run->part->path;
    pace_status status = pace__pread_all(run->part->fd, start, (run->rows + 1) * sizeof *start,
                                         run->set->start_at + run->row * sizeof *start, path, self->log);

    if (status)
        return status;
    uint64_t first = start[0], last = first;

    for (size_t i = 0; i <= run->rows; i++) {
        if (start[i] < last || start[i] > run->set->entries)
            return pace_fail(self->log, PACE_BAD_DATA,
                             "%s: damaged: indptr of row %llu is below the one before it or beyond the end",
                             path, (unsigned long long)(run->row + i));
        if (start[i] - last > self->store->info.row_entries_max)
            return pace_fail(self->log, PACE_BAD_DATA,
                             "%s: damaged: row %llu is longer than row_entries_max, %u", path,
                             (unsigned long long)(run->row + i - 1), self->store->info.row_entries_max);
        last = start[i];
        start[i] = base + (last - first);
    }
    run->entry = first;
    run->entries = last - first;
    return PACE_OK;
}

/* Lengths are 1 .. columns. */
static pace_status check_lengths(const pace__fetch *self, const pace__run *run, const uint32_t *length)
{
    uint32_t columns = self->store->info.columns, largest = 0;

    for (size_t i = 0; i < run->rows; i++)
        largest = length[i] - 1 > largest ? length[i] - 1 : largest; /* 0 becomes the largest number */
    if (largest >= columns)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: damaged: a text has length %u, but 1 to %u are possible", run->part->path,
                         largest + 1, columns);
    return PACE_OK;
}

static pace_status check(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    uint32_t largest = pace__largest_u32(into->ids, run->entries);
    bool text = self->store->info.encoding.kind == PACE__TEXT;
    uint8_t bits = 0;

    for (size_t i = 0; i < run->rows; i++)
        bits |= into->label[i];
    if (bits > 1)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a label is neither 0 nor 1",
                         run->part->path);
    bool unseen_allowed = !text && (self->set == PACE__TEST || self->store->info.like);

    if (run->entries > 0 && largest >= self->store->info.ids_seen + (uint64_t)unseen_allowed)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a row has the id %u, but there are only %u",
                         run->part->path, largest, self->store->info.ids_seen);
    return text ? check_lengths(self, run, into->length) : PACE_OK;
}

/* `count` elements of an array that lies at `array_at` in the part, from element `first` on. */
static pace_status read_array(const pace__fetch *self, const pace__run *run, void *into, uint64_t array_at,
                              uint64_t first, uint64_t count, size_t width)
{
    return pace__pread_all(run->part->fd, into, count * width, array_at + first * width, run->part->path,
                           self->log);
}

pace_status pace__fetch_rows(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    const pace__part_set *set = run->set;
    pace_status status = read_array(self, run, into->label, set->label_at, run->row, run->rows, 1);

    if (!status)
        status = read_array(self, run, into->ids, set->ids_at, run->entry, run->entries, sizeof *into->ids);
    if (!status && set->length_at)
        status =
            read_array(self, run, into->length, set->length_at, run->row, run->rows, sizeof *into->length);
    if (!status && set->values_at)
        status = read_array(self, run, into->values, set->values_at, run->entry, run->entries,
                            sizeof *into->values);
    else if (!status && self->store->info.has_values) /* a part without entries has no values either */
        assert(run->entries == 0);
    return status ? status : check(self, run, into);
}

/* --- asking the disk --- */

static void ask_array(const pace__run *run, uint64_t array_at, uint64_t first, uint64_t count, size_t width)
{
    posix_fadvise(run->part->fd, (off_t)(array_at + first * width), (off_t)(count * width),
                  POSIX_FADV_WILLNEED);
}

/* Where the entries of rows without columns lie is not known without waiting for their starts: it is guessed
 * from the average. */
void pace__fetch_ask(const pace__fetch *self, const pace__run *run)
{
    const pace__part_set *set = run->set;
    uint32_t columns = self->store->info.columns;
    uint64_t per_row = columns ? columns : set->entries / set->rows + 1;
    uint64_t entry = run->row * per_row, entries = run->rows * per_row;

    ask_array(run, set->label_at, run->row, run->rows, sizeof(uint8_t));
    if (!columns)
        ask_array(run, set->start_at, run->row, run->rows + 1, sizeof(uint64_t));
    ask_array(run, set->ids_at, entry, entries, sizeof(uint32_t));
    if (set->length_at)
        ask_array(run, set->length_at, run->row, run->rows, sizeof(uint32_t));
    if (set->values_at)
        ask_array(run, set->values_at, entry, entries, sizeof(float));
}

#include "data/store/fetch.h"

#include "data/store/near.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "math/scan.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#define COLD_READ_NS 100000

/* --- which rows --- */

pace__run pace__fetch_next(const pace__fetch *self, pace__walk *at, uint64_t rows_max)
{
    uint64_t rows = self->store->info.rows[self->set], epoch = at->place / rows, first, part_first, count;
    int group = pace__store_group(self->store, self->set, &first);

    uint64_t block = pace__shuffle_block(&self->store->info.encoding);

    if (epoch != at->epoch || at->order.rows == 0) {
        at->order = self->sequential ? pace__order_sequential(rows)
                                     : pace__order_make_blocks(rows, block, (uint64_t)self->seed, epoch);
        at->epoch = epoch;
    }
    uint64_t row = first + pace__order_row(&at->order, at->place % rows, &count);
    const pace__part *part =
        pace__nearest(&self->store->parts[pace__store_part_of(self->store, group, row, &part_first)]);
    const pace__part_set *set = &part->sets[group];

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

/* Invariant 3 of near.h. */
pace_status pace__fetch_starts(const pace__fetch *self, pace__run *run, uint64_t base, uint64_t *start)
{
    const pace__part *itself = pace__part_itself(run->part);
    const char *path = itself->path;
    pace_status status = pace__pread_all(itself->fd, start, (run->rows + 1) * sizeof *start,
                                         run->set->start_at + run->row * sizeof *start, path, self->log);

    if (status)
        return status;
    pace__near_count(itself, (run->rows + 1) * sizeof *start);
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
    uint32_t largest = pace__scan_of(pace_kernels_in_use())->largest_u32(into->ids, run->entries);
    bool text = self->store->info.encoding.kind == PACE__TEXT;
    uint8_t bits = 0;

    for (size_t i = 0; i < run->rows; i++)
        bits |= into->label[i];
    if (bits > 1)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a label is neither 0 nor 1",
                         run->part->path);
    bool counted = run->set == &run->part->sets[PACE__TRAIN];
    bool unseen_allowed = !text && (!counted || self->store->info.like);

    if (run->entries > 0 && largest >= self->store->info.ids_seen + (uint64_t)unseen_allowed)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a row has the id %u, but there are only %u",
                         run->part->path, largest, self->store->info.ids_seen);
    return text ? check_lengths(self, run, into->length) : PACE_OK;
}

/* Whether all are finite: an exponent of ones, plus one, carries into the sign's place. */
static bool all_finite(const float *values, uint64_t count)
{
    uint32_t carries = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        carries |= (bits & 0x7fffffff) + 0x00800000;
    }
    return carries >> 31 == 0;
}

/* Most values are not negative; of those, the scan for the largest id tells it in less than half the time. */
static pace_status check_values(const pace__fetch *self, const pace__run *run, const float *values)
{
    if (!values ||
        pace__scan_of(pace_kernels_in_use())->largest_u32((const uint32_t *)values, run->entries) <
            0x7f800000 ||
        all_finite(values, run->entries))
        return PACE_OK;
    return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a value is not finite", run->part->path);
}

static pace_status check_classes(const pace__fetch *self, const pace__run *run, const uint16_t *classes)
{
    uint32_t count = self->store->info.encoding.classes;

    for (size_t i = 0; i < run->rows; i++) {
        if (classes[i] >= count)
            return pace_fail(self->log, PACE_BAD_DATA,
                             "%s: damaged: row %llu has the label %u, but there are only %u classes",
                             run->part->path, (unsigned long long)(run->row + i), classes[i], count);
    }
    return PACE_OK;
}

static pace_status check_features(const pace__fetch *self, const pace__run *run, const float *features)
{
    uint64_t columns = self->store->info.columns;

    for (size_t i = 0; i < run->rows; i++) {
        if (!all_finite(features + i * columns, columns))
            return pace_fail(self->log, PACE_BAD_DATA,
                             "%s: damaged: row %llu has a feature that is not finite", run->part->path,
                             (unsigned long long)(run->row + i));
    }
    return PACE_OK;
}

/* `count` elements of an array that lies at `array_at` in the part, from element `first` on. */
static pace_status read_array(const pace__fetch *self, const pace__run *run, void *into, uint64_t array_at,
                              uint64_t first, uint64_t count, size_t width)
{
    return pace__pread_all(run->part->fd, into, count * width, array_at + first * width, run->part->path,
                           self->log);
}

/* The same of what a row has many of, from where the part is mapped. */
static pace_status read_entries(const pace__fetch *self, const pace__run *run, void *into, uint64_t array_at,
                                size_t width)
{
    if (pace__mapped_copy(self->mapped, run->part, into, run->entries * width, array_at + run->entry * width))
        return PACE_OK;
    return read_array(self, run, into, array_at, run->entry, run->entries, width);
}

static pace_status fetch_pictures(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    const pace__part_set *set = run->set;
    pace_status status = read_array(self, run, into->classes, set->label_at, run->row, run->rows, 2);

    if (!status)
        status = read_array(self, run, into->source, set->source_at, run->row, run->rows, 4);
    if (!status && into->pixels)
        status = read_array(self, run, into->pixels, set->pixels_at, run->entry, run->entries, 1);
    if (!status && into->features)
        status = read_array(self, run, into->features, set->features_at, run->entry, run->entries, 4);
    if (!status)
        status = check_classes(self, run, into->classes);
    if (!status && into->features)
        status = check_features(self, run, into->features);
    return status;
}

/* Invariant 3 of near.h. */
pace_status pace__fetch_lengths(const pace__fetch *self, const pace__run *run, uint32_t *length)
{
    pace__run itself = *run;

    assert(run->set->length_at);
    itself.part = pace__part_itself(run->part);
    pace_status status =
        read_array(self, &itself, length, run->set->length_at, run->row, run->rows, sizeof *length);

    if (status)
        return status;
    pace__near_count(itself.part, run->rows * sizeof *length);
    return check_lengths(self, &itself, length);
}

static pace_status fetch_sparse_or_text(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    const pace__part_set *set = run->set;
    pace_status status = read_array(self, run, into->label, set->label_at, run->row, run->rows, 1);

    if (!status)
        status = read_entries(self, run, into->ids, set->ids_at, sizeof *into->ids);
    if (!status && set->length_at)
        status =
            read_array(self, run, into->length, set->length_at, run->row, run->rows, sizeof *into->length);
    if (!status && set->values_at)
        status = read_entries(self, run, into->values, set->values_at, sizeof *into->values);
    else if (!status && self->store->info.has_values) /* a part without entries has no values either */
        assert(run->entries == 0);
    if (!status)
        status = check(self, run, into);
    return status ? status : check_values(self, run, into->values);
}

static pace_status fetch_and_check(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    pace_status status = pace__has_classes(&self->store->info.encoding)
                             ? fetch_pictures(self, run, into)
                             : fetch_sparse_or_text(self, run, into);

    return status ? status : pace__sums_check(self, run, into);
}

static uint64_t bytes_of(const pace__fetch *self, const pace__run *run)
{
    return run->rows * pace__row_bytes(&self->store->info) +
           pace__entries_bytes(&self->store->info, run->entries);
}

/* From a copy in silence: if it does not have the rows, the part itself has them in the same place. */
static pace_status fetch_near(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    pace__fetch silent = *self;
    pace__run itself = *run;

    silent.log = NULL;
    pace_status status = fetch_and_check(&silent, run, into);

    if (!status) {
        pace__near_count(run->part, bytes_of(self, run));
        return PACE_OK;
    }
    pace__near_give_up(run->part, status);
    itself.part = pace__part_itself(run->part);
    itself.set = &itself.part->sets[self->set];
    return pace__fetch_rows(self, &itself, into);
}

pace_status pace__fetch_rows(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    if (run->part->source)
        return fetch_near(self, run, into);
    pace__near_count(run->part, bytes_of(self, run));
    return fetch_and_check(self, run, into);
}

uint64_t pace__cold_read_ns(const pace__fetch *self, const pace__run *run)
{
    bool large = pace__has_classes(&self->store->info.encoding);

    return COLD_READ_NS + (large ? run->entries : 0); /* a gigabyte a second */
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

    if (set->source_at) {
        ask_array(run, set->label_at, run->row, run->rows, sizeof(uint16_t));
        ask_array(run, set->source_at, run->row, run->rows, sizeof(uint32_t));
        if (set->pixels_at)
            ask_array(run, set->pixels_at, entry, entries, sizeof(uint8_t));
        else
            ask_array(run, set->features_at, entry, entries, sizeof(float));
        return;
    }
    ask_array(run, set->label_at, run->row, run->rows, sizeof(uint8_t));
    if (!columns)
        ask_array(run, set->start_at, run->row, run->rows + 1, sizeof(uint64_t));
    ask_array(run, set->ids_at, entry, entries, sizeof(uint32_t));
    if (set->length_at)
        ask_array(run, set->length_at, run->row, run->rows, sizeof(uint32_t));
    if (set->values_at)
        ask_array(run, set->values_at, entry, entries, sizeof(float));
}

/* --- room for rows --- */

uint64_t pace__usual_entries(const pace__store_info *info, uint64_t rows)
{
    if (info->columns)
        return rows * info->columns;
    uint64_t all_rows = pace__store_rows(info), all_entries = pace__store_entries(info);

    return (all_entries / (all_rows ? all_rows : 1) + 1) * rows;
}

size_t pace__row_bytes(const pace__store_info *info)
{
    if (pace__has_classes(&info->encoding))
        return sizeof(uint16_t) + sizeof(uint32_t);
    return sizeof(uint8_t) + (info->encoding.kind == PACE__TEXT ? sizeof(uint32_t) : 0);
}

/* Of one array. */
static uint64_t array_bytes(uint64_t entries, size_t width)
{
    return (entries * width + 63) / 64 * 64;
}

uint64_t pace__entries_bytes(const pace__store_info *info, uint64_t entries)
{
    if (info->encoding.kind == PACE__IMAGE)
        return array_bytes(entries, sizeof(uint8_t));
    if (info->encoding.kind == PACE__FEATURES)
        return array_bytes(entries, sizeof(float));
    return array_bytes(entries, sizeof(uint32_t)) +
           (info->has_values ? array_bytes(entries, sizeof(float)) : 0);
}

void pace__into_entries(pace__into *into, const pace__store_info *info, void *memory, uint64_t entries)
{
    if (info->encoding.kind == PACE__IMAGE) {
        into->pixels = memory;
    } else if (info->encoding.kind == PACE__FEATURES) {
        into->features = memory;
    } else {
        into->ids = memory;
        if (info->has_values)
            into->values = (float *)((char *)memory + array_bytes(entries, sizeof(uint32_t)));
    }
}

pace__into pace__into_at(const pace__into *into, uint64_t row, uint64_t entry)
{
    return (pace__into){.label = into->label ? into->label + row : NULL,
                        .ids = into->ids ? into->ids + entry : NULL,
                        .values = into->values ? into->values + entry : NULL,
                        .length = into->length ? into->length + row : NULL,
                        .pixels = into->pixels ? into->pixels + entry : NULL,
                        .features = into->features ? into->features + entry : NULL,
                        .classes = into->classes ? into->classes + row : NULL,
                        .source = into->source ? into->source + row : NULL};
}

pace__rows pace__into_view(const pace__into *into, const pace__store_info *info, size_t rows,
                           const uint64_t *start)
{
    return (pace__rows){.rows = rows,
                        .columns = info->columns,
                        .start = start,
                        .ids = into->ids,
                        .values = into->values,
                        .label = into->label,
                        .length = into->length,
                        .front = info->encoding.pad_front,
                        .pixels = into->pixels,
                        .features = into->features,
                        .classes = into->classes,
                        .source = into->source};
}

#include "data/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "data/order.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RING 4

/* A piece and the memory behind it. */
typedef struct slot {
    pace__piece piece;
    int users;   /* consumers that have not given it back */
    uint8_t *label;
    uint64_t *start;
    uint32_t *ids;
    float *values;
} slot;

struct pace__reader {
    const pace__store *store;
    pace__reader_plan plan;
    const pace_log *log;
    uint64_t rows;        /* of the set */
    size_t entries_max;   /* in a piece */
    pace__order order;
    uint64_t order_epoch;

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock: */
    slot ring[RING];
    uint64_t produced;    /* pieces filled so far */
    bool ended, cancelled;
    pace_status status;
    uint64_t *consumed;   /* (consumers) pieces given back by each */
};

static size_t piece_entries_max(const pace__store_info *info)
{
    if (info->columns)
        return (size_t)PACE__PIECE_ROWS * info->columns;
    uint64_t rows = info->rows[PACE__TRAIN] + info->rows[PACE__TEST];
    uint64_t entries = info->entries[PACE__TRAIN] + info->entries[PACE__TEST];
    uint64_t usual = rows ? entries / rows * PACE__PIECE_ROWS * 2 + PACE__PIECE_ROWS : 0;
    uint64_t least = (uint64_t)PACE__PIECE_UNIT * info->row_entries_max;

    return usual > least ? usual : least;
}

uint64_t pace__reader_memory(const pace__store_info *info)
{
    uint64_t entry = sizeof(uint32_t) + (info->has_values ? sizeof(float) : 0);

    return RING * (piece_entries_max(info) * entry + PACE__PIECE_ROWS * (1 + sizeof(uint64_t)));
}

/* --- filling --- */

/* Appends rows row .. row + count of a part; stops early, at a row, if the entries do not fit. Sets *taken. */
static pace_status append_starts(const pace__reader *self, const pace__part *part, slot *into, uint64_t row, size_t count,
                                 size_t *taken, uint64_t *first_entry)
{
    const pace__part_set *set = &part->sets[self->plan.set];
    size_t have = into->piece.rows.rows;
    uint64_t *start = into->start + have, base = start[0], from;
    pace_status status =
        pace__pread_all(part->fd, start, (count + 1) * sizeof *start, set->start_at + row * sizeof *start, part->path, self->log);

    if (status)
        return status;
    from = start[0];
    size_t fitting = 0;

    for (size_t i = 0; i <= count; i++) {
        if (start[i] > set->entries || start[i] < from || (i > 0 && start[i] - from < start[i - 1] - base))
            return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: indptr of row %llu does not rise or is beyond the end",
                             part->path, (unsigned long long)(row + i));
        start[i] = start[i] - from + base;
        if (start[i] <= self->entries_max)
            fitting = i;
    }
    *taken = fitting;
    *first_entry = from;
    return PACE_OK;
}

static pace_status check_rows(const pace__reader *self, const pace__part *part, const slot *into, size_t first, size_t count,
                              uint64_t entry, uint64_t entries)
{
    uint8_t label = 0;
    uint32_t largest = 0;

    for (size_t i = 0; i < count; i++)
        label |= into->label[first + i];
    for (uint64_t i = entry; i < entry + entries; i++)
        largest = into->ids[i] > largest ? into->ids[i] : largest;
    if (label > 1)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a label is neither 0 nor 1", part->path);
    if (largest > self->store->info.ids_seen)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: id %u, but there are only %u", part->path, largest,
                         self->store->info.ids_seen);
    return PACE_OK;
}

/* Rows that are consecutive in one part. *taken may be less than count if the piece is full. */
static pace_status append_run(const pace__reader *self, slot *into, uint64_t row, size_t count, size_t *taken)
{
    uint64_t part_first;
    const pace__part *part = &self->store->parts[pace__store_part_of(self->store, self->plan.set, row, &part_first)];
    const pace__part_set *set = &part->sets[self->plan.set];
    uint32_t columns = self->store->info.columns;
    size_t have = into->piece.rows.rows;
    uint64_t at = row - part_first, entry, entries, from = 0;
    pace_status status = PACE_OK;

    if (count > set->rows - at)
        count = set->rows - at;
    if (columns) {
        entry = (uint64_t)have * columns;
        from = at * columns;
    } else {
        entry = have ? into->start[have] : 0;
        into->start[have] = entry;
        status = append_starts(self, part, into, at, count, &count, &from);
    }
    if (status || count == 0) {
        *taken = 0;
        return status;
    }
    entries = columns ? (uint64_t)count * columns : into->start[have + count] - entry;
    status = pace__pread_all(part->fd, into->label + have, count, set->label_at + at, part->path, self->log);
    if (!status)
        status = pace__pread_all(part->fd, into->ids + entry, entries * sizeof *into->ids,
                                 set->ids_at + from * sizeof *into->ids, part->path, self->log);
    if (!status && set->values_at)
        status = pace__pread_all(part->fd, into->values + entry, entries * sizeof *into->values,
                                 set->values_at + from * sizeof *into->values, part->path, self->log);
    else if (!status && into->values) /* this part has no entries with other values */
        for (uint64_t i = 0; i < entries; i++)
            into->values[entry + i] = 1;
    if (!status)
        status = check_rows(self, part, into, have, count, entry, entries);
    into->piece.rows.rows += count;
    *taken = count;
    return status;
}

/* How many rows the piece that begins at `first` should have: whole steps, or part of a large one. */
static size_t piece_rows(const pace__reader *self, uint64_t first)
{
    uint64_t position = first % self->rows, batch = self->plan.batch;
    uint64_t left = self->rows - position; /* in the epoch */

    if (left > self->plan.last - first)
        left = self->plan.last - first;
    uint64_t step_left = batch - position % batch;
    uint64_t wanted = step_left;

    if (step_left > PACE__PIECE_ROWS)
        wanted = PACE__PIECE_ROWS;
    else
        wanted += (PACE__PIECE_ROWS - step_left) / batch * batch;
    return (size_t)(wanted < left ? wanted : left);
}

static pace_status fill(pace__reader *self, slot *into, uint64_t first)
{
    size_t wanted = piece_rows(self, first);
    uint64_t epoch = first / self->rows;
    pace_status status = PACE_OK;

    if (epoch != self->order_epoch) {
        self->order = self->plan.sequential ? pace__order_sequential(self->rows)
                                            : pace__order_make(self->rows, (uint64_t)self->plan.seed, epoch);
        self->order_epoch = epoch;
    }
    into->piece.first = first;
    into->piece.rows.rows = 0;
    while (into->piece.rows.rows < wanted && !status) {
        size_t have = into->piece.rows.rows, taken;
        uint64_t run, row = pace__order_row(&self->order, first % self->rows + have, &run);
        size_t count = run < wanted - have ? (size_t)run : wanted - have;

        status = append_run(self, into, row, count, &taken);
        if (!status && taken == 0)
            break;
    }
    if (into->piece.rows.rows < wanted && !status) /* full of entries: cut at a unit */
        into->piece.rows.rows -= into->piece.rows.rows % PACE__PIECE_UNIT;
    if (into->piece.rows.rows == 0 && !status)
        status = pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: a row is longer than row_entries_max, %u", self->store->path,
                           self->store->info.row_entries_max);
    return status;
}

/* The slot to fill next, when it is free; NULL if the reader is being freed. */
static slot *wait_for_room(pace__reader *self)
{
    slot *next = &self->ring[self->produced % RING];

    pthread_mutex_lock(&self->lock);
    while (next->users > 0 && !self->cancelled)
        pthread_cond_wait(&self->changed, &self->lock);
    bool cancelled = self->cancelled;

    pthread_mutex_unlock(&self->lock);
    return cancelled ? NULL : next;
}

static void *read_ahead(void *arg)
{
    pace__reader *self = arg;
    pace_status status = PACE_OK;
    uint64_t first = self->plan.first;

    while (first < self->plan.last && !status) {
        slot *next = wait_for_room(self);

        if (!next)
            break;
        status = fill(self, next, first);
        first += next->piece.rows.rows;
        pthread_mutex_lock(&self->lock);
        if (!status) {
            next->users = self->plan.consumers;
            self->produced++;
        }
        self->status = status;
        pthread_cond_broadcast(&self->changed);
        pthread_mutex_unlock(&self->lock);
    }
    pthread_mutex_lock(&self->lock);
    self->ended = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* --- the consumers' side --- */

pace_status pace__reader_next(pace__reader *reader, int consumer, const pace__piece **piece)
{
    uint64_t wanted = reader->consumed[consumer];

    pthread_mutex_lock(&reader->lock);
    while (reader->produced <= wanted && !reader->ended && !reader->status)
        pthread_cond_wait(&reader->changed, &reader->lock);
    pace_status status = reader->produced > wanted ? PACE_OK : reader->status;

    *piece = reader->produced > wanted ? &reader->ring[wanted % RING].piece : NULL;
    pthread_mutex_unlock(&reader->lock);
    return status;
}

void pace__reader_done(pace__reader *reader, int consumer)
{
    slot *each = &reader->ring[reader->consumed[consumer]++ % RING];

    pthread_mutex_lock(&reader->lock);
    if (--each->users == 0)
        pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

/* --- life --- */

static bool make_slot(const pace__reader *self, slot *each)
{
    const pace__store_info *info = &self->store->info;

    each->label = malloc(PACE__PIECE_ROWS);
    each->ids = pace__pages_alloc(self->entries_max * sizeof *each->ids);
    if (!info->columns)
        each->start = malloc((PACE__PIECE_ROWS + 1) * sizeof *each->start);
    if (info->has_values)
        each->values = pace__pages_alloc(self->entries_max * sizeof *each->values);
    each->piece.rows = (pace__rows){.columns = info->columns, .start = each->start, .ids = each->ids, .values = each->values,
                                    .label = each->label};
    return each->label && each->ids && (info->columns || each->start) && (!info->has_values || each->values);
}

static void release(pace__reader *self)
{
    for (int i = 0; i < RING; i++) {
        slot *each = &self->ring[i];

        pace__pages_free(each->values, self->entries_max * sizeof *each->values);
        pace__pages_free(each->ids, self->entries_max * sizeof *each->ids);
        free(each->start);
        free(each->label);
    }
    free(self->consumed);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

pace_status pace__reader_create(const pace__store *store, const pace__reader_plan *plan, const pace_log *log,
                                pace__reader **reader)
{
    pace__reader *self = calloc(1, sizeof *self);

    assert(plan->batch > 0 && plan->consumers > 0 && plan->first <= plan->last);
    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->store = store;
    self->plan = *plan;
    self->log = log;
    self->rows = store->info.rows[plan->set];
    self->entries_max = piece_entries_max(&store->info);
    self->order_epoch = UINT64_MAX;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    self->consumed = calloc((size_t)plan->consumers, sizeof *self->consumed);
    bool ok = self->consumed != NULL;

    for (int i = 0; i < RING && ok; i++)
        ok = make_slot(self, &self->ring[i]);
    int error = ok ? pthread_create(&self->thread, NULL, read_ahead, self) : 0;

    if (!ok || error) {
        release(self);
        return pace_fail(log, PACE_FAILED, "cannot start reading %s: %s", store->path, ok ? strerror(error) : "out of memory");
    }
    *reader = self;
    return PACE_OK;
}

void pace__reader_free(pace__reader *reader)
{
    if (!reader)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->cancelled = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    release(reader);
}

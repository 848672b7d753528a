#include "data/store/reader.h"

#include "base/clock.h"
#include "base/locale.h"
#include "base/memory.h"
#include "data/store/fetch.h"
#include "threads/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Pieces in memory: one at hand, one being read, and room for consumers that are not quite in step. */
#define RING 4
/* The disk is asked for rows this far ahead of where consumer 0 is. */
#define ASK_ROWS (256 * PACE__PIECE_ROWS)
/* Of pictures and features, it is asked for as many of them, but one piece at least. */
#define ASK_BYTES (4 * PACE__PIECE_BYTES)
/* Rows without columns: a piece has room for this many times the entries that its rows have on average, or is
 * cut shorter. */
#define ROOM_FACTOR 4
/* Mapping pays from the second pass on: the first touch of a page costs as much as reading it. */
#define MAP_PASSES 2

/* A piece's arrays, filled by all consumers together. */
typedef struct slot {
    _Alignas(64) atomic_uint_fast64_t shares; /* read so far, by all pieces that ever had this slot */
    pace__into into;
} slot;

/* One consumer's view of a piece. */
typedef struct view {
    pace__piece piece;
    uint64_t *start; /* (PACE__PIECE_ROWS + 1) own copy, of rows without columns */
} view;

typedef struct consumer {
    _Alignas(128) pace__walk at; /* behind the next piece */
    view views[2];               /* of the piece at hand and of the next */
    int hand;
    bool started, has_next;
    atomic_uint_fast64_t taken; /* pieces taken: all before the last one are done with */
} consumer;

struct pace__reader {
    pace__fetch fetch;
    pace__reader_plan plan;
    bool scattered;     /* the rows of a piece lie anywhere */
    uint64_t rows;      /* of the set */
    uint64_t rows_max;  /* in a piece */
    size_t entries_max; /* in a piece */
    slot ring[RING];
    void *memory; /* of the slots' arrays */
    consumer *consumers;
    atomic_int status; /* not PACE_OK: reading has failed, for everyone */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool
        cold; /* reads wait for the disk: asking ahead pays. Where all is in memory it would only take time */
    uint64_t ask_rows;
    uint64_t progress; /* under the lock: consumer 0's place */
    bool cancelled;    /* under the lock */
};

/* Of a picture's pixels or features. */
static uint64_t picture_bytes(const pace__store_info *info)
{
    return info->columns * (info->encoding.kind == PACE__IMAGE ? sizeof(uint8_t) : sizeof(float));
}

/* How many pictures make so many bytes. */
static uint64_t pictures_in(const pace__store_info *info, uint64_t bytes, uint64_t rows_max)
{
    uint64_t rows = bytes / picture_bytes(info);

    return rows < 1 ? 1 : rows < rows_max ? rows : rows_max;
}

uint64_t pace__piece_rows(const pace__store_info *info)
{
    return pace__has_classes(&info->encoding) ? pictures_in(info, PACE__PIECE_BYTES, PACE__PIECE_ROWS)
                                              : PACE__PIECE_ROWS;
}

static size_t piece_entries_max(const pace__store_info *info)
{
    uint64_t usual = pace__usual_entries(info, pace__piece_rows(info));

    if (info->columns)
        return usual;
    uint64_t entries = pace__store_entries(info);

    usual *= ROOM_FACTOR;
    if (usual > entries) /* a small set with long rows */
        usual = entries;
    return usual > info->row_entries_max ? usual : info->row_entries_max;
}

/* Rows that a slot has room for, so that each array begins at a cache line. */
static size_t slot_rows(const pace__store_info *info)
{
    return (pace__piece_rows(info) + 63) / 64 * 64;
}

static size_t slot_bytes(const pace__store_info *info, uint64_t entries)
{
    return pace__entries_bytes(info, entries) + slot_rows(info) * pace__row_bytes(info);
}

uint64_t pace__reader_memory(const pace__store_info *info, int consumers)
{
    uint64_t starts = info->columns ? 0 : (PACE__PIECE_ROWS + 1) * sizeof(uint64_t);

    return RING * slot_bytes(info, piece_entries_max(info)) + (uint64_t)consumers * 2 * starts;
}

/* --- the rows of a piece --- */

/* Where the stretch ends that is walked next; the place may move on to its beginning. */
static uint64_t stretch_end(const pace__reader *self, int index, pace__walk *at)
{
    return self->plan.stretch ? self->plan.stretch(self->plan.user, index, &at->place) : self->plan.last;
}

/* The rows from at->place on that may make one piece: before `end`, in one step and, unless they are scattered, one part
 * and one run of the order. */
static pace__run next_run(const pace__reader *self, pace__walk *at, uint64_t end)
{
    uint64_t position = at->place % self->rows, rows = self->plan.batch - position % self->plan.batch;

    if (rows > end - at->place)
        rows = end - at->place;
    if (!self->scattered)
        return pace__fetch_next(&self->fetch, at, rows);
    if (rows > self->rows - position)
        rows = self->rows - position;
    return (pace__run){.rows = rows < self->rows_max ? rows : self->rows_max};
}

/* Ends the piece where its entries would not fit. */
static void cut(const pace__reader *self, const uint64_t *start, pace__run *run)
{
    while (start[run->rows] > self->entries_max)
        run->rows--;
    assert(run->rows > 0); /* entries_max is not below row_entries_max */
}

static pace_status fetch(pace__reader *self, const pace__run *run, const pace__into *into)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__fetch_rows(&self->fetch, run, into);

    if (pace__now_ns() - start_ns > pace__cold_read_ns(&self->fetch, run))
        self->cold = true;
    return status;
}

/* Rows begin .. end of a piece whose rows lie anywhere. */
static pace_status read_scattered(pace__reader *self, uint64_t first, size_t begin, size_t end, slot *to)
{
    pace__walk at = {.place = first + begin};
    pace_status status = PACE_OK;

    while (at.place < first + end && !status) {
        pace__run run = pace__fetch_next(&self->fetch, &at, first + end - at.place);
        uint64_t row = at.place - first;
        pace__into into = pace__into_at(&to->into, row, row * self->fetch.store->info.columns);

        status = fetch(self, &run, &into);
        at.place += run.rows;
    }
    return status;
}

/* Share `index` of the piece's rows into the slot. */
static pace_status read_share(pace__reader *self, const pace__run *run, const pace__piece *piece, slot *to,
                              int index)
{
    const pace__rows *rows = &piece->rows;
    size_t begin = rows->rows * (size_t)index / (size_t)self->plan.consumers;
    size_t end = rows->rows * (size_t)(index + 1) / (size_t)self->plan.consumers;

    if (begin == end)
        return PACE_OK;
    if (self->scattered)
        return read_scattered(self, piece->first, begin, end, to);
    uint64_t entry = pace__row_start(rows, begin);
    pace__into into = pace__into_at(&to->into, begin, entry);
    pace__run share = *run;

    into.start = rows->start ? rows->start + begin : NULL;

    share.row += begin;
    share.rows = end - begin;
    share.entry += entry;
    share.entries = pace__row_start(rows, end) - entry;
    return fetch(self, &share, &into);
}

/* --- the consumers' side --- */

static bool someone_needs(const pace__reader *self, uint64_t piece)
{
    for (int i = 0; i < self->plan.consumers; i++) {
        if (atomic_load_explicit(&self->consumers[i].taken, memory_order_acquire) <= piece + 1)
            return true;
    }
    return false;
}

/* Waits for a slot to be free of the piece that it held RING pieces ago. */
static void wait_for_room(const pace__reader *self, uint64_t piece)
{
    unsigned turns = 0;

    while (piece >= RING && someone_needs(self, piece - RING) && !self->status)
        pace__back_off(&turns);
}

/* Waits for all consumers to have read their share of a piece. */
static void wait_for_shares(const pace__reader *self, uint64_t piece)
{
    uint64_t shares = (piece / RING + 1) * (uint64_t)self->plan.consumers;
    unsigned turns = 0;

    while (atomic_load_explicit(&self->ring[piece % RING].shares, memory_order_acquire) < shares &&
           !self->status)
        pace__back_off(&turns);
}

/* Finds the piece behind the one at hand and reads this consumer's share of it. */
static pace_status prepare_next(pace__reader *self, consumer *own, int index)
{
    view *next = &own->views[own->hand ^ 1];
    uint64_t piece = own->taken;
    slot *into = &self->ring[piece % RING];
    uint64_t end = stretch_end(self, index, &own->at);
    pace_status status = PACE_OK;

    own->has_next = own->at.place < self->plan.last;
    if (!own->has_next)
        return PACE_OK;
    pace__run run = next_run(self, &own->at, end);

    if (next->start) {
        status = pace__fetch_starts(&self->fetch, &run, 0, next->start);
        if (status)
            return status;
        cut(self, next->start, &run);
    }
    next->piece.first = own->at.place;
    own->at.place += run.rows;
    next->piece.rows = pace__into_view(&into->into, &self->fetch.store->info, run.rows, next->start);
    wait_for_room(self, piece);
    if (self->status)
        return PACE_OK; /* someone else has failed, and the slot may still be in use */
    status = read_share(self, &run, &next->piece, into, index);
    if (!status) /* without this share nobody takes the piece */
        atomic_fetch_add_explicit(&into->shares, 1, memory_order_release);
    return status;
}

/* Tells the asking thread how far consumer 0 is, now and then. */
static void report_progress(pace__reader *self, uint64_t place)
{
    uint64_t often = self->ask_rows < 4 ? 1 : self->ask_rows / 4;

    if (place / often == self->progress / often)
        return;
    pthread_mutex_lock(&self->lock);
    self->progress = place;
    if (self->cold)
        pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static pace_status take(pace__reader *self, consumer *own, int index, const pace__piece **piece)
{
    pace_status status = PACE_OK;

    if (!own->started) {
        own->started = true;
        status = prepare_next(self, own, index);
    }
    if (status || !own->has_next)
        return status;
    wait_for_shares(self, own->taken);
    if (self->status)
        return PACE_OK;
    own->hand ^= 1;
    pace__piece *at_hand = &own->views[own->hand].piece;

    atomic_fetch_add_explicit(&own->taken, 1, memory_order_release);
    if (index == 0)
        report_progress(self, at_hand->first);
    status = prepare_next(self, own, index);
    *piece = at_hand;
    return status;
}

pace_status pace__reader_next(pace__reader *reader, int index, const pace__piece **piece)
{
    int status = reader->status;

    *piece = NULL;
    if (!status)
        status = take(reader, &reader->consumers[index], index, piece);
    if (status)
        reader->status = status;
    if (reader->status)
        *piece = NULL;
    return (pace_status)reader->status;
}

/* --- asking the disk --- */

/* Whether `place` need not be asked for yet. Scattered rows take calls each, which is much where all is in
 * memory: they are asked for only behind a slow read, up to `until` each time. */
static bool is_early(const pace__reader *self, uint64_t place, uint64_t until)
{
    if (!self->scattered)
        return place > self->progress + self->ask_rows;
    return place >= until && (!self->cold || place >= self->progress + self->ask_rows);
}

/* Under the lock. Who has mapped something looks up now and then. */
static void rest(pace__reader *self)
{
    struct timespec until;

    if (!self->fetch.mapped) {
        pthread_cond_wait(&self->changed, &self->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PACE__MAPPED_LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&self->changed, &self->lock, &until) == ETIMEDOUT)
        pace__mapped_look(self->fetch.mapped);
}

/* Nothing is left to be asked for. */
static void rest_until_freed(pace__reader *self)
{
    pthread_mutex_lock(&self->lock);
    while (self->fetch.mapped && !self->cancelled)
        rest(self);
    pthread_mutex_unlock(&self->lock);
}

/* Waits until *place is less than ask_rows ahead and asking pays; moves it on if it has fallen behind. False:
 * the reader is being freed. */
static bool wait_for_consumers(pace__reader *self, uint64_t *place, uint64_t *until)
{
    uint64_t block = pace__shuffle_block(&self->fetch.store->info.encoding);

    pthread_mutex_lock(&self->lock);
    while (is_early(self, *place, *until) && !self->cancelled)
        rest(self);
    bool cancelled = self->cancelled;

    if (*place < self->progress) /* it slept while reads were fast */
        *place = self->progress / block * block;
    if (!self->scattered || *place >= *until)
        self->cold = false; /* until a read is slow again */
    *until = *place < *until ? *until : self->progress + self->ask_rows;
    pthread_mutex_unlock(&self->lock);
    return !cancelled;
}

static void *ask_ahead(void *arg)
{
    PACE__C_LOCALE();
    pace__reader *self = arg;
    pace__walk at = {.place = self->plan.first};
    uint64_t until = 0;

    while (at.place < self->plan.last && wait_for_consumers(self, &at.place, &until)) {
        uint64_t end = stretch_end(self, self->plan.consumers, &at);
        uint64_t left = end - at.place, most = left < self->rows_max ? left : self->rows_max;

        if (left == 0)
            break;
        pace__run run =
            self->scattered ? pace__fetch_next(&self->fetch, &at, most) : next_run(self, &at, end);

        at.place += run.rows;
        pace__fetch_ask(&self->fetch, &run);
    }
    rest_until_freed(self);
    return NULL;
}

/* --- life --- */

/* All arrays in one stretch of memory: a fresh huge page costs a millisecond. */
static size_t slots_bytes(const pace__reader *self)
{
    return RING * slot_bytes(&self->fetch.store->info, self->entries_max);
}

static void place_rows(pace__into *into, const pace__store_info *info, char *memory)
{
    if (pace__has_classes(&info->encoding)) {
        into->source = (uint32_t *)memory;
        into->classes = (uint16_t *)(memory + slot_rows(info) * sizeof *into->source);
        return;
    }
    if (info->encoding.kind == PACE__TEXT) {
        into->length = (uint32_t *)memory;
        memory += slot_rows(info) * sizeof *into->length;
    }
    into->label = (uint8_t *)memory;
}

static bool make_slots(pace__reader *self)
{
    const pace__store_info *info = &self->fetch.store->info;
    char *next = self->memory = pace__pages_alloc(slots_bytes(self));

    for (int i = 0; next && i < RING; i++) {
        pace__into_entries(&self->ring[i].into, info, next, self->entries_max);
        place_rows(&self->ring[i].into, info, next + pace__entries_bytes(info, self->entries_max));
        next += slot_bytes(info, self->entries_max);
    }
    return self->memory != NULL;
}

static bool make_consumers(pace__reader *self)
{
    size_t count = (size_t)self->plan.consumers;
    bool ok = true;

    self->consumers = aligned_alloc(128, count * sizeof *self->consumers);
    if (!self->consumers)
        return false;
    memset(self->consumers, 0, count * sizeof *self->consumers);
    for (size_t i = 0; i < count; i++) {
        consumer *each = &self->consumers[i];

        each->at.place = self->plan.first;
        for (int v = 0; v < 2 && !self->fetch.store->info.columns; v++) {
            each->views[v].start = malloc((PACE__PIECE_ROWS + 1) * sizeof *each->views[v].start);
            ok = ok && each->views[v].start;
        }
    }
    return ok;
}

static void release(pace__reader *self)
{
    for (int i = 0; self->consumers && i < self->plan.consumers; i++) {
        free(self->consumers[i].views[0].start);
        free(self->consumers[i].views[1].start);
    }
    free(self->consumers);
    pace__mapped_close(self->fetch.mapped);
    pace__pages_free(self->memory, slots_bytes(self));
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* Waits for it are not to depend on the time of day. */
static void make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t how;

    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &how);
    pthread_condattr_destroy(&how);
}

pace_status pace__reader_create(const pace__store *store, const pace__reader_plan *plan, const pace_log *log,
                                pace__reader **reader)
{
    pace__reader *self = aligned_alloc(64, sizeof *self);

    assert(plan->batch > 0 && plan->consumers > 0 && plan->first <= plan->last);
    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memset(self, 0, sizeof *self);
    self->fetch = (pace__fetch){store, log, plan->set, plan->sequential, plan->seed, NULL};
    self->plan = *plan;
    self->scattered = pace__has_classes(&store->info.encoding);
    self->rows = store->info.rows[plan->set];
    self->rows_max = pace__piece_rows(&store->info);
    self->ask_rows = self->scattered ? pictures_in(&store->info, ASK_BYTES, ASK_ROWS) : ASK_ROWS;
    self->entries_max = piece_entries_max(&store->info);
    self->progress = plan->first;
    pthread_mutex_init(&self->lock, NULL);
    make_condition(&self->changed);
    if (!self->scattered && plan->last - plan->first >= MAP_PASSES * self->rows)
        self->fetch.mapped = pace__mapped_open(store);
    bool ok = make_slots(self) && make_consumers(self);
    int error = ok ? pthread_create(&self->thread, NULL, ask_ahead, self) : 0;

    if (!ok || error) {
        release(self);
        return pace_fail(log, PACE_FAILED, "cannot start a thread to read %s: %s", store->path,
                         ok ? strerror(error) : "out of memory");
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

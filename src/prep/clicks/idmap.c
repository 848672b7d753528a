#include "prep/clicks/idmap.h"

#include "base/memory.h"
#include "base/random.h"
#include "files/file.h"
#include "files/open.h"
#include "prep/clicks/ranks.h"
#include "prep/clicks/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARDS 64

/* Slots of the table of carries, at first. */
#define CARRIES_BITS 12
/* Ids that a thread has seen in sampled rows, before it counts them. */
#define NOTED_MAX 32768
/* Ids whose bits, or counts, are on their way into the cache. */
#define AHEAD 64

typedef struct far_slot {
    uint64_t id_plus_1; /* 0: free */
    uint32_t hits;      /* while adding */
    uint32_t number;    /* after numbering */
} far_slot;

/* A part of the hash table for ids beyond the arrays. */
typedef struct shard {
    pthread_mutex_t lock;
    far_slot *slots;
    size_t used, capacity; /* capacity is a power of two */
} shard;

struct pace__idmap {
    const pace_log *log;
    bool few;
    uint64_t dense;         /* ids below this live in the arrays */
    _Atomic uint64_t *seen; /* (dense / 64 + 1) a bit per id */
    pthread_mutex_t lock;   /* of counts and carries */
    uint8_t *counts;        /* (dense) while rows are read: the lowest 8 bits */
    pace__tally carries;    /* and all others, of the few ids that have any */
    pace__ranks ranks;      /* values are counts, then numbers */
    size_t far_slots_max;
    atomic_size_t far_slots;
    shard shards[SHARDS];
    uint64_t *original; /* (count) */
    size_t original_bytes;
    uint32_t count;
};

static size_t seen_bytes(const pace__idmap *map)
{
    return (map->dense / 64 + 1) * sizeof *map->seen;
}

static void *alloc_pages(const pace__idmap *map, size_t bytes)
{
    return map->few ? pace__pages_alloc_sparse(bytes) : pace__pages_alloc(bytes);
}

static pace_status out_of_memory(const pace__idmap *map)
{
    return pace_fail(map->log, PACE_FAILED, "out of memory for the id table");
}

pace_status pace__idmap_create(uint64_t features, size_t memory, bool few, const pace_log *log,
                               pace__idmap **map)
{
    pace__idmap *self = calloc(1, sizeof *self);
    uint64_t room = memory / sizeof(uint32_t); /* a count for each */

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->log = log;
    self->few = few;
    self->dense = features > 0 && features < room ? features : room;
    if (self->dense > UINT32_MAX)
        self->dense = UINT32_MAX;
    self->far_slots_max = memory / sizeof(far_slot);
    self->seen = alloc_pages(self, seen_bytes(self));
    self->counts = alloc_pages(self, self->dense);
    pthread_mutex_init(&self->lock, NULL);
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&self->shards[i].lock, NULL);
    if (!pace__tally_init(&self->carries, self->dense, CARRIES_BITS) || !self->seen || !self->counts) {
        pace__idmap_free(self);
        return pace_fail(log, PACE_FAILED, "out of memory for the id table (%zu bytes)", memory);
    }
    *map = self;
    return PACE_OK;
}

static size_t rank_bytes(const pace__idmap *map)
{
    return (map->dense / PACE__RANKS_LINE + 1) * sizeof *map->ranks.lines;
}

static size_t value_bytes(const pace__idmap *map)
{
    return (size_t)map->ranks.members * sizeof *map->ranks.values;
}

static void release_counts(pace__idmap *map)
{
    pace__tally_release(&map->carries);
    pace__pages_free(map->counts, map->dense);
    map->counts = NULL;
}

static void release_ranks(pace__idmap *map)
{
    pace__pages_free(map->ranks.lines, rank_bytes(map));
    pace__pages_free(map->ranks.values, value_bytes(map));
    map->ranks = (pace__ranks){.limit = map->dense};
}

void pace__idmap_free(pace__idmap *map)
{
    if (!map)
        return;
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&map->shards[i].lock);
        free(map->shards[i].slots);
    }
    pthread_mutex_destroy(&map->lock);
    release_counts(map);
    release_ranks(map);
    pace__pages_free(map->seen, seen_bytes(map));
    pace__pages_free(map->original, map->original_bytes);
    free(map);
}

/* --- the hash table --- */

static shard *shard_of(const pace__idmap *map, uint64_t id)
{
    return (shard *)&map->shards[pace__mix64(id) >> 58];
}

static far_slot *probe(const shard *part, uint64_t id)
{
    size_t mask = part->capacity - 1, at = pace__mix64(id) & mask;

    while (part->slots[at].id_plus_1 != 0 && part->slots[at].id_plus_1 != id + 1)
        at = (at + 1) & mask;
    return &part->slots[at];
}

static pace_status grow(pace__idmap *map, shard *part)
{
    shard larger = {.capacity = part->capacity ? part->capacity * 2 : 64, .used = part->used};

    if (atomic_fetch_add(&map->far_slots, larger.capacity - part->capacity) + larger.capacity -
            part->capacity >
        map->far_slots_max)
        return pace_fail(map->log, PACE_FAILED,
                         "more than %zu different ids above %llu: their table needs more memory than "
                         "--memory allows; raise it",
                         map->far_slots_max / 2, (unsigned long long)map->dense);
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return out_of_memory(map);
    for (size_t i = 0; i < part->capacity; i++) {
        if (part->slots[i].id_plus_1)
            *probe(&larger, part->slots[i].id_plus_1 - 1) = part->slots[i];
    }
    free(part->slots);
    part->slots = larger.slots;
    part->capacity = larger.capacity;
    return PACE_OK;
}

static pace_status put_far(pace__idmap *map, uint64_t id, uint32_t hits, uint32_t number)
{
    shard *part = shard_of(map, id);
    pace_status status = PACE_OK;

    pthread_mutex_lock(&part->lock);
    if ((part->used + 1) * 4 > part->capacity * 3)
        status = grow(map, part);
    if (!status) {
        far_slot *slot = probe(part, id);

        part->used += slot->id_plus_1 == 0;
        slot->id_plus_1 = id + 1;
        slot->hits += hits;
        slot->number = number;
    }
    pthread_mutex_unlock(&part->lock);
    return status;
}

/* --- adding --- */

struct pace__idmap_notes {
    uint64_t *seen; /* a bit per id */
    size_t noted;
    uint32_t ids[NOTED_MAX]; /* (noted) of sampled rows, not counted yet */
};

pace_status pace__idmap_open_notes(const pace__idmap *map, pace__idmap_notes **notes)
{
    pace__idmap_notes *self = malloc(sizeof *self);

    *notes = self;
    if (!self)
        return out_of_memory(map);
    self->noted = 0;
    self->seen = alloc_pages(map, seen_bytes(map));
    return self->seen ? PACE_OK : out_of_memory(map);
}

/* Under the map's lock. */
static bool add_count(pace__idmap *map, uint64_t id, uint32_t count)
{
    uint64_t sum = map->counts[id] + (uint64_t)count;

    map->counts[id] = (uint8_t)sum;
    return sum <= UINT8_MAX || pace__tally_add(&map->carries, id, (uint32_t)(sum - (uint8_t)sum));
}

static pace_status count_noted(pace__idmap *map, pace__idmap_notes *notes)
{
    bool good = true;

    pthread_mutex_lock(&map->lock);
    for (size_t i = 0; i < notes->noted && good; i++) {
        __builtin_prefetch(map->counts + notes->ids[i + AHEAD < notes->noted ? i + AHEAD : i], 1);
        good = add_count(map, notes->ids[i], 1);
    }
    pthread_mutex_unlock(&map->lock);
    notes->noted = 0;
    return good ? PACE_OK : out_of_memory(map);
}

pace_status pace__idmap_hand_in(pace__idmap *map, pace__idmap_notes *notes)
{
    for (uint64_t word = 0; word <= map->dense / 64; word++) {
        if (notes->seen[word])
            atomic_fetch_or_explicit(&map->seen[word], notes->seen[word], memory_order_relaxed);
    }
    return count_noted(map, notes);
}

void pace__idmap_free_notes(const pace__idmap *map, pace__idmap_notes *notes)
{
    if (!notes)
        return;
    pace__pages_free(notes->seen, seen_bytes(map));
    free(notes);
}

/* Nearly all have been seen before: then nothing is written, and no write is waited for. */
static inline void note_dense(uint64_t *seen, uint64_t id)
{
    if (!(seen[id / 64] >> (id % 64) & 1))
        seen[id / 64] |= UINT64_C(1) << (id % 64);
}

/* Ids that may be beyond the arrays. */
static pace_status add_any(pace__idmap *map, pace__idmap_notes *notes, const uint64_t *ids, size_t count)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < count && !status; i++) {
        if (ids[i] < map->dense)
            note_dense(notes->seen, ids[i]);
        else
            status = put_far(map, ids[i], 0, 0);
    }
    return status;
}

pace_status pace__idmap_add(pace__idmap *map, pace__idmap_notes *notes, const uint64_t *ids, size_t count)
{
    uint64_t *seen = notes->seen, last = map->dense - 1, beyond = 0;
    size_t fetched = count > AHEAD ? count - AHEAD : 0;

    for (size_t i = 0; i < count; i++)
        beyond |= last - ids[i];
    if (map->dense == 0 || beyond >> 63)
        return add_any(map, notes, ids, count);
    for (size_t i = 0; i < fetched; i++) {
        __builtin_prefetch(seen + ids[i + AHEAD] / 64);
        note_dense(seen, ids[i]);
    }
    for (size_t i = fetched; i < count; i++)
        note_dense(seen, ids[i]);
    return PACE_OK;
}

pace_status pace__idmap_count_hits(pace__idmap *map, pace__idmap_notes *notes, const uint64_t *ids,
                                   size_t count)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < count && !status; i++) {
        if (ids[i] >= map->dense) {
            status = put_far(map, ids[i], 1, 0);
            continue;
        }
        if (notes->noted == NOTED_MAX)
            status = count_noted(map, notes);
        notes->ids[notes->noted++] = (uint32_t)ids[i];
    }
    return status;
}

/* --- ranks --- */

static const pace__ranks_kernels *kernels(void)
{
    return pace__ranks_of(pace_kernels_in_use());
}

/* From now on ids of the arrays have places among the values. */
static pace_status rank_ids(pace__idmap *map)
{
    release_ranks(map);
    map->ranks.lines = alloc_pages(map, rank_bytes(map));
    if (!map->ranks.lines)
        return out_of_memory(map);
    kernels()->index(&map->ranks, (const uint64_t *)map->seen);
    map->ranks.values = alloc_pages(map, value_bytes(map));
    return map->ranks.values ? PACE_OK : out_of_memory(map);
}

static void finish_ranks(pace__idmap *map)
{
    map->ranks.other = map->count;
    pace__ranks_bring_near(&map->ranks);
}

static void place_carry(void *arg, uint64_t id, uint32_t count)
{
    const pace__idmap *map = arg;

    map->ranks.values[pace__rank_of(&map->ranks, id)] += count;
}

/* The same, and the values are the counts. */
static pace_status rank_counts(pace__idmap *map)
{
    pace_status status = rank_ids(map);
    uint32_t *value = map->ranks.values;

    if (status)
        return status;
    for (uint64_t word = 0; word <= map->dense / 64; word++) {
        for (uint64_t bits = map->seen[word]; bits; bits &= bits - 1)
            *value++ = map->counts[word * 64 + (uint64_t)__builtin_ctzll(bits)];
    }
    pace__tally_visit(&map->carries, place_carry, map);
    return PACE_OK;
}

/* --- saving and merging --- */

/* How an id and its count stand in a file. */
typedef struct saved_id {
    uint64_t id;
    uint32_t hits;
} __attribute__((packed)) saved_id;

#define SAVED_MAX 65536

/* A file on its way, and what is not written yet. */
typedef struct saving {
    const pace__idmap *map;
    const char *path;
    int fd;
    pace_status status; /* of carries */
    size_t count;
    saved_id ids[SAVED_MAX];
} saving;

static pace_status write_saved(saving *self)
{
    pace_status status =
        pace__write_all(self->fd, self->ids, self->count * sizeof *self->ids, self->path, self->map->log);

    self->count = 0;
    return status;
}

static pace_status save_id(saving *self, uint64_t id, uint32_t hits)
{
    self->ids[self->count++] = (saved_id){id, hits};
    return self->count == SAVED_MAX ? write_saved(self) : PACE_OK;
}

static pace_status save_dense(saving *self)
{
    const pace__idmap *map = self->map;
    pace_status status = PACE_OK;

    for (uint64_t word = 0; word <= map->dense / 64 && !status; word++) {
        uint64_t bits = atomic_load_explicit(&map->seen[word], memory_order_relaxed);

        for (; bits && !status; bits &= bits - 1) {
            uint64_t id = word * 64 + (uint64_t)__builtin_ctzll(bits);

            status = save_id(self, id, map->counts[id]);
        }
    }
    return status;
}

static void save_carry(void *arg, uint64_t id, uint32_t count)
{
    saving *self = arg;

    if (!self->status)
        self->status = save_id(self, id, count);
}

/* Whoever merges adds them to what stands before. */
static pace_status save_carries(saving *self)
{
    self->status = PACE_OK;
    pace__tally_visit(&self->map->carries, save_carry, self);
    return self->status;
}

static pace_status save_far(saving *self)
{
    pace_status status = PACE_OK;

    for (int i = 0; i < SHARDS; i++) {
        const shard *part = &self->map->shards[i];

        for (size_t s = 0; s < part->capacity && !status; s++) {
            if (part->slots[s].id_plus_1)
                status = save_id(self, part->slots[s].id_plus_1 - 1, part->slots[s].hits);
        }
    }
    return status;
}

/* Closing is what makes a file whole for other hosts on shared file systems. */
pace_status pace__idmap_save(const pace__idmap *map, const char *path)
{
    saving *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(map->log, PACE_FAILED, "out of memory");
    self->map = map;
    self->path = path;
    self->count = 0;
    self->fd = -1;
    pace_status status = pace__open(path, PACE__TO_CREATE, map->log, &self->fd);

    if (!status)
        status = save_dense(self);
    if (!status)
        status = save_carries(self);
    if (!status)
        status = save_far(self);
    if (!status)
        status = write_saved(self);
    if (self->fd >= 0 && close(self->fd) != 0 && !status)
        status = pace_fail(map->log, PACE_IO, "%s: cannot close: %s", path, strerror(errno));
    free(self);
    return status;
}

static pace_status merge_id(pace__idmap *map, const saved_id *saved)
{
    if (saved->id >= map->dense)
        return put_far(map, saved->id, saved->hits, 0);
    _Atomic uint64_t *seen = &map->seen[saved->id / 64]; /* of which nobody else changes anything now */
    uint64_t bits = atomic_load_explicit(seen, memory_order_relaxed);

    atomic_store_explicit(seen, bits | UINT64_C(1) << (saved->id % 64), memory_order_relaxed);
    return add_count(map, saved->id, saved->hits) ? PACE_OK : out_of_memory(map);
}

static pace_status merge_file(pace__idmap *map, int fd, uint64_t count, const char *path)
{
    saved_id *ids = malloc(SAVED_MAX * sizeof *ids);
    pace_status status = ids ? PACE_OK : pace_fail(map->log, PACE_FAILED, "out of memory");

    for (uint64_t done = 0; done < count && !status;) {
        size_t piece = count - done < SAVED_MAX ? (size_t)(count - done) : SAVED_MAX;

        status = pace__pread_all(fd, ids, piece * sizeof *ids, done * sizeof *ids, path, map->log);
        for (size_t i = 0; i < piece && !status; i++)
            status = merge_id(map, &ids[i]);
        done += piece;
    }
    free(ids);
    return status;
}

pace_status pace__idmap_merge(pace__idmap *map, const char *path)
{
    int fd;
    struct stat info;
    pace_status status = pace__open(path, PACE__TO_CHANGE, map->log, &fd);

    if (status)
        return status;
    if (fstat(fd, &info) != 0)
        status = pace_fail(map->log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    else if ((uint64_t)info.st_size % sizeof(saved_id) != 0)
        status = pace_fail(map->log, PACE_IO, "%s: temporary file was changed by someone else", path);
    else
        status = merge_file(map, fd, (uint64_t)info.st_size / sizeof(saved_id), path);
    close(fd);
    return status;
}

/* --- numbering --- */

#define DIGITS     3
#define DIGIT_BITS 11

static uint32_t digit_of(uint64_t key, unsigned digit)
{
    return (uint32_t)(key >> 32) >> (digit * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1);
}

/* Stable sort by the upper half of each key, a digit at a time; digits that are equal everywhere cost nothing. Returns the
 * array that holds the result. */
static uint64_t *sort_by_upper_half(uint64_t *keys, uint64_t *scratch, size_t count)
{
    uint32_t starts[DIGITS][1 << DIGIT_BITS] = {0};

    for (size_t i = 0; i < count; i++) {
        for (unsigned digit = 0; digit < DIGITS; digit++)
            starts[digit][digit_of(keys[i], digit)]++;
    }
    for (unsigned digit = 0; digit < DIGITS && count > 0; digit++) {
        uint32_t *start = starts[digit], sum = 0;

        if (start[digit_of(keys[0], digit)] == count)
            continue;
        for (uint32_t i = 0; i < 1 << DIGIT_BITS; i++) {
            uint32_t here = start[i];

            start[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            scratch[start[digit_of(keys[i], digit)]++] = keys[i];
        uint64_t *swap = keys;

        keys = scratch;
        scratch = swap;
    }
    return keys;
}

/* The ids of the arrays in a range that occur, in rising order. */
typedef struct dense_ids {
    size_t count;
    uint32_t *ids;    /* (count) */
    uint32_t *values; /* (count) of the ranks: their counts, then their numbers */
    uint64_t *keys;   /* (2 count) */
} dense_ids;

/* How many ids below this one occur and are in the arrays. */
static uint32_t dense_rank(const pace__idmap *map, uint64_t id)
{
    return pace__rank_of(&map->ranks, id < map->dense ? id : map->dense);
}

/* The largest range decides how much memory all of them use. */
static size_t open_dense(const pace__idmap *map, const uint64_t *range_start, size_t ranges, dense_ids *self)
{
    size_t most = 0;

    for (size_t i = 0; i < ranges; i++) {
        size_t count = dense_rank(map, range_start[i + 1]) - dense_rank(map, range_start[i]);

        most = count > most ? count : most;
    }
    size_t bytes = most * (2 * sizeof *self->keys + sizeof *self->ids);

    self->keys = pace__pages_alloc(bytes);
    self->ids = (uint32_t *)(self->keys + 2 * most);
    return bytes;
}

static void collect_dense(const pace__idmap *map, uint64_t low, uint64_t high, dense_ids *self)
{
    uint32_t *to = self->ids;

    self->values = map->ranks.values + dense_rank(map, low);
    low = low < map->dense ? low : map->dense;
    high = high < map->dense ? high : map->dense;

    for (uint64_t word = low / 64; low < high && word <= (high - 1) / 64; word++) {
        uint64_t bits = map->seen[word];

        if (word == low / 64)
            bits &= ~UINT64_C(0) << (low % 64);
        if (word == high / 64)
            bits &= (UINT64_C(1) << (high % 64)) - 1;
        for (; bits; bits &= bits - 1)
            *to++ = (uint32_t)(word * 64 + (uint64_t)__builtin_ctzll(bits));
    }
    self->count = (size_t)(to - self->ids);
}

/* Which of the ids come first, frequent ones do: indexes in the lower halves, their counts' complements above. */
static const uint64_t *order_dense(const dense_ids *self)
{
    for (size_t i = 0; i < self->count; i++)
        self->keys[i] = (uint64_t)~self->values[i] << 32 | i;
    return sort_by_upper_half(self->keys, self->keys + self->count, self->count);
}

static int by_hits_then_id(const void *left, const void *right)
{
    const far_slot *a = *(far_slot *const *)left, *b = *(far_slot *const *)right;

    if (a->hits != b->hits)
        return a->hits > b->hits ? -1 : 1;
    return a->id_plus_1 < b->id_plus_1 ? -1 : a->id_plus_1 > b->id_plus_1;
}

/* The first slot from *at on whose id lies in [low, high), or NULL. */
static far_slot *next_far(far_slot **slots, size_t count, uint64_t low, uint64_t high, size_t *at)
{
    for (; *at < count; (*at)++) {
        uint64_t id = slots[*at]->id_plus_1 - 1;

        if (id >= low && id < high)
            return slots[*at];
    }
    return NULL;
}

/*
 * Merges the two sorted lists of a range, so that where an id is kept, which depends on memory, does not show
 * in its number. Ids of the arrays are smaller than those of the hash table, so they go first where hits are
 * equal.
 */
static void number_merged(pace__idmap *map, const dense_ids *dense, const uint64_t *sorted, far_slot **slots,
                          size_t far_count, uint64_t low, uint64_t high)
{
    size_t at = 0, far_at = 0;
    far_slot *slot = next_far(slots, far_count, low, high, &far_at);

    while (at < dense->count || slot) {
        if (at < dense->count && (!slot || ~(uint32_t)(sorted[at] >> 32) >= slot->hits)) {
            uint32_t index = (uint32_t)sorted[at++];

            dense->values[index] = map->count;
            map->original[map->count++] = dense->ids[index];
            continue;
        }
        slot->number = map->count;
        map->original[map->count++] = slot->id_plus_1 - 1;
        far_at++;
        slot = next_far(slots, far_count, low, high, &far_at);
    }
}

static size_t collect_far(pace__idmap *map, far_slot **slots)
{
    size_t count = 0;

    for (int i = 0; i < SHARDS; i++) {
        for (size_t s = 0; s < map->shards[i].capacity; s++) {
            if (map->shards[i].slots[s].id_plus_1)
                slots[count++] = &map->shards[i].slots[s];
        }
    }
    qsort(slots, count, sizeof *slots, by_hits_then_id);
    return count;
}

static size_t count_far(const pace__idmap *map)
{
    size_t count = 0;

    for (int i = 0; i < SHARDS; i++)
        count += map->shards[i].used;
    return count;
}

static pace_status alloc_original(pace__idmap *map, size_t count)
{
    map->original_bytes = count * sizeof *map->original;
    map->original = pace__pages_alloc(map->original_bytes);
    return map->original ? PACE_OK
                         : pace_fail(map->log, PACE_FAILED, "out of memory: the map of %zu ids", count);
}

pace_status pace__idmap_number(pace__idmap *map, const uint64_t *range_start, size_t ranges)
{
    static const uint64_t everything[] = {0, UINT64_MAX};
    pace_status status = rank_counts(map);
    size_t far_count = count_far(map), total = map->ranks.members + far_count;

    if (status)
        return status;
    release_counts(map);
    if (ranges == 0) {
        range_start = everything;
        ranges = 1;
    }
    if (total >= UINT32_MAX)
        return pace_fail(map->log, PACE_FAILED,
                         "%zu different ids occur; at most %u are possible: use a smaller --features", total,
                         UINT32_MAX - 1);
    status = alloc_original(map, total);
    if (status)
        return status;
    far_slot **slots = malloc((far_count + 1) * sizeof *slots);
    dense_ids dense;
    size_t bytes = open_dense(map, range_start, ranges, &dense);

    if (!slots || !dense.keys)
        status = pace_fail(map->log, PACE_FAILED, "out of memory: %zu ids to sort by frequency", total);
    else
        collect_far(map, slots);
    for (size_t i = 0; i < ranges && !status; i++) {
        collect_dense(map, range_start[i], range_start[i + 1], &dense);
        number_merged(map, &dense, order_dense(&dense), slots, far_count, range_start[i], range_start[i + 1]);
    }
    pace__pages_free(dense.keys, bytes);
    free(slots);
    if (!status)
        finish_ranks(map);
    return status;
}

pace_status pace__idmap_adopt(pace__idmap *map, const uint64_t *original, uint32_t count)
{
    pace_status status = alloc_original(map, count);

    if (status)
        return status;
    if (count > 0)
        memcpy(map->original, original, (size_t)count * sizeof *original);
    map->count = count;
    for (uint32_t number = 0; number < count; number++) {
        if (original[number] < map->dense)
            map->seen[original[number] / 64] |= UINT64_C(1) << (original[number] % 64);
    }
    status = rank_ids(map);
    if (status)
        return status;
    kernels()->number(&map->ranks, original, count);
    for (uint32_t number = 0; number < count && !status; number++) {
        if (original[number] >= map->dense)
            status = put_far(map, original[number], 0, number);
    }
    if (!status)
        finish_ranks(map);
    return status;
}

uint32_t pace__idmap_count(const pace__idmap *map)
{
    return map->count;
}

const uint64_t *pace__idmap_original(const pace__idmap *map)
{
    return map->original;
}

static uint32_t find_far(const pace__idmap *map, uint64_t id)
{
    const shard *part = shard_of(map, id);
    const far_slot *slot = part->capacity ? probe(part, id) : NULL;

    return slot && slot->id_plus_1 ? slot->number : map->count;
}

size_t pace__idmap_find(const pace__idmap *map, const uint64_t *ids, size_t count, uint32_t *numbers)
{
    size_t unknown = kernels()->find(&map->ranks, ids, count, numbers);

    for (size_t i = 0; map->far_slots > 0 && i < count; i++) {
        if (ids[i] < map->dense)
            continue;
        numbers[i] = find_far(map, ids[i]);
        unknown -= numbers[i] != map->count;
    }
    return unknown;
}

#include "prep/reviews/words_internal.h"

#include "base/memory.h"
#include "files/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A record of the longest word. */
#define RECORD_MAX (sizeof(pace__record) + PACE__TOKEN_BYTES_MAX + PACE__ARENA_UNIT)
/* In front is a record without a word, for slots that have none. */
#define ARENA_BEGIN (sizeof(pace__record) + PACE__WORD_SHORT)
/* Reading records whole overruns. */
#define ARENA_SLACK      ((size_t)2 * PACE__TOKEN_BYTES_MAX)
#define TABLE_BITS_MIN   10
#define TABLE_BITS_MAX   32
#define TABLE_BITS_FIRST 15
/* Words whose memory is fetched at the same time. */
#define BLOCK 64

char *pace__words_path(const char *directory, const char *name, uint32_t generation)
{
    return pace__format("%s/%s-%u", directory, name, generation);
}

static pace__slot *slot_of(const pace__word_counter *self, uint64_t hash)
{
    return &self->table[hash >> (64 - self->bits)];
}

static pace__slot *next_slot(const pace__word_counter *self, const pace__slot *from)
{
    return &self->table[((size_t)(from - self->table) + 1) & (((size_t)1 << self->bits) - 1)];
}

/* Is it the word of these first bytes? Zeros behind it are compared as well; one of more than them is none (PACE__TOKEN_LONG). */
static inline bool begins_with(const pace__record *have, uint64_t first, uint64_t second)
{
    uint64_t own[2];

    memcpy(own, have->text, sizeof own);
    return ((own[0] ^ first) | (own[1] ^ second)) == 0;
}

static bool is_word(const pace__record *have, const char *text, uint32_t size)
{
    return memcmp(have->text, text, size) == 0 && !have->text[size];
}

/* --- the table --- */

static void put_slot(const pace__word_counter *self, uint64_t hash, size_t unit)
{
    pace__slot *to = slot_of(self, hash);

    while (to->at)
        to = next_slot(self, to);
    *to = (pace__slot){(uint32_t)hash, (uint32_t)unit};
}

/* Units of the record of a word. */
static size_t record_units(size_t size)
{
    return (sizeof(pace__record) + (size < PACE__WORD_SHORT
                                        ? PACE__WORD_SHORT
                                        : size / PACE__ARENA_UNIT * PACE__ARENA_UNIT + PACE__ARENA_UNIT)) /
           PACE__ARENA_UNIT;
}

/* Fills the table, which has room, with all words of the arena. */
static void fill_table(pace__word_counter *self)
{
    memset(self->table, 0, sizeof *self->table << self->bits);
    for (size_t unit = ARENA_BEGIN / PACE__ARENA_UNIT; unit * PACE__ARENA_UNIT < self->used;) {
        const pace__record *each = pace__record_at(self, unit);
        size_t size = strlen(each->text);

        put_slot(self, pace__token_hash(each->text, size), unit);
        unit += record_units(size);
    }
}

static uint64_t words_in_table(const pace__word_counter *self)
{
    return (uint64_t)self->distinct + self->stop_count;
}

static pace__record *insert(pace__word_counter *self, uint64_t hash, const char *text, uint32_t size,
                            uint32_t id)
{
    size_t unit = self->used / PACE__ARENA_UNIT, units = record_units(size);
    pace__record *made = pace__record_at(self, unit);

    assert(self->used + units * PACE__ARENA_UNIT <= self->arena_bytes);
    *made = (pace__record){.count = 0, .id = id};
    memset(made->text, 0, units * PACE__ARENA_UNIT - sizeof *made);
    memcpy(made->text, text, size);
    self->used += units * PACE__ARENA_UNIT;
    if (id == PACE__RECORD_STOP)
        self->stop_count++;
    else
        self->distinct++;
    /* At most half full. */
    if (words_in_table(self) * 2 <= (uint64_t)1 << self->bits) {
        put_slot(self, hash, unit);
    } else {
        self->bits++;
        assert(self->bits <= self->bits_max);
        fill_table(self);
    }
    return made;
}

/* NULL if it is not there. */
static pace__record *find(const pace__word_counter *self, uint64_t hash, const char *text, uint32_t size)
{
    for (const pace__slot *each = slot_of(self, hash); each->at; each = next_slot(self, each)) {
        if (each->tag == (uint32_t)hash && is_word(pace__record_at(self, each->at), text, size))
            return pace__record_at(self, each->at);
    }
    return NULL;
}

/* Out of the way of the loop that hardly ever needs it. */
static __attribute__((noinline)) pace__record *find_or_insert(pace__word_counter *self, uint64_t hash,
                                                              const char *text, uint32_t size)
{
    pace__record *found = find(self, hash, text, size);

    return found ? found : insert(self, hash, text, size, self->distinct);
}

/* --- making it --- */

/* Slots behind the last one may be looked at. */
static size_t table_bytes(unsigned bits)
{
    return (((size_t)1 << bits) + PACE__SLOTS_BEHIND) * sizeof(pace__slot);
}

/* Memory for so many words of so many bytes; nothing of it is used yet. */
static pace_status allocate(pace__word_counter *self, unsigned bits_max, size_t arena_bytes)
{
    pace__slot *table = pace__pages_alloc(table_bytes(bits_max));
    char *arena = pace__pages_alloc(arena_bytes + ARENA_SLACK);

    if (!table || !arena) {
        pace__pages_free(table, table_bytes(bits_max));
        pace__pages_free(arena, arena_bytes + ARENA_SLACK);
        return pace_fail(self->log, PACE_FAILED, "out of memory: %zu bytes to count words",
                         table_bytes(bits_max) + arena_bytes);
    }
    if (self->arena)
        memcpy(arena, self->arena, self->used);
    if (self->table)
        pace__pages_free(self->table, table_bytes(self->bits_max));
    if (self->arena)
        pace__pages_free(self->arena, self->arena_bytes + ARENA_SLACK);
    self->table = table;
    self->bits_max = bits_max;
    self->arena = arena;
    self->arena_bytes = arena_bytes;
    return PACE_OK;
}

/* Half of the memory or less is for the table: words of 8 bytes then fill both alike. */
static pace_status allocate_planned(pace__word_counter *self)
{
    unsigned bits = TABLE_BITS_MIN;

    while (bits < TABLE_BITS_MAX && sizeof(pace__slot) << (bits + 1) <= self->memory / 2)
        bits++;
    size_t rest = self->memory - (sizeof(pace__slot) << bits), most = (size_t)UINT32_MAX * PACE__ARENA_UNIT;

    return allocate(self, bits, (rest < most ? rest : most) - ARENA_SLACK);
}

static pace_status add_stops(pace__word_counter *self, const pace__word_counter_plan *plan)
{
    for (uint32_t i = 0; i < plan->stop_count; i++) {
        char text[2 * PACE__TOKEN_BYTES_MAX] = {0};
        uint32_t size = plan->stops[i].size;

        assert(size >= 1 && size <= PACE__TOKEN_BYTES_MAX);
        if (self->used + RECORD_MAX > self->arena_bytes / 2 ||
            (words_in_table(self) + 1) * 4 > (uint64_t)1 << self->bits_max)
            return pace_fail(self->log, PACE_USAGE, "%u stop words do not fit into the memory for words",
                             plan->stop_count);
        memcpy(text, plan->stops[i].text, size);
        uint64_t hash = pace__token_hash(text, size);

        if (!find(self, hash, text, size))
            insert(self, hash, text, size, PACE__RECORD_STOP);
    }
    self->stop_end = self->used;
    return PACE_OK;
}

pace_status pace__word_counter_create(const pace__word_counter_plan *plan, const pace_log *log,
                                      pace__word_counter **counter)
{
    pace__word_counter *self = calloc(1, sizeof *self);

    assert(plan->memory >= PACE__WORDS_MEMORY_MIN);
    if (self) {
        self->directory = strdup(plan->directory);
        self->name = strdup(plan->name);
    }
    if (!self || !self->directory || !self->name) {
        pace__word_counter_free(self);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    self->log = log;
    self->kernels = pace__words_of(pace_kernels_in_use());
    self->memory = plan->memory;
    pace_status status = allocate_planned(self);

    if (!status) {
        self->bits = TABLE_BITS_FIRST < self->bits_max ? TABLE_BITS_FIRST : self->bits_max;
        self->used = ARENA_BEGIN;
        fill_table(self); /* touches its pages: fetching from others ahead is slow, and in vain */
        status = add_stops(self, plan);
    }
    if (status)
        pace__word_counter_free(self);
    else
        *counter = self;
    return status;
}

static void remove_files(const pace__word_counter *self)
{
    for (uint32_t i = 0; i < self->stats.generations; i++) {
        char *path = pace__words_path(self->directory, self->name, i);

        if (path)
            unlink(path);
        free(path);
    }
}

void pace__word_counter_free(pace__word_counter *counter)
{
    if (!counter)
        return;
    if (counter->directory && counter->name)
        remove_files(counter);
    if (counter->table)
        pace__pages_free(counter->table, table_bytes(counter->bits_max));
    if (counter->arena)
        pace__pages_free(counter->arena, counter->arena_bytes + ARENA_SLACK);
    free(counter->directory);
    free(counter->name);
    free(counter);
}

/* --- counting --- */

static size_t block_end(const pace__tokens *tokens, size_t first)
{
    return first + BLOCK < tokens->count ? first + BLOCK : tokens->count;
}

static void fetch_slots(const pace__word_counter *self, const pace__tokens *tokens, size_t first)
{
    size_t end = block_end(tokens, first);
    unsigned shift = 64 - self->bits;
    const pace__slot *table = self->table;

    for (size_t i = first; i < end; i++)
        __builtin_prefetch(&table[tokens->hash[i] >> shift]);
}

/* pace__words_kernels.find. By masks, since whose word a slot has can hardly be foreseen, and GCC makes branches of `?:`. */
static void find_plain(const pace__word_counter *self, const uint64_t *hashes, size_t count, uint32_t *found)
{
    unsigned shift = 64 - self->bits;
    const pace__slot *table = self->table;
    const char *arena = self->arena;

    for (size_t i = 0; i < count; i++) {
        const pace__slot *home = &table[hashes[i] >> shift];
        uint32_t first_fits = -(uint32_t)(home[0].tag == (uint32_t)hashes[i]);
        uint32_t second_fits = -(uint32_t)(home[1].tag == (uint32_t)hashes[i]);

        found[i] = (home[0].at & first_fits) | (home[1].at & second_fits & ~first_fits);
        __builtin_prefetch(arena + (size_t)found[i] * PACE__ARENA_UNIT, 1);
    }
}

const pace__words_kernels pace__words_plain = {.find = find_plain};

/* Where the words of a block are, a block ahead: records stay where they are until the generation ends. */
static void fetch_records(const pace__word_counter *self, const pace__tokens *tokens, size_t first,
                          uint32_t *found)
{
    if (first < tokens->count)
        self->kernels->find(self, tokens->hash + first, block_end(tokens, first) - first, found);
}

/* `found` says where the words are; what is not there is looked for in peace. */
static inline size_t add_block(pace__word_counter *self, const pace__tokens *tokens, size_t first,
                               const uint32_t *found, uint32_t *ids)
{
    char *arena = self->arena;
    size_t end = block_end(tokens, first), kept = 0;

    for (size_t i = first; i < end; i++) {
        pace__record *record = (pace__record *)(arena + (size_t)found[i - first] * PACE__ARENA_UNIT);

        if (__builtin_expect(!begins_with(record, tokens->first[i], tokens->second[i]), 0))
            record = find_or_insert(self, tokens->hash[i], tokens->text + tokens->span[i].begin,
                                    pace__token_size(tokens, i));
        record->count++;
        ids[kept] = record->id;
        kept += !(record->id & PACE__RECORD_STOP);
    }
    return kept;
}

static bool has_room(const pace__word_counter *self, size_t words)
{
    return words_in_table(self) + words <= ((uint64_t)1 << self->bits_max) / 2 &&
           words <= (self->arena_bytes - self->used) / RECORD_MAX &&
           words <= UINT32_MAX - self->in_generation && words < PACE__RECORD_STOP - self->distinct;
}

size_t pace__word_counter_add(pace__word_counter *counter, const pace__tokens *tokens, uint32_t *ids)
{
    uint32_t found[2][BLOCK];
    size_t kept = 0;

    assert(!counter->finished && has_room(counter, tokens->count));
    fetch_slots(counter, tokens, 0);
    fetch_slots(counter, tokens, BLOCK);
    fetch_records(counter, tokens, 0, found[0]);
    for (size_t first = 0; first < tokens->count; first += BLOCK) {
        size_t turn = first / BLOCK % 2;

        fetch_slots(counter, tokens, first + 2 * BLOCK);
        fetch_records(counter, tokens, first + BLOCK, found[!turn]);
        kept += add_block(counter, tokens, first, found[turn], ids + kept);
    }
    counter->in_generation += tokens->count;
    counter->stats.words += tokens->count;
    counter->stats.stopped += tokens->count - kept;
    return kept;
}

/* --- generations --- */

/* Nothing but stop words is left, and no more memory than planned. */
static pace_status begin_generation(pace__word_counter *self)
{
    self->used = self->stop_end;
    self->distinct = 0;
    self->in_generation = 0;
    pace_status status = self->oversized ? allocate_planned(self) : PACE_OK;

    if (status)
        return status;
    self->oversized = false;
    self->bits = self->bits < self->bits_max ? self->bits : self->bits_max;
    fill_table(self);
    return PACE_OK;
}

/* For a text of more words than the memory holds. What they do not need, because they occur again, is only
 * reserved. */
static pace_status begin_oversized(pace__word_counter *self, size_t words)
{
    unsigned bits = self->bits_max;

    while (((uint64_t)1 << bits) / 2 < words_in_table(self) + words)
        bits++;
    pace_status status = allocate(self, bits, self->used + (words + 1) * RECORD_MAX);

    self->oversized = true;
    if (!status)
        fill_table(self);
    return status;
}

pace_status pace__word_counter_make_room(pace__word_counter *counter, size_t words)
{
    assert(!counter->finished && words < UINT32_MAX / RECORD_MAX);
    if (has_room(counter, words) && !counter->oversized)
        return PACE_OK;
    if (counter->in_generation > 0) {
        pace_status status = pace__words_spill(counter);

        if (!status)
            status = begin_generation(counter);
        if (status)
            return status;
    }
    return has_room(counter, words) ? PACE_OK : begin_oversized(counter, words);
}

uint32_t pace__word_counter_generation(const pace__word_counter *counter)
{
    return counter->stats.generations - counter->finished;
}

pace_status pace__word_counter_finish(pace__word_counter *counter)
{
    pace_status status = counter->finished ? PACE_OK : pace__words_spill(counter);

    if (!status)
        counter->finished = true;
    return status;
}

pace__word_stats pace__word_counter_stats(const pace__word_counter *counter)
{
    pace__word_stats stats = counter->stats;

    if (!counter->finished) {
        stats.generations++;
        stats.distinct += counter->distinct;
    }
    return stats;
}

char **pace__word_counter_paths(const pace__word_counter *counter)
{
    uint32_t count = pace__word_counter_stats(counter).generations;
    char **paths = calloc(count, sizeof *paths);
    bool whole = paths != NULL;

    for (uint32_t i = 0; i < count && whole; i++)
        whole = (paths[i] = pace__words_path(counter->directory, counter->name, i)) != NULL;
    for (uint32_t i = 0; i < count && paths && !whole; i++)
        free(paths[i]);
    if (whole)
        return paths;
    free(paths);
    return NULL;
}

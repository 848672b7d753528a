/* Pass 2: the spill in key order, renumbered, to its places in the parts. */
#include "prep/clicks/clicks.h"
#include "prep/common.h"
#include "threads/thread.h"

#include <stdlib.h>
#include <string.h>

/* Rows gathered before they are written. */
#define OUT_ROWS 4096
/* Criteo rows between asking the id table for its entries and using them. */
#define WAITING_ROWS 16
#define OUT_ENTRIES  (OUT_ROWS * PACE__CRITEO_COLUMNS)

/* Where a row of a stream goes. */
typedef struct destination {
    int set;
    uint32_t part;
    uint64_t row;       /* in the part */
    uint64_t rows_left; /* rows of the stream from this one on that go to the same part of the same set */
} destination;

static destination destination_of(const pace__clicks *job, int stream, uint64_t rank)
{
    bool test = stream == PACE__TESTS || rank < job->held_out;
    uint64_t row = stream == PACE__INPUTS && !test ? rank - job->held_out : rank;
    uint64_t rows = job->info.rows[test ? PACE__TEST : PACE__TRAIN];
    uint32_t parts = job->info.parts, part = pace__part_of(rows, parts, row);
    uint64_t begin = pace__part_begin(rows, parts, part);

    return (destination){test ? PACE__TEST : PACE__TRAIN, part, row - begin,
                         pace__part_begin(rows, parts, part + 1) - row};
}

/* One thread's way through one bucket. */
typedef struct writing {
    pace__clicks *job;
    int stream;
    uint64_t rank;        /* of the next row in its stream */
    uint64_t entry;       /* of its first entry in its stream */
    destination to;       /* of the first gathered row */
    uint64_t first_entry; /* of the first gathered row, in its part */
    size_t rows, entries; /* gathered */
    size_t entries_max;
    uint64_t positives, unseen;
    uint8_t *label;
    uint64_t *start;
    uint32_t *ids;
    float *values;
    uint64_t *packed; /* scratch */
    size_t waiting;   /* the last so many gathered rows still have to get their ids */
    uint64_t waiting_ids[WAITING_ROWS * PACE__CRITEO_COLUMNS];
    pace__spill_scratch scratch;
} writing;

/* Gives the waiting rows their compact ids. */
static void settle_waiting(writing *self)
{
    size_t entries = self->waiting * PACE__CRITEO_COLUMNS;

    self->unseen +=
        pace__idmap_find(self->job->idmap, self->waiting_ids, entries, self->ids + self->entries - entries);
    self->waiting = 0;
}

static pace_status write_gathered(writing *self)
{
    const pace__clicks *job = self->job;
    const pace__part *part = &job->parts[self->to.part];
    const pace__part_set *set = &part->sets[self->to.set];

    if (self->rows == 0)
        return PACE_OK;
    settle_waiting(self);
    pace_status status =
        pace__part_put(part, set->label_at, self->to.row, 1, self->label, self->rows, job->log);

    if (!status && job->info.columns == 0)
        status = pace__part_put(part, set->start_at, self->to.row, sizeof *self->start, self->start,
                                self->rows, job->log);
    if (!status)
        status = pace__part_put(part, set->ids_at, self->first_entry, sizeof *self->ids, self->ids,
                                self->entries, job->log);
    if (!status && job->info.has_values)
        status = pace__part_put(part, set->values_at, self->first_entry, sizeof *self->values, self->values,
                                self->entries, job->log);
    self->rows = self->entries = 0;
    return status;
}

/* The first gathered row decides where the gathering goes. */
static void begin_gathering(writing *self)
{
    const pace__clicks *job = self->job;

    self->to = destination_of(job, self->stream, self->rank);
    self->first_entry =
        job->info.columns
            ? self->to.row * job->info.columns
            : self->entry - job->part_entry[self->stream][self->to.set * job->info.parts + self->to.part];
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/*
 * Entries of numbered rows are kept in the order of their compact ids: neighbours in memory when they are
 * used. Id and value are packed into one number, so that equal ids (all of them "unseen") have an order too.
 */
static void order_entries(uint32_t *ids, float *values, size_t count, uint64_t *packed)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        packed[i] = (uint64_t)ids[i] << 32 | bits;
    }
    if (count > 64) {
        qsort(packed, count, sizeof *packed, by_value);
    } else {
        for (size_t i = 1; i < count; i++) {
            uint64_t moved = packed[i];
            size_t to = i;

            for (; to > 0 && packed[to - 1] > moved; to--)
                packed[to] = packed[to - 1];
            packed[to] = moved;
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)packed[i];

        ids[i] = (uint32_t)(packed[i] >> 32);
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static pace_status reserve_entries(writing *self, size_t count)
{
    if (self->entries + count <= self->entries_max)
        return PACE_OK;
    size_t larger = 2 * (self->entries + count);
    uint32_t *ids = realloc(self->ids, larger * sizeof *ids);

    self->ids = ids ? ids : self->ids;
    float *values = realloc(self->values, larger * sizeof *values);

    self->values = values ? values : self->values;
    uint64_t *packed = realloc(self->packed, larger * sizeof *packed);

    self->packed = packed ? packed : self->packed;
    if (!ids || !values || !packed)
        return pace_fail(self->job->log, PACE_FAILED, "out of memory");
    self->entries_max = larger;
    return PACE_OK;
}

/* Unpacks a Criteo row; its ids follow when the table has them at hand. Returns where its values lie. */
static const char *take_criteo(writing *self, const char *from)
{
    const pace__clicks *job = self->job;
    uint64_t *ids = self->waiting_ids + self->waiting * PACE__CRITEO_COLUMNS;

    for (int column = 0; column < PACE__CRITEO_COLUMNS; column++) {
        uint64_t place;

        memcpy(&place, from + job->packing.offset[column],
               sizeof place); /* overruns into the next column, or the slack */
        ids[column] = job->encoding.column_base[column] + (place & job->packing.mask[column]);
    }
    for (uint32_t i = 0; i < job->packing.wide_count; i++)
        pace__idmap_prefetch(job->idmap, ids[job->packing.wide[i]]);
    self->waiting++;
    return from + job->packing.bytes;
}

static const char *take_numbered(writing *self, const char *from, size_t count)
{
    memcpy(self->packed, from, count * sizeof(uint64_t));
    self->unseen += pace__idmap_find(self->job->idmap, self->packed, count, self->ids + self->entries);
    return from + count * sizeof(uint64_t);
}

static pace_status gather_row(void *arg, const void *record, size_t size)
{
    writing *self = arg;
    const pace__clicks *job = self->job;
    bool criteo = job->encoding.kind == PACE__CRITEO;
    size_t count = pace__spilled_entries(job, size);
    const char *label = record;
    pace_status status = PACE_OK;

    if (self->rows == OUT_ROWS || self->entries + count > OUT_ENTRIES ||
        (self->rows && self->rows == self->to.rows_left))
        status = write_gathered(self);
    if (!status)
        status = reserve_entries(self, count);
    if (status)
        return status;
    if (self->rows == 0)
        begin_gathering(self);
    const char *values = criteo ? take_criteo(self, label + 1) : take_numbered(self, label + 1, count);

    if (job->has_values)
        memcpy(self->values + self->entries, values, count * sizeof(float));
    if (!criteo)
        order_entries(self->ids + self->entries, self->values + self->entries, count, self->packed);
    self->label[self->rows] = (uint8_t)*label;
    self->start[self->rows] = self->first_entry + self->entries;
    self->positives += *label && self->to.set == PACE__TRAIN;
    self->rows++;
    self->entries += count;
    self->rank++;
    self->entry += count;
    if (self->waiting == WAITING_ROWS)
        settle_waiting(self);
    return PACE_OK;
}

/* --- buckets over threads --- */

typedef struct writers {
    pace__clicks *job;
    atomic_uint next; /* bucket of the streams, one behind the other */
    atomic_uint_fast64_t rows_done;
} writers;

static pace_status write_bucket(writing *self, uint32_t bucket)
{
    pace__spill *spill = self->job->spills[self->stream];

    self->rank = self->entry = 0;
    for (uint32_t i = 0; i < bucket; i++) {
        self->rank += pace__spill_rows(spill, i);
        self->entry += pace__spill_weight(spill, i);
    }
    pace_status status = pace__spill_visit(spill, bucket, &self->scratch, gather_row, self);

    if (!status)
        status = write_gathered(self);
    pace__spill_drop(spill, bucket);
    return status;
}

static pace_status write_thread(void *arg, int thread)
{
    writers *shared = arg;
    pace__clicks *job = shared->job;
    writing self = {.job = job, .entries_max = OUT_ENTRIES};
    pace_status status = PACE_OK;

    (void)thread;
    self.label = malloc(OUT_ROWS);
    self.start = malloc(OUT_ROWS * sizeof *self.start);
    self.ids = malloc(OUT_ENTRIES * sizeof *self.ids);
    self.values = calloc(OUT_ENTRIES, sizeof *self.values);
    self.packed = malloc(OUT_ENTRIES * sizeof *self.packed);
    if (!self.label || !self.start || !self.ids || !self.values || !self.packed)
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    while (!status && !job->failed) {
        unsigned next = atomic_fetch_add(&shared->next, 1);

        if (next >= PACE__STREAMS * PACE__SPILL_BUCKETS)
            break;
        self.stream = (int)(next / PACE__SPILL_BUCKETS);
        if (!job->spills[self.stream])
            continue;
        if (job->config->common.stop && *job->config->common.stop) {
            status = PACE_INTERRUPTED;
            break;
        }
        uint32_t bucket = next % PACE__SPILL_BUCKETS;
        uint64_t rows = pace__spill_rows(job->spills[self.stream], bucket);

        status = write_bucket(&self, bucket);
        pace_field fields[] = {PACE_TEXT("phase", "shuffle and write"),
                               PACE_INT("done", atomic_fetch_add(&shared->rows_done, rows) + rows),
                               PACE_INT("total", job->info.rows[PACE__TRAIN] + job->info.rows[PACE__TEST]),
                               PACE_TEXT("unit", "rows")};

        pace_registry_emit(job->registry, "progress", fields, 4);
    }
    if (status)
        job->failed = true;
    job->positives += self.positives;
    job->unseen += self.unseen;
    pace__spill_scratch_release(&self.scratch);
    free(self.packed);
    free(self.values);
    free(self.ids);
    free(self.start);
    free(self.label);
    return status;
}

/* --- parts --- */

/* Counts entries up to a row inside a bucket. */
typedef struct counting {
    const pace__clicks *job;
    uint64_t rows_left, entries;
} counting;

static pace_status count_row(void *arg, const void *record, size_t size)
{
    counting *self = arg;

    (void)record;
    if (self->rows_left > 0) {
        self->rows_left--;
        self->entries += pace__spilled_entries(self->job, size);
    }
    return PACE_OK;
}

/* How many entries the first `rank` rows of a stream have. */
static pace_status entries_before(const pace__clicks *job, int stream, uint64_t rank, uint64_t *entries)
{
    pace__spill *spill = job->spills[stream];
    uint64_t first = 0, sum = 0;
    uint32_t bucket = 0;

    for (; bucket < PACE__SPILL_BUCKETS && first + pace__spill_rows(spill, bucket) <= rank; bucket++) {
        first += pace__spill_rows(spill, bucket);
        sum += pace__spill_weight(spill, bucket);
    }
    counting count = {job, rank - first, 0};
    pace__spill_scratch scratch = {0};
    pace_status status =
        count.rows_left ? pace__spill_visit(spill, bucket, &scratch, count_row, &count) : PACE_OK;

    pace__spill_scratch_release(&scratch);

    if (!status)
        *entries = sum + count.entries;
    return status;
}

/*
 * Rows of different lengths: the entry at which each part of each set begins in its stream,
 * part_entry[stream][set * parts + part], and from these how many entries each part has.
 */
static pace_status measure_parts(pace__clicks *job)
{
    uint32_t parts = job->info.parts;
    pace_status status = PACE_OK;

    for (int stream = 0; stream < PACE__STREAMS; stream++) {
        job->part_entry[stream] = calloc((size_t)PACE__SETS * parts, sizeof **job->part_entry);
        if (!job->part_entry[stream])
            return pace_fail(job->log, PACE_FAILED, "out of memory");
    }
    for (int set = 0; set < PACE__SETS; set++) {
        int stream = set == PACE__TEST && job->spills[PACE__TESTS] ? PACE__TESTS : PACE__INPUTS;
        uint64_t shift = set == PACE__TRAIN ? job->held_out : 0, begin = 0, end = 0;

        if (job->info.rows[set] == 0)
            continue;
        status = entries_before(job, stream, shift, &begin);
        for (uint32_t part = 0; part < parts && !status; part++, begin = end) {
            status = entries_before(job, stream,
                                    shift + pace__part_begin(job->info.rows[set], parts, part + 1), &end);
            if (status)
                break;
            job->part_entry[stream][set * parts + part] = begin;
            job->parts[part].sets[set].entries = end - begin;
            job->info.entries[set] += end - begin;
        }
    }
    return status;
}

/* The last element of indptr has no row of its own. */
static pace_status close_starts(const pace__clicks *job, const pace__part *part)
{
    pace_status status = PACE_OK;

    for (int set = 0; set < PACE__SETS && !status; set++) {
        const pace__part_set *each = &part->sets[set];

        if (each->start_at)
            status = pace__part_put(part, each->start_at, each->rows, sizeof each->entries, &each->entries, 1,
                                    job->log);
    }
    return status;
}

static pace_status create_parts(pace__clicks *job)
{
    uint32_t parts = job->info.parts;
    pace_status status = PACE_OK;

    for (uint32_t part = 0; part < parts; part++) {
        for (int set = 0; set < PACE__SETS; set++) {
            uint64_t rows = job->info.rows[set];

            job->parts[part].sets[set].rows =
                pace__part_begin(rows, parts, part + 1) - pace__part_begin(rows, parts, part);
            job->parts[part].sets[set].entries = job->parts[part].sets[set].rows * job->info.columns;
        }
    }
    if (job->info.columns == 0)
        status = measure_parts(job);
    else
        for (int set = 0; set < PACE__SETS; set++)
            job->info.entries[set] = job->info.rows[set] * job->info.columns;
    for (uint32_t part = 0; part < parts && !status; part++) {
        status = pace__part_create(job->staging.directory, part, &job->info, &job->parts[part], job->log);
        if (!status && job->info.columns == 0)
            status = close_starts(job, &job->parts[part]);
    }
    return status;
}

pace_status pace__clicks_write(pace__clicks *job)
{
    writers shared = {.job = job};
    pace_status status = create_parts(job);

    if (!status)
        status = pace__team(job->threads, write_thread, &shared, job->log);
    for (uint32_t part = 0; part < job->info.parts && !status; part++)
        status = pace__part_sync(&job->parts[part], job->log);
    if (!status)
        status = pace__ids_write(job->staging.directory, pace__idmap_original(job->idmap),
                                 pace__idmap_count(job->idmap), job->log);
    if (!status)
        status = pace__store_seal(job->staging.directory, job->log);
    return status;
}

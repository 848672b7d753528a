/* Pass 2: the spill in key order, renumbered, to its places in the parts. */
#include "data/store/sums.h"
#include "files/open.h"
#include "prep/clicks/clicks.h"
#include "prep/clicks/memo.h"
#include "prep/common.h"
#include "threads/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows gathered before they are written. */
#define OUT_ROWS    4096
#define OUT_ENTRIES (OUT_ROWS * PACE__CRITEO_COLUMNS)

/* Where a row of a stream goes. */
typedef struct destination {
    int set;
    uint32_t part;
    uint64_t row;       /* in the part */
    uint64_t rows_left; /* rows of the stream from this one on that go to the same part of the same set */
} destination;

static destination destination_of(const pace__clicks *job, int stream, uint64_t place)
{
    bool inputs = stream == PACE__INPUTS;
    int set = inputs ? pace__prep_set_of(job->divided, place) : PACE__TEST;
    uint64_t row = inputs ? place - pace__prep_rows_before(job->divided, set) : place;
    uint64_t rows = job->info.rows[set];
    uint32_t parts = job->info.parts, part = pace__part_of(rows, parts, row);
    uint64_t begin = pace__part_begin(rows, parts, part);

    return (destination){set, part, row - begin, pace__part_begin(rows, parts, part + 1) - row};
}

/* One thread's way through one bucket. */
typedef struct writing {
    pace__clicks *job;
    int stream;
    uint64_t place;       /* of the next row in its stream */
    uint64_t bucket;      /* place of the bucket's first row */
    uint64_t since;       /* the bucket's first row in the part of the gathered rows */
    uint64_t entry;       /* of its first entry in its stream */
    destination to;       /* of the first gathered row */
    uint64_t first_entry; /* of the first gathered row, in its part */
    size_t rows, entries; /* gathered */
    size_t entries_max;
    uint64_t positives, unseen;
    uint8_t *label;
    uint64_t *start; /* (OUT_ROWS + 1) */
    uint32_t *ids;
    float *values;
    uint64_t *packed; /* scratch */
    pace__memo *memo;
    size_t asked; /* numbers of gathered entries that still have to be asked for */
    pace__spill_scratch scratch;
} writing;

/* Gives all gathered entries their numbers. */
static void settle_numbers(writing *self)
{
    self->unseen += pace__memo_settle(self->memo, self->asked, self->job->idmap, self->ids);
    self->asked = 0;
}

/* Blocks that end among the gathered rows, unless the bucket before has some of their rows. */
static pace_status sum_gathered(const writing *self, const pace__part *part)
{
    pace__written written = {self->to.row, self->rows, self->since};
    pace__into from = {.label = self->label, .ids = self->ids, .values = self->values, .start = self->start};

    self->start[self->rows] = self->first_entry + self->entries;
    return pace__sums_put(&self->job->info, part, self->to.set, &written, &from, self->job->rank.log);
}

static pace_status write_gathered(writing *self)
{
    const pace__clicks *job = self->job;
    const pace__part *part = &job->parts[self->to.part];
    const pace__part_set *set = &part->sets[self->to.set];

    if (self->rows == 0)
        return PACE_OK;
    settle_numbers(self);
    pace_status status =
        pace__part_put(part, set->label_at, self->to.row, 1, self->label, self->rows, job->rank.log);

    if (!status && job->info.columns == 0)
        status = pace__part_put(part, set->start_at, self->to.row, sizeof *self->start, self->start,
                                self->rows, job->rank.log);
    if (!status)
        status = pace__part_put(part, set->ids_at, self->first_entry, sizeof *self->ids, self->ids,
                                self->entries, job->rank.log);
    if (!status && job->info.has_values)
        status = pace__part_put(part, set->values_at, self->first_entry, sizeof *self->values, self->values,
                                self->entries, job->rank.log);
    if (!status)
        status = sum_gathered(self, part);
    self->rows = self->entries = 0;
    return status;
}

/* The first gathered row decides where the gathering goes. */
static void begin_gathering(writing *self)
{
    const pace__clicks *job = self->job;

    self->to = destination_of(job, self->stream, self->place);
    if (self->place == self->bucket || self->to.row == 0)
        self->since = self->to.row;
    self->first_entry = job->info.columns
                            ? self->to.row * job->info.columns
                            : self->entry - pace__clicks_part_entry(job, self->to.set, self->to.part);
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
        return pace_fail(self->job->rank.log, PACE_FAILED, "out of memory");
    self->entries_max = larger;
    return PACE_OK;
}

/* A place overruns into the next column, or the slack. */
static inline uint64_t unpack(const char *from, const pace__packed *column)
{
    uint64_t place;

    memcpy(&place, from + column->offset, sizeof place);
    return place & column->mask;
}

_Static_assert(PACE__COLUMNS_MAX <= PACE__MEMO_ASKED, "a row's ids fit what is asked for at once");

/* Returns where the row's values lie. */
static const char *take_columns(writing *self, const char *from)
{
    const pace__clicks *job = self->job;
    const pace__packing *packing = &job->packing;
    const pace__packed *column = packing->columns, *wide = column + packing->direct_count;
    const pace__packed *end = column + packing->count;
    uint32_t *ids = self->ids;
    const uint32_t *direct = job->direct, none = pace__idmap_count(job->idmap);
    size_t first = self->entries, asked = self->asked, unseen = 0;

    for (; column < wide; column++) {
        uint32_t number = direct[column->direct_at + unpack(from, column)];

        unseen += number == none;
        ids[first + column->index] = number;
    }
    for (; column < end; column++)
        asked = pace__memo_look(self->memo, asked, column->base + unpack(from, column), ids,
                                first + column->index);
    self->unseen += unseen;
    self->asked = asked;
    if (asked > PACE__MEMO_ASKED - packing->count)
        settle_numbers(self);
    return from + packing->bytes;
}

/* The numbers decide the order of a row's entries, so they are not waited for. */
static const char *take_numbered(writing *self, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++, from += sizeof(uint64_t)) {
        uint64_t id;

        memcpy(&id, from, sizeof id);
        self->asked = pace__memo_look(self->memo, self->asked, id, self->ids, self->entries + i);
        if (self->asked == PACE__MEMO_ASKED)
            settle_numbers(self);
    }
    settle_numbers(self);
    return from;
}

static pace_status gather_row(void *arg, const void *record, size_t size)
{
    writing *self = arg;
    const pace__clicks *job = self->job;
    bool columns = job->packing.count > 0;
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
    const char *values = columns ? take_columns(self, label + 1) : take_numbered(self, label + 1, count);

    if (job->has_values)
        memcpy(self->values + self->entries, values, count * sizeof(float));
    if (!columns)
        order_entries(self->ids + self->entries, self->values + self->entries, count, self->packed);
    self->label[self->rows] = (uint8_t)*label;
    self->start[self->rows] = self->first_entry + self->entries;
    self->positives += *label && self->to.set == PACE__TRAIN;
    self->rows++;
    self->entries += count;
    self->place++;
    self->entry += count;
    return PACE_OK;
}

/* --- buckets over processes and threads --- */

typedef struct writers {
    pace__clicks *job;
    uint32_t first, last; /* this process's buckets of each stream: first .. last - 1 */
    atomic_uint next;     /* of them, those of the streams one behind the other */
    atomic_uint_fast64_t rows_done, positives, unseen;
} writers;

static pace_status write_bucket(writing *self, uint32_t bucket)
{
    const pace__spills *spills = &self->job->spills[self->stream];

    self->place = self->entry = 0;
    for (uint32_t i = 0; i < bucket; i++) {
        self->place += pace__spills_rows(spills, i);
        self->entry += pace__spills_weight(spills, i);
    }
    self->bucket = self->place;
    pace_status status = pace__spill_visit_all(spills->all, spills->count, bucket, 0, UINT64_MAX,
                                               &self->scratch, gather_row, self);

    if (!status)
        status = write_gathered(self);
    pace__spills_drop(spills, bucket);
    return status;
}

static void report(writers *shared, uint64_t rows)
{
    const pace__clicks *job = shared->job;
    uint64_t share = (uint64_t)job->prep.ranks; /* the others do as much, more or less */
    uint64_t done = (atomic_fetch_add(&shared->rows_done, rows) + rows) * share;
    uint64_t total = pace__store_rows(&job->info);
    pace_field fields[] = {PACE_TEXT("phase", "shuffle and write"),
                           PACE_INT("done", done < total ? done : total), PACE_INT("total", total),
                           PACE_TEXT("unit", "rows")};

    if (job->rank.number == 0)
        pace_registry_emit(job->prep.registry, "progress", fields, 4);
}

static pace_status open_writing(writing *self)
{
    self->entries_max = OUT_ENTRIES;
    self->label = malloc(OUT_ROWS);
    self->start = malloc((OUT_ROWS + 1) * sizeof *self->start);
    self->ids = malloc(OUT_ENTRIES * sizeof *self->ids);
    self->values = calloc(OUT_ENTRIES, sizeof *self->values);
    self->packed = malloc(OUT_ENTRIES * sizeof *self->packed);
    self->memo = malloc(sizeof *self->memo);
    if (!self->label || !self->start || !self->ids || !self->values || !self->packed || !self->memo)
        return pace_fail(self->job->rank.log, PACE_FAILED, "out of memory");
    pace__memo_clear(self->memo);
    return PACE_OK;
}

static void close_writing(writing *self)
{
    pace__spill_scratch_release(&self->scratch);
    free(self->memo);
    free(self->packed);
    free(self->values);
    free(self->ids);
    free(self->start);
    free(self->label);
}

static pace_status write_thread(void *arg, int thread)
{
    writers *shared = arg;
    pace__clicks *job = shared->job;
    uint32_t buckets = shared->last - shared->first;
    writing self = {.job = job, .scratch.owner = (uint32_t)job->rank.number};
    pace_status status = open_writing(&self);

    while (!status && !(status = pace__prep_look(&job->prep, &job->rank, thread == job->threads - 1))) {
        unsigned next = atomic_fetch_add(&shared->next, 1);

        if (next >= PACE__STREAMS * buckets)
            break;
        self.stream = (int)(next / buckets);
        uint32_t bucket = shared->first + next % buckets;
        uint64_t rows = pace__spills_rows(&job->spills[self.stream], bucket);

        if (rows > 0) {
            status = write_bucket(&self, bucket);
            report(shared, rows);
        }
    }
    if (status)
        pace__prep_give_up(&job->prep, status);
    shared->positives += self.positives;
    shared->unseen += self.unseen;
    close_writing(&self);
    return status;
}

static pace_status write_buckets(pace__clicks *job)
{
    uint64_t ranks = (uint64_t)job->prep.ranks, me = (uint64_t)job->rank.number;
    writers shared = {.job = job,
                      .first = (uint32_t)(PACE__SPILL_BUCKETS * me / ranks),
                      .last = (uint32_t)(PACE__SPILL_BUCKETS * (me + 1) / ranks)};
    pace_status status = pace__team(job->threads, write_thread, &shared, job->rank.log);

    job->counts.rows_written = shared.rows_done;
    job->counts.positives = shared.positives;
    job->counts.unseen = shared.unseen;
    return status;
}

/* --- all of it --- */

/* A part may have rows of several processes: each syncs what it has written before one of them finishes it. */
static pace_status sync_parts(pace__clicks *job)
{
    pace_status status = PACE_OK;

    for (uint32_t part = 0; part < job->info.parts && !status && job->prep.many; part++)
        status = pace__part_sync(&job->parts[part], job->rank.log);
    return status ? status : pace__ranks_meet(job->rank.link);
}

/* Sums the blocks of a part whose rows come from several buckets. */
static pace_status sum_seams(const pace__clicks *job, const pace__part *part, uint32_t index)
{
    pace_status status = PACE_OK;

    for (int stream = 0; stream < PACE__STREAMS; stream++) {
        uint64_t place = 0, rows;

        for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS && !status; bucket++, place += rows) {
            rows = pace__spills_rows(&job->spills[stream], bucket);
            if (rows == 0)
                continue;
            destination to = destination_of(job, stream, place);

            if (to.part == index && to.row > 0)
                status = pace__sums_again(&job->info, part, to.set, to.row, 1, job->rank.log);
        }
    }
    return status;
}

/* Opens the part once more: rows that other machines have written are then sure to be seen. */
static pace_status finish_part(pace__clicks *job, uint32_t index)
{
    pace__part again = job->parts[index];

    pace_status status = pace__open(again.path, PACE__TO_CHANGE, job->rank.log, &again.fd);

    if (status)
        return status;
    status = sum_seams(job, &again, index);
    if (!status)
        status = pace__part_finish(&job->prep, &job->rank, &again, &job->counts.bytes_written);
    close(again.fd);
    return status;
}

static pace_status finish_parts(pace__clicks *job)
{
    uint32_t parts = job->info.parts, ranks = (uint32_t)job->prep.ranks, me = (uint32_t)job->rank.number;
    uint32_t last = (uint32_t)pace__part_begin(parts, ranks, me + 1);
    pace_status status = PACE_OK;

    for (uint32_t part = (uint32_t)pace__part_begin(parts, ranks, me); part < last && !status; part++)
        status = finish_part(job, part);
    return status;
}

/* Places of direct columns have one or two bytes: what a damaged file says in them is still in the table. */
#define DIRECT_SLACK (1 << 16)

/* Asks the id map for all ids of the direct columns, once. */
static pace_status fill_direct(pace__clicks *job)
{
    const pace__packing *packing = &job->packing;
    uint64_t ids[256];

    job->direct = calloc((size_t)packing->direct_entries + DIRECT_SLACK, sizeof *job->direct);
    if (!job->direct)
        return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    for (uint32_t i = 0; i < packing->direct_count; i++) {
        const pace__packed *column = &packing->columns[i];
        uint32_t *to = job->direct + column->direct_at;
        uint64_t end = job->encoding.column_base[column->index + 1];

        for (uint64_t id = column->base; id < end;) {
            size_t count = 0;

            while (count < 256 && id < end)
                ids[count++] = id++;
            pace__idmap_find(job->idmap, ids, count, to);
            to += count;
        }
    }
    return PACE_OK;
}

pace_status pace__clicks_write(pace__clicks *job)
{
    pace_status status = pace__clicks_open_parts(job);

    if (!status)
        status = fill_direct(job);
    if (!status)
        status = write_buckets(job);
    if (!status && job->rank.number == 0)
        status = pace__ids_write(job->prep.directory, pace__idmap_original(job->idmap),
                                 pace__idmap_count(job->idmap), job->rank.log);
    if (!status)
        status = sync_parts(job);
    return status ? status : finish_parts(job);
}

/* Pass 1: parse, note ids, spill. */
#include "base/random.h"
#include "data/formats/sheet_rows.h"
#include "prep/clicks/clicks.h"
#include "prep/common.h"
#include "threads/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Frequencies are taken from one row in SAMPLE. */
#define SAMPLE 16

typedef struct reading {
    pace__clicks *job;
    int stream;
    uint32_t first_file;
    pace__input *input;
    pace__bad_rows bad;
    pace__parser parser;
    pace__parse_fn *parse;
    atomic_uint_fast64_t longest_row, largest_id;
    atomic_bool not_all_ones;
} reading;

/* Distinct for every row of a job, because mixing is a bijection: no ties, whatever the order of arrival. */
static uint64_t row_key(const reading *self, uint32_t file, uint64_t offset)
{
    uint64_t place = (uint64_t)(self->first_file + file) << PACE__OFFSET_BITS | offset;

    return pace__mix64(place ^ pace__mix64((uint64_t)self->job->config->common.seed));
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t value)
{
    uint_fast64_t known = atomic_load_explicit(most, memory_order_relaxed);

    while (value > known && !atomic_compare_exchange_weak(most, &known, value))
        ;
}

typedef struct entry {
    uint64_t id;
    float value;
} entry;

static int by_id(const void *left, const void *right)
{
    const entry *a = left, *b = right;

    return a->id < b->id ? -1 : a->id > b->id;
}

/* Orders a row's entries by id and adds up the values of equal ones. Returns how many are left. */
static size_t merge_entries(uint64_t *ids, float *values, size_t count, entry **scratch, size_t *capacity)
{
    size_t rising = 1;

    while (rising < count && ids[rising] > ids[rising - 1])
        rising++;
    if (rising >= count)
        return count;
    if (count > *capacity) {
        free(*scratch);
        *capacity = 2 * count;
        *scratch = malloc(*capacity * sizeof **scratch);
        if (!*scratch) {
            *capacity = 0;
            return SIZE_MAX;
        }
    }
    entry *entries = *scratch;

    for (size_t i = 0; i < count; i++)
        entries[i] = (entry){ids[i], values[i]};
    qsort(entries, count, sizeof *entries, by_id);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && ids[kept - 1] == entries[i].id) {
            values[kept - 1] += entries[i].value;
            continue;
        }
        ids[kept] = entries[i].id;
        values[kept++] = entries[i].value;
    }
    return kept;
}

/* --- the spilled form --- */

#define DIRECT_IDS_MAX (1 << 14) /* of a column */

static bool is_direct(const pace__encoding *encoding, int column)
{
    return encoding->column_base[column + 1] - encoding->column_base[column] <= DIRECT_IDS_MAX;
}

static void add_column(const pace__encoding *encoding, int column, pace__packing *packing, pace__packed *to)
{
    uint64_t base = encoding->column_base[column], largest = encoding->column_base[column + 1] - base - 1;
    uint32_t bytes = 1;

    while (bytes < 8 && largest >> (8 * bytes))
        bytes++;
    *to = (pace__packed){.base = base,
                         .mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1,
                         .index = (uint32_t)column,
                         .offset = packing->bytes,
                         .direct_at = packing->direct_entries};
    packing->bytes += bytes;
}

pace__packing pace__packing_of(const pace__encoding *encoding)
{
    pace__packing packing = {.count = pace__encoding_entries(encoding)};
    pace__packed *to = packing.columns;
    int count = (int)packing.count;

    for (int column = 0; column < count; column++) {
        if (!is_direct(encoding, column))
            continue;
        add_column(encoding, column, &packing, to++);
        packing.direct_count++;
        packing.direct_entries +=
            (uint32_t)(encoding->column_base[column + 1] - encoding->column_base[column]);
    }
    for (int column = 0; column < count; column++) {
        if (!is_direct(encoding, column))
            add_column(encoding, column, &packing, to++);
    }
    return packing;
}

size_t pace__spilled_entries(const pace__clicks *job, size_t size)
{
    if (job->packing.count)
        return job->packing.count;
    return (size - 1) / (sizeof(uint64_t) + sizeof(float));
}

/* Each place is stored as 8 bytes; the next one, or whatever follows, overwrites what it does not need. */
static inline uint64_t pack_column(const pace__packed *column, const uint64_t *ids, char *to)
{
    uint64_t place = ids[column->index] - column->base;

    memcpy(to + column->offset, &place, sizeof place);
    return place;
}

static void pack(const pace__packing *packing, const uint64_t *ids, char *to)
{
#pragma GCC unroll 13
    for (uint32_t i = 0; i < packing->count; i++)
        pack_column(&packing->columns[i], ids, to);
}

/* What one thread keeps. */
typedef struct reader {
    pace__parser parser;
    pace__raw_rows rows;
    pace__chunk chunk;
    pace__spill_writer *writer;
    pace__idmap_notes *notes;
    uint8_t *direct; /* (packing.direct_entries) whether they occur */
    uint64_t *wide;  /* (PACE__RAW_ROWS, other columns) ids of these, not noted yet */
    size_t wide_count;
    entry *scratch;
    size_t scratch_capacity;
    uint64_t longest, largest_id;
    bool not_all_ones;
} reader;

/*
 * Numbered rows: entries in order, each id once, and what the set must know of them. *count becomes SIZE_MAX
 * if the row is bad and skipped.
 */
static pace_status settle_numbered(const reading *self, reader *own, size_t row, size_t *count)
{
    uint64_t *ids = own->rows.ids + own->rows.start[row];
    float *values = own->rows.values + own->rows.start[row];

    *count = merge_entries(ids, values, *count, &own->scratch, &own->scratch_capacity);
    if (*count == SIZE_MAX)
        return pace_fail(self->job->rank.log, PACE_FAILED, "out of memory");
    for (size_t i = 0; i < *count; i++) {
        own->not_all_ones |= values[i] != 1;
        if (isfinite(values[i]))
            continue;
        unsigned long long id = ids[i];

        *count = SIZE_MAX;
        return pace__bad_row(self->parser.bad, &own->chunk, own->rows.offset[row] - own->chunk.offset,
                             "the values of id %llu, which stands there more than once, add up to infinity",
                             id);
    }
    if (*count > 0 && ids[*count - 1] > own->largest_id)
        own->largest_id = ids[*count - 1];
    return PACE_OK;
}

/* The same as pack, and notes the ids on the way: a byte for those of direct columns, which are noted in the map at the end;
 * those of the others are gathered for it. */
static void pack_and_note(const pace__packing *packing, const uint64_t *ids, char *to, reader *own)
{
    const pace__packed *column = packing->columns, *direct_end = column + packing->direct_count;
    const pace__packed *end = packing->columns + packing->count;
    uint8_t *direct = own->direct;
    uint64_t *wide = own->wide + own->wide_count;

#pragma GCC unroll 4
    for (; column < direct_end; column++)
        direct[column->direct_at + pack_column(column, ids, to)] = 1;
#pragma GCC unroll 4
    for (; column < end; column++)
        *wide++ = column->base + pack_column(column, ids, to);
    own->wide_count = (size_t)(wide - own->wide);
}

static pace_status note_wide(const pace__clicks *job, reader *own)
{
    size_t count = own->wide_count;

    own->wide_count = 0;
    return pace__idmap_add(job->idmap, own->notes, own->wide, count);
}

static pace_status note_direct(const pace__clicks *job, const reader *own)
{
    const pace__packing *packing = &job->packing;
    pace_status status = PACE_OK;

    for (uint32_t i = 0; i < packing->direct_count; i++) {
        const pace__packed *column = &packing->columns[i];
        const uint8_t *occurs = own->direct + column->direct_at;
        uint64_t end = job->encoding.column_base[column->index + 1];

        for (uint64_t id = column->base; id < end && !status; id++) {
            if (occurs[id - column->base])
                status = pace__idmap_add(job->idmap, own->notes, &id, 1);
        }
    }
    return status;
}

static pace_status spill_row(const reading *self, reader *own, uint64_t key, size_t row, size_t count,
                             bool note)
{
    const pace__clicks *job = self->job;
    const uint64_t *ids = own->rows.ids + own->rows.start[row];
    const float *values = own->rows.values + own->rows.start[row];
    bool columns = job->packing.count > 0;
    size_t ids_bytes = columns ? job->packing.bytes : count * sizeof *ids;
    size_t values_bytes = job->has_values ? count * sizeof *values : 0;
    void *record;
    pace_status status = pace__spill_append(own->writer, key, 1 + ids_bytes + values_bytes, count, &record);

    if (status)
        return status;
    char *to = record;

    *to++ = (char)own->rows.label[row];
    if (columns && note)
        pack_and_note(&job->packing, ids, to, own);
    else if (columns)
        pack(&job->packing, ids, to);
    else
        memcpy(to, ids, ids_bytes);
    if (values_bytes > 0)
        memcpy(to + ids_bytes, values, values_bytes);
    return PACE_OK;
}

static pace_status take_rows(const reading *self, reader *own)
{
    pace__clicks *job = self->job;
    bool note_ids = self->stream == PACE__INPUTS && !job->like, columns = job->packing.count > 0;
    pace_status status = PACE_OK;

    for (size_t row = 0; row < own->rows.rows; row++) {
        uint64_t start = own->rows.start[row], key = row_key(self, own->chunk.file, own->rows.offset[row]);
        size_t count = own->rows.start[row + 1] - start;

        if (!status && !columns)
            status = settle_numbered(self, own, row, &count);
        if (!status && count == SIZE_MAX)
            continue;
        if (!status && note_ids && !columns)
            status = pace__idmap_add(job->idmap, own->notes, own->rows.ids + start, count);
        if (!status && note_ids && key % SAMPLE == 0)
            status = pace__idmap_count_hits(job->idmap, own->notes, own->rows.ids + start, count);
        if (!status)
            status = spill_row(self, own, key, row, count, note_ids);
        if (status)
            return status;
        if (count > own->longest)
            own->longest = count;
    }
    return note_wide(job, own);
}

static pace_status take_chunk(const reading *self, reader *own)
{
    for (size_t at = 0; at < own->chunk.size;) {
        pace_status status = self->parse(&own->parser, &own->chunk, &at, &own->rows);

        if (!status)
            status = take_rows(self, own);
        if (status)
            return status;
    }
    return PACE_OK;
}

static void report(const reading *self)
{
    const pace__clicks *job = self->job;
    uint64_t share = (uint64_t)job->prep.ranks; /* the others do as much, more or less */
    pace_field fields[] = {PACE_TEXT("phase", self->stream == PACE__INPUTS ? "read" : "read test"),
                           PACE_INT("done", pace__input_bytes_taken(self->input) * share),
                           PACE_INT("total", pace__input_bytes_total(self->input) * share),
                           PACE_TEXT("unit", "bytes")};

    if (job->rank.number == 0)
        pace_registry_emit(job->prep.registry, "progress", fields, 4);
}

static pace_status open_reader(const reading *self, reader *own)
{
    pace__clicks *job = self->job;
    pace_status status = pace__raw_rows_init(&own->rows, job->rank.log);

    own->direct = calloc(job->packing.direct_entries + 1, 1);
    own->wide = malloc(((size_t)PACE__RAW_ROWS * job->packing.count + 1) * sizeof *own->wide);
    if (!status && (!own->direct || !own->wide))
        status = pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    own->parser = self->parser;
    if (!status && pace__is_sheet(job->format))
        status = pace__sheet_reader_create(&job->encoding, job->format, job->config->label_field,
                                           job->rank.log, &own->parser.sheet);
    if (!status)
        status = pace__spill_writer_create(job->spills[self->stream].own, &own->writer);
    return status ? status : pace__idmap_open_notes(job->idmap, &own->notes);
}

static void close_reader(reading *self, reader *own)
{
    raise_to(&self->longest_row, own->longest);
    raise_to(&self->largest_id, own->largest_id);
    if (own->not_all_ones)
        self->not_all_ones = true;
    pace__idmap_free_notes(self->job->idmap, own->notes);
    pace__chunk_release(&own->chunk);
    pace__spill_writer_free(own->writer);
    pace__raw_rows_release(&own->rows);
    pace__sheet_reader_free(own->parser.sheet);
    free(own->direct);
    free(own->wide);
    free(own->scratch);
}

/* What was read to see the first rows comes first. */
static pace_status next_chunk(const reading *self, pace__chunk *chunk)
{
    pace__chunk *first = &self->job->first;
    size_t size = self->input == self->job->early ? atomic_exchange(&self->job->first_size, 0) : 0;

    if (size == 0)
        return pace__input_next(self->input, chunk);
    pace__chunk_release(chunk);
    *chunk = *first;
    *first = (pace__chunk){0};
    return PACE_OK;
}

static pace_status read_thread(void *arg, int thread)
{
    reading *self = arg;
    pace__clicks *job = self->job;
    reader own = {0};
    pace_status status = open_reader(self, &own);

    while (!status && !(status = pace__prep_look(&job->prep, &job->rank, thread == job->threads - 1))) {
        status = next_chunk(self, &own.chunk);
        if (status || own.chunk.size == 0)
            break;
        if (own.chunk.offset >> PACE__OFFSET_BITS)
            status =
                pace_fail(job->rank.log, PACE_BAD_DATA, "%s: larger than the limit of %llu bytes; split it",
                          pace__input_path(self->input, own.chunk.file), 1ULL << PACE__OFFSET_BITS);
        else
            status = take_chunk(self, &own);
        report(self);
    }
    if (!status)
        status = pace__spill_flush(own.writer);
    if (!status)
        status = note_direct(job, &own);
    if (!status)
        status = pace__idmap_hand_in(job->idmap, own.notes);
    if (status)
        pace__prep_give_up(&job->prep, status);
    close_reader(self, &own);
    return status;
}

static void add_counts(const reading *self)
{
    pace__click_counts *counts = &self->job->counts;

    counts->bad = self->bad.count;
    counts->bytes_read += pace__input_bytes_read(self->input);
    counts->longest_row = self->longest_row > counts->longest_row ? self->longest_row : counts->longest_row;
    counts->largest_id = self->largest_id > counts->largest_id ? self->largest_id : counts->largest_id;
    counts->not_all_ones |= self->not_all_ones;
}

static pace_status open_input(reading *self, const pace_texts *paths)
{
    const pace__clicks *job = self->job;

    if (self->stream == PACE__INPUTS && job->early) {
        self->input = job->early;
        return PACE_OK;
    }
    return pace__prep_open_input(&job->prep, &job->rank, paths->items, paths->count,
                                 pace__boundary_of(job->format), &self->input);
}

pace_status pace__clicks_read(pace__clicks *job, int stream)
{
    const pace_prep_common *config = &job->config->common;
    const pace_texts *paths = stream == PACE__INPUTS ? &config->inputs : &config->test;
    reading self = {.job = job,
                    .stream = stream,
                    .first_file = stream == PACE__INPUTS ? 0 : (uint32_t)config->inputs.count,
                    .parse = pace__parser_of(job->format)};
    pace_status status = open_input(&self, paths);

    if (status)
        return status;
    /* The limit of bad rows is for the whole job. */
    self.bad = (pace__bad_rows){.max = (uint64_t)config->max_bad_rows,
                                .count = job->counts.bad,
                                .input = self.input,
                                .log = job->rank.log};
    self.parser = (pace__parser){.encoding = &job->encoding, .ids_unbounded = job->like, .bad = &self.bad};
    status = pace__team(job->threads, read_thread, &self, job->rank.log);
    add_counts(&self);
    if (self.input == job->early)
        job->early = NULL;
    pace__input_close(self.input);
    return status;
}

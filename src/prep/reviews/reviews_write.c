/* Write: the rows in key order, in ids of the vocabulary, to the parts that are this rank's. */
#include "data/store/sums.h"
#include "prep/reviews/reviews.h"

#include <stdlib.h>
#include <string.h>

/* Rows gathered before they are written: so many bytes of ids, if at least one row fits. */
#define OUT_BYTES    ((size_t)1 << 20)
#define OUT_ROWS_MAX 8192

typedef struct writing {
    pace__reviews_rank *rank;
    const pace__reviews *job;
    uint32_t first_part, last_part; /* this rank's: first .. last - 1 */
    uint32_t finished;              /* parts before this one are */
    pace__part *parts;              /* (last - first) */
    int set;
    bool set_is_inputs;    /* its rows come from the inputs, not from --test files */
    uint64_t row;          /* of the set, the next one */
    uint64_t part_end;     /* the first row of the set that is not in the same part */
    size_t rows, rows_max; /* gathered */
    uint32_t length;
    uint8_t positive_flag;
    uint32_t *tokens, *lengths;
    uint8_t *labels;
    uint64_t stored, unknown, written;
    pace__spill_scratch scratch;
} writing;

static const pace__part *part_of_row(const writing *self, uint64_t row, uint32_t *index)
{
    *index = pace__part_of(self->job->info.rows[self->set], self->job->info.parts, row);
    return &self->parts[*index - self->first_part];
}

/* --- parts --- */

static pace_status create_parts(writing *self)
{
    const pace__store_info *info = &self->job->info;
    pace_status status = PACE_OK;

    for (uint32_t index = self->first_part; index < self->last_part && !status; index++) {
        pace__part *part = &self->parts[index - self->first_part];

        pthread_mutex_t *hdf5 = &self->rank->job->hdf5;

        pace__part_plan(info, index, part);
        pthread_mutex_lock(hdf5);
        status = pace__part_create(self->job->prep.directory, index, info, part, self->rank->me.log);
        pthread_mutex_unlock(hdf5);
    }
    return status;
}

/* Training rows come last: a part is finished when the next row is behind it. */
static pace_status finish_parts(writing *self, uint64_t row)
{
    const pace__store_info *info = &self->job->info;
    pace_status status = PACE_OK;

    while (!status && self->finished < self->last_part &&
           pace__part_begin(info->rows[PACE__TRAIN], info->parts, self->finished + 1) <= row) {
        status = pace__part_finish(&self->job->prep, &self->rank->me,
                                   &self->parts[self->finished - self->first_part],
                                   &self->rank->counts.bytes_written);
        self->finished++;
    }
    return status;
}

/* --- rows --- */

static pace_status write_gathered(writing *self)
{
    const pace_log *log = self->rank->me.log;
    uint32_t index;

    if (self->rows == 0)
        return PACE_OK;
    uint64_t first = self->row - self->rows;
    const pace__part *part = part_of_row(self, first, &index);
    const pace__part_set *set = &part->sets[self->set];
    uint64_t at = first - pace__part_begin(self->job->info.rows[self->set], self->job->info.parts, index);
    pace_status status = pace__part_put(part, set->label_at, at, 1, self->labels, self->rows, log);

    if (!status)
        status =
            pace__part_put(part, set->length_at, at, sizeof *self->lengths, self->lengths, self->rows, log);
    if (!status)
        status = pace__part_put(part, set->ids_at, at * self->length, sizeof *self->tokens, self->tokens,
                                self->rows * self->length, log);
    if (!status)
        status = pace__sums_put(
            &self->job->info, part, self->set, &(pace__written){.row = at, .rows = self->rows},
            &(pace__into){.label = self->labels, .length = self->lengths, .ids = self->tokens}, log);
    self->written += self->rows;
    self->rows = 0;
    if (!status && self->set == PACE__TRAIN)
        status = finish_parts(self, self->row);
    return status ? status : pace__rank_pulse(&self->rank->me);
}

/* Spilled ids to ids, which may be the same; false if one of them is beyond its table. */
static bool translate(const pace__review_table *table, bool narrow, const char *from, size_t count,
                      uint32_t *ids)
{
    uint32_t most = 0;

    for (size_t i = 0; i < count && narrow; i++) {
        uint16_t id;

        memcpy(&id, from + i * sizeof id, sizeof id);
        ids[i] = id;
    }
    if (!narrow)
        memcpy(ids, from, count * sizeof *ids);
    for (size_t i = 0; i < count; i++)
        most = ids[i] > most ? ids[i] : most;
    if (count > 0 && most >= table->count)
        return false;
    for (size_t i = 0; i < count && table->ids; i++)
        ids[i] = table->ids[ids[i]];
    return true;
}

static pace_status refuse(const writing *self)
{
    return pace_fail(self->rank->me.log, PACE_IO, "%s: temporary files were changed by someone else",
                     self->job->prep.directory);
}

/* Of the words of a record those that rows have room for, which may be less where the texts have told it. */
static bool cut_and_translate(const writing *self, const pace__review_table *table, bool narrow,
                              const char *from, size_t count, uint32_t *words)
{
    size_t width = narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    uint32_t head, tail;

    pace__truncation(self->job->encoding.truncate, count, self->length, &head, &tail);
    return translate(table, narrow, from, head, words) &&
           translate(table, narrow, from + (count - tail) * width, tail, words + head);
}

/* Puts the row's ids where they belong, padding beside them; its length is 1 or more. */
static bool fill_row(const writing *self, const void *record, size_t size, const pace__review_head *head,
                     uint32_t *row, uint32_t *length)
{
    bool narrow = head->flags & PACE__ROW_NARROW, front = self->job->encoding.pad_front;
    size_t before = sizeof *head, most = self->job->open_length ? PACE__ROOM_MAX : self->length;

    if (self->job->config->dedup && self->set_is_inputs)
        before += sizeof(pace__review_twin);
    size_t count = (size - before) / (narrow ? sizeof(uint16_t) : sizeof(uint32_t));
    pace__review_table same = {NULL, self->job->encoding.features};
    const pace__review_table *table =
        head->source == PACE__SOURCE_VOCABULARY ? &same : pace__reviews_table(self->job, head->source);

    if (size < before || count > most || !table)
        return false;
    *length = count == 0 ? 1 : count < self->length ? (uint32_t)count : self->length;
    uint32_t *words = front ? row + self->length - *length : row;

    if (count == 0)
        words[0] = PACE__ID_EMPTY;
    memset(front ? row : row + *length, 0, (self->length - *length) * sizeof *row);
    return cut_and_translate(self, table, narrow, (const char *)record + before, count, words);
}

static pace_status take_row(void *arg, const void *record, size_t size)
{
    writing *self = arg;
    pace__review_head head;
    pace_status status = PACE_OK;

    if (size < sizeof head)
        return refuse(self);
    memcpy(&head, record, sizeof head);
    if (self->rows == self->rows_max || self->row == self->part_end)
        status = write_gathered(self);
    if (status)
        return status;
    if (self->row >= self->part_end) {
        uint32_t index;

        part_of_row(self, self->row, &index);
        self->part_end = pace__part_begin(self->job->info.rows[self->set], self->job->info.parts, index + 1);
    }
    uint32_t *row = self->tokens + self->rows * self->length, *length = &self->lengths[self->rows];

    if (!fill_row(self, record, size, &head, row, length))
        return refuse(self);
    self->labels[self->rows] = (head.flags & self->positive_flag) != 0;
    uint32_t unknown = 0;

    for (uint32_t i = 0; i < self->length; i++)
        unknown += row[i] == PACE__ID_UNKNOWN;
    self->unknown += unknown;
    self->stored += *length;
    self->rows++;
    self->row++;
    return PACE_OK;
}

static void report(const writing *self)
{
    const pace__store_info *info = &self->job->info;
    uint64_t first = pace__part_begin(info->rows[PACE__TRAIN], info->parts, self->first_part);
    uint64_t last = pace__part_begin(info->rows[PACE__TRAIN], info->parts, self->last_part);
    uint64_t share = (uint64_t)self->job->prep.ranks;
    pace_field fields[] = {PACE_TEXT("phase", pace_prep_phase_names[PACE_PREP_WRITE]),
                           PACE_INT("done", (self->row - first) * share),
                           PACE_INT("total", (last - first) * share), PACE_TEXT("unit", "rows")};

    if (self->rank->me.number == 0 && self->set == PACE__TRAIN)
        pace_registry_emit(self->job->prep.registry, "progress", fields, 4);
}

/* The rows of a set that are in this rank's parts, bucket by bucket. */
static pace_status write_set(writing *self, int set)
{
    const pace__reviews *job = self->job;
    const pace__store_info *info = &job->info;
    int stream = set == PACE__TEST && job->config->common.test.count ? PACE__TESTS : PACE__INPUTS;
    uint64_t shift = stream == PACE__INPUTS ? pace__prep_rows_before(job->divided, set) : 0, before = 0;
    pace_status status = PACE_OK;

    self->set = set;
    self->set_is_inputs = stream == PACE__INPUTS;
    self->row = self->part_end = pace__part_begin(info->rows[set], info->parts, self->first_part);
    uint64_t begin = shift + self->row;
    uint64_t end = shift + pace__part_begin(info->rows[set], info->parts, self->last_part);

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS && !status; bucket++) {
        uint64_t rows = job->survey[stream].rows[bucket], after = before + rows;
        uint64_t first = begin > before ? begin : before, last = end < after ? end : after;

        if (first < last) {
            uint64_t wanted = self->row + (last - first);

            status = pace__reviews_visit(self->rank, stream, bucket, first - before, last - before,
                                         &self->scratch, take_row, self);
            if (!status && self->row != wanted) /* not what was surveyed */
                status = refuse(self);
            if (!status && last - first == rows) /* nobody else wants it */
                pace__spills_drop(&job->spills[stream], bucket);
            report(self);
        }
        before = after;
    }
    return status ? status : write_gathered(self);
}

static bool open_buffers(writing *self)
{
    self->length = self->job->encoding.length;
    self->rows_max = OUT_BYTES / (self->length * sizeof *self->tokens);
    self->rows_max = self->rows_max < 1 ? 1 : self->rows_max > OUT_ROWS_MAX ? OUT_ROWS_MAX : self->rows_max;
    self->tokens = malloc(self->rows_max * self->length * sizeof *self->tokens);
    self->lengths = malloc(self->rows_max * sizeof *self->lengths);
    self->labels = malloc(self->rows_max);
    self->parts = calloc(self->last_part - self->first_part + 1, sizeof *self->parts);
    return self->tokens && self->lengths && self->labels && self->parts;
}

pace_status pace__reviews_write(pace__reviews_rank *rank)
{
    pace__reviews *job = rank->job;
    uint32_t parts = job->info.parts, ranks = (uint32_t)job->prep.ranks, me = (uint32_t)rank->me.number;
    writing self = {.rank = rank,
                    .job = job,
                    .first_part = (uint32_t)((uint64_t)parts * me / ranks),
                    .last_part = (uint32_t)((uint64_t)parts * (me + 1) / ranks),
                    .positive_flag = job->from_1 ? PACE__ROW_REACHES_1 : PACE__ROW_POSITIVE,
                    .scratch.owner = me};
    pace_status status =
        open_buffers(&self) ? PACE_OK : pace_fail(rank->me.log, PACE_FAILED, "out of memory");

    self.finished = self.first_part;
    if (!status)
        status = create_parts(&self);
    for (int set = PACE__TEST; set < PACE__SETS && !status; set++) {
        if (job->info.rows[set] > 0)
            status = write_set(&self, set);
    }
    if (!status)
        status = write_set(&self, PACE__TRAIN);
    if (!status)
        status = finish_parts(&self, UINT64_MAX);
    rank->counts.stored = self.stored;
    rank->counts.unknown = self.unknown;
    rank->counts.rows_written = self.written;
    for (uint32_t i = 0; self.parts && i < self.last_part - self.first_part; i++)
        pace__part_close(&self.parts[i]);
    pace__spill_scratch_release(&self.scratch);
    free(self.parts);
    free(self.labels);
    free(self.lengths);
    free(self.tokens);
    return status;
}

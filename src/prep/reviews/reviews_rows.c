/* The spilled rows of all ranks as one order: how many there are where, and visits without duplicates. */
#include "prep/reviews/reviews.h"

#include <stdlib.h>
#include <string.h>

/* --- duplicates --- */

/* Lets the first of several rows with the same words through. Equal keys follow each other; which of them
 * comes first says nothing, so the best one so far is kept until another key comes. */
typedef struct uniques {
    pace__spill_visitor *visitor;
    void *arg;
    uint64_t at, first, last; /* of the rows that are let through, those that are wanted */
    pace__review_twin twin;   /* of the row that is kept */
    bool has;
    char *kept; /* (capacity) */
    size_t size, capacity;
    const pace_log *log;
} uniques;

static pace_status let_through(uniques *self)
{
    bool wanted = self->has && self->at >= self->first && self->at < self->last;

    self->at += self->has;
    self->has = false;
    return wanted ? self->visitor(self->arg, self->kept, self->size) : PACE_OK;
}

static pace_status keep(uniques *self, const void *record, size_t size, const pace__review_twin *twin)
{
    if (size + PACE__SPILL_SLACK > self->capacity) {
        free(self->kept);
        self->capacity = 2 * size + PACE__SPILL_SLACK;
        self->kept = malloc(self->capacity);
    }
    if (!self->kept) {
        self->capacity = 0;
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    }
    memcpy(self->kept, record, size);
    self->size = size;
    self->twin = *twin;
    self->has = true;
    return PACE_OK;
}

static pace_status take_twin(void *arg, const void *record, size_t size)
{
    uniques *self = arg;
    pace__review_twin twin;
    pace_status status = PACE_OK;

    memcpy(&twin, (const char *)record + sizeof(pace__review_head), sizeof twin);
    if (self->has && self->twin.hash == twin.hash)
        return twin.place < self->twin.place ? keep(self, record, size, &twin) : PACE_OK;
    status = let_through(self);
    return status ? status : keep(self, record, size, &twin);
}

pace_status pace__reviews_visit(const pace__reviews_rank *rank, int stream, uint32_t bucket, uint64_t first,
                                uint64_t last, pace__spill_scratch *scratch, pace__spill_visitor *visitor,
                                void *arg)
{
    const pace__reviews *job = rank->job;
    const pace__spills *spills = &job->spills[stream];

    if (!job->config->dedup || stream == PACE__TESTS)
        return pace__spill_visit_all(spills->all, spills->count, bucket, first, last, scratch, visitor, arg);
    uniques self = {.visitor = visitor, .arg = arg, .first = first, .last = last, .log = rank->me.log};
    pace_status status =
        pace__spill_visit_all(spills->all, spills->count, bucket, 0, UINT64_MAX, scratch, take_twin, &self);

    if (!status)
        status = let_through(&self);
    free(self.kept);
    return status;
}

/* --- the survey --- */

typedef struct tally {
    uint64_t rows, weight;
} tally;

static pace_status count_row(void *arg, const void *record, size_t size)
{
    tally *self = arg;
    pace__review_head head;

    (void)size;
    memcpy(&head, record, sizeof head);
    self->rows++;
    self->weight += pace__row_weight(head.flags);
    return PACE_OK;
}

/* Without duplicates the spills know. */
static void add_up(pace__reviews *job, int stream)
{
    pace__review_survey *survey = &job->survey[stream];

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++) {
        survey->rows[bucket] = pace__spills_rows(&job->spills[stream], bucket);
        survey->weight[bucket] = pace__spills_weight(&job->spills[stream], bucket);
    }
}

static uint64_t rows_of(const pace__review_survey *survey)
{
    uint64_t rows = 0;

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++)
        rows += survey->rows[bucket];
    return rows;
}

/* Each rank looks through some buckets; then all know what is left of each. */
static pace_status count_uniques(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    size_t ranks = (size_t)job->prep.ranks;
    pace__review_survey found = {0}, *all = calloc(ranks, sizeof *all);
    pace__spill_scratch scratch = {.owner = (uint32_t)self->me.number};
    pace_status status = all ? PACE_OK : pace_fail(self->me.log, PACE_FAILED, "out of memory");

    for (uint32_t bucket = (uint32_t)self->me.number; bucket < PACE__SPILL_BUCKETS && !status;
         bucket += (uint32_t)ranks) {
        tally left = {0};

        status = pace__rank_pulse(&self->me);
        if (!status)
            status =
                pace__reviews_visit(self, PACE__INPUTS, bucket, 0, UINT64_MAX, &scratch, count_row, &left);
        found.rows[bucket] = left.rows;
        found.weight[bucket] = left.weight;
    }
    pace__spill_scratch_release(&scratch);
    if (!status)
        status = pace__ranks_exchange(self->me.link, &found, sizeof found, all);
    if (!status && pace__prep_is_first(&self->job->prep, &self->me)) {
        pace__review_survey *survey = &job->survey[PACE__INPUTS];
        uint64_t before = rows_of(survey);

        *survey = (pace__review_survey){0};
        for (size_t i = 0; i < ranks * PACE__SPILL_BUCKETS; i++) {
            survey->rows[i % PACE__SPILL_BUCKETS] +=
                all[i / PACE__SPILL_BUCKETS].rows[i % PACE__SPILL_BUCKETS];
            survey->weight[i % PACE__SPILL_BUCKETS] +=
                all[i / PACE__SPILL_BUCKETS].weight[i % PACE__SPILL_BUCKETS];
        }
        job->duplicates = before - rows_of(survey);
    }
    free(all);
    return status ? status : pace__ranks_meet(self->me.link);
}

static uint64_t positives_in(const pace__reviews *job, uint64_t weight)
{
    return job->from_1 ? weight >> 32 : weight & UINT32_MAX;
}

static uint64_t positives_of(const pace__reviews *job, int stream)
{
    uint64_t positives = 0;

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++)
        positives += positives_in(job, job->survey[stream].weight[bucket]);
    return positives;
}

/* Of the first `rank` rows of the inputs: the bucket that this cuts is looked through. */
static pace_status positives_before(const pace__reviews_rank *self, uint64_t rank, uint64_t *positives)
{
    const pace__reviews *job = self->job;
    const pace__review_survey *survey = &job->survey[PACE__INPUTS];
    pace__spill_scratch scratch = {0};
    tally cut = {0};
    uint32_t bucket = 0;

    *positives = 0;
    for (; bucket < PACE__SPILL_BUCKETS && survey->rows[bucket] <= rank; bucket++) {
        rank -= survey->rows[bucket];
        *positives += positives_in(job, survey->weight[bucket]);
    }
    pace_status status =
        rank > 0 ? pace__reviews_visit(self, PACE__INPUTS, bucket, 0, rank, &scratch, count_row, &cut)
                 : PACE_OK;

    pace__spill_scratch_release(&scratch);
    *positives += positives_in(job, cut.weight);
    return status;
}

/* Rank 0's decision on what is test and what is positive. */
typedef struct division {
    uint64_t divided[PACE__SETS], rows[PACE__SETS], positives[PACE__SETS];
} division;

/* Of the inputs' rows of each set, in the order in which they lie. */
static pace_status count_positives(const pace__reviews_rank *self, division *made)
{
    static const int order[PACE__SETS] = {PACE__TEST, PACE__VALIDATION, PACE__TRAIN};
    uint64_t before = 0, until = 0;
    pace_status status = PACE_OK;

    for (int i = 0; i < PACE__SETS && !status; i++, before = until) {
        int set = order[i];
        uint64_t end = pace__prep_rows_before(made->divided, set) + made->divided[set];

        if (made->divided[set] > 0)
            status = positives_before(self, end, &until);
        made->positives[set] = until - before;
    }
    return status;
}

static pace_status divide(pace__reviews_rank *self, division *made)
{
    pace__reviews *job = self->job;
    const pace_prep_reviews_config *config = job->config;
    const pace__review_survey *inputs = &job->survey[PACE__INPUTS], *tests = &job->survey[PACE__TESTS];
    uint64_t rows = rows_of(inputs);

    if (rows == 0)
        return pace_fail(self->me.log, PACE_BAD_DATA, "%s%s: no rows", config->common.inputs.items[0],
                         config->common.inputs.count > 1 ? " and the other inputs" : "");
    if (config->common.test.count > 0 && rows_of(tests) == 0)
        return pace_fail(self->me.log, PACE_BAD_DATA, "%s: no rows to test on", config->common.test.items[0]);
    pace_status status = pace__prep_divide(&config->common, rows, self->me.log, made->divided);

    if (!status)
        status = count_positives(self, made);
    if (status)
        return status;
    memcpy(made->rows, made->divided, sizeof made->rows);
    made->rows[PACE__TEST] += rows_of(tests);
    made->positives[PACE__TEST] += positives_of(job, PACE__TESTS);
    return PACE_OK;
}

pace_status pace__reviews_survey(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    division made = {0};
    pace_status status = PACE_OK;

    if (pace__prep_is_first(&self->job->prep, &self->me)) {
        add_up(job, PACE__INPUTS);
        add_up(job, PACE__TESTS);
    }
    status = pace__ranks_meet(self->me.link);
    if (!status && job->config->dedup)
        status = count_uniques(self);
    if (!status && self->me.number == 0)
        status = divide(self, &made);
    if (!status)
        status = pace__ranks_share(self->me.link, &made, sizeof made);
    if (!status && pace__prep_is_first(&self->job->prep, &self->me)) {
        memcpy(job->divided, made.divided, sizeof made.divided);
        memcpy(job->info.rows, made.rows, sizeof made.rows);
        memcpy(job->info.positives, made.positives, sizeof made.positives);
    }
    return status ? status : pace__ranks_meet(self->me.link);
}

/* Map: texts become words, words are counted and become ids, rows go to the spill. */
#include "base/random.h"
#include "prep/reviews/reviews.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one rank keeps while it reads. */
typedef struct mapper {
    pace__reviews_rank *rank;
    pace__reviews *job;
    int stream;
    bool counts; /* words are counted, ids are local */
    bool twins;  /* rows are keyed by their words */
    uint64_t seed;
    double positive;
    pace__review_reader *reader;
    pace__chunk chunk;
    pace__tokens tokens;
    uint32_t *ids; /* (ids_max) */
    size_t ids_max;
    pace__spill_writer *writer;
} mapper;

/* File and offset: distinct for every row of a job, and so is what it becomes by mixing, a bijection. No ties,
 * whatever the order of arrival. */
static uint64_t place_of(const mapper *self, const pace__review *review)
{
    uint64_t file = self->chunk.file;

    if (self->stream == PACE__TESTS)
        file += self->job->files[PACE__INPUTS].count;
    return file << PACE__OFFSET_BITS | review->offset;
}

/*
 * Of the words in their order: two texts that differ only in what separates words are equal. Where words do
 * not say all, because there is none or one was too long, all bytes count.
 */
static uint64_t hash_words(const pace__tokens *tokens, const pace__review *review)
{
    uint64_t hash = pace__mix64(tokens->count);

    for (size_t i = 0; i < tokens->count; i++)
        hash = pace__mix64(hash ^ tokens->hash[i]) + tokens->hash[i];
    if (tokens->count == 0 || tokens->dropped > 0)
        hash = pace__mix64(hash ^ pace__category_hash(review->text, (uint32_t)review->size));
    return hash;
}

static pace_status reserve_ids(mapper *self, size_t count)
{
    if (count <= self->ids_max)
        return PACE_OK;
    free(self->ids);
    self->ids_max = 2 * count;
    self->ids = malloc(self->ids_max * sizeof *self->ids);
    if (self->ids)
        return PACE_OK;
    self->ids_max = 0;
    return pace_fail(self->rank->me.log, PACE_FAILED, "out of memory for a text of %zu words", count);
}

/* Ids of all words that are no stop words; none if there is no such word. */
static pace_status find_ids(mapper *self, size_t *count, uint32_t *source)
{
    pace__reviews_rank *rank = self->rank;
    pace_status status = reserve_ids(self, self->tokens.count + 1);

    if (status)
        return status;
    if (self->counts) {
        status = pace__word_counter_make_room(rank->counter, self->tokens.count);
        if (status)
            return status;
        uint32_t generation = pace__word_counter_generation(rank->counter);

        if (generation >= PACE__SOURCE_GENERATIONS - 1)
            return pace_fail(rank->me.log, PACE_FAILED,
                             "too many different words for --memory: give it more");
        *count = pace__word_counter_add(rank->counter, &self->tokens, self->ids);
        *source = PACE__SOURCE_GENERATIONS * (uint32_t)rank->me.number + generation;
        return PACE_OK;
    }
    pace__encoding whole = self->job->encoding;

    whole.length = (uint32_t)self->tokens.count + 1;
    *count = pace__vocabulary_encode(self->job->vocabulary, &whole, &self->tokens, self->ids);
    *count -= *count == 1 && self->ids[0] == PACE__ID_EMPTY;
    *source = PACE__SOURCE_VOCABULARY;
    rank->counts.words += self->tokens.count;
    rank->counts.stopped += self->tokens.count - *count;
    return PACE_OK;
}

static void copy_narrow(char *to, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t id = (uint16_t)ids[i];

        memcpy(to + i * sizeof id, &id, sizeof id);
    }
}

/* The ids that are kept are the first `kept` ones. */
static pace_status spill_row(mapper *self, const pace__review *review, uint32_t source, size_t kept)
{
    uint64_t place = place_of(self, review), hash = self->twins ? hash_words(&self->tokens, review) : 0;
    uint64_t key = pace__mix64((self->twins ? hash : place) ^ self->seed);
    uint32_t bits = 0;

    for (size_t i = 0; i < kept; i++)
        bits |= self->ids[i];
    bool narrow = bits <= UINT16_MAX;
    pace__review_head head = {source, (uint8_t)((review->rating >= self->positive ? PACE__ROW_POSITIVE : 0) |
                                                (review->rating >= 1 ? PACE__ROW_REACHES_1 : 0) |
                                                (narrow ? PACE__ROW_NARROW : 0))};
    size_t width = narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    size_t twin_bytes = self->twins ? sizeof(pace__review_twin) : 0;
    void *record;
    pace_status status = pace__spill_append(self->writer, key, sizeof head + twin_bytes + kept * width,
                                            pace__row_weight(head.flags), &record);

    if (status)
        return status;
    char *to = record;

    memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (self->twins)
        memcpy(to, &(pace__review_twin){hash, place}, twin_bytes);
    to += twin_bytes;
    if (narrow)
        copy_narrow(to, self->ids, kept);
    else
        memcpy(to, self->ids, kept * width);
    return PACE_OK;
}

static pace_status take_review(mapper *self, const pace__review *review)
{
    const pace__encoding *encoding = &self->job->encoding;
    pace__review_counts *counts = &self->rank->counts;
    uint32_t source = 0, head, tail;
    size_t count = 0;

    counts->rows_mapped[self->stream]++;
    counts->above_1 += review->rating > 1;
    if (pace__reviews_drops(self->job, review->rating)) {
        counts->dropped++;
        return PACE_OK;
    }
    pace_status status = pace__tokenise(&self->tokens, review->text, review->size, self->rank->me.log);

    if (!status)
        status = find_ids(self, &count, &source);
    if (status)
        return status;
    counts->above_usual += review->rating > PACE__RATING_USUAL;
    if (self->stream == PACE__INPUTS)
        counts->lengths[pace__length_bin(count)]++;
    counts->cut += count > encoding->length;
    counts->empty += count == 0;
    counts->too_long += self->tokens.dropped;
    pace__truncation(encoding->truncate, count, encoding->length, &head, &tail);
    if (count > encoding->length)
        memmove(self->ids + head, self->ids + count - tail, tail * sizeof *self->ids);
    return spill_row(self, review, source, (size_t)head + tail);
}

static pace_status take_chunk(mapper *self)
{
    pace_status status = PACE_OK;
    pace__review review;
    size_t at = 0;

    for (bool found = true; !status && found;) {
        status = pace__review_next(self->reader, &self->chunk, &at, &found, &review);
        if (!status && found)
            status = take_review(self, &review);
    }
    self->rank->counts.bytes_mapped[self->stream] += self->chunk.size;
    return status;
}

static void report(const mapper *self)
{
    const pace__reviews *job = self->job;
    uint64_t share = job->prep.many ? (uint64_t)job->prep.ranks : 1; /* others do as much, more or less */
    int phase = self->stream == PACE__INPUTS ? PACE_PREP_MAP : PACE_PREP_MAP_TEST;
    pace_field fields[] = {PACE_TEXT("phase", pace_prep_phase_names[phase]),
                           PACE_INT("done", pace__input_bytes_taken(job->input) * share),
                           PACE_INT("total", pace__input_bytes_total(job->input) * share),
                           PACE_TEXT("unit", "bytes")};

    if (!job->prep.many || self->rank->me.number == 0)
        pace_registry_emit(job->prep.registry, "progress", fields, 4);
}

static pace_status read_chunks(mapper *self)
{
    pace__reviews *job = self->job;
    pace_status status = PACE_OK;

    while (!status) {
        status = pace__rank_pulse(&self->rank->me);
        if (!status)
            status = pace__input_next(job->input, &self->chunk);
        if (status || self->chunk.size == 0)
            break;
        if ((self->chunk.offset + self->chunk.size) >> PACE__OFFSET_BITS)
            status = pace_fail(self->rank->me.log, PACE_BAD_DATA,
                               "%s: larger than the limit of %llu bytes; split it",
                               pace__input_path(job->input, self->chunk.file), 1ULL << PACE__OFFSET_BITS);
        else
            status = take_chunk(self);
        report(self);
    }
    return status ? status : pace__spill_flush(self->writer);
}

static pace_status open_counter(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    size_t memory = job->memory / 4;

    snprintf(self->counter_name, sizeof self->counter_name, "words-%d", self->me.number);
    pace__word_counter_plan plan = {.directory = job->prep.directory,
                                    .name = self->counter_name,
                                    .memory =
                                        memory < PACE__WORDS_MEMORY_MIN ? PACE__WORDS_MEMORY_MIN : memory,
                                    .stops = job->stops,
                                    .stop_count = job->stop_count};

    return pace__word_counter_create(&plan, self->me.log, &self->counter);
}

/* Processes read units of their own; threads take the next chunk of one input. */
static pace_status open_stream(pace__reviews_rank *self, int stream)
{
    pace__reviews *job = self->job;
    const pace__review_files *files = &job->files[stream];
    size_t keep = job->config->common.memory / (stream == PACE__INPUTS ? 4 : 16);
    pace_status status =
        pace__prep_open_input(&job->prep, &self->me, (const char *const *)files->paths, files->count,
                              pace__review_boundary(job->options[stream].format), &job->input);

    if (status)
        return status;
    job->bad.max = (uint64_t)job->config->common.max_bad_rows;
    job->bad.input = job->input;
    job->bad.log = self->me.log;
    return pace__spills_create(&job->spills[stream], &job->prep, &self->me,
                               stream == PACE__INPUTS ? "rows" : "test-rows", job->memory / 4, keep);
}

static pace_status open_mapper(mapper *self)
{
    pace__reviews *job = self->job;
    pace_status status = pace__review_reader_create(&job->options[self->stream], &job->files[self->stream],
                                                    &job->bad, self->rank->me.log, &self->reader);

    if (!status)
        status = pace__spill_writer_create(job->spills[self->stream].own, &self->writer);
    if (!status && self->counts)
        status = open_counter(self->rank);
    return status;
}

pace_status pace__reviews_map(pace__reviews_rank *rank, int stream)
{
    pace__reviews *job = rank->job;
    bool inputs = stream == PACE__INPUTS;
    mapper self = {.rank = rank,
                   .job = job,
                   .stream = stream,
                   .counts = inputs && !job->known,
                   .twins = inputs && job->config->dedup,
                   .seed = pace__mix64((uint64_t)job->config->common.seed),
                   .positive = isnan(job->positive) ? PACE__POSITIVE_AUTO : job->positive};
    pace_status status =
        pace__prep_is_first(&rank->job->prep, &rank->me) ? open_stream(rank, stream) : PACE_OK;

    if (!status)
        status = pace__ranks_meet(rank->me.link);
    if (!status)
        status = open_mapper(&self);
    if (!status)
        status = read_chunks(&self);
    free(self.ids);
    pace__tokens_release(&self.tokens);
    pace__chunk_release(&self.chunk);
    pace__spill_writer_free(self.writer);
    pace__review_reader_free(self.reader);
    if (!status && self.counts)
        status = pace__word_counter_finish(rank->counter);
    if (!status)
        status = pace__ranks_meet(rank->me.link);
    if (!status && pace__prep_is_first(&rank->job->prep, &rank->me)) {
        rank->counts.bad = job->bad.count;
        pace__input_close(job->input);
        job->input = NULL;
    }
    return status;
}

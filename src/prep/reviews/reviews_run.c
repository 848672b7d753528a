/* The life of one rank: all phases, with the others. */
#include "base/clock.h"
#include "prep/reviews/reviews.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- between the phases --- */

static uint64_t sum_of(const pace__review_counts *all, int ranks, size_t at)
{
    uint64_t sum = 0;

    for (int i = 0; i < ranks; i++)
        sum += *(const uint64_t *)((const char *)&all[i] + at);
    return sum;
}

#define SUM(all, ranks, field) sum_of(all, ranks, offsetof(pace__review_counts, field))

/* What one rank alone cannot see: too many bad rows in all. */
static pace_status compare_notes(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    uint64_t limit = (uint64_t)job->config->common.max_bad_rows;
    pace_status status =
        pace__ranks_exchange(self->member.link, &self->counts, sizeof self->counts, self->all);

    if (!status && SUM(self->all, job->party.ranks, bad) > limit)
        status =
            pace_fail(self->member.log, PACE_BAD_DATA, "%" PRIu64 " bad rows, but --max-bad-rows is %" PRIu64,
                      SUM(self->all, job->party.ranks, bad), limit);
    return status;
}

/*
 * --positive auto, when all ratings have been seen. Ratings of 1 alone, say, may be the best or the worst
 * ones of what an older model has learned: then it has to be said.
 */
static pace_status decide_positive(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    bool from_1 = isnan(job->positive) && SUM(self->all, job->party.ranks, above_1) == 0;

    if (from_1 && job->config->common.like)
        return pace_fail(self->member.log, PACE_USAGE,
                         "no rating is above 1, and %s does not tell which ones are positive: say --positive",
                         job->config->common.like);
    if (self->member.first)
        job->from_1 = from_1;
    return PACE_OK;
}

static pace_status fill_info(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    const pace_prep_reviews_config *config = job->config;
    pace__store_info *info = &job->info;

    info->encoding = job->encoding;
    info->columns = info->row_entries_max = job->encoding.length;
    info->ids_seen = (uint32_t)job->encoding.features;
    info->like = config->common.like != NULL;
    info->parts = (uint32_t)config->common.parts;
    info->seed = config->common.seed;
    info->positive = pace__reviews_threshold(job);
    for (int set = 0; set < PACE__SETS; set++)
        info->entries[set] = info->rows[set] * info->columns;
    info->command = pace__reviews_command(job);
    return info->command ? PACE_OK : pace_fail(self->member.log, PACE_FAILED, "out of memory");
}

static void close_spills(pace__reviews *job)
{
    for (int stream = 0; stream < PACE__REVIEWS_STREAMS; stream++) {
        for (size_t i = 0; job->spills[stream] && i < job->spill_count; i++) {
            if (job->spills[stream][i] != job->own_spill[stream])
                pace__spill_free(job->spills[stream][i]);
        }
        pace__spill_free(job->own_spill[stream]);
        free(job->spills[stream]);
        job->own_spill[stream] = NULL;
        job->spills[stream] = NULL;
    }
}

/* Temporary files of this process, and whatever it holds open. */
static void tidy(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;

    for (int stream = 0; stream < PACE__REVIEWS_STREAMS; stream++) {
        /* Of the others' spills only what this process has split. */
        for (size_t i = 0; job->spills[stream] && i < job->spill_count; i++)
            self->counts.bytes_spilled += pace__spill_bytes(job->spills[stream][i]);
    }
    close_spills(job);
    pace__reviews_close_tables(job);
    for (int rank = 0; rank < job->party.ranks; rank++) {
        uint32_t generations = job->table_first[rank + 1] - job->table_first[rank];

        for (uint32_t i = 0; i < generations && (!job->party.many || rank == self->member.rank); i++) {
            char *path = pace__reviews_table_path(job, rank, i);

            if (path)
                unlink(path);
            free(path);
        }
    }
}

void pace__reviews_close(pace__reviews *job)
{
    pace__input_close(job->input);
    close_spills(job);
    pace__reviews_close_tables(job);
    pace__party_release(&job->party);
    pace__reviews_release(job);
}

/* --- the end --- */

static void say_positive(const pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;

    if (isnan(job->positive))
        pace_say(self->member.log, PACE_INFO, "ratings of %g and more are positive%s (--positive)",
                 pace__reviews_threshold(job), job->from_1 ? ", since none is above 1" : "");
    else if (strcmp(job->config->positive, "auto") == 0)
        pace_say(self->member.log, PACE_INFO, "ratings of %g and more are positive, as in %s (--positive)",
                 job->positive, job->config->common.like);
}

static void fill_result(const pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    const pace__reviews *job = self->job;
    const pace__review_counts *all = self->all;
    int ranks = job->party.ranks;
    uint64_t rows = job->info.rows[PACE__TRAIN], positives = job->info.positives[PACE__TRAIN];

    if (positives == 0 || positives == rows)
        pace_say(self->member.log, PACE_WARN,
                 "all training texts are %s: look at the ratings, or at --positive",
                 positives ? "positive" : "negative");
    *result = (pace_prep_reviews_result){
        .train_rows = job->info.rows[PACE__TRAIN],
        .test_rows = job->info.rows[PACE__TEST],
        .train_positives = job->info.positives[PACE__TRAIN],
        .test_positives = job->info.positives[PACE__TEST],
        .bad_rows = SUM(all, ranks, bad),
        .dropped = SUM(all, ranks, dropped),
        .duplicates = job->duplicates,
        .positive = pace__reviews_threshold(job),
        .words = SUM(all, ranks, words),
        .stop_words = SUM(all, ranks, stopped),
        .distinct = SUM(all, ranks, distinct),
        .vocabulary = job->encoding.features,
        .stored = SUM(all, ranks, stored),
        .unknown = SUM(all, ranks, unknown),
        .cut = SUM(all, ranks, cut),
        .empty = SUM(all, ranks, empty),
        .too_long = SUM(all, ranks, too_long),
        .bytes_read = SUM(all, ranks, bytes_mapped[PACE__REVIEWS_INPUTS]) +
                      SUM(all, ranks, bytes_mapped[PACE__REVIEWS_TESTS]),
        .bytes_written = SUM(all, ranks, bytes_written),
        .bytes_spilled = SUM(all, ranks, bytes_spilled),
        .word_bytes = SUM(all, ranks, word_bytes),
        .ranks = (uint64_t)ranks,
        .processes = job->party.many ? (uint64_t)ranks : 1,
    };
    for (int i = 0; i < ranks; i++) {
        result->rank_bytes[i] =
            all[i].bytes_mapped[PACE__REVIEWS_INPUTS] + all[i].bytes_mapped[PACE__REVIEWS_TESTS];
        result->rank_rows[i] = all[i].rows_written;
    }
}

static pace_status finish(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    pace_status status = pace__ranks_meet(self->member.link);

    if (!status && self->member.first)
        tidy(self);
    if (!status)
        status = pace__ranks_gather(self->member.link, &self->counts, sizeof self->counts, self->all);
    if (!status && self->member.rank == 0)
        status = pace__partner_commit(&self->member);
    if (!status && self->member.rank == 0)
        fill_result(self, result);
    return status;
}

/* --- the phases --- */

const char *const pace_prep_phase_names[PACE_PREP_PHASES] = {"map", "reduce", "map test",
                                                             "shuffle and write"};

/* What of the counts a phase is measured by. */
#define COUNT(field) offsetof(pace__review_counts, field)
static const struct {
    size_t rows, bytes, skew;
} measured[PACE_PREP_PHASES] = {
    [PACE_PREP_MAP] = {COUNT(rows_mapped[PACE__REVIEWS_INPUTS]), COUNT(bytes_mapped[PACE__REVIEWS_INPUTS]),
                       COUNT(bytes_mapped[PACE__REVIEWS_INPUTS])},
    [PACE_PREP_REDUCE] = {COUNT(distinct), COUNT(word_bytes), COUNT(distinct)},
    [PACE_PREP_MAP_TEST] = {COUNT(rows_mapped[PACE__REVIEWS_TESTS]), COUNT(bytes_mapped[PACE__REVIEWS_TESTS]),
                            COUNT(bytes_mapped[PACE__REVIEWS_TESTS])},
    [PACE_PREP_WRITE] = {COUNT(rows_written), COUNT(bytes_written), COUNT(rows_written)},
};

static double skew_of(const pace__review_counts *all, int ranks, size_t at)
{
    uint64_t most = 0, sum = sum_of(all, ranks, at);

    for (int i = 0; i < ranks; i++) {
        uint64_t each = sum_of(&all[i], 1, at);

        most = each > most ? each : most;
    }
    return sum > 0 ? (double)most * ranks / (double)sum : 1;
}

/* Rank 0, which has the counts of all. */
static void end_phase(pace__reviews_rank *self, int phase, uint64_t start_ns)
{
    int ranks = self->job->party.ranks;
    pace_prep_phase reached = {.seconds = pace__seconds_since(start_ns),
                               .rows = sum_of(self->all, ranks, measured[phase].rows),
                               .bytes = sum_of(self->all, ranks, measured[phase].bytes),
                               .skew = skew_of(self->all, ranks, measured[phase].skew)};
    pace_field fields[] = {PACE_TEXT("phase", pace_prep_phase_names[phase]),
                           PACE_REAL("seconds", reached.seconds), PACE_INT("rows", reached.rows),
                           PACE_INT("bytes", reached.bytes), PACE_REAL("skew", reached.skew)};

    if (self->member.rank > 0)
        return;
    self->phases[phase] = reached;
    pace_registry_emit(self->job->party.registry, "phase", fields, sizeof fields / sizeof *fields);
}

static pace_status map(pace__reviews_rank *self, int stream)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_map(self, stream);

    if (!status)
        status = compare_notes(self);
    if (!status)
        status = pace__reviews_open_spills(self, stream);
    if (!status)
        end_phase(self, stream == PACE__REVIEWS_INPUTS ? PACE_PREP_MAP : PACE_PREP_MAP_TEST, start_ns);
    return status;
}

static pace_status reduce(pace__reviews_rank *self)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_reduce(self);

    if (!status)
        status = pace__ranks_gather(self->member.link, &self->counts, sizeof self->counts, self->all);
    if (!status)
        end_phase(self, PACE_PREP_REDUCE, start_ns);
    return status;
}

static pace_status write_rows(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_survey(self);

    if (!status && self->member.rank == 0)
        say_positive(self);
    if (!status && self->member.first)
        status = fill_info(self);
    if (!status)
        status = pace__ranks_meet(self->member.link);
    if (!status)
        status = pace__reviews_write(self);
    if (!status)
        status = finish(self, result);
    if (!status)
        end_phase(self, PACE_PREP_WRITE, start_ns);
    return status;
}

static void say_memory(const pace__reviews *job)
{
    pace_say(job->party.log, PACE_INFO,
             "memory: at most %.2f GB%s; what does not fit goes to temporary files in %s",
             (double)job->config->common.memory / 1e9, job->party.many ? " in each process" : "",
             job->party.directory);
}

static pace_status run_phases(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    pace_status status = pace__partner_meet(&self->member);

    if (!status && self->member.rank == 0)
        say_memory(self->job);
    if (!status)
        status = map(self, PACE__REVIEWS_INPUTS);
    if (!status)
        status = reduce(self);
    if (!status && self->job->config->common.test.count > 0)
        status = map(self, PACE__REVIEWS_TESTS);
    if (!status)
        status = decide_positive(self);
    if (!status)
        status = write_rows(self, result);
    if (!status && self->member.rank == 0)
        memcpy(result->phases, self->phases, sizeof self->phases);
    return status;
}

pace_status pace__reviews_run_rank(pace__reviews *job, pace__link *link, pace_prep_reviews_result *result)
{
    pace__reviews_rank self = {.job = job, .all = calloc((size_t)job->party.ranks, sizeof *self.all)};

    pace__partner_open(&self.member, &job->party, link);
    pace_status status = self.all ? PACE_OK : pace_fail(self.member.log, PACE_FAILED, "out of memory");

    if (!status &&
        job->party.many) /* every process finds out for itself: hosts may differ in what they see */
        status = pace__reviews_settle(job, self.member.log);
    self.member.settled = true;
    if (!status)
        status = run_phases(&self, result);
    pace__word_counter_free(self.counter);
    free(self.all);
    pace__partner_close(&self.member, status);
    return status;
}

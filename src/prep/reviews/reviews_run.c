/* The life of one rank: all phases, with the others. */
#include "base/clock.h"
#include "base/shares.h"
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

static pace_status compare_notes(pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;
    pace_status status = pace__ranks_exchange(self->me.link, &self->counts, sizeof self->counts, self->all);

    return status ? status
                  : pace__prep_check_bad_rows(SUM(self->all, job->prep.ranks, bad),
                                              job->config->common.max_bad_rows, self->me.log);
}

/*
 * --positive auto, when all ratings have been seen. Ratings of 1 alone, say, may be the best or the worst
 * ones of what an older model has learned: then it has to be said.
 */
static pace_status decide_positive(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    bool from_1 = isnan(job->positive) && SUM(self->all, job->prep.ranks, above_1) == 0;

    if (from_1 && job->config->common.like)
        return pace_fail(self->me.log, PACE_USAGE,
                         "no rating is above 1, and %s does not tell which ones are positive: say --positive",
                         job->config->common.like);
    if (pace__prep_is_first(&self->job->prep, &self->me))
        job->from_1 = from_1;
    return PACE_OK;
}

/* Of all ranks. */
static void add_lengths(const pace__reviews_rank *self, uint64_t lengths[PACE__LENGTH_BINS])
{
    for (unsigned bin = 0; bin < PACE__LENGTH_BINS; bin++)
        lengths[bin] = SUM(self->all, self->job->prep.ranks, lengths[bin]);
}

/* --length, when the texts have been read: each rank finds the same. */
static pace_status decide_length(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    uint64_t lengths[PACE__LENGTH_BINS];

    if (!job->open_length)
        return PACE_OK;
    add_lengths(self, lengths);
    uint32_t length = pace__length_of_rows(lengths);

    self->counts.cut = pace__length_cut(self->counts.lengths, length);
    if (pace__prep_is_first(&job->prep, &self->me))
        job->encoding.length = length;
    return pace__ranks_meet(self->me.link);
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
    return info->command ? PACE_OK : pace_fail(self->me.log, PACE_FAILED, "out of memory");
}

static void close_spills(pace__reviews *job)
{
    for (int stream = 0; stream < PACE__STREAMS; stream++)
        pace__spills_close(&job->spills[stream]);
}

/* Temporary files of this process, and whatever it holds open. */
static void tidy(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;

    for (int stream = 0; stream < PACE__STREAMS; stream++)
        self->counts.bytes_spilled += pace__spills_bytes(&job->spills[stream]);
    close_spills(job);
    pace__reviews_close_tables(job);
    for (int rank = 0; rank < job->prep.ranks; rank++) {
        uint32_t generations = job->table_first[rank + 1] - job->table_first[rank];

        for (uint32_t i = 0; i < generations && (!job->prep.many || rank == self->me.number); i++) {
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
    pace__prep_job_release(&job->prep);
    pace__reviews_release(job);
}

/* --- what is said of ratings and lengths --- */

/* Ratings of 1 to 10, say, of which most would be positive. */
static void say_ratings(const pace__reviews_rank *self)
{
    uint64_t above = SUM(self->all, self->job->prep.ranks, above_usual);

    if (above > 0 && isnan(self->job->positive))
        pace_say(self->me.log, PACE_WARN,
                 "%" PRIu64
                 " ratings are above %g, and those of %g and more are positive: of 1 to 10 these are "
                 "most; say from where on with --positive (7, for instance)",
                 above, PACE__RATING_USUAL, PACE__POSITIVE_AUTO);
}

static uint64_t texts_of(const pace__reviews_rank *self)
{
    const pace__review_counts *all = self->all;
    int ranks = self->job->prep.ranks;

    return SUM(all, ranks, rows_mapped[PACE__INPUTS]) + SUM(all, ranks, rows_mapped[PACE__TESTS]) -
           SUM(all, ranks, dropped);
}

/* What --length leaves most of the inputs' texts whole; 0: there is none. */
static uint64_t usual_length(const pace__reviews_rank *self)
{
    uint64_t lengths[PACE__LENGTH_BINS];

    add_lengths(self, lengths);
    return pace__length_of_share(lengths, PACE__WHOLE_SHARE);
}

static void say_length(const pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;

    if (job->open_length)
        pace_say(self->me.log, PACE_INFO,
                 "rows have room for %u words (--length): of %" PRIu64 " texts %" PRIu64 " are longer",
                 job->encoding.length, texts_of(self), SUM(self->all, job->prep.ranks, cut));
}

/* Somebody who has said --like cannot have other rows. */
static void say_cut(const pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;
    int ranks = job->prep.ranks;
    uint64_t texts = texts_of(self), cut = SUM(self->all, ranks, cut), length = usual_length(self);

    if ((double)cut <= (1 - PACE__WHOLE_SHARE) * (double)texts || length <= job->encoding.length ||
        job->config->common.like)
        return;
    pace_say(self->me.log, PACE_INFO,
             "%" PRIu64 " of %" PRIu64 " texts were cut, since rows have room for %u words: --length %" PRIu64
             " would keep %g %% of them whole",
             cut, texts, job->encoding.length, length, 100 * PACE__WHOLE_SHARE);
}

/* --- the end --- */

static void say_positive(const pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;

    if (isnan(job->positive))
        pace_say(self->me.log, PACE_INFO, "ratings of %g and more are positive%s (--positive)",
                 pace__reviews_threshold(job), job->from_1 ? ", since none is above 1" : "");
    else if (strcmp(job->config->positive, "auto") == 0)
        pace_say(self->me.log, PACE_INFO, "ratings of %g and more are positive, as in %s (--positive)",
                 job->positive, job->config->common.like);
}

static void say_sets(const pace__reviews_rank *self)
{
    say_positive(self);
    say_ratings(self);
    say_length(self);
    say_cut(self);
}

static void fill_result(const pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    const pace__reviews *job = self->job;
    const pace__review_counts *all = self->all;
    int ranks = job->prep.ranks;

    pace__prep_say_one_class("texts", job->info.rows[PACE__TRAIN], job->info.positives[PACE__TRAIN],
                             "the ratings, or at --positive", self->me.log);
    *result = (pace_prep_reviews_result){
        .train_rows = job->info.rows[PACE__TRAIN],
        .test_rows = job->info.rows[PACE__TEST],
        .validation_rows = job->info.rows[PACE__VALIDATION],
        .validation_positives = job->info.positives[PACE__VALIDATION],
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
        .length = job->encoding.length,
        .length_whole = usual_length(self),
        .empty = SUM(all, ranks, empty),
        .too_long = SUM(all, ranks, too_long),
        .bytes_read =
            SUM(all, ranks, bytes_mapped[PACE__INPUTS]) + SUM(all, ranks, bytes_mapped[PACE__TESTS]),
        .bytes_written = SUM(all, ranks, bytes_written),
        .bytes_spilled = SUM(all, ranks, bytes_spilled),
        .word_bytes = SUM(all, ranks, word_bytes),
        .ranks = (uint64_t)ranks,
        .processes = job->prep.many ? (uint64_t)ranks : 1,
    };
    pace__shares bytes = {0}, written = {0};

    for (int i = 0; i < ranks; i++) {
        result->rank_bytes[i] = all[i].bytes_mapped[PACE__INPUTS] + all[i].bytes_mapped[PACE__TESTS];
        result->rank_rows[i] = all[i].rows_written;
        pace__shares_add(&bytes, (double)result->rank_bytes[i]);
        pace__shares_add(&written, (double)result->rank_rows[i]);
    }
    result->bytes_skew = pace__shares_skew(&bytes);
    result->rows_skew = pace__shares_skew(&written);
}

static pace_status finish(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    pace_status status = pace__ranks_meet(self->me.link);

    if (!status && pace__prep_is_first(&self->job->prep, &self->me))
        tidy(self);
    if (!status)
        status = pace__ranks_gather(self->me.link, &self->counts, sizeof self->counts, self->all);
    if (!status && self->me.number == 0)
        status = pace__prep_commit(&self->job->prep, &self->me);
    if (!status && self->me.number == 0)
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
    [PACE_PREP_MAP] = {COUNT(rows_mapped[PACE__INPUTS]), COUNT(bytes_mapped[PACE__INPUTS]),
                       COUNT(bytes_mapped[PACE__INPUTS])},
    [PACE_PREP_REDUCE] = {COUNT(distinct), COUNT(word_bytes), COUNT(distinct)},
    [PACE_PREP_MAP_TEST] = {COUNT(rows_mapped[PACE__TESTS]), COUNT(bytes_mapped[PACE__TESTS]),
                            COUNT(bytes_mapped[PACE__TESTS])},
    [PACE_PREP_WRITE] = {COUNT(rows_written), COUNT(bytes_written), COUNT(rows_written)},
};

static double skew_of(const pace__review_counts *all, int ranks, size_t at)
{
    pace__shares shares = {0};

    for (int i = 0; i < ranks; i++)
        pace__shares_add(&shares, (double)sum_of(&all[i], 1, at));
    return pace__shares_skew(&shares);
}

/* Rank 0, which has the counts of all. */
static void end_phase(pace__reviews_rank *self, int phase, uint64_t start_ns)
{
    int ranks = self->job->prep.ranks;
    pace_prep_phase reached = {.seconds = pace__seconds_since(start_ns),
                               .rows = sum_of(self->all, ranks, measured[phase].rows),
                               .bytes = sum_of(self->all, ranks, measured[phase].bytes),
                               .skew = skew_of(self->all, ranks, measured[phase].skew)};
    pace_field fields[] = {PACE_TEXT("phase", pace_prep_phase_names[phase]),
                           PACE_REAL("seconds", reached.seconds), PACE_INT("rows", reached.rows),
                           PACE_INT("bytes", reached.bytes), PACE_REAL("skew", reached.skew)};

    if (self->me.number > 0)
        return;
    self->phases[phase] = reached;
    pace_registry_emit(self->job->prep.registry, "phase", fields, sizeof fields / sizeof *fields);
}

static pace_status map(pace__reviews_rank *self, int stream)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_map(self, stream);

    if (!status)
        status = compare_notes(self);
    if (!status && pace__prep_is_first(&self->job->prep, &self->me))
        status = pace__spills_share(&self->job->spills[stream], &self->job->prep, &self->me);
    if (!status)
        end_phase(self, stream == PACE__INPUTS ? PACE_PREP_MAP : PACE_PREP_MAP_TEST, start_ns);
    return status;
}

static pace_status reduce(pace__reviews_rank *self)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_reduce(self);

    if (!status)
        status = pace__ranks_gather(self->me.link, &self->counts, sizeof self->counts, self->all);
    if (!status)
        end_phase(self, PACE_PREP_REDUCE, start_ns);
    return status;
}

static pace_status write_rows(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__reviews_survey(self);

    if (!status && self->me.number == 0)
        say_sets(self);
    if (!status && pace__prep_is_first(&self->job->prep, &self->me))
        status = fill_info(self);
    if (!status)
        status = pace__ranks_meet(self->me.link);
    if (!status)
        status = pace__reviews_write(self);
    if (!status)
        status = finish(self, result);
    if (!status)
        end_phase(self, PACE_PREP_WRITE, start_ns);
    return status;
}

static pace_status run_phases(pace__reviews_rank *self, pace_prep_reviews_result *result)
{
    pace__prep_say_memory(&self->job->prep, &self->me);
    pace_status status = map(self, PACE__INPUTS);

    if (!status)
        status = decide_length(self);
    if (!status)
        status = reduce(self);
    if (!status && self->job->config->common.test.count > 0)
        status = map(self, PACE__TESTS);
    if (!status)
        status = decide_positive(self);
    if (!status)
        status = write_rows(self, result);
    if (!status && self->me.number == 0)
        memcpy(result->phases, self->phases, sizeof self->phases);
    return status;
}

pace_status pace__reviews_run_rank(pace__reviews *job, pace__link *link, pace_prep_reviews_result *result)
{
    pace__reviews_rank self = {.job = job, .all = calloc((size_t)job->prep.ranks, sizeof *self.all)};
    pace_status status = pace__prep_begin(&job->prep, &self.me, link);

    if (!status && !self.all)
        status = pace_fail(self.me.log, PACE_FAILED, "out of memory");
    if (!status)
        status = run_phases(&self, result);
    pace__word_counter_free(self.counter);
    free(self.all);
    pace__prep_end(&job->prep, &self.me, status);
    return status;
}

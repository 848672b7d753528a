/* Map and reduce of words as filters, for another map-reduce to run. */
#include "base/locale.h"
#include "files/file.h"
#include "files/output.h"
#include "prep/reviews/reviews.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the map filter keeps. */
typedef struct filter {
    pace__reviews *job;
    pace__word_counter *counter;
    pace__review_reader *reader;
    pace__chunk chunk;
    pace__tokens tokens;
    uint32_t *ids; /* (ids_max) nobody wants them */
    size_t ids_max;
} filter;

static pace_status count_text(filter *self, const pace__review *review)
{
    const pace_log *log = self->job->prep.log;
    pace_status status = pace__tokenise(&self->tokens, review->text, review->size, log);

    if (!status && self->tokens.count > self->ids_max) {
        free(self->ids);
        self->ids_max = 2 * self->tokens.count;
        self->ids = malloc(self->ids_max * sizeof *self->ids);
        if (!self->ids)
            status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (!status)
        status = pace__word_counter_make_room(self->counter, self->tokens.count);
    if (!status)
        pace__word_counter_add(self->counter, &self->tokens, self->ids);
    return status;
}

static pace_status count_chunk(filter *self)
{
    pace_status status = PACE_OK;
    pace__review review;
    size_t at = 0;

    for (bool found = true; !status && found;) {
        status = pace__review_next(self->reader, &self->chunk, &at, &found, &review);
        if (!status && found && !pace__reviews_drops(self->job, review.rating))
            status = count_text(self, &review);
    }
    return status;
}

static pace_status count_all(filter *self)
{
    pace__reviews *job = self->job;
    const _Atomic int *stop = job->config->common.stop;
    pace_status status = PACE_OK;

    while (!status) {
        status = stop && *stop ? PACE_INTERRUPTED : pace__input_next(job->input, &self->chunk);
        if (status || self->chunk.size == 0)
            break;
        status = count_chunk(self);
    }
    return status;
}

static pace_status open_filter(filter *self, const char *directory)
{
    pace__reviews *job = self->job;
    const pace__review_files *files = &job->files[PACE__INPUTS];
    pace__review_options *options = &job->options[PACE__INPUTS];
    pace__word_counter_plan plan = {.directory = directory,
                                    .name = "words",
                                    .memory = job->config->common.memory / 2,
                                    .stops = job->stops,
                                    .stop_count = job->stop_count};
    pace_status status = pace__input_open((const char *const *)files->paths, files->count,
                                          pace__review_boundary(options->format), job->prep.log, &job->input);

    job->bad = (pace__bad_rows){
        .max = (uint64_t)job->config->common.max_bad_rows, .input = job->input, .log = job->prep.log};
    if (!status)
        status = pace__review_reader_create(options, files, &job->bad, job->prep.log, &self->reader);
    if (!status)
        status = pace__word_counter_create(&plan, job->prep.log, &self->counter);
    return status;
}

static pace_status map_in(pace__reviews *job, const char *directory, FILE *out)
{
    filter self = {.job = job};
    pace_status status = open_filter(&self, directory);

    if (!status)
        status = count_all(&self);
    if (!status)
        status = pace__words_print(self.counter, out, job->config->common.stop, job->prep.log);
    free(self.ids);
    pace__tokens_release(&self.tokens);
    pace__chunk_release(&self.chunk);
    pace__word_counter_free(self.counter);
    pace__review_reader_free(self.reader);
    return status;
}

/* Words that do not fit in memory go to a directory of our own. */
static pace_status map(pace__reviews *job, FILE *out)
{
    const char *root = getenv("TMPDIR");
    char *directory = pace__format("%s/paceline-map.XXXXXX", root && *root ? root : "/tmp");

    if (!directory || !mkdtemp(directory)) {
        pace_status status = pace_fail(job->prep.log, PACE_IO, "%s: cannot make the directory: %s",
                                       directory ? directory : "", strerror(errno));

        free(directory);
        return status;
    }
    pace_status status = map_in(job, directory, out);

    pace__remove_tree(directory, job->prep.log);
    free(directory);
    return status;
}

pace_status pace_prep_reviews_filter(const pace_prep_reviews_config *config, FILE *in, FILE *out,
                                     const pace_log *log)
{
    PACE__C_LOCALE();
    const char *standard[] = {"-"};
    pace_prep_reviews_config own = *config;

    if (config->map == config->reduce || config->common.output)
        return pace_fail(log, PACE_USAGE,
                         "--map and --reduce are filters: one of them at a time, and without --output");
    if (config->reduce && config->common.inputs.count > 0)
        return pace_fail(log, PACE_USAGE, "--reduce reads standard input: %s is too much",
                         config->common.inputs.items[0]);
    if (config->reduce)
        return pace__words_sum(in, "standard input", out, log);
    if (own.common.inputs.count == 0)
        own.common.inputs = (pace_texts){standard, 1};
    own.common.test = (pace_texts){0};
    own.common.processes = 1;
    pace__reviews job = {.config = &own};

    pace__prep_job_init(&job.prep, NULL, NULL, &own.common, log, NULL);
    pace_status status = pace__reviews_settle_filter(&job, log);

    if (!status)
        status = map(&job, out);
    if (status == PACE_INTERRUPTED)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    pace__reviews_close(&job);
    return status;
}

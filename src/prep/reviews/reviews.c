#include "prep/reviews/reviews.h"

#include "base/locale.h"

#include "prep/options.h"
#include "threads/thread.h"

#include <stdlib.h>

#define RANK_MEMORY_MIN ((uint64_t)32 << 20)

#define FIELD(name) offsetof(pace_prep_reviews_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from the first bytes", "auto|jsonl|csv|tsv|tab|lines|folder",
     .mark = PACE_MARK_DATA, .group = ""},
    {"text-field", 0, PACE_OPT_TEXT, FIELD(text_field), "reviewText", "F",
     "jsonl, csv, tsv: the field that holds the text", .mark = PACE_MARK_DATA},
    {"label-field", 0, PACE_OPT_TEXT, FIELD(label_field), "overall", "F",
     "jsonl, csv, tsv: the field that holds the rating", .mark = PACE_MARK_DATA},
    {"positive", 0, PACE_OPT_TEXT, FIELD(positive), "auto", "MIN",
     "ratings of MIN and more are positive; auto: as in the data set of --like (a run of --like does not "
     "tell), else 4, or 1 if no rating is "
     "above 1",
     .mark = PACE_MARK_DATA},
    {"drop", 0, PACE_OPT_LIST, FIELD(drop), NULL, "VALUE",
     "leave out texts with this rating (may be repeated)", .mark = PACE_MARK_DATA},
    {"dedup", 0, PACE_OPT_FLAG, FIELD(dedup), "false", NULL,
     "of input texts with the same words keep the first, whatever their ratings; all rows with one and the "
     "same text must fit --memory",
     .mark = PACE_MARK_DATA},
    {"vocab", 0, PACE_OPT_INT, FIELD(vocab), "10000", "N", "words to know: the most frequent ones", .min = 1,
     .max = PACE__VOCABULARY_WORDS_MAX - PACE__ID_WORDS, .mark = PACE_MARK_DATA, .group = "Words"},
    {"vocabulary", 0, PACE_OPT_TEXT, FIELD(vocabulary), NULL, "FILE",
     "take the words from this file, lines of word<TAB>count or of words alone, instead of counting",
     .mark = PACE_MARK_DATA},
    {"length", 0, PACE_OPT_INT, FIELD(length), "0", "L", "words that a row has room for", .min = 0,
     .max = PACE__TEXT_LENGTH_MAX,
     .usual = "by the texts: 100; if that cuts a fifth of them, what leaves 95 % whole, up to 1000",
     .not_zero = true, .mark = PACE_MARK_DATA},
    {"truncate", 0, PACE_OPT_CHOICE, FIELD(truncate), "head", "E",
     "what is kept of longer texts: their head, their tail, or half of each", "head|tail|both",
     .mark = PACE_MARK_DATA},
    {"pad", 0, PACE_OPT_CHOICE, FIELD(pad), "end", "E", "where padding of shorter texts goes", "end|front",
     .mark = PACE_MARK_DATA},
    {"stopwords", 0, PACE_OPT_TEXT, FIELD(stopwords), "english", "FILE|none",
     "words to leave out: the built-in English list, those of a file (one a line), or none",
     .mark = PACE_MARK_DATA},
    {"keep-negations", 0, PACE_OPT_FLAG, FIELD(keep_negations), "true", NULL,
     "no, not, never, don't and the like are no stop words, whatever the list says", .mark = PACE_MARK_DATA},
    {0},
};

static const pace_option filters[] = {
    {"map", 0, PACE_OPT_FLAG, FIELD(map), "false", NULL,
     "only count: texts (files, or standard input) to word<TAB>count on standard output",
     .mark = PACE_MARK_SURFACE, .group = "Filters"},
    {"reduce", 0, PACE_OPT_FLAG, FIELD(reduce), "false", NULL,
     "only sum up: sorted lines of word<TAB>count on standard input to the same, each word once",
     .mark = PACE_MARK_SURFACE},
    {0},
};

static const pace_option limits[] = {
    PACE__PREP_LIMITS(134217728, " to stay within, besides the vocabulary; at least 128M", "0")};

const pace_option_table pace_prep_reviews_tables[] = {{pace__prep_input_options, 0},
                                                      {own_options, 0},
                                                      {pace__prep_work_options, 0},
                                                      {limits, 0},
                                                      {filters, 0},
                                                      {0}};

/* --- threads --- */

typedef struct thread_team {
    pace__reviews *job;
    pace__link *links[PACE_THREADS_MAX];
    pace_prep_reviews_result *result;
} thread_team;

static pace_status run_thread(void *arg, int thread)
{
    thread_team *team = arg;
    pace__link *link = team->links[thread];

    team->links[thread] = NULL;
    return pace__reviews_run_rank(team->job, link, team->result);
}

static pace_status run_here(void *prep, void *result)
{
    pace__reviews *job = prep;
    const pace_prep_common *config = &job->config->common;
    int ranks =
        pace__prep_threads(config->threads, pace__cores(), config->memory, RANK_MEMORY_MIN, job->prep.log);
    thread_team team = {.job = job, .result = result};
    pace_status status = pace__prep_open_threads(&job->prep, ranks, team.links);

    job->memory = config->memory / (uint64_t)ranks;
    if (status)
        return status;
    status = pace__team(ranks, run_thread, &team, job->prep.log);
    for (int i = 0; i < ranks; i++)
        pace__link_close(team.links[i]);
    return status;
}

static pace_status run_process(void *prep, pace__link *link, void *result)
{
    pace__reviews *job = prep;

    job->memory = job->config->common.memory;
    return pace__reviews_run_rank(job, link, result);
}

/* --- all of it --- */

#define RESULT(name) offsetof(pace_prep_reviews_result, name)

static const pace__prep_kind kind = {
    .verb = "prep reviews",
    .tables = pace_prep_reviews_tables,
    .config_bytes = sizeof(pace_prep_reviews_config),
    .fields = pace__reviews_result_fields,
    .result_bytes = sizeof(pace_prep_reviews_result),
    .elsewhere_at = RESULT(elsewhere),
    .seconds_at = RESULT(seconds),
    .ranks_at = RESULT(ranks),
    .settle = pace__reviews_settle,
    .run_here = run_here,
    .run_rank = run_process,
    .emit_more = pace__reviews_emit_more,
    .take_more = pace__reviews_take_more,
};

pace_status pace_prep_reviews(const pace_prep_reviews_config *config, const pace_log *log,
                              pace_registry *registry, pace_prep_reviews_result *result)
{
    PACE__C_LOCALE();
    pace__reviews *job = calloc(1, sizeof *job);

    if (!job)
        return pace_fail(log, PACE_FAILED, "out of memory");
    job->config = config;
    pace__prep_job_init(&job->prep, &kind, job, &config->common, log, registry);
    pthread_mutex_init(&job->hdf5, NULL);
    pace_status status = pace__prep_run(&job->prep, result);

    pace__reviews_close(job);
    pthread_mutex_destroy(&job->hdf5);
    free(job);
    return status;
}

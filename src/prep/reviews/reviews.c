#include "prep/reviews/reviews.h"

#include "base/clock.h"
#include "prep/options.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>

#define RANK_MEMORY_MIN ((uint64_t)32 << 20)

#define FIELD(name) offsetof(pace_prep_reviews_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from the first bytes", "auto|jsonl|csv|tsv|tab|lines|folder",
     .group = ""},
    {"text-field", 0, PACE_OPT_TEXT, FIELD(text_field), "reviewText", "F",
     "jsonl, csv, tsv: the field that holds the text"},
    {"label-field", 0, PACE_OPT_TEXT, FIELD(label_field), "overall", "F",
     "jsonl, csv, tsv: the field that holds the rating"},
    {"positive", 0, PACE_OPT_TEXT, FIELD(positive), "auto", "MIN",
     "ratings of MIN and more are positive; auto: as in the data set of --like, else 4, or 1 if no rating is "
     "above 1"},
    {"drop", 0, PACE_OPT_LIST, FIELD(drop), NULL, "VALUE",
     "leave out texts with this rating (may be repeated)"},
    {"dedup", 0, PACE_OPT_FLAG, FIELD(dedup), "false", NULL,
     "of input texts with the same words keep the first, whatever their ratings; all rows with one and the "
     "same text must fit --memory"},
    {"vocab", 0, PACE_OPT_INT, FIELD(vocab), "10000", "N", "words to know: the most frequent ones", .min = 1,
     .max = PACE__VOCABULARY_WORDS_MAX - PACE__ID_WORDS, .group = "Words"},
    {"vocabulary", 0, PACE_OPT_TEXT, FIELD(vocabulary), NULL, "FILE",
     "take the words from this file, lines of word<TAB>count or of words alone, instead of counting"},
    {"length", 0, PACE_OPT_INT, FIELD(length), "100", "L", "words that a row has room for", .min = 1,
     .max = PACE__TEXT_LENGTH_MAX},
    {"truncate", 0, PACE_OPT_CHOICE, FIELD(truncate), "head", "E",
     "what is kept of longer texts: their head, their tail, or half of each", "head|tail|both"},
    {"pad", 0, PACE_OPT_CHOICE, FIELD(pad), "end", "E", "where padding of shorter texts goes", "end|front"},
    {"stopwords", 0, PACE_OPT_TEXT, FIELD(stopwords), "english", "FILE|none",
     "words to leave out: the built-in English list, those of a file (one a line), or none"},
    {"keep-negations", 0, PACE_OPT_FLAG, FIELD(keep_negations), "true", NULL,
     "no, not, never, don't and the like are no stop words, whatever the list says"},
    {0},
};

static const pace_option filters[] = {
    {"map", 0, PACE_OPT_FLAG, FIELD(map), "false", NULL,
     "only count: texts (files, or standard input) to word<TAB>count on standard output", .group = "Filters"},
    {"reduce", 0, PACE_OPT_FLAG, FIELD(reduce), "false", NULL,
     "only sum up: sorted lines of word<TAB>count on standard input to the same, each word once"},
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

static pace_status run_threads(pace__reviews *job, pace_prep_reviews_result *result)
{
    thread_team team = {.job = job, .result = result};
    pace_status status = pace__reviews_settle(job, job->party.log);

    if (status)
        return status;
    int ranks = pace__prep_threads(job->config->common.threads, pace__cores(), job->config->common.memory,
                                   RANK_MEMORY_MIN, job->party.log);

    job->memory = job->config->common.memory / (uint64_t)ranks;
    status = pace__party_open_threads(&job->party, ranks, team.links);
    if (status)
        return status;
    status = pace__team(ranks, run_thread, &team, job->party.log);
    for (int i = 0; i < ranks; i++)
        pace__link_close(team.links[i]);
    return status;
}

/* --- processes --- */

static pace_status run_process(pace__reviews *job, pace_prep_reviews_result *result)
{
    pace__link *link = NULL;
    pace_status status = pace__party_open_process(&job->party, job->config->common.processes, &link);

    job->memory = job->config->common.memory;
    result->elsewhere = link && pace__link_rank(link) > 0;
    if (!status)
        return pace__reviews_run_rank(job, link, result);
    pace__link_close(link);
    return status;
}

/* The checks that can be made here are made here: their messages need no launcher. All else rank 0 tells. */
static pace_status start_processes(pace__reviews *job, pace_prep_reviews_result *result)
{
    pace_log errors = {pace__party_only_errors, (void *)(uintptr_t)job->party.log};
    pace_status status = pace__reviews_settle(job, &errors);

    return status ? status : pace__reviews_launch(job->config, job->party.log, job->party.registry, result);
}

pace_status pace_prep_reviews(const pace_prep_reviews_config *config, const pace_log *log,
                              pace_registry *registry, pace_prep_reviews_result *result)
{
    pace__reviews *job = calloc(1, sizeof *job);
    pace_prep_reviews_result *reached = calloc(1, sizeof *reached);
    uint64_t start_ns = pace__now_ns();
    int rank, size;
    pace_status status = PACE_OK;

    if (!job || !reached) {
        free(reached);
        free(job);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    bool launched = pace__launched(&rank, &size) && size != 1;

    job->config = config;
    pace__party_init(&job->party, config->common.output, config->common.force, config->common.stop, log,
                     registry);
    pthread_mutex_init(&job->hdf5, NULL);
    if (launched)
        status = run_process(job, reached);
    else if (config->common.processes > 1)
        status = start_processes(job, reached);
    else
        status = run_threads(job, reached);
    pace__reviews_close(job);
    pthread_mutex_destroy(&job->hdf5);
    if (!reached->elsewhere)
        reached->seconds = pace__seconds_since(start_ns);
    if (!status && launched && !reached->elsewhere)
        pace__reviews_emit_result(registry, reached);
    if (!status || reached->elsewhere)
        *result = *reached;
    free(reached);
    free(job);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}

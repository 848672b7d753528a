/* search.c - what is searched: the options of all runs, the candidates, and what is there of earlier starts. */
#include "tune/search.h"

#include "files/crc32c.h"
#include "files/file.h"
#include "series/command.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 128

/* --- the options of all runs --- */

static pace_status read_base(pace__search *search, const pace_log *log)
{
    const pace_tune_config *config = search->config;
    char *own[] = {pace__format("--data=%s", config->data), pace__format("--run=%s/runs", config->output),
                   pace__format("--model=%s", config->model)};
    const char *words[WORDS_MAX + 4] = {own[0], own[1], own[2]};
    pace_status status = PACE_OK;

    if (config->words.count > WORDS_MAX)
        status = pace_fail(log, PACE_USAGE, "%zu words behind --: there is room for %d", config->words.count,
                           WORDS_MAX);
    else if (!own[0] || !own[1] || !own[2])
        status = pace_fail(log, PACE_FAILED, "out of memory");
    for (size_t i = 0; i < config->words.count && !status; i++)
        words[3 + i] = config->words.items[i];
    if (!status)
        status = pace__command_read(words, pace_tune_options, log, &search->base, &search->options);
    for (size_t i = 0; i < 3; i++)
        free(own[i]);
    return status;
}

/* Frozen layers make the same of the same pictures in every run. */
static pace_status choose_features(pace__search *search, const pace_log *log)
{
    search->features = pace__format("%s/features", search->config->output);
    return search->features ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

pace_status pace__search_read(pace__search *search, const pace_log *log)
{
    pace_status status = read_base(search, log);

    if (!status)
        status = pace__tries_read(&search->config->tries, search->base.model, log, &search->tries);
    return status ? status : choose_features(search, log);
}

/* Where nobody has said another place. */
static void share_features(const pace__search *search, pace_train_config *config)
{
    pace_cnn_options *own = &config->own.cnn;

    if (config->model == PACE_MODEL_CNN && own->train && strcmp(own->train, "top") == 0 &&
        !own->feature_cache)
        own->feature_cache = search->features;
}

pace_train_config pace__search_config(const pace__search *search, const pace__entry *entry, unsigned part,
                                      const char *run)
{
    pace_train_config config = search->base;

    pace__candidate_apply(&search->tries, &entry->candidate, &config);
    share_features(search, &config);
    config.run = run;
    config.records.report = PACE_REPORT_OFF;
    if (part > 1)
        config.length.steps = pace__rung_steps(entry->steps, part);
    return config;
}

char *pace__search_run_path(const pace__search *search, const pace__entry *entry)
{
    return pace__format("%s/runs/%08" PRIx32, search->config->output,
                        pace__masked_crc32c(entry->words, strlen(entry->words)));
}

/* --- candidates --- */

static bool is_known(const pace__search *search, const char *words)
{
    for (size_t i = 0; i < search->count; i++) {
        if (strcmp(search->entries[i].words, words) == 0)
            return true;
    }
    for (size_t i = 0; i < search->refused_count; i++) {
        if (strcmp(search->refused[i].words, words) == 0)
            return true;
    }
    return false;
}

static pace_status refuse(pace__search *search, const pace__entry *entry, const char *error,
                          const pace_log *log)
{
    pace__refused *longer = realloc(search->refused, (search->refused_count + 1) * sizeof *search->refused);

    if (!longer)
        return pace_fail(log, PACE_FAILED, "out of memory");
    search->refused = longer;
    pace__refused *refused = &search->refused[search->refused_count++];

    *refused = (pace__refused){0};
    snprintf(refused->words, sizeof refused->words, "%s", entry->words);
    snprintf(refused->error, sizeof refused->error, "%.*s", PACE__OUTCOME_TEXT - 1, error);
    return PACE_OK;
}

static pace_status foresee(const pace__search *search, const pace__entry *entry, const pace_log *log,
                           pace__foreseen *foreseen)
{
    char *run = pace__search_run_path(search, entry);

    *foreseen = (pace__foreseen){0};
    if (!run)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_train_config config = pace__search_config(search, entry, 1, run);

    config.force = true; /* what an earlier start has left */
    pace_status status = pace__command_foresee(&config, log, foreseen);

    free(run);
    return status;
}

static pace_status say_foreseen(pace_status status, const pace__foreseen *foreseen, const pace_log *log)
{
    return foreseen->error[0] ? pace_fail(log, status, "%s", foreseen->error) : status;
}

/* Of the defaults, what train says is said; of others it is a reason to pass them over. */
static pace_status check(pace__search *search, pace__entry *entry, const pace_log *log)
{
    pace__foreseen foreseen;
    pace_status status = foresee(search, entry, log, &foreseen);

    if (status == PACE_USAGE && !entry->candidate.is_default)
        return refuse(search, entry, foreseen.error, log);
    if (status)
        return say_foreseen(status, &foreseen, log);
    if (foreseen.steps < 1)
        return pace_fail(log, PACE_USAGE,
                         "%s: is not on this machine, so that nobody knows how long a run is; start the "
                         "search where the data is",
                         search->config->data);
    entry->steps = foreseen.steps;
    entry->open_end = foreseen.open_end;
    search->count++;
    return PACE_OK;
}

/* Unless it is there already, or nothing else than the defaults. */
static pace_status consider(pace__search *search, const pace__candidate *candidate, const pace_log *log)
{
    pace__entry *entry = &search->entries[search->count];

    *entry = (pace__entry){.candidate = *candidate};
    pace__candidate_words(&search->tries, candidate, entry->words);
    if (is_known(search, entry->words) ||
        (!candidate->is_default && !pace__candidate_changes(&search->tries, candidate, &search->base)))
        return PACE_OK;
    return check(search, entry, log);
}

static pace__rungs rungs_for(const pace__search *search, int64_t budget, uint64_t others)
{
    return pace__rungs_make(budget, others < UINT64_MAX ? others + 1 : others, search->entries[0].steps,
                            search->config->halving);
}

/* A budget that does for all of a grid; 0: none. */
static int64_t budget_for(const pace__search *search, uint64_t others)
{
    for (int64_t budget = 1; others < PACE__CANDIDATES_MAX && budget <= PACE__CANDIDATES_MAX; budget++) {
        if (rungs_for(search, budget, others).candidates[0] > others)
            return budget;
    }
    return 0;
}

static pace_status refuse_grid(const pace__search *search, uint64_t points, const pace_log *log)
{
    int64_t enough = budget_for(search, points);
    char larger[64] = "";

    if (enough)
        snprintf(larger, sizeof larger, "--budget %" PRId64 " or ", enough);
    return pace_fail(log, PACE_USAGE,
                     "--search grid: %" PRIu64 " points and the defaults are more than the %zu candidates "
                     "that --budget %" PRId64 " has room for; %s--search random",
                     points, search->rungs.candidates[0], search->config->budget, larger);
}

static bool has_ranges(const pace__tries *tries)
{
    for (size_t i = 0; i < tries->count; i++) {
        if (tries->of[i].count == 0)
            return true;
    }
    return false;
}

/* Rungs, and whether all points of the grid are visited. */
static pace_status choose_way(pace__search *search, const pace_log *log)
{
    uint64_t points = pace__grid_size(&search->tries);
    int asked = search->config->search;
    pace__rungs all = rungs_for(search, search->config->budget, points);
    bool fits = all.candidates[0] > points;

    search->rungs = all;
    search->on_grid =
        asked == PACE_SEARCH_GRID || (asked == PACE_SEARCH_AUTO && fits && !has_ranges(&search->tries));
    if (asked == PACE_SEARCH_GRID && !fits)
        return refuse_grid(search, points, log);
    if (!search->on_grid)
        search->rungs = rungs_for(search, search->config->budget, pace__combinations(&search->tries));
    return PACE_OK;
}

/* Draws that may come to nothing, for each candidate: values of short lists come again and again. */
#define DRAWS_EACH 64

static pace_status fill(pace__search *search, const pace_log *log)
{
    size_t wanted = search->rungs.candidates[0];
    uint64_t places = search->on_grid ? pace__grid_size(&search->tries) : DRAWS_EACH * (uint64_t)wanted;
    pace_status status = PACE_OK;
    pace__candidate candidate;

    for (uint64_t place = 0; place < places && search->count < wanted && !status; place++) {
        if (search->config->stop && *search->config->stop)
            return pace_fail(log, PACE_INTERRUPTED, "interrupted: nothing was started");
        if (search->on_grid)
            pace__candidate_on_grid(&search->tries, place, &candidate);
        else
            pace__candidate_sample(&search->tries, (uint64_t)search->config->seed, place, &candidate);
        status = consider(search, &candidate, log);
    }
    return status;
}

/* Rows to compare by: those of the data set, or those that were asked for behind --; else some are taken. */
static pace_status choose_validation(pace__search *search, const pace_log *log)
{
    pace__foreseen foreseen;
    pace_status status = foresee(search, &(pace__entry){.candidate = {.is_default = true}}, log, &foreseen);

    if (status)
        return say_foreseen(status, &foreseen, log);
    search->set_apart = foreseen.validation_rows == 0;
    if (search->set_apart)
        search->base.validation = PACE__SET_APART;
    return PACE_OK;
}

pace_status pace__search_gather(pace__search *search, const pace_log *log)
{
    search->entries = calloc(PACE__CANDIDATES_MAX + 1, sizeof *search->entries);
    if (!search->entries)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = choose_validation(search, log);

    if (!status)
        status = consider(search, &(pace__candidate){.is_default = true}, log);
    if (!status)
        status = choose_way(search, log);
    if (!status)
        status = fill(search, log);
    if (!status && search->count == 1 && search->refused_count)
        status = pace_fail(log, PACE_USAGE, "train would take none of the candidates; %s: %s",
                           search->refused[0].words, search->refused[0].error);
    if (status)
        return status;
    /* Fewer than there is room for: refused, or all that there are. */
    if (search->count < search->rungs.candidates[0])
        search->rungs = rungs_for(search, search->config->budget, search->count - 1);
    return PACE_OK;
}

/* --- what is there already --- */

static void take_outcome(pace__search *search, const char *words, const pace__outcome *outcome)
{
    for (size_t i = 0; i < search->count; i++) {
        pace__entry *entry = &search->entries[i];

        if (strcmp(entry->words, words) != 0)
            continue;
        for (size_t rung = 0; rung < search->rungs.count; rung++) {
            unsigned part = search->rungs.part[rung];
            int64_t steps = part > 1 ? pace__rung_steps(entry->steps, part) : entry->steps;

            if (outcome->part == part && (outcome->status || outcome->steps == steps))
                entry->outcomes[rung] = *outcome;
        }
    }
}

static void note_refused(pace__search *search, const char *words)
{
    for (size_t i = 0; i < search->refused_count; i++)
        search->refused[i].recorded |= strcmp(search->refused[i].words, words) == 0;
}

static void take_line(pace__search *search, const char *text, const pace_log *log)
{
    cJSON *line = cJSON_Parse(text);
    const char *words = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "candidate"));
    pace__outcome outcome;

    if (!words)
        pace_say(log, PACE_WARN, "%s: a line cannot be read, and is passed over", search->ledger.path);
    else if (pace__outcome_from_json(line, &search->tries, &outcome))
        take_outcome(search, words, &outcome);
    else
        note_refused(search, words);
    cJSON_Delete(line);
}

/* A run of none of its length. */
static pace_status record_refused(pace__search *search, pace__refused *refused, const pace_log *log)
{
    pace__outcome outcome = {.status = PACE_USAGE};

    snprintf(outcome.error, sizeof outcome.error, "%s", refused->error);
    cJSON *line = pace__outcome_to_json(&outcome, &search->tries, refused->words);
    char *text = cJSON_PrintUnformatted(line);
    pace_status status =
        text ? pace__ledger_add(&search->ledger, text, log) : pace_fail(log, PACE_FAILED, "out of memory");

    refused->recorded = !status;
    free(text);
    cJSON_Delete(line);
    return status;
}

static pace_status remove_runs(const pace__search *search, const pace_log *log)
{
    char *runs = pace__format("%s/runs", search->config->output);
    pace_status status = runs ? pace__remove_tree(runs, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(runs);
    return status ? status : pace__remove_tree(search->features, log);
}

pace_status pace__search_open(pace__search *search, const pace_log *log)
{
    const pace_tune_config *config = search->config;
    char *options = pace__command_line(&search->base),
         *which = options ? pace__format("--data=%s%s%s", config->data, *options ? " " : "", options) : NULL;
    pace_status status =
        which ? pace__ledger_open(config->output, "search", which, config->force, log, &search->ledger)
              : pace_fail(log, PACE_FAILED, "out of memory");
    const char *line;

    free(options);
    free(which);
    if (!status && config->force)
        status = remove_runs(search, log);
    while (!status && (line = pace__ledger_next(&search->ledger)))
        take_line(search, line, log);
    for (size_t i = 0; i < search->refused_count && !status; i++) {
        if (!search->refused[i].recorded)
            status = record_refused(search, &search->refused[i], log);
    }
    return status;
}

void pace__search_release(pace__search *search)
{
    pace_options_free(search->options);
    pace__tries_release(&search->tries);
    pace__ledger_close(&search->ledger);
    free(search->features);
    free(search->entries);
    free(search->refused);
}

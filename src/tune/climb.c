/*
 * climb.c - the runs of a search, rung by rung.
 *
 * 1. A result is on disk before the next run begins.
 * 2. Who goes on follows from the results of a rung alone.
 * 3. Of the runs of a rung, only those are kept that go on as things stand: a model of 129 MiB for each of sixty candidates would
 *    fill a disk.
 */
#include "files/file.h"
#include "report/markup.h"
#include "tune/search.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct climb {
    pace__search *search;
    const pace_log *log;
    pace_registry *registry;
    size_t total, done, before;
} climb;

/* --- how far it is --- */

static bool is_done(const pace__search *search, size_t place, size_t rung)
{
    return pace__outcome_is_final(&search->entries[place].outcomes[rung]);
}

/* A rung has as many runs as there is room for, unless some fail. */
static void count_runs(climb *self)
{
    const pace__search *search = self->search;

    for (size_t rung = 0; rung < search->rungs.count; rung++) {
        size_t room = search->rungs.candidates[rung];

        self->total += room < search->count ? room : search->count;
        for (size_t i = 0; i < search->count; i++)
            self->done += is_done(search, i, rung);
    }
    self->before = self->done;
}

static void tell(const climb *self, const char *words)
{
    pace_field fields[] = {PACE_TEXT("phase", "tune"),       PACE_INT("done", self->done),
                           PACE_INT("total", self->total),   PACE_TEXT("unit", "runs"),
                           PACE_INT("before", self->before), PACE_TEXT("now", words)};

    pace_registry_emit(self->registry, "progress", fields, sizeof fields / sizeof *fields - !words);
}

#define PART_TEXT 48

static const char *part_words(unsigned part, char text[PART_TEXT])
{
    text[0] = '\0';
    if (part > 1)
        snprintf(text, PART_TEXT, ", for 1/%u of its length", part);
    return text;
}

static void say_outcome(const climb *self, const pace__entry *entry, const pace__outcome *outcome)
{
    pace__score score = self->search->score;
    char part[PART_TEXT], value[PACE__AMOUNT_TEXT], time[PACE__AMOUNT_TEXT];

    part_words(outcome->part, part);
    if (outcome->status)
        pace_say(self->log, PACE_WARN, "%zu of %zu: %s%s: failed with exit code %d: %s", self->done,
                 self->total, entry->words, part, outcome->status, outcome->error);
    else
        pace_say(self->log, PACE_INFO, "%zu of %zu: %s%s: %s %s, %s", self->done, self->total, entry->words,
                 part, pace__score_titles[score],
                 pace__amount(outcome->validation.value[score], PACE__REAL, value),
                 pace__amount(outcome->seconds, PACE__SECONDS, time));
}

/* --- one run --- */

static pace_status record(climb *self, const pace__entry *entry, const pace__outcome *outcome)
{
    cJSON *line = pace__outcome_to_json(outcome, &self->search->tries, entry->words);
    char *text = cJSON_PrintUnformatted(line);
    pace_status status = text ? pace__ledger_add(&self->search->ledger, text, self->log)
                              : pace_fail(self->log, PACE_FAILED, "out of memory");

    free(text);
    cJSON_Delete(line);
    return status;
}

static pace_status run_one(climb *self, size_t place, size_t rung)
{
    pace__entry *entry = &self->search->entries[place];
    pace__outcome *outcome = malloc(sizeof *outcome);

    if (!outcome)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    tell(self, entry->words);
    pace_status status =
        pace__search_run_one(self->search, entry, self->search->rungs.part[rung], self->log, outcome);

    if (!status)
        status = record(self, entry, outcome);
    if (!status) {
        entry->outcomes[rung] = *outcome;
        self->done++;
        say_outcome(self, entry, outcome);
    }
    free(outcome);
    return status;
}

/* A score that the model does not have (the AUC of ten classes) is nothing to go by. */
static pace_status check_score(const climb *self, size_t rung)
{
    const pace__outcome *first = &self->search->entries[0].outcomes[rung];
    pace__score score = self->search->score;

    if (!first->there || first->status || isfinite(first->validation.value[score]))
        return PACE_OK;
    return pace_fail(self->log, PACE_USAGE, "--metric %s: %s has none; --metric logloss or accuracy",
                     pace__score_names[score], self->search->config->model);
}

/* --- who goes on --- */

void pace__search_losses(const pace__search *search, size_t rung, double loss[PACE__CANDIDATES_MAX])
{
    for (size_t i = 0; i < search->alive_count; i++)
        loss[i] = pace__outcome_loss(&search->entries[search->alive[i]].outcomes[rung], search->score);
}

/* Places among those alive. Candidate 0 is the first of them, or has failed: then nobody is favoured. */
static size_t choose(const pace__search *search, size_t rung, size_t chosen[PACE__CANDIDATES_MAX])
{
    double loss[PACE__CANDIDATES_MAX];

    pace__search_losses(search, rung, loss);
    if (rung + 1 == search->rungs.count)
        return pace__rungs_best(loss, search->alive_count, 1, chosen);
    size_t keep = search->rungs.candidates[rung + 1];

    return search->alive_count && search->alive[0] == 0
               ? pace__rungs_promoted(loss, search->alive_count, keep, chosen)
               : pace__rungs_best(loss, search->alive_count, keep, chosen);
}

static int by_place(const void *left, const void *right)
{
    size_t a = *(const size_t *)left, b = *(const size_t *)right;

    return (a > b) - (a < b);
}

/* Earlier candidates first, as ties want it. */
static void promote(pace__search *search, size_t rung)
{
    size_t chosen[PACE__CANDIDATES_MAX], next[PACE__CANDIDATES_MAX];
    size_t count = choose(search, rung, chosen);

    for (size_t i = 0; i < count; i++)
        next[i] = search->alive[chosen[i]];
    qsort(next, count, sizeof *next, by_place);
    memcpy(search->alive, next, count * sizeof *next);
    search->alive_count = count;
}

/* Invariant 3. Places that are not finished yet have no loss, and keep their directories. */
static pace_status tidy(const climb *self, size_t rung)
{
    const pace__search *search = self->search;
    size_t chosen[PACE__CANDIDATES_MAX], count = choose(search, rung, chosen);
    pace_status status = PACE_OK;

    for (size_t i = 0; i < search->alive_count && !status && !search->config->keep_runs; i++) {
        const pace__entry *entry = &search->entries[search->alive[i]];
        bool stays = !is_done(search, search->alive[i], rung);

        for (size_t j = 0; j < count; j++)
            stays |= chosen[j] == i;
        char *run = stays ? NULL : pace__search_run_path(search, entry);

        if (run)
            status = pace__remove_tree(run, self->log);
        free(run);
    }
    return status;
}

/* --- the way up --- */

static pace_status climb_rung(climb *self, size_t rung)
{
    const pace__search *search = self->search;
    pace_status status = PACE_OK;

    for (size_t i = 0; i < search->alive_count && !status; i++) {
        if (is_done(search, search->alive[i], rung))
            continue;
        if (search->config->stop && *search->config->stop)
            return PACE_INTERRUPTED;
        status = run_one(self, search->alive[i], rung);
        if (!status)
            status = check_score(self, rung);
        if (!status)
            status = tidy(self, rung);
    }
    return status;
}

static pace_status climb_all(climb *self)
{
    pace__search *search = self->search;
    pace_status status = PACE_OK;

    for (size_t rung = 0; rung < search->rungs.count && !status; rung++) {
        bool last = rung + 1 == search->rungs.count;
        size_t best[PACE__CANDIDATES_MAX];

        status = climb_rung(self, rung);
        if (!status && !last)
            promote(search, rung);
        else if (!status && choose(search, rung, best) > 0)
            search->winner = (int)search->alive[best[0]];
    }
    return status;
}

static pace_status refuse_all(const climb *self)
{
    const pace__outcome *first = &self->search->entries[0].outcomes[0];

    return pace_fail(self->log, PACE_FAILED,
                     "%s: no candidate has come to its end; the defaults: %s; %s has all causes",
                     self->search->config->output, first->status ? first->error : "failed later",
                     self->search->ledger.path);
}

pace_status pace__search_climb(pace__search *search, const pace_log *log, pace_registry *registry)
{
    climb self = {.search = search, .log = log, .registry = registry};
    size_t first = search->rungs.candidates[0];

    search->winner = -1;
    search->alive_count = search->count < first ? search->count : first;
    for (size_t i = 0; i < search->alive_count; i++)
        search->alive[i] = i;
    count_runs(&self);
    if (self.before > 0)
        pace_say(log, PACE_INFO, "%s: %zu of about %zu runs are there already", search->config->output,
                 self.before, self.total);
    pace_status status = climb_all(&self);

    tell(&self, NULL);
    if (status == PACE_INTERRUPTED)
        return pace_fail(
            log, status,
            "%s: interrupted: %zu of about %zu runs are kept; the same command goes on with the rest",
            search->config->output, self.done, self.total);
    return status || search->winner >= 0 ? status : refuse_all(&self);
}

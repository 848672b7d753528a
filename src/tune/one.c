/*
 * one.c - one run of a candidate, as another process.
 *
 * A run goes on from the rung before if its rate does not depend on how many steps follow, and from where it was interrupted in
 * any case; else, and where train will not go on with what is there, it begins anew.
 */
#include "files/file.h"
#include "history/history.h"
#include "series/child.h"
#include "series/command.h"
#include "tune/search.h"

#include <stdlib.h>

typedef struct attempt {
    const pace__search *search;
    const pace__entry *entry;
    unsigned part;
    const char *run;
    const pace_log *log;
} attempt;

static int64_t steps_of(const attempt *self)
{
    return self->part > 1 ? pace__rung_steps(self->entry->steps, self->part) : self->entry->steps;
}

/* By what the run directory says of the last start. */
static bool may_go_on(const attempt *self)
{
    pace_log silent = {0};
    pace__history *history;

    if (!pace__exists(self->run) || pace__history_open(self->run, &silent, &history))
        return false;
    bool may = self->entry->open_end || history->steps == (uint64_t)steps_of(self);

    pace__history_close(history);
    return may;
}

static pace_status start(const attempt *self, bool goes_on, pace__job_end *end)
{
    static const char *const more[] = {"--quiet", NULL};
    pace_train_config config = pace__search_config(self->search, self->entry, self->part, self->run);
    char **words;

    config.resume = goes_on;
    config.force = !goes_on;
    pace_status status = goes_on ? PACE_OK : pace__remove_tree(self->run, self->log);

    if (!status)
        status = pace__command_words(&config, more, self->log, &words);
    if (status)
        return status;
    status = pace__child_run(words, self->search->config->stop, self->log, end);
    pace_options_free_words(words);
    return status;
}

/* It has not trained, but refused what is there: an older run, or one that was damaged. */
static bool was_turned_away(int code)
{
    return code == PACE_USAGE || code == PACE_BAD_DATA || code == PACE_NO_INPUT;
}

static pace_status run(const attempt *self, pace__job_end *end, bool *went_on)
{
    *went_on = may_go_on(self);
    pace_status status = start(self, *went_on, end);

    if (!status && *went_on && was_turned_away(end->code)) {
        *went_on = false;
        status = start(self, false, end);
    }
    return status;
}

/* What cannot be measured is a failure of the candidate, in the words that were said about it. */
static void measure(const attempt *self, pace__outcome *outcome)
{
    pace__foreseen said = {0};
    pace_log log = pace__foreseen_log(&said);

    outcome->status = pace__outcome_measure(self->run, &self->search->tries, &log, outcome);
    if (outcome->status)
        snprintf(outcome->error, sizeof outcome->error, "%.*s", PACE__OUTCOME_TEXT - 1, said.error);
}

static void take_end(const attempt *self, const pace__job_end *end, pace__outcome *outcome)
{
    outcome->seconds = end->seconds;
    outcome->status = end->code;
    if (end->code)
        snprintf(outcome->error, sizeof outcome->error, "%s",
                 end->last[0] ? end->last : "it has not said why");
    else
        measure(self, outcome);
}

pace_status pace__search_run_one(const pace__search *search, const pace__entry *entry, unsigned part,
                                 const pace_log *log, pace__outcome *outcome)
{
    char *path = pace__search_run_path(search, entry);
    attempt self = {search, entry, part, path, log};
    pace__job_end *end = malloc(sizeof *end);
    pace_status status = path && end ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    bool went_on = false;

    if (!status)
        status = run(&self, end, &went_on);
    if (!status) {
        *outcome = (pace__outcome){.there = true, .part = part, .went_on = went_on, .steps = steps_of(&self)};
        take_end(&self, end, outcome);
    }
    free(end);
    free(path);
    return status;
}

#include "tune/told.h"

#include "base/json.h"
#include "files/file.h"
#include "report/markup.h"
#include "series/command.h"
#include "series/listing.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TERMINAL_ROWS  20
#define NOTES_TERMINAL 5

/* --- the best first --- */

/* The last that went well; NULL: none has. */
static const pace__outcome *best_outcome(const pace__entry *entry)
{
    for (size_t rung = PACE__RUNGS_MAX; rung-- > 0;) {
        if (entry->outcomes[rung].there && entry->outcomes[rung].status == 0)
            return &entry->outcomes[rung];
    }
    return NULL;
}

static const pace__outcome *failure(const pace__entry *entry)
{
    for (size_t rung = 0; rung < PACE__RUNGS_MAX; rung++) {
        if (entry->outcomes[rung].there && entry->outcomes[rung].status)
            return &entry->outcomes[rung];
    }
    return NULL;
}

static bool goes_before(const pace__entry *left, const pace__entry *right, pace__score score)
{
    const pace__outcome *a = best_outcome(left), *b = best_outcome(right);

    if (!a || !b)
        return a && !b;
    if (a->part != b->part)
        return a->part < b->part;
    return pace__outcome_loss(a, score) < pace__outcome_loss(b, score);
}

void pace__search_rank(const pace__search *search, size_t *order)
{
    for (size_t i = 0; i < search->count; i++) {
        size_t at = i;

        for (; at > 0 && goes_before(&search->entries[i], &search->entries[order[at - 1]], search->score);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* --- its columns --- */

/* Behind the tried options. */
enum { LENGTH, SCORES, TIME = SCORES + PACE__SCORES, NOTE, COLUMNS };

typedef struct view {
    const pace__search *search;
    size_t order[PACE__CANDIDATES_MAX];
} view;

static size_t tries_of(const view *self)
{
    return self->search->tries.count;
}

/* What an option came to, or what it was told. */
static const char *value_of(const pace__entry *entry, size_t try)
{
    const pace__outcome *outcome = best_outcome(entry);

    if (!entry->candidate.is_default)
        return pace__candidate_value(&entry->candidate, try);
    return outcome && outcome->settings[try][0] ? outcome->settings[try] : "default";
}

static double seconds_of(const pace__entry *entry)
{
    double sum = 0;

    for (size_t rung = 0; rung < PACE__RUNGS_MAX; rung++)
        sum += entry->outcomes[rung].there ? entry->outcomes[rung].seconds : 0;
    return sum;
}

static const char *note_of(const pace__search *search, size_t place)
{
    const pace__entry *entry = &search->entries[place];
    bool best = search->winner == (int)place;

    if (failure(entry))
        return "failed";
    if (entry->candidate.is_default)
        return best ? "best: the defaults" : "defaults";
    return best ? "best" : "";
}

static const char *heading(const void *user, size_t column)
{
    static const char *const names[COLUMNS] = {[LENGTH] = "length", [TIME] = "time", [NOTE] = "note"};
    const view *self = user;

    if (column < tries_of(self))
        return self->search->tries.of[column].row->name;
    column -= tries_of(self);
    return column >= SCORES && column < TIME ? pace__score_titles[column - SCORES] : names[column];
}

static bool is_left(const void *user, size_t column)
{
    const view *self = user;

    return column == tries_of(self) + NOTE ||
           (column < tries_of(self) && self->search->tries.of[column].row->kind >= PACE_OPT_TEXT);
}

static const char *length_text(const pace__outcome *outcome, char text[PACE__LISTING_TEXT])
{
    if (!outcome)
        return "\xe2\x80\x93";
    snprintf(text, PACE__LISTING_TEXT, outcome->part > 1 ? "1/%u" : "%u", outcome->part);
    return text;
}

static const char *cell(const void *user, size_t row, size_t column, char text[PACE__LISTING_TEXT])
{
    const view *self = user;
    const pace__entry *entry = &self->search->entries[self->order[row]];
    const pace__outcome *outcome = best_outcome(entry);

    if (column < tries_of(self)) {
        snprintf(text, PACE__LISTING_TEXT, "%s", value_of(entry, column));
        return text;
    }
    column -= tries_of(self);
    if (column == LENGTH)
        return length_text(outcome, text);
    if (column == NOTE)
        return note_of(self->search, self->order[row]);
    if (column == TIME)
        return pace__amount(seconds_of(entry), PACE__SECONDS, text);
    return pace__amount(outcome ? outcome->validation.value[column - SCORES] : NAN, PACE__REAL, text);
}

_Static_assert(PACE__AMOUNT_TEXT <= PACE__LISTING_TEXT, "an amount fits a cell");

static pace__listing listing_of(const view *self, size_t rows)
{
    return (pace__listing){.rows = rows < self->search->count ? rows : self->search->count,
                           .columns = tries_of(self) + COLUMNS,
                           .user = self,
                           .heading = heading,
                           .is_left = is_left,
                           .cell = cell};
}

/* --- around it --- */

/* "62 runs for 1/9 of their length, 20 for 1/3, 6 for all of it" */
static void put_rungs(FILE *out, const pace__rungs *rungs)
{
    if (rungs->count == 1)
        fprintf(out, "%zu runs of full length", rungs->candidates[0]);
    for (size_t i = 0; rungs->count > 1 && i < rungs->count; i++) {
        fprintf(out, "%s%zu%s for ", i ? ", " : "", rungs->candidates[i], i ? "" : " runs");
        if (rungs->part[i] > 1)
            fprintf(out, "1/%u%s", rungs->part[i], i ? "" : " of their length");
        else
            fputs("all of it", out);
    }
}

static void put_title(FILE *out, const pace__search *search)
{
    fprintf(out, "%zu candidates, %s; ", search->count,
            search->on_grid ? "all of a grid" : "drawn at random");
    put_rungs(out, &search->rungs);
    fprintf(out, "; compared by %s of the validation rows", pace__score_titles[search->score]);
    if (search->set_apart)
        fprintf(out, ", the last %.0f %% of the training rows", 100 * PACE__SET_APART);
    fputc('\n', out);
}

static void put_notes(FILE *out, const pace__search *search, const char *before, size_t most)
{
    size_t told = 0, failed = 0;

    for (size_t i = 0; i < search->count; i++) {
        const pace__outcome *bad = failure(&search->entries[i]);

        failed += bad != NULL;
        if (bad && told < most && ++told)
            fprintf(out, "%sfailed: %s: exit code %d: %s\n", before, search->entries[i].words, bad->status,
                    bad->error);
    }
    for (size_t i = 0; i < search->refused_count; i++) {
        if (told < most && ++told)
            fprintf(out, "%simpossible: %s: %s\n", before, search->refused[i].words,
                    search->refused[i].error);
    }
    if (failed + search->refused_count > told)
        fprintf(out, "%s%zu more have failed or are impossible: %s has their causes\n", before,
                failed + search->refused_count - told, PACE__LEDGER_NAME);
}

static pace_status put_text(FILE *out, const void *user, const pace_log *log)
{
    const view *self = user;
    pace__listing listing = listing_of(self, TERMINAL_ROWS);

    (void)log;
    put_title(out, self->search);
    pace__listing_put_text(out, &listing);
    if (listing.rows < self->search->count)
        fprintf(out, "  %zu more in %s/table.md\n", self->search->count - listing.rows,
                self->search->config->output);
    put_notes(out, self->search, "  ", NOTES_TERMINAL);
    return PACE_OK;
}

static pace_status put_markdown(FILE *out, const void *user, const pace_log *log)
{
    const view *self = user;
    pace__listing listing = listing_of(self, self->search->count);

    (void)log;
    fputs("# Search\n\n", out);
    put_title(out, self->search);
    fputc('\n', out);
    pace__listing_put_markdown(out, &listing);
    fputc('\n', out);
    put_notes(out, self->search, "- ", SIZE_MAX);
    return PACE_OK;
}

static pace_status put_csv(FILE *out, const void *user, const pace_log *log)
{
    const view *self = user;
    const pace__search *search = self->search;

    (void)log;
    fputs("rank", out);
    for (size_t i = 0; i < search->tries.count; i++)
        fprintf(out, ",%s", search->tries.of[i].row->name);
    fputs(",part", out);
    for (int i = 0; i < PACE__SCORES; i++)
        fprintf(out, ",%s", pace__score_names[i]);
    fputs(",seconds,note\n", out);
    for (size_t row = 0; row < search->count; row++) {
        const pace__entry *entry = &search->entries[self->order[row]];
        const pace__outcome *outcome = best_outcome(entry);

        fprintf(out, "%zu", row + 1);
        for (size_t i = 0; i < search->tries.count; i++)
            pace__csv_put_quoted(out, value_of(entry, i));
        pace__csv_put_number(out, outcome ? outcome->part : NAN);
        for (int i = 0; i < PACE__SCORES; i++)
            pace__csv_put_number(out, outcome ? outcome->validation.value[i] : NAN);
        pace__csv_put_number(out, seconds_of(entry));
        pace__csv_put_quoted(out, note_of(search, self->order[row]));
        fputc('\n', out);
    }
    return PACE_OK;
}

/* --- JSON --- */

/* Messages and values may have any bytes. */
static void add_text(cJSON *object, const char *name, const char *text)
{
    char *valid = text ? pace__json_valid(strdup(text)) : NULL;

    if (valid)
        cJSON_AddStringToObject(object, name, valid);
    else
        cJSON_AddNullToObject(object, name);
    free(valid);
}

static cJSON *entry_json(const pace__search *search, size_t place)
{
    const pace__entry *entry = &search->entries[place];
    const pace__outcome *outcome = best_outcome(entry), *bad = failure(entry);
    cJSON *object = cJSON_CreateObject(), *options;

    add_text(object, "candidate", entry->words);
    options = cJSON_AddObjectToObject(object, "options");
    for (size_t i = 0; i < search->tries.count; i++)
        add_text(options, search->tries.of[i].row->name, value_of(entry, i));
    cJSON_AddNumberToObject(object, "seconds", seconds_of(entry));
    if (outcome) {
        cJSON_AddNumberToObject(object, "part", outcome->part);
        cJSON_AddNumberToObject(object, "steps", (double)outcome->steps);
        cJSON_AddItemToObject(object, "validation", pace__scored_to_json(&outcome->validation));
    }
    if (bad) {
        cJSON_AddNumberToObject(object, "exit_code", bad->status);
        add_text(object, "error", bad->error);
    }
    return object;
}

static cJSON *refused_json(const pace__search *search)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < search->refused_count; i++) {
        cJSON *each = cJSON_CreateObject();

        add_text(each, "candidate", search->refused[i].words);
        add_text(each, "error", search->refused[i].error);
        cJSON_AddItemToArray(list, each);
    }
    return list;
}

static cJSON *rungs_json(const pace__rungs *rungs)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < rungs->count; i++) {
        cJSON *each = cJSON_CreateObject();

        cJSON_AddNumberToObject(each, "part", rungs->part[i]);
        cJSON_AddNumberToObject(each, "candidates", (double)rungs->candidates[i]);
        cJSON_AddItemToArray(list, each);
    }
    return list;
}

static cJSON *common_json(const pace__search *search)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "search", search->on_grid ? "grid" : "random");
    cJSON_AddStringToObject(object, "metric", pace__score_names[search->score]);
    cJSON_AddNumberToObject(object, "budget", (double)search->config->budget);
    cJSON_AddNumberToObject(object, "cost", pace__rungs_cost(&search->rungs));
    if (search->set_apart)
        cJSON_AddNumberToObject(object, "set_apart", PACE__SET_APART);
    else
        cJSON_AddNullToObject(object, "set_apart");
    cJSON_AddItemToObject(object, "rungs", rungs_json(&search->rungs));
    cJSON_AddItemToObject(object, "impossible", refused_json(search));
    return object;
}

static cJSON *best_json(const pace__search *search, const pace_tune_result *result)
{
    cJSON *best = entry_json(search, (size_t)search->winner);

    cJSON_AddItemToObject(best, "test",
                          pace__scored_to_json(&best_outcome(&search->entries[search->winner])->test));
    add_text(best, "run", result->run);
    add_text(best, "command", result->command);
    return best;
}

/* What print_json has, in one piece. NULL when out of memory. */
static char *search_json(const view *self, const pace_tune_result *result)
{
    const pace__search *search = self->search;
    cJSON *object = common_json(search), *list;

    cJSON_AddItemToObject(object, "best", best_json(search, result));
    cJSON_AddItemToObject(object, "defaults", entry_json(search, 0));
    list = cJSON_AddArrayToObject(object, "candidates");
    for (size_t i = 0; i < search->count; i++)
        cJSON_AddItemToArray(list, entry_json(search, self->order[i]));
    char *text = cJSON_PrintUnformatted(object);

    cJSON_Delete(object);
    return text;
}

static pace_status put_json(FILE *out, const void *user, const pace_log *log)
{
    (void)log;
    fprintf(out, "%s\n", (const char *)user);
    return PACE_OK;
}

/* --- the winner --- */

/* "log-loss 0.48612 (defaults: 0.49054), accuracy 0.77, AUC 0.75, 4,000 rows": `beside` stands behind the score that decides. */
static char *scores_text(const pace__scored *scored, pace__score decides, const char *beside)
{
    char *text = NULL, value[PACE__AMOUNT_TEXT], rows[PACE__AMOUNT_TEXT];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int i = 0; out && i < PACE__SCORES; i++) {
        if (isfinite(scored->value[i]))
            fprintf(out, "%s %s%s, ", pace__score_titles[i],
                    pace__amount(scored->value[i], PACE__REAL, value), i == (int)decides ? beside : "");
    }
    if (out)
        fprintf(out, "%s rows", pace__amount(scored->n, PACE__COUNT, rows));
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* What the defaults have reached, in words; "" if they have won. */
static const char *default_words(const pace__search *search, char text[64])
{
    const pace__outcome *first = &search->entries[0].outcomes[search->rungs.count - 1];
    char value[PACE__AMOUNT_TEXT];

    if (search->winner == 0)
        return "";
    if (isnan(pace__outcome_loss(first, search->score)))
        return " (the defaults have failed)";
    snprintf(text, 64, " (defaults: %s)",
             pace__amount(first->validation.value[search->score], PACE__REAL, value));
    return text;
}

/* It needs rows that it has not trained on, as it had them here. */
static bool goes_by_validation(const pace_train_config *config)
{
    return config->length.keep_best || config->length.early_stop > 0;
}

/* What a user would type: without what this search has added, so that it trains on all rows, if it can. */
static char *command_of(const pace__search *search, const pace__entry *entry)
{
    pace_train_config config = search->base;

    pace__candidate_apply(&search->tries, &entry->candidate, &config);
    if (search->set_apart && !goes_by_validation(&config))
        config.validation = 0;
    config.run = "best";
    return pace__command_paste(&config);
}

static pace_status take_winner(const pace__search *search, const pace_log *log, pace_tune_result *result)
{
    const pace__entry *entry = &search->entries[search->winner];
    const pace__outcome *outcome = best_outcome(entry);
    char beside[64];

    result->best = strdup(entry->words);
    result->validation = scores_text(&outcome->validation, search->score, default_words(search, beside));
    result->test = outcome->test.n > 0 ? scores_text(&outcome->test, search->score, "") : NULL;
    result->run = pace__search_run_path(search, entry);
    result->command = command_of(search, entry);
    if (!result->best || !result->validation || !result->run || !result->command)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (!pace__exists(result->run)) {
        free(result->run);
        result->run = NULL;
    }
    return PACE_OK;
}

static void count_runs(const pace__search *search, pace_tune_result *result)
{
    for (size_t i = 0; i < search->count; i++) {
        for (size_t rung = 0; rung < search->rungs.count; rung++) {
            result->runs += search->entries[i].outcomes[rung].there;
            result->failed +=
                search->entries[i].outcomes[rung].there && search->entries[i].outcomes[rung].status;
        }
    }
}

/* --- all of it --- */

static pace_status put_files(const view *self, const char *json, const pace_log *log)
{
    const char *directory = self->search->config->output;
    pace_status status = pace__put_in_file(directory, "table.md", put_markdown, self, log);

    if (!status)
        status = pace__put_in_file(directory, "table.csv", put_csv, self, log);
    return status ? status : pace__put_in_file(directory, "table.json", put_json, json, log);
}

pace_status pace__search_tell(const pace__search *search, const pace_log *log, pace_tune_result *result)
{
    view self = {.search = search};
    size_t size;

    pace__search_rank(search, self.order);
    count_runs(search, result);
    pace_status status = take_winner(search, log, result);

    if (!status)
        status = pace__put_in_memory(put_text, &self, log, &result->table, &size);
    if (!status && !(result->json = search_json(&self, result)))
        status = pace_fail(log, PACE_FAILED, "out of memory");
    return status ? status : put_files(&self, result->json, log);
}

/* --- a dry run --- */

static pace_status put_dry(FILE *out, const void *user, const pace_log *log)
{
    const view *self = user;
    const pace__search *search = self->search;

    (void)log;
    put_title(out, search);
    for (size_t i = 0; i < search->count; i++)
        fprintf(out, "  %s: %" PRId64 " steps\n", search->entries[i].words, search->entries[i].steps);
    put_notes(out, search, "  ", SIZE_MAX);
    fprintf(out, "as much training as %.3g runs of full length, at most; the dry run has run nothing\n",
            pace__rungs_cost(&search->rungs));
    return PACE_OK;
}

pace_status pace__search_tell_dry(const pace__search *search, const pace_log *log, pace_tune_result *result)
{
    view self = {.search = search};
    cJSON *object = common_json(search), *list;
    size_t size;

    cJSON_AddBoolToObject(object, "dry_run", true);
    list = cJSON_AddArrayToObject(object, "candidates");
    for (size_t i = 0; i < search->count; i++)
        cJSON_AddItemToArray(list, entry_json(search, i));
    result->json = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    if (!result->json)
        return pace_fail(log, PACE_FAILED, "out of memory");
    return pace__put_in_memory(put_dry, &self, log, &result->table, &size);
}

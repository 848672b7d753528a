#include "study/study.h"

#include "base/locale.h"
#include "files/file.h"
#include "series/command.h"
#include "study/presets.h"
#include "study/table.h"
#include "study/write.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(pace_study_config, name)

const pace_option pace_study_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR",
     "data set made by 'paceline prep'; of study prep, what prep is to read. Presets make their own",
     .group = "Study"},
    {"model", 0, PACE_OPT_TEXT, FIELD(model), "logreg", "M", "what to train; of study prep, what for"},
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "DIR", "directory for results, tables and report",
     .required = true},
    {"repeat", 0, PACE_OPT_INT, FIELD(repeat), "3", "N", "times that each cell is run", .min = 1,
     .max = PACE__REPEAT_MAX},
    {"hosts", 0, PACE_OPT_TEXT, FIELD(hosts), NULL, "FILE", "machines to run on, as for train"},
    {"rows", 0, PACE_OPT_INT, FIELD(rows), "0", "N", "that each cell trains on; of weak, each worker",
     .min = 0, .max = 1e15, .usual = "0: as many epochs as train makes; of weak, a share of the data set"},
    {"threshold", 0, PACE_OPT_REAL, FIELD(threshold), "0", "LOSS",
     "converge: how long until the loss is as low", .min = 0, .max = 1e6,
     .usual = "0: the lowest that every run has reached"},
    {"prices", 0, PACE_OPT_TEXT, FIELD(prices), NULL, "FILE",
     "cost: machine types, one a line: NAME PRICE-AN-HOUR CURRENCY [slots=N] [speed=X]"},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check every cell, list them, and say how long they may take, where that is foreseen (--rows); run "
     "nothing"},
    {"predict", 0, PACE_OPT_FLAG, FIELD(predict), "true", NULL,
     "train for some seconds first, and predict every cell by that, as paceline plan does; the tables have "
     "how "
     "far it was off"},
    {"keep-runs", 0, PACE_OPT_FLAG, FIELD(keep_runs), "false", NULL,
     "keep all run directories, in DIR/runs; else those of runs that have failed"},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "begin anew: replace the study that DIR holds"},
    {"workers", 0, PACE_OPT_TEXT, FIELD(workers), NULL, "W,W,...", "workers; of study prep, processes",
     .usual = "1, 2, 4, ... as there are cores or slots, where the kind varies them; else 2",
     .group = "Matrix"},
    {"mode", 0, PACE_OPT_TEXT, FIELD(mode), NULL, "M,M,...", "modes of train",
     .usual = "modes: all; batch, servers: ps-sync; else allreduce"},
    {"ps", 0, PACE_OPT_TEXT, FIELD(ps), NULL, "P,P,...", "parameter servers, of modes that have them",
     .usual = "0; of servers: 0,1,2"},
    {"batch", 0, PACE_OPT_TEXT, FIELD(batch), NULL, "B,B,...", "rows in a step; of weak, for each worker",
     .usual = "by model; of batch: 100,1000,10000, of networks 32,128,512"},
    {"balance", 0, PACE_OPT_TEXT, FIELD(balance), NULL, "B,B,...", "shares of a step: off, epoch, auto",
     .usual = "off; of balance: all"},
    {0},
};

static const char *const summaries[PACE__STUDY_KINDS] = {
    [PACE__SCALING] = "the same work by more workers: time, throughput, speedup, efficiency",
    [PACE__WEAK] = "the same work for each of more workers: the same figures",
    [PACE__BATCH] = "the same rows in larger steps: time, accuracy, traffic",
    [PACE__MODES] = "every mode: time, accuracy, CPU, memory, traffic, disk",
    [PACE__BALANCE] = "equal shares of a step, and shares by speed",
    [PACE__PREP] = "making a data set by more processes",
    [PACE__SERVERS] = "parameters on more servers",
    [PACE__CONVERGE] = "loss against epochs and time, time and epochs to a threshold, by workers",
    [PACE__COST] = "time against money, by workers and machine types",
};

const char *pace_study_name(int index, const char **summary)
{
    if (index >= 0 && index < PACE__STUDY_KINDS) {
        *summary = summaries[index];
        return pace__study_kind_names[index];
    }
    index -= PACE__STUDY_KINDS;
    if (index < 0 || index >= pace__preset_count)
        return NULL;
    *summary = pace__presets[index].summary;
    return pace__presets[index].name;
}

/* --- which study --- */

static pace_status unknown_kind(const char *word, const pace_log *log)
{
    const char *names[PACE__STUDY_KINDS + 16], *summary;
    char list[256] = "";
    int count = 0;

    for (; pace_study_name(count, &summary); count++) {
        names[count] = pace_study_name(count, &summary);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", count ? ", " : "", names[count]);
    }
    names[count] = NULL;
    const char *nearest = pace_nearest_name(word, names);

    return pace_fail(log, PACE_USAGE, "study %s is not known%s%s%s; there is: %s", word,
                     nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "", list);
}

static pace_status make_study(pace__study *study, const pace_study_config *config, const pace_log *log)
{
    const char *summary, *name;
    int place = 0;

    while ((name = pace_study_name(place, &summary)) && strcmp(name, config->kind) != 0)
        place++;
    *study = (pace__study){.name = name,
                           .directory = config->output,
                           .repeat = (int)config->repeat,
                           .preset = -1,
                           .ledger = PACE__NO_LEDGER};
    if (!name)
        return unknown_kind(config->kind, log);
    return place < PACE__STUDY_KINDS ? pace__study_of_kind(study, config, (pace__study_kind)place, log)
                                     : pace__study_of_preset(study, config, place - PACE__STUDY_KINDS, log);
}

/* What makes it another study: not its matrix, which may grow. To be freed; NULL when out of memory. */
static char *identity(const pace__study *study)
{
    const pace__section *section = &study->sections[0];
    char *line, *text = NULL;

    if (study->preset >= 0)
        return pace__format("%s", study->name);
    line = section->kind == PACE__PREP ? pace__words_joined(section->words.items, section->words.count)
                                       : pace__command_line(&section->base);
    if (line)
        text = pace__format("%s --data=%s%s%s", study->name, section->data, *line ? " " : "", line);
    free(line);
    return text;
}

/* --- what is there already --- */

/* The cell of these names; false: it is none of this matrix, which has become smaller. */
static bool find_cell(const pace__study *study, const cJSON *line, pace__result *result)
{
    const char *section = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "section")),
               *cell = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "cell"));
    char key[PACE__CELL_TEXT];

    for (size_t i = 0; section && cell && i < study->section_count; i++) {
        for (size_t j = 0; j < study->sections[i].count; j++) {
            if (strcmp(section, study->sections[i].name) == 0 &&
                strcmp(cell, pace__cell_key(&study->sections[i].cells[j], key)) == 0) {
                result->section = i;
                result->cell = j;
                return true;
            }
        }
    }
    return false;
}

static pace_status take_line(pace__study *study, const char *text, pace__result *result, const pace_log *log)
{
    cJSON *line = cJSON_Parse(text);
    pace_status status = PACE_OK;

    if (!line) {
        pace_say(log, PACE_WARN, "%s: a line cannot be read, and is passed over", study->ledger.path);
        return PACE_OK;
    }
    pace__result_from_json(line, result);
    if (!pace__foretold_from_json(study, line) && find_cell(study, line, result) && result->repeat >= 1 &&
        result->repeat <= study->repeat)
        status = pace__study_put(study, result, log);
    cJSON_Delete(line);
    return status;
}

static pace_status take_results(pace__study *study, const pace_log *log)
{
    pace__result *result = malloc(sizeof *result);
    pace_status status = result ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    const char *line;

    while (!status && (line = pace__ledger_next(&study->ledger)))
        status = take_line(study, line, result, log);
    free(result);
    return status;
}

static pace_status remove_runs(const pace__study *study, const pace_log *log)
{
    char *runs = pace__study_path(study, "runs");
    pace_status status = runs ? pace__remove_tree(runs, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(runs);
    return status;
}

static pace_status open_ledger(pace__study *study, bool force, const pace_log *log)
{
    char *text = identity(study);
    pace_status status = text ? pace__ledger_open(study->directory, "study", text, force, log, &study->ledger)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    free(text);
    if (!status && force)
        status = remove_runs(study, log);
    return status ? status : take_results(study, log);
}

/* --- what it tells --- */

static size_t count_failed(const pace__study *study)
{
    size_t failed = 0;

    for (size_t i = 0; i < study->result_count; i++)
        failed += study->results[i].status != 0;
    return failed;
}

static pace_status tell(const pace__study *study, const pace_log *log, pace_study_result *result)
{
    pace__figures figures[PACE__SECTIONS_MAX] = {0};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < study->section_count && !status; i++) {
        if (!pace__figures_make(&figures[i], study, i))
            status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (!status)
        status = pace__study_write(study, figures, log);
    if (!status) {
        result->text = pace__study_text(figures, study->section_count);
        result->json = pace__table_json(figures, study->section_count);
        result->cells = study->result_count;
        result->failed = count_failed(study);
        if (!result->text || !result->json)
            status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    for (size_t i = 0; i < study->section_count; i++)
        pace__figures_release(&figures[i]);
    return status;
}

/* --- a dry run --- */

/* Of one run of a cell; NAN: nobody knows. */
static double expected_s(const pace__section *section, size_t cell)
{
    const pace__cell_of *of = &section->cells[cell];

    return of->steps > 0 && of->batch > 0
               ? (double)of->steps * (double)of->batch / section->expected_rows_s[cell]
               : NAN;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void list_cells(FILE *out, const pace__study *study)
{
    double sum = 0;
    size_t unknown = 0, total = 0;
    char words[PACE__CELL_TEXT], amount[PACE__AMOUNT_TEXT];

    for (size_t i = 0; i < study->section_count; i++) {
        const pace__section *section = &study->sections[i];

        fprintf(out, "%s\n", section->title);
        for (size_t cell = 0; cell < section->count; cell++) {
            double seconds = expected_s(section, cell);

            fprintf(out, "  %s", pace__cell_words(&section->cells[cell], section->kind == PACE__PREP, words));
            if (isfinite(section->expected_rows_s[cell]))
                fprintf(out, ": about %s rows/s expected",
                        pace__amount(section->expected_rows_s[cell], PACE__COUNT, amount));
            if (isfinite(seconds))
                fprintf(out, ", %s", pace__amount(seconds, PACE__SECONDS, amount));
            fputc('\n', out);
            unknown += !isfinite(seconds);
            sum += isfinite(seconds) ? seconds : 0;
        }
        total += section->count;
    }
    size_t runs = total * (size_t)study->repeat;

    fprintf(out, "%zu cell%s, %d run%s of each: %zu run%s", total, plural(total), study->repeat,
            plural((size_t)study->repeat), runs, plural(runs));
    if (unknown < total)
        fprintf(out, ", about %s of training%s", pace__amount(sum * study->repeat, PACE__SECONDS, amount),
                unknown ? " for those that are foreseen" : "");
    fputs("; the dry run has run nothing\n", out);
}

static cJSON *dry_json(const pace__study *study)
{
    cJSON *object = cJSON_CreateObject(), *cells;

    cJSON_AddStringToObject(object, "study", study->name);
    cJSON_AddBoolToObject(object, "dry_run", true);
    cJSON_AddNumberToObject(object, "repeat", study->repeat);
    cells = cJSON_AddArrayToObject(object, "cells");
    for (size_t i = 0; i < study->section_count; i++) {
        for (size_t cell = 0; cell < study->sections[i].count; cell++) {
            char key[PACE__CELL_TEXT];
            cJSON *each = cJSON_CreateObject();

            cJSON_AddStringToObject(each, "section", study->sections[i].name);
            cJSON_AddStringToObject(each, "cell", pace__cell_key(&study->sections[i].cells[cell], key));
            if (isfinite(study->sections[i].expected_rows_s[cell]))
                cJSON_AddNumberToObject(each, "expected_samples_per_second",
                                        study->sections[i].expected_rows_s[cell]);
            cJSON_AddItemToArray(cells, each);
        }
    }
    return object;
}

static pace_status tell_dry(const pace__study *study, const pace_log *log, pace_study_result *result)
{
    size_t size;
    FILE *out = open_memstream(&result->text, &size);
    cJSON *object = dry_json(study);

    if (out) {
        list_cells(out, study);
        fclose(out);
    }
    result->json = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return out && result->json ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

/* --- all of it --- */

static pace_status check_all(pace__study *study, const _Atomic int *stop, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < study->section_count && !status; i++)
        status = pace__section_check(study, i, stop, log);
    return status;
}

static pace_status rehearse(pace__study *study, const _Atomic int *stop, const pace_log *log,
                            pace_study_result *result)
{
    pace_status status = PACE_OK;

    if (study->preset >= 0)
        pace_say(log, PACE_INFO, "its data is made when it runs: cells are listed, and not checked");
    else
        status = check_all(study, stop, log);
    return status ? status : tell_dry(study, log, result);
}

/* Whatever becomes of the cells: what is there is told. */
static pace_status run(pace__study *study, const pace_study_config *config, const pace_log *log,
                       pace_registry *registry, pace_study_result *result)
{
    pace_status status = open_ledger(study, config->force, log);

    if (!status && study->preset >= 0)
        status = pace__preset_data(study, config->stop, log);
    if (!status)
        status = check_all(study, config->stop, log);
    for (size_t i = 0; i < study->section_count && config->predict && !status; i++)
        status = pace__section_foretell(study, i, config->stop, log);
    if (status)
        return status;
    status = pace__study_run(study, config, log, registry);
    pace_status told = status && status != PACE_INTERRUPTED ? status : tell(study, log, result);

    return status ? status : told;
}

pace_status pace_study(const pace_study_config *config, const pace_log *log, pace_registry *registry,
                       pace_study_result *result)
{
    PACE__C_LOCALE();
    pace__study *study = calloc(1, sizeof *study);
    pace_study_result found = {0};

    if (!study)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = make_study(study, config, log);

    if (!status)
        status = config->dry_run ? rehearse(study, config->stop, log, &found)
                                 : run(study, config, log, registry, &found);
    if (status) {
        free(found.text);
        free(found.json);
    } else {
        *result = found;
    }
    pace__study_release(study);
    free(study);
    return status;
}

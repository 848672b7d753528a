/*
 * foretell.c - what the planner says of every cell before the first one runs, learned from some seconds of the same work by one
 * process here (plan/learn.h): so that a report has what was predicted beside what was measured. It is a line of the ledger:
 *
 *     {"predicted":"scaling","spread":0.03,"cells":[{"cell":"mode=...","samples_per_second":1e6,"bottleneck":"network"}]}
 *
 * The last line counts. A cell of which nothing can be said is there with null, so that nobody asks again.
 */
#include "plan/learn.h"
#include "plan/network.h"
#include "study/study.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- as a line --- */

static cJSON *line_of(const pace__section *section)
{
    cJSON *line = cJSON_CreateObject(), *cells;
    char key[PACE__CELL_TEXT];

    cJSON_AddStringToObject(line, "predicted", section->name);
    cJSON_AddNumberToObject(line, "spread", section->foretold_spread);
    cells = cJSON_AddArrayToObject(line, "cells");
    for (size_t i = 0; i < section->count; i++) {
        const pace__foretold *of = &section->foretold[i];
        cJSON *each = cJSON_CreateObject();

        cJSON_AddStringToObject(each, "cell", pace__cell_key(&section->cells[i], key));
        if (isfinite(of->rows_s))
            cJSON_AddNumberToObject(each, "samples_per_second", of->rows_s);
        else
            cJSON_AddNullToObject(each, "samples_per_second");
        cJSON_AddStringToObject(each, "bottleneck", of->bottleneck);
        cJSON_AddItemToArray(cells, each);
    }
    return line;
}

static void take_cell(pace__section *section, const cJSON *each)
{
    const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(each, "cell"));
    const cJSON *rows_s = cJSON_GetObjectItemCaseSensitive(each, "samples_per_second");
    const char *bottleneck = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(each, "bottleneck"));
    char own[PACE__CELL_TEXT];

    for (size_t i = 0; key && i < section->count; i++) {
        if (strcmp(key, pace__cell_key(&section->cells[i], own)) != 0)
            continue;
        section->foretold[i] = (pace__foretold){
            .asked = true,
            .rows_s = cJSON_IsNumber(rows_s) && rows_s->valuedouble > 0 ? rows_s->valuedouble : NAN};
        snprintf(section->foretold[i].bottleneck, PACE__BOTTLENECK_MAX, "%s", bottleneck ? bottleneck : "");
    }
}

bool pace__foretold_from_json(pace__study *study, const cJSON *line)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "predicted"));
    const cJSON *spread = cJSON_GetObjectItemCaseSensitive(line, "spread"), *each;

    for (size_t i = 0; name && i < study->section_count; i++) {
        pace__section *section = &study->sections[i];

        if (strcmp(section->name, name) != 0)
            continue;
        section->foretold_spread = cJSON_IsNumber(spread) ? spread->valuedouble : NAN;
        cJSON_ArrayForEach(each, cJSON_GetObjectItemCaseSensitive(line, "cells")) take_cell(section, each);
    }
    return name != NULL;
}

/* --- asking the planner --- */

static int kinds_of(const pace__section *section)
{
    bool columns = false, steps = false;

    for (size_t i = 0; i < section->count; i++) {
        int mode = section->cells[i].mode;
        bool by_columns = mode == PACE_MODE_LOCAL || mode == PACE_MODE_LOCAL_SGD;

        columns = columns || by_columns;
        steps = steps || !by_columns;
    }
    return columns && steps ? PACE__LEARN_ALL : columns ? PACE__LEARN_COLUMNS : PACE__LEARN_STEPS;
}

/* The batch in the middle of all: steps of one row take nothing but what is fixed, and tell nothing of rows. */
static int64_t usual_batch(const pace__section *section)
{
    int64_t best = 0;

    for (size_t i = 0; i < section->count; i++) {
        int64_t batch = section->cells[i].batch;
        size_t below = 0, same = 0;

        for (size_t j = 0; j < section->count; j++) {
            below += section->cells[j].batch < batch;
            same += section->cells[j].batch == batch;
        }
        if (below <= section->count / 2 && section->count / 2 < below + same)
            best = batch;
    }
    return best;
}

static pace_train_config config_of(const pace__section *section, const _Atomic int *stop)
{
    pace_train_config config = section->base;
    int64_t batch = usual_batch(section);

    if (batch)
        config.length.batch = batch;
    config.stop = stop;
    return config;
}

static void foretell_cell(pace__section *section, size_t cell, const pace__learned *learned)
{
    pace_train_config config = pace__cell_config(section, &section->cells[cell], section->base.run);
    pace__foretold *of = &section->foretold[cell];
    pace__outlook outlook;

    *of = (pace__foretold){.asked = true, .rows_s = NAN};
    if (pace__learned_predict(learned, &config, NULL, &outlook))
        return;
    of->rows_s = outlook.made.rows_s;
    snprintf(of->bottleneck, sizeof of->bottleneck, "%s", pace__cause_name(outlook.made.cause));
}

/* Errors of a short run are no errors of the study. */
static void hear(void *user, pace_level level, const char *text)
{
    const pace_log *log = user;

    pace_say(log, level == PACE_ERROR ? PACE_WARN : level, "%s%s",
             level == PACE_ERROR ? "nothing is predicted: " : "", text);
}

static pace_status record(pace__study *study, const pace__section *section, const pace_log *log)
{
    cJSON *line = line_of(section);
    char *text = cJSON_PrintUnformatted(line);
    pace_status status =
        text ? pace__ledger_add(&study->ledger, text, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(text);
    cJSON_Delete(line);
    return status;
}

static bool is_asked(const pace__section *section)
{
    for (size_t i = 0; i < section->count; i++) {
        if (!section->foretold[i].asked)
            return false;
    }
    return true;
}

pace_status pace__section_foretell(pace__study *study, size_t section, const _Atomic int *stop,
                                   const pace_log *log)
{
    pace__section *of = &study->sections[section];
    pace_train_config config = config_of(of, stop);
    pace_log quiet = {hear, (void *)(uintptr_t)log};
    pace__network_plan network = {
        .hosts = config.cluster.hosts, .launcher = config.cluster.mpirun, .stop = stop};
    pace__given given = {0};
    pace__learned *learned;

    if (of->kind == PACE__PREP || is_asked(of))
        return PACE_OK;
    pace_say(log, PACE_INFO, "%s: training for some seconds in this process, to predict its cells", of->name);
    pace_status status = pace__network_learn(&network, &quiet, &given);

    if (!status)
        status = pace__learn(&config, &given, kinds_of(of), &quiet, &learned);

    if (status == PACE_INTERRUPTED)
        return pace_fail(log, status, "%s: interrupted; the same command goes on", study->directory);
    if (status)
        return PACE_OK;
    of->foretold_spread = pace__learned_known(learned)->spread;
    for (size_t i = 0; i < of->count; i++)
        foretell_cell(of, i, learned);
    pace__learned_free(learned);
    return record(study, of, log);
}

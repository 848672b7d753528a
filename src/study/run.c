/*
 * run.c - the cells of a study, one after the other.
 *
 * 1. Repetitions are the outer loop: what changes with time, as other work on the machine, spreads over all cells, and a study
 *    that is stopped halfway has something of each.
 * 2. A result is on disk before the next cell begins.
 */
#include "report/markup.h"
#include "study/study.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pace__result *pace__study_find(const pace__study *study, size_t section, size_t cell, int repeat)
{
    for (size_t i = 0; i < study->result_count; i++) {
        pace__result *result = &study->results[i];

        if (result->section == section && result->cell == cell && result->repeat == repeat)
            return result;
    }
    return NULL;
}

pace_status pace__study_put(pace__study *study, const pace__result *result, const pace_log *log)
{
    pace__result *place = pace__study_find(study, result->section, result->cell, result->repeat);

    if (place) {
        *place = *result;
        return PACE_OK;
    }
    if (study->result_count == study->result_capacity) {
        size_t capacity = study->result_capacity ? 2 * study->result_capacity : 64;
        pace__result *larger = realloc(study->results, capacity * sizeof *larger);

        if (!larger)
            return pace_fail(log, PACE_FAILED, "out of memory");
        study->results = larger;
        study->result_capacity = capacity;
    }
    study->results[study->result_count++] = *result;
    return PACE_OK;
}

static pace_status record(pace__study *study, const pace__result *result, const pace_log *log)
{
    const pace__section *section = &study->sections[result->section];
    cJSON *line = pace__result_to_json(result, section->name, &section->cells[result->cell]);
    char *text = cJSON_PrintUnformatted(line);
    pace_status status =
        text ? pace__ledger_add(&study->ledger, text, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(text);
    cJSON_Delete(line);
    return status ? status : pace__study_put(study, result, log);
}

/* --- how far it is --- */

static bool is_done(const pace__study *study, size_t section, size_t cell, int repeat)
{
    const pace__result *result = pace__study_find(study, section, cell, repeat);

    return result && result->status == 0;
}

static double mean_wall_s(const pace__study *study)
{
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < study->result_count; i++) {
        double wall_s = study->results[i].value[PACE__M_WALL];

        if (isfinite(wall_s)) {
            sum += wall_s;
            count++;
        }
    }
    return count ? sum / (double)count : NAN;
}

/* That of another repetition, if there is one. */
static double cell_wall_s(const pace__study *study, size_t section, size_t cell, double otherwise)
{
    for (int repeat = 1; repeat <= study->repeat; repeat++) {
        const pace__result *result = pace__study_find(study, section, cell, repeat);

        if (result && isfinite(result->value[PACE__M_WALL]))
            return result->value[PACE__M_WALL];
    }
    return otherwise;
}

double pace__study_left_s(const pace__study *study)
{
    double mean = mean_wall_s(study), left = 0;

    for (size_t i = 0; i < study->section_count; i++) {
        for (size_t cell = 0; cell < study->sections[i].count; cell++) {
            for (int repeat = 1; repeat <= study->repeat; repeat++) {
                if (!pace__study_find(study, i, cell, repeat))
                    left += cell_wall_s(study, i, cell, mean);
            }
        }
    }
    return left;
}

typedef struct progress {
    size_t total, done, before;
    pace_registry *registry;
    const pace_log *log;
} progress;

static void tell(const progress *self, const char *cell)
{
    pace_field fields[] = {PACE_TEXT("phase", "study"),      PACE_INT("done", self->done),
                           PACE_INT("total", self->total),   PACE_TEXT("unit", "runs"),
                           PACE_INT("before", self->before), PACE_TEXT("now", cell)};

    pace_registry_emit(self->registry, "progress", fields, sizeof fields / sizeof *fields - !cell);
}

static void left_words(double left_s, char text[64])
{
    if (!(left_s > 0))
        text[0] = '\0';
    else if (left_s < 90)
        snprintf(text, 64, "; about %.0f s left", left_s);
    else
        snprintf(text, 64, "; about %.0f min left", left_s / 60);
}

static void say_result(const pace__study *study, const progress *self, const char *cell,
                       const pace__result *result)
{
    char left[64], time[PACE__AMOUNT_TEXT], speed[PACE__AMOUNT_TEXT];

    left_words(pace__study_left_s(study), left);
    if (result->status)
        pace_say(self->log, PACE_WARN, "%zu of %zu: %s: failed with exit code %d: %s%s", self->done,
                 self->total, cell, result->status, result->error, left);
    else
        pace_say(self->log, PACE_INFO, "%zu of %zu: %s: %s, %s rows/s%s", self->done, self->total, cell,
                 pace__amount(result->value[PACE__M_SECONDS], PACE__SECONDS, time),
                 pace__amount(result->value[PACE__M_ROWS_S], PACE__COUNT, speed), left);
}

/* --- the loop --- */

static pace_status run_one(pace__study *study, const pace_study_config *config, progress *self,
                           size_t section, size_t cell, int repeat)
{
    const pace__section *of = &study->sections[section];
    char words[PACE__CELL_TEXT], name[2 * PACE__CELL_TEXT];
    pace__result *result = malloc(sizeof *result);

    if (!result)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    snprintf(name, sizeof name, "%s%s%s", study->section_count > 1 ? of->name : "",
             study->section_count > 1 ? ": " : "",
             pace__cell_words(&of->cells[cell], of->kind == PACE__PREP, words));
    tell(self, name);
    pace_status status =
        pace__cell_run(study, section, cell, repeat, config->keep_runs, config->stop, self->log, result);

    if (!status)
        status = record(study, result, self->log);
    if (!status) {
        self->done++;
        say_result(study, self, name, result);
    }
    free(result);
    return status;
}

static size_t count_done(const pace__study *study, size_t *total)
{
    size_t done = 0;

    *total = 0;
    for (size_t i = 0; i < study->section_count; i++) {
        for (size_t cell = 0; cell < study->sections[i].count; cell++) {
            for (int repeat = 1; repeat <= study->repeat; repeat++)
                done += is_done(study, i, cell, repeat);
        }
        *total += study->sections[i].count * (size_t)study->repeat;
    }
    return done;
}

static bool is_stopped(const pace_study_config *config)
{
    return config->stop && *config->stop;
}

pace_status pace__study_run(pace__study *study, const pace_study_config *config, const pace_log *log,
                            pace_registry *registry)
{
    progress self = {.registry = registry, .log = log};
    pace_status status = PACE_OK;

    self.before = self.done = count_done(study, &self.total);
    if (self.before > 0)
        pace_say(log, PACE_INFO, "%s: %zu of %zu runs are there already", study->directory, self.before,
                 self.total);
    for (int repeat = 1; repeat <= study->repeat && !status; repeat++) {
        for (size_t section = 0; section < study->section_count && !status; section++) {
            for (size_t cell = 0; cell < study->sections[section].count && !status; cell++) {
                if (is_stopped(config))
                    status = PACE_INTERRUPTED;
                else if (!is_done(study, section, cell, repeat))
                    status = run_one(study, config, &self, section, cell, repeat);
            }
        }
    }
    tell(&self, NULL);
    if (status == PACE_INTERRUPTED)
        pace_fail(log, status,
                  "%s: interrupted: %zu of %zu runs are kept; the same command goes on with the rest",
                  study->directory, self.done, self.total);
    return status;
}

/* cells.c - one cell: what train is told, whether it would take it, and what came of it. */
#include "files/file.h"
#include "series/child.h"
#include "series/command.h"
#include "study/study.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of ps-ssp, where nobody says how many steps anyone may be ahead. */
#define STALENESS 4

/* --- a cell as a job --- */

static char *run_path(const pace__study *study, size_t section, size_t cell, int repeat)
{
    return pace__format("%s/runs/%s-%zu-%d", study->directory, study->sections[section].name, cell + 1,
                        repeat);
}

pace_train_config pace__cell_config(const pace__section *section, const pace__cell_of *cell, const char *run)
{
    pace_train_config config = section->base;

    config.run = run;
    config.mode = cell->mode;
    config.cluster.workers = cell->workers;
    config.cluster.ps = cell->ps;
    config.cluster.balance = pace__balance_names[cell->balance];
    if (cell->mode == PACE_MODE_PS_SSP && config.cluster.staleness < 0)
        config.cluster.staleness = STALENESS;
    if (cell->mode != PACE_MODE_PS_SSP)
        config.cluster.staleness = -1;
    if (cell->mode == PACE_MODE_LOCAL) /* the machine alone */
        config.cluster.hosts = NULL;
    if (cell->batch)
        config.length.batch = cell->batch;
    if (cell->steps)
        config.length.steps = cell->steps;
    config.records.report = PACE_REPORT_OFF;
    config.force = true; /* what an interrupted study has left */
    return config;
}

/* --- would train take it? --- */

static pace_status check_cell(pace__study *study, size_t section, size_t cell, const pace_log *log)
{
    const pace__section *of = &study->sections[section];
    char *run = run_path(study, section, cell, 0), words[PACE__CELL_TEXT];
    pace__foreseen foreseen = {.rows_s = NAN};

    if (!run)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_train_config config = pace__cell_config(of, &of->cells[cell], run);

    pace_status status = pace__command_foresee(&config, log, &foreseen);

    free(run);
    of->expected_rows_s[cell] = foreseen.rows_s;
    if (status && foreseen.error[0])
        pace_fail(log, status, "%s: %s", pace__cell_words(&of->cells[cell], false, words), foreseen.error);
    return status;
}

pace_status pace__section_check(pace__study *study, size_t section, const _Atomic int *stop,
                                const pace_log *log)
{
    pace__section *of = &study->sections[section];
    pace_status status = PACE_OK;

    for (size_t i = 0; i < of->count && !status; i++) {
        of->expected_rows_s[i] = NAN;
        if (stop && *stop)
            status =
                pace_fail(log, PACE_INTERRUPTED, "interrupted while its cells were checked: nothing was run");
        else if (of->kind != PACE__PREP)
            status = check_cell(study, section, i, log);
    }
    return status;
}

/* --- running it --- */

#define PREP_WORDS_MAX 128

static pace_status prep_words(const pace__section *section, const pace__cell_of *cell, const char *output,
                              const pace_log *log, char ***words)
{
    const char *more[PREP_WORDS_MAX + 16];
    char processes[24];
    size_t count = 0;

    if (section->words.count > PREP_WORDS_MAX)
        return pace_fail(log, PACE_USAGE, "%zu words for prep: there is room for %d", section->words.count,
                         PREP_WORDS_MAX);
    for (; count < section->words.count; count++)
        more[count] = section->words.items[count];
    snprintf(processes, sizeof processes, "%" PRId64, cell->workers);
    more[count++] = "-n";
    more[count++] = processes;
    if (cell->workers == 1) /* as each of several has one */
        more[count++] = "--threads=1";
    more[count++] = "-o";
    more[count++] = output;
    more[count++] = "--force";
    more[count++] = "--quiet";
    more[count++] = "--json";
    more[count++] = "--";
    more[count++] = section->data;
    more[count] = NULL;
    return pace__child_words(section->prep, NULL, more, log, words);
}

static pace_status words_of(const pace__section *section, const pace__cell_of *cell, const char *run,
                            const pace_log *log, char ***words)
{
    static const char *const more[] = {"--quiet", NULL};

    if (section->kind == PACE__PREP)
        return prep_words(section, cell, run, log, words);
    pace_train_config config = pace__cell_config(section, cell, run);

    return pace__command_words(&config, more, log, words);
}

static void take_failure(const pace__job_end *end, pace__result *result)
{
    result->status = end->code;
    snprintf(result->error, sizeof result->error, "%s", end->last[0] ? end->last : "it has not said why");
}

/* What cannot be measured is a failure of the cell, in the words that were said about it. */
static void measure(const pace__section *section, const char *run, const pace__job_end *end,
                    pace__result *result)
{
    pace__foreseen said = {.rows_s = NAN};
    pace_log log = pace__foreseen_log(&said);
    pace_status status = section->kind == PACE__PREP ? pace__measure_prep(end->out, &log, result)
                                                     : pace__measure_run(run, &log, result);

    result->value[PACE__M_WALL] = end->seconds;
    if (status) {
        result->status = status;
        snprintf(result->error, sizeof result->error, "%.*s", (int)sizeof result->error - 1, said.error);
    }
}

/* A process is started at all, or the study ends; what it then does wrong is the cell's. */
static pace_status run_words(const pace__section *section, char *const *words, const char *run,
                             const _Atomic int *stop, const pace_log *log, pace__result *result)
{
    pace__job_end *end = malloc(sizeof *end);

    if (!end)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__child_run(words, stop, log, end);

    if (!status && end->code)
        take_failure(end, result);
    else if (!status)
        measure(section, run, end, result);
    free(end);
    return status;
}

pace_status pace__cell_run(const pace__study *study, size_t section, size_t cell, int repeat, bool keep,
                           const _Atomic int *stop, const pace_log *log, pace__result *result)
{
    const pace__section *of = &study->sections[section];
    char *run = run_path(study, section, cell, repeat), **words = NULL;
    pace_status status = run ? pace__remove_tree(run, log) : pace_fail(log, PACE_FAILED, "out of memory");

    pace__result_clear(result);
    result->section = section;
    result->cell = cell;
    result->repeat = repeat;
    result->value[PACE__M_EXPECTED_ROWS_S] = of->expected_rows_s[cell];
    if (!status)
        status = words_of(of, &of->cells[cell], run, log, &words);
    if (!status)
        status = run_words(of, words, run, stop, log, result);
    if (words)
        pace_options_free_words(words);
    /* What failed stays to be looked at. */
    if (!status && result->status == 0 && !keep)
        status = pace__remove_tree(run, log);
    else if (status == PACE_INTERRUPTED)
        pace__remove_tree(run, log);
    free(run);
    return status;
}

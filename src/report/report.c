#include "report/report.h"

#include "base/locale.h"
#include "files/file.h"
#include "files/output.h"
#include "report/page.h"
#include "run/rundir.h"

#include <paceline/report.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(pace_report_config, name)

_Static_assert(PACE_REPORT_RUNS_MAX == PACE__PAGE_RUNS_MAX, "what the public header promises");

/* Reading a larger model for its heaviest features would take longer than a short run. */
#define QUICK_MODEL_BYTES ((size_t)32 << 20)

const pace_option pace_report_options[] = {
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "FILE", "HTML file to write; - for standard output",
     .required = true},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing file"},
    {0},
};

/* --- by the verb --- */

static pace_status write_page(const pace__page *page, const pace_report_config *config, const pace_log *log,
                              uint64_t *bytes)
{
    pace__output output;
    char *html;
    size_t size;
    pace_status status = pace__output_open(&output, config->output, config->force, log);

    if (status)
        return status;
    status = pace__page_make(page, log, &html, &size);
    if (!status) {
        status = pace__write_all(output.fd, html, size, output.name, log);
        free(html);
    }
    status = pace__output_close(&output, status);
    if (!status)
        *bytes = size;
    return status;
}

/* Of what runs have written a page may take the place of their reports alone; beside it there is room for any. */
static pace_status check_output(const pace_report_config *config, const pace_log *log)
{
    pace_status status = PACE_OK;

    if (strcmp(config->output, "-") == 0)
        return PACE_OK;
    for (size_t i = 0; i < config->runs.count; i++) {
        for (int file = 0; file < PACE__RUN_FILES && !status; file++) {
            char *path = file == PACE__RUN_REPORT ? NULL : pace__run_path(config->runs.items[i], file);

            if (path)
                status = pace__output_outside(config->output, (const char *const[]){path}, 1, log);
            free(path);
        }
    }
    return status;
}

pace_status pace_report(const pace_report_config *config, const pace_log *log, uint64_t *bytes)
{
    PACE__C_LOCALE();
    pace__history *runs[PACE__PAGE_RUNS_MAX] = {0};
    pace__page page = {.runs = runs};
    pace_status status = PACE_OK;

    if (config->runs.count == 0)
        return pace_fail(log, PACE_USAGE, "no run: name the run directories to report on");
    if (config->runs.count > PACE__PAGE_RUNS_MAX)
        return pace_fail(log, PACE_USAGE, "%zu runs: a report has room for %d", config->runs.count,
                         PACE__PAGE_RUNS_MAX);
    status = check_output(config, log);
    for (; page.count < config->runs.count && !status; page.count += !status)
        status = pace__history_open(config->runs.items[page.count], log, &runs[page.count]);
    if (!status)
        status = write_page(&page, config, log, bytes);
    while (page.count > 0)
        pace__history_close(runs[--page.count]);
    return status;
}

/* --- at the end of a run --- */

/* Whoever leaves a report has the run still, which looks like a run under way; but its state has the end. */
static void correct_standing(pace__history *history)
{
    if (history->standing != PACE__STANDS_RUNNING)
        return;
    if (history->state.ending == PACE__RUN_INTERRUPTED)
        history->standing = PACE__STANDS_INTERRUPTED;
    else if (history->state.ending == PACE__RUN_FAILED)
        history->standing = PACE__STANDS_FAILED;
}

pace_status pace__report_leave(const char *run, const pace_log *log)
{
    char *path = pace__run_path(run, PACE__RUN_REPORT), *html = NULL;
    pace__history *history = NULL;
    size_t size;
    pace_status status =
        path ? pace__history_open(run, log, &history) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        correct_standing(history);
        status =
            pace__page_make(&(pace__page){.runs = &history, .count = 1, .model_bytes_max = QUICK_MODEL_BYTES},
                            log, &html, &size);
    }
    if (!status)
        status = pace__write_file_atomically(path, html, size, log);
    free(html);
    pace__history_close(history);
    free(path);
    return status;
}

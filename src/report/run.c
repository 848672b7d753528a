/* What a report takes from a run besides its records: its name, its model, its profile. */
#include "base/kept.h"
#include "files/file.h"
#include "report/page.h"
#include "run/rundir.h"
#include "verdict/facts.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- its name --- */

/* The last part of a path, slashes at its end left out; *size is how long it is. */
static const char *last_part(const char *path, size_t *size)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t first = end;

    while (first > 0 && path[first - 1] != '/')
        first--;
    *size = end - first;
    return path + first;
}

/* The last part of its path, where that is its own; the whole path where not, or where it says nothing. */
static char *name_of(const pace__page *page, size_t index)
{
    size_t size, other_size;
    const char *path = page->runs[index]->path, *name = last_part(path, &size);
    bool own = size > 0 && !(size == 1 && name[0] == '.') && !(size == 2 && strncmp(name, "..", 2) == 0);

    for (size_t i = 0; i < page->count && own; i++) {
        const char *other = last_part(page->runs[i]->path, &other_size);

        own = i == index || other_size != size || strncmp(other, name, size) != 0;
    }
    return own ? strndup(name, size) : strdup(path);
}

/* --- its model --- */

static void read_model(pace__page_run *run, size_t bytes_max)
{
    char *path = pace__run_path(run->history->path, PACE__RUN_MODEL), *json = NULL, reason[PACE_LOG_TEXT_MAX];
    struct stat info;
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    if (!path || stat(path, &info) != 0) {
        run->model_lack = strdup("There is no model yet.");
    } else if (bytes_max > 0 && (uint64_t)info.st_size > bytes_max) {
        run->model_lack =
            pace__format("The model is large, and was not read for this report, which was written at the "
                         "end of training: paceline report %s -o FILE.html reads it.",
                         run->history->path);
    } else if (pace_inspect(&(pace_inspect_config){.path = path, .top = PACE__TOP_FEATURES}, &kept.log,
                            &json)) {
        run->model_lack = pace__format("The model cannot be read: %s.", reason);
    } else {
        run->model = cJSON_Parse(json);
    }
    free(json);
    free(path);
}

/* --- its profile --- */

static void read_profile(pace__page_run *run)
{
    char *directory = pace__run_path(run->history->path, PACE__RUN_PROFILE),
         *path = directory ? pace__format("%s/" PACE__PROFILE_OPS, directory) : NULL, *text = NULL;
    size_t size;

    if (path && pace__exists(path) &&
        pace__read_file(path, PACE__PROFILE_BYTES_MAX, &text, &size, NULL) == PACE_OK)
        run->profile = cJSON_Parse(text);
    free(text);
    free(path);
    free(directory);
}

/* --- its shares --- */

static void read_shares(pace__page_run *run)
{
    char *path = pace__run_path(run->history->path, PACE__RUN_SHARES), reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    if (path && pace__shares_read(path, &kept.log, &run->divisions, &run->shares))
        run->shares_lack = pace__format("The shares of the workers cannot be read: %s.", reason);
    free(path);
}

pace_status pace__page_run_open(pace__page_run *run, const pace__page *page, size_t index,
                                const pace_log *log)
{
    *run = (pace__page_run){.history = page->runs[index], .name = name_of(page, index)};
    if (!run->name)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace__verdict_from(run->history, 0, &run->verdict);
    run->shown_count = pace__shown_roles(run->history, run->shown);
    read_model(run, page->model_bytes_max);
    read_profile(run);
    read_shares(run);
    return PACE_OK;
}

void pace__page_run_close(pace__page_run *run)
{
    free(run->name);
    cJSON_Delete(run->model);
    free(run->model_lack);
    cJSON_Delete(run->profile);
    pace__divisions_release(&run->divisions);
    free(run->shares_lack);
}

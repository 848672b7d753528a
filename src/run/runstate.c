/*
 * The ending of a run, which only its newest incarnation changes:
 *
 *     (no file)    -> running        the first chief takes over
 *     any          -> running        the next one does: a new incarnation
 *     running      -> interrupted, done, failed    an orderly end
 *     running      -> running        a process was lost; or nobody was left to say so: it counts as a restart
 *
 * 1. Incarnations only rise: by one at each start, and past what names of checkpoints say.
 * 2. The file is replaced as a whole. One that reads as anything else was written by nobody here.
 * 3. A row count points into the file, or into the struct itself: one or the other, from open to close.
 */
#include "run/runstate.h"

#include "base/json.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"
#include "launch/cluster.h"
#include "run/rundir.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_BYTES_MAX ((size_t)1 << 16)
#define STATE_MEMBERS   4 /* besides the id */

static const char *const endings[] = {
    [PACE__RUN_RUNNING] = "running",
    [PACE__RUN_INTERRUPTED] = "interrupted",
    [PACE__RUN_DONE] = "done",
    [PACE__RUN_FAILED] = "failed",
};

#define ENDINGS (sizeof endings / sizeof *endings)

/* state.json --------------------------------------------------------------------------------------------- */

static bool read_ending(const cJSON *object, pace__run_ending *ending)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "ending");

    for (size_t i = 0; cJSON_IsString(item) && i < ENDINGS; i++) {
        if (strcmp(item->valuestring, endings[i]) == 0) {
            *ending = (pace__run_ending)i;
            return true;
        }
    }
    return false;
}

/* NULL, or what is wrong. */
static const char *read_members(const cJSON *object, pace__runstate *state)
{
    if (!cJSON_IsObject(object))
        return "not a JSON object";
    bool has_id = cJSON_GetObjectItemCaseSensitive(object, "id") != NULL;

    if (has_id && !(pace__json_count(object, "id", &state->id) && state->id > 0))
        return "id is not a whole number above 0";
    if (!pace__json_count(object, "incarnation", &state->incarnation))
        return "incarnation is not a whole number";
    if (!pace__json_count(object, "restarts", &state->restarts))
        return "restarts is not a whole number";
    state->has_checkpoint = !cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, "checkpoint"));
    if (state->has_checkpoint && !pace__json_count(object, "checkpoint", &state->checkpoint))
        return "checkpoint is neither a whole number nor null";
    if (!read_ending(object, &state->ending))
        return "ending is none of running, interrupted, done, failed";
    return cJSON_GetArraySize(object) == STATE_MEMBERS + has_id ? NULL
                                                                : "it has members that it should not have";
}

static pace_status read_state(const char *path, const pace_log *log, pace__runstate *state)
{
    pace__runstate found = {0};
    char *text;
    size_t size;
    pace_status status = pace__read_file(path, STATE_BYTES_MAX, &text, &size, log);

    if (status)
        return status == PACE_NO_INPUT ? PACE_BAD_DATA : status; /* something is there, but no file */
    cJSON *object = strlen(text) == size ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
    const char *why = object ? read_members(object, &found) : "not JSON";

    if (why)
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: %s", path, why);
    else
        *state = found;
    cJSON_Delete(object);
    free(text);
    return status;
}

pace_status pace__runstate_read(const char *run, const pace_log *log, pace__runstate *state)
{
    char *path = pace__run_path(run, PACE__RUN_STATE);
    pace_status status = PACE_OK;

    if (!path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (pace__exists(path))
        status = read_state(path, log, state);
    else
        *state = (pace__runstate){0};
    free(path);
    return status;
}

uint64_t pace__runstate_draw(void)
{
    return pace__draw_number() % (PACE__RUN_NUMBER_MAX - 1) + 1;
}

static void write_members(pace__json *json, const pace__runstate *state)
{
    pace__json_raw(json, "{");
    if (state->id) {
        pace__json_raw(json, "\"id\": ");
        pace__json_unsigned(json, state->id);
        pace__json_raw(json, ", ");
    }
    pace__json_raw(json, "\"incarnation\": ");
    pace__json_unsigned(json, state->incarnation);
    pace__json_raw(json, ", \"restarts\": ");
    pace__json_unsigned(json, state->restarts);
    pace__json_raw(json, ", \"checkpoint\": ");
    if (state->has_checkpoint)
        pace__json_unsigned(json, state->checkpoint);
    else
        pace__json_raw(json, "null");
    pace__json_raw(json, ", \"ending\": ");
    pace__json_string(json, endings[state->ending]);
    pace__json_raw(json, "}\n");
}

pace_status pace__runstate_write(const char *run, const pace__runstate *state, const pace_log *log)
{
    char text[256], *path = pace__run_path(run, PACE__RUN_STATE);
    pace__json json = {.text = text, .capacity = sizeof text};

    if (!path)
        return pace_fail(log, PACE_FAILED, "out of memory");
    assert(state->ending < ENDINGS && state->id < PACE__RUN_NUMBER_MAX &&
           state->incarnation < PACE__RUN_NUMBER_MAX && state->restarts < PACE__RUN_NUMBER_MAX &&
           (!state->has_checkpoint || state->checkpoint < PACE__RUN_NUMBER_MAX));
    write_members(&json, state);
    assert(json.size <= json.capacity);
    pace_status status = pace__write_file_atomically(path, text, json.size, log);

    free(path);
    return status;
}

pace_status pace__runstate_check(const char *run, uint64_t incarnation, const pace_log *log)
{
    pace__runstate state = {0};
    pace_status status = pace__runstate_read(run, log, &state);

    assert(incarnation > 0);
    if (!status && state.incarnation == 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: there is no state.json any more", run);
    if (!status && state.incarnation != incarnation)
        status = pace_fail(log, PACE_FAILED,
                           "%s: the run is at incarnation %" PRIu64
                           " now, and this process is of incarnation %" PRIu64
                           ": it may not change the run any more",
                           run, state.incarnation, incarnation);
    return status;
}

/* rows --------------------------------------------------------------------------------------------------- */

/* -1: there is no such file, or it is no regular one. */
static int open_rows(const char *run, pace__open_mode mode, struct stat *info)
{
    char *path = pace__run_path(run, PACE__RUN_ROWS), why[PACE__WHY_BYTES];
    int fd = path ? pace__try_open(path, mode, why) : -1;

    free(path);
    if (fd >= 0 && fstat(fd, info) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void pace__row_count_open(pace__row_count *rows, const char *run, int rank)
{
    struct stat info;
    off_t page = (off_t)rank * PACE__ROWS_PAGE;
    int fd = rank < PACE__WORKERS_MAX ? open_rows(run, PACE__TO_SHARE, &info) : -1;

    assert(rank >= 0);
    *rows = (pace__row_count){.mapped = MAP_FAILED, .before = (size_t)(page % sysconf(_SC_PAGESIZE))};
    /* Allocated, not only made long: a page of a hole that a full disk has no room for is a SIGBUS. */
    if (fd >= 0 && posix_fallocate(fd, page, PACE__ROWS_PAGE) == 0)
        rows->mapped = mmap(NULL, rows->before + PACE__ROWS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                            page - (off_t)rows->before);
    rows->shared = rows->mapped != MAP_FAILED;
    rows->count = rows->shared ? (void *)(rows->mapped + rows->before) : &rows->own; /* invariant 3 */
    if (fd >= 0)
        close(fd);
}

void pace__row_count_close(pace__row_count *rows)
{
    assert(!rows->shared || (char *)rows->count == rows->mapped + rows->before);
    if (rows->shared)
        munmap(rows->mapped, rows->before + PACE__ROWS_PAGE);
    *rows = (pace__row_count){0};
}

uint64_t pace__row_count_all(const char *run)
{
    struct stat info;
    int fd = open_rows(run, PACE__TO_READ, &info);
    uint64_t sum = 0, count;

    for (int rank = 0; fd >= 0 && rank < PACE__WORKERS_MAX; rank++) {
        off_t page = (off_t)rank * PACE__ROWS_PAGE;

        if (page + (off_t)sizeof count > info.st_size ||
            pace__pread_all(fd, &count, sizeof count, (uint64_t)page, "rows", NULL))
            break;
        sum += count;
    }
    if (fd >= 0)
        close(fd);
    return sum;
}

/*
 * What becomes of a directory, by what it is and how the run starts (check_start says why not):
 *
 *                     new       replace (--force)         resume
 *     missing, empty  made      made                      refused
 *     begun           made      made                      made: it was resumed before it was begun
 *     a run           refused   removed, and made         opened
 *     foreign         refused   refused                   refused
 *
 * Of an open run, beside the invariants of rundir.h:
 *
 * a. log_fd holds the lock from open to close.
 * b. metrics_bytes is where the last whole line ends, and what is behind it was cut off: every record begins a line.
 * c. Nothing else writes into metrics.jsonl: it is appended to by one process, under the lock.
 */
#include "run/rundir.h"

#include "base/json.h"
#include "files/file.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <paceline/train.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_NAME        "paceline.log"
#define TIME_BYTES      32
#define LOG_LINE_MAX    (PACE_LOG_TEXT_MAX + TIME_BYTES + 16)
#define READ_BACK_BYTES 4096

static const char *const names[PACE__RUN_FILES] = {
    [PACE__RUN_CONFIG] = "config.yaml",    [PACE__RUN_CLUSTER] = "cluster.json",
    [PACE__RUN_METRICS] = "metrics.jsonl", [PACE__RUN_SUMMARY] = "summary.json",
    [PACE__RUN_EVENTS] = "events",         [PACE__RUN_CHECKPOINTS] = "checkpoints",
    [PACE__RUN_PROFILE] = "profile",       [PACE__RUN_MODEL] = "model.safetensors",
    [PACE__RUN_REPORT] = "report.html",    [PACE__RUN_LOGS] = "logs",
    [PACE__RUN_STATE] = "state.json",      [PACE__RUN_ROWS] = "rows",
    [PACE__RUN_FAULTS] = "faults",
};

struct pace__rundir {
    char *path;
    char *paths[PACE__RUN_FILES];
    char *log_path;
    const pace_log *outer_log;
    pace_log log;
    pace_sink sink;
    int log_fd;
    int metrics_fd;
    uint64_t metrics_bytes; /* whole lines in metrics.jsonl */
    double earlier_s;       /* of processes before this one */
    uint64_t records_lost;
};

/* The log ------------------------------------------------------------------------------------------------ */

static void write_time(char stamp[TIME_BYTES])
{
    struct timespec now;
    struct tm parts;
    char seconds[TIME_BYTES - 8];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(stamp, TIME_BYTES, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000) % 1000);
}

/*
 * One write to a file opened for appending, so that lines of several threads do not mix. A full disk must not
 * stop a message from reaching the caller, and there is nowhere left to complain: the result is ignored.
 */
static void append_line(int fd, pace_level level, const char *text)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    char stamp[TIME_BYTES], line[LOG_LINE_MAX];

    write_time(stamp);
    int size = snprintf(line, sizeof line, "%s %-7s %s\n", stamp, levels[level], text);
    ssize_t ignored = write(fd, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);

    (void)ignored;
}

static void write_message(void *user, pace_level level, const char *text)
{
    const pace__rundir *run = user;

    append_line(run->log_fd, level, text);
    if (run->outer_log && run->outer_log->write)
        run->outer_log->write(run->outer_log->user, level, text);
}

bool pace__run_exists(const char *run)
{
    char *path = pace__format("%s/%s/" LOG_NAME, run, names[PACE__RUN_LOGS]);
    bool found = path && pace__exists(path);

    free(path);
    return found;
}

void pace__run_note(const char *run, pace_level level, const char *text)
{
    char *path = pace__format("%s/%s/" LOG_NAME, run, names[PACE__RUN_LOGS]);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (fd >= 0) {
        append_line(fd, level, text);
        close(fd);
    }
    free(path);
}

/* Records ------------------------------------------------------------------------------------------------ */

static void write_value(pace__json *json, const pace_field *field)
{
    switch (field->type) {
    case PACE_FIELD_INT:
        pace__json_integer(json, field->value.integer);
        break;
    case PACE_FIELD_REAL:
        pace__json_real(json, field->value.real);
        break;
    case PACE_FIELD_TEXT:
        if (field->value.text)
            pace__json_string(json, field->value.text);
        else
            pace__json_raw(json, "null");
        break;
    }
}

/* Fills `line` and returns its size. Fields that do not fit are left out, and with them all behind. */
static size_t write_line(const pace_record *record, double seconds, char line[PACE__RECORD_LINE_MAX])
{
    static const char cut[] = ",\"cut\":true", end[] = "}\n";
    pace__json json = {.text = line, .capacity = PACE__RECORD_LINE_MAX - sizeof cut - sizeof end};

    pace__json_raw(&json, "{\"kind\":");
    pace__json_string(&json, record->kind);
    pace__json_raw(&json, ",\"t\":");
    pace__json_real(&json, seconds);
    assert(json.size <= json.capacity); /* kinds are short words of our own */
    for (size_t i = 0; i < record->count; i++) {
        size_t before = json.size;

        pace__json_raw(&json, ",");
        pace__json_string(&json, record->fields[i].name);
        pace__json_raw(&json, ":");
        write_value(&json, &record->fields[i]);
        if (json.size > json.capacity) {
            json.size = before;
            json.capacity = PACE__RECORD_LINE_MAX;
            pace__json_raw(&json, cut);
            break;
        }
    }
    json.capacity = PACE__RECORD_LINE_MAX;
    pace__json_raw(&json, end);
    return json.size;
}

static bool write_whole(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, bytes + done, size - done);

        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static void lose_record(pace__rundir *run, int error)
{
    /* b: what was written of the line goes, so that a later record does not continue it. */
    int ignored = ftruncate(run->metrics_fd, (off_t)run->metrics_bytes);

    (void)ignored;
    if (run->records_lost++ == 0)
        pace_say(&run->log, PACE_WARN, "%s: cannot write: %s: records are lost, training goes on",
                 run->paths[PACE__RUN_METRICS], strerror(error));
}

/* The registry calls its sinks one at a time. */
static void append_record(void *user, const pace_record *record)
{
    pace__rundir *run = user;
    char line[PACE__RECORD_LINE_MAX];

    if (strcmp(record->kind, "progress") == 0)
        return;
    size_t size = write_line(record, run->earlier_s + record->seconds, line);

    if (write_whole(run->metrics_fd, line, size))
        run->metrics_bytes += size;
    else
        lose_record(run, errno);
}

/* Where the incomplete last line of a file of `size` bytes starts: `size` if there is none. */
static pace_status find_lines_end(int fd, const char *path, uint64_t size, uint64_t *end, const pace_log *log)
{
    char block[READ_BACK_BYTES];
    uint64_t at = size;

    while (at > 0) {
        size_t bytes = at < sizeof block ? (size_t)at : sizeof block;
        pace_status status = pace__pread_all(fd, block, bytes, at - bytes, path, log);

        if (status)
            return status;
        const char *newline = memrchr(block, '\n', bytes);

        if (newline) {
            *end = at - bytes + (uint64_t)(newline - block) + 1;
            return PACE_OK;
        }
        at -= bytes;
    }
    *end = 0;
    return PACE_OK;
}

static pace_status open_metrics(pace__rundir *run, const pace_log *log)
{
    const char *path = run->paths[PACE__RUN_METRICS];
    struct stat info;

    assert(run->metrics_fd < 0 && run->log_fd >= 0); /* c */
    run->metrics_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (run->metrics_fd < 0 || fstat(run->metrics_fd, &info) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot open for writing: %s", path, strerror(errno));
    pace_status status =
        find_lines_end(run->metrics_fd, path, (uint64_t)info.st_size, &run->metrics_bytes, log);

    if (!status && run->metrics_bytes < (uint64_t)info.st_size &&
        ftruncate(run->metrics_fd, (off_t)run->metrics_bytes) != 0)
        status =
            pace_fail(log, PACE_IO, "%s: cannot cut the incomplete last line: %s", path, strerror(errno));
    return status;
}

/* A record about a step that is going to be repeated? Also notes the time of one that is not. */
static bool is_repeated(const char *line, uint64_t step, double *last_s)
{
    cJSON *record = cJSON_Parse(line);
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(record, "step"),
                *time = cJSON_GetObjectItemCaseSensitive(record, "t");
    bool later = cJSON_IsNumber(at) && at->valuedouble > (double)step;

    if (!later && cJSON_IsNumber(time))
        *last_s = time->valuedouble;
    cJSON_Delete(record);
    return later;
}

/* The lines that stay, moved to the front; returns their bytes. */
static size_t keep_lines(char *text, uint64_t step, double *last_s)
{
    size_t kept = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t bytes = (size_t)(end - line) + 1;

        *end = '\0';
        bool repeated = is_repeated(line, step, last_s);

        *end = '\n';
        if (repeated)
            continue;
        memmove(text + kept, line, bytes);
        kept += bytes;
    }
    return kept;
}

pace_status pace__rundir_go_back(pace__rundir *run, uint64_t step)
{
    const char *path = run->paths[PACE__RUN_METRICS];
    char *text;
    size_t size;
    pace_status status = pace__read_file(path, PACE__METRICS_BYTES_MAX, &text, &size, &run->log);

    if (status)
        return status;
    size_t kept = keep_lines(text, step, &run->earlier_s);

    assert(kept <= size);
    if (kept < size) {
        status = pace__write_file_atomically(path, text, kept, &run->log);
        close(run->metrics_fd); /* of the file that was replaced */
        run->metrics_fd = -1;
        if (!status)
            status = open_metrics(run, &run->log);
    }
    free(text);
    return status;
}

/* The directory ------------------------------------------------------------------------------------------ */

typedef enum directory_state {
    IS_MISSING,
    IS_EMPTY,
    IS_BEGUN, /* has features, which come before the run */
    IS_RUN,
    IS_FOREIGN,
    IS_NO_DIRECTORY,
    IS_UNREADABLE
} directory_state;

/* Beside features, whose being there is told. */
static bool has_entries(DIR *directory, bool *features)
{
    const struct dirent *entry;

    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, PACE__RUN_FEATURES) == 0)
            *features = true;
        else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return true;
    }
    return false;
}

/* Sets errno for IS_UNREADABLE. */
static directory_state look_at(const pace__rundir *run)
{
    DIR *directory = opendir(run->path);

    if (!directory) {
        if (errno == ENOENT)
            return IS_MISSING;
        return errno == ENOTDIR ? IS_NO_DIRECTORY : IS_UNREADABLE;
    }
    bool begun = false, empty = !has_entries(directory, &begun);

    closedir(directory);
    if (empty)
        return begun ? IS_BEGUN : IS_EMPTY;
    return pace__exists(run->log_path) ? IS_RUN : IS_FOREIGN;
}

/* Whether a start of this kind may go on with a directory in this state; says why not. */
static pace_status check_start(const char *path, directory_state state, pace__run_start start,
                               const pace_log *log)
{
    if (state == IS_UNREADABLE)
        return pace_fail(log, PACE_IO, "%s: cannot open: %s", path, strerror(errno));
    if (state == IS_NO_DIRECTORY)
        return pace_fail(log, PACE_USAGE, "%s: not a directory: give another --run", path);
    if (start == PACE__RUN_RESUME && state != IS_RUN && state != IS_BEGUN)
        return pace_fail(log, PACE_NO_INPUT, "%s: no run to resume: %s", path,
                         state == IS_MISSING ? "there is no such directory" : "there is no logs/" LOG_NAME);
    if (state == IS_FOREIGN)
        return pace_fail(log, PACE_USAGE,
                         "%s: holds files, but no run (no logs/" LOG_NAME "): give an empty or new directory",
                         path);
    if (state == IS_RUN && start == PACE__RUN_NEW)
        return pace_fail(log, PACE_USAGE,
                         "%s: already holds a run: --resume goes on with it, --force replaces it", path);
    return PACE_OK;
}

/* The nearest directory above `path` that exists, or `path` itself, can be written to. */
static pace_status check_writable(const char *path, const pace_log *log)
{
    char *part = pace__format("%s%s", path[0] == '/' ? "" : "./", path);
    pace_status status = part ? PACE_OK : pace_fail(log, PACE_FAILED, "%s: out of memory", path);

    while (part && !pace__exists(part)) {
        char *slash = strrchr(part, '/');

        slash[slash == part] = '\0';
    }
    if (part && access(part, W_OK | X_OK) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot be made: %s: %s", path, part, strerror(errno));
    free(part);
    return status;
}

/* The lock goes with the descriptor, so it ends with the process however that ends. */
static pace_status open_locked_log(pace__rundir *run, const pace_log *log)
{
    assert(run->log_fd < 0); /* a */
    run->log_fd = open(run->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (run->log_fd < 0)
        return pace_fail(log, PACE_IO, "%s: cannot open for writing: %s", run->log_path, strerror(errno));
    if (flock(run->log_fd, LOCK_EX | LOCK_NB) == 0)
        return PACE_OK;
    if (errno == EWOULDBLOCK)
        return pace_fail(log, PACE_USAGE, "%s: another process is running in this directory", run->path);
    return pace_fail(log, PACE_IO, "%s: cannot lock: %s", run->log_path, strerror(errno));
}

static void close_log(pace__rundir *run)
{
    if (run->log_fd >= 0)
        close(run->log_fd);
    run->log_fd = -1;
}

/* With the temporary file that a crash may have left beside it. */
static pace_status remove_file(const char *path, const pace_log *log)
{
    char *temporary = pace__format("%s.tmp", path);

    if (!temporary)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    pace_status status = pace__remove_tree(temporary, log);

    free(temporary);
    return status ? status : pace__remove_tree(path, log);
}

/*
 * Under the old run's lock. logs/ is last in the list: a removal that was cut short leaves something that
 * still counts as a run.
 */
static pace_status remove_run(pace__rundir *run, const pace_log *log)
{
    pace_status status = open_locked_log(run, log);

    for (int file = 0; file < PACE__RUN_FILES && !status; file++)
        status = remove_file(run->paths[file], log);
    close_log(run);
    return status;
}

static pace_status start_run(pace__rundir *run, pace__run_start start, const pace_log *log)
{
    directory_state state = look_at(run);
    pace_status status = check_start(run->path, state, start, log);

    if (!status && state == IS_RUN && start == PACE__RUN_REPLACE)
        status = remove_run(run, log);
    if (!status)
        status = pace__make_dirs(run->paths[PACE__RUN_LOGS], log);
    if (!status)
        status = open_locked_log(run, log);
    if (!status)
        status = open_metrics(run, log);
    return status;
}

char *pace__run_path(const char *run, pace__run_file file)
{
    return pace__format("%s/%s", run, names[file]);
}

/* False when out of memory. */
static bool make_paths(pace__rundir *run, const char *path)
{
    run->path = strdup(path);
    run->log_path = pace__format("%s/%s/" LOG_NAME, path, names[PACE__RUN_LOGS]);
    for (int file = 0; file < PACE__RUN_FILES; file++) {
        assert(names[file]);
        run->paths[file] = pace__run_path(path, (pace__run_file)file);
        if (!run->paths[file])
            return false;
    }
    return run->path && run->log_path;
}

pace_status pace__rundir_check(const char *path, pace__run_start start, const pace_log *log)
{
    if (path[0] == '\0')
        return pace_fail(log, PACE_USAGE, "the run directory's name is empty");
    pace__rundir looked = {.path = (char *)path,
                           .log_path = pace__format("%s/%s/" LOG_NAME, path, names[PACE__RUN_LOGS])};

    if (!looked.log_path)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    pace_status status = check_start(path, look_at(&looked), start, log);

    free(looked.log_path);
    return status ? status : check_writable(path, log);
}

pace_status pace__rundir_open(const char *path, pace__run_start start, const pace_log *log,
                              pace__rundir **run)
{
    pace_status status;

    if (path[0] == '\0')
        return pace_fail(log, PACE_USAGE, "the run directory's name is empty");
    pace__rundir *opened = calloc(1, sizeof *opened);

    if (!opened)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    opened->log_fd = opened->metrics_fd = -1;
    opened->outer_log = log;
    opened->log = (pace_log){write_message, opened};
    opened->sink = (pace_sink){append_record, opened};
    if (make_paths(opened, path))
        status = start_run(opened, start, log);
    else
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    if (status)
        pace__rundir_close(opened);
    else
        *run = opened;
    return status;
}

void pace__rundir_close(pace__rundir *run)
{
    if (!run)
        return;
    if (run->metrics_fd >= 0)
        close(run->metrics_fd);
    close_log(run);
    for (int file = 0; file < PACE__RUN_FILES; file++)
        free(run->paths[file]);
    free(run->log_path);
    free(run->path);
    free(run);
}

const char *pace__rundir_path(const pace__rundir *run, pace__run_file file)
{
    return run->paths[file];
}

const pace_log *pace__rundir_log(const pace__rundir *run)
{
    return &run->log;
}

const pace_sink *pace__rundir_sink(const pace__rundir *run)
{
    return &run->sink;
}

uint64_t pace__rundir_records_lost(const pace__rundir *run)
{
    return run->records_lost;
}

/* The summary -------------------------------------------------------------------------------------------- */

pace_status pace_train_summary(const char *run, const pace_log *log, char **json)
{
    size_t size;
    pace_status status;
    char *path = pace__run_path(run, PACE__RUN_SUMMARY);

    if (!path)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", run);
    if (!pace__exists(run))
        status = pace_fail(log, PACE_NO_INPUT, "%s: there is no such run directory", run);
    else if (!pace__exists(path))
        status = pace_fail(log, PACE_NO_INPUT, "%s: missing: the run did not finish", path);
    else
        status = pace__read_file(path, PACE__SUMMARY_BYTES_MAX, json, &size, log);
    free(path);
    return status;
}

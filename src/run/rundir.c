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
 * a. log_fd holds the lock from open to close; logs/holder says whose it is. directory_fd keeps the directory, and so its
 *    number is no other's, even if it is removed.
 * b. Nothing else writes into metrics.jsonl: it is appended to by one process, under the lock.
 */
#include "run/rundir.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/locale.h"
#include "checkpoint/checkpoint.h"
#include "events/directory.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"
#include "files/sealed.h"
#include "run/holder.h"
#include "run/records.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paceline/train.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_NAME     "paceline.log"
#define HOLDER_NAME  "holder"
#define LOCK_TURN_NS 20000000
#define TIME_BYTES   32
#define LOG_LINE_MAX (PACE_LOG_TEXT_MAX + TIME_BYTES + 16)
#define PLACE_TEXT   (PATH_MAX + 64)

static const char *const names[PACE__RUN_FILES] = {
    [PACE__RUN_CONFIG] = "config.yaml",    [PACE__RUN_CLUSTER] = "cluster.json",
    [PACE__RUN_METRICS] = "metrics.jsonl", [PACE__RUN_SUMMARY] = "summary.json",
    [PACE__RUN_EVENTS] = "events",         [PACE__RUN_CHECKPOINTS] = "checkpoints",
    [PACE__RUN_PROFILE] = "profile",       [PACE__RUN_MODEL] = "model.safetensors",
    [PACE__RUN_REPORT] = "report.html",    [PACE__RUN_LOGS] = "logs",
    [PACE__RUN_STATE] = "state.json",      [PACE__RUN_ROWS] = "rows",
    [PACE__RUN_FAULTS] = "faults",         [PACE__RUN_MISTAKES] = "mistakes.json",
    [PACE__RUN_SHARES] = "shares.jsonl",
};

static const bool is_directory[PACE__RUN_FILES] = {[PACE__RUN_EVENTS] = true,
                                                   [PACE__RUN_CHECKPOINTS] = true,
                                                   [PACE__RUN_PROFILE] = true,
                                                   [PACE__RUN_LOGS] = true};

struct pace__rundir {
    char *path;
    char *paths[PACE__RUN_FILES];
    char *log_path, *holder_path;
    bool holds; /* its name is there */
    const pace_log *outer_log;
    pace_log log;
    int directory_fd;
    int log_fd;
    pace__records records;
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

/* Whoever starts meanwhile meets a lock that is gone when it asks again, a moment later. */
bool pace__run_is_held(const char *run)
{
    char *path = pace__format("%s/%s/" LOG_NAME, run, names[PACE__RUN_LOGS]);
    char why[PACE__WHY_BYTES];
    int fd = path ? pace__try_open(path, PACE__TO_READ, why) : -1;
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd);
    free(path);
    return held;
}

void pace__run_note(const char *run, pace_level level, const char *text)
{
    char *path = pace__format("%s/%s/" LOG_NAME, run, names[PACE__RUN_LOGS]);
    char why[PACE__WHY_BYTES];
    int fd = path && pace__exists(path) ? pace__try_open(path, PACE__TO_APPEND, why) : -1;

    if (fd >= 0) {
        append_line(fd, level, text);
        close(fd);
    }
    free(path);
}

bool pace__run_last_saved(const char *run, uint64_t *step)
{
    static const char kind[] = "{\"kind\":\"checkpoint\",";
    char *path = pace__run_path(run, PACE__RUN_METRICS), *text = NULL;
    size_t size;
    bool found = false;

    if (!path || !pace__exists(path) || pace__read_file(path, PACE__METRICS_BYTES_MAX, &text, &size, NULL))
        text = NULL;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        cJSON *record = strncmp(line, kind, sizeof kind - 1) == 0 ? cJSON_Parse(line) : NULL;

        found |= pace__json_count(record, "step", step);
        cJSON_Delete(record);
    }
    free(text);
    free(path);
    return found;
}

/* The directory ------------------------------------------------------------------------------------------ */

typedef enum directory_state {
    IS_MISSING,
    IS_EMPTY,
    IS_BEGUN, /* has features, which come before the run, or logs/ without any: there was no room for one */
    IS_RUN,
    IS_FOREIGN,
    IS_NO_DIRECTORY,
    IS_UNREADABLE
} directory_state;

/* Beside what comes before a run, whose being there is told. */
static bool has_entries(DIR *directory, bool *begun)
{
    const struct dirent *entry;

    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, PACE__RUN_FEATURES) == 0 ||
            (strcmp(entry->d_name, names[PACE__RUN_LOGS]) == 0 &&
             pace__is_empty_at(dirfd(directory), entry->d_name)))
            *begun = true;
        else if (!pace__is_dots(entry->d_name))
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
    if (state == IS_RUN && start == PACE__RUN_NEW && pace__run_is_held(path))
        return pace_fail(log, PACE_USAGE,
                         "%s: a job is running in this directory (paceline top shows it): give another --run",
                         path);
    if (state == IS_RUN && start == PACE__RUN_NEW)
        return pace_fail(log, PACE_USAGE,
                         "%s: already holds a run: --resume goes on with it, --force replaces it", path);
    return PACE_OK;
}

/* A run writes into its own directory, not to where a link in it leads. Of one that is replaced, links are removed like
 * files, but for that of its log, which is opened first. */
static pace_status check_links(const char *path, pace__run_start start, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (int file = 0; file <= PACE__RUN_FILES && !status; file++) {
        char *inside = pace__format("%s/%s", path, file < PACE__RUN_FILES ? names[file] : PACE__RUN_FEATURES);
        struct stat info;

        if (!inside)
            status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
        else if ((start != PACE__RUN_REPLACE || file >= PACE__RUN_LOGS) && lstat(inside, &info) == 0 &&
                 S_ISLNK(info.st_mode))
            status = pace_fail(log, PACE_USAGE,
                               "%s: is a link, and paceline writes to no other place than the run directory: "
                               "remove it, or give another --run",
                               inside);
        free(inside);
    }
    return status;
}

pace_status pace__run_check_files(const char *run, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (int file = 0; file < PACE__RUN_FILES && !status; file++) {
        char *path = pace__run_path(run, (pace__run_file)file);
        struct stat info;
        bool there = path && stat(path, &info) == 0;

        if (!path)
            status = pace_fail(log, PACE_FAILED, "%s: out of memory", run);
        else if (there && !(is_directory[file] ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)))
            status = pace_fail(
                log, PACE_USAGE,
                "%s: not a %s, as a run has it: put it back, or move it away and try again; --force "
                "removes it with the rest of the run",
                path, is_directory[file] ? "directory" : "file");
        free(path);
    }
    return status;
}

/* What the directory is, if a start of this kind may go on with it. */
static pace_status check_directory(const pace__rundir *run, pace__run_start start, const pace_log *log,
                                   directory_state *state)
{
    pace_status status = pace__check_way(run->path, log);

    if (status)
        return status;
    *state = look_at(run);
    status = check_start(run->path, *state, start, log);
    return status ? status : check_links(run->path, start, log);
}

/* The nearest directory above `path` that exists, or `path` itself, can be written to. */
static pace_status check_writable(const char *path, const pace_log *log)
{
    char *part = pace__format("%s%s", path[0] == '/' ? "" : "./", path);
    pace_status status = part ? PACE_OK : pace_fail(log, PACE_FAILED, "%s: out of memory", path);

    bool there = part && pace__exists(part);

    while (part && !pace__exists(part)) {
        char *slash = strrchr(part, '/');

        slash[slash == part] = '\0';
    }
    bool writable = part && access(part, W_OK | X_OK) == 0;

    if (part && !writable && there)
        status = pace_fail(log, PACE_IO, "%s: cannot be written to: %s", path, strerror(errno));
    else if (part && !writable)
        status = pace_fail(log, PACE_IO, "%s: cannot be made: %s: %s", path, part, strerror(errno));
    free(part);
    return status;
}

/* What a path leads to, compared with what was opened there. */
typedef enum place { IS_THERE, IS_GONE, IS_ANOTHER, IS_UNKNOWN } place;

static place look_for(const char *path, int fd)
{
    struct stat opened, named;

    if (stat(path, &named) != 0)
        return errno == ENOENT || errno == ENOTDIR ? IS_GONE : IS_UNKNOWN;
    if (fstat(fd, &opened) != 0)
        return IS_UNKNOWN;
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino ? IS_THERE : IS_ANOTHER;
}

/* A lock counts only while its file has the log's name: who replaces a run removes that, and makes another. */
static bool take_lock(pace__rundir *run)
{
    char why[PACE__WHY_BYTES];

    if (flock(run->log_fd, LOCK_EX | LOCK_NB) != 0)
        return false;
    if (look_for(run->log_path, run->log_fd) == IS_THERE)
        return true;
    int fd = pace__try_open(run->log_path, PACE__TO_APPEND, why);

    if (fd >= 0) {
        close(run->log_fd);
        run->log_fd = fd;
    }
    errno = EWOULDBLOCK;
    return false;
}

/* Sets errno on failure. */
static bool lock_log(pace__rundir *run, const pace__run_patience *patience, const pace_log *log)
{
    uint64_t start_ns = pace__now_ns();
    unsigned turns = 0;

    while (!take_lock(run)) {
        char name[PACE__HOLDER_TEXT];
        int error = errno;

        if (error != EWOULDBLOCK || pace__seconds_since(start_ns) >= patience->seconds ||
            (patience->turn && !patience->turn(patience->user))) {
            errno = error;
            return false;
        }
        pace__holder holder = pace__holder_read(run->holder_path);

        if (turns++ == 1) /* who only looks at a run holds it for less than a turn */
            pace_say(log, PACE_WARN,
                     "%s: %s is still running in this directory: waiting for its end, at most %g s",
                     run->path, pace__holder_name(&holder, name), patience->seconds);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_TURN_NS}, NULL);
    }
    return true;
}

/* The lock goes with the descriptor, so it ends with the process however that ends. */
static pace_status open_locked_log(pace__rundir *run, const pace__run_patience *patience, const pace_log *log)
{
    char name[PACE__HOLDER_TEXT];

    assert(run->log_fd < 0); /* a */
    pace_status status = pace__open(run->log_path, PACE__TO_APPEND, log, &run->log_fd);

    if (status)
        return status;
    if (lock_log(run, patience, log))
        return PACE_OK;
    if (errno != EWOULDBLOCK)
        return pace_fail(log, PACE_IO, "%s: cannot lock: %s", run->log_path, strerror(errno));
    pace__holder holder = pace__holder_read(run->holder_path);

    return pace_fail(log, PACE_USAGE,
                     "%s: %s is running in this directory: wait for its end, or give another --run",
                     run->path, pace__holder_name(&holder, name));
}

/* The run directory may be a link, and is what that leads to. */
static pace_status open_directory(pace__rundir *run, const pace_log *log)
{
    char *inside = pace__format("%s/.", run->path);

    if (!inside)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", run->path);
    run->directory_fd = pace__open_directory(AT_FDCWD, inside);
    free(inside);
    return run->directory_fd >= 0
               ? PACE_OK
               : pace_fail(log, PACE_IO, "%s: cannot open: %s", run->path, strerror(errno));
}

/* "; the run is in ..., where --resume goes on", if it has another name now. */
static void name_place(const pace__rundir *run, char text[PLACE_TEXT])
{
    char link[64], name[PATH_MAX];

    snprintf(link, sizeof link, "/proc/self/fd/%d", run->directory_fd);
    ssize_t length = readlink(link, name, sizeof name - 1);

    name[length > 0 ? length : 0] = '\0';
    text[0] = '\0';
    if (look_for(run->path, run->directory_fd) != IS_THERE && look_for(name, run->directory_fd) == IS_THERE)
        snprintf(text, PLACE_TEXT, "; the run is in %s now, and --resume goes on with it there", name);
}

/* A log that is gone, and nothing else, is a log that somebody has removed. */
pace_status pace__rundir_is_there(const pace__rundir *run, const pace_log *log)
{
    place directory = look_for(run->path, run->directory_fd), locked = look_for(run->log_path, run->log_fd);
    char now[PLACE_TEXT];

    if ((directory == IS_THERE || directory == IS_UNKNOWN) && locked != IS_ANOTHER)
        return PACE_OK;
    name_place(run, now);
    return pace_fail(
        log, PACE_IO,
        "%s: is not the directory of this run any more: it was moved, removed or replaced while the "
        "job ran; nothing more was written there%s",
        run->path, now);
}

/* Under the lock: whoever has left its name there is dead. */
static void take_hold(pace__rundir *run)
{
    pace__holder dead = pace__holder_read(run->holder_path);

    pace__leftovers_remove(&dead.leftovers);
    pace__holder_write(run->holder_path);
    run->holds = true;
}

static void close_log(pace__rundir *run)
{
    if (run->log_fd >= 0)
        close(run->log_fd);
    run->log_fd = -1;
}

/* With what crashes have left beside it. */
static pace_status remove_file(const char *path, const pace_log *log)
{
    pace__new_file_sweep(path);
    return pace__remove_tree(path, log);
}

static pace_status remove_profile(const char *directory, const pace_log *log)
{
    static const char *const files[] = {PACE__PROFILE_TRACE, PACE__PROFILE_OPS};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < sizeof files / sizeof *files && !status; i++) {
        char *path = pace__format("%s/%s", directory, files[i]);

        status = path ? remove_file(path, log) : pace_fail(log, PACE_FAILED, "%s: out of memory", directory);
        free(path);
    }
    return status;
}

/* What paceline writes into it; with anything else in it, it stays. */
static pace_status remove_directory(const pace__rundir *run, pace__run_file file, const pace_log *log)
{
    const char *path = run->paths[file];
    pace_status status = PACE_OK;

    if (file == PACE__RUN_CHECKPOINTS)
        status = pace__checkpoint_remove_all(path, log);
    if (file == PACE__RUN_EVENTS)
        status = pace__event_files_remove(path, log);
    if (file == PACE__RUN_PROFILE)
        status = remove_profile(path, log);
    if (file == PACE__RUN_LOGS)
        status = remove_file(run->holder_path, log);
    if (!status && file == PACE__RUN_LOGS)
        status = remove_file(run->log_path, log);
    if (!status && rmdir(path) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        status = pace_fail(log, PACE_IO, "%s: cannot remove: %s", path, strerror(errno));
    return status;
}

static pace_status remove_one(const pace__rundir *run, pace__run_file file, const pace_log *log)
{
    struct stat info;

    if (is_directory[file] && lstat(run->paths[file], &info) == 0 && S_ISDIR(info.st_mode))
        return remove_directory(run, file, log);
    return remove_file(run->paths[file], log);
}

/*
 * Under the old run's lock. logs/ is last in the list: a removal that was cut short leaves something that
 * still counts as a run.
 */
static pace_status remove_run(pace__rundir *run, const pace__run_patience *patience, const pace_log *log)
{
    pace_status status = open_locked_log(run, patience, log);

    if (!status)
        take_hold(run); /* before the name of the dead goes with the rest */

    for (int file = 0; file < PACE__RUN_FILES && !status; file++)
        status = remove_one(run, (pace__run_file)file, log);
    close_log(run);
    run->holds = false;
    return status;
}

static pace_status start_run(pace__rundir *run, pace__run_start start, const pace__run_patience *patience,
                             const pace_log *log)
{
    directory_state state;
    pace_status status = check_directory(run, start, log, &state);

    if (!status && state == IS_RUN && start == PACE__RUN_RESUME)
        status = pace__run_check_files(run->path, log);
    if (!status && state == IS_RUN && start == PACE__RUN_REPLACE)
        status = remove_run(run, patience, log);
    if (!status)
        status = pace__make_own_dir(run->paths[PACE__RUN_LOGS], log);
    if (!status)
        status = open_locked_log(run, patience, log);
    if (!status)
        status = open_directory(run, log);
    if (!status)
        take_hold(run);
    for (int file = 0; file < PACE__RUN_FILES && !status; file++)
        pace__new_file_sweep(run->paths[file]);
    if (!status)
        status = pace__records_open(&run->records, run->paths[PACE__RUN_METRICS], &run->log); /* b */
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
    run->holder_path = pace__format("%s/%s/" HOLDER_NAME, path, names[PACE__RUN_LOGS]);
    for (int file = 0; file < PACE__RUN_FILES; file++) {
        assert(names[file]);
        run->paths[file] = pace__run_path(path, (pace__run_file)file);
        if (!run->paths[file])
            return false;
    }
    return run->path && run->log_path && run->holder_path;
}

pace_status pace__rundir_check(const char *path, pace__run_start start, const pace_log *log)
{
    if (path[0] == '\0')
        return pace_fail(log, PACE_USAGE, "the run directory's name is empty");
    pace__rundir looked = {.path = (char *)path,
                           .log_path = pace__format("%s/%s/" LOG_NAME, path, names[PACE__RUN_LOGS])};

    if (!looked.log_path)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    directory_state state;
    pace_status status = check_directory(&looked, start, log, &state);

    free(looked.log_path);
    return status ? status : check_writable(path, log);
}

pace_status pace__rundir_open(const char *path, pace__run_start start, const pace_log *log,
                              pace__rundir **run)
{
    return pace__rundir_open_patiently(path, start, &(pace__run_patience){0}, log, run);
}

pace_status pace__rundir_open_patiently(const char *path, pace__run_start start,
                                        const pace__run_patience *patience, const pace_log *log,
                                        pace__rundir **run)
{
    pace_status status;

    if (path[0] == '\0')
        return pace_fail(log, PACE_USAGE, "the run directory's name is empty");
    pace__rundir *opened = calloc(1, sizeof *opened);

    if (!opened)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    opened->log_fd = opened->records.fd = opened->directory_fd = -1;
    opened->outer_log = log;
    opened->log = (pace_log){write_message, opened};
    if (make_paths(opened, path))
        status = start_run(opened, start, patience, log);
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
    pace__records_close(&run->records);
    if (run->holds && pace__rundir_is_there(run, NULL) == PACE_OK) /* else it is somebody else's */
        unlink(run->holder_path);
    close_log(run);
    if (run->directory_fd >= 0)
        close(run->directory_fd);
    for (int file = 0; file < PACE__RUN_FILES; file++)
        free(run->paths[file]);
    free(run->holder_path);
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
    return &run->records.sink;
}

pace_status pace__rundir_go_back(pace__rundir *run, uint64_t step)
{
    return pace__records_go_back(&run->records, step);
}

uint64_t pace__rundir_records_lost(const pace__rundir *run)
{
    return run->records.lost;
}

/* The summary -------------------------------------------------------------------------------------------- */

pace_status pace_train_summary(const char *run, const pace_log *log, char **json)
{
    PACE__C_LOCALE();
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
        status = pace__read_sealed(path, PACE__SUMMARY_BYTES_MAX, json, &size, log);
    free(path);
    return status;
}

pace_status pace_train_profile(const char *run, const pace_log *log, char **json)
{
    PACE__C_LOCALE();
    size_t size;
    char *path = pace__format("%s/%s/" PACE__PROFILE_OPS, run, names[PACE__RUN_PROFILE]);

    if (!path)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", run);
    pace_status status = pace__exists(path)
                             ? pace__read_file(path, PACE__PROFILE_BYTES_MAX, json, &size, log)
                             : pace_fail(log, PACE_NO_INPUT, "%s: missing: the run has no profile", path);

    free(path);
    return status;
}

#include "base/kept.h"
#include "base/locale.h"
#include "files/file.h"
#include "files/open.h"
#include "files/sealed.h"
#include "history/internal.h"
#include "run/records.h"
#include "run/rundir.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES      ((size_t)256 << 10)
#define SMALL_FILE_BYTES ((size_t)4 << 20)
#define SETTINGS_MAX     1000
#define LACK_TEXT        512

/* --- what is missing --- */

void pace__history_lack(pace__history *history, const char *format, ...)
{
    char text[LACK_TEXT];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX; i++) {
        if (!history->lacks[i])
            history->lacks[i] = strdup(text);
        else if (strcmp(history->lacks[i], text) != 0)
            continue;
        return;
    }
}

static void forget_lacks(pace__history *history)
{
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX; i++) {
        free(history->lacks[i]);
        history->lacks[i] = NULL;
    }
}

/* --- small files --- */

/* NULL if there is none; what else is wrong with it is a lack. */
static char *read_small(pace__history *history, pace__run_file file, bool sealed, bool wanted)
{
    char *path = pace__run_path(history->path, file), *text = NULL, reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;
    size_t size;

    pace__kept_init(&kept, reason, sizeof reason);
    if (path && (wanted || pace__exists(path))) {
        pace_status status = sealed ? pace__read_sealed(path, SMALL_FILE_BYTES, &text, &size, &kept.log)
                                    : pace__read_file(path, SMALL_FILE_BYTES, &text, &size, &kept.log);

        if (status) {
            text = NULL;
            pace__history_lack(history, "%s", reason);
        }
    }
    free(path);
    return text;
}

static void read_summary(pace__history *history)
{
    char *text = read_small(history, PACE__RUN_SUMMARY, true, false);

    cJSON_Delete(history->own->summary);
    history->own->summary = text ? cJSON_Parse(text) : NULL;
    history->summary = history->own->summary;
    if (text && !cJSON_IsObject(history->summary))
        pace__history_lack(history, "%s/summary.json: damaged: it is no JSON object", history->path);
    if (!cJSON_IsObject(history->summary))
        history->summary = NULL;
    free(text);
}

static void read_cluster(pace__history *history)
{
    char *text = read_small(history, PACE__RUN_CLUSTER, false, false);
    cJSON *cluster = text ? cJSON_Parse(text) : NULL;
    const cJSON *rank;

    if (text && !cluster)
        pace__history_lack(history, "%s/cluster.json: damaged: it is no JSON object", history->path);
    cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(cluster, "ranks"))
    {
        const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rank, "host"));
        int index =
            pace__history_meet(history, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rank, "role")));

        if (index >= 0 && host && strlen(host) < PACE__HOST_TEXT)
            strcpy(history->roles[index].host, host);
    }
    cJSON_Delete(cluster);
    free(text);
}

/* What config.yaml has is one line each: name: value, of which a text has quotes as in JSON. */
static void take_setting(pace__history *history, char *line)
{
    char *colon = strchr(line, ':');

    if (!colon || line[0] == '#' || line[0] == ' ' || history->setting_count == SETTINGS_MAX)
        return;
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " ");
    cJSON *quoted = value[0] == '"' ? cJSON_Parse(value) : NULL;
    const char *plain = quoted && cJSON_GetStringValue(quoted) ? cJSON_GetStringValue(quoted) : value;
    pace__setting setting = {strdup(line), strdup(plain)};

    cJSON_Delete(quoted);
    if (setting.name && setting.value) {
        history->settings[history->setting_count++] = setting;
        return;
    }
    free(setting.name);
    free(setting.value);
}

static void forget_settings(pace__history *history)
{
    for (size_t i = 0; i < history->setting_count; i++) {
        free(history->settings[i].name);
        free(history->settings[i].value);
    }
    history->setting_count = 0;
}

static void read_settings(pace__history *history)
{
    char *text = read_small(history, PACE__RUN_CONFIG, false, true), *rest;

    forget_settings(history);
    if (!history->settings)
        history->settings = calloc(SETTINGS_MAX, sizeof *history->settings);
    for (char *line = text && history->settings ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        take_setting(history, line);
    free(text);
}

static pace__standing standing_of(const pace__history *history, bool known)
{
    if (history->summary)
        return PACE__STANDS_DONE;
    if (pace__run_is_held(history->path))
        return PACE__STANDS_RUNNING;
    if (!known || history->state.incarnation == 0)
        return PACE__STANDS_UNKNOWN;
    static const pace__standing by_ending[] = {[PACE__RUN_RUNNING] = PACE__STANDS_KILLED,
                                               [PACE__RUN_INTERRUPTED] = PACE__STANDS_INTERRUPTED,
                                               [PACE__RUN_DONE] = PACE__STANDS_DONE,
                                               [PACE__RUN_FAILED] = PACE__STANDS_FAILED};

    return by_ending[history->state.ending];
}

static void read_state(pace__history *history)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    bool known = pace__runstate_read(history->path, &kept.log, &history->state) == PACE_OK;

    if (!known) {
        history->state = (pace__runstate){0};
        pace__history_lack(history, "%s", reason);
    }
    history->standing = standing_of(history, known);
}

/* --- records --- */

void pace__history_forget(pace__history *history)
{
    pace__history_own *own = history->own;

    for (size_t i = 0; i < history->role_count; i++) {
        free(history->roles[i].samples);
        free(history->roles[i].dealings);
    }
    history->role_count = history->step_count = history->eval_count = history->mark_count = 0;
    history->of_validation = history->has_tested = false;
    history->starts = 0;
    history->steps = history->threads = history->unreadable = 0;
    history->profile = (pace__profiled){0};
    history->last_t = 0;
    own->read_bytes = own->step_skipped = own->sample_records = 0;
    own->step_every = own->sample_every = 1;
    own->sample_is_kept = false;
}

/* Takes all whole lines of text[0..size), and returns their bytes. */
static size_t take_lines(pace__history *history, char *text, size_t size)
{
    size_t taken = 0;

    for (char *end; (end = memchr(text + taken, '\n', size - taken)); taken = (size_t)(end - text) + 1) {
        *end = '\0';
        if (end > text + taken)
            pace__history_take_line(history, text + taken);
    }
    return taken;
}

/* A line that is longer than a piece is none of ours: it is passed over with the piece. */
static void read_records(pace__history *history, int fd)
{
    pace__history_own *own = history->own;
    char *piece = malloc(PIECE_BYTES + 1);
    ssize_t size;

    while (piece && own->read_bytes < PACE__METRICS_BYTES_MAX &&
           (size = pread(fd, piece, PIECE_BYTES, (off_t)own->read_bytes)) > 0) {
        size_t taken = take_lines(history, piece, (size_t)size);

        if (taken == 0 && (size_t)size < PIECE_BYTES)
            break; /* the last line is not whole yet */
        if (taken == 0)
            history->unreadable++;
        own->read_bytes += taken ? taken : (size_t)size;
    }
    if (own->read_bytes >= PACE__METRICS_BYTES_MAX)
        pace__history_lack(history, "%s/metrics.jsonl: only the first %d MiB are read", history->path,
                           (int)(PACE__METRICS_BYTES_MAX >> 20));
    free(piece);
}

/* Invariant 4: is it another file, or shorter than what was read of it? */
static bool was_replaced(const pace__history_own *own, const struct stat *info)
{
    return own->device != (uint64_t)info->st_dev || own->inode != (uint64_t)info->st_ino ||
           own->read_bytes > (uint64_t)info->st_size;
}

static void update_records(pace__history *history)
{
    pace__history_own *own = history->own;
    char *path = pace__run_path(history->path, PACE__RUN_METRICS), why[PACE__WHY_BYTES];
    struct stat info;
    int fd = path ? pace__try_open(path, PACE__TO_READ, why) : -1;

    if (fd < 0) {
        pace__history_lack(history, "%s: %s: nothing is known of steps and roles",
                           path ? path : "metrics.jsonl", path ? why : "out of memory");
    } else if (fstat(fd, &info) == 0) {
        if (was_replaced(own, &info)) {
            pace__history_forget(history);
            read_cluster(history);
            own->device = (uint64_t)info.st_dev;
            own->inode = (uint64_t)info.st_ino;
            history->generation++;
        }
        read_records(history, fd);
    }
    if (fd >= 0)
        close(fd);
    free(path);
}

/* --- life --- */

static void read_all(pace__history *history)
{
    forget_lacks(history);
    read_summary(history);
    read_settings(history);
    read_cluster(history); /* it comes behind the first records, and may change with a restart */
    update_records(history);
    read_state(history);
    if (history->own->step_every > 1)
        pace__history_lack(history, "there are very many records of steps: one in %llu is shown",
                           (unsigned long long)history->own->step_every);
    if (history->own->sample_every > 1)
        pace__history_lack(history, "there are very many samples: those of every %llu s are shown",
                           (unsigned long long)history->own->sample_every);
    if (history->unreadable > 0)
        pace__history_lack(history, "%llu lines of metrics.jsonl cannot be read",
                           (unsigned long long)history->unreadable);
}

static pace_status check_is_run(const char *run, const pace_log *log)
{
    pace_status status = pace__check_directory(run, log);

    if (status)
        return status;
    if (!pace__exists(run))
        return pace_fail(log, PACE_NO_INPUT, "%s: there is no such run directory", run);
    if (!pace__run_exists(run))
        return pace_fail(log, PACE_NO_INPUT, "%s: is no run directory: it has no logs/paceline.log", run);
    return PACE_OK;
}

pace_status pace__history_open(const char *run, const pace_log *log, pace__history **history)
{
    PACE__C_LOCALE();
    pace_status status = check_is_run(run, log);

    if (status)
        return status;
    pace__history *made = calloc(1, sizeof *made);
    pace__history_own *own = calloc(1, sizeof *own);
    char *path = strdup(run);

    if (!made || !own || !path) {
        free(path);
        free(own);
        free(made);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    made->path = path;
    made->own = own;
    pace__history_forget(made);
    read_all(made);
    *history = made;
    return PACE_OK;
}

bool pace__history_update(pace__history *history)
{
    PACE__C_LOCALE();
    uint64_t bytes = history->own->read_bytes;
    unsigned generation = history->generation;
    pace__standing standing = history->standing;

    read_all(history);
    return history->own->read_bytes != bytes || history->generation != generation ||
           history->standing != standing;
}

void pace__history_close(pace__history *history)
{
    if (!history)
        return;
    pace__history_forget(history);
    forget_settings(history);
    forget_lacks(history);
    cJSON_Delete(history->own->summary);
    free(history->settings);
    free(history->step);
    free(history->eval);
    free(history->mark);
    free(history->roles);
    free(history->own);
    free(history->path);
    free(history);
}

/* --- questions --- */

const char *pace__history_setting(const pace__history *history, const char *name)
{
    for (size_t i = 0; i < history->setting_count; i++) {
        if (strcmp(history->settings[i].name, name) == 0)
            return history->settings[i].value;
    }
    return NULL;
}

static const cJSON *find(const pace__history *history, const char *path)
{
    const cJSON *at = history->summary;
    char name[64];

    while (at && *path) {
        size_t length = strcspn(path, ".");

        assert(length < sizeof name);
        memcpy(name, path, length);
        name[length] = '\0';
        at = cJSON_GetObjectItemCaseSensitive(at, name);
        path += length + (path[length] == '.');
    }
    return at;
}

double pace__history_number(const pace__history *history, const char *path)
{
    const cJSON *found = find(history, path);

    return cJSON_IsNumber(found) ? found->valuedouble : NAN;
}

const char *pace__history_text(const pace__history *history, const char *path)
{
    return cJSON_GetStringValue(find(history, path));
}

const char *pace__standing_name(pace__standing standing)
{
    static const char *const names[] = {
        [PACE__STANDS_UNKNOWN] = "unknown", [PACE__STANDS_RUNNING] = "running",
        [PACE__STANDS_KILLED] = "killed",   [PACE__STANDS_INTERRUPTED] = "interrupted",
        [PACE__STANDS_FAILED] = "failed",   [PACE__STANDS_DONE] = "done"};

    return names[standing];
}

#include "inject/inject.h"

#include "base/clock.h"
#include "files/file.h"
#include "files/open.h"
#include "options/internal.h"
#include "run/rundir.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES_MAX ((size_t)1 << 20)
#define TIME_TEXT        20  /* of 2026-01-31T12:00:00Z */
#define ROLES_TEXT       256 /* of a list of roles */
#define ROLES_LISTED     3   /* more of a kind are given as "ps0 to ps7" */
#define DRAG_MIN_NS      50000

static const char *const kind_names[] = {"kill", "stall", "slow", "corrupt-checkpoint", NULL};
static const char *const kind_forms[] = {
    [PACE__FAULT_KILL] = "kill:ROLE[@MOMENT]",
    [PACE__FAULT_STALL] = "stall:ROLE[=SECONDSs][@MOMENT]",
    [PACE__FAULT_SLOW] = "slow:ROLE=FACTORx[@step=FROM..TO]",
    [PACE__FAULT_CORRUPT] = "corrupt-checkpoint[@step=N]",
};
static const char *const moment_names[] = {"step", "time", "start", "checkpoint", "eval", "end", NULL};

/* Reading the list --------------------------------------------------------------------------------------- */

/* The fault that is being read, for messages. */
typedef struct place {
    const pace__cluster *cluster;
    const pace_log *log;
    const char *text;
    unsigned number; /* in the list, from 1 */
} place;

static pace_status __attribute__((format(printf, 2, 3))) wrong(const place *at, const char *format, ...)
{
    char why[PACE_LOG_TEXT_MAX / 2];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return pace_fail(at->log, PACE_USAGE, "--inject: '%s' (fault %u): %s", at->text, at->number, why);
}

static int index_of(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}

/* " (did you mean NAME?)", or nothing. */
static const char *guess_text(const char *name, char text[PACE_OPTION_NAME_MAX])
{
    text[0] = '\0';
    if (name)
        snprintf(text, PACE_OPTION_NAME_MAX, " (did you mean %.40s?)", name);
    return text;
}

/* Ends `text` at the mark and returns what is behind it; NULL: there is no mark. */
static char *cut(char *text, char mark)
{
    char *found = strchr(text, mark);

    if (found)
        *found++ = '\0';
    return found;
}

/* Appends ", name", or ", first to last" if there are many. */
static void list_ranks(const pace__cluster *cluster, int first, int count, char text[ROLES_TEXT])
{
    char name[PACE__ROLE_TEXT];
    int step = count > ROLES_LISTED ? count - 1 : 1;

    for (int i = 0; i < count; i += step) {
        size_t used = strlen(text);

        pace__role_name(cluster, first + i, name);
        snprintf(text + used, ROLES_TEXT - used, "%s%s",
                 used == 0           ? ""
                 : step > 1 && i > 0 ? " to "
                                     : ", ",
                 name);
    }
}

static const char *roles_text(const pace__cluster *cluster, char text[ROLES_TEXT])
{
    text[0] = '\0';
    if (pace__cluster_size(cluster) == 1)
        return "only a chief";
    list_ranks(cluster, 0, 1, text);
    list_ranks(cluster, 1, cluster->workers - 1, text);
    list_ranks(cluster, cluster->workers, cluster->ps, text);
    list_ranks(cluster, cluster->workers + cluster->ps, cluster->evaluator, text);
    return text;
}

/* A word that names a role, of whatever cluster. */
static bool is_role(const char *word)
{
    static const char *const numbered[] = {"worker", "ps"};

    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        size_t length = strlen(numbered[i]);

        if (strncmp(word, numbered[i], length) == 0 && word[length])
            return word[length + strspn(word + length, "0123456789")] == '\0';
    }
    return strcmp(word, "chief") == 0 || strcmp(word, "evaluator") == 0;
}

static pace_status no_such_role(const place *at, const char *role)
{
    char roles[ROLES_TEXT], guess[PACE_OPTION_NAME_MAX], name[PACE__ROLE_TEXT], best[PACE__ROLE_TEXT] = "";
    pace__nearest nearest = {.word = role};

    if (is_role(role))
        return wrong(at, "there is no %s: this job has %s", role, roles_text(at->cluster, roles));
    for (int rank = 0; rank < pace__cluster_size(at->cluster); rank++) {
        pace__role_name(at->cluster, rank, name);
        if (pace__nearest_offer(&nearest, name))
            strcpy(best, name);
    }
    return wrong(at, "no role '%s': this job has %s%s", role, roles_text(at->cluster, roles),
                 guess_text(best[0] ? best : NULL, guess));
}

static pace_status parse_role(const place *at, const char *role, int *rank)
{
    char name[PACE__ROLE_TEXT];

    if (strcmp(role, "worker0") == 0)
        role = "chief";
    for (int i = 0; i < pace__cluster_size(at->cluster); i++) {
        pace__role_name(at->cluster, i, name);
        if (strcmp(name, role) == 0) {
            *rank = i;
            return PACE_OK;
        }
    }
    return no_such_role(at, role);
}

/* A number that may end in the letter of its unit. */
static bool parse_number(const char *text, char unit, double *value)
{
    static const pace_option row = {.name = "inject", .kind = PACE_OPT_REAL};
    char number[PACE__FAULT_TEXT], why[PACE_WHY_MAX];
    size_t length = strlen(text);

    if (length > 0 && text[length - 1] == unit)
        length--;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    return pace__value_parse(&row, number, value, why);
}

static pace_status parse_seconds(const place *at, const char *text, double min, double *seconds)
{
    double value;

    if (!parse_number(text, 's', &value))
        return wrong(at, "'%s' is no number of seconds (understood are 2, 2s, 0.5s)", text);
    if (value < min || value > PACE__FAULT_SECONDS_MAX)
        return wrong(at, "'%s' is out of range: must be between %g and %.0f seconds", text, min,
                     PACE__FAULT_SECONDS_MAX);
    *seconds = value;
    return PACE_OK;
}

static pace_status parse_factor(const place *at, const char *text, double *factor)
{
    double value;

    if (!parse_number(text, 'x', &value))
        return wrong(at, "'%s' is no factor (understood are 3x, 1.5x, 3)", text);
    if (value < 1 || value > PACE__FAULT_SLOWNESS_MAX)
        return wrong(at, "'%s' is out of range: must be between 1x and %dx", text, PACE__FAULT_SLOWNESS_MAX);
    *factor = value;
    return PACE_OK;
}

static pace_status parse_step(const place *at, const char *text, uint64_t *step)
{
    static const pace_option row = {
        .name = "inject", .kind = PACE_OPT_INT, .min = 0, .max = PACE__FAULT_STEP_MAX};
    char why[PACE_WHY_MAX];
    int64_t value;

    if (!pace__value_parse(&row, text, &value, why))
        return wrong(at, "step '%s': %s", text, why);
    *step = (uint64_t)value;
    return PACE_OK;
}

/* `text` is taken apart. */
static pace_status parse_steps(const place *at, char *text, pace__fault *fault)
{
    char *until = strstr(text, "..");
    pace_status status = PACE_OK;

    if (until) {
        *until = '\0';
        until += 2;
    }
    if (until && !text[0] && !until[0])
        return wrong(at, "no steps; they are written 200..400, 200 or ..400");
    if (!until || text[0])
        status = parse_step(at, text, &fault->step);
    if (!status && until && until[0])
        status = parse_step(at, until, &fault->until);
    if (!status && fault->step >= fault->until)
        status = wrong(at, "no step is from %" PRIu64 " on and before %" PRIu64, fault->step, fault->until);
    return status;
}

static pace_status parse_moment(const place *at, char *text, pace__fault *fault)
{
    char *value = cut(text, '='), guess[PACE_OPTION_NAME_MAX];
    int moment = index_of(moment_names, text);

    if (moment < 0)
        return wrong(at, "no moment '%s'; there are step=N, time=Ss, start, checkpoint, eval, end%s", text,
                     guess_text(pace_nearest_name(text, moment_names), guess));
    fault->moment = (pace__moment)moment;
    if (moment != PACE__AT_STEP && moment != PACE__AT_TIME)
        return value ? wrong(at, "the moment %s has no number", text) : PACE_OK;
    if (!value)
        return wrong(at, "the moment %s needs a number: %s", text,
                     moment == PACE__AT_STEP ? "step=300" : "time=2.5s");
    if (moment == PACE__AT_TIME)
        return parse_seconds(at, value, 0, &fault->seconds);
    return fault->kind == PACE__FAULT_SLOW ? parse_steps(at, value, fault)
                                           : parse_step(at, value, &fault->step);
}

/* Which parts a fault of this kind has. */
static pace_status check_parts(const place *at, pace__fault_kind kind, const char *role, const char *amount)
{
    const char *form = kind_forms[kind];

    if (!role && kind != PACE__FAULT_CORRUPT)
        return wrong(at, "no role; it is written %s", form);
    if (role && kind == PACE__FAULT_CORRUPT)
        return wrong(at, "':%s' is too much; it is written %s", role, form);
    if (amount && (kind == PACE__FAULT_KILL || kind == PACE__FAULT_CORRUPT))
        return wrong(at, "'=%s' is too much; it is written %s", amount, form);
    if (!amount && kind == PACE__FAULT_SLOW)
        return wrong(at, "no factor; it is written %s", form);
    return PACE_OK;
}

/* `text` is taken apart. */
static pace_status parse_fault(const place *at, char *text, pace__fault *fault)
{
    char *moment = cut(text, '@'), *amount = cut(text, '='), *role = cut(text, ':');
    char guess[PACE_OPTION_NAME_MAX];
    int kind = index_of(kind_names, text);

    if (kind < 0)
        return wrong(at, "no fault '%s'; there are kill, stall, slow, corrupt-checkpoint%s", text,
                     guess_text(pace_nearest_name(text, kind_names), guess));
    fault->kind = (pace__fault_kind)kind;
    pace_status status = check_parts(at, fault->kind, role, amount);

    if (!status && role)
        status = parse_role(at, role, &fault->rank);
    if (!status && amount)
        status = kind == PACE__FAULT_SLOW ? parse_factor(at, amount, &fault->amount)
                                          : parse_seconds(at, amount, 0.001, &fault->amount);
    if (!status && moment)
        status = parse_moment(at, moment, fault);
    if (!status && (kind == PACE__FAULT_CORRUPT || kind == PACE__FAULT_SLOW) &&
        fault->moment != PACE__AT_STEP)
        status = wrong(at, "only a step can be given; it is written %s", kind_forms[kind]);
    return status;
}

/* The next item of a list with commas, without blanks around it. */
static const char *next_item(const char *list, const char **item, size_t *length)
{
    const char *end = list + strcspn(list, ",");
    const char *last = end;

    while (list < last && isspace((unsigned char)*list))
        list++;
    while (last > list && isspace((unsigned char)last[-1]))
        last--;
    *item = list;
    *length = (size_t)(last - list);
    return *end ? end + 1 : NULL;
}

static pace_status parse_item(const pace__cluster *cluster, const char *item, size_t length, unsigned number,
                              const pace_log *log, pace__fault *fault)
{
    char parts[PACE__FAULT_TEXT];

    if (number > PACE__FAULTS_MAX)
        return pace_fail(log, PACE_USAGE, "--inject: more than %d faults", PACE__FAULTS_MAX);
    if (length == 0)
        return pace_fail(log, PACE_USAGE, "--inject: fault %u is empty", number);
    if (length >= sizeof parts)
        return pace_fail(log, PACE_USAGE, "--inject: '%.30s...' (fault %u): longer than %d characters", item,
                         number, PACE__FAULT_TEXT - 1);
    *fault = (pace__fault){.moment = PACE__AT_STEP, .until = UINT64_MAX, .number = 1};
    memcpy(fault->text, item, length);
    memcpy(parts, fault->text, sizeof parts);
    return parse_fault(&(place){cluster, log, fault->text, number}, parts, fault);
}

pace_status pace__faults_parse(const char *text, const pace__cluster *cluster, const pace_log *log,
                               pace__fault all[PACE__FAULTS_MAX], unsigned *count)
{
    unsigned found = 0;
    const char *item;
    size_t length;

    if (text && text[strspn(text, " \t\r\n")] == '\0')
        text = NULL;
    while (text) {
        pace__fault fault;

        text = next_item(text, &item, &length);
        pace_status status = parse_item(cluster, item, length, found + 1, log, &fault);

        if (status)
            return status;
        for (unsigned i = 0; i < found; i++)
            fault.number += strcmp(all[i].text, fault.text) == 0;
        all[found++] = fault;
    }
    *count = found;
    return PACE_OK;
}

/* The record --------------------------------------------------------------------------------------------- */

static void spend_recorded(pace__faults *faults, const char *line)
{
    char text[PACE__FAULT_TEXT], stamp[TIME_TEXT + 2];
    unsigned number;

    /* A line that was cut short, on a full disk say, is of a fault that did not fire. */
    if (sscanf(line, "%4u %95s %21s", &number, text, stamp) != 3 || strlen(stamp) != TIME_TEXT ||
        stamp[TIME_TEXT - 1] != 'Z')
        return;
    for (unsigned i = 0; i < faults->count; i++) {
        if (faults->fault[i].number == number && strcmp(faults->fault[i].text, text) == 0)
            faults->spent |= UINT64_C(1) << i;
    }
}

static pace_status read_record(pace__faults *faults)
{
    char *text, *rest;
    size_t size;

    if (!pace__exists(faults->record))
        return PACE_OK;
    pace_status status = pace__read_file(faults->record, RECORD_BYTES_MAX, &text, &size, faults->log);

    if (status)
        return status;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        spend_recorded(faults, line);
    free(text);
    return PACE_OK;
}

static bool ends_within_line(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char last;

    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

/* One write, so that lines of several ranks do not mix. Sets errno if it fails. */
static bool append_line(int fd, const pace__fault *fault)
{
    char stamp[TIME_TEXT + 1], line[PACE__FAULT_TEXT + TIME_TEXT + 24];
    time_t now = time(NULL);
    struct tm parts;

    gmtime_r(&now, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &parts);
    int size = snprintf(line, sizeof line, "%s%u %s %s\n", ends_within_line(fd) ? "\n" : "", fault->number,
                        fault->text, stamp);
    ssize_t put = write(fd, line, (size_t)size);

    if (put >= 0 && put != size)
        errno = ENOSPC;
    return put == size && fsync(fd) == 0;
}

/* False, and a warning: it must not fire. */
static bool record(const pace__faults *faults, const pace__fault *fault)
{
    char why[PACE__WHY_BYTES];
    int fd = pace__try_open(faults->record, PACE__TO_APPEND, why);
    bool done = fd >= 0 && append_line(fd, fault) && pace__sync_parent(faults->record, NULL) == PACE_OK;

    if (!done)
        pace_say(faults->log, PACE_WARN, "%s: cannot record an injected fault: %s: %s does not fire",
                 faults->record, fd < 0 ? why : strerror(errno), fault->text);
    if (fd >= 0)
        close(fd);
    return done;
}

pace_status pace__faults_open(pace__faults *faults, const char *text, const pace__cluster *cluster, int rank,
                              const char *run, const pace_log *log)
{
    pace__fault all[PACE__FAULTS_MAX];
    unsigned count;

    *faults = (pace__faults){.log = log, .start_ns = pace__now_ns()};
    pace_status status = pace__faults_parse(text, cluster, log, all, &count);

    for (unsigned i = 0; !status && i < count; i++) {
        if (rank != PACE__FAULTS_OF_ALL && all[i].rank != rank)
            continue;
        if (all[i].kind == PACE__FAULT_SLOW)
            faults->slow[faults->slow_count++] = (pace__slowness){all[i].amount, all[i].step, all[i].until};
        else
            faults->fault[faults->count++] = all[i];
    }
    if (status || faults->count == 0)
        return status;
    faults->record = pace__run_path(run, PACE__RUN_FAULTS);
    return faults->record ? read_record(faults) : pace_fail(log, PACE_FAILED, "out of memory");
}

void pace__faults_close(pace__faults *faults)
{
    free(faults->record);
    *faults = (pace__faults){0};
}

void pace__faults_go_by(pace__faults *faults, const pace__clock *clock)
{
    faults->clock = *clock;
    faults->start_ns = pace__clock_now_ns(clock);
}

void pace__faults_say_slow(const char *text, const pace__cluster *cluster, const pace_log *log)
{
    pace__fault all[PACE__FAULTS_MAX];
    unsigned count = 0;

    if (pace__faults_parse(text, cluster, NULL, all, &count))
        return;
    for (unsigned i = 0; i < count; i++) {
        if (all[i].kind == PACE__FAULT_SLOW)
            pace_say(log, PACE_WARN, "injected: %s", all[i].text);
    }
}

void pace__faults_say_unfired(const char *text, const pace__cluster *cluster, const char *run,
                              const pace_log *log)
{
    pace__faults all;
    pace_status status = pace__faults_open(&all, text, cluster, PACE__FAULTS_OF_ALL, run, log);

    for (unsigned i = 0; !status && i < all.count; i++) {
        if (!(all.spent & UINT64_C(1) << i))
            pace_say(log, PACE_WARN, "%s has not fired: its moment did not come", all.fault[i].text);
    }
    pace__faults_close(&all);
}

/* Firing ------------------------------------------------------------------------------------------------- */

/* No signs of life: neither messages nor answers to signals that are not deadly. */
static void stall(double seconds)
{
    uint64_t until_ns = pace__now_ns() + (uint64_t)(seconds * 1e9);
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};

    while (seconds == 0)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void fire(const pace__faults *faults, const pace__fault *fault)
{
    pace_say(faults->log, PACE_WARN, "injected: %s", fault->text);
    if (fault->kind == PACE__FAULT_STALL) {
        stall(fault->amount);
        return;
    }
    assert(fault->kind == PACE__FAULT_KILL);
    kill(getpid(), SIGKILL);
    _exit(128 + SIGKILL); /* the first process of a container is not killed by itself */
}

static bool is_due(const pace__faults *faults, const pace__fault *fault, pace__moment moment, uint64_t step)
{
    if (fault->kind == PACE__FAULT_CORRUPT)
        return false;
    if (fault->moment == PACE__AT_TIME)
        return pace__clock_seconds_since(&faults->clock, faults->start_ns) >= fault->seconds;
    return fault->moment == moment && (moment != PACE__AT_STEP || step >= fault->step);
}

void pace__faults_at(pace__faults *faults, pace__moment moment, uint64_t step)
{
    if (faults->count == 0)
        return;
    if (moment == PACE__AT_START)
        faults->start_ns = pace__clock_now_ns(&faults->clock);
    for (unsigned i = 0; i < faults->count; i++) {
        const pace__fault *fault = &faults->fault[i];
        uint64_t bit = UINT64_C(1) << i;

        if ((faults->spent & bit) || !is_due(faults, fault, moment, step))
            continue;
        faults->spent |= bit;
        if (record(faults, fault))
            fire(faults, fault);
    }
}

double pace__faults_slowness(const pace__faults *faults, uint64_t step)
{
    double factor = 1;

    for (unsigned i = 0; i < faults->slow_count; i++) {
        const pace__slowness *slow = &faults->slow[i];

        factor *= slow->from <= step && step < slow->until ? slow->factor : 1;
    }
    return factor;
}

uint64_t pace__faults_drag(pace__faults *faults, uint64_t step, uint64_t busy_ns)
{
    double slowness = pace__faults_slowness(faults, step);

    if (slowness <= 1)
        return 0;
    faults->debt_ns += (int64_t)((slowness - 1) * (double)busy_ns);
    if (faults->debt_ns < DRAG_MIN_NS)
        return 0;
    struct timespec pause = {.tv_sec = faults->debt_ns / 1000000000, .tv_nsec = faults->debt_ns % 1000000000};
    uint64_t start_ns = pace__now_ns();

    nanosleep(&pause, NULL);
    /* Sleeps end late, or early by a signal: what was really slept is what counts. */
    uint64_t slept_ns = pace__now_ns() - start_ns;

    faults->debt_ns -= (int64_t)slept_ns;
    return slept_ns;
}

/* Corruption --------------------------------------------------------------------------------------------- */

/* The largest file in a directory, the first by name of equals. */
typedef struct largest_file {
    char *path; /* NULL: there is none that is not empty */
    off_t bytes;
} largest_file;

static void offer_file(largest_file *largest, const char *directory, const char *name)
{
    struct stat info;
    char *path = pace__format("%s/%s", directory, name);

    if (path && lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        (info.st_size > largest->bytes ||
         (info.st_size == largest->bytes && strcmp(path, largest->path) < 0))) {
        free(largest->path);
        *largest = (largest_file){path, info.st_size};
        return;
    }
    free(path);
}

static largest_file find_largest(const char *directory)
{
    largest_file largest = {0};
    DIR *entries = opendir(directory);

    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        offer_file(&largest, directory, entry->d_name);
    if (entries)
        closedir(entries);
    return largest;
}

static bool flip_byte(const char *path, off_t at)
{
    char why[PACE__WHY_BYTES];
    int fd = pace__try_open(path, PACE__TO_CHANGE, why);
    unsigned char byte;
    bool done = fd >= 0 && pread(fd, &byte, 1, at) == 1;

    if (done) {
        byte ^= 0x01;
        done = pwrite(fd, &byte, 1, at) == 1 && fsync(fd) == 0;
    }
    if (fd >= 0)
        close(fd);
    return done;
}

static void corrupt(const pace__faults *faults, const pace__fault *fault, const char *directory)
{
    largest_file largest = find_largest(directory);

    if (!largest.path) {
        pace_say(faults->log, PACE_WARN, "%s: no file to corrupt: %s does not fire", directory, fault->text);
    } else if (record(faults, fault)) {
        pace_say(faults->log, PACE_WARN, "injected: %s: byte %lld of %s", fault->text,
                 (long long)(largest.bytes / 2), largest.path);
        if (!flip_byte(largest.path, largest.bytes / 2))
            pace_say(faults->log, PACE_WARN, "%s: cannot be corrupted: %s", largest.path, strerror(errno));
    }
    free(largest.path);
}

void pace__faults_corrupt(pace__faults *faults, const char *directory, uint64_t step)
{
    for (unsigned i = 0; i < faults->count; i++) {
        const pace__fault *fault = &faults->fault[i];
        uint64_t bit = UINT64_C(1) << i;

        if ((faults->spent & bit) || fault->kind != PACE__FAULT_CORRUPT || step < fault->step)
            continue;
        faults->spent |= bit;
        corrupt(faults, fault, directory);
        return; /* the same byte changed twice would be whole again */
    }
}

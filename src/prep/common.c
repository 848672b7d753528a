#include "prep/common.h"

#include "base/clock.h"
#include "data/input/input.h"
#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/store/checksums.h"
#include "data/text/vocabulary.h"
#include "files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often a running command is looked at. */
#define LOOK_NS 50000000
/* What a command gets to end by itself. */
#define END_S 5.0

/* --- inputs --- */

typedef struct identity {
    dev_t device;
    ino_t file;
} identity;

static int by_identity(const void *left, const void *right)
{
    const identity *a = left, *b = right;

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->file < b->file ? -1 : a->file > b->file;
}

static bool identify(const char *path, identity *found)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return false;
    *found = (identity){info.st_dev, info.st_ino};
    return true;
}

/* The same file may have two names. */
static pace_status check_overlap(const char *const *inputs, size_t input_count, const char *const *tests,
                                 size_t test_count, const pace_log *log)
{
    identity *known = malloc(input_count * sizeof *known), each;
    size_t count = 0;
    pace_status status = known ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    for (size_t i = 0; i < input_count && !status; i++)
        count += identify(inputs[i], &known[count]);
    if (!status)
        qsort(known, count, sizeof *known, by_identity);
    for (size_t i = 0; i < test_count && !status; i++) {
        if (identify(tests[i], &each) && bsearch(&each, known, count, sizeof each, by_identity))
            status = pace_fail(
                log, PACE_USAGE,
                "%s: both an input and --test: a model must not be tested on its training rows", tests[i]);
    }
    free(known);
    return status;
}

pace_status pace__prep_check_files(const char *const *inputs, size_t input_count, const char *const *tests,
                                   size_t test_count, const pace_log *log)
{
    if (input_count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    if (input_count + test_count > PACE__INPUT_FILES_MAX)
        return pace_fail(log, PACE_USAGE, "%zu input files: at most %u are possible",
                         input_count + test_count, PACE__INPUT_FILES_MAX);
    return test_count ? check_overlap(inputs, input_count, tests, test_count, log) : PACE_OK;
}

pace_status pace__prep_held_out(double holdout, uint64_t rows, const pace_log *log, uint64_t *held_out)
{
    *held_out = (uint64_t)llround(holdout * (double)rows);
    if (*held_out >= rows)
        return pace_fail(log, PACE_USAGE, "--holdout %g of %" PRIu64 " rows leaves none to train on", holdout,
                         rows);
    if (holdout > 0 && *held_out == 0)
        pace_say(log, PACE_WARN, "--holdout %g of %" PRIu64 " rows is none: there will be no test set",
                 holdout, rows);
    return PACE_OK;
}

int pace__prep_threads(int64_t wanted, int usual, uint64_t memory, uint64_t each, const pace_log *log)
{
    int threads = wanted ? (int)wanted : usual;
    uint64_t most = memory / each;

    if ((uint64_t)threads <= most)
        return threads;
    pace_say(log, wanted ? PACE_WARN : PACE_INFO,
             "--memory is enough for %" PRIu64 " of %d threads: each takes %" PRIu64 " MiB", most, threads,
             each >> 20);
    return (int)most;
}

/* --- the directory --- */

static bool is_of_a_set(const char *name)
{
    const char *ending = strrchr(name, '.');

    return (ending && strcmp(ending, ".h5") == 0) || strcmp(name, PACE__CHECKSUMS_NAME) == 0 ||
           strcmp(name, PACE__VOCABULARY_NAME) == 0 || strcmp(name, PACE__CLASS_NAMES_FILE) == 0 ||
           strcmp(name, PACE__IMAGE_NAMES_FILE) == 0;
}

/* Replacing a data set must not take along what someone put beside its parts. */
static pace_status check_older(const char *target, const pace_log *log)
{
    if (!pace__is_store(target))
        return pace_fail(log, PACE_USAGE, "%s: exists and is not a data set: choose another directory",
                         target);
    DIR *directory = opendir(target);
    pace_status status =
        directory ? PACE_OK : pace_fail(log, PACE_IO, "%s: cannot open: %s", target, strerror(errno));

    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_of_a_set(name))
            status = pace_fail(log, PACE_USAGE,
                               "%s: holds %s besides a data set: move it away, or choose another directory",
                               target, name);
    }
    if (directory)
        closedir(directory);
    return status;
}

pace_status pace__prep_begin(const char *output, bool force, pace__staging *staging, const pace_log *log)
{
    static const pace__staging_kind kind = {"prep", "data set", check_older};

    return pace__staging_begin(&kind, output, force, staging, log);
}

/* --- parts --- */

uint64_t pace__part_begin(uint64_t rows, uint32_t parts, uint32_t part)
{
    return (uint64_t)((unsigned __int128)rows * part / parts);
}

uint32_t pace__part_of(uint64_t rows, uint32_t parts, uint64_t row)
{
    uint32_t part = (uint32_t)((unsigned __int128)row * parts / rows);

    while (part + 1 < parts && pace__part_begin(rows, parts, part + 1) <= row)
        part++;
    return part;
}

pace_status pace__part_put(const pace__part *part, uint64_t at, uint64_t index, size_t width,
                           const void *from, size_t count, const pace_log *log)
{
    pace_status status = pace__pwrite_all(part->fd, from, count * width, at + index * width, part->path, log);

    /* The disk may start at once, so that the sync at the end finds little left to do. */
    if (!status)
        sync_file_range(part->fd, (off_t)(at + index * width), (off_t)(count * width), SYNC_FILE_RANGE_WRITE);
    return status;
}

/* --- the user's command --- */

/* A copy of the environment with one more variable; only the array is the caller's. */
static char **environment_with(char *variable)
{
    extern char **environ;
    size_t count = 0;

    while (environ[count])
        count++;
    char **copy = malloc((count + 2) * sizeof *copy);

    if (!copy)
        return NULL;
    memcpy(copy, environ, count * sizeof *copy);
    copy[count] = variable;
    copy[count + 1] = NULL;
    return copy;
}

/* `apart`: in a group of its own, so that all of it can be ended. Standard output is the program's, for its
 * result. It does not outlive the thread that has started it, which waits for it: what is killed leaves
 * nothing running, and no launcher waits for somebody who holds its pipes. */
static int start_shell(const char *command, char **environment, bool apart, pid_t *child)
{
    pid_t made = fork();

    if (made < 0)
        return errno;
    if (made == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (apart)
            setpgid(0, 0);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execle("/bin/sh", "sh", "-c", command, NULL, environment);
        _exit(127);
    }
    if (apart) /* it may not have come to it yet, and somebody may want to end the group */
        setpgid(made, made);
    *child = made;
    return 0;
}

/* Asked once, and then made to, if it does not end. */
static void end_group(pid_t child, bool first, uint64_t *asked_ns)
{
    if (first) {
        *asked_ns = pace__now_ns();
        kill(-child, SIGTERM);
    } else if (pace__seconds_since(*asked_ns) > END_S) {
        kill(-child, SIGKILL);
    }
}

static pace_status wait_for_shell(pid_t child, pace_status (*pulse)(void *user), void *user, int *result,
                                  const pace_log *log)
{
    pace_status status = PACE_OK;
    uint64_t asked_ns = 0;
    pid_t ended;

    while ((ended = waitpid(child, result, pulse ? WNOHANG : 0)) != child) {
        if (ended < 0 && errno != EINTR) /* somebody who ignores SIGCHLD has it reaped by the kernel */
            return status ? status
                          : pace_fail(log, PACE_FAILED, "--on-part: cannot tell how the command ended: %s",
                                      strerror(errno));
        if (!pulse)
            continue;
        pace_status now = pulse(user);

        if (status || now)
            end_group(child, !status, &asked_ns);
        status = status ? status : now;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return status;
}

pace_status pace__run_on_part(const char *command, const char *path, pace_status (*pulse)(void *user),
                              void *user, const pace_log *log)
{
    char *variable = pace__format("PACELINE_PART=%s", path);
    char **environment = variable ? environment_with(variable) : NULL;
    pid_t child = -1;
    int result = 0;

    if (!environment) {
        free(variable);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    int error = start_shell(command, environment, pulse != NULL, &child);
    pace_status status = error ? PACE_OK : wait_for_shell(child, pulse, user, &result, log);

    free(environment);
    free(variable);
    if (status)
        return status;
    if (error)
        return pace_fail(log, PACE_FAILED, "--on-part: cannot start a shell: %s", strerror(error));
    if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
        return pace_fail(log, PACE_FAILED, "--on-part failed on %s: '%s' ended with %s %d; nothing was kept",
                         path, command, WIFEXITED(result) ? "exit code" : "signal",
                         WIFEXITED(result) ? WEXITSTATUS(result) : WTERMSIG(result));
    return PACE_OK;
}

/* --- commands as text --- */

void pace__print_word(FILE *out, const char *before, const char *text)
{
    bool plain =
        *text && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-,=:") ==
                     strlen(text);

    fprintf(out, "%s%s", before, plain ? text : "'");
    if (plain)
        return;
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

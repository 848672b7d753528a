#include "prep/parts.h"

#include "base/clock.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <fcntl.h>
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

/* --- rows among parts --- */

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

void pace__part_plan(const pace__store_info *info, uint32_t index, pace__part *part)
{
    for (int set = 0; set < PACE__SETS; set++) {
        uint64_t begin = pace__part_begin(info->rows[set], info->parts, index);

        part->sets[set].rows = pace__part_begin(info->rows[set], info->parts, index + 1) - begin;
        part->sets[set].entries = part->sets[set].rows * info->columns;
        part->sets[set].lead = begin % pace__sum_rows(&info->encoding);
    }
}

/* --- parts of all ranks --- */

static pace_status create_parts(const pace__prep_job *job, pace__rank *rank, const pace__store_info *info,
                                pace__part *parts, pace__part_set *layout)
{
    pace_status status = PACE_OK;

    for (uint32_t i = 0; i < info->parts && !status; i++) {
        status = pace__part_create(job->directory, i, info, &parts[i], rank->log);
        memcpy(&layout[(size_t)i * PACE__SETS], parts[i].sets, sizeof parts[i].sets);
        if (!status)
            status = pace__rank_pulse(rank);
    }
    return status;
}

static pace_status open_part(const pace__prep_job *job, const pace__rank *rank, uint32_t index,
                             const pace__part_set *layout, pace__part *part)
{
    memcpy(part->sets, layout, sizeof part->sets);
    part->path = pace__part_path(job->directory, index);
    return part->path ? pace__open(part->path, PACE__TO_CHANGE, rank->log, &part->fd)
                      : pace_fail(rank->log, PACE_FAILED, "out of memory");
}

pace_status pace__parts_open(const pace__prep_job *job, pace__rank *rank, const pace__store_info *info,
                             pace__part *parts)
{
    size_t sets = (size_t)info->parts * PACE__SETS;
    pace__part_set *layout = calloc(sets, sizeof *layout);
    pace_status status = layout ? PACE_OK : pace_fail(rank->log, PACE_FAILED, "out of memory");

    for (uint32_t i = 0; i < info->parts; i++)
        parts[i].fd = -1;
    if (!status && rank->number == 0)
        status = create_parts(job, rank, info, parts, layout);
    if (!status)
        status = pace__ranks_share(rank->link, layout, sets * sizeof *layout);
    for (uint32_t i = 0; i < info->parts && !status && rank->number > 0; i++)
        status = open_part(job, rank, i, &layout[(size_t)i * PACE__SETS], &parts[i]);
    free(layout);
    return status;
}

pace_status pace__part_finish(const pace__prep_job *job, pace__rank *rank, pace__part *part, uint64_t *bytes)
{
    const char *command = job->config->on_part;
    pace_status status = pace__part_sync(part, rank->log);
    struct stat info;

    if (!status && fstat(part->fd, &info) == 0)
        *bytes += (uint64_t)info.st_size;
    if (!status && command)
        status = pace__run_on_part(command, part->path, pace__rank_pulse, rank, rank->log);
    return status ? status : pace__rank_pulse(rank);
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

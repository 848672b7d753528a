#include "launch/leftovers.h"

#include "base/clock.h"
#include "files/file.h"
#include "files/open.h"
#include "launch/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DYING_S      2.0
#define SEGMENT_TEXT (PACE__HOST_TEXT + 80)

static void name_segment(const char *host, unsigned long job, int rank, char path[SEGMENT_TEXT])
{
    snprintf(path, SEGMENT_TEXT, "/dev/shm/vader_segment.%s.%u.%lx.%d", host, (unsigned)geteuid(), job, rank);
}

void pace__remove_segment(const char *host, unsigned long job, int rank)
{
    char path[SEGMENT_TEXT];

    name_segment(host, job, rank, path);
    unlink(path);
}

/* --- noting --- */

static const char *environment_of(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

pace__leftovers pace__leftovers_of_this_job(void)
{
    pace__leftovers own = {.job = strtoul(environment_of("OMPI_MCA_ess_base_jobid"), NULL, 10),
                           .ranks = atoi(environment_of("OMPI_COMM_WORLD_SIZE"))};

    gethostname(own.host, sizeof own.host - 1);
    snprintf(own.session, sizeof own.session, "%s", environment_of("PMIX_SERVER_TMPDIR"));
    return own;
}

/* --- removing --- */

static bool mentions(const char *process, const char *path)
{
    char *maps = pace__format("/proc/%s/maps", process), line[SEGMENT_TEXT + 128];
    FILE *in = NULL;
    bool found = false;

    if (maps)
        pace__open_stdio(maps, PACE__TO_READ, NULL, &in);
    while (in && !found && fgets(line, sizeof line, in))
        found = strstr(line, path) != NULL;
    if (in)
        fclose(in);
    free(maps);
    return found;
}

/* Invariant 2. Processes of other users cannot have it. */
static bool is_mapped(const char *path)
{
    DIR *processes = opendir("/proc");
    bool found = !processes; /* it cannot be told */

    for (struct dirent *entry; processes && !found && (entry = readdir(processes));)
        found = isdigit((unsigned char)entry->d_name[0]) && mentions(entry->d_name, path);
    if (processes)
        closedir(processes);
    return found;
}

/* The process that an mpirun's directory is named after, ".../ompi.HOST.USER/pid.PROCESS"; 0: it is none of this
 * user's on this machine (invariant 1). */
static long process_of(const pace__leftovers *dead)
{
    char expected[PACE__HOST_TEXT + 64];
    const char *slash = strrchr(dead->session, '/');
    long process = slash && strncmp(slash, "/pid.", 5) == 0 ? strtol(slash + 5, NULL, 10) : 0;
    int length =
        snprintf(expected, sizeof expected, "/ompi.%s.%u/pid.%ld", dead->host, (unsigned)geteuid(), process);
    size_t whole = strlen(dead->session);

    return process > 1 && whole > (size_t)length && dead->session[0] == '/' &&
                   strcmp(dead->session + whole - (size_t)length, expected) == 0
               ? process
               : 0;
}

/* Gone, or waiting for a parent to notice that it has ended. */
static bool is_dead(long process)
{
    char path[64], text[512] = "", why[PACE__WHY_BYTES];

    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    int fd = pace__try_open(path, PACE__TO_READ, why);
    bool gone = fd < 0 && errno == ENOENT;
    const char *name_end = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strrchr(text, ')') : NULL;

    if (fd >= 0)
        close(fd);
    return gone || (name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0));
}

/* Its ranks are gone, so the launcher is about to be. */
static bool await_death(long process)
{
    uint64_t start_ns = pace__now_ns();

    while (!is_dead(process)) {
        if (pace__seconds_since(start_ns) > DYING_S)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return true;
}

void pace__leftovers_remove(const pace__leftovers *dead)
{
    char host[PACE__HOST_TEXT] = "", path[SEGMENT_TEXT];
    long process = process_of(dead);

    gethostname(host, sizeof host - 1);
    if (!dead->job || strcmp(dead->host, host) != 0)
        return;
    for (int rank = 0; rank < dead->ranks && rank < PACE__LAUNCHED_MAX; rank++) {
        name_segment(dead->host, dead->job, rank, path);
        if (pace__exists(path) && !is_mapped(path))
            unlink(path);
    }
    if (process && await_death(process))
        pace__remove_tree(dead->session, NULL);
}

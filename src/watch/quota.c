#include "watch/quota.h"

#include "files/open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 4096
#define PATH_BYTES 1024

/* "" if there is none. */
static void read_text(const char *path, char text[TEXT_BYTES])
{
    char why[PACE__WHY_BYTES];
    int fd = pace__try_open(path, PACE__TO_READ, why);
    ssize_t got = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : 0;

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
}

static double read_number(const char *directory, const char *name)
{
    char path[PATH_BYTES + 32], text[TEXT_BYTES];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    read_text(path, text);
    return atof(text);
}

static const pace__quota no_limit = {.cores = INFINITY};

static pace__quota quota_from(double quota_us, double period_us)
{
    return quota_us > 0 && period_us > 0 ? (pace__quota){quota_us / period_us, period_us * 1e-6} : no_limit;
}

static pace__quota less_of(pace__quota left, pace__quota right)
{
    return right.cores < left.cores ? right : left;
}

/* Version 1: two files. "-1": no limit. */
static pace__quota first_version(const char *directory)
{
    double quota = read_number(directory, "cpu.cfs_quota_us"),
           period = read_number(directory, "cpu.cfs_period_us");

    return quota_from(quota, period);
}

/* Version 2: "QUOTA PERIOD", or "max PERIOD". */
static pace__quota second_version(const char *directory)
{
    char path[PATH_BYTES + 32], text[TEXT_BYTES], *rest;

    snprintf(path, sizeof path, "%s/cpu.max", directory);
    read_text(path, text);
    double quota = strtod(text, &rest), period = strtod(rest, NULL);

    return quota_from(quota, period);
}

/* Groups around a group have limits, too. Inside a container the path may be that of outside: then the mount itself is the
 * group. */
static pace__quota smallest(const char *mount, const char *group, pace__quota (*limit)(const char *directory))
{
    char path[PATH_BYTES];
    size_t root = (size_t)snprintf(path, sizeof path, "%s", mount);
    pace__quota least = no_limit;

    if (root + strlen(group) >= sizeof path)
        return no_limit;
    strcpy(path + root, group);
    for (;;) {
        least = less_of(least, limit(path));
        char *last = strrchr(path + root, '/');

        if (!last)
            return least;
        *last = '\0';
    }
}

/* "cpu" among "cpu,cpuacct"? */
static bool names_cpu(const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0)
            return true;
    }
    return false;
}

/* A line: "4:cpu,cpuacct:/jobs/7", or "0::/jobs/7" of version 2. */
static pace__quota limit_of(char *line, const char *mount)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL, path[PATH_BYTES];

    if (!group)
        return no_limit;
    *group++ = '\0';
    if (list[1] == '\0')
        return smallest(mount, group, second_version);
    if (!names_cpu(list + 1))
        return no_limit;
    snprintf(path, sizeof path, "%s/%s", mount, list + 1);
    pace__quota least = smallest(path, group, first_version);

    snprintf(path, sizeof path, "%s/cpu", mount); /* which may be a name of its own */
    return less_of(least, smallest(path, group, first_version));
}

pace__quota pace__quota_of(const char *groups, const char *mount)
{
    char text[TEXT_BYTES], *rest = text;
    pace__quota least = no_limit;

    snprintf(text, sizeof text, "%s", groups);
    for (char *line; (line = strsep(&rest, "\n"));)
        least = less_of(least, limit_of(line, mount));
    return least;
}

pace__quota pace__quota_here(void)
{
    char groups[TEXT_BYTES];

    read_text("/proc/self/cgroup", groups);
    return pace__quota_of(groups, "/sys/fs/cgroup");
}

#include "watch/usage.h"

#include "files/file.h"
#include "files/open.h"
#include "watch/spans.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define TEXT_BYTES 16384

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

/* Of /proc, without stdio, which allocates: "" if there is none. */
static void read_text(const char *path, char text[TEXT_BYTES])
{
    char why[PACE__WHY_BYTES];
    size_t used = 0;
    int fd = pace__try_open(path, PACE__TO_READ, why);

    for (ssize_t got = 1; fd >= 0 && got > 0 && used<TEXT_BYTES - 1; used += got> 0 ? (size_t)got : 0)
        got = read(fd, text + used, TEXT_BYTES - 1 - used);
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static void read_processor(pace__usage *usage)
{
    struct rusage own;

    getrusage(RUSAGE_SELF, &own);
    usage->user_s = seconds_of(own.ru_utime);
    usage->system_s = seconds_of(own.ru_stime);
    usage->minor_faults = (uint64_t)own.ru_minflt;
    usage->major_faults = (uint64_t)own.ru_majflt;
    usage->rss_max_bytes = larger(usage->rss_max_bytes, (uint64_t)own.ru_maxrss * 1024);
}

/* schedstat: nanoseconds on a processor, nanoseconds in its queue, turns. */
static void read_delay(pace__usage *usage)
{
    char text[TEXT_BYTES], path[64];
    uint64_t delay_ns = 0, waited_ns;
    int fd = pace__open_directory(AT_FDCWD, "/proc/self/task");
    DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;

    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        if (pace__is_dots(task->d_name))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", task->d_name);
        read_text(path, text);
        if (sscanf(text, "%*u %" SCNu64, &waited_ns) == 1)
            delay_ns += waited_ns;
    }
    if (tasks)
        closedir(tasks);
    else if (fd >= 0)
        close(fd);
    if ((double)delay_ns * 1e-9 > usage->delay_s)
        usage->delay_s = (double)delay_ns * 1e-9;
}

static void read_memory(pace__usage *usage, char text[TEXT_BYTES])
{
    uint64_t pages;

    read_text("/proc/self/statm", text);
    if (sscanf(text, "%*u %" SCNu64, &pages) == 1)
        usage->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    usage->rss_max_bytes =
        larger(usage->rss_max_bytes, usage->rss_bytes); /* the kernel's two counts differ a little */
}

static void read_count(const char *text, const char *name, uint64_t *count)
{
    const char *found = strstr(text, name);
    uint64_t value;

    if (found && sscanf(found + strlen(name), "%" SCNu64, &value) == 1)
        *count = larger(*count, value);
}

static void read_disks(pace__usage *usage, char text[TEXT_BYTES])
{
    read_text("/proc/self/io", text);
    read_count(text, "\nread_bytes: ", &usage->read_bytes);
    read_count(text, "\nwrite_bytes: ", &usage->write_bytes);
}

/* NULL: that was the last. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : NULL;
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes ...": received, then sent. */
static void read_networks(pace__usage *usage, char text[TEXT_BYTES])
{
    uint64_t all_received = 0, all_sent = 0, received, sent;

    read_text("/proc/self/net/dev", text);
    for (const char *line = text; line; line = next_line(line)) {
        const char *colon = strchr(line, ':'), *end = strchr(line, '\n');
        const char *name = line + strspn(line, " ");

        if (!colon || (end && colon > end) ||
            sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &received, &sent) != 2)
            continue;
        if (colon - name == 2 && memcmp(name, "lo", 2) == 0) {
            usage->loopback_bytes = larger(usage->loopback_bytes, sent);
            continue;
        }
        all_received += received;
        all_sent += sent;
    }
    usage->net_received_bytes = larger(usage->net_received_bytes, all_received);
    usage->net_sent_bytes = larger(usage->net_sent_bytes, all_sent);
}

void pace__usage_read(pace__usage *usage)
{
    PACE__SPAN("usage");
    char text[TEXT_BYTES];

    read_processor(usage);
    read_delay(usage);
    read_memory(usage, text);
    read_disks(usage, text);
    read_networks(usage, text);
}

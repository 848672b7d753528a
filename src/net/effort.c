#include "net/effort.h"

#include "base/clock.h"
#include "watch/quota.h"

#include <math.h>

static pace__effort_count count_now(const pace__effort *effort)
{
    struct timespec processor;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
    return (pace__effort_count){.at_ns = pace__now_ns(),
                                .idle_ns = pace__link_idle_ns(effort->link),
                                .processor_ns =
                                    (uint64_t)processor.tv_sec * 1000000000u + (uint64_t)processor.tv_nsec};
}

void pace__effort_open(pace__effort *effort, const pace__link *link)
{
    *effort = (pace__effort){.link = link, .cores = pace__quota_here().cores};
    effort->since = count_now(effort);
}

void pace__effort_pause(pace__effort *effort)
{
    effort->paused = count_now(effort);
}

void pace__effort_resume(pace__effort *effort)
{
    pace__effort_count now = count_now(effort);

    effort->since.at_ns += now.at_ns - effort->paused.at_ns;
    effort->since.idle_ns += now.idle_ns - effort->paused.idle_ns;
    effort->since.processor_ns += now.processor_ns - effort->paused.processor_ns;
}

uint64_t pace__effort_of(uint64_t busy_ns, uint64_t processor_ns, double cores)
{
    return (uint64_t)fmax((double)busy_ns, (double)processor_ns / cores);
}

uint64_t pace__effort_take(pace__effort *effort)
{
    pace__effort_count now = count_now(effort), since = effort->since;
    uint64_t all_ns = now.at_ns - since.at_ns, idle_ns = now.idle_ns - since.idle_ns;
    /* Who spins while it waits is on a processor for nothing. */
    double cores = pace__link_spins(effort->link) ? INFINITY : effort->cores;

    effort->since = now;
    return pace__effort_of(all_ns > idle_ns ? all_ns - idle_ns : 0, now.processor_ns - since.processor_ns,
                           cores);
}

/*
 * quota.h - how many cores' worth of time the machine gives to this process: containers and batch systems set a limit to
 * groups of processes (cgroups), which affinity does not show. Of no use to decide bits: it may change at any time.
 */
#ifndef WATCH_QUOTA_H
#define WATCH_QUOTA_H

typedef struct pace__quota {
    double cores; /* .5, say; INFINITY: there is no limit, or none that can be read */
    double
        period_s; /* over which it is counted: whoever has used up his part stands still for the rest; 0: no limit */
} pace__quota;

pace__quota pace__quota_here(void);

/* The same from a list of groups as /proc/self/cgroup has it, and where their file systems are mounted (/sys/fs/cgroup). */
pace__quota pace__quota_of(const char *groups, const char *mount);

/* How long a process that needs more than it has stands still at a time. */
static inline double pace__quota_pause_s(const pace__quota *quota)
{
    return quota->cores < 1 ? quota->period_s * (1 - quota->cores) : 0;
}

#endif

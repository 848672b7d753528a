/*
 * quota.h - how many cores' worth of time the machine gives to this process: containers and batch systems set a limit to
 * groups of processes (cgroups), which affinity does not show. Of no use to decide bits: it may change at any time.
 */
#ifndef WATCH_QUOTA_H
#define WATCH_QUOTA_H

/* Cores, .5 say; INFINITY: there is no limit, or none that can be read. */
double pace__quota_cores(void);

/* The same from a list of groups as /proc/self/cgroup has it, and where their file systems are mounted (/sys/fs/cgroup). */
double pace__quota_of(const char *groups, const char *mount);

#endif

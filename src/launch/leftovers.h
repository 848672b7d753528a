/*
 * leftovers.h - what Open MPI leaves on a machine when all processes of a job are killed at once: shared memory of its
 * ranks, and mpirun's session directory.
 *
 *     pace__leftovers mine = pace__leftovers_of_this_job();     // a rank notes them while it lives
 *     ...
 *     pace__leftovers_remove(&noted);                           // whoever comes after its death
 *
 * 1. Only what is named after the job, this machine and this user is removed.
 * 2. Numbers of jobs and processes come again: what any process has mapped, and the directory of an mpirun that lives,
 *    stay.
 */
#ifndef LAUNCH_LEFTOVERS_H
#define LAUNCH_LEFTOVERS_H

#include "launch/cluster.h"

#include <limits.h>
#include <stdbool.h>

typedef struct pace__leftovers {
    char host[PACE__HOST_TEXT];
    unsigned long job; /* Open MPI's number; 0: another launcher's, or none's, which leaves nothing */
    int ranks;
    char session[PATH_MAX]; /* empty: unknown */
} pace__leftovers;

/* As this process's environment tells. */
pace__leftovers pace__leftovers_of_this_job(void);
void pace__leftovers_remove(const pace__leftovers *dead);

/* The shared memory of one rank on this machine. */
void pace__remove_segment(const char *host, unsigned long job, int rank);

#endif

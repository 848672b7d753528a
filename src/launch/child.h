/*
 * child.h - a child process that writes into our pipes: a launcher, or a whole job.
 */
#ifndef LAUNCH_CHILD_H
#define LAUNCH_CHILD_H

#include <paceline/log.h>
#include <paceline/relay.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct pace__child {
    pid_t pid;
    int fds[2]; /* what it writes to standard output and standard error; -1: ended */
    int input;  /* what we write to its standard input; -1: it has none */
    bool ended;
    int code; /* wait status, once ended */
} pace__child;

#define PACE__NO_CHILD ((pace__child){.fds = {-1, -1}, .input = -1, .ended = true})

/* In a session of its own; without input, unless it `listens`. It gets `death_signal` when the calling
 * thread ends. */
pace_status pace__child_start(char *const *words, char *const *environment, int death_signal, bool listens,
                              const pace_log *log, pace__child *process);
/* A short line for its standard input. Never blocks. False: not now; try again later. */
bool pace__child_tell(const pace__child *process, const char *text, size_t size);

/* Waits a moment for something to read, reads it, and looks whether the child has ended. */
void pace__child_serve(pace__child *process, pace_relay_reader *const readers[2]);
bool pace__child_open(const pace__child *process); /* may there be more to read? */
void pace__child_close(pace__child *process);

#endif

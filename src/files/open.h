/*
 * open.h - the one door to files: nobody else calls open(2) or fopen(3) (tests/lint/opens sees to that).
 *
 *     int fd;
 *     status = pace__open("set/ids.h5", PACE__TO_READ, log, &fd);
 *     if (status)
 *         return status;                     // "set/ids.h5: is a pipe, not a file", and nothing has waited for it
 *
 * 1. Opening does not wait, whatever has the name. Only two do: pace__open_stream, for the writer of a pipe, and it
 *    asks its watch meanwhile; pace__open_special, for the reader of one, and not for long.
 * 2. What is opened is a regular file; what else it is, an error says.
 * 3. What is written to was called by its own name: a link in its place is an error, too, and leads nowhere.
 *    (The directories on the way to it may be links: they are the user's.)
 * 4. Trouble of the system, as too many open files, is PACE_IO; it is never taken for a missing or damaged file.
 */
#ifndef FILES_OPEN_H
#define FILES_OPEN_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum pace__open_mode {
    PACE__TO_READ,
    PACE__TO_CHANGE, /* read and write one that is there */
    PACE__TO_CREATE, /* read and write a new one, in a directory of our own: what has its name is removed first */
    PACE__TO_APPEND, /* read and append; made if need be */
    PACE__TO_SHARE,  /* read and write; made if need be */
    PACE__OPEN_MODES
} pace__open_mode;

/* PACE_IO; to read, PACE_NO_INPUT for one that is missing, forbidden or no regular file. */
pace_status pace__open(const char *path, pace__open_mode mode, const pace_log *log, int *fd);

/* The same without a message: -1, and why not, in words, and in errno (ENOTSUP: it is no regular file). */
#define PACE__WHY_BYTES 128
int pace__try_open(const char *path, pace__open_mode mode, char why[PACE__WHY_BYTES]);

/* With a stdio stream around it. `mode` is one of the first three. */
pace_status pace__open_stdio(const char *path, pace__open_mode mode, const pace_log *log, FILE **file);

/* A directory's descriptor, below `parent` or AT_FDCWD. -1 and errno; a link is ENOTDIR or ELOOP. */
int pace__open_directory(int parent, const char *name);

/* --- what can be read only once --- */

/* Asked now and then by who waits: anything but PACE_OK ends the wait. NULL, or without a function: nobody is asked. */
typedef struct pace__watch {
    pace_status (*look)(void *user);
    void *user;
} pace__watch;

/* Asks for PACE_INTERRUPTED once *stop is set; it may be NULL. */
pace__watch pace__watch_stop(const _Atomic int *stop);

/* For reading from its start to its end: regular files, pipes and devices. The watch's status ends it in silence. */
pace_status pace__open_stream(const char *path, const pace__watch *watch, const pace_log *log, int *fd);

/* PACE_OK once read() would not wait, or the watch's status. */
pace_status pace__await_bytes(int fd, const pace__watch *watch);

/* For writing to what is there and is no file: a pipe, or a device. Links may lead to it. The reader of a pipe may come a
 * little later; PACE_IO if nobody has by then, and for files and sockets. */
#define PACE__READER_WAIT_S 5
pace_status pace__open_special(const char *path, const pace_log *log, int *fd);

#endif

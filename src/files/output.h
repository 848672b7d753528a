/*
 * output.h - where a file goes that the user has named.
 *
 * A regular file appears whole or not at all (new_file.h), and replaces another one only if that was asked for. "-" is
 * standard output; it, devices and pipes are written directly, also through links (/dev/fd/63 is one). Nothing is written
 * through a link that leads to a file, and a pipe that nobody reads is not waited for (open.h).
 *
 *     status = pace__output_open(&output, path, force, log);
 *     if (status)
 *         return status;
 *     status = pace__write_all(output.fd, bytes, size, output.name, log);
 *     return pace__output_close(&output, status);
 */
#ifndef FILES_OUTPUT_H
#define FILES_OUTPUT_H

#include "files/new_file.h"

#include <paceline/log.h>
#include <stdbool.h>

#define PACE__INTERRUPTED_TEXT "interrupted: nothing was kept; run the same command again"

typedef struct pace__output {
    int fd;
    const char *name; /* for messages */
    bool whole;       /* it is file's, which appears at the end */
    bool direct;      /* it is ours, and something else */
    pace__new_file file;
    const pace_log *log;
} pace__output;

/* `path` must outlive the output. PACE_USAGE: a directory, a link to a file or to nothing, or a file that exists
 * while `force` is false. PACE_IO: it cannot be opened. */
pace_status pace__output_open(pace__output *output, const char *path, bool force, const pace_log *log);

/* `status` is the job's: if PACE_OK the file gets its name, else it is removed and `status` returned. */
pace_status pace__output_close(pace__output *output, pace_status status);

/* PACE_USAGE if the output is one of the inputs or lies within one, by whatever names and links: a job must not write over
 * what it reads. Inputs may be NULL or "-"; those that are not there are passed over. PACE_IO: pace__check_way. */
pace_status pace__output_outside(const char *output, const char *const *inputs, size_t count,
                                 const pace_log *log);
/* The same for an output that is replaced as a whole: no input may lie within it either. */
pace_status pace__output_apart(const char *output, const char *const *inputs, size_t count,
                               const pace_log *log);

#endif

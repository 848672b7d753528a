/*
 * output.h - where a generated file goes.
 *
 * A regular file is written under a temporary name beside the target and gets its own when it is complete, so
 * that a killed job leaves nothing that looks whole. "-" is standard output; it, devices and pipes are
 * written directly.
 *
 *     status = pace__output_open(&output, path, force, log);
 *     if (status)
 *         return status;
 *     status = pace__write_all(output.fd, bytes, size, output.name, log);
 *     return pace__output_close(&output, status);
 */
#ifndef GEN_OUTPUT_H
#define GEN_OUTPUT_H

#include <paceline/log.h>
#include <stdbool.h>

typedef struct pace__output {
    int fd;
    const char *name; /* for messages */
    const char *path; /* the target; NULL: written directly, nothing to rename */
    char *temporary;  /* its name until then */
    bool close;       /* fd is ours */
    const pace_log *log;
} pace__output;

/* `path` must outlive the output. PACE_USAGE: a directory, or a file that exists while `force` is false. */
pace_status pace__output_open(pace__output *output, const char *path, bool force, const pace_log *log);

/* `status` is the job's: if PACE_OK the file gets its name, else it is removed and `status` returned. */
pace_status pace__output_close(pace__output *output, pace_status status);

#endif

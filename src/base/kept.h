/*
 * kept.h - a log that keeps the first error, for whoever decides later what it means: a failed write in the
 * background may be a warning, or the end of the run.
 *
 *     pace__kept kept;
 *     pace__kept_init(&kept, job->reason, sizeof job->reason);     // empties the text
 *     status = pace__part_write(..., &kept.log);
 */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include <paceline/log.h>
#include <stddef.h>

typedef struct pace__kept {
    pace_log log;
    char *text; /* the caller's */
    size_t size;
} pace__kept;

/* It must not move while it is in use. */
void pace__kept_init(pace__kept *kept, char *text, size_t size);

#endif

/*
 * once.h - a log that lets one error through.
 *
 * Threads that work on the same thing meet the same trouble, a full disk say, each on its own. The first one
 * tells; what the others say as errors is dropped. Warnings and the rest pass.
 *
 *     pace__once once;
 *     pace__once_init(&once, log);
 *     status = pace__team(threads, work, job, &once.log);
 */
#ifndef BASE_ONCE_H
#define BASE_ONCE_H

#include <paceline/log.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct pace__once {
    pace_log log;
    const pace_log *to;
    atomic_bool told;
} pace__once;

void pace__once_init(pace__once *once, const pace_log *to);

#endif

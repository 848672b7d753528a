/*
 * typed.h - lines from a pipe or a terminal as soon as they are there: what predict answers to at once.
 *
 *     pace__typed typed = {.fd = STDIN_FILENO, .name = "standard input", .log = log};
 *     pace__chunk chunk = {0};
 *     while (!(status = pace__typed_next(&typed, &chunk)) && chunk.size > 0)
 *         answer(chunk.data, chunk.size);
 *     pace__chunk_release(&chunk);
 *
 * Where input.h waits until it has megabytes, a chunk here is the whole lines of what one read gave (of
 * several if a line is longer), or at the end the rest. Nothing is decompressed: such input is PACE_BAD_DATA.
 */
#ifndef SCORE_TYPED_H
#define SCORE_TYPED_H

#include "data/input/input.h"

#include <stdbool.h>

typedef struct pace__typed {
    int fd;
    const char *name;
    pace__watch watch;
    const pace_log *log;
    /* private */
    size_t filled; /* bytes in the chunk's buffer */
    bool ended;
} pace__typed;

/* The chunk is the same one from call to call; empty at the end. */
pace_status pace__typed_next(pace__typed *typed, pace__chunk *chunk);

#endif

/* internal.h - the two halves of a history: its files (history.c), and the lines of its records (history_lines.c). */
#ifndef HISTORY_INTERNAL_H
#define HISTORY_INTERNAL_H

#include "history/history.h"

typedef struct pace__history_own {
    struct cJSON *summary;
    size_t step_capacity, eval_capacity, mark_capacity;
    uint64_t read_bytes; /* of metrics.jsonl: whole lines that were taken */
    uint64_t device, inode;
    uint64_t step_every,
        step_skipped; /* invariant 5: one in so many is kept, and how many were passed since */
    uint64_t sample_every, sample_records; /* samples there are, of all roles */
    bool sample_is_kept;                   /* the last one, whose flows follow */
} pace__history_own;

/* Takes one line of metrics.jsonl, which ends with a NUL. */
void pace__history_take_line(pace__history *history, const char *line);

/* The role of that name, made if need be; -1: there are too many, or no memory, or it is no name. */
int pace__history_meet(pace__history *history, const char *name);

/* Adds a sentence to `lacks`, unless it is there. */
void pace__history_lack(pace__history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forgets all records and roles. */
void pace__history_forget(pace__history *history);

/* Room for one more element: false when out of memory. */
bool pace__history_grow(void **items, size_t *capacity, size_t count, size_t width);

#endif

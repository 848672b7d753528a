/*
 * saving.h - checkpoints of a job of ranks: the holders of parameters, and the chief who has them write (job/saving.h
 * has the whole picture).
 */
#ifndef ROLES_SAVING_H
#define ROLES_SAVING_H

#include "job/saving.h"
#include "net/link.h"

struct pace__job;
struct pace__process;

/* --- holders --- */

typedef struct pace__save_order {
    uint64_t step;
    uint64_t part, parts;
    char directory[PATH_MAX];
} pace__save_order;

/* "copied": record and reason are empty; "saved". */
typedef struct pace__save_answer {
    uint64_t status; /* a pace_status; PACE_NO_INPUT: the directory cannot be seen from here */
    pace__part_record record;
    char reason[PACE_LOG_TEXT_MAX];
} pace__save_answer;

typedef struct pace__save_holder {
    pace__part_saver saver;
    pace__save_order order;
    pace__save_answer copied, saved;
    pace__request receive, copied_send, saved_send;
    uint64_t began_ns; /* to write */
    bool listens;
} pace__save_holder;

/* Moves on: takes an order, copies, answers. Called with whatever else the rank serves. */
pace_status pace__save_holder_poll(struct pace__process *process, bool *busy);
void pace__save_holder_close(struct pace__process *process);

/* --- the chief --- */

/* A rank whose part has not been written yet; -1: none. */
int pace__process_unsaved(const struct pace__process *process);

/* One holder, as the chief sees it. */
typedef struct pace__save_peer {
    pace__request send, receive;
    pace__save_order order;
    pace__save_answer answer;
    bool waits; /* for "saved" */
} pace__save_peer;

/* `save` and `saved` of its strategy: see job/job.h. */
pace_status pace__process_save(struct pace__job *job, const char *directory);
pace_status pace__process_saved(struct pace__job *job, bool *all);
void pace__process_save_close(struct pace__process *process);

#endif

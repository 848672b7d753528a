/*
 * batches.h - the batches that a worker has in hand, in a short line, the oldest in front.
 *
 *     status = pace__line_take(&line, &part);                  // rows are read, and their keys found
 *     ...
 *     batch = pace__line_first_prepared(&line);                // ask for its weights: the caller's to note
 *     ...
 *     batch = pace__batch_at(&line, 0);                         // READY: compute, push, and it may leave
 *     pace__line_leave(&line);
 *
 * Pictures take long to read: that is done on a thread of its own, and pace__line_poll takes what it has done.
 */
#ifndef ROLES_BATCHES_H
#define ROLES_BATCHES_H

#include "base/kept.h"
#include "data/store/slice.h"
#include "roles/process.h"
#include "threads/background.h"

#define PACE__LINE_MAX (PACE__DEPTH_MAX + 1)

typedef enum pace__batch_state {
    PACE__BATCH_READING,
    PACE__BATCH_PREPARED, /* which weights it needs is known */
    PACE__BATCH_ASKED,    /* they are on their way */
    PACE__BATCH_READY     /* they are there */
} pace__batch_state;

/* The rows of a step that a worker is to take. */
typedef struct pace__portion {
    uint64_t first, rows, step;
    const uint32_t
        *shares; /* sync: (workers) of a whole step; NULL: even ones. Looked at while it is taken */
} pace__portion;

typedef struct pace__batch {
    pace__batch_state state;
    pace__model_batch found;
    pace__work work;
    double amount; /* its rows; of texts that are dealt out, as if all of the step had the same length */
    uint64_t read_ns, found_ns;
    /* private */
    pace__model *model; /* the worker's */
    const pace__job_plan *plan;
    const uint32_t *shares;
    uint32_t *words; /* (a step's rows) by_words: their lengths */
    /* Of reading. What goes wrong is kept: the log belongs to the worker's thread. */
    pace_status status;
    pace__kept kept;
    char reason[PACE_LOG_TEXT_MAX];
    pace__slice slice;
} pace__batch;

typedef struct pace__line {
    unsigned held; /* batches in line; at most depth + 1 */
    int slice; /* of a synchronous step, whose rows are taken: the worker's own, if the caller sets no other */
    pace__background
        *ahead; /* pictures: reads the next rows while others are computed on; NULL: nobody does */
    /* private */
    pace__process *process;
    pace__times *times; /* the worker's: what reading and finding took */
    bool slow;          /* the disk, when it was last asked */
    bool dense_apart;   /* dense gradients are summed in buckets: only sparse keys travel */
    unsigned depth, front;
    pace__batch batches[PACE__LINE_MAX];
} pace__line;

pace_status pace__line_open(pace__line *line, pace__process *process, pace__model *model, bool dense_apart,
                            pace__times *times);
/* Waits for what is being read. One that was not opened, or not wholly, is allowed. */
void pace__line_close(pace__line *line);

/* From the front: 0 .. held - 1. */
pace__batch *pace__batch_at(pace__line *line, unsigned place);
pace__batch *pace__line_first_prepared(pace__line *line); /* NULL: none */
pace__batch *pace__line_being_read(pace__line *line);     /* NULL: none */
/* The one whose `work` this is. */
pace__batch *pace__batch_of(pace__work *work);
/* How many have been asked for, and are not yet computed. */
unsigned pace__line_asked(pace__line *line);

/* May rows be taken? */
bool pace__line_has_room(pace__line *line);
pace_status pace__line_take(pace__line *line, const pace__portion *part);
/* Rows that will be taken later: the disk is told. */
void pace__line_expect(pace__line *line, uint64_t first, uint64_t rows);
pace_status pace__line_poll(pace__line *line, bool *busy);

/* The one in front is done with. */
void pace__line_leave(pace__line *line);
/* None of them is computed any more: the job ends, or others have done it. What is being read is waited for before more is
 * taken (has_room). */
void pace__line_drop(pace__line *line);

#endif

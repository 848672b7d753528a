/*
 * stage.h - local copies of the parts of a data set that lies far away, made while training goes on.
 *
 *     pace__stage *stage = pace__stage_open(&store, &options, log);      // NULL: nothing is staged, and it has said why
 *     ...                                                                // whoever reads rows finds the nearest (near.h)
 *     pace__stage_figures figures = pace__stage_figures_of(stage);
 *     pace__stage_close(stage, clean);
 *
 * 1. Staging changes no result and fails no job. Whatever becomes of disk and copies, rows are read from the part itself,
 *    and one warning for each cause says so.
 * 2. A part is read from its source until its copy is whole, and has been compared with its sums; then from the copy.
 * 3. The processes of a host share the copies. One of them copies; if it ends, another one goes on (stage_files.h).
 * 4. A copy is known by what it holds, so one that is there is right, whatever became of the data set since
 *    (pace__part_content). A set without checksums is not staged.
 * 5. Copying takes no more than a rate, and no more than half of the time at the source (stage_plan.h).
 */
#ifndef DATA_STAGE_STAGE_H
#define DATA_STAGE_STAGE_H

#include "data/store/store.h"

typedef struct pace__stage pace__stage;

typedef struct pace__stage_options {
    const char *parent; /* DIR */
    uint64_t bytes_max; /* of all copies there; 0: as the disk allows */
    uint64_t rate;      /* bytes a second; 0: no limit */
    bool speaks;        /* says what will be copied, and what is there */
    bool warns;         /* says what all processes of the host find: that there is no DIR, or no lock */
    bool dry;           /* does no more than that */
} pace__stage_options;

/* Of this process, in bytes but for `dropped`. All but the first two only grow. */
typedef struct pace__stage_figures {
    uint64_t wanted;                 /* of all parts */
    uint64_t found;                  /* of copies that were there when it began */
    uint64_t copied;                 /* by this process */
    uint64_t dropped;                /* copies that did not compare with their sums, or could not be read */
    uint64_t read_near, read_source; /* of rows, and of where they begin and whose they are */
} pace__stage_figures;

/* Store and log must outlive it. NULL, too, for a dry one. */
pace__stage *pace__stage_open(pace__store *store, const pace__stage_options *options, const pace_log *log);

/* `clean`: removes the copies of this data set that no other process uses. Nobody may be reading. NULL is allowed. */
void pace__stage_close(pace__stage *stage, bool clean);

pace__stage_figures pace__stage_figures_of(const pace__stage *stage); /* of NULL: zeros */

/* Where the copies are, and the bytes of those of this data set that are there. */
const char *pace__stage_place_of(const pace__stage *stage, uint64_t *bytes);

/* Waits until nothing is left to be copied, or to be waited for; so long at the most. For tests. */
bool pace__stage_wait(pace__stage *stage, uint64_t most_ns);

#endif

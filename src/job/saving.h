/* clang-format off */
/*
 * saving.h - a checkpoint under way: every holder of parameters copies its part, and writes the copy while
 * training goes on.
 *
 *     leader                                  holder (a shard, a replica; in mode local the leader itself)
 *     makes the directory
 *     "save" -------------------------------> copies its parameters
 *     <----------------------------- "copied"
 *     goes on, and everyone with it           writes the copy, in the background
 *     <------------------------------ "saved", with size and checksum
 *     writes the manifest, in the background
 *
 * So training stands still only while copies are made. A holder whose host does not see the run directory
 * says so, and the chief fetches its part and writes it before going on: slower, but nothing is missing.
 */
/* clang-format on */
#ifndef JOB_SAVING_H
#define JOB_SAVING_H

#include "checkpoint/checkpoint.h"
#include "threads/background.h"

#include <limits.h>

/* --- the leader's state --- */

typedef enum pace__saving_stage {
    PACE__SAVING_NOTHING,
    PACE__SAVING_PARTS,   /* holders are writing */
    PACE__SAVING_MANIFEST /* so is the background */
} pace__saving_stage;

typedef struct pace__saving {
    pace__saving_stage stage;
    pace__background *background;
    char *directory;
    pace__manifest manifest; /* of the state that was copied */
    pace_status status;      /* of the one under way, or of the last */
    char reason[PACE_LOG_TEXT_MAX];
    bool superseded;   /* the run, or its path, is somebody else's: nothing may be written any more */
    bool needed;       /* the one under way: without it the job fails, and says so */
    uint64_t begun_ns; /* the one under way */
    uint64_t last_ns;  /* when one was last begun, or the job was, by the job's clock */
    double stall_s;    /* training stood still for it */
    double stalled_s;  /* for all of them */
    uint64_t written;
    bool is_saved; /* there is one of written_step: the last that was written, or gone on from */
    uint64_t written_step;
} pace__saving;

/* --- one part --- */

/* Zeroed before its first use. */
typedef struct pace__part_saver {
    pace__background *background;
    char directory[PATH_MAX];
    unsigned part, parts;
    uint64_t places;
    unsigned width;
    float *copy; /* (places x width), of `room` bytes; nobody's between two checkpoints */
    size_t room;
    bool under_way;
    /* Results, once it is done. */
    pace_status status;
    pace__part_record record;
    char reason[PACE_LOG_TEXT_MAX]; /* why it failed */
} pace__part_saver;

/* Makes room for the copy, which the caller fills. */
pace_status pace__part_saver_begin(pace__part_saver *saver, const char *directory, unsigned part,
                                   unsigned parts, uint64_t places, unsigned width, const pace_log *log);
void pace__part_saver_write(pace__part_saver *saver);
/* True once, when it has been written or has failed. */
bool pace__part_saver_done(pace__part_saver *saver);
void pace__part_saver_close(pace__part_saver *saver); /* waits for what is under way */

#endif

/*
 * checkpoint.h - checkpoints on disk: only whole ones count, and what is read has been checked.
 *
 *     RUN/checkpoints/
 *         step-000000001200.0003/                   steps done; the incarnation of the run that wrote it
 *             part-00000-of-00002.safetensors       one for every holder of parameters, who writes it itself
 *             part-00001-of-00002.safetensors
 *             manifest.json                         comes last: with it the checkpoint is complete
 *
 * Every file is written under a temporary name, synced, renamed, and its directory synced. The manifest has
 * the size and SHA-256 of every part, and ends with a checksum of itself. A directory without a manifest is
 * what a killed process has left.
 *
 * Writing:                                        Reading:
 *     pace__checkpoint_begin(root, step, ...)         pace__checkpoint_list(root, ...)    newest first
 *     pace__part_write(...)         each holder       pace__manifest_read(...)
 *     pace__checkpoint_commit(...)  the leader        pace__checkpoint_load(...)          checks and reads
 *     pace__checkpoint_prune(root, keep, ...)
 *
 * Parameters are those of keys 0 .. keys - 1, `width` floats each (the weight and the optimiser's state).
 * Part s of S holds the keys k with k mod S = s, in their order; so any number of holders can take over from
 * any other. A checkpoint is of a clean state: every row of the steps before is applied, none behind.
 */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "checkpoint/divisions.h"
#include "files/sha256.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__CHECKPOINT_PARTS_MAX 2048
#define PACE__DIVISIONS_SAVED      16 /* at most, of steps that are still to come */
#define PACE__CHECKPOINT_WIDTH_MAX 65536
#define PACE__CHECKPOINT_JOB_MAX   ((size_t)64 << 10) /* bytes, without the NUL */
#define PACE__MANIFEST_BYTES_MAX   ((size_t)4 << 20)
#define PACE__MANIFEST_NAME        "manifest.json"
#define PACE__PART_NAME_MAX        64
/* Steps have 12 digits in names. */
#define PACE__CHECKPOINT_STEP_MAX UINT64_C(999999999999)

/* Where a run stands: what a checkpoint must restore besides the parameters. */
typedef struct pace__position {
    uint64_t step;       /* steps done */
    double best_logloss; /* early stopping: the best evaluation, and how many came since; infinite at first */
    uint64_t worse;
    double epoch_loss; /* sum of progressive losses of the epoch under way, and its rows */
    uint64_t epoch_rows;
    double last_epoch_loss; /* mean of the last whole epoch; NaN before */
    double seconds;         /* spent on training so far */
    uint64_t best_step;     /* the step of that best evaluation, whose checkpoint is kept; 0: none is */
} pace__position;

/* A part as the manifest knows it. */
typedef struct pace__part_record {
    char name[PACE__PART_NAME_MAX];
    uint64_t bytes;
    char sha256[PACE__SHA256_HEX];
} pace__part_record;

/* Whole numbers are below 2^53, so that they pass through JSON. */
typedef struct pace__manifest {
    uint64_t incarnation;
    pace__position position;
    uint64_t keys; /* at least 1 */
    unsigned width;
    char *job;      /* what decides the bits of the result, as "name=value" words, in UTF-8; see train */
    unsigned parts; /* at least 1 */
    pace__part_record *part; /* (parts) in their order */
    pace__divisions
        divisions; /* of the steps behind it, at most DIVISIONS_SAVED; none: all have equal shares */
    bool is_old;   /* written before there were any, in the format of then */
} pace__manifest;

/* One that is there; whether it is whole is not yet known. */
typedef struct pace__checkpoint_entry {
    uint64_t step, incarnation;
    char *path;
} pace__checkpoint_entry;

/* --- writing --- */

/* Makes the directory of a checkpoint. What an earlier try has left in it is removed, even if it was whole: a
 * step is not written twice by the same incarnation. *path is to be freed by the caller. */
pace_status pace__checkpoint_begin(const char *root, uint64_t step, uint64_t incarnation, const pace_log *log,
                                   char **path);

/* Part `part` of `parts`: places x width floats. Fills the record. On failure nothing of it stays. */
pace_status pace__part_write(const char *directory, unsigned part, unsigned parts, const float *parameters,
                             uint64_t places, unsigned width, pace__part_record *record, const pace_log *log);

/* The manifest: with it the checkpoint counts. A part that is not there, or has another size, is PACE_IO: its
 * holder may have written to a disk that only its own host sees. On failure there is no manifest. */
pace_status pace__checkpoint_commit(const char *directory, const pace__manifest *manifest,
                                    const pace_log *log);

/*
 * Keeps the `keep` newest ones with a manifest up to the one of (step, incarnation), which was just written
 * and always stays; with each of them the one of its position's best_step, so that whatever the run goes on
 * from still has its best; and removes everything else: older ones, what lies beyond it (passed over when the run
 * was resumed), what an earlier incarnation has written for the same step as a later one (passed over, too),
 * and leftovers. Left alone is what this incarnation writes beyond `step`, everything of later incarnations,
 * which have taken over, and every file and directory whose name is not one of a checkpoint's. The manifest
 * goes first: a removal that is cut short leaves nothing that counts. What cannot be removed is left without
 * a word.
 */
void pace__checkpoint_prune(const char *root, unsigned keep, uint64_t step, uint64_t incarnation);

/* A checkpoint that could not be written: nothing of it stays. */
void pace__checkpoint_discard(const char *directory);

/* All of them, whole or not; what is no file of a checkpoint stays, and the directory that it is in. PACE_IO if one would
 * still count. */
pace_status pace__checkpoint_remove_all(const char *root, const pace_log *log);

/* --- reading --- */

/* Newest first: by step, then by incarnation. Directories without a manifest are left out; *unfinished, which
 * may be NULL, counts them. Names that are not a checkpoint's, and links, are passed over. No such directory
 * is an empty list. Freed by pace__checkpoint_list_free. */
pace_status pace__checkpoint_list(const char *root, const pace_log *log, pace__checkpoint_entry **entries,
                                  size_t *count, size_t *unfinished);
/* What names alone tell, of whole ones and others: the highest step and the highest incarnation, both 0 if there is none;
 * and how many there are. */
pace_status pace__checkpoint_names(const char *root, const pace_log *log, uint64_t *step,
                                   uint64_t *incarnation, size_t *count);
void pace__checkpoint_list_free(pace__checkpoint_entry *entries, size_t count);

/* PACE_BAD_DATA, with a message that names the file and what is wrong with it, unless all of it is as it
 * should be. Zeroed on failure. */
pace_status pace__manifest_read(const char *directory, const pace_log *log, pace__manifest *manifest);
/* The same for the text of a manifest; `name` takes the path's part in messages. */
pace_status pace__manifest_parse(const char *text, size_t size, const char *name, const pace_log *log,
                                 pace__manifest *manifest);
void pace__manifest_release(pace__manifest *manifest);

/*
 * Checks every byte of every part, and fills parameters (keys x width) by key. PACE_BAD_DATA names the file
 * that is damaged or missing; PACE_IO is one that cannot be read. `parameters` NULL: only checks. Each file
 * is read once, and its floats are put in place before its checksum is known: after a failure what stands in
 * parameters is worth nothing. The manifest is one that was read, or committed: another is a bug.
 */
pace_status pace__checkpoint_load(const char *directory, const pace__manifest *manifest, float *parameters,
                                  const pace_log *log);

#endif

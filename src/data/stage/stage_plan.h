/*
 * stage_plan.h - what is copied to a local disk, in which order, and what has to make room: decisions, without a disk.
 * Internal to data; stage.c acts on them.
 *
 * An epoch is a permutation of small blocks, so every part is read from the first step on, and as much as it has training
 * rows. A part serves nobody until all of it is copied. Whatever the order, a byte of copy then saves as much from the
 * moment on at which its part is whole (the weighted sum of completion times, by Smith's rule), so parts go by the share of
 * them that is training rows, which every epoch reads; test rows are read when the model is scored. Among equals the first
 * goes first, on all hosts: then what one host has asked the source for is in the source's memory for the others.
 */
#ifndef DATA_STAGE_STAGE_PLAN_H
#define DATA_STAGE_STAGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* One in so many bytes of a disk stays free: others use it, too. */
#define PACE__STAGE_FREE_SHARE 20

#define PACE__STAGE_NONE UINT32_MAX

typedef struct pace__stage_part {
    uint64_t bytes;
    uint64_t rows[2]; /* training, and all */
    bool there;       /* a whole copy is open */
    bool out;         /* given up: it is read from its source */
} pace__stage_part;

/* Which one first, which second and so on. */
void pace__stage_order(const pace__stage_part *parts, uint32_t count, uint32_t *order);

typedef struct pace__stage_disk {
    uint64_t bytes_max;  /* of all copies in the directory; 0: what the disk allows */
    uint64_t used;       /* by copies that are there, whole or not, of whatever data set */
    uint64_t free, size; /* of the disk */
} pace__stage_disk;

/* Bytes that may be added. */
uint64_t pace__stage_room(const pace__stage_disk *disk);

/* Goes through the parts in order and marks in `taken` (by part) those that are missing and fit into what is left of
 * `room` and of `files` more files. Returns their bytes; *first is the first of them, or PACE__STAGE_NONE. */
uint64_t pace__stage_choose(const pace__stage_part *parts, const uint32_t *order, uint32_t count,
                            uint64_t room, uint64_t files, bool *taken, uint32_t *first);

/* A copy in the directory that this job has no use for. */
typedef struct pace__stage_file {
    uint64_t bytes;
    int64_t used_s; /* when somebody began to use it last */
    bool leaves;
} pace__stage_file;

/* Marks which of them leave, those unused for longest first, so that there is room for `bytes`; none, if all of them would
 * not be enough. True: there is room then. */
bool pace__stage_evict(pace__stage_file *files, uint32_t count, uint64_t room, uint64_t bytes);

/*
 * How long to rest behind a read of so many bytes that took so long. At `rate` bytes a second (0: no limit), and in no case
 * less than the read took: if the source is slow because others read from it, training is among them, and half of the time
 * it has the source without us.
 */
uint64_t pace__stage_rest_ns(uint64_t bytes, uint64_t took_ns, uint64_t rate);

#endif

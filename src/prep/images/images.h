/*
 * images.h - `prep images`: what its phases share.
 *
 * The job is processes on a link (prep/job.h), one of them as a rule, each with threads. All of them go through
 *     list     rank 0 makes the list of all pictures (data/picture/pictures.h), and lays out the parts
 *     decode   (images_decode.c)   each process a stretch of the rows, its threads a few at a time: pixels,
 *                                  label and number of a picture go right to their place in a part
 *     finish   (images_parts.c)    parts get the number of rows that they have come to, and are synced
 *
 * Which picture a row is, a permutation of their numbers tells, which depends on the seed alone: nothing is
 * exchanged, or sorted. The first rows of the inputs' permutation are those that --holdout sets apart.
 *
 * A picture that cannot be read leaves a hole. When all is decoded, a part with holes is written anew without
 * them; others only get another head, which tells how many rows there are in all. So the bytes depend neither
 * on threads nor on processes.
 */
#ifndef PREP_IMAGES_IMAGES_H
#define PREP_IMAGES_IMAGES_H

#include "data/picture/picture.h"
#include "data/picture/pictures.h"
#include "data/store/order.h"
#include "data/store/store.h"
#include "prep/common.h"
#include "prep/parts.h"

#include <paceline/prep.h>
#include <pthread.h>

#define PACE__IMAGE_SIZE_DEFAULT 160

/* Of one process, and then of all. Numbers only: it travels. */
typedef struct pace__image_counts {
    uint64_t decoded, bad, turned;
    uint64_t bytes_read, bytes_written;
    uint64_t threads;
    double busy_s, busiest_s; /* over its threads */
} pace__image_counts;

/* What rank 0 tells before anything is decoded. */
typedef struct pace__image_word {
    pace__encoding encoding;
    uint64_t rows[PACE__SETS], positives[PACE__SETS];
    uint64_t divided[PACE__SETS]; /* the inputs' pictures: pace__prep_divide */
} pace__image_word;

typedef struct pace__images {
    const pace_prep_images_config *config;
    pace__prep_job prep;
    pace__rank rank;
    int threads;

    /* Settled from the options. */
    pace__picture_sources sources;
    pace__encoding encoding; /* size 0 or channels 0: not known yet */
    pace__class_names like;  /* of --like */

    /* Decided by rank 0, the same in all processes. */
    pace__pictures pictures;
    uint64_t divided[PACE__SETS];
    pace__order order[2]; /* of the inputs' numbers, and of the tests' */
    pace__store_info info;
    pace__part *parts; /* (parts) */

    pace__image_counts counts, *all; /* its own, and (ranks) those of all */
    /* Rows (pace__image_row) that have come to nothing. */
    pthread_mutex_t lock;
    uint64_t *holes;
    size_t hole_count, hole_room;
    atomic_uint_fast64_t bad;
} pace__images;

/*
 * Rows are counted through: first those of the test set, then of validation, then those of the training set.
 * The number of the picture that a row is, which set it is in, and its place there.
 */
uint64_t pace__image_row(const pace__images *job, uint64_t row, int *set, uint64_t *place);
uint64_t pace__image_rows(const pace__images *job);
/* The same without the picture; `rows` are those of each set. */
int pace__image_set(const uint64_t rows[PACE__SETS], uint64_t row, uint64_t *place);

/* Options to what the phases need; `prep` is the pace__images. */
pace_status pace__images_settle(void *prep, const pace_log *log);
/* How the set was made, as far as it decides the bytes; NULL when out of memory. */
char *pace__images_command(const pace__images *job);

/* Rank 0: the list, and what follows from it. */
pace_status pace__images_list(pace__images *job, pace__image_word *word);

/* This process's stretch of the rows. */
pace_status pace__images_decode(pace__images *job);

/* Rank 0 creates all parts; the others open them. */
pace_status pace__images_open_parts(pace__images *job);
void pace__images_close_parts(pace__images *job);
/* This process's parts, when all rows are decoded; `holes` of all processes, sorted. */
pace_status pace__images_finish_parts(pace__images *job, const uint64_t *holes, size_t count);

/* All phases. */
pace_status pace__images_run(pace__images *job, pace__link *link, pace_prep_images_result *result);

#endif

/*
 * warm.h - a warm start: yesterday's model goes on today (--init).
 *
 * Another model of the same kind takes the place of first values, wherever both know what a value is of: ids of sparse
 * rows by original id, words by the word, classes by the name. What only this one knows begins as it would without. What
 * only the other one knows is left out; but of sparse rows it is *carried*: it stays as it is, and goes into the file of
 * this model, whose data does not have it. A model of clicks does not forget what does not occur for a day.
 *
 *     pace__warm warm = {0};
 *     status = pace__warm_open("run1", &store.info.encoding, log, &warm);      // reads all of it
 *     ... .begins = &warm.forerunner of a plan request ...                     // has it the sizes of this one?
 *     status = pace__warm_read_state(&warm, &source, &optim, log);             // if that goes on, too (--init-state)
 *     status = pace__warm_begin(&warm, &store, &plan, floats, parameters, log);
 *     ... train ...
 *     status = pace__warm_carry(&warm, &origin, log);                          // before the model is written
 *     pace__warm_close(&warm);
 *
 * 1. What is carried is in no checkpoint: whoever resumes opens the same file again, which the fingerprint of a job knows
 *    by its SHA-256.
 * 2. The struct must not move while it is open.
 */
#ifndef WARM_WARM_H
#define WARM_WARM_H

#include "data/store/store.h"
#include "files/sha256.h"
#include "saved/saved.h"

/* What an optimiser has kept of the other model's weights (optim/optim.h), by the model's keys: each of its floats as an
 * array that lies as the weights do. */
#define PACE__WARM_PLANES_MAX 2
typedef struct pace__warm_state {
    unsigned planes; /* 0: there is none, or the rule keeps nothing */
    float *plane[PACE__WARM_PLANES_MAX];
    uint64_t updates; /* that went before, as the rule counts them */
} pace__warm_state;

typedef struct pace__warm {
    bool is_open;
    char sha256[PACE__SHA256_HEX]; /* of the model's file */
    pace__forerunner forerunner;   /* points to what is here */
    pace__saved saved;             /* until pace__warm_begin: the model; then what it says of data */
    pace__warm_state state;        /* the same */
    pace__overlap overlap;         /* set by begin, like the rest */
    uint64_t fresh;                /* weights of the new model that it begins anew */
    uint64_t carried_weights_count;
    uint32_t carried;
    uint64_t *carried_ids;
    float *carried_weights; /* (carried, dim) */
} pace__warm;

/* The SHA-256 of the model of a run, or of a file, without reading it as a model. */
pace_status pace__warm_identify(const char *path, const pace_log *log, char sha256[PACE__SHA256_HEX]);

/* RUN or a file: the model of a run is compared with its summary. `data` is how the rows of this job are encoded:
 * PACE_BAD_DATA if ids mean something else there, or rows are of another sort. A failure leaves it zeroed. */
pace_status pace__warm_open(const char *path, const pace__encoding *data, const pace_log *log,
                            pace__warm *warm);
void pace__warm_close(pace__warm *warm); /* a zeroed one is allowed */

/* The run that the model is of. */
typedef struct pace__warm_source {
    const char *run;
    const char *data;        /* the data set that it was trained on: numbers of ids are in there alone */
    uint64_t steps, samples; /* that its model has come to: of the best state, fewer than the run */
    const char *job;         /* the fingerprint of the job that begins: the rule has to be the same */
} pace__warm_source;

/*
 * From the run's checkpoint of that step. PACE_NO_INPUT if it has no checkpoints; PACE_USAGE if its rule is another one than that
 * of `optim`, or if it has trained other parameters than the file holds; PACE_BAD_DATA if what is there is damaged, none is of
 * that step, or the data set is another one.
 */
pace_status pace__warm_read_state(pace__warm *warm, const pace__warm_source *source, const pace__optim *optim,
                                  const pace_log *log);

/* Values by name, and state, into rows of parameters that are `stride` floats apart and hold first values. The other model is
 * released, but for what is carried. */
pace_status pace__warm_begin(pace__warm *warm, const pace__store *store, const pace__model_plan *plan,
                             size_t stride, float *rows, const pace_log *log);
/* The overlap in words, as one line. */
void pace__warm_say(const pace__warm *warm, const pace__model_plan *plan, const pace_log *log);

/* What is carried goes with what is written. The origin must not outlive this. */
pace_status pace__warm_carry(const pace__warm *warm, pace__origin *origin, const pace_log *log);

/* --- names.c --- */

/* What this data set knows, by its places in the saved model. To be freed: names->place. */
pace_status pace__warm_names(const pace__store *store, const pace__saved *saved, const pace_log *log,
                             pace__names *names);

#endif

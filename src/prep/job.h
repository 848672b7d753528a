/*
 * job.h - a prep as ranks that begin, meet and end together.
 *
 * A prep is ranks on a link (net/link.h): threads of this process, or processes that mpirun has started. What
 * the ranks of one process have in common is a pace__prep_job; each of them is a pace__rank (ranks/rank.h).
 * start.h decides which of these it is; then every rank goes
 *
 *     status = pace__prep_begin(&job, &rank, link);           // options compared, job.directory is there
 *     if (!status)
 *         status = work(...);                                 // writes files into it
 *     if (!status && rank.number == 0)
 *         status = pace__prep_commit(&job, &rank);            // it is a data set
 *     pace__prep_end(&job, &rank, status);
 *
 * 1. Between changes of the job all ranks meet (ranks/ranks.h).
 * 2. Nothing is kept of a job that fails, whoever of its ranks it was.
 */
#ifndef PREP_JOB_H
#define PREP_JOB_H

#include "base/once.h"
#include "data/input/input.h"
#include "files/staging.h"
#include "ranks/rank.h"
#include "ranks/ranks.h"

#include <paceline/prep.h>
#include <stdatomic.h>
#include <sys/types.h>

typedef struct pace__prep_kind pace__prep_kind; /* start.h */

/* How data sets appear, and which older ones may go. */
extern const pace__staging_kind pace__prep_staging;

typedef struct pace__prep_job {
    const pace__prep_kind *kind;
    void *prep; /* what `kind` works on: the struct that holds this one */
    const pace_prep_common *config;
    const pace_log *log; /* lets one error through */
    pace_registry *registry;
    pace__once once;
    bool many;    /* ranks are processes, this is one of them */
    pid_t parent; /* then: who has started it */
    int ranks;
    pace__staging staging; /* rank 0's */
    char *directory;       /* to write to, once all have met in it */
    atomic_int failed;     /* somebody has given up, with this status: nobody need go on */
} pace__prep_job;

/* `config` is the first member of what kind->tables describe. The job must not move from here on. */
void pace__prep_job_init(pace__prep_job *job, const pace__prep_kind *kind, void *prep,
                         const pace_prep_common *config, const pace_log *log, pace_registry *registry);
/* Removes whatever was written and not committed. */
void pace__prep_job_release(pace__prep_job *job);

/* What is wrong with the options, those of all preps and then those of this one. */
pace_status pace__prep_settle(const pace__prep_job *job, const pace_log *log);

/* As one of the ranks that a launcher has started. *link may be set on failure, too, and is to be closed
 * then. */
pace_status pace__prep_open_process(pace__prep_job *job, pace__link **link);
/* `ranks` links between threads of this process. */
pace_status pace__prep_open_threads(pace__prep_job *job, int ranks, pace__link **links);

/*
 * Takes over the link. Processes compare their options first, and then each settles them for itself: hosts may
 * differ in what they see. Rank 0 makes the directory, and all see that it is the same one.
 */
pace_status pace__prep_begin(pace__prep_job *job, pace__rank *rank, pace__link *link);
/* Ends the others if the status is a failure; over MPI that ends this process, too. */
void pace__prep_end(pace__prep_job *job, pace__rank *rank, pace_status status);

/* What this process reads of these files: its share of them (data/input/input.h). */
pace_status pace__prep_open_input(const pace__prep_job *job, const pace__rank *rank, const char *const *paths,
                                  size_t count, int boundary, pace__input **input);

/* Rank 0: how much of it the job will use. */
void pace__prep_say_memory(const pace__prep_job *job, const pace__rank *rank);

/* Rank 0, when nobody writes any more: seals the set, which appears under its name; if a supervisor has started the ranks,
 * when that has seen them end. So nothing appears after the command that somebody typed was killed. */
pace_status pace__prep_commit(pace__prep_job *job, const pace__rank *rank);

/* Is this the one that acts for all ranks of its process? */
static inline bool pace__prep_is_first(const pace__prep_job *job, const pace__rank *rank)
{
    return job->many || rank->number == 0;
}

/* A request to stop, or somebody's failure. Its argument is the job. */
pace_status pace__prep_look_around(void *job);
/* What the threads of a rank's team ask now and then: the owner, which is the last of them, for the link. */
static inline pace_status pace__prep_look(pace__prep_job *job, pace__rank *rank, bool owner)
{
    return owner ? pace__rank_pulse(rank) : pace__prep_look_around(job);
}

/* Lets the threads of this process know that one of them has failed; returns the status. */
pace_status pace__prep_give_up(pace__prep_job *job, pace_status status);

#endif

/*
 * job.h - the ranks of a prep, and how they begin, meet and end together.
 *
 * A prep is ranks on a link (net/link.h): threads of this process, or processes that mpirun has started. What
 * those of one process have in common is a pace__party; what is one rank's own, a pace__partner. Between
 * changes of the party all ranks meet (ranks.h).
 *
 *     pace__party_init(&job.party, output, force, stop, log, registry);
 *     status = pace__party_open_process(&job.party, processes, &link);       // or links between threads
 *     pace__partner_open(&member, &job.party, link);
 *     status = pace__partner_meet(&member);                                 // party.directory is there
 *     ...                                                                  // write files into it
 *     status = member.rank == 0 ? pace__partner_commit(&member) : PACE_OK;  // it is a data set
 *     pace__partner_close(&member, status);
 *     pace__party_release(&job.party);
 *
 * A rank that is a process and not rank 0 does not speak for itself: rank 0 says what went wrong, once.
 */
#ifndef PREP_JOB_H
#define PREP_JOB_H

#include "base/once.h"
#include "files/staging.h"
#include "ranks/ranks.h"

#include <paceline/prep.h>
#include <stdatomic.h>

typedef struct pace__party {
    const char *output;
    bool force;
    const _Atomic int *stop;
    const pace_log *log; /* lets one error through */
    pace_registry *registry;
    pace__once once;
    bool many; /* ranks are processes, this is one of them */
    int ranks;
    pace__staging staging; /* rank 0's */
    char *directory;       /* to write to, once all have met in it */
    atomic_int failed;     /* a rank has given up: the others need not go on */
} pace__party;

typedef struct pace__partner {
    pace__party *party;
    pace__link *link;
    const pace_log *log;
    int rank;
    bool first;   /* of its process */
    bool settled; /* options are: rank 0 has told what there was to tell */
    pace_log own_log;
    char name[PACE__LINK_NAME_MAX], reason[PACE__LINK_REASON_MAX];
} pace__partner;

/* The party must not move from here on. */
void pace__party_init(pace__party *party, const char *output, bool force, const _Atomic int *stop,
                      const pace_log *log, pace_registry *registry);
/* Removes whatever was written and not committed. */
void pace__party_release(pace__party *party);

/* As one of the ranks that a launcher has started; `processes` is how many were asked for, 1: any number.
 * *link may be set on failure, too, and is to be closed then. */
pace_status pace__party_open_process(pace__party *party, int64_t processes, pace__link **link);
/* `ranks` links between threads of this process. */
pace_status pace__party_open_threads(pace__party *party, int ranks, pace__link **links);

/* Takes over the link. */
void pace__partner_open(pace__partner *member, pace__party *party, pace__link *link);
/* Ends the others if the status is a failure; over MPI that ends this process, too. */
void pace__partner_close(pace__partner *member, pace_status status);

/* To be called often: signs of life, failures of others, a request to stop. */
pace_status pace__partner_pulse(void *member);
/* The same without the link: for threads that do not own it. */
pace_status pace__party_look_around(const pace__party *party);

/* Rank 0 makes the directory, and all see that it is the same one. */
pace_status pace__partner_meet(pace__partner *member);

/* Rank 0, when nobody writes any more: seals the set, which appears under its name. */
pace_status pace__partner_commit(pace__partner *member);

/* --- starting processes --- */

typedef struct pace__party_plan {
    const char *verb;                /* "prep reviews" */
    const pace_option_table *tables; /* of `config`, which must not say --mpirun again */
    const void *config;
    const pace_prep_common *common;
    pace_sink sink;       /* gets the records of rank 0, its result among them */
    const uint64_t *made; /* not 0 once the sink has the result */
} pace__party_plan;

/* Starts the processes and waits for their end. */
pace_status pace__party_launch(const pace__party_plan *plan, const pace_log *log, pace_registry *registry);

/* Passes errors on to the pace_log that is `user`, and nothing else: checks that are made here need no
 * launcher to be told, and what else there is to tell rank 0 will tell. */
void pace__party_only_errors(void *user, pace_level level, const char *text);

/* --- a result as a record: so it comes from rank 0 to whoever has started it --- */

typedef struct pace__result_field {
    const char *name;
    size_t at;
    bool real; /* a double, else uint64_t */
} pace__result_field;

#define PACE__RESULT_FIELDS_MAX 64

void pace__result_emit(pace_registry *registry, const char *kind, const pace__result_field *fields,
                       size_t count, const void *result);
void pace__result_take(const pace_record *record, const pace__result_field *fields, size_t count,
                       void *result);

#endif

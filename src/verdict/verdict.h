/*
 * verdict.h - what a run spends its time on that it need not, by the numbers that prove it.
 *
 * A pure function of plain values: facts.h makes them of a history. Training time is that of the mean worker (where one
 * is slow, of the others), and every second of it is given to one cause:
 *
 *     checkpoint, scoring   the chief stands still, and everyone waits for it
 *     data                  workers read rows
 *     compute               workers compute, or would, if a processor were free
 *     memory                they compute, and a profile says that memory cannot be read faster
 *     straggler             synchronous workers wait because one of them takes longer for its rows than the others,
 *                           or has less of a processor
 *     stall                 somebody was away, neither at work nor heard of, and whoever needs it waited
 *     server                they wait while the busiest server is at work, or has no processor for it
 *     network               they wait, or exchange, and neither of these is at work: bytes between hosts are under way
 *     steps                 the same, but the messages are too small for that to be their bytes: steps are too small
 *
 * The verdict is the cause with the most seconds. What would be without it is the rest; that is an upper bound of what
 * there is to gain, since another cause then takes its place.
 *
 * 1. The seconds of all causes add up to the time that was looked at.
 * 2. Nothing is said of less than PACE__VERDICT_SECONDS_MIN of training, or of facts without a worker.
 */
#ifndef VERDICT_VERDICT_H
#define VERDICT_VERDICT_H

#include "launch/cluster.h"

#include <stdbool.h>
#include <stddef.h>

#define PACE__VERDICT_SECONDS_MIN 0.05
#define PACE__VERDICT_TEXT        320

typedef enum pace__cause {
    PACE__CAUSE_NONE, /* too little is known */
    PACE__CAUSE_COMPUTE,
    PACE__CAUSE_MEMORY,
    PACE__CAUSE_DATA,
    PACE__CAUSE_NETWORK,
    PACE__CAUSE_SERVER,
    PACE__CAUSE_STRAGGLER,
    PACE__CAUSE_STALL,
    PACE__CAUSE_STEPS,
    PACE__CAUSE_CHECKPOINT,
    PACE__CAUSE_SCORING,
    PACE__CAUSES
} pace__cause;

/* A role, over the time that is looked at. Seconds are of the wall, but for cpu_s. */
typedef struct pace__worked {
    const char *name;
    pace__role kind;
    bool is_known; /* it has told what it did */
    double data_s, compute_s, communicate_s, still_s;
    double cpu_s;   /* user and system */
    double delay_s; /* it could have run, and no processor was free */
    double away_s;  /* nothing of all this, and nothing was heard of it: it was stopped, or hung */
    double rows, read_bytes;
    double sent_bytes, received_bytes, messages; /* in training steps, with roles on other hosts */
    double requests, looks;                      /* of a server */
} pace__worked;

typedef struct pace__verdict_facts {
    bool synchronous;
    bool rounds;                      /* workers train by themselves, and merge (local-sgd) */
    bool averages;                    /* they do so by steps of a network */
    bool divides_evenly;              /* synchronous, and shares do not follow speed */
    bool can_back_up;                 /* synchronous, with servers: others can do what is late */
    int backups;                      /* workers that may be away without holding up a step */
    double seconds;                   /* of training, by the chief's clock */
    double after_s;                   /* from the last step to the end of the run: the last scores, mostly */
    double checkpoint_s;              /* of the chief's still_s */
    double checkpoints, batch, steps; /* steps that were taken in that time */
    double memory_share;              /* of computing, that is bound by memory; 0: no profile says so */
    double memory_gbytes_s, peak_gbytes_s;
    bool has_evaluator;
    bool chooses;    /* evaluations decide which model is kept, or when to stop */
    bool keeps_best; /* checkpoints are those of evaluations that were the best so far */
    int ps, threads;
    const pace__worked *roles;
    size_t count;
} pace__verdict_facts;

typedef struct pace__verdict {
    pace__cause cause;
    int who; /* a role that it is about; -1: none in particular */
    double all_s, without_s;
    double taken_s[PACE__CAUSES]; /* by every cause */
    char evidence
        [PACE__VERDICT_TEXT]; /* "chief and 3 workers wait 71 % of the time; ps0 is busy for 12 %, ..." */
    char advice[PACE__VERDICT_TEXT]; /* one change: "--batch 1000 instead of 100 would ..." */
} pace__verdict;

pace__verdict pace__verdict_of(const pace__verdict_facts *facts);

/* "network", ...; "" of PACE__CAUSE_NONE. */
const char *pace__cause_name(pace__cause cause);

/* The verdict in a line: "network: (evidence)"; "" if there is none. */
void pace__verdict_line(const pace__verdict *verdict, char text[2 * PACE__VERDICT_TEXT]);

/* The share of their time in which workers could have run, and no processor was free. */
double pace__verdict_crowding(const pace__verdict_facts *facts);

/* Seconds in which that role had nothing to run on, while the others had: its host has too little for it. */
double pace__verdict_starved(const pace__verdict_facts *facts, const pace__worked *role);

/* Fills evidence and advice; internal to verdict. */
void pace__verdict_words(const pace__verdict_facts *facts, pace__verdict *verdict);

#endif

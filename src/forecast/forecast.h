/*
 * forecast.h - how fast a job is expected to train: rows a second of a setup (mode, workers, servers, hosts), from what a
 * row costs and what a machine can do. Plain values in, plain values out: nothing here looks at a clock, a file or a
 * running job, so that setups can be compared that never will run.
 *
 *     pace__forecast_input input = {.work = work, .machine = machine, .costs = pace__unit_costs_of(kernels)};
 *     double alone = pace__forecast_of(&input, &(pace__setup){.mode = PACE_MODE_LOCAL, ...}).rows_s;
 *
 * A step is taken apart into what workers compute, what shards do, what the links carry, and what is left: messages on
 * their way. Synchronous modes do one after the other; asynchronous ones are as fast as the slowest of these. Processes
 * that outnumber the cores of a host share them. Where a quota gives hosts less than a core, in slices, what binds is the
 * host with the most to do, whatever the order: who waits saves up for what comes. docs/decisions/0050 has the costs, how they
 * were measured, and how far forecasts were off; PACE__FORECAST_MARGIN comes from there; docs/decisions/0057 what a run of
 * the same job makes of them.
 *
 * It knows nothing of scores, checkpoints, disks, restarts or machines that are not alike.
 */
#ifndef FORECAST_FORECAST_H
#define FORECAST_FORECAST_H

#include "shares/rounds.h"

#include <paceline/train.h>
#include <stddef.h>

/* Two forecasts that differ by less than this part of the larger may be equal. */
#define PACE__FORECAST_MARGIN 0.4

/* ns, on one core. */
typedef struct pace__unit_costs {
    double block_row, block_entry; /* row after row, in blocks (columns/, localsgd/) */
    double exact_row, exact_entry,
        exact_key;        /* one update of every key per step, in one process (columns/) */
    double penalty_entry; /* of the block rule, where penalties are caught up with */
    double client_key,
        client_float;              /* a worker: a key sorted, packed and its answer taken; each float of it */
    double shard_key, shard_float; /* a shard: a push added up, applied and answered */
    double replica_key, replica_float; /* merged sums taken into a replica, all workers' */
    double dense_float;                /* of dense gradients: summed by all-reduce, and the update */
    double merged_key;                 /* of a flush: sent, merged, taken */
    double hot_key;                    /* of a round, of all hot ones */
    double byte;                       /* to or from another host */
    double message, far_message; /* of a step, for each that a process talks to on this host, on others */
    double far_step;             /* of a step in which anything comes from other hosts: waking up for it */
    double threads;              /* what a second thread adds where columns are split; batches: all of it */
} pace__unit_costs;

/* Of one core with these kernels (PACE_KERNELS_*). */
pace__unit_costs pace__unit_costs_of(int kernels);

#define PACE__KEY_POINTS 10
typedef struct pace__key_point {
    double rows, keys;
} pace__key_point;

/* What is to be trained. */
typedef struct pace__workload {
    pace__steps order;
    uint64_t steps;
    uint64_t exchange; /* of local-sgd: --exchange */
    double entries;    /* of a row */
    double row_ns;     /* keys and gradient of a row: a worker of any mode by steps, on one core */
    double fixed_ns;   /* of a step, whatever its rows */
    bool by_columns;   /* mode local walks it by columns */
    bool
        flows; /* workers of local-sgd train stretches of it, and merge in rounds and flushes; else they average */
    bool one_thread; /* else a worker's threads share its rows */
    bool penalised;  /* the block rule brings every parameter that it touches up to date (optim/optim.h) */
    /* Keys by key that so many rows need, as counted; rows rise. None: there are no such keys. */
    pace__key_point curve[PACE__KEY_POINTS];
    size_t points;
    double keys_all; /* that there are */
    unsigned dim;
    double dense; /* floats that every row needs */
    double state; /* floats that workers who average send of each parameter */
    double pools; /* times that synchronous workers add up something in the middle of a step */
} pace__workload;

/* Between machines, if nobody says how fast they are connected. */
#define PACE__LINK_BYTES_S 125e6
#define PACE__LATENCY_S    60e-6

/* A host; all are alike. */
typedef struct pace__machine {
    double cores; /* below 1 where a quota says so */
    double
        pause_s; /* that such a quota makes a process stand still at a time; 0: it has a part of a core all the time */
    double link_bytes_s, latency_s;
} pace__machine;

typedef struct pace__setup {
    int mode;
    int workers, ps, hosts;
    int threads; /* of each process that computes */
    uint64_t batch;
    uint64_t steps;    /* of all its job; 0: as many as bring the rows of the workload */
    uint64_t from, to; /* of workers that merge: rows that are looked at; 0: those of the first epoch */
    bool exact, narrow;
} pace__setup;

typedef struct pace__forecast_input {
    pace__workload work;
    pace__machine machine;
    pace__unit_costs costs;
} pace__forecast_input;

/* Of a step; in local-sgd, of all rows that are looked at. */
typedef struct pace__forecast {
    double rows_s, step_s;
    /* Seconds by what they are spent on; asynchronous: each as if it were alone. */
    double compute_s, shard_s, network_s, latency_s;
    /* Of one worker: seconds of a core, of which for its rows; bytes to and from others, and in how many messages. */
    double worker_cpu_s, rows_cpu_s, worker_sent, worker_received, worker_messages;
    /* Of one server; 0: there is none. */
    double server_cpu_s, server_sent, server_received;
} pace__forecast;

pace__forecast pace__forecast_of(const pace__forecast_input *input, const pace__setup *setup);

/* Keys that so many rows need: between what was counted a line through logarithms, beyond it the last of these goes on. */
double pace__workload_keys(const pace__workload *work, double rows);

/* Is the first expected to be slower, beyond what forecasts are off? */
static inline bool pace__forecast_is_slower(double rows_s, double than_rows_s)
{
    return rows_s < than_rows_s * (1 - PACE__FORECAST_MARGIN);
}

/* "5.4", "5500", "140 million": two digits, a forecast has no more. Returns text. */
#define PACE__RATE_TEXT 32
const char *pace__rate_words(double rows_s, char text[PACE__RATE_TEXT]);

#endif

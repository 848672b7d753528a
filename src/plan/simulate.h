/*
 * simulate.h - steps of many workers by events, where formulas end: queues at servers and links, workers that are not alike,
 * steps that do not take the same time, staleness. A function of plain values and a seed.
 *
 *     pace__scene scene = pace__scene_of(&known, &setup);
 *     scene.straggle = 0.2;
 *     status = pace__simulate(&scene, log, &made);             // made.rows_s, made.server_busy, made.stale
 *
 * What decides in a job decides here: ps/tickets.h hands out the rows of asynchronous modes and holds back who is too far
 * ahead, shares/balance.h divides the rows of synchronous steps. What is simulated is time: a worker computes its rows, sends a
 * push to every shard over its link and theirs, one after the other; a shard serves pushes as they come, one at a time, and
 * answers: at once, or (synchronous) all workers behind the last push of a step. Links carry one message at a time in each
 * direction. A shard of a worker has a core of its own.
 */
#ifndef PLAN_SIMULATE_H
#define PLAN_SIMULATE_H

#include "plan/predict.h"

#define PACE__SCENE_WORKERS_MAX 4096
#define PACE__SCENE_EVENTS_MAX  1e9 /* a scene with more is refused */

typedef struct pace__scene {
    bool synchronous;
    unsigned workers, servers; /* servers 0: a shard on every worker */
    uint64_t batch, steps;
    double fixed_s, row_s;           /* what a worker computes */
    double push_s, serve_s;          /* of each push: at the worker; at the shard, with its answer */
    double push_bytes, answer_bytes; /* of each */
    double link_bytes_s, latency_s;
    double straggle;       /* steps of a worker: deviation over mean */
    unsigned slow_workers; /* the first so many take `slow` times as long */
    double slow;
    uint64_t staleness;     /* PACE__STALENESS_UNBOUNDED: any (ps-async) */
    uint64_t balance_every; /* steps; 0: shares are even */
    unsigned depth;         /* asynchronous: batches that a worker has under way; 1 or more */
    uint64_t seed;
} pace__scene;

typedef struct pace__simulated {
    double seconds, step_s, rows_s;
    double waits;       /* share of the workers' time in which they do not compute */
    double server_busy; /* share of the busiest shard's */
    double queue;       /* pushes that are there when one comes, on average */
    double stale;       /* pushes of others between the weights of a push and itself, on average */
    uint64_t events;
} pace__simulated;

/* PACE_USAGE: it is larger than these limits. */
pace_status pace__simulate(const pace__scene *scene, const pace_log *log, pace__simulated *made);

/* What the formulas make of a setup with steps, as a scene without stragglers. */
pace__scene pace__scene_of(const pace__calibration *known, const pace__setup *setup);

#endif

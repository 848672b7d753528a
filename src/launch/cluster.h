/*
 * cluster.h - who is who: ranks, roles and the machines they are on. Pure functions of plain values.
 *
 * Rank 0 is the chief, which is worker 0; then come the other workers, then the parameter servers, then at
 * most one evaluator. Names: chief, worker1, ..., ps0, ps1, ..., evaluator. Parameters live in *shards*:
 * one on each ps, or, without ps, one on each worker.
 */
#ifndef LAUNCH_CLUSTER_H
#define LAUNCH_CLUSTER_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>

#define PACE__WORKERS_MAX 1024
#define PACE__PS_MAX      1024
#define PACE__ROLE_TEXT   24
#define PACE__HOSTS_MAX   4096
#define PACE__SLOTS_MAX   4096
#define PACE__HOST_TEXT   256

typedef enum pace__role { PACE__WORKER, PACE__PS, PACE__EVALUATOR, PACE__ROLES } pace__role;

typedef struct pace__cluster {
    int workers, ps;
    bool evaluator;
} pace__cluster;

static inline int pace__cluster_size(const pace__cluster *cluster)
{
    return cluster->workers + cluster->ps + cluster->evaluator;
}

static inline pace__role pace__role_of(const pace__cluster *cluster, int rank)
{
    return rank < cluster->workers                 ? PACE__WORKER
           : rank < cluster->workers + cluster->ps ? PACE__PS
                                                   : PACE__EVALUATOR;
}

static inline int pace__shards(const pace__cluster *cluster)
{
    return cluster->ps ? cluster->ps : cluster->workers;
}

static inline int pace__shard_rank(const pace__cluster *cluster, int shard)
{
    return cluster->ps ? cluster->workers + shard : shard;
}

/* "chief", "worker3", "ps0", "evaluator" */
void pace__role_name(const pace__cluster *cluster, int rank, char name[PACE__ROLE_TEXT]);

/* --- the host file --- */

/*
 *     # comment
 *     node1 slots=4 roles=ps,worker
 *     node2                                 any role, as many as it has room for: slots default to 1
 *
 * `chief` and `evaluator` are roles too; worker includes the chief unless some line says chief. One host,
 * one line.
 */
typedef struct pace__host {
    char name[PACE__HOST_TEXT];
    int slots;
    unsigned roles; /* bits by pace__role, and PACE__HOST_CHIEF; 0: any */
} pace__host;

#define PACE__HOST_CHIEF (1u << PACE__ROLES)

/* Errors name file and line. *hosts is to be freed by the caller. */
pace_status pace__hosts_read(const char *path, const pace_log *log, pace__host **hosts, size_t *count);

/*
 * host_of[rank] = index into hosts. Fills hosts in the order of the file: lines that name the rank's role
 * before lines that name none; ranks of one role go round the hosts that may take them, so that neither
 * workers nor ps crowd on one. Too few slots, or a role that no line may take, is PACE_USAGE with a message
 * that says how many are missing. Where going round leaves a rank without a slot that another one could
 * have spared, the other one is moved: a placement that exists is found.
 */
pace_status pace__hosts_place(const pace__cluster *cluster, const pace__host *hosts, size_t count,
                              int *host_of, const pace_log *log);

/*
 * One rank for each of the hosts that a placement uses: who could say of all of them whether they can be reached, and
 * see what they need. Returns the cluster of these, and puts them in the place of host_of: the chief where it was, then
 * a worker wherever there is a worker or the evaluator, then a ps where there are only such.
 */
pace__cluster pace__hosts_one_each(const pace__cluster *cluster, int *host_of);

/* --- what there is room for: room.c --- */

/* Of all of them; how many different ones a placement uses. PACE__HOSTS_MAX times PACE__SLOTS_MAX fit. */
int pace__hosts_slots(const pace__host *hosts, size_t count);
int pace__hosts_used(const int *host_of, int size);

/* The same of a host file; NULL: there is this machine alone, which has room for as many processes as it has cores, and may be
 * given more. */
pace_status pace__hosts_room(const char *path, const pace_log *log, int *slots);
/* PACE_USAGE, as from pace__hosts_place: they have no room there. */
pace_status pace__hosts_machines(const pace__cluster *cluster, const char *path, const pace_log *log,
                                 int *machines);

#endif

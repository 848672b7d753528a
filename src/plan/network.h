/*
 * network.h - how fast messages go between the machines of a job, before it is planned: a process is started on some of them, as
 * those of the job would be, and messages go there and back.
 *
 *     pace__given given = {.latency_s = 50e-6, .latency_by = PACE__GIVEN};                     // what the user has said
 *     status = pace__network_learn(&(pace__network_plan){.hosts = "hosts.txt"}, log, &given);  // given.link_bytes_s
 *
 * and in the processes that this starts (ping.c):
 *
 *     status = pace__network_ping(log, registry, &elsewhere, &network);
 *
 * 1. Rank 0 sends, one after the other of the others sends back. Half of what a small message takes, there and back, is the
 *    latency; what a large one takes longer is what its bytes need, in both directions.
 * 2. Of several links the usual one counts, since the model of a step takes all to be alike. One that is much slower is named.
 * 3. All messages together take PACE__PING_S, or a little more. Processes have PACE__PING_START_S to start, and whoever is silent
 *    for PACE__PING_DEADLINE_S is lost. Whatever goes wrong is a warning: a job can be planned with what is assumed.
 * 4. Nobody starts MPI in the process that asks.
 */
#ifndef PLAN_NETWORK_H
#define PLAN_NETWORK_H

#include "launch/cluster.h"
#include "plan/predict.h"

#include <paceline/registry.h>

#define PACE__PING_S          1.0
#define PACE__PING_START_S    20.0
#define PACE__PING_DEADLINE_S 5.0
/* Machines that take part: of more hosts, so many from the first to the last. */
#define PACE__PING_HOSTS_MAX 8

/* --- what came back, and what it means --- */

/* Of a message from rank 0 to `peer` and back. */
typedef struct pace__echo {
    int peer;
    double small_s;
    uint64_t large_bytes;
    double large_s;
} pace__echo;

/* As a record, "ping". False: it is another one, or one that cannot be. */
void pace__echo_emit(const pace__echo *echo, pace_registry *registry);
bool pace__echo_from(const pace_record *record, pace__echo *echo);

/* The usual one of so many round trips: a quarter of them were faster. Sorts them. There is one at least. */
double pace__usual_trip(double *seconds, size_t count);

typedef struct pace__network {
    double link_bytes_s, latency_s;
    int links;   /* that were measured */
    int slowest; /* the peer of the slowest of these, */
    double slowest_bytes_s;
} pace__network;

/* False: there are none, or large messages were not slower than small ones. */
bool pace__network_of(const pace__echo *echoes, size_t count, pace__network *network);

/* "0.94 Gbit/s and 43 us between machines (measured)", "... (given) and ... (assumed)". Returns text. */
#define PACE__NETWORK_TEXT 128
const char *pace__network_words(const pace__machine *machine, const pace__given *given,
                                char text[PACE__NETWORK_TEXT]);

/* --- measuring --- */

typedef struct pace__network_plan {
    const char *hosts;       /* a host file; NULL: there is one machine, and nothing to be measured */
    const char *launcher;    /* NULL: as usual */
    const _Atomic int *stop; /* may be NULL */
} pace__network_plan;

/* With the message of what went wrong. PACE_USAGE: there is one host. PACE_INTERRUPTED, without one, if `stop` says so. */
pace_status pace__network_measure(const pace__network_plan *plan, const pace_log *log,
                                  pace__network *network);

/* Fills in what is not given, where there are several hosts and they can be asked; else nothing, with a warning. PACE_OK or
 * PACE_INTERRUPTED, without a message; or what is wrong with the host file. */
pace_status pace__network_learn(const pace__network_plan *plan, const pace_log *log, pace__given *given);

/* As one of several processes that a launcher has started. *elsewhere: rank 0 knows what came of it. */
pace_status pace__network_ping(const pace_log *log, pace_registry *registry, bool *elsewhere,
                               pace__network *network);

#endif

#include "launch/cluster.h"

#include <assert.h>
#include <stdio.h>

void pace__role_name(const pace__cluster *cluster, int rank, char name[PACE__ROLE_TEXT])
{
    assert(rank >= 0 && rank < pace__cluster_size(cluster));
    if (rank == 0)
        snprintf(name, PACE__ROLE_TEXT, "chief");
    else if (pace__role_of(cluster, rank) == PACE__WORKER)
        snprintf(name, PACE__ROLE_TEXT, "worker%d", rank);
    else if (pace__role_of(cluster, rank) == PACE__PS)
        snprintf(name, PACE__ROLE_TEXT, "ps%d", rank - cluster->workers);
    else
        snprintf(name, PACE__ROLE_TEXT, "evaluator");
}

/* room.c - what a host file offers: how many processes there is room for, and on how many machines some of them would be. */
#include "launch/cluster.h"
#include "threads/thread.h"

#include <stdlib.h>

int pace__hosts_slots(const pace__host *hosts, size_t count)
{
    int slots = 0;

    for (size_t i = 0; i < count; i++)
        slots += hosts[i].slots;
    return slots;
}

int pace__hosts_used(const int *host_of, int size)
{
    int used = 0;

    for (int i = 0; i < size; i++) {
        bool met = false;

        for (int j = 0; j < i && !met; j++)
            met = host_of[j] == host_of[i];
        used += !met;
    }
    return used;
}

pace_status pace__hosts_room(const char *path, const pace_log *log, int *slots)
{
    pace__host *hosts;
    size_t count;

    if (!path) {
        *slots = pace__cores();
        return PACE_OK;
    }
    pace_status status = pace__hosts_read(path, log, &hosts, &count);

    if (status)
        return status;
    *slots = pace__hosts_slots(hosts, count);
    free(hosts);
    return PACE_OK;
}

static pace_status count_machines(const pace__cluster *cluster, const pace__host *hosts, size_t count,
                                  const pace_log *log, int *machines)
{
    int size = pace__cluster_size(cluster), *host_of = calloc((size_t)size, sizeof *host_of);

    if (!host_of)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__hosts_place(cluster, hosts, count, host_of, log);

    if (!status)
        *machines = pace__hosts_used(host_of, size);
    free(host_of);
    return status;
}

pace_status pace__hosts_machines(const pace__cluster *cluster, const char *path, const pace_log *log,
                                 int *machines)
{
    pace__host *hosts;
    size_t count;

    if (!path) {
        *machines = 1;
        return PACE_OK;
    }
    pace_status status = pace__hosts_read(path, log, &hosts, &count);

    if (status)
        return status;
    status = count_machines(cluster, hosts, count, log, machines);
    free(hosts);
    return status;
}

/*
 * usage.h - what this process has taken of its machine since it was started, as the kernel counts it.
 *
 *     pace__usage usage = {0};
 *     pace__usage_read(&usage);                     // some 50 us: now and then, not in every step
 *     busy = (usage.user_s + usage.system_s - before_s) / seconds;
 *
 * 1. Counts only grow. What the kernel does not tell (in a sandbox, say) stays as it was, which is 0 at first.
 * 2. All threads count. What one that has ended had waited for a processor is kept from the last reading before.
 * 3. Networks are those of the process's host, or of its network namespace: others share them. Loopback is apart.
 */
#ifndef WATCH_USAGE_H
#define WATCH_USAGE_H

#include <stdint.h>

typedef struct pace__usage {
    double user_s, system_s;
    double delay_s; /* threads were ready to run, and no processor was free */
    uint64_t rss_bytes, rss_max_bytes;
    uint64_t minor_faults, major_faults;
    uint64_t read_bytes, write_bytes; /* from and to disks */
    uint64_t net_sent_bytes, net_received_bytes, loopback_bytes;
} pace__usage;

void pace__usage_read(pace__usage *usage);

#endif

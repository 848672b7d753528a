/*
 * effort.h - how long this process has been at work, whatever it did: computing, keys, sums, messages, its replica, what it
 * serves to others. Not: waiting for others.
 *
 *     pace__effort_open(&effort, link);
 *     ...
 *     pace__effort_pause(&effort);                 // duties that are not part of steps
 *     pace__effort_resume(&effort);
 *     ...
 *     cost_ns = pace__effort_take(&effort);        // since it was last taken
 *
 * A process that may use a part of a core only (watch/quota.h) gets what it does in short bursts done at full speed as
 * long as it waits for others in between. It counts as long as the same work would take without end.
 */
#ifndef NET_EFFORT_H
#define NET_EFFORT_H

#include "net/link.h"

typedef struct pace__effort_count {
    uint64_t at_ns, idle_ns, processor_ns;
} pace__effort_count;

typedef struct pace__effort {
    const pace__link *link;
    double cores;              /* that it may use */
    pace__effort_count since;  /* it was last taken, moved on by pauses */
    pace__effort_count paused; /* since when */
} pace__effort;

void pace__effort_open(pace__effort *effort, const pace__link *link);
void pace__effort_pause(pace__effort *effort);
void pace__effort_resume(pace__effort *effort);
uint64_t pace__effort_take(pace__effort *effort);

/* What the counts say: `busy_ns` between others were waited for, of which the processor had `processor_ns`. */
uint64_t pace__effort_of(uint64_t busy_ns, uint64_t processor_ns, double cores);

#endif

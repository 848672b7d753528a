/*
 * ops.h - spans added up: which operation took how long, of which shape, and how fast it was.
 *
 *     pace__ops *ops = pace__ops_create();
 *     for (each rank)
 *         pace__ops_add(ops, "workers", names, pack);
 *     pace__ops_put(&json, ops, &peak);                              // the groups of profile/ops.json
 *
 * 1. Operations are told apart by name and shape, in a *group*: ranks of one role. What goes on in the background of
 *    a role is a group of its own, since it takes no time from the rest.
 * 2. An operation's `total` is all of its time, its `self` that without spans inside it. Shares are of self, in the
 *    seconds that all tracks of the group have recorded: so all of a group, with what is in no span, are 1.
 * 3. Rates are by `total` of one thread: they compare with the peak of one core.
 */
#ifndef WATCH_OPS_H
#define WATCH_OPS_H

#include "base/json.h"
#include "watch/span_pack.h"

#define PACE__OPS_MAX        2048
#define PACE__OP_GROUPS_MAX  8
#define PACE__OP_TEXT        128
#define PACE__OPS_JSON_BYTES ((size_t)2 << 20) /* is enough for all of them */

typedef struct pace__op {
    char name[PACE__OP_TEXT], shape[PACE__OP_TEXT];
    uint32_t group;
    uint64_t calls, total_ns, self_ns;
    uint64_t flops, bytes;
} pace__op;

typedef struct pace__op_group {
    char name[64];
    uint64_t tracks, recorded_ns, dropped, refused;
} pace__op_group;

typedef struct pace__ops {
    pace__op_group group[PACE__OP_GROUPS_MAX];
    uint32_t groups;
    pace__op op[PACE__OPS_MAX];
    uint32_t count;
    uint64_t more; /* spans of operations beyond PACE__OPS_MAX, which are in none */
} pace__ops;

/* What one core of the machine can do; 0: it is not known. */
typedef struct pace__peak {
    double gflops;   /* f32, multiply and add */
    double gbytes_s; /* read from memory */
} pace__peak;

/* To be freed with free(); NULL when out of memory. */
pace__ops *pace__ops_create(void);

/* `names` of all ranks; the pack has been checked. */
void pace__ops_add(pace__ops *ops, const char *group, const char *const *names, const pace__span_pack *pack);

/* The rate that is nearest to its peak: of FLOPs or of bytes; 0: neither is known. *is_flops says which, *of_peak how
 * near: 0 if the peak is not known. */
double pace__op_rate(const pace__op *op, const pace__peak *peak, bool *is_flops, double *of_peak);

/* Of the time of a group's operations that compute: how much goes to those that are bound by memory, because they
 * move about the bytes that a core can read; what moves far more has them from caches. *gbytes_s: how fast those are. 0 if the peak is not known. */
double pace__ops_memory_share(const pace__ops *ops, const char *group, const pace__peak *peak,
                              double *gbytes_s);

/* "groups": [...], each with its operations, those that took longest first. */
void pace__ops_put(pace__json *json, pace__ops *ops, const pace__peak *peak);

#endif

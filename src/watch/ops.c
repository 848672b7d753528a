#include "watch/ops.h"

#include "watch/trace.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a pack: which operation spans of a name, shape and peer belong to. */
#define SLOTS 8192

typedef struct op_map {
    struct {
        uint32_t name, shape, op; /* op + 1; 0: free */
        int32_t peer;
    } slot[SLOTS];
} op_map;

#define NO_OP UINT32_MAX

/* Of what a core can read from memory: what moves far more than that has its bytes from caches. */
#define MEMORY_BOUND_MIN 0.5
#define MEMORY_BOUND_MAX 1.25

pace__ops *pace__ops_create(void)
{
    return calloc(1, sizeof(pace__ops));
}

/* --- adding up --- */

/* The last of the groups takes what has no room. */
static uint32_t find_group(pace__ops *ops, const char *name)
{
    uint32_t at = 0;

    while (at < ops->groups && strcmp(ops->group[at].name, name) != 0)
        at++;
    if (at == PACE__OP_GROUPS_MAX)
        return PACE__OP_GROUPS_MAX - 1;
    if (at == ops->groups) {
        snprintf(ops->group[at].name, sizeof ops->group[at].name, "%s", name);
        ops->groups++;
    }
    return at;
}

static uint32_t find_op(pace__ops *ops, uint32_t group, const char *name, const char *shape)
{
    pace__op wanted = {.group = group};

    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    snprintf(wanted.shape, sizeof wanted.shape, "%s", shape);
    for (uint32_t i = 0; i < ops->count; i++) {
        if (ops->op[i].group == group && strcmp(ops->op[i].name, wanted.name) == 0 &&
            strcmp(ops->op[i].shape, wanted.shape) == 0)
            return i;
    }
    if (ops->count == PACE__OPS_MAX)
        return NO_OP;
    ops->op[ops->count] = wanted;
    return ops->count++;
}

static uint32_t look_up(pace__ops *ops, uint32_t group, op_map *map, const char *const *names,
                        const pace__span_pack *pack, const pace__packed_span *span)
{
    uint64_t hash = ((uint64_t)span->name << 32 | span->shape) * UINT64_C(0x9e3779b97f4a7c15) +
                    (uint64_t)span->peer * UINT64_C(0xc2b2ae3d27d4eb4f);
    char name[PACE__SPAN_NAME_MAX];

    for (size_t turn = 0; turn < 16; turn++) {
        size_t at = ((hash >> 40) + turn) % SLOTS;

        if (map->slot[at].op && map->slot[at].name == span->name && map->slot[at].shape == span->shape &&
            map->slot[at].peer == span->peer)
            return map->slot[at].op - 1;
        if (map->slot[at].op)
            continue;
        uint32_t op = find_op(ops, group, pace__packed_name(pack, span, names, name),
                              pace__packed_text(pack, span->shape));

        map->slot[at].name = span->name;
        map->slot[at].shape = span->shape;
        map->slot[at].peer = span->peer;
        map->slot[at].op = op == NO_OP ? 0 : op + 1;
        return op;
    }
    return find_op(ops, group, pace__packed_name(pack, span, names, name),
                   pace__packed_text(pack, span->shape));
}

/* Those that a span lies in, outermost first. */
typedef struct around {
    uint32_t op[PACE__PACK_DEPTH_MAX];
} around;

static void add_span(pace__ops *ops, uint32_t op, const pace__packed_span *span, around *outer)
{
    uint64_t took_ns = span->end_ns - span->begin_ns;

    outer->op[span->depth] = op;
    if (span->depth > 0 && outer->op[span->depth - 1] != NO_OP)
        ops->op[outer->op[span->depth - 1]].self_ns -= took_ns;
    if (op == NO_OP) {
        ops->more++;
        return;
    }
    ops->op[op].calls++;
    ops->op[op].total_ns += took_ns;
    ops->op[op].self_ns += took_ns;
    ops->op[op].flops += span->flops;
    ops->op[op].bytes += span->bytes;
}

static uint64_t recorded_ns(const pace__packed_span *span, uint64_t count)
{
    uint64_t end_ns = 0;

    for (uint64_t i = 0; i < count; i++)
        end_ns = span[i].end_ns > end_ns ? span[i].end_ns : end_ns;
    return count ? end_ns - span[0].begin_ns : 0;
}

static void add_track(pace__ops *ops, uint32_t group, op_map *map, const char *const *names,
                      const pace__span_pack *pack, const pace__packed_track *track)
{
    const pace__packed_span *span = pace__packed_spans(pack) + track->first;
    around outer = {0};

    for (uint64_t i = 0; i < track->count; i++)
        add_span(ops, look_up(ops, group, map, names, pack, &span[i]), &span[i], &outer);
    ops->group[group].tracks += track->count > 0;
    ops->group[group].recorded_ns += recorded_ns(span, track->count);
    ops->group[group].dropped += track->dropped;
}

void pace__ops_add(pace__ops *ops, const char *group, const char *const *names, const pace__span_pack *pack)
{
    op_map *maps = calloc(2, sizeof *maps); /* of the group, and of its background */
    char background[64];

    if (!maps)
        return;
    snprintf(background, sizeof background, "%.40s, background", group);
    for (uint32_t i = 0; i < pack->tracks; i++) {
        const pace__packed_track *track = &pace__packed_tracks(pack)[i];
        bool behind = strncmp(track->label, "background", 10) == 0;

        if (!behind || track->count > 0)
            add_track(ops, find_group(ops, behind ? background : group), &maps[behind], names, pack, track);
    }
    ops->group[find_group(ops, group)].refused += pack->refused;
    free(maps);
}

/* --- for people and programs --- */

static double rate_of(uint64_t amount, uint64_t ns)
{
    return ns ? (double)amount / (double)ns : 0; /* 1e9 a second */
}

double pace__op_rate(const pace__op *op, const pace__peak *peak, bool *is_flops, double *of_peak)
{
    double flops = rate_of(op->flops, op->total_ns), bytes = rate_of(op->bytes, op->total_ns);
    double of_flops = peak->gflops > 0 ? flops / peak->gflops : 0,
           of_bytes = peak->gbytes_s > 0 ? bytes / peak->gbytes_s : 0;

    *is_flops = bytes == 0 || (flops > 0 && of_flops >= of_bytes);
    *of_peak = *is_flops ? of_flops : of_bytes;
    return *is_flops ? flops : bytes;
}

double pace__ops_memory_share(const pace__ops *ops, const char *group, const pace__peak *peak,
                              double *gbytes_s)
{
    uint64_t all_ns = 0, bound_ns = 0, total_ns = 0, bytes = 0;
    double of_peak;
    bool is_flops;

    for (uint32_t i = 0; i < ops->count; i++) {
        const pace__op *op = &ops->op[i];

        if (strcmp(ops->group[op->group].name, group) != 0 || op->flops == 0)
            continue;
        all_ns += op->self_ns;
        pace__op_rate(op, peak, &is_flops, &of_peak);
        if (is_flops || of_peak < MEMORY_BOUND_MIN || of_peak > MEMORY_BOUND_MAX)
            continue;
        bound_ns += op->self_ns;
        total_ns += op->total_ns;
        bytes += op->bytes;
    }
    *gbytes_s = rate_of(bytes, total_ns);
    return all_ns ? (double)bound_ns / (double)all_ns : 0;
}

static int by_self(const void *a, const void *b)
{
    const pace__op *one = a, *other = b;

    if (one->self_ns != other->self_ns)
        return one->self_ns < other->self_ns ? 1 : -1;
    int order = strcmp(one->name, other->name);

    return order ? order : strcmp(one->shape, other->shape);
}

static void put_real(pace__json *json, const char *name, double value)
{
    pace__json_raw(json, name);
    pace__json_real(json, value);
}

static void put_count(pace__json *json, const char *name, uint64_t value)
{
    pace__json_raw(json, name);
    pace__json_unsigned(json, value);
}

static void put_op(pace__json *json, const pace__op *op, const pace__op_group *group, const pace__peak *peak)
{
    bool is_flops;
    double of_peak;
    double rate = pace__op_rate(op, peak, &is_flops, &of_peak);

    pace__json_raw(json, "{\"op\": ");
    pace__json_string(json, op->name);
    pace__json_raw(json, ", \"shape\": ");
    pace__json_string(json, op->shape);
    put_count(json, ", \"calls\": ", op->calls);
    put_real(json, ", \"total_s\": ", (double)op->total_ns * 1e-9);
    put_real(json, ", \"self_s\": ", (double)op->self_ns * 1e-9);
    put_real(json,
             ", \"share\": ", group->recorded_ns ? (double)op->self_ns / (double)group->recorded_ns : 0);
    put_count(json, ", \"flops\": ", op->flops);
    put_count(json, ", \"bytes\": ", op->bytes);
    if (rate > 0)
        put_real(json, is_flops ? ", \"gflops\": " : ", \"gbytes_s\": ", rate);
    if (of_peak > 0)
        put_real(json, ", \"of_peak\": ", of_peak);
    pace__json_raw(json, "}");
}

/* What is in no span, as an operation of its own. */
static pace__op rest_of(const pace__ops *ops, uint32_t group)
{
    pace__op rest = {.name = "(in no span)", .group = group};
    uint64_t known_ns = 0;

    for (uint32_t i = 0; i < ops->count; i++)
        known_ns += ops->op[i].group == group ? ops->op[i].self_ns : 0;
    if (ops->group[group].recorded_ns > known_ns)
        rest.total_ns = rest.self_ns = ops->group[group].recorded_ns - known_ns;
    return rest;
}

static void put_group(pace__json *json, const pace__ops *ops, uint32_t at, const pace__peak *peak)
{
    const pace__op_group *group = &ops->group[at];
    pace__op rest = rest_of(ops, at);

    pace__json_raw(json, "{\"group\": ");
    pace__json_string(json, group->name);
    put_count(json, ", \"threads\": ", group->tracks);
    put_real(json, ", \"recorded_s\": ", (double)group->recorded_ns * 1e-9);
    put_count(json, ", \"dropped_spans\": ", group->dropped);
    put_count(json, ", \"refused_threads\": ", group->refused);
    pace__json_raw(json, ", \"ops\": [");
    for (uint32_t i = 0; i < ops->count; i++) {
        if (ops->op[i].group != at)
            continue;
        pace__json_raw(json, "\n    ");
        put_op(json, &ops->op[i], group, peak);
        pace__json_raw(json, ",");
    }
    pace__json_raw(json, "\n    ");
    put_op(json, &rest, group, peak);
    pace__json_raw(json, "]}");
}

void pace__ops_put(pace__json *json, pace__ops *ops, const pace__peak *peak)
{
    qsort(ops->op, ops->count, sizeof *ops->op, by_self);
    pace__json_raw(json, "\"groups\": [");
    for (uint32_t i = 0; i < ops->groups; i++) {
        pace__json_raw(json, i ? ",\n  " : "\n  ");
        put_group(json, ops, i, peak);
    }
    pace__json_raw(json, "]");
}

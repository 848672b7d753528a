/*
 * Any bytes as the spans that a rank sends. What passes the check can be written as a trace, and added up in a table with
 * every span in it; what does not is one message.
 */
#include "base/json.h"
#include "watch/ops.h"
#include "watch/trace.h"

#include "fuzzing.h"

#define RANKS 3

static const char *const names[RANKS] = {"chief", "worker1", "ps0"};

static void write_trace(const pace__span_pack *pack, const pace_log *log)
{
    pace__clock_offset clock = {.offset_ns = -5, .error_ns = 1};
    pace__trace *trace;
    char path[128];

    snprintf(path, sizeof path, "%s/trace.json.gz", scratch());
    assert(pace__trace_begin(path, RANKS, names, 0, log, &trace) == PACE_OK);
    assert(pace__trace_add(trace, 1, "host", pack, &clock) == PACE_OK);
    assert(pace__trace_end(trace, PACE_FAILED) == PACE_FAILED); /* and is forgotten */
}

static void add_up(const pace__span_pack *pack)
{
    pace__ops *ops = pace__ops_create();
    pace__json json = {0};
    uint64_t calls = 0;

    assert(ops);
    pace__ops_add(ops, "workers", names, pack);
    for (uint32_t i = 0; i < ops->count; i++)
        calls += ops->op[i].calls;
    assert(calls + ops->more == pack->spans);
    pace__ops_put(&json, ops, &(pace__peak){100, 10});
    assert(json.size <= PACE__OPS_JSON_BYTES);
    free(ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace__span_pack *pack = malloc(size + 1); /* as messages are: aligned */

    assert(pack);
    if (size > 0)
        memcpy(pack, data, size);
    pace_status status = pace__span_pack_check(pack, size, RANKS, "worker1", &log);

    assert((status != PACE_OK) == (errors == 1));
    if (!status) {
        write_trace(pack, &log);
        add_up(pack);
    }
    free(pack);
    return 0;
}

/*
 * trace.h - spans of all ranks as a trace: profile/trace.json.gz, for Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 *     status = pace__trace_begin(path, ranks, names, base_ns, log, &trace);
 *     for (each rank)
 *         status = pace__trace_add(trace, rank, host, pack, &clock);
 *     status = pace__trace_end(trace, status);                       // the file has its name, or there is none
 *
 * A rank is a process of the trace, its number the pid; a track is a thread. Spans are complete events ("X"), waits have
 * the name of whom is waited for. Times are those of the chief's clock, in microseconds since base_ns.
 */
#ifndef WATCH_TRACE_H
#define WATCH_TRACE_H

#include "watch/span_pack.h"

typedef struct pace__trace pace__trace;

/* How a rank's clock goes beside the chief's: theirs = ours + offset, give or take `error`. */
typedef struct pace__clock_offset {
    int64_t offset_ns;
    uint64_t error_ns;
} pace__clock_offset;

/* `names` of all ranks, by which waits call them, must outlive it. */
pace_status pace__trace_begin(const char *path, int ranks, const char *const *names, uint64_t base_ns,
                              const pace_log *log, pace__trace **trace);
/* `host` may be NULL. The pack has been checked. */
pace_status pace__trace_add(pace__trace *trace, int rank, const char *host, const pace__span_pack *pack,
                            const pace__clock_offset *clock);
/* `status` is what became of it so far: unless it is PACE_OK nothing is kept. NULL is allowed. */
pace_status pace__trace_end(pace__trace *trace, pace_status status);

/* "wait for ps0", or what a span is called. */
#define PACE__SPAN_NAME_MAX 128
const char *pace__packed_name(const pace__span_pack *pack, const pace__packed_span *span,
                              const char *const *names, char text[PACE__SPAN_NAME_MAX]);

#endif

#include "watch/trace.h"

#include "base/json.h"
#include "files/file.h"
#include "files/new_file.h"

#include <assert.h>
#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES  ((size_t)256 << 10)
#define EVENT_MAX   ((size_t)4 << 10)
#define SHAPE_MAX   128
#define LEVEL       1
#define LEVEL_BYTES ISAL_DEF_LVL1_DEFAULT

struct pace__trace {
    int ranks;
    const char *const *names;
    uint64_t base_ns;
    const pace_log *log;
    char *path;
    pace__new_file file;
    pace_status status; /* of the writing: the first failure stays */
    bool some;          /* events were written */
    struct isal_zstream stream;
    uint8_t level[LEVEL_BYTES];
    uint8_t packed[TEXT_BYTES];
    char text[TEXT_BYTES]; /* not yet compressed */
    size_t size;
};

/* --- text, compressed --- */

static void flush(pace__trace *trace, bool last)
{
    struct isal_zstream *stream = &trace->stream;

    stream->next_in = (uint8_t *)trace->text;
    stream->avail_in = (uint32_t)trace->size;
    stream->end_of_stream = last;
    do {
        stream->next_out = trace->packed;
        stream->avail_out = sizeof trace->packed;
        int failed = isal_deflate(stream);

        assert(failed == COMP_OK);
        (void)failed;
        if (!trace->status)
            trace->status =
                pace__write_all(trace->file.fd, trace->packed, sizeof trace->packed - stream->avail_out,
                                trace->path, trace->log);
    } while (stream->avail_out == 0);
    assert(stream->avail_in == 0);
    trace->size = 0;
}

/* One event, or what stands before and behind all of them. */
static pace__json begin_text(pace__trace *trace)
{
    if (sizeof trace->text - trace->size < EVENT_MAX)
        flush(trace, false);
    return (pace__json){.text = trace->text + trace->size, .capacity = EVENT_MAX};
}

static void end_text(pace__trace *trace, const pace__json *json)
{
    assert(json->size <= json->capacity);
    trace->size += json->size;
}

static pace__json begin_event(pace__trace *trace)
{
    pace__json json = begin_text(trace);

    pace__json_raw(&json, trace->some ? ",\n" : "\n");
    trace->some = true;
    return json;
}

/* --- the file --- */

static void write_head(pace__trace *trace)
{
    pace__json json = begin_text(trace);

    pace__json_raw(&json, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    end_text(trace, &json);
}

pace_status pace__trace_begin(const char *path, int ranks, const char *const *names, uint64_t base_ns,
                              const pace_log *log, pace__trace **trace)
{
    pace__trace *made = calloc(1, sizeof *made);
    char *copy = strdup(path);

    if (!made || !copy) {
        free(made);
        free(copy);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    made->path = copy;
    made->ranks = ranks;
    made->names = names;
    made->base_ns = base_ns;
    made->log = log;
    pace_status status = pace__new_file_begin(copy, log, &made->file);

    if (status) {
        free(copy);
        free(made);
        return status;
    }
    isal_deflate_init(&made->stream);
    made->stream.gzip_flag = IGZIP_GZIP;
    made->stream.level = LEVEL;
    made->stream.level_buf = made->level;
    made->stream.level_buf_size = sizeof made->level;
    write_head(made);
    *trace = made;
    return PACE_OK;
}

pace_status pace__trace_end(pace__trace *trace, pace_status status)
{
    if (!trace)
        return status;
    pace__json json = begin_text(trace);

    pace__json_raw(&json, "\n]}\n");
    end_text(trace, &json);
    flush(trace, true);
    status = pace__new_file_end(&trace->file, status ? status : trace->status);
    free(trace->path);
    free(trace);
    return status;
}

/* --- events --- */

static void write_label(pace__trace *trace, const char *what, const char *key, int pid, int64_t tid,
                        const char *text)
{
    pace__json json = begin_event(trace);

    pace__json_raw(&json, "{\"ph\":\"M\",\"name\":\"");
    pace__json_raw(&json, what);
    pace__json_raw(&json, "\",\"pid\":");
    pace__json_integer(&json, pid);
    pace__json_raw(&json, ",\"tid\":");
    pace__json_integer(&json, tid);
    pace__json_raw(&json, ",\"args\":{\"");
    pace__json_raw(&json, key);
    pace__json_raw(&json, "\":");
    pace__json_string(&json, text);
    pace__json_raw(&json, "}}");
    end_text(trace, &json);
}

static void write_order(pace__trace *trace, int pid)
{
    pace__json json = begin_event(trace);

    pace__json_raw(&json, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":");
    pace__json_integer(&json, pid);
    pace__json_raw(&json, ",\"tid\":0,\"args\":{\"sort_index\":");
    pace__json_integer(&json, pid);
    pace__json_raw(&json, "}}");
    end_text(trace, &json);
}

/* Exact, to the nanosecond: a child must not seem to end behind its parent. */
static void put_us(pace__json *json, uint64_t ns)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    pace__json_raw(json, text);
}

static void put_amount(pace__json *json, const char *name, uint64_t amount, const char **comma)
{
    if (!amount)
        return;
    pace__json_raw(json, *comma);
    pace__json_raw(json, name);
    pace__json_unsigned(json, amount);
    *comma = ",";
}

static void put_arguments(pace__json *json, const pace__span_pack *pack, const pace__packed_span *span)
{
    const char *comma = "";
    char shape[SHAPE_MAX];

    snprintf(shape, sizeof shape, "%s", pace__packed_text(pack, span->shape));
    pace__json_raw(json, ",\"args\":{");
    if (shape[0]) {
        pace__json_raw(json, "\"shape\":");
        pace__json_string(json, shape);
        comma = ",";
    }
    put_amount(json, "\"flops\":", span->flops, &comma);
    put_amount(json, "\"bytes\":", span->bytes, &comma);
    pace__json_raw(json, "}");
}

const char *pace__packed_name(const pace__span_pack *pack, const pace__packed_span *span,
                              const char *const *names, char text[PACE__SPAN_NAME_MAX])
{
    const char *name = pace__packed_text(pack, span->name);

    if (span->peer >= 0)
        snprintf(text, PACE__SPAN_NAME_MAX, "%.32s for %.64s", name, names[span->peer]);
    else if (strcmp(name, pace__wait_name) == 0)
        snprintf(text, PACE__SPAN_NAME_MAX, "%s for anyone", name);
    else
        snprintf(text, PACE__SPAN_NAME_MAX, "%.120s", name);
    return text;
}

static void write_span(pace__trace *trace, int pid, int64_t tid, const pace__span_pack *pack,
                       const pace__packed_span *span, uint64_t at_ns)
{
    char name[PACE__SPAN_NAME_MAX];
    pace__json json = begin_event(trace);

    pace__json_raw(&json, "{\"ph\":\"X\",\"name\":");
    pace__json_string(&json, pace__packed_name(pack, span, trace->names, name));
    pace__json_raw(&json, pace__is_wait(name) ? ",\"cat\":\"wait\",\"pid\":" : ",\"cat\":\"work\",\"pid\":");
    pace__json_integer(&json, pid);
    pace__json_raw(&json, ",\"tid\":");
    pace__json_integer(&json, tid);
    pace__json_raw(&json, ",\"ts\":");
    put_us(&json, at_ns);
    pace__json_raw(&json, ",\"dur\":");
    put_us(&json, span->end_ns - span->begin_ns);
    if (span->shape || span->flops || span->bytes)
        put_arguments(&json, pack, span);
    pace__json_raw(&json, "}");
    end_text(trace, &json);
}

static void write_names(pace__trace *trace, int rank, const char *host, const pace__span_pack *pack,
                        const pace__clock_offset *clock)
{
    char text[256];

    snprintf(text, sizeof text, "%.40s (rank %d%s%.100s)", trace->names[rank], rank, host ? ", host " : "",
             host ? host : "");
    write_label(trace, "process_name", "name", rank, 0, text);
    if (rank > 0) {
        snprintf(text, sizeof text, "clock %+.1f us beside the chief's, give or take %.1f us",
                 (double)clock->offset_ns * 1e-3, (double)clock->error_ns * 1e-3);
        write_label(trace, "process_labels", "labels", rank, 0, text);
    }
    write_order(trace, rank);
    for (uint32_t i = 0; i < pack->tracks; i++)
        write_label(trace, "thread_name", "name", rank, i, pace__packed_tracks(pack)[i].label);
}

pace_status pace__trace_add(pace__trace *trace, int rank, const char *host, const pace__span_pack *pack,
                            const pace__clock_offset *clock)
{
    uint64_t zero_ns = trace->base_ns + (uint64_t)clock->offset_ns; /* by the rank's clock */

    assert(rank >= 0 && rank < trace->ranks);
    write_names(trace, rank, host, pack, clock);
    for (uint32_t i = 0; i < pack->tracks && !trace->status; i++) {
        const pace__packed_track *track = &pace__packed_tracks(pack)[i];
        const pace__packed_span *span = pace__packed_spans(pack) + track->first;

        for (uint64_t j = 0; j < track->count; j++) {
            int64_t at_ns = (int64_t)(span[j].begin_ns - zero_ns);

            if (at_ns >= 0) /* else the clocks are wrong by more than all of training */
                write_span(trace, rank, i, pack, &span[j], (uint64_t)at_ns);
        }
    }
    return trace->status;
}

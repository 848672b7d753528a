#include "job/profile.h"

#include "base/clock.h"
#include "files/file.h"
#include "math/peak.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* --- recording --- */

void pace__profile_window(uint64_t first, uint64_t last, uint64_t wanted, uint64_t window[2])
{
    uint64_t left = last > first ? last - first : 0;
    uint64_t warmup = left / 10 < PACE__PROFILE_WARMUP ? left / 10 : PACE__PROFILE_WARMUP;

    window[0] = first + warmup;
    window[1] = left - warmup < wanted ? first + left : window[0] + wanted;
}

void pace__profile_open(pace__profile *profile, const pace__job *job, int threads)
{
    uint64_t wanted = (uint64_t)job->config->records.profile, window[2];

    *profile = (pace__profile){.base_ns = pace__now_ns()};
    if (wanted == 0 || pace__track_here || pace__job_is_over(job)) /* an earlier profile stays */
        return;
    profile->spans = pace__spans_create(threads);
    if (!profile->spans) {
        pace_say(job->log, PACE_WARN, "no memory for a profile (%" PRIu64 " bytes): nothing is recorded",
                 pace__spans_memory(threads));
        return;
    }
    pace__profile_window(job->position.step, job->plan.steps, wanted, window);
    profile->first = window[0];
    profile->last = window[1];
    pace__spans_join(profile->spans, "main", -1);
}

void pace__profile_close(pace__profile *profile)
{
    if (!profile->spans)
        return;
    pace__spans_leave();
    pace__spans_free(profile->spans);
    *profile = (pace__profile){0};
}

void pace__profile_stop(pace__profile *profile)
{
    if (!profile->spans)
        return;
    pace__spans_switch(profile->spans, false);
    profile->over = true;
}

void pace__profile_reach(pace__profile *profile, uint64_t step)
{
    if (step >= profile->last)
        pace__profile_stop(profile);
    else if (step >= profile->first)
        pace__spans_switch(profile->spans, true);
}

/* --- the leader --- */

/* Invariant 1. What it was is kept by the run's log, too. */
static void give_up(pace__profile_book *book, pace_status status)
{
    book->status = status;
    pace_say(book->job->log, PACE_WARN, "there will be no profile: %s",
             book->reason[0] ? book->reason : "out of memory");
}

static void name_ranks(pace__profile_book *book)
{
    for (int rank = 0; rank < book->ranks; rank++) {
        pace__role_name(&book->job->plan.cluster, rank, book->roles[rank]);
        book->names[rank] = book->roles[rank];
    }
}

static char *path_of(const pace__profile_book *book, const char *name)
{
    return pace__format("%s/%s", pace__rundir_path(book->job->run, PACE__RUN_PROFILE), name);
}

static pace_status begin_trace(pace__profile_book *book)
{
    const pace_log *log = &book->kept.log;
    char *path = path_of(book, PACE__PROFILE_TRACE);
    pace_status status = path ? pace__make_own_dir(pace__rundir_path(book->job->run, PACE__RUN_PROFILE), log)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__trace_begin(path, book->ranks, book->names, book->base_ns, log, &book->trace);
    free(path);
    return status;
}

void pace__profile_book_open(pace__profile_book *book, const pace__job *job, const pace__profile *profile)
{
    int ranks = pace__cluster_size(&job->plan.cluster);

    *book = (pace__profile_book){.job = job,
                                 .base_ns = profile->base_ns,
                                 .steps = {profile->first, profile->last},
                                 .ranks = ranks,
                                 .roles = calloc((size_t)ranks, sizeof *book->roles),
                                 .names = calloc((size_t)ranks, sizeof *book->names),
                                 .clocks = calloc((size_t)ranks, sizeof *book->clocks),
                                 .has = calloc((size_t)ranks, sizeof *book->has),
                                 .ops = pace__ops_create(),
                                 .text = malloc(PACE__OPS_JSON_BYTES)};
    pace__kept_init(&book->kept, book->reason, sizeof book->reason);
    if (!book->roles || !book->names || !book->clocks || !book->has || !book->ops || !book->text)
        give_up(book, PACE_FAILED);
    else
        name_ranks(book);
}

static const char *const group_names[] = {
    [PACE__WORKER] = "workers", [PACE__PS] = "parameter servers", [PACE__EVALUATOR] = "evaluator"};

static const char *group_of(const pace__profile_book *book, int rank)
{
    return group_names[pace__role_of(&book->job->plan.cluster, rank)];
}

void pace__profile_book_add(pace__profile_book *book, int rank, const char *host, const pace__span_pack *pack,
                            size_t bytes, const pace__clock_offset *clock)
{
    if (book->status)
        return;
    pace_status status = pace__span_pack_check(pack, bytes, book->ranks, book->names[rank], &book->kept.log);

    if (!status && !book->trace)
        status = begin_trace(book);
    if (!status)
        status = pace__trace_add(book->trace, rank, host, pack, clock);
    if (status) {
        give_up(book, status);
        return;
    }
    pace__ops_add(book->ops, group_of(book, rank), book->names, pack);
    book->clocks[rank] = *clock;
    book->has[rank] = true;
}

/* --- ops.json --- */

static void put_clocks(pace__json *json, const pace__profile_book *book)
{
    const char *comma = "";

    pace__json_raw(json, "\"clocks\": [");
    for (int rank = 0; rank < book->ranks; rank++) {
        if (!book->has[rank])
            continue;
        pace__json_raw(json, comma);
        pace__json_raw(json, "{\"role\": ");
        pace__json_string(json, book->names[rank]);
        pace__json_raw(json, ", \"offset_s\": ");
        pace__json_real(json, (double)book->clocks[rank].offset_ns * 1e-9);
        pace__json_raw(json, ", \"error_s\": ");
        pace__json_real(json, (double)book->clocks[rank].error_ns * 1e-9);
        pace__json_raw(json, "}");
        comma = ", ";
    }
    pace__json_raw(json, "],\n");
}

static void put_peak(pace__json *json, const char *name, double value)
{
    pace__json_raw(json, name);
    if (value > 0)
        pace__json_real(json, value);
    else
        pace__json_raw(json, "null");
}

static void put_all(pace__json *json, const pace__profile_book *book)
{
    pace__json_raw(json, "{\"version\": 1, \"first_step\": ");
    pace__json_unsigned(json, book->steps[0]);
    pace__json_raw(json, ", \"end_step\": ");
    pace__json_unsigned(json, book->steps[1]);
    put_peak(json, ", \"peak_gflops\": ", book->peak.gflops);
    put_peak(json, ", \"peak_gbytes_s\": ", book->peak.gbytes_s);
    pace__json_raw(json, ",\n");
    put_clocks(json, book);
    pace__ops_put(json, book->ops, &book->peak);
    pace__json_raw(json, "}\n");
}

static pace_status write_ops(pace__profile_book *book)
{
    const pace_log *log = &book->kept.log;
    pace__json json = {.text = book->text, .capacity = PACE__OPS_JSON_BYTES};
    char *path = path_of(book, PACE__PROFILE_OPS);

    put_all(&json, book);
    assert(json.size <= json.capacity);
    pace_status status = path ? pace__write_file_atomically(path, book->text, json.size, log)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    free(path);
    return status;
}

/* --- ending --- */

void pace__profile_book_write(pace__profile_book *book)
{
    if (book->status || !book->trace)
        return;
    pace_status status = pace__trace_end(book->trace, PACE_OK);

    book->trace = NULL;
    if (!status)
        status = write_ops(book);
    if (status)
        give_up(book, status);
    else
        pace_say(book->job->log, PACE_INFO, "profile of %" PRIu64 " steps from %" PRIu64 " on: %s",
                 book->steps[1] - book->steps[0], book->steps[0],
                 pace__rundir_path(book->job->run, PACE__RUN_PROFILE));
    book->written = !status;
}

void pace__profile_book_peak(pace__profile_book *book)
{
    if (book->status || !book->written)
        return;
    book->peak = (pace__peak){pace__peak_gflops(), pace__peak_gbytes_s()};
    pace_status status = write_ops(book);

    if (status)
        give_up(book, status);
}

void pace__profile_book_note(const pace__profile_book *book, double seconds)
{
    double gbytes_s;

    if (book->status || !book->written || !(book->peak.gbytes_s > 0))
        return;
    double share = pace__ops_memory_share(book->ops, group_names[PACE__WORKER], &book->peak, &gbytes_s);
    pace_field fields[] = {
        PACE_INT("first_step", book->steps[0]), PACE_INT("end_step", book->steps[1]),
        PACE_REAL("seconds", seconds),          PACE_REAL("memory_share", share),
        PACE_REAL("gbytes_s", gbytes_s),        PACE_REAL("peak_gbytes_s", book->peak.gbytes_s)};

    pace_registry_emit(book->job->registry, "profile", fields, sizeof fields / sizeof *fields);
}

void pace__profile_book_close(pace__profile_book *book)
{
    pace__trace_end(book->trace, PACE_FAILED);
    free(book->text);
    free(book->ops);
    free(book->has);
    free(book->clocks);
    free(book->names);
    free(book->roles);
    *book = (pace__profile_book){0};
}

void pace__profile_write_own(pace__profile *profile, pace__profile_book *book, const pace__job *job)
{
    pace__profile_stop(profile);
    pace__span_pack *pack = pace__spans_pack(profile->spans);

    pace__profile_book_open(book, job, profile);
    if (!pack && !book->status)
        give_up(book, PACE_FAILED);
    else if (pack)
        pace__profile_book_add(book, 0, NULL, pack, pack->bytes, &(pace__clock_offset){0});
    pace__profile_book_write(book);
    free(pack);
}

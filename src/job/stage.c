/* Local copies of the data set: what the options ask for, and what came of it in all processes together. */
#include "data/stage/stage.h"

#include "base/json.h"
#include "job/job.h"
#include "run/report.h"

#include <stdio.h>
#include <string.h>

void pace__job_open_stage(pace__job *job, bool leads, bool is_first)
{
    const pace_train_stage *asked = &job->config->stage;

    if (!asked->directory)
        return;
    job->stage = pace__stage_open(&job->store,
                                  &(pace__stage_options){.parent = asked->directory,
                                                         .bytes_max = asked->bytes,
                                                         .rate = asked->rate,
                                                         .speaks = leads,
                                                         .warns = is_first,
                                                         .dry = job->config->dry_run},
                                  job->log);
}

/* After anything but a good end they are kept: the run will go on. */
void pace__job_close_stage(pace__job *job, pace_status status)
{
    pace__stage_close(job->stage, job->config->stage.clean && status == PACE_OK);
    job->stage = NULL;
}

/* --- what came of it --- */

static bool is_first_on_host(pace__role_report *const *reports, int rank)
{
    for (int other = 0; other < rank; other++) {
        if (reports[other]->staged && strcmp(reports[other]->host, reports[rank]->host) == 0)
            return false;
    }
    return true;
}

/* What was there before the run, of the host of `rank`: who looked first found least, since others may have copied some. */
static uint64_t found_on_host(pace__role_report *const *reports, int size, int rank)
{
    uint64_t found = reports[rank]->staged_found;

    for (int other = rank + 1; other < size; other++) {
        if (reports[other]->staged && strcmp(reports[other]->host, reports[rank]->host) == 0 &&
            reports[other]->staged_found < found)
            found = reports[other]->staged_found;
    }
    return found;
}

/* `wanted` and `found` by host, the rest by process. */
static pace__stage_figures add_up(const pace__job *job)
{
    pace__stage_figures all = {0};
    int size = pace__cluster_size(&job->plan.cluster);

    if (!job->reports)
        return pace__stage_figures_of(job->stage);
    for (int rank = 0; rank < size; rank++) {
        const pace__role_report *report = job->reports[rank];

        if (!report->staged)
            continue;
        all.copied += report->staged_copied;
        all.dropped += report->copies_dropped;
        all.read_near += report->read_near;
        all.read_source += report->read_source;
        if (!is_first_on_host(job->reports, rank))
            continue;
        all.wanted += report->staged;
        all.found += found_on_host(job->reports, size, rank);
    }
    return all;
}

static void put(pace__json *json, const char *name, uint64_t value)
{
    pace__json_raw(json, name);
    pace__json_unsigned(json, value);
}

void pace__job_put_stage(pace__json *json, const pace__job *job)
{
    pace__stage_figures all = add_up(job);

    put(json, ",\n  \"stage\": {\"bytes\": ", all.wanted);
    put(json, ", \"bytes_reused\": ", all.found);
    put(json, ", \"bytes_copied\": ", all.copied);
    put(json, ", \"copies_dropped\": ", all.dropped);
    put(json, ", \"bytes_read_from_copies\": ", all.read_near);
    put(json, ", \"bytes_read_from_source\": ", all.read_source);
    pace__json_raw(json, "}");
}

static int count_hosts(const pace__job *job)
{
    int hosts = 0;

    for (int rank = 0; job->reports && rank < pace__cluster_size(&job->plan.cluster); rank++)
        hosts += job->reports[rank]->staged > 0 && is_first_on_host(job->reports, rank);
    return hosts;
}

/* Nobody else would tell what takes the disk's room. */
static void say_what_stays(const pace__job *job)
{
    uint64_t bytes;
    const char *place = pace__stage_place_of(job->stage, &bytes);
    int hosts = count_hosts(job);
    char others[64] = "";

    if (hosts > 1)
        snprintf(others, sizeof others, " of this host (%d hosts have their own)", hosts);
    if (bytes > 0)
        pace_say(
            job->log, PACE_INFO,
            "%.1f MB of copies stay in %s%s for later runs; --stage-clean deletes them at the end of one",
            (double)bytes / 1e6, place, others);
}

void pace__job_say_stage(const pace__job *job, pace_status status)
{
    pace__stage_figures all = add_up(job);
    char dropped[64] = "";

    if (all.dropped > 0)
        snprintf(dropped, sizeof dropped, ", %llu dropped as damaged", (unsigned long long)all.dropped);
    if (status == PACE_OK && all.wanted > 0)
        pace_say(job->log, PACE_INFO,
                 "staging: of %.1f MB, %.1f MB were there and %.1f MB were copied%s; rows: %.1f MB from "
                 "copies, %.1f MB from %s",
                 (double)all.wanted / 1e6, (double)all.found / 1e6, (double)all.copied / 1e6, dropped,
                 (double)all.read_near / 1e6, (double)all.read_source / 1e6, job->config->data);
    if (job->stage && (status == PACE_INTERRUPTED || (status == PACE_OK && !job->config->stage.clean)))
        say_what_stays(job);
}

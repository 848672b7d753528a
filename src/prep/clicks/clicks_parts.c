/* The parts: how many rows and entries each has, and at which entry of its stream it begins. */
#include "prep/clicks/clicks.h"
#include "prep/common.h"

#include <stdlib.h>
#include <string.h>

/* --- rows of different lengths --- */

/* Counts the entries of rows that are handed out. */
typedef struct counting {
    const pace__clicks *job;
    uint64_t entries;
} counting;

static pace_status count_row(void *arg, const void *record, size_t size)
{
    counting *self = arg;

    (void)record;
    self->entries += pace__spilled_entries(self->job, size);
    return PACE_OK;
}

/* How many entries the first `rows` rows of a stream have: the bucket that it cuts is looked through. */
static pace_status entries_before(const pace__clicks *job, int stream, uint64_t rows,
                                  pace__spill_scratch *scratch, uint64_t *entries)
{
    const pace__spills *spills = &job->spills[stream];
    counting cut = {job, 0};
    uint32_t bucket = 0;

    *entries = 0;
    for (; bucket < PACE__SPILL_BUCKETS && pace__spills_rows(spills, bucket) <= rows; bucket++) {
        rows -= pace__spills_rows(spills, bucket);
        *entries += pace__spills_weight(spills, bucket);
    }
    pace_status status = rows > 0 ? pace__spill_visit_all(spills->all, spills->count, bucket, 0, rows,
                                                          scratch, count_row, &cut)
                                  : PACE_OK;

    *entries += cut.entries;
    return status;
}

/* Where part `part` of a set begins; one behind the last: where the set ends. */
static pace_status measure(const pace__clicks *job, int set, uint32_t part, pace__spill_scratch *scratch,
                           uint64_t *entries)
{
    int stream = pace__clicks_stream_of(job, set);
    uint64_t shift = stream == PACE__INPUTS ? pace__prep_rows_before(job->divided, set) : 0;

    if (job->info.rows[set] == 0)
        return PACE_OK;
    return entries_before(job, stream, shift + pace__part_begin(job->info.rows[set], job->info.parts, part),
                          scratch, entries);
}

/* Each process looks at some places; then all know all. */
static pace_status measure_all(pace__clicks *job)
{
    size_t ranks = (size_t)job->prep.ranks, me = (size_t)job->rank.number, each = job->info.parts + 1;
    size_t count = PACE__SETS * each;
    uint64_t *found = calloc(count, sizeof *found), *all = calloc(ranks * count, sizeof *all);
    pace__spill_scratch scratch = {.owner = (uint32_t)me};
    pace_status status = found && all ? PACE_OK : pace_fail(job->rank.log, PACE_FAILED, "out of memory");

    for (size_t i = me; i < count && !status; i += ranks) {
        status = measure(job, (int)(i / each), (uint32_t)(i % each), &scratch, &found[i]);
        if (!status)
            status = pace__rank_pulse(&job->rank);
    }
    pace__spill_scratch_release(&scratch);
    if (!status)
        status = pace__ranks_exchange(job->rank.link, found, count * sizeof *found, all);
    for (size_t i = 0; i < count && !status; i++)
        job->part_entry[i] = all[i % ranks * count + i];
    free(all);
    free(found);
    return status;
}

/* --- all rows --- */

static pace_status plan_parts(pace__clicks *job)
{
    uint32_t parts = job->info.parts;
    pace_status status = job->info.columns ? PACE_OK : measure_all(job);

    for (uint32_t part = 0; part < parts && !status; part++) {
        pace__part_plan(&job->info, part, &job->parts[part]);
        for (int set = 0; set < PACE__SETS; set++) {
            pace__part_set *sizes = &job->parts[part].sets[set];

            if (job->info.columns == 0)
                sizes->entries =
                    pace__clicks_part_entry(job, set, part + 1) - pace__clicks_part_entry(job, set, part);
            job->info.entries[set] += sizes->entries;
        }
    }
    return status;
}

/* The last element of indptr has no row of its own. */
static pace_status close_starts(const pace__clicks *job, const pace__part *part)
{
    pace_status status = PACE_OK;

    for (int set = 0; set < PACE__SETS && !status; set++) {
        const pace__part_set *each = &part->sets[set];

        if (each->start_at)
            status = pace__part_put(part, each->start_at, each->rows, sizeof each->entries, &each->entries, 1,
                                    job->rank.log);
    }
    return status;
}

pace_status pace__clicks_open_parts(pace__clicks *job)
{
    uint32_t parts = job->info.parts;

    job->parts = calloc(parts, sizeof *job->parts);
    job->part_entry = calloc((size_t)PACE__SETS * (parts + 1), sizeof *job->part_entry);
    if (!job->parts || !job->part_entry)
        return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    pace_status status = plan_parts(job);

    if (!status)
        status = pace__parts_open(&job->prep, &job->rank, &job->info, job->parts);
    for (uint32_t part = 0; part < parts && !status && job->rank.number == 0; part++)
        status = close_starts(job, &job->parts[part]);
    return status;
}

/* The life of one process of the job: both passes, and what is decided between them, with the others. */
#include "base/clock.h"
#include "base/shares.h"
#include "prep/clicks/clicks.h"
#include "prep/common.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- what all processes have counted --- */

static uint64_t sum_of(const pace__clicks *job, size_t at)
{
    uint64_t sum = 0;

    for (int i = 0; i < job->prep.ranks; i++)
        sum += *(const uint64_t *)((const char *)&job->all[i] + at);
    return sum;
}

static uint64_t most_of(const pace__clicks *job, size_t at)
{
    uint64_t most = 0;

    for (int i = 0; i < job->prep.ranks; i++) {
        uint64_t each = *(const uint64_t *)((const char *)&job->all[i] + at);

        most = each > most ? each : most;
    }
    return most;
}

#define SUM(job, field)  sum_of(job, offsetof(pace__click_counts, field))
#define MOST(job, field) most_of(job, offsetof(pace__click_counts, field))

static pace_status compare_notes(pace__clicks *job)
{
    pace_status status = pace__ranks_exchange(job->rank.link, &job->counts, sizeof job->counts, job->all);

    return status ? status
                  : pace__prep_check_bad_rows(SUM(job, bad), job->config->common.max_bad_rows, job->rank.log);
}

uint64_t pace__clicks_rows(const pace__clicks *job, int stream)
{
    uint64_t rows = 0;

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++)
        rows += pace__spills_rows(&job->spills[stream], bucket);
    return rows;
}

/* Rank 0. */
static void emit_phase(const pace__clicks *job, const char *phase, double seconds, uint64_t bytes)
{
    pace_field fields[] = {
        PACE_TEXT("phase", phase), PACE_REAL("seconds", seconds),
        PACE_INT("rows", pace__clicks_rows(job, PACE__INPUTS) + pace__clicks_rows(job, PACE__TESTS)),
        PACE_INT("bytes", bytes)};

    if (job->rank.number == 0)
        pace_registry_emit(job->prep.registry, "phase", fields, 4);
}

/* --- reading --- */

/*
 * How the memory is shared out: a quarter for the id table (idmap.h may take as much again for ids beyond
 * it), a quarter for spilled rows that need not go to disk, and the rest for loading buckets, where the id
 * table's second quarter is not needed any more.
 */
static pace_status read_stream(pace__clicks *job, int stream)
{
    const pace_prep_common *config = &job->config->common;
    bool inputs = stream == PACE__INPUTS;
    pace_status status =
        pace__spills_create(&job->spills[stream], &job->prep, &job->rank, inputs ? "rows" : "test-rows",
                            config->memory / 4 / (size_t)job->threads, config->memory / (inputs ? 4 : 16));

    if (!status)
        status = pace__clicks_read(job, stream);
    if (!status)
        status = compare_notes(job);
    return status ? status : pace__spills_share(&job->spills[stream], &job->prep, &job->rank);
}

/* --- between the passes --- */

/* Rank 0. */
static pace_status divide(pace__clicks *job)
{
    const pace_prep_common *config = &job->config->common;
    uint64_t rows = pace__clicks_rows(job, PACE__INPUTS);

    if (rows == 0)
        return pace_fail(job->rank.log, PACE_BAD_DATA, "%s%s: no rows", config->inputs.items[0],
                         config->inputs.count > 1 ? " and the other inputs" : "");
    pace_status status = pace__prep_divide(config, rows, job->rank.log, job->divided);

    if (!status && config->test.count > 0 && pace__clicks_rows(job, PACE__TESTS) == 0)
        status = pace_fail(job->rank.log, PACE_BAD_DATA, "%s: no rows to test on", config->test.items[0]);
    return status;
}

static pace_status fill_info(pace__clicks *job)
{
    const pace_prep_common *config = &job->config->common;
    uint32_t columns = job->packing.count;

    job->info = (pace__store_info){
        .encoding = job->encoding,
        .columns = columns,
        .has_values = columns ? job->has_values : MOST(job, not_all_ones) > 0,
        .row_entries_max = (uint32_t)MOST(job, longest_row),
        .like = job->like,
        .ids_seen = pace__idmap_count(job->idmap),
        .parts = (uint32_t)config->parts,
        .seed = config->seed,
        .rows = {[PACE__TRAIN] = job->divided[PACE__TRAIN],
                 [PACE__TEST] = pace__clicks_rows(job, PACE__TESTS) + job->divided[PACE__TEST],
                 [PACE__VALIDATION] = job->divided[PACE__VALIDATION]},
        .command = pace__clicks_command(job),
    };
    return job->info.command ? PACE_OK : pace_fail(job->rank.log, PACE_FAILED, "out of memory");
}

/* What can be decided only when all rows have been seen. */
static pace_status plan(pace__clicks *job)
{
    pace_status status = job->rank.number == 0 ? divide(job) : PACE_OK;

    if (!status)
        status = pace__ranks_share(job->rank.link, job->divided, sizeof job->divided);
    if (status)
        return status;
    if (job->encoding.features == 0)
        job->encoding.features = MOST(job, largest_id) + 1;
    if (!job->like)
        status = pace__clicks_number_ids(job);
    return status ? status : fill_info(job);
}

/* --- the end --- */

static void fill_result(const pace__clicks *job, pace_prep_clicks_result *result)
{
    pace__shares rows = {0};
    uint64_t positives = SUM(job, positives);

    pace__prep_say_one_class("rows", job->info.rows[PACE__TRAIN], positives, "the labels", job->rank.log);
    for (int i = 0; i < job->prep.ranks; i++)
        pace__shares_add(&rows, (double)job->all[i].rows_written);
    result->train_rows = job->info.rows[PACE__TRAIN];
    result->test_rows = job->info.rows[PACE__TEST];
    result->validation_rows = job->info.rows[PACE__VALIDATION];
    result->bad_rows = SUM(job, bad);
    result->bytes_read = SUM(job, bytes_read);
    result->bytes_written = SUM(job, bytes_written);
    result->bytes_spilled = SUM(job, bytes_spilled);
    result->features = job->encoding.features;
    result->features_seen = job->info.ids_seen;
    result->unseen_entries = SUM(job, unseen);
    result->positive_rate = (double)positives / (double)result->train_rows;
    result->ranks = SUM(job, threads);
    result->processes = (uint64_t)job->prep.ranks;
    result->skew = pace__shares_skew(&rows);
}

/* All rows are written, by all. */
static pace_status finish(pace__clicks *job, pace_prep_clicks_result *result)
{
    for (int stream = 0; stream < PACE__STREAMS; stream++) {
        job->counts.bytes_spilled += pace__spills_bytes(&job->spills[stream]);
        pace__spills_close(&job->spills[stream]);
    }
    job->counts.threads = (uint64_t)job->threads;
    pace_status status = pace__ranks_gather(job->rank.link, &job->counts, sizeof job->counts, job->all);

    if (!status && job->rank.number == 0)
        status = pace__prep_commit(&job->prep, &job->rank);
    if (!status && job->rank.number == 0)
        fill_result(job, result);
    return status;
}

/* --- all of it --- */

static pace_status run_passes(pace__clicks *job, pace_prep_clicks_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = read_stream(job, PACE__INPUTS);

    if (!status && job->config->common.test.count > 0)
        status = read_stream(job, PACE__TESTS);
    if (status)
        return status;
    result->parse_seconds = pace__seconds_since(start_ns);
    emit_phase(job, "read", result->parse_seconds, SUM(job, bytes_read));
    status = plan(job);
    start_ns = pace__now_ns();
    if (!status)
        status = pace__clicks_write(job);
    if (status)
        return status;
    result->write_seconds = pace__seconds_since(start_ns);
    emit_phase(job, "shuffle and write", result->write_seconds, 0);
    return finish(job, result);
}

pace_status pace__clicks_run(pace__clicks *job, pace__link *link, pace_prep_clicks_result *result)
{
    pace_status status = pace__prep_begin(&job->prep, &job->rank, link);

    job->all = calloc((size_t)job->prep.ranks, sizeof *job->all);
    if (!status && !job->all)
        status = pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    if (!status)
        pace__prep_say_memory(&job->prep, &job->rank);
    if (!status)
        status = run_passes(job, result);
    pace__prep_end(&job->prep, &job->rank, status);
    return status;
}

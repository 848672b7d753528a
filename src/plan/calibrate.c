#include "plan/calibrate.h"

#include "forecast/sample.h"
#include "threads/thread.h"

#include <math.h>

/* A run that says its speed no better than this is used, and a warning says so. */
#define TRUSTED_SPREAD 0.1
#define TRUSTED_S      1.0
#define TRUSTED_COUNT  3
/* Factors that are looked for. */
#define FACTOR_MAX   1000.0
#define FACTOR_SANE  100.0 /* beyond it, what is measured is something else */
#define HALVINGS     60
#define NETWORK_ROWS 256

/* --- factors --- */

void pace__costs_scale(pace__forecast_input *input, double columns, double steps)
{
    pace__unit_costs *costs = &input->costs;
    double *by_columns[] = {&costs->block_row, &costs->block_entry,   &costs->exact_row,  &costs->exact_entry,
                            &costs->exact_key, &costs->penalty_entry, &costs->merged_key, &costs->hot_key};
    double *by_steps[] = {&input->work.row_ns,  &input->work.fixed_ns, &costs->client_key,
                          &costs->client_float, &costs->shard_key,     &costs->shard_float,
                          &costs->replica_key,  &costs->replica_float, &costs->dense_float,
                          &costs->byte,         &costs->message,       &costs->far_message,
                          &costs->far_step};

    for (size_t i = 0; i < sizeof by_columns / sizeof *by_columns; i++)
        *by_columns[i] *= columns;
    for (size_t i = 0; i < sizeof by_steps / sizeof *by_steps; i++)
        *by_steps[i] *= steps;
}

static double scaled_rows_s(const pace__forecast_input *input, const pace__setup *setup, bool by_columns,
                            double factor)
{
    pace__forecast_input scaled = *input;

    pace__costs_scale(&scaled, by_columns ? factor : 1, by_columns ? 1 : factor);
    return pace__forecast_of(&scaled, setup).rows_s;
}

/* More cost is never more speed: the factor is found by halving what is left of its logarithm. */
double pace__factor_of(const pace__forecast_input *input, const pace__setup *setup, bool by_columns,
                       double rows_s)
{
    double low = 1 / FACTOR_MAX, high = FACTOR_MAX;

    for (int i = 0; i < HALVINGS; i++) {
        double middle = sqrt(low * high);

        if (scaled_rows_s(input, setup, by_columns, middle) > rows_s)
            low = middle;
        else
            high = middle;
    }
    return sqrt(low * high);
}

/* --- what is known without a clock --- */

static pace__machine machine_of(const pace__source *source, const pace__given *given)
{
    double was = source->history->cores > 0 ? source->history->cores : pace__cores();

    return (pace__machine){.cores = given->cores > 0 ? given->cores : was,
                           .pause_s = given->cores > 0 && given->cores != was ? 0 : source->history->pause_s,
                           .link_bytes_s = given->link_bytes_s > 0 ? given->link_bytes_s : PACE__LINK_BYTES_S,
                           .latency_s = given->latency_s > 0 ? given->latency_s : PACE__LATENCY_S};
}

static double rows_trained(const pace__job_plan *plan)
{
    return (double)pace__plan_rows_before(plan, plan->steps);
}

/* Seconds in which the chief stood still, and everyone with it, and those of the last scores. */
static void add_stops(const pace__history *history, pace__calibration *known)
{
    int chief = pace__history_role(history, "chief");
    const pace__seen_role *role = chief >= 0 ? &history->roles[chief] : NULL;

    if (role && role->count)
        known->still_s = role->samples[role->count - 1].still_s;
    if (history->step_count)
        known->still_s +=
            fmax(0, history->last_t - history->step[history->step_count - 1].t - history->profile.seconds);
}

/* --- all of it --- */

typedef struct factors {
    double log_sum[2]; /* of steps, of columns */
    int count[2];
} factors;

static bool goes_by_columns(const pace__job_plan *plan)
{
    return plan->by_columns || (plan->merges && !plan->by_steps && !plan->exact);
}

static pace_status take_run(const pace__source *source, const pace__forecast_input *input,
                            const pace_log *log, factors *found, pace__calibration *known)
{
    const pace__job_plan *plan = &source->job.plan;
    pace__measured was = pace__source_measure(source);
    pace__setup setup = pace__source_setup(source, &was);
    bool by_columns = goes_by_columns(plan);

    if (!(was.rows_s > 0))
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: too short to learn from: its records tell of less than two stretches of steps; "
                         "let it train for some seconds, or lower its --log-every",
                         source->name);
    if (was.spread > TRUSTED_SPREAD || was.seconds < TRUSTED_S || was.records < TRUSTED_COUNT)
        pace_say(log, PACE_WARN,
                 "%s: %zu record%s of %.2g s are too little to trust: %.4g rows/s, give or take %.0f %%; "
                 "predictions "
                 "are no better",
                 source->name, was.records, was.records == 1 ? "" : "s", was.seconds, was.rows_s,
                 100 * fmin(was.spread, 9.99));
    pace__forecast_input here = *input;

    here.machine.cores = source->history->cores > 0 ? source->history->cores : pace__cores();
    here.machine.pause_s = source->history->pause_s;
    double factor = pace__factor_of(&here, &setup, by_columns, was.rows_s);

    if (factor < 1 / FACTOR_SANE || factor > FACTOR_SANE)
        return pace_fail(
            log, PACE_BAD_DATA,
            "%s: %.4g rows/s in steps of %llu tell nothing of what a row costs: learn from steps of more "
            "rows (--batch)",
            source->name, was.rows_s, (unsigned long long)plan->order.batch);
    found->log_sum[by_columns] += log2(factor);
    found->count[by_columns]++;
    known->spread = fmax(known->spread, fmin(was.spread, 1));
    return PACE_OK;
}

static double mean_factor(const factors *found, int kind)
{
    int of = found->count[kind] ? kind : !kind; /* a machine that is slow in one is slow in the other */

    return exp2(found->log_sum[of] / found->count[of]);
}

pace_status pace__calibrate(pace__source *const *sources, size_t count, const pace__given *given,
                            const pace_log *log, pace__calibration *known)
{
    const pace__source *first = sources[0];
    pace__calibration made = {.rows = rows_trained(&first->job.plan)};
    factors found = {0};
    pace_status status = PACE_OK;

    made.input.work = pace__workload_of(&first->job);
    made.input.costs = pace__job_costs(&first->job);
    made.input.machine = machine_of(first, given);
    if (!pace__sample_rows(&first->job, NETWORK_ROWS, &made.input.work))
        return pace_fail(log, PACE_IO, "%s: some rows of it could not be read and computed",
                         first->job.settled.data);
    for (size_t i = 0; i < count && !status; i++)
        status = take_run(sources[i], &made.input, log, &found, &made);
    if (status)
        return status;
    made.steps = mean_factor(&found, false);
    made.columns = mean_factor(&found, true);
    pace__costs_scale(&made.input, made.columns, made.steps);
    add_stops(first->history, &made);
    made.save_every_s = first->was.config.faults.checkpoint_seconds;
    made.save_every_steps = (double)first->was.config.faults.checkpoint_every;
    *known = made;
    return PACE_OK;
}

#include "job/forecast.h"

#include <math.h>
#include <paceline/kernels.h>
#include <stdio.h>

#define NS 1e-9
/* Messages inside a host: one way, woken. */
#define HERE_S 5e-6
/* What threads that share rows lose. */
#define ROWS_SPLIT 0.95

pace__unit_costs pace__unit_costs_of(int kernels)
{
    pace__unit_costs costs = {.exact_row = 20,
                              .exact_entry = 2.2,
                              .exact_key = 20,
                              .penalty_entry = 27,
                              .client_key = 18,
                              .client_float = 1,
                              .shard_key = 9,
                              .shard_float = 1.5,
                              .replica_key = 14,
                              .replica_float = 1.5,
                              .dense_float = 2,
                              .merged_key = 30,
                              .hot_key = 12,
                              .byte = 0.6,
                              .message = 2000,
                              .far_message = 25000,
                              .threads = 0.3};

    switch (kernels) {
    case PACE_KERNELS_V4:
        costs.block_row = 12;
        costs.block_entry = 2.6;
        break;
    case PACE_KERNELS_V3:
        costs.block_row = 12;
        costs.block_entry = 3.1;
        break;
    case PACE_KERNELS_V2:
    case PACE_KERNELS_NEON:
        costs.block_row = 20;
        costs.block_entry = 5.5;
        break;
    default:
        costs.block_row = 40;
        costs.block_entry = 16;
    }
    return costs;
}

double pace__workload_keys(const pace__workload *work, double rows)
{
    double keys = work->at_rows > 0 ? work->keys * pow(rows / work->at_rows, work->power) : 0;

    return fmin(keys, work->keys_all);
}

/* --- one process --- */

/* Threads that a host can run at once; a part of one where it has less. */
static double threads_of(const pace__forecast_input *in, const pace__setup *setup)
{
    return fmin(setup->threads, in->machine.cores);
}

static double columns_speedup(const pace__forecast_input *in, double threads)
{
    return threads <= 1 ? threads : 1 + in->costs.threads * (threads - 1);
}

/* Seconds of a row where threads split the columns. */
static double column_row_s(const pace__forecast_input *in, const pace__setup *setup, double threads)
{
    const pace__unit_costs *costs = &in->costs;
    double keys = pace__workload_keys(&in->work, (double)setup->batch) / (double)setup->batch;
    double penalty = in->work.penalised ? costs->penalty_entry : 0;
    double row = setup->exact
                     ? costs->exact_row + in->work.entries * costs->exact_entry + keys * costs->exact_key
                     : costs->block_row + in->work.entries * (costs->block_entry + penalty);

    return row * NS / columns_speedup(in, threads);
}

static double rows_speedup(const pace__forecast_input *in, double threads)
{
    return in->work.one_thread ? fmin(threads, 1) : threads <= 1 ? threads : ROWS_SPLIT * threads;
}

/* Summed gradients of a step into a replica: keys of all rows, and what is dense. */
static double replica_ns(const pace__forecast_input *in, double rows)
{
    double keys = pace__workload_keys(&in->work, rows);

    return keys * (in->costs.replica_key + in->work.dim * in->costs.replica_float) +
           in->work.dense * in->costs.dense_float;
}

static pace__forecast forecast_local(const pace__forecast_input *in, const pace__setup *setup)
{
    double batch = (double)setup->batch, threads = threads_of(in, setup), step_s;

    if (in->work.by_columns)
        step_s = batch * column_row_s(in, setup, threads);
    else
        step_s =
            (batch * in->work.row_ns / rows_speedup(in, threads) + replica_ns(in, batch) / fmin(threads, 1)) *
            NS;
    return (pace__forecast){.rows_s = batch / step_s, .compute_s = step_s};
}

/* --- steps of many --- */

/* Who is where: processes go round the hosts. */
typedef struct spread {
    double workers, shards; /* of the fullest host */
    double away;            /* of a worker's shards, the part on other hosts */
} spread;

static double fullest(int processes, int hosts)
{
    return (processes + hosts - 1) / hosts;
}

static spread spread_of(const pace__setup *setup)
{
    int size = setup->workers + setup->ps, hosts = setup->hosts < size ? setup->hosts : size;
    double each = fullest(size, hosts);

    return (spread){.workers = fmin(setup->workers, each),
                    .shards = fmin(setup->ps ? setup->ps : setup->workers, each),
                    .away = 1 - 1.0 / hosts};
}

/* How many times longer so many busy threads of a host take than one alone. */
static double crowd(const pace__forecast_input *in, double busy)
{
    return fmax(1, busy / in->machine.cores);
}

/* A step of a worker's rows with shards, in parts: seconds of one core, bytes. */
typedef struct part {
    double rows_ns;         /* on one core */
    double client_ns;       /* what it does for messages */
    double shard_ns;        /* of one shard, for all workers */
    double sent, received;  /* bytes of a worker, with all shards */
    double replica_ns;      /* behind the answer */
    double dense_ns, dense; /* all-reduce of dense gradients: on one core, bytes each way */
} part;

static part part_of(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__unit_costs *costs = &in->costs;
    double rows = (double)setup->batch / setup->workers, workers = setup->workers;
    double shards = setup->ps ? setup->ps : workers, dim = in->work.dim;
    double keys = pace__workload_keys(&in->work, rows), floats;
    bool merge = setup->mode == PACE_MODE_ALLREDUCE;
    double message = setup->hosts > 1 ? costs->far_message : costs->message;
    part made = {.rows_ns = rows * in->work.row_ns};

    if (!merge) /* dense rows travel by key, too */
        keys += in->work.dense / dim;
    floats = keys * dim;
    made.client_ns = keys * costs->client_key + floats * costs->client_float + shards * message;
    made.shard_ns =
        workers / shards * (keys * costs->shard_key + floats * costs->shard_float) + workers * message;
    made.sent = keys * 4 + floats * (setup->narrow ? 2 : 4);
    made.received = floats * 4;
    if (!merge)
        return made;
    made.received = pace__workload_keys(&in->work, (double)setup->batch) * (4 + dim * 4);
    made.replica_ns = replica_ns(in, (double)setup->batch);
    if (workers > 1) {
        made.dense = 2 * 4 * in->work.dense * (workers - 1) / workers;
        made.dense_ns = in->work.dense * costs->dense_float;
    }
    return made;
}

/* Seconds that the busiest link needs for what comes and goes by key. */
static double keyed_link_s(const pace__forecast_input *in, const pace__setup *setup, const part *it,
                           const spread *at)
{
    double worker = it->sent + it->received, shards = setup->ps ? setup->ps : setup->workers;
    double both = setup->ps ? fmax(worker * at->workers, worker * setup->workers / shards * at->shards)
                            : 2 * worker * at->workers;

    return at->away > 0 ? both / 2 * at->away / in->machine.link_bytes_s : 0;
}

static double wire_ns(const pace__forecast_input *in, double bytes, const spread *at)
{
    return bytes * at->away * in->costs.byte;
}

static pace__forecast forecast_steps(const pace__forecast_input *in, const pace__setup *setup)
{
    part it = part_of(in, setup);
    spread at = spread_of(setup);
    double threads = in->work.one_thread ? 1 : fmax(1, setup->threads),
           shards = setup->ps ? setup->ps : setup->workers;
    double split = threads > 1 ? ROWS_SPLIT * threads : 1, bytes = it.sent + it.received;
    double one_ns = it.client_ns + it.replica_ns + it.dense_ns + wire_ns(in, bytes + 2 * it.dense, &at);
    double shard_ns = it.shard_ns + wire_ns(in, bytes * setup->workers / shards, &at);
    double dense_s = at.away > 0 ? it.dense * at.workers / in->machine.link_bytes_s : 0;
    bool async = setup->mode == PACE_MODE_PS_ASYNC || setup->mode == PACE_MODE_PS_SSP;
    pace__forecast made = {.network_s = keyed_link_s(in, setup, &it, &at),
                           .latency_s =
                               2 * (at.away > 0 ? in->machine.latency_s : HERE_S) * (it.dense > 0 ? 2 : 1)};

    if (async) {
        double core_ns = at.workers * (it.rows_ns + one_ns) + at.shards * shard_ns;

        made.compute_s = NS * (it.rows_ns / split + one_ns + (setup->ps ? 0 : shard_ns));
        made.shard_s = NS * shard_ns;
        double step_s =
            fmax(fmax(made.compute_s, made.shard_s), fmax(made.network_s, NS * core_ns / in->machine.cores));

        made.rows_s = (double)setup->batch / (step_s + made.latency_s);
        return made;
    }
    made.compute_s =
        NS * (it.rows_ns / split * crowd(in, at.workers * threads) + one_ns * crowd(in, at.workers));
    made.shard_s = NS * shard_ns * crowd(in, at.shards);
    /* Dense sums set out while the second half of the rows' work is done. */
    made.network_s += fmax(0, dense_s - made.compute_s / 2);
    made.rows_s = (double)setup->batch / (made.compute_s + made.shard_s + made.network_s + made.latency_s);
    return made;
}

/* --- workers that train by themselves --- */

static pace__forecast forecast_merging(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__workload *work = &in->work;
    double workers = setup->workers, rows = (double)work->order.rows;
    spread at = spread_of(setup);
    pace__rounds rounds = pace__rounds_make(&work->order, work->steps, (uint64_t)(work->entries * rows),
                                            (unsigned)setup->workers, work->exchange);
    double hot = fmin(work->keys_all, PACE__HOT_MAX), away = (workers - 1) / workers;
    double row_s = column_row_s(in, setup, setup->threads) * crowd(in, at.workers * setup->threads);
    uint64_t count, flushes;

    pace__rounds_count(&rounds, 0, work->order.rows, &count, &flushes);
    double same = fmin((double)rounds.same, rows), own = (rows - same) / workers;
    double merged = (double)flushes * pace__workload_keys(work, own / fmax(1, (double)flushes));
    double point = setup->narrow ? 4 : 8, round_bytes = 2 * point * hot * away;
    /* Two floats, or halves, and a bit of what was changed; what all have merged comes back, unless training ends there. */
    double back = (double)flushes - (work->steps <= work->order.per_epoch ? 1 : 0);
    double flush_bytes =
        (point + 1) * merged * away +
        point * fmax(0, back) * pace__workload_keys(work, rows / fmax(1, (double)flushes)) * away;
    double cpu_ns = merged * in->costs.merged_key + (double)count * hot * in->costs.hot_key +
                    wire_ns(in, (double)count * round_bytes + flush_bytes, &at);
    double link_s = at.away > 0 ? at.workers / in->machine.link_bytes_s : 0;
    pace__forecast made = {.compute_s = (same + own) * row_s,
                           .shard_s = NS * cpu_ns * crowd(in, at.workers),
                           .network_s = link_s * flush_bytes,
                           .latency_s = (double)(count + 2 * flushes) * in->machine.latency_s};

    /* Rounds travel while the next is trained. */
    made.network_s += fmax(0, link_s * (double)count * round_bytes - made.compute_s / 2);
    made.rows_s = rows / (made.compute_s + made.shard_s + made.network_s + made.latency_s);
    return made;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of networks, in the first epoch: a worker's own steps, then what they have touched, with its state, to owners and back. */
static pace__forecast forecast_averaging(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__workload *work = &in->work;
    uint64_t steps = least(work->steps, work->order.per_epoch);
    uint64_t trained = pace__steps_rows_before(&work->order, steps), count, flushes;
    double workers = setup->workers, rows = (double)trained, own = rows / workers,
           away = (workers - 1) / workers;
    double threads = work->one_thread ? 1 : fmax(1, setup->threads),
           split = threads > 1 ? ROWS_SPLIT * threads : 1;
    spread at = spread_of(setup);
    pace__rounds rounds =
        pace__rounds_of_steps(&work->order, work->steps, (unsigned)setup->workers, work->exchange);

    pace__rounds_count(&rounds, 0, trained, &count, &flushes);
    double touched = pace__workload_keys(work, own / (double)flushes);
    double merged = pace__workload_keys(work, rows / (double)flushes);
    double floats = (double)flushes * work->state, key = work->dim * floats, dense = work->dense * floats;
    double sent = (touched * key + dense) * away, received = (merged * key + dense) * away;
    double steps_ns = (double)steps * replica_ns(in, (double)setup->batch / workers);
    double merge_ns = in->costs.dense_float * (2 * (touched * key + dense) + merged * key + dense) +
                      wire_ns(in, 4 * (sent + received), &at);
    double link_s = at.away > 0 ? at.workers / in->machine.link_bytes_s : 0;
    pace__forecast made = {.compute_s = NS * (own * work->row_ns / split * crowd(in, at.workers * threads) +
                                              steps_ns * crowd(in, at.workers)),
                           .shard_s = NS * merge_ns * crowd(in, at.workers),
                           .network_s = link_s * 4 * (sent + received), /* one after the other */
                           .latency_s = (double)flushes * 2 * in->machine.latency_s};

    made.rows_s = rows / (made.compute_s + made.shard_s + made.network_s + made.latency_s);
    return made;
}

static pace__forecast forecast_local_sgd(const pace__forecast_input *in, const pace__setup *setup)
{
    if (setup->workers == 1)
        return forecast_local(in, setup);
    return in->work.by_columns ? forecast_merging(in, setup) : forecast_averaging(in, setup);
}

pace__forecast pace__forecast_of(const pace__forecast_input *input, const pace__setup *setup)
{
    switch (setup->mode) {
    case PACE_MODE_LOCAL:
        return forecast_local(input, setup);
    case PACE_MODE_LOCAL_SGD:
        return forecast_local_sgd(input, setup);
    default:
        return forecast_steps(input, setup);
    }
}

/* --- words --- */

const char *pace__rate_words(double rows_s, char text[PACE__RATE_TEXT])
{
    double unit = rows_s > 0 ? pow(10, floor(log10(rows_s)) - 1) : 1, rounded = round(rows_s / unit) * unit;
    bool millions = rounded >= 1e6;

    snprintf(text, PACE__RATE_TEXT, "%g%s", millions ? rounded / 1e6 : rounded, millions ? " million" : "");
    return text;
}

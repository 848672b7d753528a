#include "forecast/forecast.h"

#include <math.h>
#include <paceline/kernels.h>
#include <stdio.h>

#define NS 1e-9
/* Messages inside a host: one way, woken. */
#define HERE_S 5e-6
/* For a row without any, in logarithms. */
#define FEW_KEYS 0.5
/* Messages of an asynchronous step, for each of a synchronous one. */
#define ASYNC_MESSAGES 1.2
/* Of a quota, for each sum in the middle of a step and twice the workers. */
#define POOL_PAUSES 0.6
/* What threads that share rows lose. */
#define ROWS_SPLIT 0.95

pace__unit_costs pace__unit_costs_of(int kernels)
{
    pace__unit_costs costs = {.exact_row = 20,
                              .exact_entry = 2.2,
                              .exact_key = 20,
                              .penalty_entry = 27,
                              .client_key = 27,
                              .client_float = 1,
                              .shard_key = 11,
                              .shard_float = 1.3,
                              .replica_key = 9,
                              .replica_float = 1.5,
                              .dense_float = 1.2,
                              .merged_key = 30,
                              .hot_key = 12,
                              .byte = 0.8,
                              .message = 1800,
                              .far_message = 20000,
                              .far_step = 135000,
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

/* Below the first point a row brings as many keys as there. */
double pace__workload_keys(const pace__workload *work, double rows)
{
    const pace__key_point *at = work->curve, *end = work->curve + work->points;

    if (work->points == 0 || rows <= 0)
        return 0;
    if (work->points == 1 || rows <= at->rows)
        return fmin(at->keys * rows / at->rows, work->keys_all);
    while (at + 2 < end && rows > at[1].rows)
        at++;
    double before = fmax(at->keys, FEW_KEYS),
           power = log(fmax(at[1].keys, FEW_KEYS) / before) / log(at[1].rows / at->rows);

    return fmin(before * pow(rows / at->rows, power), work->keys_all);
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

/* Seconds of a step in one process, by columns or by keys. */
static double own_step_s(const pace__forecast_input *in, const pace__setup *setup, double threads)
{
    double batch = (double)setup->batch;

    if (in->work.by_columns)
        return batch * column_row_s(in, setup, threads);
    return ((in->work.fixed_ns + batch * in->work.row_ns) / rows_speedup(in, threads) +
            replica_ns(in, batch) / fmin(threads, 1)) *
           NS;
}

static pace__forecast forecast_local(const pace__forecast_input *in, const pace__setup *setup)
{
    double batch = (double)setup->batch, threads = threads_of(in, setup);
    double step_s = own_step_s(in, setup, threads);
    double cpu_s = step_s * threads;

    return (pace__forecast){.rows_s = batch / step_s,
                            .step_s = step_s,
                            .compute_s = step_s,
                            .worker_cpu_s = cpu_s,
                            .rows_cpu_s = cpu_s};
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
                    .away = setup->ps && hosts == size ? 1 : 1 - 1.0 / hosts};
}

/* How many times longer so many busy threads of a host take than one alone. */
static double crowd(const pace__forecast_input *in, double busy)
{
    return fmax(1, busy / in->machine.cores);
}

static bool is_async(const pace__setup *setup)
{
    return setup->mode == PACE_MODE_PS_ASYNC || setup->mode == PACE_MODE_PS_SSP;
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
    double away = spread_of(setup).away, message = away * costs->far_message + (1 - away) * costs->message;
    part made = {.rows_ns = in->work.fixed_ns + rows * in->work.row_ns};

    if (is_async(setup)) /* rows are asked for and reported, and keys do not always go with a push */
        message *= ASYNC_MESSAGES;

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

/* Seconds that the busiest link needs for what comes and goes by key. What synchronous workers send to a server, and its
 * answers to all of them, come one after the other; else both directions are in use. */
static double keyed_link_s(const pace__forecast_input *in, const pace__setup *setup, const part *it,
                           const spread *at)
{
    double worker = is_async(setup) && setup->ps ? fmax(it->sent, it->received) : it->sent + it->received;
    double links =
        setup->ps ? fmax(at->workers, (double)setup->workers / setup->ps * at->shards) : at->workers;

    return worker * links * at->away / in->machine.link_bytes_s;
}

static double wire_ns(const pace__forecast_input *in, double bytes, const spread *at)
{
    return bytes * at->away * in->costs.byte;
}

/* What a step takes of one core: a worker's, with its shard if it holds one; a server's. */
typedef struct load {
    double worker_s, server_s;
} load;

/* Of a pause, that a step with servers takes at the least: its messages meet hosts that stand still. */
#define LEAST_PAUSES 0.6

/* Hosts have a part of a core, in slices, and processes of their own. A stage that begins rested has a slice at once. Whatever
 * the stages, no host does more than its part; and who is woken may have used up its slice by looking for what woke it: it waits
 * for half a pause, or as long as what it has to do takes; with S servers for the last of them, which on average is S / (S + 1) of
 * a pause. Where workers hold the shards, they do one thing after the other. */
static double sliced_step_s(const pace__forecast_input *in, const load *it, double servers, double network_s)
{
    const pace__machine *machine = &in->machine;
    double worker_s = it->worker_s / machine->cores, server_s = it->server_s / machine->cores;
    double last = 2 * servers / (servers + 1);
    double stages_s = fmax(it->worker_s, worker_s - machine->pause_s) +
                      fmax(it->server_s, server_s - machine->pause_s) + network_s;
    double woken_s = fmax(worker_s, server_s) + fmin(fmin(worker_s, server_s), last * machine->pause_s / 2);

    if (it->server_s == 0)
        return worker_s + network_s;
    return fmax(last * LEAST_PAUSES * machine->pause_s, fmax(stages_s, woken_s));
}

/* The same where nobody waits for all others: half of what is woken finds something else to do, and half of what travels does so
 * meanwhile. */
static double sliced_async_s(const pace__forecast_input *in, const load *it, double network_s)
{
    const pace__machine *machine = &in->machine;
    double worker_s = it->worker_s / machine->cores, server_s = it->server_s / machine->cores;
    double busy_s = fmax(worker_s, server_s);

    return fmax(network_s, busy_s) + fmin(network_s, busy_s) / 2 +
           fmin(fmin(worker_s, server_s), machine->pause_s / 2) / 2;
}

static bool is_sliced(const pace__forecast_input *in, const pace__setup *setup)
{
    return in->machine.pause_s > 0 && in->machine.cores < 1 && setup->hosts >= setup->workers + setup->ps;
}

/* Everyone waits for the last one, and where cores come in slices for its next one; how often, grows with the workers. */
static double pools_s(const pace__forecast_input *in, const pace__setup *setup)
{
    double hop_s = setup->hosts > 1 ? in->machine.latency_s : HERE_S;
    double sliced_s = is_sliced(in, setup) ? POOL_PAUSES * in->machine.pause_s * log2(setup->workers) : 0;

    return setup->workers > 1 ? in->work.pools * fmax(2 * hop_s, sliced_s) : 0;
}

static void add_traffic(const part *it, const pace__setup *setup, const spread *at, pace__forecast *made)
{
    double shards = setup->ps ? setup->ps : setup->workers, each = setup->workers / shards;
    double serves = setup->ps ? 0 : 1; /* its own shard's traffic is a worker's, too */

    made->worker_sent = (it->sent + serves * each * it->received) * at->away + it->dense;
    made->worker_received = (it->received + serves * each * it->sent) * at->away + it->dense;
    made->worker_messages = 2 * shards * at->away * (1 + serves);
    if (setup->ps) {
        made->server_sent = each * it->received * at->away;
        made->server_received = each * it->sent * at->away;
    }
}

static pace__forecast forecast_steps(const pace__forecast_input *in, const pace__setup *setup)
{
    part it = part_of(in, setup);
    spread at = spread_of(setup);
    double threads = in->work.one_thread ? 1 : fmax(1, setup->threads),
           shards = setup->ps ? setup->ps : setup->workers;
    double split = threads > 1 ? ROWS_SPLIT * threads : 1, bytes = it.sent + it.received;
    double wakes = at.away > 0 ? in->costs.far_step : 0;
    double one_ns =
        it.client_ns + it.replica_ns + it.dense_ns + wakes + wire_ns(in, bytes + 2 * it.dense, &at);
    double shard_ns =
        it.shard_ns + wire_ns(in, bytes * setup->workers / shards, &at) + (setup->ps ? wakes : 0);
    double dense_s = at.away > 0 ? it.dense * at.workers / in->machine.link_bytes_s : 0;
    pace__forecast made = {.network_s = keyed_link_s(in, setup, &it, &at),
                           .latency_s =
                               2 * (at.away > 0 ? in->machine.latency_s : HERE_S) * (it.dense > 0 ? 2 : 1),
                           .rows_cpu_s = NS * it.rows_ns};
    load loads = {.worker_s = NS * (it.rows_ns + one_ns + (setup->ps ? 0 : shard_ns)),
                  .server_s = setup->ps ? NS * shard_ns : 0};

    add_traffic(&it, setup, &at, &made);
    made.worker_cpu_s = loads.worker_s;
    made.server_cpu_s = loads.server_s;
    if (is_async(setup)) {
        double core_ns = at.workers * (it.rows_ns + one_ns) + at.shards * shard_ns;

        made.compute_s = NS * (it.rows_ns / split + one_ns + (setup->ps ? 0 : shard_ns));
        made.shard_s = NS * shard_ns;
        made.step_s =
            fmax(fmax(made.compute_s, made.shard_s), fmax(made.network_s, NS * core_ns / in->machine.cores)) +
            made.latency_s;
        if (is_sliced(in, setup))
            made.step_s = sliced_async_s(in, &loads, made.network_s);
        made.rows_s = (double)setup->batch / made.step_s;
        return made;
    }
    made.compute_s =
        NS * (it.rows_ns / split * crowd(in, at.workers * threads) + one_ns * crowd(in, at.workers));
    made.shard_s = NS * shard_ns * crowd(in, at.shards);
    /* Dense sums set out while the second half of the rows' work is done; who has a slice of a core now and then moves few. */
    made.network_s += is_sliced(in, setup) ? dense_s : fmax(0, dense_s - made.compute_s / 2);
    made.step_s = is_sliced(in, setup) ? sliced_step_s(in, &loads, setup->ps, made.network_s)
                                       : made.compute_s + made.shard_s + made.network_s;
    made.latency_s += pools_s(in, setup);
    made.step_s += made.latency_s;
    made.rows_s = (double)setup->batch / made.step_s;
    return made;
}

/* --- workers that train by themselves --- */

/* All that it does, it does itself, one after the other. */
static void end_epoch(const pace__forecast_input *in, double rows, pace__forecast *made)
{
    made->step_s = made->compute_s + made->shard_s + made->network_s + made->latency_s;
    made->rows_s = rows / made->step_s;
    made->rows_cpu_s = made->compute_s * fmin(1, in->machine.cores);
    made->worker_cpu_s = made->rows_cpu_s + made->shard_s * fmin(1, in->machine.cores);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is looked at of a job's rows, and where it ends. */
typedef struct stretch {
    pace__steps order;
    uint64_t steps, from, to, last;
} stretch;

static stretch stretch_of(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__workload *work = &in->work;
    stretch made = {.order = pace__steps_make(work->order.rows, setup->batch), .steps = setup->steps};

    if (!made.steps) {
        uint64_t all = pace__steps_rows_before(&work->order, work->steps), rest = all % made.order.rows;

        made.steps =
            all / made.order.rows * made.order.per_epoch + (rest + made.order.batch - 1) / made.order.batch;
    }
    made.last = pace__steps_rows_before(&made.order, made.steps);
    made.to = least(setup->to ? setup->to : made.order.rows, made.last);
    made.from = setup->from < made.to ? setup->from : 0;
    return made;
}

/* Rounds and flushes of the stretch. What was under way where it begins is not counted. */
static void count_rounds(const pace__rounds *rounds, const stretch *of, uint64_t *count, uint64_t *flushes)
{
    uint64_t before, flushes_before;

    pace__rounds_count(rounds, 0, of->to, count, flushes);
    pace__rounds_count(rounds, 0, of->from, &before, &flushes_before);
    *count -= before;
    *flushes -= flushes_before;
}

static pace__forecast forecast_merging(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__workload *work = &in->work;
    stretch of = stretch_of(in, setup);
    double workers = setup->workers, epoch = (double)of.order.rows, rows = (double)(of.to - of.from);
    spread at = spread_of(setup);
    pace__rounds rounds = pace__rounds_make(&of.order, of.steps, (uint64_t)(work->entries * epoch),
                                            (unsigned)setup->workers, work->exchange, !work->by_columns);
    double hot = fmin(work->keys_all, PACE__HOT_MAX), away = (workers - 1) / workers;
    double row_s =
        own_step_s(in, setup, setup->threads) / (double)setup->batch * crowd(in, at.workers * setup->threads);
    uint64_t count, flushes;

    count_rounds(&rounds, &of, &count, &flushes);
    uint64_t start_end = least(rounds.same, of.to);
    double same = (double)(of.from < start_end ? start_end - of.from : 0), own = (rows - same) / workers;
    /* Between two flushes. */
    double between = fmin((double)rounds.flush_rows, fmin(epoch, (double)of.last));
    double merged = (double)flushes * pace__workload_keys(work, between / workers);
    double point = setup->narrow ? 4 : 8, round_bytes = 2 * point * hot * away;
    /* Two floats, or halves, and a bit of what was changed; what all have merged comes back, unless training ends there. */
    double back = (double)flushes - (flushes > 0 && of.to == of.last ? 1 : 0);
    double flush_bytes =
        (point + 1) * merged * away + point * back * pace__workload_keys(work, between) * away;
    double cpu_ns = merged * in->costs.merged_key + (double)count * hot * in->costs.hot_key +
                    wire_ns(in, (double)count * round_bytes + flush_bytes, &at);
    double link_s = at.away > 0 ? at.workers / in->machine.link_bytes_s : 0;
    pace__forecast made = {.compute_s = (same + own) * row_s,
                           .shard_s = NS * cpu_ns * crowd(in, at.workers),
                           .network_s = link_s * flush_bytes,
                           .latency_s = (double)(count + 2 * flushes) * in->machine.latency_s};

    /* Rounds travel while the next is trained. */
    made.network_s += fmax(0, link_s * (double)count * round_bytes - made.compute_s / 2);
    made.worker_sent = made.worker_received = ((double)count * round_bytes + flush_bytes) / 2;
    made.worker_messages = (double)(count + flushes) * 2 * (workers - 1);
    end_epoch(in, rows, &made);
    return made;
}

/* Of networks: a worker's own steps, then what they have touched, with its state, to owners and back. */
static pace__forecast forecast_averaging(const pace__forecast_input *in, const pace__setup *setup)
{
    const pace__workload *work = &in->work;
    stretch of = stretch_of(in, setup);
    uint64_t steps = pace__steps_of(&of.order, of.to) - pace__steps_of(&of.order, of.from), count, flushes;
    double workers = setup->workers, rows = (double)(of.to - of.from), own = rows / workers,
           away = (workers - 1) / workers;
    double threads = work->one_thread ? 1 : fmax(1, setup->threads),
           split = threads > 1 ? ROWS_SPLIT * threads : 1;
    spread at = spread_of(setup);
    pace__rounds rounds =
        pace__rounds_of_steps(&of.order, of.steps, (unsigned)setup->workers, work->exchange);

    count_rounds(&rounds, &of, &count, &flushes);
    double parts = fmax(1, (double)flushes);
    double touched = pace__workload_keys(work, own / parts);
    double merged = pace__workload_keys(work, rows / parts);
    double floats = (double)flushes * work->state, key = work->dim * floats, dense = work->dense * floats;
    double sent = (touched * key + dense) * away, received = (merged * key + dense) * away;
    double steps_ns = (double)steps * (work->fixed_ns + replica_ns(in, (double)setup->batch / workers));
    double merge_ns = in->costs.dense_float * (2 * (touched * key + dense) + merged * key + dense) +
                      wire_ns(in, 4 * (sent + received), &at);
    double link_s = at.away > 0 ? at.workers / in->machine.link_bytes_s : 0;
    pace__forecast made = {.compute_s = NS * (own * work->row_ns / split * crowd(in, at.workers * threads) +
                                              steps_ns * crowd(in, at.workers)),
                           .shard_s = NS * merge_ns * crowd(in, at.workers),
                           .network_s = link_s * 4 * (sent + received), /* one after the other */
                           .latency_s = (double)flushes * 2 * in->machine.latency_s,
                           .worker_sent = 4 * sent,
                           .worker_received = 4 * received,
                           .worker_messages = (double)flushes * 2 * (workers - 1)};

    end_epoch(in, rows, &made);
    return made;
}

static pace__forecast forecast_local_sgd(const pace__forecast_input *in, const pace__setup *setup)
{
    if (setup->workers == 1)
        return forecast_local(in, setup);
    return in->work.flows ? forecast_merging(in, setup) : forecast_averaging(in, setup);
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

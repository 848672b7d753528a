/*
 * ps_job.h - what the tests of shards, clients and snapshots share: a toy problem, a plain way to solve it,
 * and a job of workers and shards between threads that must come to the same.
 *
 * The toy: row r has five keys, the last of them the last key of all, which every row has; and it pulls each
 * of their `dim` weights towards a number of its own. A gradient depends on the weight it was computed with,
 * so one wrong weight anywhere shows at the end. With `constant` gradients are small integers instead: their
 * sums are exact in any order.
 *
 *     ps_job *job = job_open((ps_plan){.workers = 3, .shards = 2, ...});
 *     job_run(job);                              // a thread for every rank
 *     job_compare(job, &reference);
 *     job_close(job);
 *
 * Workers of asynchronous jobs may die on the way: their threads stop as if they were killed. The shards are
 * told, each in its own time, and go on without them.
 *
 * Include it behind support.h.
 */
#ifndef UNIT_PS_JOB_H
#define UNIT_PS_JOB_H

#include "math/bf16.h"
#include "net/link_internal.h"
#include "ps/client.h"
#include "ps/counter.h"
#include "ps/snapshot.h"
#include "threads/thread.h"

#include <stdatomic.h>
#include <sys/prctl.h>

#define TOY_ROW_KEYS 5
#define TOY_KEYS_MAX 256
#define TOY_MAX      1024 /* parameters: keys x dim */
#define JOB_WORKERS  4
#define JOB_SHARDS   4
#define JOB_RANKS    (JOB_WORKERS + JOB_SHARDS + 1)
#define JOB_DEPTH    PACE__DEPTH_MAX

typedef enum ps_moment {
    DIES_NEVER,
    DIES_BEFORE_PUSH,   /* with rows and their weights in hand */
    DIES_IN_PUSH,       /* some shards get it, some do not */
    DIES_AFTER_PUSH,    /* perhaps before anyone has looked at it */
    DIES_BEFORE_REPORT, /* all shards have applied it, and nobody else knows */
    DIES_AFTER_ASK,     /* rows are handed to a worker that is no more */
    DIES_MOMENTS
} ps_moment;

typedef struct ps_death {
    ps_moment moment;
    uint64_t pushes; /* that came before, at least */
    unsigned cut;    /* of DIES_IN_PUSH: bits of the shards that do not get it */
} ps_death;

typedef struct ps_plan {
    int workers, shards;
    bool on_workers;      /* shards are on the first workers, not on ranks of their own */
    bool keepers, reader; /* a keeper with every shard; one more rank, with a function of its own */
    pace__exchange exchange;
    uint64_t rows, batch, first_step, steps; /* steps: the last */
    uint64_t all_steps;                      /* that the schedule knows of; 0: the same */
    uint64_t keys;                           /* 1 .. TOY_KEYS_MAX */
    unsigned dim;                            /* parameters of a key; keys x dim is at most TOY_MAX */
    bool constant;
    int kind, schedule;
    double l1, l2; /* with dim 1, or ftrl */
    bool narrow;   /* gradients travel as bf16 */
    uint64_t staleness, gate_every;
    unsigned depth;      /* batches asked for ahead */
    uint64_t end_before; /* the chief ends the job before this step; 0: it does not */
    uint64_t seed;
    ps_death deaths[JOB_WORKERS]; /* async, shards on ranks of their own; never the chief's */
    bool patient; /* a shard hears of a death when it has dealt with all that was sent before */
} ps_plan;

/* For main: hundreds of small jobs with dozens of buffers each would spend their time clearing pages. */
static inline void small_pages(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

/* --- the toy --- */

/* A batch with room for what goes with it. */
typedef struct toy_batch {
    pace__work work;
    bool ready; /* its weights are there */
    bool asked;
    uint32_t keys[TOY_KEYS_MAX], order[TOY_KEYS_MAX], shard_start[JOB_SHARDS + 1];
    uint32_t slot_of[TOY_KEYS_MAX];
    float weights[TOY_MAX], sums[TOY_MAX]; /* (slots, dim) */
} toy_batch;

static inline uint32_t toy_key(const ps_plan *plan, uint64_t row, unsigned i)
{
    pace__random random = pace__random_at(plan->seed + i, row % plan->rows);
    double unit = pace__random_unit(&random);

    /* Small numbers are frequent. */
    return (uint32_t)(i == TOY_ROW_KEYS - 1 ? plan->keys - 1 : (uint64_t)(unit * unit * (double)plan->keys));
}

/* What a row adds to the gradient of a parameter, key x dim + its place in the key's row. */
static inline float toy_gradient(const ps_plan *plan, uint64_t row, uint64_t parameter, float weight)
{
    pace__random random = pace__random_at(plan->seed ^ 0x5eed, row * TOY_MAX + parameter);

    if (plan->constant)
        return (float)((int)pace__random_below(&random, 9) - 4);
    float wanted = (float)(pace__random_unit(&random) * 2 - 1);

    return (weight - wanted) * (float)(0.1 + pace__random_unit(&random));
}

/* The keys of the rows, each once, in the order in which they occur. */
static inline void toy_begin(const ps_plan *plan, toy_batch *batch, uint64_t first, uint64_t rows,
                             uint64_t step, uint64_t now)
{
    bool known[TOY_KEYS_MAX] = {0};

    batch->work = (pace__work){.first = first,
                               .rows = rows,
                               .step = step,
                               .now = now,
                               .loss = (double)rows,
                               .keys = batch->keys,
                               .weights = batch->weights,
                               .sums = batch->sums,
                               .order = batch->order,
                               .shard_start = batch->shard_start};
    batch->ready = batch->asked = false;
    for (uint64_t row = first; row < first + rows; row++) {
        for (unsigned i = 0; i < TOY_ROW_KEYS; i++) {
            uint32_t key = toy_key(plan, row, i);

            if (known[key])
                continue;
            known[key] = true;
            batch->slot_of[key] = batch->work.count;
            batch->keys[batch->work.count++] = key;
        }
    }
}

static inline void toy_compute(const ps_plan *plan, toy_batch *batch)
{
    const pace__work *work = &batch->work;
    unsigned dim = plan->dim;

    memset(batch->sums, 0, sizeof batch->sums);
    for (uint64_t row = work->first; row < work->first + work->rows; row++) {
        for (unsigned i = 0; i < TOY_ROW_KEYS; i++) {
            uint32_t key = toy_key(plan, row, i), slot = batch->slot_of[key];

            for (unsigned at = 0; at < dim; at++)
                batch->sums[slot * dim + at] +=
                    toy_gradient(plan, row, key * dim + at, batch->weights[slot * dim + at]);
        }
    }
}

/* --- the plain way: one array of parameters, each by itself, nobody else --- */

typedef struct reference {
    const ps_plan *plan;
    pace__steps steps;
    pace__optim optim;
    float parameters[TOY_MAX][PACE__OPTIM_WIDTH_MAX]; /* (keys x dim) */
    float sums[TOY_MAX];
    bool touched[TOY_MAX];
} reference;

static inline pace__optim plan_optim(const ps_plan *plan)
{
    return pace__optim_make(plan->kind, plan->constant ? 1 : 0.1, 0.9, plan->l1, plan->l2);
}

static inline pace__rate plan_rate(const ps_plan *plan)
{
    return (pace__rate){plan->schedule, plan->constant ? 1 : 0.1, plan->schedule ? 3 : 0,
                        plan->all_steps ? plan->all_steps : plan->steps};
}

static inline void plan_begin_step(const ps_plan *plan, pace__optim *optim, uint64_t step)
{
    pace__rate rate = plan_rate(plan);

    pace__optim_begin_step(optim, pace__schedule_lr(rate.schedule, rate.lr, rate.warmup, step, rate.steps),
                           step);
}

static inline void reference_init(reference *self, const ps_plan *plan)
{
    *self = (reference){
        .plan = plan, .steps = pace__steps_make(plan->rows, plan->batch), .optim = plan_optim(plan)};
    assert_true(plan->keys > 0 && plan->keys <= TOY_KEYS_MAX && plan->keys * plan->dim <= TOY_MAX);
    for (unsigned i = 0; i < TOY_MAX; i++)
        pace__optim_init(&self->optim, self->parameters[i]);
}

/* A key's parameters as a table has them: all the weights, then all the first floats of state, and so on. */
static inline void reference_row(const reference *self, uint64_t key, float *row)
{
    unsigned dim = self->plan->dim;

    for (unsigned part = 0; part < self->optim.width; part++) {
        for (unsigned i = 0; i < dim; i++)
            row[part * dim + i] = self->parameters[key * dim + i][part];
    }
}

/* What a worker does when it asks for weights. */
static inline void reference_read(reference *self, toy_batch *batch, uint64_t first, uint64_t rows,
                                  uint64_t step, uint64_t now)
{
    unsigned dim = self->plan->dim;

    toy_begin(self->plan, batch, first, rows, step, now);
    for (uint32_t i = 0; i < batch->work.count * dim; i++) {
        uint32_t key = batch->keys[i / dim];
        float *parameter = self->parameters[key * dim + i % dim];

        if (self->optim.lazy && key != self->plan->keys - 1)
            pace__optim_catch_up(&self->optim, parameter, now);
        batch->weights[i] = parameter[0];
    }
}

/* Some rows' gradients go into the sums. */
static inline void reference_add(reference *self, uint64_t first, uint64_t rows, uint64_t step, uint64_t now)
{
    static toy_batch batch;
    unsigned dim = self->plan->dim;

    reference_read(self, &batch, first, rows, step, now);
    toy_compute(self->plan, &batch);
    for (uint32_t i = 0; i < batch.work.count * dim; i++) {
        uint32_t at = batch.keys[i / dim] * dim + i % dim;
        float sum = self->plan->narrow ? pace__bf16_widen(pace__bf16_round(batch.sums[i])) : batch.sums[i];

        self->sums[at] = self->touched[at] ? self->sums[at] + sum : sum;
        self->touched[at] = true;
    }
}

static inline void reference_apply(reference *self, uint64_t step)
{
    bool mean = self->optim.kind == PACE_SGD || self->optim.kind == PACE_MOMENTUM;
    float scale = mean ? 1 / (float)pace__steps_rows_in(&self->steps, step) : 1;

    plan_begin_step(self->plan, &self->optim, step);
    for (unsigned i = 0; i < self->plan->keys * self->plan->dim; i++) {
        if (self->touched[i])
            pace__optim_update(&self->optim, self->parameters[i], self->sums[i] * scale);
        self->touched[i] = false;
    }
}

/* A synchronous step: the parts of all workers in their order, then one update. */
static inline void reference_step(reference *self, uint64_t step)
{
    unsigned workers = (unsigned)self->plan->workers;
    uint64_t first, rows;

    for (unsigned worker = 0; worker < workers; worker++) {
        pace__steps_slice(&self->steps, step, worker, workers, &first, &rows);
        reference_add(self, first, rows, step, pace__steps_rows_before(&self->steps, step));
    }
    reference_apply(self, step);
}

/* The weights that are asked for in a step that never comes: reading them brings them up to its first row. */
static inline void reference_read_step(reference *self, uint64_t step)
{
    static toy_batch batch;
    uint64_t now = pace__steps_rows_before(&self->steps, step);

    reference_read(self, &batch, now, pace__steps_rows_in(&self->steps, step), step, now);
}

/* All penalties up to a step. */
static inline void reference_catch_up(reference *self, uint64_t step)
{
    for (uint64_t key = 0; self->optim.lazy && key + 1 < self->plan->keys; key++) /* dim is 1 */
        pace__optim_catch_up(&self->optim, self->parameters[key],
                             pace__steps_rows_before(&self->steps, step));
}

/* --- a job --- */

struct ps_job;

typedef struct ps_rank {
    struct ps_job *job;
    pace__link *link;
    int rank;
    /* Of a shard. */
    pace__shard *shard;
    pace__keeper *keeper;
    pace__counter *counter;
    /* Of a worker: batches in line, the oldest in front. */
    pace__client *client;
    pace__asker asker;
    toy_batch batches[JOB_DEPTH + 1];
    unsigned front, held;
    uint64_t next_step;
    bool no_more;
    uint64_t pushed, gates; /* pushes of this worker, gates it stood at */
    uint64_t pushed_rows;
    pace__answer last; /* answer */
    /* Losses. */
    bool dead;
    uint64_t cut_rows;            /* of the push in which it died */
    pace__carrier cut;            /* of a link that loses messages */
    unsigned told;                /* bits of the workers that this rank goes on without */
    uint64_t delays[JOB_WORKERS]; /* turns until it hears of a death */
    uint64_t again_rows;          /* that the counter hands out again */
} ps_rank;

typedef struct ps_job {
    ps_plan plan;
    pace__steps steps;
    int size, first_shard;
    void (*read)(struct ps_job *job, ps_rank *self); /* the reader's */
    void *read_arg;
    ps_rank ranks[JOB_RANKS];
    atomic_int working; /* workers that have not ended, and the reader */
    atomic_uint dead;   /* bits of workers */
} ps_job;

static inline pace__shard_plan job_shard_plan(const ps_plan *plan, int shard)
{
    return (pace__shard_plan){
        .table = {plan->keys, plan->dim, (unsigned)shard, (unsigned)plan->shards,
                  plan->exchange != PACE__EXCHANGE_ASYNC, plan_optim(plan)},
        .exchange = plan->exchange,
        .workers = plan->workers,
        .steps = pace__steps_make(plan->rows, plan->batch),
        .first_step = plan->first_step,
        .rate = plan_rate(plan),
        .keys_max = (size_t)(plan->keys / (unsigned)plan->shards + 1),
        .narrow = plan->narrow,
    };
}

static inline pace__client_plan job_client_plan(const ps_plan *plan)
{
    return (pace__client_plan){.shards = plan->shards,
                               .first_rank = plan->on_workers ? 0 : plan->workers,
                               .exchange = plan->exchange,
                               .keys = plan->keys,
                               .keys_max = plan->keys,
                               .dim = plan->dim,
                               .narrow = plan->narrow};
}

static inline uint64_t job_shard_step(const void *shard)
{
    return pace__shard_step(shard);
}

/* Goes on without the workers that have died. `busy`: messages came in this turn. */
static inline void job_hear_of(ps_rank *self, unsigned dead, bool busy)
{
    for (int worker = 1; worker < self->job->plan.workers; worker++) {
        if (!(dead >> worker & 1) || (self->job->plan.patient ? busy : self->delays[worker]-- > 0))
            continue;
        self->told |= 1u << worker;
        pace__link_lose(self->link, worker);
        if (self->shard)
            pace__shard_lose(self->shard, worker);
        if (self->counter)
            self->again_rows += pace__counter_lose(self->counter, worker);
    }
}

static inline pace_status job_serve(void *user, bool *busy)
{
    ps_rank *self = user;
    unsigned dead = atomic_load(&self->job->dead) & ~self->told; /* before looking for its last messages */
    bool worked = false;
    pace_status status = self->shard ? pace__shard_poll(self->shard, &worked) : PACE_OK;

    if (!status && self->keeper)
        status = pace__keeper_poll(self->keeper, &worked);
    if (!status && self->counter)
        status = pace__counter_poll(self->counter, &worked);
    if (!status && dead && (self->shard || self->rank == 0))
        job_hear_of(self, dead, worked);
    *busy |= worked;
    return status;
}

static inline void job_open_shard(ps_job *job, int shard)
{
    ps_rank *self = &job->ranks[job->first_shard + shard];
    pace__shard_plan plan = job_shard_plan(&job->plan, shard);

    assert_ok(pace__shard_create(self->link, &plan, &said_log, &self->shard));
    if (job->plan.keepers) {
        pace__keeper_plan keeper = {.table = pace__shard_table(self->shard),
                                    .steps = job->steps,
                                    .exact_steps = job->plan.exchange == PACE__EXCHANGE_SYNC,
                                    .step = job_shard_step,
                                    .user = self->shard};

        assert_ok(pace__keeper_create(self->link, &keeper, &said_log, &self->keeper));
    }
    if (shard == 0 && job->plan.exchange == PACE__EXCHANGE_ASYNC) {
        static pace__tickets tickets;

        pace__tickets_init(&tickets, &job->steps, (unsigned)job->plan.workers, job->plan.first_step,
                           job->plan.steps, job->plan.staleness, (uint64_t[2]){job->plan.gate_every, 0});
        assert_ok(pace__counter_create(self->link, job->plan.workers, &tickets, &said_log, &self->counter));
    }
}

static inline ps_job *job_open(ps_plan plan)
{
    ps_job *job = tiny_alloc(sizeof *job);
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    pace__client_plan client = job_client_plan(&plan);
    pace__link *links[JOB_RANKS];

    said_clear();
    job->plan = plan;
    job->steps = pace__steps_make(plan.rows, plan.batch);
    job->first_shard = client.first_rank;
    job->size = plan.workers + (plan.on_workers ? 0 : plan.shards) + plan.reader;
    assert_true(plan.shards <= (plan.on_workers ? plan.workers : JOB_SHARDS));
    assert_ok(pace__link_open_threads(job->size, plan.workers, &options, links));
    for (int rank = 0; rank < job->size; rank++) {
        ps_rank *self = &job->ranks[rank];

        *self = (ps_rank){.job = job, .link = links[rank], .rank = rank, .next_step = plan.first_step};
        pace__link_on_idle(self->link, job_serve, self);
        for (int worker = 0; worker < plan.workers; worker++)
            self->delays[worker] = pace__mix64(plan.seed + (uint64_t)(rank * JOB_WORKERS + worker)) % 100;
        if (rank >= plan.workers)
            continue;
        assert_ok(pace__client_create(self->link, &client, &said_log, &self->client));
        pace__asker_init(&self->asker, self->link, job->first_shard);
    }
    for (int shard = 0; shard < plan.shards; shard++)
        job_open_shard(job, shard);
    return job;
}

/* What a dead worker has left under way: nobody answers any more. */
static inline void job_bury(ps_rank *self)
{
    for (int rank = 0; rank < self->job->size; rank++) {
        if (rank != self->rank)
            pace__link_lose(self->link, rank);
    }
    pace__asker_close(&self->asker);
}

static inline void job_close(ps_job *job)
{
    for (int rank = 0; rank < job->size; rank++) {
        ps_rank *self = &job->ranks[rank];

        pace__link_on_idle(self->link, NULL, NULL);
        if (self->dead)
            job_bury(self);
        pace__client_free(self->client);
        pace__counter_free(self->counter);
        pace__keeper_free(self->keeper);
        pace__shard_free(self->shard);
    }
    for (int rank = 0; rank < job->size; rank++)
        pace__link_close(job->ranks[rank].link);
    free(job);
}

/* --- a worker that dies --- */

static inline bool job_dies(ps_rank *self, ps_moment now)
{
    const ps_death *death = &self->job->plan.deaths[self->rank];

    if (death->moment != now || self->pushed < death->pushes)
        return false;
    self->dead = true;
    atomic_fetch_or(&self->job->dead, 1u << self->rank);
    return true;
}

/* The carrier's send, but for what never leaves. */
static inline void job_cut_send(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                                pace__request *request)
{
    const ps_rank *self = link->idle_user;
    const ps_job *job = self->job;
    const pace__carrier *whole = job->ranks[0].link->carrier;

    request->native = 0; /* of a message that is never over */
    if (tag != PACE__TAG_PUSH || !(job->plan.deaths[self->rank].cut >> (peer - job->first_shard) & 1))
        whole->send(link, peer, tag, bytes, size, request);
}

static inline bool job_dies_in(ps_rank *self)
{
    const ps_death *death = &self->job->plan.deaths[self->rank];

    if (death->moment != DIES_IN_PUSH || self->pushed < death->pushes)
        return false;
    self->cut = *self->link->carrier;
    self->cut.send = job_cut_send;
    self->link->carrier = &self->cut;
    return true;
}

/* --- a worker that asks for weights --- */

static inline toy_batch *job_batch(ps_rank *self, unsigned place)
{
    return &self->batches[(self->front + place) % (self->job->plan.depth + 1)];
}

/* The chief stands at a gate alone: every row before it is applied, on the shard that counts at least. */
static inline void job_at_gate(ps_rank *self, const pace__ticket *ticket)
{
    pace__answer answer;

    require(self->rank == 0 && self->held == 0 && pace__client_pending(self->client) == 0);
    require(pace__client_send(self->client, NULL, NULL, false) == PACE_OK);
    require(pace__client_wait(self->client, &answer) == PACE_OK);
    require(answer.rows_done == pace__steps_rows_before(&self->job->steps, ticket->step));
    require(pace__asker_send(&self->asker, PACE__ASK_PASS) == PACE_OK);
    self->gates++;
}

static inline bool job_take_rows(ps_rank *self)
{
    const ps_plan *plan = &self->job->plan;
    const pace__steps *steps = &self->job->steps;
    toy_batch *batch = job_batch(self, self->held);
    pace__ticket ticket = {PACE__TICKET_END, 0, 0, self->next_step};
    bool got = false;

    if (self->no_more || self->held > plan->depth)
        return false;
    if (plan->exchange == PACE__EXCHANGE_SYNC) {
        got = true;
        if (self->next_step < plan->steps) {
            ticket.kind = PACE__TICKET_ROWS;
            pace__steps_slice(steps, self->next_step++, (unsigned)self->rank, (unsigned)plan->workers,
                              &ticket.first, &ticket.rows);
        }
    } else {
        require(pace__asker_poll(&self->asker, &got, &ticket) == PACE_OK);
        if (!got && !self->asker.waiting) {
            require(pace__asker_send(&self->asker, PACE__ASK_TICKET) == PACE_OK);
            job_dies(self, DIES_AFTER_ASK);
        }
    }
    if (got && ticket.kind == PACE__TICKET_GATE)
        job_at_gate(self, &ticket);
    self->no_more = got && ticket.kind == PACE__TICKET_END;
    if (!got || ticket.kind != PACE__TICKET_ROWS)
        return got;
    toy_begin(plan, batch, ticket.first, ticket.rows, ticket.step,
              plan->exchange == PACE__EXCHANGE_SYNC ? pace__steps_rows_before(steps, ticket.step)
                                                    : ticket.first);
    self->held++;
    return true;
}

static inline bool job_take_answer(ps_rank *self)
{
    const ps_plan *plan = &self->job->plan;
    pace__answer answer;
    bool answered;

    require(pace__client_poll(self->client, &answered, &answer) == PACE_OK);
    if (!answered)
        return false;
    self->last = answer;
    if (answer.end) {
        self->no_more = true;
        self->held = 0;
        return true;
    }
    if (answer.next) {
        ((toy_batch *)answer.next)->ready = true;
        if (plan->exchange == PACE__EXCHANGE_ASYNC && answer.next->step > plan->staleness)
            require(answer.rows_done >=
                    pace__steps_rows_before(&self->job->steps, answer.next->step - plan->staleness));
    }
    if (answer.applied && plan->exchange == PACE__EXCHANGE_ASYNC) {
        if (pace__asker_full(&self->asker))
            require(pace__asker_send(&self->asker, 0) == PACE_OK);
        pace__asker_done(&self->asker, answer.first, answer.rows);
        job_dies(self, DIES_BEFORE_REPORT);
    }
    return true;
}

/* Pushes the batch in front if its weights are there, together with the keys of the next that has none. */
static inline bool job_push(ps_rank *self)
{
    const ps_plan *plan = &self->job->plan;
    toy_batch *front = job_batch(self, 0), *next = NULL;
    unsigned asked = 0;

    if (self->held == 0 || pace__client_pending(self->client) == PACE__CLIENT_PENDING_MAX)
        return false;
    for (unsigned i = self->held; i-- > 0;) {
        toy_batch *batch = job_batch(self, i);

        asked += batch->asked;
        next = batch->asked ? next : batch;
    }
    if (!front->ready && (!next || asked == plan->depth))
        return false;
    if (next)
        next->asked = true;
    if (!front->ready) {
        require(pace__client_send(self->client, NULL, &next->work, false) == PACE_OK);
        return true;
    }
    bool end = plan->end_before && self->rank == 0 && front->work.step == plan->end_before;

    if (job_dies(self, DIES_BEFORE_PUSH))
        return true;
    bool cut = job_dies_in(self);

    toy_compute(plan, front);
    if (end)
        require(pace__client_send(self->client, &(pace__work){.step = front->work.step}, NULL, true) ==
                PACE_OK);
    else
        require(pace__client_send(self->client, &front->work, next ? &next->work : NULL, false) == PACE_OK);
    self->pushed += !end;
    self->pushed_rows += end ? 0 : front->work.rows;
    self->cut_rows = cut ? front->work.rows : 0;
    job_dies(self, cut ? DIES_IN_PUSH : DIES_AFTER_PUSH);
    self->front = (self->front + 1) % (plan->depth + 1);
    self->held = end ? 0 : self->held - 1;
    self->no_more |= end;
    return true;
}

static inline void job_work(ps_rank *self)
{
    pace__random random = pace__random_at(self->job->plan.seed, 77 + (uint64_t)self->rank);
    unsigned turns = 0;

    while (!self->no_more || self->held > 0 || pace__client_pending(self->client) > 0 ||
           self->asker.next.reports > 0) {
        bool busy = false;

        require(job_serve(self, &busy) == PACE_OK);
        busy |= job_take_answer(self);
        if (pace__random_below(&random, 3) && !self->dead)
            busy |= job_take_rows(self);
        if (pace__random_below(&random, 3) && !self->dead)
            busy |= job_push(self);
        if (self->dead)
            return;
        if (busy) {
            turns = 0;
        } else if (self->asker.next.reports > 0 && pace__client_pending(self->client) == 0) {
            require(pace__asker_send(&self->asker, 0) == PACE_OK);
        } else {
            require(pace__link_turn(self->link, &self->job->first_shard, 1, "anything", &turns) == PACE_OK);
        }
    }
    pace__asker_close(&self->asker);
}

/* --- a worker that has a replica --- */

static inline void job_update_replica(ps_rank *self, pace__table *replica, uint64_t step)
{
    const ps_plan *plan = &self->job->plan;
    uint64_t now = pace__steps_rows_before(&self->job->steps, step);
    bool mean = plan->kind == PACE_SGD || plan->kind == PACE_MOMENTUM;
    float scale = mean ? 1 / (float)pace__steps_rows_in(&self->job->steps, step) : 1;
    const float *sums;
    uint32_t *places;

    for (int shard = 0; shard < plan->shards; shard++) {
        uint32_t count = pace__client_merged(self->client, shard, &sums, &places);

        for (uint32_t i = 0; i < count; i++)
            places[i] = places[i] * (uint32_t)plan->shards + (uint32_t)shard;
        require(pace__table_places_valid(replica, places, count));
        /* Before the step's rate is set, as those keys were that this worker has asked for itself. */
        pace__table_catch_up(replica, places, count, now);
    }
    plan_begin_step(plan, &replica->optim, step);
    for (int shard = 0; shard < plan->shards; shard++) {
        uint32_t count = pace__client_merged(self->client, shard, &sums, &places);

        pace__table_update(replica, places, sums, count, scale);
    }
}

static inline void job_work_with(ps_rank *self, pace__table *replica)
{
    const ps_plan *plan = &self->job->plan;
    toy_batch *batch = &self->batches[0];
    uint64_t first, rows;

    for (uint64_t step = plan->first_step; step < plan->steps && !self->last.end; step++) {
        uint64_t now = pace__steps_rows_before(&self->job->steps, step);
        bool end = plan->end_before && step == plan->end_before && self->rank == 0;

        pace__steps_slice(&self->job->steps, step, (unsigned)self->rank, (unsigned)plan->workers, &first,
                          &rows);
        toy_begin(plan, batch, first, rows, step, now);
        pace__table_weights(replica, batch->keys, batch->work.count, now, batch->weights);
        toy_compute(plan, batch);
        require(pace__client_send(self->client, end ? &(pace__work){.step = step} : &batch->work, NULL,
                                  end) == PACE_OK);
        require(pace__client_wait(self->client, &self->last) == PACE_OK);
        require(self->last.applied == !self->last.end);
        if (!self->last.end)
            job_update_replica(self, replica, step);
    }
}

/* Every worker must come to what read_arg is, once all penalties are applied. */
static inline void job_merge(ps_rank *self)
{
    const ps_plan *plan = &self->job->plan;
    pace__table_plan whole = {.keys = plan->keys, .dim = plan->dim, .shards = 1, .optim = plan_optim(plan)};
    pace__table replica;

    require(pace__table_init(&replica, &whole, &said_log) == PACE_OK);
    job_work_with(self, &replica);
    const reference *expected = self->job->read_arg;
    float row[TOY_MAX * PACE__OPTIM_WIDTH_MAX];
    uint64_t now =
        pace__steps_rows_before(&self->job->steps, plan->end_before ? plan->end_before : plan->steps);

    for (uint32_t key = 0; key < plan->keys; key++) {
        pace__table_catch_up(&replica, &key, 1, now);
        reference_row(expected, key, row);
        require(memcmp(replica.records + (size_t)key * replica.stride, row, replica.floats * sizeof(float)) ==
                0);
    }
    pace__table_release(&replica);
}

/* --- threads --- */

static inline pace_status job_thread(void *arg, int rank)
{
    ps_job *job = arg;
    ps_rank *self = &job->ranks[rank];
    unsigned turns = 0;

    if (rank < job->plan.workers && job->plan.exchange == PACE__EXCHANGE_MERGE)
        job_merge(self);
    else if (rank < job->plan.workers)
        job_work(self);
    else if (job->plan.reader && rank == job->size - 1)
        job->read(job, self);
    else
        atomic_fetch_add(&job->working, 1);
    atomic_fetch_sub(&job->working, 1);
    if (self->dead)
        return PACE_OK;
    /* Shards go on until they have heard of every death. */
    while (atomic_load(&job->working) > 0 || (self->shard && (atomic_load(&job->dead) & ~self->told)))
        require(pace__link_turn(self->link, NULL, 0, "the end", &turns) == PACE_OK);
    return PACE_OK;
}

static inline void job_run(ps_job *job)
{
    atomic_store(&job->working, job->plan.workers + job->plan.reader);
    assert_ok(pace__team(job->size, job_thread, job, &said_log));
    assert_string_equal(said, "");
}

/* Bit for bit. */
static inline void job_compare(const ps_job *job, const reference *expected)
{
    unsigned shards = (unsigned)job->plan.shards;
    float found[TOY_MAX * PACE__OPTIM_WIDTH_MAX], row[TOY_MAX * PACE__OPTIM_WIDTH_MAX];

    for (uint32_t key = 0; key < job->plan.keys; key++) {
        pace__table *table = pace__shard_table(job->ranks[job->first_shard + (int)(key % shards)].shard);

        pace__table_read(table, key / shards, 1, found);
        reference_row(expected, key, row);
        assert_memory_equal(found, row, table->floats * sizeof(float));
    }
}

#endif

/*
 * A worker: takes rows, asks for the weights of their keys, computes gradients, pushes them.
 *
 * Batches stand in a short line, the oldest in front:
 *
 *     [reading ->] prepared -> asked -> ready -> computed and pushed, at once
 *
 * One message carries the gradients of the batch in front and the keys of the next prepared one. While
 * weights travel, the next rows are read and their keys found. `depth` batches may be asked for or ready:
 *     sync    1: the weights of a step exist only when the step before is applied; so what overlaps is
 *             finding keys.
 *     async   2: weights of the next batch travel while this one is computed, at the price of being one push
 *             of one's own older.
 * In allreduce every worker has a replica: nothing is asked for, and a batch is ready when all steps before
 * it are applied. Gradients of sparse rows are merged by key (ps/shard.h); those of dense ones are summed in
 * buckets (buckets.h). Mode local is an allreduce of one.
 */
#include "base/clock.h"
#include "base/kept.h"
#include "base/memory.h"
#include "data/store/slice.h"
#include "roles/buckets.h"
#include "roles/pool.h"
#include "roles/process.h"
#include "threads/background.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BATCHES (PACE__DEPTH_MAX + 1)

typedef enum batch_state { READING, PREPARED, ASKED, READY } batch_state;

typedef struct batch {
    batch_state state;
    pace__model *model; /* the worker's */
    /* Of reading. What goes wrong is kept: the log belongs to the worker's thread. */
    pace_status status;
    pace__kept kept;
    char reason[PACE_LOG_TEXT_MAX];
    uint64_t read_ns, found_ns;
    pace__slice slice;
    pace__model_batch found;
    pace__work work;
} batch;

typedef struct worker {
    pace__process *process;
    pace__job *job;
    pace__link *link;
    pace__boundary *boundary; /* the chief's; NULL: another worker */
    pace__client *client;
    pace__model *model;
    size_t keys_max;
    pace__buckets dense;     /* allreduce of a model with dense parameters */
    pace__pool pool;         /* sync, of a model that adds up things in the middle of a step */
    pace__background *ahead; /* pictures: reads the next rows while others are computed on */
    uint64_t served_ns;      /* in the gradient under way */
    unsigned depth;
    int *peers; /* (workers) whom it waits for */

    batch batches[LINE_MAX_BATCHES];
    unsigned front, held; /* the line */
    uint64_t next_step;   /* sync: whose rows are taken next */
    pace__asker asker;    /* async */
    bool gate_asked;      /* the chief wants a clean state: to stop, or to save */
    bool no_more;         /* rows are out */
    bool ended;           /* before the last step */
    pace_status end_status;
    uint64_t booked_rows; /* the chief: in the books so far */
    double booked_loss;
    uint64_t reported_step;
    pace__times times; /* all of them, since the start; the books get the differences */
} worker;

/* --- life --- */

static size_t work_bytes(const worker *self)
{
    return (self->keys_max + 1) * self->job->plan.model.shape.dim * sizeof(float);
}

static size_t order_bytes(const worker *self)
{
    return (self->keys_max + 1) * sizeof(uint32_t);
}

static pace_status open_batch(worker *self, batch *item)
{
    pace__job *job = self->job;
    item->model = self->model;
    pace__kept_init(&item->kept, item->reason, sizeof item->reason);
    pace_status status = pace__slice_init(&item->slice, &job->store, PACE__TRAIN, job->config->seed,
                                          job->plan.rows_max, &item->kept.log);

    if (status)
        pace_say(job->log, PACE_ERROR, "%s", item->reason);
    item->work.weights = pace__pages_alloc(work_bytes(self));
    item->work.sums = pace__pages_alloc(work_bytes(self));
    item->work.order = pace__pages_alloc(order_bytes(self));
    item->work.shard_start =
        calloc((size_t)pace__shards(&job->plan.cluster) + 1, sizeof *item->work.shard_start);
    if (!status && (!item->work.weights || !item->work.sums || !item->work.order || !item->work.shard_start))
        status = pace_fail(job->log, PACE_FAILED, "out of memory for a batch");
    return status;
}

static void close_batch(worker *self, batch *item)
{
    free(item->work.shard_start);
    pace__pages_free(item->work.order, order_bytes(self));
    pace__pages_free(item->work.sums, work_bytes(self));
    pace__pages_free(item->work.weights, work_bytes(self));
    pace__model_batch_release(&item->found);
    pace__slice_release(&item->slice);
}

/* In asynchronous modes no other worker is at the same step. */
static bool pools(const worker *self)
{
    const pace__job *job = self->job;

    return pace__plan_is_sync(&self->job->plan) && job->plan.cluster.workers > 1 && job->plan.model.pools;
}

static pace_status open_worker(worker *self)
{
    pace__job *job = self->job;
    pace__client_plan plan = pace__plan_client(&job->plan);
    bool reduces = pace__plan_has_replicas(&self->job->plan) && job->plan.model.shape.dense_rows > 0;
    pace_status status = pace__client_create(self->link, &plan, job->log, &self->client);

    self->keys_max = plan.keys_max;
    self->depth = job->plan.depth;
    self->next_step = self->reported_step = job->position.step;
    self->booked_rows = pace__plan_rows_before(&job->plan, job->position.step);
    pace__asker_init(&self->asker, self->link, pace__shard_rank(&job->plan.cluster, 0));
    self->peers = calloc((size_t)job->plan.cluster.workers, sizeof *self->peers);
    if (!status && !self->peers)
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    if (!status)
        status = pace__model_create(&job->plan.model, job->plan.rows_max, job->plan.threads, false, job->log,
                                    &self->model);
    if (!status && reduces)
        status = pace__buckets_open(&self->dense, job, self->link);
    if (!status && pools(self))
        status = pace__pool_open(&self->pool, job->plan.cluster.workers, self->link, job->log);
    if (!status && job->store.info.encoding.kind == PACE__IMAGE)
        status = pace__background_create(job->log, &self->ahead);
    for (unsigned i = 0; i <= self->depth && !status; i++)
        status = open_batch(self, &self->batches[i]);
    return status;
}

static void close_worker(worker *self)
{
    pace__background_free(self->ahead);
    pace__pool_close(&self->pool);
    for (unsigned i = 0; i <= self->depth; i++)
        close_batch(self, &self->batches[i]);
    pace__model_free(self->model);
    pace__asker_close(&self->asker);
    pace__client_free(self->client);
    pace__buckets_close(&self->dense);
    free(self->peers);
}

/* --- the line --- */

static batch *in_line(worker *self, unsigned place)
{
    return &self->batches[(self->front + place) % (self->depth + 1)];
}

static batch *first_prepared(worker *self)
{
    for (unsigned i = 0; i < self->held; i++) {
        if (in_line(self, i)->state == PREPARED)
            return in_line(self, i);
    }
    return NULL;
}

/* --- taking rows --- */

/* Reads its rows and finds their keys; perhaps on a thread of its own. */
static void read_rows(void *arg)
{
    batch *item = arg;
    uint64_t start_ns = pace__now_ns();

    item->status = pace__slice_read(&item->slice, item->work.first, item->work.rows);
    item->read_ns = pace__now_ns() - start_ns;
    if (!item->status)
        item->status = pace__model_find(item->model, &item->slice.rows, item->work.first, &item->found);
    item->found_ns = pace__now_ns() - start_ns - item->read_ns;
}

static pace_status take_read(worker *self, batch *item)
{
    item->state = PREPARED;
    item->work.count = self->dense.reduce ? item->found.sparse : item->found.keys.count;
    item->work.keys = item->found.keys.keys;
    if (item->status) /* what is wrong with the rows of this step, not of the one that is computed on */
        self->process->self.step = item->work.step;
    if (item->reason[0])
        pace_say(self->job->log, PACE_ERROR, "%s", item->reason);
    return item->status;
}

static pace_status prepare(worker *self, uint64_t first, uint64_t rows, uint64_t step)
{
    batch *item = in_line(self, self->held);

    item->work.first = first;
    item->work.rows = rows;
    item->work.step = step;
    item->work.now =
        pace__plan_is_sync(&self->job->plan) ? pace__plan_rows_before(&self->job->plan, step) : first;
    self->held++;
    if (self->ahead) {
        item->state = READING;
        pace__background_start(self->ahead, read_rows, item);
        return PACE_OK;
    }
    self->process->self.step = step;
    read_rows(item);
    self->times.data_ns += item->read_ns;
    self->times.compute_ns += item->found_ns;
    return take_read(self, item);
}

/* The batch that is being read, if any: the last one in line. */
static batch *being_read(worker *self)
{
    batch *last = self->held > 0 ? in_line(self, self->held - 1) : NULL;

    return last && last->state == READING ? last : NULL;
}

static pace_status look_at_reading(worker *self, bool *busy)
{
    batch *item = being_read(self);

    if (!item || !pace__background_idle(self->ahead))
        return PACE_OK;
    *busy = true;
    return take_read(self, item);
}

/* Sync: every step's part is known beforehand, and the disk can be asked for the one after next. */
static pace_status take_step(worker *self)
{
    const pace__job *job = self->job;
    int index = self->process->self.number;
    uint64_t step = self->next_step, first, rows, later_first, later_rows;

    if (step == job->plan.steps) {
        self->no_more = true;
        return PACE_OK;
    }
    self->next_step++;
    pace__plan_slice(&job->plan, step, index, &first, &rows);
    pace_status status = prepare(self, first, rows, step);

    if (!status && !self->ahead && step + 2 < job->plan.steps) {
        pace__plan_slice(&job->plan, step + 2, index, &later_first, &later_rows);
        pace__slice_ask(&in_line(self, self->held - 1)->slice, later_first, later_rows);
    }
    return status;
}

/* The chief stands alone at a gate: every row before it is applied, and none behind it is handed out. */
static pace_status act_at_gate(worker *self, uint64_t step)
{
    pace_status status = pace__boundary_report(self->boundary, step);

    if (!status)
        status = pace__boundary_act(self->boundary, step);
    self->reported_step = step;
    self->gate_asked = false;
    if (status && status != PACE_INTERRUPTED)
        return status;
    self->ended = self->boundary->ended || status == PACE_INTERRUPTED;
    self->end_status = status;
    self->no_more = self->ended;
    return pace__asker_send(&self->asker, self->ended ? PACE__ASK_END : PACE__ASK_PASS);
}

static pace_status take_ticket(worker *self, bool *busy)
{
    pace__ticket ticket;
    bool got;
    pace_status status = pace__asker_poll(&self->asker, &got, &ticket);

    if (status || !got)
        return status;
    *busy = true;
    if (ticket.kind == PACE__TICKET_GATE)
        return act_at_gate(self, ticket.step);
    if (ticket.kind == PACE__TICKET_END)
        self->no_more = true;
    else
        status = prepare(self, ticket.first, ticket.rows, ticket.step);
    return status;
}

static pace_status take_rows(worker *self, bool *busy)
{
    if (self->no_more || self->held > self->depth || being_read(self))
        return PACE_OK;
    if (pace__plan_is_sync(&self->job->plan)) {
        *busy = true;
        return take_step(self);
    }
    pace_status status = take_ticket(self, busy);

    if (!status && !self->no_more && !self->asker.waiting && self->held <= self->depth)
        status = pace__asker_send(&self->asker, PACE__ASK_TICKET);
    return status;
}

/* --- computing --- */

/* In the middle of a gradient. */
static pace_status look_up(void *user, size_t first)
{
    worker *self = user;
    uint64_t start_ns = pace__now_ns();
    bool busy = false;
    pace_status status = pace__process_serve(self->process, &busy);

    if (!status && self->dense.reduce)
        status = pace__buckets_start(&self->dense, first);
    if (!status) /* a step may take longer than a deadline */
        status = pace__link_pulse(self->link);
    self->served_ns += pace__now_ns() - start_ns;
    return status;
}

static pace_status pool(void *user, float *values, size_t count)
{
    worker *self = user;
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__pool_sum(&self->pool, values, count);

    self->served_ns += pace__now_ns() - start_ns;
    return status;
}

/* Before a step whose workers will wait for each other: does the chief want it at all? */
static pace_status agree(worker *self, bool end, bool *ended)
{
    float votes = end;
    pace_status status = self->pool.reduce ? pace__pool_sum(&self->pool, &votes, 1) : PACE_OK;

    *ended = votes > 0;
    return status;
}

static bool clips(const worker *self)
{
    return self->job->plan.model.clip > 0;
}

/* What a sum over `rows` rows is multiplied with, so that the norm of its mean is at most --clip. */
static float clip_factor(const worker *self, double squares, uint64_t rows)
{
    double norm = sqrt(squares) / (double)rows, most = self->job->plan.model.clip;

    return clips(self) && norm > most ? (float)(most / norm) : 1;
}

/* Several sums side by side: one addition would have to wait for the one before it. */
static double sum_of_squares(const float *values, size_t count)
{
    double sums[8] = {0}, sum = 0;
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        for (size_t lane = 0; lane < 8; lane++)
            sums[lane] += (double)values[i + lane] * values[i + lane];
    for (; i < count; i++)
        sum += (double)values[i] * values[i];
    for (size_t lane = 0; lane < 8; lane++)
        sum += sums[lane];
    return sum;
}

/* Servers see only parts of a gradient: a worker clips its own share of the step. */
static void clip_work(const worker *self, pace__work *work)
{
    const pace__shape *shape = &self->job->plan.model.shape;
    size_t stats = (size_t)shape->stats_rows * shape->dim, count = (size_t)work->count * shape->dim - stats;
    float *sums = work->sums + stats; /* models with statistics have nothing in front of them */

    if (!clips(self) || work->rows == 0)
        return;
    float factor = clip_factor(self, sum_of_squares(sums, count), work->rows);

    for (size_t i = 0; factor < 1 && i < count; i++)
        sums[i] *= factor;
}

static pace_status compute(worker *self, batch *item)
{
    pace__work *work = &item->work;
    const pace__steps *order = &self->job->plan.order;
    bool ended, sync = pace__plan_is_sync(&self->job->plan);
    pace_status status = agree(self, false, &ended);
    uint64_t start_ns = pace__now_ns(), rows = ended ? 0 : item->work.rows;
    pace__task task = {.batch = &item->found,
                       .place = work->first,
                       .weights = work->weights,
                       .sums = work->sums,
                       .dense_sums = self->dense.sums,
                       .step_rows = sync ? pace__steps_rows_in(order, work->step) : order->batch,
                       .ready = look_up,
                       .sum = self->pool.reduce ? pool : NULL,
                       .user = self};

    self->served_ns = 0;
    pace__buckets_begin(&self->dense);
    if (!status && !ended) /* else whatever there is goes out, and is dropped by all */
        status = pace__model_gradient(self->model, &task);

    work->loss = task.loss;
    if (!status && !self->dense.reduce)
        clip_work(self, work);
    uint64_t own_ns = pace__now_ns() - start_ns - self->served_ns;

    pace__faults_drag(&self->job->faults, own_ns);
    self->times.compute_ns += own_ns;
    self->process->report->rows += rows;
    pace__row_count_add(&self->job->rows, rows);
    if (!status && self->dense.reduce)
        status = pace__buckets_start(&self->dense, 0);
    return status ? status : pace__link_pulse(self->link);
}

/* --- the exchange --- */

/* Sums of a shard come as places on it; they become keys, and what was penalised lazily is brought up. */
static pace_status take_merged(worker *self, uint32_t shard, uint64_t step, double *squares)
{
    pace__job *job = self->job;
    pace__table *replica = &self->process->replica;
    uint32_t shards = (uint32_t)job->plan.cluster.workers;
    const float *sums;
    uint32_t *keys, count = pace__client_merged(self->client, (int)shard, &sums, &keys);

    for (uint32_t i = 0; i < count; i++)
        keys[i] = keys[i] * shards + shard;
    if (!pace__table_places_valid(replica, keys, count))
        return pace_fail(job->log, PACE_BUG, "%s has summed the gradient of a parameter that does not exist",
                         pace__link_name(self->link, (int)shard));
    /* Also those that only others have read, and at the rate at which they did. */
    pace__table_catch_up(replica, keys, count, (uint32_t)pace__plan_rows_before(&job->plan, step));
    if (clips(self))
        *squares += sum_of_squares(sums, (size_t)count * job->plan.model.shape.dim);
    return PACE_OK;
}

/* Allreduce: the sums of all workers update the replica. */
static pace_status update_replica(worker *self, uint64_t step)
{
    pace__job *job = self->job;
    const pace__shape *shape = &job->plan.model.shape;
    pace__table *replica = &self->process->replica;
    uint32_t shards = (uint32_t)job->plan.cluster.workers;
    uint64_t rows = pace__steps_rows_in(&job->plan.order, step);
    double squares = 0;
    pace_status status = pace__buckets_finish(&self->dense);

    for (uint32_t shard = 0; shard < shards && !status; shard++)
        status = take_merged(self, shard, step, &squares);
    if (status)
        return status;
    if (self->dense.reduce && clips(self))
        squares += sum_of_squares(self->dense.sums + (size_t)shape->stats_rows * shape->dim,
                                  shape->dense - (size_t)shape->stats_rows * shape->dim);
    float scale = pace__optim_scale(&replica->optim, rows) * clip_factor(self, squares, rows);

    pace__optim_begin_step(&replica->optim, pace__plan_rate(&job->plan, step), step);
    for (uint32_t shard = 0; shard < shards; shard++) {
        const float *sums;
        uint32_t *keys, count = pace__client_merged(self->client, (int)shard, &sums, &keys);

        pace__table_update(replica, keys, sums, count, scale);
    }
    if (self->dense.reduce)
        pace__table_update(replica, self->dense.keys, self->dense.sums, shape->dense_rows, scale);
    self->process->replica_step = step + 1;
    return PACE_OK;
}

/* The chief's books after an answer; sync: behind a step, on a clean state. */
static pace_status keep_books(worker *self, const pace__answer *answer)
{
    pace__boundary *boundary = self->boundary;
    pace_status status = PACE_OK;

    if (self->job->plan.cluster.evaluator)
        status = pace__chief_take_verdicts(self->process, false);
    if (status)
        return status;
    pace__boundary_add(boundary, answer->loss - self->booked_loss, answer->rows_done - self->booked_rows);
    self->booked_loss = answer->loss;
    self->booked_rows = answer->rows_done;
    if (pace__plan_is_sync(&self->job->plan)) {
        if (!pace__boundary_due(boundary, answer->step + 1))
            return PACE_OK;
        status = pace__boundary_report(boundary, answer->step + 1);
        return status ? status : pace__boundary_act(boundary, answer->step + 1);
    }
    uint64_t step = pace__steps_of(&self->job->plan.order, answer->rows_done);
    uint64_t epoch_end =
        (self->reported_step / self->job->plan.order.per_epoch + 1) * self->job->plan.order.per_epoch;
    uint64_t last = epoch_end < step ? epoch_end : step; /* an epoch is closed where it ends */

    for (uint64_t at = last; at > self->reported_step; at--) { /* the last one at which something is due */
        if (!pace__boundary_due(boundary, at))
            continue;
        self->reported_step = at;
        status = pace__boundary_report(boundary, at);
        break;
    }
    if (!status && pace__boundary_wants(boundary) && !self->gate_asked) {
        self->gate_asked = true;
        status = pace__asker_send(&self->asker, PACE__ASK_GATE);
    }
    return status;
}

/* Sync: the chief pushes an end instead of the step's gradients, and waits until everyone has been told. */
static pace_status end_before(worker *self, uint64_t step)
{
    pace__work work = {.step = step};
    pace__answer answer;
    bool ended;
    pace_status status = agree(self, true, &ended);

    if (!status)
        status = pace__client_send(self->client, &work, NULL, true);

    pace__buckets_begin(&self->dense);
    if (!status && self->dense.reduce) /* the others have begun to sum that step */
        status = pace__buckets_start(&self->dense, 0);
    if (!status)
        status = pace__buckets_finish(&self->dense);
    if (!status)
        status = pace__client_wait(self->client, &answer);
    return status;
}

static pace_status take_answer(worker *self, const pace__answer *answer)
{
    pace_status status = PACE_OK;

    if (answer->end) { /* what was summed of that step is forgotten */
        self->ended = self->no_more = true;
        self->held = 0;
        return pace__buckets_finish(&self->dense);
    }
    if (answer->next) {
        batch *item = (batch *)((char *)answer->next - offsetof(batch, work));

        item->state = READY;
    }
    if (!answer->applied)
        return PACE_OK;
    if (pace__plan_has_replicas(&self->job->plan))
        status = update_replica(self, answer->step);
    if (!status && !pace__plan_is_sync(&self->job->plan)) {
        if (pace__asker_full(&self->asker))
            status = pace__asker_send(&self->asker, 0);
        pace__asker_done(&self->asker, answer->first, answer->rows);
    }
    if (status || !self->boundary)
        return status;
    status = keep_books(self, answer);
    if (!pace__plan_is_sync(&self->job->plan) || (status && status != PACE_INTERRUPTED) ||
        (!status && !self->boundary->ended))
        return status;
    self->ended = self->no_more = true;
    self->held = 0;
    self->end_status = status;
    return answer->step + 1 < self->job->plan.steps ? end_before(self, answer->step + 1) : PACE_OK;
}

static pace_status take_answers(worker *self, bool *busy)
{
    for (;;) {
        pace__answer answer;
        bool answered;
        pace_status status = pace__client_poll(self->client, &answered, &answer);

        if (status || !answered)
            return status;
        *busy = true;
        status = take_answer(self, &answer);
        if (status)
            return status;
    }
}

static unsigned asked_or_ready(worker *self)
{
    unsigned count = 0;

    for (unsigned i = 0; i < self->held; i++)
        count += in_line(self, i)->state == ASKED || in_line(self, i)->state == READY;
    return count;
}

/* Allreduce: the weights come from the replica, as soon as all steps before are in it. */
static void ask_replica(worker *self, batch *item)
{
    pace__work *work = &item->work;

    pace__table_weights(&self->process->replica, work->keys, item->found.keys.count, (uint32_t)work->now,
                        work->weights);
    item->state = READY;
}

static pace_status advance(worker *self, bool *busy)
{
    bool merge = pace__plan_has_replicas(&self->job->plan);
    batch *front = in_line(self, 0);
    pace_status status = PACE_OK;

    if (self->held == 0 || pace__client_pending(self->client) == PACE__CLIENT_PENDING_MAX)
        return PACE_OK;
    if (front->state == PREPARED && merge && pace__client_pending(self->client) == 0) {
        ask_replica(self, front);
        *busy = true;
    }
    if (front->state == READY) {
        *busy = true;
        pace__rank_set_step(&self->process->self, front->work.step);
        pace__faults_at(&self->job->faults, PACE__AT_STEP, front->work.step);
        status = compute(self, front);
        batch *next = merge ? NULL : first_prepared(self);

        if (!status)
            status = pace__client_send(self->client, &front->work, next ? &next->work : NULL, false);
        if (!status && next)
            next->state = ASKED;
        self->front = (self->front + 1) % (self->depth + 1);
        self->held--;
    } else if (!merge && first_prepared(self) && asked_or_ready(self) < self->depth) {
        batch *next = first_prepared(self);

        *busy = true;
        status = pace__client_send(self->client, NULL, &next->work, false);
        if (!status)
            next->state = ASKED;
    }
    return status;
}

/* --- the loop --- */

static bool is_over(const worker *self)
{
    return self->no_more && self->held == 0 && pace__client_pending(self->client) == 0 &&
           self->asker.next.reports == 0;
}

/* Nothing to do: what was finished is reported, since others may wait for it; then a turn of waiting. */
static pace_status rest(worker *self, unsigned *turns)
{
    bool pending = pace__client_pending(self->client) > 0;
    const char *what = pending ? "its answer" : "rows";
    size_t count = 1;

    if (self->asker.next.reports > 0 && !pending)
        return pace__asker_send(&self->asker, 0);
    if (!pending && being_read(self) == in_line(self, 0)) { /* nobody else is to blame */
        uint64_t start_ns = pace__now_ns();
        pace_status status = pace__link_turn(self->link, self->peers, 0, "rows", turns);

        self->times.data_ns += pace__now_ns() - start_ns;
        return status;
    }
    self->peers[0] = pending ? pace__client_waits_for(self->client) : self->asker.rank;
    if (self->peers[0] == self->process->self.number &&
        self->process->shard) { /* its own shard waits for others */
        count = pace__shard_waits_for(self->process->shard, self->peers);
        what = "its gradients";
    }
    return pace__link_turn(self->link, self->peers, count, what, turns);
}

static pace_status one_round(worker *self, unsigned *turns)
{
    bool busy = false;
    pace_status status = pace__process_serve(self->process, &busy);

    if (!status)
        status = pace__buckets_poll(&self->dense);
    if (!status)
        status = take_answers(self, &busy);
    if (!status)
        status = look_at_reading(self, &busy);
    if (!status)
        status = take_rows(self, &busy);
    if (!status)
        status = advance(self, &busy);
    if (!status && !busy && !is_over(self))
        return rest(self, turns);
    *turns = 0;
    return status;
}

/* The books get what was measured since they were last asked; the report gets all. What is not work is
 * waiting. */
static void hand_over_times(worker *self, pace__times *before)
{
    pace__times now = self->times;
    uint64_t all_ns = pace__now_ns() - self->process->start_ns;

    if (!self->client) /* it has not begun */
        return;

    now.communicate_ns = pace__client_busy_ns(self->client) + self->dense.busy_ns;
    if (self->process->shard)
        now.communicate_ns += pace__shard_stats_of(self->process->shard)->busy_ns;
    uint64_t work_ns = now.data_ns + now.compute_ns + now.communicate_ns;

    now.wait_ns = all_ns > work_ns ? all_ns - work_ns : 0;
    if (self->boundary) {
        self->boundary->times.data_ns += now.data_ns - before->data_ns;
        self->boundary->times.compute_ns += now.compute_ns - before->compute_ns;
        self->boundary->times.communicate_ns += now.communicate_ns - before->communicate_ns;
        self->boundary->times.wait_ns += now.wait_ns - before->wait_ns;
    }
    *before = now;
}

/* Async: the chief hears of the others' last rows only by asking once more. */
static pace_status close_books(worker *self)
{
    pace__answer answer;
    pace_status status = pace__client_send(self->client, NULL, NULL, false);

    if (!status)
        status = pace__client_wait(self->client, &answer);
    if (!status)
        status = keep_books(self, &answer);
    if (!status)
        status = pace__boundary_report(self->boundary, self->job->plan.steps);
    return status ? status : pace__boundary_act(self->boundary, self->job->plan.steps);
}

pace_status pace__worker_run(pace__process *process, pace__boundary *boundary)
{
    worker self = {.process = process, .job = process->job, .link = process->self.link, .boundary = boundary};
    pace_status status = open_worker(&self);
    pace__times before = {0};
    unsigned turns = 0;

    while (!status && !is_over(&self)) {
        status = one_round(&self, &turns);
        hand_over_times(&self, &before);
    }
    if (!status && boundary && !pace__plan_is_sync(&process->job->plan) && !self.ended)
        status = close_books(&self);
    hand_over_times(&self, &before);
    process->report->data_s = (double)before.data_ns * 1e-9;
    process->report->compute_s = (double)before.compute_ns * 1e-9;
    process->report->communicate_s = (double)before.communicate_ns * 1e-9;
    process->report->wait_s = (double)before.wait_ns * 1e-9;
    if (status) /* before anything is released that messages may still use */
        pace__process_fail(process, status);
    close_worker(&self);
    return status ? status : self.end_status;
}

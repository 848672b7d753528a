/*
 * A worker: takes rows, asks for the weights of their keys, computes gradients, pushes them.
 *
 * Batches stand in a short line, the oldest in front (batches.c has all that becomes of one):
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
 * it are applied. Gradients of sparse rows are merged by key (ps/shard.h), and set out as soon as the model has them;
 * those of dense ones are summed in buckets (buckets.h). Mode local is an allreduce of one.
 *
 * And the worker goes through
 *
 *     taking    -> draining   rows are out (no_more): the last step was taken, or the counter has said so
 *     taking    -> ended      sync: the chief wants no further step (take_answer), which everyone hears as the answer to
 *                             the step that is not to be; async: the chief, at a gate
 *     taking    -> spare      backups: others were faster with its slice, or there is none for it (ps/slices.h). What it has
 *                             in line is dropped, and it asks
 *     spare     -> taking     it was given a slice that is late
 *     spare     -> draining   it was told that the job is over: with backups, nobody ends otherwise
 *     draining  -> over       what was taken is computed, answered, and reported (is_over)
 *     ended     -> over       the line is dropped, or was empty
 *
 * 1. At most `depth` batches are asked for or ready. In synchronous modes so many that what is computed always has the
 *    weights behind all steps before its own: an ask goes with, or behind, the gradients of the step before.
 * 2. Answers come in the order of the sends. One that brings weights brings those of the oldest batch that waits.
 * 3. A replica is read only when nothing is pending: then it stands at the very step that is computed next.
 * 4. no_more and ended are never taken back. ended: no_more, and nothing is in line.
 * 5. At a gate nothing of any worker is under way, the chief's own included.
 *    With backups the chief acts when it knows that a gate is reached, and nobody else has weights of the steps behind.
 * 6. Whatever this process serves is served in every wait, and in the middle of a gradient (look_up), by code that
 *    never comes back here: serving changes shard, counter and checkpoint, never the line.
 */
#include "base/clock.h"
#include "net/effort.h"
#include "roles/batches.h"
#include "roles/buckets.h"
#include "roles/clip.h"
#include "roles/pool.h"
#include "roles/process.h"
#include "roles/replica.h"
#include "roles/sharing.h"
#include "roles/tally.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>

/* A look at the network in the middle of a gradient takes microseconds, gives the core away where ranks share one, and
 * models offer one for every few rows. In an allreduce, as long as nothing of the own step is under way, nobody can be helped
 * by it but who is ahead: most offers are passed by then. */
#define LOOK_EVERY_NS UINT64_C(1000000)
#define NO_GATE       UINT64_MAX

typedef struct worker {
    pace__process *process;
    pace__job *job;
    pace__link *link;
    pace__tally tally;
    pace__client *client;
    pace__model *model;
    pace__buckets dense;   /* allreduce of a model with dense parameters */
    pace__pool pool;       /* sync, of a model that adds up things in the middle of a step */
    pace__sharing sharing; /* sync: whose rows are whose */
    pace__effort effort;   /* of a step */
    uint64_t told_busy_ns; /* of the client, in steps whose cost was told */
    uint64_t served_ns;    /* in the gradient under way */
    uint64_t looked_ns;    /* when it last looked up from one */
    pace__work *pushed;    /* what has set out before its gradient was complete; NULL: nothing */
    int *peers;            /* (workers) whom it waits for */

    pace__line line;
    uint64_t next_step; /* sync: whose rows are taken next */
    pace__asker asker;  /* async; backups */
    bool spare;         /* backups: it has no slice, and asks for one */
    uint64_t gate;      /* backups, the chief: where it has to act; NO_GATE: nowhere yet */
    bool no_more;       /* rows are out */
    bool ended;         /* before the last step */
    pace_status end_status;
    pace__times times; /* all of them, since the start; the boundary gets the differences */
} worker;

/* --- life --- */

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

    self->next_step = job->position.step;
    self->spare = self->process->self.number >= job->plan.slices;
    self->gate = NO_GATE;
    pace__effort_open(&self->effort, self->link);
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
    if (!status)
        status = pace__line_open(&self->line, self->process, self->model, self->dense.reduce, &self->times);
    return status ? status : pace__sharing_open(&self->sharing, self->process);
}

static void close_worker(worker *self)
{
    pace__sharing_close(&self->sharing);
    pace__line_close(&self->line);
    pace__pool_close(&self->pool);
    pace__model_free(self->model);
    pace__asker_close(&self->asker);
    pace__client_free(self->client);
    pace__buckets_close(&self->dense);
    free(self->peers);
}

/* --- taking rows --- */

static pace__portion part_of(const worker *self, uint64_t step)
{
    const pace__job_plan *plan = &self->job->plan;
    pace__portion part = {.step = step, .shares = pace__sharing_at(&self->sharing, step)};

    /* What was decided to be even is the same, to the bit, as what was never decided. */
    if (part.shares && pace__share_is_even(part.shares, plan->order.batch, (unsigned)plan->slices))
        part.shares = NULL;
    pace__share_slice(&plan->order, step, part.shares, (unsigned)self->line.slice, (unsigned)plan->slices,
                      &part.first, &part.rows);
    return part;
}

/* Sync: every step's part is known beforehand, with --balance some steps ahead, and the disk can be asked for the one after
 * next. */
static pace_status take_step(worker *self, bool *busy)
{
    uint64_t step = self->next_step;
    pace_status status = pace__sharing_poll(&self->sharing, step, busy);

    if (status)
        return status;
    if (step == self->job->plan.steps) {
        self->no_more = !self->job->plan.backups; /* else it is told */
        return PACE_OK;
    }
    assert(step < self->job->plan.steps);
    if (!pace__sharing_knows(&self->sharing, step))
        return PACE_OK;
    *busy = true;
    self->next_step++;
    pace__portion part = part_of(self, step);

    status = pace__line_take(&self->line, &part);
    if (!status && step + 2 < self->job->plan.steps && pace__sharing_knows(&self->sharing, step + 2)) {
        pace__portion later = part_of(self, step + 2);

        pace__line_expect(&self->line, later.first, later.rows);
    }
    return status;
}

/* The chief stands alone at a gate: every row before it is applied, and none behind it is handed out. */
static pace_status act_at_gate(worker *self, uint64_t step)
{
    assert(self->tally.boundary && self->line.held == 0); /* invariant 5; take_ticket has looked */
    pace_status status = pace__tally_at_gate(&self->tally, step);

    if (status && status != PACE_INTERRUPTED)
        return status;
    self->ended = self->tally.boundary->ended || status == PACE_INTERRUPTED;
    self->end_status = status;
    self->no_more = self->ended; /* the counter ends all others: it answers their asks with an end */
    return pace__asker_send(&self->asker, self->ended ? PACE__ASK_END : PACE__ASK_PASS);
}

/* Others have done it, or nobody wants it. */
static void become_spare(worker *self)
{
    self->spare = true;
    pace__line_drop(&self->line);
}

/* Backups: the same, when all shards stand there, and whatever it has sent is answered. */
static pace_status act_behind(worker *self, uint64_t step)
{
    assert(self->tally.boundary && pace__client_pending(self->client) == 0);
    pace_status status = pace__tally_catch_up(&self->tally, self->client, step);

    if (!status)
        status = pace__tally_at_gate(&self->tally, step);
    if (status && status != PACE_INTERRUPTED)
        return status;
    bool ended = self->tally.boundary->ended || status == PACE_INTERRUPTED;

    self->gate = NO_GATE;
    self->end_status = status;
    if (ended || step == self->job->plan.steps) /* it is told, as all others, when they have been */
        become_spare(self);
    return pace__asker_send(&self->asker, ended ? PACE__ASK_END : PACE__ASK_PASS);
}

/* A gate is for the chief, behind what it has reported, when it has nothing under way. */
static bool can_be(const worker *self, const pace__ticket *ticket)
{
    const pace__job_plan *plan = &self->job->plan;

    if (ticket->kind == PACE__TICKET_GATE)
        return self->tally.boundary && self->line.held == 0 && ticket->step >= self->job->position.step &&
               ticket->step <= plan->steps;
    if (ticket->kind == PACE__TICKET_LET_GO)
        return plan->backups && self->tally.boundary && ticket->first > 0 &&
               ticket->first < (uint64_t)plan->cluster.workers;
    if (ticket->kind == PACE__TICKET_SLICE)
        return plan->backups && ticket->first < (uint64_t)plan->slices && ticket->step < plan->steps;
    return pace__ticket_fits(ticket, &plan->order, plan->steps, plan->rows_max);
}

static pace_status obey(worker *self, const pace__ticket *ticket, bool *busy)
{
    switch ((pace__ticket_kind)ticket->kind) {
    case PACE__TICKET_GATE:
        return self->job->plan.backups ? act_behind(self, ticket->step) : act_at_gate(self, ticket->step);
    case PACE__TICKET_SLICE:
        self->spare = false;
        self->line.slice = (int)ticket->first;
        self->next_step = ticket->step;
        return take_step(self, busy);
    case PACE__TICKET_LET_GO:
        pace__process_let_go(self->process, (int)ticket->first);
        return PACE_OK;
    case PACE__TICKET_END:
        self->no_more = true;
        return PACE_OK;
    default:
        return pace__line_take(&self->line,
                               &(pace__portion){ticket->first, ticket->rows, ticket->step, NULL});
    }
}

static pace_status take_ticket(worker *self, bool *busy)
{
    pace__ticket ticket;
    bool got;
    pace_status status = pace__asker_poll(&self->asker, &got, &ticket);

    if (status || !got)
        return status;
    *busy = true;
    if (!can_be(self, &ticket))
        return pace_fail(self->job->log, PACE_BUG, "%s hands out rows in a way that cannot be",
                         pace__link_name(self->link, self->asker.rank));
    return obey(self, &ticket, busy);
}

static bool has_nothing(const worker *self)
{
    return self->line.held == 0 && pace__client_pending(self->client) == 0;
}

/* Backups: whoever has nothing in hand, and nothing under way, asks. */
static pace_status take_slice(worker *self, bool *busy)
{
    if (!has_nothing(self))
        return PACE_OK;
    pace_status status = take_ticket(self, busy);

    if (!status && self->spare && !self->no_more && !self->asker.waiting)
        status = pace__asker_send(&self->asker, PACE__ASK_TICKET);
    if (!status && self->spare && !self->no_more && self->tally.boundary)
        status = pace__tally_look(&self->tally);
    return status;
}

static pace_status take_rows(worker *self, bool *busy)
{
    if (self->no_more || !pace__line_has_room(&self->line))
        return PACE_OK;
    if (self->job->plan.backups && !self->spare && self->next_step == self->job->plan.steps)
        self->spare = has_nothing(self); /* no step comes behind the one that it has */
    if (self->spare)
        return take_slice(self, busy);
    if (pace__plan_is_sync(&self->job->plan))
        return take_step(self, busy);
    pace_status status = take_ticket(self, busy);

    if (!status && !self->no_more && !self->asker.waiting && self->line.held <= self->job->plan.depth)
        status = pace__asker_send(&self->asker, PACE__ASK_TICKET);
    return status;
}

/* --- computing --- */

/* Messages that are under way move on only when somebody looks. */
static bool may_pass_by(const worker *self, size_t first, uint64_t now_ns)
{
    const pace__buckets *dense = &self->dense;
    bool under_way = self->pushed || dense->left < dense->count;

    return dense->reduce && !under_way && !pace__buckets_due(dense, first) &&
           now_ns - self->looked_ns < LOOK_EVERY_NS;
}

/* In the middle of a gradient. */
static pace_status look_up(void *user, size_t first)
{
    worker *self = user;
    uint64_t start_ns = pace__now_ns();
    bool busy = false;

    if (may_pass_by(self, first, start_ns))
        return PACE_OK;
    pace_status status = pace__process_serve(self->process, &busy);

    if (!status && self->dense.reduce)
        status = pace__buckets_start(&self->dense, first);
    if (self->tally.boundary)
        pace__boundary_show(self->tally.boundary);
    if (!status) /* a step may take longer than a deadline */
        status = pace__link_pulse(self->link);
    self->looked_ns = pace__now_ns();
    self->served_ns += self->looked_ns - start_ns;
    return status;
}

/* In the middle of a gradient, too: allreduce, where nothing is asked for at the same time. */
static pace_status push_sparse(void *user, double loss)
{
    worker *self = user;
    uint64_t start_ns = pace__now_ns();

    self->pushed = &pace__batch_at(&self->line, 0)->work;
    self->pushed->loss = loss;
    pace_status status = pace__client_send(self->client, self->pushed, NULL, false);

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

/* What a step has cost this worker, from the end of a gradient to that of the next: of which a part depends on its rows. An injected
 * slowness is that of what it does for its rows. Returns by how much that has slowed it down. */
static uint64_t count_cost(worker *self, const pace__batch *item, uint64_t own_ns)
{
    uint64_t cost_ns = pace__effort_take(&self->effort), busy_ns = pace__client_busy_ns(self->client);
    uint64_t of_rows_ns =
        own_ns + item->found_ns + (self->line.ahead ? 0 : item->read_ns) + busy_ns - self->told_busy_ns;

    pace__effort_pause(&self->effort);
    uint64_t dragged_ns = pace__faults_drag(&self->job->faults, item->work.step, of_rows_ns);

    pace__effort_resume(&self->effort);
    self->told_busy_ns = busy_ns;
    pace__sharing_computed(&self->sharing, item->work.step, item->amount,
                           (double)(cost_ns + dragged_ns) * 1e-9);
    return dragged_ns;
}

static pace_status compute(worker *self, pace__batch *item)
{
    pace__work *work = &item->work;
    const pace__steps *order = &self->job->plan.order;

    assert(item->state == PACE__BATCH_READY &&
           pace__line_asked(&self->line) <= self->job->plan.depth); /* 1 */
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
                       .sparse_ready = self->dense.reduce ? push_sparse : NULL,
                       .sum = self->pool.reduce ? pool : NULL,
                       .user = self};

    self->served_ns = 0;
    self->pushed = NULL;
    pace__buckets_begin(&self->dense);
    if (!status && !ended) { /* else whatever there is goes out, and is dropped by all */
        PACE__SPAN("gradient");
        status = pace__model_gradient(self->model, &task);
    }

    work->loss = task.loss;
    if (!status && !self->dense.reduce)
        pace__clip_work(&self->job->plan, work);
    uint64_t own_ns = pace__now_ns() - start_ns - self->served_ns;

    self->times.compute_ns += own_ns + count_cost(self, item, own_ns);
    self->process->rows += rows;
    pace__row_count_add(&self->job->rows, rows);
    if (!status && self->dense.reduce)
        status = pace__buckets_start(&self->dense, 0);
    return status ? status : pace__link_pulse(self->link);
}

/* --- the exchange --- */

/* One turn of waiting for that rank: if it is this one, its own shard waits for others. */
static pace_status wait_for(worker *self, int rank, const char *what, unsigned *turns)
{
    size_t count = 1;

    self->peers[0] = rank;
    if (rank == self->process->self.number && self->process->shard) {
        count = pace__shard_waits_for(self->process->shard, self->peers);
        what = "its gradients";
    }
    return pace__link_turn(self->link, self->peers, count, what, turns);
}

static pace_status await_answer(worker *self)
{
    unsigned turns = 0;

    for (;;) {
        pace__answer answer;
        bool answered;
        pace_status status = pace__client_poll(self->client, &answered, &answer);

        if (status || answered)
            return status;
        status = wait_for(self, pace__client_waits_for(self->client), "its answer", &turns);
        if (status)
            return status;
    }
}

/* Sync: the chief pushes an end instead of the step's gradients, and waits until everyone has been told. */
static pace_status end_before(worker *self, uint64_t step)
{
    pace__work work = {.step = step};
    bool ended;
    pace_status status = agree(self, true, &ended);

    if (!status)
        status = pace__client_send(self->client, &work, NULL, true);

    pace__buckets_begin(&self->dense);
    if (!status && self->dense.reduce) /* the others have begun to sum that step */
        status = pace__buckets_start(&self->dense, 0);
    if (!status)
        status = pace__buckets_finish(&self->dense);
    return status ? status : await_answer(self);
}

/* Backups: another result of that slice has come first, or the step is over. */
static bool is_overtaken(const pace__answer *answer)
{
    return answer->late || (!answer->applied && answer->incomplete);
}

static pace_status take_slice_answer(worker *self, const pace__answer *answer)
{
    if (is_overtaken(answer))
        become_spare(self);
    else if (answer->next && !self->spare) /* some weights may have to be asked for again */
        pace__batch_of(answer->next)->state = answer->incomplete ? PACE__BATCH_PREPARED : PACE__BATCH_READY;
    if (!self->tally.boundary)
        return PACE_OK;
    if (answer->applied && answer->reached == answer->gate)
        self->gate = answer->gate;
    return pace__tally_keep(&self->tally, answer);
}

static pace_status take_answer(worker *self, const pace__answer *answer)
{
    pace_status status = PACE_OK;

    if (self->job->plan.backups)
        return take_slice_answer(self, answer);

    if (answer->end) { /* what was summed of that step is forgotten */
        self->ended = self->no_more = true;
        pace__line_drop(&self->line);
        return pace__buckets_finish(&self->dense);
    }
    if (answer->next) {
        assert(pace__batch_of(answer->next)->state == PACE__BATCH_ASKED); /* invariant 2 */
        pace__batch_of(answer->next)->state = PACE__BATCH_READY;
    }
    if (!answer->applied)
        return PACE_OK;
    if (pace__plan_has_replicas(&self->job->plan))
        status = pace__replica_update(self->process, self->client, &self->dense, answer->step);
    pace__effort_pause(&self->effort); /* new shares, scores, checkpoints: nobody's rows cost that */
    if (!status && pace__plan_is_sync(&self->job->plan)) /* before a checkpoint that must know it */
        status = pace__sharing_act(&self->sharing, answer->step + 1);
    pace__effort_resume(&self->effort);
    if (!status && !pace__plan_is_sync(&self->job->plan)) {
        if (pace__asker_full(&self->asker))
            status = pace__asker_send(&self->asker, 0);
        pace__asker_done(&self->asker, answer->first, answer->rows);
    }
    if (status || !self->tally.boundary)
        return status;
    pace__effort_pause(&self->effort);
    status = pace__tally_keep(&self->tally, answer);
    pace__effort_resume(&self->effort);
    if (!pace__plan_is_sync(&self->job->plan) || (status && status != PACE_INTERRUPTED) ||
        (!status && !self->tally.boundary->ended))
        return status;
    self->ended = self->no_more = true;
    pace__line_drop(&self->line);
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

/* Allreduce: the weights come from the replica, as soon as all steps before are in it. */
static void ask_replica(worker *self, pace__batch *item)
{
    pace__work *work = &item->work;

    assert(item->state == PACE__BATCH_PREPARED && self->process->replica_step == work->step); /* 3 */
    PACE__SPAN_OF("read weights", NULL, 0,
                  (uint64_t)item->found.keys.count * self->job->plan.model.shape.dim * 4);
    pace__table_weights(&self->process->replica, work->keys, item->found.keys.count, work->now,
                        work->weights);
    item->state = PACE__BATCH_READY;
}

static pace_status advance(worker *self, bool *busy)
{
    bool merge = pace__plan_has_replicas(&self->job->plan);
    pace__batch *front = pace__batch_at(&self->line, 0),
                *next = merge ? NULL : pace__line_first_prepared(&self->line);
    pace_status status = PACE_OK;

    if (self->line.held == 0 || pace__client_pending(self->client) == PACE__CLIENT_PENDING_MAX)
        return PACE_OK;
    if (front->state == PACE__BATCH_PREPARED && merge && pace__client_pending(self->client) == 0) {
        ask_replica(self, front);
        *busy = true;
    }
    if (front->state == PACE__BATCH_READY) {
        *busy = true;
        pace__rank_set_step(&self->process->self, front->work.step);
        pace__profile_at(&self->process->profile, front->work.step);
        pace__faults_at(&self->job->faults, PACE__AT_STEP, front->work.step);
        status = compute(self, front); /* leaves the line as it is: invariant 6 */
        if (!status && !self->pushed)
            status = pace__client_send(self->client, &front->work, next ? &next->work : NULL, false);
        if (!status && next) /* with the gradients of the step before: invariant 1 */
            next->state = PACE__BATCH_ASKED;
        pace__line_leave(&self->line);
    } else if (next && pace__line_asked(&self->line) < self->job->plan.depth) {
        *busy = true;
        status = pace__client_send(self->client, NULL, &next->work, false);
        if (!status)
            next->state = PACE__BATCH_ASKED;
    }
    return status;
}

/* --- the loop --- */

static bool is_over(const worker *self)
{
    assert(!self->ended || (self->no_more && self->line.held == 0)); /* invariant 4 */
    return self->no_more && self->line.held == 0 && pace__client_pending(self->client) == 0 &&
           self->asker.next.reports == 0;
}

/* Nothing to do: what was finished is reported, since others may wait for it; then a turn of waiting. */
static pace_status rest(worker *self, unsigned *turns)
{
    bool pending = pace__client_pending(self->client) > 0;

    if (self->asker.next.reports > 0 && !pending)
        return pace__asker_send(&self->asker, 0);
    if (!pending &&
        pace__line_being_read(&self->line) == pace__batch_at(&self->line, 0)) { /* nobody else is to blame */
        uint64_t start_ns = pace__now_ns();
        pace_status status = pace__link_turn(self->link, self->peers, 0, "rows", turns);

        self->times.data_ns += pace__now_ns() - start_ns;
        return status;
    }
    if (!pending && !pace__sharing_knows(&self->sharing, self->next_step)) {
        self->peers[0] = 0;
        return pace__link_turn(self->link, self->peers, 1, "how the next steps are divided", turns);
    }
    return pending ? wait_for(self, pace__client_waits_for(self->client), "its answer", turns)
                   : wait_for(self, self->asker.rank, "rows", turns);
}

static pace_status one_round(worker *self, unsigned *turns)
{
    bool busy = false;
    pace_status status = pace__process_serve(self->process, &busy);

    if (self->tally.boundary)
        pace__boundary_show(self->tally.boundary);
    if (!status)
        status = pace__buckets_poll(&self->dense);
    if (!status)
        status = take_answers(self, &busy);
    if (!status)
        status = pace__line_poll(&self->line, &busy);
    if (!status && self->gate != NO_GATE && pace__client_pending(self->client) == 0) {
        busy = true;
        status = act_behind(self, self->gate);
    }
    if (!status && self->gate == NO_GATE)
        status = take_rows(self, &busy);
    if (!status && self->gate == NO_GATE)
        status = advance(self, &busy);
    if (!status && !busy && !is_over(self))
        return rest(self, turns);
    *turns = 0;
    return status;
}

/* The boundary gets what was measured since it was last told; reports get all. What is not work is waiting. */
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
    if (self->tally.boundary) {
        pace__times *times = &self->tally.boundary->times;

        times->data_ns += now.data_ns - before->data_ns;
        times->compute_ns += now.compute_ns - before->compute_ns;
        times->communicate_ns += now.communicate_ns - before->communicate_ns;
        times->wait_ns += now.wait_ns - before->wait_ns;
    }
    *before = self->process->times = now;
}

pace_status pace__worker_run(pace__process *process, pace__boundary *boundary)
{
    worker self = {.process = process, .job = process->job, .link = process->self.link};

    pace__tally_open(&self.tally, process, boundary, &self.asker);
    pace_status status = open_worker(&self);
    pace__times before = {0};
    unsigned turns = 0;

    while (!status && !is_over(&self)) {
        status = one_round(&self, &turns);
        hand_over_times(&self, &before);
    }
    if (!status && boundary && !pace__plan_is_sync(&process->job->plan) && !self.ended)
        status = pace__tally_close(&self.tally, self.client);
    pace__profile_stop(&process->profile); /* what comes now is no training */
    hand_over_times(&self, &before);
    if (status) /* before anything is released that messages may still use */
        pace__process_fail(process, status);
    close_worker(&self);
    return status ? status : self.end_status;
}

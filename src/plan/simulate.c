/*
 * 1. Events are taken in the order of their time; of equal ones, in the order in which they were made. So the same scene
 *    gives the same bits.
 * 2. A link, a shard: whoever comes first is served first. What is booked is never taken back.
 */
#include "plan/simulate.h"

#include "base/random.h"
#include "ps/tickets.h"
#include "shares/balance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* However noisy, a step takes some time. */
#define LEAST_PART 0.05
/* A division is in force two steps behind the decision (docs/decisions/0056). */
#define AHEAD 2

/* --- events --- */

typedef enum happening { COMPUTED, ARRIVED, SERVED, ANSWERED } happening;

typedef struct event {
    double t;
    uint64_t order;
    uint32_t worker, shard;
    happening what;
} event;

typedef struct agenda {
    event *items;
    size_t count, room;
    uint64_t made;
} agenda;

static bool is_before(const event *left, const event *right)
{
    return left->t < right->t || (left->t == right->t && left->order < right->order);
}

static void push_event(agenda *self, event it)
{
    size_t at = self->count++;

    assert(self->count <= self->room);
    it.order = self->made++;
    for (; at > 0 && is_before(&it, &self->items[(at - 1) / 2]); at = (at - 1) / 2)
        self->items[at] = self->items[(at - 1) / 2];
    self->items[at] = it;
}

static event pop_event(agenda *self)
{
    event first = self->items[0], last = self->items[--self->count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < self->count) {
        child += child + 1 < self->count && is_before(&self->items[child + 1], &self->items[child]);
        if (!is_before(&self->items[child], &last))
            break;
        self->items[at] = self->items[child];
        at = child;
    }
    self->items[at] = last;
    return first;
}

/* --- who there is --- */

/* A batch of an asynchronous worker that is under way: pushed, and not answered by all. */
typedef struct flight {
    uint64_t first, rows;
} flight;

typedef struct worker {
    double out_free, in_free; /* its link, in each direction */
    double began, computing_s;
    uint64_t step;        /* sync: that it is at */
    uint64_t first, rows; /* of what it computes */
    uint32_t answers;     /* to the oldest push */
    flight *line;         /* (depth) oldest first */
    unsigned in_line;
    bool computes, idle; /* idle: asynchronous, there were no rows for it */
    pace__timing timing;
} worker;

typedef struct shard {
    double out_free, in_free, free, busy_s;
    uint64_t version; /* pushes applied */
    uint32_t served;  /* sync: of the step */
    uint32_t inside;  /* pushes that wait, or are served */
} shard;

typedef struct play {
    const pace__scene *scene;
    pace__steps order;
    unsigned shards;
    worker *workers;
    shard *shard;
    uint64_t *version; /* (workers, shards) that a worker has the weights of */
    flight *lines;     /* (workers, depth) */
    agenda events;
    pace__random random;
    pace__tickets *tickets; /* asynchronous */
    pace__balance balance;
    uint32_t *shares, *next_shares; /* (workers) in force; decided */
    uint64_t shares_from;           /* step from which next_shares are; UINT64_MAX: none */
    uint64_t learned_step;
    double now, queue_sum, stale_sum;
    uint64_t pushes, ended, taken;
} play;

static double compute_s(play *self, unsigned index, uint64_t rows)
{
    const pace__scene *scene = self->scene;
    double usual = scene->fixed_s + scene->row_s * (double)rows;
    double noise = scene->straggle > 0 ? scene->straggle * pace__random_normal(&self->random) : 0;

    return usual * fmax(LEAST_PART, 1 + noise) * (index < scene->slow_workers ? scene->slow : 1);
}

/* --- links --- */

/* When a message that may set out now has arrived. Both links are its own as long as its bytes travel. */
static double carry(play *self, double *from_free, double *to_free, double bytes)
{
    double begin = fmax(self->now, fmax(*from_free, *to_free));
    double end = begin + (self->scene->link_bytes_s > 0 ? bytes / self->scene->link_bytes_s : 0);

    *from_free = *to_free = end;
    return end + self->scene->latency_s;
}

/* A shard of its own is no message. */
static bool is_here(const play *self, unsigned index, unsigned at)
{
    return self->scene->servers == 0 && index == at;
}

static double *out_of_shard(play *self, unsigned at)
{
    return self->scene->servers ? &self->shard[at].out_free : &self->workers[at].out_free;
}

static double *into_shard(play *self, unsigned at)
{
    return self->scene->servers ? &self->shard[at].in_free : &self->workers[at].in_free;
}

static void send_push(play *self, unsigned index, unsigned at)
{
    double t = is_here(self, index, at) ? self->now
                                        : carry(self, &self->workers[index].out_free, into_shard(self, at),
                                                self->scene->push_bytes);

    push_event(&self->events, (event){.t = t, .worker = index, .shard = at, .what = ARRIVED});
}

static void send_answer(play *self, unsigned index, unsigned at)
{
    double t = is_here(self, index, at) ? self->now
                                        : carry(self, out_of_shard(self, at), &self->workers[index].in_free,
                                                self->scene->answer_bytes);

    self->version[(size_t)index * self->shards + at] = self->shard[at].version;
    push_event(&self->events, (event){.t = t, .worker = index, .shard = at, .what = ANSWERED});
}

/* --- a worker --- */

static void compute(play *self, unsigned index, uint64_t first, uint64_t rows)
{
    worker *it = &self->workers[index];
    double takes_s = compute_s(self, index, rows);

    it->first = first;
    it->rows = rows;
    it->computes = true;
    it->began = self->now;
    it->computing_s += takes_s;
    if (self->scene->balance_every)
        pace__timing_add(&it->timing, (double)rows, takes_s);
    push_event(&self->events, (event){.t = self->now + takes_s + self->scene->push_s * self->shards,
                                      .worker = index,
                                      .what = COMPUTED});
}

/* Synchronous: its part of the step. Who has no rows takes part all the same. */
static void take_step(play *self, unsigned index)
{
    worker *it = &self->workers[index];
    uint64_t first, rows;

    if (it->step == self->scene->steps) {
        self->ended++;
        return;
    }
    if (it->step >= self->shares_from) {
        memcpy(self->shares, self->next_shares, self->scene->workers * sizeof *self->shares);
        self->shares_from = UINT64_MAX;
    }
    pace__share_slice(&self->order, it->step, self->shares, index, self->scene->workers, &first, &rows);
    compute(self, index, first, rows);
}

/* Asynchronous: rows from the counter, if it has less under way than it may. */
static void take_ticket(play *self, unsigned index)
{
    worker *it = &self->workers[index];

    if (it->computes || it->in_line >= self->scene->depth)
        return;
    pace__ticket ticket = pace__tickets_take(self->tickets, index);

    it->idle = ticket.kind == PACE__TICKET_NONE;
    self->taken++;
    if (ticket.kind == PACE__TICKET_ROWS)
        compute(self, index, ticket.first, ticket.rows);
}

static void push_all(play *self, unsigned index)
{
    worker *it = &self->workers[index];

    it->computes = false;
    if (self->tickets)
        it->line[it->in_line++] = (flight){it->first, it->rows};
    for (unsigned i = 0; i < self->shards; i++) /* from its own on: not all at the same one */
        send_push(self, index, (index + i) % self->shards);
    if (self->tickets)
        take_ticket(self, index);
}

/* --- shares --- */

/* The last worker of a step has been answered: all have measured it. */
static void balance(play *self, uint64_t step)
{
    double gain;

    if (!self->scene->balance_every || step % self->scene->balance_every || step == self->learned_step)
        return;
    self->learned_step = step;
    for (unsigned i = 0; i < self->scene->workers; i++) {
        pace__balance_learn(&self->balance, i, &self->workers[i].timing);
        self->workers[i].timing = (pace__timing){0};
    }
    if (self->shares_from == UINT64_MAX &&
        pace__balance_decide(&self->balance, self->shares, self->next_shares, &gain))
        self->shares_from = step + AHEAD;
}

/* --- what happens --- */

/* At most: each worker's part of each step is computed; then every shard gets it, serves it and answers. */
static double events_of(const play *self)
{
    return (double)self->scene->steps * self->scene->workers * (1 + 3.0 * self->shards);
}

static void arrive(play *self, const event *it)
{
    shard *at = &self->shard[it->shard];
    double begin = fmax(self->now, at->free);

    self->queue_sum += at->inside++;
    self->pushes++;
    at->free = begin + self->scene->serve_s;
    at->busy_s += self->scene->serve_s;
    push_event(&self->events,
               (event){.t = at->free, .worker = it->worker, .shard = it->shard, .what = SERVED});
}

static void serve(play *self, const event *it)
{
    shard *at = &self->shard[it->shard];
    uint64_t *seen = &self->version[(size_t)it->worker * self->shards + it->shard];

    at->inside--;
    self->stale_sum += (double)(at->version - *seen);
    at->version++;
    if (!self->scene->synchronous) {
        send_answer(self, it->worker, it->shard);
        return;
    }
    if (++at->served < self->scene->workers)
        return;
    at->served = 0;
    for (unsigned i = 0; i < self->scene->workers; i++)
        send_answer(self, i, it->shard);
}

/* Who had no rows asks again when some are reported. */
static void wake_idle(play *self)
{
    for (unsigned i = 0; i < self->scene->workers; i++) {
        if (self->workers[i].idle)
            take_ticket(self, i);
    }
}

static void answer(play *self, unsigned index)
{
    worker *it = &self->workers[index];

    if (++it->answers < self->shards)
        return;
    it->answers = 0;
    if (!self->tickets) {
        it->step++;
        balance(self, it->step);
        take_step(self, index);
        return;
    }
    bool ok = pace__tickets_done(self->tickets, index, it->line[0].first, it->line[0].rows);

    assert(ok);
    (void)ok;
    memmove(it->line, it->line + 1, --it->in_line * sizeof *it->line);
    take_ticket(self, index);
    if (self->scene->staleness != PACE__STALENESS_UNBOUNDED)
        wake_idle(self);
}

static void play_on(play *self)
{
    while (self->events.count) {
        event it = pop_event(&self->events);

        assert((double)self->events.made <= events_of(self));
        self->now = it.t;
        if (it.what == COMPUTED)
            push_all(self, it.worker);
        else if (it.what == ARRIVED)
            arrive(self, &it);
        else if (it.what == SERVED)
            serve(self, &it);
        else
            answer(self, it.worker);
    }
}

/* --- from beginning to end --- */

static pace_status check_size(const play *self, const pace_log *log)
{
    const pace__scene *scene = self->scene;

    if (scene->workers > PACE__SCENE_WORKERS_MAX)
        return pace_fail(log, PACE_USAGE, "%u workers: no more than %d can be simulated", scene->workers,
                         PACE__SCENE_WORKERS_MAX);
    if (!scene->synchronous && (uint64_t)scene->workers * scene->depth > PACE__INTERVALS_MAX)
        return pace_fail(log, PACE_USAGE, "%u workers: no more than %d asynchronous ones can be simulated",
                         scene->workers, PACE__INTERVALS_MAX / (int)scene->depth);
    if (events_of(self) > PACE__SCENE_EVENTS_MAX)
        return pace_fail(log, PACE_USAGE,
                         "%u workers with %u shards: %.3g events of %llu steps, and no more than %.3g can be "
                         "simulated: take fewer workers, or servers (--ps)",
                         scene->workers, self->shards, events_of(self), (unsigned long long)scene->steps,
                         PACE__SCENE_EVENTS_MAX);
    return PACE_OK;
}

static pace_status open_play(play *self, const pace_log *log)
{
    const pace__scene *scene = self->scene;
    size_t pairs = (size_t)scene->workers * self->shards;

    self->workers = calloc(scene->workers, sizeof *self->workers);
    self->shard = calloc(self->shards, sizeof *self->shard);
    self->version = calloc(pairs, sizeof *self->version);
    self->lines = calloc((size_t)scene->workers * scene->depth, sizeof *self->lines);
    self->shares = calloc(scene->workers, sizeof *self->shares);
    self->next_shares = calloc(scene->workers, sizeof *self->next_shares);
    self->events.room = 2 * pairs * scene->depth + 2 * scene->workers;
    self->events.items = malloc(self->events.room * sizeof *self->events.items);
    if (!scene->synchronous)
        self->tickets = calloc(1, sizeof *self->tickets);
    if (!self->workers || !self->shard || !self->version || !self->lines || !self->shares ||
        !self->next_shares || !self->events.items || (!scene->synchronous && !self->tickets))
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (unsigned i = 0; i < scene->workers; i++)
        self->workers[i].line = self->lines + (size_t)i * scene->depth;
    if (self->tickets)
        pace__tickets_init(self->tickets, &self->order, scene->workers, 0, scene->steps, scene->staleness,
                           (const uint64_t[2]){0, 0});
    pace__share_evenly(scene->batch, scene->workers, self->shares);
    return scene->balance_every ? pace__balance_open(&self->balance, scene->workers, scene->batch, log)
                                : PACE_OK;
}

static void close_play(play *self)
{
    pace__balance_close(&self->balance);
    free(self->tickets);
    free(self->events.items);
    free(self->next_shares);
    free(self->shares);
    free(self->lines);
    free(self->version);
    free(self->shard);
    free(self->workers);
}

static pace__simulated sum_up(const play *self)
{
    const pace__scene *scene = self->scene;
    pace__simulated made = {.seconds = self->now,
                            .step_s = self->now / (double)scene->steps,
                            .rows_s = (double)scene->batch * (double)scene->steps / self->now,
                            .queue = self->queue_sum / (double)self->pushes,
                            .stale = self->stale_sum / (double)self->pushes,
                            .events = self->events.made};
    double computing_s = 0;

    for (unsigned i = 0; i < scene->workers; i++)
        computing_s += self->workers[i].computing_s;
    made.waits = fmax(0, 1 - computing_s / (self->now * scene->workers));
    for (unsigned i = 0; i < self->shards; i++)
        made.server_busy = fmax(made.server_busy, self->shard[i].busy_s / self->now);
    return made;
}

pace_status pace__simulate(const pace__scene *scene, const pace_log *log, pace__simulated *made)
{
    play self = {.scene = scene,
                 .order = pace__steps_make(scene->batch * scene->steps, scene->batch),
                 .shards = scene->servers ? scene->servers : scene->workers,
                 .random = pace__random_at(scene->seed, 0),
                 .shares_from = UINT64_MAX};

    assert(scene->workers >= 1 && scene->steps >= 1 && scene->depth >= 1);
    pace_status status = check_size(&self, log);

    if (!status)
        status = open_play(&self, log);
    if (!status) {
        for (unsigned i = 0; i < scene->workers; i++) {
            if (scene->synchronous)
                take_step(&self, i);
            else
                take_ticket(&self, i);
        }
        play_on(&self);
        *made = sum_up(&self);
    }
    close_play(&self);
    return status;
}

pace__scene pace__scene_of(const pace__calibration *known, const pace__setup *setup)
{
    pace__forecast of = pace__forecast_of(&known->input, setup);
    const pace__machine *machine = &known->input.machine;
    double share = fmin(1, machine->cores), shards = setup->ps ? setup->ps : setup->workers;
    double rows = (double)setup->batch / setup->workers;
    bool async = setup->mode == PACE_MODE_PS_ASYNC || setup->mode == PACE_MODE_PS_SSP;
    /* With shards on the workers, what serves is a part of the worker's time. */
    double rest_s = fmax(0, of.worker_cpu_s - of.rows_cpu_s) / share;
    double each =
        setup->ps ? 1 : shards / fmax(1, shards - 1) / 2; /* both directions hold pushes and answers */

    return (pace__scene){.synchronous = !async,
                         .workers = (unsigned)setup->workers,
                         .servers = (unsigned)setup->ps,
                         .batch = setup->batch,
                         .row_s = of.rows_cpu_s / share / rows,
                         .push_s = rest_s / shards,
                         .serve_s = setup->ps ? of.server_cpu_s / share / setup->workers : 0,
                         .push_bytes = of.worker_sent * each / shards,
                         .answer_bytes = of.worker_received * each / shards,
                         .link_bytes_s = setup->hosts > 1 ? machine->link_bytes_s : 0,
                         .latency_s = setup->hosts > 1 ? machine->latency_s : 0,
                         .slow = 1,
                         .staleness = PACE__STALENESS_UNBOUNDED,
                         .depth = async ? 2 : 1};
}

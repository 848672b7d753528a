/*
 * What comes from a worker is, for the shard, a message that goes through one of two lives:
 *
 *     receiving -> arrived    it is here, and checked (look_at)
 *     arrived   -> answered   alone, at once: all of async, and in sync what has no part of a step (apply_now)
 *     arrived   -> summed     a part of the step under way, when those of the workers before it are (add_part)
 *     summed    -> answered   together, when all are: the step is applied (finish_step)
 *
 * and a sync or merge shard goes from step to step until the chief's part is an end instead of gradients:
 *
 *     collecting -> collecting   all parts are in: the step is applied, the next one begins
 *     collecting -> ending       the chief's part is an end (ends): what the others send of the step is dropped
 *     ending     -> ended        all parts are in: nothing was applied, and the step stays what it is
 *
 * With slices, any worker may send any part, and a part that another one has sent before is answered alone:
 *
 *     arrived -> held       the first result of its slice
 *     held    -> applied    the step is: the answer, which has weights of the next one, may have to wait for a gate
 *     arrived -> answered   too late (pace__shard_answer_late); or keys without gradients, which take the place of those before
 *
 * 1. A worker's next message is looked at only when the last one is answered; so it has at most one that has
 *    arrived, and one on its way.
 * 2. A buffer is used by the receive under way, by what has arrived, or by keys that wait for their
 *    gradients: no more than BUFFERS altogether, and each by one of them.
 * 3. The parts of workers (or slices) 0 .. summed - 1 are in the sums, and their messages are still there. Sums are
 *    added in that order, so that they do not depend on who was fast.
 * 4. An answer goes into a place whose last one has left: a message is dealt with only when there is one, and
 *    none is taken until that message is answered.
 * 5. Keys were read at a version of the parameters that is not ahead of the shard's; their gradients come in
 *    the order of the lists.
 * 6. Of a lost worker nothing is looked at any more, and nothing of it is freed that its carrier may use.
 */
#include "ps/shard_state.h"

#include "base/clock.h"
#include "base/memory.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* --- life --- */

static size_t message_bytes_of(const pace__shard_plan *plan)
{
    return sizeof(pace__push) + (plan->table.dim + (size_t)1) * pace__shard_places_max(plan) * sizeof(float);
}

static size_t answer_bytes_of(const pace__shard_plan *plan)
{
    uint64_t places = plan->table.keys / plan->table.shards + 1,
             all = plan->keys_max * (uint64_t)plan->workers;

    if (plan->exchange == PACE__EXCHANGE_MERGE)
        return sizeof(pace__reply) +
               (plan->table.dim + UINT64_C(1)) * (all < places ? all : places) * sizeof(float);
    return sizeof(pace__reply) + plan->table.dim * pace__shard_places_max(plan) * sizeof(float);
}

static size_t widened_bytes(const pace__shard_plan *plan)
{
    return plan->narrow ? plan->table.dim * pace__shard_places_max(plan) * sizeof(float) : 0;
}

uint64_t pace__shard_memory(const pace__shard_plan *plan)
{
    uint64_t messages =
        PACE__SHARD_BUFFERS * message_bytes_of(plan) + PACE__SHARD_ANSWERS * answer_bytes_of(plan);

    return pace__table_bytes(&plan->table) + (uint64_t)plan->workers * messages + widened_bytes(plan);
}

/* Invariant 2. */
static bool buffers_add_up(const pace__shard_peer *from)
{
    unsigned used = 0, known = from->lists_count + (from->receiving >= 0) + (from->arrived >= 0);
    bool kept = from->lists_count <= PACE__DEPTH_MAX;

    for (int i = 0; i < PACE__SHARD_BUFFERS; i++)
        used += from->used[i];
    for (unsigned i = 0; kept && i < from->lists_count; i++)
        kept = from->used[from->lists[i].buffer];
    return kept && used == known;
}

static void post_receive(pace__shard *shard, int worker)
{
    pace__shard_peer *from = &shard->peers[worker];

    assert(buffers_add_up(from));
    for (int i = 0; i < PACE__SHARD_BUFFERS && from->receiving < 0; i++) {
        if (from->used[i])
            continue;
        from->used[i] = true;
        from->receiving = i;
        pace__link_receive(shard->link, worker, PACE__TAG_PUSH, from->buffers[i], shard->message_bytes,
                           &from->receive);
    }
}

static pace_status open_peer(pace__shard *shard, int worker)
{
    pace__shard_peer *from = &shard->peers[worker];
    bool enough = true;

    from->receiving = from->arrived = -1;
    for (int i = 0; i < PACE__SHARD_BUFFERS; i++)
        enough = (from->buffers[i] = pace__pages_alloc(shard->message_bytes)) && enough;
    for (int i = 0; i < PACE__SHARD_ANSWERS; i++)
        enough = (from->answers[i] = pace__pages_alloc(shard->answer_bytes)) && enough;
    if (!enough)
        return pace_fail(shard->log, PACE_FAILED, "out of memory for the messages of %d workers",
                         shard->plan.workers);
    post_receive(shard, worker);
    return PACE_OK;
}

void pace__shard_begin_step(pace__shard *shard, uint64_t step)
{
    const pace__rate *rate = &shard->plan.rate;

    pace__optim_begin_step(&shard->table.optim,
                           pace__schedule_lr(rate->schedule, rate->lr, rate->warmup, step, rate->steps),
                           step);
}

static void begin_at(pace__shard *shard, uint64_t step)
{
    shard->step = step;
    pace__intervals_init(&shard->applied, pace__steps_rows_before(&shard->plan.steps, step));
    if (step > 0) /* penalties that are still to be applied count at the rate of the step before */
        pace__shard_begin_step(shard, step - 1);
}

static pace_status open_slices(pace__shard *shard)
{
    const pace__shard_plan *plan = &shard->plan;
    pace__slices_plan slices = {.slices = plan->slices,
                                .workers = plan->workers,
                                .first_step = plan->first_step,
                                .end = plan->rate.steps,
                                .gated = plan->table.shard == 0,
                                .grace_ns =
                                    pace__link_can_dismiss(shard->link) ? PACE__SLICES_GRACE_NS : UINT64_MAX};

    memcpy(slices.gate_every, plan->gate_every, sizeof slices.gate_every);
    return pace__slices_init(&shard->slices, &slices, pace__now_ns())
               ? PACE_OK
               : pace_fail(shard->log, PACE_FAILED, "out of memory");
}

pace_status pace__shard_create(pace__link *link, const pace__shard_plan *plan, const pace_log *log,
                               pace__shard **shard)
{
    pace__shard *created = calloc(1, sizeof *created);

    assert(plan->workers >= 1 && plan->table.sums == (plan->exchange != PACE__EXCHANGE_ASYNC));
    if (!created)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *created = (pace__shard){.link = link, .log = log, .plan = *plan};
    created->message_bytes = message_bytes_of(plan);
    created->answer_bytes = answer_bytes_of(plan);
    created->peers = calloc((size_t)plan->workers, sizeof *created->peers);
    pace_status status = created->peers ? pace__table_init(&created->table, &plan->table, log)
                                        : pace_fail(log, PACE_FAILED, "out of memory");

    begin_at(created, plan->first_step);
    if (!status && plan->narrow && !(created->widened = pace__pages_alloc(widened_bytes(plan))))
        status = pace_fail(log, PACE_FAILED, "out of memory for the gradients of a message");
    if (!status && plan->slices)
        status = open_slices(created);
    for (int worker = 0; worker < plan->workers && !status; worker++)
        status = open_peer(created, worker);
    if (status)
        pace__shard_free(created);
    else
        *shard = created;
    return status;
}

void pace__shard_free(pace__shard *shard)
{
    if (!shard)
        return;
    for (int worker = 0; shard->peers && worker < shard->plan.workers; worker++) {
        pace__shard_peer *from = &shard->peers[worker];

        if (from->kept)
            continue;
        pace__link_cancel(shard->link, &from->receive);
        for (int i = 0; i < PACE__SHARD_BUFFERS; i++)
            pace__pages_free(from->buffers[i], shard->message_bytes);
        for (int i = 0; i < PACE__SHARD_ANSWERS; i++) {
            pace__link_settle(shard->link, &from->sends[i]);
            pace__pages_free(from->answers[i], shard->answer_bytes);
        }
    }
    free(shard->peers);
    pace__slices_release(&shard->slices);
    pace__pages_free(shard->widened, widened_bytes(&shard->plan));
    pace__table_release(&shard->table);
    free(shard);
}

/* --- gradients --- */

static float scale_of(const pace__shard *shard, uint64_t step)
{
    return pace__optim_scale(&shard->table.optim, pace__steps_rows_in(&shard->plan.steps, step));
}

static pace__key_list take_keys(pace__shard_peer *from)
{
    pace__key_list list = from->lists[0];

    assert(from->lists_count > 0 && from->used[list.buffer]);
    from->lists_count--;
    memmove(&from->lists[0], &from->lists[1], from->lists_count * sizeof from->lists[0]);
    from->used[list.buffer] = false;
    return list;
}

static void drop_repeat(pace__shard *shard, const pace__push *push)
{
    shard->stats.repeats_dropped++;
    shard->stats.rows_repeated += push->rows;
}

/* Whether these rows are to be applied: not if they have been already. */
static pace_status book_rows(pace__shard *shard, int worker, const pace__push *push, bool *fresh)
{
    pace__interval_result result =
        pace__intervals_add(&shard->applied, push->first, push->first + push->rows);

    *fresh = result == PACE__INTERVAL_NEW;
    if (result == PACE__INTERVAL_REPEAT) {
        drop_repeat(shard, push);
    } else if (result != PACE__INTERVAL_NEW) {
        return pace__shard_refuse(shard, worker,
                                  result == PACE__INTERVAL_FULL
                                      ? "its rows are too far ahead"
                                      : "some of its rows were applied before, some not");
    }
    if (*fresh)
        shard->loss += push->loss;
    shard->stats.pushes++;
    return PACE_OK;
}

static void note_staleness(pace__shard *shard, uint64_t version)
{
    assert(version <= shard->version); /* invariant 5 */
    uint64_t age = shard->version - version;

    shard->stats.staleness[age < PACE__STALENESS_BINS ? age : PACE__STALENESS_BINS - 1]++;
}

/* Async: one message, from beginning to end. */
static pace_status apply_now(pace__shard *shard, int worker)
{
    pace__shard_peer *from = &shard->peers[worker];
    pace__shard_parts message = pace__shard_parts_of(shard, from->buffers[from->arrived]);
    pace_status status = PACE_OK;
    PACE__SPAN_OF("serve a push", NULL, 0, message.push->gradients * shard->table.plan.dim * 4);

    if (message.push->flags & PACE__PUSH_GRADIENTS) {
        pace__key_list keys = take_keys(from);
        bool fresh;

        status = book_rows(shard, worker, message.push, &fresh);
        if (!status && fresh) {
            float scale = scale_of(shard, message.push->step) *
                          pace__push_weight(shard->version - keys.version, shard->plan.fresh_pushes);

            pace__shard_begin_step(shard, message.push->step);
            note_staleness(shard, keys.version);
            pace__table_update(&shard->table, keys.places, pace__shard_gradients_of(shard, &message),
                               keys.count, scale);
            shard->version++;
        }
    }
    if (!status)
        pace__shard_answer_with_weights(shard, worker);
    return status;
}

/* Sync and merge: one worker's part of the step goes into the sums. */
static pace_status add_part(pace__shard *shard, int worker)
{
    pace__shard_peer *from = &shard->peers[worker];

    assert(from->arrived >= 0 && pace__shard_is_part((const pace__push *)from->buffers[from->arrived]));
    pace__shard_parts message = pace__shard_parts_of(shard, from->buffers[from->arrived]);
    const pace__push *push = message.push;
    bool merge = shard->plan.exchange == PACE__EXCHANGE_MERGE, fresh;
    pace__key_list keys = {.places = message.places, .count = push->keys};

    if (push->flags & PACE__PUSH_END) { /* from the chief, whose part is the first: there are no sums yet */
        assert(worker == 0 && shard->table.touched_count == 0);
        shard->ends = true;
        return PACE_OK;
    }
    if (!merge) /* also if nobody wants the gradients any more: others may be waiting for room */
        keys = take_keys(from);
    if (shard->ends)
        return PACE_OK;
    PACE__SPAN_OF("add a worker's part", NULL, keys.count * shard->table.plan.dim,
                  keys.count * shard->table.plan.dim * 4);
    pace_status status = book_rows(shard, worker, push, &fresh);

    if (status || !fresh)
        return status;
    pace__table_add(&shard->table, keys.places, pace__shard_gradients_of(shard, &message), keys.count);
    if (!merge)
        note_staleness(shard, keys.version);
    return PACE_OK;
}

/* Parts that overlap are refused one by one (book_rows); that together they are the step is known with the last. */
static pace_status check_step(const pace__shard *shard)
{
    uint64_t rows = pace__steps_rows_before(&shard->plan.steps, shard->step + 1);

    if (shard->ends || (shard->applied.low == rows && shard->applied.count == 0))
        return PACE_OK;
    return pace_fail(shard->log, PACE_BUG,
                     "the workers have sent gradients of %" PRIu64 " of the %" PRIu64
                     " rows up to the end of step %" PRIu64 ": they do not see the same data",
                     pace__intervals_rows(&shard->applied), rows, shard->step);
}

static int parts_in_step(const pace__shard *shard)
{
    return shard->plan.slices ? shard->plan.slices : shard->plan.workers;
}

/* --- slices --- */

static void forget_keys(pace__shard_peer *from)
{
    while (from->lists_count > 0)
        take_keys(from);
}

/* There is a place for the answer: invariant 4. */
static pace_status deal_with_slice(pace__shard *shard, int worker, bool *busy)
{
    pace__shard_peer *from = &shard->peers[worker];
    const pace__push *push = (const pace__push *)from->buffers[from->arrived];
    bool pushes = push->flags & PACE__PUSH_GRADIENTS, asks = push->flags & PACE__PUSH_KEYS;

    if (pushes &&
        push->step == shard->slices.gate) /* the chief's: its word that it has passed is on its way */
        return PACE_OK;
    if (pushes && from->part == PACE__PART_NEW &&
        pace__slices_put(&shard->slices, worker, push->step, (int)push->slice, pace__now_ns())) {
        from->part = PACE__PART_HELD;
        *busy = true;
    }
    if (from->part == PACE__PART_HELD)
        return PACE_OK;
    /* Who brings a repeat can help with another slice now. */
    bool repeats = pushes && from->part == PACE__PART_NEW;
    pace__slice_look look = repeats ? PACE__SLICE_PAST
                            : pushes && !asks
                                ? PACE__SLICE_NOW
                                : pace__slices_look(&shard->slices, worker, push->step + pushes);

    if (look == PACE__SLICE_WAIT)
        return PACE_OK;
    *busy = true;
    if (repeats)
        drop_repeat(shard, push);
    if (repeats ||
        (asks && !pushes)) /* keys without gradients: what was asked for before is not wanted any more */
        forget_keys(from);
    if (look == PACE__SLICE_PAST)
        pace__shard_answer_late(shard, worker);
    else
        pace__shard_answer_with_weights(shard, worker);
    return PACE_OK;
}

static pace_status sum_slices(pace__shard *shard)
{
    pace_status status = PACE_OK;

    while (!status && shard->summed < shard->plan.slices && shard->slices.at[shard->summed].in)
        status = add_part(shard, shard->slices.at[shard->summed++].worker);
    return status;
}

/* The step is applied: whoever has waited for that is answered, but for those whom a gate holds back. */
static pace_status finish_slices(pace__shard *shard)
{
    pace_status status = PACE_OK;
    bool busy = false;

    pace__slices_next(&shard->slices, pace__now_ns());
    for (int worker = 0; worker < shard->plan.workers && !status; worker++) {
        pace__shard_peer *from = &shard->peers[worker];

        if (from->part == PACE__PART_HELD)
            from->part = PACE__PART_APPLIED;
        if (from->arrived >= 0 && pace__shard_answer_is_free(shard, from, &status))
            status = deal_with_slice(shard, worker, &busy);
    }
    return status;
}

/* All parts of a step are in. */
static pace_status finish_step(pace__shard *shard)
{
    pace_status status = check_step(shard);

    if (status)
        return status;
    assert(shard->summed == parts_in_step(shard) && shard->plan.exchange != PACE__EXCHANGE_ASYNC);
    PACE__SPAN("apply a step, answer all");
    if (shard->plan.exchange == PACE__EXCHANGE_MERGE)
        pace__shard_answer_with_sums(shard);
    pace__shard_begin_step(shard, shard->step);
    pace__table_apply(&shard->table, scale_of(shard, shard->step),
                      shard->ends || shard->plan.exchange == PACE__EXCHANGE_MERGE);
    shard->ended = shard->ends;
    if (!shard->ends) {
        shard->step++;
        shard->version++;
    }
    shard->summed = 0;
    if (shard->plan.slices)
        return finish_slices(shard);
    for (int worker = 0; worker < shard->plan.workers && shard->plan.exchange == PACE__EXCHANGE_SYNC;
         worker++)
        pace__shard_answer_with_weights(shard, worker);
    return PACE_OK;
}

/* --- polling --- */

/* Takes in what has come from a worker, if the message before it has been dealt with. */
static pace_status look_at(pace__shard *shard, int worker, bool *busy)
{
    pace__shard_peer *from = &shard->peers[worker];
    bool done = false;
    uint64_t start_ns = pace__span_now();

    if (from->arrived >= 0 || from->receiving < 0) /* invariant 1 */
        return PACE_OK;
    pace_status status = pace__link_done(shard->link, &from->receive, &done);

    if (status || !done)
        return status;
    from->arrived = from->receiving;
    from->receiving = -1;
    *busy = true;
    status = pace__shard_check_message(shard, worker, from->buffers[from->arrived], from->receive.bytes);
    pace__span_past("receive a push", start_ns);
    if (!status)
        post_receive(shard, worker);
    return status;
}

/* A message without a step's gradients, or one of an async worker, concerns nobody else. */
static bool stands_alone(const pace__shard *shard, const pace__shard_peer *from)
{
    const pace__push *push = (const pace__push *)from->buffers[from->arrived];

    return shard->plan.exchange == PACE__EXCHANGE_ASYNC || !pace__shard_is_part(push);
}

static pace_status deal_with(pace__shard *shard, int worker, bool *busy)
{
    pace__shard_peer *from = &shard->peers[worker];
    pace_status status = PACE_OK;

    if (from->arrived < 0 || !pace__shard_answer_is_free(shard, from, &status))
        return status;
    if (shard->plan.slices)
        return deal_with_slice(shard, worker, busy);
    if (stands_alone(shard, from)) {
        *busy = true;
        return apply_now(shard, worker);
    }
    if (worker == shard->summed) { /* invariant 3 */
        *busy = true;
        shard->summed++;
        status = add_part(shard, worker);
    }
    return status;
}

pace_status pace__shard_poll(pace__shard *shard, bool *busy)
{
    pace_status status = PACE_OK;
    uint64_t start_ns = pace__now_ns();
    bool worked = false;

    for (int worker = 0; worker < shard->plan.workers && !status; worker++) {
        bool something = false;

        if (shard->peers[worker].lost)
            continue;
        status = look_at(shard, worker, &something);
        if (!status)
            status = deal_with(shard, worker, &something);
        if (!status)
            post_receive(shard, worker); /* a buffer may have become free */
        worked |= something;
    }
    if (!status && shard->plan.slices)
        status = sum_slices(shard);
    if (!status && shard->summed == parts_in_step(shard))
        status = finish_step(shard);
    if (worked) {
        shard->stats.busy_ns += pace__now_ns() - start_ns;
        shard->stats.looks++;
    }
    *busy |= worked;
    return status;
}

size_t pace__shard_waits_for(const pace__shard *shard, int *peers)
{
    size_t count = 0;

    for (int worker = 0; worker < shard->plan.workers; worker++) {
        if (shard->peers[worker].arrived < 0 && !shard->peers[worker].lost)
            peers[count++] = worker;
    }
    return count;
}

void pace__shard_lose(pace__shard *shard, int worker)
{
    assert(shard->plan.exchange == PACE__EXCHANGE_ASYNC && worker > 0 && worker < shard->plan.workers);
    pace__shard_peer *from = &shard->peers[worker];

    if (from->lost) /* what must be kept is known from the first time only: invariant 6 */
        return;
    from->lost = true;
    from->arrived = -1;
    from->lists_count = 0;
    from->kept = !pace__link_abandon(shard->link, &from->receive);
    for (int i = 0; i < PACE__SHARD_ANSWERS; i++)
        from->kept |= !pace__link_abandon(shard->link, &from->sends[i]);
}

pace__slices *pace__shard_slices(pace__shard *shard)
{
    return &shard->slices;
}

pace__table *pace__shard_table(pace__shard *shard)
{
    return &shard->table;
}

uint64_t pace__shard_step(const pace__shard *shard)
{
    if (shard->plan.exchange != PACE__EXCHANGE_ASYNC)
        return shard->step;
    return pace__steps_of(&shard->plan.steps, shard->applied.low);
}

uint64_t pace__shard_reached(const pace__shard *shard)
{
    if (shard->plan.exchange != PACE__EXCHANGE_ASYNC)
        return shard->step;
    return pace__steps_of(&shard->plan.steps, pace__intervals_rows(&shard->applied));
}

const pace__shard_stats *pace__shard_stats_of(const pace__shard *shard)
{
    return &shard->stats;
}

pace_status pace__shard_check(const pace__shard *shard, uint64_t rows)
{
    if (shard->applied.low == rows && shard->applied.count == 0)
        return PACE_OK;
    return pace_fail(shard->log, PACE_BUG,
                     "shard %u has applied the rows up to %" PRIu64
                     " and %zu stretches behind, not all %" PRIu64 " of the job, each once",
                     shard->plan.table.shard, shard->applied.low, shard->applied.count, rows);
}

/* What workers are sent back: weights of their keys, sums, or that they are too late. */
#include "ps/shard_state.h"

#include <assert.h>
#include <string.h>

bool pace__shard_answer_is_free(pace__shard *shard, pace__shard_peer *to, pace_status *status)
{
    bool done = false;

    *status = pace__link_done(shard->link, &to->sends[to->next_answer], &done);
    return done && !*status;
}

static void send_answer(pace__shard *shard, int worker, const pace__reply *reply, size_t bytes)
{
    pace__shard_peer *to = &shard->peers[worker];

    assert(bytes <= shard->answer_bytes && to->arrived < 0);
    pace__link_send(shard->link, worker, PACE__TAG_REPLY, reply, bytes, &to->sends[to->next_answer]);
    to->next_answer = (to->next_answer + 1) % PACE__SHARD_ANSWERS;
}

/* An end is told only to those whose part of the step is in: the others are still to send theirs. Once all
 * are in, it is told to whoever has asked for a step behind it, too. */
static pace__reply reply_header(const pace__shard *shard, bool part)
{
    return (pace__reply){.flags = shard->ended || (shard->ends && part) ? PACE__REPLY_END : 0,
                         .rows_done = pace__intervals_rows(&shard->applied),
                         .loss = shard->loss,
                         .step = shard->step,
                         .gate = shard->slices.gate};
}

/* The rate at which penalties up to row `now` count: that of the step which has the last of these rows. A
 * synchronous shard stands there; in between pushes of any step, it is set for each answer. */
static void stand_at(pace__shard *shard, uint64_t now)
{
    if (shard->plan.exchange == PACE__EXCHANGE_ASYNC && shard->table.optim.lazy && now > 0)
        pace__shard_begin_step(shard, pace__steps_of(&shard->plan.steps, now - 1));
}

/* Answers the message that has arrived from the worker, with the weights of its keys, which are kept for
 * their gradients. */
void pace__shard_answer_with_weights(pace__shard *shard, int worker)
{
    pace__shard_peer *to = &shard->peers[worker];
    int buffer = to->arrived;

    assert(buffer >= 0 && !to->sends[to->next_answer].active); /* invariant 4 */
    pace__shard_parts message = pace__shard_parts_of(shard, to->buffers[buffer]);
    pace__reply *reply = (pace__reply *)to->answers[to->next_answer];
    float *weights = (float *)(reply + 1);

    *reply = reply_header(shard, pace__shard_is_part(message.push));
    reply->weights = message.push->keys;
    stand_at(shard, message.push->now);
    if (reply->flags & PACE__REPLY_END) /* they must not be brought up to rows that never come */
        pace__table_peek(&shard->table, message.places, message.push->keys, message.push->now, weights);
    else
        pace__table_weights(&shard->table, message.places, message.push->keys, message.push->now, weights);
    assert(to->lists_count < PACE__DEPTH_MAX || !(message.push->flags & PACE__PUSH_KEYS));
    if (message.push->flags & PACE__PUSH_KEYS)
        to->lists[to->lists_count++] =
            (pace__key_list){buffer, message.places, message.push->keys, shard->version};
    else
        to->used[buffer] = false;
    to->arrived = -1;
    to->part = PACE__PART_NEW;
    send_answer(shard, worker, reply, sizeof *reply + reply->weights * shard->plan.table.dim * sizeof(float));
}

/* With slices: nothing of the message is wanted. */
void pace__shard_answer_late(pace__shard *shard, int worker)
{
    pace__shard_peer *to = &shard->peers[worker];
    pace__reply *reply = (pace__reply *)to->answers[to->next_answer];

    assert(to->arrived >= 0 && !to->sends[to->next_answer].active); /* invariant 4 */
    *reply = reply_header(shard, false);
    reply->flags |= PACE__REPLY_LATE;
    to->used[to->arrived] = false;
    to->arrived = -1;
    to->part = PACE__PART_NEW;
    send_answer(shard, worker, reply, sizeof *reply);
}

/* The same sums for everyone, out of one place, the first worker's: it is free again when all have got them, since
 * nobody's part of a later step is dealt with before (invariant 4). */
void pace__shard_answer_with_sums(pace__shard *shard)
{
    pace__table *table = &shard->table;
    size_t dim = table->plan.dim,
           bytes = sizeof(pace__reply) + (dim + 1) * (size_t)table->touched_count * sizeof(float);
    pace__reply *reply = (pace__reply *)shard->peers[0].answers[shard->peers[0].next_answer];
    float *sums = (float *)(reply + 1);

    *reply = reply_header(shard, true);
    reply->weights = table->touched_count;
    pace__table_sums(table, sums);
    memcpy(sums + reply->weights * dim, table->touched, reply->weights * sizeof(uint32_t));
    for (int worker = 0; worker < shard->plan.workers; worker++) {
        pace__shard_peer *to = &shard->peers[worker];

        assert(to->arrived >= 0 && !to->sends[to->next_answer].active); /* invariants 3 and 4 */
        to->used[to->arrived] = false;
        to->arrived = -1;
        send_answer(shard, worker, reply, bytes);
    }
}

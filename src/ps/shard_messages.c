/* What workers have sent: taken apart, and refused if it cannot be. */
#include "ps/shard_state.h"

#include "math/bf16.h"

size_t pace__shard_places_max(const pace__shard_plan *plan)
{
    uint64_t places = plan->table.keys / plan->table.shards + 1;

    return plan->keys_max < places ? plan->keys_max : places;
}

static uint64_t gradient_words(const pace__shard *shard, const pace__push *push)
{
    return pace__push_words(push->gradients * shard->plan.table.dim, shard->plan.narrow);
}

pace__shard_parts pace__shard_parts_of(const pace__shard *shard, const unsigned char *message)
{
    const pace__push *push = (const pace__push *)message;
    const float *floats = (const float *)(push + 1);

    return (pace__shard_parts){push, floats, (const uint32_t *)(floats + gradient_words(shard, push))};
}

/* As floats: of one message at a time. */
const float *pace__shard_gradients_of(pace__shard *shard, const pace__shard_parts *message)
{
    const pace__bf16 *narrow = message->gradients;
    size_t count = message->push->gradients * shard->plan.table.dim;

    if (!shard->plan.narrow)
        return message->gradients;
    for (size_t i = 0; i < count; i++)
        shard->widened[i] = pace__bf16_widen(narrow[i]);
    return shard->widened;
}

pace_status pace__shard_refuse(const pace__shard *shard, int worker, const char *why)
{
    return pace_fail(shard->log, PACE_BUG, "a message from %s that cannot be: %s",
                     pace__link_name(shard->link, worker), why);
}

/* What is wrong with the counts of a message, or NULL. */
static const char *fault_of_counts(const pace__shard *shard, const pace__shard_peer *from,
                                   const pace__push *push)
{
    bool merge = shard->plan.exchange == PACE__EXCHANGE_MERGE, pushes = push->flags & PACE__PUSH_GRADIENTS,
         asks = merge ? pushes : push->flags & PACE__PUSH_KEYS;

    if ((!pushes && push->gradients > 0) || (!asks && push->keys > 0))
        return "it has gradients or keys without saying so";
    if (push->keys >
        pace__shard_places_max(&shard->plan)) /* also if some occur twice: the answer has no more room */
        return "it has more keys than a batch can have";
    if (pushes && (merge ? push->gradients != push->keys
                         : from->lists_count == 0 || push->gradients != from->lists[0].count))
        return "it has gradients without keys";
    if (!merge && asks && from->lists_count - pushes >= PACE__DEPTH_MAX)
        return "it asks for too many batches ahead";
    return NULL;
}

/* Rows lie in their step; the sum of first and rows may be anything. A part without rows may be at the end of the step: in
 * front of the first row of the next one. */
static bool rows_fit(const pace__steps *steps, const pace__push *push)
{
    uint64_t last = push->first + push->rows,
             in = push->rows == 0 && push->first > 0 ? push->first - 1 : push->first;

    return (pace__steps_of(steps, push->first) == push->step || pace__steps_of(steps, in) == push->step) &&
           push->first <= last && last <= pace__steps_rows_before(steps, push->step + 1);
}

/* Whether a message is a worker's part of a step: an end counts as the chief's. */
bool pace__shard_is_part(const pace__push *push)
{
    return push->flags & (PACE__PUSH_GRADIENTS | PACE__PUSH_END);
}

/* What is wrong with the time that a message is of, or NULL. */
static const char *fault_of_step(const pace__shard *shard, int worker, const pace__push *push)
{
    bool pushes = push->flags & PACE__PUSH_GRADIENTS, ends = push->flags & PACE__PUSH_END,
         async = shard->plan.exchange == PACE__EXCHANGE_ASYNC;

    if (ends && (worker != 0 || pushes || async))
        return "only the chief may end the job, and then without gradients";
    if (!async && pace__shard_is_part(push) &&
        (shard->plan.slices ? push->step > shard->step : push->step != shard->step))
        return "it is of another step";
    if (shard->plan.slices && (ends || push->slice >= (uint64_t)shard->plan.slices))
        return "it is of no slice that there is";
    if (push->now > PACE__STAMP_ROWS_MAX)
        return "it asks for weights behind more rows than there can be";
    if (pushes && !rows_fit(&shard->plan.steps, push))
        return "its rows are not rows of its step";
    return NULL;
}

pace_status pace__shard_check_message(const pace__shard *shard, int worker, const unsigned char *message,
                                      size_t bytes)
{
    const pace__push *push = (const pace__push *)message;
    uint64_t kinds = shard->plan.exchange == PACE__EXCHANGE_MERGE
                         ? PACE__PUSH_GRADIENTS | PACE__PUSH_END
                         : PACE__PUSH_GRADIENTS | PACE__PUSH_KEYS | PACE__PUSH_END;

    if (bytes < sizeof *push || push->gradients > bytes || push->keys > bytes ||
        bytes != sizeof *push + (gradient_words(shard, push) + push->keys) * sizeof(float))
        return pace__shard_refuse(shard, worker, "its length is not what its header says");
    if (push->flags & ~kinds)
        return pace__shard_refuse(shard, worker, "it is of no kind that is known");
    const char *fault = fault_of_counts(shard, &shard->peers[worker], push);

    if (!fault)
        fault = fault_of_step(shard, worker, push);
    if (!fault &&
        !pace__table_places_valid(&shard->table, pace__shard_parts_of(shard, message).places, push->keys))
        fault = "it asks for a parameter that is not on this shard";
    return fault ? pace__shard_refuse(shard, worker, fault) : PACE_OK;
}

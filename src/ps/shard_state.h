/*
 * shard_state.h - what a shard is made of, for the files that are it: shard.c (lives of messages and steps), shard_messages.c (what
 * came, and whether it can be), shard_answers.c. Numbers of invariants are those of shard.c.
 */
#ifndef PS_SHARD_STATE_H
#define PS_SHARD_STATE_H

#include "ps/shard.h"

/* Messages that are kept for their keys, one that is looked at, and one that is on its way. */
#define PACE__SHARD_BUFFERS (PACE__DEPTH_MAX + 2)
/* Answers on their way to one worker. */
#define PACE__SHARD_ANSWERS (PACE__DEPTH_MAX + 1)

/* Keys that were sent and wait for their gradients. */
typedef struct pace__key_list {
    int buffer; /* that holds them */
    const uint32_t *places;
    size_t count;
    uint64_t version; /* of the parameters when the weights were read */
} pace__key_list;

/* What has become of the gradients of a message, with slices. */
typedef enum pace__part_state { PACE__PART_NEW, PACE__PART_HELD, PACE__PART_APPLIED } pace__part_state;

/* One worker, as the shard sees it. */
typedef struct pace__shard_peer {
    unsigned char *buffers[PACE__SHARD_BUFFERS];
    bool used[PACE__SHARD_BUFFERS];
    int receiving; /* the buffer of the receive under way, or -1 */
    pace__request receive;
    int arrived; /* the buffer of a message that waits to be dealt with, or -1 */
    pace__part_state part;
    pace__key_list lists[PACE__DEPTH_MAX];
    unsigned lists_count;
    unsigned char *answers[PACE__SHARD_ANSWERS];
    pace__request sends[PACE__SHARD_ANSWERS];
    unsigned next_answer;
    bool lost;
    bool kept; /* lost, and its buffers must stay in place: see pace__link_abandon */
} pace__shard_peer;

struct pace__shard {
    pace__link *link;
    const pace_log *log;
    pace__shard_plan plan;
    pace__table table;
    pace__intervals applied;
    uint64_t version; /* updates so far */
    double loss;
    pace__shard_stats stats;
    size_t message_bytes, answer_bytes;
    float *
        widened; /* (places, dim) gradients that came as bf16, of the message at hand; NULL: they come as floats */
    pace__shard_peer *peers;
    /* sync and merge: the step under way */
    uint64_t step;
    int summed; /* workers, or slices, whose part is in the sums */
    bool ends;  /* the chief wants no such step */
    bool ended; /* and everyone's part of it is in */
    pace__slices slices;
};

/* A message, taken apart. */
typedef struct pace__shard_parts {
    const pace__push *push;
    const void *gradients; /* as they came: pace__shard_gradients_of */
    const uint32_t *places;
} pace__shard_parts;

/* --- what came: shard_messages.c --- */

/* Keys that a message can have. */
size_t pace__shard_places_max(const pace__shard_plan *plan);
pace__shard_parts pace__shard_parts_of(const pace__shard *shard, const unsigned char *message);
/* As floats: of one message at a time. */
const float *pace__shard_gradients_of(pace__shard *shard, const pace__shard_parts *message);
/* Says that it cannot be. */
pace_status pace__shard_refuse(const pace__shard *shard, int worker, const char *why);
/* Whether a message is a worker's part of a step: an end counts as the chief's. */
bool pace__shard_is_part(const pace__push *push);
pace_status pace__shard_check_message(const pace__shard *shard, int worker, const unsigned char *message,
                                      size_t bytes);

/* --- answers: shard_answers.c --- */

/* Invariant 4. */
bool pace__shard_answer_is_free(pace__shard *shard, pace__shard_peer *to, pace_status *status);
/* Answer the message that has arrived; of sums, everyone's. */
void pace__shard_answer_with_weights(pace__shard *shard, int worker);
void pace__shard_answer_late(pace__shard *shard, int worker);
void pace__shard_answer_with_sums(pace__shard *shard);

/* --- shard.c --- */

/* The rate, and all that goes by it, is that of the step. */
void pace__shard_begin_step(pace__shard *shard, uint64_t step);

#endif

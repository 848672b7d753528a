/*
 * rnn_fast.h - the parts of the fast implementation of rnn.h.
 *
 * A batch goes through these phases, whose tasks the threads of a crew share out (threads/crew.h):
 *
 *     pack      weights into the panels that the kernels multiply by         (rnn_fast_pack.c)
 *     project   layer 0's products of inputs, once for each slot, not for each word    (rnn_fast_slots.c)
 *     chunks    rows forward and back, chunk by chunk                        (rnn_fast_chunk.c, _back.c)
 *     add       what the chunks have summed up; derivatives of slots
 *     weigh     layer 0's derivatives of input weights, by slots
 *
 * Rows are sorted by length, longest first, and cut into chunks of chunk_rows. In a chunk, arrays by word
 * are ordered by *step* (a direction's steps; in the other direction step 0 is the last word), then by row.
 * The rows that still have a word at a step are the first ones, and so padding is never met:
 *
 *     at[t] words come before step t; it has at[t + 1] - at[t] rows; word (t, row) is number at[t] + row
 *
 * With config.bf16 gradients are computed by products of bf16 (rnn_fast_products.c): what is multiplied exists a second time, in
 * fields whose names end in 16, which are written as soon as the floats are there. All else is in floats: sums, gates,
 * cells, the head, logits, results.
 *
 * 1. What is summed, and in which order, depends on the configuration and the batch alone: chunk c adds to
 * sums c % sums_count, after chunk c - sums_count; the sums are added up in their order. So the bits do not
 * depend on the number of threads.
 * 2. Whatever two tasks of a phase write is apart; only phases connect threads, and the order of chunks of 1.
 */
#ifndef MODEL_RNN_RNN_FAST_H
#define MODEL_RNN_RNN_FAST_H

#include "model/rnn/rnn.h"
#include "model/rnn/rnn_fast_kernels.h"
#include "threads/crew.h"
#include "watch/spans.h"

#include <stdatomic.h>

/* As soon as there are so many words, their derivatives are multiplied together, while they are still in the cache. */
#define PACE__RNN_WORDS_TOGETHER 384

/* One direction of one layer: weights, packed. */
typedef struct pace__rnn_side {
    size_t weight_ih, weight_hh, bias_ih, bias_hh; /* in the dense array */
    size_t inputs;                                 /* rows of `input`: of layers above 0 blocks x 16 a side */
    float *input;                                  /* (inputs, gates) in panels */
    float *state;                                  /* (blocks x 16, gates) in panels */
    float *bias;                                   /* (blocks, 64) */
    float *input_back;                             /* (gates, inputs) in panels */
    float *state_back;                             /* (gates, blocks x 16) in panels */
    pace__bf16 *input16, *state16, *input_back16, *state_back16;
    size_t d_input, d_state, d_bias; /* in a chunk's sums, shaped as above; of layer 0 no d_input */
} pace__rnn_side;

typedef struct pace__rnn_head {
    size_t weight, bias, out_weight, out_bias; /* in the dense array; the first two only with a dense layer */
    size_t units, blocks;                      /* of the dense layer; 0: none */
    float *forward, *back;                     /* (pooled, units) and (units, pooled) in panels */
    float *start;                              /* (blocks x 16) bias */
    float *out;                                /* (blocks x 16), or (pooled): out.weight */
    size_t d_weight, d_bias, d_out, d_out_bias;
} pace__rnn_head;

/* What one direction of one layer keeps of the words of a chunk. */
typedef struct pace__rnn_trace {
    float *gates;                   /* (words, gates_stride); see first_gates */
    float *cell, *squashed, *state; /* (words, stride) */
    pace__bf16 *state16;            /* (words, stride16) */
} pace__rnn_trace;

/* A thread's memory for one chunk. */
typedef struct pace__rnn_space {
    pace__rnn_trace traces[PACE__RNN_LAYERS_MAX][2];
    /* What layer l > 0 reads, in the order of each direction: with dropout or two directions; else the layer
     * below has it in `state`. */
    float *input[PACE__RNN_LAYERS_MAX][2];        /* (words, wide_stride) */
    pace__bf16 *input16[PACE__RNN_LAYERS_MAX][2]; /* (words, wide_stride16) */
    uint16_t *kept[PACE__RNN_LAYERS_MAX];         /* (words, sides x blocks) of the outputs of layer l */
    uint32_t *mirror;                             /* (words) a word's number in the other direction */
    float *d_input[2];                            /* (words, wide_stride) */
    float *d_output[2];                           /* (words, stride) */
    float *d_state, *d_cell;                      /* (rows, stride) */
    float *pooled, *d_pooled;                     /* (rows, wide_stride) */
    uint32_t *largest;                            /* (rows, wide_stride) of pooling max: step */
    uint16_t *kept_pooled;                        /* (rows, sides x blocks) */
    float *relu, *d_relu;                         /* (rows, dense blocks x 16) */
    float *sums;                                  /* (rows, 64) a block's products at a step */
    float *d_gates;              /* (rows, gates_stride) derivatives at a step, if they become bf16 */
    pace__bf16 *gates16;         /* (words16, gates_stride16) derivatives */
    pace__bf16 *turned, *paired; /* both sides of an outer product, packed */
} pace__rnn_space;

/* Rows that are computed together. */
typedef struct pace__rnn_chunk {
    uint32_t rows, steps;
    const uint32_t *row; /* (rows) their numbers in the batch */
    const uint32_t *at;  /* (steps + 1) */
    size_t first_word;   /* in arrays of the whole batch */
} pace__rnn_chunk;

struct pace__rnn_fast {
    pace__rnn_config config;
    const pace__rnn_products *products;
    const pace__rnn_cells *cells;
    const pace__bf16_kernels *bf16; /* NULL: everything in floats */
    const pace_log *log;
    uint64_t rows_max;
    size_t slots_max;
    int threads;
    uint32_t chunk_rows, chunks_max, sums_max;
    size_t sides, blocks;       /* directions; blocks of hidden units */
    size_t gates, gates_stride; /* floats of a word's gates; and from one to the next */
    size_t stride, wide_stride; /* of one side's units, and of all sides' */
    size_t gates_stride16, stride16, wide_stride16, embed_stride16;
    int idle_input, idle_state; /* gates that have no weights of inputs, of states */
    pace__rnn_side side[PACE__RNN_LAYERS_MAX][2];
    pace__rnn_head head;
    size_t sums_size;                     /* floats of a chunk's sums */
    float *sums;                          /* (sums_max, sums_size) */
    float *first_gates[2];                /* (words of the batch, gates_stride) of layer 0; of bf16: NULL */
    pace__bf16 *first_gates16[2];         /* (words of the batch, gates_stride16) derivatives of layer 0 */
    float *projected[2];                  /* (slots, gates_stride); later their derivatives */
    float *first_sums[2];                 /* derivatives of input weights of layer 0 */
    pace__bf16 *embedding16;              /* (slots, embed_stride16) */
    pace__bf16 *projected16[2];           /* (slots, gates_stride16) derivatives */
    uint32_t *slots[2];                   /* (words of the batch) */
    uint32_t *by_slot[2], *slot_start[2]; /* words in the order of their slots; (slots + 1) */
    uint32_t *row, *at;                   /* (rows_max), (chunks_max, length + 1) */
    pace__rnn_chunk *chunks;
    double *loss;            /* (rows_max) by row of the batch */
    pace__rnn_space *spaces; /* (threads) */
    pace__crew *crew;
    void *memory;
    size_t memory_size;
    /* For a profile. */
    const char *forward_name[PACE__RNN_LAYERS_MAX], *back_name[PACE__RNN_LAYERS_MAX];
    const char *shape[PACE__RNN_LAYERS_MAX], *project_shape, *head_shape;

    /* The batch at hand. */
    const pace__rnn_batch *batch;
    bool training; /* else forward only, to logits */
    float *logits;
    uint32_t chunk_count, sums_count;
    size_t words;
    size_t ready_first;      /* what the caller has been told */
    pace_status status;      /* of the caller's `ready` */
    atomic_bool *chunk_done; /* (chunks_max) */
};

/* As pace__rnn_fast_create, with the kernels of this set, and for config.bf16 with these. */
pace_status pace__rnn_fast_create_with(const pace__rnn_config *config, uint64_t rows_max, int threads,
                                       int kernels, const pace__bf16_kernels *bf16, const pace_log *log,
                                       pace__rnn_fast **fast);

/* --- rnn_fast_products.c: what is computed in floats, or in bf16 --- */

/* Elements from one row of bf16 to the next. */
size_t pace__rnn_stride16(size_t count);
/* Elements of pace__rnn_space's turned and paired. */
size_t pace__rnn_turned16(const pace__rnn_fast *self);
size_t pace__rnn_paired16(const pace__rnn_fast *self);

void pace__rnn_multiply(const pace__rnn_fast *self, const pace__rnn_product *product);
void pace__rnn_multiply_outer(const pace__rnn_fast *self, pace__rnn_space *space,
                              const pace__rnn_outer *outer);
/* Rows for products of bf16; does nothing if there will be none. */
void pace__rnn_narrow(const pace__rnn_fast *self, const float *from, size_t stride, size_t rows, size_t count,
                      pace__bf16 *to, size_t stride16);

/* --- rnn_fast_plan.c --- */

/* Rows into chunks. */
void pace__rnn_plan(pace__rnn_fast *self);
/* The slots of a chunk's words; a task. */
void pace__rnn_plan_slots(pace__rnn_fast *self, const pace__rnn_chunk *chunk);
/* Words by slot, for one direction. */
void pace__rnn_plan_by_slot(pace__rnn_fast *self, size_t side);

/* --- rnn_fast_pack.c --- */

unsigned pace__rnn_pack_tasks(const pace__rnn_fast *self);
void pace__rnn_pack(pace__rnn_fast *self, unsigned index);
/* The sums of all chunks, in the order in which they become complete: from the head down. */
unsigned pace__rnn_unpack_tasks(const pace__rnn_fast *self);
void pace__rnn_unpack(pace__rnn_fast *self, unsigned index);
/* Of layer 0's input weights, rows first .. last of one block's panel. */
void pace__rnn_unpack_first(pace__rnn_fast *self, size_t side, size_t block, size_t first, size_t last);

/* --- rnn_fast_slots.c --- */

unsigned pace__rnn_project_tasks(const pace__rnn_fast *self);
void pace__rnn_project(pace__rnn_fast *self, unsigned index);
unsigned pace__rnn_slot_tasks(const pace__rnn_fast *self);
/* Embeddings in bf16; of as many tasks. */
void pace__rnn_narrow_slots(pace__rnn_fast *self, unsigned index);
void pace__rnn_slot_sums(pace__rnn_fast *self, unsigned index);
unsigned pace__rnn_weigh_tasks(const pace__rnn_fast *self);
void pace__rnn_weigh(pace__rnn_fast *self, int thread, unsigned index);

/* --- rnn_fast_chunk.c, rnn_fast_back.c --- */

void pace__rnn_chunk_forward(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk);
/* d_pooled -> derivatives of everything below; adds to the chunk's sums. */
void pace__rnn_chunk_back(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk, float *sums);
/* Pooled vectors to logits, and back to d_pooled. */
void pace__rnn_head_forward(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                            float *logits);
void pace__rnn_head_back(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                         const float *d_logits, float *sums);

/* Is this batch computed in bf16? */
static inline bool pace__rnn_narrows(const pace__rnn_fast *self)
{
    return self->bf16 && self->training;
}

static inline size_t pace__rnn_rows_at(const pace__rnn_chunk *chunk, uint32_t step)
{
    return chunk->at[step + 1] - chunk->at[step];
}

static inline pace__rnn_trace pace__rnn_trace_of(const pace__rnn_fast *self, const pace__rnn_space *space,
                                                 const pace__rnn_chunk *chunk, uint32_t layer, size_t side)
{
    pace__rnn_trace trace = space->traces[layer][side];

    if (layer == 0 && self->first_gates[side])
        trace.gates = self->first_gates[side] + chunk->first_word * self->gates_stride;
    return trace;
}

/* Of one word in one direction: products of states, and above layer 0 of inputs. */
static inline uint64_t pace__rnn_flops(const pace__rnn_fast *self, uint32_t layer)
{
    uint64_t hidden = self->config.hidden, gates = self->config.cell == PACE_CELL_LSTM ? 4 : 3;

    return 2 * gates * hidden * (hidden + (layer ? self->sides * hidden : 0));
}

/* Of layer 0's products of inputs, of one slot in one direction. */
static inline uint64_t pace__rnn_project_flops(const pace__rnn_fast *self)
{
    uint64_t gates = self->config.cell == PACE_CELL_LSTM ? 4 : 3;

    return 2 * gates * self->config.hidden * self->config.embed;
}

/* Does layer l > 0 read from an array of its own? */
static inline bool pace__rnn_arranges(const pace__rnn_fast *self)
{
    return self->sides == 2 || (self->config.dropout > 0 && self->training);
}

/* What layer l > 0 reads. */
static inline void pace__rnn_input(const pace__rnn_fast *self, const pace__rnn_space *space, uint32_t layer,
                                   size_t side, const float **input, const pace__bf16 **input16)
{
    bool arranged = pace__rnn_arranges(self);

    *input = arranged ? space->input[layer][side] : space->traces[layer - 1][0].state;
    *input16 = arranged ? space->input16[layer][side] : space->traces[layer - 1][0].state16;
}

/* Words that are multiplied together, at most. */
static inline size_t pace__rnn_words16(const pace__rnn_fast *self)
{
    return PACE__RNN_WORDS_TOGETHER + self->chunk_rows;
}

static inline const pace__bf16 *pace__rnn_row16(const pace__bf16 *array, size_t stride16, size_t row)
{
    return array ? array + row * stride16 : NULL;
}

#endif

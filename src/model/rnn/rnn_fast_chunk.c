/* A chunk's way forward: layer by layer, step by step, to its logits. */
#include "math/draws.h"
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

static float *at_word(float *array, size_t stride, size_t word)
{
    return array ? array + word * stride : NULL;
}

/* What a layer multiplies: its states of the words before, and above layer 0 what the layer below has put out. */
typedef struct reading {
    const float *input;
    const pace__bf16 *input16, *state16;
} reading;

/* The sums of one block's gates, of all rows at step t. */
static pace__rnn_product sums_of(const pace__rnn_fast *self, const pace__rnn_chunk *chunk, uint32_t layer,
                                 size_t side, size_t block, uint32_t t, const reading *from,
                                 const pace__rnn_step *step)
{
    const pace__rnn_side *weights = &self->side[layer][side];
    size_t word = chunk->at[t], width = self->blocks * BLOCK, column = block * BLOCK_GATES;

    return (pace__rnn_product){
        .rows = step->rows,
        .columns = BLOCK_GATES,
        .factor = {{.a = step->state_before,
                    .a_stride = self->stride,
                    .inner = width,
                    .panels = weights->state + column * width,
                    .idle = self->idle_state,
                    .a16 = t ? pace__rnn_row16(from->state16, self->stride16, chunk->at[t - 1]) : NULL,
                    .a16_stride = self->stride16,
                    .panels16 = pace__rnn_row16(weights->state16, pace__bf16_padded(width), column)},
                   {.a = from->input ? from->input + word * self->wide_stride : NULL,
                    .a_stride = self->wide_stride,
                    .inner = weights->inputs,
                    .panels = weights->input + column * weights->inputs,
                    .idle = self->idle_input,
                    .a16 = pace__rnn_row16(from->input16, self->wide_stride16, word),
                    .a16_stride = self->wide_stride16,
                    .panels16 =
                        pace__rnn_row16(weights->input16, pace__bf16_padded(weights->inputs), column)}},
        .start = (layer ? weights->bias : self->projected[side]) + block * BLOCK_GATES,
        .start_stride = layer ? 0 : self->gates_stride,
        .slots = layer ? NULL : self->slots[side] + chunk->first_word + word,
        .result = step->gates + block * BLOCK_GATES,
        .result_stride = self->gates_stride,
    };
}

/* Block by block: what the product leaves is still near when the cells take it up. */
static void step_forward(const pace__rnn_fast *self, const pace__rnn_chunk *chunk, uint32_t layer,
                         size_t side, uint32_t t, const reading *from, const pace__rnn_trace *trace)
{
    size_t word = chunk->at[t];
    const pace__rnn_step step = {
        .rows = pace__rnn_rows_at(chunk, t),
        .blocks = 1,
        .gates = trace->gates + word * self->gates_stride,
        .gates_stride = self->gates_stride,
        .state_before = t ? trace->state + chunk->at[t - 1] * self->stride : NULL,
        .cell_before = t ? at_word(trace->cell, self->stride, chunk->at[t - 1]) : NULL,
        .cell = at_word(trace->cell, self->stride, word),
        .squashed = at_word(trace->squashed, self->stride, word),
        .state = trace->state + word * self->stride,
        .stride = self->stride,
    };

    for (size_t block = 0; block < self->blocks; block++) {
        pace__rnn_product sums = sums_of(self, chunk, layer, side, block, t, from, &step);
        pace__rnn_step part = step;

        part.gates += block * BLOCK_GATES;
        part.state += block * BLOCK;
        if (step.state_before)
            part.state_before += block * BLOCK;
        if (step.cell_before)
            part.cell_before += block * BLOCK;
        if (step.cell) {
            part.cell += block * BLOCK;
            part.squashed += block * BLOCK;
        }
        pace__rnn_multiply(self, &sums);
        if (self->config.cell == PACE_CELL_LSTM)
            self->cells->lstm_step(&part);
        else
            self->cells->gru_step(&part);
    }
    if (trace->state16)
        pace__rnn_narrow(self, step.state, self->stride, step.rows, self->blocks * BLOCK,
                         trace->state16 + word * self->stride16, self->stride16);
}

static void forward_side(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk, uint32_t layer,
                         size_t side)
{
    pace__rnn_trace trace = pace__rnn_trace_of(self, &self->spaces[thread], chunk, layer, side);
    PACE__SPAN_OF(self->forward_name[layer], self->shape[layer],
                  chunk->at[chunk->steps] * pace__rnn_flops(self, layer), 0);
    reading from = {.state16 = trace.state16};

    if (layer > 0)
        pace__rnn_input(self, &self->spaces[thread], layer, side, &from.input, &from.input16);
    for (uint32_t t = 0; t < chunk->steps && !pace__crew_poke(self->crew, thread); t++)
        step_forward(self, chunk, layer, side, t, &from, &trace);
}

/* --- between layers --- */

static uint32_t length_of(const pace__rnn_fast *self, const pace__rnn_chunk *chunk, uint32_t row)
{
    return self->batch->rows->length[chunk->row[row]];
}

static void set_mirror(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk)
{
    for (uint32_t t = 0; t < chunk->steps; t++) {
        for (uint32_t row = 0; row < pace__rnn_rows_at(chunk, t); row++)
            space->mirror[chunk->at[t] + row] = chunk->at[length_of(self, chunk, row) - 1 - t] + row;
    }
}

/* Which of a word's outputs are kept: a bit for each unit of each side. */
static void draw(const pace__rnn_fast *self, uint64_t place, uint32_t layer, uint32_t word, uint16_t *kept)
{
    uint64_t key = pace__drop_word_key(self->config.seed, place, layer, word);

    for (size_t side = 0; side < self->sides; side++)
        self->cells->draw(key, pace__drop_limit(self->config.dropout), (uint32_t)side * self->config.hidden,
                          self->blocks, kept + side * self->blocks);
}

/* What the layer above `layer` reads of a word. */
static void arrange_word(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                         uint32_t layer, uint32_t t, uint32_t row)
{
    size_t word = chunk->at[t] + row, width = self->blocks * BLOCK, bits = self->sides * self->blocks;
    float *to = space->input[layer + 1][0] + word * self->wide_stride;
    bool drops = self->config.dropout > 0 && self->training;
    uint16_t *kept = drops ? space->kept[layer] + word * bits : NULL;

    if (drops)
        draw(self, self->batch->place + chunk->row[row], layer, t, kept);
    for (size_t side = 0; side < self->sides; side++) {
        const float *from =
            space->traces[layer][side].state + (side ? space->mirror[word] : word) * self->stride;

        if (drops)
            self->cells->drop(kept + side * self->blocks, self->blocks, 1 / (1 - self->config.dropout), from,
                              to + side * width);
        else
            memcpy(to + side * width, from, width * sizeof *to);
    }
    if (self->sides == 2)
        memcpy(space->input[layer + 1][1] + space->mirror[word] * self->wide_stride, to,
               2 * width * sizeof *to);
}

static void arrange(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk, uint32_t layer)
{
    pace__rnn_space *space = &self->spaces[thread];

    for (uint32_t t = 0; t < chunk->steps && !pace__crew_poke(self->crew, thread); t++) {
        for (uint32_t row = 0; row < pace__rnn_rows_at(chunk, t); row++)
            arrange_word(self, space, chunk, layer, t, row);
    }
    for (size_t side = 0; side < self->sides; side++)
        pace__rnn_narrow(self, space->input[layer + 1][side], self->wide_stride, chunk->at[chunk->steps],
                         self->sides * self->blocks * BLOCK, space->input16[layer + 1][side],
                         self->wide_stride16);
}

/* --- pooling --- */

static void pool_mean(pace__rnn_fast *self, const pace__rnn_chunk *chunk, const float *state, float *pooled)
{
    size_t width = self->blocks * BLOCK;

    for (uint32_t t = 0; t < chunk->steps; t++) {
        for (size_t row = 0; row < pace__rnn_rows_at(chunk, t); row++) {
            const float *from = state + (chunk->at[t] + row) * self->stride;
            float *to = pooled + row * self->wide_stride;

            for (size_t u = 0; u < width; u++)
                to[u] = t ? to[u] + from[u] : from[u];
        }
    }
    for (uint32_t row = 0; row < chunk->rows; row++) {
        for (size_t u = 0; u < width; u++)
            pooled[row * self->wide_stride + u] /= (float)length_of(self, chunk, row);
    }
}

/* Of equal values the first word's is taken, which the other direction meets last. */
static void pool_max(pace__rnn_fast *self, const pace__rnn_chunk *chunk, const float *state, size_t side,
                     float *pooled, uint32_t *largest)
{
    for (uint32_t t = 0; t < chunk->steps; t++) {
        for (size_t row = 0; row < pace__rnn_rows_at(chunk, t); row++) {
            const float *from = state + (chunk->at[t] + row) * self->stride;
            float *to = pooled + row * self->wide_stride;
            uint32_t *step = largest + row * self->wide_stride;

            for (size_t u = 0; u < self->blocks * BLOCK; u++) {
                bool more = t == 0 || from[u] > to[u] || (side && from[u] == to[u]);

                to[u] = more ? from[u] : to[u];
                step[u] = more ? t : step[u];
            }
        }
    }
}

static void pool_last(pace__rnn_fast *self, const pace__rnn_chunk *chunk, const float *state, float *pooled)
{
    for (uint32_t row = 0; row < chunk->rows; row++)
        memcpy(pooled + row * self->wide_stride,
               state + (chunk->at[length_of(self, chunk, row) - 1] + row) * self->stride,
               self->blocks * BLOCK * sizeof *pooled);
}

static void pool(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk)
{
    PACE__SPAN("pool");
    uint32_t top = self->config.layers - 1;
    size_t bits = self->sides * self->blocks;

    for (size_t side = 0; side < self->sides; side++) {
        const float *state = space->traces[top][side].state;
        size_t at = side * self->blocks * BLOCK;

        if (self->config.pooling == PACE_POOL_MEAN)
            pool_mean(self, chunk, state, space->pooled + at);
        else if (self->config.pooling == PACE_POOL_MAX)
            pool_max(self, chunk, state, side, space->pooled + at, space->largest + at);
        else
            pool_last(self, chunk, state, space->pooled + at);
    }
    for (uint32_t row = 0; self->config.dropout > 0 && self->training && row < chunk->rows; row++) {
        uint16_t *kept = space->kept_pooled + row * bits;
        float *pooled = space->pooled + row * self->wide_stride;

        draw(self, self->batch->place + chunk->row[row], top, UINT32_MAX, kept);
        self->cells->drop(kept, bits, 1 / (1 - self->config.dropout), pooled, pooled);
    }
}

void pace__rnn_chunk_forward(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk)
{
    pace__rnn_space *space = &self->spaces[thread];

    if (self->sides == 2)
        set_mirror(self, space, chunk);
    for (uint32_t layer = 0; layer < self->config.layers; layer++) {
        if (layer > 0 && pace__rnn_arranges(self))
            arrange(self, thread, chunk, layer - 1);
        for (size_t side = 0; side < self->sides; side++)
            forward_side(self, thread, chunk, layer, side);
    }
    pool(self, space, chunk);
}

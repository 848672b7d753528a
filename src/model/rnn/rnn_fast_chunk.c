/* A chunk's way forward: layer by layer, step by step, to its logits. */
#include "math/draws.h"
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* What a layer multiplies: its states of the words before, and above layer 0 what the layer below has put out. */
typedef struct reading {
    const float *input;
    const pace__bf16 *input16, *state16;
    /* What is added: row r of slots[r], or the same to all. */
    const float *start;
    size_t start_stride;
    const uint32_t *slots; /* (words of the chunk) */
} reading;

/* One direction of one layer on its way. */
typedef struct way {
    const pace__rnn_fast *self;
    const pace__rnn_space *space;
    const pace__rnn_chunk *chunk;
    const pace__rnn_side *weights;
    pace__rnn_trace trace;
    reading from;
} way;

/* The products of one block's gates, of all rows at step t. */
static void multiply_block(const way *w, size_t block, uint32_t t, const pace__rnn_step *step)
{
    const pace__rnn_fast *self = w->self;
    const pace__rnn_side *weights = w->weights;
    const reading *from = &w->from;
    size_t word = w->chunk->at[t], before = t ? w->chunk->at[t - 1] : 0, width = self->blocks * BLOCK,
           column = block * BLOCK_GATES;
    pace__rnn_product product = {
        .rows = step->rows,
        .columns = BLOCK_GATES,
        .factor = {{.a = t ? w->trace.state + before * self->stride : NULL,
                    .a_stride = self->stride,
                    .inner = width,
                    .panels = weights->state + column * width,
                    .idle = self->idle_state,
                    .a16 = t ? pace__rnn_row16(from->state16, self->stride16, before) : NULL,
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
        .result = w->space->sums,
        .result_stride = BLOCK_GATES,
    };

    if (!step->start) {
        product.start = from->start + column;
        product.start_stride = from->start_stride;
        product.slots = from->slots ? from->slots + word : NULL;
        product.result = step->gates;
        product.result_stride = self->gates_stride;
    }
    pace__rnn_multiply(self, &product);
}

/*
 * In floats a product begins with the start and leaves its sums where the gates will be. Products of bf16 are too fast for
 * that: tiles would wait for what they start with, and then for memory. Their sums go to a place that stays near, and
 * cells add the start and fetch what comes next.
 */
static void set_sums(const way *w, uint32_t t, pace__rnn_step *step)
{
    const reading *from = &w->from;

    step->sums = step->gates;
    step->sums_stride = step->gates_stride;
    if (!pace__rnn_narrows(w->self))
        return;
    step->sums = t || from->input16 ? w->space->sums : NULL;
    step->sums_stride = BLOCK_GATES;
    step->start = from->start;
    step->start_stride = from->start_stride;
    step->slots = from->slots ? from->slots + w->chunk->at[t] : NULL;
    step->fetches = true;
}

/* What comes next is another block of the same words, or the first one of the next step's, which lie behind them. */
static void set_ahead(const way *w, size_t block, uint32_t t, pace__rnn_step *step)
{
    step->gates_ahead = BLOCK_GATES;
    step->units_ahead = BLOCK;
    step->start_ahead = step->start + BLOCK_GATES;
    step->slots_ahead = step->slots;
    if (block + 1 < w->self->blocks)
        return;
    step->gates_ahead = (ptrdiff_t)(step->rows * step->gates_stride - block * BLOCK_GATES);
    step->units_ahead = (ptrdiff_t)(step->rows * step->stride - block * BLOCK);
    step->start_ahead = w->from.start;
    step->slots_ahead = step->slots && t + 1 < w->chunk->steps ? step->slots + step->rows : NULL;
}

/* From one block to the next. */
static void go_on(pace__rnn_step *step)
{
    if (!step->start)
        step->sums += BLOCK_GATES;
    else
        step->start += BLOCK_GATES;
    step->gates += BLOCK_GATES;
    step->state += BLOCK;
    if (step->state_before)
        step->state_before += BLOCK;
    if (step->cell_before)
        step->cell_before += BLOCK;
    if (step->cell) {
        step->cell += BLOCK;
        step->squashed += BLOCK;
    }
}

/* Block by block: what the product leaves is still near when the cells take it up. */
static void step_forward(const way *w, uint32_t t)
{
    const pace__rnn_fast *self = w->self;
    const pace__rnn_trace *trace = &w->trace;
    size_t word = w->chunk->at[t], before = t ? w->chunk->at[t - 1] : 0;
    bool lstm = self->config.cell == PACE_CELL_LSTM;
    pace__rnn_step step = {
        .rows = pace__rnn_rows_at(w->chunk, t),
        .state_before = t ? trace->state + before * self->stride : NULL,
        .cell_before = lstm && t ? trace->cell + before * self->stride : NULL,
        .gates = trace->gates + word * self->gates_stride,
        .gates_stride = self->gates_stride,
        .cell = lstm ? trace->cell + word * self->stride : NULL,
        .squashed = lstm ? trace->squashed + word * self->stride : NULL,
        .state = trace->state + word * self->stride,
        .stride = self->stride,
    };

    set_sums(w, t, &step);
    for (size_t block = 0; block < self->blocks; block++, go_on(&step)) {
        if (step.fetches)
            set_ahead(w, block, t, &step);
        if (step.sums)
            multiply_block(w, block, t, &step);
        if (lstm)
            self->cells->lstm_step(&step);
        else
            self->cells->gru_step(&step);
    }
    if (trace->state16)
        pace__rnn_narrow(self, trace->state + word * self->stride, self->stride, step.rows,
                         self->blocks * BLOCK, trace->state16 + word * self->stride16, self->stride16);
}

static void forward_side(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk, uint32_t layer,
                         size_t side)
{
    const pace__rnn_space *space = &self->spaces[thread];
    const pace__rnn_side *weights = &self->side[layer][side];
    PACE__SPAN_OF(self->forward_name[layer], self->shape[layer],
                  chunk->at[chunk->steps] * pace__rnn_flops(self, layer), 0);
    way w = {.self = self,
             .space = space,
             .chunk = chunk,
             .weights = weights,
             .trace = pace__rnn_trace_of(self, space, chunk, layer, side)};

    w.from = (reading){.state16 = w.trace.state16, .start = weights->bias};
    if (layer > 0) {
        pace__rnn_input(self, space, layer, side, &w.from.input, &w.from.input16);
    } else {
        w.from.start = self->projected[side];
        w.from.start_stride = self->gates_stride;
        w.from.slots = self->slots[side] + chunk->first_word;
    }
    for (uint32_t t = 0; t < chunk->steps && !pace__crew_poke(self->crew, thread); t++)
        step_forward(&w, t);
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

/* A chunk's way back: from d_pooled down to the gates of layer 0. */
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK PACE__RNN_BLOCK

/* One direction of one layer on its way back. */
typedef struct way {
    pace__rnn_fast *self;
    const pace__rnn_chunk *chunk;
    pace__rnn_space *space;
    uint32_t layer;
    const pace__rnn_side *weights;
    pace__rnn_trace trace;
    const float *input; /* of layers above 0 */
    float *d_input;
    const float *d_output; /* NULL: nothing comes from above but the first d_state */
    size_t d_output_stride;
    bool same_output; /* of pooling mean: the same for all words of a row */
    const pace__bf16 *input16;
    pace__bf16 *first16; /* of layer 0: derivatives of all its words */
    size_t end;          /* words before this one are still to be multiplied */
    float *sums;
} way;

/* --- steps --- */

/* A word's derivatives in bf16: above layer 0 only of the words that are multiplied together, the last of them last. */
static pace__bf16 *gates16(const way *w, size_t word)
{
    if (w->first16)
        return w->first16 + word * w->self->gates_stride16;
    return w->space->gates16
               ? w->space->gates16 + (pace__rnn_words16(w->self) + word - w->end) * w->self->gates_stride16
               : NULL;
}

static void step_back(const way *w, uint32_t t)
{
    const pace__rnn_fast *self = w->self;
    const pace__rnn_chunk *chunk = w->chunk;
    bool lstm = self->config.cell == PACE_CELL_LSTM;
    size_t word = chunk->at[t], rows = pace__rnn_rows_at(chunk, t);
    const float *gates = w->trace.gates + word * self->gates_stride;
    /* Gates become derivatives in place, or derivatives are only there until they are rounded. */
    float *d_gates = w->space->d_gates ? w->space->d_gates : w->trace.gates + word * self->gates_stride;
    pace__rnn_back back = {
        .rows = rows,
        .blocks = self->blocks,
        .gates = gates,
        .gates_stride = self->gates_stride,
        .d_gates = d_gates,
        .d_gates_stride = self->gates_stride,
        .cell_before = lstm && t ? w->trace.cell + chunk->at[t - 1] * self->stride : NULL,
        .squashed = lstm ? w->trace.squashed + word * self->stride : NULL,
        .state_before = t ? w->trace.state + chunk->at[t - 1] * self->stride : NULL,
        .stride = self->stride,
        .d_output = w->d_output && !w->same_output ? w->d_output + word * w->d_output_stride : w->d_output,
        .d_output_stride = w->d_output_stride,
        .d_state = w->space->d_state,
        .d_cell = w->space->d_cell,
        .d_stride = self->stride,
        .d_bias = w->sums + w->weights->d_bias,
    };

    if (lstm)
        self->cells->lstm_back(&back);
    else
        self->cells->gru_back(&back);
    pace__rnn_narrow(self, d_gates, self->gates_stride, rows, self->gates, gates16(w, word),
                     self->gates_stride16);
    if (t == 0)
        return;
    pace__rnn_multiply(self, &(pace__rnn_product){
                                 .rows = rows,
                                 .columns = self->blocks * BLOCK,
                                 .factor = {{.a = d_gates,
                                             .a_stride = self->gates_stride,
                                             .inner = self->gates,
                                             .panels = w->weights->state_back,
                                             .idle_a = self->idle_state,
                                             .a16 = gates16(w, word),
                                             .a16_stride = self->gates_stride16,
                                             .panels16 = w->weights->state_back16}},
                                 .result = w->space->d_state,
                                 .result_stride = self->stride,
                             });
}

/* Adds to the derivatives of weights; a has its own rows for these words. */
static void add_outer(const way *w, const float *a, size_t a_stride, const pace__bf16 *a16, size_t a16_stride,
                      size_t rows, size_t word, size_t words, size_t sums_at, int idle)
{
    pace__rnn_multiply_outer(w->self, w->space,
                             &(pace__rnn_outer){
                                 .words = words,
                                 .rows = rows,
                                 .columns = w->self->gates,
                                 .a = a,
                                 .a_stride = a_stride,
                                 .b = w->trace.gates + word * w->self->gates_stride,
                                 .b_stride = w->self->gates_stride,
                                 .a16 = a16,
                                 .a16_stride = a16_stride,
                                 .b16 = gates16(w, word),
                                 .b16_stride = w->self->gates_stride16,
                                 .sums = w->sums + sums_at,
                                 .sums_rows = rows,
                                 .idle = idle,
                             });
}

/* What steps first .. last - 1 add to the derivatives of weights, and to those of inputs. */
static void weigh_steps(const way *w, uint32_t first, uint32_t last)
{
    const pace__rnn_fast *self = w->self;
    const uint32_t *at = w->chunk->at;
    size_t words = at[last] - at[first];

    if (w->input) {
        add_outer(w, w->input + at[first] * self->wide_stride, self->wide_stride,
                  pace__rnn_row16(w->input16, self->wide_stride16, at[first]), self->wide_stride16,
                  w->weights->inputs, at[first], words, w->weights->d_input, self->idle_input);
        pace__rnn_multiply(self, &(pace__rnn_product){
                                     .rows = words,
                                     .columns = w->weights->inputs,
                                     .factor = {{.a = w->trace.gates + at[first] * self->gates_stride,
                                                 .a_stride = self->gates_stride,
                                                 .inner = self->gates,
                                                 .panels = w->weights->input_back,
                                                 .idle_a = self->idle_input,
                                                 .a16 = gates16(w, at[first]),
                                                 .a16_stride = self->gates_stride16,
                                                 .panels16 = w->weights->input_back16}},
                                     .result = w->d_input + at[first] * self->wide_stride,
                                     .result_stride = self->wide_stride,
                                 });
    }
    /* States before: the words of the step before. As long as no row ends they lie side by side, too. */
    for (uint32_t t = first ? first : 1, next; t < last; t = next) {
        for (next = t + 1; next < last && at[next - 1] - at[t - 1] == at[next] - at[t];)
            next++;
        add_outer(w, w->trace.state + at[t - 1] * self->stride, self->stride,
                  pace__rnn_row16(w->trace.state16, self->stride16, at[t - 1]), self->stride16,
                  self->blocks * BLOCK, at[t], at[next] - at[t], w->weights->d_state, self->idle_state);
    }
}

static void side_back(way *w, int thread)
{
    uint32_t last = w->chunk->steps;
    PACE__SPAN_OF(w->self->back_name[w->layer], w->self->shape[w->layer],
                  2 * w->chunk->at[last] * pace__rnn_flops(w->self, w->layer), 0);
    size_t size = w->chunk->rows * w->self->stride * sizeof(float);

    memset(w->space->d_cell, 0, size);
    w->end = w->chunk->at[last];
    for (uint32_t t = last; t-- > 0 && !pace__crew_poke(w->self->crew, thread);) {
        step_back(w, t);
        if (t == 0 || w->end - w->chunk->at[t] >= PACE__RNN_WORDS_TOGETHER) {
            weigh_steps(w, t, last);
            last = t;
            w->end = w->chunk->at[t];
        }
    }
}

/* --- from above --- */

/* The part of pooling max: every unit's derivative goes to its largest word. */
static void spread_largest(const pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                           size_t side)
{
    size_t width = self->blocks * BLOCK;
    float *to = space->d_output[side];

    memset(to, 0, chunk->at[chunk->steps] * self->stride * sizeof *to);
    for (size_t row = 0; row < chunk->rows; row++) {
        size_t from = row * self->wide_stride + side * width;

        for (size_t u = 0; u < width; u++)
            to[(chunk->at[space->largest[from + u]] + row) * self->stride + u] = space->d_pooled[from + u];
    }
}

/* d_pooled in terms of what was pooled: behind dropout, of a mean divided by the length. */
static void pooled_back(const pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk)
{
    size_t bits = self->sides * self->blocks;

    for (size_t row = 0; row < chunk->rows; row++) {
        float *d_pooled = space->d_pooled + row * self->wide_stride;

        if (self->config.dropout > 0)
            self->cells->drop(space->kept_pooled + row * bits, bits, 1 / (1 - self->config.dropout), d_pooled,
                              d_pooled);
        for (size_t u = 0; self->config.pooling == PACE_POOL_MEAN && u < bits * BLOCK; u++)
            d_pooled[u] /= (float)self->batch->rows->length[chunk->row[row]];
    }
}

/* Where the top layer's derivatives come from. */
static void begin_top(way *w, size_t side)
{
    pace__rnn_fast *self = w->self;
    size_t width = self->blocks * BLOCK;
    const float *d_pooled = w->space->d_pooled + side * width;

    memset(w->space->d_state, 0, w->chunk->rows * self->stride * sizeof(float));
    if (self->config.pooling == PACE_POOL_LAST) {
        /* A row's d_state is not touched before its last word is. */
        for (size_t row = 0; row < w->chunk->rows; row++)
            memcpy(w->space->d_state + row * self->stride, d_pooled + row * self->wide_stride,
                   width * sizeof *d_pooled);
    } else if (self->config.pooling == PACE_POOL_MEAN) {
        w->d_output = d_pooled;
        w->d_output_stride = self->wide_stride;
        w->same_output = true;
    } else {
        spread_largest(self, w->space, w->chunk, side);
        w->d_output = w->space->d_output[side];
        w->d_output_stride = self->stride;
    }
}

/* Both sides of the layer above have derivatives of what both sides of this one have put out. */
static void gather_word(const pace__rnn_fast *self, pace__rnn_space *space, size_t word)
{
    size_t width = self->blocks * BLOCK, mirror = space->mirror[word];
    const float *there = space->d_input[0] + word * self->wide_stride;
    const float *back = space->d_input[1] + mirror * self->wide_stride;
    float *to[2] = {space->d_output[0] + word * self->stride, space->d_output[1] + mirror * self->stride};

    for (size_t side = 0; side < 2; side++) {
        for (size_t u = 0; u < width; u++)
            to[side][u] = there[side * width + u] + back[side * width + u];
    }
}

/* d_input of a layer becomes d_output of `layer`, the one below. With one direction they are one array. */
static void between_layers(const pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                           uint32_t layer)
{
    size_t bits = self->sides * self->blocks;

    for (size_t word = 0; word < chunk->at[chunk->steps]; word++) {
        if (self->sides == 2)
            gather_word(self, space, word);
        for (size_t side = 0; self->config.dropout > 0 && side < self->sides; side++) {
            float *d = space->d_output[side] + (side ? space->mirror[word] : word) * self->stride;

            self->cells->drop(space->kept[layer] + word * bits + side * self->blocks, self->blocks,
                              1 / (1 - self->config.dropout), d, d);
        }
    }
}

void pace__rnn_chunk_back(pace__rnn_fast *self, int thread, const pace__rnn_chunk *chunk, float *sums)
{
    pace__rnn_space *space = &self->spaces[thread];
    uint32_t top = self->config.layers - 1;

    pooled_back(self, space, chunk);
    for (uint32_t layer = top + 1; layer-- > 0;) {
        if (layer < top && pace__rnn_arranges(self))
            between_layers(self, space, chunk, layer);
        for (size_t side = 0; side < self->sides; side++) {
            way w = {
                .self = self,
                .chunk = chunk,
                .space = space,
                .layer = layer,
                .weights = &self->side[layer][side],
                .trace = pace__rnn_trace_of(self, space, chunk, layer, side),
                .d_input = space->d_input[side],
                .d_output = space->d_output[side],
                .d_output_stride = self->stride,
                .sums = sums,
            };

            if (layer > 0)
                pace__rnn_input(self, space, layer, side, &w.input, &w.input16);
            else if (self->first_gates16[side])
                w.first16 = self->first_gates16[side] + chunk->first_word * self->gates_stride16;
            if (layer == top) {
                w.d_output = NULL;
                begin_top(&w, side);
            } else {
                memset(space->d_state, 0, chunk->rows * self->stride * sizeof(float));
            }
            side_back(&w, thread);
        }
    }
}

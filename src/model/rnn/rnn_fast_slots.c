/*
 * Layer 0 reads embeddings, and a batch has far fewer of them than words: products with its input weights are
 * computed once per slot, on the way there and, of the summed derivatives, on the way back.
 */
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* Slots of a task. */
#define SLOTS 48

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t slots_of(const pace__rnn_fast *self, size_t first)
{
    return self->batch->slots - first < SLOTS ? self->batch->slots - first : SLOTS;
}

unsigned pace__rnn_project_tasks(const pace__rnn_fast *self)
{
    return (unsigned)(self->sides * ((self->batch->slots + SLOTS - 1) / SLOTS));
}

void pace__rnn_project(pace__rnn_fast *self, unsigned index)
{
    size_t side = index % self->sides, first = index / self->sides * SLOTS, embed = self->config.embed;
    const pace__rnn_side *weights = &self->side[0][side];
    const float *embedding = self->batch->embedding + first * embed;

    pace__rnn_multiply(self,
                       &(pace__rnn_product){
                           .rows = slots_of(self, first),
                           .columns = self->gates,
                           .factor = {{.a = embedding,
                                       .a_stride = embed,
                                       .inner = embed,
                                       .panels = weights->input,
                                       .a16 = pace__rnn_row16(self->embedding16, self->embed_stride16, first),
                                       .a16_stride = self->embed_stride16,
                                       .panels16 = weights->input16}},
                           .start = weights->bias,
                           .result = self->projected[side] + first * self->gates_stride,
                           .result_stride = self->gates_stride,
                       });
}

unsigned pace__rnn_slot_tasks(const pace__rnn_fast *self)
{
    return (unsigned)((self->batch->slots + SLOTS - 1) / SLOTS);
}

void pace__rnn_narrow_slots(pace__rnn_fast *self, unsigned index)
{
    size_t first = (size_t)index * SLOTS, embed = self->config.embed;

    pace__rnn_narrow(self, self->batch->embedding + first * embed, embed, slots_of(self, first), embed,
                     self->embedding16 + first * self->embed_stride16, self->embed_stride16);
}

/* The sums of one slot's derivatives. */
static void sum_words(const pace__rnn_fast *self, size_t side, uint32_t first, uint32_t last, float *sums)
{
    const uint32_t *words = self->by_slot[side] + first;

    if (pace__rnn_narrows(self))
        self->bf16->sum_rows(self->first_gates16[side], self->gates_stride16, words, last - first, sums,
                             self->gates);
    else
        self->cells->sum_rows(self->first_gates[side], self->gates_stride, words, last - first, sums,
                              self->gates);
}

void pace__rnn_slot_sums(pace__rnn_fast *self, unsigned index)
{
    size_t first = (size_t)index * SLOTS, embed = self->config.embed, count = slots_of(self, first);
    float *result = self->batch->embedding_sums + first * embed;

    for (size_t side = 0; side < self->sides; side++) {
        float *sums = self->projected[side] + first * self->gates_stride;
        const uint32_t *start = self->slot_start[side] + first;

        for (size_t i = 0; i < count; i++)
            sum_words(self, side, start[i], start[i + 1], sums + i * self->gates_stride);
        pace__bf16 *sums16 =
            self->projected16[side] ? self->projected16[side] + first * self->gates_stride16 : NULL;

        pace__rnn_narrow(self, sums, self->gates_stride, count, self->gates, sums16, self->gates_stride16);
        pace__rnn_multiply(self, &(pace__rnn_product){
                                     .rows = count,
                                     .columns = embed,
                                     .factor = {{.a = sums,
                                                 .a_stride = self->gates_stride,
                                                 .inner = self->gates,
                                                 .panels = self->side[0][side].input_back,
                                                 .idle_a = self->idle_input,
                                                 .a16 = sums16,
                                                 .a16_stride = self->gates_stride16,
                                                 .panels16 = self->side[0][side].input_back16}},
                                     .start = side ? result : NULL,
                                     .start_stride = embed,
                                     .result = result,
                                     .result_stride = embed,
                                 });
    }
}

/* Large tasks read less; small networks need small ones, or there are too few. */
static size_t rows_together(const pace__rnn_fast *self)
{
    return self->blocks < 8 ? 24 : 128;
}

static size_t blocks_together(const pace__rnn_fast *self)
{
    return self->blocks < 16 ? 1 : self->blocks / 8;
}

static size_t row_groups(const pace__rnn_fast *self)
{
    return (self->config.embed + rows_together(self) - 1) / rows_together(self);
}

static size_t block_groups(const pace__rnn_fast *self)
{
    return (self->blocks + blocks_together(self) - 1) / blocks_together(self);
}

unsigned pace__rnn_weigh_tasks(const pace__rnn_fast *self)
{
    return (unsigned)(self->sides * block_groups(self) * row_groups(self));
}

void pace__rnn_weigh(pace__rnn_fast *self, int thread, unsigned index)
{
    size_t groups = row_groups(self), embed = self->config.embed,
           first = index % groups * rows_together(self);
    size_t block = index / groups % block_groups(self) * blocks_together(self);
    size_t side = index / groups / block_groups(self);
    size_t last = least(first + rows_together(self), embed);
    size_t last_block = least(block + blocks_together(self), self->blocks);
    size_t columns = (last_block - block) * BLOCK_GATES;
    float *sums = self->first_sums[side] + block * BLOCK_GATES * embed + first * BLOCK;

    for (size_t column = 0; column < columns; column += BLOCK)
        memset(sums + column * embed, 0, (last - first) * BLOCK * sizeof *sums);
    pace__rnn_multiply_outer(self, &self->spaces[thread],
                             &(pace__rnn_outer){
                                 .words = self->batch->slots,
                                 .rows = last - first,
                                 .columns = columns,
                                 .a = self->batch->embedding + first,
                                 .a_stride = embed,
                                 .b = self->projected[side] + block * BLOCK_GATES,
                                 .b_stride = self->gates_stride,
                                 .a16 = pace__rnn_row16(self->embedding16, 1, first),
                                 .a16_stride = self->embed_stride16,
                                 .b16 = pace__rnn_row16(self->projected16[side], 1, block * BLOCK_GATES),
                                 .b16_stride = self->gates_stride16,
                                 .sums = sums,
                                 .sums_rows = embed,
                                 .idle = self->idle_input,
                             });
    for (size_t b = block; b < last_block; b++)
        pace__rnn_unpack_first(self, side, b, first, last);
}

/*
 * Products in floats, by the kernels of rnn_fast_kernels.h, or in bf16, by those of math/bf16.h. These know nothing of gates
 * of gates: panels of an idle gate are left out, and what it starts with is copied. (In back products the idle gate's
 * weights are zeros, and are multiplied.)
 */
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define GATES       PACE__RNN_GATES
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* Words of an outer product that are packed together. */
#define OUTER_WORDS 256

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Not a multiple of a large power of two: see stride_of in rnn_fast.c. */
size_t pace__rnn_stride16(size_t count)
{
    size_t padded = pace__bf16_padded(count);

    return padded % 256 ? padded : padded + PACE__BF16_INNER;
}

size_t pace__rnn_turned16(const pace__rnn_fast *self)
{
    size_t wide = self->sides * self->blocks * BLOCK;

    return pace__bf16_turned(OUTER_WORDS, wide > self->config.embed ? wide : self->config.embed);
}

size_t pace__rnn_paired16(const pace__rnn_fast *self)
{
    return pace__bf16_panels(OUTER_WORDS, self->gates);
}

void pace__rnn_narrow(const pace__rnn_fast *self, const float *from, size_t stride, size_t rows, size_t count,
                      pace__bf16 *to, size_t stride16)
{
    if (pace__rnn_narrows(self))
        self->bf16->narrow(from, stride, rows, count, to, stride16);
}

/* Calls `multiply` for all panels, or for those of all gates but one of each block. */
static void for_gates(void (*multiply)(const pace__bf16_product *), pace__bf16_product all, int idle)
{
    size_t panel = pace__bf16_panel(all.inner);

    if (!idle) {
        multiply(&all);
        return;
    }
    for (size_t column = 0; column < all.columns; column += BLOCK_GATES) {
        pace__bf16_product part = all;

        for (int gate = 0, gates; gate < GATES; gate += gates + 1) {
            size_t first = column / BLOCK + (size_t)gate;

            gates = gate < idle ? idle - gate : GATES - gate;
            part.columns = (size_t)gates * BLOCK;
            part.panels = all.panels + first * panel;
            part.start = all.start + first * all.start_panel;
            part.result = all.result + first * all.result_panel;
            if (gates)
                multiply(&part);
        }
    }
}

static void copy_start(const pace__rnn_product *p)
{
    for (size_t row = 0; row < p->rows; row++) {
        size_t from = p->slots ? p->slots[row] : row;

        memcpy(p->result + row * p->result_stride, p->start + from * p->start_stride,
               p->columns * sizeof *p->result);
    }
}

static void multiply16(const pace__rnn_fast *self, const pace__rnn_product *p)
{
    const float *start = p->start;
    size_t start_stride = p->start_stride;

    const uint32_t *slots = p->slots;

    if (start && start != p->result && (p->factor[0].idle || !p->factor[0].a16)) {
        copy_start(p);
        start = p->result;
        start_stride = p->result_stride;
        slots = NULL;
    }
    for (int f = 0; f < 2; f++) {
        const pace__rnn_factor *factor = &p->factor[f];

        if (!factor->a16)
            continue;
        for_gates(self->bf16->product,
                  (pace__bf16_product){.rows = p->rows,
                                       .columns = p->columns,
                                       .a = factor->a16,
                                       .a_stride = factor->a16_stride,
                                       .inner = factor->inner,
                                       .panels = factor->panels16,
                                       .start = start,
                                       .start_stride = start_stride,
                                       .start_panel = BLOCK,
                                       .start_rows = slots,
                                       .result = p->result,
                                       .result_stride = p->result_stride,
                                       .result_panel = BLOCK},
                  factor->idle);
        start = p->result;
        start_stride = p->result_stride;
        slots = NULL;
    }
}

void pace__rnn_multiply(const pace__rnn_fast *self, const pace__rnn_product *product)
{
    if (pace__rnn_narrows(self))
        multiply16(self, product);
    else
        self->products->product(product);
}

static void outer16(const pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_outer *o)
{
    for (size_t word = 0; word < o->words; word += OUTER_WORDS) {
        size_t words = least(o->words - word, OUTER_WORDS);

        self->bf16->turn(o->a16 + word * o->a16_stride, o->a16_stride, words, o->rows, space->turned);
        self->bf16->pair(o->b16 + word * o->b16_stride, o->b16_stride, words, o->columns, space->paired);
        for_gates(self->bf16->outer,
                  (pace__bf16_product){.rows = o->rows,
                                       .columns = o->columns,
                                       .a = space->turned,
                                       .inner = words,
                                       .panels = space->paired,
                                       .start = o->sums,
                                       .start_stride = BLOCK,
                                       .start_panel = o->sums_rows * BLOCK,
                                       .result = o->sums,
                                       .result_stride = BLOCK,
                                       .result_panel = o->sums_rows * BLOCK},
                  o->idle);
    }
}

void pace__rnn_multiply_outer(const pace__rnn_fast *self, pace__rnn_space *space,
                              const pace__rnn_outer *outer)
{
    if (pace__rnn_narrows(self))
        outer16(self, space, outer);
    else
        self->products->outer(outer);
}

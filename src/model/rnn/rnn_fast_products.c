/*
 * Products in floats, by the kernels of rnn_fast_kernels.h, or in bf16, by those of math/bf16.h. These know nothing of
 * gates: panels of an idle gate are left out. (In back products the idle gate's weights are zeros, and are multiplied.)
 */
#include "model/rnn/rnn_fast.h"

#include <assert.h>
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

/* --- products --- */

static pace__bf16_product product_of(const pace__rnn_product *p, const pace__rnn_factor *factor)
{
    return (pace__bf16_product){.rows = p->rows,
                                .columns = p->columns,
                                .a = factor->a16,
                                .a_stride = factor->a16_stride,
                                .inner = factor->inner,
                                .panels = factor->panels16,
                                .start = p->start,
                                .start_stride = p->start_stride,
                                .start_panel = BLOCK,
                                .result = p->result,
                                .result_stride = p->result_stride,
                                .result_panel = BLOCK};
}

/* Some gates of a block, of which all factors that are there have weights. */
static void multiply_gates(const pace__rnn_fast *self, pace__bf16_product by[2], const bool there[2],
                           size_t gate, size_t gates)
{
    pace__bf16_product part[2];
    int parts = 0;

    for (int f = 0; f < 2; f++) {
        if (!there[f])
            continue;
        part[parts] = by[f];
        part[parts].columns = gates * BLOCK;
        part[parts].panels += gate * pace__bf16_panel(by[f].inner);
        part[parts].result += gate * BLOCK;
        parts++;
    }
    if (parts == 2)
        part[0].also = &part[1];
    if (parts > 0)
        self->bf16->product(&part[0]);
    for (size_t row = 0; parts == 0 && row < by->rows; row++)
        memset(by->result + row * by->result_stride + gate * BLOCK, 0, gates * BLOCK * sizeof *by->result);
}

/* One block of a GRU: r and z have both factors, if there are two, the halves of n have one each. */
static void multiply_block16(const pace__rnn_fast *self, const pace__rnn_product *p)
{
    const pace__rnn_factor *factor = p->factor;
    pace__bf16_product by[2] = {product_of(p, &factor[0]), product_of(p, &factor[1])};
    bool first = factor[0].a16, second = factor[1].a16;

    assert(p->columns == BLOCK_GATES && !p->start);
    multiply_gates(self, by, (bool[]){first, second}, 0, 2);
    for (int gate = 2; gate < GATES; gate++)
        multiply_gates(self, by, (bool[]){first && factor[0].idle != gate, second && factor[1].idle != gate},
                       (size_t)gate, 1);
}

static void multiply16(const pace__rnn_fast *self, const pace__rnn_product *p)
{
    bool first = p->factor[0].a16;

    if (p->factor[0].idle) {
        multiply_block16(self, p);
        return;
    }
    pace__bf16_product by = product_of(p, &p->factor[first ? 0 : 1]);

    if (first && p->factor[1].a16) {
        pace__bf16_product other = product_of(p, &p->factor[1]);

        by.also = &other;
        self->bf16->product(&by);
    } else {
        self->bf16->product(&by);
    }
}

void pace__rnn_multiply(const pace__rnn_fast *self, const pace__rnn_product *product)
{
    if (pace__rnn_narrows(self))
        multiply16(self, product);
    else
        self->products->product(product);
}

/* --- outer products --- */

/* All gates, or all but one of each block: those between two that are left out lie side by side. */
static void outer_but(const pace__rnn_fast *self, pace__bf16_product *o, int idle)
{
    pace__bf16_product part = *o;
    size_t panels = o->columns / BLOCK, panel = pace__bf16_panel(o->inner);

    for (size_t first = 0, end; first < panels; first = end + 1) {
        for (end = first; end < panels && (int)(end % GATES) != idle;)
            end++;
        part.columns = (end - first) * BLOCK;
        part.panels = o->panels + first * panel;
        part.start = part.result = o->result + first * o->result_panel;
        if (part.columns)
            self->bf16->outer(&part);
    }
}

static void outer16(const pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_outer *o)
{
    for (size_t word = 0; word < o->words; word += OUTER_WORDS) {
        size_t words = least(o->words - word, OUTER_WORDS);
        pace__bf16_product by = {.rows = o->rows,
                                 .columns = o->columns,
                                 .a = space->turned,
                                 .inner = words,
                                 .panels = space->paired,
                                 .start = o->sums,
                                 .start_stride = BLOCK,
                                 .start_panel = o->sums_rows * BLOCK,
                                 .result = o->sums,
                                 .result_stride = BLOCK,
                                 .result_panel = o->sums_rows * BLOCK};

        self->bf16->turn(o->a16 + word * o->a16_stride, o->a16_stride, words, o->rows, space->turned);
        self->bf16->pair(o->b16 + word * o->b16_stride, o->b16_stride, words, o->columns, space->paired);
        if (o->idle)
            outer_but(self, &by, o->idle);
        else
            self->bf16->outer(&by);
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

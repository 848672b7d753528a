/*
 * winograd.h with products of bf16: what is spread over places, and weights there, is rounded; sums are floats, and so are
 * derivatives of weights at their places. For stride 1 only: with 2, patches cost more to spread than products save.
 *
 * In scratch there are at each place of the patches of a group: rows of bf16, (group, depth), of what is read, and for
 * derivatives of weights of those of y; sums, (blocks, group, 16) floats, or for derivatives of weights both kinds of rows as
 * bf16.h's outer products want them.
 */
#define WINOGRAD_ROUNDS
#include "math/conv/winograd_lanes.h"

#include <assert.h>
#include <stdbool.h>

#define FORM   PACE__WINOGRAD_ONE
#define PLACES (4 * 4)

/* What a run's scratch holds. */
typedef struct room {
    spreads in, out; /* out: WEIGHTS */
    places sums;     /* else */
    pace__bf16 *turned, *panels;
} room;

static room find_room(const pace__winograd *self, void *scratch)
{
    size_t in = pace__winograd_depth(self->in_blocks), out = pace__winograd_depth(self->blocks);
    room it = {.in = {scratch, self->group * in, self->in_blocks, in}};
    pace__bf16 *next = it.in.at + PLACES * it.in.stride;

    if (self->kind != PACE__CONV_WEIGHTS) {
        it.sums = (places){(float *)(void *)next, pace__winograd_stride(self, self->blocks), self->blocks,
                           self->group};
        return it;
    }
    it.out = (spreads){next, self->group * out, self->blocks, out};
    it.turned = next + PLACES * it.out.stride;
    it.panels = it.turned + pace__bf16_turned(self->group, self->in_blocks * BLOCK);
    return it;
}

static void multiply_outputs(const pace__winograd *self, const room *it, size_t patches, const float *weights)
{
    size_t inner = self->in_blocks * BLOCK;

    for (size_t place = 0; place < PLACES; place++)
        self->rounds->product(&(pace__bf16_product){
            .rows = patches,
            .columns = self->blocks * BLOCK,
            .a = it->in.at + place * it->in.stride,
            .a_stride = it->in.depth,
            .inner = inner,
            .panels = (const pace__bf16 *)weights + place * pace__bf16_panels(inner, self->blocks * BLOCK),
            .result = it->sums.at + place * it->sums.stride,
            .result_stride = BLOCK,
            .result_panel = self->group * BLOCK,
        });
}

static void multiply_weights(const pace__winograd *self, const room *it, size_t patches, bool adds,
                             float *weights)
{
    size_t ins = self->in_blocks * BLOCK, outs = self->blocks * BLOCK;

    for (size_t place = 0; place < PLACES; place++) {
        float *to = weights + place * ins * outs;

        self->rounds->turn(it->in.at + place * it->in.stride, it->in.depth, patches, ins, it->turned);
        self->rounds->pair(it->out.at + place * it->out.stride, it->out.depth, patches, outs, it->panels);
        self->rounds->outer(&(pace__bf16_product){.rows = ins,
                                                  .columns = outs,
                                                  .a = it->turned,
                                                  .inner = patches,
                                                  .panels = it->panels,
                                                  .start = adds ? to : NULL,
                                                  .start_stride = BLOCK,
                                                  .start_panel = ins * BLOCK,
                                                  .result = to,
                                                  .result_stride = BLOCK,
                                                  .result_panel = ins * BLOCK});
    }
}

/* From a spot on, `count` patches; returns where the next ones begin. */
static spot compute_group(const pace__winograd *self, const pace__conv_run *run, spot first, size_t count,
                          const room *it)
{
    bool back = self->kind == PACE__CONV_DATA, adds = first.row + first.line + first.column > 0;
    spot at = first;

    for (size_t i = 0; i < count; i++, at = next(self, at))
        read_x(FORM, self, back ? run->y : run->x, at, &it->in, i);
    if (self->kind == PACE__CONV_WEIGHTS) {
        for (size_t i = 0; i < count; i++, first = next(self, first))
            read_y(FORM, self, run->y, first, &it->out, i);
        multiply_weights(self, it, count, adds, run->weights);
        return at;
    }
    multiply_outputs(self, it, count, run->weights);
    for (size_t i = 0; i < count; i++, first = next(self, first))
        write_y(FORM, self, &it->sums, i, first, NULL, back ? run->x : run->y);
    return at;
}

static void compute(const pace__winograd *self, const pace__conv_run *run)
{
    size_t left = self->rows * self->down * self->across;
    room it = find_room(self, run->scratch);
    spot at = {0};

    assert(self->form == FORM);
    /* What lies behind the last channel of a row is read, and multiplied with 0. */
    memset(it.in.at, 0, PLACES * it.in.stride * sizeof *it.in.at);
    self->rounds->begin();
    while (left > 0) {
        size_t count = left < self->group ? left : self->group;

        at = compute_group(self, run, at, count, &it);
        left -= count;
    }
    self->rounds->end();
}

/* Of floats at their places, (places, blocks, in, 16), come panels, in the same memory: they need no more of it. */
static void pack(const pace__winograd *self, const float *weights, float *packed)
{
    size_t ins = self->in_blocks * BLOCK, panel = pace__bf16_panel(ins);
    pace__bf16 *to = (pace__bf16 *)packed;

    self->wide->pack(self, weights, packed);
    for (size_t i = 0; i < PLACES * self->blocks; i++, to += panel, packed += ins * BLOCK) {
        for (size_t in = 0; in < ins; in += 2)
            words_store(to + in * BLOCK, pairs_of_floats(floats_load(packed + in * BLOCK),
                                                         floats_load(packed + (in + 1) * BLOCK)));
        memset(to + ins * BLOCK, 0, (panel - ins * BLOCK) * sizeof *to);
    }
}

static void unpack(const pace__winograd *self, const float *packed, float *weights)
{
    self->wide->unpack(self, packed, weights);
}

const pace__winograd_kernels pace__winograd_rounding = {pack, unpack, compute};

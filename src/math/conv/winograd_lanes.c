#include "math/conv/winograd_lanes.h"

/* --- products of matrices --- */

/* Outputs of a group of patches, of x and of weights at all places. */
static void multiply_outputs(const places *x, const places *y, size_t patches, const float *weights)
{
    walk by = {BLOCK, BLOCK, 1, PATCHES * BLOCK, BLOCK, BLOCK * BLOCK};
    size_t panel = x->blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < x->side * x->side * y->blocks; i++) {
        size_t place = i / y->blocks, block = i % y->blocks;
        const float *of = weights + (weights_place(x->side, place) * y->blocks + block) * panel;

        for (size_t patch = 0; patch < patches; patch += PATCHES)
            multiply(PATCHES, by, x->blocks, block_at(x, patch, 0) + place * x->stride, of, false,
                     block_at(y, patch, block) + place * y->stride);
    }
}

/* Derivatives of weights at all places, of a group of patches. */
static void multiply_weights(const places *x, const places *y, size_t patches, bool adds, float *weights)
{
    walk by = {1, PATCHES, BLOCK, x->blocks * PATCHES * BLOCK, BLOCK, y->blocks * PATCHES * BLOCK};
    size_t turns = (patches + PATCHES - 1) / PATCHES, panel = x->blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < x->side * x->side * y->blocks; i++) {
        size_t place = i / y->blocks, block = i % y->blocks;
        float *of = weights + (weights_place(x->side, place) * y->blocks + block) * panel;
        bool second = place / x->side == 4 || place % x->side == 4;

        for (size_t in = 0; in < x->blocks * BLOCK; in += FILTERS)
            multiply(FILTERS, by, turns, block_at(x, 0, in / BLOCK) + in % BLOCK + place * x->stride,
                     block_at(y, 0, block) + place * y->stride, adds || second, of + in * BLOCK);
    }
}

/* --- convolutions --- */

/* A group's last turn is whole: nothing in the rest. */
static void clear_rest(const places *it, size_t patches)
{
    for (size_t patch = patches; patch % PATCHES; patch++) {
        for (size_t i = 0; i < it->side * it->side * it->blocks * PARTS; i++)
            floats_store(block_at(it, patch, i / PARTS % it->blocks) + i / PARTS / it->blocks * it->stride +
                             i % PARTS * LANES,
                         floats_all(0));
    }
}

/* From a spot on, `count` patches; returns where the next ones begin. */
INLINE spot compute_group(pace__winograd_form form, const pace__winograd *self, const pace__conv_run *run,
                          spot first, size_t count, const places *in, const places *out)
{
    bool back = self->kind == PACE__CONV_DATA;
    spot at = first;

    for (size_t i = 0; i < count; i++, at = next(self, at))
        read_x(form, self, back ? run->y : run->x, at, in, i);
    clear_rest(in, count);
    if (self->kind == PACE__CONV_WEIGHTS) {
        spot of = first;

        for (size_t i = 0; i < count; i++, of = next(self, of))
            read_y(form, self, run->y, of, out, i);
        clear_rest(out, count);
        multiply_weights(in, out, count, first.row + first.line + first.column > 0, run->weights);
        return at;
    }
    multiply_outputs(in, out, count, run->weights);
    for (size_t i = 0; i < count; i++, first = next(self, first))
        write_y(form, self, out, i, first, self->kind == PACE__CONV_FUSED ? run->bias : NULL,
                back ? run->x : run->y);
    return at;
}

INLINE void compute_as(pace__winograd_form form, const pace__winograd *self, const pace__conv_run *run)
{
    size_t side = pace__winograd_places(form), left = self->rows * self->down * self->across;
    places in = {run->scratch, pace__winograd_stride(self, self->in_blocks), self->in_blocks, side};
    places out = {in.at + side * side * in.stride, pace__winograd_stride(self, self->blocks), self->blocks,
                  side};
    spot at = {0};

    while (left > 0) {
        size_t count = left < self->group ? left : self->group;

        at = compute_group(form, self, run, at, count, &in, &out);
        left -= count;
    }
}

static void compute(const pace__winograd *self, const pace__conv_run *run)
{
    if (self->form == PACE__WINOGRAD_ONE)
        compute_as(PACE__WINOGRAD_ONE, self, run);
    else if (self->form == PACE__WINOGRAD_TWO)
        compute_as(PACE__WINOGRAD_TWO, self, run);
    else
        compute_as(PACE__WINOGRAD_BACK, self, run);
}

/* --- weights --- */

/* What a place of weights has of three of them; and back. */
INLINE floats spread_weights(bool one, size_t place, const floats *w)
{
    if (one)
        return place == 0   ? w[0]
               : place == 1 ? (w[0] + w[1] + w[2]) * 0.5f
               : place == 2 ? (w[0] - w[1] + w[2]) * 0.5f
                            : w[2];
    return place == 0 ? w[0] : place == 1 ? w[0] + w[2] : place == 2 ? w[2] : w[1];
}

INLINE floats gather_weights(bool one, size_t i, const floats *m)
{
    if (one)
        return i == 0   ? m[0] + (m[1] + m[2]) * 0.5f
               : i == 1 ? (m[1] - m[2]) * 0.5f
                        : (m[1] + m[2]) * 0.5f + m[3];
    return i == 0 ? m[0] + m[1] : i == 1 ? m[3] : m[1] + m[2];
}

/* 3 x 3 weights of 16 outputs to 4 x 4 places. */
INLINE void pack_filter(bool one, float (*w)[BLOCK], float *to, size_t stride)
{
    for (size_t i = 0; i < 16 * PARTS; i++) {
        size_t place = i / PARTS, in = i % PARTS * LANES;
        floats t[3];

        UNROLL
        for (size_t j = 0; j < 3; j++)
            t[j] = spread_weights(
                one, place / 4,
                (floats[]){floats_load(w[j] + in), floats_load(w[3 + j] + in), floats_load(w[6 + j] + in)});
        floats_store(to + place * stride + in, spread_weights(one, place % 4, t));
    }
}

INLINE void unpack_filter(bool one, const float *m, size_t stride, float (*w)[BLOCK])
{
    for (size_t i = 0; i < 9 * PARTS; i++) {
        size_t place = i / PARTS, in = i % PARTS * LANES;
        floats t[4];

        UNROLL
        for (size_t j = 0; j < 4; j++)
            t[j] = gather_weights(
                one, place / 3,
                (floats[]){floats_load(m + j * stride + in), floats_load(m + (4 + j) * stride + in),
                           floats_load(m + (8 + j) * stride + in), floats_load(m + (12 + j) * stride + in)});
        floats_store(w[place] + in, gather_weights(one, place % 3, t));
    }
}

/* Where the weights of one of our inputs and outputs are, in (out, in, 3, 3); on the way back outputs are inputs. */
INLINE size_t weights_at(const pace__winograd *self, size_t in, size_t out)
{
    return (self->kind == PACE__CONV_DATA ? in * self->in_channels + out : out * self->in_channels + in) * 9;
}

static void pack(const pace__winograd *self, const float *weights, float *packed)
{
    bool back = self->kind == PACE__CONV_DATA;
    size_t ins = back ? self->channels : self->in_channels, outs = back ? self->in_channels : self->channels;
    size_t stride = self->blocks * self->in_blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < self->blocks * self->in_blocks * BLOCK; i++, packed += BLOCK) {
        size_t block = i / (self->in_blocks * BLOCK) * BLOCK, in = i % (self->in_blocks * BLOCK);
        float w[9][BLOCK] = {{0}};

        for (size_t lane = 0; in < ins && lane < BLOCK && block + lane < outs; lane++) {
            const float *from = weights + weights_at(self, in, block + lane);

            for (size_t j = 0; j < 9; j++)
                w[j][lane] = from[back ? 8 - j : j];
        }
        pack_filter(self->form == PACE__WINOGRAD_ONE, w, packed, stride);
    }
}

static void unpack(const pace__winograd *self, const float *packed, float *weights)
{
    size_t stride = self->blocks * self->in_blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < self->blocks * self->in_blocks * BLOCK; i++, packed += BLOCK) {
        size_t block = i / (self->in_blocks * BLOCK) * BLOCK, in = i % (self->in_blocks * BLOCK);
        float w[9][BLOCK];

        unpack_filter(self->form == PACE__WINOGRAD_ONE, packed, stride, w);
        for (size_t lane = 0; in < self->in_channels && lane < BLOCK && block + lane < self->channels;
             lane++) {
            for (size_t j = 0; j < 9; j++)
                weights[weights_at(self, in, block + lane) + j] = w[j][lane];
        }
    }
}

const pace__winograd_kernels PACE__SET(pace__winograd) = {pack, unpack, compute};

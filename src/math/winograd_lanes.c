#include "math/multiply_lanes.h"
#include "math/winograd.h"

#define MOST 5 /* places in one dimension, and pixels */
/*
 * In scratch there are, at each place of a patch, numbers of a group of patches: (group / PATCHES, blocks, PATCHES, 16)
 * floats, so that a product of matrices reads what is near. Packed weights are (places, blocks, in, 16).
 */
typedef struct places {
    float *at;
    size_t stride; /* from a place to the next */
    size_t blocks;
    size_t side; /* places in one dimension */
} places;

INLINE float *block_at(const places *it, size_t patch, size_t block)
{
    return it->at + ((patch / PATCHES * it->blocks + block) * PATCHES + patch % PATCHES) * BLOCK;
}

/* --- products of matrices --- */

/* The place of weights that belongs to one of ours. */
INLINE size_t weights_place(const places *it, size_t place)
{
    size_t line = place / it->side, column = place % it->side;

    return (line < 4 ? line : 3) * 4 + (column < 4 ? column : 3);
}

/* Outputs of a group of patches, of x and of weights at all places. */
static void multiply_outputs(const places *x, const places *y, size_t patches, const float *weights)
{
    walk by = {BLOCK, BLOCK, 1, PATCHES * BLOCK, BLOCK, BLOCK * BLOCK};
    size_t panel = x->blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < x->side * x->side * y->blocks; i++) {
        size_t place = i / y->blocks, block = i % y->blocks;
        const float *of = weights + (weights_place(x, place) * y->blocks + block) * panel;

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
        float *of = weights + (weights_place(x, place) * y->blocks + block) * panel;
        bool second = place / x->side == 4 || place % x->side == 4;

        for (size_t in = 0; in < x->blocks * BLOCK; in += FILTERS)
            multiply(FILTERS, by, turns, block_at(x, 0, in / BLOCK) + in % BLOCK + place * x->stride,
                     block_at(y, 0, block) + place * y->stride, adds || second, of + in * BLOCK);
    }
}

/* --- patches --- */

/* Pixels of a plane, from line `top` and column `left` on, which may be outside, where all is 0. */
typedef struct window {
    const float *plane;
    size_t height, width, top, left;
} window;

/* size x size pixels, and floats from one line of them to the next: in the plane, or in `room`. */
INLINE const float *look(window it, size_t size, float *room, size_t *line)
{
    if (it.top < it.height && it.left < it.width && it.top + size <= it.height &&
        it.left + size <= it.width) {
        *line = it.width * BLOCK;
        return it.plane + (it.top * it.width + it.left) * BLOCK;
    }
    for (size_t i = 0; i < size * size; i++) {
        size_t y = it.top + i / size, x = it.left + i % size; /* what is negative is a large number */
        bool inside = y < it.height && x < it.width;
        const float *from = it.plane + (inside ? (y * it.width + x) * BLOCK : 0);

        UNROLL
        for (size_t part = 0; part < PARTS; part++)
            floats_store(room + i * BLOCK + part * LANES,
                         inside ? floats_load(from + part * LANES) : floats_all(0));
    }
    *line = size * BLOCK;
    return room;
}

/* What is spread to a place: one pixel, and another one added, subtracted, or neither. */
typedef struct rule {
    signed char one, sign, other;
} rule;

static const rule x_rules[][MOST] = {
    [PACE__WINOGRAD_ONE] = {{0, -1, 2}, {1, 1, 2}, {2, -1, 1}, {3, -1, 1}},
    [PACE__WINOGRAD_TWO] = {{0, -1, 2}, {2, 0, 2}, {4, -1, 2}, {1, 0, 1}, {3, 0, 3}},
    [PACE__WINOGRAD_BACK] = {{0, -1, 1}, {1, 0, 1}, {2, -1, 1}, {0, 0, 0}, {1, 0, 1}},
};

static const rule y_rules[][MOST] = {
    [PACE__WINOGRAD_ONE] = {{0, 0, 0}, {0, 1, 1}, {0, -1, 1}, {1, 0, 1}},
    [PACE__WINOGRAD_TWO] = {{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {0, 0, 0}, {1, 0, 1}},
};

INLINE floats follow(rule by, floats one, floats other)
{
    return by.sign == 0 ? one : by.sign > 0 ? one + other : one - other;
}

/* A square of pixels to all places: side x side. */
INLINE void spread(const rule *by, size_t side, size_t seen, const float *from, size_t line, float *to,
                   size_t stride)
{
    UNROLL
    for (size_t i = 0; i < side; i++) {
        floats t[MOST];

        UNROLL
        for (size_t j = 0; j < seen; j++)
            t[j] = follow(by[i], floats_load(from + (size_t)by[i].one * line + j * BLOCK),
                          floats_load(from + (size_t)by[i].other * line + j * BLOCK));
        UNROLL
        for (size_t j = 0; j < side; j++, to += stride)
            floats_store(to, follow(by[j], t[by[j].one], t[by[j].other]));
    }
}

/* One of the outputs of what is at the places of a line. */
INLINE floats gather(pace__winograd_form form, size_t i, const floats *m)
{
    if (form == PACE__WINOGRAD_ONE)
        return i == 0 ? m[0] + m[1] + m[2] : m[1] - m[2] + m[3];
    if (form == PACE__WINOGRAD_TWO)
        return i == 0 ? m[0] + m[1] + m[3] : m[1] + m[2] + m[4];
    return i == 0 ? m[3] : i == 1 ? m[0] + m[1] : i == 2 ? m[4] : m[1] + m[2];
}

/* Sides of a patch: what it sees, what it makes, and how far the next one is in what they see. */
INLINE size_t seen_by(pace__winograd_form form)
{
    return form == PACE__WINOGRAD_ONE ? 4 : form == PACE__WINOGRAD_TWO ? 5 : 3;
}

INLINE size_t made_by(pace__winograd_form form)
{
    return form == PACE__WINOGRAD_BACK ? 4 : 2;
}

INLINE size_t step_of(pace__winograd_form form)
{
    return form == PACE__WINOGRAD_TWO ? 4 : 2;
}

/* Where a patch is: row, line and column, counted in patches. */
typedef struct spot {
    size_t row, line, column;
} spot;

INLINE spot next(const pace__winograd *self, spot at)
{
    if (++at.column < self->across)
        return at;
    at.column = 0;
    if (++at.line < self->down)
        return at;
    at.line = 0;
    at.row++;
    return at;
}

INLINE void read_x(pace__winograd_form form, const pace__winograd *self, const float *x, spot at,
                   const places *to, size_t patch)
{
    size_t plane = self->in_height * self->in_width * BLOCK, line;
    float room[MOST * MOST * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {x + (at.row * to->blocks + block) * plane, self->in_height, self->in_width,
                     at.line * step_of(form) - self->pad_top, at.column * step_of(form) - self->pad_left};
        const float *from = look(it, seen_by(form), room, &line);

        for (size_t part = 0; part < PARTS; part++)
            spread(x_rules[form], pace__winograd_places(form), seen_by(form), from + part * LANES, line,
                   block_at(to, patch, block) + part * LANES, to->stride);
    }
}

INLINE void read_y(pace__winograd_form form, const pace__winograd *self, const float *y, spot at,
                   const places *to, size_t patch)
{
    size_t plane = self->height * self->width * BLOCK, line;
    float room[4 * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {y + (at.row * to->blocks + block) * plane, self->height, self->width, at.line * 2,
                     at.column * 2};
        const float *from = look(it, 2, room, &line);

        for (size_t part = 0; part < PARTS; part++)
            spread(y_rules[form], pace__winograd_places(form), 2, from + part * LANES, line,
                   block_at(to, patch, block) + part * LANES, to->stride);
    }
}

INLINE void write_y(pace__winograd_form form, const pace__winograd *self, const places *from, size_t patch,
                    spot at, const float *bias, float *y)
{
    size_t plane = self->height * self->width * BLOCK, side = pace__winograd_places(form),
           made = made_by(form);
    size_t top = at.line * made, left = at.column * made;

    for (size_t i = 0; i < from->blocks * PARTS; i++) {
        size_t block = i / PARTS, in = i % PARTS * LANES;
        const float *m = block_at(from, patch, block) + in;
        float *to = y + (at.row * from->blocks + block) * plane + (top * self->width + left) * BLOCK + in;
        floats t[4][MOST], shift = bias ? floats_load(bias + block * BLOCK + in) : floats_all(0);

        UNROLL
        for (size_t j = 0; j < side; j++) {
            floats line[MOST];

            UNROLL
            for (size_t k = 0; k < side; k++, m += from->stride)
                line[k] = floats_load(m);
            UNROLL
            for (size_t k = 0; k < made; k++)
                t[k][j] = gather(form, k, line);
        }
        UNROLL
        for (size_t j = 0; j < made * made; j++) {
            if (top + j / made < self->height && left + j % made < self->width)
                floats_store(to + (j / made * self->width + j % made) * BLOCK,
                             activate(self->act, gather(form, j / made, t[j % made]) + shift));
        }
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

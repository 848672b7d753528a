/*
 * winograd_lanes.h - how patches of winograd.h are spread over places, and gathered. For winograd_lanes.c, and for
 * winograd_bf16.c, which rounds what is spread.
 *
 * *Spreads* are what patches are spread to, *places* the sums that are gathered: both of a group of patches, place by place.
 */
#ifndef MATH_CONV_WINOGRAD_LANES_H
#define MATH_CONV_WINOGRAD_LANES_H

#include "math/conv/multiply_lanes.h"
#include "math/conv/winograd.h"

#define MOST 5 /* places in one dimension, and pixels */

#ifdef WINOGRAD_ROUNDS

#include "lanes/pairs.h"

typedef pace__bf16 number;
#define number_store halves_store

/* (group, depth) */
typedef struct spreads {
    pace__bf16 *at;
    size_t stride, blocks, depth;
} spreads;

/* (blocks, group, 16) */
typedef struct places {
    float *at;
    size_t stride, blocks, group;
} places;

INLINE pace__bf16 *spread_at(const spreads *it, size_t patch, size_t block)
{
    return it->at + patch * it->depth + block * BLOCK;
}

INLINE float *block_at(const places *it, size_t patch, size_t block)
{
    return it->at + (block * it->group + patch) * BLOCK;
}

#else

typedef float number;
#define number_store floats_store

/*
 * (group / PATCHES, blocks, PATCHES, 16) floats, so that a product of matrices reads what is near. Packed weights are
 * (places, blocks, in, 16).
 */
typedef struct places {
    float *at;
    size_t stride; /* from a place to the next */
    size_t blocks;
    size_t side; /* places in one dimension */
} places;

typedef places spreads;

INLINE float *block_at(const places *it, size_t patch, size_t block)
{
    return it->at + ((patch / PATCHES * it->blocks + block) * PATCHES + patch % PATCHES) * BLOCK;
}

#define spread_at block_at

#endif

/* The place of weights that belongs to one of side x side. */
INLINE size_t weights_place(size_t side, size_t place)
{
    size_t line = place / side, column = place % side;

    return (line < 4 ? line : 3) * 4 + (column < 4 ? column : 3);
}

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
INLINE void spread(const rule *by, size_t side, size_t seen, const float *from, size_t line, number *to,
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
            number_store(to, follow(by[j], t[by[j].one], t[by[j].other]));
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
                   const spreads *to, size_t patch)
{
    size_t plane = self->in_height * self->in_width * BLOCK, line;
    float room[MOST * MOST * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {x + (at.row * to->blocks + block) * plane, self->in_height, self->in_width,
                     at.line * step_of(form) - self->pad_top, at.column * step_of(form) - self->pad_left};
        const float *from = look(it, seen_by(form), room, &line);

        for (size_t part = 0; part < PARTS; part++)
            spread(x_rules[form], pace__winograd_places(form), seen_by(form), from + part * LANES, line,
                   spread_at(to, patch, block) + part * LANES, to->stride);
    }
}

INLINE void read_y(pace__winograd_form form, const pace__winograd *self, const float *y, spot at,
                   const spreads *to, size_t patch)
{
    size_t plane = self->height * self->width * BLOCK, line;
    float room[4 * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {y + (at.row * to->blocks + block) * plane, self->height, self->width, at.line * 2,
                     at.column * 2};
        const float *from = look(it, 2, room, &line);

        for (size_t part = 0; part < PARTS; part++)
            spread(y_rules[form], pace__winograd_places(form), 2, from + part * LANES, line,
                   spread_at(to, patch, block) + part * LANES, to->stride);
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

#endif

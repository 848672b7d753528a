#include "math/conv/multiply_lanes.h"
#include "math/conv/pointwise.h"

/* Pixels whose derivatives are summed at a time: a block of them, and one of x, in the first level of the cache. */
#define CHUNK 128

/* Some pixels of a row, to a block of outputs. */
INLINE void compute_pixels(size_t count, const pace__pointwise *self, const float *x, const float *weights,
                           float *y)
{
    walk by = {BLOCK, BLOCK, 1, self->pixels * BLOCK, BLOCK, BLOCK * BLOCK};

    multiply(count, by, self->in_blocks, x, weights, false, y);
}

/* Turns of `count` pixels from `pixel` on; with `all` the last one ends with the last pixel, where some are computed for
 * the second time. Returns the first pixel that is left. */
INLINE size_t compute_turns(size_t count, bool all, const pace__pointwise *self, const float *x,
                            const float *weights, float *y, size_t pixel)
{
    for (; pixel + count <= self->pixels; pixel += count)
        compute_pixels(count, self, x + pixel * BLOCK, weights, y + pixel * BLOCK);
    if (!all || pixel == self->pixels || count > self->pixels)
        return pixel;
    pixel = self->pixels - count;
    compute_pixels(count, self, x + pixel * BLOCK, weights, y + pixel * BLOCK);
    return self->pixels;
}

/* What is left of whole turns is one more, a half of one, or a single pixel, whatever wastes least. */
static void compute_block(const pace__pointwise *self, const float *x, const float *weights, float *y)
{
    size_t left = self->pixels % PATCHES, pixel;

    pixel = compute_turns(PATCHES, left > PATCHES / 2, self, x, weights, y, 0);
    pixel = compute_turns(PATCHES / 2, left > 1, self, x, weights, y, pixel);
    compute_turns(1, true, self, x, weights, y, pixel);
}

static void finish(const pace__pointwise *self, const float *bias, float *y)
{
    for (size_t i = 0; i < self->pixels * BLOCK; i += LANES)
        floats_store(y + i, activate(self->act, floats_load(y + i) + floats_load(bias + i % BLOCK)));
}

static void compute_outputs(const pace__pointwise *self, const float *x, const pace__conv_run *run, float *y)
{
    size_t plane = self->pixels * BLOCK;

    for (size_t i = 0; i < self->rows * self->blocks; i++) {
        size_t row = i / self->blocks, block = i % self->blocks;

        compute_block(self, x + row * self->in_blocks * plane,
                      run->weights + block * self->in_blocks * BLOCK * BLOCK, y + i * plane);
        if (self->kind == PACE__CONV_FUSED)
            finish(self, run->bias + block * BLOCK, y + i * plane);
    }
}

/* Of some pixels of a row. */
static void add_chunk(const pace__pointwise *self, const float *x, const float *y, size_t count, bool adds,
                      float *to)
{
    walk by = {1, 1, 0, BLOCK, 0, BLOCK};
    size_t plane = self->pixels * BLOCK;

    for (size_t i = 0; i < self->in_blocks * self->blocks; i++) {
        size_t in = i / self->blocks, block = i % self->blocks;
        float *sums = to + (block * self->in_blocks + in) * BLOCK * BLOCK;

        for (size_t filter = 0; filter < BLOCK; filter += FILTERS)
            multiply(FILTERS, by, count, x + in * plane + filter, y + block * plane, adds,
                     sums + filter * BLOCK);
    }
}

static void compute_weights(const pace__pointwise *self, const pace__conv_run *run)
{
    size_t plane = self->pixels * BLOCK;

    for (size_t row = 0; row < self->rows; row++) {
        for (size_t pixel = 0; pixel < self->pixels; pixel += CHUNK) {
            size_t left = self->pixels - pixel;

            add_chunk(self, run->x + row * self->in_blocks * plane + pixel * BLOCK,
                      run->y + row * self->blocks * plane + pixel * BLOCK, left < CHUNK ? left : CHUNK,
                      row + pixel > 0, run->weights);
        }
    }
}

static void compute(const pace__pointwise *self, const pace__conv_run *run)
{
    if (self->kind == PACE__CONV_WEIGHTS)
        compute_weights(self, run);
    else if (self->kind == PACE__CONV_DATA)
        compute_outputs(self, run->y, run, run->x);
    else
        compute_outputs(self, run->x, run, run->y);
}

const pace__pointwise_kernels PACE__SET(pace__pointwise) = {.compute = compute};

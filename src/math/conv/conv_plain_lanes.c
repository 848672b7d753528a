#include "lanes/lanes.h"
#include "math/conv/conv_plain.h"

#define BLOCK PACE__CONV_BLOCK
#define PARTS (BLOCK / LANES) /* vectors of a block */
#define SIDE  3               /* of a kernel */

/* Sums of a line of a kernel. */
typedef struct sums {
    floats of[SIDE][PARTS];
} sums;

/* A pixel of y, and those of x that the line of the kernel meets there: all, or those inside. */
INLINE void add_pixel(bool all, const pace__conv_shape *s, const float *line, size_t left, const float *y,
                      sums *to)
{
    UNROLL
    for (size_t i = 0; i < SIDE; i++) {
        if (!all && left + i >= s->in_width) /* what is negative is a large number */
            continue;
        floats x = floats_all(line[left + i]);

        UNROLL
        for (size_t part = 0; part < PARTS; part++)
            to->of[i][part] = floats_fma(x, floats_load(y + part * LANES), to->of[i][part]);
    }
}

static void add_line(const pace__conv_shape *s, const float *line, const float *y, sums *to)
{
    size_t column = 0, left = 0 - (size_t)s->pad_left;

    for (; column < s->width && left >= s->in_width; column++, left += s->stride)
        add_pixel(false, s, line, left, y + column * BLOCK, to);
    for (; column < s->width && left + SIDE <= s->in_width; column++, left += s->stride)
        add_pixel(true, s, line, left, y + column * BLOCK, to);
    for (; column < s->width; column++, left += s->stride)
        add_pixel(false, s, line, left, y + column * BLOCK, to);
}

/* One line of the kernels of one channel to the outputs of a block, over all rows. */
static sums add_rows(const pace__conv_shape *s, const pace__conv_run *run, size_t block, size_t in,
                     size_t down)
{
    size_t blocks = (s->channels + BLOCK - 1) / BLOCK;
    sums to = {0};

    for (size_t i = 0; i < (size_t)s->rows * s->height; i++) {
        size_t row = i / s->height, h = i % s->height, from = h * s->stride + down - s->pad_top;

        if (from < s->in_height)
            add_line(s, run->x + ((row * s->in_channels + in) * s->in_height + from) * s->in_width,
                     run->y + (((row * blocks + block) * s->height) + h) * s->width * BLOCK, &to);
    }
    return to;
}

static void weights(const pace__conv_plain *self, const pace__conv_run *run)
{
    const pace__conv_shape *s = &self->shape;
    size_t filter = (size_t)s->in_channels * SIDE * SIDE;

    for (size_t i = 0; i < (s->channels + BLOCK - 1) / BLOCK * s->in_channels * SIDE; i++) {
        size_t down = i % SIDE, in = i / SIDE % s->in_channels, block = i / SIDE / s->in_channels;
        sums found = add_rows(s, run, block, in, down);
        float *to = run->weights + block * BLOCK * filter + (in * SIDE + down) * SIDE;

        for (size_t j = 0; j < SIDE * BLOCK; j++)
            to[j % BLOCK * filter + j / BLOCK] = found.of[j / BLOCK][j % BLOCK / LANES][j % LANES];
    }
}

const pace__conv_loops PACE__SET(pace__conv_loops) = {.weights = weights};

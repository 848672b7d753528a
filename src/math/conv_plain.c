/* Convolutions in plain loops, where the thread sanitizer has to see them: slow, and only for tests. */
#include "math/conv.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_THREAD__

#define BLOCK PACE__CONV_BLOCK

struct pace__conv_context {
    int threads;
};

struct pace__conv {
    pace__conv_shape shape;
    pace__conv_kind kind;
    pace__conv_act act;
    uint32_t channels; /* of all slices */
};

pace_status pace__conv_context_create(int threads, const pace_log *log, pace__conv_context **context)
{
    pace__conv_context *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->threads = threads;
    *context = self;
    return PACE_OK;
}

void pace__conv_context_free(pace__conv_context *context)
{
    free(context);
}

pace_status pace__conv_create(pace__conv_context *context, const pace__conv_shape *shape,
                              pace__conv_kind kind, pace__conv_act act, const pace_log *log,
                              pace__conv **conv)
{
    pace__conv *self = malloc(sizeof *self);

    (void)context;
    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *self = (pace__conv){*shape, kind, act, shape->channels};
    if (shape->slice)
        self->shape.channels = self->shape.in_channels = shape->slice * BLOCK;
    *conv = self;
    return PACE_OK;
}

void pace__conv_free(pace__conv *self)
{
    free(self);
}

const char *pace__conv_name(const pace__conv *self)
{
    (void)self;
    return "plain";
}

static size_t filters_of(const pace__conv *self)
{
    return self->shape.depthwise ? 1 : self->shape.in_channels;
}

size_t pace__conv_packed(const pace__conv *self)
{
    return (size_t)self->channels * filters_of(self) * self->shape.kernel * self->shape.kernel;
}

size_t pace__conv_scratch(const pace__conv *self)
{
    (void)self;
    return 0;
}

void pace__conv_pack(pace__conv *self, int thread, const float *weights, float *packed)
{
    (void)thread;
    memcpy(packed, weights, pace__conv_packed(self) * sizeof *packed);
}

void pace__conv_unpack(pace__conv *self, int thread, const float *packed, float *weights)
{
    (void)thread;
    memcpy(weights, packed, pace__conv_packed(self) * sizeof *packed);
}

static size_t blocks_of(size_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static size_t y_at(const pace__conv_shape *s, size_t row, size_t channel, size_t pixel)
{
    size_t block = row * blocks_of(s->channels) + channel / BLOCK;

    return (block * s->height * s->width + pixel) * BLOCK + channel % BLOCK;
}

static size_t x_at(const pace__conv_shape *s, size_t row, size_t channel, size_t pixel)
{
    size_t pixels = (size_t)s->in_height * s->in_width;

    if (s->plain)
        return (row * s->in_channels + channel) * pixels + pixel;
    return ((row * blocks_of(s->in_channels) + channel / BLOCK) * pixels + pixel) * BLOCK + channel % BLOCK;
}

/* One output's sum, or what it gives back, over the filter's channels and places. */
__attribute__((no_sanitize("thread"))) static float visit(const pace__conv *self, const pace__conv_run *run,
                                                          size_t row, size_t channel, size_t h, size_t w)
{
    const pace__conv_shape *s = &self->shape;
    size_t filters = filters_of(self), kernel = s->kernel;
    float sum = 0, given = run->y[y_at(s, row, channel, h * s->width + w)];

    for (size_t i = 0; i < filters * kernel * kernel; i++) {
        size_t filter = i / (kernel * kernel), place = i % (kernel * kernel);
        size_t from_h = h * s->stride + place / kernel - s->pad_top;
        size_t from_w = w * s->stride + place % kernel - s->pad_left;

        if (from_h >= s->in_height || from_w >= s->in_width)
            continue;
        float *x = run->x + x_at(s, row, s->depthwise ? channel : filter, from_h * s->in_width + from_w);
        float *weight = run->weights + (run->block * BLOCK + channel) * filters * kernel * kernel + i;

        if (self->kind == PACE__CONV_DATA)
            *x += given * *weight;
        else if (self->kind == PACE__CONV_WEIGHTS)
            *weight += given * *x;
        else
            sum += *x * *weight;
    }
    return sum;
}

static float activate(const pace__conv *self, float sum)
{
    if (self->act == PACE__CONV_LINEAR || self->kind == PACE__CONV_FORWARD)
        return sum;
    sum = sum > 0 ? sum : 0;
    return self->act == PACE__CONV_RELU6 && sum > 6 ? 6 : sum;
}

/* Channels that a run computes; the rest of its last block is 0. */
static size_t counted(const pace__conv *self, const pace__conv_run *run)
{
    size_t left = self->channels - run->block * BLOCK;

    return left < self->shape.channels ? left : self->shape.channels;
}

static void clear(const pace__conv *self, const pace__conv_run *run)
{
    const pace__conv_shape *s = &self->shape;
    size_t x = blocks_of(s->in_channels) * BLOCK * s->in_height * s->in_width;

    if (self->kind == PACE__CONV_DATA)
        memset(run->x, 0, s->rows * x * sizeof *run->x);
    else if (self->kind == PACE__CONV_WEIGHTS)
        memset(run->weights + run->block * BLOCK * s->kernel * s->kernel, 0,
               counted(self, run) * filters_of(self) * s->kernel * s->kernel * sizeof *run->weights);
    else
        memset(run->y, 0,
               s->rows * blocks_of(s->channels) * BLOCK * s->height * s->width * sizeof *run->y);
}

__attribute__((no_sanitize("thread"))) void pace__conv_compute(pace__conv *self, int thread,
                                                               const pace__conv_run *run)
{
    const pace__conv_shape *s = &self->shape;
    bool forward = self->kind == PACE__CONV_FORWARD || self->kind == PACE__CONV_FUSED;
    size_t pixels = (size_t)s->height * s->width, channels = counted(self, run);

    (void)thread;
    clear(self, run);
    for (size_t i = 0; i < s->rows * channels * pixels; i++) {
        size_t row = i / (channels * pixels), channel = i / pixels % channels, pixel = i % pixels;
        float sum = visit(self, run, row, channel, pixel / s->width, pixel % s->width);

        if (forward)
            run->y[y_at(s, row, channel, pixel)] =
                activate(self, sum + (self->kind == PACE__CONV_FUSED ? run->bias[channel] : 0));
    }
}

#else

typedef int pace__conv_plain_unused; /* a file without declarations is no C */

#endif

/* Convolutions in plain loops, where the thread sanitizer has to see them: slow, and only for tests. */
#include "math/conv.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_THREAD__

#define BLOCK PACE__CONV_BLOCK

/* oneDNN would not be watched either; and for speed. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

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

/* One place of a filter, along a line of outputs: x is `step` floats apart from one to the next. */
UNWATCHED static void follow(pace__conv_kind kind, size_t count, float *x, size_t step, float *y,
                             float *weight)
{
    float sum = 0;

    for (size_t i = 0; i < count; i++, x += step, y += BLOCK) {
        if (kind == PACE__CONV_DATA)
            *x += *y * *weight;
        else if (kind == PACE__CONV_WEIGHTS)
            sum += *y * *x;
        else
            *y += *x * *weight;
    }
    if (kind == PACE__CONV_WEIGHTS)
        *weight += sum;
}

/* A channel of x and one of y, of one row, with the filter between them. */
UNWATCHED static void connect(const pace__conv *self, float *x, float *y, float *weights)
{
    const pace__conv_shape *s = &self->shape;
    size_t apart = s->plain ? 1 : BLOCK;

    for (size_t i = 0; i < (size_t)s->kernel * s->kernel; i++) {
        size_t down = i / s->kernel, right = i % s->kernel;
        size_t first = right < s->pad_left ? (s->pad_left - right + s->stride - 1) / s->stride : 0;
        size_t last = s->width;

        while (last > first && (last - 1) * s->stride + right - s->pad_left >= s->in_width)
            last--;
        for (size_t h = 0; h < s->height; h++) {
            size_t line = h * s->stride + down - s->pad_top;

            if (line < s->in_height && last > first)
                follow(self->kind, last - first,
                       x + (line * s->in_width + first * s->stride + right - s->pad_left) * apart,
                       s->stride * apart, y + (h * s->width + first) * BLOCK, &weights[i]);
        }
    }
}

static float activate(const pace__conv *self, float sum)
{
    if (self->act == PACE__CONV_LINEAR)
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

UNWATCHED static void clear(const pace__conv *self, const pace__conv_run *run)
{
    const pace__conv_shape *s = &self->shape;
    size_t filter = filters_of(self) * s->kernel * s->kernel;

    if (self->kind == PACE__CONV_DATA)
        memset(run->x, 0,
               s->rows * blocks_of(s->in_channels) * BLOCK * s->in_height * s->in_width * sizeof *run->x);
    else if (self->kind == PACE__CONV_WEIGHTS)
        memset(run->weights + run->block * BLOCK * filter, 0,
               counted(self, run) * filter * sizeof *run->weights);
    else
        memset(run->y, 0, s->rows * blocks_of(s->channels) * BLOCK * s->height * s->width * sizeof *run->y);
}

/* One channel of y, of one row. */
UNWATCHED static void visit(const pace__conv *self, const pace__conv_run *run, size_t row, size_t channel)
{
    const pace__conv_shape *s = &self->shape;
    size_t filters = filters_of(self), size = (size_t)s->kernel * s->kernel;
    size_t pixels = (size_t)s->height * s->width, in_pixels = (size_t)s->in_height * s->in_width;
    size_t block = row * blocks_of(s->channels) + channel / BLOCK;
    float *y = run->y + block * pixels * BLOCK + channel % BLOCK;

    for (size_t filter = 0; filter < filters; filter++) {
        size_t from = s->depthwise ? channel : filter;
        size_t in_block = row * blocks_of(s->in_channels) + from / BLOCK;
        float *x = s->plain ? run->x + (row * s->in_channels + from) * in_pixels
                            : run->x + in_block * in_pixels * BLOCK + from % BLOCK;

        connect(self, x, y, run->weights + ((run->block * BLOCK + channel) * filters + filter) * size);
    }
    for (size_t i = 0; self->kind == PACE__CONV_FUSED && i < pixels; i++)
        y[i * BLOCK] = activate(self, y[i * BLOCK] + run->bias[channel]);
}

void pace__conv_compute(pace__conv *self, int thread, const pace__conv_run *run)
{
    (void)thread;
    clear(self, run);
    for (size_t row = 0; row < self->shape.rows; row++) {
        for (size_t channel = 0; channel < counted(self, run); channel++)
            visit(self, run, row, channel);
    }
}

#else

typedef int pace__conv_plain_unused; /* a file without declarations is no C */

#endif

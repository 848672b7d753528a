#include "math/conv/conv_plain.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK PACE__CONV_BLOCK

/* The thread sanitizer would not see oneDNN either; and for speed. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

pace__conv_plain pace__conv_plain_make(const pace__conv_shape *shape, pace__conv_kind kind,
                                       pace__conv_act act)
{
    pace__conv_plain self = {*shape, kind, act, shape->channels};

    if (shape->slice)
        self.shape.channels = self.shape.in_channels = shape->slice * BLOCK;
    return self;
}

static size_t filters_of(const pace__conv_plain *self)
{
    return self->shape.depthwise ? 1 : self->shape.in_channels;
}

static size_t filter_size(const pace__conv_plain *self)
{
    return (size_t)self->shape.kernel * self->shape.kernel;
}

static size_t blocks_of(size_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static size_t weights_of(const pace__conv_plain *self)
{
    return self->channels * filters_of(self) * filter_size(self);
}

size_t pace__conv_plain_packed(const pace__conv_plain *self)
{
    return blocks_of(self->channels) * BLOCK * filters_of(self) * filter_size(self);
}

void pace__conv_plain_pack(const pace__conv_plain *self, const float *weights, float *packed)
{
    size_t count = weights_of(self);

    memcpy(packed, weights, count * sizeof *packed);
    memset(packed + count, 0, (pace__conv_plain_packed(self) - count) * sizeof *packed);
}

void pace__conv_plain_unpack(const pace__conv_plain *self, const float *packed, float *weights)
{
    memcpy(weights, packed, weights_of(self) * sizeof *weights);
}

/* --- lines --- */

/* Outputs of a line that one place of a filter reaches, and the x that it meets there. */
typedef struct line {
    pace__conv_kind kind;
    bool depthwise; /* x is a block, too; else one channel */
    size_t count;
    float *x, *y;
    size_t step; /* floats from one x to the next */
} line;

/* What depthwise filters see are 16 values, what others see is one value 16 times. */
UNWATCHED static inline void load(const line *it, const float *x, float values[BLOCK])
{
    for (int i = 0; it->depthwise && i < BLOCK; i++)
        values[i] = x[i];
    for (int i = 0; !it->depthwise && i < BLOCK; i++)
        values[i] = x[0];
}

UNWATCHED static void follow_forward(const line *it, const float weight[BLOCK])
{
    for (size_t at = 0; at < it->count; at++) {
        float x[BLOCK], *y = it->y + at * BLOCK;

        load(it, it->x + at * it->step, x);
        for (int i = 0; i < BLOCK; i++)
            y[i] += x[i] * weight[i];
    }
}

UNWATCHED static void follow_data(const line *it, const float weight[BLOCK])
{
    for (size_t at = 0; at < it->count; at++) {
        float *x = it->x + at * it->step, sum = 0;
        const float *y = it->y + at * BLOCK;

        for (int i = 0; it->depthwise && i < BLOCK; i++)
            x[i] += y[i] * weight[i];
        for (int i = 0; !it->depthwise && i < BLOCK; i++)
            sum += y[i] * weight[i];
        if (!it->depthwise)
            x[0] += sum;
    }
}

UNWATCHED static void follow_weights(const line *it, float weight[BLOCK])
{
    for (size_t at = 0; at < it->count; at++) {
        const float *y = it->y + at * BLOCK;
        float x[BLOCK];

        load(it, it->x + at * it->step, x);
        for (int i = 0; i < BLOCK; i++)
            weight[i] += x[i] * y[i];
    }
}

static void follow(const line *it, float weight[BLOCK])
{
    if (it->kind == PACE__CONV_DATA)
        follow_data(it, weight);
    else if (it->kind == PACE__CONV_WEIGHTS)
        follow_weights(it, weight);
    else
        follow_forward(it, weight);
}

/* --- pictures --- */

/* One place of the filters, from x to a block of y, of one row. */
static void connect(const pace__conv_plain *self, float *x, float *y, size_t place, float weight[BLOCK])
{
    const pace__conv_shape *s = &self->shape;
    size_t apart = s->plain ? 1 : BLOCK, down = place / s->kernel, right = place % s->kernel;
    size_t first = right < s->pad_left ? (s->pad_left - right + s->stride - 1) / s->stride : 0;
    size_t last = s->width;

    while (last > first && (last - 1) * s->stride + right - s->pad_left >= s->in_width)
        last--;
    for (size_t h = 0; last > first && h < s->height; h++) {
        size_t from = h * s->stride + down - s->pad_top; /* above the first line: a large number */

        if (from < s->in_height)
            follow(&(line){.kind = self->kind,
                           .depthwise = s->depthwise,
                           .count = last - first,
                           .x = x + (from * s->in_width + first * s->stride + right - s->pad_left) * apart,
                           .y = y + (h * s->width + first) * BLOCK,
                           .step = s->stride * apart},
                   weight);
    }
}

static float activate(const pace__conv_plain *self, float sum)
{
    if (self->act == PACE__CONV_LINEAR)
        return sum;
    sum = sum > 0 ? sum : 0;
    return self->act == PACE__CONV_RELU6 && sum > 6 ? 6 : sum;
}

/* Channels of a block of a run; the rest of the last one is 0. */
static size_t counted(const pace__conv_plain *self, const pace__conv_run *run, size_t block)
{
    size_t left = self->channels - (run->block + block) * BLOCK;

    return left < BLOCK ? left : BLOCK;
}

UNWATCHED static void finish(const pace__conv_plain *self, float *y, const float *bias, size_t channels)
{
    for (size_t i = 0; i < (size_t)self->shape.height * self->shape.width; i++) {
        for (size_t channel = 0; channel < channels; channel++)
            y[i * BLOCK + channel] = activate(self, y[i * BLOCK + channel] + bias[channel]);
    }
}

/* One block of y, of one row. */
UNWATCHED static void visit(const pace__conv_plain *self, const pace__conv_run *run, size_t row, size_t block)
{
    const pace__conv_shape *s = &self->shape;
    size_t filters = filters_of(self), size = filter_size(self), channels = counted(self, run, block);
    size_t in_pixels = (size_t)s->in_height * s->in_width;
    float *y = run->y + (row * blocks_of(s->channels) + block) * s->height * s->width * BLOCK;
    float *weights = run->weights + (run->block + block) * BLOCK * filters * size;

    for (size_t i = 0; i < filters * size; i++) {
        size_t from = s->depthwise ? block * BLOCK : i / size;
        size_t in_block = row * blocks_of(s->in_channels) + from / BLOCK;
        float *x = s->plain ? run->x + (row * s->in_channels + from) * in_pixels
                            : run->x + in_block * in_pixels * BLOCK + from % BLOCK;
        float weight[BLOCK] = {0};

        for (size_t channel = 0; channel < channels; channel++)
            weight[channel] = weights[channel * filters * size + i];
        connect(self, x, y, i % size, weight);
        for (size_t channel = 0; self->kind == PACE__CONV_WEIGHTS && channel < channels; channel++)
            weights[channel * filters * size + i] = weight[channel];
    }
    if (self->kind == PACE__CONV_FUSED)
        finish(self, y, run->bias + block * BLOCK, channels);
}

UNWATCHED static void clear(const pace__conv_plain *self, const pace__conv_run *run)
{
    const pace__conv_shape *s = &self->shape;
    size_t block = BLOCK * filters_of(self) * filter_size(self);

    if (self->kind == PACE__CONV_DATA)
        memset(run->x, 0,
               s->rows * blocks_of(s->in_channels) * BLOCK * s->in_height * s->in_width * sizeof *run->x);
    else if (self->kind == PACE__CONV_WEIGHTS)
        memset(run->weights + run->block * block, 0, blocks_of(s->channels) * block * sizeof *run->weights);
    else
        memset(run->y, 0, s->rows * blocks_of(s->channels) * BLOCK * s->height * s->width * sizeof *run->y);
}

void pace__conv_plain_compute(const pace__conv_plain *self, const pace__conv_run *run)
{
    clear(self, run);
    for (size_t row = 0; row < self->shape.rows; row++) {
        for (size_t block = 0; block < blocks_of(self->shape.channels); block++)
            visit(self, run, row, block);
    }
}

const pace__conv_loops pace__conv_loops_plain = {.weights = pace__conv_plain_compute};

/* --- all of conv.h, for the thread sanitizer --- */

#ifdef __SANITIZE_THREAD__

struct pace__conv_context {
    int threads;
};

struct pace__conv {
    pace__conv_plain plain;
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
    self->plain = pace__conv_plain_make(shape, kind, act);
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

size_t pace__conv_packed(const pace__conv *self)
{
    return pace__conv_plain_packed(&self->plain);
}

size_t pace__conv_scratch(const pace__conv *self)
{
    (void)self;
    return 0;
}

void pace__conv_pack(pace__conv *self, int thread, const float *weights, float *packed)
{
    (void)thread;
    pace__conv_plain_pack(&self->plain, weights, packed);
}

void pace__conv_unpack(pace__conv *self, int thread, const float *packed, float *weights)
{
    (void)thread;
    pace__conv_plain_unpack(&self->plain, packed, weights);
}

void pace__conv_compute(pace__conv *self, int thread, const pace__conv_run *run)
{
    (void)thread;
    pace__conv_plain_compute(&self->plain, run);
}

#endif

#include "math/conv/conv.h"
#include "math/conv/conv_plain.h"
#include "math/conv/conv_rounded.h"
#include "math/conv/pointwise.h"
#include "math/conv/winograd.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The thread sanitizer sees nothing of oneDNN's generated code: conv_plain.c takes its place. */
#ifndef __SANITIZE_THREAD__

#include <oneapi/dnnl/dnnl.h>

struct pace__conv_context {
    dnnl_engine_t engine;
    bool halves; /* without AVX-512 oneDNN is fast on blocks of 8 channels: ours are taken apart for it */
    int threads;
    dnnl_stream_t streams[]; /* (threads) */
};

#define ALIGNMENT 64
#define HALF      (PACE__CONV_BLOCK / 2)

/* What the memory objects of a thread stand for. */
enum { X, Y, WEIGHTS, BIAS, SCRATCH, MEMORIES };

struct pace__conv {
    const pace__conv_context *context;
    pace__conv_kind kind;
    enum {
        BY_ONEDNN,
        BY_LOOPS,
        BY_WINOGRAD,
        BY_POINTS,
        BY_ROUNDING
    } by; /* loops: where oneDNN has only its reference */
    const pace__winograd_kernels *winograd_kernels;
    pace__winograd winograd;
    const pace__pointwise_kernels *pointwise_kernels;
    pace__pointwise pointwise;
    pace__conv_rounded rounded;
    pace__conv_plain loops;
    dnnl_primitive_desc_t described;
    dnnl_primitive_t primitive;
    dnnl_primitive_t reorder; /* of weights: to their packed form, or from it */
    dnnl_memory_t plain, packed;
    size_t channels, filters, wide_filters; /* of weights: out, in, and in with the rest of the last block */
    size_t filter_size;
    size_t block_size; /* of packed weights, of what has slices */
    float *wide;       /* weights with zeros behind the last channels; NULL: there are none */
    size_t packed_size, scratch_size;
    size_t own_scratch; /* bytes of scratch that are oneDNN's */
    size_t halved[2],
        halved_size[2]; /* x and y: pixels of a plane, and floats in all; 0: they stay as they are */
    int args[MEMORIES]; /* oneDNN's numbers of them; 0: not used */
    const dnnl_memory_desc_t *descs[MEMORIES];
    dnnl_memory_desc_t plain_desc, packed_desc;
    dnnl_memory_t (*memories)[MEMORIES]; /* (threads) */
};

void pace__conv_context_free(pace__conv_context *context)
{
    if (!context)
        return;
    for (int thread = 0; thread < context->threads; thread++)
        dnnl_stream_destroy(context->streams[thread]);
    dnnl_engine_destroy(context->engine);
    free(context);
}

pace_status pace__conv_context_create(int threads, const pace_log *log, pace__conv_context **context)
{
    pace__conv_context *self = calloc(1, sizeof *self + (size_t)threads * sizeof *self->streams);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (dnnl_engine_create(&self->engine, dnnl_cpu, 0) != dnnl_success) {
        free(self);
        return pace_fail(log, PACE_FAILED, "oneDNN does not start");
    }
    self->halves = (~dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) != 0; /* they are bits */
    for (; self->threads < threads; self->threads++) {
        if (dnnl_stream_create(&self->streams[self->threads], self->engine, dnnl_stream_default_flags) !=
            dnnl_success) {
            pace__conv_context_free(self);
            return pace_fail(log, PACE_FAILED, "oneDNN does not start a stream");
        }
    }
    *context = self;
    return PACE_OK;
}

/* --- descriptions --- */

static uint32_t whole_blocks(uint32_t channels)
{
    return (channels + PACE__CONV_BLOCK - 1) / PACE__CONV_BLOCK * PACE__CONV_BLOCK;
}

/* oneDNN is told of whole blocks only: it would zero the rest of the last one again and again. */
static pace__conv_shape widen(const pace__conv_shape *shape)
{
    pace__conv_shape wide = *shape;

    wide.channels = whole_blocks(shape->channels);
    if (!shape->plain)
        wide.in_channels = whole_blocks(shape->in_channels);
    return wide;
}

typedef struct layout {
    dnnl_memory_desc_t x, y, weights, weights_plain, bias;
    dnnl_memory_desc_t weights_packed; /* depthwise: of all slices */
    dnnl_dims_t strides, before, behind;
} layout;

static layout lay_out(const pace__conv_shape *s, bool halves)
{
    dnnl_format_tag_t blocks = halves ? dnnl_nChw8c : dnnl_nChw16c;
    dnnl_format_tag_t groups = halves ? dnnl_Goihw8g : dnnl_Goihw16g;
    layout it = {.strides = {s->stride, s->stride},
                 .before = {s->pad_top, s->pad_left},
                 .behind = {s->pad_bottom, s->pad_right}};
    uint32_t channels = s->slice ? s->slice * PACE__CONV_BLOCK : s->channels;
    dnnl_dims_t x = {s->rows, s->depthwise ? channels : s->in_channels, s->in_height, s->in_width};
    dnnl_dims_t y = {s->rows, channels, s->height, s->width};
    dnnl_dims_t filters = {s->channels, s->in_channels, s->kernel, s->kernel};
    dnnl_dims_t grouped = {channels, 1, 1, s->kernel, s->kernel}, bias = {s->channels};
    dnnl_dims_t all_grouped = {s->channels, 1, 1, s->kernel, s->kernel};

    dnnl_memory_desc_init_by_tag(&it.x, 4, x, dnnl_f32, s->plain ? dnnl_nchw : blocks);
    dnnl_memory_desc_init_by_tag(&it.y, 4, y, dnnl_f32, blocks);
    if (s->depthwise) {
        /* Of this order it is known where a slice begins. */
        dnnl_memory_desc_init_by_tag(&it.weights, 5, grouped, dnnl_f32, groups);
        dnnl_memory_desc_init_by_tag(&it.weights_packed, 5, all_grouped, dnnl_f32, groups);
        dnnl_memory_desc_init_by_tag(&it.weights_plain, 5, all_grouped, dnnl_f32, dnnl_goihw);
    } else {
        dnnl_memory_desc_init_by_tag(&it.weights, 4, filters, dnnl_f32, dnnl_format_tag_any);
        dnnl_memory_desc_init_by_tag(&it.weights_plain, 4, filters, dnnl_f32, dnnl_oihw);
    }
    dnnl_memory_desc_init_by_tag(&it.bias, 1, bias, dnnl_f32, dnnl_x);
    return it;
}

/* Scratch memory is the caller's; the activation follows. */
static dnnl_status_t make_attributes(pace__conv_act act, dnnl_primitive_attr_t *attributes)
{
    dnnl_post_ops_t after;
    dnnl_status_t status = dnnl_primitive_attr_create(attributes);

    if (status || (status = dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user)))
        return status;
    if (act == PACE__CONV_LINEAR)
        return dnnl_success;
    if ((status = dnnl_post_ops_create(&after)))
        return status;
    status = act == PACE__CONV_RELU ? dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0)
                                    : dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_clip, 0, 6);
    if (!status)
        status = dnnl_primitive_attr_set_post_ops(*attributes, after);
    dnnl_post_ops_destroy(after);
    return status;
}

static dnnl_status_t describe_forward(const layout *it, bool bias, const_dnnl_primitive_attr_t attributes,
                                      dnnl_engine_t engine, dnnl_primitive_desc_t *described)
{
    dnnl_convolution_desc_t wish;
    dnnl_status_t status = dnnl_convolution_forward_desc_init(
        &wish, bias ? dnnl_forward_inference : dnnl_forward_training, dnnl_convolution_direct, &it->x,
        &it->weights, bias ? &it->bias : NULL, &it->y, it->strides, it->before, it->behind);

    return status ? status : dnnl_primitive_desc_create(described, &wish, attributes, engine, NULL);
}

static dnnl_status_t describe_back(const layout *it, pace__conv_kind kind,
                                   const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                   dnnl_primitive_desc_t *described)
{
    dnnl_primitive_desc_t forward;
    dnnl_convolution_desc_t wish;
    dnnl_status_t status = describe_forward(it, false, attributes, engine, &forward);

    if (status)
        return status;
    if (kind == PACE__CONV_DATA)
        status =
            dnnl_convolution_backward_data_desc_init(&wish, dnnl_convolution_direct, &it->x, &it->weights,
                                                     &it->y, it->strides, it->before, it->behind);
    else
        status =
            dnnl_convolution_backward_weights_desc_init(&wish, dnnl_convolution_direct, &it->x, &it->weights,
                                                        NULL, &it->y, it->strides, it->before, it->behind);
    if (!status)
        status = dnnl_primitive_desc_create(described, &wish, attributes, engine, forward);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static void plan_halves(pace__conv *self, int which, const dnnl_memory_desc_t *desc)
{
    self->halved[which] = (size_t)(desc->dims[2] * desc->dims[3]);
    self->halved_size[which] = dnnl_memory_desc_get_size(desc) / sizeof(float);
}

static void find_arguments(pace__conv *self)
{
    static const int args[][MEMORIES] = {
        [PACE__CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_SCRATCHPAD},
        [PACE__CONV_FUSED] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                              DNNL_ARG_SCRATCHPAD},
        [PACE__CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_SCRATCHPAD},
        [PACE__CONV_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, 0,
                                DNNL_ARG_SCRATCHPAD},
    };

    memcpy(self->args, args[self->kind], sizeof self->args);
    for (int i = 0; i < MEMORIES; i++) {
        if (self->args[i])
            self->descs[i] =
                dnnl_primitive_desc_query_md(self->described, dnnl_query_exec_arg_md, self->args[i]);
    }
    if (self->packed_desc.ndims == 0)
        self->packed_desc = *self->descs[WEIGHTS];
    self->packed_size = dnnl_memory_desc_get_size(&self->packed_desc) / sizeof(float);
    self->own_scratch = self->descs[SCRATCH] ? dnnl_memory_desc_get_size(self->descs[SCRATCH]) : 0;
    self->own_scratch = (self->own_scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    self->scratch_size = self->own_scratch + (self->halved_size[X] + self->halved_size[Y]) * sizeof(float);
}

static dnnl_status_t make_reorder(pace__conv *self)
{
    dnnl_engine_t engine = self->context->engine;
    bool back = self->kind == PACE__CONV_WEIGHTS;
    const dnnl_memory_desc_t *packed = &self->packed_desc;
    dnnl_primitive_desc_t described;
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&described, back ? packed : &self->plain_desc, engine,
                                           back ? &self->plain_desc : packed, engine, NULL);

    if (status)
        return status;
    status = dnnl_primitive_create(&self->reorder, described);
    dnnl_primitive_desc_destroy(described);
    if (!status)
        status = dnnl_memory_create(&self->plain, &self->plain_desc, engine, DNNL_MEMORY_NONE);
    return status ? status : dnnl_memory_create(&self->packed, packed, engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t make_memories(pace__conv *self)
{
    self->memories = calloc((size_t)self->context->threads, sizeof *self->memories);
    if (!self->memories)
        return dnnl_out_of_memory;
    for (int thread = 0; thread < self->context->threads; thread++) {
        for (int i = 0; i < MEMORIES; i++) {
            dnnl_status_t status = self->args[i]
                                       ? dnnl_memory_create(&self->memories[thread][i], self->descs[i],
                                                            self->context->engine, DNNL_MEMORY_NONE)
                                       : dnnl_success;

            if (status)
                return status;
        }
    }
    return dnnl_success;
}

static dnnl_status_t make(pace__conv *self, const pace__conv_shape *shape, pace__conv_act act)
{
    pace__conv_shape wide = widen(shape);
    layout it = lay_out(&wide, self->context->halves);
    dnnl_engine_t engine = self->context->engine;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status =
        make_attributes(self->kind == PACE__CONV_FUSED ? act : PACE__CONV_LINEAR, &attributes);

    if (!status && (self->kind == PACE__CONV_FORWARD || self->kind == PACE__CONV_FUSED))
        status = describe_forward(&it, self->kind == PACE__CONV_FUSED, attributes, engine, &self->described);
    else if (!status)
        status = describe_back(&it, self->kind, attributes, engine, &self->described);
    dnnl_primitive_attr_destroy(attributes);
    if (status)
        return status;
    if (strncmp(pace__conv_name(self), "ref", 3) == 0)
        self->by = BY_LOOPS;
    self->loops = pace__conv_plain_make(shape, self->kind, act);
    if (self->by == BY_LOOPS || (status = dnnl_primitive_create(&self->primitive, self->described)))
        return status;
    self->plain_desc = it.weights_plain;
    if (shape->depthwise)
        self->packed_desc = it.weights_packed;
    self->block_size = (size_t)shape->kernel * shape->kernel * PACE__CONV_BLOCK;
    self->channels = shape->channels;
    self->filters = shape->depthwise ? 1 : shape->in_channels;
    self->wide_filters = shape->depthwise ? 1 : wide.in_channels;
    self->filter_size = (size_t)shape->kernel * shape->kernel;
    size_t wide_size = wide.channels * self->wide_filters * self->filter_size;

    if (wide_size != self->channels * self->filters * self->filter_size) {
        self->wide = calloc(wide_size, sizeof *self->wide);
        if (!self->wide)
            return dnnl_out_of_memory;
    }
    if (self->context->halves && !shape->plain)
        plan_halves(self, X, &it.x);
    if (self->context->halves)
        plan_halves(self, Y, &it.y);
    find_arguments(self);
    status = make_reorder(self);
    return status ? status : make_memories(self);
}

/* With fewer channels, and with stride 2, patches cost more to spread than their products save. */
#define ROUNDED_CHANNELS 32

/* In the way of Winograd, with what is spread rounded: only for instructions on pairs. Tiles multiply so much faster than
 * patches are spread that fewer products are no gain. */
static bool make_rounding_winograd(pace__conv *self, const pace__conv_shape *shape)
{
#if PACE__HAS_BF16
    if (shape->bf16 != pace__bf16_of(PACE__BF16_PAIRS) || !pace__winograd_suits(shape) || shape->stride > 1 ||
        shape->channels < ROUNDED_CHANNELS || shape->in_channels < ROUNDED_CHANNELS)
        return false;
    self->by = BY_WINOGRAD;
    self->winograd_kernels = &pace__winograd_rounding;
    self->winograd = pace__winograd_make(shape, self->kind, PACE__CONV_LINEAR);
    pace__winograd_round(&self->winograd, shape->bf16, pace__winograd_of(pace_kernels_in_use()));
    self->scratch_size = pace__winograd_scratch(&self->winograd);
    return true;
#else
    (void)self;
    (void)shape;
    return false;
#endif
}

/* What kernels of our own compute. */
static bool make_own(pace__conv *self, const pace__conv_shape *shape, pace__conv_act act)
{
    int kernels = pace_kernels_in_use();

    if (pace__conv_rounded_suits(shape, self->kind)) {
        if (make_rounding_winograd(self, shape))
            return true;
        self->by = BY_ROUNDING;
        self->rounded = pace__conv_rounded_make(shape, self->kind);
        self->scratch_size = pace__conv_rounded_scratch(&self->rounded);
        return true;
    }
    if (kernels == PACE_KERNELS_PLAIN)
        return false;
    if (pace__winograd_suits(shape)) {
        self->by = BY_WINOGRAD;
        self->winograd_kernels = pace__winograd_of(kernels);
        self->winograd = pace__winograd_make(shape, self->kind, act);
        self->scratch_size = pace__winograd_scratch(&self->winograd);
    } else if (self->context->halves && pace__pointwise_suits(shape)) { /* else oneDNN is as fast */
        self->by = BY_POINTS;
        self->pointwise_kernels = pace__pointwise_of(kernels);
        self->pointwise = pace__pointwise_make(shape, self->kind, act);
    }
    return self->by != BY_ONEDNN;
}

pace_status pace__conv_create(pace__conv_context *context, const pace__conv_shape *shape,
                              pace__conv_kind kind, pace__conv_act act, const pace_log *log,
                              pace__conv **conv)
{
    pace__conv *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->context = context;
    self->kind = kind;
    if (make_own(self, shape, act)) {
        *conv = self;
        return PACE_OK;
    }
    dnnl_status_t status = make(self, shape, act);

    if (status) {
        pace__conv_free(self);
        return pace_fail(log, PACE_FAILED, "oneDNN has no such convolution: its status is %d", (int)status);
    }
    *conv = self;
    return PACE_OK;
}

void pace__conv_free(pace__conv *self)
{
    if (!self)
        return;
    for (int thread = 0; self->memories && thread < self->context->threads; thread++) {
        for (int i = 0; i < MEMORIES; i++) {
            if (self->memories[thread][i])
                dnnl_memory_destroy(self->memories[thread][i]);
        }
    }
    free(self->memories);
    free(self->wide);
    if (self->plain)
        dnnl_memory_destroy(self->plain);
    if (self->packed)
        dnnl_memory_destroy(self->packed);
    if (self->reorder)
        dnnl_primitive_destroy(self->reorder);
    if (self->primitive)
        dnnl_primitive_destroy(self->primitive);
    if (self->described)
        dnnl_primitive_desc_destroy(self->described);
    free(self);
}

const char *pace__conv_name(const pace__conv *self)
{
    static const char *const own[] = {
        [BY_LOOPS] = "plain", [BY_WINOGRAD] = "winograd", [BY_POINTS] = "pointwise"};
    const char *name = "";

    if (self->by == BY_ROUNDING)
        return self->rounded.kernels->name;
    if (self->by == BY_WINOGRAD && self->winograd.rounds)
        return "winograd of bf16";
    if (self->by != BY_ONEDNN)
        return own[self->by];
    dnnl_primitive_desc_query(self->described, dnnl_query_impl_info_str, 0, &name);
    return name;
}

size_t pace__conv_packed(const pace__conv *self)
{
    return self->by == BY_WINOGRAD   ? pace__winograd_packed(&self->winograd)
           : self->by == BY_POINTS   ? pace__pointwise_packed(&self->pointwise)
           : self->by == BY_ROUNDING ? pace__conv_rounded_packed(&self->rounded)
           : self->by == BY_LOOPS    ? pace__conv_plain_packed(&self->loops)
                                     : self->packed_size;
}

size_t pace__conv_scratch(const pace__conv *self)
{
    return self->scratch_size;
}

static void reorder(pace__conv *self, int thread, bool pack, const float *from, float *to)
{
    dnnl_memory_t source = pack ? self->plain : self->packed, target = pack ? self->packed : self->plain;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};

    dnnl_memory_set_data_handle_v2(source, (void *)from, NULL);
    dnnl_memory_set_data_handle_v2(target, to, NULL);
    dnnl_status_t status = dnnl_primitive_execute(self->reorder, self->context->streams[thread], 2, args);

    assert(status == dnnl_success);
}

void pace__conv_pack(pace__conv *self, int thread, const float *weights, float *packed)
{
    size_t row = self->filters * self->filter_size, wide_row = self->wide_filters * self->filter_size;

    assert(self->kind != PACE__CONV_WEIGHTS);
    if (self->by == BY_WINOGRAD)
        self->winograd_kernels->pack(&self->winograd, weights, packed);
    else if (self->by == BY_POINTS)
        pace__pointwise_pack(&self->pointwise, weights, packed);
    else if (self->by == BY_ROUNDING)
        pace__conv_rounded_pack(&self->rounded, weights, packed);
    else if (self->by == BY_LOOPS)
        pace__conv_plain_pack(&self->loops, weights, packed);
    if (self->by != BY_ONEDNN)
        return;
    for (size_t i = 0; self->wide && i < self->channels; i++)
        memcpy(self->wide + i * wide_row, weights + i * row, row * sizeof *weights);
    reorder(self, thread, true, self->wide ? self->wide : weights, packed);
}

void pace__conv_unpack(pace__conv *self, int thread, const float *packed, float *weights)
{
    size_t row = self->filters * self->filter_size, wide_row = self->wide_filters * self->filter_size;

    assert(self->kind == PACE__CONV_WEIGHTS);
    if (self->by == BY_WINOGRAD)
        self->winograd_kernels->unpack(&self->winograd, packed, weights);
    else if (self->by == BY_POINTS)
        pace__pointwise_unpack(&self->pointwise, packed, weights);
    else if (self->by == BY_ROUNDING)
        pace__conv_rounded_unpack(&self->rounded, packed, weights);
    else if (self->by == BY_LOOPS)
        pace__conv_plain_unpack(&self->loops, packed, weights);
    if (self->by != BY_ONEDNN)
        return;
    reorder(self, thread, false, packed, self->wide ? self->wide : weights);
    for (size_t i = 0; self->wide && i < self->channels; i++)
        memcpy(weights + i * row, self->wide + i * wide_row, row * sizeof *weights);
}

/* Blocks of 16 channels become twice as many of 8; or back. */
static void halve(const float *whole, size_t pixels, size_t size, float *halves)
{
    for (size_t at = 0; at < size; at += PACE__CONV_BLOCK * pixels) {
        for (size_t i = 0; i < pixels; i++) {
            memcpy(halves + at + HALF * i, whole + at + PACE__CONV_BLOCK * i, HALF * sizeof *halves);
            memcpy(halves + at + HALF * (pixels + i), whole + at + PACE__CONV_BLOCK * i + HALF,
                   HALF * sizeof *halves);
        }
    }
}

static void join(const float *halves, size_t pixels, size_t size, float *whole)
{
    for (size_t at = 0; at < size; at += PACE__CONV_BLOCK * pixels) {
        for (size_t i = 0; i < pixels; i++) {
            memcpy(whole + at + PACE__CONV_BLOCK * i, halves + at + HALF * i, HALF * sizeof *halves);
            memcpy(whole + at + PACE__CONV_BLOCK * i + HALF, halves + at + HALF * (pixels + i),
                   HALF * sizeof *halves);
        }
    }
}

static void compute(pace__conv *self, int thread, const pace__conv_run *run)
{
    void *where[MEMORIES] = {run->x, run->y, run->weights + run->block * self->block_size, run->bias,
                             run->scratch};
    float *rest = (float *)((char *)run->scratch + self->own_scratch), *whole[] = {run->x, run->y};
    int result = self->kind == PACE__CONV_DATA ? X : self->kind == PACE__CONV_WEIGHTS ? WEIGHTS : Y;
    dnnl_exec_arg_t args[MEMORIES];
    int count = 0;

    for (int i = X; i <= Y; i++) {
        if (self->halved[i] == 0)
            continue;
        where[i] = rest;
        rest += self->halved_size[i];
        if (i != result)
            halve(whole[i], self->halved[i], self->halved_size[i], where[i]);
    }

    for (int i = 0; i < MEMORIES; i++) {
        if (!self->args[i])
            continue;
        dnnl_memory_set_data_handle_v2(self->memories[thread][i], where[i], NULL);
        args[count++] = (dnnl_exec_arg_t){self->args[i], self->memories[thread][i]};
    }
    dnnl_status_t status =
        dnnl_primitive_execute(self->primitive, self->context->streams[thread], count, args);

    assert(status == dnnl_success);
    if (result != WEIGHTS && self->halved[result] > 0)
        join(where[result], self->halved[result], self->halved_size[result], whole[result]);
}

void pace__conv_compute(pace__conv *self, int thread, const pace__conv_run *run)
{
    bool pictures =
        self->kind == PACE__CONV_WEIGHTS && self->loops.shape.plain && self->loops.shape.kernel == 3;

    if (self->by == BY_WINOGRAD)
        self->winograd_kernels->compute(&self->winograd, run);
    else if (self->by == BY_POINTS)
        self->pointwise_kernels->compute(&self->pointwise, run);
    else if (self->by == BY_ROUNDING)
        pace__conv_rounded_compute(&self->rounded, run);
    else if (self->by == BY_LOOPS && pictures)
        pace__conv_loops_of(pace_kernels_in_use())->weights(&self->loops, run);
    else if (self->by == BY_LOOPS)
        pace__conv_plain_compute(&self->loops, run);
    else
        compute(self, thread, run);
}

#endif

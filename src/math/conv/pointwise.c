#include "math/conv/pointwise.h"

#define BLOCK PACE__CONV_BLOCK

static size_t blocks_of(size_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

bool pace__pointwise_suits(const pace__conv_shape *shape)
{
    return shape->kernel == 1 && shape->stride == 1 && !shape->depthwise && !shape->plain;
}

pace__pointwise pace__pointwise_make(const pace__conv_shape *shape, pace__conv_kind kind, pace__conv_act act)
{
    size_t blocks = blocks_of(shape->channels), in_blocks = blocks_of(shape->in_channels);
    bool back = kind == PACE__CONV_DATA;

    return (pace__pointwise){.kind = kind,
                             .act = kind == PACE__CONV_FUSED ? act : PACE__CONV_LINEAR,
                             .rows = shape->rows,
                             .pixels = (size_t)shape->height * shape->width,
                             .channels = shape->channels,
                             .in_channels = shape->in_channels,
                             .blocks = back ? in_blocks : blocks,
                             .in_blocks = back ? blocks : in_blocks};
}

size_t pace__pointwise_packed(const pace__pointwise *self)
{
    return self->blocks * self->in_blocks * BLOCK * BLOCK;
}

/* Where a packed weight is in (out, in), and whether it is there at all. */
static bool find(const pace__pointwise *self, size_t packed, size_t *at)
{
    size_t column = self->in_blocks * BLOCK;
    size_t ours = packed / BLOCK / column * BLOCK + packed % BLOCK, in = packed / BLOCK % column;
    size_t out = self->kind == PACE__CONV_DATA ? in : ours;

    if (self->kind == PACE__CONV_DATA)
        in = ours;
    *at = out * self->in_channels + in;
    return out < self->channels && in < self->in_channels;
}

void pace__pointwise_pack(const pace__pointwise *self, const float *weights, float *packed)
{
    size_t at;

    for (size_t i = 0; i < pace__pointwise_packed(self); i++)
        packed[i] = find(self, i, &at) ? weights[at] : 0;
}

void pace__pointwise_unpack(const pace__pointwise *self, const float *packed, float *weights)
{
    size_t at;

    for (size_t i = 0; i < pace__pointwise_packed(self); i++) {
        if (find(self, i, &at))
            weights[at] = packed[i];
    }
}

const pace__pointwise_kernels pace__pointwise_plain = {0};

#include "math/conv/winograd.h"

#define BLOCK PACE__CONV_BLOCK

/* What a group of patches has in all places, in the cache beside the weights. */
#define GROUP_BYTES ((size_t)192 << 10)
/* Of bf16: products go on for longer before sums are put down, and a group is a multiple of what tiles have. */
#define ROUNDED_BYTES ((size_t)384 << 10)
#define ROUNDED_TURN  32

bool pace__winograd_suits(const pace__conv_shape *shape)
{
    bool padded = shape->pad_top == 1 && shape->pad_left == 1;

    return shape->kernel == 3 && (shape->stride == 1 || (shape->stride == 2 && padded)) &&
           !shape->depthwise && !shape->plain && shape->height > 3 && shape->width > 3;
}

static size_t blocks_of(size_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static size_t group_of(const pace__winograd *self)
{
    size_t places = pace__winograd_places(self->form) * pace__winograd_places(self->form);
    size_t patch = places * BLOCK * (self->in_blocks + self->blocks) * sizeof(float);
    size_t turns = GROUP_BYTES / (patch * PACE__WINOGRAD_TURN);

    return (turns ? turns : 1) * PACE__WINOGRAD_TURN;
}

pace__winograd pace__winograd_make(const pace__conv_shape *shape, pace__conv_kind kind, pace__conv_act act)
{
    pace__winograd self = {.kind = kind,
                           .act = kind == PACE__CONV_FUSED ? act : PACE__CONV_LINEAR,
                           .rows = shape->rows,
                           .channels = shape->channels,
                           .in_channels = shape->in_channels,
                           .in_blocks = blocks_of(shape->in_channels),
                           .in_height = shape->in_height,
                           .in_width = shape->in_width,
                           .blocks = blocks_of(shape->channels),
                           .height = shape->height,
                           .width = shape->width,
                           .pad_top = shape->pad_top,
                           .pad_left = shape->pad_left};

    if (kind == PACE__CONV_DATA) {
        self.in_blocks = blocks_of(shape->channels);
        self.in_height = shape->height;
        self.in_width = shape->width;
        self.blocks = blocks_of(shape->in_channels);
        self.height = shape->in_height;
        self.width = shape->in_width;
        self.pad_top = shape->stride == 1 ? 2 - shape->pad_top : 0;
        self.pad_left = shape->stride == 1 ? 2 - shape->pad_left : 0;
    }
    if (shape->stride == 2)
        self.form = kind == PACE__CONV_DATA ? PACE__WINOGRAD_BACK : PACE__WINOGRAD_TWO;
    size_t side = self.form == PACE__WINOGRAD_BACK ? 4 : 2;

    self.down = (self.height + side - 1) / side;
    self.across = (self.width + side - 1) / side;
    self.group = group_of(&self);
    return self;
}

/* Bytes that a patch has at one place. */
static size_t rounded_patch(const pace__winograd *self)
{
    size_t in = pace__winograd_depth(self->in_blocks), out = pace__winograd_depth(self->blocks);

    return self->kind == PACE__CONV_WEIGHTS ? (in + out) * sizeof(pace__bf16)
                                            : in * sizeof(pace__bf16) + self->blocks * BLOCK * sizeof(float);
}

void pace__winograd_round(pace__winograd *self, const pace__bf16_kernels *rounds,
                          const pace__winograd_kernels *wide)
{
    size_t places = pace__winograd_places(self->form) * pace__winograd_places(self->form);
    size_t turns = ROUNDED_BYTES / (places * rounded_patch(self) * ROUNDED_TURN);

    self->rounds = rounds;
    self->wide = wide;
    self->group = (turns ? turns : 1) * ROUNDED_TURN;
}

size_t pace__winograd_packed(const pace__winograd *self)
{
    return 4 * 4 * self->blocks * self->in_blocks * BLOCK * BLOCK;
}

static size_t rounded_scratch(const pace__winograd *self)
{
    size_t places = pace__winograd_places(self->form) * pace__winograd_places(self->form);
    size_t in = self->group * pace__winograd_depth(self->in_blocks);
    size_t out = self->group * pace__winograd_depth(self->blocks);

    if (self->kind != PACE__CONV_WEIGHTS)
        return places * (in * sizeof(pace__bf16) + pace__winograd_stride(self, self->blocks) * sizeof(float));
    return (places * (in + out) + pace__bf16_turned(self->group, self->in_blocks * BLOCK) +
            pace__bf16_panels(self->group, self->blocks * BLOCK)) *
           sizeof(pace__bf16);
}

size_t pace__winograd_scratch(const pace__winograd *self)
{
    size_t places = pace__winograd_places(self->form) * pace__winograd_places(self->form);
    size_t floats = pace__winograd_stride(self, self->in_blocks) + pace__winograd_stride(self, self->blocks);

    return self->rounds ? rounded_scratch(self) : places * floats * sizeof(float);
}

const pace__winograd_kernels pace__winograd_plain = {0};

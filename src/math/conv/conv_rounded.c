#include "math/conv/conv_rounded.h"
#include "base/cpu.h"

#include <string.h>

#define BLOCK PACE__CONV_BLOCK

/* Patches of a chunk: in the second level of the cache, beside the weights. */
#define PATCHES_BYTES ((size_t)128 << 10)
#define CHUNK_TURN    48 /* a chunk is a multiple of so many pixels: of what is multiplied at a time */

static size_t blocks_of(size_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

bool pace__conv_rounded_suits(const pace__conv_shape *shape, pace__conv_kind kind)
{
    return shape->bf16 && kind != PACE__CONV_FUSED && !shape->depthwise && !shape->plain &&
           shape->stride <= 2;
}

/* --- passes --- */

/* One dimension of a pass. */
typedef struct reach {
    size_t count, taps, from;
    int filter;
} reach;

/* The pixels first, first + stride, ... of x, on the way back: which taps of y reach them. */
static reach reach_back(const pace__conv_rounded *self, size_t first, size_t size, size_t pad)
{
    size_t s = self->stride, tap = (first + pad) % s;
    reach it = {.count = first < size ? (size - first + s - 1) / s : 0,
                .taps = tap < self->kernel ? (self->kernel - 1 - tap) / s + 1 : 0};

    if (it.taps == 0)
        return it;
    it.filter = (int)(tap + s * (it.taps - 1));
    it.from = self->margin + (first + pad - tap) / s - (it.taps - 1);
    return it;
}

static void add_pass(pace__conv_rounded *self, size_t top, size_t left, size_t step, reach down, reach across)
{
    pace__conv_pass *pass = &self->pass[self->passes++];
    bool back = self->kind == PACE__CONV_DATA;
    const pace__conv_pass *before = self->passes > 1 ? pass - 1 : NULL;

    *pass = (pace__conv_pass){.top = top,
                              .left = left,
                              .step = step,
                              .height = down.count,
                              .width = across.count,
                              .down = down.taps,
                              .across = across.taps,
                              .from_top = down.from,
                              .from_left = across.from,
                              .from_step = back ? 1 : self->stride,
                              .filter_top = down.filter,
                              .filter_left = across.filter,
                              .filter_step = back ? -(int)self->stride : 1};
    pass->inner = down.taps * across.taps * self->in_blocks * BLOCK;
    pass->weights_at = before ? before->weights_at + self->blocks * pace__bf16_panel(before->inner) : 0;
}

static void plan_passes(pace__conv_rounded *self)
{
    size_t widest = 0;

    if (self->kind == PACE__CONV_FORWARD) {
        reach down = {self->height, self->kernel, self->margin - self->pad_top, 0};
        reach across = {self->width, self->kernel, self->margin - self->pad_left, 0};

        add_pass(self, 0, 0, 1, down, across);
    }
    for (size_t i = 0; self->kind == PACE__CONV_DATA && i < self->stride * self->stride; i++) {
        size_t top = i / self->stride, left = i % self->stride;

        add_pass(self, top, left, self->stride, reach_back(self, top, self->height, self->pad_top),
                 reach_back(self, left, self->width, self->pad_left));
    }
    for (unsigned i = 0; i < self->passes; i++)
        widest = self->pass[i].inner > widest ? self->pass[i].inner : widest;
    self->widest = pace__bf16_padded(widest);
    self->chunk = PATCHES_BYTES / (self->widest * sizeof(pace__bf16)) / CHUNK_TURN * CHUNK_TURN;
    self->chunk = self->chunk > CHUNK_TURN ? self->chunk : CHUNK_TURN;
}

/* Lines or columns of one of `stride` pictures. Zeros in front of the next line are those behind this one, too. */
static size_t turned_size(const pace__conv_rounded *self, size_t size, size_t before, size_t behind)
{
    size_t padded = before + size + (behind > before ? behind - before : 0);

    return (padded + self->stride - 1) / self->stride;
}

static void plan_turned(pace__conv_rounded *self, const pace__conv_shape *shape)
{
    self->lines = turned_size(self, self->in_height, shape->pad_top, shape->pad_bottom);
    self->columns = turned_size(self, self->in_width, shape->pad_left, shape->pad_right);
    self->inner = pace__bf16_padded(self->rows * self->lines * self->columns);
    size_t farthest = (self->kernel - 1) / self->stride * (self->columns + 1);

    /* No multiple of 4096 bytes, whose lines would drive each other out of the cache. */
    self->length = round_up(self->inner + farthest, 64) + 32;
}

static const pace__conv_packing *packing_of(const pace__bf16_kernels *kernels)
{
#if PACE__HAS_BF16
    if (kernels != pace__bf16_of(PACE__BF16_PLAIN))
        return &pace__conv_packing_v4;
#endif
    (void)kernels;
    return &pace__conv_packing_plain;
}

pace__conv_rounded pace__conv_rounded_make(const pace__conv_shape *shape, pace__conv_kind kind)
{
    bool back = kind == PACE__CONV_DATA, flat = shape->kernel == 1 && shape->stride == 1;
    size_t in = blocks_of(shape->in_channels), out = blocks_of(shape->channels);
    size_t in_pixels = (size_t)shape->in_height * shape->in_width;
    size_t in_height = flat ? 1 : shape->in_height, in_width = flat ? in_pixels : shape->in_width;
    size_t height = flat ? 1 : shape->height, width = flat ? in_pixels : shape->width;
    pace__conv_rounded self = {.kernels = shape->bf16,
                               .packing = packing_of(shape->bf16),
                               .kind = kind,
                               .rows = shape->rows,
                               .channels = shape->channels,
                               .in_channels = shape->in_channels,
                               .kernel = shape->kernel,
                               .stride = shape->stride,
                               .pad_top = shape->pad_top,
                               .pad_left = shape->pad_left,
                               .in_blocks = back ? out : in,
                               .in_height = back ? height : in_height,
                               .in_width = back ? width : in_width,
                               .blocks = back ? in : out,
                               .height = back ? in_height : height,
                               .width = back ? in_width : width,
                               .margin = shape->kernel - 1};

    if (kind == PACE__CONV_WEIGHTS) {
        plan_turned(&self, shape);
        return self;
    }
    self.lines = self.in_height + 2 * self.margin;
    self.columns = self.in_width + 2 * self.margin;
    self.depth = self.in_blocks * BLOCK;
    if (self.kernel == 1)
        self.depth = pace__bf16_padded(self.depth);
    plan_passes(&self);
    return self;
}

/* --- weights --- */

size_t pace__conv_rounded_packed(const pace__conv_rounded *self)
{
    if (self->kind == PACE__CONV_WEIGHTS)
        return self->blocks * self->kernel * self->kernel * self->in_blocks * BLOCK * BLOCK;
    const pace__conv_pass *last = &self->pass[self->passes - 1];

    return (last->weights_at + self->blocks * pace__bf16_panel(last->inner)) / 2;
}

/* One tap of all filters into its place in the panels of a pass. */
static void pack_tap(const pace__conv_rounded *self, const pace__conv_pass *pass, size_t tap,
                     const float *weights, pace__bf16 *to)
{
    bool back = self->kind == PACE__CONV_DATA;
    size_t ins = back ? self->channels : self->in_channels, outs = back ? self->in_channels : self->channels;
    size_t taps = self->kernel * self->kernel;
    size_t in_stride = back ? self->in_channels * taps : taps,
           stride = back ? taps : self->in_channels * taps;
    size_t line = (size_t)(pass->filter_top + (int)(tap / pass->across) * pass->filter_step);
    size_t column = (size_t)(pass->filter_left + (int)(tap % pass->across) * pass->filter_step);

    weights += line * self->kernel + column;
    to += tap * self->in_blocks * BLOCK * BLOCK;
    for (size_t out = 0; out < outs; out += BLOCK, to += pace__bf16_panel(pass->inner)) {
        size_t count = outs - out < BLOCK ? outs - out : BLOCK;

        for (size_t in = 0; in < ins; in++) {
            pace__bf16 *at = to + in / 2 * 2 * BLOCK + in % 2;

            for (size_t i = 0; i < count; i++)
                at[2 * i] = pace__bf16_round(weights[in * in_stride + (out + i) * stride]);
        }
    }
}

void pace__conv_rounded_pack(const pace__conv_rounded *self, const float *weights, float *packed)
{
    memset(packed, 0, pace__conv_rounded_packed(self) * sizeof *packed);
    for (unsigned i = 0; i < self->passes; i++) {
        const pace__conv_pass *pass = &self->pass[i];

        for (size_t tap = 0; tap < pass->down * pass->across; tap++)
            pack_tap(self, pass, tap, weights, (pace__bf16 *)packed + pass->weights_at);
    }
}

void pace__conv_rounded_unpack(const pace__conv_rounded *self, const float *packed, float *weights)
{
    size_t taps = self->kernel * self->kernel, ins = self->in_blocks * BLOCK;

    for (size_t out = 0; out < self->channels; out++) {
        const float *from = packed + out / BLOCK * taps * ins * BLOCK + out % BLOCK;

        for (size_t in = 0; in < self->in_channels; in++) {
            for (size_t tap = 0; tap < taps; tap++)
                *weights++ = from[(tap * ins + in) * BLOCK];
        }
    }
}

/* --- outputs --- */

/* What is in a run's scratch. */
typedef struct room {
    pace__bf16 *picture, *patches; /* WEIGHTS: x and derivatives of y, turned */
    float *some;                   /* outputs of a chunk, of passes whose pixels lie apart */
} room;

static size_t picture_size(const pace__conv_rounded *self)
{
    if (self->kind == PACE__CONV_WEIGHTS)
        return self->stride * self->stride * self->in_blocks * BLOCK * self->length;
    return round_up(self->lines * self->columns * self->depth, 32);
}

static bool copies(const pace__conv_rounded *self)
{
    return self->kernel > 1 || self->stride > 1;
}

static size_t patches_size(const pace__conv_rounded *self)
{
    if (self->kind == PACE__CONV_WEIGHTS)
        return self->blocks * BLOCK * self->inner;
    return copies(self) ? self->chunk * self->widest : 0;
}

static size_t some_size(const pace__conv_rounded *self)
{
    return self->kind == PACE__CONV_DATA && self->stride > 1 ? self->chunk * self->blocks * BLOCK : 0;
}

size_t pace__conv_rounded_scratch(const pace__conv_rounded *self)
{
    return (picture_size(self) + patches_size(self)) * sizeof(pace__bf16) + some_size(self) * sizeof(float);
}

static room find_room(const pace__conv_rounded *self, void *scratch)
{
    room it = {.picture = scratch};

    it.patches = it.picture + picture_size(self);
    it.some = (float *)(it.patches + patches_size(self));
    return it;
}

/* A row of pictures, rounded. */
static void read_picture(const pace__conv_rounded *self, const float *x, pace__bf16 *picture)
{
    for (size_t i = 0; i < self->in_blocks * self->in_height; i++) {
        size_t block = i / self->in_height, line = i % self->in_height;
        pace__bf16 *to = picture + ((line + self->margin) * self->columns + self->margin) * self->depth;

        self->packing->round(self->in_width, x + i * self->in_width * BLOCK, to + block * BLOCK, self->depth);
    }
}

/* Outputs of a chunk to where they belong. */
static void spread(const pace__conv_rounded *self, const pace__conv_pass *pass, size_t first, size_t count,
                   const float *from, float *y)
{
    for (size_t i = 0; i < self->blocks * count; i++) {
        size_t block = i / count, pixel = first + i % count;
        size_t line = pass->top + pixel / pass->width * pass->step;
        size_t column = pass->left + pixel % pass->width * pass->step;

        memcpy(y + ((block * self->height + line) * self->width + column) * BLOCK, from + i * BLOCK,
               BLOCK * sizeof *y);
    }
}

/* What pixels of a pass see, from number `first` on. */
static void copy_patches(const pace__conv_rounded *self, const pace__conv_pass *pass, const room *in,
                         size_t first, size_t count)
{
    size_t size = pass->across * self->in_blocks * BLOCK, stride = pace__bf16_padded(pass->inner);

    for (size_t done = 0, n; done < count; done += n) {
        size_t line = (first + done) / pass->width, column = (first + done) % pass->width;
        const pace__bf16 *from = in->picture + ((pass->from_top + line * pass->from_step) * self->columns +
                                                pass->from_left + column * pass->from_step) *
                                                   self->depth;

        n = pass->width - column < count - done ? pass->width - column : count - done;
        for (size_t tap = 0; tap < pass->down; tap++)
            self->packing->copy(n, size, from + tap * self->columns * self->depth,
                                pass->from_step * self->depth, in->patches + done * stride + tap * size,
                                stride);
    }
}

static void multiply_chunk(const pace__conv_rounded *self, const pace__conv_pass *pass, const room *in,
                           size_t first, size_t count, const float *weights, float *to, size_t panel)
{
    bool patches = copies(self);

    if (patches)
        copy_patches(self, pass, in, first, count);
    self->kernels->product(&(pace__bf16_product){
        .rows = count,
        .columns = self->blocks * BLOCK,
        .a = patches ? in->patches : in->picture + first * self->depth,
        .a_stride = patches ? pace__bf16_padded(pass->inner) : self->depth,
        .inner = pass->inner,
        .panels = (const pace__bf16 *)weights + pass->weights_at,
        .result = to,
        .result_stride = BLOCK,
        .result_panel = panel,
    });
}

static void compute_chunk(const pace__conv_rounded *self, const pace__conv_pass *pass, const room *in,
                          size_t first, size_t count, const float *weights, float *y)
{
    if (pass->step == 1) {
        multiply_chunk(self, pass, in, first, count, weights, y + first * BLOCK,
                       self->height * self->width * BLOCK);
        return;
    }
    if (pass->inner == 0)
        memset(in->some, 0, self->blocks * count * BLOCK * sizeof *y);
    else
        multiply_chunk(self, pass, in, first, count, weights, in->some, count * BLOCK);
    spread(self, pass, first, count, in->some, y);
}

static void compute_outputs(const pace__conv_rounded *self, const float *x, const pace__conv_run *run,
                            float *y)
{
    size_t in_size = self->in_blocks * BLOCK * self->in_height * self->in_width;
    room in = find_room(self, run->scratch);

    /* Margins, and what lies behind the last channel. */
    memset(in.picture, 0, (picture_size(self) + patches_size(self)) * sizeof *in.picture);
    for (size_t row = 0; row < self->rows;
         row++, x += in_size, y += self->blocks * BLOCK * self->height * self->width) {
        read_picture(self, x, in.picture);
        for (unsigned i = 0; i < self->passes; i++) {
            const pace__conv_pass *pass = &self->pass[i];
            size_t pixels = pass->height * pass->width;

            for (size_t first = 0; first < pixels; first += self->chunk)
                compute_chunk(self, pass, &in, first,
                              pixels - first < self->chunk ? pixels - first : self->chunk, run->weights, y);
        }
    }
}

/* --- derivatives of weights --- */

/* A line of x, 16 channels, to the pictures of its rests. */
static void turn_line(const pace__conv_rounded *self, size_t row, size_t block, size_t line, const float *x,
                      pace__bf16 *to)
{
    size_t s = self->stride, high = line + self->pad_top;

    for (size_t rest = 0; rest < s; rest++) {
        size_t first = (rest + s - self->pad_left % s) % s;
        size_t picture = high % s * s + rest, column = (first + self->pad_left) / s;
        pace__bf16 *at = to + (picture * self->in_blocks + block) * BLOCK * self->length +
                         (row * self->lines + high / s) * self->columns + column;

        if (first < self->in_width)
            self->packing->turn((self->in_width - first + s - 1) / s, x + first * BLOCK, s, at, self->length);
    }
}

static void turn_x(const pace__conv_rounded *self, const float *x, pace__bf16 *to)
{
    memset(to, 0, picture_size(self) * sizeof *to);
    for (size_t i = 0; i < self->rows * self->in_blocks * self->in_height; i++) {
        size_t row = i / self->in_height / self->in_blocks, block = i / self->in_height % self->in_blocks;

        turn_line(self, row, block, i % self->in_height, x + i * self->in_width * BLOCK, to);
    }
}

static void pair_y(const pace__conv_rounded *self, const float *y, pace__bf16 *to)
{
    memset(to, 0, patches_size(self) * sizeof *to);
    for (size_t i = 0; i < self->rows * self->blocks * self->height; i++) {
        size_t row = i / self->height / self->blocks, block = i / self->height % self->blocks;
        size_t pixel = (row * self->lines + i % self->height) * self->columns;

        self->packing->pair(self->width, pixel % 2, y + i * self->width * BLOCK,
                            to + (block * self->inner + pixel / 2 * 2) * BLOCK);
    }
}

static void compute_weights(const pace__conv_rounded *self, const pace__conv_run *run)
{
    room in = find_room(self, run->scratch);
    size_t ins = self->in_blocks * BLOCK, taps = self->kernel * self->kernel, s = self->stride;

    turn_x(self, run->x, in.picture);
    pair_y(self, run->y, in.patches);
    for (size_t tap = 0; tap < taps; tap++) {
        size_t down = tap / self->kernel, across = tap % self->kernel, picture = down % s * s + across % s;

        self->kernels->product(&(pace__bf16_product){
            .rows = ins,
            .columns = self->blocks * BLOCK,
            .a = in.picture + picture * ins * self->length + down / s * self->columns + across / s,
            .a_stride = self->length,
            .inner = self->inner,
            .panels = in.patches,
            .result = run->weights + tap * ins * BLOCK,
            .result_stride = BLOCK,
            .result_panel = taps * ins * BLOCK,
        });
    }
}

void pace__conv_rounded_compute(const pace__conv_rounded *self, const pace__conv_run *run)
{
    self->kernels->begin();
    if (self->kind == PACE__CONV_WEIGHTS)
        compute_weights(self, run);
    else if (self->kind == PACE__CONV_DATA)
        compute_outputs(self, run->y, run, run->x);
    else
        compute_outputs(self, run->x, run, run->y);
    self->kernels->end();
}

/* --- packing --- */

static void round_pixels(size_t n, const float *from, pace__bf16 *to, size_t stride)
{
    for (size_t i = 0; i < n * BLOCK; i++)
        to[i / BLOCK * stride + i % BLOCK] = pace__bf16_round(from[i]);
}

static void pair_pixels(size_t n, size_t lead, const float *from, pace__bf16 *to)
{
    for (size_t i = 0; i < n * BLOCK; i++) {
        size_t pixel = lead + i / BLOCK;

        to[pixel / 2 * 2 * BLOCK + i % BLOCK * 2 + pixel % 2] = pace__bf16_round(from[i]);
    }
}

static void turn_pixels(size_t n, const float *from, size_t step, pace__bf16 *to, size_t stride)
{
    for (size_t i = 0; i < n * BLOCK; i++)
        to[i % BLOCK * stride + i / BLOCK] = pace__bf16_round(from[i / BLOCK * step * BLOCK + i % BLOCK]);
}

static void copy_pixels(size_t count, size_t size, const pace__bf16 *from, size_t from_stride, pace__bf16 *to,
                        size_t to_stride)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * to_stride, from + i * from_stride, size * sizeof *to);
}

const pace__conv_packing pace__conv_packing_plain = {round_pixels, pair_pixels, turn_pixels, copy_pixels};

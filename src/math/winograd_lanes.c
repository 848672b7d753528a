#include "lanes/lanes.h"
#include "math/winograd.h"

#define BLOCK  PACE__CONV_BLOCK
#define PLACES PACE__WINOGRAD_PLACES
#define PARTS  (BLOCK / LANES) /* vectors of a block */

/* Sums that registers hold: PATCHES x 16 of outputs, FILTERS x 16 of derivatives of weights. */
#if LANES == 16
#define PATCHES 12
#define FILTERS 16
#elif LANES == 8
#define PATCHES 6
#define FILTERS 4
#elif defined __aarch64__
#define PATCHES 4
#define FILTERS 4
#else
#define PATCHES 2
#define FILTERS 2
#endif

/*
 * In scratch there are, at each place of a patch, numbers of a group of patches: (group / PATCHES, blocks, PATCHES, 16)
 * floats, so that a product of matrices reads what is near. Packed weights are (places, blocks, in, 16).
 */
typedef struct places {
    float *at;
    size_t stride; /* from a place to the next */
    size_t blocks;
} places;

INLINE float *block_at(const places *it, size_t patch, size_t block)
{
    return it->at + ((patch / PATCHES * it->blocks + block) * PATCHES + patch % PATCHES) * BLOCK;
}

/* --- products of matrices --- */

/* to (rows, 16) = the sum over `turns` x `steps` of a (rows) times b (16), or is added to. All but turns is constant. */
typedef struct walk {
    size_t row; /* floats from an element of a to the next */
    size_t steps;
    size_t a_step, a_turn, b_step, b_turn;
} walk;

INLINE void multiply(size_t rows, walk by, size_t turns, const float *a, const float *b, bool adds, float *to)
{
    floats sum[BLOCK][PARTS];

    UNROLL
    for (size_t i = 0; i < rows * PARTS; i++)
        sum[i / PARTS][i % PARTS] = adds ? floats_load(to + i * LANES) : floats_all(0);
    for (size_t turn = 0; turn < turns; turn++, a += by.a_turn, b += by.b_turn) {
        for (size_t step = 0; step < by.steps; step++) {
            floats y[PARTS];

            UNROLL
            for (size_t part = 0; part < PARTS; part++)
                y[part] = floats_load(b + step * by.b_step + part * LANES);
            UNROLL
            for (size_t i = 0; i < rows; i++) {
                floats x = floats_all(a[step * by.a_step + i * by.row]);

                UNROLL
                for (size_t part = 0; part < PARTS; part++)
                    sum[i][part] = floats_fma(x, y[part], sum[i][part]);
            }
        }
    }
    UNROLL
    for (size_t i = 0; i < rows * PARTS; i++)
        floats_store(to + i * LANES, sum[i / PARTS][i % PARTS]);
}

/* Outputs of a group of patches, of x and of weights at all places. */
static void multiply_outputs(const places *x, const places *y, size_t patches, const float *weights)
{
    walk by = {BLOCK, BLOCK, 1, PATCHES * BLOCK, BLOCK, BLOCK * BLOCK};

    for (size_t place = 0; place < PLACES; place++) {
        for (size_t block = 0; block < y->blocks; block++, weights += x->blocks * BLOCK * BLOCK) {
            for (size_t patch = 0; patch < patches; patch += PATCHES)
                multiply(PATCHES, by, x->blocks, block_at(x, patch, 0) + place * x->stride, weights, false,
                         block_at(y, patch, block) + place * y->stride);
        }
    }
}

/* Derivatives of weights at all places, of a group of patches. */
static void multiply_weights(const places *x, const places *y, size_t patches, bool adds, float *weights)
{
    walk by = {1, PATCHES, BLOCK, x->blocks * PATCHES * BLOCK, BLOCK, y->blocks * PATCHES * BLOCK};
    size_t turns = (patches + PATCHES - 1) / PATCHES;

    for (size_t i = 0; i < PLACES * y->blocks; i++) {
        size_t place = i / y->blocks, block = i % y->blocks;

        for (size_t in = 0; in < x->blocks * BLOCK; in += FILTERS, weights += FILTERS * BLOCK)
            multiply(FILTERS, by, turns, block_at(x, 0, in / BLOCK) + in % BLOCK + place * x->stride,
                     block_at(y, 0, block) + place * y->stride, adds, weights);
    }
}

/* --- patches --- */

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
        const float *from = it.plane + (y * it.width + x) * BLOCK;

        UNROLL
        for (size_t part = 0; part < PARTS; part++)
            floats_store(room + i * BLOCK + part * LANES,
                         y < it.height && x < it.width ? floats_load(from + part * LANES) : floats_all(0));
    }
    *line = size * BLOCK;
    return room;
}

/* B' x B. */
INLINE void turn_x(const float *x, size_t line, float *to, size_t stride)
{
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const float *one = x + (i == 0   ? 0
                                : i == 2 ? 2
                                         : 1) *
                                   line,
                    *other = x + (i == 3   ? 3
                                  : i == 2 ? 1
                                           : 2) *
                                     line;
        floats t[4];

        UNROLL
        for (size_t j = 0; j < 4; j++) {
            floats a = floats_load(one + j * BLOCK), b = floats_load(other + j * BLOCK);

            t[j] = i == 1 ? a + b : a - b;
        }
        floats_store(to + (4 * i) * stride, t[0] - t[2]);
        floats_store(to + (4 * i + 1) * stride, t[1] + t[2]);
        floats_store(to + (4 * i + 2) * stride, t[2] - t[1]);
        floats_store(to + (4 * i + 3) * stride, t[1] - t[3]);
    }
}

/* A y A', of 2 x 2 derivatives. */
INLINE void turn_y(const float *y, size_t line, float *to, size_t stride)
{
    floats at[2][2];

    UNROLL
    for (size_t i = 0; i < 4; i++)
        at[i / 2][i % 2] = floats_load(y + i / 2 * line + i % 2 * BLOCK);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        floats t[2];

        UNROLL
        for (size_t j = 0; j < 2; j++)
            t[j] = i == 0   ? at[0][j]
                   : i == 1 ? at[0][j] + at[1][j]
                   : i == 2 ? at[0][j] - at[1][j]
                            : -at[1][j];
        floats_store(to + (4 * i) * stride, t[0]);
        floats_store(to + (4 * i + 1) * stride, t[0] + t[1]);
        floats_store(to + (4 * i + 2) * stride, t[0] - t[1]);
        floats_store(to + (4 * i + 3) * stride, -t[1]);
    }
}

/* A' m A: the outputs of a patch. */
INLINE void turn_back(const float *m, size_t stride, floats y[2][2])
{
    floats t[2][4];

    UNROLL
    for (size_t j = 0; j < 4; j++) {
        floats a = floats_load(m + j * stride), b = floats_load(m + (4 + j) * stride);
        floats c = floats_load(m + (8 + j) * stride), d = floats_load(m + (12 + j) * stride);

        t[0][j] = a + b + c;
        t[1][j] = b - c - d;
    }
    UNROLL
    for (size_t i = 0; i < 2; i++) {
        y[i][0] = t[i][0] + t[i][1] + t[i][2];
        y[i][1] = t[i][1] - t[i][2] - t[i][3];
    }
}

/* Where a patch is. */
typedef struct spot {
    size_t row, top, left;
} spot;

static spot spot_of(const pace__winograd *self, size_t patch)
{
    size_t picture = self->down * self->across, in = patch % picture;

    return (spot){patch / picture, in / self->across * 2, in % self->across * 2};
}

static void read_x(const pace__winograd *self, const float *x, spot at, const places *to, size_t patch)
{
    size_t plane = self->in_height * self->in_width * BLOCK, line;
    float room[16 * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {x + (at.row * to->blocks + block) * plane, self->in_height, self->in_width,
                     at.top - self->pad_top, at.left - self->pad_left};
        const float *from = look(it, 4, room, &line);

        UNROLL
        for (size_t part = 0; part < PARTS; part++)
            turn_x(from + part * LANES, line, block_at(to, patch, block) + part * LANES, to->stride);
    }
}

static void read_y(const pace__winograd *self, const float *y, spot at, const places *to, size_t patch)
{
    size_t plane = self->height * self->width * BLOCK, line;
    float room[4 * BLOCK];

    for (size_t block = 0; block < to->blocks; block++) {
        window it = {y + (at.row * to->blocks + block) * plane, self->height, self->width, at.top, at.left};
        const float *from = look(it, 2, room, &line);

        UNROLL
        for (size_t part = 0; part < PARTS; part++)
            turn_y(from + part * LANES, line, block_at(to, patch, block) + part * LANES, to->stride);
    }
}

INLINE floats activate(pace__conv_act act, floats x)
{
    /* What is no number stays so. */
    if (act != PACE__CONV_LINEAR)
        x = floats_max(floats_all(0), x);
    return act == PACE__CONV_RELU6 ? floats_min(floats_all(6), x) : x;
}

static void write_y(const pace__winograd *self, const places *from, size_t patch, spot at, const float *bias,
                    float *y)
{
    size_t plane = self->height * self->width * BLOCK;
    size_t lines = self->height - at.top < 2 ? 1 : 2, columns = self->width - at.left < 2 ? 1 : 2;

    for (size_t i = 0; i < from->blocks * PARTS; i++) {
        size_t block = i / PARTS, in = i % PARTS * LANES;
        float *to =
            y + (at.row * from->blocks + block) * plane + (at.top * self->width + at.left) * BLOCK + in;
        floats all[2][2], shift = bias ? floats_load(bias + block * BLOCK + in) : floats_all(0);

        turn_back(block_at(from, patch, block) + in, from->stride, all);
        for (size_t j = 0; j < lines; j++) {
            floats_store(to + j * self->width * BLOCK, activate(self->act, all[j][0] + shift));
            if (columns > 1)
                floats_store(to + (j * self->width + 1) * BLOCK, activate(self->act, all[j][1] + shift));
        }
    }
}

/* --- convolutions --- */

/* A group's last turn is whole: nothing in the rest. */
static void clear_rest(const places *it, size_t patches)
{
    for (size_t patch = patches; patch % PATCHES; patch++) {
        for (size_t i = 0; i < PLACES * it->blocks * PARTS; i++)
            floats_store(block_at(it, patch, i / PARTS % it->blocks) + i / PARTS / it->blocks * it->stride +
                             i % PARTS * LANES,
                         floats_all(0));
    }
}

static void compute_group(const pace__winograd *self, const pace__conv_run *run, size_t first, size_t count,
                          const places *in, const places *out)
{
    bool weighs = self->kind == PACE__CONV_WEIGHTS, back = self->kind == PACE__CONV_DATA;

    for (size_t i = 0; i < count; i++) {
        spot at = spot_of(self, first + i);

        read_x(self, back ? run->y : run->x, at, in, i);
        if (weighs)
            read_y(self, run->y, at, out, i);
    }
    clear_rest(in, count);
    if (weighs) {
        clear_rest(out, count);
        multiply_weights(in, out, count, first > 0, run->weights);
        return;
    }
    multiply_outputs(in, out, count, run->weights);
    for (size_t i = 0; i < count; i++)
        write_y(self, out, i, spot_of(self, first + i), self->kind == PACE__CONV_FUSED ? run->bias : NULL,
                back ? run->x : run->y);
}

static void compute(const pace__winograd *self, const pace__conv_run *run)
{
    size_t patches = self->rows * self->down * self->across;
    places in = {run->scratch, pace__winograd_stride(self, self->in_blocks), self->in_blocks};
    places out = {in.at + PLACES * in.stride, pace__winograd_stride(self, self->blocks), self->blocks};

    for (size_t first = 0; first < patches; first += self->group) {
        size_t left = patches - first;

        compute_group(self, run, first, left < self->group ? left : self->group, &in, &out);
    }
}

/* --- weights --- */

/* One of the outer products of rows of G, of 3 numbers. */
INLINE floats turn_3(size_t place, floats a, floats b, floats c)
{
    return place == 0 ? a : place == 1 ? (a + b + c) * 0.5f : place == 2 ? (a - b + c) * 0.5f : c;
}

/* G w G', of 3 x 3 weights of 16 outputs. */
INLINE void turn_weights(float (*w)[BLOCK], float *to, size_t stride)
{
    for (size_t i = 0; i < PLACES * PARTS; i++) {
        size_t place = i / PARTS, in = i % PARTS * LANES;
        floats t[3];

        UNROLL
        for (size_t j = 0; j < 3; j++)
            t[j] = turn_3(place / 4, floats_load(w[j] + in), floats_load(w[3 + j] + in),
                          floats_load(w[6 + j] + in));
        floats_store(to + place * stride + in, turn_3(place % 4, t[0], t[1], t[2]));
    }
}

/* G' m G. */
INLINE floats turn_4(size_t place, floats a, floats b, floats c, floats d)
{
    return place == 0 ? a + (b + c) * 0.5f : place == 1 ? (b - c) * 0.5f : (b + c) * 0.5f + d;
}

INLINE void turn_weights_back(const float *m, size_t stride, float (*w)[BLOCK])
{
    for (size_t i = 0; i < 9 * PARTS; i++) {
        size_t place = i / PARTS, in = i % PARTS * LANES;
        floats t[4];

        UNROLL
        for (size_t j = 0; j < 4; j++)
            t[j] = turn_4(place / 3, floats_load(m + j * stride + in), floats_load(m + (4 + j) * stride + in),
                          floats_load(m + (8 + j) * stride + in), floats_load(m + (12 + j) * stride + in));
        floats_store(w[place] + in, turn_4(place % 3, t[0], t[1], t[2], t[3]));
    }
}

/* Where the weights of one of our inputs and outputs are, in (out, in, 3, 3); on the way back outputs are inputs. */
INLINE size_t weights_at(const pace__winograd *self, size_t in, size_t out)
{
    return (self->kind == PACE__CONV_DATA ? in * self->in_channels + out : out * self->in_channels + in) * 9;
}

static void pack(const pace__winograd *self, const float *weights, float *packed)
{
    bool back = self->kind == PACE__CONV_DATA;
    size_t ins = back ? self->channels : self->in_channels, outs = back ? self->in_channels : self->channels;
    size_t stride = self->blocks * self->in_blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < self->blocks * self->in_blocks * BLOCK; i++, packed += BLOCK) {
        size_t block = i / (self->in_blocks * BLOCK) * BLOCK, in = i % (self->in_blocks * BLOCK);
        float w[9][BLOCK] = {{0}};

        for (size_t lane = 0; in < ins && lane < BLOCK && block + lane < outs; lane++) {
            const float *from = weights + weights_at(self, in, block + lane);

            for (size_t j = 0; j < 9; j++)
                w[j][lane] = from[back ? 8 - j : j];
        }
        turn_weights(w, packed, stride);
    }
}

static void unpack(const pace__winograd *self, const float *packed, float *weights)
{
    size_t stride = self->blocks * self->in_blocks * BLOCK * BLOCK;

    for (size_t i = 0; i < self->blocks * self->in_blocks * BLOCK; i++, packed += BLOCK) {
        size_t block = i / (self->in_blocks * BLOCK) * BLOCK, in = i % (self->in_blocks * BLOCK);
        float w[9][BLOCK];

        turn_weights_back(packed, stride, w);
        for (size_t lane = 0; in < self->in_channels && lane < BLOCK && block + lane < self->channels;
             lane++) {
            for (size_t j = 0; j < 9; j++)
                weights[weights_at(self, in, block + lane) + j] = w[j][lane];
        }
    }
}

const pace__winograd_kernels PACE__SET(pace__winograd) = {pack, unpack, compute};

/* Convolutions by oneDNN against plain loops, and those against the definition: every kind, shape and cut. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "math/bf16.h"
#include "math/conv/conv_plain.h"
#include "math/conv/conv_rounded.h"
#include "math/conv/pointwise.h"
#include "math/conv/winograd.h"
#include "math/gemm.h"

#include "support.h"

#define BLOCK PACE__CONV_BLOCK

/* Arrays for one convolution, as conv.h has them. */
typedef struct trial {
    pace__conv_shape shape;
    size_t x_size, y_size, weights_size, channels;
    float *x, *y, *weights, *bias; /* weights: (out, in, kernel, kernel) */
} trial;

static uint32_t blocks_of(uint32_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static float *draw_floats(size_t count, pace__random *random)
{
    float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);

    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(2 * pace__random_unit(random) - 1);
    return values;
}

/* What lies behind the last channel is 0. */
static void clear_rest(float *values, uint32_t rows, uint32_t channels, size_t pixels)
{
    for (size_t i = 0; i < (size_t)rows * blocks_of(channels) * pixels * BLOCK; i++) {
        size_t block = i / (pixels * BLOCK) % blocks_of(channels);

        if (block * BLOCK + i % BLOCK >= channels)
            values[i] = 0;
    }
}

static trial make(const pace__conv_shape *shape, uint64_t seed)
{
    pace__random random = pace__random_at(seed, 3);
    size_t in_pixels = (size_t)shape->in_height * shape->in_width,
           pixels = (size_t)shape->height * shape->width;
    trial it = {.shape = *shape, .channels = (size_t)blocks_of(shape->channels) * BLOCK};
    size_t in = shape->plain ? shape->in_channels : blocks_of(shape->in_channels) * BLOCK;

    it.x_size = shape->rows * in * in_pixels;
    it.y_size = shape->rows * it.channels * pixels;
    it.weights_size =
        (size_t)shape->channels * (shape->depthwise ? 1 : shape->in_channels) * shape->kernel * shape->kernel;
    it.x = draw_floats(it.x_size, &random);
    it.y = draw_floats(it.y_size, &random);
    it.weights = draw_floats(it.weights_size, &random);
    it.bias = draw_floats(it.channels, &random);
    if (!shape->plain)
        clear_rest(it.x, shape->rows, shape->in_channels, in_pixels);
    clear_rest(it.y, shape->rows, shape->channels, pixels);
    for (size_t i = shape->channels; i < it.channels; i++)
        it.bias[i] = 0;
    return it;
}

static void unmake(trial *it)
{
    free(it->x);
    free(it->y);
    free(it->weights);
    free(it->bias);
}

static const float *result_of(const trial *it, pace__conv_kind kind, size_t *count)
{
    *count = kind == PACE__CONV_DATA      ? it->x_size
             : kind == PACE__CONV_WEIGHTS ? it->weights_size
                                          : it->y_size;
    return kind == PACE__CONV_DATA ? it->x : kind == PACE__CONV_WEIGHTS ? it->weights : it->y;
}

/* All blocks, slice by slice if there are slices. */
static pace__conv_run run_of(const trial *it, float *packed, uint32_t block, void *scratch)
{
    size_t in_pixels = (size_t)it->shape.in_height * it->shape.in_width;
    size_t pixels = (size_t)it->shape.height * it->shape.width;

    return (pace__conv_run){.x = it->x + block * in_pixels * BLOCK,
                            .y = it->y + block * pixels * BLOCK,
                            .weights = packed,
                            .bias = it->bias,
                            .block = block,
                            .scratch = scratch};
}

static void compute_plain(trial *it, pace__conv_kind kind, pace__conv_act act)
{
    pace__conv_plain plain = pace__conv_plain_make(&it->shape, kind, act);
    float *packed = tiny_alloc(pace__conv_plain_packed(&plain) * sizeof *packed);
    uint32_t step = it->shape.slice ? it->shape.slice : blocks_of(it->shape.channels);

    pace__conv_plain_pack(&plain, it->weights, packed);
    for (uint32_t block = 0; block < blocks_of(it->shape.channels); block += step) {
        pace__conv_run run = run_of(it, packed, block, NULL);

        pace__conv_plain_compute(&plain, &run);
    }
    if (kind == PACE__CONV_WEIGHTS)
        pace__conv_plain_unpack(&plain, packed, it->weights);
    free(packed);
}

static void compute(pace__conv_context *context, trial *it, pace__conv_kind kind, pace__conv_act act)
{
    uint32_t step = it->shape.slice ? it->shape.slice : blocks_of(it->shape.channels);
    pace__random random = {1};
    pace__conv *conv;

    assert_ok(pace__conv_create(context, &it->shape, kind, act, &said_log, &conv));
    float *packed = draw_floats(pace__conv_packed(conv), &random);
    float *scratch = draw_floats(pace__conv_scratch(conv) / sizeof *scratch + 16, &random);

    if (kind != PACE__CONV_WEIGHTS)
        pace__conv_pack(conv, 0, it->weights, packed);
    for (uint32_t block = 0; block < blocks_of(it->shape.channels); block += step) {
        pace__conv_run run = run_of(it, packed, block, scratch);

        pace__conv_compute(conv, 0, &run);
    }
    if (kind == PACE__CONV_WEIGHTS)
        pace__conv_unpack(conv, 0, packed, it->weights);
    free(packed);
    free(scratch);
    pace__conv_free(conv);
}

static void assert_near(const float *found, const float *expected, size_t count, const char *what)
{
    double apart = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        apart += pow((double)found[i] - (double)expected[i], 2);
        norm += pow((double)expected[i], 2);
    }
    if (!(apart <= 1e-10 * norm))
        fail_msg("%s: apart by %.3g of %.3g", what, sqrt(apart), sqrt(norm));
}

/* Height and width of what comes out. */
static pace__conv_shape shape_of(uint32_t rows, uint32_t in, uint32_t out, uint32_t height, uint32_t width,
                                 uint32_t kernel, uint32_t stride)
{
    uint32_t pad = kernel / 2;

    return (pace__conv_shape){.rows = rows,
                              .in_channels = in,
                              .in_height = height,
                              .in_width = width,
                              .channels = out,
                              .height = (height + 2 * pad - kernel) / stride + 1,
                              .width = (width + 2 * pad - kernel) / stride + 1,
                              .kernel = kernel,
                              .stride = stride,
                              .pad_top = pad,
                              .pad_left = pad,
                              .pad_bottom = pad,
                              .pad_right = pad,
                              .plain = in == 1 || in == 3};
}

#define SHAPES 14

/* Of pictures and of maps of a few pixels; of whole blocks and of less. */
static pace__conv_shape make_shape(int which)
{
    pace__conv_shape shapes[SHAPES] = {shape_of(4, 1, 16, 28, 28, 3, 1), shape_of(3, 1, 5, 8, 9, 3, 2),
                                       shape_of(2, 3, 32, 17, 15, 3, 2), shape_of(2, 3, 24, 12, 12, 3, 1),
                                       shape_of(2, 32, 32, 7, 9, 3, 1),  shape_of(3, 24, 40, 6, 6, 1, 1),
                                       shape_of(8, 16, 16, 2, 3, 3, 1),  shape_of(2, 48, 16, 9, 8, 3, 2),
                                       shape_of(2, 64, 24, 1, 20, 1, 1), shape_of(2, 32, 32, 10, 10, 3, 1),
                                       shape_of(4, 24, 24, 2, 2, 3, 1),  shape_of(1, 64, 64, 12, 12, 3, 2),
                                       shape_of(1, 64, 64, 9, 9, 3, 1),  shape_of(8, 128, 128, 1, 1, 3, 1)};

    for (int i = 9; i < SHAPES; i++)
        shapes[i].depthwise = true;
    shapes[11].slice = 2;
    shapes[12].slice = 1;
    return shapes[which];
}

static void onednn_is_as_the_loops(void **state)
{
    pace__conv_context *context;

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* both are the loops */
#endif
    pace__gemm_alone();
    assert_ok(pace__conv_context_create(1, &said_log, &context));
    for (int i = 0; i < SHAPES * 6; i++) {
        pace__conv_shape shape = make_shape(i % SHAPES);
        pace__conv_kind kind = (pace__conv_kind)(i / SHAPES < 4 ? i / SHAPES : PACE__CONV_FUSED);
        pace__conv_act act = i / SHAPES < 4 ? PACE__CONV_LINEAR : (pace__conv_act)(i / SHAPES - 3);
        char what[64];
        size_t count;

        if (shape.plain && kind == PACE__CONV_DATA)
            continue; /* nobody asks for derivatives of pictures */
        if (kind == PACE__CONV_FUSED)
            shape.slice = 0;
        trial plain = make(&shape, (uint64_t)i), fast = make(&shape, (uint64_t)i);

        compute_plain(&plain, kind, act);
        compute(context, &fast, kind, act);
        snprintf(what, sizeof what, "shape %d, kind %d, activation %d", i % SHAPES, (int)kind, (int)act);
        const float *expected = result_of(&plain, kind, &count);

        assert_near(result_of(&fast, kind, &count), expected, count, what);
        unmake(&plain);
        unmake(&fast);
    }
    pace__conv_context_free(context);
}

/* --- derivatives of weights of pictures --- */

static void compare_pictures(int set, pace__conv_shape shape)
{
    trial plain = make(&shape, 3), fast = make(&shape, 3);
    pace__conv_plain loops = pace__conv_plain_make(&shape, PACE__CONV_WEIGHTS, PACE__CONV_LINEAR);
    float *packed = tiny_alloc(pace__conv_plain_packed(&loops) * sizeof *packed);
    pace__conv_run run = run_of(&fast, packed, 0, NULL);

    compute_plain(&plain, PACE__CONV_WEIGHTS, PACE__CONV_LINEAR);
    pace__conv_loops_of(set)->weights(&loops, &run);
    pace__conv_plain_unpack(&loops, packed, fast.weights);
    assert_near(fast.weights, plain.weights, plain.weights_size, "pictures");
    free(packed);
    unmake(&plain);
    unmake(&fast);
}

static void pictures_are_as_the_loops(void **state)
{
    (void)state;
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        pace__conv_shape shapes[] = {shape_of(4, 1, 32, 28, 28, 3, 1), shape_of(3, 1, 5, 8, 9, 3, 2),
                                     shape_of(2, 3, 24, 2, 3, 3, 1), shape_of(1, 1, 16, 1, 1, 3, 1),
                                     shape_of(2, 3, 16, 7, 12, 3, 2)};

        shapes[4].pad_top = shapes[4].pad_left = 0; /* which leaves one line and column more behind */
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && pace_kernels_run(set); i++)
            compare_pictures(set, shapes[i]);
    }
}

/* --- pointwise.h, winograd.h --- */

static void compute_pointwise(const pace__pointwise_kernels *kernels, trial *it, pace__conv_kind kind,
                              pace__conv_act act)
{
    pace__pointwise self = pace__pointwise_make(&it->shape, kind, act);
    pace__random random = {1};
    float *packed = draw_floats(pace__pointwise_packed(&self), &random);
    pace__conv_run run = run_of(it, packed, 0, NULL);

    pace__pointwise_pack(&self, it->weights, packed);
    kernels->compute(&self, &run);
    if (kind == PACE__CONV_WEIGHTS)
        pace__pointwise_unpack(&self, packed, it->weights);
    free(packed);
}

static void compute_winograd(const pace__winograd_kernels *kernels, trial *it, pace__conv_kind kind,
                             pace__conv_act act)
{
    pace__winograd self = pace__winograd_make(&it->shape, kind, act);
    pace__random random = {1};
    float *packed = draw_floats(pace__winograd_packed(&self), &random);
    float *scratch = draw_floats(pace__winograd_scratch(&self) / sizeof *scratch, &random);
    pace__conv_run run = run_of(it, packed, 0, scratch);

    kernels->pack(&self, it->weights, packed);
    kernels->compute(&self, &run);
    if (kind == PACE__CONV_WEIGHTS)
        kernels->unpack(&self, packed, it->weights);
    free(packed);
    free(scratch);
}

#define OWN_SHAPES 13

/* Of 3 x 3, with both strides, and of 1 x 1: of even and odd size, of less than whole blocks, of several groups of patches
 * and of less than one; padded on one side only. */
static pace__conv_shape own_shape(int which)
{
    pace__conv_shape shapes[OWN_SHAPES] = {
        shape_of(3, 16, 16, 32, 32, 3, 1), shape_of(2, 64, 48, 8, 8, 3, 1),
        shape_of(1, 24, 40, 7, 9, 3, 1),   shape_of(5, 5, 70, 4, 11, 3, 1),
        shape_of(2, 32, 16, 10, 9, 3, 1),  shape_of(3, 16, 32, 16, 16, 3, 2),
        shape_of(2, 70, 24, 7, 18, 3, 2),  shape_of(2, 32, 128, 15, 9, 3, 2),
        shape_of(2, 16, 16, 20, 20, 1, 1), shape_of(3, 40, 24, 5, 5, 1, 1),
        shape_of(2, 16, 70, 1, 1, 1, 1),   shape_of(1, 64, 16, 1, 8, 1, 1),
        shape_of(2, 24, 16, 11, 2, 1, 1)};

    shapes[4].pad_top = shapes[4].pad_left = 0;
    shapes[4].height--;
    shapes[4].width--;
    return shapes[which];
}

static void compare_own(int set, int which)
{
    for (int i = 0; i < 6; i++) {
        pace__conv_kind kind = (pace__conv_kind)(i < 4 ? i : PACE__CONV_FUSED);
        pace__conv_act act = i < 4 ? PACE__CONV_LINEAR : (pace__conv_act)(i - 3);
        pace__conv_shape shape = own_shape(which);
        trial plain = make(&shape, (uint64_t)i), fast = make(&shape, (uint64_t)i);
        char what[64];
        size_t count;

        assert_true(shape.kernel == 1 ? pace__pointwise_suits(&shape) : pace__winograd_suits(&shape));
        compute_plain(&plain, kind, act);
        if (shape.kernel == 1)
            compute_pointwise(pace__pointwise_of(set), &fast, kind, act);
        else
            compute_winograd(pace__winograd_of(set), &fast, kind, act);
        snprintf(what, sizeof what, "set %d, shape %d, kind %d, activation %d", set, which, (int)kind,
                 (int)act);
        const float *expected = result_of(&plain, kind, &count);

        assert_near(result_of(&fast, kind, &count), expected, count, what);
        unmake(&plain);
        unmake(&fast);
    }
}

static void our_own_are_as_the_loops(void **state)
{
    (void)state;
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        for (int which = 0; which < OWN_SHAPES && pace_kernels_run(set); which++)
            compare_own(set, which);
    }
}

/* --- conv_rounded.h --- */

static void compute_rounded(trial *it, pace__conv_kind kind)
{
    pace__conv_rounded self = pace__conv_rounded_make(&it->shape, kind);
    pace__random random = {1};
    float *packed = draw_floats(pace__conv_rounded_packed(&self), &random);
    float *scratch = draw_floats(pace__conv_rounded_scratch(&self) / sizeof *scratch, &random);
    pace__conv_run run = run_of(it, packed, 0, scratch);

    if (kind != PACE__CONV_WEIGHTS)
        pace__conv_rounded_pack(&self, it->weights, packed);
    pace__conv_rounded_compute(&self, &run);
    if (kind == PACE__CONV_WEIGHTS)
        pace__conv_rounded_unpack(&self, packed, it->weights);
    free(packed);
    free(scratch);
}

static void round_floats(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = pace__bf16_widen(pace__bf16_round(values[i]));
}

static void round_all(trial *it)
{
    round_floats(it->x, it->x_size);
    round_floats(it->y, it->y_size);
    round_floats(it->weights, it->weights_size);
}

#define ROUNDED_SHAPES 19

/* Kernels of 1, 3, 5 and 7 and of an even size, both strides, padded on both sides, on one or on none; of even and odd size,
 * whole blocks and less, one pixel, several chunks of patches. */
static pace__conv_shape rounded_shape(int which)
{
    pace__conv_shape shapes[ROUNDED_SHAPES] = {
        shape_of(2, 16, 16, 20, 20, 1, 1), shape_of(3, 40, 24, 5, 5, 1, 1),
        shape_of(2, 5, 70, 1, 1, 1, 1),    shape_of(1, 64, 16, 1, 7, 1, 1),
        shape_of(2, 24, 36, 9, 8, 1, 2),   shape_of(3, 16, 16, 32, 32, 3, 1),
        shape_of(2, 64, 48, 8, 8, 3, 1),   shape_of(1, 24, 40, 7, 9, 3, 1),
        shape_of(5, 5, 70, 2, 11, 3, 1),   shape_of(3, 16, 32, 16, 16, 3, 2),
        shape_of(2, 70, 24, 7, 18, 3, 2),  shape_of(2, 32, 128, 1, 2, 3, 2),
        shape_of(2, 20, 33, 11, 6, 5, 1),  shape_of(2, 16, 48, 9, 12, 5, 2),
        shape_of(1, 48, 17, 13, 9, 7, 1),  shape_of(2, 17, 16, 14, 15, 7, 2),
        shape_of(2, 32, 16, 10, 9, 3, 1),  shape_of(2, 32, 16, 10, 12, 3, 2),
        shape_of(2, 18, 19, 6, 9, 2, 2)};

    shapes[16].pad_top = shapes[16].pad_left = shapes[16].pad_bottom = 0;
    shapes[16].height -= 2;
    shapes[16].width--;
    shapes[17].pad_top = shapes[17].pad_left = 0;
    shapes[18].pad_top = 0;
    shapes[18].pad_left = 0;
    shapes[18].pad_bottom = 1;
    shapes[18].pad_right = 0;
    shapes[18].height = 3;
    shapes[18].width = 4;
    return shapes[which];
}

/* Of operands that are rounded already nothing is lost but in sums, as in those of the loops. */
static void compare_rounded(const pace__bf16_kernels *kernels, int which, pace__conv_kind kind)
{
    pace__conv_shape shape = rounded_shape(which);
    char what[96];
    size_t count;

    shape.bf16 = kernels;
    shape.plain = false;
    trial plain = make(&shape, (uint64_t)which), fast = make(&shape, (uint64_t)which);

    assert_true(pace__conv_rounded_suits(&shape, kind));
    round_all(&plain);
    compute_plain(&plain, kind, PACE__CONV_LINEAR);
    round_all(&fast);
    compute_rounded(&fast, kind);
    snprintf(what, sizeof what, "%s, shape %d, kind %d", kernels->name, which, (int)kind);
    const float *expected = result_of(&plain, kind, &count);

    assert_near(result_of(&fast, kind, &count), expected, count, what);
    unmake(&plain);
    unmake(&fast);
}

static void rounded_ones_are_as_the_loops(void **state)
{
    static const pace__conv_kind kinds[] = {PACE__CONV_FORWARD, PACE__CONV_DATA, PACE__CONV_WEIGHTS};
    const pace__bf16_kernels *ways[2] = {pace__bf16_of(PACE__BF16_PLAIN)};

    (void)state;
    if (pace__bf16_use(NULL, &ways[1]))
        ways[1] = ways[0];
    for (int i = 0; i < 2 * ROUNDED_SHAPES * 3; i++)
        compare_rounded(ways[i / 3 / ROUNDED_SHAPES], i / 3 % ROUNDED_SHAPES, kinds[i % 3]);
}

/* Small whole numbers, and weights that can be divided by 4: patches of them are spread without rounding. */
static void draw_whole(trial *it)
{
    for (size_t i = 0; i < it->x_size; i++)
        it->x[i] = roundf(4 * it->x[i]);
    for (size_t i = 0; i < it->y_size; i++)
        it->y[i] = roundf(4 * it->y[i]);
    for (size_t i = 0; i < it->weights_size; i++)
        it->weights[i] = 4 * roundf(2 * it->weights[i]);
}

/* By conv.h, whatever it takes for them: what comes out is exact, so that nothing may be missing. */
static void compare_whole(pace__conv_context *context, const pace__bf16_kernels *kernels, int which,
                          pace__conv_kind kind)
{
    pace__conv_shape shape = which < OWN_SHAPES ? own_shape(which) : rounded_shape(which - OWN_SHAPES);
    char what[96];
    size_t count;

    shape.plain = false;
    trial plain = make(&shape, (uint64_t)which);

    shape.bf16 = kernels;
    trial fast = make(&shape, (uint64_t)which);

    draw_whole(&plain);
    draw_whole(&fast);
    compute_plain(&plain, kind, PACE__CONV_LINEAR);
    compute(context, &fast, kind, PACE__CONV_LINEAR);
    snprintf(what, sizeof what, "whole numbers, %s, shape %d, kind %d", kernels->name, which, (int)kind);
    const float *expected = result_of(&plain, kind, &count);
    const float *found = result_of(&fast, kind, &count);

    for (size_t i = 0; i < count; i++) {
        if (found[i] != expected[i])
            fail_msg("%s: number %zu is %g, not %g", what, i, (double)found[i], (double)expected[i]);
    }
    unmake(&plain);
    unmake(&fast);
}

static void whole_numbers_stay_exact(void **state)
{
    static const pace__conv_kind kinds[] = {PACE__CONV_FORWARD, PACE__CONV_DATA, PACE__CONV_WEIGHTS};
    const pace__bf16_kernels *kernels;
    pace__conv_context *context;

    (void)state;
    if (pace__bf16_use(NULL, &kernels))
        kernels = pace__bf16_of(PACE__BF16_PLAIN);
    pace__gemm_alone();
    assert_ok(pace__conv_context_create(1, &said_log, &context));
    for (int i = 0; i < (OWN_SHAPES + ROUNDED_SHAPES) * 3; i++)
        compare_whole(context, kernels, i / 3, kinds[i % 3]);
    pace__conv_context_free(context);
}

/* What is spread is rounded, and weights are: some thousandths. */
static void spread_patches_are_near(void **state)
{
    pace__conv_shape shapes[] = {shape_of(3, 64, 48, 12, 14, 3, 1), shape_of(2, 32, 128, 15, 9, 3, 2)};
    const pace__bf16_kernels *kernels;
    pace__conv_context *context;

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* both are the loops */
#endif
    if (pace__bf16_use(NULL, &kernels) || kernels == pace__bf16_of(PACE__BF16_PLAIN))
        skip();
    pace__gemm_alone();
    assert_ok(pace__conv_context_create(1, &said_log, &context));
    for (int i = 0; i < 6; i++) {
        static const pace__conv_kind kinds[] = {PACE__CONV_FORWARD, PACE__CONV_DATA, PACE__CONV_WEIGHTS};
        trial plain = make(&shapes[i / 3], 7);
        double apart = 0, norm = 0;
        size_t count;

        shapes[i / 3].bf16 = kernels;
        trial fast = make(&shapes[i / 3], 7);

        compute_plain(&plain, kinds[i % 3], PACE__CONV_LINEAR);
        compute(context, &fast, kinds[i % 3], PACE__CONV_LINEAR);
        const float *expected = result_of(&plain, kinds[i % 3], &count);
        const float *found = result_of(&fast, kinds[i % 3], &count);

        for (size_t j = 0; j < count; j++) {
            apart += pow((double)found[j] - (double)expected[j], 2);
            norm += pow((double)expected[j], 2);
        }
        if (!(apart > 0 && sqrt(apart) <= 0.005 * sqrt(norm)))
            fail_msg("shape %d, kind %d: apart by %g of %g", i / 3, i % 3, sqrt(apart), sqrt(norm));
        unmake(&plain);
        unmake(&fast);
    }
    pace__conv_context_free(context);
}

/* --- the loops --- */

static float at(const float *values, uint32_t channels, size_t pixels, bool plain, uint32_t row,
                uint32_t channel, size_t pixel)
{
    if (plain)
        return values[((size_t)row * channels + channel) * pixels + pixel];
    return values[(((size_t)row * blocks_of(channels) + channel / BLOCK) * pixels + pixel) * BLOCK +
                  channel % BLOCK];
}

/* The definition: from x and weights to one number of y. */
static double define(const trial *it, uint32_t row, uint32_t channel, uint32_t h, uint32_t w)
{
    const pace__conv_shape *s = &it->shape;
    uint32_t filters = s->depthwise ? 1 : s->in_channels;
    double sum = 0;

    for (uint32_t i = 0; i < filters * s->kernel * s->kernel; i++) {
        uint32_t filter = i / (s->kernel * s->kernel), from = s->depthwise ? channel : filter;
        uint32_t y = h * s->stride + i / s->kernel % s->kernel - s->pad_top;
        uint32_t x = w * s->stride + i % s->kernel - s->pad_left;

        if (y < s->in_height && x < s->in_width)
            sum += (double)it->weights[(size_t)channel * filters * s->kernel * s->kernel + i] *
                   (double)at(it->x, s->in_channels, (size_t)s->in_height * s->in_width, s->plain, row, from,
                              (size_t)y * s->in_width + x);
    }
    return sum;
}

static void check_definition(const trial *it, int which)
{
    const pace__conv_shape *s = &it->shape;
    size_t pixels = (size_t)s->height * s->width;

    for (size_t i = 0; i < s->rows * s->channels * pixels; i++) {
        uint32_t row = (uint32_t)(i / pixels / s->channels), channel = (uint32_t)(i / pixels % s->channels);
        double right = define(it, row, channel, (uint32_t)(i % pixels / s->width), (uint32_t)(i % s->width));

        if (fabs(right - (double)at(it->y, s->channels, pixels, false, row, channel, i % pixels)) > 1e-4)
            fail_msg("shape %d: row %u, channel %u, pixel %zu", which, row, channel, i % pixels);
    }
}

static double inner(const float *one, const float *other, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)one[i] * (double)other[i];
    return sum;
}

/* Forward is the definition. The others are its derivatives: <y, conv(x, w)> = <x, data(y, w)> = <w, weights(x, y)>. */
static void loops_are_the_definition(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        pace__conv_shape shape = make_shape(i);
        trial given = make(&shape, 7), forward = make(&shape, 7), data = make(&shape, 7),
              weights = make(&shape, 7);

        compute_plain(&forward, PACE__CONV_FORWARD, PACE__CONV_LINEAR);
        compute_plain(&weights, PACE__CONV_WEIGHTS, PACE__CONV_LINEAR);
        check_definition(&forward, i);
        double product = inner(given.y, forward.y, given.y_size);

        assert_true(fabs(inner(given.weights, weights.weights, given.weights_size) - product) < 1e-3);
        if (!shape.plain) {
            compute_plain(&data, PACE__CONV_DATA, PACE__CONV_LINEAR);
            assert_true(fabs(inner(given.x, data.x, given.x_size) - product) < 1e-3);
        }
        unmake(&given);
        unmake(&forward);
        unmake(&data);
        unmake(&weights);
    }
}

/* What oneDNN has only a slow reference for, on any CPU, is left to the loops. */
static void references_are_not_used(void **state)
{
    pace__conv_context *context;

    (void)state;
    pace__gemm_alone();
    assert_ok(pace__conv_context_create(1, &said_log, &context));
    for (int i = 0; i < SHAPES; i++) {
        pace__conv_shape shape = make_shape(i);
        pace__conv *conv;

        assert_ok(
            pace__conv_create(context, &shape, PACE__CONV_WEIGHTS, PACE__CONV_LINEAR, &said_log, &conv));
        if (strncmp(pace__conv_name(conv), "ref", 3) == 0)
            fail_msg("shape %d is computed by %s", i, pace__conv_name(conv));
        if (i == SHAPES - 1)
            assert_string_equal(pace__conv_name(conv), "plain");
        pace__conv_free(conv);
    }
    pace__conv_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_the_definition),      cmocka_unit_test(onednn_is_as_the_loops),
        cmocka_unit_test(pictures_are_as_the_loops),     cmocka_unit_test(our_own_are_as_the_loops),
        cmocka_unit_test(rounded_ones_are_as_the_loops), cmocka_unit_test(whole_numbers_stay_exact),
        cmocka_unit_test(spread_patches_are_near),       cmocka_unit_test(references_are_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

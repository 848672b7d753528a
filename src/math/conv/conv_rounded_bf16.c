/* Packing of conv_rounded.h by the conversions of AVX512_BF16. */
#include "lanes/pairs.h"
#include "math/conv/conv_rounded.h"

#define BLOCK PACE__CONV_BLOCK

static void round_pixels(size_t n, const float *from, pace__bf16 *to, size_t stride)
{
    for (size_t i = 0; i < n; i++)
        halves_store(to + i * stride, floats_load(from + i * BLOCK));
}

static void pair_pixels(size_t n, size_t lead, const float *from, pace__bf16 *to)
{
    size_t i = lead;

    if (lead && n > 0)
        words_store(to, words_load(to) | pairs_of_floats((floats){0}, floats_load(from)));
    to += 2 * lead * BLOCK;
    for (; i + 2 <= n; i += 2, to += 2 * BLOCK)
        words_store(to, pairs_of_floats(floats_load(from + i * BLOCK), floats_load(from + (i + 1) * BLOCK)));
    if (i < n)
        words_store(to, pairs_of_floats(floats_load(from + i * BLOCK), (floats){0}));
}

/* 32 pixels, or fewer, become 16 pairs of each channel. */
INLINE void turn_some(size_t n, const float *from, size_t step, pace__bf16 *to, size_t stride)
{
    words rows[BLOCK];

    UNROLL
    for (size_t i = 0; i < BLOCK; i++) {
        const float *at = from + 2 * i * step * BLOCK;
        floats first = 2 * i < n ? floats_load(at) : (floats){0};

        rows[i] = pairs_of_floats(first, 2 * i + 1 < n ? floats_load(at + step * BLOCK) : (floats){0});
    }
    words_turn(rows);
    UNROLL
    for (size_t i = 0; i < BLOCK; i++)
        halves_store_first(to + i * stride, rows[i], n);
}

static void turn_pixels(size_t n, const float *from, size_t step, pace__bf16 *to, size_t stride)
{
    size_t i = 0;

    for (; i + 2 * BLOCK <= n; i += 2 * BLOCK)
        turn_some(2 * BLOCK, from + i * step * BLOCK, step, to + i, stride);
    if (i < n)
        turn_some(n - i, from + i * step * BLOCK, step, to + i, stride);
}

static void copy_pixels(size_t count, size_t size, const pace__bf16 *from, size_t from_stride, pace__bf16 *to,
                        size_t to_stride)
{
    for (size_t i = 0; i < count; i++, from += from_stride, to += to_stride) {
        size_t at = 0;

        for (; at + 2 * BLOCK <= size; at += 2 * BLOCK)
            words_store(to + at, words_load(from + at));
        if (at < size)
            memcpy(to + at, from + at, BLOCK * sizeof *to);
    }
}

const pace__conv_packing pace__conv_packing_v4 = {round_pixels, pair_pixels, turn_pixels, copy_pixels};

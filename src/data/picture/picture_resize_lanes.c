#include "data/picture/picture_internal.h"
#include "lanes/pixels.h"

/* Results at a time. */
#define BLOCK (2 * LANES)

INLINE void mix_blocks(const uint8_t *row, size_t stride, const int16_t *weights, uint32_t taps, int shift,
                       int blocks, int16_t *line)
{
    ints half = ints_all(1 << (shift - 1));
    row_sums sums[2] = {{{half, half}}, {{half, half}}};

    for (uint32_t t = 0; t < taps; t += 2, row += 2 * stride) {
        const uint8_t *next = t + 1 < taps ? row + stride : row;

        UNROLL
        for (int i = 0; i < blocks; i++)
            row_sums_add(&sums[i], row + i * BLOCK, next + i * BLOCK, weights + t);
    }
    UNROLL
    for (int i = 0; i < blocks; i++)
        shorts_store(line + i * BLOCK, row_sums_shifted(sums[i], shift));
}

/* The last block goes back as far as it takes to be a whole one: nothing behind the rows is read. */
static void mix_rows(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps,
                     uint32_t shift, size_t count, int16_t *line)
{
    int by = (int)(shift - PACE__LINE_BITS);
    size_t at = 0;

    if (count < BLOCK) {
        pace__mix_plain.rows(rows, stride, weights, taps, shift, count, line);
        return;
    }
    for (; at + 2 * BLOCK <= count; at += 2 * BLOCK)
        mix_blocks(rows + at, stride, weights, taps, by, 2, line + at);
    for (; at < count; at += BLOCK) {
        at = at + BLOCK <= count ? at : count - BLOCK;
        mix_blocks(rows + at, stride, weights, taps, by, 1, line + at);
    }
}

#if LANES_PICK
#define PACK pace__pack_windows

/* LANES results at a time: two taps of each are picked from a window of 64, and multiplied and added. */
static void mix_columns(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    uint32_t shift = columns->shift + PACE__LINE_BITS, count = columns->to * channels;
    const int16_t *packed = self->packed;
    ints half = ints_all(1 << (shift - 1));

    if (!self->windows_fit) {
        pace__mix_plain.columns(self, channels, to);
        return;
    }
    for (uint32_t group = 0; group < self->groups; group++, count -= LANES) {
        const int16_t *line = self->line + self->base[group];
        shorts low = shorts_load(line), high = shorts_load(line + 2 * LANES);
        ints sum = half;

        for (uint32_t pair = 0; pair < columns->taps / 2; pair++, packed += 4 * LANES)
            sum += shorts_dot_pairs(shorts_pick(low, high, shorts_load(packed)),
                                    shorts_load(packed + 2 * LANES));
        ints_store_bytes_first(to + group * LANES, sum >> (int)shift, count < LANES ? count : LANES);
    }
}
#else
#define PACK COLOURS == 4 ? pace__pack_fours : pace__pack_twos

/* COLOURS pixels at a time, two taps of each. More than is right is stored, so the last ones go by way of a copy. */
static void mix_columns(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    /* Copies stay in registers: what is stored might change the originals, for all the compiler knows. */
    uint32_t x = 0, end = channels == 3 ? self->columns.to : 0, taps = self->columns.taps;
    const uint32_t *places = self->base;
    const int16_t *start = self->line, *weights = self->packed;
    int shift = (int)(self->columns.shift + PACE__LINE_BITS);
    ints half = ints_all(1 << (shift - 1));
    uint8_t last[3 * COLOURS + 2];

    for (; x + COLOURS <= end; x += COLOURS, places += COLOURS) {
        const int16_t *line = start;
        ints even = half, odd = half;

        for (uint32_t t = 0; t < taps; t += 2, line += 6, weights += 4 * LANES) {
            even += colours_of(line, places, weights);
            odd += colours_of(line, places + 1, weights + 2 * LANES);
        }
        colours_store(x + COLOURS < end ? to + (size_t)x * 3 : last, even, odd, shift);
    }
    if (x == end && x > 0)
        memcpy(to + (size_t)(x - COLOURS) * 3, last, 3 * COLOURS);
    pace__mix_columns_from(self, channels, x, to);
}
#endif

const pace__mix_kernels PACE__SET(pace__mix) = {.rows = mix_rows, .columns = mix_columns, .pack = PACK};

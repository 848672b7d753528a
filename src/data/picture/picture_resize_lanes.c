#include "data/picture/picture_internal.h"
#include "lanes/pixels.h"

/* Results at a time. */
#define BLOCK ((size_t)2 * LANES)

/* The last block goes back as far as it takes to be a whole one: nothing behind the rows is read. */
static void mix_rows(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps,
                     uint32_t shift, size_t count, int16_t *line)
{
    int by = (int)(shift - PACE__LINE_BITS);
    ints half = ints_all(1 << (by - 1));

    if (count < BLOCK) {
        pace__mix_plain.rows(rows, stride, weights, taps, shift, count, line);
        return;
    }
    for (size_t next = 0; next < count; next += BLOCK) {
        size_t at = next + BLOCK <= count ? next : count - BLOCK;
        const uint8_t *row = rows + at;
        row_sums sums = {{half, half}};

        for (uint32_t t = 0; t < taps; t += 2, row += 2 * stride)
            row_sums_add(&sums, row, t + 1 < taps ? row + stride : row, weights + t);
        shorts_store(line + at, row_sums_shifted(sums, by));
    }
}

#if LANES_PICK
/* LANES results at a time: two taps of each are picked from a window of 64, and multiplied and added. */
static void mix_columns(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    uint32_t shift = columns->shift + PACE__LINE_BITS, count = columns->to * channels;
    const int16_t *packed = self->packed;
    ints half = ints_all(1 << (shift - 1));

    if (!self->packed_fits) {
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
/* COLOURS pixels at a time, two taps of each. The last of a row are left: a byte behind each is stored, too. */
static void mix_columns(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    int shift = (int)(columns->shift + PACE__LINE_BITS);
    ints half = ints_all(1 << (shift - 1));
    uint32_t x = 0;

    for (; channels == 3 && x + COLOURS < columns->to; x += COLOURS) {
        const int16_t *from[COLOURS], *weights[COLOURS];
        ints sums = half;

        UNROLL
        for (uint32_t i = 0; i < COLOURS; i++) {
            from[i] = self->line + (size_t)columns->first[x + i] * 3;
            weights[i] = columns->weights + (size_t)(x + i) * columns->taps;
        }
        for (uint32_t t = 0; t < columns->taps; t += 2) {
            sums += colours_of(from, weights);
            UNROLL
            for (uint32_t i = 0; i < COLOURS; i++) {
                from[i] += 6;
                weights[i] += 2;
            }
        }
        colours_store(to + (size_t)x * 3, sums, shift);
    }
    pace__mix_columns_from(self, channels, x, to);
}
#endif

const pace__mix_kernels PACE__SET(pace__mix) = {
    .rows = mix_rows, .columns = mix_columns, .packs = LANES_PICK};

/*
 * A triangle over all the pixels that fall into the new one, first over rows, then over columns. Weights are
 * integers whose sum is a power of two, and so are sums: results do not depend on the order of additions, and
 * therefore not on the CPU. Tables are made with doubles, but by operations that IEEE defines to the last bit.
 */
#include "data/picture/picture_internal.h"

#include <stdlib.h>
#include <string.h>

/* Weights fit 16 bits, a sum of 255 x 2^PACE__LINE_BITS x 2^SHIFT_MAX 31. */
#define SHIFT_MIN 14
#define SHIFT_MAX 19

#define MIX_BLOCK 64

static bool reserve(void *array, size_t *room, size_t need)
{
    return pace__picture_reserve(array, room, need);
}

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

/* How far pixel `i` of the source counts for a pixel with this centre; not normed. */
static double triangle(double centre, double radius, uint32_t i)
{
    double far = ((double)i + 0.5 - centre) / radius;

    return at_least(1 - (far < 0 ? -far : far), 0);
}

/*
 * Weights of pixels first .. first + taps - 1: rounded sums of all up to a pixel, less the one before. So their
 * sum is exact, and errors do not add up.
 */
static void weigh(const pace__taps *self, double centre, double radius, uint32_t first, int16_t *weights)
{
    double sum = 0, part = 0, one = (double)(1u << self->shift);
    int32_t before = 0;

    for (uint32_t t = 0; t < self->taps && first + t < self->from; t++)
        sum += triangle(centre, radius, first + t);
    for (uint32_t t = 0; t < self->taps; t++) {
        if (first + t < self->from)
            part += triangle(centre, radius, first + t);
        int32_t upto = (int32_t)(part / sum * one + 0.5);

        weights[t] = (int16_t)(upto - before);
        before = upto;
    }
}

/* The largest shift with which 1 / radius, which is about the largest weight, still fits. */
static uint32_t choose_shift(double radius)
{
    uint32_t shift = SHIFT_MIN;

    /* At the edges of a picture a corner of the triangle is cut off, and the rest counts a little more. */
    while (shift < SHIFT_MAX && radius >= (double)(2u << (shift - SHIFT_MIN)))
        shift++;
    return shift;
}

/* Pixels whose centres are nearer than the radius; one more if that is odd. */
static uint32_t count_taps(double radius)
{
    uint32_t taps = (uint32_t)(2 * radius);

    taps += (double)taps < 2 * radius;
    return (taps + 1) & ~1u;
}

/* False: out of memory. */
static bool make_taps(pace__taps *self, uint32_t from, double start, double length, uint32_t to,
                      bool *changed)
{
    double step = length / (double)to, radius = at_least(step, 1);
    uint32_t taps = count_taps(radius);

    *changed = self->from != from || self->to != to || self->start != start || self->length != length;
    if (!*changed)
        return true;
    self->from = 0; /* nothing that is half made is taken for whole */
    if (!reserve(&self->first, &self->first_room, (size_t)to * sizeof *self->first) ||
        !reserve(&self->weights, &self->weights_room, (size_t)to * taps * sizeof *self->weights))
        return false;
    *self = (pace__taps){from,
                         to,
                         start,
                         length,
                         taps,
                         choose_shift(radius),
                         self->first,
                         self->weights,
                         self->first_room,
                         self->weights_room};
    for (uint32_t i = 0; i < to; i++) {
        double centre = start + ((double)i + 0.5) * step, low = at_least(centre - radius + 0.5, 0);

        self->first[i] = (uint32_t)low < from ? (uint32_t)low : from - 1;
        weigh(self, centre, radius, self->first[i], self->weights + (size_t)i * taps);
    }
    return true;
}

/* A block of results, so that their sums stay in registers. */
static void mix_block(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps,
                      uint32_t shift, int16_t *line)
{
    int32_t sums[MIX_BLOCK];

    for (int i = 0; i < MIX_BLOCK; i++)
        sums[i] = 1 << (shift - 1);
    for (uint32_t t = 0; t < taps; t++) {
        const uint8_t *row = rows + t * stride;
        int16_t weight = weights[t];

        for (int i = 0; i < MIX_BLOCK; i++)
            sums[i] += weight * (int16_t)row[i];
    }
    for (int i = 0; i < MIX_BLOCK; i++)
        line[i] = (int16_t)(sums[i] >> shift);
}

static void mix_rows(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps,
                     uint32_t shift, size_t count, int16_t *line)
{
    size_t done = 0;

    shift -= PACE__LINE_BITS;
    for (; done + MIX_BLOCK <= count; done += MIX_BLOCK)
        mix_block(rows + done, stride, weights, taps, shift, line + done);
    for (; done < count; done++) {
        int32_t sum = 1 << (shift - 1);

        for (uint32_t t = 0; t < taps; t++)
            sum += weights[t] * rows[t * stride + done];
        line[done] = (int16_t)(sum >> shift);
    }
}

static void mix_grey(const pace__resizer *self, uint32_t shift, uint32_t x, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    const int16_t *weights = columns->weights + (size_t)x * columns->taps;

    for (; x < columns->to; x++, weights += columns->taps) {
        const int16_t *from = self->line + columns->first[x];
        int32_t sum = 1 << (shift - 1);

        for (uint32_t t = 0; t < columns->taps; t++)
            sum += weights[t] * from[t];
        to[x] = (uint8_t)(sum >> shift);
    }
}

static void mix_colour(const pace__resizer *self, uint32_t shift, uint32_t x, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    const int16_t *weights = columns->weights + (size_t)x * columns->taps;

    for (to += (size_t)x * 3; x < columns->to; x++, weights += columns->taps, to += 3) {
        const int16_t *from = self->line + (size_t)columns->first[x] * 3;
        int32_t red = 1 << (shift - 1), green = red, blue = red;

        for (uint32_t t = 0; t < columns->taps; t++, from += 3) {
            red += weights[t] * from[0];
            green += weights[t] * from[1];
            blue += weights[t] * from[2];
        }
        to[0] = (uint8_t)(red >> shift);
        to[1] = (uint8_t)(green >> shift);
        to[2] = (uint8_t)(blue >> shift);
    }
}

void pace__mix_columns_from(const pace__resizer *self, uint32_t channels, uint32_t first, uint8_t *to)
{
    uint32_t shift = self->columns.shift + PACE__LINE_BITS;

    (channels == 1 ? mix_grey : mix_colour)(self, shift, first, to);
}

static void mix_columns(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    pace__mix_columns_from(self, channels, 0, to);
}

const pace__mix_kernels pace__mix_plain = {.rows = mix_rows, .columns = mix_columns};

/* --- packed columns --- */

static bool reserve_packed(pace__resizer *self, size_t bases, size_t weights)
{
    return reserve(&self->base, &self->base_room, bases * sizeof *self->base) &&
           reserve(&self->packed, &self->packed_room, weights * sizeof *self->packed);
}

static void pack_window(pace__resizer *self, uint32_t channels, uint32_t group)
{
    const pace__taps *columns = &self->columns;
    uint32_t count = columns->to * channels, pairs = columns->taps / 2;
    uint32_t base = columns->first[group * 16 / channels] * channels;

    self->base[group] = base;
    for (uint32_t pair = 0; pair < pairs; pair++) {
        int16_t *places = self->packed + ((size_t)group * pairs + pair) * 64, *weights = places + 32;

        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t result = group * 16 + lane / 2, tap = pair * 2 + lane % 2, x = result / channels;
            bool counts = result < count && columns->weights[(size_t)x * columns->taps + tap] != 0;
            uint32_t place = counts ? (columns->first[x] + tap) * channels + result % channels - base : 0;

            self->windows_fit = self->windows_fit && place < 64;
            places[lane] = (int16_t)(place & 63);
            weights[lane] = counts ? columns->weights[(size_t)x * columns->taps + tap] : 0;
        }
    }
}

/* Windows are too short when a picture becomes less than a third of its size. */
bool pace__pack_windows(pace__resizer *self, uint32_t channels)
{
    const pace__taps *columns = &self->columns;

    self->groups = (columns->to * channels + 15) / 16;
    self->windows_fit = columns->taps <= 16;
    if (!self->windows_fit)
        return true;
    if (!reserve_packed(self, self->groups, (size_t)self->groups * columns->taps / 2 * 64))
        return false;
    for (uint32_t group = 0; group < self->groups; group++)
        pack_window(self, channels, group);
    return true;
}

static bool pack_pixels(pace__resizer *self, uint32_t channels, uint32_t pixels)
{
    const pace__taps *columns = &self->columns;
    uint32_t groups = channels == 3 ? columns->to / pixels : 0;

    if (!reserve_packed(self, (size_t)groups * pixels, (size_t)groups * pixels * columns->taps * 4))
        return false;
    int16_t *packed = self->packed;

    for (uint32_t group = 0; group < groups; group++) {
        for (uint32_t i = 0; i < pixels; i++)
            self->base[group * pixels + i] = columns->first[group * pixels + i] * 3;
        for (uint32_t t = 0; t < columns->taps; t += 2) {
            for (uint32_t i = 0; i < pixels; i++) {
                uint32_t half = pixels / 2, x = group * pixels + i % half * 2 + i / half;
                const int16_t *weights = columns->weights + (size_t)x * columns->taps + t;

                for (int lane = 0; lane < 4; lane++, packed += 2)
                    memcpy(packed, weights, 2 * sizeof *weights);
            }
        }
    }
    return true;
}

bool pace__pack_fours(pace__resizer *self, uint32_t channels)
{
    return pack_pixels(self, channels, 4);
}

bool pace__pack_twos(pace__resizer *self, uint32_t channels)
{
    return pack_pixels(self, channels, 2);
}

/* False: out of memory. */
static bool pack(pace__resizer *self, pace__pack_fn *by, uint32_t channels)
{
    if (!by || (self->packed_by == by && self->packed_channels == channels))
        return true;
    self->packed_by = NULL; /* nothing that is half made is taken for whole */
    if (!by(self, channels))
        return false;
    self->packed_by = by;
    self->packed_channels = channels;
    return true;
}

static bool is_same_size(const pace__resize_job *job)
{
    return job->height == job->rows && job->width == job->columns && job->from->height == job->rows &&
           job->from->width == job->columns;
}

/* The first tap that counts is pixel `first`; behind the last row of the picture there are none to read. */
static uint32_t rows_there(const pace__taps *rows, uint32_t y)
{
    uint32_t left = rows->from - rows->first[y];

    return left < rows->taps ? left : rows->taps;
}

bool pace__resize(pace__resizer *self, const pace__resize_job *job, const pace__mix_kernels *kernels)
{
    const pace__bitmap *from = job->from;
    size_t stride = (size_t)from->width * from->channels;
    bool rows_changed, columns_changed;

    if (is_same_size(job)) {
        for (uint32_t y = 0; y < job->rows; y++)
            memcpy(job->to + y * job->stride, from->pixels + y * stride, stride);
        return true;
    }
    if (!make_taps(&self->rows, from->height, job->top, job->height, job->rows, &rows_changed) ||
        !make_taps(&self->columns, from->width, job->left, job->width, job->columns, &columns_changed))
        return false;
    if (columns_changed)
        self->packed_by = NULL;
    const pace__taps *rows = &self->rows, *columns = &self->columns;
    size_t padding = (size_t)columns->taps * from->channels + PACE__LINE_PADDING;

    if (!reserve(&self->line, &self->line_room, (stride + padding) * sizeof *self->line))
        return false;
    memset(self->line + stride, 0, padding * sizeof *self->line);
    if (!pack(self, kernels->pack, from->channels))
        return false;
    /* Only these columns count. */
    uint32_t begin = columns->first[0], end = columns->first[columns->to - 1] + columns->taps;
    size_t skip = (size_t)begin * from->channels;
    size_t count = (size_t)((end < from->width ? end : from->width) - begin) * from->channels;

    for (uint32_t y = 0; y < rows->to; y++) {
        uint8_t *to = job->to + y * job->stride;

        kernels->rows(from->pixels + rows->first[y] * stride + skip, stride,
                      rows->weights + (size_t)y * rows->taps, rows_there(rows, y), rows->shift, count,
                      self->line + skip);
        kernels->columns(self, from->channels, to);
    }
    return true;
}

void pace__resizer_release(pace__resizer *self)
{
    free(self->rows.first);
    free(self->rows.weights);
    free(self->columns.first);
    free(self->columns.weights);
    free(self->line);
    free(self->base);
    free(self->packed);
    *self = (pace__resizer){0};
}

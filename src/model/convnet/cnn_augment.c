/* Pictures as training sees them. In integers: the same bytes on every machine. */
#include "model/convnet/cnn.h"

#include "math/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE_BITS 14  /* factors of colours are integers of 1 / 2^ONE_BITS */
#define PIECE    256 /* pixels at a time */

typedef struct change {
    bool flip;
    ptrdiff_t down, across;                  /* from a place of the result to where its pixel was */
    double brightness, contrast, saturation; /* factors */
} change;

bool pace__cnn_augments(const pace__cnn_config *config)
{
    return config->flip || config->crop > 0 || config->colour > 0;
}

/* Everything is drawn, whatever is wanted: switching one on does not change the others. */
static change draw_change(const pace__cnn_config *config, uint64_t place)
{
    pace__random random = pace__draw(config->seed, PACE__DRAW_PICTURES, place);
    uint64_t shifts = 2 * (uint64_t)config->crop + 1;
    double colour = (double)config->colour;
    change drawn;

    drawn.flip = (pace__random_next(&random) >> 63) != 0 && config->flip;
    drawn.down = (ptrdiff_t)pace__random_below(&random, shifts) - (ptrdiff_t)config->crop;
    drawn.across = (ptrdiff_t)pace__random_below(&random, shifts) - (ptrdiff_t)config->crop;
    drawn.brightness = 1 + colour * (2 * pace__random_unit(&random) - 1);
    drawn.contrast = 1 + colour * (2 * pace__random_unit(&random) - 1);
    drawn.saturation = 1 + colour * (2 * pace__random_unit(&random) - 1);
    return drawn;
}

/* --- places --- */

static void repeat_pixel(const uint8_t *pixel, size_t channels, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * channels, pixel, channels);
}

/* A line of `side` pixels, moved: pixel x becomes that at x + across, or at the edge. */
static void move_line(const uint8_t *from, size_t side, size_t channels, ptrdiff_t across, uint8_t *to)
{
    size_t missing = (size_t)(across < 0 ? -across : across);

    if (missing > side)
        missing = side;
    size_t kept = side - missing;

    if (across < 0) {
        repeat_pixel(from, channels, missing, to);
        memcpy(to + missing * channels, from, kept * channels);
    } else {
        memcpy(to, from + missing * channels, kept * channels);
        repeat_pixel(from + (side - 1) * channels, channels, missing, to + kept * channels);
    }
}

static void mirror_line(uint8_t *line, size_t side, size_t channels)
{
    for (size_t left = 0, right = side - 1; left < right; left++, right--) {
        for (size_t c = 0; c < channels; c++) {
            uint8_t value = line[left * channels + c];

            line[left * channels + c] = line[right * channels + c];
            line[right * channels + c] = value;
        }
    }
}

static void move_picture(const pace__cnn_config *config, const change *by, const uint8_t *from, uint8_t *to)
{
    size_t line = (size_t)config->side * config->channels;

    for (ptrdiff_t y = 0; y < (ptrdiff_t)config->height; y++) {
        ptrdiff_t source = y + by->down, last = (ptrdiff_t)config->height - 1;

        source = source < 0 ? 0 : source > last ? last : source;
        move_line(from + (size_t)source * line, config->side, config->channels, by->across,
                  to + (size_t)y * line);
        if (by->flip)
            mirror_line(to + (size_t)y * line, config->side, config->channels);
    }
}

/* --- colours --- */

static uint8_t to_byte(int32_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* The mean of a picture's bytes, in 1 / 2^ONE_BITS. */
static int64_t mean_of(const uint8_t *bytes, size_t count)
{
    uint64_t sum = 0;

    for (size_t first = 0; first < count; first += PIECE) {
        size_t piece = count - first < PIECE ? count - first : PIECE;
        uint16_t part = 0; /* 255 x 256 at most */

        for (size_t i = 0; i < piece; i++)
            part = (uint16_t)(part + bytes[first + i]);
        sum += part;
    }
    return (int64_t)((sum << ONE_BITS) / count);
}

/*
 * Contrast stretches around the mean, brightness multiplies, saturation stretches around the pixel's grey:
 *
 *     b (mean + c (value - mean)), and then s times it + (1 - s) times the same of the grey
 *
 * which is own x value + shared x grey + constant.
 */
typedef struct colours {
    int32_t own, shared, constant; /* in 1 / 2^ONE_BITS; the constant rounds, too */
} colours;

static colours mix_colours(const pace__cnn_config *config, const change *by, const uint8_t *picture)
{
    size_t bytes = (size_t)config->height * config->side * config->channels;
    double mean = (double)mean_of(picture, bytes), one = 1 << ONE_BITS, slope = by->brightness * by->contrast;
    double saturation = config->channels == 3 ? by->saturation : 1;

    return (colours){.own = (int32_t)lround(slope * saturation * one),
                     .shared = (int32_t)lround(slope * (1 - saturation) * one),
                     .constant = (int32_t)lround(by->brightness * (1 - by->contrast) * mean + one / 2)};
}

static void colour_grey(const colours *by, uint8_t *picture, size_t pixels)
{
    uint8_t made[256];

    for (int32_t value = 0; value < 256; value++)
        made[value] = to_byte((by->own * value + by->constant) >> ONE_BITS);
    for (size_t i = 0; i < pixels; i++)
        picture[i] = made[picture[i]];
}

/*
 * In numbers of 16 bits, three of them behind the point, so that the compiler does many at once: factors are
 * below 8 in all, which makes 255 x 8 x 2^3 the largest.
 */
static void colour_line(colours by, uint8_t *line, size_t pixels)
{
    int16_t shared[3 * PIECE], own = (int16_t)(by.own >> 2 < INT16_MAX ? by.own >> 2 : INT16_MAX);

    for (size_t i = 0; i < pixels; i++) {
        int32_t grey = (77 * line[3 * i] + 150 * line[3 * i + 1] + 29 * line[3 * i + 2] + 128) >> 8;
        int16_t part = (int16_t)((by.shared * grey + by.constant) >> (ONE_BITS - 3));

        shared[3 * i] = shared[3 * i + 1] = shared[3 * i + 2] = part;
    }
    for (size_t i = 0; i < 3 * pixels; i++) {
        int16_t part = (int16_t)(((int32_t)(int16_t)(line[i] << 7) * own) >> 16);
        int16_t value = (int16_t)((int16_t)(part + shared[i]) >> 3);

        value = value < 0 ? 0 : value;
        line[i] = (uint8_t)(value > 255 ? 255 : value);
    }
}

static void colour_picture(const pace__cnn_config *config, const change *by, uint8_t *picture)
{
    size_t pixels = (size_t)config->height * config->side;
    colours mixed = mix_colours(config, by, picture);

    if (config->channels == 1) {
        colour_grey(&mixed, picture, pixels);
        return;
    }
    for (size_t first = 0; first < pixels; first += PIECE)
        colour_line(mixed, picture + 3 * first, pixels - first < PIECE ? pixels - first : PIECE);
}

void pace__cnn_augment(const pace__cnn_config *config, uint64_t place, const uint8_t *from, uint8_t *to)
{
    change by = draw_change(config, place);

    move_picture(config, &by, from, to);
    if (config->colour > 0)
        colour_picture(config, &by, to);
}

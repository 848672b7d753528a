#include "gen/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL_MIN 1.0 /* pixels between two values of the finest noise */
/* Of shapes, and of backgrounds: nothing is at the ends of the scale by itself. */
#define LEVEL_MIN 15
#define LEVEL_MAX 240
#define BACK_MIN  30
#define BACK_MAX  205
#define MUTED     45
#define REACH     1.6f /* no shape goes farther, and its soft edge neither */

pace__canvas *pace__canvas_create(uint32_t side_max)
{
    pace__canvas *self = calloc(1, sizeof *self);
    size_t count = (size_t)side_max * side_max * 3;
    size_t points = (size_t)((double)side_max / CELL_MIN) + 3;

    if (!self)
        return NULL;
    self->side_max = side_max;
    self->pixels = malloc(count * sizeof *self->pixels);
    self->scratch = malloc(count * sizeof *self->scratch);
    self->lattice = malloc(points * points * sizeof *self->lattice);
    self->bytes = malloc(count);
    if (self->pixels && self->scratch && self->lattice && self->bytes)
        return self;
    pace__canvas_free(self);
    return NULL;
}

void pace__canvas_free(pace__canvas *canvas)
{
    if (!canvas)
        return;
    free(canvas->pixels);
    free(canvas->scratch);
    free(canvas->lattice);
    free(canvas->bytes);
    free(canvas);
}

/* A direction: cosine and sine of any angle, without either. */
static void draw_direction(pace__random *random, float *x, float *y)
{
    double a, b, square;

    do {
        a = pace__random_between(random, -1, 1);
        b = pace__random_between(random, -1, 1);
        square = a * a + b * b;
    } while (square > 1 || square < 0.01);
    *x = (float)(a / sqrt(square));
    *y = (float)(b / sqrt(square));
}

/* Any colour, or, in a scene, one that is not far from a grey: a camera seldom sees others. */
static void draw_colour(pace__random *random, double low, double high, bool muted, float colour[3])
{
    double level = pace__random_between(random, low, high);

    for (int c = 0; c < 3; c++) {
        double channel = muted ? level + pace__random_between(random, -MUTED, MUTED)
                               : pace__random_between(random, low, high);

        colour[c] = (float)(channel < low ? low : channel > high ? high : channel);
    }
}

/* ---- background ---- */

static void fill_lattice(float *lattice, size_t count, pace__random *random)
{
    for (size_t i = 0; i < count; i++)
        lattice[i] = (float)pace__random_unit(random) * 2 - 1;
}

/* Value noise: random values on a lattice, smoothly interpolated, added to the (height, width) of `field`. */
static void add_noise(const pace__canvas *self, float *field, double cell, double amplitude,
                      pace__random *random)
{
    uint32_t columns = (uint32_t)((double)self->width / cell) + 2;
    uint32_t rows = (uint32_t)((double)self->height / cell) + 2;
    float step = (float)(1 / cell), strength = (float)amplitude;

    fill_lattice(self->lattice, (size_t)rows * columns, random);
    for (uint32_t y = 0; y < self->height; y++) {
        float down = (float)y * step;
        uint32_t row = (uint32_t)down;
        const float *upper = self->lattice + (size_t)row * columns, *lower = upper + columns;
        float b = down - (float)row;

        b = b * b * (3 - 2 * b);
        for (uint32_t x = 0; x < self->width; x++, field++) {
            float right = (float)x * step;
            uint32_t column = (uint32_t)right;
            float a = right - (float)column;

            a = a * a * (3 - 2 * a);
            float above = upper[column] + a * (upper[column + 1] - upper[column]);
            float below = lower[column] + a * (lower[column + 1] - lower[column]);

            *field += strength * (above + b * (below - above));
        }
    }
}

static void fill_gradient(const pace__canvas *self, float *field, pace__random *random)
{
    float x_step, y_step, strength = (float)pace__random_between(random, 0, 0.8);

    draw_direction(random, &x_step, &y_step);
    for (uint32_t y = 0; y < self->height; y++) {
        for (uint32_t x = 0; x < self->width; x++)
            *field++ = strength * (x_step * ((float)x / (float)self->width - 0.5f) +
                                   y_step * ((float)y / (float)self->height - 0.5f));
    }
}

/* The second colour is near the first. */
static void draw_background_colours(pace__canvas *self, pace__random *random)
{
    draw_colour(random, BACK_MIN, BACK_MAX, self->crisp, self->back[0]);
    for (int c = 0; c < 3; c++)
        self->back[1][c] = self->back[0][c] + (float)pace__random_between(random, -50, 50);
}

void pace__canvas_background(pace__canvas *canvas, uint32_t height, uint32_t width, bool crisp,
                             pace__random *random)
{
    float *field = canvas->scratch;
    double cell = pace__random_between(random, 20, 60);

    canvas->height = height;
    canvas->width = width;
    canvas->crisp = crisp;
    draw_background_colours(canvas, random);
    fill_gradient(canvas, field, random);
    add_noise(canvas, field, cell, 0.5, random);
    add_noise(canvas, field, cell / 3, 0.35, random);
    add_noise(canvas, field, cell / 8, crisp ? 0.5 : 0.25, random);
    if (crisp)
        add_noise(canvas, field, 1.5, 0.35, random);
    for (size_t i = 0; i < (size_t)height * width; i++) {
        for (int c = 0; c < 3; c++) {
            float middle = (canvas->back[0][c] + canvas->back[1][c]) / 2;

            canvas->pixels[3 * i + c] = middle + field[i] * (canvas->back[1][c] - canvas->back[0][c]) / 2;
        }
    }
    /* A little structure in brightness too, should the two colours be one. */
    memset(field, 0, (size_t)height * width * sizeof *field);
    add_noise(canvas, field, crisp ? 3 : cell / 5, crisp ? 20 : 10, random);
    for (size_t i = 0; i < (size_t)height * width; i++) {
        for (int c = 0; c < 3; c++)
            canvas->pixels[3 * i + c] += field[i];
    }
}

/* ---- shapes ---- */

/* The colour's distance from the nearer one of the background's, by its clearest channel. */
static float contrast(const pace__canvas *self, const float colour[3])
{
    float least = 255;

    for (int i = 0; i < 2; i++) {
        float most = 0;

        for (int c = 0; c < 3; c++) {
            float apart = colour[c] - self->back[i][c];

            apart = apart < 0 ? -apart : apart;
            most = apart > most ? apart : most;
        }
        least = most < least ? most : least;
    }
    return least;
}

/* There is always one: the two of the background are at most 50 apart, and 75 on both sides of them is less
 * than all levels. */
static void draw_clear_colour(const pace__canvas *self, pace__random *random, float colour[3])
{
    do {
        draw_colour(random, LEVEL_MIN, LEVEL_MAX, self->crisp, colour);
    } while (contrast(self, colour) < 75);
}

/* How a shape lies: from pixels to its own coordinates, in which it has a radius of about 1. */
typedef struct pose {
    float x, y;        /* its centre */
    float right, down; /* a unit vector */
    float wide, high;  /* 1 / radius, in its own directions */
    float sharp;       /* pixels in a unit */
} pose;

/* In the middle `part` of the side, but not nearer to its ends than the margin. */
static float draw_place(pace__random *random, double side, double part, double margin)
{
    return (float)(side / 2 + pace__random_between(random, margin - part / 2, part / 2 - margin));
}

/* In the middle square, which is left when the longer sides are cut off. */
static pose draw_pose(const pace__canvas *self, double radius, pace__random *random)
{
    double stretch = pace__random_between(random, 0.87, 1.15), margin = 0.85 * radius;
    double part = self->width < self->height ? self->width : self->height;
    pose at = {
        .wide = (float)(1 / (radius * stretch)), .high = (float)(stretch / radius), .sharp = (float)radius};

    at.x = draw_place(random, self->width, part, margin);
    at.y = draw_place(random, self->height, part, margin);
    draw_direction(random, &at.right, &at.down);
    return at;
}

/* 0 outside, 1 inside, in between where the edge crosses the pixel. */
static float cover(const pose *at, unsigned shape, bool squarely, uint32_t x, uint32_t y)
{
    float dx = (float)x + 0.5f - at->x, dy = (float)y + 0.5f - at->y;
    float u = (dx * at->right + dy * at->down) * at->wide, v = (dy * at->right - dx * at->down) * at->high;

    if (u > REACH || u < -REACH || v > REACH || v < -REACH)
        return 0;
    float inside = 0.5f - pace__shape_distance(shape, squarely, u, v) * at->sharp;

    return inside < 0 ? 0 : inside > 1 ? 1 : inside;
}

/* Pixels of a side that a shape can reach: all others are left alone. */
static void find_range(float centre, const pose *at, uint32_t side, uint32_t *begin, uint32_t *end)
{
    float reach = REACH * 1.4143f / (at->wide < at->high ? at->wide : at->high);
    float low = centre - reach, high = centre + reach;

    *begin = low > 0 ? (uint32_t)low : 0;
    *end = high < (float)side ? (uint32_t)high + 1 : side;
}

static void paint(pace__canvas *self, const pose *at, unsigned shape, bool squarely, const float colour[3],
                  float strength)
{
    uint32_t left, right, top, bottom;

    find_range(at->x, at, self->width, &left, &right);
    find_range(at->y, at, self->height, &top, &bottom);
    for (uint32_t y = top; y < bottom && y < self->height; y++) {
        float *pixel = self->pixels + ((size_t)y * self->width + left) * 3;

        for (uint32_t x = left; x < right && x < self->width; x++, pixel += 3) {
            float share = strength * cover(at, shape, squarely, x, y);

            for (int c = 0; c < 3 && share > 0; c++)
                pixel[c] += share * (colour[c] - pixel[c]);
        }
    }
}

void pace__canvas_shape(pace__canvas *canvas, unsigned shape, double radius, pace__random *random)
{
    pose at = draw_pose(canvas, radius, random);
    bool squarely = pace__random_next(random) >> 63;
    float colour[3];

    draw_clear_colour(canvas, random, colour);
    paint(canvas, &at, shape, squarely, colour, (float)pace__random_between(random, 0.85, 1));
}

void pace__canvas_clutter(pace__canvas *canvas, pace__random *random)
{
    uint64_t strokes = pace__random_below(random, 4), specks = pace__random_below(random, 5);
    double side = canvas->height < canvas->width ? canvas->height : canvas->width;

    for (uint64_t i = 0; i < strokes + specks; i++) {
        bool stroke = i < strokes;
        double size = side * (stroke ? pace__random_between(random, 0.08, 0.2)
                                     : pace__random_between(random, 0.01, 0.03));
        pose at = draw_pose(canvas, size, random);
        float colour[3];

        if (stroke) { /* a box that is thin one way */
            at.high = (float)(1 / pace__random_between(random, 0.7, 1.5));
            at.sharp = 1.2f;
        }
        draw_colour(random, LEVEL_MIN, LEVEL_MAX, canvas->crisp, colour);
        paint(canvas, &at, stroke ? PACE__SQUARE : PACE__DISC, false, colour,
              (float)pace__random_between(random, 0.4, 0.8));
    }
}

/* ---- the end ---- */

void pace__canvas_finish(pace__canvas *canvas)
{
    size_t count = (size_t)canvas->height * canvas->width * 3;

    for (size_t i = 0; i < count; i++) {
        float level = canvas->pixels[i] + 0.5f;

        canvas->bytes[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
}

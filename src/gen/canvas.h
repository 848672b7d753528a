/*
 * canvas.h - a picture that is being drawn: textured backgrounds, shapes with smooth edges, and what can
 * go wrong with a photograph. Levels are 0 .. 255, and may leave that range until the bytes are taken.
 *
 * Drawing uses no function of the C library but square roots, which IEEE defines to the last bit: a picture
 * follows from its random numbers on every machine.
 */
#ifndef GEN_CANVAS_H
#define GEN_CANVAS_H

#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

enum pace__shape {
    PACE__DISC,
    PACE__SQUARE,
    PACE__TRIANGLE,
    PACE__RING,
    PACE__CROSS,
    PACE__STRIPES, /* this and the next two are textures, in a disc or square */
    PACE__CHECKS,
    PACE__DOTS,
    PACE__STAR,
    PACE__MOON,
    PACE__SHAPES
};

/* "disc", "square", ... */
const char *pace__shape_name(unsigned shape);

/*
 * How far a point is outside of a shape of radius about 1 around 0; negative inside. `squarely`: textures fill a
 * square, not a disc.
 */
float pace__shape_distance(unsigned shape, bool squarely, float x, float y);

typedef struct pace__canvas {
    uint32_t height, width, side_max;
    float *pixels;    /* (height, width, 3) */
    float *scratch;   /* as much */
    float *lattice;   /* values that noise is drawn from */
    float back[2][3]; /* the two colours of the background */
    bool crisp;
    uint8_t *bytes; /* (height, width, 3), by pace__canvas_finish */
} pace__canvas;

/* NULL when out of memory. */
pace__canvas *pace__canvas_create(uint32_t side_max);
void pace__canvas_free(pace__canvas *canvas); /* NULL is allowed */

static inline double pace__random_between(pace__random *random, double low, double high)
{
    return low + (high - low) * pace__random_unit(random);
}

/* Two colours, mixed by noise of several sizes and a gradient; `crisp`: with much fine
 * structure, and muted colours, here and in what is drawn on it. */
void pace__canvas_background(pace__canvas *canvas, uint32_t height, uint32_t width, bool crisp,
                             pace__random *random);

/* Of about this radius in pixels, at any angle, and where most of it is in the middle square. */
void pace__canvas_shape(pace__canvas *canvas, unsigned shape, double radius, pace__random *random);

/* A few thin strokes and specks that mean nothing. */
void pace__canvas_clutter(pace__canvas *canvas, pace__random *random);

/* Gaussian. */
void pace__canvas_blur(pace__canvas *canvas, double sigma);
void pace__canvas_noise(pace__canvas *canvas, double sigma, pace__random *random);
/* Brighter, such that this share of the levels is at the upper end. */
void pace__canvas_overexpose(pace__canvas *canvas, double share);

/* Rounds to canvas->bytes. */
void pace__canvas_finish(pace__canvas *canvas);

#endif

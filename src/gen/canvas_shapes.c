#include "gen/canvas.h"

#include <assert.h>
#include <math.h>

/* Of textures: from one stripe to the next. */
#define PERIOD 0.45f

const char *pace__shape_name(unsigned shape)
{
    static const char *const names[PACE__SHAPES] = {"disc",    "square", "triangle", "ring", "cross",
                                                    "stripes", "checks", "dots",     "star", "moon"};

    assert(shape < PACE__SHAPES);
    return names[shape];
}

static float length(float x, float y)
{
    return sqrtf(x * x + y * y);
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

static float magnitude(float a)
{
    return a < 0 ? -a : a;
}

/* Of a box around 0; corners are near enough. */
static float box(float x, float y, float half_width, float half_height)
{
    return larger(magnitude(x) - half_width, magnitude(y) - half_height);
}

/* How far x is from a multiple of the period, in -PERIOD / 2 .. PERIOD / 2. */
static float fold(float x)
{
    float turns = x / PERIOD + 1024.5f; /* positive: cutting is rounding down */

    return x - ((float)(int32_t)turns - 1024) * PERIOD;
}

static float stripe(float x)
{
    return magnitude(fold(x)) - PERIOD / 4;
}

static float triangle(float x, float y)
{
    return larger(larger(0.8660254f * x + 0.5f * y, -0.8660254f * x + 0.5f * y), -y) - 0.52f;
}

/* Inside are the points that are inside of at least four of the five lines through the tips. */
static float star(float x, float y)
{
    static const float normals[5][2] = {{0, -1},
                                        {0.95105652f, -0.30901699f},
                                        {0.58778525f, 0.80901699f},
                                        {-0.58778525f, 0.80901699f},
                                        {-0.95105652f, -0.30901699f}};
    float first = -9, second = -9; /* the two largest */

    for (int i = 0; i < 5; i++) {
        float distance = normals[i][0] * x + normals[i][1] * y - 0.36f;

        second = larger(second, smaller(first, distance));
        first = larger(first, distance);
    }
    return second;
}

static float moon(float x, float y)
{
    return larger(length(x, y) - 1, 0.85f - length(x - 0.55f, y));
}

static float checks(float x, float y)
{
    float a = stripe(x), b = stripe(y);

    return larger(smaller(a, b), -larger(a, b));
}

float pace__shape_distance(unsigned shape, bool squarely, float x, float y)
{
    float outline = squarely ? box(x, y, 0.88f, 0.88f) : length(x, y) - 1;

    switch (shape) {
    case PACE__DISC:
        return length(x, y) - 1;
    case PACE__SQUARE:
        return box(x, y, 0.86f, 0.86f);
    case PACE__TRIANGLE:
        return triangle(x, y);
    case PACE__RING:
        return magnitude(length(x, y) - 0.78f) - 0.22f;
    case PACE__CROSS:
        return smaller(box(x, y, 1, 0.3f), box(x, y, 0.3f, 1));
    case PACE__STRIPES:
        return larger(outline, stripe(x));
    case PACE__CHECKS:
        return larger(outline, checks(x, y));
    case PACE__DOTS:
        return larger(outline, length(fold(x), fold(y)) - 0.3f * PERIOD);
    case PACE__STAR:
        return star(x, y);
    default:
        return moon(x, y);
    }
}

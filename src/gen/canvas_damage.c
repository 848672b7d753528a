/* What can go wrong with a photograph. */
#include "gen/canvas.h"

#include "gen/elementary.h"

#define BLUR_RADIUS_MAX 64
/* A bright picture becomes clearly brighter still. */
#define EXPOSED_LEVEL_MAX 130

/* Weights of pixels 0 .. radius away. */
static int make_bell(double sigma, float *weights)
{
    int radius = (int)(3 * sigma + 0.5);
    double sum = -1;

    radius = radius < 1 ? 1 : radius > BLUR_RADIUS_MAX ? BLUR_RADIUS_MAX : radius;
    for (int i = 0; i <= radius; i++) {
        double weight = pace__portable_exp(-(double)(i * i) / (2 * sigma * sigma));

        weights[i] = (float)weight;
        sum += 2 * weight;
    }
    for (int i = 0; i <= radius; i++)
        weights[i] = (float)((double)weights[i] / sum);
    return radius;
}

/* One line of `count` pixels, `step` floats apart; beyond its ends it goes on as it ends. */
static void blur_line(const float *from, float *to, int count, int step, const float *weights, int radius)
{
    for (int i = 0; i < count; i++) {
        float sum = weights[0] * from[i * step];

        for (int away = 1; away <= radius; away++) {
            int before = i - away < 0 ? 0 : i - away, behind = i + away < count ? i + away : count - 1;

            sum += weights[away] * (from[before * step] + from[behind * step]);
        }
        to[i * step] = sum;
    }
}

void pace__canvas_blur(pace__canvas *canvas, double sigma)
{
    int height = (int)canvas->height, width = (int)canvas->width;
    float weights[BLUR_RADIUS_MAX + 1];
    int radius = make_bell(sigma, weights);

    for (int y = 0; y < height; y++) {
        for (int c = 0; c < 3; c++)
            blur_line(canvas->pixels + y * width * 3 + c, canvas->scratch + y * width * 3 + c, width, 3,
                      weights, radius);
    }
    for (int x = 0; x < width * 3; x++)
        blur_line(canvas->scratch + x, canvas->pixels + x, height, width * 3, weights, radius);
}

void pace__canvas_noise(pace__canvas *canvas, double sigma, pace__random *random)
{
    size_t count = (size_t)canvas->height * canvas->width * 3;

    for (size_t i = 0; i < count; i++)
        canvas->pixels[i] += (float)(sigma * pace__rough_normal(pace__random_next(random)));
}

void pace__canvas_overexpose(pace__canvas *canvas, double share)
{
    size_t count = (size_t)canvas->height * canvas->width * 3, above = 0;
    size_t histogram[256] = {0};
    int level = 255;

    pace__canvas_finish(canvas);
    for (size_t i = 0; i < count; i++)
        histogram[canvas->bytes[i]]++;
    while (level > 1 && (double)(above += histogram[level]) < share * (double)count)
        level--;
    if (level > EXPOSED_LEVEL_MAX)
        level = EXPOSED_LEVEL_MAX;
    float gain = 255.0f / (float)level;

    for (size_t i = 0; i < count; i++)
        canvas->pixels[i] *= gain;
}

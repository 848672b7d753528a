/* The kernels in plain C: what those on lanes are compared with, bit by bit. */
#include "model/convnet/cnn_fast_kernels.h"

#include <string.h>

#define WIDTH PACE__CNN_LANES
#define EACH  for (size_t lane = 0; lane < WIDTH; lane++)

/* Sums over pixels have two parts, of those of even number and of the others. */
typedef struct halves {
    float of[2][WIDTH];
} halves;

static void add_halves(const halves *from, double *to)
{
    EACH to[lane] += (double)(from->of[0][lane] + from->of[1][lane]);
}

/* What is no number stays so. */
static float activate(pace__cnn_act act, float x)
{
    if (act != PACE__ACT_NONE)
        x = 0 > x ? 0 : x;
    return act == PACE__ACT_RELU6 && 6 < x ? 6 : x;
}

static void apply(pace__cnn_act act, size_t n, const float *z, const float *scale, const float *shift,
                  const float *add, float *y)
{
    for (size_t i = 0; i < n * WIDTH; i++) {
        float x = z[i] * scale[i % WIDTH] + shift[i % WIDTH];

        y[i] = activate(act, add ? x + add[i] : x);
    }
}

static void moments(size_t n, const float *z, const float *centre, double *sums, double *squares, float *to)
{
    halves sum = {0}, square = {0};

    for (size_t i = 0; i < n * WIDTH; i++) {
        float x = z[i] - centre[i % WIDTH];

        sum.of[i / WIDTH % 2][i % WIDTH] += x;
        square.of[i / WIDTH % 2][i % WIDTH] += x * x;
    }
    memmove(to, z, n * WIDTH * sizeof *to);
    add_halves(&sum, sums);
    add_halves(&square, squares);
}

static void mask(const pace__cnn_mask *it)
{
    float top = it->act == PACE__ACT_RELU ? __builtin_inff() : 6;
    halves sum = {0}, product = {0};

    for (size_t i = 0; i < it->n * WIDTH; i++) {
        float d = it->more ? it->d_y[i] + it->more[i] : it->d_y[i];

        if (it->act != PACE__ACT_NONE && !(it->y[i] > 0 && it->y[i] < top))
            d = 0;
        it->to[i] = d;
        sum.of[i / WIDTH % 2][i % WIDTH] += d;
        product.of[i / WIDTH % 2][i % WIDTH] += d * (it->z[i] - it->mean[i % WIDTH]);
    }
    add_halves(&sum, it->sums);
    add_halves(&product, it->products);
}

static void blend(size_t n, const float *d, const float *z, const float *p, const float *q, const float *r,
                  float *to)
{
    for (size_t i = 0; i < n * WIDTH; i++)
        to[i] = d[i] * p[i % WIDTH] + z[i] * q[i % WIDTH] + r[i % WIDTH];
}

static void add(size_t n, const float *from, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void mean(size_t n, const float *y, float *means)
{
    halves sum = {0};

    for (size_t i = 0; i < n * WIDTH; i++)
        sum.of[i / WIDTH % 2][i % WIDTH] += y[i];
    EACH means[lane] = (sum.of[0][lane] + sum.of[1][lane]) * (1 / (float)n);
}

/* Blocks of 16 in turns of two of them; then lanes by halves; what is less than a block at the end. */
static float dot(size_t n, const float *x, const float *y)
{
    size_t blocks = n / WIDTH, pairs = blocks / 2 * 2;
    halves sum = {0};
    float rest = 0;

    for (size_t i = 0; i < blocks * WIDTH; i++)
        sum.of[i / WIDTH < pairs ? i / WIDTH % 2 : 0][i % WIDTH] += x[i] * y[i];
    EACH sum.of[0][lane] += sum.of[1][lane];
    for (size_t width = WIDTH / 2; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; lane++)
            sum.of[0][lane] += sum.of[0][lane + width];
    }
    for (size_t i = blocks * WIDTH; i < n; i++)
        rest += x[i] * y[i];
    return sum.of[0][0] + rest;
}

static void head(size_t rows, size_t features, size_t outputs, const float *x, const float *weights,
                 const float *bias, float *logits)
{
    for (size_t i = 0; i < rows * outputs; i++)
        logits[i] =
            bias[i % outputs] + dot(features, x + i / outputs * features, weights + i % outputs * features);
}

static void head_back(size_t rows, size_t features, size_t outputs, size_t first, size_t count,
                      const float *x, const float *d, float *sums)
{
    for (size_t output = 0; output < outputs; output++) {
        for (size_t i = first; i < first + count; i++) {
            float sum = 0;

            for (size_t row = 0; row < rows; row++)
                sum += d[row * outputs + output] * x[row * features + i];
            sums[output * features + i] = sum;
        }
    }
}

const pace__cnn_kernels pace__cnn_plain = {apply, moments, mask, blend, add, mean, head, head_back};

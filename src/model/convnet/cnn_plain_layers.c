#include "model/convnet/cnn_plain_layers.h"

#include <string.h>

/* --- places --- */

static size_t area(const pace__cnn_unit *unit)
{
    return (size_t)unit->height * unit->width;
}

/* A channel of a picture of the unit's output. */
static size_t out_at(const pace__cnn_unit *unit, size_t row, uint32_t channel)
{
    return (row * unit->channels + channel) * area(unit);
}

static size_t in_at(const pace__cnn_unit *unit, size_t row, uint32_t channel)
{
    return (row * unit->in_channels + channel) * unit->in_height * unit->in_width;
}

/* --- convolution --- */

/* The outputs first .. last whose input at place output x stride + tap - pad is inside. */
static void inside(uint32_t tap, uint32_t pad, uint32_t stride, uint32_t in, uint32_t out, uint32_t *first,
                   uint32_t *last)
{
    *first = tap < pad ? (pad - tap + stride - 1) / stride : 0;
    *last = in + pad > tap ? (in + pad - tap - 1) / stride + 1 : 0;
    if (*last > out)
        *last = out;
}

/* What one weight does: it connects a channel of the input, displaced, with one of the output. */
typedef struct tap {
    size_t weight; /* its place */
    uint32_t in, out;
    uint32_t top, bottom, left, right; /* outputs that have such an input */
    ptrdiff_t down, across;            /* from output x stride to the input */
} tap;

static tap find_tap(const pace__cnn_unit *unit, uint32_t out, uint32_t in, uint32_t ky, uint32_t kx)
{
    uint32_t inputs = unit->depthwise ? 1 : unit->in_channels;
    tap at = {.in = unit->depthwise ? out : in,
              .out = out,
              .down = (ptrdiff_t)ky - unit->pad_top,
              .across = (ptrdiff_t)kx - unit->pad_left};

    at.weight = (((size_t)out * inputs + in) * unit->kernel + ky) * unit->kernel + kx;
    inside(ky, unit->pad_top, unit->stride, unit->in_height, unit->height, &at.top, &at.bottom);
    inside(kx, unit->pad_left, unit->stride, unit->in_width, unit->width, &at.left, &at.right);
    return at;
}

/* The input of output (y, 0). */
static ptrdiff_t tap_line(const pace__cnn_unit *unit, const tap *at, uint32_t y)
{
    return ((ptrdiff_t)y * unit->stride + at->down) * unit->in_width + at->across;
}

static void tap_forward(const pace__cnn_unit *unit, const tap *at, size_t row, const double *x, double weight,
                        double *z)
{
    const double *from = x + in_at(unit, row, at->in);
    double *to = z + out_at(unit, row, at->out);

    for (uint32_t y = at->top; y < at->bottom; y++) {
        ptrdiff_t line = tap_line(unit, at, y);

        for (uint32_t i = at->left; i < at->right; i++)
            to[(size_t)y * unit->width + i] += weight * from[line + (ptrdiff_t)i * unit->stride];
    }
}

/* Returns what the weight's derivative grows by. */
static double tap_back(const pace__cnn_unit *unit, const tap *at, size_t row, const double *x, double weight,
                       const double *d_z, double *d_x)
{
    const double *d = d_z + out_at(unit, row, at->out), *from = x + in_at(unit, row, at->in);
    double *to = d_x ? d_x + in_at(unit, row, at->in) : NULL, sum = 0;

    for (uint32_t y = at->top; y < at->bottom; y++) {
        ptrdiff_t line = tap_line(unit, at, y);

        for (uint32_t i = at->left; i < at->right; i++) {
            ptrdiff_t place = line + (ptrdiff_t)i * unit->stride;

            sum += d[(size_t)y * unit->width + i] * from[place];
            if (to)
                to[place] += d[(size_t)y * unit->width + i] * weight;
        }
    }
    return sum;
}

void pace__cnn_plain_conv(const pace__cnn_unit *unit, size_t rows, const double *x, const float *weight,
                          double *z)
{
    uint32_t inputs = unit->depthwise ? 1 : unit->in_channels, taps = unit->kernel * unit->kernel;

    memset(z, 0, rows * unit->channels * area(unit) * sizeof *z);
    for (uint32_t out = 0; out < unit->channels; out++) {
        for (uint32_t k = 0; k < inputs * taps; k++) {
            tap at = find_tap(unit, out, k / taps, k % taps / unit->kernel, k % unit->kernel);

            for (size_t row = 0; row < rows; row++)
                tap_forward(unit, &at, row, x, (double)weight[at.weight], z);
        }
    }
}

void pace__cnn_plain_conv_back(const pace__cnn_unit *unit, size_t rows, const double *x, const float *weight,
                               const double *d_z, double *d_weight, double *d_x)
{
    uint32_t inputs = unit->depthwise ? 1 : unit->in_channels, taps = unit->kernel * unit->kernel;

    for (uint32_t out = 0; out < unit->channels; out++) {
        for (uint32_t k = 0; k < inputs * taps; k++) {
            tap at = find_tap(unit, out, k / taps, k % taps / unit->kernel, k % unit->kernel);

            for (size_t row = 0; row < rows; row++)
                d_weight[at.weight] += tap_back(unit, &at, row, x, (double)weight[at.weight], d_z, d_x);
        }
    }
}

/* --- batch norm and activation --- */

void pace__cnn_plain_sums(const pace__cnn_unit *unit, size_t rows, const double *z, const double *offset,
                          bool squared, double *sums)
{
    for (uint32_t c = 0; c < unit->channels; c++) {
        double sum = 0;

        for (size_t row = 0; row < rows; row++) {
            const double *at = z + out_at(unit, row, c);

            for (size_t i = 0; i < area(unit); i++)
                sum += squared ? (at[i] - offset[c]) * (at[i] - offset[c]) : at[i] - offset[c];
        }
        sums[c] = sum;
    }
}

void pace__cnn_plain_normalise(const pace__cnn_unit *unit, size_t rows, const double *mean,
                               const double *scale, double *z)
{
    for (size_t row = 0; row < rows; row++) {
        for (uint32_t c = 0; c < unit->channels; c++) {
            double *at = z + out_at(unit, row, c);

            for (size_t i = 0; i < area(unit); i++)
                at[i] = (at[i] - mean[c]) * scale[c];
        }
    }
}

/* What is no number stays none. */
static double activate(pace__cnn_act act, double x)
{
    if (act != PACE__ACT_NONE && x < 0)
        return 0;
    return act == PACE__ACT_RELU6 && x > 6 ? 6 : x;
}

void pace__cnn_plain_act(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const float *gamma,
                         const float *beta, const double *added, double *y)
{
    for (size_t row = 0; row < rows; row++) {
        for (uint32_t c = 0; c < unit->channels; c++) {
            size_t at = out_at(unit, row, c);

            for (size_t i = at; i < at + area(unit); i++)
                y[i] = activate(unit->act,
                                (double)gamma[c] * x_hat[i] + (double)beta[c] + (added ? added[i] : 0));
        }
    }
}

void pace__cnn_plain_act_back(const pace__cnn_unit *unit, size_t rows, const double *y, double *d_y)
{
    for (size_t i = 0; i < rows * unit->channels * area(unit); i++) {
        bool flat = (unit->act != PACE__ACT_NONE && y[i] <= 0) || (unit->act == PACE__ACT_RELU6 && y[i] >= 6);

        d_y[i] = flat ? 0 : d_y[i];
    }
}

void pace__cnn_plain_norm_sums(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const double *d,
                               double *d_gamma, double *d_beta)
{
    for (uint32_t c = 0; c < unit->channels; c++) {
        d_gamma[c] = d_beta[c] = 0;
        for (size_t row = 0; row < rows; row++) {
            size_t at = out_at(unit, row, c);

            for (size_t i = at; i < at + area(unit); i++) {
                d_gamma[c] += d[i] * x_hat[i];
                d_beta[c] += d[i];
            }
        }
    }
}

/* Mean and deviation depend on every z of the channel: what all of them share of d is taken off. */
void pace__cnn_plain_norm_back(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const double *d,
                               const float *gamma, const double *scale, const double *d_gamma,
                               const double *d_beta, double count, double *d_z)
{
    for (size_t row = 0; row < rows; row++) {
        for (uint32_t c = 0; c < unit->channels; c++) {
            size_t at = out_at(unit, row, c);

            for (size_t i = at; i < at + area(unit); i++)
                d_z[i] = (double)gamma[c] * scale[c] * (d[i] - (d_beta[c] + x_hat[i] * d_gamma[c]) / count);
        }
    }
}

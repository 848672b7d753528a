/* A unit's forward pass in training. */
#include "model/convnet/cnn_fast.h"

#include <math.h>
#include <string.h>

#define LANES PACE__CNN_LANES

/* --- what a unit reads --- */

void pace__cnn_pixels(const pace__cnn_fast *self, size_t first, size_t rows, float *to)
{
    const pace__cnn_config *config = &self->config;
    size_t pixels = (size_t)config->height * config->side, channels = config->channels;
    float factor[3], rest[3];

    for (size_t channel = 0; channel < channels; channel++) {
        factor[channel] = 1 / config->deviation[channel];
        rest[channel] = config->mean[channel];
    }
    for (size_t row = 0; row < rows; row++) {
        const uint8_t *from = self->rows->pixels + (first + row) * pixels * channels;

        for (size_t channel = 0; channel < channels; channel++) {
            float *plane = to + (row * channels + channel) * pixels;

            for (size_t i = 0; i < pixels; i++)
                plane[i] = ((float)from[i * channels + channel] - rest[channel]) * factor[channel];
        }
    }
}

/* y of rows, computed from z. */
static void make_y(const pace__cnn_fast *self, pace__cnn_space *space, const pace__cnn_part *part,
                   pace__cnn_range rows, pace__cnn_view to)
{
    pace__cnn_planes planes = pace__cnn_planes_of(part, rows);
    pace__cnn_view added = {NULL, 0};

    if (part->unit->add != PACE__CNN_NOTHING)
        added = pace__cnn_y(self, space, part->unit->add, rows, space->extra);
    for (size_t i = 0; i < planes.count; i++) {
        size_t channel = pace__cnn_channel(part, &planes, i);

        self->kernels->apply(part->unit->act, planes.n, part->z + planes.at + i * planes.stride,
                             part->scale + channel, part->shift + channel,
                             added.at ? added.at + i * added.stride : NULL, to.at + i * to.stride);
    }
}

pace__cnn_view pace__cnn_y(const pace__cnn_fast *self, pace__cnn_space *space, uint32_t unit,
                           pace__cnn_range rows, float *room)
{
    const pace__cnn_part *part = &self->part[unit];
    pace__cnn_planes planes = pace__cnn_planes_of(part, rows);

    if (part->stored)
        return (pace__cnn_view){part->y + planes.at, planes.stride};
    pace__cnn_view made = {room, planes.dense};

    make_y(self, space, part, rows, made);
    return made;
}

/* Of a unit whose y is stored, when its first user comes to it. */
static void store_y(const pace__cnn_fast *self, pace__cnn_space *space, uint32_t unit, uint32_t user,
                    pace__cnn_range rows)
{
    const pace__cnn_part *part = &self->part[unit];

    if (part->trained && part->stored && part->first_user == user)
        make_y(self, space, part, rows, pace__cnn_y(self, space, unit, rows, NULL));
}

float *pace__cnn_x(const pace__cnn_fast *self, pace__cnn_space *space, const pace__cnn_part *part,
                   pace__cnn_range rows, bool making)
{
    uint32_t from = part->unit->from, add = part->unit->add;

    if (making && add != PACE__CNN_NOTHING)
        store_y(self, space, add, part->number, rows);
    if (from == PACE__CNN_PIXELS) {
        pace__cnn_pixels(self, rows.first, rows.rows, space->x);
        return space->x;
    }
    if (making)
        store_y(self, space, from, part->number, rows);
    pace__cnn_view y = pace__cnn_y(self, space, from, rows, space->x);
    pace__cnn_planes planes = pace__cnn_planes_of(&self->part[from], rows);

    if (y.stride == planes.dense)
        return y.at;
    for (size_t i = 0; i < planes.count; i++)
        memcpy(space->x + i * planes.dense, y.at + i * y.stride, planes.dense * sizeof(float));
    return space->x;
}

/* --- a phase --- */

/* Adds up z, and puts it where it belongs. */
static void sum_up(const pace__cnn_fast *self, const pace__cnn_part *part, pace__cnn_range rows,
                   unsigned task, pace__cnn_view from)
{
    pace__cnn_planes planes = pace__cnn_planes_of(part, rows);
    size_t channels = part->blocks * LANES;
    double *sums = part->sums + 2 * task * channels;

    /* The centre is what all workers know, and not far from the mean: little is lost in the squares. */
    for (size_t i = 0; i < planes.count; i++) {
        size_t channel = pace__cnn_channel(part, &planes, i);

        self->kernels->moments(planes.n, from.at + i * from.stride, part->mean + channel, sums + channel,
                               sums + channels + channel, part->z + planes.at + i * planes.stride);
    }
}

static void convolve(pace__cnn_fast *self, int thread, pace__cnn_part *part, pace__cnn_range rows,
                     unsigned task)
{
    pace__cnn_space *space = &self->spaces[thread];
    pace__cnn_planes planes = pace__cnn_planes_of(part, rows);
    /* Of a strip z has gaps, which convolutions cannot have. */
    pace__cnn_view z = {part->strip ? space->d_z : part->z + planes.at, planes.dense};
    pace__conv_run run = {.x = pace__cnn_x(self, space, part, rows, true),
                          .y = z.at,
                          .weights = part->w_forward,
                          .block = rows.block,
                          .scratch = space->conv};

    pace__conv_compute(part->forward, thread, &run);
    sum_up(self, part, rows, task, z);
}

void pace__cnn_forward_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    pace__cnn_part *part = &self->part[self->unit];
    pace__cnn_range task = pace__cnn_task(self->rows->rows, part->tile, index);
    size_t channels = part->blocks * LANES;
    PACE__SPAN_OF(part->forward_name, part->shape, task.rows * part->flops, 0);

    memset(part->sums + 2 * index * channels, 0, 2 * channels * sizeof *part->sums);
    for (unsigned i = 0; i < pace__cnn_tiles(part, task); i++) {
        if (pace__crew_poke(self->crew, thread))
            return;
        convolve(self, thread, part, pace__cnn_tile(part, task, i), index);
    }
}

/* --- between phases --- */

/* Sums of all tasks, of both kinds, into `values`. */
static void add_tasks(pace__cnn_fast *self, const pace__cnn_part *part)
{
    size_t channels = part->blocks * LANES, count = part->unit->channels;

    for (size_t i = 0; i < 2 * count; i++) {
        size_t at = i < count ? i : channels + i - count;
        double sum = 0;

        for (unsigned task = 0; task < part->sums_tasks; task++)
            sum += part->sums[2 * task * channels + at];
        self->values[i] = (float)sum;
    }
}

static void share(pace__cnn_fast *self, size_t count)
{
    if (!self->batch->sum)
        return;
    self->status = self->batch->sum(self->batch->user, self->values, count);
    if (self->status)
        pace__crew_stop(self->crew);
}

void pace__cnn_forward_settle(pace__cnn_fast *self, pace__cnn_part *part)
{
    const pace__cnn_unit *unit = part->unit;
    size_t count = unit->channels;
    double n = self->pixels_weight * (double)part->pixels;
    double moves = (double)self->config.momentum * (double)self->rows->rows / (double)self->batch->step_rows;
    float *to = self->batch->stats_sums + unit->mean_at - self->net.stats_trained_at;

    PACE__SPAN("batch norm");
    add_tasks(self, part);
    share(self, 2 * count);
    for (size_t i = 0; i < count; i++) {
        double shift = (double)self->values[i] / n;
        double variance = (double)self->values[count + i] / n - shift * shift;
        double mean = (double)part->mean[i] + shift;

        variance = variance > 0 ? variance : 0;
        double wide = n > 1 ? variance * (n / (n - 1)) : variance;
        double inverse = 1 / sqrt(variance + (double)self->config.epsilon);

        to[i] = (float)(moves * ((double)self->stats[unit->mean_at + i] - mean));
        to[count + i] = (float)(moves * ((double)self->stats[unit->variance_at + i] - wide));
        part->mean[i] = (float)mean;
        part->inverse[i] = (float)inverse;
        part->scale[i] = (float)((double)part->gamma[i] * inverse);
        part->shift[i] = (float)((double)part->beta[i] - mean * (double)part->gamma[i] * inverse);
    }
}

void pace__cnn_back_settle(pace__cnn_fast *self, pace__cnn_part *part)
{
    const pace__cnn_unit *unit = part->unit;
    size_t count = unit->channels;
    double n = self->pixels_weight * (double)part->pixels;
    float *d_gamma = self->batch->sums + unit->gamma_at - self->net.trained_at;
    float *d_beta = self->batch->sums + unit->beta_at - self->net.trained_at;

    PACE__SPAN("batch norm back");
    add_tasks(self, part);
    for (size_t i = 0; i < count; i++) {
        d_beta[i] = self->values[i];
        d_gamma[i] = self->values[count + i] *= part->inverse[i];
    }
    share(self, 2 * count);
    for (size_t i = 0; i < count; i++) {
        double p = (double)part->gamma[i] * (double)part->inverse[i];
        double q = -p * (double)part->inverse[i] * (double)self->values[count + i] / n;

        part->p[i] = (float)p;
        part->q[i] = (float)q;
        part->r[i] = (float)(-p * (double)self->values[i] / n - q * (double)part->mean[i]);
    }
}

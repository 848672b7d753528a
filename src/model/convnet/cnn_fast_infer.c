/* The network that is not in training: batch norm is part of the weights, and nothing is kept. */
#include "model/convnet/cnn_fast.h"

#include <math.h>
#include <string.h>

#define LANES PACE__CNN_LANES

static bool fuses_act(const pace__cnn_part *part)
{
    return part->unit->add == PACE__CNN_NOTHING;
}

void pace__cnn_fold(pace__cnn_fast *self, int thread, pace__cnn_part *part, const float *weights,
                    const float *stats)
{
    const pace__cnn_unit *unit = part->unit;
    size_t filter = (size_t)unit->kernel * unit->kernel * (unit->depthwise ? 1 : unit->in_channels);
    float *folded = self->spaces[thread].weights;

    for (size_t i = 0; i < unit->channels; i++) {
        double deviation = sqrt((double)stats[unit->variance_at + i] + (double)self->config.epsilon);
        double factor = (double)weights[unit->gamma_at + i] / deviation;

        part->bias[i] =
            (float)((double)weights[unit->beta_at + i] - (double)stats[unit->mean_at + i] * factor);
        for (size_t j = 0; j < filter; j++)
            folded[i * filter + j] = weights[unit->weight_at + i * filter + j] * (float)factor;
    }
    pace__conv_pack(part->fused, thread, folded, part->w_fused);
}

/* A group of up to TILE_MAX rows on its way through the units. */
typedef struct group {
    int thread;
    uint32_t units; /* those below are computed */
    pace__cnn_range rows;
    size_t at; /* first row of the tile, from the group's first */
} group;

/* Where y of a unit is, for the tile at hand. */
static float *y_of(const pace__cnn_fast *self, const group *it, uint32_t unit)
{
    const pace__cnn_part *part = &self->part[unit];

    if (it->units < self->net.units && part->stored)
        return part->y + (it->rows.first + it->at) * part->size;
    return self->spaces[it->thread].infer + part->infer_at + (part->crosses ? it->at * part->size : 0);
}

static void add_and_act(const pace__cnn_fast *self, const pace__cnn_part *part, const float *added, float *y)
{
    static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, zeros[LANES];

    self->kernels->apply(part->unit->act, part->fused_tile * part->size / LANES, y, ones, zeros, added, y);
}

static void compute(pace__cnn_fast *self, const group *it, uint32_t unit)
{
    pace__cnn_part *part = &self->part[unit];
    pace__cnn_space *space = &self->spaces[it->thread];
    float *y = y_of(self, it, unit), *x = space->x;
    PACE__SPAN_OF(part->infer_name, part->shape, part->fused_tile * part->flops, 0);

    if (part->unit->from != PACE__CNN_PIXELS) {
        x = y_of(self, it, part->unit->from);
    } else {
        size_t left = it->rows.rows - it->at;

        pace__cnn_pixels(self, it->rows.first + it->at, left < part->fused_tile ? left : part->fused_tile, x);
    }
    pace__conv_compute(
        part->fused, it->thread,
        &(pace__conv_run){
            .x = x, .y = y, .weights = part->w_fused, .bias = part->bias, .scratch = space->conv});
    if (!fuses_act(part))
        add_and_act(self, part, y_of(self, it, part->unit->add), y);
}

float *pace__cnn_infer(pace__cnn_fast *self, int thread, uint32_t units, pace__cnn_range rows)
{
    group it = {thread, units, rows, 0};

    /* Units of equal tiles are gone through as a whole, tile by tile. */
    for (uint32_t first = 0, last; first < units; first = last) {
        uint32_t tile = self->part[first].fused_tile;

        for (last = first + 1; last < units && self->part[last].fused_tile == tile;)
            last++;
        for (it.at = 0; it.at < rows.rows; it.at += tile) {
            for (uint32_t unit = first; unit < last; unit++)
                compute(self, &it, unit);
        }
    }
    it.at = 0;
    return y_of(self, &it, units - 1);
}

unsigned pace__cnn_groups(const pace__cnn_fast *self)
{
    return (unsigned)((self->rows->rows + PACE__CNN_TILE_MAX - 1) / PACE__CNN_TILE_MAX);
}

pace__cnn_range pace__cnn_group(const pace__cnn_fast *self, unsigned index)
{
    pace__cnn_range rows = {.first = (size_t)index * PACE__CNN_TILE_MAX, .rows = PACE__CNN_TILE_MAX};

    if (rows.first + rows.rows > self->rows->rows)
        rows.rows = self->rows->rows - rows.first;
    return rows;
}

/* A unit's way back. */
#include "model/convnet/cnn_fast.h"

#include <string.h>

#define LANES PACE__CNN_LANES

/* --- derivatives of a unit's y, from its users --- */

static void end_derivatives(pace__cnn_fast *self, pace__cnn_space *space, pace__cnn_part *to, bool more,
                            pace__cnn_range rows, unsigned task, pace__cnn_view d_y, const float *y)
{
    pace__cnn_planes planes = pace__cnn_planes_of(to, rows);
    size_t channels = to->blocks * LANES;
    pace__cnn_view made = {(float *)y, planes.dense};

    if (!y && to->unit->act != PACE__ACT_NONE)
        made = pace__cnn_y(self, space, to->number, rows, space->x);
    for (size_t i = 0; i < planes.count; i++) {
        size_t at = planes.at + i * planes.stride, channel = pace__cnn_channel(to, &planes, i);
        double *sums = to->sums + 2 * task * channels + channel;

        self->kernels->mask(&(pace__cnn_mask){.n = planes.n,
                                              .act = to->unit->act,
                                              .d_y = d_y.at + i * d_y.stride,
                                              .more = more ? to->d + at : NULL,
                                              .y = made.at ? made.at + i * made.stride : NULL,
                                              .z = to->z + at,
                                              .mean = to->mean + channel,
                                              .to = to->d + at,
                                              .streams = to->streams,
                                              .sums = sums,
                                              .products = sums + channels});
    }
}

void pace__cnn_give(pace__cnn_fast *self, pace__cnn_space *space, pace__cnn_part *to, pace__cnn_giving giving,
                    pace__cnn_range rows, unsigned task, pace__cnn_view d_y, const float *y)
{
    pace__cnn_planes planes = pace__cnn_planes_of(to, rows);

    if (giving.last) {
        end_derivatives(self, space, to, !giving.first, rows, task, d_y, y);
        return;
    }
    for (size_t i = 0; i < planes.count; i++) {
        float *d = to->d + planes.at + i * planes.stride;

        if (giving.first)
            memcpy(d, d_y.at + i * d_y.stride, planes.dense * sizeof *d);
        else
            self->kernels->add(planes.dense, d_y.at + i * d_y.stride, d);
    }
}

/* --- a unit --- */

/* Derivatives of z; zeros in the rest of the tile, which must not count in those of weights. */
static void make_d_z(const pace__cnn_fast *self, const pace__cnn_part *part, pace__cnn_range rows, float *to)
{
    pace__cnn_planes planes = pace__cnn_planes_of(part, rows);

    for (size_t i = 0; i < planes.count; i++) {
        size_t at = planes.at + i * planes.stride, channel = pace__cnn_channel(part, &planes, i);

        self->kernels->blend(planes.n, part->d + at, part->z + at, part->p + channel, part->q + channel,
                             part->r + channel, to + i * planes.dense);
    }
    memset(to + planes.count * planes.dense, 0, (part->tile - rows.rows) * part->size * sizeof *to);
}

/* Adds a tile's derivatives of weights to those of its task. */
static void weigh(pace__cnn_fast *self, int thread, pace__cnn_part *part, pace__cnn_range rows, float *x,
                  bool first, unsigned task)
{
    pace__cnn_space *space = &self->spaces[thread];
    float *sums = self->gradients[part->number % 2] + task * part->weigh_size;
    size_t block = part->weigh_size / part->blocks, at = part->slice ? rows.block * block : 0;
    size_t count = part->slice ? rows.blocks * block : part->weigh_size;
    pace__conv_run run = {.x = x,
                          .y = space->d_z,
                          .weights = first ? sums : space->weights,
                          .block = rows.block,
                          .scratch = space->conv};

    pace__conv_compute(part->weigh, thread, &run);
    if (!first)
        self->kernels->add(count, space->weights + at, sums + at);
}

static void give_below(pace__cnn_fast *self, int thread, pace__cnn_part *part, pace__cnn_range rows,
                       unsigned task, const float *x)
{
    pace__cnn_space *space = &self->spaces[thread];
    pace__cnn_part *below = &self->part[part->unit->from];
    pace__cnn_view d_x = {space->d_x, pace__cnn_planes_of(below, rows).dense};
    pace__conv_run run = {.x = space->d_x,
                          .y = space->d_z,
                          .weights = part->w_data,
                          .block = rows.block,
                          .scratch = space->conv};

    pace__conv_compute(part->data, thread, &run);
    pace__cnn_give(self, space, below, part->to_from, rows, task, d_x, x);
}

static void clear_sums(pace__cnn_part *part, unsigned task)
{
    size_t channels = part->blocks * LANES;

    memset(part->sums + 2 * task * channels, 0, 2 * channels * sizeof *part->sums);
}

static void go_back(pace__cnn_fast *self, int thread, pace__cnn_part *part, unsigned index)
{
    pace__cnn_space *space = &self->spaces[thread];
    pace__cnn_range task = pace__cnn_task(self->rows->rows, part->tile, index);
    PACE__SPAN_OF(part->back_name, part->shape, task.rows * part->flops * (part->gives_from ? 2 : 1), 0);

    if (part->gives_from && part->to_from.last)
        clear_sums(&self->part[part->unit->from], index);
    if (part->gives_add && part->to_add.last)
        clear_sums(&self->part[part->unit->add], index);
    for (unsigned i = 0; i < pace__cnn_tiles(part, task); i++) {
        pace__cnn_range tile = pace__cnn_tile(part, task, i);
        pace__cnn_planes planes = pace__cnn_planes_of(part, tile);

        if (pace__crew_poke(self->crew, thread))
            return;
        make_d_z(self, part, tile, space->d_z);
        if (part->gives_add)
            pace__cnn_give(self, space, &self->part[part->unit->add], part->to_add, tile, index,
                           (pace__cnn_view){part->d + planes.at, planes.stride}, NULL);
        float *x = pace__cnn_x(self, space, part, tile, false);

        weigh(self, thread, part, tile, x, part->slice ? i < part->pieces : i == 0, index);
        if (part->gives_from)
            give_below(self, thread, part, tile, index, x);
    }
}

/* The sum of all tasks' derivatives of weights, into the batch's. */
static void settle_weights(pace__cnn_fast *self, int thread, pace__cnn_part *part)
{
    float *sums = self->gradients[part->number % 2];
    unsigned tasks = pace__cnn_tasks(self->rows->rows, part->tile);
    PACE__SPAN_OF("add weights' derivatives", NULL, 0, 0);

    if (tasks == 0)
        memset(sums, 0, part->weigh_size * sizeof *sums);
    for (unsigned task = 1; task < tasks; task++)
        self->kernels->add(part->weigh_size, sums + task * part->weigh_size, sums);
    pace__conv_unpack(part->weigh, thread, sums,
                      self->batch->sums + part->unit->weight_at - self->net.trained_at);
}

/* --- a phase: derivatives of weights of the unit `above`, and the way through the one below it --- */

static unsigned above_tasks(const pace__cnn_fast *self, uint32_t above)
{
    return above < self->net.units ? 1 : 0;
}

unsigned pace__cnn_back_tasks(const pace__cnn_fast *self, uint32_t above)
{
    unsigned tasks = above_tasks(self, above);

    if (above > self->config.first_trained)
        tasks += pace__cnn_tasks(self->rows->rows, self->part[above - 1].tile);
    return tasks;
}

void pace__cnn_back_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    unsigned before = above_tasks(self, self->unit);

    if (index < before)
        settle_weights(self, thread, &self->part[self->unit]);
    else
        go_back(self, thread, &self->part[self->unit - 1], index - before);
}

/* From the last unit to logits and loss, and back. */
#include "math/gemm.h"
#include "model/convnet/cnn_fast.h"

#include <string.h>

#define LANES PACE__CNN_LANES

/* Up to so many outputs our own kernels are faster than a product of matrices, and need no packing. */
#define FEW_OUTPUTS 16

#define STRIP 128 /* columns of the weights' derivatives that are one task */

static bool has_few(const pace__cnn_fast *self)
{
    return self->net.outputs <= FEW_OUTPUTS;
}

void pace__cnn_head_turn(pace__cnn_fast *self)
{
    size_t features = self->net.features, outputs = self->net.outputs;
    const float *weights = self->weights + self->net.head_weight_at;

    for (size_t i = 0; !has_few(self) && i < outputs; i++) {
        for (size_t j = 0; j < features; j++)
            self->head_turned[j * outputs + i] = weights[i * features + j];
    }
}

void pace__cnn_head_forward(const pace__cnn_fast *self, size_t rows, const float *features, float *logits)
{
    size_t width = self->net.features, outputs = self->net.outputs;
    const float *bias = self->weights + self->net.head_bias_at;

    if (has_few(self)) {
        self->kernels->head(rows, width, outputs, features, self->weights + self->net.head_weight_at, bias,
                            logits);
        return;
    }
    for (size_t row = 0; row < rows; row++)
        memcpy(logits + row * outputs, bias, outputs * sizeof *bias);
    pace__gemm(false, rows, outputs, width, features, width, self->head_turned, outputs, true, logits,
               outputs);
}

/* --- what goes into the head --- */

/* What the head of a step reads: with features and no dropout those of the batch. */
static const float *inputs(const pace__cnn_fast *self)
{
    return self->rows->features && self->config.dropout == 0 ? self->rows->features : self->features;
}

void pace__cnn_means(const pace__cnn_fast *self, size_t rows, const float *y, float *to)
{
    const pace__cnn_part *part = &self->part[self->net.units - 1];
    size_t width = self->net.features;

    for (size_t row = 0; row < rows; row++) {
        for (size_t block = 0; block < part->blocks; block++) {
            size_t count = width - block * LANES < LANES ? width - block * LANES : LANES;
            float means[LANES];

            self->kernels->mean(part->pixels, y + (row * part->blocks + block) * part->pixels * LANES, means);
            memcpy(to + row * width + block * LANES, means, count * sizeof *means);
        }
    }
}

/* Dropout of one row's features, or of their derivatives. */
static void drop(const pace__cnn_fast *self, size_t row, const float *from, float *to)
{
    float kept = 1 / (1 - self->config.dropout);

    for (uint32_t i = 0; i < self->net.features; i++)
        to[i] = pace__cnn_keeps(&self->config, self->batch->place + row, i) ? from[i] * kept : 0;
}

static void drop_rows(const pace__cnn_fast *self, pace__cnn_range rows, const float *from, float *to)
{
    size_t width = self->net.features;

    for (size_t row = 0; self->config.dropout > 0 && row < rows.rows; row++)
        drop(self, rows.first + row, from + row * width, to + row * width);
}

/* --- back to the last unit --- */

static void make_d_features(const pace__cnn_fast *self, pace__cnn_range rows, float *to)
{
    size_t width = self->net.features, outputs = self->net.outputs;
    const float *weights = self->weights + self->net.head_weight_at;
    const float *d_logits = self->d_logits + rows.first * outputs;

    if (!has_few(self)) {
        pace__gemm(false, rows.rows, width, outputs, d_logits, outputs, weights, width, false, to, width);
    } else {
        for (size_t row = 0; row < rows.rows; row++) {
            for (size_t i = 0; i < width; i++) {
                float sum = 0;

                for (size_t output = 0; output < outputs; output++)
                    sum += d_logits[row * outputs + output] * weights[output * width + i];
                to[row * width + i] = sum;
            }
        }
    }
    drop_rows(self, rows, to, to);
}

static void give_back(pace__cnn_fast *self, pace__cnn_space *space, pace__cnn_range rows, unsigned task,
                      const float *y)
{
    pace__cnn_part *part = &self->part[self->net.units - 1];
    size_t width = self->net.features;
    float share = 1 / (float)part->pixels;

    make_d_features(self, rows, space->d_features);
    for (size_t plane = 0; plane < rows.rows * part->blocks; plane++) {
        size_t row = plane / part->blocks, channel = plane % part->blocks * LANES;
        float *to = space->d_x + plane * part->pixels * LANES, values[LANES] = {0};

        for (size_t lane = 0; lane < LANES && channel + lane < width; lane++)
            values[lane] = space->d_features[row * width + channel + lane] * share;
        for (size_t i = 0; i < part->pixels; i++)
            memcpy(to + i * LANES, values, sizeof values);
    }
    pace__cnn_give(self, space, part, (pace__cnn_giving){true, true}, rows, task,
                   (pace__cnn_view){space->d_x, part->pixels * LANES}, y);
}

/* --- phases --- */

unsigned pace__cnn_head_tasks(const pace__cnn_fast *self)
{
    return pace__cnn_tasks(self->rows->rows, PACE__CNN_TILE_MAX);
}

static void score(pace__cnn_fast *self, pace__cnn_range rows)
{
    size_t outputs = self->net.outputs;

    pace__cnn_head_forward(self, rows.rows, inputs(self) + rows.first * self->net.features,
                           self->logits + rows.first * outputs);
    for (size_t row = rows.first; row < rows.first + rows.rows; row++)
        self->loss[row] = pace__cnn_loss(&self->config, self->logits + row * outputs,
                                         self->rows->classes[row], self->d_logits + row * outputs);
}

/* Pictures: a tile from y to the loss and back. */
static void do_tile(pace__cnn_fast *self, pace__cnn_space *space, pace__cnn_range rows, unsigned task)
{
    uint32_t last = self->net.units - 1;
    float *y = pace__cnn_y(self, space, last, rows, space->x).at; /* is not stored: dense */
    float *to = self->features + rows.first * self->net.features;

    pace__cnn_means(self, rows.rows, y, to);
    drop_rows(self, rows, to, to);
    score(self, rows);
    give_back(self, space, rows, task, y);
}

void pace__cnn_head_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    pace__cnn_space *space = &self->spaces[thread];
    pace__cnn_part *last = &self->part[self->net.units - 1];
    pace__cnn_range task = pace__cnn_task(self->rows->rows, PACE__CNN_TILE_MAX, index);
    size_t width = self->net.features;
    PACE__SPAN_OF("head", self->head_shape, task.rows * 4 * width * self->net.outputs, 0);

    if (!last->trained) {
        const float *from = self->rows->features ? self->rows->features : self->features;

        drop_rows(self, task, from + task.first * width, self->features + task.first * width);
        score(self, task);
        return;
    }
    memset(last->sums + 2 * index * last->blocks * LANES, 0, 2 * last->blocks * LANES * sizeof *last->sums);
    for (size_t done = 0; done < task.rows; done += last->tile) {
        pace__cnn_range tile = {.first = task.first + done, .rows = last->tile};

        if (tile.rows > task.rows - done)
            tile.rows = task.rows - done;
        if (pace__crew_poke(self->crew, thread))
            return;
        do_tile(self, space, tile, index);
    }
}

unsigned pace__cnn_head_back_tasks(const pace__cnn_fast *self)
{
    return (self->net.features + STRIP - 1) / STRIP;
}

static void add_bias(pace__cnn_fast *self)
{
    float *to = self->batch->sums + self->net.head_bias_at - self->net.trained_at;
    size_t outputs = self->net.outputs;

    for (size_t output = 0; output < outputs; output++) {
        double sum = 0;

        for (size_t row = 0; row < self->rows->rows; row++)
            sum += (double)self->d_logits[row * outputs + output];
        to[output] = (float)sum;
    }
}

void pace__cnn_head_back_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    size_t width = self->net.features, outputs = self->net.outputs, rows = self->rows->rows;
    size_t first = (size_t)index * STRIP, count = width - first < STRIP ? width - first : STRIP;
    float *sums = self->batch->sums + self->net.head_weight_at - self->net.trained_at;

    PACE__SPAN_OF("head weights back", self->head_shape, 2 * rows * count * outputs, 0);

    (void)thread;
    if (index == 0)
        add_bias(self);
    if (has_few(self) || rows == 0)
        self->kernels->head_back(rows, width, outputs, first, count, inputs(self), self->d_logits, sums);
    else
        pace__gemm(true, outputs, count, rows, self->d_logits, outputs, inputs(self) + first, width, false,
                   sums + first, width);
}

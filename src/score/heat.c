#include "score/heat.h"

#include "metrics/scoring.h"
#include "metrics/softmax.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS_MAX ((size_t)32 << 20) /* bytes of what is computed at once; at least one picture */

static const pace__encoding *shape_of(const pace__heat *self)
{
    return &self->scorer->saved.encoding;
}

/* --- painting --- */

static void mean_colour(const pace__encoding *shape, const uint8_t *pixels, uint8_t *colour)
{
    size_t places = (size_t)shape->height * shape->width;

    for (uint32_t c = 0; c < shape->channels; c++) {
        uint64_t sum = places / 2;

        for (size_t i = 0; i < places; i++)
            sum += pixels[i * shape->channels + c];
        colour[c] = (uint8_t)(sum / places);
    }
}

/* Where the cells begin that are `length` pixels together. */
static uint32_t edge(uint32_t length, uint32_t cell, uint32_t side)
{
    return (uint32_t)((uint64_t)length * cell / side);
}

static void paint(const pace__heat *self, uint8_t *pixels, uint32_t cell, const uint8_t *colour)
{
    const pace__encoding *shape = shape_of(self);
    uint32_t row = cell / self->side, column = cell % self->side;
    uint32_t left = edge(shape->width, column, self->side),
             right = edge(shape->width, column + 1, self->side);

    for (uint32_t y = edge(shape->height, row, self->side); y < edge(shape->height, row + 1, self->side);
         y++) {
        for (uint32_t x = left; x < right; x++)
            memcpy(pixels + ((size_t)y * shape->width + x) * shape->channels, colour, shape->channels);
    }
}

/* --- the map --- */

static pace_status probability_of(const pace__heat *self, const float *logits, uint32_t class,
                                  double *probability)
{
    bool one = pace__scorer_outputs(self->scorer) == 1;
    float pair[2] = {0, logits[0]}; /* one logit stands for these two */
    const float *all = one ? pair : logits;
    pace__softmax row;

    if (!pace__softmax_of(all, shape_of(self)->classes, &row))
        return pace_fail(self->log, PACE_FAILED, "the model's answer is not a number");
    *probability = pace__softmax_probability(&row, all[class]);
    return PACE_OK;
}

/* Probabilities with the cells first .. first + rows covered. */
static pace_status cover(pace__heat *self, const uint8_t *pixels, const uint8_t *colour, uint32_t class,
                         uint32_t first)
{
    uint32_t outputs = pace__scorer_outputs(self->scorer);
    size_t columns = self->painted.columns;

    for (size_t i = 0; i < self->painted.rows; i++) {
        memcpy(self->pixels + i * columns, pixels, columns);
        paint(self, self->pixels + i * columns, first + (uint32_t)i, colour);
    }
    pace_status status = pace__scorer_logits(self->scorer, &self->painted, self->logits);

    for (size_t i = 0; !status && i < self->painted.rows; i++)
        status = probability_of(self, self->logits + i * outputs, class, &self->cells[first + i]);
    return status;
}

pace_status pace__heat_map(pace__heat *heat, const uint8_t *pixels, uint32_t class)
{
    uint32_t cells = heat->side * heat->side;
    uint8_t colour[4];
    double whole = 0;

    mean_colour(shape_of(heat), pixels, colour);
    heat->painted.rows = 1;
    memcpy(heat->pixels, pixels, heat->painted.columns);
    pace_status status = pace__scorer_logits(heat->scorer, &heat->painted, heat->logits);

    if (!status)
        status = probability_of(heat, heat->logits, class, &whole);
    for (uint32_t at = 0; !status && at < cells; at += (uint32_t)heat->painted.rows) {
        heat->painted.rows = cells - at < heat->rows_max ? cells - at : heat->rows_max;
        status = cover(heat, pixels, colour, class, at);
    }
    for (uint32_t i = 0; !status && i < cells; i++)
        heat->cells[i] = whole - heat->cells[i];
    return status;
}

/* --- room --- */

static pace_status make_room(pace__heat *self)
{
    size_t columns = pace__encoding_columns(shape_of(self)), rows = PIXELS_MAX / columns;

    rows = rows < 1 ? 1 : rows < PACE__SCORE_ROWS ? rows : PACE__SCORE_ROWS;
    self->rows_max = rows;
    self->cells = malloc((size_t)self->side * self->side * sizeof *self->cells);
    self->pixels = malloc(rows * columns);
    self->classes = calloc(rows, sizeof *self->classes);
    self->source = calloc(rows, sizeof *self->source);
    self->logits = malloc(rows * pace__scorer_outputs(self->scorer) * sizeof *self->logits);
    self->painted = (pace__rows){.columns = (uint32_t)columns,
                                 .pixels = self->pixels,
                                 .classes = self->classes,
                                 .source = self->source};
    return self->cells && self->pixels && self->classes && self->source && self->logits
               ? PACE_OK
               : pace_fail(self->log, PACE_FAILED, "out of memory for %zu pictures", rows);
}

pace_status pace__heat_init(pace__heat *heat, pace__scorer *scorer, uint32_t side, const pace_log *log)
{
    const pace__encoding *shape = &scorer->saved.encoding;
    uint32_t most = shape->height < shape->width ? shape->height : shape->width;

    most = most < PACE__HEAT_SIDE_MAX ? most : PACE__HEAT_SIDE_MAX;
    assert(side >= 1 && shape->channels <= 4);
    *heat = (pace__heat){.side = side, .scorer = scorer, .log = log};
    if (side > most)
        return pace_fail(log, PACE_USAGE,
                         "--explain %u: pictures of %u x %u pixels are cut into at most %u x %u cells", side,
                         shape->height, shape->width, most, most);
    pace_status status = make_room(heat);

    if (status)
        pace__heat_release(heat);
    return status;
}

void pace__heat_release(pace__heat *heat)
{
    free(heat->cells);
    free(heat->pixels);
    free(heat->classes);
    free(heat->source);
    free(heat->logits);
    *heat = (pace__heat){0};
}

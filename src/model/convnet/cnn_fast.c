#include "model/convnet/cnn_fast.h"
#include "base/clock.h"
#include "base/memory.h"
#include "math/gemm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LANES PACE__CNN_LANES

/* Every unit there and back; what comes before, between and behind. */
#define PHASES_MAX (2 * PACE__CNN_UNITS_MAX + 8)

/* --- convolutions --- */

static pace__conv_shape shape_of(const pace__cnn_unit *unit, uint32_t rows)
{
    return (pace__conv_shape){.rows = rows,
                              .in_channels = unit->in_channels,
                              .in_height = unit->in_height,
                              .in_width = unit->in_width,
                              .channels = unit->channels,
                              .height = unit->height,
                              .width = unit->width,
                              .kernel = unit->kernel,
                              .stride = unit->stride,
                              .pad_top = unit->pad_top,
                              .pad_left = unit->pad_left,
                              .pad_bottom = unit->pad_bottom,
                              .pad_right = unit->pad_right,
                              .depthwise = unit->depthwise,
                              .plain = unit->from == PACE__CNN_PIXELS};
}

/* The activation comes with the convolution unless something is added in between. */
static pace__conv_act act_of(const pace__cnn_unit *unit)
{
    if (unit->add != PACE__CNN_NOTHING || unit->act == PACE__ACT_NONE)
        return PACE__CONV_LINEAR;
    return unit->act == PACE__ACT_RELU ? PACE__CONV_RELU : PACE__CONV_RELU6;
}

static pace_status make_conv(pace__cnn_fast *self, const pace__cnn_part *part, pace__conv_kind kind,
                             pace__conv **conv, size_t *size)
{
    bool fused = kind == PACE__CONV_FUSED;
    pace__conv_shape shape = shape_of(part->unit, fused ? part->fused_tile : part->tile);

    if (!fused) {
        shape.slice = part->slice;
        shape.bf16 = self->bf16;
    }
    if (!fused && part->strip) {
        shape.in_height = shape.height = 1;
        shape.in_width = shape.width = (uint32_t)part->strip;
    }
    pace_status status = pace__conv_create(self->convs, &shape, kind, act_of(part->unit), self->log, conv);

    if (status)
        return status;
    *size = pace__conv_packed(*conv);
    if (pace__conv_scratch(*conv) > self->scratch_size)
        self->scratch_size = pace__conv_scratch(*conv);
    return PACE_OK;
}

static pace_status make_convs(pace__cnn_fast *self)
{
    pace_status status = pace__conv_context_create(self->threads, self->log, &self->convs);

    for (uint32_t i = 0; !status && i < self->net.units; i++) {
        pace__cnn_part *part = &self->part[i];

        status = make_conv(self, part, PACE__CONV_FUSED, &part->fused, &part->fused_size);
        if (status || !self->trains || !part->trained)
            continue;
        status = make_conv(self, part, PACE__CONV_FORWARD, &part->forward, &part->forward_size);
        if (!status)
            status = make_conv(self, part, PACE__CONV_WEIGHTS, &part->weigh, &part->weigh_size);
        if (!status && part->gives_from)
            status = make_conv(self, part, PACE__CONV_DATA, &part->data, &part->data_size);
    }
    return status;
}

/* Before there are convolutions: about what they will need. */
static void guess_convs(pace__cnn_fast *self)
{
    for (uint32_t i = 0; i < self->net.units; i++) {
        pace__cnn_part *part = &self->part[i];
        size_t in = part->unit->depthwise ? 1 : (part->unit->in_channels + LANES - 1) / LANES * LANES;
        size_t size = part->blocks * LANES * in * part->unit->kernel * part->unit->kernel;

        part->fused_size = size;
        if (self->trains && part->trained)
            part->forward_size = part->weigh_size = part->data_size = size;
    }
    self->scratch_size = (size_t)1 << 20;
}

/* --- memory: one piece, and everything points into it --- */

static void take_trained(pace__cnn_fast *self, pace__taking *from, pace__cnn_part *part)
{
    size_t channels = part->blocks * LANES;
    float **each[] = {&part->gamma,   &part->beta, &part->scale, &part->shift, &part->mean,
                      &part->inverse, &part->p,    &part->q,     &part->r};

    part->w_forward = pace__take_floats(from, part->forward_size);
    part->w_data = pace__take_floats(from, part->data_size);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        *each[i] = pace__take_floats(from, channels);
    part->z = pace__take_floats(from, self->rows_room * part->size);
    part->sums = pace__take(from, 2 * PACE__CNN_TASKS_MAX * channels, sizeof *part->sums);
}

static void take_parts(pace__cnn_fast *self, pace__taking *from)
{
    size_t most = 0;

    for (uint32_t i = 0; i < self->net.units; i++) {
        pace__cnn_part *part = &self->part[i];
        size_t tasks = pace__cnn_tasks(self->rows_max, part->tile);

        part->w_fused = pace__take_floats(from, part->fused_size);
        part->bias = pace__take_floats(from, part->blocks * LANES);
        if (!self->trains)
            continue;
        if (part->trained)
            take_trained(self, from, part);
        if (part->stored)
            part->y = pace__take_floats(from, self->rows_room * part->size);
        if (part->trained && (tasks ? tasks : 1) * part->weigh_size > most)
            most = (tasks ? tasks : 1) * part->weigh_size;
    }
    self->gradients[0] = pace__take_floats(from, most);
    self->gradients[1] = pace__take_floats(from, most);
    self->d = pace__take_floats(from, self->d_size);
    for (uint32_t i = 0; from->memory && i < self->net.units; i++)
        self->part[i].d = self->d + self->part[i].d_at;
}

static size_t at_least(size_t *most, size_t size)
{
    if (size > *most)
        *most = size;
    return *most;
}

static void take_space(pace__cnn_fast *self, pace__taking *from, pace__cnn_space *space)
{
    size_t x = 0, z = 0, weights = 0;

    for (uint32_t i = 0; i < self->net.units; i++) {
        const pace__cnn_part *part = &self->part[i];
        uint32_t rows = part->tile > part->fused_tile ? part->tile : part->fused_tile;

        at_least(&x, rows * part->in_size);
        at_least(&x, part->tile * part->size);
        at_least(&z, part->tile * part->size);
        at_least(&weights, part->weigh_size);
        at_least(&weights, part->fused_size);
    }
    space->x = pace__take_floats(from, x);
    space->weights = pace__take_floats(from, weights);
    space->infer = pace__take_floats(from, self->infer_size);
    space->features = pace__take_floats(from, PACE__CNN_TILE_MAX * (size_t)self->net.features);
    space->conv = pace__take(from, self->scratch_size, 1);
    if (!self->trains)
        return;
    space->extra = pace__take_floats(from, x);
    space->d_x = pace__take_floats(from, x);
    space->d_z = pace__take_floats(from, z);
    space->d_features = pace__take_floats(from, PACE__CNN_TILE_MAX * (size_t)self->net.features);
}

/* Points everything into the memory, or counts its bytes. */
static size_t take_all(pace__cnn_fast *self, void *memory)
{
    pace__taking from = {.memory = memory};
    size_t features = self->net.features, outputs = self->net.outputs;
    pace__cnn_space none;

    take_parts(self, &from);
    self->head_turned = pace__take_floats(&from, features * outputs);
    if (self->trains) {
        self->features = pace__take_floats(&from, self->rows_max * features);
        self->logits = pace__take_floats(&from, self->rows_max * outputs);
        self->d_logits = pace__take_floats(&from, self->rows_max * outputs);
        self->loss = pace__take(&from, self->rows_max, sizeof *self->loss);
        self->values = pace__take_floats(&from, PACE__CNN_SUM_MAX);
    }
    self->spaces = pace__take(&from, (size_t)self->threads, sizeof *self->spaces);
    for (int thread = 0; thread < self->threads; thread++)
        take_space(self, &from, memory ? &self->spaces[thread] : &none);
    return from.used;
}

/* --- life --- */

static void set_sizes(pace__cnn_fast *self, const pace__cnn_plan *plan, const pace__cnn_net *net,
                      size_t tile_bytes)
{
    *self = (pace__cnn_fast){.config = *plan->config,
                             .net = *net,
                             .rows_max = plan->rows_max,
                             .rows_room = (plan->rows_max + PACE__CNN_TILE_MAX - 1) / PACE__CNN_TILE_MAX *
                                          PACE__CNN_TILE_MAX,
                             .tile_bytes = tile_bytes,
                             .threads = plan->threads,
                             .trains = plan->trains,
                             .bf16 = plan->bf16};
    pace__cnn_plan_parts(self);
}

/* What a profile calls it all. */
static void name_spans(pace__cnn_fast *self)
{
    for (uint32_t i = 0; i < self->net.units; i++) {
        const pace__cnn_unit *unit = &self->net.unit[i];
        pace__cnn_part *part = &self->part[i];
        uint64_t in = unit->depthwise ? 1 : unit->in_channels;

        part->flops = 2 * in * unit->kernel * unit->kernel * unit->channels * unit->height * unit->width;
        part->forward_name = pace__span_text("%s forward", unit->name);
        part->back_name = pace__span_text("%s back", unit->name);
        part->infer_name = pace__span_text("%s score", unit->name);
        part->shape =
            pace__span_text("%ux%u%s%s %ux%ux%u -> %ux%ux%u", unit->kernel, unit->kernel,
                            unit->stride > 1 ? "/2" : "", unit->depthwise ? " dw" : "", unit->in_channels,
                            unit->in_height, unit->in_width, unit->channels, unit->height, unit->width);
    }
    self->head_shape = pace__span_text("%u -> %u", self->net.features, self->net.outputs);
}

static pace_status start(pace__cnn_fast *self, const pace__cnn_plan *plan)
{
    pace_status status = pace__crew_create(plan->threads, PHASES_MAX, self, self->log, &self->crew);

    if (status)
        return status;
    /* oneDNN shares its work out as at the time when a convolution is made. */
    pace__gemm_alone();
    status = make_convs(self);
    if (status)
        return status;
    pace__cnn_plan_memory(self);
    self->memory_size = take_all(self, NULL);
    self->memory = pace__pages_alloc(self->memory_size);
    if (!self->memory)
        return pace_fail(self->log, PACE_FAILED,
                         "out of memory: the network needs %zu bytes for batches of %llu rows",
                         self->memory_size, (unsigned long long)self->rows_max);
    take_all(self, self->memory);
    name_spans(self);
    for (uint32_t i = 0; i < self->config.first_trained; i++)
        pace__cnn_fold(self, 0, &self->part[i], plan->frozen_weights, plan->frozen_stats);
    return PACE_OK;
}

pace_status pace__cnn_fast_create_with(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                       const pace__cnn_kernels *kernels, size_t tile_bytes,
                                       const pace_log *log, pace__cnn_fast **fast)
{
    pace__cnn_fast *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    set_sizes(self, plan, net, tile_bytes);
    self->kernels = kernels;
    self->log = log;
    pace_status status = start(self, plan);

    if (status)
        pace__cnn_fast_free(self);
    else
        *fast = self;
    return status;
}

pace_status pace__cnn_fast_create(const pace__cnn_plan *plan, const pace__cnn_net *net, const pace_log *log,
                                  pace__cnn_fast **fast)
{
    return pace__cnn_fast_create_with(plan, net, pace__cnn_of(pace_kernels_in_use()), PACE__CNN_TILE_BYTES,
                                      log, fast);
}

void pace__cnn_fast_free(pace__cnn_fast *self)
{
    if (!self)
        return;
    pace__crew_free(self->crew);
    for (uint32_t i = 0; i < self->net.units; i++) {
        pace__conv_free(self->part[i].forward);
        pace__conv_free(self->part[i].data);
        pace__conv_free(self->part[i].weigh);
        pace__conv_free(self->part[i].fused);
    }
    pace__conv_context_free(self->convs);
    pace__pages_free(self->memory, self->memory_size);
    free(self);
}

uint64_t pace__cnn_fast_memory(const pace__cnn_plan *plan, const pace__cnn_net *net)
{
    pace__cnn_fast *sizes = malloc(sizeof *sizes);

    if (!sizes)
        return UINT64_MAX;
    set_sizes(sizes, plan, net, PACE__CNN_TILE_BYTES);
    guess_convs(sizes);
    pace__cnn_plan_memory(sizes);
    uint64_t bytes = sizeof *sizes + take_all(sizes, NULL);

    free(sizes);
    return bytes;
}

/* --- a step --- */

/* Whoever listens hears what is complete; a status ends the step. */
static void tell(void *fast)
{
    pace__cnn_fast *self = fast;

    self->status = self->batch->ready(self->batch->user, self->ready_first);
    if (self->status)
        pace__crew_stop(self->crew);
}

static void ready(pace__cnn_fast *self, size_t first)
{
    self->ready_first = first;
    if (self->batch->ready && !self->status)
        tell(self);
}

/* Weights of a unit into the order of its convolutions. */
static void pack(pace__cnn_fast *self, int thread, pace__cnn_part *part)
{
    const pace__cnn_unit *unit = part->unit;
    size_t bytes = unit->channels * sizeof(float);

    pace__conv_pack(part->forward, thread, self->weights + unit->weight_at, part->w_forward);
    if (part->data)
        pace__conv_pack(part->data, thread, self->weights + unit->weight_at, part->w_data);
    memcpy(part->gamma, self->weights + unit->gamma_at, bytes);
    memcpy(part->beta, self->weights + unit->beta_at, bytes);
    memcpy(part->mean, self->stats + unit->mean_at, bytes);
}

static unsigned groups_to_freeze(const pace__cnn_fast *self)
{
    return self->config.first_trained > 0 && self->rows->pixels ? pace__cnn_groups(self) : 0;
}

/* Weights of the trained units; then rows through the frozen ones. */
static void prepare_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    uint32_t frozen = self->config.first_trained, trained = self->net.units - frozen;

    if (index < trained) {
        PACE__SPAN("pack weights");
        pack(self, thread, &self->part[frozen + index]);
        return;
    }
    PACE__SPAN("frozen layers");
    pace__cnn_range rows = pace__cnn_group(self, index - trained);
    float *y = pace__cnn_infer(self, thread, frozen, rows);

    if (frozen == self->net.units)
        pace__cnn_means(self, rows.rows, y, self->features + rows.first * self->net.features);
}

static bool forward(pace__cnn_fast *self, int thread)
{
    for (uint32_t i = self->config.first_trained; i < self->net.units; i++) {
        pace__cnn_part *part = &self->part[i];
        unsigned tasks = pace__cnn_tasks(self->rows->rows, part->tile);

        uint64_t start = pace__busy_ns();

        if (thread == 0) {
            self->unit = i;
            part->sums_tasks = tasks;
        }
        if (!pace__crew_phase(self->crew, thread, tasks, pace__cnn_forward_task))
            return false;
        if (thread == 0) {
            pace__cnn_forward_settle(self, part);
            part->forward_ns = pace__busy_ns() - start;
        }
    }
    return true;
}

/* Before the derivatives of a unit can go on: those of whom it gives to will be summed up by its tasks. */
static void begin_back(pace__cnn_fast *self, pace__cnn_part *part)
{
    unsigned tasks = pace__cnn_tasks(self->rows->rows, part->tile);

    pace__cnn_back_settle(self, part);
    if (part->gives_from && part->to_from.last)
        self->part[part->unit->from].sums_tasks = tasks;
    if (part->gives_add && part->to_add.last)
        self->part[part->unit->add].sums_tasks = tasks;
}

static void back(pace__cnn_fast *self, int thread)
{
    uint32_t first = self->config.first_trained;

    for (uint32_t above = self->net.units; above >= first; above--) {
        uint64_t start = pace__busy_ns();

        if (thread == 0) {
            self->unit = above;
            if (above > first)
                begin_back(self, &self->part[above - 1]);
        }
        if (!pace__crew_phase(self->crew, thread, pace__cnn_back_tasks(self, above), pace__cnn_back_task))
            return;
        if (thread == 0 && above > first)
            self->part[above - 1].back_ns = pace__busy_ns() - start;
        if (thread == 0 && above < self->net.units)
            ready(self, self->part[above].unit->weight_at - self->net.trained_at);
        if (above == 0)
            return;
    }
}

static void step(void *fast, int thread)
{
    pace__cnn_fast *self = fast;
    unsigned trained = self->net.units - self->config.first_trained;

    pace__gemm_alone();
    if (!pace__crew_phase(self->crew, thread, trained + groups_to_freeze(self), prepare_task) ||
        !forward(self, thread))
        return;
    if (thread == 0)
        self->part[self->net.units - 1].sums_tasks = pace__cnn_head_tasks(self);
    if (!pace__crew_phase(self->crew, thread, pace__cnn_head_tasks(self), pace__cnn_head_task))
        return;
    if (!pace__crew_phase(self->crew, thread, pace__cnn_head_back_tasks(self), pace__cnn_head_back_task))
        return;
    if (thread == 0)
        ready(self, self->net.head_weight_at - self->net.trained_at);
    if (trained > 0)
        back(self, thread);
}

static void begin(pace__cnn_fast *self, const pace__rows *rows, const float *weights, const float *stats)
{
    self->rows = rows;
    /* NULL: features are asked for, and nothing is trained. */
    self->weights = weights ? weights - self->net.trained_at : NULL;
    self->stats = stats ? stats - self->net.stats_trained_at : NULL;
    self->status = PACE_OK;
    self->ready_first = self->net.weights - self->net.trained_at;
    pace__cnn_head_turn(self);
}

pace_status pace__cnn_fast_gradient(pace__cnn_fast *self, pace__cnn_batch *batch)
{
    assert(self->trains && batch->rows->rows <= self->rows_max);
    self->batch = batch;
    self->pixels_weight = batch->sum ? (double)batch->step_rows : (double)batch->rows->rows;
    begin(self, batch->rows, batch->weights, batch->stats);
    pace__crew_run(self->crew, step, batch->ready ? tell : NULL);
    batch->loss = 0;
    for (size_t row = 0; row < batch->rows->rows; row++)
        batch->loss += self->loss[row];
    self->batch = NULL;
    return self->status;
}

/* --- not in training --- */

static void fold_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;

    pace__cnn_fold(self, thread, &self->part[self->config.first_trained + index], self->weights, self->stats);
}

static void infer_task(void *fast, int thread, unsigned index)
{
    pace__cnn_fast *self = fast;
    pace__cnn_range rows = pace__cnn_group(self, index);
    size_t width = self->net.features;
    float *features = self->spaces[thread].features;

    if (self->wants_features)
        features = self->found + rows.first * width;
    if (self->rows->features)
        features = (float *)self->rows->features + rows.first * width;
    else
        pace__cnn_means(self, rows.rows, pace__cnn_infer(self, thread, self->net.units, rows), features);
    if (!self->wants_features)
        pace__cnn_head_forward(self, rows.rows, features, self->found + rows.first * self->net.outputs);
}

static void infer(void *fast, int thread)
{
    pace__cnn_fast *self = fast;
    unsigned trained = self->rows->features ? 0 : self->net.units - self->config.first_trained;

    pace__gemm_alone();
    if (pace__crew_phase(self->crew, thread, trained, fold_task))
        pace__crew_phase(self->crew, thread, pace__cnn_groups(self), infer_task);
}

pace_status pace__cnn_fast_logits(pace__cnn_fast *self, const pace__rows *rows, const float *weights,
                                  const float *stats, bool features, float *found)
{
    self->wants_features = features;
    self->found = found;
    if (features)
        assert(rows->pixels);
    begin(self, rows, weights, stats);
    pace__crew_run(self->crew, infer, NULL);
    return PACE_OK;
}

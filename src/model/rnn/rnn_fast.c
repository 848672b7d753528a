#include "model/rnn/rnn_fast.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "math/gemm.h"
#include "threads/thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* Pack, project, chunks, add, weigh. */
#define PHASES_MAX 5

/*
 * Rows of a chunk: enough to share a trip of the weights through the cache, few enough that what is kept of
 * their words stays in it, and that threads find chunks to share. 8 to 32 were within 10 % for states of 32
 * to 256 units, on a busy machine; 16 was never the worst.
 */
#define CHUNK_ROWS 16

/* Sums of chunks: as many as there are chunks, but at most so many, and fewer if they are larger. */
#define SUMS_MAX       32
#define SUMS_MIN       8
#define SUMS_BYTES_MAX ((size_t)64 << 20)

/* --- memory: one piece, and everything points into it --- */

/* From one row to the next: not a multiple of a large power of two, or the rows of a column would compete
 * for the same places of the cache. */
static size_t stride_of(size_t floats)
{
    return floats % 128 == 0 ? floats + BLOCK : floats;
}

static size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

static pace__bf16 *take16(pace__taking *from, const pace__rnn_fast *self, size_t count)
{
    return self->config.bf16 ? pace__take(from, count, sizeof(pace__bf16)) : NULL;
}

static void take_side16(const pace__rnn_fast *self, pace__taking *from, pace__rnn_side *side)
{
    size_t width = self->blocks * BLOCK;

    side->input16 = take16(from, self, pace__bf16_panels(side->inputs, self->gates));
    side->state16 = take16(from, self, pace__bf16_panels(width, self->gates));
    side->input_back16 = take16(from, self, pace__bf16_panels(self->gates, side->inputs));
    side->state_back16 = take16(from, self, pace__bf16_panels(self->gates, width));
}

static void take_sides(pace__rnn_fast *self, pace__taking *from, size_t *sums)
{
    size_t width = self->blocks * BLOCK;

    for (uint32_t layer = 0; layer < self->config.layers; layer++) {
        for (size_t s = 0; s < self->sides; s++) {
            pace__rnn_side *side = &self->side[layer][s];

            side->inputs = layer ? self->sides * width : self->config.embed;
            side->input = pace__take_floats(from, side->inputs * self->gates);
            side->state = pace__take_floats(from, width * self->gates);
            side->bias = pace__take_floats(from, self->gates);
            side->input_back = pace__take_floats(from, self->gates * round_up(side->inputs, BLOCK));
            side->state_back = pace__take_floats(from, self->gates * width);
            take_side16(self, from, side);
            side->d_input = *sums;
            side->d_state = side->d_input + (layer ? side->inputs * self->gates : 0);
            side->d_bias = side->d_state + width * self->gates;
            *sums = side->d_bias + self->gates;
        }
    }
}

static void take_head(pace__rnn_fast *self, pace__taking *from, size_t *sums)
{
    size_t wide = self->sides * self->blocks * BLOCK;
    pace__rnn_head *head = &self->head;

    head->units = self->config.dense;
    head->blocks = round_up(head->units, BLOCK_GATES) / BLOCK;
    size_t units = head->blocks * BLOCK;

    head->forward = pace__take_floats(from, wide * units);
    head->back = pace__take_floats(from, wide * units);
    head->start = pace__take_floats(from, units);
    head->out = pace__take_floats(from, units ? units : wide);
    head->d_weight = *sums;
    head->d_bias = head->d_weight + wide * units;
    head->d_out = head->d_bias + units;
    head->d_out_bias = head->d_out + (units ? units : wide);
    *sums = round_up(head->d_out_bias + 1, BLOCK);
}

static void take_space(pace__rnn_fast *self, pace__taking *from, pace__rnn_space *space)
{
    size_t rows = self->chunk_rows, words = rows * self->config.length, bits = self->sides * self->blocks;
    bool lstm = self->config.cell == PACE_CELL_LSTM, drops = self->config.dropout > 0;

    for (uint32_t layer = 0; layer < self->config.layers; layer++) {
        for (size_t side = 0; side < self->sides; side++) {
            pace__rnn_trace *trace = &space->traces[layer][side];

            trace->gates =
                layer || self->config.bf16 ? pace__take_floats(from, words * self->gates_stride) : NULL;
            trace->cell = lstm ? pace__take_floats(from, words * self->stride) : NULL;
            trace->squashed = lstm ? pace__take_floats(from, words * self->stride) : NULL;
            trace->state = pace__take_floats(from, words * self->stride);
            trace->state16 = take16(from, self, words * self->stride16);
            if (layer == 0 || (self->sides == 1 && !drops))
                continue;
            space->input[layer][side] = pace__take_floats(from, words * self->wide_stride);
            space->input16[layer][side] = take16(from, self, words * self->wide_stride16);
        }
        space->kept[layer] = drops ? pace__take(from, words * bits, sizeof(uint16_t)) : NULL;
    }
    space->mirror = self->sides == 2 ? pace__take(from, words, sizeof(uint32_t)) : NULL;
    for (size_t side = 0; side < self->sides; side++) {
        space->d_output[side] = pace__take_floats(from, words * self->stride);
        /* With one direction the one becomes the other in place. */
        space->d_input[side] =
            self->sides == 1 ? space->d_output[side] : pace__take_floats(from, words * self->wide_stride);
    }
    space->d_state = pace__take_floats(from, rows * self->stride);
    space->d_cell = pace__take_floats(from, rows * self->stride);
    space->pooled = pace__take_floats(from, rows * self->wide_stride);
    space->d_pooled = pace__take_floats(from, rows * self->wide_stride);
    space->largest = pace__take(from, rows * self->wide_stride, sizeof(uint32_t));
    space->kept_pooled = pace__take(from, rows * bits, sizeof(uint16_t));
    space->relu = pace__take_floats(from, rows * self->head.blocks * BLOCK);
    space->d_relu = pace__take_floats(from, rows * self->head.blocks * BLOCK);
    space->sums = pace__take_floats(from, rows * BLOCK_GATES);
    space->d_gates = self->config.bf16 ? pace__take_floats(from, rows * self->gates_stride) : NULL;
    space->gates16 = take16(from, self, pace__rnn_words16(self) * self->gates_stride16);
    space->turned = take16(from, self, pace__rnn_turned16(self));
    space->paired = take16(from, self, pace__rnn_paired16(self));
}

static void take_batch(pace__rnn_fast *self, pace__taking *from)
{
    size_t words = self->rows_max * self->config.length;

    for (size_t side = 0; side < self->sides; side++) {
        self->first_gates[side] =
            self->config.bf16 ? NULL : pace__take_floats(from, words * self->gates_stride);
        self->first_gates16[side] = take16(from, self, words * self->gates_stride16);
        self->projected[side] = pace__take_floats(from, self->slots_max * self->gates_stride);
        self->first_sums[side] = pace__take_floats(from, self->config.embed * self->gates);
        self->projected16[side] = take16(from, self, self->slots_max * self->gates_stride16);
        self->slots[side] = pace__take(from, words, sizeof(uint32_t));
        self->by_slot[side] = pace__take(from, words, sizeof(uint32_t));
        self->slot_start[side] = pace__take(from, self->slots_max + 2, sizeof(uint32_t));
    }
    self->embedding16 = take16(from, self, self->slots_max * self->embed_stride16);
    self->row = pace__take(from, self->rows_max, sizeof(uint32_t));
    self->at = pace__take(from, (self->chunks_max + 1) * (size_t)(self->config.length + 1), sizeof(uint32_t));
    self->chunks = pace__take(from, self->chunks_max, sizeof *self->chunks);
    self->chunk_done = pace__take(from, self->chunks_max, sizeof *self->chunk_done);
    self->loss = pace__take(from, self->rows_max, sizeof *self->loss);
}

/* Points everything into the memory, or counts its bytes. */
static size_t take_all(pace__rnn_fast *self, void *memory)
{
    pace__taking from = {.memory = memory};
    size_t sums = 0;

    take_sides(self, &from, &sums);
    take_head(self, &from, &sums);
    self->sums_size = sums;
    self->sums_max = SUMS_MAX;
    while (self->sums_max > SUMS_MIN && self->sums_max * sums * sizeof(float) > SUMS_BYTES_MAX)
        self->sums_max /= 2;
    self->sums = pace__take_floats(
        &from, (self->sums_max < self->chunks_max ? self->sums_max : self->chunks_max) * self->sums_size);
    take_batch(self, &from);
    self->spaces = pace__take(&from, (size_t)self->threads, sizeof *self->spaces);
    pace__rnn_space none;

    for (int thread = 0; thread < self->threads; thread++)
        take_space(self, &from, memory ? &self->spaces[thread] : &none);
    return from.used;
}

/* Tensors come in the order of the forward pass. */
static void place_parameters(pace__rnn_fast *self)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX], *next = tensors;

    pace__rnn_tensors(&self->config, tensors);
    for (uint32_t layer = 0; layer < self->config.layers; layer++) {
        for (size_t side = 0; side < self->sides; side++, next += 4) {
            self->side[layer][side].weight_ih = next[0].at;
            self->side[layer][side].weight_hh = next[1].at;
            self->side[layer][side].bias_ih = next[2].at;
            self->side[layer][side].bias_hh = next[3].at;
        }
    }
    if (self->config.dense) {
        self->head.weight = next[0].at;
        self->head.bias = next[1].at;
        next += 2;
    }
    self->head.out_weight = next[0].at;
    self->head.out_bias = next[1].at;
}

static void set_sizes(pace__rnn_fast *self, const pace__rnn_config *config, uint64_t rows_max, int threads)
{
    bool gru = config->cell == PACE_CELL_GRU;

    *self = (pace__rnn_fast){.config = *config, .rows_max = rows_max, .threads = threads};
    self->sides = config->both ? 2 : 1;
    self->blocks = (config->hidden + BLOCK - 1) / BLOCK;
    self->gates = self->blocks * BLOCK_GATES;
    self->gates_stride = stride_of(self->gates);
    self->stride = stride_of(self->blocks * BLOCK);
    self->wide_stride = stride_of(self->sides * self->blocks * BLOCK);
    self->gates_stride16 = pace__rnn_stride16(self->gates);
    self->stride16 = pace__rnn_stride16(self->blocks * BLOCK);
    self->wide_stride16 = self->sides == 2 ? pace__rnn_stride16(2 * self->blocks * BLOCK) : self->stride16;
    self->embed_stride16 = pace__rnn_stride16(config->embed);
    self->idle_input = gru ? 3 : 0;
    self->idle_state = gru ? 2 : 0;
    self->slots_max = rows_max * config->length;
    if (self->slots_max > config->words)
        self->slots_max = config->words;
    self->slots_max += 2; /* for slots that no word has, such as that of the padding */
    self->chunks_max = (uint32_t)((rows_max + CHUNK_ROWS - 1) / CHUNK_ROWS);
    self->chunk_rows = CHUNK_ROWS;
    place_parameters(self);
}

/* --- life --- */

/* What a profile calls it all. */
static void name_spans(pace__rnn_fast *self)
{
    const char *cell = self->config.cell == PACE_CELL_LSTM ? "lstm" : "gru",
               *both = self->sides == 2 ? "2 x " : "";

    for (uint32_t layer = 0; layer < self->config.layers; layer++) {
        self->forward_name[layer] = pace__span_text("%s %u forward", cell, layer);
        self->back_name[layer] = pace__span_text("%s %u back", cell, layer);
        self->shape[layer] = pace__span_text(
            "%u rows x %s%zu -> %u", self->chunk_rows, both,
            layer ? self->sides * self->config.hidden : (size_t)self->config.embed, self->config.hidden);
    }
    self->project_shape =
        pace__span_text("%s%u -> %u gates", both, self->config.embed,
                        self->config.hidden * (self->config.cell == PACE_CELL_LSTM ? 4 : 3));
    self->head_shape =
        self->config.dense
            ? pace__span_text("%u rows x %zu -> %u -> 1", self->chunk_rows, self->sides * self->config.hidden,
                              self->config.dense)
            : pace__span_text("%u rows x %zu -> 1", self->chunk_rows, self->sides * self->config.hidden);
}

static pace_status start(pace__rnn_fast *self)
{
    pace_status status = pace__crew_create(self->threads, PHASES_MAX, self, self->log, &self->crew);

    if (status)
        return status;
    self->memory_size = take_all(self, NULL);
    self->memory = pace__pages_alloc(self->memory_size);
    if (!self->memory)
        return pace_fail(self->log, PACE_FAILED,
                         "out of memory: the network needs %zu bytes for batches of %llu rows",
                         self->memory_size, (unsigned long long)self->rows_max);
    take_all(self, self->memory);
    name_spans(self);
    return PACE_OK;
}

pace_status pace__rnn_fast_create_with(const pace__rnn_config *config, uint64_t rows_max, int threads,
                                       int kernels, const pace__bf16_kernels *bf16, const pace_log *log,
                                       pace__rnn_fast **fast)
{
    pace__rnn_fast *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    set_sizes(self, config, rows_max, threads);
    self->products = pace__rnn_products_of(kernels);
    self->cells = pace__rnn_cells_of(kernels);
    self->bf16 = config->bf16 ? bf16 : NULL;
    self->log = log;
    pace_status status = start(self);

    if (status)
        pace__rnn_fast_free(self);
    else
        *fast = self;
    return status;
}

pace_status pace__rnn_fast_create(const pace__rnn_config *config, uint64_t rows_max, int threads,
                                  const pace_log *log, pace__rnn_fast **fast)
{
    const pace__bf16_kernels *bf16 = NULL;
    pace_status status = config->bf16 ? pace__bf16_use(log, &bf16) : PACE_OK;

    return status ? status
                  : pace__rnn_fast_create_with(config, rows_max, threads, pace_kernels_in_use(), bf16, log,
                                               fast);
}

void pace__rnn_fast_free(pace__rnn_fast *self)
{
    if (!self)
        return;
    pace__crew_free(self->crew);
    pace__pages_free(self->memory, self->memory_size);
    free(self);
}

uint64_t pace__rnn_fast_memory(const pace__rnn_config *config, uint64_t rows_max, int threads)
{
    pace__rnn_fast sizes;

    set_sizes(&sizes, config, rows_max, threads);
    return sizeof sizes + take_all(&sizes, NULL);
}

/* --- a batch --- */

static void pack_task(void *fast, int thread, unsigned index)
{
    pace__rnn_fast *self = fast;

    (void)thread;
    PACE__SPAN("pack weights");
    unsigned packed = self->chunk_count + pace__rnn_pack_tasks(self);

    if (index < self->chunk_count)
        pace__rnn_plan_slots(self, &self->chunks[index]);
    else if (index < packed)
        pace__rnn_pack(self, index - self->chunk_count);
    else
        pace__rnn_narrow_slots(self, index - packed);
}

static unsigned by_slot_tasks(const pace__rnn_fast *self)
{
    return self->training ? (unsigned)self->sides : 0;
}

/* A task's share of what layer 0's input weights are multiplied with. */
static uint64_t shared_flops(const pace__rnn_fast *self, unsigned tasks)
{
    return tasks ? self->sides * self->batch->slots * pace__rnn_project_flops(self) / tasks : 0;
}

static void project_task(void *fast, int thread, unsigned index)
{
    pace__rnn_fast *self = fast;

    (void)thread;
    if (index < by_slot_tasks(self)) {
        PACE__SPAN("words by slot");
        pace__rnn_plan_by_slot(self, index);
    } else {
        PACE__SPAN_OF("embed", self->project_shape, shared_flops(self, pace__rnn_project_tasks(self)), 0);
        pace__rnn_project(self, index - by_slot_tasks(self));
    }
}

/* The sums that a chunk adds to, when it is its turn. NULL: everything stops. */
static float *sums_for(pace__rnn_fast *self, int thread, unsigned index)
{
    float *sums = self->sums + index % self->sums_count * self->sums_size;
    unsigned turns = 0;

    if (index < self->sums_count) {
        memset(sums, 0, self->sums_size * sizeof *sums);
        return sums;
    }
    while (!atomic_load(&self->chunk_done[index - self->sums_count])) {
        if (pace__crew_poke(self->crew, thread))
            return NULL;
        pace__back_off(&turns);
    }
    return sums;
}

static void answer(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk, float *logits,
                   float *d_logits)
{
    PACE__SPAN_OF("head forward", self->head_shape, 0, 0);

    pace__rnn_head_forward(self, space, chunk, logits);
    for (uint32_t row = 0; row < chunk->rows; row++) {
        uint32_t number = chunk->row[row];

        if (!self->training)
            self->logits[number] = logits[row];
        else
            self->loss[number] =
                pace__rnn_loss(&self->config, logits[row], self->batch->rows->label[number], &d_logits[row]);
    }
}

static void chunk_task(void *fast, int thread, unsigned index)
{
    pace__rnn_fast *self = fast;
    const pace__rnn_chunk *chunk = &self->chunks[index];
    pace__rnn_space *space = &self->spaces[thread];
    float logits[CHUNK_ROWS], d_logits[CHUNK_ROWS];

    pace__rnn_chunk_forward(self, thread, chunk);
    answer(self, space, chunk, logits, d_logits);
    float *sums = self->training ? sums_for(self, thread, index) : NULL;

    if (!sums)
        return;
    {
        PACE__SPAN_OF("head back", self->head_shape, 0, 0);
        pace__rnn_head_back(self, space, chunk, d_logits, sums);
    }
    pace__rnn_chunk_back(self, thread, chunk, sums);
    atomic_store(&self->chunk_done[index], true);
}

static void add_task(void *fast, int thread, unsigned index)
{
    pace__rnn_fast *self = fast;
    unsigned unpacked = pace__rnn_unpack_tasks(self);

    (void)thread;
    PACE__SPAN("add sums of chunks");
    if (index < unpacked)
        pace__rnn_unpack(self, index);
    else
        pace__rnn_slot_sums(self, index - unpacked);
}

static void weigh_task(void *fast, int thread, unsigned index)
{
    pace__rnn_fast *self = fast;
    PACE__SPAN_OF("embed back", self->project_shape, shared_flops(self, pace__rnn_weigh_tasks(self)), 0);

    pace__rnn_weigh(self, thread, index);
}

/* Whoever listens hears what is complete; a status ends the batch. */
static void tell(void *fast)
{
    pace__rnn_fast *self = fast;

    self->status = self->batch->ready(self->batch->user, self->ready_first);
    if (self->status)
        pace__crew_stop(self->crew);
}

/* dense_sums[first ..] is complete. */
static void ready(pace__rnn_fast *self, size_t first)
{
    self->ready_first = first;
    if (self->batch->ready && !self->status)
        tell(self);
}

static double loss_of(const pace__rnn_fast *self)
{
    double loss = 0;

    for (size_t row = 0; row < self->batch->rows->rows; row++)
        loss += self->loss[row];
    return loss;
}

static void words_ready(pace__rnn_fast *self)
{
    if (!self->batch->words_ready || self->status)
        return;
    self->status = self->batch->words_ready(self->batch->user, loss_of(self));
    if (self->status)
        pace__crew_stop(self->crew);
}

/* Of layer 0 only input weights are missing. */
static void ready_with_sums(pace__rnn_fast *self)
{
    ready(self, self->head.units ? self->head.weight : self->head.out_weight);
    for (uint32_t layer = self->config.layers; layer-- > 1;)
        ready(self, self->side[layer][0].weight_ih);
    ready(self, self->side[0][self->sides - 1].weight_hh);
}

/* From slots to what the chunks leave. */
static bool run_chunks(pace__rnn_fast *self, int thread)
{
    unsigned pack = self->chunk_count + pace__rnn_pack_tasks(self) +
                    (pace__rnn_narrows(self) ? pace__rnn_slot_tasks(self) : 0);
    unsigned project = by_slot_tasks(self) + pace__rnn_project_tasks(self);

    return pace__crew_phase(self->crew, thread, pack, pack_task) &&
           pace__crew_phase(self->crew, thread, project, project_task) &&
           pace__crew_phase(self->crew, thread, self->chunk_count, chunk_task);
}

static void run_step(pace__rnn_fast *self, int thread)
{
    unsigned add = pace__rnn_unpack_tasks(self) + pace__rnn_slot_tasks(self);

    if (!run_chunks(self, thread) || !pace__crew_phase(self->crew, thread, add, add_task))
        return;
    if (thread == 0) {
        words_ready(self); /* they have the longest way */
        ready_with_sums(self);
    }
    if (pace__crew_phase(self->crew, thread, pace__rnn_weigh_tasks(self), weigh_task) && thread == 0)
        ready(self, 0);
}

static void step(void *fast, int thread)
{
    pace__rnn_fast *self = fast;

    pace__gemm_alone();
    if (self->bf16)
        self->bf16->begin();
    run_step(self, thread);
    if (self->bf16)
        self->bf16->end();
}

static void infer(void *fast, int thread)
{
    pace__gemm_alone();
    run_chunks(fast, thread);
}

static void begin(pace__rnn_fast *self, const pace__rnn_batch *batch, bool training)
{
    self->batch = batch;
    self->training = training;
    self->status = PACE_OK;
    self->ready_first = pace__rnn_dense(&self->config);
    pace__rnn_plan(self);
    for (uint32_t chunk = 0; chunk < self->chunk_count; chunk++)
        atomic_store_explicit(&self->chunk_done[chunk], false, memory_order_relaxed);
}

pace_status pace__rnn_fast_gradient(pace__rnn_fast *self, pace__rnn_batch *batch)
{
    begin(self, batch, true);
    pace__crew_run(self->crew, step, batch->ready ? tell : NULL);
    batch->loss = loss_of(self);
    return self->status;
}

pace_status pace__rnn_fast_logits(pace__rnn_fast *self, const pace__rnn_batch *batch, float *logits)
{
    begin(self, batch, false);
    self->logits = logits;
    pace__crew_run(self->crew, infer, NULL);
    return PACE_OK;
}

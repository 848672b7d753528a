/* From the tensors of the dense array to panels, and from sums in panels back. */
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define BLOCK       PACE__RNN_BLOCK
#define BLOCK_GATES PACE__RNN_BLOCK_GATES

/* Inputs of layers above 0, and pooled vectors, have whole blocks for each side. */
static size_t padded(const pace__rnn_fast *self, size_t unit)
{
    size_t hidden = self->config.hidden;

    return unit < hidden ? unit : unit - hidden + self->blocks * BLOCK;
}

static size_t inputs_of(const pace__rnn_fast *self, unsigned layer)
{
    return layer ? self->sides * self->config.hidden : self->config.embed;
}

static unsigned gates_of(const pace__rnn_fast *self)
{
    return self->config.cell == PACE_CELL_LSTM ? 4 : 3;
}

/* Where a gate of the tensors is among the four of a block: n of a GRU has two places. */
static size_t gate_place(const pace__rnn_fast *self, unsigned gate, bool recurrent)
{
    return self->config.cell == PACE_CELL_GRU && gate == 2 && recurrent ? 3 : gate;
}

/* Element (row, column) of a matrix of so many rows that is packed in panels. */
static size_t panel_place(size_t rows, size_t row, size_t column)
{
    return (column / BLOCK * rows + row) * BLOCK + column % BLOCK;
}

static size_t panel_place16(size_t rows, size_t row, size_t column)
{
    return column / BLOCK * pace__bf16_panel(rows) + (row / 2 * BLOCK + column % BLOCK) * 2 + row % 2;
}

/* --- there --- */

/* Where a tensor goes: `forward` has so many rows, `back` as many as there are gates. */
typedef struct packing {
    float *forward, *back;
    pace__bf16 *forward16, *back16;
    size_t rows;
    bool pads; /* see padded */
} packing;

/* One row of a tensor becomes column `place` of forward, and row `place` of back. */
static void pack_row(const pace__rnn_fast *self, const float *from, size_t inputs, const packing *by,
                     size_t place)
{
    bool narrows = pace__rnn_narrows(self);

    for (size_t i = 0; i < inputs; i++) {
        size_t to = by->pads ? padded(self, i) : i;

        if (narrows) {
            by->forward16[panel_place16(by->rows, to, place)] = pace__bf16_round(from[i]);
            by->back16[panel_place16(self->gates, place, to)] = pace__bf16_round(from[i]);
        } else {
            by->forward[panel_place(by->rows, to, place)] = from[i];
            by->back[panel_place(self->gates, place, to)] = from[i];
        }
    }
}

static void pack_block(pace__rnn_fast *self, unsigned layer, size_t side, size_t block)
{
    const float *dense = self->batch->dense;
    const pace__rnn_side *to = &self->side[layer][side];
    size_t hidden = self->config.hidden, inputs = inputs_of(self, layer), width = self->blocks * BLOCK;
    const packing input = {to->input, to->input_back, to->input16, to->input_back16, to->inputs, layer > 0};
    const packing state = {to->state, to->state_back, to->state16, to->state_back16, width, false};

    memset(to->bias + block * BLOCK_GATES, 0, BLOCK_GATES * sizeof *to->bias);
    for (unsigned gate = 0; gate < gates_of(self); gate++) {
        size_t input_gate = block * BLOCK_GATES + gate_place(self, gate, false) * BLOCK;
        size_t state_gate = block * BLOCK_GATES + gate_place(self, gate, true) * BLOCK;

        for (size_t u = 0; u < BLOCK && block * BLOCK + u < hidden; u++) {
            size_t row = gate * hidden + block * BLOCK + u;

            pack_row(self, dense + to->weight_ih + row * inputs, inputs, &input, input_gate + u);
            pack_row(self, dense + to->weight_hh + row * hidden, hidden, &state, state_gate + u);
            to->bias[input_gate + u] += dense[to->bias_ih + row];
            to->bias[state_gate + u] += dense[to->bias_hh + row];
        }
    }
}

static void pack_head(pace__rnn_fast *self)
{
    const float *dense = self->batch->dense;
    const pace__rnn_head *head = &self->head;
    size_t pooled = self->sides * self->config.hidden, wide = self->sides * self->blocks * BLOCK;

    for (size_t u = 0; u < head->units; u++) {
        for (size_t i = 0; i < pooled; i++) {
            float weight = dense[head->weight + u * pooled + i];

            head->forward[panel_place(wide, padded(self, i), u)] = weight;
            head->back[panel_place(head->blocks * BLOCK, u, padded(self, i))] = weight;
        }
        head->start[u] = dense[head->bias + u];
    }
    for (size_t i = 0; i < (head->units ? head->units : pooled); i++)
        head->out[head->units ? i : padded(self, i)] = dense[head->out_weight + i];
}

unsigned pace__rnn_pack_tasks(const pace__rnn_fast *self)
{
    return (unsigned)(self->config.layers * self->sides * self->blocks + 1);
}

void pace__rnn_pack(pace__rnn_fast *self, unsigned index)
{
    size_t sides = self->sides * self->blocks;

    if (index == self->config.layers * sides)
        pack_head(self);
    else
        pack_block(self, (unsigned)(index / sides), index / self->blocks % self->sides, index % self->blocks);
}

/* --- back --- */

/* The sums of all chunks, at one place, in their order. */
static void add_up(const pace__rnn_fast *self, size_t at, size_t count, float *total)
{
    memset(total, 0, count * sizeof *total);
    for (size_t i = 0; i < self->sums_count; i++) {
        const float *from = self->sums + i * self->sums_size + at;

        for (size_t j = 0; j < count; j++)
            total[j] += from[j];
    }
}

static size_t units_of(const pace__rnn_fast *self, size_t block)
{
    size_t left = self->config.hidden - block * BLOCK;

    return left < BLOCK ? left : BLOCK;
}

/* A panel's sums, or their total, that belong to one input: an element of each row of a tensor. */
static void spread(const float *total, size_t units, size_t inputs, float *to)
{
    for (size_t u = 0; u < units; u++)
        to[u * inputs] = total[u];
}

/* Sums of one of the tensor's gates: of so many inputs, which have so many rows in the panel. */
static void unpack_gate(pace__rnn_fast *self, size_t block, size_t from, size_t inputs, float *to)
{
    float total[BLOCK];

    for (size_t i = 0; i < inputs; i++) {
        add_up(self, from + padded(self, i) * BLOCK, BLOCK, total);
        spread(total, units_of(self, block), inputs, to + i);
    }
}

static void unpack_block(pace__rnn_fast *self, unsigned layer, size_t side, size_t block)
{
    const pace__rnn_side *from = &self->side[layer][side];
    size_t hidden = self->config.hidden, inputs = inputs_of(self, layer), width = self->blocks * BLOCK;
    float *to = self->batch->dense_sums;

    for (unsigned gate = 0; gate < gates_of(self); gate++) {
        size_t input_gate = block * BLOCK_GATES + gate_place(self, gate, false) * BLOCK;
        size_t state_gate = block * BLOCK_GATES + gate_place(self, gate, true) * BLOCK;
        size_t row = gate * hidden + block * BLOCK;

        if (layer > 0)
            unpack_gate(self, block, from->d_input + input_gate * from->inputs, inputs,
                        to + from->weight_ih + row * inputs);
        unpack_gate(self, block, from->d_state + state_gate * width, hidden,
                    to + from->weight_hh + row * hidden);
        add_up(self, from->d_bias + input_gate, units_of(self, block), to + from->bias_ih + row);
        add_up(self, from->d_bias + state_gate, units_of(self, block), to + from->bias_hh + row);
    }
}

static void unpack_head(pace__rnn_fast *self)
{
    const pace__rnn_head *head = &self->head;
    size_t pooled = self->sides * self->config.hidden, wide = self->sides * self->blocks * BLOCK;
    float *to = self->batch->dense_sums, total[BLOCK];

    for (size_t first = 0; first < head->units; first += BLOCK) {
        size_t units = head->units - first < BLOCK ? head->units - first : BLOCK;

        for (size_t i = 0; i < pooled; i++) {
            add_up(self, head->d_weight + panel_place(wide, padded(self, i), first), BLOCK, total);
            spread(total, units, pooled, to + head->weight + first * pooled + i);
        }
        add_up(self, head->d_bias + first, units, to + head->bias + first);
    }
    for (size_t i = 0; i < (head->units ? head->units : pooled); i++)
        add_up(self, head->d_out + (head->units ? i : padded(self, i)), 1, to + head->out_weight + i);
    add_up(self, head->d_out_bias, 1, to + head->out_bias);
}

unsigned pace__rnn_unpack_tasks(const pace__rnn_fast *self)
{
    return pace__rnn_pack_tasks(self);
}

void pace__rnn_unpack(pace__rnn_fast *self, unsigned index)
{
    if (index == 0) {
        unpack_head(self);
        return;
    }
    size_t sides = self->sides * self->blocks, from_top = (index - 1) / sides;

    unpack_block(self, self->config.layers - 1 - (unsigned)from_top, (index - 1) / self->blocks % self->sides,
                 (index - 1) % self->blocks);
}

void pace__rnn_unpack_first(pace__rnn_fast *self, size_t side, size_t block, size_t first, size_t last)
{
    size_t embed = self->config.embed;
    float *to = self->batch->dense_sums + self->side[0][side].weight_ih;

    for (unsigned gate = 0; gate < gates_of(self); gate++) {
        const float *from = self->first_sums[side] + (block * BLOCK_GATES + gate * BLOCK) * embed;
        size_t row = gate * self->config.hidden + block * BLOCK;

        for (size_t i = first; i < last; i++)
            spread(from + i * BLOCK, units_of(self, block), embed, to + row * embed + i);
    }
}

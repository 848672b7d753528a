/* From the tensors of the dense array to panels, and from sums in panels back. */
#include "model/rnn/rnn_fast.h"

#include <string.h>

#define LANES PACE__RNN_LANES
#define PANEL PACE__RNN_PANEL

/* Inputs of layers above 0, and pooled vectors, have whole blocks for each side. */
static size_t padded(const pace__rnn_fast *self, size_t unit)
{
    size_t hidden = self->config.hidden;

    return unit < hidden ? unit : unit - hidden + self->blocks * LANES;
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

/* Element (row, column) of a matrix of so many rows and columns that is packed in panels. */
static size_t panel_place(size_t rows, size_t columns, size_t row, size_t column)
{
    size_t first = column / PANEL * PANEL, rest = (columns - first + LANES - 1) / LANES * LANES;

    return first * rows + row * (rest < PANEL ? rest : PANEL) + column % PANEL;
}

/* --- there --- */

/* One row of a tensor becomes a column of `forward`, whose panel it is, and row `place` of `back`. */
static void pack_row(const pace__rnn_fast *self, const float *from, size_t inputs, bool pads, float *forward,
                     size_t lane, float *back, size_t place, size_t back_columns)
{
    for (size_t i = 0; i < inputs; i++) {
        size_t to = pads ? padded(self, i) : i;

        forward[to * PANEL + lane] = from[i];
        back[panel_place(self->gates, back_columns, place, to)] = from[i];
    }
}

static void pack_block(pace__rnn_fast *self, unsigned layer, size_t side, size_t block)
{
    const float *dense = self->batch->dense;
    const pace__rnn_side *to = &self->side[layer][side];
    size_t hidden = self->config.hidden, inputs = inputs_of(self, layer), width = self->blocks * LANES;

    memset(to->bias + block * PANEL, 0, PANEL * sizeof *to->bias);
    for (unsigned gate = 0; gate < gates_of(self); gate++) {
        size_t input_gate = gate_place(self, gate, false) * LANES;
        size_t state_gate = gate_place(self, gate, true) * LANES;

        for (size_t u = 0; u < LANES && block * LANES + u < hidden; u++) {
            size_t row = gate * hidden + block * LANES + u;

            pack_row(self, dense + to->weight_ih + row * inputs, inputs, layer > 0,
                     to->input + block * to->inputs * PANEL, input_gate + u, to->input_back,
                     block * PANEL + input_gate + u, to->inputs);
            pack_row(self, dense + to->weight_hh + row * hidden, hidden, false,
                     to->state + block * width * PANEL, state_gate + u, to->state_back,
                     block * PANEL + state_gate + u, width);
            to->bias[block * PANEL + input_gate + u] += dense[to->bias_ih + row];
            to->bias[block * PANEL + state_gate + u] += dense[to->bias_hh + row];
        }
    }
}

static void pack_head(pace__rnn_fast *self)
{
    const float *dense = self->batch->dense;
    const pace__rnn_head *head = &self->head;
    size_t pooled = self->sides * self->config.hidden, wide = self->sides * self->blocks * LANES;

    for (size_t u = 0; u < head->units; u++) {
        for (size_t i = 0; i < pooled; i++) {
            float weight = dense[head->weight + u * pooled + i];

            head->forward[panel_place(wide, head->blocks * LANES, padded(self, i), u)] = weight;
            head->back[panel_place(head->blocks * LANES, wide, u, padded(self, i))] = weight;
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

/* 64 sums that belong to one input: an element of each row of a tensor. */
static void spread(const pace__rnn_fast *self, const float *total, bool recurrent, size_t block,
                   size_t inputs, float *to)
{
    size_t hidden = self->config.hidden, first = block * LANES;
    size_t units = hidden - first < LANES ? hidden - first : LANES;

    for (unsigned gate = 0; gate < gates_of(self); gate++) {
        const float *from = total + gate_place(self, gate, recurrent) * LANES;

        for (size_t u = 0; u < units; u++)
            to[(gate * hidden + first + u) * inputs] = from[u];
    }
}

static void unpack_block(pace__rnn_fast *self, unsigned layer, size_t side, size_t block)
{
    const pace__rnn_side *from = &self->side[layer][side];
    size_t hidden = self->config.hidden, inputs = inputs_of(self, layer), width = self->blocks * LANES;
    float *to = self->batch->dense_sums, total[PANEL];

    for (size_t i = 0; layer > 0 && i < inputs; i++) {
        add_up(self, from->d_input + (block * from->inputs + padded(self, i)) * PANEL, PANEL, total);
        spread(self, total, false, block, inputs, to + from->weight_ih + i);
    }
    for (size_t i = 0; i < hidden; i++) {
        add_up(self, from->d_state + (block * width + i) * PANEL, PANEL, total);
        spread(self, total, true, block, hidden, to + from->weight_hh + i);
    }
    add_up(self, from->d_bias + block * PANEL, PANEL, total);
    spread(self, total, false, block, 1, to + from->bias_ih);
    spread(self, total, true, block, 1, to + from->bias_hh);
}

static void unpack_head(pace__rnn_fast *self)
{
    const pace__rnn_head *head = &self->head;
    size_t pooled = self->sides * self->config.hidden, wide = self->sides * self->blocks * LANES;
    float *to = self->batch->dense_sums, total[PANEL];

    for (size_t first = 0; first < head->units; first += PANEL) {
        size_t units = head->units - first < PANEL ? head->units - first : PANEL;

        for (size_t i = 0; i < pooled; i++) {
            add_up(self, head->d_weight + first * wide + padded(self, i) * PANEL, PANEL, total);
            for (size_t u = 0; u < units; u++)
                to[head->weight + (first + u) * pooled + i] = total[u];
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

    for (size_t i = first; i < last; i++)
        spread(self, self->first_sums[side] + (block * embed + i) * PANEL, false, block, embed,
               self->batch->dense_sums + self->side[0][side].weight_ih + i);
}

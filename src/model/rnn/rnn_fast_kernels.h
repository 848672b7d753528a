/*
 * rnn_fast_kernels.h - the arithmetic under rnn_fast.c, once per instruction set: products of matrices, and what happens
 * to single units (`cells`).
 *
 * Units come in *blocks* of 16. The four gates of a block are neighbours: a word's gates are (blocks, 4, 16),
 * so that all gates of a unit are in the same lane of four vectors and become its state without a detour.
 * A GRU has four sums per unit as well: r, z, and the two halves of n, the input's and the
 * state's, of which either has only zeros on the other side: `idle` is the number of the gate that is not computed, or 0.
 *
 * Matrices that are multiplied by are packed in *panels* of 16 columns: (panels, inner, 16). Rows of everything else are
 * `stride` floats apart.
 *
 * What lies behind the last unit of a block is 0 in weights, and so it is 0 in states and derivatives.
 */
#ifndef MODEL_RNN_RNN_FAST_KERNELS_H
#define MODEL_RNN_RNN_FAST_KERNELS_H

#include "base/cpu.h"
#include "math/bf16.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__RNN_BLOCK       16
#define PACE__RNN_GATES       4
#define PACE__RNN_BLOCK_GATES (PACE__RNN_GATES * PACE__RNN_BLOCK)

/* --- products --- */

typedef struct pace__rnn_factor {
    const float *a; /* (rows, inner); NULL: there is no such factor */
    size_t a_stride, inner;
    const float *panels; /* (inner, columns), packed */
    int idle;            /* the result's columns are gates, and in this one's panels there are only zeros */
    int idle_a;          /* a's columns are gates, and this one's are not used */
    /* The same in bf16: see rnn_fast_products.c. */
    const pace__bf16 *a16, *panels16;
    size_t a16_stride;
} pace__rnn_factor;

/* result (rows, columns) = start + a x panels, of each factor */
typedef struct pace__rnn_product {
    size_t rows, columns;
    pace__rnn_factor factor[2];
    const float *start; /* NULL: 0; with a stride of 0 the same row for all; may be the result itself */
    size_t start_stride;
    const uint32_t *slots; /* row r starts with row slots[r]; NULL: with row r. Not of bf16 */
    float *result;
    size_t result_stride;
} pace__rnn_product;

/* sums (columns of b in panels of 16, sums_rows, 16) += a (words, rows) transposed x b (words, columns) */
typedef struct pace__rnn_outer {
    size_t words, rows, columns; /* columns: a multiple of 64 */
    const float *a;
    size_t a_stride;
    const float *b;
    size_t b_stride;
    float *sums;
    size_t sums_rows;
    int idle; /* b's columns are gates, and this one's sums do not matter */
    const pace__bf16 *a16, *b16;
    size_t a16_stride, b16_stride;
} pace__rnn_outer;

typedef struct pace__rnn_products {
    void (*product)(const pace__rnn_product *product);
    void (*outer)(const pace__rnn_outer *outer);
} pace__rnn_products;

PACE__TABLES(pace__rnn_products, pace__rnn_products)

/* --- cells --- */

/* A step forward of one block of one direction of one layer, for all rows that have a word there. */
typedef struct pace__rnn_step {
    size_t rows;
    const float *sums; /* (rows, 4, 16) what was multiplied; may be where the gates will be; NULL: nothing */
    size_t sums_stride;
    const float *start; /* what is added, as in pace__rnn_product; NULL: nothing */
    size_t start_stride;
    const uint32_t *slots;
    const float *state_before, *cell_before; /* (rows, 16); NULL: the first step */
    /* Results: functions of the gates, (rows, 4, 16); of a GRU they are r, z, n and the state's half of n. */
    float *gates;
    size_t gates_stride;
    float *cell, *squashed; /* of an LSTM: c and tanh(c) */
    float *state;
    size_t stride;
    /* What is computed next is fetched meanwhile: floats from here to its gates, and to its units; and its start. */
    bool fetches;
    ptrdiff_t gates_ahead, units_ahead;
    const float *start_ahead;
    const uint32_t *slots_ahead; /* NULL: start is near anyway */
} pace__rnn_step;

/* The same step back: from the derivatives of states to those of the gates' sums. */
typedef struct pace__rnn_back {
    size_t rows, blocks;
    const float *gates;
    size_t gates_stride;
    float *d_gates; /* may be the same place */
    size_t d_gates_stride;
    const float *cell_before, *squashed; /* of an LSTM */
    const float *state_before;           /* of a GRU */
    size_t stride;
    const float *d_output; /* what comes from above; NULL: nothing */
    size_t d_output_stride;
    /* What comes from the next word. d_cell becomes what goes to the word before: of a GRU, that part of a state's which
     * does not go through the gates. */
    float *d_state, *d_cell;
    size_t d_stride;
    float *d_bias; /* (blocks, 4, 16) added to */
} pace__rnn_back;

typedef struct pace__rnn_cells {
    void (*lstm_step)(const pace__rnn_step *step);
    void (*gru_step)(const pace__rnn_step *step);
    void (*lstm_back)(const pace__rnn_back *back);
    void (*gru_back)(const pace__rnn_back *back);
    /* sum (count) = the sum of the listed rows; count is a multiple of 16 */
    void (*sum_rows)(const float *from, size_t stride, const uint32_t *list, size_t listed, float *sum,
                     size_t count);
    /* One bit per unit: is it kept? See math/draws.h. */
    void (*draw)(uint64_t key, uint32_t limit, uint32_t first_unit, size_t blocks, uint16_t *kept);
    /* to = kept ? from * scale : 0; may be the same place */
    void (*drop)(const uint16_t *kept, size_t blocks, float scale, const float *from, float *to);
} pace__rnn_cells;

PACE__TABLES(pace__rnn_cells, pace__rnn_cells)

#endif

/*
 * order.h - the one sample order (a pure function of rows, seed and epoch).
 *
 * The rows of a set, numbered over its parts, fall into blocks of PACE__ORDER_BLOCK consecutive rows. An
 * epoch is a permutation of the whole blocks that depends on (seed, epoch) alone, followed by the rows that
 * are left over. So every worker, thread and restart sees the same rows at the same positions, rows are still
 * read in contiguous runs, and a step of PACE__ORDER_BLOCK rows is one run. (prep has shuffled the rows
 * themselves.)
 *
 * Blocks of another size may be asked for: of 1 row, where the rows beside each other are not to stay
 * together, and each is large enough to be read by itself.
 *
 * Nothing is stored: the permutation is a Feistel network on the block number, walked until it falls inside
 * the range.
 *
 *     pace__order order = pace__order_make(rows, seed, epoch);
 *     for (uint64_t at = 0; at < rows; at += run)
 *         row = pace__order_row(&order, at, &run);   // positions at .. at + run hold rows row .. row + run
 */
#ifndef DATA_STORE_ORDER_H
#define DATA_STORE_ORDER_H

#include <stdint.h>

#define PACE__ORDER_BLOCK 512

typedef struct pace__order {
    uint64_t rows;
    uint64_t block;     /* rows of one */
    uint64_t blocks;    /* whole ones */
    uint64_t key;       /* of the permutation; 0: identity */
    unsigned half_bits; /* the Feistel network works on 2 x half_bits bits */
} pace__order;

pace__order pace__order_make(uint64_t rows, uint64_t seed, uint64_t epoch);

/* The same in blocks of `block` rows instead of PACE__ORDER_BLOCK. */
pace__order pace__order_make_blocks(uint64_t rows, uint64_t block, uint64_t seed, uint64_t epoch);

/* Rows in the order they are stored: for scoring. */
pace__order pace__order_sequential(uint64_t rows);

/* The row at `position` (< rows), and in *run how many positions from there on hold consecutive rows (1 to
 * the size of a block). */
uint64_t pace__order_row(const pace__order *order, uint64_t position, uint64_t *run);

#endif

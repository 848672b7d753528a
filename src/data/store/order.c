#include "data/store/order.h"

#include "base/random.h"

#include <assert.h>

#define ROUNDS 6

static uint64_t feistel(const pace__order *order, uint64_t block)
{
    uint64_t mask = (UINT64_C(1) << order->half_bits) - 1;
    uint64_t left = block >> order->half_bits, right = block & mask;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (pace__mix64(order->key + right * 0x9e3779b97f4a7c15u + round) & mask);

        left = right;
        right = next;
    }
    return left << order->half_bits | right;
}

/* Cycle walking: the network permutes a power of four that is less than 4 times too large. */
static uint64_t block_at(const pace__order *order, uint64_t place)
{
    if (order->key == 0 || place == order->blocks)
        return place;
    do
        place = feistel(order, place);
    while (place >= order->blocks);
    return place;
}

static pace__order make(uint64_t rows, uint64_t block, uint64_t key)
{
    pace__order order = {.rows = rows, .block = block, .blocks = rows / block, .key = key, .half_bits = 1};

    while (order.blocks > UINT64_C(1) << (2 * order.half_bits))
        order.half_bits++;
    return order;
}

pace__order pace__order_make(uint64_t rows, uint64_t seed, uint64_t epoch)
{
    return pace__order_make_blocks(rows, PACE__ORDER_BLOCK, seed, epoch);
}

pace__order pace__order_make_blocks(uint64_t rows, uint64_t block, uint64_t seed, uint64_t epoch)
{
    return make(rows, block, pace__random_at(seed, epoch).state | 1);
}

pace__order pace__order_sequential(uint64_t rows)
{
    return make(rows, PACE__ORDER_BLOCK, 0);
}

uint64_t pace__order_row(const pace__order *order, uint64_t position, uint64_t *run)
{
    assert(position < order->rows);
    uint64_t place = position / order->block, offset = position % order->block;
    uint64_t length = place < order->blocks ? order->block : order->rows % order->block;

    *run = length - offset;
    return block_at(order, place) * order->block + offset;
}

#include "optim/outer.h"

#include <assert.h>

static uint64_t steps_of_all(const pace__outer_side *sides, unsigned count)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < count; i++)
        all += sides[i].steps;
    return all;
}

double pace__outer_gain(const pace__outer_side *sides, unsigned count, uint32_t steps)
{
    uint64_t all = steps_of_all(sides, count);
    double missed = 1; /* by everyone, of a step */

    for (unsigned i = 0; i < count; i++) {
        assert(sides[i].steps <= steps);
        if (sides[i].steps == all) /* it was alone */
            return all > 0 ? 1 : 0;
        missed *= 1 - (double)sides[i].steps / steps;
    }
    return steps * (1 - missed) / (double)all;
}

/* Floats that are merged at a time: their sums stay where they are fast. */
#define BLOCK 64

/* How far `count` floats from `first` on have moved. */
static void find_changes(const pace__outer_side *sides, unsigned workers, float gain, const float *from,
                         size_t first, size_t count, float changes[BLOCK])
{
    for (size_t i = 0; i < count; i++)
        changes[i] = 0;
    for (unsigned side = 0; side < workers; side++) {
        for (size_t i = 0; sides[side].steps > 0 && i < count; i++)
            changes[i] += sides[side].row[first + i] - from[first + i];
    }
    for (size_t i = 0; i < count; i++)
        changes[i] *= gain;
}

static size_t block_at(size_t first, size_t dim)
{
    return dim - first < BLOCK ? dim - first : BLOCK;
}

static void average_state(const pace__outer_side *sides, unsigned count, size_t first, size_t last,
                          float *row)
{
    double all = (double)steps_of_all(sides, count);
    unsigned met = 0;

    for (unsigned i = 0; i < count; i++) {
        float share = (float)(sides[i].steps / all);

        for (size_t at = first; sides[i].steps > 0 && at < last; at++)
            row[at] = met ? row[at] + share * sides[i].row[at] : share * sides[i].row[at];
        met += sides[i].steps > 0;
    }
}

void pace__outer_merge(const pace__outer *outer, const pace__outer_side *sides, unsigned count,
                       uint32_t steps, unsigned dim, unsigned parts, float *row)
{
    float gain = (float)pace__outer_gain(sides, count, steps), changes[BLOCK];
    float *restrict velocity = row + (size_t)parts * dim;

    for (size_t first = 0; first < dim; first += BLOCK) {
        size_t block = block_at(first, dim);

        find_changes(sides, count, gain, row, first, block, changes);
        for (size_t i = 0; i < block; i++) {
            velocity[first + i] = outer->momentum * velocity[first + i] + changes[i];
            row[first + i] += outer->rate * (changes[i] + outer->momentum * velocity[first + i]);
        }
    }
    average_state(sides, count, dim, (size_t)parts * dim, row);
}

void pace__outer_merge_statistics(const pace__outer_side *sides, unsigned count, uint32_t steps, unsigned dim,
                                  float *row)
{
    float gain = (float)pace__outer_gain(sides, count, steps), changes[BLOCK];

    for (size_t first = 0; first < dim; first += BLOCK) {
        size_t block = block_at(first, dim);

        find_changes(sides, count, gain, row, first, block, changes);
        for (size_t i = 0; i < block; i++)
            row[first + i] += changes[i];
    }
}

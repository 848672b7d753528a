/*
 * thinning.h - how sparse a file gets that grows all the time, so that it stays small however long a run lasts.
 *
 * Of what comes all the time one in 2^level is kept. The level is 0 for the first 5 MiB, 1 for the next 5/2, 2 for the next
 * 5/3, and so on: about 20 MiB in all. It depends on the bytes that are there alone, so a resumed run goes on with it.
 */
#ifndef BASE_THINNING_H
#define BASE_THINNING_H

#include <stdint.h>

#define PACE__THINNING_BYTES     ((uint64_t)5 << 20)
#define PACE__THINNING_LEVEL_MAX 30

static inline unsigned pace__thinning_level(uint64_t bytes)
{
    uint64_t room = PACE__THINNING_BYTES;
    unsigned level = 0;

    while (bytes >= room && level < PACE__THINNING_LEVEL_MAX) {
        level++;
        room += PACE__THINNING_BYTES / (level + 1);
    }
    return level;
}

#endif

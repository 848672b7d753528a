/*
 * zipf.h - random ranks 0 .. count - 1 with probabilities proportional to 1 / (rank + 1)^exponent.
 *
 * The first PACE__ZIPF_HEAD ranks have a cell each in an alias table. Behind them each cell is a range of
 * ranks whose ends differ by at most a sixteenth: a rank is drawn evenly from the range and kept with a
 * probability that makes up for the slope, else everything is drawn anew. So sampling is exact (to the 32
 * bits of the table), seldom needs a logarithm, and setting up ten million ranks costs little more than a
 * thousand.
 */
#ifndef GEN_ZIPF_H
#define GEN_ZIPF_H

#include "base/random.h"

#define PACE__ZIPF_HEAD   1024
#define PACE__ZIPF_RANGES 256 /* enough for 2^32 ranks */
#define PACE__ZIPF_CELLS  (PACE__ZIPF_HEAD + PACE__ZIPF_RANGES)

typedef struct pace__zipf {
    double exponent;
    uint32_t head;  /* cells that are one rank */
    uint32_t cells; /* head and ranges */
    struct {
        uint32_t keep; /* the cell itself if 32 random bits are below, else its alias */
        uint32_t alias;
    } table[PACE__ZIPF_CELLS];
    struct {
        uint32_t start, width;
        double sure; /* the smallest probability to be kept in this range, that of its last rank */
    } ranges[PACE__ZIPF_RANGES];
} pace__zipf;

/* 1 <= count < 2^32, 0 < exponent <= 4. */
void pace__zipf_init(pace__zipf *zipf, uint32_t count, double exponent);

/*
 * `choice` is the first draw's 64 random bits; the rare further ones come from `random`. A caller that makes
 * `choice` depend on something else makes the rank depend on it; as long as `choice` is uniform, the rank's
 * distribution stays as it is.
 */
uint32_t pace__zipf_draw(const pace__zipf *zipf, uint64_t choice, pace__random *random);

#endif

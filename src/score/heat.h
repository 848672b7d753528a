/*
 * heat.h - which places of a picture a model looks at: how much less likely its class is when a place is covered.
 * Internal to score.
 *
 *     pace__heat heat;
 *     status = pace__heat_init(&heat, &scorer, 7, log);
 *     status = pace__heat_map(&heat, pixels, class);
 *     ... heat.cells[row * 7 + column] ...
 *     pace__heat_release(&heat);
 *
 * A picture is cut into side x side cells. Each in turn is painted with the picture's mean colour; its cell of the map is
 * the probability of the class in the whole picture, less that in the painted one. What is above 0 speaks for the
 * class, what is below 0 against it.
 */
#ifndef SCORE_HEAT_H
#define SCORE_HEAT_H

#include "score/scorer.h"

#define PACE__HEAT_SIDE_MAX 64

typedef struct pace__heat {
    uint32_t side;
    double *cells; /* (side, side) */
    /* private */
    pace__scorer *scorer;
    pace__rows painted; /* and what it points to */
    size_t rows_max;
    uint8_t *pixels;
    uint16_t *classes;
    uint32_t *source;
    float *logits;
    const pace_log *log;
} pace__heat;

/* PACE_USAGE if pictures have not so many rows or columns of pixels. The scorer must outlive it. */
pace_status pace__heat_init(pace__heat *heat, pace__scorer *scorer, uint32_t side, const pace_log *log);
void pace__heat_release(pace__heat *heat); /* a zeroed one is allowed */

pace_status pace__heat_map(pace__heat *heat, const uint8_t *pixels, uint32_t class);

#endif

/*
 * reader.h - rows of a data set in sample order, read ahead by a thread of its own.
 *
 * The reader walks rows first .. last of an endless sequence: epoch 0 in its order, then epoch 1, and so on. It delivers *pieces*: up to
 * PACE__PIECE_ROWS consecutive positions of one epoch, checked and ready to compute on. A piece holds whole steps (batch rows each; the
 * last step of an epoch is short), or, if a step is larger than a piece, a part of one step. Every consumer gets every piece, in order, and gives
 * it back; a piece is reused when all have. Memory is a few pieces, however large the set.
 *
 *     pace__reader_create(&store, &plan, log, &reader);
 *     while (!(status = pace__reader_next(reader, consumer, &piece)) && piece) {
 *         compute(&piece->rows);
 *         pace__reader_done(reader, consumer);
 *     }
 *     pace__reader_free(reader);
 *
 * What it promises of the rows: ids are at most store.info.ids_seen, labels 0 or 1, starts rise. A damaged data set is
 * PACE_BAD_DATA here, never a wild access later.
 */
#ifndef DATA_READER_H
#define DATA_READER_H

#include "data/store.h"
#include "math/batch.h"

#define PACE__PIECE_ROWS 4096
/* Pieces that must be cut inside a step are cut at a multiple of this. */
#define PACE__PIECE_UNIT 64

typedef struct pace__reader_plan {
    int set;             /* PACE__TRAIN or PACE__TEST */
    bool sequential;     /* stored order instead of a permutation per epoch */
    int64_t seed;
    uint64_t batch;      /* rows in a step */
    uint64_t first, last; /* of the endless sequence: row = epoch * rows of the set + position */
    int consumers;
} pace__reader_plan;

typedef struct pace__piece {
    pace__rows rows;
    uint64_t first; /* place of its first row in the endless sequence */
} pace__piece;

typedef struct pace__reader pace__reader;

/* The store must outlive the reader. `plan->last` - `plan->first` may be 0. */
pace_status pace__reader_create(const pace__store *store, const pace__reader_plan *plan, const pace_log *log,
                                pace__reader **reader);
void pace__reader_free(pace__reader *reader); /* NULL is allowed; may be called before the end */

/* Waits for the consumer's next piece; NULL behind the last one. A read error is returned to every consumer. */
pace_status pace__reader_next(pace__reader *reader, int consumer, const pace__piece **piece);
void pace__reader_done(pace__reader *reader, int consumer);

/* Bytes that a reader of this set will hold. */
uint64_t pace__reader_memory(const pace__store_info *info);

#endif

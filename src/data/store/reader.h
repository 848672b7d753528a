/*
 * reader.h - rows of a data set in sample order.
 *
 * The reader walks rows first .. last of an endless sequence: epoch 0 in its order, then epoch 1, and so on.
 * It delivers *pieces*: consecutive rows of one part that belong to one step (`batch` rows each; the last
 * step of an epoch is short), at most PACE__PIECE_ROWS of them. Of pictures and features, whose order is one
 * of single rows, a piece has rows from anywhere, as many as PACE__PIECE_BYTES hold.
 *
 *     pace__reader_create(&store, &plan, log, &reader);
 *     while (!(status = pace__reader_next(reader, consumer, &piece)) && piece)
 *         compute(&piece->rows);
 *     pace__reader_free(reader);
 *
 * Every consumer, on a thread of its own, gets every piece, in order. When it takes a piece it first reads
 * its share of the next one, an equal part of the rows, into memory that all share: threads that go in step
 * divide the work of reading, and none of them waits for another. A thread of the reader's own asks the disk
 * for what comes further on, so those reads find their pages in memory. Memory is a few pieces, however large
 * the set; of a small one that is passed over more than once, parts are also mapped (mapped.h), so that a store has
 * one such reader at a time.
 *
 * What it promises of the rows: ids are at most store.info.ids_seen, labels 0 or 1, starts rise; of texts,
 * ids are below ids_seen and lengths 1 .. columns; of pictures and features, classes are below
 * encoding.classes and features finite, as values are. A damaged data set is PACE_BAD_DATA, told to every
 * consumer, never a wild access later.
 */
#ifndef DATA_STORE_READER_H
#define DATA_STORE_READER_H

#include "data/store/order.h"
#include "data/store/store.h"
#include "math/batch.h"

#define PACE__PIECE_ROWS PACE__ORDER_BLOCK
/* Of the pixels or features of a piece, unless it is one row. */
#define PACE__PIECE_BYTES ((uint64_t)16 << 20)

typedef struct pace__reader_plan {
    int set;         /* PACE__TRAIN, ... */
    bool sequential; /* stored order instead of a permutation per epoch */
    int64_t seed;
    uint64_t batch;       /* rows in a step */
    uint64_t first, last; /* of the endless sequence: row = epoch * rows of the set + position */
    int consumers;
    /* Which rows of first .. last are walked; NULL: all. Moves *place on to the next one that is, or to `last`, and returns
     * where the stretch that it begins ends. Called on several threads, by each with rising places: consumer 0 ..
     * `consumers` - 1, and `consumers` for what asks the disk. */
    uint64_t (*stretch)(void *user, int consumer, uint64_t *place);
    void *user;
} pace__reader_plan;

typedef struct pace__piece {
    pace__rows rows;
    uint64_t first; /* place of its first row in the endless sequence */
} pace__piece;

typedef struct pace__reader pace__reader;

/* The store must outlive the reader. `plan->last` - `plan->first` may be 0. */
pace_status pace__reader_create(const pace__store *store, const pace__reader_plan *plan, const pace_log *log,
                                pace__reader **reader);
void pace__reader_free(pace__reader *reader); /* NULL is allowed; no consumer may be at it */

/* The consumer's next piece, valid until its next call; NULL behind the last one. */
pace_status pace__reader_next(pace__reader *reader, int consumer, const pace__piece **piece);

/* Rows of a piece at most: 1 .. PACE__PIECE_ROWS, fewer than that only of large pictures and features. */
uint64_t pace__piece_rows(const pace__store_info *info);

/* Bytes that a reader of this set holds. */
uint64_t pace__reader_memory(const pace__store_info *info, int consumers);

#endif

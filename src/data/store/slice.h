/*
 * slice.h - any stretch of the sample order, read into memory of the caller's own.
 *
 * Where a reader (reader.h) walks the whole order and shares pieces between threads, a slice is what one
 * worker of many needs: the rows first .. first + count of the endless sequence (epoch after epoch), no
 * others. A stretch may cross blocks and parts, but not the end of an epoch. The same promises hold for the
 * rows. A slice belongs to one thread; any number of slices may read one store.
 *
 *     pace__slice_init(&slice, &store, PACE__TRAIN, seed, rows_max, log);
 *     status = pace__slice_read(&slice, first, count);     // slice.rows, until the next read
 *     pace__slice_ask(&slice, next_first, next_count);     // the disk may fetch these meanwhile
 *     pace__slice_release(&slice);
 */
#ifndef DATA_STORE_SLICE_H
#define DATA_STORE_SLICE_H

#include "data/store/fetch.h"
#include "math/batch.h"

typedef struct pace__slice {
    pace__rows rows;
    uint64_t first; /* place of its first row in the endless sequence */
    /* private */
    pace__fetch fetch;
    pace__walk at;
    uint64_t rows_max;
    uint64_t entries, entries_max; /* read so far, and room for them; grows for rows without columns */
    uint64_t *start;               /* (rows_max + 1), or NULL with columns */
    pace__into into;               /* (entries_max) and (rows_max) */
    void *memory;                  /* of the entries */
    unsigned cold;                 /* not 0: one of the last reads waited for the disk, asking ahead pays */
} pace__slice;

/* Room for rows_max rows, or for the whole set if it has fewer. Store and log must outlive the slice. */
pace_status pace__slice_init(pace__slice *slice, const pace__store *store, int set, int64_t seed,
                             uint64_t rows_max, const pace_log *log);
void pace__slice_release(pace__slice *slice); /* a zeroed one is allowed */

/*
 * count is 0 .. rows_max. Allocates only if rows without columns need more room than any before. After a
 * failure the slice has no rows, and may be read again.
 */
pace_status pace__slice_read(pace__slice *slice, uint64_t first, uint64_t count);

/* Of texts, the lengths of any stretch of rows, without the rows; the slice's own stay. */
pace_status pace__slice_lengths(const pace__slice *slice, uint64_t first, uint64_t count, uint32_t *length);

/* Asks the disk for rows that will be read soon, if reads have been slow; does not wait for them. */
void pace__slice_ask(const pace__slice *slice, uint64_t first, uint64_t count);

/* Bytes that a slice of that many rows of this set holds, for rows of average length. */
uint64_t pace__slice_memory(const pace__store_info *info, uint64_t rows_max);

#endif

/*
 * sums.h - a checksum for every few rows of a part: rows that are no longer what prep has written are noticed
 * where they are read. Internal to data, and for those who write parts.
 *
 * The rows of a set, numbered over its parts, fall into *blocks* of pace__sum_rows rows; parts cut them. Each
 * part has in the array `sums` of a group one number for each of its blocks: XXH3 (64 bits) of the XXH3 of
 * each array's share of the block, in the order of store.h; of indptr, the lengths of the rows.
 *
 *     pace__sums_put(&info, &part, PACE__TRAIN, &written, &into, log);     // behind the rows themselves
 *     pace__sums_check(&fetch, &run, &into);                               // on the way to whoever computes
 *
 * 1. A sum depends on its rows alone: not on who wrote them, in what pieces, or where they lie in the file.
 * 2. Whoever gets a row has it from a block that this process has compared with its sum, once, when it first
 *    read a row of it. Later reads of it cost the look at a bit, and of a part that is not mapped (mapped.h) at the
 *    file's time; if somebody asked to write to the part, or has written, they are compared every time.
 * 3. Blocks divide those that the sample order keeps together (order.h): most reads are of whole blocks, which
 *    are summed where they came to lie. Of a block that is read in part, the rest is read for its sum alone.
 * 4. A sum is 64 bits, for accidents. checksums.json leaves sums out: a damaged one is found with its rows.
 */
#ifndef DATA_STORE_SUMS_H
#define DATA_STORE_SUMS_H

#include "base/cpu.h"
#include "data/store/fetch.h"
#include "data/store/store.h"

/* Rows of a block: a few kilobytes of most sets, so that workers who read a few rows each of a step do not read
 * the whole set for them. */
#define PACE__SUM_ROWS 64

/* Pictures and features are read one by one, and each has its own. */
static inline uint32_t pace__sum_rows(const pace__encoding *encoding)
{
    return pace__has_classes(encoding) ? 1 : PACE__SUM_ROWS;
}

/* How many blocks of a set a part has. */
uint64_t pace__sum_blocks(const pace__encoding *encoding, const pace__part_set *set);

/* --- writing --- */

/* Rows of one part of a set that are in memory and in the file. */
typedef struct pace__written {
    uint64_t row, rows; /* in the part */
    uint64_t since;     /* rows since .. row are in the file, too, by the same thread; not behind `row` */
} pace__written;

/*
 * Sums the blocks that end among these rows. A block that begins before `since` is left out: who has seen to it
 * that all its rows are there calls pace__sums_again.
 */
pace_status pace__sums_put(const pace__store_info *info, const pace__part *part, int set,
                           const pace__written *written, const pace__into *from, const pace_log *log);

/* Sums the blocks that have any of these rows, from the file. */
pace_status pace__sums_again(const pace__store_info *info, const pace__part *part, int set, uint64_t row,
                             uint64_t rows, const pace_log *log);

/* --- reading --- */

/* Of a set that has few enough, all sums are kept in memory: rows are read in random order, and a read for eight sums costs
 * half of what summing their rows does. */
#define PACE__SUMS_KEPT_BYTES ((uint64_t)16 << 20)
void pace__sums_keep(pace__store *store);

/* What that takes, at the most. */
uint64_t pace__sums_memory(const pace__store_info *info);

/* Of rows that were just read. PACE_BAD_DATA names the part and the rows. A set without sums is PACE_OK. */
pace_status pace__sums_check(const pace__fetch *self, const pace__run *run, const pace__into *into);

/* Of all rows of a part, or of all parts, which are read for it. PACE_INTERRUPTED in silence if *stop is not 0; `stop` may be NULL. */
pace_status pace__sums_check_part(const pace__store_info *info, const pace__part *part,
                                  const _Atomic int *stop, const pace_log *log);
pace_status pace__sums_check_all(const pace__store *store, const pace_log *log);

/* --- what a whole set holds --- */

/*
 * One number for all of it: the sums of its training and test rows, in the order of its parts, and how they are encoded.
 * Two sets that differ in a label differ in it; so do the same rows in another number of parts. 0: some rows have no
 * sums, or cannot be read, which is told when they are.
 */
uint64_t pace__store_content(const pace__store *store);

/*
 * The name of what a part holds: 128 bits of its size, its checksum in checksums.json and the sums of its rows, so that
 * parts of the same name have the same rows in the same places, wherever they lie and whenever they were written. False:
 * something has no sum, or cannot be read.
 */
bool pace__part_content(const pace__store *store, uint32_t index, char hex[PACE__XXH3_HEX]);

/* --- XXH3: the same numbers by every set of kernels --- */

typedef struct pace__xxh3_kernels {
    uint64_t (*sum)(const void *bytes, size_t size);
} pace__xxh3_kernels;

PACE__TABLES(pace__xxh3_kernels, pace__xxh3)

#endif

/*
 * mapped.h - the parts of a data set in memory, without a copy, as long as nobody wants to write to them. Internal
 * to data.
 *
 *     pace__mapped *mapped = pace__mapped_open(&store);                // NULL: there is nothing that it could do
 *     if (!pace__mapped_copy(mapped, part, into, bytes, at))
 *         pread(part->fd, into, bytes, at);
 *     pace__mapped_look(mapped);                                      // a few times a second, from any thread
 *     pace__mapped_close(mapped);
 *
 * 1. A part is mapped under a read lease: who opens it for writing, or cuts it, waits until it is let go, which a
 *    copy or a look does when it hears of it. From then on it is read as usual, and its rows are compared with their
 *    sums every time (sums.h). The kernel waits for /proc/sys/fs/lease-break-time, 45 seconds; docs/decisions/0041
 *    says what is left for a process that was stopped for longer.
 * 2. Only what is in memory is copied: a disk that fails is an error of pread, not a signal.
 * 3. Whoever gets rows has a copy, and what is checked is that: nobody can change it any more.
 * 4. Where leases mean nothing or are not given (file systems of other machines, other people's files, files that are
 *    open for writing), nothing is mapped; nor are sets larger than PACE__MAPPED_BYTES_MAX, since what is mapped counts
 *    as memory of the process.
 */
#ifndef DATA_STORE_MAPPED_H
#define DATA_STORE_MAPPED_H

#include "data/store/store.h"

#define PACE__MAPPED_BYTES_MAX ((uint64_t)1 << 30)
/* A look so often is often enough: this is what a writer waits, at the most. */
#define PACE__MAPPED_LOOK_NS 100000000

typedef struct pace__mapped pace__mapped;

/* The store must outlive it, and have only one at a time. */
pace__mapped *pace__mapped_open(const pace__store *store);
void pace__mapped_close(pace__mapped *mapped); /* NULL is allowed; no thread may be at it */

/* False: nothing was copied, read it. `mapped` may be NULL. Threads may call it at the same time. */
bool pace__mapped_copy(pace__mapped *mapped, const pace__part *part, void *into, size_t bytes, uint64_t at);

/* Lets go of all parts that somebody waits for. */
void pace__mapped_look(pace__mapped *mapped);

/* Whether the part was let go: somebody may be writing to it. `mapped` may be NULL. */
bool pace__mapped_lost(const pace__mapped *mapped, const pace__part *part);
/* Whether it is mapped: nobody has written to it since. `mapped` may be NULL. */
bool pace__mapped_holds(const pace__mapped *mapped, const pace__part *part);

#endif

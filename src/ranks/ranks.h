/*
 * ranks.h - what all ranks of a job do together: meet, tell each other, hear from rank 0.
 *
 * Every rank calls the same functions in the same order. Buffers are the callers' again when a function
 * returns. Failures are those of net/link.h. Messages have a tag of their own, so that whatever else ranks send
 * each other is not taken for one of these.
 */
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include "net/link.h"

#define PACE__RANKS_MAX 1024
#define PACE__TAG_RANKS (PACE__LINK_TAGS_MAX - 1)

/* all: (size x ranks) in the order of the ranks; filled on rank 0 only, elsewhere it may be NULL. */
pace_status pace__ranks_gather(pace__link *link, const void *mine, size_t size, void *all);

/* Rank 0's bytes, to all. */
pace_status pace__ranks_share(pace__link *link, void *bytes, size_t size);

/* Everyone's, to all: gather, then share. */
pace_status pace__ranks_exchange(pace__link *link, const void *mine, size_t size, void *all);

/* Nobody goes on before all are here. What anyone has written to memory or files before is there for all. */
pace_status pace__ranks_meet(pace__link *link);

/* One message to one rank, and the other end of it; `what`: what is waited for. *got is how much has come; of one that is
 * received whole that is `size`, or the link has failed. */
pace_status pace__ranks_send(pace__link *link, int to, const void *bytes, size_t size, const char *what);
pace_status pace__ranks_receive(pace__link *link, int from, void *bytes, size_t capacity, const char *what,
                                size_t *got);
pace_status pace__ranks_receive_whole(pace__link *link, int from, void *bytes, size_t size, const char *what);

#endif

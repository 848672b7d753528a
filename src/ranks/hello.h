/*
 * hello.h - the first word between the ranks of a job: is everyone the same program, with the same job?
 *
 * Structs travel between ranks as they are, and results are the same bytes on any number of ranks only if all
 * of them do the same. So every rank first tells rank 0 its version, its host, and its job as words:
 *
 *     mode=ps-sync workers=4 batch=512 seed=1 data-rows=90000
 *
 * Words are "name=value", separated by blanks, in an order that all ranks have in common: first what everyone
 * knows, then what only some do. Whoever knows less, a parameter server that sees no data set say, ends its
 * list early. Rank 0 compares, the version first, and names the first word that differs:
 *
 *     worker2 (rank 2, host c) has another job: seed=2 there, seed=1 on the chief; start all ranks with the same
 *     options and the same data set
 */
#ifndef RANKS_HELLO_H
#define RANKS_HELLO_H

#include "ranks/rank.h"

/* More words than this cannot be compared: PACE_USAGE. */
#define PACE__WORDS_BYTES_MAX ((size_t)16 << 20)

/*
 * To be called by all ranks, before they send each other anything else. `what`: what must be the same besides
 * the options, "data set". Another program or job is PACE_USAGE, said by rank 0. Afterwards everyone knows the
 * host of everyone, and messages name it.
 */
pace_status pace__rank_greet(pace__rank *self, const char *words, const char *what);

/* Compares two lists as far as the shorter one goes. If they differ, *word is where the first word that does
 * begins, which is the same place in both. */
bool pace__words_agree(const char *own, const char *theirs, size_t *word);

#endif

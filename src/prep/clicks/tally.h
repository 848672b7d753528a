/*
 * tally.h - how often ids below 2^32 - 1 occurred: a hash table, and an array once that is the smaller of the two.
 */
#ifndef PREP_CLICKS_TALLY_H
#define PREP_CLICKS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pace__tally {
    uint64_t limit;  /* ids are below it */
    uint64_t *slots; /* (1 << bits) id + 1 above, its count below; 0: free */
    unsigned bits;
    size_t used;
    uint32_t *counts; /* (limit) instead of slots */
} pace__tally;

/* Makes room for 2^bits / 2 ids. False: out of memory. */
bool pace__tally_init(pace__tally *tally, uint64_t limit, unsigned bits);
void pace__tally_release(pace__tally *tally);

/* Adds to the count of an id; what has no room left grows. False: out of memory. */
bool pace__tally_add(pace__tally *tally, uint64_t id, uint32_t count);
/* Calls for every id that was counted, in any order. */
typedef void pace__tally_visitor(void *arg, uint64_t id, uint32_t count);
void pace__tally_visit(const pace__tally *tally, pace__tally_visitor *visitor, void *arg);

#endif

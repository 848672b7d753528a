/*
 * near.h - parts of which there may be a nearer copy: what readers see of it. Internal to data. Who makes copies (stage.h) lets
 * pace__part.near point to one of these, and hears of those that are given up.
 *
 * A copy is a pace__part like the one that it is a copy of: the same bytes in another file, so everything lies in the same
 * places. Who reads rows asks for the nearest one, run by run:
 *
 *     part = pace__nearest(part);                     // the copy, if there is one by now
 *     if (part->source && failed)
 *         pace__near_give_up(part, status);           // and reads pace__part_itself(part)
 *
 * 1. Rows of a copy are compared with their sums by every process when it first reads them, as those of the part itself
 *    are (sums.h): what was compared in one file says nothing about the other.
 * 2. A copy that was given up is never the nearest again, but stays open until the stage is closed: others may be reading.
 * 3. What decides about other rows, where they begin (indptr) or whose they are (lengths of texts), is read from the part
 *    itself: sums tell of it only when all is read, and then nothing could be taken back. It counts as read from there.
 */
#ifndef DATA_STORE_NEAR_H
#define DATA_STORE_NEAR_H

#include "data/store/store.h"

typedef struct pace__near {
    _Atomic(const pace__part *) copy; /* NULL: there is none, or no longer */
    void (*given_up)(void *owner, const pace__part *copy, pace_status why); /* by whichever thread reads */
    void *owner;
    /* Bytes of rows, and of what decides about them, by this process. */
    atomic_uint_fast64_t read_near, read_source;
} pace__near;

static inline const pace__part *pace__nearest(const pace__part *part)
{
    const pace__part *copy =
        part->near ? atomic_load_explicit(&part->near->copy, memory_order_acquire) : NULL;

    return copy ? copy : part;
}

static inline const pace__part *pace__part_itself(const pace__part *part)
{
    return part->source ? part->source : part;
}

/* Bytes were read from this one. */
static inline void pace__near_count(const pace__part *part, uint64_t bytes)
{
    pace__near *near = pace__part_itself(part)->near;

    if (near)
        atomic_fetch_add_explicit(part->source ? &near->read_near : &near->read_source, bytes,
                                  memory_order_relaxed);
}

/* The copy cannot be read, or holds something else: nobody is sent to it any more. */
static inline void pace__near_give_up(const pace__part *copy, pace_status why)
{
    pace__near *near = copy->source->near;
    const pace__part *expected = copy;

    if (atomic_compare_exchange_strong(&near->copy, &expected, NULL))
        near->given_up(near->owner, copy, why);
}

#endif

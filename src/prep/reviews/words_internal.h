/*
 * words_internal.h - a counter from inside: for words*.c, and for their tests.
 *
 * Words are in two arrays. The arena holds a record for each, one behind the other in the order of their
 * local ids, stop words first. The table finds them: open addressing, the top bits of the hash choose the
 * slot, so that a walk over it meets the words nearly in the order of their hashes (words_spill.c).
 */
#ifndef PREP_REVIEWS_WORDS_INTERNAL_H
#define PREP_REVIEWS_WORDS_INTERNAL_H

#include "base/cpu.h"
#include "prep/reviews/words.h"

/* The arena's unit, in which slots count. */
#define PACE__ARENA_UNIT 8
/* Bytes of a record's text at least: words of fewer are compared at once. */
#define PACE__WORD_SHORT 16
/* Behind the last slot, for whoever looks at several. */
#define PACE__SLOTS_BEHIND 8
/* Instead of a local id. */
#define PACE__RECORD_STOP (UINT32_C(1) << 31)

/* A slot finds a word's record. The tag is the bits of its hash that choose no slot; no record is at 0. */
typedef struct pace__slot {
    uint32_t tag;
    uint32_t at; /* in units of the arena */
} pace__slot;

/* Behind its spelling is a zero at least, and zeros up to a whole unit, and to PACE__WORD_SHORT bytes. */
typedef struct pace__record {
    uint32_t count;
    uint32_t id; /* local; PACE__RECORD_STOP for all stop words */
    char text[];
} pace__record;

typedef struct pace__words_kernels {
    /*
     * found[i] is where the record of a word with the hash is, as far as its first slots tell, and anything else if it is
     * not in those: a tag that fits is nearly always the word's, but whoever asks has to compare. Records are on their way
     * into the cache afterwards.
     */
    void (*find)(const pace__word_counter *counter, const uint64_t *hashes, size_t count, uint32_t *found);
} pace__words_kernels;

PACE__TABLES(pace__words_kernels, pace__words)

struct pace__word_counter {
    const pace_log *log;
    const pace__words_kernels *kernels;
    char *directory, *name;
    size_t memory;
    bool oversized; /* there is more, for a single text */
    /* What grows: the part of the table in use doubles, the arena fills up. Both have memory for all. */
    pace__slot *table;
    unsigned bits, bits_max;
    char *arena;
    size_t used, arena_bytes;
    uint32_t stop_count;
    size_t stop_end;        /* records of stop words are in front of this one */
    uint32_t distinct;      /* of this generation, without stop words */
    uint64_t in_generation; /* words counted, so that no count can overflow */
    bool finished;
    pace__word_stats stats; /* generations: files written */
};

static inline pace__record *pace__record_at(const pace__word_counter *counter, size_t unit)
{
    return (pace__record *)(counter->arena + unit * PACE__ARENA_UNIT);
}

/* All words of this generation are in its file afterwards. */
pace_status pace__words_spill(pace__word_counter *counter);

#endif

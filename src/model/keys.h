/*
 * keys.h - which parameters some rows need, each once, and those rows written in terms of that list.
 *
 * A worker that holds no parameters asks for those of its rows: the *keys*, the distinct ids in order of
 * first occurrence. The rows are then rewritten: each id becomes its *slot*, the place of its key in the
 * list, so that the kernels of logreg.h run on a small array of weights, slot by slot, instead of on the
 * whole model.
 *
 *     pace__keys_find(&finder, &rows, &batch);                // batch.keys, batch.count, batch.rows
 *     weights[slot] = ...                                     // fetched by key, batch.count of them
 *     pace__logreg_view_set(&view, weights, batch.count);
 *     dots, gradient                                          // logreg.h, on &view and &batch.rows
 *     pace__keys_accumulate(&batch, first, count, gradient, sums);
 *
 * Slot 0 is always the bias; its key is `ids` (the number that means "never seen in training" in rows: it has
 * no weight of its own, so the number is free). Entries with that id get the slot `count`: its weight must be
 * 0, its sum means nothing. So arrays by slot have count + 1 elements. Keys are below or equal to `ids`, none
 * occurs twice.
 *
 * The finder remembers for every id where it was last seen, as base + slot. `base` is larger than everything
 * that earlier batches left behind, so nothing has to be cleared between two batches; only when base runs
 * out of 32 bits is the whole array set to 0.
 */
#ifndef MODEL_KEYS_H
#define MODEL_KEYS_H

#include "base/cpu.h"
#include "math/batch.h"

#include <paceline/log.h>
#include <stdbool.h>

typedef struct pace__keys_kernels pace__keys_kernels;

/* Shared by all batches of a worker; one thread at a time. */
typedef struct pace__key_finder {
    uint32_t ids;
    const pace__keys_kernels *kernels;
    /* private */
    uint32_t base;     /* 1 or more */
    uint32_t *slot_of; /* (ids + 1) base + slot, or below base: not in this batch; [ids]: PACE__UNSEEN */
} pace__key_finder;

/* What find() made of some rows. */
typedef struct pace__key_batch {
    pace__rows rows; /* ids are slots; labels, values and starts are those of the rows given */
    uint32_t count;  /* keys */
    uint32_t *keys;  /* (keys_max) */
    size_t keys_max;
    uint32_t *slots; /* (entries_max) what rows.ids points to */
    size_t entries_max;
} pace__key_batch;

/* `plain` takes the plain kernels, which give the same keys and slots. */
pace_status pace__key_finder_init(pace__key_finder *finder, uint32_t ids, bool plain, const pace_log *log);
void pace__key_finder_release(pace__key_finder *finder); /* a zeroed one is allowed */

/* Room for rows of so many entries in all. Rows without columns have their entries at start[0] ..
 * start[rows], and so have their slots: entries_max counts from 0. grow() does nothing where there is room,
 * else the batch is emptied; when it fails, the batch is as released. */
pace_status pace__key_batch_init(pace__key_batch *batch, uint32_t ids, size_t entries_max,
                                 const pace_log *log);
pace_status pace__key_batch_grow(pace__key_batch *batch, uint32_t ids, size_t entries_max,
                                 const pace_log *log);
void pace__key_batch_release(pace__key_batch *batch); /* a zeroed one is allowed */

void pace__keys_find(pace__key_finder *finder, const pace__rows *rows, pace__key_batch *batch);

/*
 * The same for rows of text: the keys are the distinct words of all rows, padding left out, and there is no
 * bias. The slots of padding are not set.
 */
void pace__keys_find_words(pace__key_finder *finder, const pace__rows *rows, pace__key_batch *batch);

/* sums[slot] += gradient[i] (x value) over the entries of rows first .. first + count in row order;
 * sums[0] += gradient[i]. */
void pace__keys_accumulate(const pace__key_batch *batch, size_t first, size_t count, const float *gradient,
                           float *sums);

/* --- the kernels behind --- */

/* What slot_of holds for "unseen": never below base, and larger than any slot. */
#define PACE__UNSEEN UINT32_MAX

/* Entries ahead of the one being looked up whose slot_of is fetched. */
#define PACE__KEYS_AHEAD 512

/* A search under way. Kernels copy it, so that the compiler may keep it in registers. */
typedef struct pace__key_search {
    uint32_t *slot_of;
    uint32_t base;
    uint32_t *keys;
    uint32_t count;
    bool unseen; /* some entry is; its slot is PACE__UNSEEN - base until the end */
} pace__key_search;

/* The slot of an id, which becomes a key if it is new. There is no branch: which ids are new is hard to
 * predict. keys[count] is written in any case. */
static inline uint32_t pace__key_slot(pace__key_search *search, uint32_t id)
{
    uint32_t known = search->slot_of[id], next = search->base + search->count;
    uint32_t fresh = known < search->base;

    known += (next - known) & -fresh;
    search->slot_of[id] = known;
    search->keys[search->count] = id;
    search->count += fresh;
    return known - search->base;
}

struct pace__keys_kernels {
    /* slots[i] for ids[i], `entries` of them. */
    void (*find)(pace__key_search *search, const uint32_t *ids, size_t entries, uint32_t *slots);
};

PACE__TABLES(pace__keys_kernels, pace__keys)

#endif

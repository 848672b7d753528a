/*
 * idmap.h - which ids occur, how often, and the compact number of each.
 *
 * Training rows touch few of the possible ids (2 of 33.76 million in 2 million Criteo-shaped rows), and a few
 * of those carry nearly all accesses. Numbering the ids that occur by frequency makes the weight array small
 * and keeps its hot part in cache.
 *
 * While rows are read, any thread calls pace__idmap_add and pace__idmap_count_hits. pace__idmap_number then
 * gives each id its number, and pace__idmap_find maps. Ids below a limit that memory sets live in arrays (a bit
 * each for "occurs"; 8 for its count, with the carries of few in a tally.h; a number for those that occur,
 * ranks.h); ids above it in a locked hash table, slower but without limit to the id itself. Frequencies are
 * counted on a sample of the rows: the order needs no more.
 *
 * The numbering depends only on the set of (id, count) pairs, so neither on threads nor on processes: of several
 * that read rows, each has a map of its own. Whoever merges what all others have saved numbers the ids as they
 * would; or it adopts the numbering of one that has.
 */
#ifndef PREP_CLICKS_IDMAP_H
#define PREP_CLICKS_IDMAP_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pace__idmap pace__idmap;

/* `features`: the size of the id space, or 0 if unknown. `memory` bounds the arrays and, as much again, the
 * hash table. `few`: most ids will not occur, so that the arrays are better off in small pages. */
pace_status pace__idmap_create(uint64_t features, size_t memory, bool few, const pace_log *log,
                               pace__idmap **map);
void pace__idmap_free(pace__idmap *map); /* NULL is allowed */

/*
 * Each thread notes ids in arrays of its own, so that no atomics are needed. What it has noted becomes part of the map
 * when it is handed in, which is once.
 */
typedef struct pace__idmap_notes pace__idmap_notes;

pace_status pace__idmap_open_notes(const pace__idmap *map, pace__idmap_notes **notes);
pace_status pace__idmap_hand_in(pace__idmap *map, pace__idmap_notes *notes);
void pace__idmap_free_notes(const pace__idmap *map, pace__idmap_notes *notes); /* NULL is allowed */

/* Notes that the ids occur. */
pace_status pace__idmap_add(pace__idmap *map, pace__idmap_notes *notes, const uint64_t *ids, size_t count);
/* Counts them: for rows of the sample that frequencies are taken from. Whoever calls it adds the ids as well, before or after. */
pace_status pace__idmap_count_hits(pace__idmap *map, pace__idmap_notes *notes, const uint64_t *ids,
                                   size_t count);

/*
 * Numbers the ids: first by range (range i is range_start[i] .. range_start[i + 1], `ranges` of them; 0: all
 * ids are one range), then by falling frequency, then by rising id.
 */
pace_status pace__idmap_number(pace__idmap *map, const uint64_t *range_start, size_t ranges);

/* Writes the ids that occur, with their counts, to a file, for another process to merge. Before numbering. */
pace_status pace__idmap_save(const pace__idmap *map, const char *path);
/* Adds what such a file holds, as if its rows had been read here. Nobody else uses the map meanwhile. */
pace_status pace__idmap_merge(pace__idmap *map, const char *path);

/* Instead of number: takes over an existing numbering. Ids that were added are among its ids. */
pace_status pace__idmap_adopt(pace__idmap *map, const uint64_t *original, uint32_t count);

uint32_t pace__idmap_count(const pace__idmap *map);
const uint64_t *pace__idmap_original(const pace__idmap *map);

/* The numbers of ids; pace__idmap_count(map) for those that do not occur. Returns how many of those there
 * were. */
size_t pace__idmap_find(const pace__idmap *map, const uint64_t *ids, size_t count, uint32_t *numbers);

#endif

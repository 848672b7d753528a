/*
 * ids.h - which place an id has in a list of rising ones: what turns original ids into the keys of a model.
 *
 *     pace__id_index index;
 *     status = pace__id_index_init(&index, loaded.ids, loaded.count, log);
 *     uint32_t key = pace__id_place(&index, id);               // index.count: it is not listed
 *     pace__id_index_release(&index);
 */
#ifndef MODEL_IDS_H
#define MODEL_IDS_H

#include "math/dataset.h"

#include <paceline/log.h>
#include <stdint.h>

typedef struct pace__id_index {
    const uint64_t *ids; /* the caller's, which stay in place */
    uint32_t count;
    /* private */
    uint32_t *first; /* the first place whose id, shifted, is at least so much: neighbours are few */
    unsigned shift;
} pace__id_index;

pace_status pace__id_index_init(pace__id_index *index, const uint64_t *ids, uint32_t count,
                                const pace_log *log);
void pace__id_index_release(pace__id_index *index); /* a zeroed one is allowed */

uint32_t pace__id_place(const pace__id_index *index, uint64_t id);

/* The places of ids by rising id, `count` of them, to be freed: the order in which files list them. */
pace_status pace__ids_order(const uint64_t *ids, uint32_t count, uint32_t **order, const pace_log *log);

/* The same of what a file lists: `own` ids of the data set, and those that are carried along. */
pace_status pace__ids_order_all(const pace__origin *origin, uint32_t own, uint32_t **order,
                                const pace_log *log);

/* Of a file: PACE_BAD_DATA if they do not rise, or are not below `features`. */
pace_status pace__ids_check(const uint64_t *ids, uint32_t count, uint64_t features, const char *path,
                            const pace_log *log);

#endif

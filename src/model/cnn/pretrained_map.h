/*
 * pretrained_map.h - a name map: a text of lines "OURS THEIRS", both names of tensors. Empty lines and lines
 * that begin with # say nothing.
 */
#ifndef MODEL_CNN_PRETRAINED_MAP_H
#define MODEL_CNN_PRETRAINED_MAP_H

#include <paceline/log.h>
#include <stddef.h>

#define PACE__NAME_MAP_BYTES_MAX ((size_t)1 << 20)
#define PACE__NAME_MAP_PAIRS_MAX 1024

typedef struct pace__name_pair {
    const char *ours, *theirs;
    unsigned line;
} pace__name_pair;

typedef struct pace__name_map {
    size_t count;
    pace__name_pair *pairs;
    /* private */
    char *text;
} pace__name_map;

/* PACE_BAD_DATA with the line: one that is no pair, or a name of ours that was there before. */
pace_status pace__name_map_read(const char *path, const pace_log *log, pace__name_map *map);
void pace__name_map_release(pace__name_map *map); /* a zeroed one is allowed */

/* NULL: nothing is said about it. */
const pace__name_pair *pace__name_map_find(const pace__name_map *map, const char *ours);

#endif

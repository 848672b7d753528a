/*
 * span_pack.h - all spans of a recorder as one message, from the rank that has recorded them to the one that writes the
 * profile; also within one process.
 *
 *     pace__span_pack *pack = pace__spans_pack(spans);                   // here
 *     ... pack, pack->bytes ...                                          // to there
 *     status = pace__span_pack_check(pack, bytes, ranks, name, log);     // and only then it is read
 *     for (uint32_t i = 0; i < pack->tracks; i++)
 *         for (each of pace__packed_track(pack, i)->spans)
 *
 * 1. A pack is one piece of memory: the head, tracks, spans, texts. Numbers in it are checked before they are used:
 *    what has passed pace__span_pack_check can be read without a thought.
 * 2. Spans of a track are in the order of their beginnings, and nest. What was under way has ended when it was packed.
 * 3. Times are those of the clock of the process that has packed it.
 */
#ifndef WATCH_SPAN_PACK_H
#define WATCH_SPAN_PACK_H

#include "watch/spans.h"

#include <paceline/log.h>

/* More than any recorder can have. */
#define PACE__PACK_BYTES_MAX  ((uint64_t)1 << 30)
#define PACE__PACK_TRACKS_MAX 1024
#define PACE__PACK_DEPTH_MAX  64

typedef struct pace__packed_span {
    uint64_t begin_ns, end_ns;
    uint64_t flops, bytes;
    uint32_t name, shape; /* places in the texts; that of "": none */
    int32_t peer;
    uint32_t depth;
} pace__packed_span;

typedef struct pace__packed_track {
    char label[PACE__SPAN_LABEL];
    uint64_t first, count; /* of the spans */
    uint64_t dropped;
} pace__packed_track;

typedef struct pace__span_pack {
    uint64_t mark; /* what it is */
    uint64_t bytes;
    uint64_t refused; /* threads for which there was no track */
    uint32_t tracks, texts_bytes;
    uint64_t spans;
} pace__span_pack;

/* To be freed; NULL when out of memory. */
pace__span_pack *pace__spans_pack(pace__spans *spans);

/* PACE_BAD_DATA, with a message that names whose it is, unless it is a pack of a job of so many ranks. */
pace_status pace__span_pack_check(const pace__span_pack *pack, size_t bytes, int ranks, const char *whose,
                                  const pace_log *log);

static inline const pace__packed_track *pace__packed_tracks(const pace__span_pack *pack)
{
    return (const pace__packed_track *)(pack + 1);
}

static inline const pace__packed_span *pace__packed_spans(const pace__span_pack *pack)
{
    return (const pace__packed_span *)(pace__packed_tracks(pack) + pack->tracks);
}

static inline const char *pace__packed_text(const pace__span_pack *pack, uint32_t place)
{
    return (const char *)(pace__packed_spans(pack) + pack->spans) + place;
}

#endif

#include "watch/span_pack.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MARK UINT64_C(0x316e617073636170) /* "pacspan1" */

/* Texts by their addresses. More than TEXTS_MAX different ones are "". */
#define TEXTS_MAX   4096
#define TEXTS_SLOTS (2 * TEXTS_MAX)

typedef struct text_map {
    const char *text[TEXTS_SLOTS];
    uint32_t place[TEXTS_SLOTS];
    uint32_t count, bytes; /* place 0 is "" */
} text_map;

/* --- packing --- */

static size_t slot_of(const text_map *map, const char *text)
{
    size_t slot = (size_t)(((uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % TEXTS_SLOTS;

    while (map->text[slot] && map->text[slot] != text)
        slot = (slot + 1) % TEXTS_SLOTS;
    return slot;
}

static uint32_t place_of(text_map *map, const char *text)
{
    if (!text)
        return 0;
    size_t slot = slot_of(map, text);

    if (!map->text[slot] && map->count < TEXTS_MAX) {
        map->text[slot] = text;
        map->place[slot] = map->bytes;
        map->bytes += (uint32_t)strlen(text) + 1;
        map->count++;
    }
    return map->text[slot] ? map->place[slot] : 0;
}

/* Counts are read once: threads may go on. */
typedef struct counts {
    size_t tracks, spans;
    size_t *of; /* (tracks) */
} counts;

static bool count_spans(pace__spans *spans, counts *found)
{
    found->tracks = pace__spans_tracks(spans);
    found->spans = 0;
    found->of = calloc(found->tracks + 1, sizeof *found->of);
    for (size_t i = 0; found->of && i < found->tracks; i++) {
        found->of[i] = atomic_load_explicit(&pace__spans_track(spans, i)->count, memory_order_acquire);
        found->spans += found->of[i];
    }
    return found->of != NULL;
}

static void find_texts(pace__spans *spans, const counts *found, text_map *map)
{
    map->bytes = 1;
    for (size_t i = 0; i < found->tracks; i++) {
        const pace__track *track = pace__spans_track(spans, i);

        for (size_t j = 0; j < found->of[i]; j++) {
            place_of(map, track->span[j].name);
            place_of(map, track->span[j].shape);
        }
    }
}

static void pack_track(const pace__track *track, size_t count, uint64_t now_ns, text_map *map,
                       pace__packed_span *to)
{
    for (size_t i = 0; i < count; i++) {
        const pace__span *span = &track->span[i];
        uint64_t end_ns = atomic_load_explicit(&span->end_ns, memory_order_relaxed);

        to[i] = (pace__packed_span){.begin_ns = span->begin_ns,
                                    .end_ns = end_ns && end_ns < now_ns ? end_ns : now_ns,
                                    .flops = span->flops,
                                    .bytes = span->bytes,
                                    .name = place_of(map, span->name),
                                    .shape = place_of(map, span->shape),
                                    .peer = span->peer,
                                    .depth = span->depth};
    }
}

static void pack_texts(const text_map *map, char *to)
{
    to[0] = '\0';
    for (size_t slot = 0; slot < TEXTS_SLOTS; slot++) {
        if (map->text[slot])
            memcpy(to + map->place[slot], map->text[slot], strlen(map->text[slot]) + 1);
    }
}

static pace__span_pack *pack_all(pace__spans *spans, const counts *found, text_map *map)
{
    find_texts(spans, found, map);
    size_t bytes = sizeof(pace__span_pack) + found->tracks * sizeof(pace__packed_track) +
                   found->spans * sizeof(pace__packed_span) + map->bytes;
    pace__span_pack *pack = calloc(1, bytes);
    uint64_t first = 0, now_ns = pace__now_ns(); /* behind all beginnings */

    if (!pack)
        return NULL;
    *pack = (pace__span_pack){.mark = MARK,
                              .bytes = bytes,
                              .refused = pace__spans_refused(spans),
                              .tracks = (uint32_t)found->tracks,
                              .texts_bytes = map->bytes,
                              .spans = found->spans};
    for (size_t i = 0; i < found->tracks; i++) {
        pace__track *track = pace__spans_track(spans, i);
        pace__packed_track *to = (pace__packed_track *)pace__packed_tracks(pack) + i;

        *to = (pace__packed_track){
            .first = first, .count = found->of[i], .dropped = atomic_load(&track->dropped)};
        memcpy(to->label, track->label, sizeof to->label);
        pack_track(track, found->of[i], now_ns, map, (pace__packed_span *)pace__packed_spans(pack) + first);
        first += found->of[i];
    }
    pack_texts(map, (char *)pace__packed_text(pack, 0));
    return pack;
}

pace__span_pack *pace__spans_pack(pace__spans *spans)
{
    counts found = {0};
    text_map *map = calloc(1, sizeof *map);
    pace__span_pack *pack = map && count_spans(spans, &found) ? pack_all(spans, &found, map) : NULL;

    free(found.of);
    free(map);
    return pack;
}

/* --- checking --- */

/* What is wrong with a span, given the ends of those around it. NULL: nothing. */
static const char *fault_of_span(const pace__span_pack *pack, const pace__packed_span *span, int ranks,
                                 uint64_t begin_ns, uint64_t ends[PACE__PACK_DEPTH_MAX])
{
    if (span->name >= pack->texts_bytes || span->shape >= pack->texts_bytes)
        return "a name that is not there";
    if (span->peer < -1 || span->peer >= ranks)
        return "a rank that is not there";
    if (span->depth >= PACE__PACK_DEPTH_MAX)
        return "more spans in each other than can be";
    if (span->begin_ns > span->end_ns || span->begin_ns < begin_ns || span->begin_ns < ends[span->depth])
        return "times that go back";
    if (span->depth > 0 && span->end_ns > ends[span->depth - 1])
        return "spans that do not nest";
    for (uint32_t depth = span->depth; depth < PACE__PACK_DEPTH_MAX; depth++)
        ends[depth] = depth == span->depth ? span->end_ns : 0;
    return NULL;
}

static const char *fault_of_track(const pace__span_pack *pack, const pace__packed_track *track, int ranks)
{
    const pace__packed_span *span = pace__packed_spans(pack) + track->first;
    uint64_t ends[PACE__PACK_DEPTH_MAX] = {0}, begin_ns = 0;
    const char *fault = NULL;

    if (!memchr(track->label, '\0', sizeof track->label))
        return "a name without an end";
    for (uint64_t i = 0; i < track->count && !fault; i++) {
        fault = fault_of_span(pack, &span[i], ranks, begin_ns, ends);
        begin_ns = span[i].begin_ns;
    }
    return fault;
}

static const char *fault_of_size(const pace__span_pack *pack, size_t bytes)
{
    if (bytes < sizeof *pack || pack->mark != MARK)
        return "something else";
    if (bytes != pack->bytes || bytes > PACE__PACK_BYTES_MAX || pack->tracks > PACE__PACK_TRACKS_MAX ||
        pack->spans > bytes / sizeof(pace__packed_span) || pack->texts_bytes == 0)
        return "another length than it says";
    if (bytes != sizeof *pack + pack->tracks * sizeof(pace__packed_track) +
                     pack->spans * sizeof(pace__packed_span) + pack->texts_bytes)
        return "another length than its parts";
    return pace__packed_text(pack, pack->texts_bytes - 1)[0] == '\0' ? NULL : "texts without an end";
}

static const char *fault_of(const pace__span_pack *pack, size_t bytes, int ranks)
{
    const char *fault = fault_of_size(pack, bytes);
    uint64_t spans = 0;

    for (uint32_t i = 0; !fault && i < pack->tracks; i++) {
        const pace__packed_track *track = &pace__packed_tracks(pack)[i];

        if (track->first != spans || track->count > pack->spans - spans)
            return "spans of nobody";
        spans += track->count;
        fault = fault_of_track(pack, track, ranks);
    }
    return fault || spans == pack->spans ? fault : "spans of nobody";
}

pace_status pace__span_pack_check(const pace__span_pack *pack, size_t bytes, int ranks, const char *whose,
                                  const pace_log *log)
{
    const char *fault = fault_of(pack, bytes, ranks);

    return fault ? pace_fail(log, PACE_BAD_DATA, "the spans of %s have %s", whose, fault) : PACE_OK;
}

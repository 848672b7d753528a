/*
 * A track's spans are one array, of which `count` are there. A span is whole but for its end when it is counted, so
 * that whoever reads `count` may read all before it.
 */
#include "watch/spans.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two turns of a wait there is a look at what has come. */
#define WAIT_GAP_NS 100000

_Thread_local pace__track *pace__track_here;
const char pace__wait_name[] = "wait";

bool pace__is_wait(const char *name)
{
    return strncmp(name, pace__wait_name, strlen(pace__wait_name)) == 0;
}

struct pace__spans {
    atomic_bool on;
    pthread_mutex_t lock; /* of what follows, but for the spans */
    pace__span *memory;
    size_t memory_bytes;
    size_t tracks_max, track_count, room;
    pace__track *tracks;
    uint64_t refused;
    char *texts;
    size_t texts_used;
};

pace__spans *pace__spans_create_with(size_t tracks_max, size_t room)
{
    pace__spans *spans = calloc(1, sizeof *spans);

    assert(tracks_max > 0 && room > 0);
    if (!spans)
        return NULL;
    pthread_mutex_init(&spans->lock, NULL);
    spans->tracks_max = tracks_max;
    spans->room = room;
    spans->memory_bytes = tracks_max * room * sizeof *spans->memory;
    spans->tracks = aligned_alloc(64, tracks_max * sizeof *spans->tracks);
    spans->texts = malloc(PACE__SPAN_TEXTS_BYTES);
    spans->memory = pace__pages_alloc(spans->memory_bytes);
    if (!spans->tracks || !spans->texts || !spans->memory) {
        pace__spans_free(spans);
        return NULL;
    }
    memset(spans->tracks, 0, tracks_max * sizeof *spans->tracks);
    return spans;
}

pace__spans *pace__spans_create(int threads)
{
    assert(threads > 0);
    return pace__spans_create_with(PACE__SPANS_TRACKS(threads), PACE__TRACK_BYTES / sizeof(pace__span));
}

uint64_t pace__spans_memory(int threads)
{
    return PACE__SPANS_TRACKS(threads) * (PACE__TRACK_BYTES + sizeof(pace__track)) + PACE__SPAN_TEXTS_BYTES;
}

void pace__spans_free(pace__spans *spans)
{
    if (!spans)
        return;
    assert(pace__spans_here() != spans);
    pace__pages_free(spans->memory, spans->memory_bytes);
    free(spans->texts);
    free(spans->tracks);
    pthread_mutex_destroy(&spans->lock);
    free(spans);
}

void pace__spans_switch(pace__spans *spans, bool on)
{
    atomic_store_explicit(&spans->on, on, memory_order_relaxed);
}

bool pace__spans_are_on(const pace__spans *spans)
{
    return atomic_load_explicit(&spans->on, memory_order_relaxed);
}

/* --- tracks --- */

size_t pace__spans_tracks(pace__spans *spans)
{
    pthread_mutex_lock(&spans->lock);
    size_t count = spans->track_count;

    pthread_mutex_unlock(&spans->lock);
    return count;
}

pace__track *pace__spans_track(pace__spans *spans, size_t index)
{
    assert(index < spans->tracks_max);
    return &spans->tracks[index];
}

uint64_t pace__spans_refused(pace__spans *spans)
{
    pthread_mutex_lock(&spans->lock);
    uint64_t refused = spans->refused;

    pthread_mutex_unlock(&spans->lock);
    return refused;
}

/* Under the lock. */
static pace__track *find_track(pace__spans *spans, const char *label)
{
    for (size_t i = 0; i < spans->track_count; i++) {
        pace__track *track = &spans->tracks[i];

        if (!track->taken && strcmp(track->label, label) == 0)
            return track;
    }
    if (spans->track_count == spans->tracks_max) {
        spans->refused++;
        return NULL;
    }
    pace__track *track = &spans->tracks[spans->track_count];

    track->spans = spans;
    track->room = spans->room;
    track->span = spans->memory + spans->track_count * track->room;
    memcpy(track->label, label, sizeof track->label);
    spans->track_count++;
    return track;
}

void pace__spans_join(pace__spans *spans, const char *label, int number)
{
    char text[PACE__SPAN_LABEL] = "";

    if (!spans)
        return;
    assert(!pace__track_here);
    if (number < 0)
        snprintf(text, sizeof text, "%s", label);
    else
        snprintf(text, sizeof text, "%s %d", label, number);
    pthread_mutex_lock(&spans->lock);
    pace__track *track = find_track(spans, text);

    if (track)
        track->taken = true;
    pthread_mutex_unlock(&spans->lock);
    pace__track_here = track;
}

void pace__spans_leave(void)
{
    pace__track *track = pace__track_here;

    if (!track)
        return;
    pace__track_here = NULL;
    pthread_mutex_lock(&track->spans->lock);
    track->taken = false;
    pthread_mutex_unlock(&track->spans->lock);
}

const char *pace__span_text(const char *format, ...)
{
    pace__spans *spans = pace__spans_here();
    const char *text = "...";
    va_list arguments;

    if (!spans)
        return NULL;
    pthread_mutex_lock(&spans->lock);
    size_t room = PACE__SPAN_TEXTS_BYTES - spans->texts_used;

    va_start(arguments, format);
    int size = vsnprintf(spans->texts + spans->texts_used, room, format, arguments);

    va_end(arguments);
    if (size >= 0 && (size_t)size < room) {
        text = spans->texts + spans->texts_used;
        spans->texts_used += (size_t)size + 1;
    }
    pthread_mutex_unlock(&spans->lock);
    return text;
}

/* --- spans --- */

/* Room for one more; NULL: it is dropped, or nobody wants it. */
static pace__span *next_span(pace__track *track, size_t *count)
{
    *count = atomic_load_explicit(&track->count, memory_order_relaxed);
    if (!pace__spans_are_on(track->spans))
        return NULL;
    if (*count < track->room)
        return &track->span[*count];
    atomic_fetch_add_explicit(&track->dropped, 1, memory_order_relaxed);
    return NULL;
}

pace__span *pace__span_record(pace__track *track, const char *name, const char *shape, uint64_t flops,
                              uint64_t bytes)
{
    size_t count;
    pace__span *span = next_span(track, &count);

    if (!span)
        return NULL;
    span->name = name;
    span->shape = shape;
    span->flops = flops;
    span->bytes = bytes;
    span->peer = -1;
    span->depth = track->depth++;
    atomic_store_explicit(&span->end_ns, 0, memory_order_relaxed);
    span->begin_ns = pace__now_ns();
    atomic_store_explicit(&track->count, count + 1, memory_order_release);
    return span;
}

void pace__span_close(pace__span *span)
{
    assert(pace__track_here && pace__track_here->depth == span->depth + 1);
    pace__track_here->depth--;
    atomic_store_explicit(&span->end_ns, pace__now_ns(), memory_order_relaxed);
}

/* When the last of what was recorded has ended, or, if that goes on, begun. */
static uint64_t last_ns(const pace__track *track, size_t count)
{
    const pace__span *last = count > 0 ? &track->span[count - 1] : NULL;
    uint64_t end_ns = last ? atomic_load_explicit(&last->end_ns, memory_order_relaxed) : 0;

    return end_ns || !last ? end_ns : last->begin_ns;
}

static bool goes_on(const pace__track *track, size_t count, int peer, uint64_t begin_ns)
{
    const pace__span *last = count > 0 ? &track->span[count - 1] : NULL;

    return last && last->name == pace__wait_name && last->peer == peer && last->depth == track->depth &&
           begin_ns <= last_ns(track, count) + WAIT_GAP_NS;
}

/* A span that is over. It begins when what was recorded before it has ended. */
static void record_past(pace__track *track, pace__span *span, size_t count, const pace__span *what,
                        uint64_t end_ns)
{
    uint64_t free_ns = last_ns(track, count);
    uint64_t begin_ns = what->begin_ns > free_ns ? what->begin_ns : free_ns;

    if (!span || begin_ns >= end_ns)
        return;
    span->name = what->name;
    span->shape = NULL;
    span->flops = span->bytes = 0;
    span->peer = what->peer;
    span->depth = track->depth;
    span->begin_ns = begin_ns;
    atomic_store_explicit(&span->end_ns, end_ns, memory_order_relaxed);
    atomic_store_explicit(&track->count, count + 1, memory_order_release);
}

void pace__span_record_wait(pace__track *track, int peer, uint64_t begin_ns, uint64_t end_ns)
{
    const pace__span what = {.name = pace__wait_name, .peer = peer, .begin_ns = begin_ns};
    size_t count;
    pace__span *span = next_span(track, &count);

    if (pace__spans_are_on(track->spans) && goes_on(track, count, peer, begin_ns))
        atomic_store_explicit(&track->span[count - 1].end_ns, end_ns, memory_order_relaxed);
    else
        record_past(track, span, count, &what, end_ns);
}

void pace__span_record_past(pace__track *track, const char *name, uint64_t begin_ns)
{
    const pace__span what = {.name = name, .peer = -1, .begin_ns = begin_ns};
    size_t count;
    pace__span *span = next_span(track, &count);

    record_past(track, span, count, &what, pace__now_ns());
}

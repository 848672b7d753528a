/*
 * spans.h - what a thread does, from when to when: the primitive behind a profile.
 *
 *     void read_and_compute(...)
 *     {
 *         PACE__SPAN("step");                                          // from here to the end of the block
 *         ...
 *         {
 *             PACE__SPAN_OF("X.W", self->shape, 2 * entries, 8 * entries);   // with FLOPs and bytes
 *             multiply();
 *         }
 *     }
 *
 * A process, or a rank that is a thread of one, has a recorder (pace__spans); each of its threads that joins has a
 * *track* in it. Threads that are started by one that is recorded join by themselves (threads/).
 *
 * 1. Off costs a branch: a thread that has not joined finds a null pointer of its own. Nothing else is looked at.
 * 2. Spans nest by construction: one lasts for a block of C, so it ends before the one around it.
 * 3. Only its own thread writes to a track, and nobody waits for anybody. All memory is there from the start: a
 *    track that is full counts what it drops, and what was recorded stays.
 * 4. Names and shapes are texts that outlive the recorder: literals, or from pace__span_text.
 * 5. Whoever reads a track while its thread goes on (span_pack.h) sees spans that are whole, or still under way.
 * 6. What is recorded never decides anything: results are the same with and without.
 */
#ifndef WATCH_SPANS_H
#define WATCH_SPANS_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__SPAN_LABEL 24
/* Of a track: memory that is taken from the system only as spans come. */
#define PACE__TRACK_BYTES      ((size_t)8 << 20)
#define PACE__SPAN_TEXTS_BYTES ((size_t)64 << 10)
/* Threads may compute twice, to train and to score; besides there is what goes on in the background. */
#define PACE__SPANS_TRACKS(threads) (2 * (size_t)(threads) + 6)

typedef struct pace__spans pace__spans;

typedef struct pace__span {
    const char *name, *shape; /* shape: NULL if there is none */
    uint64_t begin_ns;
    _Atomic uint64_t end_ns; /* 0: it is under way */
    uint64_t flops, bytes;
    int32_t peer; /* of a wait: the rank waited for; else -1 */
    uint32_t depth;
} pace__span;

typedef struct pace__track {
    _Alignas(64) pace__spans *spans;
    pace__span *span; /* (room) in the order of their beginnings */
    size_t room;
    atomic_size_t count;
    _Atomic uint64_t dropped;
    uint32_t depth;
    bool taken; /* by a thread; under the recorder's lock */
    char label[PACE__SPAN_LABEL];
} pace__track;

/* Thread-local, and so nobody's but the thread's: passing it through every function between a job and its inner loops
 * would cost more than it tells. NULL: the thread is not recorded. */
extern _Thread_local pace__track *pace__track_here;

/* --- the recorder --- */

/* For a process of so many threads that compute; it is off. NULL when out of memory. */
pace__spans *pace__spans_create(int threads);
/* The same with so many spans in a track: for tests. */
pace__spans *pace__spans_create_with(size_t tracks_max, size_t room);
/* What it takes at most. */
uint64_t pace__spans_memory(int threads);
/* All its threads have left. NULL is allowed. */
void pace__spans_free(pace__spans *spans);

/* Spans that begin while it is on are recorded. Any thread. */
void pace__spans_switch(pace__spans *spans, bool on);
bool pace__spans_are_on(const pace__spans *spans);

/* The tracks that were ever joined, and how many threads have found no room for one. */
size_t pace__spans_tracks(pace__spans *spans);
pace__track *pace__spans_track(pace__spans *spans, size_t index);
uint64_t pace__spans_refused(pace__spans *spans);

/* The recorder of the calling thread; NULL: it has none. */
static inline pace__spans *pace__spans_here(void)
{
    return pace__track_here ? pace__track_here->spans : NULL;
}

/* The calling thread, which has no track, gets the one of that label that nobody has any more, or a new one. A NULL
 * recorder is allowed: nothing happens. A number below 0 is not shown. */
void pace__spans_join(pace__spans *spans, const char *label, int number);
/* To be called before the recorder is freed, or the thread ends. Without a track: nothing happens. */
void pace__spans_leave(void);

/* A text for names and shapes, as printf makes it, kept by the recorder of this thread; NULL: it has none. When there
 * is no room left, "...". Not for the step loop. */
const char *pace__span_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- spans --- */

pace__span *pace__span_record(pace__track *track, const char *name, const char *shape, uint64_t flops,
                              uint64_t bytes);
void pace__span_close(pace__span *span);

static inline pace__span *pace__span_begin(const char *name, const char *shape, uint64_t flops,
                                           uint64_t bytes)
{
    pace__track *track = pace__track_here;

    return __builtin_expect(track != NULL, 0) ? pace__span_record(track, name, shape, flops, bytes) : NULL;
}

static inline void pace__span_end(pace__span *const *span)
{
    if (__builtin_expect(*span != NULL, 0))
        pace__span_close(*span);
}

#define PACE__SPAN_NAME_2(line) span_of_line_##line
#define PACE__SPAN_NAME(line)   PACE__SPAN_NAME_2(line)

/* From here to the end of the block. */
#define PACE__SPAN_OF(name, shape, flops, bytes)                                                             \
    __attribute__((cleanup(pace__span_end), unused)) pace__span *const PACE__SPAN_NAME(__LINE__) =           \
        pace__span_begin((name), (shape), (flops), (bytes))
#define PACE__SPAN(name) PACE__SPAN_OF(name, NULL, 0, 0)

/* The wait for a rank, or for any (-1), that has lasted from then to then; what was recorded meanwhile is no part of it.
 * Waits are made of many short turns: one that follows the last, with nothing in between, makes that longer. */
extern const char pace__wait_name[];
bool pace__is_wait(const char *name); /* "wait", "wait for ps0", ... */
void pace__span_record_wait(pace__track *track, int peer, uint64_t begin_ns, uint64_t end_ns);

/* What turns out to have been worth a span only when it is over: from begin_ns, of pace__span_now, to now. */
void pace__span_record_past(pace__track *track, const char *name, uint64_t begin_ns);

static inline void pace__span_wait(int peer, uint64_t begin_ns, uint64_t end_ns)
{
    pace__track *track = pace__track_here;

    if (__builtin_expect(track != NULL, 0))
        pace__span_record_wait(track, peer, begin_ns, end_ns);
}

/* 0 for a thread that is not recorded. */
static inline uint64_t pace__span_now(void)
{
    return __builtin_expect(pace__track_here != NULL, 0) ? pace__now_ns() : 0;
}

static inline void pace__span_past(const char *name, uint64_t begin_ns)
{
    pace__track *track = pace__track_here;

    if (__builtin_expect(track != NULL, 0))
        pace__span_record_past(track, name, begin_ns);
}

#endif

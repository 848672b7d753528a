/*
 * Links between the threads of one process. Every rank has a box with two kinds of queues: its receives that
 * wait for a message, and messages that wait for a receive. Whoever comes second finds the first in the box
 * and copies the bytes, outside the lock.
 *
 * An operation under way is a note:
 *
 *     free    -> posted   take_note, then post or threads_sum: it lies in a queue of a box, or in a sum
 *     posted  -> taken    whoever comes second, or last to a sum, takes it out to copy or to add up; so does
 *                         its owner, to give it up
 *     taken   -> over     the bytes are where they belong
 *     over    -> free     its owner has asked (test), or gives it up
 *
 * One that was forgotten after a failure is over, though no bytes went anywhere: a test of it never says so.
 *
 * 1. A note belongs to the link that started it and is taken and given back by its thread alone. In between,
 *    whoever holds the lock of the box it lies in may take it out of the box.
 * 2. Who has taken a note out of a box sets `over`, with release, as the last thing; from then on only the
 *    owner touches the note and the buffer.
 * 3. Of a message and a receive that fit, one is not in the box yet: never do both lie there.
 * 4. A sum has a note of each worker that has arrived, and NULL for the others. One that a worker has left is
 *    never whole. All workers begin their sums in the same order: its number says which one it is.
 * 5. The hub lives until the last link has left it; a link leaves no notes behind.
 */
#include "net/link_internal.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_NOTES 64

typedef enum note_kind { SEND, RECEIVE, SUM } note_kind;

typedef struct note {
    struct note *next; /* in a queue, or of those that are free */
    note_kind kind;
    bool used;
    bool cut; /* the message was longer than the room for it */
    bool forgotten;
    int from; /* the sender; ANY; of a sum, who takes part */
    int box, tag;
    void *buffer;
    size_t bytes;
    atomic_bool over;
} note;

typedef struct queue {
    note *first, **last; /* last: where the next one is linked */
} queue;

typedef struct box {
    _Alignas(128) pthread_mutex_t lock;
    queue receives[PACE__TAGS], messages[PACE__TAGS];
} box;

/* A sum that has begun: complete when all workers have put their notes into it. */
typedef struct sum {
    struct sum *next;
    uint64_t number;
    int arrived;
    note *notes[]; /* (workers) */
} sum;

typedef struct hub {
    int size, workers;
    atomic_int links;   /* not yet released */
    atomic_int failure; /* with which a rank has ended the job */
    box *boxes;         /* (size) */
    pthread_mutex_t sums_lock;
    sum *sums, *free_sums;
} hub;

typedef struct chunk {
    struct chunk *next;
    note notes[CHUNK_NOTES];
} chunk;

/* One link's end of the hub. */
typedef struct end {
    hub *hub;
    chunk *chunks;
    note *free;
    uint64_t sums; /* begun so far */
} end;

/* --- notes --- */

static bool add_chunk(end *self)
{
    chunk *more = calloc(1, sizeof *more);

    if (!more)
        return false;
    more->next = self->chunks;
    self->chunks = more;
    for (size_t i = 0; i < CHUNK_NOTES; i++) {
        more->notes[i].next = self->free;
        self->free = &more->notes[i];
    }
    return true;
}

/* NULL when out of memory: then the link has failed, and the request is never over. */
static note *take_note(pace__link *link, note_kind kind, void *buffer, pace__request *request)
{
    end *self = link->carried;

    request->native = 0;
    if (!self->free && !add_chunk(self)) {
        pace__link_broken(link, PACE_FAILED, "out of memory for messages between threads");
        return NULL;
    }
    note *taken = self->free;

    assert(!taken->used);
    self->free = taken->next;
    taken->kind = kind;
    taken->used = true;
    taken->cut = taken->forgotten = false;
    taken->tag = request->tag;
    taken->buffer = buffer;
    taken->bytes = request->bytes;
    atomic_store_explicit(&taken->over, false, memory_order_relaxed);
    request->native = (uintptr_t)taken;
    return taken;
}

static void give_back(pace__link *link, note *taken)
{
    end *self = link->carried;

    assert(taken->used);
    taken->used = false;
    taken->next = self->free;
    self->free = taken;
}

/* --- queues, under the lock of their box --- */

static void append(queue *to, note *one)
{
    assert(!*to->last);
    one->next = NULL;
    *to->last = one;
    to->last = &one->next;
}

static void unlink_at(queue *from, note **at)
{
    note *one = *at;

    *at = one->next;
    if (from->last == &one->next)
        from->last = at;
}

/* The first that fits: for a message a receive from its sender or from anyone, and the other way round. */
static note *take_match(queue *from, const note *other)
{
    for (note **at = &from->first; *at; at = &(*at)->next) {
        note *one = *at;

        if (one->from == other->from || one->from == PACE__LINK_ANY || other->from == PACE__LINK_ANY) {
            unlink_at(from, at);
            return one;
        }
    }
    return NULL;
}

static bool take_out(queue *from, const note *wanted)
{
    for (note **at = &from->first; *at; at = &(*at)->next) {
        if (*at == wanted) {
            unlink_at(from, at);
            return true;
        }
    }
    return false;
}

/* --- messages --- */

static void set_over(note *one)
{
    atomic_store_explicit(&one->over, true, memory_order_release);
}

static void deliver(note *message, note *receive)
{
    assert(message->kind == SEND && receive->kind == RECEIVE);
    assert(message->box == receive->box && message->tag == receive->tag);
    receive->cut = message->bytes > receive->bytes;
    if (!receive->cut)
        receive->bytes = message->bytes;
    if (receive->bytes > 0)
        memcpy(receive->buffer, message->buffer, receive->bytes);
    receive->from = message->from;
    set_over(receive);
    set_over(message);
}

static void post(hub *shared, note *mine)
{
    assert(mine->box >= 0 && mine->box < shared->size && mine->tag < PACE__TAGS);
    box *where = &shared->boxes[mine->box];
    queue *same = &where->messages[mine->tag], *other = &where->receives[mine->tag];

    if (mine->kind == RECEIVE) {
        same = &where->receives[mine->tag];
        other = &where->messages[mine->tag];
    }
    pthread_mutex_lock(&where->lock);
    note *match = take_match(other, mine);

    if (!match) /* invariant 3: what would fit is not there */
        append(same, mine);
    pthread_mutex_unlock(&where->lock);
    if (match)
        deliver(mine->kind == SEND ? mine : match, mine->kind == SEND ? match : mine);
}

static void threads_send(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                         pace__request *request)
{
    note *mine = take_note(link, SEND, (void *)bytes, request);

    (void)tag;
    (void)size;
    if (!mine)
        return;
    mine->from = link->rank;
    mine->box = peer;
    post(((end *)link->carried)->hub, mine);
}

static void threads_receive(pace__link *link, void *buffer, pace__request *request)
{
    note *mine = take_note(link, RECEIVE, buffer, request);

    if (!mine)
        return;
    mine->from = request->peer;
    mine->box = link->rank;
    post(((end *)link->carried)->hub, mine);
}

static pace_status threads_test(pace__link *link, pace__request *request, bool *over)
{
    note *mine = (note *)request->native;

    assert(!mine || mine->used);
    if (!mine || mine->forgotten || !atomic_load_explicit(&mine->over, memory_order_acquire))
        return PACE_OK;
    *over = true;
    if (mine->kind == RECEIVE)
        request->peer = mine->from;
    size_t room = request->bytes;
    bool cut = mine->cut;

    request->bytes = mine->bytes;
    give_back(link, mine);
    if (cut)
        return pace__link_broken(link, PACE_BUG, "a message of %s with tag %d is longer than %zu bytes",
                                 pace__link_name(link, request->peer), request->tag, room);
    return PACE_OK;
}

/* --- sums --- */

/* The sum of that number, new if nobody has begun it; under the lock. NULL when out of memory. */
static sum *find_sum(hub *shared, uint64_t number)
{
    for (sum *one = shared->sums; one; one = one->next) {
        if (one->number == number)
            return one;
    }
    sum *fresh = shared->free_sums;

    if (fresh)
        shared->free_sums = fresh->next;
    else
        fresh = malloc(sizeof *fresh + (size_t)shared->workers * sizeof *fresh->notes);
    if (!fresh)
        return NULL;
    fresh->number = number;
    fresh->arrived = 0;
    memset(fresh->notes, 0, (size_t)shared->workers * sizeof *fresh->notes);
    fresh->next = shared->sums;
    shared->sums = fresh;
    return fresh;
}

static void move_sum(sum *one, sum **from, sum **to)
{
    while (*from != one) {
        assert(*from);
        from = &(*from)->next;
    }
    *from = one->next;
    one->next = *to;
    *to = one;
}

/* In the order of the workers. */
static void add_up(const sum *whole, int workers)
{
    for (int i = 0; i < workers; i++)
        assert(whole->notes[i] && whole->notes[i]->bytes == whole->notes[0]->bytes);
    for (size_t at = 0; at < whole->notes[0]->bytes / sizeof(float); at++) {
        float total = 0;

        for (int i = 0; i < workers; i++)
            total += ((const float *)whole->notes[i]->buffer)[at];
        for (int i = 0; i < workers; i++)
            ((float *)whole->notes[i]->buffer)[at] = total;
    }
    for (int i = 0; i < workers; i++)
        set_over(whole->notes[i]);
}

static void threads_sum(pace__link *link, float *buffer, size_t count, pace__request *request)
{
    end *self = link->carried;
    hub *shared = self->hub;
    note *mine = take_note(link, SUM, buffer, request);

    (void)count;
    if (!mine)
        return;
    mine->from = link->rank;
    pthread_mutex_lock(&shared->sums_lock);
    sum *whole = find_sum(shared, self->sums++);
    bool last = false;

    if (whole) {
        assert(!whole->notes[link->rank] && whole->arrived < shared->workers);
        whole->notes[link->rank] = mine;
        last = ++whole->arrived == shared->workers;
    }
    pthread_mutex_unlock(&shared->sums_lock);
    if (!whole) { /* a note that is nowhere could not be withdrawn */
        give_back(link, mine);
        request->native = 0;
        pace__link_broken(link, PACE_FAILED, "out of memory for a sum over %d workers", shared->workers);
    }
    if (!last)
        return;
    add_up(whole, shared->workers); /* invariant 4: nobody looks for this number any more */
    pthread_mutex_lock(&shared->sums_lock);
    move_sum(whole, &shared->sums, &shared->free_sums);
    pthread_mutex_unlock(&shared->sums_lock);
}

/* Takes a note out of the sum that waits for more; the sum is never complete then. */
static bool leave_sum(hub *shared, const note *mine)
{
    bool left = false;

    pthread_mutex_lock(&shared->sums_lock);
    for (sum *one = shared->sums; one && !left; one = one->next) {
        left = one->arrived < shared->workers && one->notes[mine->from] == mine;
        if (left) {
            assert(one->arrived > 0);
            one->notes[mine->from] = NULL;
            one->arrived--;
        }
    }
    pthread_mutex_unlock(&shared->sums_lock);
    return left;
}

/* --- giving up --- */

static void withdraw(hub *shared, note *mine)
{
    bool out;

    if (mine->kind == SUM) {
        out = leave_sum(shared, mine);
    } else {
        box *where = &shared->boxes[mine->box];

        pthread_mutex_lock(&where->lock);
        out = take_out(mine->kind == SEND ? &where->messages[mine->tag] : &where->receives[mine->tag], mine);
        pthread_mutex_unlock(&where->lock);
    }
    while (!out && !atomic_load_explicit(&mine->over, memory_order_acquire))
        sched_yield(); /* another thread has taken it, and is copying: invariant 2 */
}

static void threads_cancel(pace__link *link, pace__request *request)
{
    note *mine = (note *)request->native;

    if (!mine)
        return;
    withdraw(((end *)link->carried)->hub, mine);
    give_back(link, mine);
}

/* A withdrawn note is nobody's any more. */
static bool threads_abandon(pace__link *link, pace__request *request)
{
    threads_cancel(link, request);
    return true;
}

/* Who fails frees its buffers: no other thread may find them any more. What is forgotten never ends, but the caller can let
 * go of it. */
static void threads_forget(pace__link *link)
{
    end *self = link->carried;

    for (chunk *one = self->chunks; one; one = one->next) {
        for (note *at = one->notes; at < one->notes + CHUNK_NOTES; at++) {
            if (!at->used || at->tag >= PACE__LINK_TAGS_MAX) /* the link's own */
                continue;
            withdraw(self->hub, at);
            at->forgotten = true;
            set_over(at); /* so that it is not withdrawn again */
        }
    }
}

/* --- opening and ending --- */

static void free_hub(hub *shared)
{
    assert(atomic_load(&shared->links) == 0);
    for (int i = 0; i < shared->size; i++)
        pthread_mutex_destroy(&shared->boxes[i].lock);
    pthread_mutex_destroy(&shared->sums_lock);
    for (sum *one = shared->sums, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    for (sum *one = shared->free_sums, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    free(shared->boxes);
    free(shared);
}

static pace_status threads_ended(const pace__link *link)
{
    const end *self = link->carried;

    return (pace_status)atomic_load_explicit(&self->hub->failure, memory_order_relaxed);
}

static void threads_abort(pace__link *link, pace_status status)
{
    int none = PACE_OK;

    atomic_compare_exchange_strong(&((end *)link->carried)->hub->failure, &none, (int)status);
}

static pace_status threads_part(pace__link *link)
{
    (void)link; /* the others may go on: the hub lives until the last has left */
    return PACE_OK;
}

static void threads_release(pace__link *link)
{
    end *self = link->carried;

    if (!self)
        return;
    for (chunk *one = self->chunks, *next; one; one = next) {
        for (size_t i = 0; i < CHUNK_NOTES; i++) {
            if (one->notes[i].used)
                withdraw(self->hub, &one->notes[i]);
        }
        next = one->next;
        free(one);
    }
    if (atomic_fetch_sub(&self->hub->links, 1) == 1) /* invariant 5 */
        free_hub(self->hub);
    free(self);
}

static void threads_sleep(pace__link *link, uint64_t ns)
{
    (void)link;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static const pace__carrier threads_carrier = {
    .send = threads_send,
    .receive = threads_receive,
    .test = threads_test,
    .cancel = threads_cancel,
    .abandon = threads_abandon,
    .forget = threads_forget,
    .sum = threads_sum,
    .sleep = threads_sleep,
    .ended = threads_ended,
    .abort = threads_abort,
    .part = threads_part,
    .release = threads_release,
};

static hub *make_hub(int size, int workers)
{
    hub *shared = calloc(1, sizeof *shared);
    box *boxes = aligned_alloc(_Alignof(box), (size_t)size * sizeof *boxes);

    if (!shared || !boxes) {
        free(shared);
        free(boxes);
        return NULL;
    }
    shared->size = size;
    shared->workers = workers;
    shared->boxes = boxes;
    pthread_mutex_init(&shared->sums_lock, NULL);
    for (int i = 0; i < size; i++) {
        pthread_mutex_init(&boxes[i].lock, NULL);
        for (int tag = 0; tag < PACE__TAGS; tag++) {
            boxes[i].receives[tag] = (queue){NULL, &boxes[i].receives[tag].first};
            boxes[i].messages[tag] = (queue){NULL, &boxes[i].messages[tag].first};
        }
    }
    return shared;
}

/* A link on the hub that nobody knows of yet; NULL when out of memory, which is said. */
static pace__link *make_link(hub *shared, int rank, const pace__link_options *options)
{
    end *self = calloc(1, sizeof *self);
    pace__link *link = pace__link_create(&threads_carrier, rank, shared->size, shared->workers, options);

    if (link && (!self || !add_chunk(self))) {
        pace_fail(options->log, PACE_FAILED, "out of memory for a link between threads");
        pace__link_free(link);
        link = NULL;
    }
    if (!link) {
        free(self);
        return NULL;
    }
    self->hub = shared;
    link->carried = self;
    atomic_fetch_add(&shared->links, 1);
    return link;
}

pace_status pace__link_open_threads(int size, int workers, const pace__link_options *options,
                                    pace__link **links)
{
    assert(size >= 1 && workers >= 0 && workers <= size);
    hub *shared = make_hub(size, workers);

    if (!shared)
        return pace_fail(options->log, PACE_FAILED, "out of memory for links between %d threads", size);
    for (int i = 0; i < size; i++) {
        if (!(links[i] = make_link(shared, i, options))) {
            if (i == 0)
                free_hub(shared);
            while (--i >= 0) {
                threads_release(links[i]);
                pace__link_free(links[i]);
            }
            return PACE_FAILED;
        }
    }
    for (int i = 0; i < size; i++)
        pace__link_begin(links[i]);
    return PACE_OK;
}

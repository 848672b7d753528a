/*
 * A step's buckets go through the same stages in the order in which they were started. Each peer has a cursor
 * per stage, the place in that order that is next, so that a poll tests at most one request per peer and
 * stage that is not over:
 *
 *     posted   the bucket's pieces were sent to their owners, and receives for the own piece are posted
 *     got      the peer's part of the own piece is here
 *     summed   all have it: added up, and sent to all
 *     gone     the own part of the peer's piece has left, so that its sum may be received in its place
 *     back     that sum is here
 *     told     the own sum has left
 *
 * Messages of one sender and tag arrive in the order they were sent, and everybody sends both kinds in the
 * order of the buckets: so no message has to say which bucket it belongs to.
 *
 * 1. Cursors only rise, until a step ends with all of them at `started`; then they are 0 again.
 * 2. finished <= back <= gone <= posted, finished <= told <= summed <= got <= posted, posted <= started, for
 *    the cursors of every peer; `finished` is the least of all.
 * 3. posted - finished <= slots: a slot's requests and parts are those of one place of the order, and nothing
 *    is under way in a slot that is taken again.
 * 4. A piece of the gradients is read until its part has gone, and only then written by the sum that comes
 *    back; the own piece is written by the summing, when all parts of it are here.
 *
 * By MPI there are `posted` and `summed` alone, and finished is summed.
 */
#include "net/reduce.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ADD_FLOATS 1024 /* at a time: they stay in the first-level cache */

/* What goes on with one peer, by slot of the window. */
typedef struct exchange {
    size_t got, gone, back, told;
    pace__request in[PACE__REDUCE_WINDOW], out[PACE__REDUCE_WINDOW];
    pace__request sum_in[PACE__REDUCE_WINDOW], sum_out[PACE__REDUCE_WINDOW];
    float *parts; /* (slots, piece_max) the peer's parts of the own piece */
} exchange;

struct pace__reduce {
    pace__link *link;
    pace__reduce_plan plan; /* its bounds are the copy below */
    int rank;
    bool by_mpi; /* and there is somebody to sum with */
    size_t slots;
    size_t piece_max;                          /* floats of the own piece of any bucket */
    size_t started, posted, summed;            /* cursors that concern all peers */
    exchange *exchanges;                       /* (workers) the own is not used; NULL by MPI */
    float *parts;                              /* of all exchanges */
    int *awaited;                              /* (workers) scratch of finish */
    pace__request sums[PACE__REDUCE_WINDOW];   /* by MPI */
    size_t order[PACE__REDUCE_BUCKETS_MAX];    /* the buckets of this step, as they were started */
    bool is_started[PACE__REDUCE_BUCKETS_MAX]; /* by bucket */
    size_t bounds[PACE__REDUCE_BUCKETS_MAX + 1];
};

typedef struct piece {
    float *at;
    size_t count;
} piece;

size_t pace__reduce_cut(size_t count, size_t bucket_floats, size_t *bounds)
{
    size_t most = PACE__LINK_MESSAGE_MAX / sizeof(float);
    size_t least = (count + PACE__REDUCE_BUCKETS_MAX - 1) / PACE__REDUCE_BUCKETS_MAX, buckets = 0;
    size_t size = bucket_floats < most ? bucket_floats : most;

    size = size > least ? size : least;
    bounds[0] = 0;
    for (size_t at = 0; at < count; buckets++) {
        at = count - at > size ? at + size : count;
        bounds[buckets + 1] = at;
    }
    return buckets;
}

/* --- making --- */

static piece piece_of(const pace__reduce *self, size_t bucket, int owner)
{
    size_t first = self->bounds[bucket], count = self->bounds[bucket + 1] - first;
    size_t workers = (size_t)self->plan.workers;

    assert(bucket < self->plan.buckets && owner < self->plan.workers);
    size_t begin = count * (size_t)owner / workers, end = count * (size_t)(owner + 1) / workers;

    return (piece){self->plan.gradients + first + begin, end - begin};
}

static pace_status allocate(pace__reduce *self, const pace_log *log)
{
    size_t workers = (size_t)self->plan.workers, per_peer = self->slots * self->piece_max;

    self->awaited = calloc(workers, sizeof *self->awaited);
    if (!self->by_mpi) {
        self->exchanges = calloc(workers, sizeof *self->exchanges);
        self->parts = malloc((workers - 1) * per_peer * sizeof *self->parts + 1);
    }
    if (!self->awaited || (!self->by_mpi && (!self->exchanges || !self->parts)))
        return pace_fail(log, PACE_FAILED, "out of memory for the sums of gradients over %d workers",
                         self->plan.workers);
    float *parts = self->parts;

    for (int i = 0; i < self->plan.workers && !self->by_mpi; i++) {
        if (i == self->rank)
            continue;
        self->exchanges[i].parts = parts;
        parts += per_peer;
    }
    return PACE_OK;
}

pace_status pace__reduce_create(pace__link *link, const pace__reduce_plan *plan, const pace_log *log,
                                pace__reduce **reduce)
{
    pace__reduce *self = calloc(1, sizeof *self);

    assert(plan->buckets <= PACE__REDUCE_BUCKETS_MAX);
    assert(plan->workers >= 1 && pace__link_rank(link) < plan->workers);
    assert(plan->tag >= 0 && plan->tag + 1 < PACE__LINK_TAGS_MAX);
    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory for the sums of gradients");
    self->link = link;
    self->plan = *plan;
    self->rank = pace__link_rank(link);
    self->by_mpi = plan->by_mpi && plan->workers > 1;
    self->slots = plan->buckets < PACE__REDUCE_WINDOW ? plan->buckets : PACE__REDUCE_WINDOW;
    memcpy(self->bounds, plan->bounds, (plan->buckets + 1) * sizeof *self->bounds);
    self->plan.bounds = self->bounds;
    for (size_t i = 0; i < plan->buckets; i++) {
        assert(plan->bounds[i] <= plan->bounds[i + 1]);
        size_t count = piece_of(self, i, self->rank).count;

        self->piece_max = count > self->piece_max ? count : self->piece_max;
    }
    pace_status status = allocate(self, log);

    if (status)
        pace__reduce_free(self);
    else
        *reduce = self;
    return status;
}

void pace__reduce_free(pace__reduce *reduce)
{
    if (!reduce)
        return;
    free(reduce->exchanges);
    free(reduce->parts);
    free(reduce->awaited);
    free(reduce);
}

/* --- the stages, for the bucket at a place of the order --- */

static float *part_of(const pace__reduce *self, int peer, size_t place)
{
    return self->exchanges[peer].parts + place % self->slots * self->piece_max;
}

/* Nothing is sent of empty pieces, which buckets with fewer floats than workers have. */
static void send_piece(pace__reduce *self, int peer, int tag, piece what, pace__request *request)
{
    if (what.count > 0)
        pace__link_send(self->link, peer, tag, what.at, what.count * sizeof *what.at, request);
}

static void receive_piece(pace__reduce *self, int peer, int tag, piece into, pace__request *request)
{
    if (into.count > 0)
        pace__link_receive(self->link, peer, tag, into.at, into.count * sizeof *into.at, request);
}

static void post(pace__reduce *self, size_t place)
{
    assert(place == self->posted && place < self->started);
    size_t bucket = self->order[place], slot = place % self->slots;
    size_t own = piece_of(self, bucket, self->rank).count;

    if (self->by_mpi) {
        size_t first = self->bounds[bucket];

        pace__link_sum(self->link, self->plan.gradients + first, self->bounds[bucket + 1] - first,
                       &self->sums[slot]);
        return;
    }
    for (int i = 0; i < self->plan.workers; i++) {
        exchange *with = &self->exchanges[i];

        if (i == self->rank)
            continue;
        receive_piece(self, i, self->plan.tag, (piece){part_of(self, i, place), own}, &with->in[slot]);
        send_piece(self, i, self->plan.tag, piece_of(self, bucket, i), &with->out[slot]);
    }
}

/* Adds the workers' parts in their order, some floats at a time, into the own place. */
static void add_up(pace__reduce *self, size_t place)
{
    assert(place == self->summed && place < self->posted);
    piece own = piece_of(self, self->order[place], self->rank);
    float total[ADD_FLOATS];

    for (size_t first = 0; first < own.count; first += ADD_FLOATS) {
        size_t count = own.count - first < ADD_FLOATS ? own.count - first : ADD_FLOATS;

        for (int w = 0; w < self->plan.workers; w++) {
            const float *part = (w == self->rank ? own.at : part_of(self, w, place)) + first;

            if (w == 0)
                memcpy(total, part, count * sizeof *total);
            for (size_t i = 0; i < count && w > 0; i++)
                total[i] += part[i];
        }
        memcpy(own.at + first, total, count * sizeof *total);
    }
}

static void send_sum(pace__reduce *self, size_t place)
{
    piece own = piece_of(self, self->order[place], self->rank);

    for (int i = 0; i < self->plan.workers; i++) {
        if (i != self->rank)
            send_piece(self, i, self->plan.tag + 1, own, &self->exchanges[i].sum_out[place % self->slots]);
    }
}

/* --- moving on --- */

/* Moves a cursor over all that is over, up to `end`. What came is as long as the owner's piece, or it is no part of it. */
static pace_status move(pace__reduce *self, pace__request *requests, size_t *cursor, size_t end, int owner)
{
    bool done = true;
    pace_status status = PACE_OK;

    assert(*cursor <= end);
    while (*cursor < end && !status && done) {
        pace__request *request = &requests[*cursor % self->slots];
        bool came = request->active && request->receives;

        status = pace__link_done(self->link, request, &done);
        if (!status && done && came)
            status = pace__link_fits(self->link, request,
                                     piece_of(self, self->order[*cursor], owner).count * sizeof(float),
                                     "a part of a sum");
        *cursor += !status && done;
    }
    return status;
}

static pace_status move_with(pace__reduce *self, int peer)
{
    exchange *with = &self->exchanges[peer];
    size_t gone = with->gone;
    pace_status status = move(self, with->in, &with->got, self->posted, self->rank);

    if (!status)
        status = move(self, with->out, &with->gone, self->posted, peer);
    for (; gone < with->gone; gone++) /* invariant 4 */
        receive_piece(self, peer, self->plan.tag + 1, piece_of(self, self->order[gone], peer),
                      &with->sum_in[gone % self->slots]);
    if (!status)
        status = move(self, with->sum_in, &with->back, with->gone, peer);
    if (!status)
        status = move(self, with->sum_out, &with->told, self->summed, self->rank);
    return status;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Sums what everyone has sent. */
static void sum_own(pace__reduce *self)
{
    size_t end = self->posted;

    for (int i = 0; i < self->plan.workers; i++)
        end = i == self->rank ? end : least(end, self->exchanges[i].got);
    assert(self->summed <= end);
    for (; self->summed < end; self->summed++) {
        add_up(self, self->summed);
        send_sum(self, self->summed);
    }
}

/* The place before which nothing is left to be done with that peer. */
static size_t finished_with(const pace__reduce *self, int peer)
{
    const exchange *with = &self->exchanges[peer];

    return least(least(with->got, with->gone), least(with->back, with->told));
}

static size_t finished(const pace__reduce *self)
{
    size_t end = self->summed;

    for (int i = 0; i < self->plan.workers && !self->by_mpi; i++)
        end = i == self->rank ? end : least(end, finished_with(self, i));
    return end;
}

pace_status pace__reduce_poll(pace__reduce *self)
{
    pace_status status = PACE_OK;
    size_t room = finished(self) + self->slots;

    assert(self->posted <= self->started && self->posted <= room); /* invariants 2 and 3 */
    for (; self->posted < self->started && self->posted < room; self->posted++)
        post(self, self->posted);
    if (self->by_mpi)
        return move(self, self->sums, &self->summed, self->posted, self->rank);
    for (int i = 0; i < self->plan.workers && !status; i++)
        status = i == self->rank ? PACE_OK : move_with(self, i);
    if (!status)
        sum_own(self);
    return status;
}

pace_status pace__reduce_start(pace__reduce *self, size_t bucket)
{
    assert(bucket < self->plan.buckets && !self->is_started[bucket]);
    self->is_started[bucket] = true;
    self->order[self->started++] = bucket;
    return pace__reduce_poll(self);
}

/* --- the end of a step --- */

/* The peers with whom something is left to be done. By MPI that is anybody's guess: all. */
static size_t find_awaited(pace__reduce *self)
{
    size_t count = 0;

    for (int i = 0; i < self->plan.workers; i++) {
        if (i != self->rank && (self->by_mpi || finished_with(self, i) < self->started))
            self->awaited[count++] = i;
    }
    return count;
}

static void begin_step(pace__reduce *self)
{
    assert(finished(self) == self->started && self->posted == self->started); /* invariant 1 */
    for (size_t i = 0; i < self->started; i++)
        self->is_started[self->order[i]] = false;
    for (int i = 0; i < self->plan.workers && !self->by_mpi; i++) {
        exchange *with = &self->exchanges[i];

        with->got = with->gone = with->back = with->told = 0;
    }
    self->started = self->posted = self->summed = 0;
}

pace_status pace__reduce_finish(pace__reduce *self)
{
    unsigned turns = 0;
    size_t before = 0;

    for (;;) {
        pace_status status = pace__reduce_poll(self);
        size_t now = finished(self);

        if (status)
            return status;
        if (now == self->started)
            break;
        if (now > before)
            turns = 0;
        before = now;
        status =
            pace__link_turn(self->link, self->awaited, find_awaited(self), "the sums of gradients", &turns);
        if (status)
            return status;
    }
    begin_step(self);
    return PACE_OK;
}

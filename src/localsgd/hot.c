#include "localsgd/hot.h"

#include "base/clock.h"
#include "launch/cluster.h"
#include "ps/wire.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Tags that this mode has no other use for; they count as training (roles/reports.c). */
#define TAG_CHANGES PACE__TAG_PUSH
#define TAG_WORD    PACE__TAG_ASK
#define TAG_SHARE   PACE__TAG_REPLY

/* --- life --- */

static uint32_t share_first(const pace__hot *hot, unsigned worker)
{
    return (uint32_t)((uint64_t)hot->count * worker / hot->workers);
}

static uint32_t share_count(const pace__hot *hot, unsigned worker)
{
    return share_first(hot, worker + 1) - share_first(hot, worker);
}

static uint32_t share_max(unsigned workers, uint32_t count)
{
    return (count + workers - 1) / workers;
}

pace_status pace__hot_open(pace__hot *hot, pace__link *link, unsigned workers, const uint32_t *keys,
                           uint32_t count, const pace_log *log)
{
    size_t share = share_max(workers, count), points = count ? count : 1;

    *hot = (pace__hot){.count = count, .link = link, .log = log, .workers = workers};
    hot->self = (unsigned)pace__link_rank(link);
    hot->keys = malloc(points * sizeof *hot->keys);
    hot->base = calloc(points, sizeof *hot->base);
    hot->merged = calloc(points, sizeof *hot->merged);
    hot->changes = calloc(points, sizeof *hot->changes);
    hot->others = calloc(workers * (share + 1), sizeof *hot->others);
    hot->points = calloc(share + 1, sizeof *hot->points);
    hot->words = calloc(workers, sizeof *hot->words);
    hot->peers = calloc(workers, sizeof *hot->peers);
    hot->silent = calloc(workers, sizeof *hot->silent);
    if (!hot->keys || !hot->base || !hot->merged || !hot->changes || !hot->others || !hot->points ||
        !hot->words || !hot->peers || !hot->silent)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memcpy(hot->keys, keys, count * sizeof *keys);
    return PACE_OK;
}

/* Of a job that ends before its rows are out, nothing is under way either; of one that has failed, all was given up. */
void pace__hot_close(pace__hot *hot)
{
    for (unsigned i = 0; hot->peers && i < hot->workers; i++) {
        pace__hot_peer *peer = &hot->peers[i];

        pace__link_settle(hot->link, &peer->changes_sent);
        pace__link_settle(hot->link, &peer->word_sent);
        pace__link_settle(hot->link, &peer->share_sent);
    }
    free(hot->silent);
    free(hot->peers);
    free(hot->words);
    free(hot->points);
    free(hot->others);
    free(hot->changes);
    free(hot->merged);
    free(hot->base);
    free(hot->keys);
    *hot = (pace__hot){0};
}

void pace__hot_begin(pace__hot *hot, pace__logreg *model)
{
    assert(hot->stage == PACE__HOT_IDLE);
    for (uint32_t i = 0; i < hot->count; i++)
        hot->base[i] = hot->merged[i] = pace__flow_pack(&model->optim, pace__replica_at(model, hot->keys[i]));
}

/* --- sending --- */

/* What was changed since base, which moves on. */
static void find_changes(pace__hot *hot, pace__logreg *model)
{
    for (uint32_t i = 0; i < hot->count; i++) {
        pace__flow_point now = pace__flow_pack(&hot->optim, pace__replica_at(model, hot->keys[i]));
        pace__flow_point to = pace__flow_from(&hot->optim, now),
                         from = pace__flow_from(&hot->optim, hot->base[i]);

        hot->changes[i] = (pace__flow_point){to.w - from.w, to.n - from.n};
        hot->base[i] = now;
    }
}

static pace_status wait_for_sends(pace__hot *hot, pace__hot_peer *peer)
{
    pace_status status = pace__link_wait(hot->link, &peer->changes_sent, "its changes to leave");

    if (!status)
        status = pace__link_wait(hot->link, &peer->word_sent, "word of a round to leave");
    if (!status)
        status = pace__link_wait(hot->link, &peer->share_sent, "merged parameters to leave");
    return status;
}

static void post(pace__hot *hot, unsigned other)
{
    pace__hot_peer *peer = &hot->peers[other];
    size_t share = share_max(hot->workers, hot->count) + (size_t)1, size = sizeof(pace__flow_point);

    pace__link_receive(hot->link, (int)other, TAG_CHANGES, hot->others + other * share,
                       share_count(hot, hot->self) * size, &peer->changes);
    pace__link_receive(hot->link, (int)other, TAG_WORD, &hot->words[other], sizeof *hot->words, &peer->word);
    pace__link_receive(hot->link, (int)other, TAG_SHARE, hot->merged + share_first(hot, other),
                       share_count(hot, other) * size, &peer->share);
}

pace_status pace__hot_send(pace__hot *hot, pace__logreg *model, const pace__optim *optim,
                           const pace__hot_word *own)
{
    uint64_t start_ns = pace__now_ns();
    PACE__SPAN("send changes");
    pace_status status = PACE_OK;

    assert(hot->stage == PACE__HOT_IDLE); /* invariant 1 */
    hot->optim = *optim;
    hot->words[hot->self] = *own;
    for (unsigned i = 0; i < hot->workers && !status; i++)
        status = wait_for_sends(hot, &hot->peers[i]);
    if (status)
        return status;
    find_changes(hot, model);
    for (unsigned step = 1; step < hot->workers; step++) {
        unsigned other = (hot->self + step) % hot->workers;

        post(hot, other);
        pace__link_send(hot->link, (int)other, TAG_CHANGES, hot->changes + share_first(hot, other),
                        share_count(hot, other) * sizeof *hot->changes, &hot->peers[other].changes_sent);
    }
    hot->stage = PACE__HOT_CHANGES;
    hot->busy_ns += pace__now_ns() - start_ns;
    return PACE_OK;
}

/* --- merging --- */

static const pace__flow_point *changes_of(const pace__hot *hot, unsigned worker)
{
    return worker == hot->self ? hot->changes + share_first(hot, worker)
                               : hot->others + worker * (share_max(hot->workers, hot->count) + (size_t)1);
}

/* Of the own share; the bias is the last of all keys, and always among them. */
static void measure(pace__hot *hot)
{
    uint32_t first = share_first(hot, hot->self), count = share_count(hot, hot->self);
    pace__damping sum = {0};

    for (uint32_t i = 0; i < count; i++) {
        float squares = 0;

        for (unsigned worker = 0; worker < hot->workers; worker++)
            squares += changes_of(hot, worker)[i].n;
        pace__damping_add(&sum, &hot->optim, hot->workers, hot->merged[first + i].n, squares);
        if (first + i + 1 == hot->count)
            sum.bias_q = (double)squares / hot->workers;
    }
    hot->words[hot->self].damping = sum;
}

static float damping_of(const pace__hot *hot)
{
    pace__damping sum = {0};

    for (unsigned worker = 0; worker < hot->workers; worker++) {
        sum.a += hot->words[worker].damping.a;
        sum.a2 += hot->words[worker].damping.a2;
        sum.bias_q += hot->words[worker].damping.bias_q;
    }
    return pace__damping_of(&sum, hot->damping);
}

static void merge_share(pace__hot *hot)
{
    uint32_t first = share_first(hot, hot->self), count = share_count(hot, hot->self);
    const pace__flow_point *changes[PACE__WORKERS_MAX];
    PACE__SPAN("merge");

    hot->damping = damping_of(hot);
    for (unsigned worker = 0; worker < hot->workers; worker++)
        changes[worker] = changes_of(hot, worker);
    for (uint32_t i = 0; i < count; i++)
        hot->points[i] = pace__flow_from(&hot->optim, hot->merged[first + i]);
    pace__flow_merge(&hot->optim, hot->damping, changes, hot->workers, hot->points, count);
    for (uint32_t i = 0; i < count; i++)
        hot->merged[first + i] = pace__flow_to(&hot->optim, hot->points[i]);
}

/* --- moving on --- */

static pace__request *awaited(pace__hot *hot, unsigned other, size_t *bytes)
{
    pace__hot_peer *peer = &hot->peers[other];

    *bytes = hot->stage == PACE__HOT_PARTS
                 ? sizeof *hot->words
                 : share_count(hot, hot->stage == PACE__HOT_CHANGES ? hot->self : other) *
                       sizeof(pace__flow_point);
    return hot->stage == PACE__HOT_CHANGES ? &peer->changes
           : hot->stage == PACE__HOT_PARTS ? &peer->word
                                           : &peer->share;
}

/* Have all sent what this stage waits for? Those that have not are `silent`. */
static pace_status look(pace__hot *hot, size_t *silent)
{
    *silent = 0;
    for (unsigned i = 0; i < hot->workers; i++) {
        size_t bytes;
        pace__request *request = awaited(hot, i, &bytes);
        bool done, was = request->active;
        pace_status status = pace__link_done(hot->link, request, &done);

        if (!status && was && done)
            status = pace__link_fits(hot->link, request, bytes, "a part of a round");
        if (status)
            return status;
        if (!done)
            hot->silent[(*silent)++] = (int)i;
    }
    return PACE_OK;
}

static void send_words(pace__hot *hot)
{
    for (unsigned i = 0; i < hot->workers; i++) {
        if (i != hot->self)
            pace__link_send(hot->link, (int)i, TAG_WORD, &hot->words[hot->self], sizeof *hot->words,
                            &hot->peers[i].word_sent);
    }
}

static void send_share(pace__hot *hot)
{
    for (unsigned i = 0; i < hot->workers; i++) {
        if (i != hot->self)
            pace__link_send(hot->link, (int)i, TAG_SHARE, hot->merged + share_first(hot, hot->self),
                            share_count(hot, hot->self) * sizeof *hot->merged, &hot->peers[i].share_sent);
    }
}

/* As far as it goes without waiting; *silent: for how many it would have to. */
static pace_status move_on(pace__hot *hot, bool *busy, size_t *silent)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = look(hot, silent);

    while (!status && *silent == 0 && hot->stage != PACE__HOT_MERGED) {
        *busy = true;
        if (hot->stage == PACE__HOT_CHANGES) {
            measure(hot);
            send_words(hot);
            hot->stage = PACE__HOT_PARTS;
        } else {
            merge_share(hot);
            send_share(hot);
            hot->stage = PACE__HOT_MERGED;
        }
        status = look(hot, silent);
    }
    hot->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__hot_poll(pace__hot *hot, bool *busy)
{
    size_t silent;

    return hot->stage == PACE__HOT_IDLE ? PACE_OK : move_on(hot, busy, &silent);
}

static pace_status wait_for_all(pace__hot *hot)
{
    unsigned turns = 0;
    PACE__SPAN("wait for a round");

    for (;;) {
        bool busy = false;
        size_t silent;
        pace_status status = move_on(hot, &busy, &silent);

        if (status || silent == 0)
            return status;
        turns = busy ? 0 : turns;
        status = pace__link_turn(hot->link, hot->silent, silent, "its part of a round", &turns);
        if (status)
            return status;
    }
}

/* --- taking --- */

static void use(pace__hot *hot, pace__logreg *model)
{
    for (uint32_t i = 0; i < hot->count; i++) {
        float *parameter = pace__replica_at(model, hot->keys[i]);
        pace__flow_point now = pace__flow_pack(&hot->optim, parameter), base = hot->base[i],
                         merged = hot->merged[i];

        if (now.w != base.w || now.n != base.n) {
            pace__flow_point to = pace__flow_from(&hot->optim, merged), p = pace__flow_from(&hot->optim, now),
                             from = pace__flow_from(&hot->optim, base);

            merged =
                pace__flow_to(&hot->optim, (pace__flow_point){to.w + (p.w - from.w), to.n + (p.n - from.n)});
        }
        pace__flow_unpack(&hot->optim, merged, parameter);
        hot->base[i] = hot->merged[i];
    }
}

pace_status pace__hot_take(pace__hot *hot, pace__logreg *model, pace__hot_word *all)
{
    pace_status status = PACE_OK;

    *all = (pace__hot_word){0};
    if (hot->stage == PACE__HOT_IDLE)
        return PACE_OK;
    status = wait_for_all(hot);
    if (status)
        return status;
    uint64_t start_ns = pace__now_ns();

    for (unsigned i = 0; i < hot->workers; i++) {
        all->loss += hot->words[i].loss;
        all->rows += hot->words[i].rows;
        all->stop |= hot->words[i].stop;
    }
    use(hot, model);
    hot->stage = PACE__HOT_IDLE;
    hot->busy_ns += pace__now_ns() - start_ns;
    return PACE_OK;
}

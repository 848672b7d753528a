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

/* Of `others`: from one worker's to the next one's. */
static size_t others_stride(const pace__hot *hot)
{
    return share_max(hot->workers, hot->count) + (size_t)1;
}

static size_t point_bytes(const pace__hot *hot)
{
    return hot->narrow ? sizeof(pace__flow_narrow) : sizeof(pace__flow_point);
}

/* Room for what travels, where that is not what is computed with. */
static bool open_wire(pace__hot *hot)
{
    if (hot->narrow) {
        hot->changes_out = calloc(hot->count + (size_t)1, point_bytes(hot));
        hot->others_in = calloc(hot->workers * others_stride(hot), point_bytes(hot));
        hot->shares = calloc(hot->count + (size_t)1, point_bytes(hot));
    } else {
        hot->changes_out = (char *)hot->changes;
        hot->others_in = (char *)hot->others;
        hot->shares = (char *)hot->merged;
    }
    return hot->changes_out && hot->others_in && hot->shares;
}

static void close_wire(pace__hot *hot)
{
    if (!hot->narrow)
        return;
    free(hot->shares);
    free(hot->others_in);
    free(hot->changes_out);
}

pace_status pace__hot_open(pace__hot *hot, pace__link *link, unsigned workers, const uint32_t *keys,
                           uint32_t count, bool narrow, const pace_log *log)
{
    size_t share = share_max(workers, count), points = count ? count : 1;

    *hot = (pace__hot){.count = count, .link = link, .log = log, .workers = workers, .narrow = narrow};
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
        !hot->words || !hot->peers || !hot->silent || !open_wire(hot))
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
    close_wire(hot);
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

void pace__hot_begin(pace__hot *hot, pace__logreg *model, uint64_t place)
{
    assert(hot->stage == PACE__HOT_IDLE);
    hot->place = place;
    for (uint32_t i = 0; i < hot->count; i++)
        hot->base[i] = hot->merged[i] = pace__flow_pack(&model->optim, pace__replica_at(model, hot->keys[i]));
}

/* --- sending --- */

/* The bias, which is the last, has no penalty. */
static pace__optim rule_of_bias(const pace__hot *hot)
{
    pace__optim optim = hot->optim;

    optim.lazy = false;
    return optim;
}

/* What was changed since base, which moves on; so does what was merged last. */
static inline void find_change(pace__hot *hot, const pace__optim *optim, pace__logreg *model, uint64_t place,
                               uint32_t i)
{
    pace__flow_point now = pace__flow_pack_at(optim, pace__replica_at(model, hot->keys[i]), place);

    hot->changes[i] = pace__flow_change(optim, now, pace__flow_later(optim, hot->base[i], hot->place, place));
    if (optim->lazy)
        hot->merged[i] = pace__flow_later(optim, hot->merged[i], hot->place, place);
    hot->base[i] = now;
}

static void find_changes(pace__hot *hot, pace__logreg *model, uint64_t place)
{
    const pace__optim optim = hot->optim, bias = rule_of_bias(hot); /* stay in registers */

    for (uint32_t i = 0; i + 1 < hot->count; i++)
        find_change(hot, &optim, model, place, i);
    find_change(hot, &bias, model, place, hot->count - 1);
    hot->place = place;
}

/* What stays here is not rounded. */
static void round_changes(pace__hot *hot)
{
    pace__flow_narrow *to = (pace__flow_narrow *)hot->changes_out;

    for (uint32_t i = 0; i < hot->count; i++)
        to[i] = pace__flow_round(hot->changes[i]);
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
    size_t size = point_bytes(hot);

    pace__link_receive(hot->link, (int)other, TAG_CHANGES, hot->others_in + other * others_stride(hot) * size,
                       share_count(hot, hot->self) * size, &peer->changes);
    pace__link_receive(hot->link, (int)other, TAG_WORD, &hot->words[other], sizeof *hot->words, &peer->word);
    pace__link_receive(hot->link, (int)other, TAG_SHARE, hot->shares + share_first(hot, other) * size,
                       share_count(hot, other) * size, &peer->share);
}

pace_status pace__hot_send(pace__hot *hot, pace__logreg *model, const pace__optim *optim, uint64_t place,
                           const pace__hot_word *own)
{
    uint64_t start_ns = pace__now_ns();
    PACE__SPAN("send changes");
    pace_status status = PACE_OK;

    assert(hot->stage == PACE__HOT_IDLE); /* invariant 1 */
    hot->optim = *optim;
    for (unsigned i = 0; i < hot->workers && !status; i++)
        status = wait_for_sends(hot, &hot->peers[i]);
    if (status)
        return status;
    hot->words[hot->self] = *own;
    find_changes(hot, model, place);
    if (hot->narrow)
        round_changes(hot);
    for (unsigned step = 1; step < hot->workers; step++) {
        unsigned other = (hot->self + step) % hot->workers;

        post(hot, other);
        pace__link_send(hot->link, (int)other, TAG_CHANGES,
                        hot->changes_out + share_first(hot, other) * point_bytes(hot),
                        share_count(hot, other) * point_bytes(hot), &hot->peers[other].changes_sent);
    }
    hot->stage = PACE__HOT_CHANGES;
    hot->busy_ns += pace__now_ns() - start_ns;
    return PACE_OK;
}

/* --- merging --- */

static const pace__flow_point *changes_of(const pace__hot *hot, unsigned worker)
{
    return worker == hot->self ? hot->changes + share_first(hot, worker)
                               : hot->others + worker * others_stride(hot);
}

static void widen_others(pace__hot *hot)
{
    const pace__flow_narrow *from = (const pace__flow_narrow *)hot->others_in;

    for (size_t i = 0; i < hot->workers * others_stride(hot); i++)
        hot->others[i] = pace__flow_widen(from[i]);
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

/* Merged ones of the own share, as changes since the last exchange. */
static void round_share(pace__hot *hot)
{
    uint32_t first = share_first(hot, hot->self), count = share_count(hot, hot->self);
    pace__flow_narrow *to = (pace__flow_narrow *)hot->shares + first;

    for (uint32_t i = 0; i < count; i++) {
        pace__flow_point before = pace__flow_from(&hot->optim, hot->merged[first + i]), now = hot->points[i];

        to[i] = pace__flow_round((pace__flow_point){now.w - before.w, now.n - before.n});
    }
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
    if (hot->narrow) {
        round_share(hot); /* taken like those of others */
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        hot->merged[first + i] = pace__flow_to(&hot->optim, hot->points[i]);
}

/* --- moving on --- */

static pace__request *awaited(pace__hot *hot, unsigned other, size_t *bytes)
{
    pace__hot_peer *peer = &hot->peers[other];

    *bytes = hot->stage == PACE__HOT_PARTS
                 ? sizeof *hot->words
                 : share_count(hot, hot->stage == PACE__HOT_CHANGES ? hot->self : other) * point_bytes(hot);
    return hot->stage == PACE__HOT_CHANGES ? &peer->changes
           : hot->stage == PACE__HOT_PARTS ? &peer->word
                                           : &peer->share;
}

/* Have all sent what this stage waits for? Those that have not are `silent`. Behind the first
 * one that has not, nobody is asked: others are looked at when there is nobody before them to wait for. */
static pace_status look(pace__hot *hot, size_t *silent)
{
    *silent = 0;
    for (unsigned i = 0; i < hot->workers; i++) {
        size_t bytes;
        pace__request *request = awaited(hot, i, &bytes);
        bool was = request->active, done = !was;
        pace_status status = *silent == 0 ? pace__link_done(hot->link, request, &done) : PACE_OK;

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
            pace__link_send(hot->link, (int)i, TAG_SHARE,
                            hot->shares + share_first(hot, hot->self) * point_bytes(hot),
                            share_count(hot, hot->self) * point_bytes(hot), &hot->peers[i].share_sent);
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
            if (hot->narrow)
                widen_others(hot);
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

/* By changes that all have alike, from where it is alike. */
static void move_merged(pace__hot *hot)
{
    const pace__flow_narrow *by = (const pace__flow_narrow *)hot->shares;
    const pace__optim optim = hot->optim;

    for (uint32_t i = 0; i < hot->count; i++)
        hot->merged[i] = pace__flow_moved(&optim, hot->merged[i], pace__flow_widen(by[i]));
}

static inline void use_one(pace__hot *hot, const pace__optim *optim, pace__logreg *model, uint64_t now,
                           uint32_t i)
{
    float *parameter = pace__replica_at(model, hot->keys[i]);
    pace__flow_point packed = pace__flow_pack_at(optim, parameter, now),
                     base = pace__flow_later(optim, hot->base[i], hot->place, now),
                     merged = pace__flow_later(optim, hot->merged[i], hot->place, now);

    if (packed.w != base.w || packed.n != base.n) {
        pace__flow_point to = pace__flow_from(optim, merged), by = pace__flow_change(optim, packed, base);

        merged = pace__flow_to(optim, (pace__flow_point){to.w + by.w, to.n + by.n});
    }
    pace__flow_unpack_at(optim, merged, now, parameter);
    hot->base[i] = hot->merged[i];
}

static void use(pace__hot *hot, pace__logreg *model, uint64_t now)
{
    const pace__optim optim = hot->optim, bias = rule_of_bias(hot);

    if (hot->narrow)
        move_merged(hot);
    for (uint32_t i = 0; i + 1 < hot->count; i++)
        use_one(hot, &optim, model, now, i);
    use_one(hot, &bias, model, now, hot->count - 1);
}

pace_status pace__hot_take(pace__hot *hot, pace__logreg *model, uint64_t now, pace__hot_word *all)
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
    use(hot, model, now);
    hot->stage = PACE__HOT_IDLE;
    hot->busy_ns += pace__now_ns() - start_ns;
    return PACE_OK;
}

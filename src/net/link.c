/*
 * What both carriers share. The states of
 *
 *     a request   idle    -> active   send, receive, sum
 *                 active  -> idle     done, wait: it is over; cancel, settle, abandon: it is given up
 *     the link    open    -> failed   an error of the carrier or a missed deadline, which is said; another
 *                                     rank's end of the job, which is not; the caller's (fail)
 *     a peer      unknown -> related  a message to it, from it, or expected of it
 *                 any     -> lost     the caller says so
 *
 * There is no way back from failed, related and lost.
 *
 * 1. `failure` is set once. `why` is what was said then, or "" if another rank has said it.
 * 2. `under_way` counts the callers' active requests. The link's own (signs of life, notices of failure) and
 *    those that carriers wait for at the end are not in it.
 * 3. From begin to close the receive for signs of life is active, but for the moment in which one is taken,
 *    or the link has failed. Rank 0's for notices is, until one has come: the first ends the job.
 * 4. Times never lie ahead of the clock that they are subtracted from: those of the link (looked_ns, turn_ns,
 *    wait_began_ns) are set in the turn under way or before. Idle functions wait inside a turn, so
 *    wait_began_ns is put back behind them. related_ns and worked_ns alone may be later than the turn's clock.
 * 5. No sign of life is under way to a lost peer, and none sets out, unless it lives.
 * 6. worked_ns of the link is no earlier than the last work here, nor, while it waits, than what is known of the last work of
 *    those that it waits for, who tell the same of themselves: where ranks wait for each other in a circle, nobody's moves on.
 *    On the way from one to the other it may become later, by as long as the sign has travelled; never earlier.
 */
#include "net/link_internal.h"

#include "base/clock.h"
#include "base/machine.h"
#include "watch/spans.h"

#include <assert.h>
#include <paceline/relay.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * How a wait gives way. Over MPI a turn tests requests, which costs far more than a pause: few pauses. Where
 * others want the core, yielding is as good as sleeping and ends sooner; where nobody does, it is spinning:
 * so what is counted is the time of tests, not that of yields. (Tests of shared memory take a fifth of a microsecond,
 * those of TCP ten times as long, and where a host has only a share of a core, they take it from the computing.)
 * Sleeps grow with the wait, so that a process that has nothing to do for long uses hardly any time, and an answer is
 * never found much later than it came.
 */
#define PAUSES       20
#define YIELDS       200 /* at most, however slow a test is */
#define SPIN_NS      100000
#define SLEEP_MIN_NS 50000
#define SLEEP_MAX_NS 2000000
#define SLEEP_PART   16    /* of the time waited so far */
#define SLOW_TEST_NS 10000 /* then the carrier has given the core away */

#define LOOK_EVERY_NS      1000000 /* for signs of life and failure notices */
#define LOOK_EVERY_TESTS   256     /* of callers who ask done() in loops of their own; a power of two */
#define ALIVE_PER_DEADLINE 6
#define CHIEF_ENDS_NS      2000000000u /* how long rank 0 has to end a job that another rank knows is lost */

/* --- what both carriers share --- */

pace__link *pace__link_create(const pace__carrier *carrier, int rank, int size, int workers,
                              const pace__link_options *options)
{
    pace__link *link = calloc(1, sizeof *link);
    pace__peer *peers = calloc((size_t)size, sizeof *peers);
    int *ranks = calloc((size_t)size, sizeof *ranks);

    assert(size >= 1 && rank >= 0 && rank < size);
    assert(options->deadline_ns > 0 && options->first_deadline_ns > 0);
    if (!link || !peers || !ranks) {
        free(link);
        free(peers);
        free(ranks);
        pace_fail(options->log, PACE_FAILED, "out of memory for the links between %d ranks", size);
        return NULL;
    }
    uint64_t now = pace__now_ns();

    *link = (pace__link){.carrier = carrier,
                         .waited_for = -1,
                         .rank = rank,
                         .neighbour = rank,
                         .size = size,
                         .workers = workers,
                         .options = *options,
                         .first_log = options->log,
                         .spin_ns = SPIN_NS,
                         .delay = {.fd = -1},
                         .listening_ns = now,
                         .worked_ns = now,
                         .looked_ns = now,
                         .peers = peers,
                         .ranks = ranks};
    for (int i = 0; i < size; i++) {
        ranks[i] = i;
        snprintf(peers[i].name, sizeof peers[i].name, "rank %d", i);
    }
    return link;
}

void pace__link_free(pace__link *link)
{
    if (!link)
        return;
    pace__delay_close(&link->delay);
    free(link->peers);
    free(link->ranks);
    free(link);
}

pace_status pace__link_broken(pace__link *link, pace_status status, const char *format, ...)
{
    va_list arguments;

    assert(status != PACE_OK);
    if (link->failure) /* invariant 1 */
        return link->failure;
    va_start(arguments, format);
    vsnprintf(link->why, sizeof link->why, format, arguments);
    va_end(arguments);
    link->failure = status;
    return pace_fail(link->options.log, status, "%s", link->why);
}

/* --- the link's own messages: not counted, and nobody waits for them --- */

static void send_own(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                     pace__request *request)
{
    assert(!request->active && tag >= PACE__LINK_TAGS_MAX);
    *request = (pace__request){.peer = peer, .tag = tag, .active = true, .bytes = size};
    link->carrier->send(link, peer, tag, bytes, size, request);
}

static void receive_own(pace__link *link, int tag, void *buffer, size_t capacity, pace__request *request)
{
    assert(!request->active && tag >= PACE__LINK_TAGS_MAX);
    *request = (pace__request){
        .peer = PACE__LINK_ANY, .tag = tag, .active = true, .receives = true, .bytes = capacity};
    link->carrier->receive(link, buffer, request);
}

/* True once, when it has ended well: a failure of the carrier is kept, and found by whoever waits. */
static bool own_is_over(pace__link *link, pace__request *request)
{
    bool over = false;

    if (!request->active)
        return false;
    pace_status status = link->carrier->test(link, request, &over);

    request->active = !over;
    return over && !status;
}

static void cancel_own(pace__link *link, pace__request *request)
{
    if (request->active)
        link->carrier->cancel(link, request);
    request->active = false;
}

static void expect_alive(pace__link *link)
{
    receive_own(link, PACE__TAG_ALIVE, &link->stands_ns, sizeof link->stands_ns, &link->alive_in);
}

void pace__link_begin(pace__link *link)
{
    expect_alive(link);
    if (link->rank == 0)
        receive_own(link, PACE__TAG_FAILURE, &link->notice, sizeof link->notice, &link->notice_request);
}

void pace__link_relate(pace__link *link, int rank)
{
    assert(rank >= 0 && rank < link->size);
    pace__peer *peer = &link->peers[rank];

    if (peer->related)
        return;
    peer->related = true;
    peer->related_ns = pace__now_ns();
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* For how long this rank, and whoever it waits for, have only waited. */
static uint64_t stood_ns(const pace__link *link, uint64_t now)
{
    uint64_t since = later(link->worked_ns, link->listening_ns);

    return now > since ? now - since : 0;
}

static void give_signs(pace__link *link, uint64_t now)
{
    for (int i = 0; i < link->size; i++) {
        pace__peer *peer = &link->peers[i];

        if (peer->heard)
            peer->heard_ns = now;
        peer->heard = false;
        assert(!peer->lost || peer->lives || !peer->alive.active);
        own_is_over(link, &peer->alive);
        bool gone = peer->lost && !peer->lives;

        if (!peer->related || gone || i == link->rank || peer->alive.active || link->quiet)
            continue;
        peer->stood_ns = stood_ns(link, now);
        send_own(link, i, PACE__TAG_ALIVE, &peer->stood_ns, sizeof peer->stood_ns, &peer->alive);
        peer->alives_sent++;
    }
    link->alive_ns = now + link->options.deadline_ns / ALIVE_PER_DEADLINE;
}

static void look_for_signs(pace__link *link, uint64_t now)
{
    while (own_is_over(link, &link->alive_in)) {
        pace__peer *peer = &link->peers[link->alive_in.peer];

        pace__link_relate(link, link->alive_in.peer);
        if (link->alive_in.bytes != sizeof link->stands_ns) {
            pace__link_broken(link, PACE_BUG, "a sign of life of %s that cannot be",
                              pace__link_name(link, link->alive_in.peer));
            return;
        }
        peer->heard = true;
        if (link->stands_ns < now) /* else it is longer than there was anything */
            peer->worked_ns = later(peer->worked_ns, now - link->stands_ns);
        link->alives_got++;
        expect_alive(link);
    }
}

/* A rank has told why the job is lost. */
static void take_notice(pace__link *link)
{
    pace__notice *notice = &link->notice;

    notice->reason[sizeof notice->reason - 1] = '\0';
    if (link->notice_request.bytes == sizeof *notice && notice->status != PACE_OK)
        pace__link_broken(link, (pace_status)notice->status, "%s", notice->reason);
    else
        pace__link_broken(link, PACE_BUG, "a failure of %s that cannot be",
                          pace__link_name(link, link->notice_request.peer));
}

static void look_for_failures(pace__link *link)
{
    if (!link->failure)
        link->failure = link->carrier->ended(link);
    if (!link->failure && link->rank == 0 && own_is_over(link, &link->notice_request))
        take_notice(link);
}

/* What has to be done now and then, whatever the caller does; true if it was time for it. */
static bool tick(pace__link *link, uint64_t now)
{
    assert(now >= link->looked_ns);
    if (now - link->looked_ns < LOOK_EVERY_NS)
        return false;
    if (now - link->looked_ns > link->options.deadline_ns / 2)
        link->listening_ns = now; /* what came meanwhile is still on its way through the carrier */
    link->looked_ns = now;
    look_for_signs(link, now);
    look_for_failures(link);
    if (now >= link->alive_ns)
        give_signs(link, now);
    return true;
}

/* --- whom to blame --- */

/* How long this rank has listened to that peer in vain; *limit is how long it may. */
static uint64_t silence_ns(pace__link *link, int rank, uint64_t now, uint64_t *limit)
{
    assert(rank >= 0 && rank < link->size);
    pace__peer *peer = &link->peers[rank];

    if (peer->heard)
        peer->heard_ns = now;
    peer->heard = false;
    *limit = peer->heard_ns ? link->options.deadline_ns : link->options.first_deadline_ns;
    uint64_t since = peer->heard_ns > link->listening_ns ? peer->heard_ns : link->listening_ns;

    since = peer->related_ns > since ? peer->related_ns : since;
    if (rank == link->rank && link->wait_began_ns > since)
        since = link->wait_began_ns;      /* it sends itself no signs */
    return now > since ? now - since : 0; /* invariant 4: a relation may have begun meanwhile */
}

static pace_status blame(pace__link *link, const char *who, const char *how, uint64_t silent_ns,
                         const char *what)
{
    char step[40] = "";

    if (link->has_step)
        snprintf(step, sizeof step, "step %llu: ", (unsigned long long)link->step);
    return pace__link_broken(link, PACE_LOST, "%s%s has %s for %.1f s; %s was waiting for %s", step, who, how,
                             (double)silent_ns * 1e-9, pace__link_name(link, link->rank), what);
}

/* Nobody in particular is waited for: one sign of anyone is enough. Who is alone waits for itself, or for a disk. */
static pace_status check_anybody(pace__link *link, const char *what, uint64_t now)
{
    uint64_t least = UINT64_MAX, limit;

    if (link->size == 1)
        return PACE_OK;
    for (int i = 0; i < link->size; i++) {
        uint64_t silent = silence_ns(link, i, now, &limit);

        if (silent < limit)
            return PACE_OK;
        least = silent < least ? silent : least;
    }
    return blame(link, "nobody", "given a sign of life", least, what);
}

static pace_status check_peers(pace__link *link, const int *peers, size_t count, const char *what,
                               uint64_t now)
{
    uint64_t most = 0, limit;
    int worst = -1;

    if (count == 0)
        return check_anybody(link, what, now);
    for (size_t i = 0; i < count; i++) {
        uint64_t silent = silence_ns(link, peers[i], now, &limit);

        if (silent < limit || silent < most || link->peers[peers[i]].lost ||
            (peers[i] == link->rank && count > 1))
            continue;
        most = silent;
        worst = peers[i];
    }
    if (worst < 0)
        return PACE_OK;
    const pace__peer *peer = &link->peers[worst];

    return blame(link, peer->name, peer->heard_ns ? "given no sign of life" : "never been heard of,", most,
                 what);
}

/* Of several any may be at work. Who waits for nobody in particular waits for a disk, or has something to do of its own: that is
 * work; and who has never been heard of may be starting. */
static void note_work(pace__link *link, const int *peers, size_t count, uint64_t now)
{
    if (count == 0)
        link->worked_ns = now;
    for (size_t i = 0; i < count; i++) {
        const pace__peer *peer = &link->peers[peers[i]];
        bool known = peer->heard_ns || peer->heard;

        if (peers[i] != link->rank && !peer->lost)
            link->worked_ns = later(link->worked_ns, known ? later(peer->worked_ns, peer->related_ns) : now);
    }
}

/* Everyone it waits for gives signs of life, and all of them only wait: they may wait for each other, for ever. */
static pace_status check_standstill(pace__link *link, const int *peers, size_t count, const char *what,
                                    uint64_t now)
{
    uint64_t stood = stood_ns(link, now);

    if (count == 0 || stood < PACE__LINK_STANDSTILL * link->options.deadline_ns)
        return PACE_OK;
    return blame(link, count == 1 ? link->peers[peers[0]].name : "everyone",
                 "only waited, like whoever is waited for there,", stood, what);
}

static pace_status look_around(pace__link *link, const int *peers, size_t count, const char *what,
                               uint64_t now)
{
    if (!tick(link, now) || link->failure)
        return link->failure;
    pace_status status = check_peers(link, peers, count, what, now);

    return status ? status : check_standstill(link, peers, count, what, now);
}

bool pace__link_is_silent(pace__link *link, int rank)
{
    uint64_t limit, silent = silence_ns(link, rank, pace__now_ns(), &limit);

    return silent >= limit;
}

/* --- waiting --- */

/* Asleep is not who was woken, and has no processor yet. */
static void sleep_at_most(pace__link *link, uint64_t ns)
{
    uint64_t start_ns = pace__now_ns(), delay_ns = link->alone ? pace__delay_ns(&link->delay) : 0;

    link->carrier->sleep(link, ns);
    if (!link->alone)
        return;
    uint64_t slept_ns = pace__now_ns() - start_ns, delayed_ns = pace__delay_ns(&link->delay) - delay_ns;

    link->slept_ns += slept_ns > delayed_ns ? slept_ns - delayed_ns : 0;
}

/* True if it gave the core away, so that time has passed. */
static bool back_off(pace__link *link, unsigned *turns, uint64_t now)
{
    unsigned turn = *turns;

    assert(now >= link->wait_began_ns);
    if (turn < PAUSES + YIELDS)
        ++*turns;
    if (turn < PAUSES) {
        pace__pause();
        return false;
    }
    if (turn < PAUSES + YIELDS && link->spun_ns < link->spin_ns) {
        sched_yield();
        return true;
    }
    uint64_t sleep_ns = (now - link->wait_began_ns) / SLEEP_PART;

    sleep_ns = sleep_ns < SLEEP_MIN_NS ? SLEEP_MIN_NS : sleep_ns > SLEEP_MAX_NS ? SLEEP_MAX_NS : sleep_ns;
    sleep_at_most(link, sleep_ns);
    return true;
}

static void count_wait(pace__link *link, const int *peers, size_t count, uint64_t now)
{
    assert(now >= link->turn_ns);
    if (count > 0) {
        link->peers[peers[0]].wait_ns += now - link->turn_ns;
        link->idle_ns += link->alone ? link->slept_ns : now - link->turn_ns;
    }
    link->slept_ns = 0;
    pace__span_wait(count > 0 ? peers[0] : -1, link->turn_ns, now);
    link->turn_ns = now;
}

static pace_status do_other_work(pace__link *link, bool *busy)
{
    uint64_t began_ns = link->wait_began_ns;

    if (!link->idle || link->idling)
        return PACE_OK;
    link->idling = true;
    pace_status status = link->idle(link->idle_user, busy);

    link->idling = false;
    link->wait_began_ns = began_ns; /* invariant 4 */
    return status;
}

pace_status pace__link_turn(pace__link *link, const int *peers, size_t count, const char *what,
                            unsigned *turns)
{
    uint64_t now = pace__now_ns();
    bool busy = false;

    assert(peers || count == 0);
    link->waited_for = count > 0 ? peers[0] : -1;
    if (*turns > 0) {
        link->spun_ns += now - link->turn_ns < SLOW_TEST_NS ? now - link->turn_ns : 0;
        count_wait(link, peers, count, now);
    } else {
        link->wait_began_ns = link->worked_ns = now;
        link->spun_ns = 0;
    }
    link->turn_ns = now;
    note_work(link, peers, count, now);
    pace_status status = look_around(link, peers, count, what, now);

    if (!status)
        status = do_other_work(link, &busy);
    if (status)
        return status;
    if (busy) { /* that was no waiting, and there may be more to do */
        link->turn_ns = link->wait_began_ns = link->worked_ns = pace__now_ns();
        link->spun_ns = 0;
        *turns = 1;
    } else if (back_off(link, turns, now)) {
        count_wait(link, peers, count, pace__now_ns());
    }
    return PACE_OK;
}

pace_status pace__link_wait(pace__link *link, pace__request *request, const char *what)
{
    int peer = request->peer;
    const int *peers = peer >= 0 ? &peer : link->ranks;
    size_t count = peer >= 0                     ? 1
                   : peer == PACE__LINK_ANY      ? 0
                   : peer == PACE__LINK_EVERYONE ? (size_t)link->size
                                                 : (size_t)link->workers;
    unsigned turns = 0;
    bool done;

    for (;;) {
        pace_status status = pace__link_done(link, request, &done);

        if (status || done)
            return status;
        if (peer >= 0 && link->peers[peer].lost)
            return PACE_LOST;
        if ((status = pace__link_turn(link, peers, count, what, &turns)))
            return status;
    }
}

pace_status pace__link_check(pace__link *link, int peer, const char *what)
{
    uint64_t now = pace__now_ns();

    return tick(link, now) && !link->failure ? check_peers(link, &peer, 1, what, now) : link->failure;
}

pace_status pace__link_pulse(pace__link *link)
{
    link->worked_ns = pace__now_ns();
    tick(link, link->worked_ns);
    return link->failure;
}

void pace__link_on_idle(pace__link *link, pace__idle_fn *idle, void *user)
{
    link->idle = idle;
    link->idle_user = user;
}

/* --- messages --- */

static void start(pace__link *link, pace__request *request, int peer, int tag, size_t bytes, bool receives)
{
    assert(!request->active);
    assert(bytes <= PACE__LINK_MESSAGE_MAX);
    assert(tag >= 0 && tag < PACE__LINK_TAGS_MAX);
    *request =
        (pace__request){.peer = peer, .tag = tag, .active = true, .receives = receives, .bytes = bytes};
    link->under_way++;
}

void pace__link_send(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                     pace__request *request)
{
    assert(peer >= 0 && peer < link->size);
    start(link, request, peer, tag, size, false);
    pace__peer *to = &link->peers[peer];

    pace__link_relate(link, peer);
    to->traffic[tag].messages_sent++;
    to->traffic[tag].bytes_sent += size;
    link->carrier->send(link, peer, tag, bytes, size, request);
}

void pace__link_receive(pace__link *link, int peer, int tag, void *buffer, size_t capacity,
                        pace__request *request)
{
    assert(peer == PACE__LINK_ANY || (peer >= 0 && peer < link->size));
    start(link, request, peer, tag, capacity, true);
    if (peer >= 0)
        pace__link_relate(link, peer);
    link->carrier->receive(link, buffer, request);
}

void pace__link_sum(pace__link *link, float *buffer, size_t count, pace__request *request)
{
    assert(link->rank < link->workers);
    start(link, request, PACE__LINK_WORKERS, 0, count * sizeof *buffer, false);
    for (int i = 0; i < link->workers; i++)
        pace__link_relate(link, i);
    link->carrier->sum(link, buffer, count, request);
}

/* A caller's, not one of the link's own or of the carrier's: invariant 2. */
static bool is_counted(const pace__request *request)
{
    return request->peer != PACE__LINK_EVERYONE && request->tag < PACE__LINK_TAGS_MAX;
}

/* From active to idle. */
static void leave(pace__link *link, pace__request *request)
{
    assert(request->active);
    assert(!is_counted(request) || link->under_way > 0);
    request->active = false;
    link->under_way -= is_counted(request);
}

static void complete(pace__link *link, pace__request *request)
{
    leave(link, request);
    if (!request->receives || request->peer < 0)
        return;
    pace__peer *from = &link->peers[request->peer];

    pace__link_relate(link, request->peer);
    from->heard = true;
    from->traffic[request->tag].messages_received++;
    from->traffic[request->tag].bytes_received += request->bytes;
}

/* MPI gives the core away when nothing has come: for a profile, that is waiting. Whose message was tested says little of
 * for whom: it is taken to be whoever was waited for last. */
static void note_slow_test(const pace__link *link, uint64_t start_ns)
{
    uint64_t now_ns = pace__span_now();

    if (now_ns - start_ns >= SLOW_TEST_NS)
        pace__span_wait(link->waited_for, start_ns, now_ns);
}

pace_status pace__link_done(pace__link *link, pace__request *request, bool *done)
{
    bool over = true;
    pace_status status = PACE_OK;

    if (request->active) {
        uint64_t start_ns = pace__span_now();

        over = false;
        status = link->carrier->test(link, request, &over);
        if (!over)
            note_slow_test(link, start_ns);
        if (over)
            complete(link, request);
        else if (++link->tests % LOOK_EVERY_TESTS == 0)
            tick(link, pace__now_ns());
    }
    *done = over;
    return status ? status : link->failure;
}

pace_status pace__link_fits(pace__link *link, const pace__request *received, size_t bytes, const char *what)
{
    assert(received->receives && !received->active && received->peer >= 0);
    if (received->bytes == bytes)
        return PACE_OK;
    return pace__link_broken(link, PACE_BUG, "%s has sent %zu bytes as %s, which has %zu",
                             pace__link_name(link, received->peer), received->bytes, what, bytes);
}

static void give_up(pace__link *link, pace__request *request)
{
    link->carrier->cancel(link, request);
    leave(link, request);
}

void pace__link_cancel(pace__link *link, pace__request *request)
{
    assert(!request->active || request->receives);
    if (request->active)
        give_up(link, request);
}

void pace__link_settle(pace__link *link, pace__request *request)
{
    if (request->active && !link->failure)
        pace__link_wait(link, request, "a message to leave");
    if (!request->active) /* also if the wait has failed: it may have seen the end of it */
        return;
    if (request->peer >= 0 && link->peers[request->peer].lost)
        pace__link_abandon(link, request);
    else
        give_up(link, request);
}

/* --- losses --- */

void pace__link_lose(pace__link *link, int rank)
{
    assert(rank >= 0 && rank < link->size && rank != link->rank);
    pace__peer *peer = &link->peers[rank];

    if (peer->lost)
        return;
    peer->lost = true;
    if (peer->alive.active)
        link->carrier->abandon(link, &peer->alive);
    peer->alive.active = false;
}

void pace__link_let_go(pace__link *link, int rank)
{
    assert(rank >= 0 && rank < link->size && rank != link->rank);
    link->peers[rank].lost = link->peers[rank].lives = true;
}

bool pace__link_is_lost(const pace__link *link, int rank)
{
    return link->peers[rank].lost;
}

void pace__link_leave_alone(pace__link *link)
{
    link->leaves_alone = true;
}

bool pace__link_can_dismiss(const pace__link *link)
{
    return link->carrier->dismiss && (pace_relay_wanted() || getenv("OMPI_COMM_WORLD_SIZE"));
}

void pace__link_dismiss(pace__link *link)
{
    assert(link->rank == 0 && link->carrier->dismiss);
    link->leaves_alone = true;
    link->carrier->dismiss();
}

bool pace__link_abandon(pace__link *link, pace__request *request)
{
    if (!request->active)
        return true;
    bool free_again = link->carrier->abandon(link, request);

    leave(link, request);
    return free_again;
}

/* --- the end --- */

/* Tells rank 0 and gives it time to end the job, in which case this process does not come back from here. */
static void tell_chief(pace__link *link, pace_status status, const char *reason)
{
    uint64_t until = pace__now_ns() + CHIEF_ENDS_NS;

    link->notice.status = (int)status;
    snprintf(link->notice.reason, sizeof link->notice.reason, "%s", reason);
    if (!link->carrier->ended(link))
        send_own(link, 0, PACE__TAG_FAILURE, &link->notice, sizeof link->notice, &link->notice_request);
    while (!link->carrier->ended(link) && pace__now_ns() < until) {
        own_is_over(link, &link->notice_request);
        nanosleep(&(struct timespec){.tv_nsec = 20 * SLEEP_MIN_NS}, NULL);
    }
}

void pace__link_fail(pace__link *link, pace_status status, const char *reason)
{
    assert(status != PACE_OK && reason);
    link->carrier->forget(link);
    if (link->rank != 0)
        tell_chief(link, status, reason);
    if (link->rank != 0 && reason[0] && !link->carrier->ended(link)) /* the chief has not listened */
        pace_say(link->first_log, PACE_ERROR, "%s", reason);
    link->carrier->abort(link, status);
    if (!link->failure) /* between threads: nothing is waited for any more */
        link->failure = status;
}

void pace__link_close(pace__link *link)
{
    if (!link)
        return;
    assert(link->under_way == 0 || link->failure);
    assert(!link->idling);
    link->idle = NULL;
    pace_status status = link->failure        ? link->failure
                         : link->leaves_alone ? PACE_OK
                                              : link->carrier->part(link);

    if (status) /* between threads, and after pace__link_fail, that changes nothing */
        pace__link_fail(link, status, link->why);
    if (!link->leaves_alone) {
        cancel_own(link, &link->alive_in);
        cancel_own(link, &link->notice_request);
    }
    link->carrier->release(link);
    pace__link_free(link);
}

/* --- names and counters --- */

void pace__link_set_log(pace__link *link, const pace_log *log)
{
    link->options.log = log;
}

uint64_t pace__link_deadline_ns(const pace__link *link)
{
    return link->options.deadline_ns;
}

int pace__link_rank(const pace__link *link)
{
    return link->rank;
}

int pace__link_neighbour(const pace__link *link)
{
    return link->neighbour;
}

int pace__link_size(const pace__link *link)
{
    return link->size;
}

void pace__link_set_name(pace__link *link, int rank, const char *name)
{
    assert(rank >= 0 && rank < link->size);
    snprintf(link->peers[rank].name, sizeof link->peers[rank].name, "%s", name);
}

const char *pace__link_name(const pace__link *link, int rank)
{
    assert(rank >= 0 && rank < link->size);
    return link->peers[rank].name;
}

void pace__link_set_step(pace__link *link, uint64_t step)
{
    link->step = step;
    link->has_step = true;
}

pace__traffic pace__link_traffic(const pace__link *link, int peer, int tag)
{
    assert(peer >= 0 && peer < link->size && tag >= 0 && tag < PACE__LINK_TAGS_MAX);
    return link->peers[peer].traffic[tag];
}

uint64_t pace__link_wait_ns(const pace__link *link, int peer)
{
    return link->peers[peer].wait_ns;
}

uint64_t pace__link_idle_ns(const pace__link *link)
{
    return link->idle_ns;
}

bool pace__link_spins(const pace__link *link)
{
    return !link->alone;
}

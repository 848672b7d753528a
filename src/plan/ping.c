/* ping.c - messages there and back, as one of the processes that were started for it. */
#include "base/clock.h"
#include "plan/network.h"
#include "ranks/ranks.h"

#include <stdlib.h>

/* A small message is as short as those that only say that something is done; large ones grow from the first of these by as much
 * as they may, until they take enough of the time that there is. */
#define SMALL_BYTES       8
#define LARGE_BYTES_FIRST ((size_t)4 << 10)
#define LARGE_BYTES_MAX   ((size_t)16 << 20)
#define GROWTH            4
/* Parts of a link's time: for small ones, and after how much of it no larger message is tried. */
#define SMALL_PART 0.25
#define LARGE_PART (1.0 / 6)
/* Round trips. */
#define SMALL_LEAST 8
#define SMALL_MOST  256
#define LARGE_MOST  8
/* The last message: nothing comes back. */
#define BYE_BYTES 1
#define MINE      "a message to send back"
#define BACK      "a message to come back"

/* --- the others --- */

static pace_status answer(pace__link *link, char *buffer)
{
    pace_status status = PACE_OK;
    size_t size;

    do {
        status = pace__ranks_receive(link, 0, buffer, LARGE_BYTES_MAX, MINE, &size);
        if (!status && size > BYE_BYTES)
            status = pace__ranks_send(link, 0, buffer, size, BACK);
    } while (!status && size > BYE_BYTES);
    return status;
}

/* --- rank 0 --- */

/* What is less than what was sent would make the network faster than it is. */
static pace_status make_trip(pace__link *link, int peer, char *buffer, size_t size, double *seconds)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__ranks_send(link, peer, buffer, size, MINE);

    if (!status)
        status = pace__ranks_receive_whole(link, peer, buffer, size, BACK);
    *seconds = pace__seconds_since(start_ns);
    return status;
}

static pace_status try_small(pace__link *link, char *buffer, double budget_s, pace__echo *echo)
{
    double seconds[SMALL_MOST];
    uint64_t start_ns = pace__now_ns();
    size_t count = 0;
    pace_status status = PACE_OK;

    while (!status && count < SMALL_MOST &&
           (count < SMALL_LEAST || pace__seconds_since(start_ns) < SMALL_PART * budget_s)) {
        status = make_trip(link, echo->peer, buffer, SMALL_BYTES, &seconds[count]);
        count++;
    }
    if (!status)
        echo->small_s = pace__usual_trip(seconds, count);
    return status;
}

/* Of the largest that there is time for the fastest: what is slower had something else in its way. */
static pace_status try_large(pace__link *link, char *buffer, double budget_s, pace__echo *echo)
{
    uint64_t start_ns = pace__now_ns();
    size_t size = LARGE_BYTES_FIRST;
    double seconds;
    pace_status status = make_trip(link, echo->peer, buffer, size, &seconds);

    while (!status && seconds < LARGE_PART * budget_s && size < LARGE_BYTES_MAX) {
        size *= GROWTH;
        status = make_trip(link, echo->peer, buffer, size, &seconds);
    }
    echo->large_bytes = size;
    echo->large_s = seconds;
    for (int i = 1; i < LARGE_MOST && !status && pace__seconds_since(start_ns) + seconds < budget_s; i++) {
        status = make_trip(link, echo->peer, buffer, size, &seconds);
        if (!status && seconds < echo->large_s)
            echo->large_s = seconds;
    }
    return status;
}

static pace_status measure(pace__link *link, char *buffer, double budget_s, pace__echo *echo)
{
    double connecting_s;
    pace_status status = make_trip(link, echo->peer, buffer, SMALL_BYTES, &connecting_s);

    if (!status)
        status = try_small(link, buffer, budget_s, echo);
    if (!status)
        status = try_large(link, buffer, (1 - SMALL_PART) * budget_s, echo);
    return status ? status : pace__ranks_send(link, echo->peer, buffer, BYE_BYTES, MINE);
}

static pace_status measure_all(pace__link *link, char *buffer, pace_registry *registry,
                               pace__network *network, const pace_log *log)
{
    int others = pace__link_size(link) - 1;
    pace__echo echoes[PACE__PING_HOSTS_MAX];
    pace_status status = PACE_OK;

    for (int i = 0; i < others && !status; i++) {
        echoes[i] = (pace__echo){.peer = i + 1};
        status = measure(link, buffer, PACE__PING_S / others, &echoes[i]);
        if (!status)
            pace__echo_emit(&echoes[i], registry);
    }
    if (!status && !pace__network_of(echoes, (size_t)others, network))
        status = pace_fail(log, PACE_FAILED, "large messages came back no later than small ones");
    return status;
}

/* --- all of it --- */

/* Every rank finds this; one tells. */
static pace_status check_size(const pace__link *link, const pace_log *log)
{
    int size = pace__link_size(link);

    if (size >= 2 && size <= PACE__PING_HOSTS_MAX)
        return PACE_OK;
    return pace_fail(pace__link_rank(link) ? NULL : log, PACE_USAGE,
                     "--ping: %d process%s started: it takes 2 to %d, each on a machine of its own", size,
                     size == 1 ? " was" : "es were", PACE__PING_HOSTS_MAX);
}

pace_status pace__network_ping(const pace_log *log, pace_registry *registry, bool *elsewhere,
                               pace__network *network)
{
    pace__link_options options = {.deadline_ns = (uint64_t)(PACE__PING_DEADLINE_S * 1e9),
                                  .first_deadline_ns = (uint64_t)(PACE__PING_START_S * 1e9),
                                  .log = log};
    char *buffer = calloc(1, LARGE_BYTES_MAX);
    pace__link *link;
    pace_status status =
        buffer ? pace__link_open_mpi(1, &options, &link) : pace_fail(log, PACE_FAILED, "out of memory");

    if (status) {
        free(buffer);
        return status;
    }
    *elsewhere = pace__link_rank(link) > 0;
    status = check_size(link, log);
    if (!status)
        status = *elsewhere ? answer(link, buffer) : measure_all(link, buffer, registry, network, log);
    if (status)
        pace__link_fail(link, status, "the network could not be measured");
    pace__link_close(link);
    free(buffer);
    return status;
}

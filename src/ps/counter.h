/*
 * counter.h - tickets.h, or slices.h, over the link: the rank that holds the first shard hands out rows, workers ask for
 * them.
 *
 * A worker asks ahead, so that the answer is there when it is needed, and reports finished ranges with its
 * asks.
 */
#ifndef PS_COUNTER_H
#define PS_COUNTER_H

#include "net/link.h"
#include "ps/slices.h"

#define PACE__ASK_REPORTS_MAX 4

enum {
    PACE__ASK_TICKET = 1, /* answer when there is something to be had */
    PACE__ASK_GATE = 2,   /* the chief: a gate, soon */
    PACE__ASK_PASS = 4,   /* the chief: goes on from its gate */
    PACE__ASK_END = 8,    /* the chief: nobody goes on */
};

typedef struct pace__ask {
    uint64_t flags, reports;
    pace__interval done[PACE__ASK_REPORTS_MAX];
} pace__ask;

/* --- the side that hands out --- */

typedef struct pace__counter pace__counter;

pace_status pace__counter_create(pace__link *link, int workers, const pace__tickets *tickets,
                                 const pace_log *log, pace__counter **counter);
/* Hands out slices instead, which change beside it: those of the shard in the same process. */
pace_status pace__counter_create_for_slices(pace__link *link, int workers, pace__slices *slices,
                                            const pace_log *log, pace__counter **counter);
void pace__counter_free(pace__counter *counter); /* NULL is allowed */
pace_status pace__counter_poll(pace__counter *counter, bool *busy);
/* Goes on without a worker that was lost; twice is once. Returns the rows that are handed out again. */
uint64_t pace__counter_lose(pace__counter *counter, int worker);

/* --- the side that asks --- */

typedef struct pace__asker {
    pace__link *link;
    int rank;       /* of the counter */
    pace__ask next; /* what the next ask will say */
    pace__ask sent;
    pace__request send, receive;
    pace__ticket ticket;
    bool waiting; /* for a ticket */
} pace__asker;

void pace__asker_init(pace__asker *asker, pace__link *link, int rank);
void pace__asker_close(pace__asker *asker);

/* To be reported with the next ask. There must be room for it: see full. */
void pace__asker_done(pace__asker *asker, uint64_t first, uint64_t rows);
/* Room for another report before the next ask? */
bool pace__asker_full(const pace__asker *asker);

/* Sends what there is to report, with these flags; PACE__ASK_TICKET only if no ticket is waited for. There is
 * room for reports afterwards, also if it has failed. */
pace_status pace__asker_send(pace__asker *asker, uint64_t flags);

/* Sets *got if a ticket has come. */
pace_status pace__asker_poll(pace__asker *asker, bool *got, pace__ticket *ticket);

#endif

/*
 * link_internal.h - what link.c shares with the two ways of carrying messages, link_mpi.c and link_threads.c.
 *
 * link.c does everything that is the same for both: waiting, deadlines, signs of life, failure notices, names
 * and counters. A carrier moves bytes and knows when they have arrived.
 */
#ifndef NET_LINK_INTERNAL_H
#define NET_LINK_INTERNAL_H

#include "net/link.h"
#include "watch/delay.h"

/* Tags of the link's own messages, beyond the callers'. */
enum { PACE__TAG_ALIVE = PACE__LINK_TAGS_MAX, PACE__TAG_FAILURE, PACE__TAGS };

/* A request's peer when it depends on several. */
enum { PACE__LINK_WORKERS = -2, PACE__LINK_EVERYONE = -3 };

typedef struct pace__carrier {
    void (*send)(pace__link *link, int peer, int tag, const void *bytes, size_t size, pace__request *request);
    /* request->bytes is the capacity. */
    void (*receive)(pace__link *link, void *buffer, pace__request *request);
    /* Sets *over, and then peer and bytes of a receive. */
    pace_status (*test)(pace__link *link, pace__request *request, bool *over);
    void (*cancel)(pace__link *link, pace__request *request); /* a receive */
    void (*sum)(pace__link *link, float *buffer, size_t count, pace__request *request);
    void (*sleep)(pace__link *link,
                  uint64_t ns); /* at most; it ends earlier where the carrier can tell that something came */
    pace_status (*ended)(const pace__link *link); /* the status with which another rank has ended the job */
    bool (*abandon)(pace__link *link, pace__request *request); /* see pace__link_abandon */
    void (*forget)(pace__link *link); /* the callers' operations: their memory may soon be gone */
    void (*abort)(pace__link *link, pace_status status); /* ends the job; may return between threads only */
    void (*dismiss)(void);                               /* see pace__link_dismiss; NULL: it cannot */
    pace_status (*part)(pace__link *link);               /* all ranks agree to end well */
    void (*release)(
        pace__link *link); /* frees what the carrier has; if it leaves alone, what is safe to free */
} pace__carrier;

typedef struct pace__peer {
    bool heard; /* since heard_ns was last set: completing a receive must not cost a look at the clock */
    bool related;
    uint64_t related_ns;  /* since when: silence before that says nothing */
    bool lost, lives;     /* given up; but it may still be there, and is given signs of life */
    uint64_t heard_ns;    /* 0: never */
    uint64_t worked_ns;   /* when it, or whom it waits for, is known to have worked last */
    uint64_t stood_ns;    /* told with `alive` */
    pace__request alive;  /* to the peer */
    uint64_t alives_sent; /* so many "alive" */
    uint64_t wait_ns;
    pace__traffic traffic[PACE__LINK_TAGS_MAX];
    char name[PACE__LINK_NAME_MAX];
} pace__peer;

typedef struct pace__notice {
    int status;
    char reason[PACE__LINK_REASON_MAX];
} pace__notice;

struct pace__link {
    const pace__carrier *carrier;
    void *carried; /* the carrier's own */
    int rank, size, workers;
    int neighbour; /* its number among the ranks of its machine */
    bool alone;    /* on it: whatever comes, comes over the network, and it seldom spins */
    pace__link_options options;
    const pace_log *first_log; /* of the opening */
    pace_status failure;       /* not PACE_OK: the job is lost */
    char why[PACE__LINK_REASON_MAX];
    uint64_t step;
    bool has_step;
    bool quiet;             /* gives no more signs of life */
    bool leaves_alone;      /* close waits for nobody */
    size_t under_way;       /* the callers' operations */
    unsigned tests;         /* that found nothing */
    uint64_t listening_ns;  /* since when: from the start, or since it was away for long */
    uint64_t worked_ns;     /* when this rank, or whom it waits for, is known to have worked last */
    uint64_t stands_ns;     /* for how long, says an "alive" that comes, nobody has worked there */
    uint64_t looked_ns;     /* for signs and notices of others */
    uint64_t alive_ns;      /* when the next sign of life is due */
    uint64_t turn_ns;       /* until when waiting time was counted */
    uint64_t wait_began_ns; /* the wait under way, or the last one */
    uint64_t spun_ns;       /* in it, testing without a pause that others could use: */
    uint64_t spin_ns;       /* at most */
    pace__delay delay;      /* of the thread that waits */
    uint64_t slept_ns;      /* since turn_ns, alone: without what it then waited for a processor */
    uint64_t idle_ns;       /* see pace__link_idle_ns */
    int waited_for;         /* in the last turn; -1: anyone. For profiles */
    uint64_t alives_got;    /* so many "alive" of others */
    pace__request alive_in, notice_request;
    pace__notice notice; /* rank 0: received; others: sent */
    pace__idle_fn *idle;
    void *idle_user;
    bool idling;
    pace__peer *peers; /* (size) */
    int *ranks;        /* (size) 0, 1, 2, ... */
};

/* A link with its peers, without a carrier's part; NULL when out of memory, which is said. */
pace__link *pace__link_create(const pace__carrier *carrier, int rank, int size, int workers,
                              const pace__link_options *options);
/* Posts the receives of the link's own messages: messages can come from now on. */
void pace__link_begin(pace__link *link);
void pace__link_free(pace__link *link); /* NULL is allowed */

/* From now on signs of life are sent to that rank, and expected of it. */
void pace__link_relate(pace__link *link, int rank);

/* The link's failure: the first is said and kept; after that, returns the one that was kept, in silence. */
pace_status pace__link_broken(pace__link *link, pace_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

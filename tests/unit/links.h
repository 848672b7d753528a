/*
 * links.h - jobs whose ranks are threads with a link each, for tests of the link.
 *
 *     run_well((job){.work = exchange_all}, 4);      // each of four ranks calls exchange_all(job, link, rank)
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_LINKS_H
#define UNIT_LINKS_H

#include "base/clock.h"
#include "net/link_internal.h"
#include "threads/thread.h"

#include "support.h"

#include "send_now.h"

#include <stdatomic.h>

#define RANKS_MAX 8
#define MS        1000000u
#define LONG_NS   (30000 * (uint64_t)MS) /* a deadline that no test meets */

/* --- a job of threads --- */

typedef struct job {
    pace__link *links[RANKS_MAX];
    int size;
    pace_status (*work)(struct job *job, pace__link *link, int rank);
    atomic_int flag; /* for what a test wants its ranks to tell each other outside the link */
    uint64_t seed;
} job;

static inline pace_status run_rank(void *arg, int rank)
{
    job *self = arg;

    return self->work(self, self->links[rank], rank);
}

static inline void open_job(job *self, int size, int workers, uint64_t deadline_ns,
                            uint64_t first_deadline_ns)
{
    pace__link_options options = {deadline_ns, first_deadline_ns, .log = &said_log};

    said_clear();
    self->size = size;
    assert_ok(pace__link_open_threads(size, workers, &options, self->links));
}

static inline pace_status run_job(job *self)
{
    return pace__team(self->size, run_rank, self, &said_log);
}

/* A job that goes well, with deadlines that are not met. */
static inline void run_well(job self, int size)
{
    open_job(&self, size, size, LONG_NS, LONG_NS);
    assert_ok(run_job(&self));
    for (int i = 0; i < size; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

static inline void await_flag(job *self, int value)
{
    unsigned turns = 0;

    while (atomic_load(&self->flag) < value)
        pace__back_off(&turns);
}

#endif

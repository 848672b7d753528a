/* Work that blocks for longer than the deadline: its rank lives as long as the thread that owns the link does. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "ranks/aside.h"
#include "ranks/ranks.h"
#include "threads/thread.h"

#include "support.h"

#include <time.h>

#define RANKS       2
#define DEADLINE_NS UINT64_C(200000000)
#define LONG_NS     UINT64_C(600000000)

typedef struct job {
    pace_status (*act)(pace__rank *rank); /* of rank 0; the other waits for its word */
    int ranks;
    double aside_max_s;
    pace__link *links[RANKS];
    pace_status status[RANKS];
} job;

static pace_status run_rank(void *arg, int thread)
{
    job *self = arg;
    char word = 0;
    size_t got;
    pace__rank rank;

    pace__rank_open(&rank, self->links[thread], &(pace__cluster){.workers = self->ranks}, false, &said_log);
    if (self->aside_max_s > 0)
        rank.aside_max_s = self->aside_max_s;
    pace_status status = thread == 0 ? self->act(&rank) : PACE_OK;

    if (!status && thread == 0 && self->ranks > 1)
        status = pace__ranks_send(rank.link, 1, &word, 1, "a word to leave");
    if (thread > 0)
        status = pace__ranks_receive(rank.link, 0, &word, 1, "a word", &got);
    self->status[thread] = status;
    if (status)
        pace__rank_fail(&rank, status);
    pace__rank_close(&rank);
    return PACE_OK;
}

static void run(job *self)
{
    pace__link_options options = {
        .deadline_ns = DEADLINE_NS, .first_deadline_ns = DEADLINE_NS, .log = &said_log};

    self->ranks = self->ranks ? self->ranks : RANKS;
    said_clear();
    assert_ok(pace__link_open_threads(self->ranks, self->ranks, &options, self->links));
    assert_ok(pace__team(self->ranks, run_rank, self, &said_log));
}

/* --- work --- */

static pthread_t ran_on;

static pace_status block(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = LONG_NS}, NULL);
    ran_on = pthread_self();
    return *(const pace_status *)user;
}

static pace_status block_aside(pace__rank *rank)
{
    pace_status status = PACE_OK;

    return pace__rank_aside(rank, "reading a tape", block, &status);
}

static void who_works_aside_lives(void **state)
{
    job self = {.act = block_aside};

    (void)state;
    run(&self);
    assert_ok(self.status[0]);
    assert_ok(self.status[1]);
    assert_said("reading a tape has taken 0.2"); /* once the deadline has passed */
    assert_false(pthread_equal(ran_on, pthread_self()));
}

static pace_status block_itself(pace__rank *rank)
{
    pace_status status = PACE_OK;

    (void)rank;
    return block(&status);
}

static void who_hangs_is_noticed(void **state)
{
    job self = {.act = block_itself};

    (void)state;
    run(&self);
    assert_int_equal(self.status[1], PACE_LOST);
    assert_said("chief (rank 0) has never been heard of");
}

static pace_status fail_aside(pace__rank *rank)
{
    pace_status status = PACE_BAD_DATA;

    return pace__rank_aside(rank, "reading a tape", block, &status);
}

static void its_status_is_that_of_the_work(void **state)
{
    job self = {.act = fail_aside};

    (void)state;
    run(&self);
    assert_int_equal(self.status[0], PACE_BAD_DATA);
}

static void work_has_an_end(void **state)
{
    job self = {.act = block_aside, .aside_max_s = 0.05};

    (void)state;
    run(&self);
    assert_int_equal(self.status[0], PACE_IO);
    assert_int_not_equal(self.status[1], PACE_OK);
    assert_said("reading a tape has not ended within 0 s");
}

/* --- work that is mostly short --- */

static int asides;

static pace_status count_aside(void *user)
{
    asides += !pthread_equal(*(const pthread_t *)user, pthread_self());
    return PACE_OK;
}

static pace_status nap(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return count_aside(user);
}

static pace_status come_often(pace__rank *rank)
{
    pthread_t own = pthread_self();
    pace_status status = PACE_OK;
    bool slow = true;

    for (int i = 0; i < 100 && !status; i++)
        status = pace__rank_aside_if(rank, &slow, "a row", count_aside, &own);
    require(asides >= 1 && asides < 100 && !slow);
    if (!status)
        status = pace__rank_aside_if(rank, &slow, "a row", nap, &own); /* nobody could know that */
    require(slow);
    return status;
}

static void what_is_short_stays(void **state)
{
    job self = {.act = come_often};

    (void)state;
    asides = 0;
    run(&self);
    assert_ok(self.status[0]);
}

static void who_is_alone_does_it(void **state)
{
    job self = {.act = block_aside, .ranks = 1};

    (void)state;
    run(&self);
    assert_ok(self.status[0]);
    assert_null(strstr(said, "so far"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_works_aside_lives),
        cmocka_unit_test(who_hangs_is_noticed),
        cmocka_unit_test(its_status_is_that_of_the_work),
        cmocka_unit_test(work_has_an_end),
        cmocka_unit_test(what_is_short_stays),
        cmocka_unit_test(who_is_alone_does_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

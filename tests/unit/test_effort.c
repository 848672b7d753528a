/* How long a rank was at work: everything but waiting for others, and never less than its share of a core allows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "net/effort.h"
#include "watch/delay.h"

#include "links.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>

static uint64_t processor_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
    uint64_t until_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

    while (processor_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
        continue;
}

/* In vain, for rank 1. */
static void wait_until_idle(pace__link *link, uint64_t idle_ns)
{
    const int other = 1;
    unsigned turns = 0;

    while (pace__link_idle_ns(link) < idle_ns)
        assert_ok(pace__link_turn(link, &other, 1, "nothing", &turns));
}

static pace_status wait_in_vain(job *self, pace__link *link, int rank)
{
    pace__effort effort;

    if (rank == 1) {
        await_flag(self, 1);
        return PACE_OK;
    }
    link->alone = self->seed;
    uint64_t start_ns = pace__now_ns();

    pace__effort_open(&effort, link);
    effort.cores = INFINITY; /* the machine's, which may be less than one */
    wait_until_idle(link, 20 * MS);
    burn(5 * MS);
    uint64_t effort_ns = pace__effort_take(&effort), all_ns = pace__now_ns() - start_ns;

    assert_true(effort_ns >= 5 * MS && effort_ns + 20 * MS <= all_ns);
    burn(5 * MS);
    assert_true(pace__effort_take(&effort) >= 5 * MS);
    atomic_store(&self->flag, 1);
    return PACE_OK;
}

static void waiting_for_others_is_no_work(void **state)
{
    (void)state;
    run_well((job){.work = wait_in_vain, .seed = false /* it shares its machine */}, 2);
    run_well((job){.work = wait_in_vain, .seed = true /* it is alone there */}, 2);
}

/* Its own disk, say. */
static pace_status wait_for_nobody(job *self, pace__link *link, int rank)
{
    unsigned turns = 0;
    uint64_t start_ns = pace__now_ns();

    (void)self, (void)rank;
    while (pace__now_ns() - start_ns < 5 * MS)
        assert_ok(pace__link_turn(link, NULL, 0, "a disk", &turns));
    assert_int_equal(pace__link_idle_ns(link), 0);
    return PACE_OK;
}

static void waiting_for_nobody_is(void **state)
{
    (void)state;
    run_well((job){.work = wait_for_nobody}, 1);
}

static pace_status take_a_pause(job *self, pace__link *link, int rank)
{
    pace__effort effort;

    (void)self, (void)rank;
    uint64_t start_ns = pace__now_ns();

    pace__effort_open(&effort, link);
    pace__effort_pause(&effort);
    burn(20 * MS);
    pace__effort_resume(&effort);
    assert_true(pace__effort_take(&effort) + 20 * MS <= pace__now_ns() - start_ns);
    return PACE_OK;
}

static void duties_beside_steps_are_left_out(void **state)
{
    (void)state;
    run_well((job){.work = take_a_pause}, 1);
}

static void a_part_of_a_core_is_as_slow_as_it_would_be_without_end(void **state)
{
    (void)state;
    assert_int_equal(pace__effort_of(10, 2, .1), 20);
    assert_int_equal(pace__effort_of(50, 2, .1), 50);
    assert_int_equal(pace__effort_of(10, 8, 1), 10);
    assert_int_equal(pace__effort_of(10, 8, INFINITY), 10);
}

/* --- waiting for a processor --- */

static cpu_set_t first_cpu(void)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    return one;
}

static void *burn_there(void *cpu)
{
    if (sched_setaffinity(0, sizeof(cpu_set_t), cpu) == 0)
        burn(60 * MS);
    return NULL;
}

static void who_shares_a_processor_waits_for_it(void **state)
{
    pace__delay delay = {.fd = -1};
    cpu_set_t before, one = first_cpu();
    pthread_t other;

    (void)state;
    pace__delay_ns(&delay);
    if (delay.silent)
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    uint64_t delay_ns = pace__delay_ns(&delay);

    assert_int_equal(pthread_create(&other, NULL, burn_there, &one), 0);
    burn(60 * MS);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_true(pace__delay_ns(&delay) - delay_ns >= 10 * MS);
    pace__delay_close(&delay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_for_others_is_no_work),
        cmocka_unit_test(waiting_for_nobody_is),
        cmocka_unit_test(duties_beside_steps_are_left_out),
        cmocka_unit_test(a_part_of_a_core_is_as_slow_as_it_would_be_without_end),
        cmocka_unit_test(who_shares_a_processor_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

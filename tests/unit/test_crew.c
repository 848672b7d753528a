/* A crew of threads: every task once, phases in their order, pokes, and an end before the end. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "threads/crew.h"
#include "threads/thread.h"

#include "support.h"

#include <stdatomic.h>

#define PHASES 20
#define TASKS  37

typedef struct job {
    pace__crew *crew;
    int threads;
    unsigned phase;                     /* set by thread 0 before each */
    unsigned values[PHASES + 1][TASKS]; /* of a phase: from those of the phase before */
    atomic_uint done, pokes;
    unsigned stop_at;    /* poke */
    atomic_uint refused; /* phases, by threads */
    pthread_t caller;
} job;

static job *hire(int threads)
{
    job *self = tiny_alloc(sizeof *self);

    self->threads = threads;
    self->caller = pthread_self();
    assert_ok(pace__crew_create(threads, PHASES, self, &said_log, &self->crew));
    return self;
}

static void dismiss(job *self)
{
    pace__crew_free(self->crew);
    free(self);
}

/* Reads everything that the phase before has written: a task too early is a wrong sum, and a race. */
static void add_up(void *arg, int thread, unsigned index)
{
    job *self = arg;
    unsigned sum = index;

    require(thread >= 0 && thread < self->threads && index < TASKS);
    for (unsigned i = 0; i < TASKS; i++)
        sum += self->values[self->phase][i];
    self->values[self->phase + 1][index] += sum;
}

static void sum_phases(void *arg, int thread)
{
    job *self = arg;

    for (unsigned phase = 0; phase < PHASES; phase++) {
        if (thread == 0)
            self->phase = phase;
        require(pace__crew_phase(self->crew, thread, TASKS, add_up));
        if (thread == 0)
            self->values[phase + 1][0]++; /* between two phases it is alone */
    }
}

static void phases_follow_each_other(void **state)
{
    unsigned expected[PHASES + 1] = {0};

    (void)state;
    for (unsigned phase = 0; phase < PHASES; phase++)
        expected[phase + 1] = TASKS * (TASKS - 1) / 2 + TASKS * expected[phase] + 1;
    for (int threads = 1; threads <= 9; threads += 2) {
        job *self = hire(threads);

        for (int run = 0; run < 30; run++) {
            memset(self->values, 0, sizeof self->values);
            pace__crew_run(self->crew, sum_phases, NULL);
            for (unsigned phase = 0; phase < PHASES; phase++) {
                unsigned sum = 0;

                for (unsigned i = 0; i < TASKS; i++)
                    sum += self->values[phase + 1][i];
                assert_int_equal(sum, expected[phase + 1]);
            }
        }
        dismiss(self);
    }
}

static void never(void *arg, int thread, unsigned index)
{
    (void)arg, (void)thread, (void)index;
    abort();
}

static void run_empty(void *arg, int thread)
{
    job *self = arg;

    for (int phase = 0; phase < PHASES; phase++)
        require(pace__crew_phase(self->crew, thread, 0, never));
}

static void a_phase_may_be_empty(void **state)
{
    job *self = hire(3);

    (void)state;
    pace__crew_run(self->crew, run_empty, NULL);
    dismiss(self);
}

/* --- pokes --- */

static void count_poke(void *arg)
{
    job *self = arg;

    require(pthread_equal(pthread_self(), self->caller));
    if (atomic_fetch_add(&self->pokes, 1) + 1 == self->stop_at)
        pace__crew_stop(self->crew);
}

/* Goes on until the caller has had its chances: whichever thread it is on. */
static void wait_for_pokes(void *arg, int thread, unsigned index)
{
    job *self = arg;
    unsigned turns = 0;

    while (atomic_load(&self->pokes) < 3 * (index + 1) && !pace__crew_poke(self->crew, thread))
        pace__back_off(&turns);
    atomic_fetch_add(&self->done, 1);
}

static void run_waiting(void *arg, int thread)
{
    job *self = arg;

    for (int phase = 0; phase < 2; phase++) {
        if (!pace__crew_phase(self->crew, thread, 4, wait_for_pokes))
            atomic_fetch_add(&self->refused, 1);
    }
}

static void the_caller_gets_its_chances(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        job *self = hire(threads);

        pace__crew_run(self->crew, run_waiting, count_poke);
        assert_int_equal(self->done, 8);
        assert_true(self->pokes >= 12);
        assert_int_equal(self->refused, 0);
        dismiss(self);
    }
}

/* The second poke stops it: nobody has had three, and so no task ends by itself. */
static void a_run_can_be_stopped(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        job *self = hire(threads);

        self->stop_at = 2;
        pace__crew_run(self->crew, run_waiting, count_poke);
        assert_int_equal(self->pokes, 2); /* nobody is poked behind it */
        assert_true(pace__crew_stopped(self->crew));
        assert_in_range(self->done, 1, (unsigned)threads); /* what had begun */
        assert_int_equal(self->refused, 2 * threads);

        /* The next run knows nothing of it. */
        memset(self->values, 0, sizeof self->values);
        pace__crew_run(self->crew, sum_phases, NULL);
        assert_false(pace__crew_stopped(self->crew));
        assert_int_equal(self->pokes, 2);
        dismiss(self);
    }
}

static void impossible_numbers_are_refused(void **state)
{
    pace__crew *crew;

    (void)state;
    said_clear();
    assert_failed(pace__crew_create(0, 1, NULL, &said_log, &crew), PACE_USAGE, "0 threads");
    assert_failed(pace__crew_create(PACE_THREADS_MAX + 1, 1, NULL, &said_log, &crew), PACE_USAGE,
                  "257 threads");
    pace__crew_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_follow_each_other),       cmocka_unit_test(a_phase_may_be_empty),
        cmocka_unit_test(the_caller_gets_its_chances),    cmocka_unit_test(a_run_can_be_stopped),
        cmocka_unit_test(impossible_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

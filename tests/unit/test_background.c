/* One thread that does one thing at a time. The thread sanitizer sees whether results are handed over. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "threads/background.h"

#include "support.h"

#include <semaphore.h>

#define DEADLINE_NS UINT64_C(60000000000)

static pace__background *create(void)
{
    pace__background *background = NULL;

    assert_ok(pace__background_create(&said_log, &background));
    assert_non_null(background);
    return background;
}

/* Plain members: what makes them safe is what is tested. */
typedef struct job {
    sem_t *began, *go; /* NULL: does not wait */
    uint64_t busy_ns;
    pthread_t ran_on;
    int done;
} job;

static void do_job(void *user)
{
    job *self = user;
    uint64_t start_ns = pace__now_ns();

    if (self->began)
        sem_post(self->began);
    while (self->go && sem_wait(self->go) != 0)
        continue;
    while (pace__now_ns() - start_ns < self->busy_ns)
        continue;
    self->ran_on = pthread_self();
    self->done++;
}

static void a_task_runs_on_another_thread(void **state)
{
    pace__background *background = create();
    job one = {0};

    (void)state;
    assert_true(pace__background_idle(background));
    pace__background_wait(background); /* for nothing */
    pace__background_start(background, do_job, &one);
    pace__background_wait(background);
    assert_int_equal(one.done, 1);
    assert_false(pthread_equal(one.ran_on, pthread_self()));
    assert_true(pace__background_idle(background));
    pace__background_free(background);
}

static void tasks_follow_each_other_on_one_thread(void **state)
{
    pace__background *background = create();
    job same = {0};
    pthread_t thread = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) {
        pace__background_start(background, do_job, &same);
        pace__background_wait(background);
        assert_int_equal(same.done, i + 1);
        if (i > 0)
            assert_true(pthread_equal(same.ran_on, thread));
        thread = same.ran_on;
    }
    pace__background_free(background);
}

static void its_owner_goes_on_meanwhile(void **state)
{
    pace__background *background = create();
    sem_t began, go;
    job one = {.began = &began, .go = &go};
    uint64_t start_ns = pace__now_ns();

    (void)state;
    sem_init(&began, 0, 0);
    sem_init(&go, 0, 0);
    pace__background_start(background, do_job, &one);
    assert_false(pace__background_idle(background)); /* even before the thread has woken */
    while (sem_wait(&began) != 0)
        continue;
    for (int i = 0; i < 1000; i++)
        assert_false(pace__background_idle(background));
    sem_post(&go);
    while (!pace__background_idle(background)) {
        assert_true(pace__now_ns() - start_ns < DEADLINE_NS);
        sched_yield();
    }
    assert_int_equal(one.done, 1); /* seen without wait() */
    pace__background_free(background);
    sem_destroy(&began);
    sem_destroy(&go);
}

static void freeing_waits_for_what_is_under_way(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pace__background *background = create();
        job one = {.busy_ns = i % 2 ? 2000000 : 0};

        pace__background_start(background, do_job, &one);
        pace__background_free(background); /* often before the thread has woken */
        assert_int_equal(one.done, 1);
    }
    pace__background_free(create());
    pace__background_free(NULL);
}

static void sleep_a_while(void *user)
{
    (void)user;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* a slow disk */
}

static uint64_t processor_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void waiting_takes_no_processor_time(void **state)
{
    pace__background *background = create();
    uint64_t before_ns = processor_ns(), start_ns = pace__now_ns();

    (void)state;
    pace__background_start(background, sleep_a_while, NULL);
    pace__background_wait(background);
    assert_true(pace__now_ns() - start_ns >= 200000000);
    assert_true(processor_ns() - before_ns < 100000000);
    pace__background_free(background);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_runs_on_another_thread),
        cmocka_unit_test(tasks_follow_each_other_on_one_thread),
        cmocka_unit_test(its_owner_goes_on_meanwhile),
        cmocka_unit_test(freeing_waits_for_what_is_under_way),
        cmocka_unit_test(waiting_takes_no_processor_time),
    };

    return cmocka_run_group_tests_name("background", tests, NULL, NULL);
}

/* Sums of gradients between threads: the same bits everywhere, in the order of the workers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/reduce.h"
#include "threads/thread.h"

#include "support.h"

#define WORKERS_MAX 7
#define MS          1000000u

static void cutting(void **state)
{
    static const size_t counts[] = {0, 1, 99, 100, 101, 1000, 4096, 4097, 1000003};
    static const size_t sizes[] = {1, 2, 100, 5000, SIZE_MAX};
    static size_t bounds[PACE__REDUCE_BUCKETS_MAX + 1];

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t count = counts[c], size = sizes[s], buckets = pace__reduce_cut(count, size, bounds);
            size_t wanted = count / size + (count % size > 0);

            assert_true(buckets <= PACE__REDUCE_BUCKETS_MAX);
            if (wanted <= PACE__REDUCE_BUCKETS_MAX)
                assert_int_equal(buckets, wanted);
            else
                assert_true(buckets > PACE__REDUCE_BUCKETS_MAX / 2);
            assert_int_equal(bounds[0], 0);
            assert_int_equal(bounds[buckets], count);
            for (size_t b = 0; b < buckets; b++) {
                assert_true(bounds[b] < bounds[b + 1]);
                assert_true(bounds[b + 1] - bounds[b] <= size || wanted > PACE__REDUCE_BUCKETS_MAX);
            }
        }
    }
}

/* --- a job --- */

typedef struct job {
    int workers;
    bool by_mpi;
    size_t count, bucket_floats;
    int steps;
    uint64_t seed;
    pace__link *links[WORKERS_MAX + 1];
    float *gradients[WORKERS_MAX]; /* after the last step */
    size_t bounds[PACE__REDUCE_BUCKETS_MAX + 1], buckets;
} job;

static float gradient_of(const job *self, int worker, int step, size_t at)
{
    pace__random random = pace__random_at(self->seed + (uint64_t)step * 1000 + (uint64_t)worker, at);

    /* Of very different size, so that the order of additions shows. */
    return (float)ldexp(pace__random_unit(&random) - 0.5, (int)pace__random_below(&random, 30));
}

static float expected_sum(const job *self, int step, size_t at)
{
    float total = gradient_of(self, 0, step, at);

    for (int w = 1; w < self->workers; w++)
        total += gradient_of(self, w, step, at);
    return total;
}

/* The last layers first, and between some of them the backward pass takes its time. */
static void start_all(const job *self, pace__reduce *reduce, int worker, int step)
{
    for (size_t b = self->buckets; b-- > 0;) {
        require(pace__reduce_start(reduce, b) == PACE_OK);
        for (uint64_t i = 0; i < (b + (size_t)worker + (size_t)step) % 4; i++) {
            sched_yield();
            require(pace__reduce_poll(reduce) == PACE_OK);
        }
    }
}

static pace_status work(void *arg, int worker)
{
    job *self = arg;
    float *gradients = self->gradients[worker];
    pace__reduce_plan plan = {.workers = self->workers,
                              .by_mpi = self->by_mpi,
                              .tag = 6,
                              .gradients = gradients,
                              .bounds = self->bounds,
                              .buckets = self->buckets};
    pace__reduce *reduce;

    require(pace__reduce_create(self->links[worker], &plan, &said_log, &reduce) == PACE_OK);
    for (int step = 0; step < self->steps; step++) {
        for (size_t i = 0; i < self->count; i++)
            gradients[i] = gradient_of(self, worker, step, i);
        start_all(self, reduce, worker, step);
        require(pace__reduce_finish(reduce) == PACE_OK);
        for (size_t i = 0; i < self->count; i++)
            require(gradients[i] == expected_sum(self, step, i));
    }
    require(pace__reduce_finish(reduce) == PACE_OK); /* a step without buckets */
    pace__reduce_free(reduce);
    return PACE_OK;
}

static void open_job(job *self, uint64_t deadline_ns)
{
    pace__link_options options = {deadline_ns, deadline_ns, .log = &said_log};

    said_clear();
    self->buckets = pace__reduce_cut(self->count, self->bucket_floats, self->bounds);
    for (int w = 0; w < self->workers; w++)
        self->gradients[w] = tiny_alloc(self->count * sizeof(float));
    assert_ok(pace__link_open_threads(self->workers + 1, self->workers, &options, self->links));
}

static void free_gradients(job *self)
{
    for (int w = 0; w < self->workers; w++)
        free(self->gradients[w]);
}

static void run(job plan)
{
    job *self = tiny_alloc(sizeof *self);

    *self = plan;
    open_job(self, 60000 * (uint64_t)MS);
    print_message("%d workers%s, %zu floats in %zu buckets, seed %llu\n", self->workers,
                  self->by_mpi ? " by the link" : "", self->count, self->buckets,
                  (unsigned long long)self->seed);
    assert_ok(pace__team(self->workers, work, self, &said_log));
    for (int i = 0; i <= self->workers; i++)
        pace__link_close(self->links[i]);
    free_gradients(self);
    free(self);
    assert_string_equal(said, "");
}

static void sums_are_in_the_order_of_the_workers(void **state)
{
    (void)state;
    for (int workers = 1; workers <= WORKERS_MAX; workers += 1 + (workers > 2) * 2) {
        for (int by_mpi = 0; by_mpi < 2; by_mpi++) {
            job plan = {.workers = workers, .by_mpi = by_mpi, .steps = 4, .seed = (uint64_t)workers};

            plan.count = 10007;
            plan.bucket_floats = 1000;
            run(plan);
            plan.bucket_floats = 100; /* more buckets than the window holds */
            run(plan);
            plan.bucket_floats = SIZE_MAX;
            run(plan);
        }
    }
}

static void pieces_may_be_empty(void **state)
{
    (void)state;
    for (size_t count = 0; count < 9; count++) {
        for (int by_mpi = 0; by_mpi < 2; by_mpi++)
            run((job){.workers = 5, .by_mpi = by_mpi, .count = count, .bucket_floats = 2, .steps = 3});
    }
}

/* --- a worker that does not come --- */

static pace_status wait_in_vain(void *arg, int worker)
{
    job *self = arg;
    pace__reduce_plan plan = {.workers = self->workers,
                              .gradients = self->gradients[worker],
                              .bounds = self->bounds,
                              .buckets = self->buckets};
    pace__reduce *reduce;
    pace_status status = PACE_OK;

    require(pace__reduce_create(self->links[worker], &plan, &said_log, &reduce) == PACE_OK);
    for (size_t b = 0; b < self->buckets && worker == 0 && !status; b++)
        status = pace__reduce_start(reduce, b);
    if (worker == 0) {
        status = pace__reduce_finish(reduce);
        require(status == PACE_LOST);
        require(pace__reduce_poll(reduce) == PACE_LOST);
        pace__link_fail(self->links[worker], status, "told");
        pace__link_close(self->links[worker]);
    }
    pace__reduce_free(reduce);
    return status;
}

static void a_worker_that_hangs_is_named(void **state)
{
    job *self = tiny_alloc(sizeof *self);

    (void)state;
    *self = (job){.workers = 2, .count = 500, .bucket_floats = 10};
    open_job(self, 200 * MS);
    pace__link_set_step(self->links[0], 3);
    pace_status status = pace__team(2, wait_in_vain, self, &said_log);

    assert_said("step 3: rank 1 has never been heard of, for ");
    assert_failed(status, PACE_LOST, " s; rank 0 was waiting for the sums of gradients");
    pace__link_fail(self->links[1], PACE_FAILED, "told");
    pace__link_close(self->links[1]);
    pace__link_fail(self->links[2], PACE_FAILED, "told");
    pace__link_close(self->links[2]);
    free_gradients(self);
    free(self);
}

/* --- a worker that sends something else --- */

/* The other worker is played here: its part of the piece that worker 0 sums, then the sum of its own piece. */
static void assert_refused(size_t part_floats, size_t sum_floats)
{
    static const float numbers[20];
    float heard[20];
    job *self = tiny_alloc(sizeof *self);
    pace__request sends[2] = {{0}}, receives[2] = {{0}};
    pace__reduce *reduce;

    *self = (job){.workers = 2, .count = 20, .bucket_floats = 20};
    open_job(self, 60000 * (uint64_t)MS);
    pace__reduce_plan plan = {.workers = 2,
                              .tag = 6,
                              .gradients = self->gradients[0],
                              .bounds = self->bounds,
                              .buckets = self->buckets};

    assert_ok(pace__reduce_create(self->links[0], &plan, &said_log, &reduce));
    for (int i = 0; i < 2; i++) {
        pace__link_receive(self->links[1], 0, 6 + i, heard + (ptrdiff_t)i * 10, 10 * sizeof *heard,
                           &receives[i]);
        pace__link_send(self->links[1], 0, 6 + i, numbers, (i ? sum_floats : part_floats) * sizeof *numbers,
                        &sends[i]);
    }
    pace_status status = pace__reduce_start(reduce, 0); /* which looks at what has come already */

    assert_failed(status ? status : pace__reduce_finish(reduce), PACE_BUG,
                  "as a part of a sum, which has 40");
    for (int i = 0; i < 3; i++)
        pace__link_fail(self->links[i], PACE_BUG, "told");
    pace__reduce_free(reduce);
    for (int i = 0; i < 3; i++)
        pace__link_close(self->links[i]);
    free_gradients(self);
    free(self);
}

static void parts_that_are_too_short_are_refused(void **state)
{
    (void)state;
    assert_refused(9, 10);
    assert_refused(10, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting),
        cmocka_unit_test(sums_are_in_the_order_of_the_workers),
        cmocka_unit_test(pieces_may_be_empty),
        cmocka_unit_test(a_worker_that_hangs_is_named),
        cmocka_unit_test(parts_that_are_too_short_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

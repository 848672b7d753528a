/* Shares of a step: sums are exact, the slowest is done as early as can be, noise changes nothing, and a change does. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "shares/balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 64
#define TURNS       200 /* jobs of a kind, each by a seed of its own */

static double uniform(pace__random *random)
{
    return (double)pace__random_below(random, 1 << 30) / (1 << 30);
}

static double step_of(const pace__cost *cost, const uint32_t *rows, unsigned workers)
{
    double longest = 0;

    for (unsigned i = 0; i < workers; i++)
        longest = fmax(longest, cost[i].fixed_s + cost[i].row_s * rows[i]);
    return longest;
}

static void no_limits(uint32_t *most, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++)
        most[i] = UINT32_MAX;
}

/* --- dividing --- */

static void sums_are_exact_and_limits_are_kept(void **state)
{
    pace__random random = pace__random_at(3, 0);

    (void)state;
    for (int turn = 0; turn < 5000; turn++) {
        unsigned workers = 1 + (unsigned)pace__random_below(&random, turn % 3 ? 8 : WORKERS_MAX);
        uint64_t batch = 1 + pace__random_below(&random, turn % 5 ? 3000 : 5), sum = 0;
        uint64_t limit = pace__share_max(batch, workers);
        pace__cost cost[WORKERS_MAX];
        uint32_t most[WORKERS_MAX], rows[WORKERS_MAX];

        for (unsigned i = 0; i < workers; i++) {
            static const double strange[] = {0, INFINITY, NAN};

            cost[i] =
                (pace__cost){.fixed_s = turn % 2 ? uniform(&random) : 0, .row_s = exp(8 * uniform(&random))};
            if (turn % 7 == 0 && uniform(&random) < .5)
                cost[i].row_s = strange[pace__random_below(&random, 3)];
            most[i] = (uint32_t)limit;
        }
        pace__divide(cost, workers, batch, most, rows);
        for (unsigned i = 0; i < workers; i++) {
            if (rows[i] > most[i])
                fail_msg("turn %d: worker %u has %u rows, the limit is %u", turn, i, rows[i], most[i]);
            sum += rows[i];
        }
        if (sum != batch)
            fail_msg("turn %d: %llu rows of %llu", turn, (unsigned long long)sum, (unsigned long long)batch);
    }
}

/* No row can be moved from the slowest to anybody without making that one slower still. */
static void the_slowest_is_done_as_early_as_can_be(void **state)
{
    pace__random random = pace__random_at(4, 0);

    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        unsigned workers = 2 + (unsigned)pace__random_below(&random, 10);
        uint64_t batch = 1 + pace__random_below(&random, 2000);
        pace__cost cost[WORKERS_MAX];
        uint32_t most[WORKERS_MAX], rows[WORKERS_MAX];

        no_limits(most, workers);
        for (unsigned i = 0; i < workers; i++)
            cost[i] = (pace__cost){.fixed_s = 20 * uniform(&random), .row_s = .1 + 8 * uniform(&random)};
        pace__divide(cost, workers, batch, most, rows);
        double longest = step_of(cost, rows, workers);

        for (unsigned from = 0; from < workers; from++) {
            if (rows[from] == 0 || cost[from].fixed_s + cost[from].row_s * rows[from] < longest)
                continue;
            for (unsigned to = 0; to < workers; to++) {
                double then = cost[to].fixed_s + cost[to].row_s * (rows[to] + 1);

                if (to != from && then < longest * (1 - 1e-7))
                    fail_msg("turn %d: worker %u would be done with a row of %u after %g instead of %g", turn,
                             to, from, then, longest);
            }
        }
    }
}

static void who_is_faster_has_no_fewer_rows(void **state)
{
    pace__random random = pace__random_at(5, 0);

    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        unsigned workers = 2 + (unsigned)pace__random_below(&random, 30);
        uint64_t batch = 1 + pace__random_below(&random, 500);
        pace__cost cost[WORKERS_MAX];
        uint32_t most[WORKERS_MAX], rows[WORKERS_MAX];

        no_limits(most, workers);
        for (unsigned i = 0; i < workers; i++)
            cost[i] = (pace__cost){.row_s = .1 + 8 * uniform(&random)};
        pace__divide(cost, workers, batch, most, rows);
        for (unsigned a = 0; a < workers; a++) {
            for (unsigned b = 0; b < workers; b++) {
                if (cost[a].row_s < cost[b].row_s && rows[a] + 1 < rows[b]) /* a row is rounding */
                    fail_msg("turn %d: %g s a row has %u, %g has %u", turn, cost[a].row_s, rows[a],
                             cost[b].row_s, rows[b]);
            }
        }
    }
}

static void known_cases_are_as_computed_by_hand(void **state)
{
    uint32_t most[4], rows[4];
    pace__cost three_fast[] = {{.row_s = 1}, {.row_s = 1}, {.row_s = 3}, {.row_s = 1}};
    pace__cost doubling[] = {{.row_s = 8}, {.row_s = 4}, {.row_s = 2}, {.row_s = 1}};
    pace__cost fixed[] = {{.fixed_s = 10, .row_s = 1}, {.row_s = 1}};
    pace__cost stuck[] = {{.row_s = INFINITY}, {.row_s = 1}, {.row_s = 0}, {.row_s = 1}};

    (void)state;
    no_limits(most, 4);
    pace__divide(three_fast, 4, 1000, most, rows);
    assert_int_equal(rows[2], 100);
    assert_int_equal(rows[0], 300);
    pace__divide(doubling, 4, 150, most, rows);
    assert_int_equal(rows[0], 10);
    assert_int_equal(rows[3], 80);
    pace__divide(fixed, 2, 30, most, rows);
    assert_int_equal(rows[0], 10);
    pace__divide(fixed, 2, 8, most, rows); /* nothing gets done in ten seconds that the other does in eight */
    assert_int_equal(rows[0], 0);
    pace__divide(stuck, 4, 50, most, rows);
    assert_int_equal(rows[0], 0);
    pace__divide(doubling, 1, 7, most, rows);
    assert_int_equal(rows[0], 7);
    pace__divide((pace__cost[]){{.row_s = INFINITY}, {.row_s = INFINITY}}, 2, 9, most, rows);
    assert_int_equal(rows[0], 5);
    pace__divide((pace__cost[]){{.row_s = NAN}, {.row_s = 2}, {.row_s = NAN}}, 3, 9, most, rows);
    assert_int_equal(rows[0], 3);
}

static void slices_are_the_step_in_order(void **state)
{
    pace__random random = pace__random_at(6, 0);

    (void)state;
    for (int turn = 0; turn < 1000; turn++) {
        unsigned workers = 1 + (unsigned)pace__random_below(&random, 9);
        pace__steps order =
            pace__steps_make(1 + pace__random_below(&random, 5000), 1 + pace__random_below(&random, 700));
        uint32_t rows[WORKERS_MAX], most[WORKERS_MAX];
        pace__cost cost[WORKERS_MAX];

        no_limits(most, workers);
        for (unsigned i = 0; i < workers; i++)
            cost[i] = (pace__cost){.row_s = exp(5 * uniform(&random))};
        pace__divide(cost, workers, order.batch, most, rows);
        for (uint64_t step = 0; step < 2 * order.per_epoch; step++) {
            uint64_t place = pace__steps_rows_before(&order, step);

            for (unsigned worker = 0; worker < workers; worker++) {
                uint64_t first, count;

                pace__share_slice(&order, step, turn % 4 ? rows : NULL, worker, workers, &first, &count);
                assert_int_equal(first, place);
                place += count;
                if (turn % 4 && pace__steps_rows_in(&order, step) == order.batch)
                    assert_int_equal(count, rows[worker]);
            }
            assert_int_equal(place, pace__steps_rows_before(&order, step + 1));
        }
    }
}

/* --- deciding, by workers that are made up --- */

typedef struct made_up {
    pace__balance balance;
    pace__random random;
    unsigned workers;
    double fixed_s[WORKERS_MAX], row_s[WORKERS_MAX];
    double noise; /* relative deviation of a step */
    uint32_t rows[WORKERS_MAX], next[WORKERS_MAX];
    unsigned changes;
} made_up;

static void begin(made_up *job, unsigned workers, uint64_t batch, double noise)
{
    *job =
        (made_up){.workers = workers, .noise = noise, .random = pace__random_at(7, (uint64_t)(noise * 1000))};
    assert_int_equal(pace__balance_open(&job->balance, workers, batch, NULL), PACE_OK);
    pace__share_evenly(batch, workers, job->rows);
    for (unsigned i = 0; i < workers; i++)
        job->row_s[i] = .001;
}

/* Some steps, a report of each worker, a decision. */
static void go_on(made_up *job, unsigned reports)
{
    for (; reports > 0; reports--) {
        double gain;

        for (unsigned i = 0; i < job->workers; i++) {
            pace__timing timing = {0};

            for (int step = 0; step < 4; step++) {
                double factor = 1 + job->noise * sqrt(12) * (uniform(&job->random) - .5);

                pace__timing_add(&timing, job->rows[i],
                                 (job->fixed_s[i] + job->row_s[i] * job->rows[i]) * factor);
            }
            pace__balance_learn(&job->balance, i, &timing);
        }
        if (!pace__balance_decide(&job->balance, job->rows, job->next, &gain))
            continue;
        job->changes++;
        for (unsigned i = 0; i < job->workers; i++)
            job->rows[i] = job->next[i];
    }
}

/* How much longer a step is than with the best division. */
static double excess(const made_up *job)
{
    pace__cost cost[WORKERS_MAX];
    uint32_t most[WORKERS_MAX], best[WORKERS_MAX];
    uint64_t batch = 0;

    no_limits(most, job->workers);
    for (unsigned i = 0; i < job->workers; i++) {
        cost[i] = (pace__cost){.fixed_s = job->fixed_s[i], .row_s = job->row_s[i]};
        batch += job->rows[i];
    }
    pace__divide(cost, job->workers, batch, most, best);
    return step_of(cost, job->rows, job->workers) / step_of(cost, best, job->workers) - 1;
}

static void speeds_become_shares(void **state)
{
    static const double noises[] = {0, .02, .1, .3};

    (void)state;
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        made_up job;

        begin(&job, 4, 512, noises[i]);
        job.row_s[2] = .003;
        go_on(&job, 60);
        if (excess(&job) > .03 + .4 * noises[i])
            fail_msg("noise %g: a step takes %g more than it has to", noises[i], excess(&job));
        pace__balance_close(&job.balance);
        begin(&job, 4, 480, noises[i]);
        for (unsigned worker = 0; worker < 4; worker++)
            job.row_s[worker] = .001 * (1 << worker);
        go_on(&job, 60);
        if (excess(&job) > .05 + .4 * noises[i])
            fail_msg("1 : 2 : 4 : 8, noise %g: a step takes %g more than it has to", noises[i], excess(&job));
        pace__balance_close(&job.balance);
    }
}

static void what_is_fixed_is_told_apart(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 2, 64, .01);
    job.fixed_s[0] = job.fixed_s[1] = .03;
    job.row_s[1] = .004;
    go_on(&job, 30);
    assert_true(excess(&job) < .06);
    pace__balance_close(&job.balance);
}

static void stationary_noise_changes_nothing(void **state)
{
    static const double noises[] = {0, .01, .05, .2, 1};

    (void)state;
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        made_up job;

        begin(&job, 8, 1024, noises[i]);
        go_on(&job, 2000);
        if (job.changes > 2) /* chance may have it once at the beginning, when little is known */
            fail_msg("noise %g: %u changes in 8,000 steps of equal workers", noises[i], job.changes);
        assert_true(excess(&job) < .15);
        pace__balance_close(&job.balance);
    }
}

/* Twenty steps are five reports; two more are the steps between a decision and what it changes. */
static void a_change_is_noticed_within_twenty_steps(void **state)
{
    static const double noises[] = {0, .02, .05, .1, .2};

    (void)state;
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        made_up job;

        begin(&job, 4, 512, noises[i]);
        go_on(&job, 50);
        job.row_s[1] *= 3;
        go_on(&job, 4);
        if (excess(&job) > fmax(.15, noises[i]))
            fail_msg("noise %g: 16 steps after a change a step takes %g more than it has to", noises[i],
                     excess(&job));
        go_on(&job, 50);
        job.row_s[1] /= 3;
        go_on(&job, 4);
        if (excess(&job) > fmax(.15, 1.5 * noises[i]))
            fail_msg("noise %g: 16 steps after it has recovered a step takes %g more than it has to",
                     noises[i], excess(&job));
        pace__balance_close(&job.balance);
    }
}

static void a_single_report_that_is_far_off_is_left_out(void **state)
{
    made_up job;
    pace__timing pause = {0};

    (void)state;
    begin(&job, 4, 512, .02);
    go_on(&job, 20);
    unsigned before = job.changes;

    for (int step = 0; step < 4; step++)
        pace__timing_add(&pause, job.rows[3], step == 1 ? 5 : .128);
    pace__balance_learn(&job.balance, 3, &pause);
    go_on(&job, 10);
    assert_int_equal(job.changes, before);
    pace__balance_close(&job.balance);
}

/* With a share of a row all that it costs is fixed: what others have told keeps it from being taken for the row's. */
static void who_recovers_from_almost_nothing_is_noticed(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 3, 50, .05);
    for (unsigned i = 0; i < 3; i++) {
        job.fixed_s[i] = .15e-3;
        job.row_s[i] = 20e-6;
    }
    go_on(&job, 5);
    job.fixed_s[2] *= 8;
    job.row_s[2] *= 8;
    go_on(&job, 10);
    assert_true(job.rows[2] <= 3);
    job.fixed_s[2] /= 8;
    job.row_s[2] /= 8;
    go_on(&job, 8);
    if (excess(&job) > .15)
        fail_msg("%u %u %u: a step takes %g more than it has to", job.rows[0], job.rows[1], job.rows[2],
                 excess(&job));
    pace__balance_close(&job.balance);
}

/* A pause of a fast worker, longer than all its steps together, says nothing about one that is thirty times slower. */
static void noise_of_others_does_not_hide_who_is_slow(void **state)
{
    made_up job;
    pace__timing pause = {0};

    (void)state;
    begin(&job, 3, 50, .1);
    for (int step = 0; step < 22; step++)
        pace__timing_add(&pause, 16, step == 3 ? .5 : .001);
    pace__balance_learn(&job.balance, 0, &pause);
    job.row_s[1] = .03;
    go_on(&job, 1);
    assert_true(job.rows[1] <= 3);
    pace__balance_close(&job.balance);
}

static void nobody_is_left_without_rows_for_being_slow(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 4, 512, 0);
    job.row_s[3] = 1;
    go_on(&job, 40);
    assert_true(job.rows[3] >= 1 && job.rows[3] <= 3);
    job.row_s[3] = .001;
    go_on(&job, 12);
    assert_true(excess(&job) < .15);
    pace__balance_close(&job.balance);
}

static void nothing_is_decided_before_all_have_reported_some_steps(void **state)
{
    pace__balance balance;
    uint32_t now[] = {5, 5}, next[2];
    double gain;
    pace__timing fast = {0}, slow = {0};

    (void)state;
    assert_int_equal(pace__balance_open(&balance, 2, 10, NULL), PACE_OK);
    pace__timing_add(&slow, 5, 9);
    for (int i = 0; i < 3; i++)
        pace__timing_add(&fast, 5, 1);
    pace__balance_learn(&balance, 0, &fast);
    assert_false(pace__balance_decide(&balance, now, next, &gain));
    assert_int_equal(next[0], 5);
    pace__balance_learn(&balance, 1, &slow);
    assert_false(
        pace__balance_decide(&balance, now, next, &gain)); /* chance may have made its only step long */
    for (int i = 0; i < 3; i++)
        pace__balance_learn(&balance, 1, &slow);
    assert_true(pace__balance_decide(&balance, now, next, &gain));
    assert_true(gain > .5 && next[0] > next[1]);
    pace__balance_close(&balance);
}

static void more_workers_than_rows_are_left_alone(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 8, 3, .05);
    go_on(&job, 50);
    assert_int_equal(job.changes, 0);
    pace__balance_close(&job.balance);
}

/* Reports of both workers, with a pause in one step of the first one's; a decision. */
static void report(made_up *job, double pause_s)
{
    double gain;

    for (unsigned i = 0; i < job->workers; i++) {
        pace__timing timing = {0};

        for (int step = 0; step < 4; step++)
            pace__timing_add(&timing, job->rows[i],
                             job->row_s[i] * job->rows[i] + (i == 0 && step == 2 ? pause_s : 0));
        pace__balance_learn(&job->balance, i, &timing);
    }
    pace__balance_decide(&job->balance, job->rows, job->next, &gain);
    memcpy(job->rows, job->next, sizeof job->rows);
}

/* As was seen where other programs used the cores: a step of a fast worker is held up twice, and a slow one gets its rows. */
static void pauses_one_after_the_other_are_no_change(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 2, 400, 0);
    job.row_s[0] = 50e-6;
    job.row_s[1] = 112e-6;
    report(&job, 0);
    assert_true(job.rows[0] > 270 && job.rows[0] < 285);
    for (int turn = 0; turn < 3; turn++) {
        report(&job, .145);
        if (job.rows[0] < job.rows[1])
            fail_msg("after pause %d: %u %u rows", turn, job.rows[0], job.rows[1]);
    }
    pace__balance_close(&job.balance);
}

/* What is known at first is a pause and little else: it neither decides, nor stays for long. */
static void a_pause_at_the_beginning_is_put_right(void **state)
{
    made_up job;

    (void)state;
    begin(&job, 2, 400, 0);
    report(&job, 5);
    assert_int_equal(job.rows[0], 200);
    for (int turn = 0; turn < 12; turn++)
        report(&job, 0);
    assert_true(excess(&job) < .05);
    job.row_s[1] *= 3;
    for (int turn = 0; turn < 4; turn++)
        report(&job, 0);
    assert_true(excess(&job) < .15);
    pace__balance_close(&job.balance);
}

/* --- weather: noise as machines have that others use, too --- */

typedef struct weather {
    const char *name;
    double tail; /* of the logarithm of a step's time: its deviation */
    double bursts,
        burst;       /* how many hold up a worker, and how long, in steps of an even share: both on average */
    bool first_only; /* they hit worker 0 alone */
    double drift, keeps;  /* deviation of what stays for the next step, of the logarithm; as far as it does */
    double shared, turns; /* from time to time all steps take so many times as long; chance of a change */
} weather;

static const weather weathers[] = {
    {.name = "calm", .tail = .02},
    {.name = "uneven steps", .tail = .4},
    {.name = "heavy tails", .tail = .9},
    {.name = "rare long pauses", .tail = .05, .bursts = .005, .burst = 30},
    {.name = "frequent pauses", .tail = .1, .bursts = .1, .burst = 4},
    {.name = "pauses of the fast one", .tail = .1, .bursts = .04, .burst = 10, .first_only = true},
    {.name = "steps like their neighbours", .tail = .1, .drift = .3, .keeps = .8},
    {.name = "slow drift", .tail = .05, .drift = .15, .keeps = .97},
    {.name = "all slow at times", .tail = .1, .shared = 2, .turns = .02},
    {.name = "all of it",
     .tail = .2,
     .bursts = .03,
     .burst = 6,
     .drift = .15,
     .keeps = .8,
     .shared = 1.5,
     .turns = .02},
};
#define WEATHERS (sizeof weathers / sizeof *weathers)

/* Steps of workers that are made up; what was decided at a point is in force two steps later. */
typedef struct walk {
    pace__balance balance;
    pace__random random;
    const weather *weather;
    unsigned workers;
    uint64_t batch, step, from; /* from: `next` is in force; UINT64_MAX: nothing is decided */
    double fixed_s[WORKERS_MAX], row_s[WORKERS_MAX], drift[WORKERS_MAX];
    bool all_slow;
    pace__timing timing[WORKERS_MAX];
    uint32_t rows[WORKERS_MAX], next[WORKERS_MAX];
    unsigned changes;
    uint64_t streak, longest; /* steps in which worker 1 has more rows than another */
} walk;

#define STEP_S .01 /* of an even share, of a worker that is not slow */

static void set_out(walk *job, const weather *now, unsigned workers, uint64_t seed, double fixed_part)
{
    *job = (walk){.weather = now, .workers = workers, .batch = 200 * workers, .from = UINT64_MAX};
    job->random = pace__random_at(seed, (uint64_t)(now - weathers));
    assert_int_equal(pace__balance_open(&job->balance, workers, job->batch, NULL), PACE_OK);
    pace__share_evenly(job->batch, workers, job->rows);
    for (unsigned i = 0; i < workers; i++) {
        job->fixed_s[i] = fixed_part * STEP_S;
        job->row_s[i] = (1 - fixed_part) * STEP_S / 200;
    }
}

/* Bursts come as time goes by. */
static double take_step(walk *job, unsigned worker)
{
    const weather *now = job->weather;
    double *drift = &job->drift[worker];

    *drift = now->keeps * *drift +
             now->drift * sqrt(1 - now->keeps * now->keeps) * pace__random_normal(&job->random);
    double seconds = (job->fixed_s[worker] + job->row_s[worker] * job->rows[worker]) *
                     exp(now->tail * pace__random_normal(&job->random) - now->tail * now->tail / 2 + *drift);
    double bursts = now->first_only && worker > 0 ? 0 : now->bursts * seconds / STEP_S;

    for (; bursts > 0 && pace__random_unit(&job->random) < bursts; bursts--)
        seconds += now->burst * STEP_S * 2 * pace__random_unit(&job->random);
    return job->all_slow ? now->shared * seconds : seconds;
}

static void decide_at_point(walk *job)
{
    double gain;

    for (unsigned i = 0; i < job->workers; i++) {
        if (i > 0 && pace__random_below(&job->random, 8) == 0)
            continue; /* its report is late, and comes with the next */
        pace__balance_learn(&job->balance, i, &job->timing[i]);
        job->timing[i] = (pace__timing){0};
    }
    if (!pace__balance_decide(&job->balance, job->rows, job->next, &gain))
        return;
    job->changes++;
    job->from = job->step + 2;
}

static bool is_upside_down(const walk *job)
{
    for (unsigned i = 0; i < job->workers; i++) {
        if (job->rows[1] > job->rows[i])
            return true;
    }
    return false;
}

static void walk_on(walk *job, unsigned steps)
{
    for (; steps > 0; steps--, job->step++) {
        if (job->step == job->from) {
            memcpy(job->rows, job->next, sizeof job->rows);
            job->from = UINT64_MAX;
        }
        job->all_slow ^= pace__random_unit(&job->random) < job->weather->turns;
        for (unsigned i = 0; i < job->workers; i++)
            pace__timing_add(&job->timing[i], job->rows[i], take_step(job, i));
        if ((job->step + 1) % 4 == 0)
            decide_at_point(job);
        job->streak = is_upside_down(job) ? job->streak + 1 : 0;
        job->longest = job->streak > job->longest ? job->streak : job->longest;
    }
}

/* Slow in all that it does, or in what it does for its rows alone: at least twice as slow as the others, and never for long with more
 * rows than one of them. */
#define SLOW_FOR 80 /* steps: until a mistake is put right */

static void who_is_slower_does_not_have_more_rows_for_long(void **state)
{
    (void)state;
    for (size_t w = 0; w < WEATHERS; w++) {
        uint64_t longest = 0, upside_down = 0;

        for (unsigned turn = 0; turn < TURNS; turn++) {
            walk job;

            set_out(&job, &weathers[w], turn % 3 ? 2 : 4, turn, turn % 2 ? .4 : 0);
            job.row_s[1] *= 3;
            job.fixed_s[1] *= turn % 4 < 2 ? 3 : 1;
            walk_on(&job, 400);
            longest = job.longest > longest ? job.longest : longest;
            upside_down += job.longest > 0;
            pace__balance_close(&job.balance);
        }
        if (longest > SLOW_FOR)
            fail_msg("%s: for %llu steps a slow worker has more rows, in %llu of %d jobs for some",
                     weathers[w].name, (unsigned long long)longest, (unsigned long long)upside_down, TURNS);
    }
}

/* Where no report tells of the next one. What lasts for longer is followed, as it should be. */
static void weather_alone_hardly_changes_shares(void **state)
{
    (void)state;
    for (size_t w = 0; w < WEATHERS; w++) {
        if (weathers[w].drift > 0 || weathers[w].turns > 0)
            continue;
        for (unsigned turn = 0; turn < TURNS / 10; turn++) {
            walk job;

            set_out(&job, &weathers[w], turn % 3 ? 2 : 4, turn, turn % 2 ? .4 : 0);
            walk_on(&job, 2000);
            if (job.changes > 10)
                fail_msg("%s, job %u: %u changes in 2,000 steps of equal workers", weathers[w].name, turn,
                         job.changes);
            pace__balance_close(&job.balance);
        }
    }
}

static void what_peers_send_is_looked_at(void **state)
{
    pace__timing timing = {0};

    (void)state;
    pace__timing_add(&timing, 5, 1);
    assert_true(pace__timing_is_valid(&timing));
    timing.rows_seconds = NAN;
    assert_false(pace__timing_is_valid(&timing));
    timing.rows_seconds = -1;
    assert_false(pace__timing_is_valid(&timing));
    timing.rows_seconds = INFINITY;
    assert_false(pace__timing_is_valid(&timing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_and_limits_are_kept),
        cmocka_unit_test(the_slowest_is_done_as_early_as_can_be),
        cmocka_unit_test(who_is_faster_has_no_fewer_rows),
        cmocka_unit_test(known_cases_are_as_computed_by_hand),
        cmocka_unit_test(slices_are_the_step_in_order),
        cmocka_unit_test(speeds_become_shares),
        cmocka_unit_test(what_is_fixed_is_told_apart),
        cmocka_unit_test(stationary_noise_changes_nothing),
        cmocka_unit_test(a_change_is_noticed_within_twenty_steps),
        cmocka_unit_test(a_single_report_that_is_far_off_is_left_out),
        cmocka_unit_test(who_recovers_from_almost_nothing_is_noticed),
        cmocka_unit_test(noise_of_others_does_not_hide_who_is_slow),
        cmocka_unit_test(nobody_is_left_without_rows_for_being_slow),
        cmocka_unit_test(nothing_is_decided_before_all_have_reported_some_steps),
        cmocka_unit_test(more_workers_than_rows_are_left_alone),
        cmocka_unit_test(pauses_one_after_the_other_are_no_change),
        cmocka_unit_test(a_pause_at_the_beginning_is_put_right),
        cmocka_unit_test(who_is_slower_does_not_have_more_rows_for_long),
        cmocka_unit_test(weather_alone_hardly_changes_shares),
        cmocka_unit_test(what_peers_send_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

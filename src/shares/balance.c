#include "shares/balance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Steps that are remembered: as many as it takes to know their mean to KNOWN, within limits. */
#define KNOWN        0.02
#define MEMORY_LEAST 10.0
#define MEMORY_MOST  100.0
/* What is fixed is at most the work of so many even shares. */
#define FIXED_MAX 4.0
/* How fast what is known of it follows a worker whose rows have changed. */
#define FIXED_LEARN 0.25
/* Rows that differ by less than this, relatively, say little about what is fixed: as many steps weigh for nothing being
 * so. */
#define ROWS_DIFFER 0.1
/* A report is far off if its mean step is so many times what was expected, or its inverse; and by so many times the noise. */
#define ODD_RATIO 1.3
#define ODD_NOISE 3.0
/* Of fewer steps it is not known how they vary. */
#define STEPS_LEAST 3.0
/* A division that shortens steps by less is not worth it. */
#define MARGIN 0.03
/* A share may become so many times as large in one decision; or such a part of an even one, if it was less: who was slow and is not
 * any more. */
#define GROWTH       2.0
#define GROWTH_LEAST 0.7
/* Nobody is left without rows because it is slow: how fast it is would never be known again. */
#define LEAST 0.02
/* Of a span of time, until it is a moment. */
#define HALVINGS 50

/* --- dividing --- */

uint64_t pace__share_max(uint64_t batch, unsigned workers)
{
    uint64_t even = (batch + workers - 1) / workers;

    return even < batch / PACE__SHARE_EVEN_MAX ? even * PACE__SHARE_EVEN_MAX : batch;
}

void pace__share_evenly(uint64_t batch, unsigned workers, uint32_t *rows)
{
    for (unsigned i = 0; i < workers; i++)
        rows[i] = (uint32_t)(batch * (i + 1) / workers - batch * i / workers);
}

bool pace__share_is_even(const uint32_t *rows, uint64_t batch, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        if (rows[i] != batch * (i + 1) / workers - batch * i / workers)
            return false;
    }
    return true;
}

void pace__share_slice(const pace__steps *order, uint64_t step, const uint32_t *rows, unsigned worker,
                       unsigned workers, uint64_t *first, uint64_t *count)
{
    uint64_t all = pace__steps_rows_in(order, step), before = 0;

    if (!rows) {
        pace__steps_slice(order, step, worker, workers, first, count);
        return;
    }
    for (unsigned i = 0; i < worker; i++)
        before += rows[i];
    assert(worker < workers && before + rows[worker] <= order->batch);
    uint64_t begin = all * before / order->batch;

    *first = pace__steps_rows_before(order, step) + begin;
    *count = all * (before + rows[worker]) / order->batch - begin;
}

/* Rows that a worker gets done within `seconds`. */
static double rows_within(const pace__cost *cost, double seconds, double most)
{
    double left_s = seconds - cost->fixed_s;

    if (!(left_s > 0) || isinf(cost->row_s))
        return 0;
    return cost->row_s > 0 ? fmin(most, left_s / cost->row_s) : most;
}

/* A worker that nobody knows is an average one; if nobody is known, all are equal. */
static double mean_row_s(const pace__cost *cost, unsigned workers)
{
    double rate = 0, known = 0;

    for (unsigned i = 0; i < workers; i++) {
        bool counts = cost[i].row_s > 0 && isfinite(cost[i].row_s);

        rate += counts ? 1 / cost[i].row_s : 0;
        known += counts;
    }
    return known > 0 ? known / rate : 1;
}

static bool all_idle(const pace__cost *cost, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        if (!isinf(cost[i].row_s))
            return false;
    }
    return true;
}

/* Costs that are all known. */
typedef struct costs {
    const pace__cost *cost;
    unsigned workers;
    double mean;  /* of a worker that nobody knows */
    bool nothing; /* nobody gets anything done: all are equal */
} costs;

static pace__cost cost_at(const costs *from, unsigned worker)
{
    bool unknown = from->nothing || isnan(from->cost[worker].row_s);

    return unknown ? (pace__cost){.row_s = from->mean} : from->cost[worker];
}

static double all_within(const costs *from, double seconds, const uint32_t *most)
{
    double sum = 0;

    for (unsigned i = 0; i < from->workers; i++) {
        pace__cost cost = cost_at(from, i);

        sum += rows_within(&cost, seconds, most[i]);
    }
    return sum;
}

/* The shortest time in which all together are done, to the last digits. */
static double find_time(const costs *from, double batch, const uint32_t *most)
{
    double low = 0, high = 1e-9;

    while (high < 1e18 && all_within(from, high, most) < batch) {
        low = high;
        high *= 2;
    }
    for (int halving = 0; halving < HALVINGS; halving++) {
        double middle = low + (high - low) / 2;

        if (all_within(from, middle, most) < batch)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static double seconds_of(const pace__cost *cost, double rows)
{
    return rows > 0 ? cost->fixed_s + cost->row_s * rows : 0;
}

/* Whoever is done first with one more row, the first of equals. */
static unsigned find_first(const costs *from, const uint32_t *most, const uint32_t *rows)
{
    unsigned best = from->workers;
    double best_s = INFINITY;

    for (unsigned i = 0; i < from->workers; i++) {
        pace__cost cost = cost_at(from, i);
        double done_s = seconds_of(&cost, rows[i] + 1.);

        if (rows[i] < most[i] && (best == from->workers || done_s < best_s)) {
            best = i;
            best_s = done_s;
        }
    }
    assert(best < from->workers);
    return best;
}

/* Whole rows from what each gets done, in sum the batch. */
static void round_rows(const costs *from, double seconds, uint64_t batch, const uint32_t *most,
                       uint32_t *rows)
{
    double excess =
        fmax(1, all_within(from, seconds, most) / (double)batch); /* who takes no time takes all */
    uint64_t given = 0;

    for (unsigned i = 0; i < from->workers; i++) {
        pace__cost cost = cost_at(from, i);
        double whole = floor(rows_within(&cost, seconds, most[i]) / excess + 1e-6);

        rows[i] = whole < most[i] ? (uint32_t)whole : most[i];
        given += rows[i];
    }
    for (unsigned i = 0; given > batch; i = (i + 1) % from->workers) { /* rounded up by the least bit */
        given -= rows[i] > 0;
        rows[i] -= rows[i] > 0;
    }
    for (; given < batch; given++)
        rows[find_first(from, most, rows)]++;
}

void pace__divide(const pace__cost *cost, unsigned workers, uint64_t batch, const uint32_t *most,
                  uint32_t *rows)
{
    costs from = {cost, workers, mean_row_s(cost, workers), all_idle(cost, workers)};

    round_rows(&from, find_time(&from, (double)batch, most), batch, most, rows);
}

/* --- what is known of a worker --- */

bool pace__timing_is_valid(const pace__timing *timing)
{
    const double values[] = {timing->steps,     timing->rows,         timing->seconds,
                             timing->rows_rows, timing->rows_seconds, timing->seconds_seconds};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (!(values[i] >= 0 && values[i] <= 1e300))
            return false;
    }
    return true;
}

static void add_weighted(pace__timing *to, const pace__timing *from, double weight)
{
    to->steps += weight * from->steps;
    to->rows += weight * from->rows;
    to->seconds += weight * from->seconds;
    to->rows_rows += weight * from->rows_rows;
    to->rows_seconds += weight * from->rows_seconds;
    to->seconds_seconds += weight * from->seconds_seconds;
}

static void scale(pace__timing *timing, double factor)
{
    pace__timing sums = *timing;

    *timing = (pace__timing){0};
    add_weighted(timing, &sums, factor);
}

/* Means of a step, and how it varies. */
typedef struct moments {
    double rows, seconds;
    double rows_var, covariance, seconds_var;
} moments;

static moments moments_of(const pace__timing *timing)
{
    double n = timing->steps;
    moments of = {.rows = timing->rows / n, .seconds = timing->seconds / n};

    of.rows_var = fmax(0, timing->rows_rows / n - of.rows * of.rows);
    of.covariance = timing->rows_seconds / n - of.rows * of.seconds;
    of.seconds_var = fmax(0, timing->seconds_seconds / n - of.seconds * of.seconds);
    return of;
}

static double even_of(const pace__balance *balance)
{
    return (double)balance->batch / balance->workers;
}

/* A line through what was measured, drawn towards one whose fixed part is that of the others as far as rows hardly differ. */
static double fit_row_s(const pace__balance *balance, const moments *of)
{
    double others = of->seconds / (of->rows + balance->fixed_rows),
           prior = ROWS_DIFFER * of->rows * ROWS_DIFFER * of->rows;
    double row_s = (of->covariance + prior * others) / (of->rows_var + prior);

    return fmin(of->seconds / of->rows, fmax(of->seconds / (of->rows + FIXED_MAX * even_of(balance)), row_s));
}

/* Rows that cost as much as what is fixed: the same for all, however fast they are. Whoever has had different shares knows. */
static void learn_fixed(pace__balance *balance, const pace__timing *known)
{
    moments of = moments_of(known);

    if (!(of.rows_var > ROWS_DIFFER * of.rows * ROWS_DIFFER * of.rows) || !(of.seconds > 0))
        return;
    double row_s = fmax(of.covariance / of.rows_var, of.seconds / (of.rows + FIXED_MAX * even_of(balance)));

    balance->fixed_rows += FIXED_LEARN * (fmax(0, of.seconds / row_s - of.rows) - balance->fixed_rows);
}

static pace__cost cost_of(const pace__balance *balance, const pace__speed *speed)
{
    const pace__timing *known = &speed->known;

    if (!(known->steps > 0))
        return (pace__cost){.row_s = NAN, .noise = 0};
    moments of = moments_of(known);

    if (!(of.rows > 0) || !(of.seconds > 0)) /* it had nothing to do, or takes no time at all */
        return (pace__cost){.fixed_s = of.rows > 0 ? 0 : of.seconds, .row_s = of.rows > 0 ? 0 : NAN};
    double row_s = fit_row_s(balance, &of);
    double unexplained = of.seconds_var - 2 * row_s * of.covariance + row_s * row_s * of.rows_var;

    return (pace__cost){.fixed_s = of.seconds - row_s * of.rows,
                        .row_s = row_s,
                        .noise = sqrt(fmax(0, unexplained) / fmax(1, known->steps)) / of.seconds};
}

/* How many times as long a step of the report took as what was known lets expect; 1: nothing is known. */
static double ratio_of(const pace__cost *cost, const pace__timing *report)
{
    double expected_s = cost->fixed_s + cost->row_s * (report->rows / report->steps);
    double ratio = report->seconds / report->steps / expected_s;

    return isfinite(ratio) && ratio > 0 ? ratio : 1;
}

static bool is_odd(const pace__cost *cost, double ratio, const pace__timing *known, double steps)
{
    /* Of single steps, to that of a mean of so many. */
    double noise = cost->noise * sqrt(fmax(1, known->steps) / fmax(1, steps));

    return fabs(log(ratio)) > fmax(log(ODD_RATIO), ODD_NOISE * noise);
}

/* Steps, of a worker whose mean is known so well. */
static double memory_of(const pace__cost *cost, const pace__timing *known)
{
    double of_one = cost->noise * sqrt(fmax(1, known->steps)) / KNOWN;

    return fmin(MEMORY_MOST, fmax(MEMORY_LEAST, of_one * of_one));
}

static void keep(pace__speed *speed, const pace__cost *cost, const pace__timing *report)
{
    scale(&speed->known, exp(-report->steps / memory_of(cost, &speed->known)));
    add_weighted(&speed->known, report, 1);
    speed->odd = (pace__timing){0};
}

/* All that a worker does takes so many times as long: what was fixed, too. A little of before stays, for the line. */
static void begin_anew(pace__speed *speed, double ratio, const pace__timing *report)
{
    pace__timing before = speed->known;

    before.seconds *= ratio;
    before.rows_seconds *= ratio;
    before.seconds_seconds *= ratio * ratio;
    scale(&before, fmin(1, 1 / before.steps));
    speed->known = before;
    add_weighted(&speed->known, &speed->odd, 1);
    add_weighted(&speed->known, report, 1);
    speed->odd = (pace__timing){0};
}

void pace__balance_learn(pace__balance *balance, unsigned worker, const pace__timing *timing)
{
    assert(worker < balance->workers);
    pace__speed *speed = &balance->speed[worker];
    pace__cost cost = cost_of(balance, speed);

    if (!(timing->steps > 0))
        return;
    double ratio = speed->known.steps > 0 ? ratio_of(&cost, timing) : 1;
    bool odd = is_odd(&cost, ratio, &speed->known, timing->steps), slower = ratio > 1;

    if (!odd) {
        keep(speed, &cost, timing);
    } else if (speed->odd.steps > 0 && speed->slower == slower) {
        begin_anew(speed, ratio, timing);
    } else {
        speed->odd = *timing;
        speed->slower = slower;
    }
    learn_fixed(balance, &speed->known);
}

pace__cost pace__balance_cost(const pace__balance *balance, unsigned worker)
{
    assert(worker < balance->workers);
    return cost_of(balance, &balance->speed[worker]);
}

/* --- deciding --- */

pace_status pace__balance_open(pace__balance *balance, unsigned workers, uint64_t batch, const pace_log *log)
{
    *balance = (pace__balance){.workers = workers,
                               .batch = batch,
                               .speed = calloc(workers, sizeof *balance->speed),
                               .cost = calloc(workers, sizeof *balance->cost),
                               .most = calloc(workers, sizeof *balance->most)};
    if (balance->speed && balance->cost && balance->most)
        return PACE_OK;
    pace__balance_close(balance);
    return pace_fail(log, PACE_FAILED, "out of memory");
}

void pace__balance_close(pace__balance *balance)
{
    free(balance->speed);
    free(balance->cost);
    free(balance->most);
    *balance = (pace__balance){0};
}

/* Until the slowest is done. */
static double step_s(const pace__cost *cost, const uint32_t *rows, unsigned workers)
{
    double longest = 0;

    for (unsigned i = 0; i < workers; i++)
        longest = fmax(longest, seconds_of(&cost[i], rows[i]));
    return longest;
}

static double gain_of(const pace__cost *cost, const uint32_t *now, const uint32_t *next, unsigned workers)
{
    double now_s = step_s(cost, now, workers);

    return now_s > 0 ? 1 - step_s(cost, next, workers) / now_s : 0;
}

/* Whoever is to have fewer rows may only seem to be slow, and who is to have more may only seem to be fast. Of so many
 * values that are normally distributed the largest is so many deviations off. */
static void doubt(const pace__balance *balance, const uint32_t *now, const uint32_t *next)
{
    double deviations = sqrt(2 * log(balance->workers));

    for (unsigned i = 0; i < balance->workers; i++) {
        double factor = exp((next[i] < now[i] ? -deviations : deviations) * balance->cost[i].noise);

        balance->cost[i].fixed_s *= factor;
        balance->cost[i].row_s *= factor;
    }
}

/* False: somebody has hardly been heard of yet. */
static bool look_at_costs(pace__balance *balance)
{
    for (unsigned i = 0; i < balance->workers; i++) {
        balance->cost[i] = pace__balance_cost(balance, i);
        if (isnan(balance->cost[i].row_s) || balance->speed[i].known.steps < STEPS_LEAST)
            return false;
    }
    return true;
}

static void set_limits(pace__balance *balance, const uint32_t *now)
{
    double even = even_of(balance);
    uint64_t most = pace__share_max(balance->batch, balance->workers), room = 0;

    for (unsigned i = 0; i < balance->workers; i++) {
        double grown = ceil(fmax(GROWTH * now[i], GROWTH_LEAST * even));

        balance->most[i] = (uint32_t)fmin((double)most, fmax(1, grown));
        room += balance->most[i];
    }
    assert(room >= balance->batch); /* GROWTH is above 1 */
}

/* From whoever has most. */
static void leave_nobody_out(const pace__balance *balance, uint32_t *rows)
{
    double even = even_of(balance);
    uint32_t least = even < 1 ? 0 : (uint32_t)fmax(1, LEAST * even);

    for (unsigned i = 0; i < balance->workers; i++) {
        while (rows[i] < least) {
            unsigned richest = 0;

            for (unsigned other = 1; other < balance->workers; other++)
                richest = rows[other] > rows[richest] ? other : richest;
            rows[richest]--;
            rows[i]++;
        }
    }
}

bool pace__balance_decide(pace__balance *balance, const uint32_t *now, uint32_t *next, double *gain)
{
    for (unsigned i = 0; i < balance->workers; i++)
        next[i] = now[i];
    *gain = 0;
    if (balance->workers < 2 || !look_at_costs(balance))
        return false;
    set_limits(balance, now);
    pace__divide(balance->cost, balance->workers, balance->batch, balance->most, next);
    leave_nobody_out(balance, next);
    *gain = gain_of(balance->cost, now, next, balance->workers);
    doubt(balance, now, next);
    if (*gain > MARGIN && gain_of(balance->cost, now, next, balance->workers) > MARGIN)
        return true;
    for (unsigned i = 0; i < balance->workers; i++)
        next[i] = now[i];
    return false;
}

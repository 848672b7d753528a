#include "shares/balance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Steps that are remembered: as many as it takes to know their mean to KNOWN, within limits. */
#define KNOWN        0.02
#define MEMORY_LEAST 10.0
#define MEMORY_MOST  400.0
/* What is fixed is at most the work of so many even shares. */
#define FIXED_MAX 4.0
/* What is not known of the part of an even share's step that is fixed: the variance at first, and by how much it grows again with every
 * report; and that of what one worker tells of the others', however well it is measured. */
#define FIXED_VARIANCE 0.09
#define FIXED_FORGET   (FIXED_VARIANCE / 400)
#define FIXED_DIFFERS  0.04
/* By so much what a row costs a worker may differ, relatively, from what is expected of it by what others have told of what is fixed. */
#define ROW_DIFFERS 0.3
/* Rows that differ by less than this, relatively, say little about what is fixed: as many steps weigh for nothing being
 * so. */
#define ROWS_DIFFER 0.1
/* And those that differ by less than this are the same. */
#define ROWS_SAME 0.05
/* A report is far off if its mean step is so many times what was expected, or its inverse; and by so many times the noise. */
#define ODD_RATIO 1.3
#define ODD_NOISE 3.0
/* Its steps agree on that if their mean is so many of its own deviations away from what was expected. */
#define ODD_AGREES 2.0
/* What a report that is off says of a change, and how much has to be said in a row until it is believed: two are enough that are far
 * off, and whose steps agree. */
#define CHANGE       20
#define WITNESS      10
#define WITNESS_SOME 5 /* only some of its steps were so long */
#define WITNESS_NEAR 2 /* it is off by ODD_RATIO, which may be noise: in so many, it is not */
/* Reports from which it is known how much they vary; at the beginning as many are taken not to. Of two that follow each other the
 * logarithms count as differing by so much at most: one long pause says little of what is usual. */
#define SPREAD_MEMORY 25.0
#define SPREAD_BEGIN  4.0
#define SPREAD_MOST   1.2
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

/* --- how it varies --- */

/* Reports vary by more than their steps let expect where what disturbs a step disturbs its neighbours, too. Of two of the same
 * rows, one behind the other, the difference has nothing to do with what is believed of the worker: a step's variance, if steps
 * knew nothing of each other. -1: they cannot be compared. */
static double spread_between(const pace__timing *last, const pace__timing *report)
{
    if (!(last->seconds > 0 && report->seconds > 0))
        return -1;
    double rows = report->rows / report->steps, moved = rows - last->rows / last->steps,
           off = log(report->seconds / report->steps) - log(last->seconds / last->steps);

    off = fmin(SPREAD_MOST, fabs(off));
    return fabs(moved) <= ROWS_SAME * rows ? off * off / (1 / report->steps + 1 / last->steps) : -1;
}

/* Of so many reports. */
static void note_spread(pace__speed *speed, double spread, double reports)
{
    if (spread < 0 || !(reports > 0))
        return;
    speed->spread += (spread - speed->spread) * reports / (speed->spread_reports + reports);
    speed->spread_reports = fmin(SPREAD_MEMORY, speed->spread_reports + reports);
}

/* Of a single step, relative to its square: what a line of that slope leaves unexplained. */
static double unexplained(const moments *of, double row_s)
{
    double left = of->seconds_var - 2 * row_s * of->covariance + row_s * row_s * of->rows_var;

    return fmax(0, left) / (of->seconds * of->seconds);
}

/* --- what it costs --- */

static double fixed_rows_of(const pace__balance *balance)
{
    return even_of(balance) * balance->fixed_part / (1 - balance->fixed_part);
}

/* A line through what was measured, drawn towards one whose fixed part is that of the others: as far as rows hardly differ, and as far
 * as noise leaves open what they cost. (If that decided, a worker for which everything became slow as its share became smaller would
 * seem to take no longer for many rows than for few, and get them.) */
static pace__cost fit(const pace__balance *balance, const pace__speed *speed, const moments *of)
{
    double n = fmax(1, speed->known.steps - 2), /* a line goes through any two */
        apart = of->rows + fixed_rows_of(balance), others = of->seconds / apart;
    double line = of->rows_var > 0 ? of->covariance / of->rows_var : 0,
           variance = fmax(speed->spread, unexplained(of, line));
    double noise = apart * apart * variance / (n * ROW_DIFFERS * ROW_DIFFERS),
           prior = fmax(ROWS_DIFFER * of->rows * ROWS_DIFFER * of->rows, noise);
    double row_s = (of->covariance + prior * others) / (of->rows_var + prior);
    double open = of->rows_var + noise > 0 ? noise / (of->rows_var + noise) : 1;

    row_s =
        fmin(of->seconds / of->rows, fmax(of->seconds / (of->rows + FIXED_MAX * even_of(balance)), row_s));
    variance = fmax(speed->spread, unexplained(of, row_s));
    return (pace__cost){.fixed_s = of->seconds - row_s * of->rows,
                        .row_s = row_s,
                        .noise = sqrt(variance / n),
                        .rows = of->rows,
                        .row_s_error = ROW_DIFFERS * others * sqrt(open)};
}

static pace__cost cost_of(const pace__balance *balance, const pace__speed *speed)
{
    const pace__timing *known = &speed->known;

    if (!(known->steps > 0))
        return (pace__cost){.row_s = NAN, .noise = 0};
    moments of = moments_of(known);

    if (!(of.rows > 0) || !(of.seconds > 0)) /* it had nothing to do, or takes no time at all */
        return (pace__cost){.fixed_s = of.rows > 0 ? 0 : of.seconds, .row_s = of.rows > 0 ? 0 : NAN};
    return fit(balance, speed, &of);
}

/* --- learning --- */

/* Whoever has another share than before tells which part of a step is fixed, which is taken to be the same for all, however fast they are;
 * as far as noise lets it. */
static void learn_fixed(pace__balance *balance, const pace__speed *speed, const pace__cost *cost,
                        const pace__timing *report)
{
    double rows = report->rows / report->steps, moved = rows - cost->rows, even = even_of(balance);

    balance->fixed_variance = fmin(FIXED_VARIANCE, balance->fixed_variance + FIXED_FORGET);
    if (!(cost->row_s > 0) || fabs(moved) <= ROWS_DIFFER * cost->rows)
        return;
    double then_s = cost->fixed_s + cost->row_s * cost->rows, even_s = cost->fixed_s + cost->row_s * even;
    double part = 1 - (report->seconds / report->steps - then_s) / moved * even / even_s;
    double error =
        cost->noise * then_s * even / (even_s * moved); /* of the mean before; and of the report: */
    double variance = FIXED_DIFFERS + error * error * (1 + speed->known.steps / report->steps);
    double weight = balance->fixed_variance / (balance->fixed_variance + variance);

    balance->fixed_variance *= 1 - weight;
    part = balance->fixed_part + weight * (part - balance->fixed_part);
    balance->fixed_part = fmax(0, fmin(FIXED_MAX / (1 + FIXED_MAX), part));
}

static double expected_s(const pace__cost *cost, const pace__timing *report)
{
    return cost->fixed_s + cost->row_s * (report->rows / report->steps);
}

/* How many times as long a step of the report took as what was known lets expect; 1: nothing is known. */
static double ratio_of(const pace__cost *cost, const pace__timing *report)
{
    double ratio = report->seconds / report->steps / expected_s(cost, report);

    return isfinite(ratio) && ratio > 0 ? ratio : 1;
}

/* Times have no upper limit, but a lower one: who is slower by chance may be so many times as slow, and who is faster only by what is not
 * noise. */
static bool is_noise(const pace__cost *cost, double ratio, const pace__timing *known, double steps)
{
    /* Of single steps, to that of a mean of so many. */
    double noise = ODD_NOISE * cost->noise * sqrt(fmax(1, known->steps) / fmax(1, steps));

    return (ratio > 1 ? log(ratio) : 1 - ratio) <= noise;
}

/* One step that was held up is no change of all of them. */
static bool steps_agree(const pace__cost *cost, const pace__timing *report)
{
    moments of = moments_of(report);
    double off_s = fabs(of.seconds - expected_s(cost, report));

    return report->steps < 2 || off_s > ODD_AGREES * sqrt(of.seconds_var / (report->steps - 1));
}

/* Steps, of a worker whose mean is known so well. */
static double memory_of(const pace__balance *balance, const pace__speed *speed)
{
    pace__cost cost = cost_of(balance, speed);
    moments of = moments_of(&speed->known);
    double of_one = speed->known.steps > 0 && of.seconds > 0 ? unexplained(&of, cost.row_s) : 0;

    return fmin(MEMORY_MOST, fmax(MEMORY_LEAST, of_one / (KNOWN * KNOWN)));
}

/* They were noise. */
static void forget_odd(pace__speed *speed)
{
    note_spread(speed, speed->held / fmax(1, speed->held_reports), speed->held_reports);
    speed->held = speed->held_reports = 0;
    speed->odd = (pace__timing){0};
    speed->witnesses = 0;
}

static void keep(const pace__balance *balance, pace__speed *speed, const pace__timing *report)
{
    scale(&speed->known, exp(-report->steps / memory_of(balance, speed)));
    add_weighted(&speed->known, report, 1);
}

/* Whatever was off on the other side, or by some steps only, is less to go by. */
static void remember_odd(pace__speed *speed, const pace__timing *report, bool slower, unsigned witness)
{
    if (speed->slower != slower || (witness == WITNESS && speed->witnesses < WITNESS))
        forget_odd(speed);
    add_weighted(&speed->odd, report, 1);
    speed->witnesses += witness;
    speed->slower = slower;
}

/* All that a worker does takes so many times as long: what was fixed, too. A little of before stays, for the line. */
static void begin_anew(pace__speed *speed, double ratio)
{
    pace__timing before = speed->known;

    before.seconds *= ratio;
    before.rows_seconds *= ratio;
    before.seconds_seconds *= ratio * ratio;
    scale(&before, fmin(1, 1 / before.steps));
    speed->known = before;
    add_weighted(&speed->known, &speed->odd, 1);
    speed->held = speed->held_reports = 0; /* a change is no noise */
    forget_odd(speed);
}

void pace__balance_learn(pace__balance *balance, unsigned worker, const pace__timing *timing)
{
    assert(worker < balance->workers);
    pace__speed *speed = &balance->speed[worker];
    pace__cost cost = cost_of(balance, speed);

    if (!(timing->steps > 0))
        return;
    double ratio = speed->known.steps > 0 ? ratio_of(&cost, timing) : 1;
    bool odd = fabs(log(ratio)) > log(ODD_RATIO),
         noise = is_noise(&cost, ratio, &speed->known, timing->steps);
    bool agrees = steps_agree(&cost, timing);
    double spread = spread_between(&speed->last, timing);

    speed->last = *timing;
    if (!odd ||
        (noise && (agrees || ratio < 1))) { /* else a pause, or a change: that shows in the next ones */
        learn_fixed(balance, speed, &cost, timing);
        keep(balance, speed, timing);
    }
    if (!odd)
        forget_odd(speed);
    else
        remember_odd(speed, timing, ratio > 1, noise ? WITNESS_NEAR : agrees ? WITNESS : WITNESS_SOME);
    if (odd && !noise && spread >= 0) {
        speed->held += spread;
        speed->held_reports++;
    } else {
        note_spread(speed, spread, 1);
    }
    if (speed->witnesses >= CHANGE)
        begin_anew(speed, ratio_of(&cost, &speed->odd));
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
                               .fixed_variance = FIXED_VARIANCE,
                               .speed = calloc(workers, sizeof *balance->speed),
                               .cost = calloc(workers, sizeof *balance->cost),
                               .most = calloc(workers, sizeof *balance->most)};
    for (unsigned i = 0; balance->speed && i < workers; i++)
        balance->speed[i] = (pace__speed){.spread_reports = SPREAD_BEGIN};
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

/* Of so many values that are normally distributed the largest is so many deviations off. */
static double deviations_of(const pace__balance *balance)
{
    return sqrt(2 * log(balance->workers));
}

/* Whoever is to have fewer rows may only seem to be slow, and who is to have more may only seem to be fast: by so many times. */
static double doubt_of(const pace__balance *balance, unsigned worker, uint32_t now, uint32_t next)
{
    double off = deviations_of(balance) * balance->cost[worker].noise;

    if (next == now)
        return 1;
    return next < now ? fmax(0, 1 - off) : 1 + off;
}

/* And what another number of rows costs is known the less the further it is from those that were seen. */
static double doubtful_gain(const pace__balance *balance, const uint32_t *now, const uint32_t *next)
{
    double now_s = 0, next_s = 0;

    for (unsigned i = 0; i < balance->workers; i++) {
        const pace__cost *cost = &balance->cost[i];
        double doubt = doubt_of(balance, i, now[i], next[i]),
               moved_s = cost->row_s_error * fabs((double)next[i] - now[i]);

        now_s = fmax(now_s, doubt * seconds_of(cost, now[i]));
        next_s = fmax(next_s, doubt * (seconds_of(cost, next[i]) + moved_s));
    }
    return now_s > 0 ? 1 - next_s / now_s : 0;
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

/* Shares by those costs; the time in which all would be done. */
static double divide(const pace__balance *balance, uint32_t *rows)
{
    unsigned workers = balance->workers;
    costs from = {balance->cost, workers, mean_row_s(balance->cost, workers),
                  all_idle(balance->cost, workers)};
    double seconds = find_time(&from, (double)balance->batch, balance->most);

    round_rows(&from, seconds, balance->batch, balance->most, rows);
    return seconds;
}

/* Where all are done at the same time; but nobody's share changes further than it has to beyond doubt: who seems to be slow, and is not
 * well known, keeps its rows until it is. */
static void divide_with_care(pace__balance *balance, const uint32_t *now, uint32_t *next)
{
    double all_done_s = divide(balance, next), deviations = deviations_of(balance);

    for (unsigned i = 0; i < balance->workers; i++) {
        pace__cost *cost = &balance->cost[i];
        double off = deviations * cost->noise, late = seconds_of(cost, now[i]) / all_done_s;
        double beyond = late > 1 ? fmax(1, late * (1 - off)) : fmin(1, late * (1 + off));

        if (late > 0) {
            cost->fixed_s *= beyond / late;
            cost->row_s *= beyond / late;
        }
    }
    divide(balance, next);
    leave_nobody_out(balance, next);
}

bool pace__balance_decide(pace__balance *balance, const uint32_t *now, uint32_t *next, double *gain)
{
    bool better = false;

    *gain = 0;
    if (balance->workers > 1 && look_at_costs(balance)) {
        set_limits(balance, now);
        divide_with_care(balance, now, next);
        look_at_costs(balance);
        *gain = gain_of(balance->cost, now, next, balance->workers);
        better = *gain > MARGIN && doubtful_gain(balance, now, next) > MARGIN;
    }
    for (unsigned i = 0; i < balance->workers && !better; i++)
        next[i] = now[i];
    *gain = better ? *gain : 0;
    return better;
}

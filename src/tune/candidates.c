#include "tune/candidates.h"

#include "base/random.h"
#include "options/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers of a range --- */

static bool is_whole(const pace__try *try)
{
    return try->row->kind == PACE_OPT_INT;
}

/* Rounding does not lead out of the range. */
static void put_number(const pace__try *try, double value, char text[PACE__NUMBER_TEXT])
{
    if (is_whole(try)) {
        snprintf(text, PACE__NUMBER_TEXT, "%" PRId64, (int64_t)fmin(fmax(round(value), try->low), try->high));
        return;
    }
    snprintf(text, PACE__NUMBER_TEXT, "%.3g", value);
    double rounded = strtod(text, NULL);

    if (rounded < try->low || rounded > try->high)
        snprintf(text, PACE__NUMBER_TEXT, "%.15g", rounded < try->low ? try->low : try->high);
}

/* Where it lies from 0, the lower end, to 1. */
static void put_at(const pace__try *try, double share, char text[PACE__NUMBER_TEXT])
{
    double value = try->logarithmic ? exp(log(try->low) + share * (log(try->high) - log(try->low)))
                                    : try->low + share * (try->high - try->low);

    put_number(try, value, text);
}

/* Each whole number as likely as its neighbours. */
static void put_drawn(const pace__try *try, double share, char text[PACE__NUMBER_TEXT])
{
    if (is_whole(try) && !try->logarithmic)
        put_number(try, floor(try->low + share * (try->high - try->low + 1)), text);
    else
        put_at(try, share, text);
}

/* --- how many there are --- */

static uint64_t times(uint64_t a, uint64_t b)
{
    return a && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static uint64_t whole_numbers(const pace__try *try)
{
    return (uint64_t)fmin(try->high - try->low + 1, 1e15);
}

static uint64_t points_of(const pace__try *try)
{
    if (try->count)
        return try->count;
    return is_whole(try) && whole_numbers(try) < PACE__RANGE_POINTS ? whole_numbers(try) : PACE__RANGE_POINTS;
}

uint64_t pace__grid_size(const pace__tries *tries)
{
    uint64_t size = 1;

    for (size_t i = 0; i < tries->count; i++)
        size = times(size, points_of(&tries->of[i]));
    return size;
}

uint64_t pace__combinations(const pace__tries *tries)
{
    uint64_t count = 1;

    for (size_t i = 0; i < tries->count; i++) {
        const pace__try *try = &tries->of[i];

        count = times(count, try->count ? try->count : is_whole(try) ? whole_numbers(try) : UINT64_MAX);
    }
    return count;
}

/* --- making one --- */

void pace__candidate_sample(const pace__tries *tries, uint64_t seed, uint64_t place,
                            pace__candidate *candidate)
{
    pace__random random = pace__random_at(seed, place);

    *candidate = (pace__candidate){0};
    for (size_t i = 0; i < tries->count; i++) {
        const pace__try *try = &tries->of[i];

        if (try->count)
            candidate->listed[i] = try->values[pace__random_below(&random, try->count)];
        else
            put_drawn(try, pace__random_unit(&random), candidate->numbers[i]);
    }
}

void pace__candidate_on_grid(const pace__tries *tries, uint64_t place, pace__candidate *candidate)
{
    assert(place < pace__grid_size(tries));
    *candidate = (pace__candidate){0};
    for (size_t i = tries->count; i-- > 0;) {
        const pace__try *try = &tries->of[i];
        uint64_t points = points_of(try), point = place % points;

        place /= points;
        if (try->count)
            candidate->listed[i] = try->values[point];
        else
            put_at(try, (double)point / (double)(points - 1), candidate->numbers[i]);
    }
}

/* --- what it means --- */

const char *pace__candidate_value(const pace__candidate *candidate, size_t try)
{
    assert(!candidate->is_default);
    return candidate->listed[try] ? candidate->listed[try] : candidate->numbers[try];
}

const char *pace__candidate_words(const pace__tries *tries, const pace__candidate *candidate,
                                  char text[PACE__CANDIDATE_TEXT])
{
    size_t used = 0;

    snprintf(text, PACE__CANDIDATE_TEXT, "defaults");
    for (size_t i = 0; i < tries->count && !candidate->is_default && used < PACE__CANDIDATE_TEXT; i++)
        used += (size_t)snprintf(text + used, PACE__CANDIDATE_TEXT - used, "%s%s=%s", i ? " " : "",
                                 tries->of[i].row->name, pace__candidate_value(candidate, i));
    return text;
}

void pace__candidate_apply(const pace__tries *tries, const pace__candidate *candidate,
                           pace_train_config *config)
{
    char why[PACE_WHY_MAX];

    for (size_t i = 0; i < tries->count && !candidate->is_default; i++) {
        const pace__try *try = &tries->of[i];
        const char *value = pace__candidate_value(candidate, i);
        bool valid = pace__value_parse(try->row, value, pace__try_field(try, config), why);

        assert(valid && "values of tries are checked");
        (void)valid;
    }
}

static bool is_same(const pace_option *row, const void *left, const void *right)
{
    char a[PACE_VALUE_TEXT_MAX], b[PACE_VALUE_TEXT_MAX];

    if (row->kind == PACE_OPT_TEXT) {
        const char *from = *(const char *const *)left, *to = *(const char *const *)right;

        return from && to ? strcmp(from, to) == 0 : from == to;
    }
    pace__value_print(row, left, a);
    pace__value_print(row, right, b);
    return strcmp(a, b) == 0;
}

bool pace__candidate_changes(const pace__tries *tries, const pace__candidate *candidate,
                             const pace_train_config *base)
{
    pace_train_config before = *base, config = *base;

    pace__candidate_apply(tries, candidate, &config);
    for (size_t i = 0; i < tries->count; i++) {
        const pace__try *try = &tries->of[i];

        if (!is_same(try->row, pace__try_field(try, &before), pace__try_field(try, &config)))
            return true;
    }
    return false;
}

#include "gen/click_model.h"

#include "gen/elementary.h"
#include "gen/zipf.h"

#include <assert.h>
#include <stdlib.h>

/* Chances are out of 2^16, to be compared with 16 random bits. */
#define PERCENT(x) ((uint32_t)((x)*655.36))

/* Log-odds of a row whose columns contribute nothing, set so that about a quarter of the labels is 1. */
#define INTERCEPT (-1.115)

/*
 * A value is exp(center + spread * noise + pull * hidden), cut to an integer. With
 * t = (log(1 + value) - center) / width it contributes rise * t / (1 + |t|), monotone, plus
 * (wave * t + bump) / (1 + t^2), which is not.
 */
typedef struct integer_column {
    double center, spread, pull;
    double width, rise, wave, bump;
    double missing_weight;
    uint32_t missing; /* chance */
} integer_column;

static const integer_column integer_columns[PACE__CRITEO_INTEGERS] = {
    {0.6, 1.3, 0.4, 1.0, 0.50, 0.00, 0.00, -0.15, PERCENT(44)},
    {1.6, 1.9, 0.0, 1.4, 0.10, 0.35, 0.00, 0.00, PERCENT(0)},
    {1.8, 1.5, 0.3, 1.2, 0.00, 0.00, 0.40, -0.10, PERCENT(21)},
    {1.6, 1.1, -0.3, 0.9, 0.00, -0.45, 0.10, -0.20, PERCENT(21)},
    {7.4, 2.1, -0.5, 1.6, -0.40, 0.25, 0.00, 0.10, PERCENT(2.5)},
    {3.6, 1.7, -0.4, 1.3, -0.25, 0.00, 0.35, -0.30, PERCENT(22)},
    {1.4, 1.6, 0.5, 1.1, 0.45, 0.20, 0.00, -0.25, PERCENT(4)},
    {1.9, 1.2, 0.0, 1.0, 0.00, 0.40, -0.20, 0.05, PERCENT(0.1)},
    {3.9, 1.6, 0.3, 1.2, 0.15, 0.00, -0.40, 0.00, PERCENT(4)},
    {-0.6, 0.9, 0.2, 0.7, 0.30, 0.00, 0.00, -0.10, PERCENT(44)},
    {0.7, 1.0, 0.4, 0.8, 0.35, -0.30, 0.00, -0.20, PERCENT(4)},
    {-1.2, 1.3, 0.0, 0.9, 0.20, 0.00, 0.15, 0.00, PERCENT(45)},
    {1.7, 1.3, -0.2, 1.1, -0.30, 0.00, 0.30, -0.15, PERCENT(21)},
};

/* Only this column has values below 0: -1, -2, -3. */
#define NEGATIVE_COLUMN 1
#define NEGATIVES       3
static const uint32_t negative_chances[NEGATIVES] = {PERCENT(9), PERCENT(1.5), PERCENT(0.05)};
static const double negative_weights[NEGATIVES] = {-0.35, 0.20, 0.60};

typedef struct category_column {
    uint32_t cardinality;
    double exponent;  /* of the Zipf law */
    double deviation; /* of the weights */
    uint32_t missing; /* chance */
    bool steered;     /* follows the hidden variable now and then */
} category_column;

static const category_column category_columns[PACE__CRITEO_CATEGORIES] = {
    {1460, 1.15, 0.20, PERCENT(0), false},       {583, 1.05, 0.18, PERCENT(0), true},
    {10131227, 1.07, 0.10, PERCENT(3.4), false}, {2202608, 1.09, 0.11, PERCENT(3.4), false},
    {305, 1.20, 0.17, PERCENT(0), true},         {24, 1.10, 0.19, PERCENT(12), false},
    {12517, 1.05, 0.22, PERCENT(0), true},       {633, 1.20, 0.16, PERCENT(0), false},
    {3, 1.10, 0.16, PERCENT(0), true},           {93145, 1.10, 0.18, PERCENT(0), false},
    {5683, 1.05, 0.22, PERCENT(0), false},       {8351593, 1.08, 0.10, PERCENT(3.4), true},
    {3194, 1.05, 0.21, PERCENT(0), false},       {27, 1.10, 0.22, PERCENT(0), true},
    {14992, 1.08, 0.22, PERCENT(0), false},      {5461306, 1.10, 0.10, PERCENT(3.4), false},
    {10, 1.10, 0.25, PERCENT(0), false},         {5652, 1.08, 0.22, PERCENT(0), true},
    {2173, 1.12, 0.18, PERCENT(40), false},      {4, 1.05, 0.22, PERCENT(40), false},
    {7046547, 1.10, 0.10, PERCENT(3.4), true},   {18, 1.20, 0.17, PERCENT(40), false},
    {15, 1.10, 0.20, PERCENT(0), false},         {286181, 1.10, 0.17, PERCENT(3.4), false},
    {105, 1.10, 0.20, PERCENT(40), true},        {142572, 1.10, 0.18, PERCENT(40), false},
};

struct pace__click_model {
    uint32_t offsets[PACE__CRITEO_CATEGORIES];
    pace__zipf zipf[PACE__CRITEO_CATEGORIES];
};

pace__click_model *pace__click_model_create(void)
{
    pace__click_model *model = malloc(sizeof *model);
    uint32_t offset = 0;

    if (!model)
        return NULL;
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        model->offsets[c] = offset;
        offset += category_columns[c].cardinality;
        pace__zipf_init(&model->zipf[c], category_columns[c].cardinality, category_columns[c].exponent);
    }
    return model;
}

void pace__click_model_free(pace__click_model *model)
{
    free(model);
}

uint32_t pace__click_cardinality(unsigned column)
{
    assert(column < PACE__CRITEO_CATEGORIES);
    return category_columns[column].cardinality;
}

const uint32_t *pace__click_offsets(const pace__click_model *model)
{
    return model->offsets;
}

/* -1, -2, -3, or `value`. */
static int32_t maybe_negative(int32_t value, uint32_t chance)
{
    for (int i = 0; i < NEGATIVES; i++) {
        if (chance < negative_chances[i])
            return -1 - i;
        chance -= negative_chances[i];
    }
    return value;
}

/* The integers before some of them go missing. A loop per step: each is a long chain, and columns overlap. */
static void draw_integers(double hidden, pace__random *random, int32_t integers[PACE__CRITEO_INTEGERS])
{
    double value[PACE__CRITEO_INTEGERS];

    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        const integer_column *info = &integer_columns[c];
        double normal = pace__rough_normal(pace__random_next(random));

        /* The cube makes the tail heavier than a log-normal one. */
        value[c] = info->center + info->spread * normal * (1 + 0.05 * normal * normal) + info->pull * hidden;
    }
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++)
        value[c] = pace__portable_exp(value[c]);
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++)
        integers[c] = value[c] < PACE__CLICK_INTEGER_MAX ? (int32_t)value[c] : PACE__CLICK_INTEGER_MAX;
}

static void weigh_integers(pace__click_row *row, double weights[PACE__CRITEO_INTEGERS])
{
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++)
        row->logs[c] = pace__portable_log(1.0 + row->integers[c]);
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        const integer_column *info = &integer_columns[c];
        double t = (row->logs[c] - info->center) / info->width;

        weights[c] = info->rise * t / (1 + (t < 0 ? -t : t)) + (info->wave * t + info->bump) / (1 + t * t);
    }
}

/* Returns what the integers add to the log-odds. */
static double fill_integers(double hidden, pace__random *random, pace__click_row *row)
{
    double weights[PACE__CRITEO_INTEGERS], sum = 0;

    draw_integers(hidden, random, row->integers);
    weigh_integers(row, weights);
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        uint32_t chance = (uint32_t)(pace__random_next(random) >> 48);

        bool missing = chance < integer_columns[c].missing;

        row->integers[c] = missing ? PACE__MISSING_INTEGER : row->integers[c];
        weights[c] = missing ? integer_columns[c].missing_weight : weights[c];
        if (c == NEGATIVE_COLUMN && !missing) {
            row->integers[c] = maybe_negative(row->integers[c], chance - integer_columns[c].missing);
            if (row->integers[c] < 0)
                weights[c] = negative_weights[-1 - row->integers[c]];
        }
        sum += weights[c];
    }
    return sum;
}

/* Masks instead of branches: these conditions are random, so a branch would often be mispredicted. */
static uint32_t draw_rank(const pace__click_model *model, unsigned column, uint64_t hidden,
                          pace__random *random)
{
    const category_column *info = &category_columns[column];
    uint64_t choice = pace__random_next(random), chances = pace__random_next(random);
    /* In a quarter of the rows the choice's top four bits are the hidden variable's: it stays uniform. */
    uint64_t steered = -(uint64_t)(info->steered & ((chances & 3) == 0)) & UINT64_C(15) << 60;
    uint32_t missing = -(uint32_t)(chances >> 48 < info->missing);

    choice ^= (choice ^ hidden ^ (uint64_t)column << 60) & steered;
    return pace__zipf_draw(&model->zipf[column], choice, random) | missing;
}

_Static_assert(PACE__MISSING_RANK == UINT32_MAX, "draw_rank makes a rank missing by setting all its bits");

/* What the categories add to the log-odds. */
static double weigh_categories(const uint32_t ranks[PACE__CRITEO_CATEGORIES])
{
    double sum = 0;

    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        uint64_t place = (uint64_t)(c + 1) << 32 | ranks[c]; /* a missing one has its weight, too */

        sum += category_columns[c].deviation * pace__rough_normal(pace__mix64(place * 0x9e3779b97f4a7c15u));
    }
    return sum;
}

void pace__click_draw(const pace__click_model *model, pace__random *random, pace__click_row *row)
{
    uint64_t hidden = pace__random_next(random);
    /* Uniform with deviation 1. */
    double shift = ((double)(hidden >> 11) * 0x1p-53 - 0.5) * 3.4641016151377544;
    double log_odds = INTERCEPT + fill_integers(shift, random, row);

    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++)
        row->ranks[c] = draw_rank(model, c, hidden, random);
    log_odds += weigh_categories(row->ranks);
    double whole = 1 + pace__portable_exp(-log_odds); /* 1 / probability */

    row->log_odds = log_odds;
    row->clicked = pace__random_unit(random) * whole < 1;
    row->loss = pace__portable_log(whole) + (row->clicked ? 0 : log_odds);
}

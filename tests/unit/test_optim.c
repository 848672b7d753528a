/* The update rules, against the textbook in double precision; rows; the penalty's flow; the schedules. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "optim/optim.h"

#include "support.h"

#define UPDATES 300

static void assert_near(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.9g instead of %.9g", what, found, expected);
}

/* Gradients as logistic regression makes them: below 1 in size, some 0. */
static double gradient_at(uint64_t seed, uint64_t i)
{
    pace__random random = pace__random_at(seed, i);

    return pace__random_below(&random, 10) == 0 ? 0 : (float)(2 * pace__random_unit(&random) - 0.8);
}

/* --- the textbook --- */

typedef struct textbook {
    double lr, momentum, l1, l2;
    double w, m, v, n, z;
    uint64_t updates;
} textbook;

static void plain_sgd(textbook *t, double g)
{
    t->w = t->w - t->lr * g;
}

static void plain_momentum(textbook *t, double g)
{
    t->m = t->momentum * t->m + g;
    t->w = t->w - t->lr * t->m;
}

static void plain_adagrad(textbook *t, double g)
{
    t->n = t->n + g * g;
    t->w = t->w - t->lr * g / sqrt(1 + t->n);
}

/* McMahan et al. 2013, algorithm 1, with alpha = lr and beta = 1. */
static void plain_ftrl(textbook *t, double g)
{
    double sigma = (sqrt(t->n + g * g) - sqrt(t->n)) / t->lr;

    t->z = t->z + g - sigma * t->w;
    t->n = t->n + g * g;
    if (fabs(t->z) <= t->l1)
        t->w = 0;
    else
        t->w = -(t->z - (t->z > 0 ? t->l1 : -t->l1)) / ((1 + sqrt(t->n)) / t->lr + t->l2);
}

/* Kingma and Ba 2015, algorithm 1. */
static void plain_adam(textbook *t, double g)
{
    t->updates++;
    t->m = t->momentum * t->m + (1 - t->momentum) * g;
    t->v = 0.999 * t->v + (1 - 0.999) * g * g;
    double m = t->m / (1 - pow(t->momentum, (double)t->updates)),
           v = t->v / (1 - pow(0.999, (double)t->updates));

    t->w = t->w - t->lr * m / (sqrt(v) + 1e-8);
}

typedef struct rule {
    const char *name;
    int kind;
    void (*plain)(textbook *t, double g);
    double lr, l1, l2;
} rule;

static const rule rules[] = {
    {"sgd", PACE_SGD, plain_sgd, 0.05, 0, 0},
    {"momentum", PACE_MOMENTUM, plain_momentum, 0.005, 0, 0},
    {"adagrad", PACE_ADAGRAD, plain_adagrad, 0.1, 0, 0},
    {"ftrl", PACE_FTRL, plain_ftrl, 0.1, 0, 0},
    {"ftrl l1", PACE_FTRL, plain_ftrl, 0.1, 1.5, 0},
    {"ftrl l2", PACE_FTRL, plain_ftrl, 0.1, 0, 3},
    {"ftrl both", PACE_FTRL, plain_ftrl, 0.3, 0.5, 0.5},
    {"adam", PACE_ADAM, plain_adam, 0.001, 0, 0},
};

static void rules_follow_the_textbook(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            pace__optim optim = pace__optim_make(rules[r].kind, rules[r].lr, 0.9, rules[r].l1, rules[r].l2);
            textbook t = {.lr = rules[r].lr, .momentum = 0.9, .l1 = rules[r].l1, .l2 = rules[r].l2};
            float parameter[PACE__OPTIM_WIDTH_MAX];

            pace__optim_init(&optim, parameter);
            for (uint64_t i = 0; i < UPDATES; i++) {
                double g = gradient_at(seed, i);

                pace__optim_begin_step(&optim, rules[r].lr, i);
                pace__optim_update(&optim, parameter, (float)g);
                rules[r].plain(&t, g);
                assert_near(parameter[0], t.w, 1e-4, rules[r].name);
            }
        }
    }
}

static void ftrl_makes_zeros(void **state)
{
    pace__optim optim = pace__optim_make(PACE_FTRL, 0.1, 0, 2, 0);
    float parameter[PACE__OPTIM_WIDTH_MAX];

    (void)state;
    pace__optim_init(&optim, parameter);
    pace__optim_update(&optim, parameter, 0.9f);
    pace__optim_update(&optim, parameter, 0.9f);
    assert_true(parameter[0] == 0);
    pace__optim_update(&optim, parameter, 0.9f);
    assert_true(parameter[0] < 0);
}

static void the_state_has_its_size(void **state)
{
    static const unsigned widths[] = {
        [PACE_SGD] = 1, [PACE_MOMENTUM] = 2, [PACE_ADAGRAD] = 2, [PACE_FTRL] = 3, [PACE_ADAM] = 3};

    (void)state;
    for (int kind = PACE_SGD; kind <= PACE_ADAM; kind++) {
        pace__optim optim = pace__optim_make(kind, 0, 0.9, 0, 0),
                    penalised = pace__optim_make(kind, 0, 0.9, 0.1, 0);

        assert_int_equal(optim.width, widths[kind]);
        assert_false(optim.lazy);
        assert_int_equal(penalised.lazy, kind != PACE_FTRL);
        assert_int_equal(penalised.width, widths[kind] + (kind != PACE_FTRL));
        assert_true(penalised.width <= PACE__OPTIM_WIDTH_MAX);
        assert_near(pace__optim_make(kind, 0.7, 0.9, 0, 0).lr, 0.7, 1e-7, "given rate");
    }
}

/* --- rows --- */

#define DIM_MAX 100

/* Some gradients are 0, some tiny, some huge: whatever a vector of them does, it does to each by itself. */
static float row_gradient(pace__random *random)
{
    static const float sizes[] = {0, 1, 1, 1, 1e-20f, 1e-6f, 1e6f, 1e15f};

    return sizes[pace__random_below(random, 8)] * (float)(2 * pace__random_unit(random) - 0.9);
}

static void assert_row(const rule *from, unsigned dim, unsigned width, const float *row,
                       float alone[][PACE__OPTIM_WIDTH_MAX])
{
    for (unsigned i = 0; i < dim * width; i++) {
        if (memcmp(&row[i], &alone[i % dim][i / dim], sizeof *row) != 0)
            fail_msg("%s, dim %u: float %u of parameter %u is %a instead of %a", from->name, dim, i / dim,
                     i % dim, (double)row[i], (double)alone[i % dim][i / dim]);
    }
}

/* Bit for bit, also where the compiler takes several parameters at a time. */
static void check_rows(const rule *from, unsigned dim)
{
    static const float scales[] = {1, 1.0f / 3, 1.0f / 4096};
    pace__optim optim = pace__optim_make(from->kind, from->lr, 0.9, from->l1, from->l2);
    float alone[DIM_MAX][PACE__OPTIM_WIDTH_MAX], record[DIM_MAX * (PACE__OPTIM_WIDTH_MAX + 1) + 1];
    float *gradients = record + dim * optim.width; /* behind the row, as in a table */
    pace__random random = pace__random_at(dim, 9);

    gradients[dim] = 77; /* nobody's */
    pace__optim_init_row(&optim, dim, record);
    for (unsigned i = 0; i < dim; i++)
        pace__optim_init(&optim, alone[i]);
    assert_row(from, dim, optim.width, record, alone);
    for (uint64_t step = 0; step < 60; step++) {
        float scale = scales[pace__random_below(&random, 3)], before[DIM_MAX];

        for (unsigned i = 0; i < dim; i++)
            before[i] = gradients[i] = row_gradient(&random);
        pace__optim_begin_step(&optim, from->lr / (double)(1 + step % 7), step);
        pace__optim_update_row(&optim, dim, record, gradients, scale);
        for (unsigned i = 0; i < dim; i++)
            pace__optim_update(&optim, alone[i], before[i] * scale);
        assert_row(from, dim, optim.width, record, alone);
        assert_memory_equal(gradients, before, dim * sizeof *before);
        assert_true(gradients[dim] == 77);
    }
}

static void a_row_is_its_parameters(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        for (unsigned dim = 1; dim <= DIM_MAX; dim++)
            check_rows(&rules[r], dim);
    }
}

/* --- the penalty --- */

static const float penalties[][2] = {{0.01f, 0}, {0, 0.03f}, {0.01f, 0.03f}, {1, 1}, {0.0001f, 0.00001f}};

/* dw/dt = -rate (l2 w + l1 sign w), stopping at 0, in a great many small steps. */
static double simulate(double w, double l1, double l2, double rate, double rows)
{
    enum { STEPS = 100000 };
    double dt = rows / STEPS;

    for (int i = 0; i < STEPS && w != 0; i++) {
        double next = w - dt * rate * (l2 * w + (w > 0 ? l1 : -l1));

        w = next * w <= 0 ? 0 : next;
    }
    return w;
}

static void the_flow_is_the_flow(void **state)
{
    static const float weights[] = {0.8f, -0.8f, 0.05f, -3, 0};
    static const float rows[] = {1, 50, 700};

    (void)state;
    for (size_t p = 0; p < 5; p++) {
        pace__optim optim = pace__optim_make(PACE_SGD, 0.05, 0, penalties[p][0], penalties[p][1]);

        for (size_t w = 0; w < 5; w++) {
            for (size_t r = 0; r < 3; r++)
                assert_near(pace__penalty_flow(&optim, weights[w], 0.05f, rows[r]),
                            simulate(weights[w], penalties[p][0], penalties[p][1], 0.05, rows[r]), 1e-4,
                            "flow");
        }
    }
}

/* A parameter with a penalty, last seen at row 0. */
static void begin_parameter(const pace__optim *optim, float weight, float *parameter)
{
    pace__optim_init(optim, parameter);
    parameter[0] = weight;
    if (optim->kind == PACE_ADAGRAD)
        parameter[1] = 7.25f;
}

static void in_pieces_or_at_once(void **state)
{
    static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_MOMENTUM, PACE_ADAM};

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        for (size_t p = 0; p < 5; p++) {
            for (uint32_t pieces = 1; pieces <= 100; pieces *= 10) {
                pace__optim optim = pace__optim_make(kinds[k], 0.05, 0.9, penalties[p][0], penalties[p][1]);
                float once[PACE__OPTIM_WIDTH_MAX], often[PACE__OPTIM_WIDTH_MAX];

                begin_parameter(&optim, -0.9f, once);
                begin_parameter(&optim, -0.9f, often);
                pace__optim_catch_up(&optim, once, 1000);
                for (uint32_t i = 1; i <= pieces; i++)
                    pace__optim_catch_up(&optim, often, 1000 / pieces * i);
                assert_near(often[0], once[0], 1e-5, "pieces");
                assert_int_equal(pace__optim_stamp(&optim, once), 1000);
            }
        }
    }
}

/* With a tiny l2 the l1 part must not be lost to rounding, row by row either. */
static void a_tiny_l2_does_not_hide_l1(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 0.1, 0, 1e-3, 1e-8);
    float w = 0.9f;

    (void)state;
    for (int i = 0; i < 1000; i++)
        w = pace__penalty_flow(&optim, w, 0.1f, 1);
    assert_near(w, 0.8, 1e-4, "row by row");
    assert_near(pace__penalty_flow(&optim, 0.9f, 0.1f, 1000), 0.8, 1e-4, "at once");
}

static void looking_does_not_change(void **state)
{
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.05, 0, 0.01, 0.02);
    float parameter[PACE__OPTIM_WIDTH_MAX], before[PACE__OPTIM_WIDTH_MAX];

    (void)state;
    begin_parameter(&optim, 0.6f, parameter);
    memcpy(before, parameter, sizeof before);
    float seen = pace__optim_weight(&optim, parameter, 123);

    assert_memory_equal(parameter, before, optim.width * sizeof *parameter);
    pace__optim_catch_up(&optim, parameter, 123);
    assert_true(parameter[0] == seen);
    assert_true(pace__optim_weight(&optim, parameter, 123) == seen);
    assert_near(seen, simulate(0.6, 0.01, 0.02, 0.05 / sqrt(7.25), 123), 1e-4, "adagrad's rate");
}

/* --- stamps --- */

/* Rows around every power of two: what a stamp says is not later, hardly earlier, and rises. */
static void stamps_rise(void **state)
{
    (void)state;
    for (uint64_t eighth = 0; eighth < 63 * 8; eighth++) {
        uint64_t power = eighth / 8, at = (UINT64_C(1) << power) + (eighth % 8 << power) / 8;

        for (uint64_t rows = at - 1; rows <= at + 1; rows++) {
            uint64_t known = pace__stamp_rows(pace__stamp_of(rows));

            assert_true(known <= rows && rows - known <= rows >> PACE__STAMP_BITS);
            assert_true(rows >= UINT64_C(1) << 31 || known == rows);
            assert_int_equal(pace__stamp_of(known), pace__stamp_of(rows));
            assert_true(pace__stamp_of(rows) <= pace__stamp_of(rows + 1));
            assert_true(pace__stamp_of(rows) < pace__stamp_of(rows + (rows >> 25) + 1));
        }
    }
    assert_int_equal(pace__stamp_of(PACE__STAMP_ROWS_MAX), UINT32_MAX);
}

static const uint64_t far_rows[] = {(UINT64_C(1) << 31) - 64, UINT64_C(1) << 31, (UINT64_C(1) << 32) - 128,
                                    UINT64_C(1) << 32,        UINT64_C(1) << 33, UINT64_C(3) << 33};

/* Rows that a stamp can say (512 is a multiple of its step up to 2^36) count the same wherever they are. */
static void far_rows_count_like_near_ones(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 0.05, 0, 0.01, 0.02);

    (void)state;
    for (size_t i = 0; i < sizeof far_rows / sizeof *far_rows; i++) {
        float early[PACE__OPTIM_WIDTH_MAX], late[PACE__OPTIM_WIDTH_MAX];

        begin_parameter(&optim, 0, late);
        pace__optim_catch_up(&optim, late, far_rows[i]);
        late[0] = 0.6f;
        begin_parameter(&optim, 0.6f, early);
        assert_true(pace__optim_weight(&optim, late, far_rows[i] + 512) ==
                    pace__optim_weight(&optim, early, 512));
    }
}

/* A parameter that is brought up with every row, and one that sleeps all the while: across every border. */
static void no_row_is_lost(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 1e-4, 0, 0.01, 0.02);

    (void)state;
    for (size_t i = 0; i < sizeof far_rows / sizeof *far_rows; i++) {
        float often[PACE__OPTIM_WIDTH_MAX], once[PACE__OPTIM_WIDTH_MAX];

        begin_parameter(&optim, 0, often);
        pace__optim_catch_up(&optim, often, far_rows[i]);
        often[0] = 0.6f;
        memcpy(once, often, sizeof once);
        for (uint64_t row = 1; row <= 20480; row++)
            pace__optim_catch_up(&optim, often, far_rows[i] + row);
        pace__optim_catch_up(&optim, once, far_rows[i] + 20480);
        assert_near(often[0], once[0], 1e-5, "row by row");
        assert_near(once[0], simulate(0.6, 0.01, 0.02, 1e-4, 20480), 1e-4, "at once");
    }
}

static void a_long_sleep_is_charged(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 1e-10, 0, 0, 0.25);

    (void)state;
    for (size_t i = 0; i < sizeof far_rows / sizeof *far_rows; i++) {
        float parameter[PACE__OPTIM_WIDTH_MAX];

        begin_parameter(&optim, 0.6f, parameter);
        pace__optim_catch_up(&optim, parameter, 5);
        assert_near(pace__optim_weight(&optim, parameter, far_rows[i] + 7),
                    0.6 * exp(-0.25e-10 * (double)far_rows[i]), 1e-6, "a long sleep");
    }
}

static void without_a_penalty_nothing_decays(void **state)
{
    (void)state;
    for (int kind = PACE_SGD; kind <= PACE_ADAM; kind++) {
        pace__optim optim = pace__optim_make(kind, 0.05, 0.9, 0, 0);
        float parameter[PACE__OPTIM_WIDTH_MAX] = {0.5f, 2, 3, 4};

        assert_true(pace__optim_weight(&optim, parameter, 1000000) == 0.5f);
    }
}

/* --- schedules --- */

static void rates_stay_or_fall(void **state)
{
    enum { STEPS = 1000 };

    (void)state;
    for (int schedule = PACE_SCHEDULE_CONSTANT; schedule <= PACE_SCHEDULE_INVSQRT; schedule++) {
        double before = INFINITY;

        assert_near(pace__schedule_lr(schedule, 0.3, 0, 0, STEPS), 0.3, 1e-12, "first step");
        for (uint64_t step = 0; step < STEPS; step++) {
            double lr = pace__schedule_lr(schedule, 0.3, 0, step, STEPS);

            assert_true(lr > 0 && lr <= before);
            assert_true(schedule != PACE_SCHEDULE_CONSTANT || lr == 0.3);
            before = lr;
        }
        assert_true(pace__schedule_lr(schedule, 0.3, 0, 0, 1) == 0.3); /* a run of one step */
    }
    assert_near(pace__schedule_lr(PACE_SCHEDULE_LINEAR, 1, 0, 999, STEPS), 0.01, 1e-9, "linear's end");
    assert_near(pace__schedule_lr(PACE_SCHEDULE_COSINE, 1, 0, 999, STEPS), 0.01, 1e-9, "cosine's end");
    assert_near(pace__schedule_lr(PACE_SCHEDULE_LINEAR, 1, 0, 500, 1001), 0.505, 1e-9, "linear's middle");
    assert_near(pace__schedule_lr(PACE_SCHEDULE_COSINE, 1, 0, 500, 1001), 0.505, 1e-9, "cosine's middle");
    assert_near(pace__schedule_lr(PACE_SCHEDULE_INVSQRT, 1, 0, 99, STEPS), 0.1, 1e-9, "1 / sqrt(100)");
}

static void warm_up_rises_to_the_rate(void **state)
{
    (void)state;
    for (int schedule = PACE_SCHEDULE_CONSTANT; schedule <= PACE_SCHEDULE_INVSQRT; schedule++) {
        for (uint64_t step = 0; step < 10; step++)
            assert_near(pace__schedule_lr(schedule, 0.5, 10, step, 100), 0.05 * (double)(step + 1), 1e-12,
                        "warm-up");
        assert_true(pace__schedule_lr(schedule, 0.5, 10, 10, 100) <= 0.5);
        assert_true(pace__schedule_lr(schedule, 0.5, 10, 10, 100) > 0.4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_follow_the_textbook),
        cmocka_unit_test(ftrl_makes_zeros),
        cmocka_unit_test(a_row_is_its_parameters),
        cmocka_unit_test(a_tiny_l2_does_not_hide_l1),
        cmocka_unit_test(the_state_has_its_size),
        cmocka_unit_test(the_flow_is_the_flow),
        cmocka_unit_test(in_pieces_or_at_once),
        cmocka_unit_test(looking_does_not_change),
        cmocka_unit_test(stamps_rise),
        cmocka_unit_test(far_rows_count_like_near_ones),
        cmocka_unit_test(no_row_is_lost),
        cmocka_unit_test(a_long_sleep_is_charged),
        cmocka_unit_test(without_a_penalty_nothing_decays),
        cmocka_unit_test(rates_stay_or_fall),
        cmocka_unit_test(warm_up_rises_to_the_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sparse logistic regression: its gradient, its fast kernels, its independence of the number of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "model/linear/logreg.h"

#include "support.h"

#define STRIPES_MAX 5

static void assert_near(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.9g instead of %.9g", what, found, expected);
}

/* The four layouts of a small set. */
static tiny_plan layout(int which, uint64_t rows)
{
    return (tiny_plan){.train = rows,
                       .ids = 97,
                       .columns = which & 1 ? 11 : 0,
                       .has_values = which & 2,
                       .seed = 40 + (uint64_t)which};
}

static const char *const layout_names[] = {"rows of any length", "columns", "rows of any length with values",
                                           "columns with values"};

static void make_model(pace__logreg *model, const tiny_set *set, const pace__optim *optim, bool plain)
{
    assert_ok(pace__logreg_init(model, set->info.ids_seen, set->info.columns, set->info.has_values, optim,
                                plain, &said_log));
}

static void randomise(pace__logreg *model, double size)
{
    pace__random random = pace__random_at(3, 9);

    for (uint32_t id = 0; id < model->ids; id++)
        model->parameters[(size_t)id * model->optim.width] =
            (float)(size * (2 * pace__random_unit(&random) - 1));
    model->bias[0] = (float)(size * 0.3);
}

/* Row after row in double precision. */
static double naive_logit(const pace__rows *rows, size_t row, const double *weight, double bias)
{
    uint64_t at = pace__row_start(rows, row),
             last = rows->columns ? at + rows->columns : rows->start[row + 1];
    double z = bias;

    for (; at < last; at++)
        z += weight[rows->ids[at]] * (rows->values ? rows->values[at] : 1);
    return z;
}

static double naive_loss(const pace__rows *rows, const double *weight, double bias)
{
    double loss = 0;

    for (size_t row = 0; row < rows->rows; row++) {
        double z = naive_logit(rows, row, weight, bias);

        loss += log1p(exp(-fabs(z))) + (z > 0 ? z : 0) - rows->label[row] * z;
    }
    return loss;
}

/* --- one step by hand, as the trainer does it --- */

typedef struct stepper {
    pace__logreg model;
    unsigned stripes;
    bool exact;
    pace__gradients gradients[STRIPES_MAX];
    float *sums;
    uint64_t updates; /* steps in the exact rule, rows in the block rule */
    uint32_t now;     /* rows done */
    double loss;
} stepper;

static void begin(stepper *self, const tiny_set *set, const pace__optim *optim, unsigned stripes, bool exact,
                  bool plain)
{
    *self = (stepper){.stripes = stripes, .exact = exact};
    make_model(&self->model, set, optim, plain);
    self->sums = tiny_alloc((set->info.ids_seen + 1) * sizeof *self->sums);
    for (unsigned i = 0; i < stripes && exact; i++)
        assert_ok(pace__gradients_init(&self->gradients[i], &self->model, self->sums, 1000,
                                       set->info.row_entries_max, &said_log));
}

static void end(stepper *self)
{
    for (unsigned i = 0; i < self->stripes && self->exact; i++)
        pace__gradients_release(&self->gradients[i]);
    free(self->sums);
    pace__logreg_release(&self->model);
}

static void run_block(stepper *self, const pace__rows *rows, size_t first, size_t count, uint32_t now)
{
    int64_t dots[PACE__BLOCK_ROWS] = {0};
    float gradient[PACE__BLOCK_ROWS];

    for (unsigned i = 0; i < self->stripes; i++) {
        pace__stripe stripe = pace__logreg_stripe(&self->model, i, self->stripes);
        int64_t own[PACE__BLOCK_ROWS];

        pace__logreg_dots(&self->model, rows, first, count, &stripe, now, own);
        for (size_t row = 0; row < count; row++)
            dots[row] += own[row];
    }
    self->loss += pace__logreg_gradient(&self->model, rows, first, count, dots, gradient);
    for (unsigned i = 0; i < self->stripes; i++) {
        pace__stripe stripe = pace__logreg_stripe(&self->model, i, self->stripes);

        if (self->exact)
            pace__logreg_accumulate(&self->model, &self->gradients[i], rows, first, count, &stripe, gradient);
        else
            pace__logreg_update(&self->model, rows, first, count, &stripe, gradient);
    }
}

static void run_step(stepper *self, const pace__rows *rows, double lr)
{
    pace__optim_begin_step(&self->model.optim, lr, self->updates);
    for (size_t at = 0; at < rows->rows; at += PACE__BLOCK_ROWS) {
        size_t left = rows->rows - at;

        run_block(self, rows, at, left < PACE__BLOCK_ROWS ? left : PACE__BLOCK_ROWS,
                  self->now + (self->exact ? 0 : (uint32_t)at));
    }
    for (unsigned i = 0; i < self->stripes && self->exact; i++) {
        pace__stripe stripe = pace__logreg_stripe(&self->model, i, self->stripes);

        pace__logreg_apply(&self->model, &self->gradients[i], &stripe, rows->rows);
    }
    self->now += (uint32_t)rows->rows;
    self->updates += self->exact ? 1 : rows->rows;
}

static void run_steps(stepper *self, const tiny_set *set, size_t batch, double lr)
{
    pace__rows all = tiny_view(set, PACE__TRAIN);

    for (size_t at = 0; at < all.rows; at += batch) {
        pace__rows step = pace__rows_slice(&all, at, all.rows - at < batch ? all.rows - at : batch);

        run_step(self, &step, lr);
    }
    pace__logreg_settle(&self->model, self->now);
}

/* --- the gradient --- */

/* The summed gradient of 64 rows, as the exact rule accumulates it, by finite differences. */
static void gradients_match_finite_differences(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 0.1, 0, 0, 0);

    (void)state;
    for (int which = 0; which < 4; which++) {
        tiny_set set = tiny_make(layout(which, PACE__BLOCK_ROWS));
        pace__rows rows = tiny_view(&set, PACE__TRAIN);
        double weight[98] = {0}, h = 1e-4;
        stepper self;

        begin(&self, &set, &optim, 1, true, true);
        randomise(&self.model, 0.7);
        for (uint32_t id = 0; id < 97; id++)
            weight[id] = self.model.parameters[id];
        double bias = self.model.bias[0];

        run_block(&self, &rows, 0, rows.rows, 0);
        assert_near(self.loss, naive_loss(&rows, weight, bias), 1e-5, "loss");
        for (uint32_t id = 0; id < 97; id++) {
            double middle = weight[id];

            weight[id] = middle + h;
            double above = naive_loss(&rows, weight, bias);

            weight[id] = middle - h;
            assert_near(self.sums[id], (above - naive_loss(&rows, weight, bias)) / (2 * h), 2e-5,
                        layout_names[which]);
            weight[id] = middle;
        }
        double slope = (naive_loss(&rows, weight, bias + h) - naive_loss(&rows, weight, bias - h)) / (2 * h);

        assert_near(self.gradients[0].bias, slope, 2e-5, "bias");
        end(&self);
        tiny_free(&set);
    }
}

/* Certain and wrong, certain and right: finite, whatever the logit. */
static void large_logits_stay_finite(void **state)
{
    static const double logits[] = {-1e6, -1000, -90, -20, 0, 20, 90, 1000, 1e6};

    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        tiny_set set = tiny_make(layout(1, 9));
        pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
        pace__rows rows = tiny_view(&set, PACE__TRAIN);
        pace__logreg model;
        int64_t dots[9];
        float gradient[9];
        double loss = 0;

        make_model(&model, &set, &optim, plain);
        for (size_t i = 0; i < 9; i++)
            dots[i] = (int64_t)(logits[i] / PACE__DOT_UNIT);
        double found = pace__logreg_gradient(&model, &rows, 0, 9, dots, gradient);

        for (size_t i = 0; i < 9; i++) {
            double z = logits[i], label = rows.label[i];

            assert_near(gradient[i], 1 / (1 + exp(-z)) - label, 1e-6, "gradient");
            loss += log1p(exp(-fabs(z))) + (z > 0 ? z : 0) - label * z;
        }
        assert_near(found, loss, 1e-5, "loss");
        pace__logreg_release(&model);
        tiny_free(&set);
    }
}

/* --- stripes --- */

static const struct {
    int kind;
    double lr, l1, l2;
} optimisers[] = {
    {PACE_SGD, 0.05, 0, 0},
    {PACE_MOMENTUM, 0.01, 0, 0},
    {PACE_ADAGRAD, 0.1, 0, 0},
    {PACE_FTRL, 0.1, 0.3, 0.1},
    {PACE_ADAM, 0.01, 0, 0},
    {PACE_SGD, 0.05, 0.001, 0.01},
    {PACE_MOMENTUM, 0.01, 0.001, 0.01},
    {PACE_ADAGRAD, 0.1, 0.001, 0.01},
    {PACE_ADAM, 0.01, 0, 0.01},
};
#define OPTIMISERS (sizeof optimisers / sizeof *optimisers)

static pace__optim optimiser(size_t which)
{
    return pace__optim_make(optimisers[which].kind, optimisers[which].lr, 0.9, optimisers[which].l1,
                            optimisers[which].l2);
}

static void compare_shares(const tiny_set *set, size_t which, bool exact, const char *name)
{
    pace__optim optim = optimiser(which);
    stepper one;

    begin(&one, set, &optim, 1, exact, false);
    run_steps(&one, set, 150, optimisers[which].lr);
    for (unsigned stripes = 2; stripes <= STRIPES_MAX; stripes++) {
        stepper many;

        begin(&many, set, &optim, stripes, exact, false);
        run_steps(&many, set, 150, optimisers[which].lr);
        size_t bytes = (size_t)one.model.ids * optim.width * sizeof(float);

        if (memcmp(many.model.parameters, one.model.parameters, bytes) != 0 ||
            memcmp(many.model.bias, one.model.bias, optim.width * sizeof(float)) != 0)
            fail_msg("%s, optimiser %zu, %s rule: %u stripes differ from one", name, which,
                     exact ? "exact" : "block", stripes);
        end(&many);
    }
    end(&one);
}

static void any_number_of_shares_gives_the_same_bits(void **state)
{
    (void)state;
    for (int l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layout(l, 1000));

        for (size_t which = 0; which < OPTIMISERS; which++) {
            compare_shares(&set, which, false, layout_names[l]);
            compare_shares(&set, which, true, layout_names[l]);
        }
        tiny_free(&set);
    }
}

/* Every entry belongs to exactly one stripe, whatever the number of columns. */
static void shares_cover_the_columns(void **state)
{
    (void)state;
    for (uint32_t columns = 1; columns <= 60; columns++) {
        pace__logreg model = {.columns = columns};

        for (unsigned count = 1; count <= 9; count++) {
            uint32_t next = 0;

            for (unsigned i = 0; i < count; i++) {
                pace__stripe stripe = pace__logreg_stripe(&model, i, count);

                assert_int_equal(stripe.index, i);
                assert_int_equal(stripe.count, count);
                assert_true(stripe.column_first <= stripe.column_last);
                if (stripe.column_first < stripe.column_last) {
                    assert_int_equal(stripe.column_first, next);
                    next = stripe.column_last;
                }
            }
            assert_int_equal(next, columns);
        }
    }
}

/* --- fast kernels --- */

static bool no_fast_kernels(void)
{
    if (pace_kernels_in_use() == PACE_KERNELS_V4)
        return false;
    print_message("the kernels v4 are not in use: not tested\n");
    return true;
}

static void compare_kernels(uint32_t columns, size_t rows, double size, unsigned stripes)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = rows, .ids = 20 * columns, .columns = columns, .seed = columns});
    pace__rows view = tiny_view(&set, PACE__TRAIN);
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    pace__logreg fast, plain;

    make_model(&fast, &set, &optim, false);
    make_model(&plain, &set, &optim, true);
    randomise(&fast, size);
    randomise(&plain, size);
    assert_true(fast.fast && !plain.fast);
    pace__logreg_look_ahead(&fast, &view);
    for (unsigned i = 0; i < stripes; i++) {
        pace__stripe stripe = pace__logreg_stripe(&fast, i, stripes);
        int64_t fast_dots[PACE__BLOCK_ROWS], plain_dots[PACE__BLOCK_ROWS];
        float fast_gradient[PACE__BLOCK_ROWS], plain_gradient[PACE__BLOCK_ROWS];

        pace__logreg_dots(&fast, &view, 0, rows, &stripe, 0, fast_dots);
        pace__logreg_dots(&plain, &view, 0, rows, &stripe, 0, plain_dots);
        assert_memory_equal(fast_dots, plain_dots, rows * sizeof *fast_dots);
        assert_near(pace__logreg_gradient(&fast, &view, 0, rows, fast_dots, fast_gradient),
                    pace__logreg_gradient(&plain, &view, 0, rows, plain_dots, plain_gradient), 1e-6, "loss");
        for (size_t row = 0; row < rows; row++)
            assert_near(fast_gradient[row], plain_gradient[row], 1e-6, "gradient");
        pace__logreg_update(&fast, &view, 0, rows, &stripe, plain_gradient);
        pace__logreg_update(&plain, &view, 0, rows, &stripe, plain_gradient);
    }
    for (uint32_t id = 0; id < fast.ids; id++) {
        assert_near(fast.parameters[2 * id], plain.parameters[2 * id], 1e-4, "weight");
        assert_true(fast.parameters[2 * id + 1] == plain.parameters[2 * id + 1]);
    }
    assert_near(fast.bias[0], plain.bias[0], 1e-4, "bias");
    pace__logreg_release(&fast);
    pace__logreg_release(&plain);
    tiny_free(&set);
}

static void fast_kernels_match_plain_ones(void **state)
{
    static const uint32_t columns[] = {1, 2, 3, 4, 5, 8, 13, 16, 17, 39, 47, 48};
    static const size_t rows[] = {1, 2, 15, 16, 17, 31, 33, 63, 64};
    static const double sizes[] = {0.2, 3, 200}; /* the last beyond what a group may sum to */

    (void)state;
    if (no_fast_kernels())
        skip();
    for (size_t c = 0; c < 12; c++) {
        for (size_t r = 0; r < 9; r++) {
            for (size_t s = 0; s < 3; s++) {
                compare_kernels(columns[c], rows[r], sizes[s], 1);
                compare_kernels(columns[c], rows[r], sizes[s], 3);
            }
        }
    }
}

/* A view of the model's weights, one float each, has the dots and the gradient of the model, to the bit. */
static void compare_view(const pace__logreg *model, const tiny_set *set, bool plain)
{
    pace__rows rows = tiny_view(set, PACE__TRAIN);
    float *weights = tiny_alloc((model->ids + 2) * sizeof *weights); /* 0: the bias; then by id */
    size_t entries = set->info.entries[PACE__TRAIN];
    uint32_t *slots = tiny_alloc(entries * sizeof *slots);
    pace__rows moved = rows;
    pace__logreg own = *model, view;
    int64_t dots[2][PACE__BLOCK_ROWS];
    float gradient[2][PACE__BLOCK_ROWS];

    weights[0] = model->bias[0];
    for (uint32_t id = 0; id < model->ids; id++)
        weights[id + 1] = model->parameters[(size_t)id * model->optim.width];
    weights[model->ids + 1] = NAN; /* set() clears it */
    for (size_t i = 0; i < entries; i++)
        slots[i] = rows.ids[i] + 1;
    moved.ids = slots;
    pace__logreg_view_init(&view, model->columns, rows.values != NULL, &model->optim, plain);
    pace__logreg_view_set(&view, weights, model->ids + 1);
    assert_true(view.fast == model->fast);
    pace__stripe all = pace__logreg_stripe(model, 0, 1);

    pace__logreg_dots(&own, &rows, 0, rows.rows, &all, 0, dots[0]);
    pace__logreg_dots(&view, &moved, 0, rows.rows, &all, 0, dots[1]);
    assert_memory_equal(dots[0], dots[1], rows.rows * sizeof *dots[0]);
    assert_true(pace__logreg_gradient(&own, &rows, 0, rows.rows, dots[0], gradient[0]) ==
                pace__logreg_gradient(&view, &moved, 0, rows.rows, dots[1], gradient[1]));
    assert_memory_equal(gradient[0], gradient[1], rows.rows * sizeof *gradient[0]);
    free(slots);
    free(weights);
}

static void views_compute_the_same_bits(void **state)
{
    static const double sizes[] = {0.2, 200};

    (void)state;
    for (int i = 0; i < 4 * (int)OPTIMISERS * 2 * 2; i++) {
        pace__optim optim = optimiser((size_t)i / 4 % OPTIMISERS);
        bool unseen = i / 4 / OPTIMISERS & 1, plain = i / 4 / OPTIMISERS & 2;
        tiny_plan plan = layout(i & 3, PACE__BLOCK_ROWS - 3);

        plan.unseen = unseen;
        tiny_set set = tiny_make(plan);

        for (int s = 0; s < 2; s++) {
            pace__logreg model;

            make_model(&model, &set, &optim, plain);
            randomise(&model, sizes[s]);
            compare_view(&model, &set, plain);
            pace__logreg_release(&model);
        }
        tiny_free(&set);
    }
}

/* In the middle of a view, and with cold columns, which are fetched ahead: the same. */
static void fast_kernels_work_anywhere_in_a_piece(void **state)
{
    tiny_set set = tiny_make((tiny_plan){.train = 500, .ids = 60000, .columns = 5, .seed = 6});
    pace__rows view = tiny_view(&set, PACE__TRAIN);
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    pace__logreg fast, plain;

    (void)state;
    make_model(&fast, &set, &optim, false);
    make_model(&plain, &set, &optim, true);
    randomise(&fast, 1);
    randomise(&plain, 1);
    pace__logreg_look_ahead(&fast, &view);
    for (size_t first = 0; first < 500; first += 37) {
        size_t count = 500 - first < 37 ? 500 - first : 37;
        pace__stripe stripe = pace__logreg_stripe(&fast, 0, 1);
        int64_t fast_dots[PACE__BLOCK_ROWS], plain_dots[PACE__BLOCK_ROWS];

        pace__logreg_dots(&fast, &view, first, count, &stripe, 0, fast_dots);
        pace__logreg_dots(&plain, &view, first, count, &stripe, 0, plain_dots);
        assert_memory_equal(fast_dots, plain_dots, count * sizeof *fast_dots);
    }
    pace__logreg_release(&fast);
    pace__logreg_release(&plain);
    tiny_free(&set);
}

/* --- the exact rule against a dense model in double precision --- */

typedef struct dense {
    double weight[98], m[98], v[98], n[98], z[98]; /* [97]: the bias */
    double g[98];
    bool touched[98];
    uint64_t steps;
} dense;

static double dense_flow(double w, double l1, double l2, double rate, double rows)
{
    double size = fabs(w), decay = exp(-l2 * rate * rows);

    size = l2 > 0 ? size * decay - l1 / l2 * (1 - decay) : size - l1 * rate * rows;
    return size > 0 ? copysign(size, w) : 0;
}

static void dense_update(dense *d, int i, size_t which, double g)
{
    double lr = optimisers[which].lr, l1 = optimisers[which].l1, l2 = optimisers[which].l2;

    switch (optimisers[which].kind) {
    case PACE_SGD:
        d->weight[i] -= lr * g;
        break;
    case PACE_MOMENTUM:
        d->m[i] = 0.9 * d->m[i] + g;
        d->weight[i] -= lr * d->m[i];
        break;
    case PACE_ADAGRAD:
        d->n[i] += g * g;
        d->weight[i] -= lr * g / sqrt(1 + d->n[i]);
        break;
    case PACE_FTRL:
        d->z[i] += g - (sqrt(d->n[i] + g * g) - sqrt(d->n[i])) / lr * d->weight[i];
        d->n[i] += g * g;
        d->weight[i] =
            fabs(d->z[i]) <= l1 ? 0 : -(d->z[i] - copysign(l1, d->z[i])) / ((1 + sqrt(d->n[i])) / lr + l2);
        break;
    case PACE_ADAM:
        d->m[i] = 0.9 * d->m[i] + 0.1 * g;
        d->v[i] = 0.999 * d->v[i] + 0.001 * g * g;
        d->weight[i] -= lr * (d->m[i] / (1 - pow(0.9, (double)d->steps + 1))) /
                        (sqrt(d->v[i] / (1 - pow(0.999, (double)d->steps + 1))) + 1e-8);
        break;
    }
}

static void dense_gradient(dense *d, const pace__rows *rows)
{
    memset(d->g, 0, sizeof d->g);
    memset(d->touched, 0, sizeof d->touched);
    for (size_t row = 0; row < rows->rows; row++) {
        uint64_t at = pace__row_start(rows, row),
                 last = rows->columns ? at + rows->columns : rows->start[row + 1];
        double error = 1 / (1 + exp(-naive_logit(rows, row, d->weight, d->weight[97]))) - rows->label[row];

        for (; at < last; at++) {
            d->g[rows->ids[at]] += error * (rows->values ? rows->values[at] : 1);
            d->touched[rows->ids[at]] = true;
        }
        d->g[97] += error;
    }
    d->touched[97] = true;
}

static void dense_step(dense *d, const pace__rows *rows, size_t which)
{
    bool mean = optimisers[which].kind == PACE_SGD || optimisers[which].kind == PACE_MOMENTUM;

    dense_gradient(d, rows);
    for (int i = 0; i < 98; i++) {
        if (d->touched[i])
            dense_update(d, i, which, mean ? d->g[i] / (double)rows->rows : d->g[i]);
        double rate = optimisers[which].lr / (optimisers[which].kind == PACE_ADAGRAD ? sqrt(1 + d->n[i]) : 1);

        if (i < 97 && optimisers[which].kind != PACE_FTRL) /* the bias is not penalised */
            d->weight[i] = dense_flow(d->weight[i], optimisers[which].l1, optimisers[which].l2, rate,
                                      (double)rows->rows);
    }
    d->steps++;
}

static void the_exact_rule_is_what_it_says(void **state)
{
    (void)state;
    for (int l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layout(l, 1500));
        pace__rows all = tiny_view(&set, PACE__TRAIN);

        for (size_t which = 0; which < OPTIMISERS; which++) {
            pace__optim optim = optimiser(which);
            dense d = {.steps = 0};
            stepper self;

            begin(&self, &set, &optim, 2, true, false);
            run_steps(&self, &set, 100, optimisers[which].lr);
            for (size_t at = 0; at < all.rows; at += 100) {
                pace__rows step = pace__rows_slice(&all, at, 100);

                dense_step(&d, &step, which);
            }
            for (uint32_t id = 0; id < 97; id++)
                assert_near(self.model.parameters[id * optim.width], d.weight[id], 2e-4, layout_names[l]);
            assert_near(self.model.bias[0], d.weight[97], 2e-4, "bias");
            end(&self);
        }
        tiny_free(&set);
    }
}

/* --- unseen, scores --- */

/* Rows with unseen ids take the plain kernels: the fast ones would update it. */
static void check_unseen(const tiny_set *set, size_t which, bool exact, unsigned stripes)
{
    pace__optim optim = optimiser(which);
    stepper self;

    begin(&self, set, &optim, stripes, exact, true);
    run_steps(&self, set, 150, optimisers[which].lr);
    assert_true(self.model.parameters[(size_t)97 * optim.width] == 0);
    end(&self);
}

static void unseen_stays_at_zero(void **state)
{
    (void)state;
    for (int l = 0; l < 4; l++) {
        tiny_plan plan = layout(l, 600);

        plan.unseen = true;
        tiny_set set = tiny_make(plan);

        for (size_t which = 0; which < OPTIMISERS; which++) {
            for (unsigned stripes = 1; stripes <= 3; stripes++) {
                check_unseen(&set, which, false, stripes);
                check_unseen(&set, which, true, stripes);
            }
        }
        tiny_free(&set);
    }
}

static void logits_are_plain_sums(void **state)
{
    (void)state;
    for (int l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layout(l, 200));
        pace__rows rows = tiny_view(&set, PACE__TRAIN);
        pace__optim optim = pace__optim_make(PACE_MOMENTUM, 0.1, 0.9, 0, 0);
        double weight[98] = {0};
        float plain[98] = {0}, logits[200], again[200];
        pace__logreg model;

        make_model(&model, &set, &optim, false);
        randomise(&model, 2);
        for (uint32_t id = 0; id < 97; id++)
            weight[id] = plain[id] = model.parameters[id * optim.width];
        pace__logreg_logits(&model, 0, &rows, logits);
        pace__linear_logits(plain, model.bias[0], &rows, again);
        for (size_t row = 0; row < 200; row++)
            assert_near(logits[row], naive_logit(&rows, row, weight, model.bias[0]), 1e-6, "logit");
        assert_memory_equal(logits, again, sizeof logits);
        pace__logreg_release(&model);
        tiny_free(&set);
    }
}

/* Scoring in the middle of a run sees the penalty up to that row and changes nothing. */
static void scoring_changes_nothing(void **state)
{
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0.001, 0.01);
    tiny_set set = tiny_make(layout(2, 200));
    pace__rows rows = tiny_view(&set, PACE__TRAIN);
    float before[200], after[200];
    stepper self;

    (void)state;
    begin(&self, &set, &optim, 1, false, false);
    run_step(&self, &rows, 0.1);
    float *kept = tiny_alloc(pace__logreg_bytes(&self.model));

    memcpy(kept, self.model.parameters, pace__logreg_bytes(&self.model));
    pace__logreg_logits(&self.model, self.now + 5000, &rows, before);
    assert_memory_equal(kept, self.model.parameters, pace__logreg_bytes(&self.model));
    pace__logreg_settle(&self.model, self.now + 5000);
    pace__logreg_logits(&self.model, self.now + 5000, &rows, after);
    assert_memory_equal(before, after, sizeof before);
    free(kept);
    end(&self);
    tiny_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(large_logits_stay_finite),
        cmocka_unit_test(any_number_of_shares_gives_the_same_bits),
        cmocka_unit_test(shares_cover_the_columns),
        cmocka_unit_test(fast_kernels_match_plain_ones),
        cmocka_unit_test(fast_kernels_work_anywhere_in_a_piece),
        cmocka_unit_test(views_compute_the_same_bits),
        cmocka_unit_test(the_exact_rule_is_what_it_says),
        cmocka_unit_test(unseen_stays_at_zero),
        cmocka_unit_test(logits_are_plain_sums),
        cmocka_unit_test(scoring_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

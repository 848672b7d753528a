/* Sparse logistic regression: its gradient, its exact rule, its independence of the number of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "linear_models.h"

#define STRIPES_MAX 5

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
    uint64_t now;     /* rows done */
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

static void run_block(stepper *self, const pace__rows *rows, size_t first, size_t count, uint64_t now)
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
                  self->now + (self->exact ? 0 : at));
    }
    for (unsigned i = 0; i < self->stripes && self->exact; i++) {
        pace__stripe stripe = pace__logreg_stripe(&self->model, i, self->stripes);

        pace__logreg_apply(&self->model, &self->gradients[i], &stripe, rows->rows);
    }
    self->now += rows->rows;
    self->updates += self->exact ? 1 : rows->rows;
}

/* Applies what penalties are still to be applied. */
static void settle(pace__logreg *model, uint64_t now)
{
    for (size_t id = 0; model->optim.lazy && id <= model->ids; id++)
        pace__optim_catch_up(&model->optim, model->parameters + id * model->optim.width, now);
}

static void run_steps(stepper *self, const tiny_set *set, size_t batch, double lr)
{
    pace__rows all = tiny_view(set, PACE__TRAIN);

    for (size_t at = 0; at < all.rows; at += batch) {
        pace__rows step = pace__rows_slice(&all, at, all.rows - at < batch ? all.rows - at : batch);

        run_step(self, &step, lr);
    }
    settle(&self->model, self->now);
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

/* --- far rows --- */

/* Where stamps can say all that is asked for, the bits are those from row 0 on. */
static void check_far(const tiny_set *set, size_t which, bool exact, uint64_t start)
{
    pace__optim optim = optimiser(which);
    size_t batch = exact ? 512 : PACE__BLOCK_ROWS;
    stepper near, far;

    begin(&near, set, &optim, 1, exact, false);
    run_steps(&near, set, batch, optimisers[which].lr);
    begin(&far, set, &optim, 2, exact, false);
    far.now = start;
    run_steps(&far, set, batch, optimisers[which].lr);
    assert_int_equal(far.now - start, near.now);
    for (uint32_t id = 0; id < 97; id++) /* all but the stamp */
        assert_memory_equal(&far.model.parameters[id * optim.width], &near.model.parameters[id * optim.width],
                            (optim.width - 1) * sizeof(float));
    assert_memory_equal(far.model.bias, near.model.bias, optim.width * sizeof(float));
    end(&far);
    end(&near);
}

static void far_rows_make_no_difference(void **state)
{
    const uint64_t one = 1, starts[] = {(one << 31) - 512, (one << 32) - 512, one << 33, one << 35};

    (void)state;
    for (int l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layout(l, 1536));

        for (size_t which = 0; which < OPTIMISERS; which++) {
            for (int i = 0; i < 4 && optimiser(which).lazy; i++) {
                check_far(&set, which, true, starts[i]);
                if (starts[i] < one << 32)
                    check_far(&set, which, false, starts[i]);
            }
        }
        tiny_free(&set);
    }
}

/* Weights that no row needs for 2^31, 2^32, 2^33 rows are penalised all the same. */
static void a_long_sleep_is_charged(void **state)
{
    pace__optim optim = pace__optim_make(PACE_SGD, 1e-10, 0, 0, 0.25);
    tiny_set set = tiny_make(layout(1, 10));
    pace__rows rows = tiny_view(&set, PACE__TRAIN);
    pace__logreg model;

    (void)state;
    make_model(&model, &set, &optim, false);
    randomise(&model, 1);
    model.bias[0] = 0;
    for (unsigned power = 31; power < 34; power++) {
        float awake[10], asleep[10];

        pace__logreg_logits(&model, 0, &rows, awake);
        pace__logreg_logits(&model, UINT64_C(1) << power, &rows, asleep);
        for (size_t row = 0; row < 10; row++)
            assert_near(asleep[row], awake[row] * exp(-0.25e-10 * ldexp(1, (int)power)), 1e-5, "a logit");
    }
    pace__logreg_release(&model);
    tiny_free(&set);
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
    settle(&self.model, self.now + 5000);
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
        cmocka_unit_test(the_exact_rule_is_what_it_says),
        cmocka_unit_test(far_rows_make_no_difference),
        cmocka_unit_test(a_long_sleep_is_charged),
        cmocka_unit_test(unseen_stays_at_zero),
        cmocka_unit_test(logits_are_plain_sums),
        cmocka_unit_test(scoring_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

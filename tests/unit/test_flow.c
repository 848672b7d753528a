/* Merging parameters that several workers have trained: the arithmetic by itself, then what becomes of a model. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/linear/logreg.h"
#include "optim/flow.h"
#include "shares/rounds.h"

#include "support.h"

#include <stdlib.h>

/* The reference: a merge of one parameter under way. Begin, add each worker's change in the order of the workers, end. */
typedef struct flow_sum {
    pace__flow_point before;
    float force, squares, change; /* change: the last worker's */
    unsigned workers;             /* that have changed it */
} flow_sum;

static void flow_add(const pace__optim *optim, float damping, flow_sum *sum, float d, float q)
{
    if (d == 0 && q == 0)
        return;
    sum->force += d / pace__flow_reach(optim, damping, sum->before.n, q);
    sum->squares += q;
    sum->change = d;
    sum->workers++;
}

static pace__flow_point flow_end(const pace__optim *optim, float damping, const flow_sum *sum)
{
    float d = sum->workers <= 1 ? sum->change
                                : sum->force * pace__flow_reach(optim, damping, sum->before.n, sum->squares);

    return (pace__flow_point){sum->before.w + d, sum->before.n + sum->squares};
}

/* --- the arithmetic --- */

static pace__optim rule_of(int kind)
{
    return pace__optim_make(kind, 0.07, 0, 0, 0);
}

static void check_close(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * (1e-9 + fabs(expected))))
        fail_msg("%.9g instead of %.9g", found, expected);
}

/* As the header says it, in double precision. */
static double reach(const pace__optim *optim, double c, double n, double q)
{
    double lr = (double)optim->lr;
    double s = optim->kind == PACE_SGD    ? lr
               : optim->kind == PACE_FTRL ? 2 * lr / (2 + sqrt(n + q) + sqrt(n))
                                          : 2 * lr / (sqrt(n + q) + sqrt(n));
    double x = q * (c + s);

    return s * (x > 0 ? -expm1(-x) / x : 1);
}

static void test_reach(void **state)
{
    static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_FTRL};

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        pace__optim optim = rule_of(kinds[k]);

        for (double n = 1; n < 1e7; n *= 31) {
            for (double q = 0; q < 1e5; q = q * 7 + 1e-4) {
                for (double c = 0; c < 10; c = c * 10 + 1e-4)
                    check_close((double)pace__flow_reach(&optim, (float)c, (float)n, (float)q),
                                reach(&optim, (double)(float)c, (double)(float)n, (double)(float)q), 1e-5);
            }
        }
    }
}

static pace__flow_point merge(const pace__optim *optim, float c, pace__flow_point before,
                              const pace__flow_point *changes, unsigned count)
{
    flow_sum sum = {.before = before};

    for (unsigned i = 0; i < count; i++)
        flow_add(optim, c, &sum, changes[i].w, changes[i].n);
    return flow_end(optim, c, &sum);
}

/* Exactly: not what the flow would make of it. */
static void test_one_contributor(void **state)
{
    pace__optim optim = rule_of(PACE_ADAGRAD);
    pace__flow_point before = {0.3f, 2.5f}, changes[4] = {{0}, {0}, {-0.07123f, 0.77f}, {0}};
    pace__flow_point after = merge(&optim, 0.02f, before, changes, 4);

    (void)state;
    assert_true(after.w == before.w + changes[2].w && after.n == before.n + changes[2].n);
    after = merge(&optim, 0.02f, before, changes, 2);
    assert_true(after.w == before.w && after.n == before.n);
}

/* A change that has travelled as bf16 is near what it was, and moves a parameter by so much; none leaves its bits alone. */
static void test_narrow_changes(void **state)
{
    static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_FTRL};

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        pace__optim optim = rule_of(kinds[k]);

        for (float n = 1; n < 1e6f; n *= 31) {
            pace__flow_point before = pace__flow_to(&optim, (pace__flow_point){0.3f, n});
            pace__flow_point now = pace__flow_to(&optim, (pace__flow_point){0.3f - 0.0123f, n * 1.3f});
            pace__flow_point change = pace__flow_change(&optim, now, before);
            pace__flow_point came = pace__flow_widen(pace__flow_round(change));
            pace__flow_point moved = pace__flow_moved(&optim, before, came);
            pace__flow_point same = pace__flow_moved(&optim, before, (pace__flow_point){0});

            check_close((double)came.w, -0.0123, 0x1p-8);
            check_close((double)came.n, 0.3 * (double)n, 0x1p-8);
            check_close((double)pace__flow_from(&optim, moved).w, 0.3 + (double)came.w, 1e-6);
            check_close((double)moved.n, (double)(n + came.n), 1e-6);
            assert_memory_equal(&same, &before, sizeof same);
        }
    }
}

/* Without damping and with much behind it, changes add up; strong damping makes means of them. */
static void test_between_sum_and_mean(void **state)
{
    pace__optim optim = rule_of(PACE_ADAGRAD);
    pace__flow_point before = {0, 1e6f}, changes[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        changes[i] = (pace__flow_point){0.01f, 1};
    check_close((double)merge(&optim, 0, before, changes, 4).w, 0.04, 1e-3);
    check_close((double)merge(&optim, 1000, before, changes, 4).w, 0.01, 1e-3);
    check_close((double)merge(&optim, 1000, before, changes, 4).n, 1e6 + 4, 1e-7);
}

static void test_many_at_once(void **state)
{
    enum { WORKERS = 5, COUNT = 200 };
    pace__random random = pace__random_at(11, 2);
    static pace__flow_point points[COUNT], changes[WORKERS][COUNT];
    const pace__flow_point *each[WORKERS];

    (void)state;
    for (int k = 0; k < 3; k++) {
        pace__optim optim = rule_of(k == 0 ? PACE_ADAGRAD : k == 1 ? PACE_FTRL : PACE_SGD);
        pace__flow_point expected[COUNT];

        pace__optim_keep_squares(&optim, 1);

        for (int w = 0; w < WORKERS; w++) {
            each[w] = changes[w];
            for (int i = 0; i < COUNT; i++) {
                bool has = pace__random_next(&random) % 3 == 0;

                changes[w][i].w = has ? (float)pace__random_unit(&random) - 0.5f : 0;
                changes[w][i].n = has ? (float)pace__random_unit(&random) * 4 : 0;
            }
        }
        for (int i = 0; i < COUNT; i++) {
            pace__flow_point own[WORKERS];

            points[i] =
                (pace__flow_point){(float)pace__random_unit(&random), 1 + (float)pace__random_unit(&random)};
            for (int w = 0; w < WORKERS; w++)
                own[w] = changes[w][i];
            expected[i] = merge(&optim, 0.3f, points[i], own, WORKERS);
        }
        pace__flow_merge(&optim, 0.3f, each, WORKERS, points, COUNT);
        assert_memory_equal(points, expected, sizeof expected);
    }
}

static void test_packing(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        pace__optim optim = pace__optim_make(k ? PACE_FTRL : PACE_ADAGRAD, 0.1, 0, k ? 0.01 : 0, 0);
        float parameter[PACE__OPTIM_WIDTH_MAX], again[PACE__OPTIM_WIDTH_MAX] = {0};

        assert_true(pace__flow_has(&optim));
        pace__optim_init(&optim, parameter);
        for (int i = 0; i < 20; i++)
            pace__optim_update(&optim, parameter, 0.3f - 0.02f * (float)i);
        pace__flow_point packed = pace__flow_pack(&optim, parameter), point = pace__flow_from(&optim, packed);
        pace__flow_point back = pace__flow_to(&optim, point);

        pace__flow_unpack(&optim, packed, again);
        assert_memory_equal(parameter, again, optim.width * sizeof *again);
        check_close((double)back.w, (double)packed.w, 1e-6);
    }
    pace__optim adam = rule_of(PACE_ADAM), sgd = rule_of(PACE_SGD);

    assert_false(pace__flow_has(&adam) || pace__flow_has(&sgd));
    pace__optim_keep_squares(&sgd, 1);
    assert_true(pace__flow_has(&sgd) && sgd.width == 2);
}

/* Two floats and the row at which they stand are a parameter with a lazy penalty. */
static void test_later(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        pace__optim optim = pace__optim_make(k ? PACE_SGD : PACE_ADAGRAD, 0.1, 0, 1e-4, 2e-4);
        float parameter[PACE__OPTIM_WIDTH_MAX], again[PACE__OPTIM_WIDTH_MAX] = {0};

        pace__optim_keep_squares(&optim, 1);
        pace__optim_init(&optim, parameter);
        for (int i = 0; i < 20; i++)
            pace__optim_update(&optim, parameter, 0.3f);
        pace__optim_catch_up(&optim, parameter, 1000);
        pace__flow_point then = pace__flow_pack_at(&optim, parameter, 1000);

        pace__flow_unpack_at(&optim, then, 1000, again);
        assert_memory_equal(parameter, again, optim.width * sizeof *again);
        pace__flow_point later = pace__flow_later(&optim, then, 1000, 1500);

        assert_true(fabsf(later.w) < fabsf(then.w) && later.n == then.n);
        assert_true(pace__flow_pack_at(&optim, parameter, 1500).w == later.w);
        assert_true(pace__flow_later(&optim, then, 1500, 1500).w == then.w);
        pace__optim_catch_up(&optim, parameter, 1500);
        pace__flow_unpack_at(&optim, later, 1500, again);
        assert_memory_equal(parameter, again, optim.width * sizeof *again);
    }
}

static void test_damping(void **state)
{
    pace__optim optim = rule_of(PACE_ADAGRAD);
    pace__damping sum = {0}, none = {.a = 1, .a2 = 1, .bias_q = 1e-4};
    float q[] = {4, 2, 1};
    double a = 0, a2 = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pace__damping_add(&sum, &optim, 8, 3, 8 * q[i]);
        double s = 2 * (double)optim.lr / (sqrt(3 + (double)q[i]) + sqrt(3));

        a += (double)q[i] * s;
        a2 += (double)(q[i] * q[i]) / 4 * s;
    }
    sum.bias_q = 4;
    check_close((double)pace__damping_of(&sum, 7), sqrt(a * a2) / 4, 1e-5);
    assert_true(pace__damping_of(&none, 7) == 7);
}

/* --- a model: W replicas in one process --- */

#define ROWS    60000
#define TESTED  20000
#define COLUMNS 16
#define IDS     (COLUMNS * 500)

typedef struct made {
    uint32_t *ids;
    uint8_t *label;
} made;

/* Ids of a column are met the more seldom the larger they are; labels follow weights that only the test knows. */
static made make_rows(void)
{
    made set = {malloc((size_t)(ROWS + TESTED) * COLUMNS * sizeof *set.ids), malloc(ROWS + TESTED)};
    pace__random random = pace__random_at(77, 1);

    assert_true(set.ids && set.label);
    for (size_t row = 0; row < ROWS + TESTED; row++) {
        double z = -1;

        for (uint32_t column = 0; column < COLUMNS; column++) {
            double u = pace__random_unit(&random);
            uint32_t value = (uint32_t)(500 * u * u * u * u), id = column * 500 + value;
            pace__random own = pace__random_at(5, id);

            set.ids[row * COLUMNS + column] = id;
            z += 1.2 * (pace__random_unit(&own) - 0.5);
        }
        set.label[row] = pace__random_unit(&random) < 1 / (1 + exp(-z));
    }
    return set;
}

static pace__rows rows_of(const made *set, size_t first, size_t count)
{
    return (pace__rows){
        .rows = count, .columns = COLUMNS, .ids = set->ids + first * COLUMNS, .label = set->label + first};
}

/* The block rule, as a thread of its own follows it. */
static void train(pace__logreg *model, const made *set, size_t first, size_t count)
{
    pace__rows rows = rows_of(set, first, count);
    pace__stripe whole = pace__logreg_stripe(model, 0, 1);
    int64_t dots[2][PACE__BLOCK_ROWS];
    float gradient[PACE__BLOCK_ROWS];

    for (size_t at = 0, turn = 0; at < count; turn ^= 1) {
        size_t size = count - at < PACE__BLOCK_ROWS ? count - at : PACE__BLOCK_ROWS, next = at + size;
        size_t then = count - next < PACE__BLOCK_ROWS ? count - next : PACE__BLOCK_ROWS;

        if (at == 0)
            pace__logreg_dots(model, &rows, 0, size, &whole, 0, dots[turn]);
        if (then > 0)
            pace__logreg_dots(model, &rows, next, then, &whole, 0, dots[turn ^ 1]);
        pace__logreg_gradient(model, &rows, at, size, dots[turn], gradient);
        pace__logreg_update(model, &rows, at, size, &whole, gradient);
        at = next;
    }
}

static double loss_of(const pace__logreg *model, const made *set)
{
    pace__rows rows = rows_of(set, ROWS, TESTED);
    static float logits[TESTED];
    double loss = 0;

    pace__logreg_logits(model, 0, &rows, logits);
    for (size_t row = 0; row < TESTED; row++) {
        double z = (double)logits[row];

        loss += log1p(exp(-fabs(z))) + fmax(z, 0) - rows.label[row] * z;
    }
    return loss / TESTED;
}

static float *at_key(pace__logreg *model, uint32_t key)
{
    return key == IDS ? model->bias : model->parameters + (size_t)key * model->optim.width;
}

/* All parameters are hot, and taken at once. */
static void merge_all(pace__logreg *models, unsigned workers, pace__flow_point *merged, float *damping,
                      bool average)
{
    const pace__optim *optim = &models->optim;
    pace__damping sums = {0};

    for (uint32_t key = 0; key <= IDS; key++) {
        float squares = 0;

        for (unsigned i = 0; i < workers; i++)
            squares += pace__flow_pack(optim, at_key(&models[i], key)).n - merged[key].n;
        pace__damping_add(&sums, optim, workers, merged[key].n, squares);
        if (key == IDS)
            sums.bias_q = (double)squares / workers;
    }
    *damping = pace__damping_of(&sums, *damping);
    for (uint32_t key = 0; key <= IDS; key++) {
        flow_sum sum = {.before = pace__flow_from(optim, merged[key])};
        float mean = 0;

        for (unsigned i = 0; i < workers; i++) {
            pace__flow_point now = pace__flow_from(optim, pace__flow_pack(optim, at_key(&models[i], key)));

            flow_add(optim, *damping, &sum, now.w - sum.before.w, now.n - sum.before.n);
            mean += now.w / (float)workers;
        }
        pace__flow_point end = flow_end(optim, *damping, &sum);

        end.w = average ? mean : end.w;
        merged[key] = pace__flow_to(optim, end);
        for (unsigned i = 0; i < workers; i++)
            pace__flow_unpack(optim, merged[key], at_key(&models[i], key));
    }
}

static double train_in_rounds(const made *set, int kind, unsigned workers, bool average)
{
    pace__optim optim = pace__optim_make(kind, 0.07, 0, 0, 0);
    pace__steps order = pace__steps_make(ROWS, 512);
    pace__rounds rounds =
        pace__rounds_make(&order, order.per_epoch, (uint64_t)ROWS * COLUMNS, workers, 0, false);
    pace__logreg *models = calloc(workers, sizeof *models);
    pace__flow_point *merged = malloc((IDS + 1) * sizeof *merged);
    float damping = 0;
    pace__round round;

    assert_true(models && merged);
    for (unsigned i = 0; i < workers; i++)
        assert_ok(pace__logreg_init(&models[i], IDS, COLUMNS, false, &optim, false, &said_log));
    for (uint64_t place = 0; place < rounds.last; place = round.last) {
        round = pace__round_at(&rounds, place);
        for (unsigned i = 0; i < workers; i++) {
            uint64_t first, count;

            pace__round_stretch(&rounds, &round, i, &first, &count);
            train(&models[i], set, first, count);
        }
        if (workers > 1 && !round.same)
            merge_all(models, workers, merged, &damping, average);
        for (uint32_t key = 0; key <= IDS; key++)
            merged[key] = pace__flow_pack(&optim, at_key(&models[0], key));
    }
    double loss = loss_of(&models[0], set);

    for (unsigned i = 0; i < workers; i++)
        pace__logreg_release(&models[i]);
    free(merged);
    free(models);
    return loss;
}

static void test_models(void **state)
{
    made set = make_rows();

    (void)state;
    for (int k = 0; k < 2; k++) {
        int kind = k ? PACE_FTRL : PACE_ADAGRAD;
        double local = train_in_rounds(&set, kind, 1, false);

        for (unsigned workers = 2; workers <= 8; workers *= 2) {
            double flow = train_in_rounds(&set, kind, workers, false) / local - 1;
            double mean = train_in_rounds(&set, kind, workers, true) / local - 1;

            print_message("%s, %u workers: log-loss %.5f of one; flow %+.3f %%, means %+.3f %%\n",
                          k ? "ftrl" : "adagrad", workers, local, 100 * flow, 100 * mean);
            assert_true(flow < 0.002);
            assert_true(mean > flow);
        }
        assert_true(train_in_rounds(&set, kind, 8, true) / local - 1 > 0.005);
    }
    free(set.label);
    free(set.ids);
}

/* Nothing but rows and workers has a say. */
static void test_same_again(void **state)
{
    made set = make_rows();
    double first = train_in_rounds(&set, PACE_ADAGRAD, 3, false);

    (void)state;
    assert_true(first == train_in_rounds(&set, PACE_ADAGRAD, 3, false));
    free(set.label);
    free(set.ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reach),          cmocka_unit_test(test_one_contributor),
        cmocka_unit_test(test_narrow_changes), cmocka_unit_test(test_packing),
        cmocka_unit_test(test_later),          cmocka_unit_test(test_between_sum_and_mean),
        cmocka_unit_test(test_damping),        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_models),         cmocka_unit_test(test_same_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

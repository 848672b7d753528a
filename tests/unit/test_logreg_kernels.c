/* The kernels of every set beside the general way of logistic regression: equal bits; and views of its parameters. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"

#include "linear_models.h"

#include <float.h>

/* A block through the kernels of a set, and the general way. */
static void compare_block(pace__logreg *fast, pace__logreg *plain, const pace__rows *view, size_t rows,
                          const pace__stripe *stripe)
{
    int64_t fast_dots[PACE__BLOCK_ROWS], plain_dots[PACE__BLOCK_ROWS];
    float fast_gradient[PACE__BLOCK_ROWS], plain_gradient[PACE__BLOCK_ROWS];

    pace__logreg_dots(fast, view, 0, rows, stripe, 0, fast_dots);
    pace__logreg_dots(plain, view, 0, rows, stripe, 0, plain_dots);
    assert_memory_equal(fast_dots, plain_dots, rows * sizeof *fast_dots);
    assert_true(pace__logreg_gradient(fast, view, 0, rows, fast_dots, fast_gradient) ==
                pace__logreg_gradient(plain, view, 0, rows, plain_dots, plain_gradient));
    assert_memory_equal(fast_gradient, plain_gradient, rows * sizeof *fast_gradient);
    pace__logreg_update(fast, view, 0, rows, stripe, fast_gradient);
    pace__logreg_update(plain, view, 0, rows, stripe, plain_gradient);
}

static void compare_kernels(int set_of_kernels, uint32_t columns, size_t rows, double size, unsigned stripes)
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
    fast.kernels = pace__logreg_of(set_of_kernels);
    pace__logreg_look_ahead(&fast, &view);
    for (unsigned i = 0; i < stripes; i++) {
        pace__stripe stripe = pace__logreg_stripe(&fast, i, stripes);

        compare_block(&fast, &plain, &view, rows, &stripe);
    }
    assert_memory_equal(fast.parameters, plain.parameters, pace__logreg_bytes(&fast));
    assert_memory_equal(fast.bias, plain.bias, 2 * sizeof *fast.bias);
    pace__logreg_release(&fast);
    pace__logreg_release(&plain);
    tiny_free(&set);
}

/* What no healthy model has; the order makes sums of four meet each other. */
static const float strange[] = {NAN,   INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 1e-45f, FLT_MIN / 2, -0.0f,
                                1e30f, -1e30f,   127.9f,    -128,    5e6f,     0.5f,   -1e-20f,     0};
#define STRANGE (sizeof strange / sizeof *strange)

/* What is no number may be so in several ways. */
static bool is_like(float found, float expected)
{
    return isnan(expected) ? isnan(found) : found == expected;
}

/* Strange weights and sums of squares. */
static void make_strange(pace__logreg *model, size_t turn)
{
    for (uint32_t id = 0; id < model->ids; id++) {
        model->parameters[2 * id] = id % 3 == turn % 3 ? strange[(id / 3 + turn) % STRANGE] : 0.1f;
        model->parameters[2 * id + 1] = id % 5 == turn % 5 ? fabsf(strange[(id / 5 + turn) % STRANGE]) : 2;
    }
    model->bias[0] = strange[turn % STRANGE];
}

static void compare_strange(int set_of_kernels, size_t turn)
{
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    tiny_set set = tiny_make((tiny_plan){.train = PACE__BLOCK_ROWS, .ids = 780, .columns = 39, .seed = 8});
    pace__rows rows = tiny_view(&set, PACE__TRAIN);
    pace__logreg fast, plain;

    make_model(&fast, &set, &optim, false);
    make_model(&plain, &set, &optim, true);
    fast.kernels = pace__logreg_of(set_of_kernels);
    make_strange(&fast, turn);
    make_strange(&plain, turn);
    pace__stripe whole = pace__logreg_stripe(&plain, 0, 1);

    compare_block(&fast, &plain, &rows, rows.rows, &whole);
    for (uint32_t i = 0; i < 2 * fast.ids; i++)
        assert_true(is_like(fast.parameters[i], plain.parameters[i]));
    assert_true(is_like(fast.bias[0], plain.bias[0]) && is_like(fast.bias[1], plain.bias[1]));
    pace__logreg_release(&fast);
    pace__logreg_release(&plain);
    tiny_free(&set);
}

static void strange_numbers_are_alike(void **state)
{
    (void)state;
    for (int kernels = PACE_KERNELS_PLAIN; kernels < PACE__KERNELS_END; kernels++) {
        for (size_t turn = 0; turn < STRANGE && pace_kernels_run(kernels); turn++)
            compare_strange(kernels, turn);
    }
}

static void kernels_of_a_set_match_the_general_way(int kernels)
{
    static const uint32_t columns[] = {1, 2, 3, 4, 5, 8, 13, 16, 17, 39, 47, 48};
    static const size_t rows[] = {1, 2, 15, 16, 17, 31, 33, 63, 64};
    static const double sizes[] = {0.2, 3, 200}; /* the last beyond what a group may sum to */

    for (size_t c = 0; c < 12; c++) {
        for (size_t r = 0; r < 9; r++) {
            for (size_t s = 0; s < 3; s++) {
                compare_kernels(kernels, columns[c], rows[r], sizes[s], 1);
                compare_kernels(kernels, columns[c], rows[r], sizes[s], 3);
            }
        }
    }
}

static void kernels_of_all_sets_have_equal_bits(void **state)
{
    (void)state;
    for (int kernels = PACE_KERNELS_PLAIN; kernels < PACE__KERNELS_END; kernels++) {
        if (pace_kernels_run(kernels))
            kernels_of_a_set_match_the_general_way(kernels);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_all_sets_have_equal_bits),
        cmocka_unit_test(strange_numbers_are_alike),
        cmocka_unit_test(fast_kernels_work_anywhere_in_a_piece),
        cmocka_unit_test(views_compute_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

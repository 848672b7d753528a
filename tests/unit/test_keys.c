/* The keys of a batch, its rows in slots, and that a worker without parameters learns the same bits. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "model/keys.h"
#include "model/linear/logreg.h"

#include "optimisers.h"
#include "support.h"

/* --- keys and slots against a list that is searched from its start --- */

typedef struct made_rows {
    pace__rows rows;
    uint64_t *start;
    uint32_t *ids;
    uint8_t *label;
} made_rows;

/* Few ids are frequent, the last is rare; one entry in `unseen_in` is "unseen" (0: none). */
static made_rows make_rows(size_t rows, uint32_t columns, uint32_t ids, uint64_t unseen_in,
                           pace__random *random)
{
    made_rows made = {.start = tiny_alloc((rows + 1) * sizeof *made.start), .label = tiny_alloc(rows + 1)};
    size_t at = 0;

    for (size_t row = 0; row < rows; row++) {
        at += columns ? columns : pace__random_below(random, 30);
        made.start[row + 1] = at;
    }
    made.ids = tiny_alloc((at + 1) * sizeof *made.ids);
    for (size_t i = 0; i < at; i++) {
        double unit = pace__random_unit(random);

        made.ids[i] = (uint32_t)(unit * unit * unit * unit * ids);
        if (unseen_in && pace__random_below(random, unseen_in) == 0)
            made.ids[i] = ids;
    }
    made.rows = (pace__rows){.rows = rows,
                             .columns = columns,
                             .start = columns ? NULL : made.start,
                             .ids = made.ids,
                             .label = made.label};
    return made;
}

static void free_rows(made_rows *made)
{
    free(made->start);
    free(made->ids);
    free(made->label);
}

static uint32_t slot_in(uint32_t *keys, uint32_t *count, uint32_t ids, uint32_t id)
{
    if (id == ids)
        return UINT32_MAX;
    for (uint32_t slot = 1; slot < *count; slot++) {
        if (keys[slot] == id)
            return slot;
    }
    keys[*count] = id;
    return (*count)++;
}

static void check_batch(const pace__key_batch *batch, const pace__rows *rows, uint32_t ids)
{
    size_t first = pace__row_start(rows, 0), last = pace__row_start(rows, rows->rows);
    uint32_t *keys = tiny_alloc((last - first + 1) * sizeof *keys), count = 1;

    keys[0] = ids;
    for (size_t at = first; at < last; at++) {
        uint32_t slot = slot_in(keys, &count, ids, rows->ids[at]);

        assert_int_equal(batch->rows.ids[at], slot == UINT32_MAX ? batch->count : slot);
    }
    assert_int_equal(batch->count, count);
    assert_memory_equal(batch->keys, keys, count * sizeof *keys);
    assert_int_equal(batch->rows.rows, rows->rows);
    assert_int_equal(batch->rows.columns, rows->columns);
    assert_ptr_equal(batch->rows.start, rows->start);
    assert_ptr_equal(batch->rows.label, rows->label);
    free(keys);
}

/* All of the rows, then stretches of them, which begin anywhere: one finder, one batch after the other. */
static void find_and_check(const pace__rows *rows, uint32_t ids, uint32_t base, int set)
{
    bool plain = set == PACE_KERNELS_PLAIN;
    pace__key_finder finder;
    pace__key_batch batch;

    assert_ok(pace__key_finder_init(&finder, ids, plain, &said_log));
    assert_true(finder.kernels == pace__keys_of(plain ? PACE_KERNELS_PLAIN : pace_kernels_in_use()));
    finder.kernels = pace__keys_of(set);
    assert_ok(pace__key_batch_init(&batch, ids, pace__row_start(rows, rows->rows), &said_log));
    finder.base = base;
    pace__keys_find(&finder, rows, &batch);
    check_batch(&batch, rows, ids);
    for (size_t at = 0; at < rows->rows; at += 7) {
        pace__rows slice = pace__rows_slice(rows, at, rows->rows - at < 7 ? rows->rows - at : 7);

        pace__keys_find(&finder, &slice, &batch);
        check_batch(&batch, &slice, ids);
    }
    pace__key_batch_release(&batch);
    pace__key_finder_release(&finder);
}

static void find_in_all_ways(const pace__rows *rows, uint32_t ids, uint32_t base)
{
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (pace_kernels_run(set))
            find_and_check(rows, ids, base, set);
    }
}

static void keys_are_distinct_and_in_order(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 16, 17, 40, 200};
    static const uint32_t columns[] = {0, 1, 3, 16, 39};
    static const uint32_t ids[] = {1, 20, 5000};
    static const uint64_t unseen_in[] = {0, 2, 1000};
    pace__random random = pace__random_at(11, 1);

    (void)state;
    for (size_t i = 0; i < 7 * 5 * 3 * 3; i++) {
        uint32_t most = ids[i / 35 % 3];
        made_rows made = make_rows(sizes[i % 7], columns[i / 7 % 5], most, unseen_in[i / 105], &random);

        find_in_all_ways(&made.rows, most, 1);
        free_rows(&made);
    }
}

/* The finder's count of keys runs out of 32 bits: in this batch, or in one of the next. */
static void finding_goes_on_when_the_count_is_full(void **state)
{
    pace__random random = pace__random_at(12, 1);
    made_rows made = make_rows(60, 0, 3000, 50, &random);

    (void)state;
    for (uint32_t left = 1; left < 3000; left = left * 2 + 1)
        find_in_all_ways(&made.rows, 3000, UINT32_MAX - left);
    free_rows(&made);
}

/* --- words --- */

/* What is in the padding, and in slots that nobody has set. */
#define NOBODY UINT32_MAX

typedef struct made_texts {
    pace__rows rows;
    uint32_t *ids, *length;
    uint8_t *label;
} made_texts;

/* Texts of every length from 1 to columns, and then of any; padding is no id at all. */
static made_texts make_texts(size_t rows, uint32_t columns, uint32_t words, bool front, pace__random *random)
{
    made_texts made = {.ids = tiny_alloc(rows * columns * sizeof *made.ids),
                       .length = tiny_alloc(rows * sizeof *made.length),
                       .label = tiny_alloc(rows)};

    memset(made.ids, 0xff, rows * columns * sizeof *made.ids);
    for (size_t row = 0; row < rows; row++) {
        uint32_t length =
            row < columns ? (uint32_t)row + 1 : 1 + (uint32_t)pace__random_below(random, columns);
        uint32_t *at = made.ids + row * columns + (front ? columns - length : 0);

        made.length[row] = length;
        for (uint32_t i = 0; i < length; i++)
            at[i] = (uint32_t)(pow(pace__random_unit(random), 4) * words);
    }
    made.rows = (pace__rows){.rows = rows,
                             .columns = columns,
                             .ids = made.ids,
                             .label = made.label,
                             .length = made.length,
                             .front = front};
    return made;
}

static void free_texts(made_texts *made)
{
    free(made->ids);
    free(made->length);
    free(made->label);
}

/* Word after word, each searched for in the list from its start. */
static void check_words(const pace__key_batch *batch, const pace__rows *rows)
{
    size_t entries = rows->rows * rows->columns;
    uint32_t *keys = tiny_alloc((entries + 1) * sizeof *keys), count = 0;

    for (size_t at = 0; at < entries; at++) {
        uint32_t column = (uint32_t)(at % rows->columns), length = rows->length[at / rows->columns], slot = 0;

        if (rows->front ? column < rows->columns - length : column >= length) {
            assert_int_equal(batch->slots[at], NOBODY);
            continue;
        }
        while (slot < count && keys[slot] != rows->ids[at])
            slot++;
        keys[slot] = rows->ids[at];
        count += slot == count;
        assert_int_equal(batch->slots[at], slot);
    }
    assert_int_equal(batch->count, count);
    assert_memory_equal(batch->keys, keys, count * sizeof *keys);
    assert_int_equal(batch->rows.rows, rows->rows);
    assert_int_equal(batch->rows.columns, rows->columns);
    assert_int_equal(batch->rows.front, rows->front);
    assert_ptr_equal(batch->rows.ids, batch->slots);
    assert_ptr_equal(batch->rows.label, rows->label);
    assert_ptr_equal(batch->rows.length, rows->length);
    free(keys);
}

static void find_words(pace__key_finder *finder, const pace__rows *rows, pace__key_batch *batch)
{
    memset(batch->slots, 0xff, batch->entries_max * sizeof *batch->slots);
    pace__keys_find_words(finder, rows, batch);
    check_words(batch, rows);
}

/* All of the rows, then stretches of them; between two of them, rows that are no text. */
static void find_and_check_words(const pace__rows *rows, uint32_t words, uint32_t base, bool plain)
{
    pace__random random = pace__random_at(base, 2);
    made_rows others = make_rows(10, 3, words, 0, &random);
    pace__key_finder finder;
    pace__key_batch batch;

    assert_ok(pace__key_finder_init(&finder, words, plain, &said_log));
    assert_ok(pace__key_batch_init(&batch, words, rows->rows * rows->columns + 30, &said_log));
    finder.base = base;
    find_words(&finder, rows, &batch);
    for (size_t at = 0; at < rows->rows; at += 7) {
        pace__rows slice = pace__rows_slice(rows, at, rows->rows - at < 7 ? rows->rows - at : 7);

        find_words(&finder, &slice, &batch);
        if (at % 2) {
            pace__keys_find(&finder, &others.rows, &batch);
            check_batch(&batch, &others.rows, words);
        }
    }
    pace__key_batch_release(&batch);
    pace__key_finder_release(&finder);
    free_rows(&others);
}

static void words_are_distinct_and_in_order(void **state)
{
    static const size_t sizes[] = {0, 1, 20, 60};
    static const uint32_t columns[] = {1, 2, 16, 50};
    static const uint32_t words[] = {1, 20, 5000};
    pace__random random = pace__random_at(14, 1);

    (void)state;
    for (size_t i = 0; i < 4 * 4 * 3 * 4; i++) {
        uint32_t most = words[i / 16 % 3];
        made_texts made = make_texts(sizes[i % 4], columns[i / 4 % 4], most, i / 48 % 2, &random);

        find_and_check_words(&made.rows, most, 1, i / 96);
        free_texts(&made);
    }
}

/* Room for as many entries as there are, every word another: the last key is written behind all others. */
static void every_word_another(void **state)
{
    uint32_t ids[60], length[12];
    uint8_t label[12] = {0};
    pace__rows rows = {.rows = 12, .columns = 5, .ids = ids, .label = label, .length = length};

    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        ids[i] = 59 - i;
    for (uint32_t i = 0; i < 12; i++)
        length[i] = 5;
    for (uint32_t words = 60; words < 70; words += 9) {
        pace__key_finder finder;
        pace__key_batch batch;

        assert_ok(pace__key_finder_init(&finder, words, false, &said_log));
        assert_ok(pace__key_batch_init(&batch, words, 60, &said_log));
        for (int again = 0; again < 3; again++) {
            find_words(&finder, &rows, &batch);
            assert_int_equal(batch.count, 60);
        }
        pace__key_batch_release(&batch);
        pace__key_finder_release(&finder);
    }
}

static void finding_words_goes_on_when_the_count_is_full(void **state)
{
    pace__random random = pace__random_at(15, 1);
    made_texts made = make_texts(60, 30, 3000, true, &random);

    (void)state;
    for (uint32_t left = 1; left < 3000; left = left * 2 + 1)
        find_and_check_words(&made.rows, 3000, UINT32_MAX - left, left & 4);
    free_texts(&made);
}

/* --- room --- */

static void batches_grow(void **state)
{
    pace__random random = pace__random_at(13, 1);
    made_rows made = make_rows(100, 10, 500, 0, &random);
    pace__key_finder finder;
    pace__key_batch batch = {0};

    (void)state;
    assert_ok(pace__key_finder_init(&finder, 500, false, &said_log));
    for (size_t rows = 0; rows <= 100; rows += 10) {
        pace__rows some = pace__rows_slice(&made.rows, 0, rows);

        assert_ok(pace__key_batch_grow(&batch, 500, rows * 10, &said_log));
        pace__keys_find(&finder, &some, &batch);
        check_batch(&batch, &some, 500);
    }
    uint32_t *slots = batch.slots;

    assert_ok(pace__key_batch_grow(&batch, 500, 10, &said_log));
    assert_ptr_equal(batch.slots, slots);
    pace__key_batch_release(&batch);
    pace__key_batch_release(&batch);
    pace__key_finder_release(&finder);
    pace__key_finder_release(&finder);
    free_rows(&made);
}

static void memory_that_is_not_there(void **state)
{
    pace__key_batch batch = {0};

    (void)state;
    said_clear();
    assert_failed(pace__key_batch_init(&batch, 100, SIZE_MAX / 16, &said_log), PACE_FAILED, "out of memory");
    pace__key_batch_release(&batch);
}

/* --- a worker without parameters against the exact rule --- */

#define IDS       300
#define STEPS     6
#define STEP_ROWS 150

/* Both sides' model; the worker's is what a server would hold. */
typedef struct sides {
    pace__logreg local, server, view;
    pace__gradients gradients;
    float sums[IDS + 1];
    double local_loss, worker_loss;
    uint32_t now; /* rows done */
    uint64_t steps;
    pace__key_finder finder;
    pace__key_batch batch;
} sides;

static void local_step(sides *self, const pace__rows *rows)
{
    pace__stripe all = pace__logreg_stripe(&self->local, 0, 1);
    int64_t dots[PACE__BLOCK_ROWS];
    float gradient[PACE__BLOCK_ROWS];

    for (size_t at = 0; at < rows->rows; at += PACE__BLOCK_ROWS) {
        size_t count = rows->rows - at < PACE__BLOCK_ROWS ? rows->rows - at : PACE__BLOCK_ROWS;

        pace__logreg_dots(&self->local, rows, at, count, &all, self->now, dots);
        self->local_loss += pace__logreg_gradient(&self->local, rows, at, count, dots, gradient);
        pace__logreg_accumulate(&self->local, &self->gradients, rows, at, count, &all, gradient);
    }
    pace__logreg_apply(&self->local, &self->gradients, &all, rows->rows);
}

/* The server's part: what a key stands for, brought up to date. */
static float *parameter_of(sides *self, uint32_t key)
{
    pace__logreg *server = &self->server;

    if (key == server->ids)
        return server->bias;
    float *parameter = server->parameters + (size_t)key * server->optim.width;

    if (server->optim.lazy)
        pace__optim_catch_up(&server->optim, parameter, self->now);
    return parameter;
}

static void worker_step(sides *self, const pace__rows *rows)
{
    float weights[IDS + 2], sums[IDS + 2] = {0};
    int64_t dots[PACE__BLOCK_ROWS];
    float gradient[PACE__BLOCK_ROWS];
    pace__stripe all = pace__logreg_stripe(&self->view, 0, 1);
    int kind = self->server.optim.kind;
    float scale = kind == PACE_SGD || kind == PACE_MOMENTUM ? 1 / (float)rows->rows : 1;

    pace__keys_find(&self->finder, rows, &self->batch);
    for (uint32_t slot = 0; slot < self->batch.count; slot++)
        weights[slot] = parameter_of(self, self->batch.keys[slot])[0];
    weights[self->batch.count] = 1e9f; /* set() clears it */
    pace__logreg_view_set(&self->view, weights, self->batch.count);
    for (size_t at = 0; at < rows->rows; at += PACE__BLOCK_ROWS) {
        size_t count = rows->rows - at < PACE__BLOCK_ROWS ? rows->rows - at : PACE__BLOCK_ROWS;
        const pace__rows *slots = &self->batch.rows;

        pace__logreg_dots(&self->view, slots, at, count, &all, 0, dots);
        self->worker_loss += pace__logreg_gradient(&self->view, slots, at, count, dots, gradient);
        pace__keys_accumulate(&self->batch, at, count, gradient, sums);
    }
    for (uint32_t slot = 0; slot < self->batch.count; slot++)
        pace__optim_update(&self->server.optim, parameter_of(self, self->batch.keys[slot]),
                           sums[slot] * scale);
}

static void begin(sides *self, const tiny_set *set, const pace__optim *optim, bool plain)
{
    const pace__store_info *info = &set->info;

    *self = (sides){.now = 0};
    assert_ok(pace__logreg_init(&self->local, IDS, info->columns, info->has_values, optim, plain, &said_log));
    assert_ok(
        pace__logreg_init(&self->server, IDS, info->columns, info->has_values, optim, plain, &said_log));
    pace__logreg_view_init(&self->view, info->columns, info->has_values, optim, plain);
    assert_true(self->view.fast == self->local.fast);
    assert_ok(pace__gradients_init(&self->gradients, &self->local, self->sums, STEP_ROWS,
                                   info->row_entries_max, &said_log));
    assert_ok(pace__key_finder_init(&self->finder, IDS, plain, &said_log));
    /* Rows without columns keep their places in the whole. */
    assert_ok(pace__key_batch_init(&self->batch, IDS, info->entries[PACE__TRAIN], &said_log));
}

static void end(sides *self)
{
    pace__key_batch_release(&self->batch);
    pace__key_finder_release(&self->finder);
    pace__gradients_release(&self->gradients);
    pace__logreg_release(&self->server);
    pace__logreg_release(&self->local);
}

/* Applies what penalties are still to be applied. */
static void settle(pace__logreg *model, uint32_t now)
{
    for (size_t id = 0; model->optim.lazy && id <= model->ids; id++)
        pace__optim_catch_up(&model->optim, model->parameters + id * model->optim.width, now);
}

static void compare_sides(const tiny_set *set, size_t which, bool plain, const char *name)
{
    pace__optim optim = optimiser(which);
    pace__rows all = tiny_view(set, PACE__TRAIN);
    sides self;

    begin(&self, set, &optim, plain);
    for (size_t at = 0; at < all.rows; at += STEP_ROWS) {
        pace__rows step = pace__rows_slice(&all, at, STEP_ROWS);

        pace__optim_begin_step(&self.local.optim, optimisers[which].lr, self.steps);
        pace__optim_begin_step(&self.server.optim, optimisers[which].lr, self.steps++);
        local_step(&self, &step);
        worker_step(&self, &step);
        self.now += STEP_ROWS;
    }
    settle(&self.local, self.now);
    settle(&self.server, self.now);
    assert_true(self.local.bias[0] != 0);
    if (memcmp(self.local.parameters, self.server.parameters, IDS * optim.width * sizeof(float)) != 0 ||
        memcmp(self.local.bias, self.server.bias, optim.width * sizeof(float)) != 0 ||
        self.local_loss != self.worker_loss)
        fail_msg("%s, optimiser %zu, %s: a worker's model is not the local one", name, which,
                 plain ? "plain" : "fast");
    end(&self);
}

static void workers_learn_the_same_bits(void **state)
{
    static const char *const names[] = {"rows of any length", "columns", "rows of any length with values",
                                        "columns with values"};

    (void)state;
    for (int l = 0; l < 8; l++) {
        bool unseen = l & 4;
        tiny_set set = tiny_make((tiny_plan){.train = STEPS * STEP_ROWS,
                                             .ids = IDS,
                                             .columns = l & 1 ? 11 : 0,
                                             .has_values = l & 2,
                                             .unseen = unseen,
                                             .seed = 70 + (uint64_t)l});

        for (size_t which = 0; which < OPTIMISERS; which++) {
            compare_sides(&set, which, true, names[l & 3]);
            if (!unseen) /* such rows take the plain kernels */
                compare_sides(&set, which, false, names[l & 3]);
        }
        tiny_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_distinct_and_in_order),
        cmocka_unit_test(finding_goes_on_when_the_count_is_full),
        cmocka_unit_test(words_are_distinct_and_in_order),
        cmocka_unit_test(every_word_another),
        cmocka_unit_test(finding_words_goes_on_when_the_count_is_full),
        cmocka_unit_test(batches_grow),
        cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(workers_learn_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

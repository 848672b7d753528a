/* Any stretch of the sample order: the rows that a reader delivers for the same places. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/reader.h"
#include "data/store/slice.h"
#include "threads/thread.h"

#include "support.h"
#include "tiny_pictures.h"

#define ROWS   9001
#define EPOCHS 3
#define SEED   5

/* A set on disk, open, and its training rows in the order of EPOCHS epochs as a reader delivers them. */
typedef struct stored {
    tiny_set set;
    pace__store store;
    tiny_rows all;
    uint64_t rows; /* in all */
} stored;

static void deliver(stored *both)
{
    uint64_t rows = both->rows = EPOCHS * both->set.info.rows[PACE__TRAIN];
    uint64_t entries = EPOCHS * both->set.info.entries[PACE__TRAIN];
    pace__reader_plan plan = {.seed = SEED, .batch = 1000, .last = rows, .consumers = 1};
    tiny_rows all = {tiny_alloc((rows + 1) * 8), tiny_alloc(entries * 4), tiny_alloc(entries * 4),
                     tiny_alloc(rows)};
    const pace__piece *piece;
    pace__reader *reader;

    assert_ok(pace__reader_create(&both->store, &plan, &said_log, &reader));
    while (!pace__reader_next(reader, 0, &piece) && piece) {
        uint64_t at = all.start[piece->first], count = pace__row_start(&piece->rows, piece->rows.rows);

        for (size_t i = 0; i <= piece->rows.rows; i++)
            all.start[piece->first + i] = at + pace__row_start(&piece->rows, i);
        memcpy(all.label + piece->first, piece->rows.label, piece->rows.rows);
        memcpy(all.ids + at, piece->rows.ids, count * 4);
        if (piece->rows.values)
            memcpy(all.values + at, piece->rows.values, count * 4);
    }
    assert_int_equal(all.start[rows], entries);
    pace__reader_free(reader);
    both->all = all;
}

static void open_stored(void **state, stored *both)
{
    tiny_write(&both->set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &both->store, &said_log));
    deliver(both);
}

static void make_stored(void **state, tiny_plan plan, stored *both)
{
    both->set = tiny_make(plan);
    open_stored(state, both);
}

static void free_stored(void **state, stored *both)
{
    pace__store_close(&both->store);
    tiny_free(&both->set);
    free(both->all.start);
    free(both->all.ids);
    free(both->all.values);
    free(both->all.label);
    assert_ok(pace__remove_tree(in(state, "set"), &said_log));
}

static const tiny_plan layouts[] = {
    {.train = ROWS, .test = 700, .ids = 300, .columns = 5, .parts = 3, .seed = 1},
    {.train = ROWS, .test = 700, .ids = 300, .columns = 5, .has_values = true, .parts = 3, .seed = 2},
    {.train = ROWS, .test = 700, .ids = 300, .parts = 3, .seed = 3},
    {.train = ROWS, .test = 700, .ids = 300, .has_values = true, .parts = 3, .seed = 4},
};

static void init(pace__slice *slice, const stored *both, uint64_t rows_max)
{
    assert_ok(pace__slice_init(slice, &both->store, PACE__TRAIN, SEED, rows_max, &said_log));
}

/* Called from threads, too. */
static void require_same(const stored *both, const pace__slice *slice, uint64_t first, uint64_t count)
{
    const pace__rows *rows = &slice->rows;
    const tiny_rows *all = &both->all;
    uint64_t base = all->start[first], entries = all->start[first + count] - base;

    require(slice->first == first && rows->rows == count);
    require(rows->columns == both->set.info.columns);
    require((rows->start == NULL) == (rows->columns > 0));
    require((rows->values == NULL) == !both->set.info.has_values);
    for (size_t i = 0; i <= count; i++)
        require(pace__row_start(rows, i) == all->start[first + i] - base);
    require(count == 0 || memcmp(rows->label, all->label + first, count) == 0);
    require(entries == 0 || memcmp(rows->ids, all->ids + base, entries * 4) == 0);
    if (rows->values && entries > 0)
        require(memcmp(rows->values, all->values + base, entries * 4) == 0);
}

static void read_and_compare(const stored *both, pace__slice *slice, uint64_t first, uint64_t count)
{
    require(pace__slice_read(slice, first, count) == PACE_OK);
    require_same(both, slice, first, count);
}

/* --- which rows --- */

static void any_stretch_is_what_the_reader_delivers(void **state)
{
    uint64_t seed = 20;

    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t l = 0; l < 4; l++) {
        pace__random random = pace__random_at(seed, l);
        pace__slice slice;
        stored both;

        make_stored(state, layouts[l], &both);
        init(&slice, &both, l % 2 ? ROWS : UINT64_MAX);
        for (int i = 0; i < 200; i++) {
            uint64_t position = pace__random_below(&random, ROWS);
            uint64_t count = pace__random_below(&random, i % 2 ? 600 : ROWS + 1); /* often within a block */
            uint64_t place = pace__random_below(&random, EPOCHS) * ROWS + position;

            read_and_compare(&both, &slice, place, count < ROWS - position ? count : ROWS - position);
        }
        for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) /* all of it, and the last row alone */
            read_and_compare(&both, &slice, epoch * ROWS, ROWS);
        read_and_compare(&both, &slice, EPOCHS * ROWS - 1, 1);
        pace__slice_release(&slice);
        free_stored(state, &both);
    }
}

/* Fewer rows than parts, rows without entries, one row. */
static void small_sets_work(void **state)
{
    for (uint64_t rows = 1; rows < 12; rows++) {
        pace__slice slice;
        stored both;

        make_stored(
            state,
            (tiny_plan){.train = rows, .ids = 4, .entries = 1, .has_values = true, .parts = 5, .seed = rows},
            &both);
        init(&slice, &both, rows);
        for (uint64_t first = 0; first < both.rows; first++) {
            for (uint64_t count = 0; first % rows + count <= rows; count++)
                read_and_compare(&both, &slice, first, count);
        }
        pace__slice_release(&slice);
        free_stored(state, &both);
    }
}

static void no_rows_are_a_slice(void **state)
{
    static const uint64_t firsts[] = {0, 100, ROWS, EPOCHS * ROWS};
    pace__slice slice, none;
    stored both;

    for (size_t l = 0; l < 4; l++) {
        make_stored(state, layouts[l], &both);
        init(&slice, &both, 10);
        init(&none, &both, 0);
        require_same(&both, &slice, 0, 0); /* also before the first read */
        for (size_t f = 0; f < 4; f++) {
            read_and_compare(&both, &slice, firsts[f], 0);
            assert_ok(pace__slice_read(&none, firsts[f], 0));
            assert_int_equal(none.rows.rows, 0);
        }
        read_and_compare(&both, &slice, ROWS - 10, 10);
        read_and_compare(&both, &slice, ROWS, 0); /* the rows of the read before are gone */
        pace__slice_release(&slice);
        pace__slice_release(&slice); /* a zeroed one */
        pace__slice_release(&none);
        free_stored(state, &both);
    }
    make_stored(state, (tiny_plan){.test = 5, .ids = 4, .parts = 2}, &both);
    init(&slice, &both, 10);
    read_and_compare(&both, &slice, 0, 0);
    pace__slice_ask(&slice, 0, 0);
    pace__slice_release(&slice);
    free_stored(state, &both);
}

static void test_rows_work_too(void **state)
{
    tiny_plan plan = layouts[3];
    pace__slice slice;
    stored both;

    plan.unseen = true; /* allowed in test rows only */
    both.set = tiny_make(plan);
    tiny_write(&both.set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &both.store, &said_log));
    assert_ok(pace__slice_init(&slice, &both.store, PACE__TEST, SEED, 700, &said_log));
    assert_ok(pace__slice_read(&slice, 0, 700));
    pace__order order = pace__order_make(700, SEED, 0);
    const tiny_rows *rows = &both.set.rows[PACE__TEST];

    for (uint64_t i = 0, run; i < 700; i++) {
        uint64_t row = pace__order_row(&order, i, &run), length = rows->start[row + 1] - rows->start[row];

        assert_int_equal(slice.rows.label[i], rows->label[row]);
        assert_int_equal(slice.rows.start[i + 1] - slice.rows.start[i], length);
        assert_memory_equal(slice.rows.ids + slice.rows.start[i], rows->ids + rows->start[row], length * 4);
    }
    pace__slice_release(&slice);
    pace__store_close(&both.store);
    tiny_free(&both.set);
}

/* --- workers --- */

#define WORKERS 3

typedef struct work {
    const stored *both;
    uint64_t batch;
    uint64_t rows[WORKERS];
} work;

/* Worker w's share of every step, as training divides them; the last step of an epoch is short. */
static pace_status take_shares(void *arg, int worker)
{
    work *self = arg;
    uint64_t w = (uint64_t)worker;
    pace__slice slice;
    pace_status status =
        pace__slice_init(&slice, &self->both->store, PACE__TRAIN, SEED, self->batch / WORKERS + 1, &said_log);

    for (uint64_t step = 0; !status && step < self->both->rows;) {
        uint64_t left = ROWS - step % ROWS, size = self->batch < left ? self->batch : left;
        uint64_t first = step + size * w / WORKERS, last = step + size * (w + 1) / WORKERS;

        read_and_compare(self->both, &slice, first, last - first);
        slice.cold = 1; /* asking changes nothing, whatever is asked for */
        pace__slice_ask(&slice, first, self->batch);
        self->rows[worker] += last - first;
        step += size;
    }
    pace__slice_release(&slice);
    return status;
}

static void workers_share_the_steps(void **state)
{
    static const uint64_t batches[] = {2, 100, 1536, 5000, 20000};

    for (size_t l = 0; l < 4; l++) {
        stored both;

        make_stored(state, layouts[l], &both);
        for (size_t b = 0; b < 5; b++) {
            work self = {.both = &both, .batch = batches[b]};
            uint64_t rows = 0;

            assert_ok(pace__team(WORKERS, take_shares, &self, &said_log));
            for (int w = 0; w < WORKERS; w++)
                rows += self.rows[w];
            assert_int_equal(rows, both.rows);
        }
        free_stored(state, &both);
    }
}

/* --- pictures and features --- */

/* A stretch of an epoch of single rows, over parts and blocks. */
static void compare_pictures(pace__slice *slice, const pace__rows *all, uint64_t first, uint64_t count)
{
    pace__order order = pace__order_make_blocks(all->rows, 1, SEED, first / all->rows);
    const pace__rows *rows = &slice->rows;
    size_t columns = all->columns;

    assert_ok(pace__slice_read(slice, first, count));
    assert_int_equal(rows->rows, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t run, row = pace__order_row(&order, (first + i) % all->rows, &run);

        assert_int_equal(rows->classes[i], all->classes[row]);
        assert_int_equal(rows->source[i], all->source[row]);
        if (all->pixels)
            assert_memory_equal(rows->pixels + i * columns, all->pixels + row * columns, columns);
        else
            assert_memory_equal(rows->features + i * columns, all->features + row * columns, columns * 4);
    }
}

static void any_stretch_of_pictures(void **state)
{
    static const tiny_pictures_plan plans[] = {
        {.train = 1300, .side = 5, .channels = 3, .classes = 3, .parts = 4, .seed = 1},
        {.train = 1300, .side = 5, .classes = 3, .features = 17, .parts = 4, .seed = 2}};
    uint64_t seed = 21;

    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t p = 0; p < 2; p++) {
        pace__random random = pace__random_at(seed, p);
        tiny_pictures set = tiny_pictures_make(plans[p]);
        pace__rows all = tiny_pictures_view(&set, PACE__TRAIN);
        pace__store store;
        pace__slice slice;

        tiny_pictures_write(&set, in(state, "set"));
        assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
        assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, SEED, UINT64_MAX, &said_log));
        const void *memory = p ? (const void *)slice.rows.features : slice.rows.pixels;

        for (int i = 0; i < 100; i++) {
            uint64_t position = pace__random_below(&random, 1300);
            uint64_t count = pace__random_below(&random, 1300 - position + 1);

            compare_pictures(&slice, &all, pace__random_below(&random, 3) * 1300 + position, count);
            slice.cold = 1;
            pace__slice_ask(&slice, position, count);
        }
        assert_ptr_equal(memory,
                         p ? (const void *)slice.rows.features : slice.rows.pixels); /* it never grew */
        pace__slice_release(&slice);
        pace__store_close(&store);
        tiny_pictures_free(&set);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

/* --- room --- */

/* Gives the training rows other lengths. */
static void set_lengths(tiny_set *set, uint64_t (*length_of)(uint64_t row))
{
    tiny_rows *rows = &set->rows[PACE__TRAIN];
    uint64_t at = 0, most = 0;

    for (uint64_t row = 0; row < set->info.rows[PACE__TRAIN]; row++)
        most += length_of(row);
    free(rows->ids);
    free(rows->values);
    rows->ids = tiny_alloc(most * 4);
    rows->values = tiny_alloc(most * 4);
    for (uint64_t row = 0; row < set->info.rows[PACE__TRAIN]; row++) {
        for (uint64_t i = 0; i < length_of(row); i++, at++) {
            rows->ids[at] = (uint32_t)((row + 7 * i) % set->plan.ids);
            rows->values[at] = (float)(at % 1001);
        }
        rows->start[row + 1] = at;
    }
    tiny_measure(set);
}

/* The blocks become longer and longer, so a slice of some of them needs more room while it is being read. */
static uint64_t rising(uint64_t row)
{
    return row / PACE__ORDER_BLOCK * 3 + row % 2;
}

/* A block far longer than the average, which a reader has to cut into several pieces. */
static uint64_t one_long_block(uint64_t row)
{
    return row / PACE__ORDER_BLOCK == 7 ? 200 : row % 3;
}

static void long_rows_make_room(void **state)
{
    for (int turn = 0; turn < 4; turn++) {
        bool has_values = turn % 2;
        pace__slice slice;
        stored both;

        both.set = tiny_make((tiny_plan){.train = ROWS, .ids = 9000, .has_values = has_values, .parts = 2});
        set_lengths(&both.set, turn < 2 ? rising : one_long_block);
        open_stored(state, &both);
        init(&slice, &both, 1500);
        uint64_t before = slice.entries_max;

        for (uint64_t first = 0, count; first < both.rows; first += count) {
            uint64_t left = ROWS - first % ROWS;

            count = left < 1500 ? left : 1500;
            read_and_compare(&both, &slice, first, count);
        }
        assert_true(slice.entries_max > before);
        const uint32_t *ids = slice.rows.ids;

        for (uint64_t first = 0; first + 1500 <= ROWS; first += 1500) /* once there is room, it stays */
            read_and_compare(&both, &slice, first, 1500);
        assert_ptr_equal(slice.rows.ids, ids);
        pace__slice_release(&slice);
        free_stored(state, &both);
    }
}

static void memory_is_that_of_the_rows(void **state)
{
    tiny_set columns = tiny_make(layouts[1]), none = tiny_make(layouts[2]);
    pace__store_info larger = none.info;

    (void)state;
    assert_int_equal(pace__slice_memory(&columns.info, 1600), 1600 * (5 * 8 + 1));
    assert_int_equal(pace__slice_memory(&columns.info, 0), 0);
    for (int i = 0; i < PACE__SETS; i++) {
        larger.rows[i] *= 1000000;
        larger.entries[i] *= 1000000;
    }
    assert_int_equal(pace__slice_memory(&larger, 1600), pace__slice_memory(&none.info, 1600));
    assert_true(pace__slice_memory(&none.info, 3200) > 2 * pace__slice_memory(&none.info, 1600) - 64);
    tiny_free(&columns);
    tiny_free(&none);
}

/* --- damage --- */

static void overwrite(const stored *both, uint32_t part, uint64_t at, const void *bytes, size_t size)
{
    int fd = open(both->store.parts[part].path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_ok(pace__pwrite_all(fd, bytes, size, at, "part", &said_log));
    close(fd);
}

/* Reading everything fails with one message that names the part. Rows that are whole can still be read. */
static void assert_damaged(const stored *both, uint32_t part, const char *message)
{
    pace__order order = pace__order_make(ROWS, SEED, 0);
    uint64_t place = 0, run, part_first;
    pace__slice slice;

    init(&slice, both, ROWS);
    said_clear();
    assert_int_equal(pace__slice_read(&slice, 0, ROWS), PACE_BAD_DATA);
    assert_said(both->store.parts[part].path);
    assert_failed(PACE_BAD_DATA, PACE_BAD_DATA, message);
    assert_int_equal(slice.rows.rows, 0);
    assert_int_equal(pace__row_start(&slice.rows, 0), 0);
    while (pace__store_part_of(&both->store, PACE__TRAIN, pace__order_row(&order, place, &run),
                               &part_first) == part)
        place++;
    read_and_compare(both, &slice, place, 1);
    pace__slice_release(&slice);
}

static void ids_and_labels_out_of_range_are_found(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        uint32_t wrong_id = 300, right_id;
        uint8_t wrong_label = 2;
        stored both;

        make_stored(state, layouts[l], &both);
        const pace__part_set *set = &both.store.parts[1].sets[PACE__TRAIN];
        uint64_t at = set->ids_at + (set->entries - 1) * 4;

        assert_ok(pace__pread_all(both.store.parts[1].fd, &right_id, 4, at, "part", &said_log));
        overwrite(&both, 1, at, &wrong_id, 4);
        assert_damaged(&both, 1, "id 300");
        overwrite(&both, 1, at, &right_id, 4);
        overwrite(&both, 2, both.store.parts[2].sets[PACE__TRAIN].label_at, &wrong_label, 1);
        assert_damaged(&both, 2, "label");
        free_stored(state, &both);
    }
}

static void starts_that_do_not_rise_are_found(void **state)
{
    static const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX - 7, INT64_MAX, 1 << 30, 0, 1};
    stored both;

    make_stored(state, layouts[3], &both);
    const pace__part_set *set = &both.store.parts[1].sets[PACE__TRAIN];
    const uint64_t rows[] = {300, set->rows - 1, set->rows};

    for (size_t r = 0; r < 3; r++) {
        uint64_t at = set->start_at + rows[r] * 8, right;

        assert_ok(pace__pread_all(both.store.parts[1].fd, &right, 8, at, "part", &said_log));
        for (size_t w = 0; w < 6; w++) {
            overwrite(&both, 1, at, &wrong[w], 8);
            assert_damaged(&both, 1, "indptr");
        }
        overwrite(&both, 1, at, &right, 8);
    }
    both.store.info.row_entries_max = 3;
    pace__slice slice;

    init(&slice, &both, ROWS);
    assert_failed(pace__slice_read(&slice, 0, ROWS), PACE_BAD_DATA, "longer than row_entries_max, 3");
    pace__slice_release(&slice);
    free_stored(state, &both);
}

static void a_file_that_is_cut_while_it_is_read_is_found(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        stored both;

        make_stored(state, layouts[l], &both);
        assert_int_equal(truncate(both.store.parts[1].path, 5000), 0);
        assert_damaged(&both, 1, "cut");
        free_stored(state, &both);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_stretch_is_what_the_reader_delivers),
        TEST(small_sets_work),
        TEST(no_rows_are_a_slice),
        TEST(test_rows_work_too),
        TEST(workers_share_the_steps),
        TEST(any_stretch_of_pictures),
        TEST(long_rows_make_room),
        TEST(memory_is_that_of_the_rows),
        TEST(ids_and_labels_out_of_range_are_found),
        TEST(starts_that_do_not_rise_are_found),
        TEST(a_file_that_is_cut_while_it_is_read_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

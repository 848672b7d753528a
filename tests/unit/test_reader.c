/* Rows in sample order, read ahead for any number of consumers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/order.h"
#include "data/store/reader.h"
#include "threads/thread.h"

#include "support.h"

#define CONSUMERS_MAX 4

/* A set on disk, open, and the same in memory. */
typedef struct stored {
    tiny_set set;
    pace__store store;
} stored;

static void make_stored(void **state, tiny_plan plan, stored *both)
{
    both->set = tiny_make(plan);
    tiny_write(&both->set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &both->store, &said_log));
}

static void free_stored(stored *both)
{
    pace__store_close(&both->store);
    tiny_free(&both->set);
}

/* --- what should come --- */

static uint64_t row_at(const stored *both, const pace__reader_plan *plan, uint64_t place)
{
    uint64_t rows = both->set.info.rows[plan->set], run;
    pace__order order = pace__order_make(rows, (uint64_t)plan->seed, place / rows);

    return plan->sequential ? place % rows : pace__order_row(&order, place % rows, &run);
}

static void check_row(const stored *both, const pace__reader_plan *plan, const pace__piece *piece, size_t at)
{
    const tiny_rows *rows = &both->set.rows[plan->set];
    uint64_t row = row_at(both, plan, piece->first + at), start = rows->start[row],
             length = rows->start[row + 1] - start;
    uint64_t found = pace__row_start(&piece->rows, at);

    require(piece->rows.label[at] == rows->label[row]);
    if (!piece->rows.columns)
        require(piece->rows.start[at + 1] - found == length);
    require(memcmp(piece->rows.ids + found, rows->ids + start, length * 4) == 0);
    if (both->set.info.has_values)
        require(memcmp(piece->rows.values + found, rows->values + start, length * 4) == 0);
    else
        require(piece->rows.values == NULL);
}

/* Rows of one step, which lie in one part. */
static void check_cut(const stored *both, const pace__reader_plan *plan, const pace__piece *piece)
{
    uint64_t rows = both->set.info.rows[plan->set], position = piece->first % rows,
             end = position + piece->rows.rows;
    uint64_t first_row = row_at(both, plan, piece->first),
             last_row = row_at(both, plan, piece->first + piece->rows.rows - 1);
    uint64_t part_first;

    require(piece->rows.rows >= 1 && piece->rows.rows <= PACE__PIECE_ROWS);
    require(end <= rows);
    require(position / plan->batch == (end - 1) / plan->batch);
    require(last_row == first_row + piece->rows.rows - 1);
    require(pace__store_part_of(&both->store, plan->set, first_row, &part_first) ==
            pace__store_part_of(&both->store, plan->set, last_row, &part_first));
}

/* --- reading --- */

typedef struct reading {
    const stored *both;
    const pace__reader_plan *plan;
    pace__reader *reader;
    uint64_t pieces_max; /* a consumer stops after so many */
    uint64_t rows[CONSUMERS_MAX];
} reading;

static pace_status consume(void *arg, int consumer)
{
    reading *self = arg;
    const pace__piece *piece;
    uint64_t place = self->plan->first;
    pace_status status = PACE_OK;

    for (uint64_t i = 0;
         i < self->pieces_max && !(status = pace__reader_next(self->reader, consumer, &piece)) && piece;
         i++) {
        require(piece->first == place);
        check_cut(self->both, self->plan, piece);
        for (size_t at = 0; at < piece->rows.rows; at++)
            check_row(self->both, self->plan, piece, at);
        place += piece->rows.rows;
    }
    self->rows[consumer] = place - self->plan->first;
    return status;
}

static void read_all(const stored *both, const pace__reader_plan *plan)
{
    reading self = {.both = both, .plan = plan, .pieces_max = UINT64_MAX};

    assert_ok(pace__reader_create(&both->store, plan, &said_log, &self.reader));
    assert_ok(pace__team(plan->consumers, consume, &self, &said_log));
    for (int i = 0; i < plan->consumers; i++)
        assert_int_equal(self.rows[i], plan->last - plan->first);
    pace__reader_free(self.reader);
}

static const tiny_plan layouts[] = {
    {.train = 9001, .test = 700, .ids = 300, .columns = 5, .parts = 3, .seed = 1},
    {.train = 9001, .test = 700, .ids = 300, .columns = 5, .has_values = true, .parts = 3, .seed = 2},
    {.train = 9001, .test = 700, .ids = 300, .parts = 3, .seed = 3},
    {.train = 9001, .test = 700, .ids = 300, .has_values = true, .parts = 3, .seed = 4},
};

static void every_batch_size_in_every_layout(void **state)
{
    static const uint64_t batches[] = {1, 100, 512, 4096, 5000, 20000};

    for (size_t l = 0; l < 4; l++) {
        stored both;

        make_stored(state, layouts[l], &both);
        for (size_t b = 0; b < 6; b++) {
            pace__reader_plan plan = {.seed = 5, .batch = batches[b], .last = 9001, .consumers = 1};

            read_all(&both, &plan);
        }
        free_stored(&both);
    }
}

static void epochs_follow_each_other(void **state)
{
    stored both;

    make_stored(state, layouts[2], &both);
    for (int consumers = 1; consumers <= CONSUMERS_MAX; consumers++) {
        pace__reader_plan plan = {.seed = 9, .batch = 512, .last = 3 * 9001, .consumers = consumers};

        read_all(&both, &plan);
    }
    free_stored(&both);
}

/* As after a resume: from any step on, up to any step. */
static void reading_may_begin_in_the_middle(void **state)
{
    static const uint64_t firsts[] = {100, 5000, 9000, 9001, 9101, 18002};
    stored both;

    make_stored(state, layouts[3], &both);
    for (size_t f = 0; f < 6; f++) {
        for (uint64_t length = 0; length < 20000; length = length * 7 + 100) {
            pace__reader_plan plan = {
                .seed = 9, .batch = 100, .first = firsts[f], .last = firsts[f] + length, .consumers = 2};

            read_all(&both, &plan);
        }
    }
    free_stored(&both);
}

static void test_rows_come_in_stored_order(void **state)
{
    stored both;

    make_stored(state, layouts[1], &both);
    pace__reader_plan plan = {
        .set = PACE__TEST, .sequential = true, .batch = PACE__PIECE_ROWS, .last = 700, .consumers = 1};

    read_all(&both, &plan);
    free_stored(&both);
}

/* Of every 1,000 rows the first 300, as one worker of several has them; a stretch of 1,000 crosses no epoch's end. */
static uint64_t first_of_thousand(void *user, int consumer, uint64_t *place)
{
    const pace__reader_plan *plan = user;

    require(consumer >= 0 && consumer <= plan->consumers);
    if (*place % 1000 >= 300)
        *place = (*place / 1000 + 1) * 1000;
    if (*place > plan->last)
        *place = plan->last;
    uint64_t end = *place / 1000 * 1000 + 300;

    return end < plan->last ? end : plan->last;
}

static pace_status consume_stretches(void *arg, int consumer)
{
    reading *self = arg;
    const pace__piece *piece;
    uint64_t place = 0;
    pace_status status;

    while (!(status = pace__reader_next(self->reader, consumer, &piece)) && piece) {
        place = place % 1000 < 300 ? place : place / 1000 * 1000 + 1000;
        require(piece->first == place && place % 1000 + piece->rows.rows <= 300);
        check_cut(self->both, self->plan, piece);
        for (size_t at = 0; at < piece->rows.rows; at++)
            check_row(self->both, self->plan, piece, at);
        place += piece->rows.rows;
        self->rows[consumer] += piece->rows.rows;
    }
    return status;
}

static void stretches_leave_out_rows(void **state)
{
    stored both;

    for (int l = 0; l < 4; l += 2) {
        make_stored(state, layouts[l], &both);
        for (int consumers = 1; consumers <= 2; consumers++) {
            pace__reader_plan plan = {.seed = 9,
                                      .batch = 77,
                                      .last = 2 * 9001,
                                      .consumers = consumers,
                                      .stretch = first_of_thousand};
            reading self = {.both = &both, .plan = &plan};

            plan.user = &plan;
            assert_ok(pace__reader_create(&both.store, &plan, &said_log, &self.reader));
            assert_ok(pace__team(consumers, consume_stretches, &self, &said_log));
            for (int i = 0; i < consumers; i++)
                assert_int_equal(self.rows[i], 18 * 300 + 2);
            pace__reader_free(self.reader);
        }
        free_stored(&both);
    }
}

/* Fewer rows than parts, rows without entries, one row. */
static void small_sets_work(void **state)
{
    for (uint64_t rows = 1; rows < 12; rows++) {
        stored both;

        make_stored(state, (tiny_plan){.train = rows, .ids = 4, .entries = 1, .parts = 5, .seed = rows},
                    &both);
        pace__reader_plan plan = {.seed = 1, .batch = 3, .last = 4 * rows, .consumers = 1};

        read_all(&both, &plan);
        free_stored(&both);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

static void nothing_to_read_ends_at_once(void **state)
{
    stored both;
    const pace__piece *piece;
    pace__reader *reader;

    make_stored(state, (tiny_plan){.test = 5, .ids = 4, .parts = 2}, &both);
    pace__reader_plan plan = {.batch = 1, .consumers = 1};

    assert_ok(pace__reader_create(&both.store, &plan, &said_log, &reader));
    assert_ok(pace__reader_next(reader, 0, &piece));
    assert_null(piece);
    pace__reader_free(reader);
    pace__reader_free(NULL);
    free_stored(&both);
}

static void it_may_be_freed_early(void **state)
{
    stored both;

    make_stored(state, layouts[0], &both);
    for (uint64_t pieces = 0; pieces < 40; pieces += 1 + pieces / 3) {
        pace__reader_plan plan = {
            .seed = 1, .batch = 100, .last = 9001 * 50, .consumers = 1 + (int)pieces % 3};
        reading self = {.both = &both, .plan = &plan, .pieces_max = pieces};

        assert_ok(pace__reader_create(&both.store, &plan, &said_log, &self.reader));
        assert_ok(pace__team(plan.consumers, consume, &self, &said_log));
        pace__reader_free(self.reader);
    }
    free_stored(&both);
}

/* A set whose rows have the given lengths. */
static void make_lengths(void **state, uint64_t rows, uint64_t (*length_of)(uint64_t row), stored *both)
{
    uint64_t at = 0, most = 1;

    both->set = tiny_make((tiny_plan){.train = rows, .ids = 9000, .entries = 1, .parts = 2});
    tiny_rows *set = &both->set.rows[PACE__TRAIN];

    for (uint64_t row = 0; row < rows; row++)
        most += length_of(row);
    free(set->ids);
    set->ids = tiny_alloc(most * sizeof *set->ids);
    for (uint64_t row = 0; row < rows; row++) {
        set->start[row] = at;
        for (uint64_t i = 0; i < length_of(row); i++)
            set->ids[at++] = (uint32_t)((row + 7 * i) % 9000);
    }
    set->start[rows] = at;
    tiny_measure(&both->set);
    tiny_write(&both->set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &both->store, &said_log));
}

static uint64_t some_long(uint64_t row)
{
    return row / 100 % 10 == 3 ? 500 : row % 2;
}

static uint64_t one_long(uint64_t row)
{
    return row == 7 ? 6000 : 1;
}

/* Rows far longer than the mean, one behind the other: their pieces are shorter, and nothing is lost. */
static void long_rows_pass(void **state)
{
    stored both;

    make_lengths(state, 3000, some_long, &both);
    for (int consumers = 1; consumers <= 3; consumers++) {
        pace__reader_plan plan = {.seed = 4, .batch = 512, .last = 2 * 3000, .consumers = consumers};

        read_all(&both, &plan);
    }
    free_stored(&both);
    make_lengths(state, 400, one_long, &both);
    pace__reader_plan plan = {.seed = 4, .batch = 100, .last = 400, .consumers = 2};

    read_all(&both, &plan);
    free_stored(&both);
}

static void memory_does_not_grow_with_the_set(void **state)
{
    tiny_set set = tiny_make(layouts[3]);
    pace__store_info larger = set.info;

    (void)state;
    for (int i = 0; i < PACE__SETS; i++) {
        larger.rows[i] *= 1000000;
        larger.entries[i] *= 1000000;
    }
    assert_int_equal(pace__reader_memory(&larger, 2), pace__reader_memory(&set.info, 2));
    tiny_free(&set);
}

/* --- damage --- */

static void overwrite(const stored *both, uint32_t part, uint64_t at, const void *bytes, size_t size)
{
    int fd = open(both->store.parts[part].path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_ok(pace__pwrite_all(fd, bytes, size, at, "part", &said_log));
    close(fd);
}

typedef struct failing {
    pace__reader *reader;
    pace_status status[CONSUMERS_MAX];
} failing;

static pace_status consume_any(void *arg, int consumer)
{
    failing *self = arg;
    const pace__piece *piece = NULL;
    pace_status status;

    while (!(status = pace__reader_next(self->reader, consumer, &piece)) && piece)
        ;
    require(piece == NULL);
    require(pace__reader_next(self->reader, consumer, &piece) == status); /* asked again, it says the same */
    self->status[consumer] = status;
    return PACE_OK;
}

/* Every consumer gets the error, and a message names the part. */
static void assert_damaged(const stored *both, int set, uint32_t part, const char *message)
{
    for (int consumers = 1; consumers <= 3; consumers++) {
        pace__reader_plan plan = {
            .set = set, .seed = 1, .batch = 10, .last = 3 * both->set.info.rows[set], .consumers = consumers};
        failing self = {0};

        said_clear();
        assert_ok(pace__reader_create(&both->store, &plan, &said_log, &self.reader));
        assert_ok(pace__team(consumers, consume_any, &self, &said_log));
        pace__reader_free(self.reader);
        for (int i = 0; i < consumers; i++)
            assert_int_equal(self.status[i], PACE_BAD_DATA);
        assert_said(both->store.parts[part].path);
        assert_said(message);
    }
}

static void ids_out_of_range_are_found(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        stored both;
        uint32_t wrong = 301, unseen = 300;

        make_stored(state, layouts[l], &both);
        tiny_forget_sums(&both.store);
        const pace__part_set *set = &both.store.parts[1].sets[PACE__TRAIN];

        overwrite(&both, 1, set->ids_at + (set->entries - 1) * 4, &wrong, 4);
        assert_damaged(&both, PACE__TRAIN, 1, "id 301");
        overwrite(&both, 1, set->ids_at + (set->entries - 1) * 4, &unseen, 4);
        assert_damaged(&both, PACE__TRAIN, 1, "id 300"); /* training rows have no unseen ids ... */
        both.store.info.like = true;                     /* ... unless they are numbered like others */
        both.set.rows[PACE__TRAIN]
            .ids[both.set.rows[PACE__TRAIN].start[tiny_part_first(&both.set, PACE__TRAIN, 2)] - 1] = unseen;
        pace__reader_plan plan = {.seed = 1, .batch = 10, .last = 9001, .consumers = 1};

        read_all(&both, &plan); /* "unseen" is no damage */
        free_stored(&both);
    }
}

static void labels_out_of_range_are_found(void **state)
{
    stored both;
    uint8_t wrong = 2;

    make_stored(state, layouts[0], &both);
    tiny_forget_sums(&both.store);
    overwrite(&both, 2, both.store.parts[2].sets[PACE__TEST].label_at + 7, &wrong, 1);
    assert_damaged(&both, PACE__TEST, 2, "label");
    free_stored(&both);
}

static void starts_that_do_not_rise_are_found(void **state)
{
    static const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX - 7, 1 << 30, INT64_MAX, 0, 1};

    for (size_t w = 0; w < 6; w++) {
        for (int place = 0; place < 4; place++) {
            stored both;

            make_stored(state, layouts[3], &both);
            tiny_forget_sums(&both.store);
            const pace__part_set *set = &both.store.parts[1].sets[PACE__TRAIN];
            uint64_t row = place == 0   ? 1
                           : place == 1 ? 300
                           : place == 2 ? set->rows - 1
                                        : set->rows,
                     bad = wrong[w];

            if (row == 1 && bad < 2)
                bad = 1 << 29;
            overwrite(&both, 1, set->start_at + row * 8, &bad, 8);
            assert_damaged(&both, PACE__TRAIN, 1, "indptr");
            free_stored(&both);
        }
    }
}

/* A row that the attributes call impossible would not fit a piece. */
static void rows_longer_than_promised_are_found(void **state)
{
    stored both;

    make_lengths(state, 400, one_long, &both);
    both.store.info.row_entries_max = 1;
    both.store.info.entries[PACE__TRAIN] = 400;
    assert_damaged(&both, PACE__TRAIN, 0, "row_entries_max");
    free_stored(&both);
}

static void a_file_that_is_cut_while_it_is_read_is_found(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        stored both;

        make_stored(state, layouts[l], &both);
        assert_int_equal(truncate(both.store.parts[1].path, 5000), 0);
        assert_damaged(&both, PACE__TRAIN, 1, "cut");
        free_stored(&both);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_batch_size_in_every_layout),
        TEST(epochs_follow_each_other),
        TEST(reading_may_begin_in_the_middle),
        TEST(test_rows_come_in_stored_order),
        TEST(stretches_leave_out_rows),
        TEST(small_sets_work),
        TEST(nothing_to_read_ends_at_once),
        TEST(it_may_be_freed_early),
        TEST(long_rows_pass),
        TEST(memory_does_not_grow_with_the_set),
        TEST(ids_out_of_range_are_found),
        TEST(labels_out_of_range_are_found),
        TEST(starts_that_do_not_rise_are_found),
        TEST(rows_longer_than_promised_are_found),
        TEST(a_file_that_is_cut_while_it_is_read_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Messages of workers that average: what fits is merged, what cannot be is refused, and nothing is changed by it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "localsgd/average.h"

#include "support.h"

#define KEYS    5 /* the first of two owners has three of them */
#define DIM     2
#define STEPS   4
#define ROWS    20 /* of a round, half of them each */
#define SECOND  UINT64_C(1000000000)
#define COLLECT PACE__TAG_COLLECT
#define BACK    PACE__TAG_BACK

/* A message of the other worker, which is played here. */
typedef struct forged {
    pace__mail_head head;
    uint64_t bits;
    float rows[KEYS][1 + DIM]; /* on the way back, rows lie closer */
} forged;

typedef struct pair {
    pace__link *links[2];
    pace__table replica, table;
    pace__average average;
    pace__request send, receive;
    char heard[4096];
} pair;

static void open_pair(pair *self)
{
    pace__link_options options = {60 * SECOND, 60 * SECOND, .log = &said_log};
    pace__outer outer = {1, 0};
    pace__optim rule = pace__optim_make(PACE_SGD, 0.1, 0, 0, 0);
    pace__table_plan replica = {.keys = KEYS, .dim = DIM, .shards = 1, .optim = rule}, owned = replica;

    *self = (pair){0};
    owned.shards = 2;
    pace__optim_keep_velocity(&owned.optim);
    assert_ok(pace__link_open_threads(2, 2, &options, self->links));
    assert_ok(pace__table_init(&self->replica, &replica, &said_log));
    assert_ok(pace__table_init(&self->table, &owned, &said_log));
    assert_ok(pace__average_open(&self->average, self->links[0], 2, &outer, &self->replica, &self->table, 0,
                                 &said_log));
}

static void close_pair(pair *self)
{
    pace__average_close(&self->average);
    pace__link_cancel(self->links[1], &self->receive);
    pace__link_settle(self->links[1], &self->send);
    pace__table_release(&self->table);
    pace__table_release(&self->replica);
    for (int i = 0; i < 2; i++)
        pace__link_close(self->links[i]);
}

/* The other worker's turn: what it hears is not looked at. */
static void speak(pair *self, int tag, const forged *what, size_t bytes)
{
    bool done;

    assert_ok(pace__link_done(self->links[1], &self->send, &done));
    assert_true(done);
    assert_ok(pace__link_done(self->links[1], &self->receive, &done));
    assert_true(done);
    pace__link_receive(self->links[1], 0, tag, self->heard, sizeof self->heard, &self->receive);
    pace__link_send(self->links[1], 0, tag, what, bytes, &self->send);
}

static size_t bytes_of(int tag, uint64_t count)
{
    return offsetof(forged, rows) + count * (DIM + (tag == COLLECT)) * sizeof(float);
}

/* --- to the owner --- */

/* Keys 0 and 4 were updated in one step and in all. */
static forged good_collect(void)
{
    uint32_t steps[] = {1, STEPS};
    forged made = {{.last = ROWS, .rows = ROWS / 2, .loss = 1, .count = 2}, 5, {{0, 1, 2}, {0, 3, 4}}};

    for (size_t i = 0; i < 2; i++)
        memcpy(made.rows[i], &steps[i], sizeof steps[i]);
    return made;
}

static pace_status collect(const forged *what, size_t bytes, float weights[3 * DIM])
{
    static const forged nothing;
    pace__trained own = {.rows = ROWS / 2, .loss = 2}, all;
    pair both;

    open_pair(&both);
    speak(&both, BACK, &nothing, bytes_of(BACK, 0));
    assert_ok(pace__average_begin(&both.average));
    said_clear();
    speak(&both, COLLECT, what, bytes);
    pace_status status = pace__average_collect(&both.average, ROWS, STEPS, &own, &all);

    assert_true(status || (all.rows == ROWS && all.loss == 3 && !all.end));
    for (size_t place = 0; place < 3; place++)
        memcpy(weights + place * DIM, both.table.records + place * both.table.stride, DIM * sizeof *weights);
    close_pair(&both);
    return status;
}

static void what_fits_is_merged(void **state)
{
    static const float expected[3 * DIM] = {1, 2, 0, 0, 3, 4};
    forged good = good_collect();
    float weights[3 * DIM];

    (void)state;
    assert_ok(collect(&good, bytes_of(COLLECT, 2), weights));
    assert_memory_equal(weights, expected, sizeof expected);
}

static void assert_refused(forged what, size_t bytes, const char *why)
{
    static const float zero[2 * DIM];
    float weights[3 * DIM];

    assert_failed(collect(&what, bytes, weights), PACE_BUG, why);
    assert_memory_equal(weights + DIM, zero,
                        sizeof zero); /* the first may have been merged before a later one was seen */
}

static void what_cannot_be_is_refused(void **state)
{
    static const char cannot_be[] = "has sent parameters that cannot be";
    size_t bytes = bytes_of(COLLECT, 2);
    uint32_t none = 0, many = STEPS + 1;
    forged wrong = good_collect();

    (void)state;
    assert_refused(wrong, sizeof wrong.head, cannot_be);
    assert_refused(wrong, bytes - sizeof(float), cannot_be);
    assert_refused(wrong, bytes + sizeof(float), cannot_be);
    wrong.head.count = 3;
    assert_refused(wrong, bytes, cannot_be);
    wrong = good_collect();
    wrong.bits = 9; /* there is no fourth place */
    assert_refused(wrong, bytes, cannot_be);
    wrong = good_collect();
    wrong.head.first = 1;
    assert_refused(wrong, bytes, "are to be merged");
    wrong = good_collect();
    wrong.head.rows--;
    assert_refused(wrong, bytes, "workers have trained 19 rows between two flushes of 20");
    wrong = good_collect();
    memcpy(wrong.rows[1], &many, sizeof many);
    assert_refused(wrong, bytes, "in none of 4 steps, or in more");
    memcpy(wrong.rows[1], &none, sizeof none);
    assert_refused(wrong, bytes, "in none of 4 steps, or in more");
}

/* --- and back --- */

static pace_status begin(const forged *what, size_t bytes)
{
    pair both;

    open_pair(&both);
    said_clear();
    speak(&both, BACK, what, bytes);
    pace_status status = pace__average_begin(&both.average);

    close_pair(&both);
    return status;
}

static void what_cannot_be_shared_is_refused(void **state)
{
    static const char cannot_be[] = "has sent parameters that cannot be";
    forged all = {.head.count = 2, .bits = 3}, wrong = all;

    (void)state;
    assert_ok(begin(&all, bytes_of(BACK, 2)));
    assert_failed(begin(&all, bytes_of(BACK, 1)), PACE_BUG, cannot_be);
    wrong.bits = 5; /* the second owner has two */
    assert_failed(begin(&wrong, bytes_of(BACK, 2)), PACE_BUG, cannot_be);
    wrong = all;
    wrong.head.first = wrong.head.last = ROWS;
    assert_failed(begin(&wrong, bytes_of(BACK, 2)), PACE_BUG, "are to be merged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_merged),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

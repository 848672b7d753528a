/* Parameters read and written from outside: by hand on one thread, and while a job of threads goes on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "ps_job.h"

#include "ps/wire.h"

#define HOLDERS_MAX 4
#define DIM_MAX     4 /* of lists */

/* --- keepers by hand: rank 0 asks, the others keep; all on this thread --- */

typedef struct shelf {
    unsigned holders, dim;
    uint64_t keys, step; /* step: what the keepers believe is applied */
    pace__steps steps;
    pace__optim optim;
    pace__link *links[HOLDERS_MAX + 1];
    pace__table tables[HOLDERS_MAX];
    pace__keeper *keepers[HOLDERS_MAX];
    pace_status status; /* of the keepers */
} shelf;

static uint64_t step_of(const void *user)
{
    return ((const shelf *)user)->step;
}

static pace_status poll_keepers(void *user, bool *busy)
{
    shelf *self = user;

    for (unsigned i = 0; i < self->holders && !self->status; i++)
        self->status = pace__keeper_poll(self->keepers[i], busy);
    return self->status;
}

static void shelf_open(shelf *self, unsigned holders, uint64_t keys, unsigned dim, pace__optim optim,
                       bool exact)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};

    said_clear();
    *self = (shelf){
        .holders = holders, .dim = dim, .keys = keys, .steps = pace__steps_make(100, 10), .optim = optim};
    assert_ok(pace__link_open_threads((int)holders + 1, 1, &options, self->links));
    pace__link_on_idle(self->links[0], poll_keepers, self);
    for (unsigned i = 0; i < holders; i++) {
        pace__table_plan plan = {keys, dim, i, holders, true, optim};
        pace__keeper_plan keeper = {&self->tables[i], self->steps, exact, step_of, self};

        assert_ok(pace__table_init(&self->tables[i], &plan, &said_log));
        assert_ok(pace__keeper_create(self->links[i + 1], &keeper, &said_log, &self->keepers[i]));
    }
}

static void shelf_close(shelf *self)
{
    for (unsigned i = 0; i < self->holders; i++) {
        pace__keeper_free(self->keepers[i]);
        pace__table_release(&self->tables[i]);
    }
    for (unsigned i = 0; i <= self->holders; i++)
        pace__link_close(self->links[i]);
}

static void randomize(float *parameters, size_t count, uint64_t seed)
{
    pace__random random = pace__random_at(seed, 3);

    for (size_t i = 0; i < count; i++)
        parameters[i] = (float)(pace__random_unit(&random) * 2 - 1);
}

/* --- states --- */

/* Out to the holders and back, and each key where it belongs. */
static void round_trip(unsigned holders, uint64_t keys, unsigned dim, int kind)
{
    static shelf self;
    pace__optim optim = pace__optim_make(kind, 0.1, 0.9, 0, dim == 1 ? 0.1 : 0);
    size_t row = (size_t)dim * optim.width, floats = (size_t)keys * row;
    float *sent = tiny_alloc(floats * sizeof(float)), *back = tiny_alloc(floats * sizeof(float));
    float *record = tiny_alloc(row * sizeof(float));

    randomize(sent, floats, keys);
    shelf_open(&self, holders, keys, dim, optim, true);
    for (unsigned i = 0; i < holders; i++) {
        pace__holder holder = pace__holder_of(keys, holders, i, 1);

        assert_int_equal(holder.rank, i + 1);
        assert_int_equal(holder.places, self.tables[i].places);
        assert_ok(pace__store_state(self.links[0], &holder, row, sent, &said_log));
    }
    for (uint64_t key = 0; key < keys; key += 1 + keys / 1000) {
        pace__table_read(&self.tables[key % holders], (uint32_t)(key / holders), 1, record);
        assert_true(memcmp(record, sent + key * row, row * sizeof(float)) == 0);
    }
    for (unsigned i = 0; i < holders; i++) {
        pace__holder holder = pace__holder_of(keys, holders, i, 1);

        assert_ok(pace__fetch_state(self.links[0], &holder, row, back, &said_log));
    }
    assert_true(memcmp(sent, back, floats * sizeof(float)) == 0);
    shelf_close(&self);
    free(record);
    free(sent);
    free(back);
}

static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_MOMENTUM, PACE_FTRL, PACE_ADAM};

static void states_go_out_and_back(void **state)
{
    static const uint64_t keys[] = {1, 3, 4, 1001};
    static const unsigned dims[] = {1, 3, 100};

    (void)state;
    for (unsigned holders = 1; holders <= HOLDERS_MAX; holders++) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
                round_trip(holders, keys[i], dims[d], kinds[(holders + i + d) % 5]);
        }
    }
}

/* More rows on a holder than go into one message, and not as many in each. */
static void states_in_several_stretches(void **state)
{
    (void)state;
    round_trip(1, 2 * PACE__FETCH_CHUNK, 1, PACE_FTRL);
    round_trip(2, 2 * PACE__FETCH_CHUNK + 3, 1, PACE_SGD);
    round_trip(1, 2 * PACE__FETCH_CHUNK / 15 + 1, 5, PACE_ADAM);
    round_trip(1, 1201, 1000, PACE_SGD);
}

/* Rows of about half a message, of a whole one, and of more, which go alone. */
static void states_of_long_rows(void **state)
{
    static const unsigned dims[] = {PACE__FETCH_CHUNK / 2, PACE__FETCH_CHUNK / 2 + 1, PACE__FETCH_CHUNK,
                                    PACE__FETCH_CHUNK + 1};

    (void)state;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        round_trip(1, i < 2 ? 3 : 2, dims[i], PACE_SGD);
    round_trip(2, 3, PACE__FETCH_CHUNK / 3 + 1, PACE_ADAM);
}

/* --- lists --- */

static bool list_is_there(shelf *self, pace__fetch_list *list)
{
    bool busy = false, answered;

    for (int i = 0; i < 4; i++)
        assert_ok(poll_keepers(self, &busy));
    assert_ok(pace__fetch_list_poll(list, self->links[0], &answered, &said_log));
    return answered;
}

static void fill_tables(shelf *self, uint64_t seed)
{
    for (unsigned i = 0; i < self->holders; i++) {
        for (uint32_t place = 0; place < self->tables[i].places; place++) {
            float record[DIM_MAX * PACE__OPTIM_WIDTH_MAX] = {0};

            randomize(record, self->dim, seed + place * self->holders + i);
            pace__table_write(&self->tables[i], place, 1, record);
        }
    }
}

static void assert_weights(const shelf *self, const pace__fetch_list *list, const uint32_t *places,
                           uint64_t step)
{
    float weights[DIM_MAX];

    assert_int_equal(list->dim, self->dim);
    assert_false(list->passed);
    assert_int_equal(list->step, step);
    for (uint32_t i = 0; i < list->count; i++) {
        pace__table_peek(&self->tables[list->holder.shard], &places[i], 1,
                         pace__steps_rows_before(&self->steps, step), weights);
        assert_memory_equal(list->weights + i * list->dim, weights, list->dim * sizeof *weights);
    }
}

/* In sync mode a list is that of the step asked for, or none. */
static void check_exact_steps(unsigned dim)
{
    static const uint32_t places[] = {7, 0, 3, 9, 1};
    static shelf self;
    pace__fetch_list list;
    pace__holder holder = pace__holder_of(31, 3, 1, 1);
    pace__optim optim = pace__optim_make(PACE_SGD, 0.1, 0, 0, dim == 1 ? 0.01 : 0);

    shelf_open(&self, 3, 31, dim, optim, true);
    assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, 5, dim, &said_log));
    fill_tables(&self, 1);
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 2));
    assert_false(list_is_there(&self, &list));
    self.step = 1;
    assert_false(list_is_there(&self, &list));
    self.step = 2;
    assert_true(list_is_there(&self, &list));
    assert_weights(&self, &list, places, 2);
    float copy[5 * DIM_MAX];

    memcpy(copy, list.weights, 5 * dim * sizeof *copy);
    fill_tables(&self, 1000); /* training goes on: the copy stays */
    assert_memory_equal(list.weights, copy, 5 * dim * sizeof *copy);
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 2)); /* still there */
    assert_true(list_is_there(&self, &list));
    assert_weights(&self, &list, places, 2);
    self.step = 7;
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 6)); /* too late */
    assert_true(list_is_there(&self, &list));
    assert_true(list.passed);
    assert_int_equal(list.step, 7);
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 8));
    assert_false(list_is_there(&self, &list));
    self.step = 9; /* the holder never stood at 8 */
    assert_true(list_is_there(&self, &list));
    assert_true(list.passed);
    assert_int_equal(list.step, 9);
    pace__fetch_list_release(&list, self.links[0]);
    shelf_close(&self);
}

static void lists_of_exact_steps(void **state)
{
    (void)state;
    for (unsigned dim = 1; dim <= DIM_MAX; dim++)
        check_exact_steps(dim);
}

/* In async mode the step asked for, or the first that is seen behind it. */
static void lists_of_steps_at_least(void **state)
{
    static const uint32_t places[] = {0, 2, 4};
    static shelf self;
    pace__fetch_list list;
    pace__holder holder = pace__holder_of(10, 2, 0, 1);

    (void)state;
    shelf_open(&self, 2, 10, 2, pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0), false);
    assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, 3, 2, &said_log));
    fill_tables(&self, 5);
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 4));
    assert_false(list_is_there(&self, &list));
    self.step = 6;
    assert_true(list_is_there(&self, &list));
    assert_weights(&self, &list, places, 6);
    pace__fetch_list_release(&list, self.links[0]);
    shelf_close(&self);
}

/* Who does not want to wait any longer is told so; the next ask is as any. */
static void lists_that_are_not_waited_for(void **state)
{
    static const uint32_t places[] = {2, 0};
    static shelf self;
    pace__fetch_list list;
    pace__holder holder = pace__holder_of(10, 2, 1, 1);

    (void)state;
    shelf_open(&self, 2, 10, 3, pace__optim_make(PACE_SGD, 0.1, 0, 0, 0), true);
    assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, 2, 3, &said_log));
    assert_ok(pace__fetch_list_stop(&list, self.links[0])); /* nothing is under way */
    fill_tables(&self, 6);
    for (uint64_t step = 1; step < 4; step++) {
        assert_ok(pace__fetch_list_ask(&list, self.links[0], step));
        assert_false(list_is_there(&self, &list));
        assert_ok(pace__fetch_list_stop(&list, self.links[0]));
        assert_true(list_is_there(&self, &list));
        assert_true(list.passed);
        assert_int_equal(list.step, step - 1);
        assert_ok(pace__fetch_list_ask(&list, self.links[0], step));
        self.step = step;
        assert_true(list_is_there(&self, &list));
        assert_weights(&self, &list, places, step);
    }
    pace__fetch_list_release(&list, self.links[0]);
    shelf_close(&self);
}

/* A holder that has none of the keys that matter is asked like the others; a long list goes in parts. */
static void short_and_long_lists(void **state)
{
    static shelf self;
    uint64_t keys = PACE__FETCH_CHUNK + 100;
    static const uint32_t counts[] = {0, 1, PACE__FETCH_CHUNK, PACE__FETCH_CHUNK + 100};
    uint32_t *places = tiny_alloc(keys * sizeof *places);

    (void)state;
    for (uint32_t i = 0; i < keys; i++)
        places[i] = (uint32_t)keys - 1 - i;
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        pace__holder holder = pace__holder_of(keys, 1, 0, 1);
        uint32_t count = counts[i / 2], dim = i % 2 ? 3 : 1;
        pace__fetch_list list;

        shelf_open(&self, 1, keys, dim, pace__optim_make(PACE_SGD, 0.1, 0, 0, 0), true);
        for (size_t k = 0; k < keys * dim; k++)
            self.tables[0].records[k / dim * self.tables[0].stride + k % dim] = (float)k;
        assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, count, dim, &said_log));
        assert_ok(pace__fetch_list_ask(&list, self.links[0], 0));
        assert_true(list_is_there(&self, &list));
        assert_false(list.passed);
        for (uint32_t k = 0; k < count * dim; k++)
            assert_true(list.weights[k] == (float)(places[k / dim] * dim + k % dim));
        pace__fetch_list_release(&list, self.links[0]);
        shelf_close(&self);
    }
    free(places);
}

/* Penalties that are not applied yet show in the list, and stay unapplied in the table. */
static void reading_changes_nothing(void **state)
{
    static const uint32_t places[] = {0, 1, 2, 3};
    static shelf self;
    pace__fetch_list list;
    pace__holder holder = pace__holder_of(4, 1, 0, 1);
    float before[8], after[8];

    (void)state;
    shelf_open(&self, 1, 4, 1, pace__optim_make(PACE_SGD, 0.1, 0, 0, 0.1), true);
    fill_tables(&self, 9);
    pace__table_read(&self.tables[0], 0, 4, before);
    assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, 4, 1, &said_log));
    self.step = 5;
    assert_ok(pace__fetch_list_ask(&list, self.links[0], 5));
    assert_true(list_is_there(&self, &list));
    assert_weights(&self, &list, places, 5);
    for (int i = 0; i < 3; i++)
        assert_true(fabsf(list.weights[i]) < fabsf(before[2 * i]));
    assert_true(list.weights[3] == before[6]); /* the bias has none */
    pace__table_read(&self.tables[0], 0, 4, after);
    assert_memory_equal(before, after, sizeof before);
    pace__fetch_list_release(&list, self.links[0]);
    shelf_close(&self);
}

/* --- requests that cannot be --- */

/* In the order of snapshot.c: fetch, store, add to the list, get it, do not wait for it. */
typedef struct request {
    uint64_t kind, step, first, count;
    uint32_t payload[8];
} request;

/* To a shelf of 10 places. */
static void assert_refused(const request *sent, size_t bytes, unsigned dim, pace__optim optim)
{
    static shelf self;
    pace__request send = {0};
    bool busy = false, left;

    shelf_open(&self, 1, 10, dim, optim, true);
    pace__link_set_name(self.links[1], 0, "evaluator (rank 0)");
    pace__link_send(self.links[0], 1, PACE__TAG_FETCH, sent, bytes, &send);
    assert_failed(poll_keepers(&self, &busy), PACE_BUG, "evaluator (rank 0) asks for parameters in a way");
    assert_ok(pace__link_done(self.links[0], &send, &left));
    shelf_close(&self);
}

static void requests_that_cannot_be(void **state)
{
    static const struct {
        request sent;
        size_t words;
    } wrong[] = {
        {{0, 0, 0, 11}, 0},         /* more places than there are */
        {{0, 0, 11, 0}, 0},         /* behind the last */
        {{0, 0, 9, 2}, 0},          /* reaching behind it */
        {{0, 0, UINT64_MAX, 2}, 0}, /* around */
        {{0, 0, 1, UINT64_MAX}, 0}, /* around */
        {{0, 0, 0, 1}, 1},          /* a payload of nothing */
        {{1, 0, 0, 2}, 2},          /* two records of two floats are four */
        {{1, 0, 0, 2}, 3},
        {{1, 0, 0, 2}, 5},
        {{1, 0, 9, 2}, 4},
        {{2, 0, 0, 2}, 1},
        {{2, 0, 0, 2}, 4},          /* a list is of places, however long rows are */
        {{2, 0, 0, 2, {0, 10}}, 2}, /* no such place */
        {{2, 0, 0, UINT64_MAX / 4 + 2}, 1},
        {{3, 1, 0, 0}, 0}, /* a list that was never told */
        {{4, 0, 0, 0}, 0},
        {{5, 0, 0, 0}, 0}, /* no such kind */
        {{UINT64_MAX, 0, 0, 0}, 0},
    };
    static const request honest = {0, 0, 0, 1};

    (void)state;
    for (unsigned dim = 1; dim <= 2; dim++) { /* one weight and one of state, or two weights */
        pace__optim optim = pace__optim_make(PACE_SGD, 0.1, 0, 0, dim == 1 ? 0.1 : 0);

        assert_refused(&honest, 31, dim, optim);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            assert_refused(&wrong[i].sent, 32 + wrong[i].words * sizeof(uint32_t), dim, optim);
    }
    /* Places that are there, but more rows than an answer has room for. */
    assert_refused(&(request){0, 0, 0, 2}, 32, PACE__FETCH_CHUNK / 2 + 1,
                   pace__optim_make(PACE_SGD, 0.1, 0, 0, 0));
}

/* A list that was asked for is not added to, and not asked for again before the answer: its weights may be
 * on their way, and one of two who ask would wait for ever. */
static void lists_are_told_then_asked_for(void **state)
{
    static const request wrong[] = {{2, 0, 0, 1, {0}}, {3, 5, 0, 0, {0}}};
    static const uint32_t places[] = {1, 2};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        static shelf self;
        pace__fetch_list list;
        pace__request send = {0};
        pace__holder holder = pace__holder_of(10, 1, 0, 1);
        bool busy = false, left;

        shelf_open(&self, 1, 10, 1, pace__optim_make(PACE_SGD, 0.1, 0, 0, 0), true);
        assert_ok(pace__fetch_list_init(&list, self.links[0], &holder, places, 2, 1, &said_log));
        assert_ok(pace__fetch_list_ask(&list, self.links[0], 3));
        assert_false(list_is_there(&self, &list));
        pace__link_send(self.links[0], 1, PACE__TAG_FETCH, &wrong[i], i == 0 ? 36 : 32, &send);
        assert_failed(poll_keepers(&self, &busy), PACE_BUG, "rank 0 asks for parameters in a way");
        assert_ok(pace__link_done(self.links[0], &send, &left));
        pace__fetch_list_release(&list, self.links[0]);
        shelf_close(&self);
    }
}

/* --- while a job goes on --- */

#define STEPS 40

static const ps_plan busy_plan = {.rows = 100,
                                  .batch = 24,
                                  .steps = STEPS,
                                  .keys = 120,
                                  .dim = 1,
                                  .depth = 1,
                                  .schedule = PACE_SCHEDULE_LINEAR,
                                  .keepers = true,
                                  .reader = true};

/* All weights after every step. */
typedef struct history {
    float weights[STEPS + 1][TOY_MAX]; /* (keys x dim) */
    unsigned exact, passed;            /* lists that came, and those that came too late */
} history;

static void note_weights(history *past, const reference *self, uint64_t step)
{
    uint64_t now = pace__steps_rows_before(&self->steps, step);

    for (uint64_t i = 0; i < self->plan->keys * self->plan->dim; i++)
        past->weights[step][i] = i / self->plan->dim == self->plan->keys - 1
                                     ? self->parameters[i][0]
                                     : pace__optim_weight(&self->optim, self->parameters[i], now);
}

static void read_step(ps_job *job, ps_rank *self, pace__fetch_list *lists, uint64_t step)
{
    unsigned turns = 0;

    for (int shard = 0; shard < job->plan.shards; shard++)
        require(pace__fetch_list_ask(&lists[shard], self->link, step) == PACE_OK);
    for (int shard = 0; shard < job->plan.shards; shard++) {
        for (bool answered = false;;) {
            require(pace__fetch_list_poll(&lists[shard], self->link, &answered, &said_log) == PACE_OK);
            if (answered)
                break;
            require(pace__link_turn(self->link, &lists[shard].holder.rank, 1, "weights", &turns) == PACE_OK);
        }
    }
}

static void require_weights(const ps_plan *plan, const pace__fetch_list *list, const float *weights)
{
    for (uint32_t i = 0; i < list->count; i++) {
        size_t key = (size_t)i * (unsigned)plan->shards + list->holder.shard;

        require(memcmp(list->weights + (size_t)i * plan->dim, weights + key * plan->dim,
                       plan->dim * sizeof *weights) == 0);
    }
}

/* Asks for as many steps as it can; the last one cannot be missed. */
static void read_lists(ps_job *job, ps_rank *self)
{
    history *past = job->read_arg;
    pace__fetch_list lists[JOB_SHARDS] = {0};
    uint32_t places[TOY_KEYS_MAX];

    for (uint32_t i = 0; i < TOY_KEYS_MAX; i++)
        places[i] = i;
    for (int shard = 0; shard < job->plan.shards; shard++) {
        pace__holder holder =
            pace__holder_of(job->plan.keys, (unsigned)job->plan.shards, (unsigned)shard, job->first_shard);

        require(pace__fetch_list_init(&lists[shard], self->link, &holder, places, holder.places,
                                      job->plan.dim, &said_log) == PACE_OK);
    }
    for (uint64_t target = 1, newest = 0, last = 0; last < STEPS;
         last = target, target = newest < STEPS ? newest + 1 : STEPS) {
        read_step(job, self, lists, target);
        for (int shard = 0; shard < job->plan.shards; shard++) {
            const pace__fetch_list *list = &lists[shard];

            require(list->passed ? list->step > target : list->step == target);
            newest = list->step > newest ? list->step : newest;
            past->passed += list->passed;
            past->exact += !list->passed;
            if (!list->passed)
                require_weights(&job->plan, list, past->weights[target]);
        }
    }
    for (int shard = 0; shard < job->plan.shards; shard++)
        pace__fetch_list_release(&lists[shard], self->link);
}

static void lists_while_training(void **state)
{
    static reference expected;
    static history past;
    ps_plan plan = busy_plan;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        bool penalty = i < 5 || kinds[i % 5] == PACE_FTRL;

        plan.dim = i < 5 ? 1 : 3;
        plan.workers = 1 + (int)i % 3;
        plan.on_workers = i % 2;
        plan.shards = plan.on_workers ? plan.workers : 1 + (int)i % 4;
        plan.kind = kinds[i % 5];
        plan.l2 = penalty && i % 3 ? 0.01 : 0;
        plan.l1 = penalty && i % 3 > 1 ? 0.001 : 0;
        plan.seed = 50 + i;
        past = (history){0};
        reference_init(&expected, &plan);
        for (uint64_t step = 0; step < STEPS; step++) {
            reference_step(&expected, step);
            note_weights(&past, &expected, step + 1);
        }
        ps_job *job = job_open(plan);

        job->read = read_lists;
        job->read_arg = &past;
        job_run(job);
        job_compare(job, &expected); /* reading has changed nothing */
        job_close(job);
        assert_true(past.exact >= (unsigned)plan.shards);
        print_message("%u lists, %u too late\n", past.exact, past.passed);
    }
}

/* --- a job that goes on where another has ended --- */

static pace_status poll_all(void *user, bool *busy)
{
    ps_job *job = user;
    pace_status status = PACE_OK;

    for (int rank = 0; rank < job->size && !status; rank++)
        status = job_serve(&job->ranks[rank], busy);
    return status;
}

/* Between two runs of threads: this one does everyone's work. */
static void move_state(ps_job *job, float *parameters, bool store)
{
    pace__link *link = job->ranks[0].link;
    size_t floats = (size_t)job->plan.dim * plan_optim(&job->plan).width;

    pace__link_on_idle(link, poll_all, job);
    for (int shard = 0; shard < job->plan.shards; shard++) {
        pace__holder holder =
            pace__holder_of(job->plan.keys, (unsigned)job->plan.shards, (unsigned)shard, job->first_shard);

        if (store)
            assert_ok(pace__store_state(link, &holder, floats, parameters, &said_log));
        else
            assert_ok(pace__fetch_state(link, &holder, floats, parameters, &said_log));
    }
    pace__link_on_idle(link, job_serve, &job->ranks[0]);
}

/* On other shards, at other places; the same bits as without a break, also with penalties and a schedule. */
static void goes_on(const ps_plan *plan, int shards_after, bool on_workers_after)
{
    static float parameters[TOY_MAX * PACE__OPTIM_WIDTH_MAX];
    static reference expected;
    ps_plan begin = *plan, after = *plan;

    begin.all_steps = plan->steps;
    begin.steps = after.first_step = 7;
    after.shards = shards_after;
    after.on_workers = on_workers_after;
    ps_job *job = job_open(begin);

    job_run(job);
    move_state(job, parameters, false);
    job_close(job);
    job = job_open(after);
    move_state(job, parameters, true);
    job_run(job);
    reference_init(&expected, plan);
    for (uint64_t step = 0; step < plan->steps; step++)
        reference_step(&expected, step);
    job_compare(job, &expected);
    job_close(job);
}

static void a_job_goes_on(void **state)
{
    ps_plan plan = busy_plan;

    (void)state;
    plan.reader = false;
    plan.steps = 15;
    for (unsigned i = 0; i < 10; i++) {
        bool penalty = i < 5 || kinds[i % 5] == PACE_FTRL;

        plan.dim = i < 5 ? 1 : 3;
        plan.l1 = penalty ? 0.001 : 0;
        plan.l2 = penalty ? 0.02 : 0;
        plan.workers = 2 + (int)i % 2;
        plan.shards = 1 + (int)i % 3;
        plan.kind = kinds[i % 5];
        plan.seed = 300 + i;
        goes_on(&plan, 1 + (int)(i + 1) % 3, false);
        goes_on(&plan, plan.workers, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_go_out_and_back),  cmocka_unit_test(states_in_several_stretches),
        cmocka_unit_test(states_of_long_rows),     cmocka_unit_test(lists_of_exact_steps),
        cmocka_unit_test(lists_of_steps_at_least), cmocka_unit_test(lists_that_are_not_waited_for),
        cmocka_unit_test(short_and_long_lists),    cmocka_unit_test(reading_changes_nothing),
        cmocka_unit_test(requests_that_cannot_be), cmocka_unit_test(lists_are_told_then_asked_for),
        cmocka_unit_test(lists_while_training),    cmocka_unit_test(a_job_goes_on),
    };

    small_pages();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

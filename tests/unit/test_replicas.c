/* Replicas that workers, which are threads here, have trained apart and merged: behind a flush all of them are what the
 * owners' tables say, to the bit. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "localsgd/flush.h"

#include "links.h"

#include <math.h>
#include <stdlib.h>

#define IDS     700
#define FLUSHES 3
#define ROUNDS  3
#define ROWS    200 /* of a worker in a round */
#define ENTRIES 6   /* of a row */

/* What is merged, how, and what it came to. */
typedef struct merging {
    pace__optim optim;
    bool narrow;
    pace__logreg models[RANKS_MAX];
    pace__table tables[RANKS_MAX];
} merging;

static merging the;

/* --- a worker --- */

typedef struct worker {
    int rank, size;
    pace__logreg *model;
    pace__hot hot;
    pace__flush flush;
    pace__random random;
} worker;

/* Low keys occur more often than high ones; gradients of a key have a sign that they mostly have. */
static void train_row(worker *self, uint64_t row)
{
    const pace__optim *optim = &self->model->optim;

    for (int i = 0; i < ENTRIES; i++) {
        double x = pace__random_unit(&self->random);
        uint32_t key = (uint32_t)(x * x * x * IDS);
        float g = (float)(pace__random_unit(&self->random) - (key % 3 ? 0.3 : 0.7));

        pace__optim_catch_up(optim, pace__replica_at(self->model, key), row);
        pace__optim_update(optim, pace__replica_at(self->model, key), g);
    }
    pace__optim_update(optim, self->model->bias, (float)(pace__random_unit(&self->random) - 0.4));
}

/* Rows of a round that begins at `first`; what was merged of the one before is taken in the middle. */
static pace_status train_round(worker *self, uint64_t first)
{
    uint64_t begin = first + (uint64_t)(self->rank * ROWS), last = first + (uint64_t)(self->size * ROWS);
    pace__hot_word own = {.rows = ROWS}, all;
    pace_status status = PACE_OK;

    for (uint64_t row = begin; row < begin + ROWS && !status; row++) {
        if (row == begin + ROWS / 3)
            status = pace__hot_take(&self->hot, self->model, row, &all);
        train_row(self, row);
    }
    return status ? status : pace__hot_send(&self->hot, self->model, &the.optim, last, &own);
}

static pace_status merge_all(worker *self, uint64_t place)
{
    pace__hot_word all;
    bool ended;
    pace_status status = pace__hot_take(&self->hot, self->model, place, &all);

    if (status)
        return status;
    pace__flush_put(&self->flush, self->hot.keys, self->hot.count);
    status = pace__flush_collect(&self->flush, &the.optim, place, ROUNDS * ROWS);
    return status ? status : pace__flush_share(&self->flush, false, &ended);
}

/* Every fifth key is hot, and the bias. */
static pace_status open_worker(worker *self, pace__link *link)
{
    uint32_t keys[IDS + 1], count = 0;
    unsigned size = (unsigned)self->size, rank = (unsigned)self->rank;
    pace__table_plan plan = {
        .keys = IDS + 1, .dim = 1, .shard = rank, .shards = size, .optim = the.optim, .stats_first = IDS + 1};
    pace_status status = pace__logreg_init(self->model, IDS, 0, true, &the.optim, true, &said_log);

    for (uint32_t key = 0; key < IDS; key += 5)
        keys[count++] = key;
    keys[count++] = IDS;
    self->random = pace__random_at(7, rank);
    if (!status)
        status = pace__table_init(&the.tables[rank], &plan, &said_log);
    if (!status)
        status = pace__hot_open(&self->hot, link, size, keys, count, the.narrow, &said_log);
    if (!status)
        status = pace__flush_open(&self->flush, link, size, self->model, &the.tables[rank], 0, the.narrow,
                                  &said_log);
    return status;
}

static pace_status work(job *among, pace__link *link, int rank)
{
    worker self = {.rank = rank, .size = among->size, .model = &the.models[rank]};
    pace_status status = open_worker(&self, link);
    uint64_t place = 0;

    pace__hot_begin(&self.hot, self.model, 0);
    for (int flush = 0; flush < FLUSHES && !status; flush++) {
        for (int round = 0; round < ROUNDS && !status; round++) {
            status = train_round(&self, place);
            place += (uint64_t)(among->size * ROWS);
        }
        if (!status)
            status = merge_all(&self, place);
    }
    pace__flush_close(&self.flush);
    pace__hot_close(&self.hot);
    return status;
}

/* --- what it came to --- */

static const float *parameter_at(int rank, uint32_t key)
{
    return pace__replica_at(&the.models[rank], key);
}

/* The bias has no penalty, and nobody looks at its stamp. */
static size_t bytes_of(uint32_t key)
{
    return (the.optim.width - (the.optim.lazy && key == IDS)) * sizeof(float);
}

static void check_same(int size)
{
    for (uint32_t key = 0; key <= IDS; key++) {
        const pace__table *table = &the.tables[key % (uint32_t)size];
        const float *kept = table->records + key / (uint32_t)size * table->stride;

        for (int rank = 0; rank < size; rank++)
            assert_memory_equal(parameter_at(rank, key), kept, bytes_of(key));
    }
}

/* Weights behind the last flush. */
static void merge_replicas(pace__optim optim, bool narrow, int size, float weights[IDS + 1])
{
    the = (merging){.optim = optim, .narrow = narrow};
    run_well((job){.work = work}, size);
    check_same(size);
    for (uint32_t key = 0; key <= IDS; key++)
        weights[key] = parameter_at(0, key)[0];
    for (int rank = 0; rank < size; rank++) {
        pace__table_release(&the.tables[rank]);
        pace__logreg_release(&the.models[rank]);
    }
}

/* Their root mean square, and that of what lies between them. */
static void compare(const float *wide, const float *narrow, double *size, double *apart)
{
    double square = 0, difference = 0;

    for (uint32_t key = 0; key <= IDS; key++) {
        square += (double)wide[key] * (double)wide[key];
        difference += pow((double)wide[key] - (double)narrow[key], 2);
    }
    *size = sqrt(square / (IDS + 1));
    *apart = sqrt(difference / (IDS + 1));
}

static void check_rule(pace__optim optim)
{
    static const int sizes[] = {2, 3, 5};

    if (optim.kind == PACE_SGD)
        pace__optim_keep_squares(&optim, 1);
    for (size_t i = 0; i < 3; i++) {
        float wide[IDS + 1], narrow[IDS + 1];
        double size, apart;

        merge_replicas(optim, false, sizes[i], wide);
        merge_replicas(optim, true, sizes[i], narrow);
        compare(wide, narrow, &size, &apart);
        assert_true(apart > 0 && apart < 0.005 * size);
    }
}

static void replicas_are_what_tables_say(void **state)
{
    (void)state;
    check_rule(pace__optim_make(PACE_ADAGRAD, 0.05, 0, 0, 0));
    check_rule(pace__optim_make(PACE_FTRL, 0.05, 0, 0.1, 0.1));
    check_rule(pace__optim_make(PACE_SGD, 0.02, 0, 0, 0));
}

static void and_so_they_are_with_penalties(void **state)
{
    (void)state;
    check_rule(pace__optim_make(PACE_ADAGRAD, 0.05, 0, 1e-3, 1e-3));
    check_rule(pace__optim_make(PACE_SGD, 0.02, 0, 1e-4, 1e-3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_are_what_tables_say),
        cmocka_unit_test(and_so_they_are_with_penalties),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

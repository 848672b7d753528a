#include "forecast/sample.h"

#include "base/clock.h"
#include "data/store/slice.h"

#include <math.h>
#include <paceline/kernels.h>
#include <stdlib.h>

/* Rows whose keys are counted, and that are computed, for about so long. */
#define SAMPLE_ROWS    16384
#define SAMPLE_ENTRIES (1 << 20) /* fewer rows where they are long: memory of the chief's machine */
#define KEYS_EVERY     4         /* times as many rows from one point of the curve to the next */
#define GRADIENT_NS    2e7
#define GRADIENT_FIRST 8
#define FEWER_ROWS     8
#define REPEATS        4
#define LONG_NS        1e8       /* what warms up is timing enough */
#define PATIENCE_NS    500000000 /* of a disk that is slow: nothing is said then */
/* What weights are like: nothing that is summed becomes too large, or is left out for being 0. */
#define WEIGHT 0.01f
/* --- what a row takes --- */

typedef struct sample {
    const pace__job *job;
    pace__slice slice;
    pace__model *model;
    pace__model_batch batch;
    float *weights, *sums;
    pace__workload *work; /* what is found */
    uint64_t read_ns;
} sample;

static pace_status read_rows(sample *self, uint64_t first, uint64_t rows)
{
    uint64_t begin_ns = pace__now_ns();
    pace_status status = pace__slice_read(&self->slice, first, rows);

    self->read_ns += pace__now_ns() - begin_ns;
    return self->read_ns > PATIENCE_NS ? PACE_FAILED : status;
}

static pace_status find(sample *self, uint64_t first, uint64_t rows)
{
    pace_status status = read_rows(self, first, rows);

    return status ? status : pace__model_find(self->model, &self->slice.rows, first, &self->batch);
}

/* Keys of ever more rows, the last of them all: how their number grows. */
static pace_status count_keys(sample *self, uint64_t rows)
{
    pace__workload *work = self->work;
    uint64_t some = rows;

    while (some >= KEYS_EVERY && work->points + 1 < PACE__KEY_POINTS) {
        work->points++;
        some /= KEYS_EVERY;
    }
    work->points++;
    for (size_t i = 0; i < work->points; i++) {
        uint64_t count = i + 1 == work->points ? rows : some;
        pace_status status = find(self, 0, count);

        if (status)
            return status;
        work->curve[i] = (pace__key_point){(double)count, self->batch.sparse};
        some *= KEYS_EVERY;
    }
    return PACE_OK;
}

static pace_status take_room(sample *self)
{
    size_t floats = ((size_t)self->batch.keys.count + 1) * self->job->plan.model.shape.dim;

    free(self->weights);
    free(self->sums);
    self->weights = malloc(floats * sizeof(float));
    self->sums = malloc(floats * sizeof(float));
    if (!self->weights || !self->sums)
        return PACE_FAILED;
    for (size_t i = 0; i < floats; i++) { /* neither is touched for the first time while time is taken */
        self->weights[i] = WEIGHT;
        self->sums[i] = 0;
    }
    return PACE_OK;
}

/* The gradient of some rows, and its time with that of finding their keys. */
static pace_status compute(sample *self, uint64_t first, uint64_t rows, double *ns)
{
    pace_status status = read_rows(self, first, rows);
    uint64_t begin = pace__busy_ns(); /* others may be on this core */

    if (!status)
        status = pace__model_find(self->model, &self->slice.rows, first, &self->batch);
    *ns = (double)(pace__busy_ns() - begin);
    if (!status)
        status = take_room(self);
    pace__task task = {.batch = &self->batch,
                       .place = first,
                       .weights = self->weights,
                       .sums = self->sums,
                       .step_rows = rows};

    begin = pace__busy_ns();
    if (!status)
        status = pace__model_gradient(self->model, &task);
    *ns += (double)(pace__busy_ns() - begin);
    return status;
}

/* What a step takes whatever its rows, and what each of them adds: by as many, and by an eighth of them. Of clicks nothing is
 * fixed that could be told from what caches do. */
static pace_status split_fixed(sample *self, uint64_t rows, double ns)
{
    uint64_t few = rows / FEWER_ROWS;
    double few_ns;
    pace_status status = few ? compute(self, 0, few, &few_ns) : PACE_OK;

    self->work->row_ns = ns / (double)rows;
    if (status || !few || self->job->plan.model.shape.dense_rows <= 1)
        return status;
    double row_ns = (ns - few_ns) / (double)(rows - few);

    if (row_ns > 0 && row_ns < self->work->row_ns) {
        self->work->row_ns = row_ns;
        self->work->fixed_ns = ns - row_ns * (double)rows;
    }
    return PACE_OK;
}

/* More rows, until they take long enough to be timed. The first time is that of memory that nobody has touched, which counts
 * for nothing where it is long: rows of large networks are not computed twice. */
static pace_status time_rows(sample *self, uint64_t most)
{
    uint64_t rows = most < GRADIENT_FIRST ? most : GRADIENT_FIRST, epoch = self->job->plan.order.rows;
    double ns;
    pace_status status = compute(self, 0, rows, &ns);

    while (!status && ns < LONG_NS) {
        status = compute(self, most + rows <= epoch ? most : 0, rows, &ns);
        if (status || ns > GRADIENT_NS || rows == most)
            break;
        rows = 4 * rows < most ? 4 * rows : most;
        status = compute(self, 0, rows, &ns);
    }
    for (int i = 0; i < REPEATS && !status && ns < GRADIENT_NS; i++) { /* others disturb what is short */
        double again_ns;

        status = compute(self, 0, rows, &again_ns);
        ns = again_ns < ns ? again_ns : ns;
    }
    return status ? status : split_fixed(self, rows, ns);
}

/* Clicks are sampled by more rows than a step may have: few of them would be timed with cold caches. */
static uint64_t rows_wanted(const pace__job_plan *plan, uint64_t network_rows)
{
    bool is_network = plan->model.shape.dense_rows > 1;
    uint64_t most = !is_network ? SAMPLE_ROWS : plan->rows_max < network_rows ? plan->rows_max : network_rows;
    uint64_t of_row = plan->model.data.entries / plan->model.data.rows + 1, fit = SAMPLE_ENTRIES / of_row + 1;

    if (!is_network && fit < most)
        most = fit;
    return most < plan->order.rows ? most : plan->order.rows;
}

bool pace__sample_rows(const pace__job *job, uint64_t network_rows, pace__workload *work)
{
    sample self = {.job = job, .work = work};
    bool has_keys = job->plan.model.shape.keys > job->plan.model.shape.dense_rows;
    uint64_t rows = rows_wanted(&job->plan, network_rows);
    pace_status status =
        pace__slice_init(&self.slice, &job->store, PACE__TRAIN, job->config->seed, rows, NULL);

    if (!status)
        status = pace__model_create(&job->plan.model, rows, 1, false, NULL, &self.model);
    if (!status && has_keys)
        status = count_keys(&self, rows);
    if (!status)
        status = time_rows(&self, rows);
    free(self.weights);
    free(self.sums);
    pace__model_batch_release(&self.batch);
    pace__model_free(self.model);
    pace__slice_release(&self.slice);
    return !status;
}

pace__workload pace__workload_of(const pace__job *job)
{
    const pace__job_plan *plan = &job->plan;
    const pace__dataset *data = &plan->model.data;
    const pace__shape *shape = &plan->model.shape;

    return (pace__workload){.order = plan->order,
                            .steps = plan->steps,
                            .exchange = (uint64_t)job->config->cluster.exchange,
                            .entries = (double)data->entries / (double)data->rows,
                            .by_columns = plan->model.kind->by_columns && data->kind == PACE__ROWS_SPARSE,
                            .flows = plan->model.kind->by_columns,
                            .one_thread = plan->model.kind->one_thread,
                            .penalised = plan->model.optim.lazy,
                            .keys_all = (double)(shape->keys - shape->dense_rows),
                            .dim = shape->dim,
                            .dense = (double)shape->dense,
                            .state = plan->model.optim.width - 1,
                            .pools = plan->model.pools};
}

/* What the block rule has vector kernels for (model/linear/logreg.c). */
pace__unit_costs pace__job_costs(const pace__job *job)
{
    const pace__dataset *data = &job->plan.model.data;
    bool fast = job->plan.model.optim.kind == PACE_ADAGRAD && data->columns > 0 && !data->has_values;

    return pace__unit_costs_of(fast ? pace_kernels_in_use() : PACE_KERNELS_PLAIN);
}

pace__setup pace__setup_of(const pace__job_plan *plan, int hosts)
{
    return (pace__setup){.mode = plan->mode,
                         .workers = plan->slices, /* who is spare computes nothing */
                         .ps = plan->cluster.ps,
                         .hosts = hosts,
                         .threads = plan->threads,
                         .batch = plan->order.batch,
                         .steps = plan->steps,
                         .exact = plan->exact,
                         .narrow = plan->narrow};
}

/* What a job of several processes is expected to reach, beside one machine alone: said before it starts. */
#include "base/cpu.h"
#include "data/store/slice.h"
#include "job/forecast.h"
#include "job/job.h"
#include "options/internal.h"
#include "threads/thread.h"
#include "watch/quota.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Rows whose keys are counted, and that are computed, for about so long. Fewer of networks: a text takes a thousand times as
 * long as a line of clicks. */
#define SAMPLE_ROWS    4096
#define SAMPLE_ENTRIES (1 << 20) /* fewer rows where they are long: memory of the chief's machine */
#define NETWORK_ROWS   32
#define GRADIENT_NS    2e7
#define GRADIENT_FIRST 8
#define PATIENCE_NS    500000000 /* of a disk that is slow: nothing is said then */
/* What weights are like: nothing that is summed becomes too large, or is left out for being 0. */
#define WEIGHT 0.01f
/* Between machines, if nobody says how fast they are connected. */
#define LINK_BYTES_S 125e6
#define LATENCY_S    60e-6
/* Where workers that merge do not lose accuracy (describe.c says so where they do). */
#define MERGED_ROWS_MIN    50000
#define MERGED_ENTRIES_MAX 128
#define BLOCK_BATCH        512

/* --- what a row takes --- */

typedef struct sample {
    const pace__job *job;
    pace__slice slice;
    pace__model *model;
    pace__model_batch batch;
    float *weights, *sums;
    pace__workload *work; /* what is found */
    uint64_t read_ns;
    bool taken;
} sample;

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* others may be on this core */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* What fails here fails in silence, since a forecast is nothing that a job ends for: it meets what is damaged by itself, and
 * says where. */
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

/* Keys that a quarter of the rows and all of them need: how their number grows. */
static pace_status count_keys(sample *self, uint64_t rows)
{
    pace__workload *work = self->work;
    uint64_t quarter = (rows + 3) / 4;
    pace_status status = find(self, 0, quarter);
    double before = self->batch.sparse;

    if (!status)
        status = find(self, 0, rows);
    if (status || self->batch.sparse == 0)
        return status;
    work->keys = self->batch.sparse;
    work->at_rows = (double)rows;
    work->power =
        rows > quarter && before > 0 ? log(work->keys / before) / log((double)rows / (double)quarter) : 1;
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
    double begin = cpu_ns();

    if (!status)
        status = pace__model_find(self->model, &self->slice.rows, first, &self->batch);
    *ns = cpu_ns() - begin;
    if (!status)
        status = take_room(self);
    pace__task task = {.batch = &self->batch,
                       .place = first,
                       .weights = self->weights,
                       .sums = self->sums,
                       .step_rows = rows};

    begin = cpu_ns();
    if (!status)
        status = pace__model_gradient(self->model, &task);
    *ns += cpu_ns() - begin;
    return status;
}

/* More rows, until they take long enough to be timed; the first time is that of memory that nobody has touched. */
static pace_status time_rows(sample *self, uint64_t most)
{
    uint64_t rows = most < GRADIENT_FIRST ? most : GRADIENT_FIRST, epoch = self->job->plan.order.rows;
    double ns;
    pace_status status = compute(self, 0, most, &ns);

    while (!status) {
        status = compute(self, most + rows <= epoch ? most : 0, rows, &ns);
        if (ns > GRADIENT_NS || rows == most)
            break;
        rows = 4 * rows < most ? 4 * rows : most;
    }
    self->work->row_ns = ns / (double)rows;
    return status;
}

/* Clicks are sampled by more rows than a step may have: few of them would be timed with cold caches. */
static uint64_t sample_rows(const pace__job_plan *plan)
{
    bool is_network = plan->model.shape.dense_rows > 1;
    uint64_t most = !is_network ? SAMPLE_ROWS : plan->rows_max < NETWORK_ROWS ? plan->rows_max : NETWORK_ROWS;
    uint64_t of_row = plan->model.data.entries / plan->model.data.rows + 1, fit = SAMPLE_ENTRIES / of_row + 1;

    if (!is_network && fit < most)
        most = fit;
    return most < plan->order.rows ? most : plan->order.rows;
}

static pace_status take_sample(void *user)
{
    sample *self = user;
    const pace__job *job = self->job;
    bool has_keys = job->plan.model.shape.keys > job->plan.model.shape.dense_rows;
    uint64_t rows = sample_rows(&job->plan);
    pace_status status =
        pace__slice_init(&self->slice, &job->store, PACE__TRAIN, job->config->seed, rows, NULL);

    if (!status)
        status = pace__model_create(&job->plan.model, rows, 1, false, NULL, &self->model);
    if (!status && has_keys)
        status = count_keys(self, rows);
    if (!status)
        status = time_rows(self, rows);
    free(self->weights);
    free(self->sums);
    pace__model_batch_release(&self->batch);
    pace__model_free(self->model);
    pace__slice_release(&self->slice);
    self->taken = !status;
    return PACE_OK;
}

static pace__workload workload_of(const pace__job *job)
{
    const pace__job_plan *plan = &job->plan;
    const pace__dataset *data = &plan->model.data;
    const pace__shape *shape = &plan->model.shape;

    return (pace__workload){.order = plan->order,
                            .steps = plan->steps,
                            .exchange = (uint64_t)job->config->cluster.exchange,
                            .entries = (double)data->entries / (double)data->rows,
                            .by_columns = plan->model.kind->by_columns && data->kind == PACE__ROWS_SPARSE,
                            .one_thread = plan->model.kind->one_thread,
                            .penalised = plan->model.optim.lazy,
                            .keys_all = (double)(shape->keys - shape->dense_rows),
                            .dim = shape->dim,
                            .dense = (double)shape->dense,
                            .state = plan->model.optim.width - 1};
}

/* --- what is compared --- */

typedef struct choice {
    pace__setup setup;
    double rows_s;
} choice;

static choice judge(const pace__forecast_input *input, pace__setup setup)
{
    return (choice){setup, pace__forecast_of(input, &setup).rows_s};
}

static choice better(choice left, choice right)
{
    return right.rows_s > left.rows_s ? right : left;
}

static pace__setup setup_of(const pace__job *job, int hosts)
{
    const pace__job_plan *plan = &job->plan;

    return (pace__setup){.mode = plan->mode,
                         .workers = plan->cluster.workers,
                         .ps = plan->cluster.ps,
                         .hosts = hosts,
                         .threads = plan->threads,
                         .batch = plan->order.batch,
                         .exact = plan->exact,
                         .narrow = plan->narrow};
}

/* The block rule takes the place of steps that nobody has asked for as such. */
static void take_block_rule(const pace__job *job, pace__setup *setup)
{
    setup->exact = job->config->optimiser.exact;
    if (!setup->exact && setup->batch > BLOCK_BATCH)
        setup->batch = BLOCK_BATCH;
}

static choice alone(const pace__job *job, const pace__forecast_input *input, pace__setup setup)
{
    setup.mode = PACE_MODE_LOCAL;
    setup.workers = setup.hosts = 1;
    setup.ps = 0;
    setup.threads = pace__cores();
    if (input->work.by_columns)
        take_block_rule(job, &setup);
    return judge(input, setup);
}

static bool may_merge(const pace__job *job, const pace__forecast_input *input)
{
    const pace_train_optimiser *rule = &job->config->optimiser;

    return input->work.by_columns && !rule->exact && rule->rule != PACE_MOMENTUM && rule->rule != PACE_ADAM &&
           !job->plan.cluster.evaluator && job->plan.cluster.workers > 1 &&
           job->plan.order.rows / (uint64_t)job->plan.cluster.workers >= MERGED_ROWS_MIN &&
           input->work.entries <= MERGED_ENTRIES_MAX;
}

/* The fastest of what the same workers could do as well; asynchronous modes are nothing to be proposed unasked. */
static choice best_of_all(const pace__job *job, const pace__forecast_input *input, pace__setup setup)
{
    choice best = alone(job, input, setup);

    if (setup.workers > 1) {
        setup.mode = PACE_MODE_ALLREDUCE;
        setup.ps = 0;
        setup.exact = true;
        best = better(best, judge(input, setup));
        setup.mode = PACE_MODE_PS_SYNC;
        best = better(best, judge(input, setup));
    }
    if (may_merge(job, input)) {
        setup.mode = PACE_MODE_LOCAL_SGD;
        take_block_rule(job, &setup);
        best = better(best, judge(input, setup));
    }
    return best;
}

/* --- words --- */

#define WORDS 160

/* Options to be pasted in the place of those that were given. */
static const char *option_words(const pace__job *job, const pace__setup *setup, char text[WORDS])
{
    char mode[PACE_OPTION_NAME_MAX], workers[32] = "", batch[32] = "";

    pace__choice_word(pace__mode_names, setup->mode, mode);
    if (setup->mode != PACE_MODE_LOCAL)
        snprintf(workers, sizeof workers, " --workers %d", setup->workers);
    if (setup->batch != job->plan.order.batch)
        snprintf(batch, sizeof batch, " --batch %llu", (unsigned long long)setup->batch);
    snprintf(text, WORDS, "--mode %s%s%s", mode, workers, batch);
    return text;
}

/* What was assumed of machines: a quota is nothing that users see elsewhere. */
static const char *where_words(const pace__forecast_input *input, int hosts, char text[WORDS])
{
    char quota[64] = "";

    text[0] = '\0';
    if (input->machine.cores < pace__cores())
        snprintf(quota, sizeof quota, "a quota of %.2g cores", input->machine.cores);
    if (hosts > 1)
        snprintf(text, WORDS, " (%d machines%s%s, 1 Gbit/s assumed)", hosts, quota[0] ? ", each with " : "",
                 quota);
    else if (quota[0])
        snprintf(text, WORDS, " (%s)", quota);
    return text;
}

/* What is lost is more than a moment. */
static bool is_worth_a_warning(const pace__job *job, double rows_s, double alone_rows_s)
{
    double rows = (double)pace__steps_rows_before(&job->plan.order, job->plan.steps);

    return rows / rows_s - rows / alone_rows_s > 1;
}

static void say(const pace__job *job, const pace__forecast_input *input, int hosts)
{
    choice own = judge(input, setup_of(job, hosts)), one = alone(job, input, own.setup);
    choice best = best_of_all(job, input, own.setup);
    char here[PACE__RATE_TEXT], there[PACE__RATE_TEXT], most[PACE__RATE_TEXT];
    char options[WORDS], others[WORDS], where[WORDS], faster[3 * WORDS] = "";

    where_words(input, hosts, where);
    pace__rate_words(own.rows_s, here);
    pace__rate_words(one.rows_s, there);
    option_words(job, &one.setup, options);
    if (!pace__forecast_is_slower(own.rows_s, one.rows_s)) {
        pace_say(job->log, PACE_INFO, "expected: about %s rows/s%s; one machine alone (%s) about %s", here,
                 where, options, there);
        return;
    }
    if (best.setup.mode != PACE_MODE_LOCAL && pace__forecast_is_slower(one.rows_s, best.rows_s))
        snprintf(faster, sizeof faster, "; %s: about %s", option_words(job, &best.setup, others),
                 pace__rate_words(best.rows_s, most));
    pace_say(job->log, is_worth_a_warning(job, own.rows_s, one.rows_s) ? PACE_WARN : PACE_INFO,
             "expected to be slower than one machine alone: about %s rows/s%s; %s: about %s%s", here, where,
             options, there, faster);
}

/* What the block rule has vector kernels for (model/linear/logreg.c). */
static pace__unit_costs costs_of(const pace__job *job)
{
    const pace__dataset *data = &job->plan.model.data;
    bool fast = job->plan.model.optim.kind == PACE_ADAGRAD && data->columns > 0 && !data->has_values;

    return pace__unit_costs_of(fast ? pace_kernels_in_use() : PACE_KERNELS_PLAIN);
}

pace_status pace__job_say_expected(pace__job *job, int hosts)
{
    pace__forecast_input input = {.work = workload_of(job),
                                  .machine = {.cores = fmin(pace__cores(), pace__quota_cores()),
                                              .link_bytes_s = LINK_BYTES_S,
                                              .latency_s = LATENCY_S},
                                  .costs = costs_of(job)};
    sample rows = {.job = job, .work = &input.work};
    pace_status status = pace__job_aside(job, "timing some rows", take_sample, &rows);

    if (!status && rows.taken)
        say(job, &input, hosts);
    return status;
}

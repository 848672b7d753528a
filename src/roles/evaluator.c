/*
 * The evaluator: scores the model on the validation rows (without any, the test rows) while the workers go on, and
 * at the end on both.
 *
 * It names the parameters that occur in those rows once, to every holder, and then asks for their weights as
 * they are after a certain step. Holders copy them when they come by that step; nobody waits for the
 * evaluator. If it was too slow and the step has passed, it takes the next one and counts what it left out.
 * The final state is always scored.
 *
 *     asking   -> awaiting     every holder was asked for the weights after `target`
 *     awaiting -> scoring      all have answered, and had that step
 *     awaiting -> asking       the step had passed on some: it is skipped, and the next target lies behind the furthest
 *     scoring  -> asking       the scores are sent; the next target lies behind what was scored
 *     any      -> ended        the last state is scored; or the chief has ended the job, which is looked for in every
 *                              wait and between pieces of rows
 *
 * 1. All holders are asked together, and every ask is answered before the next, also when the job has ended.
 * 2. Targets rise, up to the last step. Nobody goes past that: it is never skipped.
 * 3. Every target is scored or counted in `skipped`.
 * 4. `ended` is never taken back, and no scores are sent behind it.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "data/store/reader.h"
#include "data/store/slice.h"
#include "metrics/scoring.h"
#include "ranks/aside.h"
#include "roles/process.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define READ_ROWS PACE__PIECE_ROWS

typedef struct evaluator {
    pace__process *process;
    pace__job *job;
    pace__metrics *metrics;
    unsigned holders;
    pace__fetch_list *lists; /* (holders) */
    uint32_t **places;       /* (holders) what each list holds */
    uint32_t *counts;
    pace__model *model;
    float *weights; /* (keys + 1, dim) */
    uint64_t skipped;
    bool slow;  /* the disk, when it was last asked for rows */
    bool ended; /* the job: nobody wants scores any more */
} evaluator;

static size_t weights_bytes(const evaluator *self)
{
    return ((size_t)self->job->plan.model.shape.keys + 1) * self->job->plan.model.shape.dim *
           sizeof *self->weights;
}

/* --- which parameters --- */

static void add_key(evaluator *self, uint8_t *known, uint32_t key)
{
    unsigned holder = key % self->holders;

    if (known[key])
        return;
    known[key] = 1;
    self->places[holder][self->counts[holder]++] = key / self->holders;
}

/* Rows from a disk that may be slow. */
static pace_status read_aside(void *model, pace_status (*read)(void *user), void *user)
{
    evaluator *self = model;
    uint64_t start_ns = pace__now_ns();
    pace_status status =
        pace__rank_aside_if(&self->process->self, &self->slow, "reading rows to score", read, user);

    self->process->times.data_ns += pace__now_ns() - start_ns;
    return status;
}

typedef struct stretch {
    pace__slice *slice;
    uint64_t first, count;
} stretch;

static pace_status read_stretch(void *user)
{
    const stretch *self = user;

    return pace__slice_read(self->slice, self->first, self->count);
}

/* Of the rows of a set. */
static pace_status find_keys_in(evaluator *self, int set, uint8_t *known)
{
    const pace__store *store = &self->job->store;
    uint64_t rows = store->info.rows[set];
    pace__slice slice = {0};
    pace__model_batch batch = {0};
    pace_status status = pace__slice_init(&slice, store, set, 0, READ_ROWS, self->job->log);

    for (uint64_t first = 0; first < rows && !status; first += READ_ROWS) {
        uint64_t count = rows - first < READ_ROWS ? rows - first : READ_ROWS;

        status = read_aside(self, read_stretch, &(stretch){&slice, first, count});
        if (!status)
            status = pace__model_find(self->model, &slice.rows, PACE__NO_PLACE, &batch);
        for (uint32_t i = 0; !status && i < batch.keys.count; i++)
            add_key(self, known, batch.keys.keys[i]);
        if (!status)
            status = pace__link_pulse(self->process->self.link);
    }
    pace__model_batch_release(&batch);
    pace__slice_release(&slice);
    return status;
}

static pace_status find_keys(evaluator *self, uint8_t *known)
{
    const pace__shape *shape = &self->job->plan.model.shape;
    pace_status status = PACE_OK;

    if (shape->keys == shape->dense_rows) { /* every row needs all of them */
        for (uint32_t key = 0; key < shape->keys; key++)
            add_key(self, known, key);
        return PACE_OK;
    }
    for (int set = PACE__TEST; set < PACE__SETS && !status; set++) {
        if (self->job->store.info.rows[set] > 0)
            status = find_keys_in(self, set, known);
    }
    return status;
}

static pace_status open_lists(evaluator *self)
{
    pace__process *process = self->process;
    size_t keys = (size_t)self->job->plan.model.shape.keys, room = keys / self->holders + 1;
    uint8_t *known = pace__pages_alloc(keys);
    pace_status status = known ? PACE_OK : pace_fail(self->job->log, PACE_FAILED, "out of memory");

    for (unsigned i = 0; i < self->holders && !status; i++) {
        self->places[i] = pace__pages_alloc(room * sizeof(uint32_t));
        if (!self->places[i])
            status = pace_fail(self->job->log, PACE_FAILED, "out of memory");
    }
    if (!status)
        status = find_keys(self, known);
    for (unsigned i = 0; i < self->holders && !status; i++) {
        pace__holder holder = pace__plan_holder(&process->job->plan, i);

        status = pace__fetch_list_init(&self->lists[i], process->self.link, &holder, self->places[i],
                                       self->counts[i], self->job->plan.model.shape.dim, self->job->log);
    }
    pace__pages_free(known, keys);
    return status;
}

/* --- life --- */

static pace_status open_evaluator(evaluator *self)
{
    self->holders = pace__plan_holders(&self->process->job->plan);
    assert(self->holders >= 1);
    self->lists = calloc(self->holders, sizeof *self->lists);
    self->places = calloc(self->holders, sizeof *self->places);
    self->counts = calloc(self->holders, sizeof *self->counts);
    self->weights = pace__pages_alloc(weights_bytes(self));
    if (!self->lists || !self->places || !self->counts || !self->weights)
        return pace_fail(self->job->log, PACE_FAILED, "out of memory");
    pace_status status =
        pace__scoring_metrics(self->job->plan.model.shape.outputs, self->job->log, &self->metrics);

    if (!status)
        status = pace__job_create_scorer(self->job, &self->model);
    return status ? status : open_lists(self);
}

static void close_evaluator(evaluator *self)
{
    size_t room = (size_t)self->job->plan.model.shape.keys / self->holders + 1;

    for (unsigned i = 0; i < self->holders; i++) {
        if (self->lists)
            pace__fetch_list_release(&self->lists[i], self->process->self.link);
        if (self->places)
            pace__pages_free(self->places[i], room * sizeof(uint32_t));
    }
    pace__metrics_free(self->metrics);
    pace__model_free(self->model);
    pace__pages_free(self->weights, weights_bytes(self));
    free(self->counts);
    free(self->places);
    free(self->lists);
}

/* --- the weights after a step --- */

static pace_status ask_all(evaluator *self, uint64_t step)
{
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < self->holders && !status; i++)
        status = pace__fetch_list_ask(&self->lists[i], self->process->self.link, step);
    return status;
}

/* Has the chief ended the job? */
static pace_status look_for_end(evaluator *self)
{
    return self->ended ? PACE_OK
                       : pace__link_done(self->process->self.link, &self->process->end_receive, &self->ended);
}

static pace_status await_one(evaluator *self, pace__fetch_list *list)
{
    pace__link *link = self->process->self.link;
    bool answered = false, stopped = false;
    unsigned turns = 0;

    for (;;) {
        pace_status status = pace__fetch_list_poll(list, link, &answered, self->job->log);

        if (status || answered)
            return status;
        status = look_for_end(self);
        if (!status && self->ended && !stopped) {
            stopped = true;
            status = pace__fetch_list_stop(list, link);
        }
        if (!status)
            status = pace__link_turn(link, &list->holder.rank, 1, "its weights", &turns);
        if (status)
            return status;
    }
}

/* Every ask is answered, also when the job has ended meanwhile: nobody is left with a message to send. */
static pace_status await_all(evaluator *self)
{
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < self->holders && !status; i++)
        status = await_one(self, &self->lists[i]);
    return status;
}

/* True if every holder had the step; *newest is where the furthest of them stands. */
static bool have_all(const evaluator *self, uint64_t *newest)
{
    bool all = true;

    *newest = 0;
    for (unsigned i = 0; i < self->holders; i++) {
        all &= !self->lists[i].passed;
        *newest = self->lists[i].step > *newest ? self->lists[i].step : *newest;
    }
    return all;
}

static void take_weights(evaluator *self)
{
    size_t dim = self->job->plan.model.shape.dim;
    PACE__SPAN("take weights");

    for (unsigned holder = 0; holder < self->holders; holder++) {
        for (uint32_t i = 0; i < self->counts[holder]; i++) {
            size_t key = (size_t)self->places[holder][i] * self->holders + holder;

            memcpy(self->weights + key * dim, self->lists[holder].weights + i * dim, dim * sizeof(float));
        }
    }
    pace__model_use(self->model, self->weights);
}

/* --- scoring --- */

/* Once the job has ended, nobody wants what comes out of the rows that are left. */
static pace_status logits_of(void *model, const pace__rows *rows, float *logits)
{
    evaluator *self = model;
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_OK;

    PACE__SPAN("logits");
    pace__faults_at(&self->job->faults, PACE__AT_EVAL, self->process->self.step);
    if (self->ended)
        memset(logits, 0, rows->rows * self->job->plan.model.shape.outputs * sizeof *logits);
    else
        status = pace__model_logits(self->model, rows, logits);
    pace__faults_drag(&self->job->faults, self->process->self.step, pace__now_ns() - start_ns);
    self->process->times.compute_ns += pace__now_ns() - start_ns;
    if (!status)
        status = pace__process_sample(self->process);
    if (!pace__link_pulse(self->process->self.link)) /* what these fail with comes again in the next wait */
        look_for_end(self);
    return status;
}

static pace_status score_set(evaluator *self, int set, bool final, pace__scored *verdict)
{
    pace__job *job = self->job;
    bool shown = final && set == PACE__TEST;
    pace__scoring scoring = {&job->store,
                             set,
                             final ? 0 : (uint64_t)job->config->records.eval_rows,
                             logits_of,
                             self,
                             self->metrics,
                             .outputs = job->plan.model.shape.outputs,
                             .aside = read_aside,
                             .mistake = shown && pace__job_shows_mistakes(job) ? pace__worst_add : NULL,
                             .user = &verdict->worst};

    PACE__SPAN("score");
    pace_status status = pace__score_set(&scoring, job->log, NULL, &verdict->scores[set]);

    if (!status && !self->ended && shown)
        pace__metrics_curves(self->metrics, &verdict->curves);
    return status;
}

static pace_status score(evaluator *self, uint64_t step, bool final)
{
    const pace__job *job = self->job;
    int judged = pace__job_judged(job);
    pace__scored verdict = {.step = step, .skipped = self->skipped, .final = final};
    pace__request send = {0};
    pace_status status = score_set(self, judged, final, &verdict);

    if (!status && final && judged != PACE__TEST && job->store.info.rows[PACE__TEST] > 0)
        status = score_set(self, PACE__TEST, final, &verdict);
    if (status || self->ended) /* invariant 4 */
        return status;
    pace__link_send(self->process->self.link, 0, PACE__TAG_SCORES, &verdict, sizeof verdict, &send);
    return pace__link_wait(self->process->self.link, &send, "scores to leave");
}

/* The first step behind `step` that is to be scored. */
static uint64_t next_target(const pace__job *job, uint64_t step)
{
    uint64_t every = (uint64_t)job->config->records.eval_every,
             next = every ? (step / every + 1) * every : job->plan.steps;

    return next < job->plan.steps ? next : job->plan.steps;
}

static pace_status run(evaluator *self)
{
    pace__job *job = self->job;
    uint64_t every = (uint64_t)job->config->records.eval_every, target = next_target(job, job->position.step),
             newest;

    if (pace__job_is_over(job))
        target = job->plan.steps;
    for (;;) {
        assert(target <= job->plan.steps);
        pace__rank_set_step(&self->process->self, target);
        pace__faults_at(&job->faults, PACE__AT_STEP, target);
        pace_status status = ask_all(self, target);

        if (!status)
            status = await_all(self);
        if (status || self->ended)
            return status;
        bool all = have_all(self, &newest), final = target == job->plan.steps;

        if (!all && final) /* invariant 2 */
            return pace_fail(job->log, PACE_BUG, "the last step has passed before it was scored");
        if (all) {
            take_weights(self);
            status = score(self, final ? target : newest, final); /* async: as far as it had come */
        } else {
            self->skipped++;
        }
        if (status || (all && final))
            return status;
        uint64_t next = next_target(job, newest > target ? newest : target);

        assert(next > target); /* invariant 2; and what lies between is skipped: 3 */
        if (every)
            self->skipped += (next - target - 1) / every;
        target = next;
    }
}

pace_status pace__evaluator_run(pace__process *process)
{
    evaluator self = {.process = process, .job = process->job, .slow = true};

    if (!pace__plan_scores(&self.job->plan))
        return PACE_OK;
    pace_status status = open_evaluator(&self);

    if (!status)
        status = run(&self);
    if (status)
        pace__process_fail(process, status);
    close_evaluator(&self);
    return status;
}

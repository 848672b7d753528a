/*
 * A batch goes through
 *
 *     free     -> reading     its rows were taken, and a thread reads ahead (take)
 *     free     -> prepared    its rows were taken, read, and their keys found (take)
 *     reading  -> prepared    the thread has done so (poll)
 *     prepared -> asked       its keys were sent to the shards (worker.c)
 *     asked    -> ready       the weights have come (worker.c)
 *     prepared -> ready       allreduce: they were read from the replica (worker.c)
 *     ready    -> free        computed and pushed (leave)
 *     any      -> free        the job ends, or others were faster (drop)
 *
 * 1. batches[front], the next and so on, `held` of them and at most depth + 1, are the line, in the order in which
 *    their rows were taken; the others are free.
 * 2. No batch is further than the one before it: asks and answers go in the order of the line.
 * 3. One is being read at most, and it is the last in line. It belongs to the thread until that is idle, also when the
 *    line was dropped: nothing is taken before it is idle, and close waits for the thread.
 * 4. The log belongs to the worker's thread: what reading has to say is kept in the batch, and said when it is taken
 *    back.
 */
#include "roles/batches.h"

#include "base/clock.h"
#include "base/memory.h"
#include "ranks/aside.h"
#include "shares/deal.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>

/* --- life --- */

static size_t work_bytes(const pace__job *job)
{
    return (job->plan.keys_max + 1) * job->plan.model.shape.dim * sizeof(float);
}

static size_t order_bytes(const pace__job *job)
{
    return (job->plan.keys_max + 1) * sizeof(uint32_t);
}

static pace_status open_batch(const pace__process *process, pace__model *model, pace__batch *item)
{
    const pace__job *job = process->job;

    item->model = model;
    item->plan = &job->plan;
    pace__kept_init(&item->kept, item->reason, sizeof item->reason);
    pace_status status = pace__slice_init(&item->slice, &job->store, PACE__TRAIN, job->config->seed,
                                          job->plan.rows_max, &item->kept.log);

    if (status)
        pace_say(job->log, PACE_ERROR, "%s", item->reason);
    item->work.weights = pace__pages_alloc(work_bytes(job));
    item->work.sums = pace__pages_alloc(work_bytes(job));
    item->work.order = pace__pages_alloc(order_bytes(job));
    item->work.shard_start =
        calloc((size_t)pace__shards(&job->plan.cluster) + 1, sizeof *item->work.shard_start);
    item->words = calloc(job->plan.by_words ? job->plan.order.batch : 1, sizeof *item->words);
    if (!status && (!item->words || !item->work.weights || !item->work.sums || !item->work.order ||
                    !item->work.shard_start))
        status = pace_fail(job->log, PACE_FAILED, "out of memory for a batch");
    return status;
}

static void close_batch(const pace__job *job, pace__batch *item)
{
    free(item->words);
    free(item->work.shard_start);
    pace__pages_free(item->work.order, order_bytes(job));
    pace__pages_free(item->work.sums, work_bytes(job));
    pace__pages_free(item->work.weights, work_bytes(job));
    pace__model_batch_release(&item->found);
    pace__slice_release(&item->slice);
}

pace_status pace__line_open(pace__line *line, pace__process *process, pace__model *model, bool dense_apart,
                            pace__times *times)
{
    const pace__job *job = process->job;
    pace_status status = PACE_OK;

    line->process = process;
    line->times = times;
    line->slice = process->self.number;
    line->dense_apart = dense_apart;
    line->depth = job->plan.depth;
    line->slow = true;
    assert(line->depth >= 1 && line->depth <= PACE__DEPTH_MAX);
    if (job->store.info.encoding.kind == PACE__IMAGE)
        status = pace__background_create(job->log, &line->ahead);
    for (unsigned i = 0; i <= line->depth && !status; i++)
        status = open_batch(process, model, &line->batches[i]);
    return status;
}

void pace__line_close(pace__line *line)
{
    if (!line->process)
        return;
    pace__background_free(line->ahead);
    for (unsigned i = 0; i <= line->depth; i++)
        close_batch(line->process->job, &line->batches[i]);
}

/* --- the line --- */

/* Invariants 1 to 3. */
static bool is_in_order(pace__line *line)
{
    bool ordered = line->front <= line->depth && line->held <= line->depth + 1;

    for (unsigned i = 1; ordered && i < line->held; i++) {
        pace__batch_state before = pace__batch_at(line, i - 1)->state;

        ordered = before >= pace__batch_at(line, i)->state && before != PACE__BATCH_READING;
    }
    return ordered;
}

pace__batch *pace__batch_at(pace__line *line, unsigned place)
{
    assert(place <= line->depth);
    return &line->batches[(line->front + place) % (line->depth + 1)];
}

pace__batch *pace__line_first_prepared(pace__line *line)
{
    for (unsigned i = 0; i < line->held; i++) {
        if (pace__batch_at(line, i)->state == PACE__BATCH_PREPARED)
            return pace__batch_at(line, i);
    }
    return NULL;
}

pace__batch *pace__line_being_read(pace__line *line)
{
    pace__batch *last = line->held > 0 ? pace__batch_at(line, line->held - 1) : NULL;

    return last && last->state == PACE__BATCH_READING ? last : NULL;
}

pace__batch *pace__batch_of(pace__work *work)
{
    return (pace__batch *)((char *)work - offsetof(pace__batch, work));
}

unsigned pace__line_asked(pace__line *line)
{
    unsigned count = 0;

    for (unsigned i = 0; i < line->held; i++) {
        pace__batch_state state = pace__batch_at(line, i)->state;

        count += state == PACE__BATCH_ASKED || state == PACE__BATCH_READY;
    }
    return count;
}

void pace__line_leave(pace__line *line)
{
    assert(line->held > 0 && is_in_order(line));
    assert(pace__batch_at(line, 0)->state == PACE__BATCH_READY);
    line->front = (line->front + 1) % (line->depth + 1);
    line->held--;
}

void pace__line_drop(pace__line *line)
{
    line->held = 0;
}

/* --- reading --- */

/* Rows of mean length that have as many words. */
static double weigh(const uint32_t *words, uint64_t rows, uint64_t begin, uint64_t share)
{
    double all = 0, own = 0;

    for (uint64_t row = 0; row < rows; row++) {
        all += words[row];
        own += row >= begin && row < begin + share ? words[row] : 0;
    }
    return all > 0 ? own / all * (double)rows : (double)share;
}

/* Which rows of its step are this worker's is known when the lengths of all of them are. */
static pace_status find_share(pace__batch *item)
{
    const pace__job_plan *plan = item->plan;
    uint64_t step = item->work.step, first = pace__plan_rows_before(plan, step),
             rows = pace__steps_rows_in(&plan->order, step), begin;
    pace_status status = pace__slice_lengths(&item->slice, first, rows, item->words);

    if (status)
        return status;
    pace__hands hands = {.workers = (unsigned)plan->slices,
                         .shares = item->shares,
                         .batch = plan->order.batch,
                         .rows_max = plan->rows_max};

    if (!item->shares)
        hands.rows_max = pace__deal_rows_max(plan->order.batch, hands.workers);
    pace__deal(item->words, rows, &hands, (unsigned)item->work.slice, &begin, &item->work.rows);
    item->work.first = first + begin;
    item->amount = weigh(item->words, rows, begin, item->work.rows);
    return PACE_OK;
}

/* Reads its rows and finds their keys; perhaps on a thread of its own. */
static void read_rows(void *arg)
{
    pace__batch *item = arg;
    uint64_t start_ns = pace__now_ns();

    {
        PACE__SPAN("read rows");
        item->status = item->plan->by_words ? find_share(item) : PACE_OK;
        if (!item->status)
            item->status = pace__slice_read(&item->slice, item->work.first, item->work.rows);
    }
    item->read_ns = pace__now_ns() - start_ns;
    if (!item->status) {
        PACE__SPAN("find keys");
        item->status = pace__model_find(item->model, &item->slice.rows, item->work.first, &item->found);
    }
    item->found_ns = pace__now_ns() - start_ns - item->read_ns;
}

static pace_status read_aside(void *item)
{
    read_rows(item);
    return ((pace__batch *)item)->status;
}

static pace_status take_read(pace__line *line, pace__batch *item)
{
    assert(is_in_order(line) && item == pace__batch_at(line, line->held - 1));
    item->state = PACE__BATCH_PREPARED;
    item->work.count = line->dense_apart ? item->found.sparse : item->found.keys.count;
    item->work.keys = item->found.keys.keys;
    if (item->status) /* what is wrong with the rows of this step, not of the one that is computed on */
        line->process->self.step = item->work.step;
    if (item->reason[0]) /* invariant 4 */
        pace_say(line->process->job->log, PACE_ERROR, "%s", item->reason);
    return item->status;
}

bool pace__line_has_room(pace__line *line)
{
    return line->held <= line->depth && !pace__line_being_read(line) &&
           (!line->ahead || pace__background_idle(line->ahead)); /* what was dropped: invariant 3 */
}

pace_status pace__line_take(pace__line *line, const pace__portion *part)
{
    const pace__job_plan *plan = &line->process->job->plan;

    assert(pace__line_has_room(line) && is_in_order(line) && part->rows <= plan->rows_max);
    pace__batch *item = pace__batch_at(line, line->held);

    item->work.first = part->first;
    item->work.rows = part->rows;
    item->work.step = part->step;
    item->work.slice = (uint64_t)line->slice;
    item->reason[0] = '\0'; /* of rows that were dropped */
    item->work.now = pace__plan_is_sync(plan) ? pace__plan_rows_before(plan, part->step) : part->first;
    item->amount = (double)part->rows;
    item->shares = part->shares;
    item->state = PACE__BATCH_READING;
    line->held++;
    if (line->ahead) {
        pace__background_start(line->ahead, read_rows, item);
        return PACE_OK;
    }
    line->process->self.step = part->step;
    pace__rank_aside_if(&line->process->self, &line->slow, "reading rows", read_aside, item);
    line->times->data_ns += item->read_ns;
    line->times->compute_ns += item->found_ns;
    return take_read(line, item);
}

void pace__line_expect(pace__line *line, uint64_t first, uint64_t rows)
{
    assert(line->held > 0);
    if (!line->ahead) /* else its slice is the thread's: invariant 3 */
        pace__slice_ask(&pace__batch_at(line, line->held - 1)->slice, first, rows);
}

pace_status pace__line_poll(pace__line *line, bool *busy)
{
    pace__batch *item = pace__line_being_read(line);

    if (!item || !pace__background_idle(line->ahead))
        return PACE_OK;
    *busy = true;
    return take_read(line, item);
}

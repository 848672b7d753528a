/*
 * 1. `rows` and `loss` are those of the last answer, which has the sums of all workers since the job began: what is
 *    added to the boundary is the difference.
 * 2. reported_step never falls, and is where job->position stands. In asynchronous modes it is behind no row that is
 *    not applied, as far as the first shard knows.
 * 3. One gate is asked for at a time. One that comes for another reason (a checkpoint every so many steps) will do:
 *    whatever is due is done there.
 */
#include "roles/books.h"

#include <assert.h>

void pace__books_open(pace__books *books, pace__process *process, pace__boundary *boundary,
                      pace__asker *asker)
{
    const pace__job *job = process->job;

    *books = (pace__books){.process = process,
                           .boundary = boundary,
                           .asker = asker,
                           .rows = pace__plan_rows_before(&job->plan, job->position.step),
                           .reported_step = job->position.step};
}

static pace_status report_and_act(pace__books *books, uint64_t step)
{
    pace_status status = pace__boundary_report(books->boundary, step);

    return status ? status : pace__boundary_act(books->boundary, step);
}

/* Async: the last step at which something is due; an epoch is closed where it ends. */
static pace_status report_due(pace__books *books, uint64_t step)
{
    uint64_t per_epoch = books->process->job->plan.order.per_epoch;
    uint64_t epoch_end = (books->reported_step / per_epoch + 1) * per_epoch;

    for (uint64_t at = epoch_end < step ? epoch_end : step; at > books->reported_step; at--) {
        if (!pace__boundary_due(books->boundary, at))
            continue;
        books->reported_step = at;
        return pace__boundary_report(books->boundary, at);
    }
    return PACE_OK;
}

pace_status pace__books_keep(pace__books *books, const pace__answer *answer)
{
    const pace__job_plan *plan = &books->process->job->plan;
    pace_status status = PACE_OK;

    assert(books->boundary);
    if (plan->cluster.evaluator)
        status = pace__chief_take_verdicts(books->process, false);
    if (status)
        return status;
    pace__boundary_add(books->boundary, answer->loss - books->loss, answer->rows_done - books->rows);
    books->loss = answer->loss;
    books->rows = answer->rows_done;
    if (pace__plan_is_sync(plan))
        return pace__boundary_due(books->boundary, answer->step + 1) ? report_and_act(books, answer->step + 1)
                                                                     : PACE_OK;
    status = report_due(books, pace__steps_of(&plan->order, answer->rows_done));
    if (!status && pace__boundary_wants(books->boundary) && !books->gate_asked) { /* invariant 3 */
        books->gate_asked = true;
        status = pace__asker_send(books->asker, PACE__ASK_GATE);
    }
    return status;
}

pace_status pace__books_at_gate(pace__books *books, uint64_t step)
{
    assert(books->boundary && step >= books->reported_step); /* invariant 2 */
    books->reported_step = step;
    books->gate_asked = false;
    return report_and_act(books, step);
}

/* The chief hears of the others' last rows only by asking once more. */
pace_status pace__books_close(pace__books *books, pace__client *client)
{
    pace__answer answer;
    pace_status status = pace__client_send(client, NULL, NULL, false);

    if (!status)
        status = pace__client_wait(client, &answer);
    if (!status)
        status = pace__books_keep(books, &answer);
    return status ? status : report_and_act(books, books->process->job->plan.steps);
}

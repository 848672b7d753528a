/*
 * 1. `rows` and `loss` are those of the last answer, which has the sums of all workers since the job began: what is
 *    added to the boundary is the difference.
 * 2. reported_step never falls, and is where job->position stands. In asynchronous modes it is behind no row that is
 *    not applied, as far as the first shard knows.
 * 3. One gate is asked for at a time. One that comes for another reason (a checkpoint every so many steps) will do:
 *    whatever is due is done there.
 */
#include "roles/tally.h"

#include <assert.h>

void pace__tally_open(pace__tally *tally, pace__process *process, pace__boundary *boundary,
                      pace__asker *asker)
{
    const pace__job *job = process->job;

    *tally = (pace__tally){.process = process,
                           .boundary = boundary,
                           .asker = asker,
                           .rows = pace__plan_rows_before(&job->plan, job->position.step),
                           .reported_step = job->position.step};
}

static pace_status report_and_act(pace__tally *tally, uint64_t step)
{
    pace_status status = pace__boundary_report(tally->boundary, step);

    return status ? status : pace__boundary_act(tally->boundary, step);
}

/* Async: the last step at which something is due; an epoch is closed where it ends. */
static pace_status report_due(pace__tally *tally, uint64_t step)
{
    uint64_t per_epoch = tally->process->job->plan.order.per_epoch;
    uint64_t epoch_end = (tally->reported_step / per_epoch + 1) * per_epoch;

    for (uint64_t at = epoch_end < step ? epoch_end : step; at > tally->reported_step; at--) {
        if (!pace__boundary_due(tally->boundary, at))
            continue;
        tally->reported_step = at;
        return pace__boundary_report(tally->boundary, at);
    }
    return PACE_OK;
}

pace_status pace__tally_keep(pace__tally *tally, const pace__answer *answer)
{
    const pace__job_plan *plan = &tally->process->job->plan;
    pace_status status = PACE_OK;

    assert(tally->boundary);
    if (plan->cluster.evaluator)
        status = pace__chief_take_verdicts(tally->process, false);
    if (status)
        return status;
    pace__boundary_add(tally->boundary, answer->loss - tally->loss, answer->rows_done - tally->rows);
    tally->loss = answer->loss;
    tally->rows = answer->rows_done;
    if (pace__plan_is_sync(plan) &&
        !plan->backups) /* every step ends clean: what is wanted soon is done behind this one */
        return pace__boundary_due(tally->boundary, answer->step + 1) || pace__boundary_wants(tally->boundary)
                   ? report_and_act(tally, answer->step + 1)
                   : PACE_OK;
    status = report_due(tally, pace__steps_of(&plan->order, answer->rows_done));
    return status ? status : pace__tally_look(tally);
}

pace_status pace__tally_look(pace__tally *tally)
{
    if (tally->gate_asked || !pace__boundary_wants(tally->boundary)) /* invariant 3 */
        return PACE_OK;
    tally->gate_asked = true;
    return pace__asker_send(tally->asker, PACE__ASK_GATE);
}

pace_status pace__tally_catch_up(pace__tally *tally, pace__client *client, uint64_t step)
{
    pace__answer answer;
    pace_status status = pace__client_send_await(client, step);

    if (!status)
        status = pace__client_wait(client, &answer);
    return status ? status : pace__tally_keep(tally, &answer);
}

pace_status pace__tally_at_gate(pace__tally *tally, uint64_t step)
{
    assert(tally->boundary && step >= tally->reported_step); /* invariant 2 */
    tally->reported_step = step;
    tally->gate_asked = false;
    return report_and_act(tally, step);
}

/* The chief hears of the others' last rows only by asking once more. */
pace_status pace__tally_close(pace__tally *tally, pace__client *client)
{
    pace__answer answer;
    pace_status status = pace__client_send(client, NULL, NULL, false);

    if (!status)
        status = pace__client_wait(client, &answer);
    if (!status)
        status = pace__tally_keep(tally, &answer);
    return status ? status : report_and_act(tally, tally->process->job->plan.steps);
}

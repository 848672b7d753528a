#include "plan/predict.h"

#include <math.h>

/* From a failure to the first step behind it: processes are started again, and read a checkpoint. */
#define RESTART_S 5.0
/* A verdict wants a run of some length; that of one step is that of any number of them. */
#define LOOKED_AT_S 100.0

const char *const pace__known_names[] = {"assumed", "given", "measured"};

pace__setup pace__setup_alone(const pace__setup *setup)
{
    pace__setup alone = *setup;

    alone.mode = PACE_MODE_LOCAL;
    alone.workers = alone.hosts = 1;
    alone.ps = 0;
    return alone;
}

double pace__save_every_s(const pace__calibration *known, double rows_s, double batch)
{
    double by_steps_s = known->save_every_steps * batch / rows_s;

    if (known->save_every_s <= 0 || known->save_every_steps <= 0)
        return fmax(known->save_every_s, by_steps_s);
    return fmin(known->save_every_s, by_steps_s);
}

double pace__seconds_with_failures(double seconds, double machines, double mtbf_s, double save_every_s)
{
    if (mtbf_s <= 0)
        return seconds;
    /* Without checkpoints all is lost, half of it on average. */
    double lost_s = (save_every_s > 0 ? fmin(save_every_s, seconds) : seconds) / 2 + RESTART_S;
    double share = machines / mtbf_s * lost_s;

    return share < 1 ? seconds / (1 - share) : INFINITY;
}

/* --- the bottleneck --- */

/* A role as its records would tell of it. Who has a part of a core has no processor for the rest of what it does. */
static pace__worked role_of(const pace__calibration *known, pace__role kind, double times, double cpu_s)
{
    double cores = known->input.machine.cores;

    return (pace__worked){.kind = kind,
                          .is_known = true,
                          .cpu_s = times * cpu_s,
                          .delay_s = cores < 1 ? times * cpu_s * (1 / cores - 1) : 0};
}

static pace__worked worker_of(const pace__calibration *known, const pace__forecast *of, double times)
{
    pace__worked worker = role_of(known, PACE__WORKER, times, of->worker_cpu_s);
    double rest = fmax(0, of->worker_cpu_s - of->rows_cpu_s);

    worker.compute_s = times * fmin(of->rows_cpu_s, of->step_s);
    worker.communicate_s = times * fmin(rest, of->step_s - fmin(of->rows_cpu_s, of->step_s));
    worker.sent_bytes = times * of->worker_sent;
    worker.received_bytes = times * of->worker_received;
    worker.messages = times * of->worker_messages;
    return worker;
}

static pace__worked server_of(const pace__calibration *known, const pace__forecast *of, double times)
{
    pace__worked server = role_of(known, PACE__PS, times, of->server_cpu_s);

    server.communicate_s = times * fmin(of->server_cpu_s, of->step_s);
    server.sent_bytes = times * of->server_sent;
    server.received_bytes = times * of->server_received;
    return server;
}

static pace__cause cause_of(const pace__calibration *known, const pace__setup *setup,
                            const pace__forecast *of)
{
    double times = LOOKED_AT_S / of->step_s;
    pace__worked worker = worker_of(known, of, times), server = server_of(known, of, times);
    pace__worked roles[] = {worker, worker, server};
    bool alone = setup->workers == 1;
    pace__verdict_facts facts = {.synchronous = setup->mode == PACE_MODE_ALLREDUCE ||
                                                setup->mode == PACE_MODE_PS_SYNC ||
                                                setup->mode == PACE_MODE_LOCAL_SGD,
                                 .rounds = setup->mode == PACE_MODE_LOCAL_SGD,
                                 .seconds = LOOKED_AT_S,
                                 .after_s = 0,
                                 .batch = (double)setup->batch,
                                 .steps = times,
                                 .ps = setup->ps,
                                 .threads = setup->threads,
                                 .roles = alone ? roles + 1 : roles,
                                 .count = (alone ? 1 : 2) + (setup->ps > 0)};

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        roles[i].name = roles[i].kind == PACE__PS ? "ps0" : "worker";
    return pace__verdict_of(&facts).cause;
}

void pace__prediction_at(const pace__calibration *known, double rows_s, pace__prediction *made)
{
    if (made->rows_s > 0) {
        made->forecast.step_s *= made->rows_s / rows_s;
        made->efficiency *= rows_s / made->rows_s;
    }
    made->rows_s = rows_s;
    made->low = rows_s / (1 + known->spread);
    made->high = rows_s * (1 + known->spread);
    made->epoch_s = (double)known->input.work.order.rows / rows_s;
    made->seconds = known->rows / rows_s + known->still_s;
}

pace__prediction pace__predict(const pace__calibration *known, const pace__setup *setup)
{
    pace__setup alone = pace__setup_alone(setup);
    pace__prediction made = {.forecast = pace__forecast_of(&known->input, setup)};
    double one = pace__forecast_of(&known->input, &alone).rows_s;

    pace__prediction_at(known, made.forecast.rows_s, &made);
    made.efficiency = made.rows_s / (one * setup->workers);
    made.cause = cause_of(known, setup, &made.forecast);
    return made;
}

#include "forecast/expect.h"

#include "base/cpu.h"
#include "forecast/sample.h"
#include "options/internal.h"
#include "threads/thread.h"
#include "watch/quota.h"

#include <math.h>

/* Where workers that merge do not lose accuracy (describe.c says so where they do). */
#define MERGED_ROWS_MIN    50000
#define MERGED_ENTRIES_MAX 128
#define BLOCK_BATCH        512

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

/* The block rule takes the place of steps that nobody has asked for as such. */
static void take_block_rule(const pace__job *job, pace__setup *setup)
{
    setup->exact = job->config->optimiser.exact;
    if (!setup->exact && setup->batch > BLOCK_BATCH) {
        setup->batch = BLOCK_BATCH;
        setup->steps = 0;
    }
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

    return input->work.flows && !rule->exact && rule->rule != PACE_MOMENTUM && rule->rule != PACE_ADAM &&
           !job->plan.cluster.evaluator && job->plan.cluster.workers > 1 &&
           job->plan.order.rows / (uint64_t)job->plan.cluster.workers >= MERGED_ROWS_MIN &&
           (!input->work.by_columns || input->work.entries <= MERGED_ENTRIES_MAX);
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
    choice own = judge(input, pace__setup_of(&job->plan, hosts)), one = alone(job, input, own.setup);
    choice best = best_of_all(job, input, own.setup);
    char here[PACE__RATE_TEXT], there[PACE__RATE_TEXT], most[PACE__RATE_TEXT];
    char options[WORDS], others[WORDS], where[WORDS], faster[3 * WORDS] = "";
    pace_field fields[] = {PACE_REAL("rows_per_s", own.rows_s), PACE_REAL("alone_rows_per_s", one.rows_s)};

    pace_registry_emit(job->registry, "expected", fields, sizeof fields / sizeof *fields);
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

typedef struct expectation {
    const pace__job *job;
    pace__forecast_input input;
    bool sampled;
} expectation;

static pace_status take_sample(void *user)
{
    expectation *self = user;

    self->sampled = pace__sample_rows(self->job, PACE__SAMPLE_NETWORK_ROWS, &self->input.work);
    return PACE_OK;
}

static expectation expectation_of(const pace__job *job)
{
    pace__quota quota = pace__quota_here();

    return (expectation){.job = job,
                         .input = {.work = pace__workload_of(job),
                                   .machine = {.cores = fmin(pace__cores(), quota.cores),
                                               .pause_s = pace__quota_pause_s(&quota),
                                               .link_bytes_s = PACE__LINK_BYTES_S,
                                               .latency_s = PACE__LATENCY_S},
                                   .costs = pace__job_costs(job)}};
}

pace_status pace__job_say_expected(pace__job *job, int hosts)
{
    expectation self = expectation_of(job);
    pace_status status = pace__job_aside(job, "timing some rows", take_sample, &self);

    if (!status && self.sampled)
        say(job, &self.input, hosts);
    return status;
}

bool pace__job_is_worth_hosts(const pace__job *job, int hosts, const pace__machine *network)
{
    expectation self = expectation_of(job);

    self.input.machine.link_bytes_s = network->link_bytes_s;
    self.input.machine.latency_s = network->latency_s;
    take_sample(&self);
    choice own = judge(&self.input, pace__setup_of(&job->plan, hosts)),
           one = alone(job, &self.input, own.setup);

    return !self.sampled || own.rows_s > one.rows_s;
}

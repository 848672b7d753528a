#include "data/store/reader.h"
#include "job/job.h"
#include "metrics/scoring.h"
#include "watch/spans.h"

#include <inttypes.h>

void pace__job_emit_scores(const pace__job *job, uint64_t step)
{
    const pace_scores *scores = &job->scores;
    pace_field fields[] = {PACE_INT("step", step),
                           PACE_REAL("epoch", (double)step / (double)job->plan.order.per_epoch),
                           PACE_TEXT("set", "test"),
                           PACE_INT("n", scores->n),
                           PACE_REAL("logloss", scores->logloss),
                           PACE_REAL("auc", scores->auc),
                           PACE_REAL("accuracy", scores->accuracy),
                           PACE_REAL("f1", scores->f1),
                           PACE_REAL("mean_predicted", scores->mean_predicted),
                           PACE_REAL("mean_actual", scores->mean_actual)};

    pace_registry_emit(job->registry, "eval", fields, sizeof fields / sizeof *fields);
}

void pace__job_say_scores(const pace__job *job, uint64_t step, const char *by)
{
    const pace_scores *scores = &job->scores;
    char ranking[32] = "";

    if (scores->classes > 5)
        snprintf(ranking, sizeof ranking, ", top 5 %.5f", scores->top5);
    else if (scores->classes <= 2)
        snprintf(ranking, sizeof ranking, ", AUC %.5f", scores->auc);
    pace_say(job->log, PACE_INFO, "step %" PRIu64 ": test log-loss %.5f%s, accuracy %.4f%s", step,
             scores->logloss, ranking, scores->accuracy, by);
}

static pace_status logits_of(void *user, const pace__rows *rows, float *logits)
{
    pace__job *job = user;

    PACE__SPAN("logits");
    pace__faults_at(&job->faults, PACE__AT_EVAL, job->position.step);
    pace_status status = job->strategy->logits(job, rows, logits);

    job->strategy->pulse(job); /* others may be waiting for the chief */
    return status;
}

static pace_status read_aside(void *user, pace_status (*read)(void *user), void *rows)
{
    pace__job *job = user;

    return pace__job_aside_if(job, &job->scores_slowly, "reading test rows", read, rows);
}

pace_status pace__job_create_scorer(const pace__job *job, pace__model **scorer)
{
    return pace__model_create(&job->plan.model, PACE__SCORE_ROWS, job->plan.threads, true, job->log, scorer);
}

pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max)
{
    pace__scoring scoring = {&job->store,
                             PACE__TEST,
                             rows_max,
                             logits_of,
                             job,
                             job->metrics,
                             .outputs = job->plan.model.shape.outputs,
                             .aside = read_aside,
                             .user = &job->worst};

    if (pace__job_is_over(job) && pace__job_shows_mistakes(job))
        scoring.mistake = pace__worst_add;
    job->worst = (pace__worst){0};
    job->scores_slowly = true;
    PACE__SPAN("score");
    pace_status status = pace__score_set(&scoring, job->log, job->registry, &job->scores);

    if (status)
        return status;
    if (pace__job_is_over(job))
        pace__metrics_curves(job->metrics, &job->curves);
    pace__job_emit_scores(job, job->position.step);
    return PACE_OK;
}

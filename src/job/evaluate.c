#include "data/store/reader.h"
#include "metrics/scoring.h"
#include "job/job.h"

#include <inttypes.h>

void pace__job_emit_scores(const pace__job *job, uint64_t step)
{
    const pace_scores *scores = &job->scores;
    pace_field fields[] = {PACE_INT("step", step),
                           PACE_REAL("epoch", (double)step / (double)job->order.per_epoch),
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

/* The model as it stands at a row. */
typedef struct standing {
    pace__job *job;
    uint32_t now;
} standing;

static pace_status logits_of(void *model, const pace__rows *rows, float *logits)
{
    const standing *self = model;
    pace__job *job = self->job;
    pace_status status = PACE_OK;

    pace__faults_at(&job->faults, PACE__AT_EVAL, job->position.step);
    if (job->by_columns)
        pace__logreg_logits(&job->logreg, self->now, rows, logits);
    else
        status = pace__model_logits(job->scorer, rows, logits);
    if (job->pulse) /* others are waiting for the chief */
        job->pulse(job);
    return status;
}

uint64_t pace__job_scorer_memory(const pace__job *job)
{
    return pace__model_memory(&job->model, PACE__SCORE_ROWS, job->threads, true);
}

pace_status pace__job_create_scorer(const pace__job *job, pace__model **scorer)
{
    return pace__model_create(&job->model, PACE__SCORE_ROWS, job->threads, true, job->log, scorer);
}

static pace_status open_scorer(pace__job *job)
{
    pace_status status = job->scorer ? PACE_OK : pace__job_create_scorer(job, &job->scorer);

    if (status)
        return status;
    pace__job_settle(job);
    pace__model_use(job->scorer, job->parameters);
    return PACE_OK;
}

pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max)
{
    standing model = {job, (uint32_t)pace__job_rows_before(job, job->position.step)};
    pace__scoring scoring = {
        &job->store, PACE__TEST, rows_max, logits_of, &model, job->metrics, .outputs = job->shape.outputs};
    pace_status status = job->by_columns ? PACE_OK : open_scorer(job);

    if (!status)
        status = pace__score_set(&scoring, job->log, NULL, &job->scores);
    if (!status)
        pace__job_emit_scores(job, job->position.step);
    return status;
}

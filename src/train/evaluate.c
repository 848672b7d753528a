#include "model/scoring.h"
#include "train/job.h"

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

/* The model as it stands at a row. */
typedef struct standing {
    pace__job *job;
    uint32_t now;
} standing;

static void logits_of(const void *model, const pace__rows *rows, float *logits)
{
    const standing *self = model;

    pace__faults_at(&self->job->faults, PACE__AT_EVAL, self->job->position.step);
    pace__logreg_logits(&self->job->model, self->now, rows, logits);
    if (self->job->pulse) /* others are waiting for the chief */
        self->job->pulse(self->job);
}

pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max)
{
    standing model = {job, (uint32_t)pace__job_rows_before(job, job->position.step)};
    pace__scoring scoring = {&job->store, PACE__TEST, rows_max, logits_of, &model, job->metrics};
    pace_status status = pace__score_set(&scoring, job->log, NULL, &job->scores);

    if (!status)
        pace__job_emit_scores(job, job->position.step);
    return status;
}

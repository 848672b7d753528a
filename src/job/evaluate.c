#include "data/store/reader.h"
#include "job/job.h"
#include "metrics/scoring.h"
#include "watch/spans.h"

#include <inttypes.h>

void pace__job_emit_scores(const pace__job *job, int set, uint64_t step)
{
    const pace_scores *scores = &job->scores[set];
    pace_field fields[] = {PACE_INT("step", step),
                           PACE_REAL("epoch", (double)step / (double)job->plan.order.per_epoch),
                           PACE_TEXT("set", pace__set_names[set]),
                           PACE_INT("n", scores->n),
                           PACE_REAL("logloss", scores->logloss),
                           PACE_REAL("auc", scores->auc),
                           PACE_REAL("accuracy", scores->accuracy),
                           PACE_REAL("f1", scores->f1),
                           PACE_REAL("mean_predicted", scores->mean_predicted),
                           PACE_REAL("mean_actual", scores->mean_actual),
                           PACE_INT("kept", job->kept)}; /* the step whose state was scored at this one */
    size_t count = sizeof fields / sizeof *fields;

    pace_registry_emit(job->registry, "eval", fields, job->kept ? count : count - 1);
}

void pace__job_say_scores(const pace__job *job, int set, uint64_t step, const char *by)
{
    const pace_scores *scores = &job->scores[set];
    char ranking[32] = "";

    if (scores->classes > 5)
        snprintf(ranking, sizeof ranking, ", top 5 %.5f", scores->top5);
    else if (scores->classes <= 2)
        snprintf(ranking, sizeof ranking, ", AUC %.5f", scores->auc);
    pace_say(job->log, PACE_INFO, "step %" PRIu64 ": %s log-loss %.5f%s, accuracy %.4f%s", step,
             pace__set_names[set], scores->logloss, ranking, scores->accuracy, by);
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

    return pace__job_aside_if(job, &job->scores_slowly, "reading rows to score", read, rows);
}

pace_status pace__job_create_scorer(const pace__job *job, pace__model **scorer)
{
    return pace__model_create(&job->plan.model, PACE__SCORE_ROWS, job->plan.threads, true, job->log, scorer);
}

pace_status pace__job_evaluate(pace__job *job, int set, uint64_t rows_max)
{
    pace__scoring scoring = {&job->store,
                             set,
                             rows_max,
                             logits_of,
                             job,
                             job->metrics,
                             .outputs = job->plan.model.shape.outputs,
                             .aside = read_aside,
                             .user = &job->worst};

    bool shown =
        set == PACE__TEST && pace__job_is_over(job); /* in the report, and by whoever looks for mistakes */

    if (shown && pace__job_shows_mistakes(job))
        scoring.mistake = pace__worst_add;
    job->worst = (pace__worst){0};
    job->scores_slowly = true;
    PACE__SPAN("score");
    pace_status status = pace__score_set(&scoring, job->log, job->registry, &job->scores[set]);

    if (status)
        return status;
    if (shown)
        pace__metrics_curves(job->metrics, &job->curves);
    pace__job_emit_scores(job, set, job->position.step);
    return PACE_OK;
}

/* The test rows last: what is shown of them stays. */
pace_status pace__job_evaluate_all(pace__job *job)
{
    static const int order[] = {PACE__VALIDATION, PACE__TEST};
    pace_status status = PACE_OK;

    for (int i = 0; i < 2 && !status; i++) {
        if (job->store.info.rows[order[i]] > 0)
            status = pace__job_evaluate(job, order[i], 0);
    }
    return status;
}

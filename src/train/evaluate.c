#include "data/reader.h"
#include "train/job.h"

#include <inttypes.h>

static void emit_scores(const pace__job *job)
{
    const pace_scores *scores = &job->scores;
    pace_field fields[] = {PACE_INT("step", job->position.step),
                           PACE_REAL("epoch", (double)job->position.step / (double)job->steps_per_epoch),
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

pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max)
{
    uint64_t rows = job->store.info.rows[PACE__TEST];
    uint32_t now = (uint32_t)pace__job_rows_before(job, job->position.step);
    pace__reader_plan plan = {
        .set = PACE__TEST, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    float logits[PACE__PIECE_ROWS];
    const pace__piece *piece;
    pace__reader *reader;

    plan.last = rows_max && rows_max < rows ? rows_max : rows;
    pace_status status = pace__reader_create(&job->store, &plan, job->log, &reader);

    if (status)
        return status;
    pace__metrics_clear(job->metrics);
    while (!(status = pace__reader_next(reader, 0, &piece)) && piece) {
        pace__logreg_logits(&job->model, now, &piece->rows, logits);
        status = pace__metrics_add_logits(job->metrics, logits, piece->rows.label, piece->rows.rows);
        if (status)
            break;
    }
    pace__reader_free(reader);
    if (!status)
        status = pace__metrics_finish(job->metrics, &job->scores);
    if (!status)
        emit_scores(job);
    return status;
}

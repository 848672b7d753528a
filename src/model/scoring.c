#include "model/scoring.h"

#include "data/reader.h"

static pace_status add_piece(const pace__scoring *scoring, const pace__rows *rows)
{
    float logits[PACE__PIECE_ROWS];
    pace_status status = scoring->logits(scoring->model, rows, logits);

    return status ? status : pace__metrics_add_logits(scoring->metrics, logits, rows->label, rows->rows);
}

static pace_status add_rows(const pace__scoring *scoring, const pace_log *log, pace_registry *registry)
{
    uint64_t rows = scoring->store->info.rows[scoring->set];
    pace__reader_plan plan = {
        .set = scoring->set, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;

    plan.last = scoring->rows_max && scoring->rows_max < rows ? scoring->rows_max : rows;
    pace_status status = pace__reader_create(scoring->store, &plan, log, &reader);

    if (status)
        return status;
    while (!(status = pace__reader_next(reader, 0, &piece)) && piece) {
        pace_field fields[] = {PACE_TEXT("phase", "score"), PACE_INT("done", piece->first + piece->rows.rows),
                               PACE_INT("total", plan.last), PACE_TEXT("unit", "rows")};

        status = add_piece(scoring, &piece->rows);
        if (status)
            break;
        pace_registry_emit(registry, "progress", fields, 4);
    }
    pace__reader_free(reader);
    return status;
}

pace_status pace__score_set(const pace__scoring *scoring, const pace_log *log, pace_registry *registry,
                            pace_scores *scores)
{
    pace__metrics_clear(scoring->metrics);
    pace_status status = add_rows(scoring, log, registry);

    if (!status)
        status = pace__metrics_finish(scoring->metrics, scores);
    if (!status && pace__metrics_auc_error_max(scoring->metrics) > 0)
        pace_say(log, PACE_INFO, "so many rows are ranked in bins: the AUC is exact to %.1e",
                 pace__metrics_auc_error_max(scoring->metrics));
    return status;
}

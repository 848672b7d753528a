#include "metrics/scoring.h"

#include "data/store/reader.h"
#include "metrics/softmax.h"

#include <stdlib.h>

#define NO_CLASS UINT32_MAX

pace_status pace__scoring_metrics(uint32_t outputs, const pace_log *log, pace__metrics **metrics)
{
    return outputs > 2 ? pace__metrics_create_classes(outputs, log, metrics)
                       : pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, metrics);
}

static uint32_t outputs_of(const pace__scoring *scoring)
{
    return scoring->outputs ? scoring->outputs : 1;
}

/* --- rows whose model says yes or no --- */

/* One logit instead of two: their difference. Infinite ones that are equal are as likely. */
static void subtract(float *logits, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        float no = logits[2 * i], yes = logits[2 * i + 1];

        logits[i] = yes == no ? 0 : yes - no;
    }
}

static pace_status add_yes_no(const pace__scoring *scoring, const pace__rows *rows, const float *logits)
{
    uint8_t label[PACE__PIECE_ROWS];

    for (size_t i = 0; rows->classes && i < rows->rows; i++)
        label[i] = rows->classes[i] == 1;
    return pace__metrics_add_logits(scoring->metrics, logits, rows->classes ? label : rows->label,
                                    rows->rows);
}

/* --- mistakes --- */

/* What the model takes the row for, and how surely; NO_CLASS if a logit is no number. */
static uint32_t predicted_of(const float *logits, uint32_t outputs, double *probability)
{
    pace__softmax row;

    if (outputs == 1) {
        *probability = 1 / (1 + exp(-fabs((double)*logits)));
        return isnan(*logits) ? NO_CLASS : *logits > 0;
    }
    if (!pace__softmax_of(logits, outputs, &row))
        return NO_CLASS;
    *probability = pace__softmax_probability(&row, row.most);
    return row.best;
}

/* `first`: the place of the first row in the set. */
static pace_status tell_mistakes(const pace__scoring *scoring, const pace__rows *rows, uint64_t first,
                                 const float *logits, uint32_t outputs)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; !status && i < rows->rows; i++) {
        double probability = 0;
        uint32_t predicted = predicted_of(logits + i * outputs, outputs, &probability),
                 actual = rows->classes ? rows->classes[i] : rows->label[i];

        if (predicted == actual || predicted == NO_CLASS)
            continue;
        pace__mistake mistake = {.row = first + i,
                                 .source = rows->source ? rows->source[i] : 0,
                                 .actual = (uint16_t)actual,
                                 .predicted = (uint16_t)predicted,
                                 .probability = probability};

        status = scoring->mistake(scoring->user, &mistake, rows, i);
    }
    return status;
}

/* --- all rows --- */

static pace_status add_piece(const pace__scoring *scoring, const pace__piece *piece, float *logits)
{
    const pace__rows *rows = &piece->rows;
    uint32_t outputs = outputs_of(scoring);
    pace_status status = scoring->logits(scoring->model, rows, logits);

    if (!status && outputs > 2)
        status = pace__metrics_add_classes(scoring->metrics, logits, rows->classes, rows->rows);
    if (!status && outputs == 2)
        subtract(logits, rows->rows);
    if (!status && outputs <= 2)
        status = add_yes_no(scoring, rows, logits);
    if (!status && scoring->mistake)
        status = tell_mistakes(scoring, rows, piece->first, logits, outputs <= 2 ? 1 : outputs);
    return status;
}

typedef struct reading {
    pace__reader *reader;
    const pace__piece *piece; /* the last one; NULL: there are no more */
} reading;

static pace_status read_piece(void *user)
{
    reading *self = user;

    return pace__reader_next(self->reader, 0, &self->piece);
}

static pace_status next_piece(const pace__scoring *scoring, reading *rows)
{
    if (scoring->stop && *scoring->stop)
        return PACE_INTERRUPTED;
    return scoring->aside ? scoring->aside(scoring->model, read_piece, rows) : read_piece(rows);
}

static pace_status add_pieces(const pace__scoring *scoring, pace__reader *reader, uint64_t total,
                              float *logits, pace_registry *registry)
{
    reading rows = {.reader = reader};
    pace_status status;

    while (!(status = next_piece(scoring, &rows)) && rows.piece) {
        const pace__piece *piece = rows.piece;
        pace_field fields[] = {PACE_TEXT("phase", "score"), PACE_INT("done", piece->first + piece->rows.rows),
                               PACE_INT("total", total), PACE_TEXT("unit", "rows")};

        status = add_piece(scoring, piece, logits);
        if (status)
            break;
        pace_registry_emit(registry, "progress", fields, 4);
    }
    return status;
}

static pace_status add_rows(const pace__scoring *scoring, const pace_log *log, pace_registry *registry)
{
    uint64_t rows = scoring->store->info.rows[scoring->set];
    pace__reader_plan plan = {
        .set = scoring->set, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    pace__reader *reader;
    float *logits =
        malloc((size_t)pace__piece_rows(&scoring->store->info) * outputs_of(scoring) * sizeof *logits);

    if (!logits)
        return pace_fail(log, PACE_FAILED, "out of memory for the logits of %d rows", PACE__PIECE_ROWS);
    plan.last = scoring->rows_max && scoring->rows_max < rows ? scoring->rows_max : rows;
    pace_status status = pace__reader_create(scoring->store, &plan, log, &reader);

    if (status)
        goto free_logits;
    status = add_pieces(scoring, reader, plan.last, logits, registry);
    pace__reader_free(reader);
free_logits:
    free(logits);
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

/* Predictions of a linear model for raw rows, which speak original ids as the model does. */
#include "score/predict.h"

#include <paceline/prep.h>

static pace_status choose_format(const pace_predict_config *config, const pace__linear *model,
                                 const pace_log *log, int *format)
{
    bool criteo = model->encoding.kind == PACE__CRITEO;

    *format = config->format;
    if (*format == PACE_FORMAT_AUTO && criteo)
        *format = PACE_FORMAT_CRITEO;
    for (size_t i = 0; *format == PACE_FORMAT_AUTO && i < config->inputs.count; i++) {
        pace_status status = pace__input_detect(config->inputs.items[i], format, log);

        if (status)
            return status;
    }
    if (*format == PACE_FORMAT_AUTO)
        return pace_fail(log, PACE_USAGE, "%s: cannot tell the format: say --format svmlight or tfrecord",
                         config->inputs.items[0]);
    if (*format > PACE_FORMAT_TFRECORD || criteo != (*format == PACE_FORMAT_CRITEO))
        return pace_fail(log, PACE_USAGE, "%s: the model was trained on %s rows; the input is %s",
                         config->run, criteo ? "criteo" : "numbered (svmlight or tfrecord)",
                         *format > PACE_FORMAT_TFRECORD ? "texts"
                         : criteo                       ? "not"
                                                        : "criteo");
    return PACE_OK;
}

static double logit(const pace__linear *model, const pace__raw_rows *rows, size_t row, bool has_values)
{
    double z = model->bias;

    for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++) {
        float weight = pace__linear_find(model, rows->ids[at]);

        z += has_values ? (double)weight * rows->values[at] : weight;
    }
    return z;
}

static pace_status predict_all(const pace__linear *model, pace__input *input, int format,
                               const pace_predict_config *config, pace__predictions *to, const pace_log *log)
{
    pace__bad_rows bad = {.max = (uint64_t)config->max_bad_rows, .input = input, .log = log};
    pace__parser parser = {
        .encoding = &model->encoding, .labels_optional = true, .ids_unbounded = true, .bad = &bad};
    bool has_values =
        model->encoding.kind == PACE__NUMBERED || model->encoding.numeric == PACE_NUMERIC_VALUES;
    pace__parse_fn *parse = pace__parser_of(format);
    pace__raw_rows rows;
    pace__chunk chunk = {0};
    pace_status status = pace__raw_rows_init(&rows, log);

    while (!status && !(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        for (size_t at = 0; at < chunk.size && !status;) {
            status = parse(&parser, &chunk, &at, &rows);
            for (size_t row = 0; row < rows.rows && !status; row++)
                pace__predictions_put(to, logit(model, &rows, row, has_values));
            if (!status && ferror(to->file))
                status = pace__predictions_flush(to);
        }
    }
    if (!status)
        pace__predictions_warn(&bad);
    pace__chunk_release(&chunk);
    pace__raw_rows_release(&rows);
    return status;
}

pace_status pace__predict_rows(const pace__linear *model, const pace_predict_config *config,
                               const pace_log *log, uint64_t *rows)
{
    pace__predictions to;
    pace__input *input;
    int format;
    pace_status status = choose_format(config, model, log, &format);

    if (!status)
        status = pace__input_open(config->inputs.items, config->inputs.count, pace__boundary_of(format), log,
                                  &input);
    if (status)
        return status;
    status = pace__predictions_open(config->output, &config->inputs, log, &to);
    if (!status) {
        status = predict_all(model, input, format, config, &to, log);
        status = pace__predictions_close(&to, status);
    }
    pace__input_close(input);
    if (!status)
        *rows = to.count;
    return status;
}

/* Predictions for raw sparse rows, which speak original ids as the model does. */
#include "data/formats/sheet_rows.h"
#include "score/predict.h"

#include <paceline/prep.h>
#include <stdlib.h>

static pace_status detect_format(const pace_predict_config *config, const pace__encoding *encoding,
                                 const pace_log *log, int *format)
{
    if (encoding->kind == PACE__SHEET) {
        pace_status status = pace__sheet_format_of(&encoding->sheet, config->inputs.items[0], log, format);

        if (*format == PACE_FORMAT_AUTO)
            *format = PACE_FORMAT_CSV; /* whose reader says what is wrong with it, or takes a pipe */
        return status;
    }
    *format = encoding->kind == PACE__CRITEO ? PACE_FORMAT_CRITEO : PACE_FORMAT_AUTO;
    for (size_t i = 0; *format == PACE_FORMAT_AUTO && i < config->inputs.count; i++) {
        pace_status status = pace__input_detect(config->inputs.items[i], format, log);

        if (status)
            return status;
    }
    if (*format == PACE_FORMAT_AUTO)
        return pace_fail(log, PACE_USAGE, "%s: cannot tell the format: say --format svmlight or tfrecord",
                         config->inputs.items[0]);
    return PACE_OK;
}

static const char *name_of(int format)
{
    return format > PACE_FORMAT_TSV       ? "texts"
           : format >= PACE_FORMAT_CSV    ? "a table"
           : format == PACE_FORMAT_CRITEO ? "criteo"
                                          : "numbered";
}

static pace_status choose_format(const pace_predict_config *config, const pace__encoding *encoding,
                                 const pace_log *log, int *format)
{
    static const char *const trained_on[] = {[PACE__CRITEO] = "criteo rows",
                                             [PACE__NUMBERED] = "numbered rows (svmlight or tfrecord)",
                                             [PACE__SHEET] = "tables (csv or tsv)"};
    pace_status status = PACE_OK;

    *format = config->format;
    if (*format == PACE_FORMAT_AUTO)
        status = detect_format(config, encoding, log, format);
    if (status)
        return status;
    bool fits = encoding->kind == PACE__CRITEO ? *format == PACE_FORMAT_CRITEO
                : encoding->kind == PACE__SHEET
                    ? *format == PACE_FORMAT_CSV || *format == PACE_FORMAT_TSV
                    : *format == PACE_FORMAT_SVMLIGHT || *format == PACE_FORMAT_TFRECORD;

    return fits ? PACE_OK
                : pace_fail(log, PACE_USAGE, "%s: the model was trained on %s; the input is %s", config->run,
                            trained_on[encoding->kind], name_of(*format));
}

typedef struct predicting {
    pace__scorer *scorer;
    bool has_values;
    pace__raw_rows raw;
    uint32_t *places; /* (entries_max) of the raw rows' ids */
    size_t entries_max;
    double *logits; /* (rows_max) */
    size_t rows_max;
    pace__predictions *to;
    pace__explainer *why; /* NULL: nobody asks */
    const pace_log *log;
} predicting;

static pace_status make_room(predicting *self, size_t entries)
{
    if (entries > self->entries_max) {
        free(self->places);
        self->places = malloc(entries * sizeof *self->places);
        self->entries_max = self->places ? entries : 0;
    }
    if (self->raw.rows > self->rows_max) {
        free(self->logits);
        self->logits = malloc(self->raw.rows * sizeof *self->logits);
        self->rows_max = self->logits ? self->raw.rows : 0;
    }
    return entries <= self->entries_max && self->raw.rows <= self->rows_max
               ? PACE_OK
               : pace_fail(self->log, PACE_FAILED, "out of memory: %zu rows", self->raw.rows);
}

static pace_status answer_row(predicting *self, const pace__rows *rows, size_t row)
{
    double logit = self->logits[row];

    if (isnan(logit))
        return pace_fail(self->log, PACE_FAILED, "the model's answer is not a number");
    pace_status status = self->why ? pace__explain(self->why, rows, row, logit) : PACE_OK;

    if (!status)
        pace__predictions_put(self->to, logit, self->why);
    return status;
}

/* The rows in terms of the model's list of ids, and its answers. */
static pace_status answer(predicting *self)
{
    const pace__raw_rows *raw = &self->raw;
    size_t entries = raw->rows ? (size_t)raw->start[raw->rows] : 0;
    pace_status status = make_room(self, entries);

    if (status)
        return status;
    for (size_t at = 0; at < entries; at++)
        self->places[at] = pace__scorer_place(self->scorer, raw->ids[at]);
    pace__rows rows = {.rows = raw->rows,
                       .start = raw->start,
                       .ids = self->places,
                       .values = self->has_values ? raw->values : NULL};

    status = pace__model_answers(self->scorer->model, &rows, self->logits);
    for (size_t row = 0; row < raw->rows && !status; row++)
        status = answer_row(self, &rows, row);
    if (!status && ferror(self->to->file))
        status = pace__predictions_flush(self->to);
    return status;
}

static pace_status predict_all(pace__scorer *scorer, pace__input *input, int format,
                               const pace_predict_config *config, pace__predictions *to, pace__explainer *why,
                               const pace_log *log, pace_registry *registry)
{
    const pace__encoding *encoding = &scorer->saved.encoding;
    pace__bad_rows bad = {.max = (uint64_t)config->max_bad_rows, .input = input, .log = log};
    pace__parser parser = {.encoding = encoding, .labels_optional = true, .ids_unbounded = true, .bad = &bad};
    predicting self = {.scorer = scorer,
                       .has_values = scorer->saved.model.plan.data.has_values,
                       .to = to,
                       .why = why,
                       .log = log};
    pace__parse_fn *parse = pace__parser_of(format);
    pace__chunk chunk = {0};
    const _Atomic int *stop = config->stop;
    pace_status status = pace__raw_rows_init(&self.raw, log);

    if (!status && encoding->kind == PACE__SHEET)
        status = pace__sheet_reader_create(encoding, format, NULL, log, &parser.sheet);
    while (!status && !(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        for (size_t at = 0; at < chunk.size && !status;) {
            status = stop && *stop ? PACE_INTERRUPTED : parse(&parser, &chunk, &at, &self.raw);
            if (!status)
                status = answer(&self);
        }
        pace__predictions_show(to, pace__input_bytes_taken(input), pace__input_bytes_total(input), "bytes",
                               registry);
    }
    if (!status)
        pace__predictions_warn(&bad);
    pace__chunk_release(&chunk);
    pace__raw_rows_release(&self.raw);
    pace__sheet_reader_free(parser.sheet);
    free(self.places);
    free(self.logits);
    return status;
}

pace_status pace__predict_rows(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                               pace_registry *registry, uint64_t *rows)
{
    pace__explainer why = {0};
    pace__predictions to;
    pace__input *input;
    int format;
    pace_status status = choose_format(config, &scorer->saved.encoding, log, &format);

    if (!status)
        status = pace__input_open(config->inputs.items, config->inputs.count, pace__boundary_of(format), log,
                                  &input);
    if (status)
        return status;
    pace__input_watch(input, pace__watch_stop(config->stop));
    if (config->explain > 0)
        status = pace__explainer_init(&why, scorer, (size_t)config->explain, log);
    if (!status)
        status = pace__predictions_open(config->output, config->force, &config->inputs, log, &to);
    if (!status) {
        status =
            predict_all(scorer, input, format, config, &to, config->explain > 0 ? &why : NULL, log, registry);
        status = pace__predictions_close(&to, status);
    }
    pace__explainer_release(&why);
    pace__input_close(input);
    if (!status)
        *rows = to.count;
    return status;
}

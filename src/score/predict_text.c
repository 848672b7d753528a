/* Predictions for raw texts: from files as prep reads them, or line by line as someone types them. */
#include "data/text/reviews.h"
#include "score/predict.h"
#include "score/typed.h"

#include <math.h>
#include <paceline/prep.h>
#include <string.h>
#include <unistd.h>

#define LABEL_FIELD "overall"

/* PACE_REVIEWS_* of the formats of predict. */
static pace_status choose_format(const pace_predict_config *config, const pace_log *log, int *format)
{
    static const int formats[] = {
        [PACE_PREDICT_JSONL] = PACE_REVIEWS_JSONL, [PACE_FORMAT_CSV] = PACE_REVIEWS_CSV,
        [PACE_FORMAT_TSV] = PACE_REVIEWS_TSV,      [PACE_PREDICT_TAB] = PACE_REVIEWS_TAB,
        [PACE_PREDICT_LINES] = PACE_REVIEWS_LINES, [PACE_PREDICT_FOLDER] = PACE_REVIEWS_FOLDER,
    };

    if (config->format != PACE_FORMAT_AUTO && config->format < PACE_FORMAT_CSV)
        return pace_fail(log, PACE_USAGE,
                         "%s: the model was trained on texts: say --format jsonl, csv, tsv, tab or lines",
                         config->run);
    *format = config->format == PACE_FORMAT_AUTO ? PACE_REVIEWS_AUTO : formats[config->format];
    return PACE_OK;
}

typedef struct predicting {
    pace__scorer *scorer;
    const pace_predict_config *config;
    pace__review_options options;
    pace__bad_rows bad;
    pace__review_reader *reader;
    pace__text_batch batch;
    pace__explainer why; /* of config->explain */
    pace__predictions to;
    const pace_log *log;
    pace_registry *registry;
} predicting;

static bool is_stopped(const predicting *self)
{
    return self->config->stop && *self->config->stop;
}

static pace_status answer_row(predicting *self, size_t row, float logit)
{
    bool asked = self->config->explain > 0;
    pace_status status = PACE_OK;

    if (asked) /* which takes as long as many answers */
        status = is_stopped(self) ? PACE_INTERRUPTED
                                  : pace__explain(&self->why, &self->batch.rows, row, (double)logit);

    if (!status)
        pace__predictions_put(&self->to, logit, asked ? &self->why : NULL);
    return status;
}

static pace_status answer(predicting *self)
{
    float logits[PACE__TEXT_BATCH_ROWS];
    pace_status status =
        is_stopped(self) ? PACE_INTERRUPTED : pace__scorer_logits(self->scorer, &self->batch.rows, logits);

    for (size_t i = 0; i < self->batch.rows.rows && !status; i++)
        status = answer_row(self, i, logits[i]);
    pace__text_batch_clear(&self->batch);
    if (!status && ferror(self->to.file))
        status = pace__predictions_flush(&self->to);
    return status;
}

/* The texts of a chunk; those of the last batch wait for more. */
static pace_status predict_chunk(predicting *self, const pace__chunk *chunk)
{
    pace__review review;
    pace_status status = PACE_OK;
    size_t at = 0;

    for (bool found = true; !status;) {
        status = pace__review_next(self->reader, chunk, &at, &found, &review);
        if (status || !found)
            return status;
        status = pace__text_batch_add(&self->batch, review.text, review.size);
        if (!status && self->batch.rows.rows == PACE__TEXT_BATCH_ROWS)
            status = answer(self);
    }
    return status;
}

/* --- files --- */

static pace_status read_input(predicting *self, pace__input *input)
{
    pace__chunk chunk = {0};
    pace_status status = PACE_OK;

    while (!status && !(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        status = predict_chunk(self, &chunk);
        pace__predictions_show(&self->to, pace__input_bytes_taken(input), pace__input_bytes_total(input),
                               "bytes", self->registry);
    }
    pace__chunk_release(&chunk);
    return status ? status : answer(self);
}

static bool is_recognised(const predicting *self, const char *word)
{
    pace__review_options options = self->options;
    pace__review_files files = {0};
    bool found = pace__review_files_find(&(pace_texts){&word, 1}, &options, NULL, &files) == PACE_OK;

    if (found)
        pace__review_files_release(&files);
    return found;
}

/* "csv" or "tsv" if the name ends so, compressed or not; else NULL. */
static const char *table_of(const char *path)
{
    static const char *const endings[] = {".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst"};
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t tail = strlen(endings[i]);

        if (length > tail && strcmp(path + length - tail, endings[i]) == 0)
            return i < 3 ? "csv" : "tsv";
    }
    return NULL;
}

/* A header would be answered as if it were a text. */
static pace_status check_names(const predicting *self)
{
    const pace_texts *words = &self->config->inputs;

    for (size_t i = 0; i < words->count; i++) {
        if (table_of(words->items[i]))
            return pace_fail(
                self->log, PACE_USAGE,
                "%s: has no column \"%s\": name that of the texts with --text-field and --format %s, or "
                "give --format lines if each line is a text",
                words->items[i], self->options.text_field, table_of(words->items[i]));
    }
    return PACE_OK;
}

/* Where none of the files is recognised as anything else, each line of them is a text; but not if a field was
 * asked for. */
static pace_status find_files(predicting *self, pace__review_files *files)
{
    const pace_texts *words = &self->config->inputs;
    bool others = self->options.format != PACE_REVIEWS_AUTO;

    for (size_t i = 0; i < words->count; i++)
        others = others || is_recognised(self, words->items[i]);
    if (!others && strcmp(self->options.text_field, PACE__TEXT_FIELD) == 0) {
        pace_status status = check_names(self);

        if (status)
            return status;
        self->options.format = PACE_REVIEWS_LINES;
        pace_say(self->log, PACE_INFO, "%s: no format is recognised: each line is a text", words->items[0]);
    }
    return pace__review_files_find(words, &self->options, self->log, files);
}

static pace_status predict_input(predicting *self, const pace__review_files *files)
{
    pace__input *input;
    pace_status status = pace__input_open((const char *const *)files->paths, files->count,
                                          pace__review_boundary(self->options.format), self->log, &input);

    if (status)
        return status;
    pace__input_watch(input, pace__watch_stop(self->config->stop));
    self->bad.input = input;
    status = pace__review_reader_create(&self->options, files, &self->bad, self->log, &self->reader);
    if (!status)
        status = pace__predictions_open(self->config->output, self->config->force, &self->config->inputs,
                                        self->log, &self->to);
    if (!status) {
        status = read_input(self, input);
        status = pace__predictions_close(&self->to, status);
    }
    pace__review_reader_free(self->reader);
    self->reader = NULL;
    self->bad.input = NULL;
    pace__input_close(input);
    return status;
}

static pace_status predict_files(predicting *self)
{
    pace__review_files files = {0};
    pace_status status = find_files(self, &files);

    if (status)
        return status;
    status = predict_input(self, &files);
    pace__review_files_release(&files);
    return status;
}

/* --- standard input --- */

/* JSON is told by its first character; everything else is lines. */
static int format_of(const pace__chunk *chunk)
{
    static const char bom[] = "\xef\xbb\xbf";
    size_t at = chunk->size >= 3 && memcmp(chunk->data, bom, 3) == 0 ? 3 : 0;

    while (at < chunk->size && strchr(" \t\r\n", chunk->data[at]) && chunk->data[at])
        at++;
    return at < chunk->size && chunk->data[at] == '{' ? PACE_REVIEWS_JSONL : PACE_REVIEWS_LINES;
}

static pace_status read_typed(predicting *self)
{
    static char name[] = "-";
    char *paths[] = {name};
    double rating[] = {NAN};
    pace__review_files files = {1, paths, rating};
    pace__typed typed = {.fd = STDIN_FILENO,
                         .name = "standard input",
                         .watch = pace__watch_stop(self->config->stop),
                         .log = self->log};
    pace__chunk chunk = {0};
    pace_status status = PACE_OK;

    while (!status && !(status = pace__typed_next(&typed, &chunk)) && chunk.size > 0) {
        if (!self->reader && self->options.format == PACE_REVIEWS_AUTO)
            self->options.format = format_of(&chunk);
        if (!self->reader)
            status = pace__review_reader_create(&self->options, &files, &self->bad, self->log, &self->reader);
        if (!status)
            status = predict_chunk(self, &chunk);
        if (!status)
            status = answer(self);
        if (!status)
            status = pace__predictions_flush(&self->to);
    }
    pace__chunk_release(&chunk);
    pace__review_reader_free(self->reader);
    self->reader = NULL;
    return status;
}

static pace_status predict_typed(predicting *self)
{
    pace_status status = pace__predictions_open(self->config->output, self->config->force,
                                                &self->config->inputs, self->log, &self->to);

    return status ? status : pace__predictions_close(&self->to, read_typed(self));
}

/* Standard input alone is answered line by line. (CSV is not: its lines may go on.) */
static bool is_typed(const predicting *self)
{
    const pace_texts *inputs = &self->config->inputs;

    return inputs->count == 1 && strcmp(inputs->items[0], "-") == 0 &&
           self->options.format != PACE_REVIEWS_CSV && self->options.format != PACE_REVIEWS_FOLDER;
}

pace_status pace__predict_texts(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                                pace_registry *registry, uint64_t *rows)
{
    predicting self = {.scorer = scorer,
                       .config = config,
                       .options = {.text_field = config->text_field ? config->text_field : PACE__TEXT_FIELD,
                                   .label_field = LABEL_FIELD,
                                   .labels_optional = true},
                       .bad = {.max = (uint64_t)config->max_bad_rows, .log = log},
                       .log = log,
                       .registry = registry};
    pace_status status = choose_format(config, log, &self.options.format);

    if (!status)
        status = pace__text_batch_init(&self.batch, scorer);
    if (!status && config->explain > 0)
        status = pace__explainer_init(&self.why, scorer, (size_t)config->explain, log);
    if (!status)
        status = is_typed(&self) ? predict_typed(&self) : predict_files(&self);
    if (!status) {
        pace__predictions_warn(&self.bad);
        *rows = self.to.count;
    }
    pace__explainer_release(&self.why);
    pace__text_batch_release(&self.batch);
    return status;
}

/*
 * mistakes.json: the test rows that the model is surest of, and wrong. Words and pictures are in it, so that whoever reads the
 * run needs no data set.
 */
#include "base/base64.h"
#include "base/json.h"
#include "base/kept.h"
#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/picture/thumbnail.h"
#include "data/store/reader.h"
#include "data/text/vocabulary.h"
#include "files/file.h"
#include "job/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX 600 /* of a text; longer ones are cut */

/* What rows are made of; of a kind that a data set is not, nothing. */
typedef struct showing {
    const pace__job *job;
    pace__json *json;
    pace__vocabulary *vocabulary;
    pace__class_names classes;
    char *names[PACE_EVAL_WORST]; /* of pictures */
    size_t named;
    const pace_log *log;
} showing;

bool pace__job_shows_mistakes(const pace__job *job)
{
    int kind = (int)job->store.info.encoding.kind;

    return kind == PACE__TEXT || kind == PACE__IMAGE || kind == PACE__FEATURES;
}

static void put_text(showing *self, const pace__rows *rows)
{
    const uint32_t *words = pace__row_words(rows, 0);
    char text[TEXT_BYTES_MAX + PACE__TOKEN_BYTES_MAX + 8];
    size_t used = 0;

    for (uint32_t i = 0; i < rows->length[0] && used < TEXT_BYTES_MAX; i++) {
        pace__word word = pace__vocabulary_word(self->vocabulary, words[i]);

        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? " " : "", (int)word.size,
                                 word.text);
        if (used >= TEXT_BYTES_MAX && i + 1 < rows->length[0])
            used += (size_t)snprintf(text + used, sizeof text - used, " ...");
    }
    text[used] = '\0';
    pace__json_raw(self->json, ", \"text\": ");
    pace__json_string(self->json, text);
}

static pace_status put_picture(showing *self, const pace__rows *rows)
{
    const pace__encoding *encoding = &self->job->store.info.encoding;
    size_t bytes;
    uint8_t *png =
        pace__thumbnail_png(rows->pixels, encoding->height, encoding->width, encoding->channels, &bytes);
    char *text = png ? malloc(PACE__BASE64_TEXT(bytes)) : NULL;

    if (text) {
        pace__base64(png, bytes, text);
        pace__json_raw(self->json, ", \"png\": ");
        pace__json_string(self->json, text);
    }
    free(png);
    free(text);
    return text ? PACE_OK : pace_fail(self->log, PACE_FAILED, "out of memory");
}

static pace_status put_row(showing *self, const pace__mistake *mistake)
{
    pace__reader_plan plan = {.set = PACE__TEST,
                              .sequential = true,
                              .batch = 1,
                              .consumers = 1,
                              .first = mistake->row,
                              .last = mistake->row + 1};
    const pace__piece *piece = NULL;
    pace__reader *reader;
    pace_status status = pace__reader_create(&self->job->store, &plan, self->log, &reader);

    if (status)
        return status;
    status = pace__reader_next(reader, 0, &piece);
    if (!status && piece && piece->rows.length && self->vocabulary)
        put_text(self, &piece->rows);
    if (!status && piece && piece->rows.pixels)
        status = put_picture(self, &piece->rows);
    pace__reader_free(reader);
    return status;
}

static void put_class(const showing *self, const char *key, uint32_t class)
{
    char number[16];

    snprintf(number, sizeof number, "%u", class);
    pace__json_raw(self->json, key);
    pace__json_string(self->json, class < self->classes.count ? self->classes.items[class]
                                  : self->vocabulary          ? (class ? "positive" : "negative")
                                                              : number);
}

static pace_status put_mistake(showing *self, size_t place)
{
    const pace__mistake *mistake = &self->job->worst.items[place];

    pace__json_raw(self->json, place ? ",\n  {\"row\": " : "\n  {\"row\": ");
    pace__json_unsigned(self->json, mistake->row);
    put_class(self, ", \"actual\": ", mistake->actual);
    put_class(self, ", \"predicted\": ", mistake->predicted);
    pace__json_raw(self->json, ", \"probability\": ");
    pace__json_real(self->json, mistake->probability);
    if (place < self->named) {
        pace__json_raw(self->json, ", \"name\": ");
        pace__json_string(self->json, self->names[place]);
    }
    pace_status status = put_row(self, mistake);

    pace__json_raw(self->json, "}");
    return status;
}

static pace_status put_all(showing *self)
{
    const pace__worst *worst = &self->job->worst;
    pace_status status = PACE_OK;

    pace__json_raw(self->json, "{\"version\": 1, \"mistakes\": ");
    pace__json_unsigned(self->json, worst->total);
    pace__json_raw(self->json, ", \"worst\": [");
    for (size_t i = 0; i < worst->count && !status; i++)
        status = put_mistake(self, i);
    pace__json_raw(self->json, "]}\n");
    return status;
}

static pace_status open_showing(showing *self)
{
    const pace__job *job = self->job;
    const pace__encoding *encoding = &job->store.info.encoding;
    uint32_t sources[PACE_EVAL_WORST];

    if (encoding->kind == PACE__TEXT)
        return pace__vocabulary_read(job->store.path, encoding, self->log, &self->vocabulary);
    for (size_t i = 0; i < job->worst.count; i++)
        sources[i] = job->worst.items[i].source;
    pace_status status = pace__class_names_read(job->config->data, encoding, self->log, &self->classes);

    if (!status && job->worst.count > 0)
        status = pace__image_names_read(job->config->data, sources, job->worst.count, self->log, self->names);
    if (!status)
        self->named = job->worst.count;
    return status;
}

static pace_status write_mistakes(const pace__job *job, const pace_log *log)
{
    pace__json json = {.capacity = PACE__MISTAKES_BYTES_MAX};
    showing self = {.job = job, .json = &json, .log = log};

    json.text = malloc(json.capacity);
    pace_status status = json.text ? open_showing(&self) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = put_all(&self);
    assert(json.size <= json.capacity);
    if (!status)
        status = pace__write_file_atomically(pace__rundir_path(job->run, PACE__RUN_MISTAKES), json.text,
                                             json.size, log);
    pace__image_names_free(self.names, self.named);
    pace__class_names_release(&self.classes);
    pace__vocabulary_free(self.vocabulary);
    free(json.text);
    return status;
}

void pace__job_write_mistakes(const pace__job *job)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    if (!pace__job_shows_mistakes(job) || job->scores[PACE__TEST].n == 0)
        return;
    pace__kept_init(&kept, reason, sizeof reason);
    if (write_mistakes(job, &kept.log))
        pace_say(job->log, PACE_WARN, "the worst mistakes are not kept: %s", reason);
}

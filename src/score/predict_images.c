/*
 * Predictions for pictures in files. They go in batches: while one is computed, the next is read and decoded
 * by a team of threads. The order of the lines is that of the files.
 */
#include "data/picture/picture.h"
#include "files/file.h"
#include "metrics/softmax.h"
#include "score/heat.h"
#include "score/picture_files.h"
#include "score/predict.h"
#include "threads/background.h"
#include "threads/thread.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS_MAX 256
#define BATCH_BYTES    ((size_t)32 << 20) /* of pixels; at least a picture for each thread */
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define REASON_BYTES   256
#define BAD_SHOWN      100

typedef struct batch {
    size_t first, count;          /* of the files */
    uint8_t *pixels;              /* (rows_max, columns) */
    char (*reason)[REASON_BYTES]; /* (rows_max) why there is no picture; empty: there is one */
    atomic_size_t next;           /* the first that nobody has begun */
    pace_status status;
} batch;

typedef struct predicting {
    pace__scorer *scorer;
    const pace_predict_config *config;
    const pace_log *log;
    pace_registry *registry;
    pace__picture_files files;
    size_t rows_max;
    uint32_t columns, classes, outputs;
    int threads;
    pace__picture_loader *loaders[PACE_THREADS_MAX];
    pace__background *background;
    batch batches[2], *decoding; /* what the background is at */
    float *logits;               /* (rows_max, outputs) */
    uint16_t *no_class;          /* (rows_max) zeros: nobody knows it */
    uint32_t *no_source;
    pace__heat heat;  /* of config->explain */
    atomic_bool told; /* why it ends; by whoever meets it first */
    pace__bad_rows bad;
    pace__predictions to;
} predicting;

/* --- reading --- */

/* The message of a read that failed becomes the reason. */
static void keep_message(void *user, pace_level level, const char *text)
{
    (void)level;
    snprintf(user, REASON_BYTES, "%s", text);
}

/* It begins with the path, which whoever tells the reason adds again. */
static void cut_path(char *reason, const char *path)
{
    size_t length = strlen(path);

    if (strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0)
        memmove(reason, reason + length + 2, strlen(reason + length + 2) + 1);
}

/* A picture that is none is skipped; trouble of the system (too few descriptors, a failing disk) is nobody's picture. */
static pace_status load(predicting *self, batch *to, size_t i, pace__picture_loader *loader)
{
    const char *path = self->files.paths[to->first + i];
    uint8_t *pixels = to->pixels + i * self->columns;
    char *reason = to->reason[i], *bytes;
    size_t size;
    pace_log quiet = {keep_message, reason};

    reason[0] = '\0';
    memset(pixels, 0, self->columns);
    pace_status status = pace__read_file(path, FILE_BYTES_MAX, &bytes, &size, &quiet);

    if (status) {
        cut_path(reason, path);
        if (status != PACE_IO && status != PACE_FAILED)
            return PACE_OK;
        return atomic_exchange(&self->told, true) ? status
                                                  : pace_fail(self->log, status, "%s: %s", path, reason);
    }
    const char *failed = pace__picture_load(loader, bytes, size, pixels);

    if (failed)
        snprintf(reason, REASON_BYTES, "%s", failed);
    free(bytes);
    return PACE_OK;
}

static pace_status load_some(void *arg, int thread)
{
    predicting *self = arg;
    batch *to = self->decoding;

    pace_status status = PACE_OK;

    for (size_t i; !status && (i = atomic_fetch_add(&to->next, 1)) < to->count;)
        status = load(self, to, i, self->loaders[thread]);
    return status;
}

static void load_batch(void *user)
{
    predicting *self = user;

    self->decoding->status = pace__team(self->threads, load_some, self, self->log);
}

static void start(predicting *self, size_t first)
{
    size_t left = self->files.count - first;
    batch *to = self->decoding == &self->batches[0] ? &self->batches[1] : &self->batches[0];

    to->first = first;
    to->count = left < self->rows_max ? left : self->rows_max;
    atomic_store(&to->next, 0);
    self->decoding = to;
    if (to->count > 0)
        pace__background_start(self->background, load_batch, self);
}

/* --- answers --- */

/* Line breaks and tabs in a name would be taken for ours. */
static void put_path(FILE *file, const char *path)
{
    for (; *path; path++)
        putc((unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path, file);
}

/* The likeliest class behind `last`; of equal ones the first. */
static uint32_t next_best(const float *logits, uint32_t classes, uint32_t last)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t c = 0; c < classes; c++) {
        bool behind = logits[c] < logits[last] || (logits[c] == logits[last] && c > last);

        if (behind && (best == UINT32_MAX || logits[c] > logits[best]))
            best = c;
    }
    return best;
}

static void put_class(predicting *self, const pace__softmax *row, const float *logits, uint32_t class)
{
    fprintf(self->to.file, "%s\t%.9g", self->scorer->saved.names.items[class],
            pace__softmax_probability(row, logits[class]));
}

/* A field for each row of cells, with blanks between those. */
static pace_status put_heat(predicting *self, const uint8_t *pixels, uint32_t class)
{
    pace__heat *heat = &self->heat;
    pace_status status = pace__heat_map(heat, pixels, class);

    for (uint32_t i = 0; !status && i < heat->side * heat->side; i++)
        fprintf(self->to.file, "%c%.4f", i % heat->side == 0 ? '\t' : ' ', heat->cells[i]);
    return status;
}

static pace_status put_row(predicting *self, const float *logits, const uint8_t *pixels, const char *path)
{
    float pair[2] = {0, logits[0]}; /* one logit stands for these two */
    const float *all = self->outputs == 1 ? pair : logits;
    pace__softmax row;

    if (!pace__softmax_of(all, self->classes, &row))
        return pace_fail(self->log, PACE_FAILED, "%s: the model's answer is not a number", path);
    put_class(self, &row, all, row.best);
    putc('\t', self->to.file);
    put_path(self->to.file, path);
    uint32_t last = row.best;

    for (int64_t i = 1; i < self->config->top && i < self->classes; i++) {
        last = next_best(all, self->classes, last);
        putc('\t', self->to.file);
        put_class(self, &row, all, last);
    }
    pace_status status = self->config->explain > 0 ? put_heat(self, pixels, row.best) : PACE_OK;

    putc('\n', self->to.file);
    self->to.count++;
    return status;
}

/* One bad picture costs no other its line. */
static pace_status refuse(predicting *self, const char *path, const char *reason)
{
    uint64_t count = ++self->bad.count;

    if (self->files.count == 1)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: %s", path, reason);
    if (count <= BAD_SHOWN)
        pace_say(self->log, PACE_WARN, "%s: %s: picture skipped%s", path, reason,
                 count == BAD_SHOWN ? "; more bad pictures will only be counted" : "");
    return PACE_OK;
}

/* What became of all of them. */
static pace_status judge(const predicting *self)
{
    const pace__bad_rows *bad = &self->bad;
    size_t all = self->files.count;

    if (bad->count == all)
        return pace_fail(self->log, PACE_BAD_DATA, "none of the %zu pictures can be read", all);
    if (bad->count > bad->max)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%llu of %zu pictures cannot be read: all others have their line (--max-bad-rows N "
                         "takes up to N of them for done)",
                         (unsigned long long)bad->count, all);
    if (bad->count > 0)
        pace_say(self->log, PACE_WARN, "%llu of %zu pictures cannot be read: they have no line",
                 (unsigned long long)bad->count, all);
    return PACE_OK;
}

/* Asked for each picture: a heat map takes as long as hundreds of them. */
static bool is_stopped(const predicting *self)
{
    return self->config->stop && *self->config->stop;
}

static pace_status answer(predicting *self, const batch *from)
{
    pace__rows rows = {.rows = from->count,
                       .columns = self->columns,
                       .pixels = from->pixels,
                       .classes = self->no_class,
                       .source = self->no_source};
    pace_status status = pace__scorer_logits(self->scorer, &rows, self->logits);

    for (size_t i = 0; !status && i < from->count; i++) {
        const char *path = self->files.paths[from->first + i];

        if (is_stopped(self))
            return PACE_INTERRUPTED;
        status = from->reason[i][0] ? refuse(self, path, from->reason[i])
                                    : put_row(self, self->logits + i * self->outputs,
                                              from->pixels + i * self->columns, path);
    }
    return status ? status : pace__predictions_flush(&self->to);
}

static pace_status predict_all(predicting *self)
{
    pace_status status = PACE_OK;

    start(self, 0);
    while (!status && self->decoding->count > 0) {
        const batch *ready = self->decoding;

        pace__background_wait(self->background);
        status = is_stopped(self) ? PACE_INTERRUPTED : ready->status;
        if (status)
            break;
        start(self, ready->first + ready->count);
        status = answer(self, ready);
        if (!status)
            pace__predictions_show(&self->to, ready->first + ready->count, self->files.count, "pictures",
                                   self->registry);
    }
    pace__background_wait(self->background);
    return status;
}

/* --- opening --- */

static pace_status open_loaders(predicting *self)
{
    const pace__encoding *encoding = &self->scorer->saved.encoding;
    pace__picture_plan plan = {encoding->height, encoding->width, encoding->channels, encoding->fit};
    pace_status status = PACE_OK;

    for (int i = 0; !status && i < self->threads; i++)
        status = pace__picture_loader_create(&plan, self->log, &self->loaders[i]);
    return status;
}

static pace_status allocate(predicting *self)
{
    bool done = true;

    for (int i = 0; i < 2; i++) {
        self->batches[i].pixels = malloc(self->rows_max * self->columns);
        self->batches[i].reason = malloc(self->rows_max * sizeof *self->batches[i].reason);
        done = done && self->batches[i].pixels && self->batches[i].reason;
    }
    self->logits = malloc(self->rows_max * self->outputs * sizeof *self->logits);
    self->no_class = calloc(self->rows_max, sizeof *self->no_class);
    self->no_source = calloc(self->rows_max, sizeof *self->no_source);
    if (!done || !self->logits || !self->no_class || !self->no_source)
        return pace_fail(self->log, PACE_FAILED, "out of memory for %zu pictures", self->rows_max);
    return PACE_OK;
}

static void close_all(predicting *self)
{
    pace__background_free(self->background);
    for (int i = 0; i < self->threads; i++)
        pace__picture_loader_free(self->loaders[i]);
    for (int i = 0; i < 2; i++) {
        free(self->batches[i].pixels);
        free(self->batches[i].reason);
    }
    pace__heat_release(&self->heat);
    free(self->logits);
    free(self->no_class);
    free(self->no_source);
    pace__picture_files_release(&self->files);
}

static size_t rows_of_batch(const predicting *self)
{
    size_t rows = BATCH_BYTES / self->columns, threads = (size_t)self->threads;

    rows = rows < threads ? threads : rows;
    return rows < BATCH_ROWS_MAX ? rows : BATCH_ROWS_MAX;
}

static pace_status open_all(predicting *self)
{
    pace_status status = pace__picture_files_find(&self->config->inputs, self->log, &self->files);

    if (!status)
        status = allocate(self);
    if (!status && self->config->explain > 0)
        status = pace__heat_init(&self->heat, self->scorer, (uint32_t)self->config->explain, self->log);
    if (!status)
        status = open_loaders(self);
    if (!status)
        status = pace__background_create(self->log, &self->background);
    if (!status)
        status = pace__predictions_open(self->config->output, self->config->force, &self->config->inputs,
                                        self->log, &self->to);
    return status;
}

pace_status pace__predict_images(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                                 pace_registry *registry, uint64_t *rows)
{
    const pace__encoding *encoding = &scorer->saved.encoding;
    predicting self = {.scorer = scorer,
                       .config = config,
                       .log = log,
                       .registry = registry,
                       .columns = encoding->height * encoding->width * encoding->channels,
                       .classes = encoding->classes,
                       .outputs = pace__scorer_outputs(scorer),
                       .threads = pace__cores(),
                       .bad = {.max = (uint64_t)config->max_bad_rows, .log = log}};

    if (config->format != PACE_FORMAT_AUTO)
        return pace_fail(log, PACE_USAGE,
                         "%s: the model was trained on pictures, whose format is told by themselves: leave "
                         "--format out",
                         config->run);
    self.threads = self.threads < PACE_THREADS_MAX ? self.threads : PACE_THREADS_MAX;
    self.rows_max = rows_of_batch(&self);
    pace_status status = open_all(&self);

    if (!status) {
        pace_status predicted = predict_all(&self), verdict = predicted ? predicted : judge(&self);

        /* What was predicted is kept, whatever the others were like. */
        status = pace__predictions_close(&self.to, self.to.count > 0 ? predicted : verdict);
        status = status ? status : verdict;
    }
    if (!status)
        *rows = self.to.count;
    close_all(&self);
    return status;
}

/* Logistic regression as a kind: on sparse rows, and on texts as bags of words and n-grams. */
#include "model/linear/kind.h"

#include "base/kept.h"
#include "model/heaviest.h"
#include "model/linear/linear_file.h"
#include "watch/spans.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

/* A chance to do something else after so many rows. */
#define READY_ROWS 512
/* A look at the stop flag and the loss at least every so many rows. */
#define CHECK_ROWS 65536
/* Rows that a data set is known by. */
#define LOOK_ROWS 4096

typedef struct logreg {
    pace__logreg view;
    pace__stripe whole;
    pace__ngram_rows text; /* of logits() */
    const char *shape;     /* of what is multiplied, for a profile */
} logreg;

static bool is_text(const pace__model_plan *plan)
{
    return plan->data.kind == PACE__ROWS_TEXT;
}

static unsigned ngram_of(const pace__model_plan *plan)
{
    return ((const pace__logreg_own *)plan->own)->ngram;
}

/* Features; the bias comes behind them. */
static uint32_t ids_of(const pace__model_plan *plan)
{
    return (uint32_t)plan->shape.keys - 1;
}

/* --- the plan --- */

pace_status pace__logreg_model_plan(const pace__dataset *data, unsigned ngram, const pace_log *log,
                                    pace__model_plan *plan)
{
    bool text = data->kind == PACE__ROWS_TEXT;
    uint32_t ids = text ? pace__ngram_ids(data->ids, ngram) : data->ids;
    pace__logreg_own *own = malloc(sizeof *own);

    if (!own)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *own = (pace__logreg_own){ngram};
    *plan = (pace__model_plan){.kind = &pace__kind_logreg,
                               .data = *data,
                               .shape = {.keys = (uint64_t)ids + 1, .dim = 1, .outputs = 1},
                               .entries_max = text ? data->columns * ngram : data->row_entries_max,
                               .weights = ids,
                               .guess = M_LN2,
                               .row_weight = 1,
                               .check_rows = CHECK_ROWS,
                               .look_rows = LOOK_ROWS,
                               .penalised = true,
                               .own = own};
    return PACE_OK;
}

static pace_status make_plan(const pace__plan_request *request, const pace_log *log, pace__model_plan *plan)
{
    const pace__dataset *data = request->data;

    if (data->kind == PACE__ROWS_PICTURES || data->kind == PACE__ROWS_FEATURES)
        return pace_fail(log, PACE_USAGE, "%s: holds pictures: give --model cnn", request->config->data);
    return pace__logreg_model_plan(data, (unsigned)request->config->own.logreg.ngram, log, plan);
}

/* --- computing --- */

/* Rows of features differ in length. */
static uint32_t columns_of(const pace__model_plan *plan)
{
    return is_text(plan) ? 0 : plan->data.columns;
}

pace_status pace__logreg_make(const pace__model_plan *plan, pace__logreg *model, const pace_log *log)
{
    return pace__logreg_init(model, ids_of(plan), columns_of(plan), plan->data.has_values, &plan->optim,
                             plan->data.like, log);
}

pace_status pace__logreg_features(const pace__model_plan *plan, const pace__rows **rows,
                                  pace__ngram_rows *text, const pace_log *log)
{
    if (!is_text(plan))
        return PACE_OK;
    pace_status status = pace__ngrams_expand(*rows, plan->data.ids, ngram_of(plan), text, log);

    *rows = &text->rows;
    return status;
}

static pace_status open_logreg(pace__model *model)
{
    const pace__dataset *data = &model->plan.data;
    uint32_t columns = columns_of(&model->plan);
    logreg *own = model->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    pace__logreg_view_init(&own->view, columns, data->has_values, &model->plan.optim, data->like);
    own->whole = pace__logreg_stripe(&own->view, 0, 1);
    if (columns)
        own->shape = pace__span_text(
            "%d x %u", model->rows_max < PACE__BLOCK_ROWS ? (int)model->rows_max : PACE__BLOCK_ROWS, columns);
    return pace__key_finder_init(&model->finder, ids_of(&model->plan), data->like, model->log);
}

static void close_logreg(pace__model *model)
{
    logreg *own = model->own;

    if (own)
        pace__ngram_rows_release(&own->text);
    free(own);
}

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    (void)threads;
    (void)scores_only;
    return ((uint64_t)ids_of(plan) + 1 + rows_max * plan->entries_max) * sizeof(uint32_t);
}

static pace_status expand(pace__model *model, const pace__rows **rows, pace__ngram_rows *text)
{
    return pace__logreg_features(&model->plan, rows, text, model->log);
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    pace_status status = expand(model, &rows, batch->own);

    (void)place;
    if (status)
        return status;
    uint64_t entries = rows->rows ? pace__row_start(rows, rows->rows) : 0;

    if (!batch->keys.slots || entries > batch->keys.entries_max)
        status = pace__key_batch_grow(&batch->keys, ids_of(&model->plan), entries, model->log);
    if (status)
        return status;
    pace__keys_find(&model->finder, rows, &batch->keys);
    batch->sparse = batch->keys.count;
    return PACE_OK;
}

static void release_batch(void *own)
{
    pace__ngram_rows_release(own);
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    logreg *own = model->own;
    const pace__key_batch *keys = &task->batch->keys;
    const pace__rows *rows = &keys->rows;
    int64_t dots[PACE__BLOCK_ROWS];
    float slope[PACE__BLOCK_ROWS];
    pace_status status = PACE_OK;

    pace__logreg_view_set(&own->view, task->weights, keys->count);
    memset(task->sums, 0, ((size_t)keys->count + 1) * sizeof(float));
    task->loss = 0;
    for (size_t at = 0; at < rows->rows && !status; at += PACE__BLOCK_ROWS) {
        size_t count = rows->rows - at < PACE__BLOCK_ROWS ? rows->rows - at : PACE__BLOCK_ROWS;

        uint64_t entries = pace__row_start(rows, at + count) - pace__row_start(rows, at);

        {
            PACE__SPAN_OF("X.W", own->shape, 2 * entries, 8 * entries);
            pace__logreg_dots(&own->view, rows, at, count, &own->whole, 0, dots);
        }
        {
            PACE__SPAN("error");
            task->loss += pace__logreg_gradient(&own->view, rows, at, count, dots, slope);
        }
        {
            PACE__SPAN_OF("X^T.error", own->shape, 2 * entries, 12 * entries);
            pace__keys_accumulate(keys, at, count, slope, task->sums);
        }
        if (at % READY_ROWS == READY_ROWS - PACE__BLOCK_ROWS && task->ready)
            status = task->ready(task->user, 0);
    }
    return status;
}

/* --- scoring --- */

/* The bias lies where rows say "unseen", whose weight is 0: it steps aside while they are summed. */
static float set_aside(float *bias)
{
    float value = *bias;

    *bias = 0;
    return value;
}

static pace_status logits(pace__model *model, const pace__rows *rows, float *found)
{
    pace_status status = expand(model, &rows, &((logreg *)model->own)->text);
    float *bias = model->weights + ids_of(&model->plan);

    if (status)
        return status;
    float value = set_aside(bias);

    pace__linear_logits(model->weights, value, rows, found);
    *bias = value;
    return PACE_OK;
}

static pace_status answers(pace__model *model, const pace__rows *rows, double *found)
{
    pace_status status = expand(model, &rows, &((logreg *)model->own)->text);
    float *bias = model->weights + ids_of(&model->plan);

    if (status)
        return status;
    float value = set_aside(bias);

    for (size_t row = 0; row < rows->rows; row++)
        found[row] = pace__linear_logit(model->weights, value, rows, row);
    *bias = value;
    return PACE_OK;
}

/* --- another model's values --- */

/* Longer n-grams are numbered by the numbers of their words: they mean the same where all words have the same ones. */
static void adopt_ngrams(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, pace__overlap *overlap)
{
    uint32_t words = plan->data.ids, theirs = from->plan.data.ids;
    uint32_t ours = ids_of(plan) - words, known = ids_of(&from->plan) - theirs;

    if (!names->same && ours && known)
        overlap->note = "n-grams are numbered by the words of a vocabulary, and begin fresh with another one "
                        "(prep reviews --like keeps it)";
    for (uint32_t i = 0; names->same && i < ours && i < known; i++) {
        rows[(words + i) * stride] = values[theirs + i];
        overlap->taken += from->weights[theirs + i] != 0;
    }
}

/* What a file lists is what counts: of texts, features with a weight. */
static pace_status adopt(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, const pace_log *log,
                         pace__overlap *overlap)
{
    bool lists_all = !is_text(plan);

    (void)log;
    for (uint32_t id = 0; id < names->count; id++) {
        uint32_t place = names->place[id];

        if (place == PACE__NAME_NEW)
            continue;
        rows[id * stride] = values[place];
        overlap->taken += lists_all || from->weights[place] != 0;
    }
    if (is_text(plan))
        adopt_ngrams(plan, from, names, values, stride, rows, overlap);
    rows[ids_of(plan) * stride] = values[ids_of(&from->plan)];
    overlap->left = from->count - overlap->taken;
    return PACE_OK;
}

/* --- why --- */

typedef struct term_finder {
    const float *weights;
    const uint32_t *next, *end; /* features of the row that have not occurred yet */
    pace__term_fn *tell;
    void *user;
} term_finder;

/* A feature that occurs again, or shares its id with one before, is not the next one. */
static void find_term(void *user, const pace__ngram *found)
{
    term_finder *self = user;

    if (self->next == self->end || found->id != *self->next)
        return;
    self->next++;
    if (self->weights[found->id] != 0)
        self->tell(self->user, &(pace__term){found->words, found->count, (double)self->weights[found->id]});
}

static pace_status text_terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                              void *user)
{
    const pace__model_plan *plan = &model->plan;
    const pace__rows text = pace__rows_slice(rows, row, 1), *features = &text;
    pace_status status = expand(model, &features, &((logreg *)model->own)->text);

    if (status)
        return status;
    term_finder self = {.weights = model->weights,
                        .next = features->ids,
                        .end = features->ids + features->start[1],
                        .tell = tell,
                        .user = user};

    pace__ngrams_walk(pace__row_words(&text, 0), text.length[0], plan->data.ids, ngram_of(plan), find_term,
                      &self);
    return PACE_OK;
}

static pace_status terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                         void *user)
{
    uint32_t unseen = ids_of(&model->plan);

    if (is_text(&model->plan))
        return text_terms(model, rows, row, tell, user);
    for (uint64_t at = pace__row_start(rows, row); at < pace__row_start(rows, row + 1); at++) {
        uint32_t id = rows->ids[at];
        double amount = id == unseen ? 0 : (double)model->weights[id] * (rows->values ? rows->values[at] : 1);

        if (amount != 0)
            tell(user, &(pace__term){&rows->ids[at], 1, amount});
    }
    return PACE_OK;
}

/* --- files --- */

/* That n-grams stay hashes is no reason to lose a model. */
static void find_phrases(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const pace_log *log, pace__phrases *phrases)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    *phrases = (pace__phrases){0};
    if (ngram_of(plan) < 2 || !origin->read_rows)
        return;
    pace__kept_init(&kept, reason, sizeof reason);
    if (pace__phrases_find(weights, plan->data.ids, ngram_of(plan), origin, &kept.log, phrases))
        pace_say(log, PACE_WARN, "the model does not name its n-grams: %s", reason);
}

static pace_status write_text(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                              const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    uint32_t ids = ids_of(plan);
    pace__phrases phrases;

    find_phrases(plan, weights, origin, log, &phrases);
    pace_status status = pace__linear_write_text(path, origin, ngram_of(plan), weights, ids, weights[ids],
                                                 &phrases, sha256, log);

    pace__phrases_release(&phrases);
    return status;
}

static pace_status write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    uint32_t ids = ids_of(plan);

    return is_text(plan) ? write_text(plan, weights, origin, path, sha256, log)
                         : pace__linear_write(path, origin, weights, 1, ids, weights[ids], sha256, log);
}

/* On texts the weights of all features, of which the file lists some. */
static pace_status spread(const pace__linear *from, uint32_t ids, float **weights, const pace_log *log)
{
    float *all = calloc((size_t)ids + 2, sizeof *all);

    if (!all)
        return pace_fail(log, PACE_FAILED, "out of memory: %u weights", ids);
    for (uint32_t i = 0; i < from->count; i++)
        all[from->ids[i]] = from->weight[i];
    *weights = all;
    return PACE_OK;
}

static pace_status read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                        pace__loaded *loaded)
{
    pace__dataset rows = *data;
    pace__linear model;
    pace_status status = pace__linear_read(file, data, &model, log);

    if (status)
        return status;
    if (data->kind == PACE__ROWS_SPARSE)
        rows.ids = model.count; /* a key is the rank of its id */
    status = pace__logreg_model_plan(&rows, model.ngram, log, &loaded->plan);
    if (!status && data->kind == PACE__ROWS_TEXT) {
        status = spread(&model, ids_of(&loaded->plan), &loaded->weights, log);
    } else if (!status) {
        loaded->weights = model.weight;
        model.weight = NULL;
    }
    if (!status) {
        loaded->weights[ids_of(&loaded->plan)] = model.bias;
        loaded->weights[ids_of(&loaded->plan) + 1] = 0;
        loaded->ids = model.ids;
        loaded->count = model.count;
        loaded->phrases = model.phrases.words;
        loaded->phrase_count = model.phrases.count;
        model.ids = NULL;
        model.phrases.words = NULL;
    }
    pace__linear_release(&model);
    return status;
}

/* --- for people --- */

static float listed_weight(const pace__loaded *loaded, uint32_t place)
{
    return loaded->weights[is_text(&loaded->plan) ? loaded->ids[place] : place];
}

typedef struct naming {
    const pace__loaded *loaded;
    const pace__portrait *portrait;
} naming;

/* An n-gram by its words, if they are known. */
static void name_feature(void *user, uint64_t id, char *name, size_t size)
{
    const naming *self = user;
    const pace__loaded *loaded = self->loaded;
    const pace__portrait *portrait = self->portrait;
    pace__phrases phrases = {ngram_of(&loaded->plan), loaded->phrase_count, loaded->phrases};
    unsigned count;
    const uint32_t *words = pace__phrase_of(&phrases, loaded->plan.data.ids, id, &count);

    if (words)
        portrait->name_phrase(portrait->user, words, count, name, size);
    else
        portrait->name(portrait->user, id, name, size);
}

static void describe(const pace__loaded *loaded, const pace__portrait *portrait)
{
    const pace__model_plan *plan = &loaded->plan;
    cJSON *to = portrait->to;
    uint32_t zeros = 0;
    double squares = 0;

    for (uint32_t i = 0; i < loaded->count; i++) {
        double weight = (double)listed_weight(loaded, i);

        zeros += weight == 0;
        squares += weight * weight;
    }
    cJSON_AddStringToObject(to, "model", "logreg");
    if (is_text(plan))
        cJSON_AddNumberToObject(to, "ngram", ngram_of(plan));
    cJSON_AddNumberToObject(to, "features",
                            is_text(plan) ? (double)ids_of(plan) : (double)plan->data.features);
    cJSON_AddNumberToObject(to, "weights", loaded->count);
    cJSON_AddNumberToObject(to, "weights_zero", zeros);
    cJSON_AddNumberToObject(to, "norm", sqrt(squares));
    cJSON_AddNumberToObject(to, "bias", (double)loaded->weights[ids_of(plan)]);
    portrait->add_origin(portrait->user, to);
    naming names = {loaded, portrait};
    pace__portrait named = *portrait;

    named.name = name_feature;
    named.user = &names;
    pace__add_heaviest(loaded, &named, listed_weight);
}

const pace__kind pace__kind_logreg = {
    .info = {"logreg", "logistic regression, on clicks or texts",
             "On texts: 128 rows in a step, 10 epochs. On clicks, by the data: --lr (adagrad) 2 / entries of "
             "a row, "
             "0.07 to 0.3;\nup to 10 epochs of short rows of which there are ten for each feature.",
             pace__logreg_options},
    .by_columns = true,
    .one_thread = true,
    .check = pace__logreg_check,
    .settle = pace__logreg_settle_options,
    .remedies = "a lower --lr, or --l2 1e-5 and more",
    .plan = make_plan,
    .open = open_logreg,
    .close = close_logreg,
    .memory = memory,
    .find = find,
    .batch_bytes = sizeof(pace__ngram_rows),
    .release_batch = release_batch,
    .gradient = gradient,
    .logits = logits,
    .answers = answers,
    .adopt = adopt,
    .terms = terms,
    .write = write,
    .read = read,
    .describe = describe,
};

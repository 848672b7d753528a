/*
 * model.h - a model as everyone else sees it: rows of parameters with keys, a gradient, and a kind behind it.
 *
 * Parameters are `keys` rows of `dim` floats. Whoever computes on some rows of data needs only some of them:
 * find() says which, and numbers them by *slot* (keys.h). Weights and gradients then go by slot.
 *
 *     pace__model_find(model, &rows, place, &batch);              // batch.keys, batch.count
 *     weights[slot] = ...                                         // fetched by key, `dim` floats each
 *     pace__model_gradient(model, &task);                         // sets task.sums by slot, task.loss
 *
 * The *dense* parameters, those that every row of data needs, are rows, too: their floats one behind the
 * other, cut into rows of `dim`, which have the last `dense_rows` keys, and the last slots of every batch. So
 * by slot they lie in one piece. (Where gradients are summed by all-reduce they are taken from that piece,
 * and never travel by key.)
 *
 * The first of the dense rows may be *statistics*, like the running means of batch norm: what is summed for
 * them is not a gradient but the change itself, which is subtracted.
 *
 *     logreg   dim 1; a key per feature, and the bias
 *     rnn      dim is the embedding's; a key per word, then the dense ones
 *     cnn      all dense: statistics, then weights; what is frozen is no parameter
 *
 * For scoring, a model can also be given the weights of all keys at once: use() and logits().
 *
 * A model may begin with another one of its kind, whose values it takes by what they are called in both: adopt().
 *
 * A *kind* (pace__kind) is everything that is true of one sort of models and of no other. Nobody outside its
 * room asks which kind a model is: what others have to know of it stands in the plan as plain values. To add
 * one: a room src/model/NAME that defines pace__kind_NAME, and a line in src/models/kinds.h.
 *
 * Invariants:
 * 1. A plan is a function of options and pace__dataset: a server, which has no data set, plans the same one.
 * 2. Models on sparse rows have the ids of rows as their first keys, in that order, and what else they have
 *    behind them (pace__plan_for relies on it).
 * 3. A model file is a function of the plan, the weights and the origin: equal models are equal bytes.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "files/sha256.h"
#include "math/dataset.h"
#include "model/file.h"
#include "model/keys.h"
#include "optim/optim.h"

#include <paceline/train.h>

typedef struct pace__kind pace__kind;

typedef struct pace__shape {
    uint64_t keys;
    unsigned dim;
    uint32_t dense_rows; /* the last keys */
    size_t dense;        /* floats of them; what is left of the last row means nothing and stays 0 */
    uint32_t
        stats_rows;   /* of the dense rows, the first: statistics. What is left of their last row stays 0 */
    uint32_t outputs; /* logits of a row of data: one, or one for each of more than two classes */
} pace__shape;

static inline uint64_t pace__shape_stats_first(const pace__shape *shape)
{
    return shape->keys - shape->dense_rows;
}

/* --- the plan --- */

/* What a model is going to be. Copies are views: what `own` points to stays the first one's. */
typedef struct pace__model_plan {
    const pace__kind *kind;
    pace__dataset data;
    pace__shape shape;
    pace__optim optim;        /* set by whoever plans the job, when the rate is known */
    uint32_t entries_max;     /* entries of the longest row of data as the model sees it */
    uint64_t weights;         /* numbers that are learned */
    double clip;              /* norm that a step's mean gradient is scaled down to; 0: never */
    double guess;             /* what guessing costs: the loss of a row */
    double row_weight;        /* the most that a row's loss counts; 1: all count the same */
    uint64_t check_rows;      /* rows after which training looks up from its work */
    uint64_t look_rows;       /* the first rows of the order that a data set is known by */
    uint64_t value_bytes;     /* of values besides parameters, in every process that computes */
    uint64_t batch_row_bytes; /* of what find() makes of a row, besides keys and entries */
    bool penalised;      /* --l1 and --l2 are the optimiser's; else the gradient has what there is of them */
    unsigned pools;      /* how many times workers add up something in the middle of a step */
    const char *vectors; /* file of word vectors that take the place of first values; NULL: none */
    const char *begins_with;   /* SHA-256 of the file whose values it begins with; NULL: none */
    const char *feature_cache; /* where features are kept; NULL: in the run directory */
    /* Rows of pictures become rows of features first, once (kind->features); the plan on those says so, too. */
    bool extracts;
    uint32_t features, layers; /* floats of a row of those, and how many layers make them */
    void *own;                 /* the kind's */
} pace__model_plan;

struct pace__loaded;

/* Another model, which this one begins with (warm/warm.h). */
typedef struct pace__forerunner {
    const char *path;   /* as it was named */
    const char *sha256; /* of its file */
    const struct pace__loaded *model;
} pace__forerunner;

/* What a kind makes a plan from. */
typedef struct pace__plan_request {
    const pace_train_config *config; /* nothing is left open */
    const pace__dataset *data;
    pace__describe_fn *describe;    /* understands the encodings of other models */
    bool computes;                  /* values are needed, not only shapes: this is no server */
    bool speaks;                    /* what was found is told: by one process of a job */
    const pace__forerunner *begins; /* NULL: it begins anew, or others have its first values */
} pace__plan_request;

/* PACE_USAGE or PACE_BAD_DATA if there is no such model for such rows, or the one that it begins with has another kind or
 * other sizes. A failure leaves it zeroed. */
pace_status pace__model_plan_make(const pace__kind *kind, const pace__plan_request *request,
                                  const pace_log *log, pace__model_plan *plan);
void pace__model_plan_release(pace__model_plan *plan); /* a zeroed one is allowed */

/* The same model on other sparse rows, which have ids of their own; a view of the first. */
pace__model_plan pace__plan_for(const pace__model_plan *plan, const pace__dataset *data);

/* Keys that so many rows of data need at most. */
size_t pace__model_keys_max(const pace__model_plan *plan, uint64_t rows);

/* --- one worker's --- */

typedef struct pace__model pace__model;

/* For batches of up to rows_max rows; the plan's own part must stay in place. `scores_only`: gradients are
 * never asked for. */
pace_status pace__model_create(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only,
                               const pace_log *log, pace__model **model);
void pace__model_free(pace__model *model); /* NULL is allowed */
uint64_t pace__model_memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only);

/* What find() made of some rows; zeroed before its first use. */
typedef struct pace__model_batch {
    pace__key_batch keys; /* keys.count includes those of dense rows */
    uint32_t sparse;      /* keys that are not dense: the first slots */
    /* private */
    const pace__kind *kind;
    void *own; /* the kind's */
} pace__model_batch;

#define PACE__NO_PLACE UINT64_MAX

/* `place` is that of the first row in the order, for what is left to chance in training; NO_PLACE: nothing is.
 * The rows must stay in place until the gradient is computed. */
pace_status pace__model_find(pace__model *model, const pace__rows *rows, uint64_t place,
                             pace__model_batch *batch);
void pace__model_batch_release(pace__model_batch *batch);

typedef struct pace__task {
    const pace__model_batch *batch;
    uint64_t place;     /* of the first row in the order */
    float *weights;     /* (count + 1, dim) by slot; the last row is the model's own */
    float *sums;        /* (count + 1, dim) set: gradients summed over the rows */
    float *dense_sums;  /* where those of dense rows go; NULL: behind the others, in sums */
    double loss;        /* set: the sum over the rows */
    uint64_t step_rows; /* of the whole step: this worker's and all others' */
    /* Called on the calling thread now and then: dense_sums[first ..] is complete. See rnn.h. */
    pace_status (*ready)(void *user, size_t first);
    /* Called at most once, there too: sums are complete, but for those of dense rows, and so is the loss. May be NULL. */
    pace_status (*sparse_ready)(void *user, double loss);
    /* Adds up values over the workers of a step: plan.pools tells whether it is called. May be NULL: the
     * worker is alone, or goes by its own rows. See cnn.h. */
    pace_status (*sum)(void *user, float *values, size_t count);
    void *user;
} pace__task;

pace_status pace__model_gradient(pace__model *model, pace__task *task);

/* --- scoring --- */

/* Weights of all keys, (keys + 1, dim), which stay the caller's and in place; they may be changed. */
void pace__model_use(pace__model *model, float *weights);
/* (rows, outputs), of any number of rows. */
pace_status pace__model_logits(pace__model *model, const pace__rows *rows, float *logits);
/* The same for people, who see nine digits: of models that compute in double precision, unrounded. Models with
 * one output only. */
pace_status pace__model_answers(pace__model *model, const pace__rows *rows, double *logits);
/* What an extracting model makes of pictures, (rows, features). */
pace_status pace__model_features(pace__model *model, const pace__rows *rows, float *features);

/* --- why --- */

/* A part of a row's logit: what one feature adds to it, or what some of them add together. */
typedef struct pace__term {
    const uint32_t *ids; /* (count) of the row; on texts neighbouring words, in their order */
    unsigned count;
    double amount;
} pace__term;
#define PACE__TERM_IDS_MAX 8

/* Returns the size above which the amounts of further terms matter: those below it may be left out. */
typedef double pace__term_fn(void *user, const pace__term *term);

/* Is a logit the sum of the bias and of terms? */
bool pace__model_has_terms(const pace__model_plan *plan);
/* Tells the terms of a row's logit, in any order, but for those that are 0. */
pace_status pace__model_terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                              void *user);

/* --- first values --- */

/* Are they anything but 0? */
bool pace__model_begins_random(const pace__model_plan *plan);
/* The weights of all keys at the beginning, into rows that are `stride` floats apart. */
pace_status pace__model_first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                      const pace_log *log);

/* --- another model's values --- */

#define PACE__NAME_NEW UINT32_MAX

/* Where what this model knows is in another one, by its name: sparse ids, words, classes. No two are in the same place. */
typedef struct pace__names {
    uint32_t *place; /* (count) of each id, word or class; NAME_NEW: the other model does not know it */
    uint32_t count;
    bool same; /* words, classes: both know the same ones, in the same order */
} pace__names;

/* Of two models' weights, as far as they are in the file. */
typedef struct pace__overlap {
    uint64_t taken;   /* of the new one: those that the other one has */
    uint64_t left;    /* of the other one: those that the new one has no place for */
    const char *note; /* why there are so many, in a sentence; NULL: by names alone */
} pace__overlap;

/*
 * `values` lie as the weights of `from` do, (keys + 1, dim): they are its weights, or what an optimiser keeps of each. They
 * go into rows that are `stride` floats apart, where both models know what they are of. The rest stays as it is.
 */
pace_status pace__model_adopt(const pace__model_plan *plan, const struct pace__loaded *from,
                              const pace__names *names, const float *values, size_t stride, float *rows,
                              const pace_log *log, pace__overlap *overlap);

/* --- the file --- */

/* model.safetensors, from the weights of all keys, (keys, dim). */
pace_status pace__model_write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                              const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log);

/* A model as its file has it. */
typedef struct pace__loaded {
    pace__model_plan plan;
    float *weights; /* (keys + 1, dim), as pace__model_use takes them */
    /* (count) What the file lists weights for, rising: on sparse rows the original id of each of the first
     * keys; of logreg on texts its features. NULL: other rows. */
    uint64_t *ids;
    uint32_t count;
    uint32_t *phrases; /* the kind's: what else has names; NULL: nothing */
    uint32_t phrase_count;
} pace__loaded;

/* `data` is what the file's encoding says of rows; the file's kind is a known one. PACE_BAD_DATA if it is
 * damaged. A failure leaves it zeroed. */
pace_status pace__model_read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                             pace__loaded *loaded);
void pace__loaded_release(pace__loaded *loaded); /* a zeroed one is allowed */

/* A loaded model described to people, as members of a JSON object. */
struct cJSON;
typedef struct pace__portrait {
    struct cJSON *to;
    const pace__model_file *file;
    size_t top; /* how many of the heaviest features to list */
    /* Adds what the model says of data. */
    void (*add_origin)(void *user, struct cJSON *to);
    /* What an id of `loaded->ids` is called; and words of texts, one behind the other. */
    void (*name)(void *user, uint64_t id, char *name, size_t size);
    void (*name_phrase)(void *user, const uint32_t *words, unsigned count, char *name, size_t size);
    void *user;
} pace__portrait;

#define PACE__FEATURE_NAME_MAX 544 /* bytes of a name: that of the longest n-gram fits */

void pace__model_describe(const pace__loaded *loaded, const pace__portrait *portrait);

/* --- kinds --- */

/* What a summary says of a job of this kind besides; a value of NULL is null. */
typedef struct pace__fact {
    const char *name, *value;
} pace__fact;
#define PACE__FACTS_MAX 8

struct pace__kind {
    pace_model_info info; /* its name is "model" in its file, too */
    bool by_columns; /* on sparse rows the threads of one process may split the columns: columns/columns.c */
    bool one_thread; /* a worker computes on one */
    bool has_bf16;   /* knows --precision bf16 */
    bool by_steps;   /* workers of local-sgd train it by steps of their own, and average */
    bool has_values; /* its plan does: whoever computes reads the model that it begins with */

    /* The options: refuses what does not go together (PACE_USAGE); fills in what was left open. */
    pace_status (*check)(const pace_train_config *config, const pace_log *log);
    void (*settle)(pace_train_config *config, const pace__dataset *data);
    bool (*has_logloss)(const pace_train_config *config); /* is that what is minimised? NULL: it is */
    const char *remedies; /* options to try when training rows are learned by heart, besides fewer epochs */

    /* The plan: everything but `kind` and `optim`. `own` is freed by release_plan, or by free() if that is NULL. */
    pace_status (*plan)(const pace__plan_request *request, const pace_log *log, pace__model_plan *plan);
    void (*release_plan)(pace__model_plan *plan);
    /* What a job is known by besides its options, " name=value" words to be freed; NULL when out of memory. */
    char *(*words)(const pace__model_plan *plan); /* NULL: nothing */
    /* Members of summary.json, in order; how many. NULL: none. */
    unsigned (*facts)(const pace__model_plan *plan, const pace_train_config *config, pace__fact *facts);

    /* Computing. */
    pace_status (*open)(pace__model *model);
    void (*close)(pace__model *model);
    uint64_t (*memory)(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only);
    pace_status (*find)(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch);
    size_t batch_bytes; /* of batch.own, zeroed before its first use */
    void (*release_batch)(void *own);
    pace_status (*gradient)(pace__model *model, pace__task *task);
    pace_status (*logits)(pace__model *model, const pace__rows *rows, float *logits);
    pace_status (*answers)(pace__model *model, const pace__rows *rows, double *logits); /* NULL: as logits */
    pace_status (*terms)(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                         void *user); /* NULL: logits are no sums */
    pace_status (*first_weights)(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log); /* NULL: all 0 */

    /* Beginning with another model of the kind. PACE_USAGE if its sizes are others, before a plan is made; NULL: any fit. */
    pace_status (*fits)(const pace__plan_request *request, const pace_log *log);
    pace_status (*adopt)(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, const pace_log *log,
                         pace__overlap *overlap);

    /* Extraction; NULL: no plan of it extracts. The words are all that features depend on, but the pictures. */
    pace_status (*features)(pace__model *model, const pace__rows *rows, float *features);
    int (*feature_words)(const pace__model_plan *plan, char *text, size_t size);

    /* Files. */
    pace_status (*write)(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log);
    pace_status (*read)(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                        pace__loaded *loaded);
    void (*describe)(const pace__loaded *loaded, const pace__portrait *portrait);
};

/* By PACE_MODEL_*; by its name, NULL if there is none. (models/kinds.c) */
const pace__kind *pace__kind_at(int index);
const pace__kind *pace__kind_named(const char *name);
/* "|logreg|rnn|...": the choices of --model begin behind the first bar. */
extern const char pace__kind_names[];

/* --- behind: what kinds see of a model --- */

struct pace__model {
    const pace__kind *kind;
    pace__model_plan plan;
    uint64_t rows_max;
    int threads;
    bool scores_only;
    const pace_log *log;
    pace__key_finder finder;
    float *weights; /* of use() */
    void *own;      /* the kind's */
};

#endif

#include "data/linear_file.h"
#include "model/logreg.h"
#include "model/scoring.h"

#include <stdlib.h>

#define FIELD(name) offsetof(pace_eval_config, name)

const pace_option pace_eval_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to score",
     .required = true},
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set to score it on", .required = true},
    {"set", 0, PACE_OPT_CHOICE, FIELD(set), "auto", "SET",
     "rows to score; auto: the test rows if there are any, else all", .choices = "auto|train|test"},
    {0},
};

/* The model's weights by the data set's compact ids; "unseen", the last one, is 0. */
static pace_status weights_for(const pace__store *store, const pace__linear *model, float **weight,
                               const pace_log *log)
{
    uint64_t *original;
    uint32_t count = store->info.ids_seen;
    pace_status status = pace__store_read_ids(store, &original, log);

    if (status)
        return status;
    float *found = calloc((size_t)count + 1, sizeof *found);

    if (found)
        for (uint32_t i = 0; i < count; i++)
            found[i] = pace__linear_find(model, original[i]);
    free(original);
    if (!found)
        return pace_fail(log, PACE_FAILED, "out of memory: %u weights", count);
    *weight = found;
    return PACE_OK;
}

/* Weights by compact id, and the bias. */
typedef struct plain_model {
    const float *weight;
    float bias;
} plain_model;

static void logits_of(const void *model, const pace__rows *rows, float *logits)
{
    const plain_model *self = model;

    pace__linear_logits(self->weight, self->bias, rows, logits);
}

static pace_status score(const pace__store *store, int wanted, const plain_model *model, const pace_log *log,
                         pace_registry *registry, pace_scores *scores)
{
    bool test = wanted == PACE_SET_TEST || (wanted == PACE_SET_AUTO && store->info.rows[PACE__TEST] > 0);
    pace__scoring scoring = {
        .store = store, .set = test ? PACE__TEST : PACE__TRAIN, .logits = logits_of, .model = model};

    if (store->info.rows[scoring.set] == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: has no %s rows", store->path, test ? "test" : "training");
    pace_status status = pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, &scoring.metrics);

    if (!status)
        status = pace__score_set(&scoring, log, registry, scores);
    pace__metrics_free(scoring.metrics);
    return status;
}

pace_status pace_eval(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                      pace_scores *scores)
{
    pace__linear model;
    pace__store store;
    float *weight = NULL;
    pace_status status = pace__linear_read(config->run, &model, log);

    if (status)
        return status;
    status = pace__store_open(config->data, &store, log);
    if (status)
        goto release_model;
    status = pace__encoding_fits(&model.encoding, &store.info.encoding, log);
    if (!status)
        status = weights_for(&store, &model, &weight, log);
    if (!status)
        status = score(&store, config->set, &(plain_model){weight, model.bias}, log, registry, scores);
    free(weight);
    pace__store_close(&store);
release_model:
    pace__linear_release(&model);
    return status;
}

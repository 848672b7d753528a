#include "base/thread.h"
#include "data/linear_file.h"
#include "data/reader.h"
#include "model/logreg.h"
#include "model/metrics.h"

#include <inttypes.h>
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

static pace_status score_rows(const pace__store *store, int set, const float *weight, float bias,
                              pace__metrics *metrics, const pace_log *log, pace_registry *registry)
{
    pace__reader_plan plan = {.set = set,
                              .sequential = true,
                              .batch = PACE__PIECE_ROWS,
                              .last = store->info.rows[set],
                              .consumers = 1};
    float logits[PACE__PIECE_ROWS];
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status = pace__reader_create(store, &plan, log, &reader);

    if (status)
        return status;
    while (!(status = pace__reader_next(reader, 0, &piece)) && piece) {
        pace_field fields[] = {PACE_TEXT("phase", "score"), PACE_INT("done", piece->first + piece->rows.rows),
                               PACE_INT("total", plan.last), PACE_TEXT("unit", "rows")};

        pace__linear_logits(weight, bias, &piece->rows, logits);
        status = pace__metrics_add_logits(metrics, logits, piece->rows.label, piece->rows.rows);
        if (status)
            break;
        pace_registry_emit(registry, "progress", fields, 4);
    }
    pace__reader_free(reader);
    return status;
}

static pace_status score_sets(const pace__store *store, int wanted, const float *weight, float bias,
                              pace_scores *scores, const pace_log *log, pace_registry *registry)
{
    bool test = wanted == PACE_SET_TEST || (wanted == PACE_SET_AUTO && store->info.rows[PACE__TEST] > 0);
    pace__metrics *metrics;

    if (store->info.rows[test ? PACE__TEST : PACE__TRAIN] == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: has no %s rows", store->path, test ? "test" : "training");
    pace_status status = pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, &metrics);

    if (status)
        return status;
    status = score_rows(store, test ? PACE__TEST : PACE__TRAIN, weight, bias, metrics, log, registry);
    if (!status)
        status = pace__metrics_finish(metrics, scores);
    pace__metrics_free(metrics);
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
        status = score_sets(&store, config->set, weight, model.bias, scores, log, registry);
    free(weight);
    pace__store_close(&store);
release_model:
    pace__linear_release(&model);
    return status;
}

#include "model/scoring.h"
#include "score/scorer.h"

#include <paceline/score.h>

#define FIELD(name) offsetof(pace_eval_config, name)

const pace_option pace_eval_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to score",
     .required = true},
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set to score it on", .required = true},
    {"set", 0, PACE_OPT_CHOICE, FIELD(set), "auto", "SET",
     "rows to score; auto: the test rows if there are any, else all", .choices = "auto|train|test"},
    {0},
};

static pace_status logits_of(void *model, const pace__rows *rows, float *logits)
{
    return pace__scorer_logits(model, rows, logits);
}

static pace_status score(const pace__store *store, int wanted, pace__scorer *scorer, const pace_log *log,
                         pace_registry *registry, pace_scores *scores)
{
    pace_scores found;
    bool test = wanted == PACE_SET_TEST || (wanted == PACE_SET_AUTO && store->info.rows[PACE__TEST] > 0);
    pace__scoring scoring = {
        .store = store, .set = test ? PACE__TEST : PACE__TRAIN, .logits = logits_of, .model = scorer};

    if (store->info.rows[scoring.set] == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: has no %s rows", store->path, test ? "test" : "training");
    pace_status status = pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, &scoring.metrics);

    if (!status)
        status = pace__score_set(&scoring, log, registry, &found);
    pace__metrics_free(scoring.metrics);
    if (!status)
        *scores = found;
    return status;
}

pace_status pace_eval(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                      pace_scores *scores)
{
    pace__scorer scorer;
    pace__store store;
    pace_status status = pace__scorer_open(config->run, log, &scorer);

    if (status)
        return status;
    status = pace__store_open(config->data, &store, log);
    if (status)
        goto close_scorer;
    status = pace__scorer_fit(&scorer, &store);
    if (!status)
        status = score(&store, config->set, &scorer, log, registry, scores);
    pace__store_close(&store);
close_scorer:
    pace__scorer_close(&scorer);
    return status;
}

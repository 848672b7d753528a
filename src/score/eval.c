#include "base/locale.h"
#include "metrics/scoring.h"
#include "score/mistakes.h"
#include "score/scorer.h"
#include "score/wrong_rows.h"

#include <paceline/score.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(pace_eval_config, name)

const pace_option pace_eval_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to score",
     .required = true},
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set to score it on", .required = true},
    {"set", 0, PACE_OPT_CHOICE, FIELD(set), "auto", "SET",
     "rows to score; auto: the test rows if there are any, else all",
     .choices = "auto|train|test|validation"},
    {"errors", 0, PACE_OPT_TEXT, FIELD(errors), NULL, "FILE",
     "write all rows that the model gets wrong, a line each: of texts and clicks part, row, label, "
     "probability of "
     "label 1 and words or features, the surest mistakes first; of pictures path, class, what it was taken "
     "for, "
     "probability"},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing file of --errors"},
    {0},
};

static pace_status logits_of(void *model, const pace__rows *rows, float *logits)
{
    return pace__scorer_logits(model, rows, logits);
}

/* Everything that an evaluation needs, open. */
typedef struct evaluation {
    const pace_eval_config *config;
    pace__scorer scorer;
    pace__store store;
    pace__scoring scoring;
    const pace_log *log;
    pace_registry *registry;
} evaluation;

static pace_status choose_set(evaluation *self)
{
    const pace__store_info *info = &self->store.info;
    int wanted = self->config->set;
    bool test = wanted == PACE_SET_TEST || (wanted == PACE_SET_AUTO && info->rows[PACE__TEST] > 0);

    self->scoring.set = wanted == PACE_SET_VALIDATION ? PACE__VALIDATION : test ? PACE__TEST : PACE__TRAIN;
    if (info->rows[self->scoring.set] > 0)
        return PACE_OK;
    return pace_fail(
        self->log, PACE_BAD_DATA, "%s: has no %s rows%s", self->store.path,
        self->scoring.set == PACE__TRAIN ? "training" : pace__set_names[self->scoring.set],
        wanted == PACE_SET_VALIDATION
            ? " of its own: 'prep --validation' sets some apart; what 'train --validation' takes is "
              "scored in the run's summary.json"
            : "");
}

/* The mistakes of a model on pictures are remembered on the way. */
static pace_status score_pictures(evaluation *self, pace_eval_result *result)
{
    pace__mistakes mistakes;
    pace_status status =
        pace__mistakes_open(&self->store, &self->scorer.saved.names, self->config, &mistakes, self->log);

    if (status)
        return status;
    self->scoring.mistake = pace__mistakes_add;
    self->scoring.user = &mistakes;
    status = pace__score_set(&self->scoring, self->log, self->registry, &result->scores);
    if (!status)
        status = pace__metrics_by_class(
            self->scoring.metrics, (const char *const *)self->scorer.saved.names.items, &result->classes);
    return pace__mistakes_close(&mistakes, status, result);
}

/* The wrong ones are put into words on the way. */
static pace_status score_rows(evaluation *self, pace_eval_result *result)
{
    pace__wrong_rows wrong;

    if (!self->config->errors)
        return pace__score_set(&self->scoring, self->log, self->registry, &result->scores);
    pace_status status = pace__wrong_rows_open(&self->store, &self->scorer, self->scoring.set, self->config,
                                               PACE__WRONG_BYTES_MAX, &wrong, self->log);

    if (status)
        return status;
    self->scoring.mistake = pace__wrong_rows_add;
    self->scoring.user = &wrong;
    status = pace__score_set(&self->scoring, self->log, self->registry, &result->scores);
    return pace__wrong_rows_close(&wrong, status);
}

static pace_status score(evaluation *self, pace_eval_result *result)
{
    bool pictures = self->scorer.saved.names.count > 0;
    pace_status status = choose_set(self);

    if (!status && self->config->errors && strcmp(self->config->errors, "-") == 0)
        status = pace_fail(self->log, PACE_USAGE, "--errors takes a file, not standard output");
    if (status)
        return status;
    status = pace__scoring_metrics(self->scoring.outputs, self->log, &self->scoring.metrics);
    if (status)
        return status;
    status = pictures ? score_pictures(self, result) : score_rows(self, result);
    pace__metrics_free(self->scoring.metrics);
    return status;
}

pace_status pace_eval_fully(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                            pace_eval_result *result)
{
    PACE__C_LOCALE();
    evaluation self = {.config = config, .log = log, .registry = registry};
    pace_eval_result found = {0};
    pace_status status = pace__scorer_open(config->run, log, &self.scorer);

    if (status)
        return status;
    status = pace__store_open(config->data, &self.store, log);
    if (status)
        goto close_scorer;
    pace__store_warn(&self.store, log);
    self.scoring = (pace__scoring){.store = &self.store,
                                   .logits = logits_of,
                                   .model = &self.scorer,
                                   .outputs = pace__scorer_outputs(&self.scorer),
                                   .stop = config->stop};
    status = pace__scorer_fit(&self.scorer, &self.store);
    if (!status)
        status = score(&self, &found);
    if (status)
        pace_eval_result_release(&found);
    else
        *result = found;
    pace__store_close(&self.store);
close_scorer:
    pace__scorer_close(&self.scorer);
    if (status == PACE_INTERRUPTED)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    return status;
}

pace_status pace_eval(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                      pace_scores *scores)
{
    PACE__C_LOCALE();
    pace_eval_result result;
    pace_status status = pace_eval_fully(config, log, registry, &result);

    if (status)
        return status;
    *scores = result.scores;
    pace_eval_result_release(&result);
    return PACE_OK;
}

void pace_eval_result_release(pace_eval_result *result)
{
    pace_class_scores_release(&result->classes);
    for (size_t i = 0; i < result->worst_count; i++)
        free(result->worst[i].path);
    free(result->worst);
    *result = (pace_eval_result){0};
}

/* tune.c - pace_tune: its options, and the order of things. */
#include "base/locale.h"
#include "tune/told.h"

#include <stdlib.h>

#define FIELD(name) offsetof(pace_tune_config, name)

_Static_assert((int)PACE_METRIC_LOGLOSS == PACE__SCORE_LOGLOSS &&
                   (int)PACE_METRIC_ACCURACY == PACE__SCORE_ACCURACY &&
                   (int)PACE_METRIC_AUC == PACE__SCORE_AUC && (int)PACE_METRIC_F1 == PACE__SCORE_F1,
               "a metric is a score");

const pace_option pace_tune_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set made by 'paceline prep'", .required = true,
     .group = "Search"},
    {"model", 0, PACE_OPT_TEXT, FIELD(model), "logreg", "M", "what to train"},
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "DIR", "directory for results, tables and runs",
     .required = true},
    {"try", 0, PACE_OPT_LIST, FIELD(tries), NULL, "NAME=VALUES",
     "an option of train, and a range (lr=0.01..0.3: on a logarithmic scale if its ends are far apart) or "
     "values "
     "(l2=0,1e-6,1e-5); may be repeated",
     .required = true},
    {"budget", 0, PACE_OPT_INT, FIELD(budget), "20", "N",
     "as much training as N runs of full length, at most", .min = 1, .max = PACE__CANDIDATES_MAX},
    {"search", 0, PACE_OPT_CHOICE, FIELD(search), "auto", "S",
     "candidates: all of a grid, of a range 5 points; drawn at random; auto: a grid if there are values only "
     "and the "
     "budget does for all combinations",
     "auto|random|grid"},
    {"metric", 0, PACE_OPT_CHOICE, FIELD(metric), "logloss", "S", "score of the validation rows that decides",
     "logloss|accuracy|auc|f1"},
    {"halving", 0, PACE_OPT_FLAG, FIELD(halving), "true", NULL,
     "begin with more candidates for a ninth or a third of their length, if the budget does not do for all; "
     "the "
     "better third goes on"},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of the candidates that are drawn"},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check every candidate, and list them; run nothing"},
    {"keep-runs", 0, PACE_OPT_FLAG, FIELD(keep_runs), "false", NULL,
     "keep all run directories, in DIR/runs; else that of the winner"},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "begin anew: replace the search that DIR holds"},
    {0},
};

static void say_validation(const pace__search *search, const pace_log *log)
{
    if (search->set_apart)
        pace_say(log, PACE_INFO,
                 "%s: has no validation rows: candidates train without the last %.0f %% of its training "
                 "rows, and are "
                 "compared by those",
                 search->config->data, 100 * PACE__SET_APART);
}

static pace_status run(pace__search *search, const pace_log *log, pace_registry *registry,
                       pace_tune_result *result)
{
    bool dry = search->config->dry_run;
    pace_status status = pace__search_read(search, log);

    if (!status)
        status = pace__search_gather(search, log);
    if (!status && !dry)
        status = pace__search_open(search, log);
    if (status)
        return status;
    say_validation(search, log);
    if (dry)
        return pace__search_tell_dry(search, log, result);
    status = pace__search_climb(search, log, registry);
    return status ? status : pace__search_tell(search, log, result);
}

pace_status pace_tune(const pace_tune_config *config, const pace_log *log, pace_registry *registry,
                      pace_tune_result *result)
{
    PACE__C_LOCALE();
    pace__search *search = calloc(1, sizeof *search);
    pace_tune_result found = {0};

    if (!search)
        return pace_fail(log, PACE_FAILED, "out of memory");
    search->config = config;
    search->score = (pace__score)config->metric;
    search->ledger = PACE__NO_LEDGER;
    search->winner = -1;
    pace_status status = run(search, log, registry, &found);

    if (status)
        pace_tune_result_release(&found);
    else
        *result = found;
    pace__search_release(search);
    free(search);
    return status;
}

void pace_tune_result_release(pace_tune_result *result)
{
    free(result->table);
    free(result->best);
    free(result->validation);
    free(result->test);
    free(result->run);
    free(result->command);
    free(result->json);
    *result = (pace_tune_result){0};
}

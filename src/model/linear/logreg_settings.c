/* The options of logistic regression: what they are, what goes together, what they default to. */
#include "model/defaults.h"
#include "model/linear/kind.h"
#include "model/linear/ngrams.h"
#include "model/settings.h"

#define NGRAM_DEFAULT 2

#define FIELD(name) offsetof(pace_logreg_options, name)

const pace_option pace__logreg_options[] = {
    {"ngram", 0, PACE_OPT_INT, FIELD(ngram), "2", "N", "on texts: features of up to N neighbouring words",
     .min = 1, .max = 5, .mark = PACE_MARK_IDENTITY, .group = "Logistic regression"},
    {0},
};

pace_status pace__logreg_check(const pace_train_config *config, const pace_log *log)
{
    return pace__refuse_network_options(config, "logreg", log);
}

void pace__logreg_settle_options(pace_train_config *config, const pace__dataset *data)
{
    bool text = data->kind == PACE__ROWS_TEXT;

    pace__choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAGRAD);
    pace__choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    pace__choose_integer(&config->length.batch, 0, text ? 128 : 512);
    pace__choose_integer(&config->length.epochs, 0, text ? 10 : pace__sparse_epochs(data));
    if (!text && config->optimiser.rule == PACE_ADAGRAD)
        pace__choose_real(&config->optimiser.lr, 0, pace__sparse_rate(data));
    pace__choose_integer(&config->own.logreg.ngram, 0, NGRAM_DEFAULT);
    if (!text) /* it decides nothing */
        config->own.logreg.ngram = NGRAM_DEFAULT;
    pace__settle_linear(config);
}

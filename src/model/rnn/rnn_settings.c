/* The options of recurrent networks: what they are, what goes together, what they default to. */
#include "model/defaults.h"
#include "model/rnn/kind.h"
#include "model/settings.h"

#define ADAM_RATE 0.004

#define FIELD(name) offsetof(pace_rnn_options, name)

const pace_option pace__rnn_options[] = {
    {"preset", 0, PACE_OPT_CHOICE, FIELD(preset), "none", "P",
     "the settings of a published study, where options do not say otherwise. reviews-2019: 2 layers of "
     "32 "
     "LSTM cells on 100 numbers per word, dense 32, dropout 0.5, momentum at 0.1, class weight 0.2, 128 rows "
     "a worker, 10 epochs",
     "none|reviews-2019", .mark = PACE_MARK_IDENTITY, .group = "Recurrent networks"},
    {"cell", 0, PACE_OPT_CHOICE, FIELD(cell), "lstm", "C", "kind of cells", "lstm|gru",
     .mark = PACE_MARK_IDENTITY},
    {"layers", 0, PACE_OPT_INT, FIELD(layers), "0", "N", "layers of cells", .min = 0,
     .max = PACE__RNN_LAYERS_MAX, .not_zero = true, .mark = PACE_MARK_IDENTITY},
    {"hidden", 0, PACE_OPT_INT, FIELD(hidden), "0", "H", "cells in a layer", .min = 0,
     .max = PACE__RNN_UNITS_MAX, .not_zero = true, .mark = PACE_MARK_IDENTITY},
    {"embed", 0, PACE_OPT_INT, FIELD(embed), "0", "E", "numbers that stand for a word", .min = 0,
     .max = PACE__RNN_UNITS_MAX, .not_zero = true, .mark = PACE_MARK_IDENTITY},
    {"bidirectional", 0, PACE_OPT_CHOICE, FIELD(bidirectional), "auto", "B",
     "read texts in both directions; auto: those whose rows have room for more than 100 words",
     "false|true|auto", .implied = "true", .mark = PACE_MARK_IDENTITY},
    {"pooling", 0, PACE_OPT_CHOICE, FIELD(pooling), "auto", "P",
     "what is made of the cells' outputs over the words: the last one, mean or maximum; auto: last, and mean "
     "where rows have room for more than 100 words",
     "last|mean|max|auto", .mark = PACE_MARK_IDENTITY},
    {"dense", 0, PACE_OPT_INT, FIELD(dense), "-1", "N",
     "units of a layer between cells and output; 0: no such layer", .min = -1, .max = PACE__RNN_UNITS_MAX,
     .mark = PACE_MARK_IDENTITY},
    {"word-dropout", 0, PACE_OPT_REAL, FIELD(word_dropout), "-1", "X",
     "fraction of words that are taken for unknown ones at random in training", .min = -1, .max = 0.99,
     .mark = PACE_MARK_IDENTITY},
    {"loss", 0, PACE_OPT_CHOICE, FIELD(loss), "bce", "L",
     "cross-entropy, focal (hard rows count more) or hinge", "bce|focal|hinge", .mark = PACE_MARK_IDENTITY},
    {"focal", 0, PACE_OPT_REAL, FIELD(focal), "2", "X", "exponent of the focal loss", .min = 0, .max = 10,
     .mark = PACE_MARK_IDENTITY},
    {"embeddings", 0, PACE_OPT_TEXT, FIELD(embeddings), NULL, "FILE",
     "begin with word vectors of this file (text format of GloVe or fastText; .gz, .zst) of --embed numbers "
     "each",
     .mark = PACE_MARK_SURFACE},
    {0},
};

pace_status pace__rnn_check(const pace_train_config *config, const pace_log *log)
{
    if (config->optimiser.l1 > 0 || config->optimiser.l2 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 and --l2 are for --model logreg; an rnn has --dropout");
    if (config->own.rnn.word_dropout < 0 && config->own.rnn.word_dropout != -1)
        return pace_fail(log, PACE_USAGE, "--word-dropout is 0 or more, or -1 for the default");
    if (config->init && config->own.rnn.embeddings)
        return pace_fail(log, PACE_USAGE,
                         "--init begins with all of a model, the vectors of its words among them, and "
                         "--embeddings with vectors from elsewhere: choose one");
    return pace__check_network(config, "an rnn", log);
}

/* The published settings: 128 rows on each worker, and a weight that makes both classes count the same. */
static void apply_reviews_2019(pace_train_config *config)
{
    pace__choose_integer(&config->own.rnn.layers, 0, 2);
    pace__choose_integer(&config->own.rnn.hidden, 0, 32);
    pace__choose_integer(&config->own.rnn.embed, 0, 100);
    pace__choose_integer(&config->own.rnn.dense, -1, 32);
    pace__choose_real(&config->optimiser.dropout, -1, 0.5);
    pace__choose_real(&config->own.rnn.word_dropout, -1, 0);
    pace__choose_real(&config->optimiser.clip, -1, 0);
    pace__choose(&config->own.rnn.pooling, PACE_POOL_AUTO, PACE_POOL_LAST);
    pace__choose(&config->own.rnn.bidirectional, PACE_DIRECTIONS_AUTO, PACE_DIRECTIONS_ONE);
    pace__choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_MOMENTUM);
    pace__choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    if (config->optimiser.rule == PACE_MOMENTUM)
        pace__choose_real(&config->optimiser.lr, 0, 0.1);
    pace__choose_integer(&config->length.batch, 0,
                         128 * (config->cluster.workers - config->cluster.backup_workers));
    pace__choose_integer(&config->length.epochs, 0, 10);
    if (!config->optimiser.class_weight)
        config->optimiser.class_weight = "0.2";
}

void pace__rnn_settle(pace_train_config *config, const pace__dataset *data)
{
    pace_rnn_options *own = &config->own.rnn;

    if (own->preset == PACE_PRESET_REVIEWS_2019)
        apply_reviews_2019(config);
    pace__choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAM);
    pace__choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_LINEAR);
    pace__choose_integer(&config->length.batch, 0, 128);
    pace__choose_integer(&config->length.epochs, 0, pace__text_epochs(data, config->length.batch));
    if (config->optimiser.rule == PACE_ADAM)
        pace__choose_real(&config->optimiser.lr, 0, ADAM_RATE);
    pace__choose_integer(&own->layers, 0, 1);
    pace__choose_integer(&own->hidden, 0, 64);
    pace__choose_integer(&own->embed, 0, 64);
    pace__choose_integer(&own->dense, -1, 0);
    pace__choose_real(&config->optimiser.dropout, -1, 0.5);
    pace__choose_real(&own->word_dropout, -1, 0.2);
    pace__choose_real(&config->optimiser.clip, -1, 5);
    if (data->columns == 0) /* nobody knows yet how texts are read */
        return;
    bool is_long = pace__long_texts(data);

    pace__choose(&own->pooling, PACE_POOL_AUTO, is_long ? PACE_POOL_MEAN : PACE_POOL_LAST);
    pace__choose(&own->bidirectional, PACE_DIRECTIONS_AUTO,
                 is_long ? PACE_DIRECTIONS_BOTH : PACE_DIRECTIONS_ONE);
}

bool pace__rnn_has_logloss(const pace_train_config *config)
{
    return config->own.rnn.loss == PACE_LOSS_BCE;
}

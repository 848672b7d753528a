/* Training on texts, from a data set to a model: recurrent networks and n-grams, in every mode. A job of
 * several ranks is one of threads here; tests/cli/test_cluster_train_reviews.sh has processes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "jobs.h"
#include "model_files.h"
#include "thinned.h"
#include "tiny_texts.h"

#include <sys/prctl.h>

#define ROWS      730 /* no multiple of a batch or a block */
#define BATCH     50
#define PER_EPOCH 15
#define STEPS     (4 * PER_EPOCH)

/* --- sets and runs --- */

static const tiny_texts_plan plain_set = {
    .train = ROWS, .test = 200, .words = 30, .length = 9, .parts = 3, .seed = 1};

static void make_set(void **state, const char *name, tiny_texts_plan plan)
{
    tiny_texts set = tiny_texts_make(plan);

    tiny_texts_write(&set, in(state, name));
    tiny_texts_free(&set);
}

/* What the options leave open, and a small network. */
static pace_train_config settings(void **state, int model)
{
    pace_train_config config = {.data = in(state, "set"),
                                .run = in(state, "run"),
                                .model = model,
                                ONE_PROCESS,
                                .optimiser.rule = PACE_OPTIMIZER_AUTO,
                                .optimiser.schedule = PACE_SCHEDULE_AUTO,
                                .optimiser.momentum = 0.9,
                                .optimiser.clip = -1,
                                .length.batch = BATCH,
                                .length.epochs = 2,
                                .faults.keep = 2,
                                .seed = 7,
                                .force = true,
                                .optimiser.dropout = -1};

    if (model == PACE_MODEL_RNN) {
        config.own.rnn = (pace_rnn_options){
            .pooling = PACE_POOL_AUTO, .dense = -1, .word_dropout = -1, .focal = 2, .embed = 6, .hidden = 5};
        config.optimiser.lr = 0.03;
    } else {
        config.own.logreg.ngram = 1;
    }
    return config;
}

static const int models[] = {PACE_MODEL_LOGREG, PACE_MODEL_RNN};

/* --- every mode --- */

static const layout layouts[] = {
    {PACE_MODE_LOCAL, 1, -1, -1, false},    {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
    {PACE_MODE_ALLREDUCE, 3, -1, -1, true}, {PACE_MODE_PS_SYNC, 2, 0, -1, false},
    {PACE_MODE_PS_SYNC, 2, 1, -1, true},    {PACE_MODE_PS_ASYNC, 2, 0, -1, false},
    {PACE_MODE_PS_ASYNC, 3, 1, -1, false},  {PACE_MODE_PS_SSP, 2, 1, 1, false},
};

#define LAYOUTS (sizeof layouts / sizeof *layouts)

static void assert_same_scores(const pace_scores *left, const pace_scores *right)
{
    assert_int_equal(left->n, right->n);
    assert_true(left->accuracy == right->accuracy && left->precision == right->precision);
    assert_true(left->recall == right->recall && left->f1 == right->f1 && left->auc == right->auc);
    assert_int_equal(left->true_positives, right->true_positives);
    assert_true(fabs(left->logloss - right->logloss) < 1e-9);
    assert_true(fabs(left->mean_predicted - right->mean_predicted) < 1e-9);
}

/* What eval says of the run that has just ended is what the run has said. */
static void eval_agrees(void **state, const pace_scores *test)
{
    pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set")};
    pace_scores scores;

    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_same_scores(&scores, test);
    eval.set = PACE_SET_TRAIN;
    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_int_equal(scores.n, ROWS);
}

/* Words stand for themselves: more even ones than odd ones. Who guesses has null_logloss. */
static void every_mode_learns(void **state)
{
    tiny_texts_plan front = plain_set;

    front.front = true;
    for (size_t m = 0; m < 2; m++) {
        make_set(state, "set", m ? front : plain_set);
        for (size_t l = 0; l < LAYOUTS; l++) {
            pace_train_config config = settings(state, models[m]);

            lay_out(&config, layouts[l]);
            config.length.epochs = 8;
            config.records.eval_every = 40;
            pace_train_result result = train(&config);

            assert_int_equal(result.steps, 8 * PER_EPOCH);
            assert_int_equal(result.samples, 8 * ROWS);
            assert_int_equal(result.test.n, 200);
            if (!(result.test.logloss < 0.6 * result.test.null_logloss && result.test.auc > 0.9))
                fail_msg("model %zu, layout %zu: log-loss %g, by guessing %g, AUC %g", m, l,
                         result.test.logloss, result.test.null_logloss, result.test.auc);
            assert_true(isfinite(result.train_loss));
            eval_agrees(state, &result.test);
        }
    }
}

/* Cells, layers, directions, pooling, losses and rules, and n-grams: all of them learn something. */
static void every_kind_of_network_learns(void **state)
{
    pace_train_config variants[9];

    make_set(state, "set", plain_set);
    for (size_t i = 0; i < 9; i++) {
        variants[i] = settings(state, PACE_MODEL_RNN);
        variants[i].length.epochs = 8;
    }
    variants[0].own.rnn.cell = PACE_CELL_GRU;
    variants[1].own.rnn.layers = 2;
    variants[1].optimiser.dropout = 0.1;
    variants[2].own.rnn.bidirectional = true;
    variants[3].own.rnn.pooling = PACE_POOL_MEAN;
    variants[3].own.rnn.dense = 4;
    variants[4].own.rnn.pooling = PACE_POOL_MAX;
    variants[5].own.rnn.loss = PACE_LOSS_FOCAL;
    variants[6].own.rnn.loss = PACE_LOSS_HINGE;
    variants[7].optimiser.rule = PACE_ADAGRAD;
    variants[7].optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    variants[8] = settings(state, PACE_MODEL_LOGREG);
    variants[8].length.epochs = 8;
    variants[8].own.logreg.ngram = 2;
    for (size_t i = 0; i < 9; i += THINNED(2)) {
        pace_train_result result = train_alone(&variants[i]);

        if (!(result.test.auc > 0.85 && result.test.accuracy > result.test.null_accuracy + 0.1))
            fail_msg("variant %zu: AUC %g, accuracy %g, by guessing %g", i, result.test.auc,
                     result.test.accuracy, result.test.null_accuracy);
    }
}

/* --- the same bytes --- */

static void any_number_of_threads_gives_the_same_model(void **state)
{
    make_set(state, "set", plain_set);
    for (size_t m = 0; m < 2; m++) {
        pace_train_config config = settings(state, models[m]);
        sha expected = sha_of(&config);

        for (config.cluster.threads = 2; config.cluster.threads <= 3; config.cluster.threads++)
            assert_string_equal(train_alone(&config).model_sha256, expected.hex);
    }
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    lay_out(&config, (layout){PACE_MODE_ALLREDUCE, 2, -1, -1, false});
    sha expected = sha_of(&config);

    config.cluster.threads = 2;
    assert_sha(&config, expected);
    config.seed = 8;
    assert_string_not_equal(sha_of(&config).hex, expected.hex);
}

/* With a bound on the gradient, servers see each worker's part of it alone, so there is none here. */
static void any_number_of_servers_gives_the_same_model(void **state)
{
    static const layout same[][4] = {
        {{PACE_MODE_ALLREDUCE, 1, -1, -1, true},
         {PACE_MODE_PS_SYNC, 1, 1, -1, false},
         {PACE_MODE_PS_SYNC, 1, 0, -1, false}},
        {{PACE_MODE_ALLREDUCE, 2, -1, -1, false},
         {PACE_MODE_PS_SYNC, 2, 0, -1, true},
         {PACE_MODE_PS_SYNC, 2, 1, -1, false},
         {PACE_MODE_PS_SYNC, 2, 2, -1, true}},
        {{PACE_MODE_ALLREDUCE, 3, -1, -1, false}, {PACE_MODE_PS_SYNC, 3, 2, -1, false}}};

    make_set(state, "set", plain_set);
    for (size_t m = 0; m < 2; m++) {
        for (size_t w = 0; w < 3; w++) {
            pace_train_config config = settings(state, models[m]);
            sha expected = {""};

            config.optimiser.clip = 0;
            for (size_t l = 0; l < 4 && same[w][l].workers; l++) {
                lay_out(&config, same[w][l]);
                if (l == 0)
                    expected = sha_of(&config);
                else
                    assert_sha(&config, expected);
            }
            lay_out(&config, layouts[0]);
            if (w == 0)
                assert_string_equal(train_alone(&config).model_sha256, expected.hex);
        }
    }
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    config.optimiser.clip = 0.01;
    lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 0, -1, false});
    sha expected = sha_of(&config);

    config.cluster.ps = 2; /* their number makes no difference to the parts */
    assert_sha(&config, expected);
}

/* --- the same numbers --- */

/* Dropout is by a row's place in the order, so several workers drop what one does. */
static void more_workers_compute_the_same(void **state)
{
    static const layout many[] = {{PACE_MODE_LOCAL, 1, -1, -1, false},
                                  {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
                                  {PACE_MODE_PS_SYNC, 2, 1, -1, false},
                                  {PACE_MODE_PS_SYNC, 4, 0, -1, false}};
    double one[STEPS], more[STEPS];

    make_set(state, "set", plain_set);
    for (size_t m = 0; m < 2; m++) {
        for (size_t l = 0; l < 4; l++) {
            pace_train_config config = settings(state, models[m]);

            config.length.epochs = STEPS / PER_EPOCH;
            config.records.log_every = 1;
            config.optimiser.clip = 0;
            lay_out(&config, many[l]);
            train(&config);
            assert_int_equal(read_losses(state, l ? more : one, STEPS), STEPS);
            for (int step = 0; l && step < STEPS; step++) {
                if (!(fabs(more[step] - one[step]) < 1e-3))
                    fail_msg("model %zu, layout %zu, step %d: loss %g, of one worker %g", m, l, step + 1,
                             more[step], one[step]);
            }
            assert_true(one[STEPS - 1] < one[0] - 0.1);
        }
    }
}

/* It bounds the step; and all-reduce bounds the same gradient as one process does. */
static void a_bound_on_the_gradient_works(void **state)
{
    double one[STEPS], more[STEPS];

    make_set(state, "set", plain_set);
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    config.length.epochs = STEPS / PER_EPOCH;
    config.records.log_every = 1;
    config.optimiser.rule = PACE_SGD;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    config.optimiser.dropout = config.own.rnn.word_dropout = 0;
    config.optimiser.lr = 5;
    config.optimiser.clip = 1e-7;
    train(&config);
    read_losses(state, one, STEPS);
    assert_true(fabs(one[STEPS - 1] - one[0]) < 0.05); /* 60 steps of next to nothing */
    config.optimiser.clip = 0.05;
    train(&config);
    read_losses(state, one, STEPS);
    assert_true(one[STEPS - 1] < one[0] - 0.1);
    lay_out(&config, layouts[1]);
    train(&config);
    read_losses(state, more, STEPS);
    for (int step = 0; step < STEPS; step++)
        assert_true(fabs(more[step] - one[step]) < 1e-3);
}

/* A set whose short texts are all negative. How many of the training rows are positive? */
static double make_rare(void **state)
{
    tiny_texts set = tiny_texts_make(plain_set);

    for (int which = 0; which < PACE__SETS; which++) {
        for (uint64_t row = 0; row < set.info.rows[which]; row++) {
            bool turned = set.label[which][row] && set.length[which][row] < 5;

            set.label[which][row] -= turned;
            set.info.positives[which] -= turned;
        }
    }
    tiny_texts_write(&set, in(state, "set"));
    double positives = (double)set.info.positives[PACE__TRAIN];

    tiny_texts_free(&set);
    return positives;
}

/* "balanced" is the weight of positive rows that makes up for their number, and a mean weight of 1. */
static void balanced_classes_weigh_the_same(void **state)
{
    double rows = ROWS, positives = make_rare(state), negatives = rows - positives;
    char weight[32];

    assert_true(positives < 0.4 * rows && positives > 0.1 * rows);
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    config.optimiser.rule = PACE_SGD;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    config.optimiser.clip = 0;
    config.length.epochs = 6;
    config.optimiser.lr = 0.2;
    config.optimiser.class_weight = "balanced";
    pace_train_result balanced = train(&config);

    snprintf(weight, sizeof weight, "%.17g", negatives / positives);
    config.optimiser.class_weight = weight;
    config.optimiser.lr = 0.2 * rows / (2 * negatives);
    pace_train_result weighted = train(&config);

    config.optimiser.class_weight = NULL;
    pace_train_result plain = train(&config);

    assert_true(fabs(balanced.test.logloss - weighted.test.logloss) < 1e-5);
    assert_true(fabs(balanced.test.mean_predicted - weighted.test.mean_predicted) < 1e-5);
    assert_true(balanced.test.mean_predicted > plain.test.mean_predicted + 0.02);
}

/* --- interruption --- */

/* And watching it, with records, scores and checkpoints, does not change it either. */
static void an_interrupted_run_ends_like_an_undisturbed_one(void **state)
{
    static const int64_t steps[] = {22, PER_EPOCH, 0, 0, 1};

    make_set(state, "set", plain_set);
    for (size_t m = 0; m < 2; m++) {
        for (size_t l = 0; l < 5; l += l ? 3 : 1) {
            pace_train_config config = settings(state, models[m]);

            lay_out(&config, layouts[l]);
            ends_like_an_undisturbed_one(state, config, steps[l], 50);
        }
    }
}

static void every_optimiser_resumes(void **state)
{
    static const struct {
        int model, optimizer;
    } rules[] = {{PACE_MODEL_RNN, PACE_MOMENTUM},
                 {PACE_MODEL_RNN, PACE_ADAGRAD},
                 {PACE_MODEL_RNN, PACE_SGD},
                 {PACE_MODEL_LOGREG, PACE_ADAM},
                 {PACE_MODEL_LOGREG, PACE_FTRL}};

    make_set(state, "set", plain_set);
    for (size_t i = 0; i < 5; i++) {
        pace_train_config config = settings(state, rules[i].model), again;

        config.records.log_every = 1;
        config.optimiser.rule = rules[i].optimizer;
        config.optimiser.schedule = PACE_SCHEDULE_COSINE;
        config.optimiser.warmup = 5;
        config.optimiser.lr = 0.01;
        sha expected = sha_of(&config);

        interrupt(config, 20);
        again = resumed(config);
        assert_sha(&again, expected);
    }
}

/* Who goes on may be more, or others, than who began: the same workers give the same bytes. */
static void others_may_go_on(void **state)
{
    make_set(state, "set", plain_set);
    for (size_t m = 0; m < 2; m++) {
        pace_train_config config = settings(state, models[m]), again;

        config.records.log_every = 1;
        config.optimiser.clip = 0;
        lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 2, -1, false});
        pace_train_result whole = train(&config);

        for (size_t l = 1; l <= 2; l++) {
            interrupt(config, 11);
            again = resumed(config);
            lay_out(&again, layouts[l]);
            pace_train_result result = train(&again);

            if (layouts[l].workers == 2)
                assert_string_equal(result.model_sha256, whole.model_sha256);
            assert_true(fabs(result.test.logloss - whole.test.logloss) < 1e-3);
        }
    }
}

static void another_job_cannot_resume(void **state)
{
    tiny_texts_plan shorter = plain_set;

    shorter.length = 8;
    make_set(state, "set", plain_set);
    make_set(state, "shorter", shorter);
    pace_train_config config = settings(state, PACE_MODEL_RNN), again, changed[12];

    config.records.log_every = 1;
    interrupt(config, 20);
    again = resumed(config);
    for (size_t i = 0; i < 12; i++)
        changed[i] = again;
    changed[0].own.rnn.hidden = 6;
    changed[1].own.rnn.embed = 7;
    changed[2].own.rnn.cell = PACE_CELL_GRU;
    changed[3].own.rnn.bidirectional = true;
    changed[4].optimiser.dropout = 0.1;
    changed[5].own.rnn.word_dropout = 0;
    changed[6].optimiser.class_weight = "balanced";
    changed[7].optimiser.clip = 1;
    changed[8].own.rnn.pooling = PACE_POOL_MAX;
    changed[9].own.rnn.loss = PACE_LOSS_HINGE;
    changed[10].data = in(state, "shorter");
    changed[11] = resumed(settings(state, PACE_MODEL_LOGREG));
    for (size_t i = 0; i < 12; i++)
        fail_to_train(&changed[i], PACE_USAGE, "step-000000000020");
    train_alone(&again); /* itself can */
    config = settings(state, PACE_MODEL_LOGREG);
    config.records.log_every = 1;
    interrupt(config, 20);
    again = resumed(config);
    again.own.logreg.ngram = 2;
    fail_to_train(&again, PACE_USAGE, "step-000000000020");
}

/* --- word vectors --- */

#define EMBED 6

/* Vectors of some words, of one that is unknown and of a stop word: number i of word w is w + i / 8. */
static void write_vectors(void **state, uint32_t dimensions)
{
    char text[8192] = "";
    size_t used = 0;
    static const char *const words[] = {"w0", "w3", "the", "elsewhere", "w29", "w3"};

    for (size_t w = 0; w < 6; w++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", words[w]);
        for (uint32_t i = 0; i < dimensions; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, " %.3f", (double)w + i / 8.0);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    put_text(in(state, "vectors"), text);
}

static bool has_vector(const rnn_file *model, uint32_t word, double from)
{
    for (uint32_t i = 0; i < EMBED; i++) {
        if (fabs(model->embedding[(PACE__ID_WORDS + word) * EMBED + i] - (from + i / 8.0)) > 1e-6)
            return false;
    }
    return true;
}

/* Training that hardly moves: the model is what it began with. */
static void a_network_begins_with_the_vectors_of_a_file(void **state)
{
    make_set(state, "set", plain_set);
    write_vectors(state, EMBED);
    for (size_t l = 0; l < 5; l += 2) {
        pace_train_config config = settings(state, PACE_MODEL_RNN);
        rnn_file model;
        float random[EMBED];

        lay_out(&config, layouts[l]);
        config.length.steps = 1;
        config.optimiser.lr = 1e-9;
        config.own.rnn.embeddings = in(state, "vectors");
        train(&config);
        assert_said("vectors for 3 of 30 words");
        assert_ok(rnn_read(in(state, "run"), &model));
        assert_true(has_vector(&model, 0, 0) && has_vector(&model, 3, 1) && has_vector(&model, 29, 4));
        for (uint32_t word = 0; word < 30; word++) {
            pace__rnn_config first = model.config;

            if (word == 0 || word == 3 || word == 29)
                continue;
            first.seed = config.seed;
            pace__rnn_init_word(&first, PACE__ID_WORDS + word, random);
            for (uint32_t i = 0; i < EMBED; i++)
                assert_true(fabs(model.embedding[(PACE__ID_WORDS + word) * EMBED + i] - random[i]) < 1e-6);
        }
        rnn_release(&model);
    }
}

/* Killed before its first checkpoint, or stopped behind it: it begins, or goes on, with the vectors. */
static void a_run_that_begins_again_keeps_its_vectors(void **state)
{
    make_set(state, "set", plain_set);
    write_vectors(state, EMBED);
    for (size_t l = 0; l < 5; l += 4) {
        pace_train_config config = settings(state, PACE_MODEL_RNN), again;

        lay_out(&config, layouts[l]);
        config.records.log_every = 1;
        sha without = sha_of(&config);

        config.own.rnn.embeddings = in(state, "vectors");
        sha expected = sha_of(&config);

        assert_string_not_equal(expected.hex, without.hex);
        again = resumed(config);
        assert_ok(pace__runstate_write(in(state, "run"), &(pace__runstate){.incarnation = 1}, &said_log));
        assert_int_equal(unlink(in(state, "run/model.safetensors")), 0);
        assert_int_equal(unlink(in(state, "run/summary.json")), 0);
        assert_sha(&again, expected);
        assert_said("begins at step 0");
        interrupt(config, 4);
        assert_sha(&again, expected);
    }
}

static void vectors_that_do_not_fit_are_refused(void **state)
{
    make_set(state, "set", plain_set);
    write_vectors(state, EMBED + 2);
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    config.own.rnn.embeddings = in(state, "vectors");
    fail_to_train(&config, PACE_BAD_DATA, in(state, "vectors"));
    config.own.rnn.embed = EMBED + 2;
    train_alone(&config);
    config.own.rnn.embeddings = in(state, "none");
    fail_to_train(&config, PACE_NO_INPUT, in(state, "none"));
}

/* --- what is left behind --- */

/* The length of the rows, the vocabulary, and the kind of data. */
static void a_model_is_not_applied_to_another_kind_of_set(void **state)
{
    tiny_texts_plan longer = plain_set, other = plain_set;
    tiny_set clicks = tiny_make((tiny_plan){.train = 300, .test = 50, .ids = 40, .columns = 5, .seed = 3});
    static const char *const sets[] = {"longer", "other", "clicks"};
    static const char *const reasons[] = {"length", "vocabulary", "text"};

    longer.length = 12;
    other.words = 31;
    make_set(state, "set", plain_set);
    make_set(state, "longer", longer);
    make_set(state, "other", other);
    tiny_write(&clicks, in(state, "clicks"));
    tiny_free(&clicks);
    for (size_t m = 0; m < 2; m++) {
        pace_train_config config = settings(state, models[m]);

        train_alone(&config);
        for (size_t i = 0; i < 3; i++) {
            pace_eval_config eval = {.run = in(state, "run"), .data = in(state, sets[i])};
            pace_scores scores;

            said_clear();
            assert_failed(pace_eval(&eval, &said_log, NULL, &scores), PACE_BAD_DATA, reasons[i]);
        }
    }
    pace_train_config config = settings(state, PACE_MODEL_LOGREG);
    pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set")};
    pace_scores scores;

    config.data = in(state, "clicks");
    train_alone(&config);
    said_clear();
    assert_failed(pace_eval(&eval, &said_log, NULL, &scores), PACE_BAD_DATA, "text");
}

static void a_run_that_gets_worse_stops_early(void **state)
{
    tiny_texts_plan few = plain_set;

    few.train = 60; /* to be learned by heart */
    make_set(state, "set", few);
    for (size_t l = 0; l < 2; l++) {
        pace_train_config config = settings(state, PACE_MODEL_RNN);

        lay_out(&config, layouts[l]);
        config.length.epochs = 500;
        config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
        config.optimiser.dropout = config.own.rnn.word_dropout = 0;
        config.optimiser.lr = 0.1;
        config.records.eval_every = 4;
        config.length.early_stop = 3;
        pace_train_result result = train(&config);

        assert_said("stopping early");
        assert_true(result.steps < 1000 && result.steps % 4 == 0);
        config.records.eval_every = 0;
        if (l == 0)
            fail_to_train(&config, PACE_USAGE, "--eval-every");
    }
}

/* --- settings --- */

static void assert_in_config(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("config.yaml lacks %s; it is:\n%s", line, text);
}

/* The settings of the study are those of the run, and repeat it. */
static void a_preset_is_what_the_run_has(void **state)
{
    static const char *const lines[] = {
        "\nlayers: 2\n",      "\nhidden: 32\n",        "\nembed: 100\n",
        "\ndense: 32\n",      "\ndropout: 0.5\n",      "\nlr: 0.1",
        "\nclip: 0\n",        "\npooling: \"last\"\n", "\nword-dropout: 0\n",
        "\nbatch: 256\n",     "\nepochs: 10\n",        "\noptimizer: \"momentum\"\n",
        "\ncell: \"lstm\"\n", "\nsteps: 2\n",          "\nclass-weight: \"0.2\"\n",
    };

    make_set(state, "set", plain_set);
    pace_train_config config = settings(state, PACE_MODEL_RNN);

    lay_out(&config, (layout){PACE_MODE_ALLREDUCE, 2, -1, -1, false});
    config.own.rnn.preset = PACE_PRESET_REVIEWS_2019;
    config.length.batch = config.length.epochs = config.own.rnn.embed = config.own.rnn.hidden = 0;
    config.optimiser.lr = 0;
    config.length.steps = 2;
    sha expected = sha_of(&config);
    char *text = get_text(in(state, "run/config.yaml"));

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_in_config(text, lines[i]);
    free(text);
    config.own.rnn.preset = PACE_PRESET_NONE;
    config.own.rnn.layers = 2;
    config.own.rnn.hidden = config.own.rnn.dense = 32;
    config.own.rnn.embed = 100;
    config.optimiser.dropout = 0.5;
    config.own.rnn.word_dropout = config.optimiser.clip = 0;
    config.optimiser.rule = PACE_MOMENTUM;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    config.optimiser.lr = 0.1;
    config.length.batch = 256;
    config.optimiser.class_weight = "0.2";
    assert_sha(&config, expected);
    config.own.rnn.preset = PACE_PRESET_REVIEWS_2019; /* what is given counts more */
    config.own.rnn.hidden = 4;
    config.optimiser.lr = 0.05;
    config.optimiser.class_weight = "balanced";
    train(&config);
    text = get_text(in(state, "run/config.yaml"));
    assert_in_config(text, "\nhidden: 4\n");
    assert_in_config(text, "\nclass-weight: \"balanced\"\n");
    free(text);
}

static void what_does_not_go_together_is_named(void **state)
{
    tiny_set clicks = tiny_make((tiny_plan){.train = 100, .ids = 40, .columns = 5, .seed = 3});
    tiny_texts_plan one_class = plain_set;
    pace_train_config rnn = settings(state, PACE_MODEL_RNN), linear = settings(state, PACE_MODEL_LOGREG);

    make_set(state, "set", plain_set);
    tiny_write(&clicks, in(state, "clicks"));
    tiny_free(&clicks);
    struct {
        pace_train_config config;
        const char *message;
    } cases[] = {{rnn, "--l1"},
                 {rnn, "--l2"},
                 {rnn, "ftrl"},
                 {rnn, "--exact"},
                 {rnn, "--dropout"},
                 {rnn, "--word-dropout"},
                 {rnn, "--class-weight 'nonsense'"},
                 {rnn, "has no texts"},
                 {linear, "--class-weight"}};

    cases[0].config.optimiser.l1 = 0.1;
    cases[1].config.optimiser.l2 = 0.1;
    cases[2].config.optimiser.rule = PACE_FTRL;
    cases[3].config.optimiser.exact = true;
    cases[4].config.optimiser.dropout = -0.5;
    cases[5].config.own.rnn.word_dropout = -0.5;
    cases[6].config.optimiser.class_weight = "nonsense";
    cases[7].config.data = in(state, "clicks");
    cases[8].config.optimiser.class_weight = "2";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fail_to_train(&cases[i].config, PACE_USAGE, cases[i].message);
    one_class.train = 1;
    make_set(state, "single", one_class);
    rnn.data = in(state, "single");
    rnn.optimiser.class_weight = "balanced";
    fail_to_train(&rnn, PACE_BAD_DATA, "both classes");
    assert_false(pace__exists(in(state, "run")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    /* Every run has many small tables, and to clear a huge page for each takes longer than to train. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    const struct CMUnitTest tests[] = {
        TEST(every_mode_learns),
        TEST(every_kind_of_network_learns),
        TEST(any_number_of_threads_gives_the_same_model),
        TEST(any_number_of_servers_gives_the_same_model),
        TEST(more_workers_compute_the_same),
        TEST(a_bound_on_the_gradient_works),
        TEST(balanced_classes_weigh_the_same),
        TEST(an_interrupted_run_ends_like_an_undisturbed_one),
        TEST(every_optimiser_resumes),
        TEST(others_may_go_on),
        TEST(another_job_cannot_resume),
        TEST(a_network_begins_with_the_vectors_of_a_file),
        TEST(a_run_that_begins_again_keeps_its_vectors),
        TEST(vectors_that_do_not_fit_are_refused),
        TEST(a_model_is_not_applied_to_another_kind_of_set),
        TEST(a_run_that_gets_worse_stops_early),
        TEST(a_preset_is_what_the_run_has),
        TEST(what_does_not_go_together_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

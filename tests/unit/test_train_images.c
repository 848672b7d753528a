/* Training on pictures, from a data set to a model, in every mode. A job of several ranks is one of threads here;
 * tests/cli/test_cluster_train_images.sh has processes. What is left as it is (--train from:LAYER, --train top) is
 * in test_train_frozen.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "picture_jobs.h"
#include "thinned.h"

#include <sys/prctl.h>

#define STEPS (3 * PER_EPOCH)

/* --- every mode --- */

static const layout layouts[] = {
    {PACE_MODE_LOCAL, 1, -1, -1, false},    {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
    {PACE_MODE_ALLREDUCE, 3, -1, -1, true}, {PACE_MODE_PS_SYNC, 2, 0, -1, false},
    {PACE_MODE_PS_SYNC, 2, 1, -1, true},    {PACE_MODE_PS_SYNC, 2, 2, -1, false},
    {PACE_MODE_PS_ASYNC, 2, 0, -1, false},  {PACE_MODE_PS_ASYNC, 3, 1, -1, false},
    {PACE_MODE_PS_SSP, 2, 1, 1, false},
};

#define LAYOUTS (sizeof layouts / sizeof *layouts)

static void every_mode_learns(void **state)
{
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < LAYOUTS; l++) {
        pace_train_config config = settings(state);

        lay_out(&config, layouts[l]);
        config.length.epochs = 6;
        config.records.eval_every = 20;
        pace_train_result result = train(&config);

        assert_int_equal(result.steps, 6 * PER_EPOCH);
        assert_int_equal(result.samples, 6 * ROWS);
        assert_int_equal(result.test.n, TEST_ROWS);
        assert_int_equal(result.test.classes, 3);
        assert_learned(&result, "layout", l);
        eval_agrees(state, &result.test);
    }
}

/* Architectures, colours, rules and settings: all of them learn something. */
static void every_kind_of_network_learns(void **state)
{
    enum { KINDS = 8 };
    tiny_pictures_plan colours = plain_set;
    pace_train_config kinds[KINDS];

    colours.channels = 3;
    make_set(state, "set", plain_set);
    make_set(state, "colours", colours);
    for (size_t i = 0; i < KINDS; i++) {
        kinds[i] = settings(state);
        kinds[i].length.epochs = 8;
    }
    kinds[0].data = in(state, "colours");
    kinds[0].own.cnn.augment = "flip,crop,colour";
    kinds[1].own.cnn.arch = PACE_ARCH_RESNET20;
    kinds[1].length.epochs = 5;
    kinds[2].optimiser.dropout = 0.2;
    kinds[2].own.cnn.augment = "auto";
    kinds[3].optimiser.rule = PACE_MOMENTUM;
    kinds[3].optimiser.lr = 0;
    kinds[4].optimiser.rule = PACE_ADAGRAD;
    kinds[4].optimiser.lr = 0.05;
    kinds[5].optimiser.rule = PACE_SGD;
    kinds[5].optimiser.lr = 0.5;
    kinds[6].own.cnn.smoothing = 0.1;
    kinds[7].optimiser.clip = 0.5;
    for (size_t i = THINNED(3) / 3; i < KINDS; i += THINNED(3)) {
        pace_train_result result = train_alone(&kinds[i]);

        assert_learned(&result, "kind", i);
    }
}

/* They are made for more pixels, and take longer: two steps, and a model that can be scored. */
static void mobilenets_run(void **state)
{
    static const int archs[] = {PACE_ARCH_MOBILENET_V1, PACE_ARCH_MOBILENET_V2};

    make_set(state, "set",
             (tiny_pictures_plan){
                 .train = 12, .test = 4, .side = 32, .channels = 3, .classes = 3, .parts = 1, .seed = 2});
    for (size_t i = 0; i < 2; i++) {
        pace_train_config config = settings(state);
        pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set")};
        pace_scores scores;

        config.own.cnn.arch = archs[i];
        config.own.cnn.width = 0.25;
        config.optimiser.rule = PACE_SGD; /* see more_workers_compute_the_same */
        config.length.batch = 6;
        config.length.epochs = 1;
        pace_train_result alone = train_alone(&config);

        assert_int_equal(alone.steps, 2);
        assert_true(isfinite(alone.train_loss) && isfinite(alone.test.logloss));
        assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
        assert_same_scores(&scores, &alone.test);
        lay_out(&config, layouts[1]);
        pace_train_result two = train(&config);

        assert_true(fabs(two.train_loss - alone.train_loss) < 1e-3 * alone.train_loss);
    }
}

/* --- the same bytes --- */

static void any_number_of_threads_gives_the_same_model(void **state)
{
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < 4; l += 3) {
        pace_train_config config = settings(state);

        lay_out(&config, layouts[l]);
        config.own.cnn.augment = "flip,crop";
        config.optimiser.dropout = 0.2;
        sha expected = sha_of(&config);

        for (config.cluster.threads = 2; config.cluster.threads <= 3; config.cluster.threads++)
            assert_sha(&config, expected);
        if (l > 0)
            continue;
        config.seed = 8;
        assert_string_not_equal(sha_of(&config).hex, expected.hex);
    }
}

static void any_number_of_servers_gives_the_same_model(void **state)
{
    static const layout same[][5] = {{{PACE_MODE_ALLREDUCE, 1, -1, -1, true},
                                      {PACE_MODE_LOCAL, 1, -1, -1, false},
                                      {PACE_MODE_PS_SYNC, 1, 1, -1, false},
                                      {PACE_MODE_PS_SYNC, 1, 0, -1, false}},
                                     {{PACE_MODE_ALLREDUCE, 2, -1, -1, false},
                                      {PACE_MODE_PS_SYNC, 2, 0, -1, true},
                                      {PACE_MODE_PS_SYNC, 2, 1, -1, false},
                                      {PACE_MODE_PS_SYNC, 2, 2, -1, true}},
                                     {{PACE_MODE_ALLREDUCE, 3, -1, -1, false},
                                      {PACE_MODE_PS_SYNC, 3, 0, -1, false},
                                      {PACE_MODE_PS_SYNC, 3, 2, -1, false}}};

    make_set(state, "set", plain_set);
    for (int bn = PACE_BN_GLOBAL; bn <= PACE_BN_LOCAL; bn++) {
        for (size_t w = bn == PACE_BN_LOCAL; w < 3 - (bn == PACE_BN_LOCAL); w++) {
            pace_train_config config = settings(state);
            sha expected = {""};

            config.own.cnn.bn = bn;
            config.optimiser.l2 = 1e-3;
            for (size_t l = 0; l < 5 && same[w][l].workers; l++) {
                lay_out(&config, same[w][l]);
                if (l == 0)
                    expected = sha_of(&config);
                else
                    assert_sha(&config, expected);
            }
        }
    }
}

/* --- the same numbers --- */

static const layout many[] = {{PACE_MODE_LOCAL, 1, -1, -1, false},
                              {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
                              {PACE_MODE_PS_SYNC, 3, 1, -1, false},
                              {PACE_MODE_ALLREDUCE, 3, -1, -1, false}};

/* The largest difference of two losses. */
static double loss_distance(const double one[], const double more[])
{
    double most = 0;

    for (int step = 0; step < STEPS; step++)
        most = fmax(most, fabs(one[step] - more[step]));
    return most;
}

/*
 * Several workers differ from one in the order of sums only: 24-bit fractions of which some hundred are added, so
 * gradients differ by about 1e-6 of their size. Plain steps carry that into the weights as it is; what is left to
 * chance depends on a row's place alone, and changes nothing about it. (Adam would divide tiny gradients by their
 * own size, and make of their rounding errors steps as large as any.)
 */
static void more_workers_compute_the_same(void **state)
{
    double one[STEPS], more[STEPS];

    make_set(state, "set", plain_set);
    for (int chance = THINNED(2) - 1; chance < 2; chance++) {
        cnn_file alone, several;

        for (size_t l = 0; l < 4; l++) {
            pace_train_config config = settings(state);

            config.optimiser.rule = PACE_MOMENTUM;
            config.optimiser.lr = 0.02;
            config.optimiser.l2 = 1e-3;
            config.length.epochs = STEPS / PER_EPOCH;
            config.records.log_every = 1;
            config.own.cnn.augment = chance ? "flip,crop,colour" : "none";
            config.optimiser.dropout = chance ? 0.3 : 0;
            lay_out(&config, many[l]);
            train(&config);
            assert_int_equal(read_losses(state, l ? more : one, STEPS), STEPS);
            assert_ok(cnn_read(in(state, "run"), l ? &several : &alone));
            if (l == 0)
                continue;
            double losses = loss_distance(one, more), weights = model_distance(&alone, &several);

            if (!(losses < 1e-4 && weights < 1e-3))
                fail_msg("chance %d, layout %zu: losses differ by %g, weights by %g of the largest", chance,
                         l, losses, weights);
            cnn_release(&several);
        }
        assert_true(one[STEPS - 1] < one[0] - 0.1);
        cnn_release(&alone);
    }
}

/* Each worker's own rows have other means: that is another computation, from the first step on. */
static void local_batch_norm_is_another_one(void **state)
{
    double one[STEPS], more[STEPS];

    make_set(state, "set", plain_set);
    pace_train_config config = settings(state);

    config.length.epochs = STEPS / PER_EPOCH;
    config.records.log_every = 1;
    config.own.cnn.bn = PACE_BN_LOCAL;
    pace_train_result alone = train(&config);

    read_losses(state, one, STEPS);
    config.own.cnn.bn = PACE_BN_GLOBAL; /* one worker's rows are all there are */
    assert_sha(&config, sha_in(&alone));
    config.own.cnn.bn = PACE_BN_LOCAL;
    lay_out(&config, many[1]);
    train(&config);
    read_losses(state, more, STEPS);
    assert_true(fabs(more[0] - one[0]) > 1e-4);
    assert_true(loss_distance(one, more) > 1e-3);
}

/* Steps of which some workers have one row or none at all. */
static void workers_without_rows_do_no_harm(void **state)
{
    double one[STEPS], more[STEPS];
    tiny_pictures_plan few = plain_set;

    few.train = 13;
    make_set(state, "set", few);
    for (int bn = PACE_BN_GLOBAL; bn <= PACE_BN_LOCAL; bn++) {
        for (size_t l = 0; l < LAYOUTS; l += bn == PACE_BN_LOCAL ? 2 : THINNED(2)) {
            pace_train_config config = settings(state);

            config.length.batch = 4; /* 4, 4, 4, 1 */
            config.length.epochs = STEPS / 4;
            config.records.log_every = 1;
            config.own.cnn.bn = bn;
            config.optimiser.l2 = 1e-3;
            config.optimiser.rule = PACE_MOMENTUM;
            config.optimiser.lr = 0.01;
            lay_out(&config, layouts[l]);
            pace_train_result result = train(&config);

            assert_int_equal(result.samples, STEPS / 4 * 13);
            assert_true(isfinite(result.train_loss) && isfinite(result.test.logloss));
            if (bn == PACE_BN_LOCAL || layouts[l].mode > PACE_MODE_PS_SYNC)
                continue;
            assert_int_equal(read_losses(state, l ? more : one, STEPS), STEPS);
            if (l > 0 && !(loss_distance(one, more) < 1e-3))
                fail_msg("layout %zu: losses differ by %g", l, loss_distance(one, more));
        }
    }
}

/* --- interruption --- */

/* And watching it, with records, scores and checkpoints, does not change it either. */
static void an_interrupted_run_ends_like_an_undisturbed_one(void **state)
{
    static const int64_t steps[LAYOUTS] = {11, PER_EPOCH, 3, 1, 6, 10};

    make_set(state, "set", plain_set);
    for (size_t l = 0; l < 6; l++) {
        pace_train_config config = settings(state);

        lay_out(&config, layouts[l]);
        config.own.cnn.augment = "flip,crop";
        config.optimiser.dropout = 0.2;
        ends_like_an_undisturbed_one(state, config, steps[l], 20);
    }
}

/* Who goes on may be more, or others, than who began: the same workers give the same bytes. */
static void others_may_go_on(void **state)
{
    make_set(state, "set", plain_set);
    pace_train_config config = settings(state), again;

    config.records.log_every = 1;
    lay_out(&config, layouts[5]);
    pace_train_result whole = train(&config);

    for (size_t l = 0; l < 4; l++) {
        interrupt(config, 5);
        again = resumed(config);
        lay_out(&again, layouts[l]);
        pace_train_result result = train(&again);

        if (layouts[l].workers == 2)
            assert_string_equal(result.model_sha256, whole.model_sha256);
        else
            assert_true(fabs(result.test.logloss - whole.test.logloss) < 0.05);
    }
}

static void another_job_cannot_resume(void **state)
{
    enum { CHANGES = 13 };
    tiny_pictures_plan other = plain_set;

    other.seed++;
    make_set(state, "set", plain_set);
    make_set(state, "other", other);
    pace_train_config config = settings(state), again, changed[CHANGES];

    config.records.log_every = 1;
    interrupt(config, 5);
    again = resumed(config);
    for (size_t i = 0; i < CHANGES; i++)
        changed[i] = again;
    changed[0].own.cnn.arch = PACE_ARCH_RESNET20;
    changed[1].own.cnn.width = 0.25;
    changed[2].optimiser.dropout = 0.1;
    changed[3].own.cnn.smoothing = 0.1;
    changed[4].own.cnn.augment = "flip";
    changed[5].own.cnn.augment = "crop";
    changed[6].own.cnn.augment = "colour";
    changed[7].optimiser.l2 = 1e-3;
    changed[8].optimiser.clip = 1;
    changed[9].optimiser.rule = PACE_MOMENTUM;
    changed[10].seed = 9;
    changed[11].data = in(state, "other");
    changed[12].length.batch = BATCH + 1;
    for (size_t i = 0; i < CHANGES; i++)
        fail_to_train(&changed[i], PACE_USAGE, "step-000000000005");
    train_alone(&again); /* itself can */
}

/* Workers that wait for each other in the middle of a step hear of the end before it. */
static void a_run_that_gets_worse_stops_early(void **state)
{
    tiny_pictures_plan few = plain_set;

    few.train = 40; /* to be learned by heart */
    make_set(state, "set", few);
    for (int bn = PACE_BN_GLOBAL; bn <= PACE_BN_LOCAL; bn++) {
        for (size_t l = 0; l < 6; l += bn == PACE_BN_LOCAL ? 3 : THINNED(2)) {
            pace_train_config config = settings(state);

            lay_out(&config, layouts[l]);
            config.cluster.evaluator = false; /* it only watches */
            config.own.cnn.bn = bn;
            config.length.epochs = 500;
            config.length.batch = 10;
            config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
            config.optimiser.lr = 0.05;
            config.records.eval_every = 3;
            config.length.early_stop = 2;
            pace_train_result result = train(&config);

            assert_said("stopping early");
            assert_true(result.steps < 1000 && result.steps % 3 == 0);
        }
    }
}

/* --- losses --- */

static const tiny_pictures_plan two_classes = {
    .train = ROWS, .test = TEST_ROWS, .side = SIDE, .classes = 2, .parts = 3, .seed = 5};

static void two_classes_have_one_logit_or_two(void **state)
{
    make_set(state, "set", two_classes);
    for (int head = PACE_HEAD_AUTO; head <= PACE_HEAD_LOGIT; head++) {
        for (size_t l = 0; l < 4; l += 3) {
            pace_train_config config = settings(state);
            cnn_file model;

            lay_out(&config, layouts[l]);
            config.own.cnn.head = head;
            config.length.epochs = 6;
            pace_train_result result = train(&config);

            assert_learned(&result, "head", (size_t)head);
            assert_true(result.test.auc > 0.9 && result.test.classes <= 2);
            eval_agrees(state, &result.test);
            assert_ok(cnn_read(in(state, "run"), &model));
            assert_int_equal(model.net.outputs, head == PACE_HEAD_SOFTMAX ? 2 : 1);
            cnn_release(&model);
        }
    }
}

static pace_train_result train_weighted(void **state, const char *weight, int head, double lr)
{
    pace_train_config config = settings(state);

    config.optimiser.rule = PACE_SGD;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    config.optimiser.lr = lr;
    config.optimiser.class_weight = weight;
    config.own.cnn.head = head;
    return train(&config);
}

/* "balanced" is the weight of rows of class 1 that makes up for their number, and a mean weight of 1. */
static void balanced_classes_weigh_the_same(void **state)
{
    tiny_pictures set = tiny_pictures_make(two_classes);
    double positives = (double)set.info.positives[PACE__TRAIN], negatives = ROWS - positives;
    char weight[32];

    tiny_pictures_free(&set);
    make_set(state, "set", two_classes);
    snprintf(weight, sizeof weight, "%.17g", negatives / positives);
    for (int head = PACE_HEAD_SOFTMAX; head <= PACE_HEAD_LOGIT; head++) {
        pace_train_result balanced = train_weighted(state, "balanced", head, 0.1);
        pace_train_result same = train_weighted(state, weight, head, 0.1 * ROWS / (2 * negatives));
        pace_train_result plain = train_weighted(state, NULL, head, 0.1);
        pace_train_result heavy = train_weighted(state, "5", head, 0.1);

        assert_true(fabs(balanced.test.logloss - same.test.logloss) < 1e-4);
        assert_true(fabs(balanced.test.mean_predicted - same.test.mean_predicted) < 1e-4);
        assert_true(heavy.test.mean_predicted > plain.test.mean_predicted + 0.02);
    }
}

/* Labels that are never certain make a model that is never certain. */
static void smoothing_makes_modest(void **state)
{
    double losses[2];

    make_set(state, "set", plain_set);
    for (int smooth = 0; smooth < 2; smooth++) {
        pace_train_config config = settings(state);

        config.length.epochs = 10;
        config.own.cnn.smoothing = smooth ? 0.5 : 0;
        pace_train_result result = train(&config);

        assert_learned(&result, "smoothing", (size_t)smooth);
        losses[smooth] = result.train_loss;
    }
    /* The least that is possible is the entropy of 2/3, 1/6, 1/6. */
    assert_true(losses[0] < 0.3 && losses[1] > 0.867);
}

/* Sum of the squares of what the penalty is for, and of the rest but the head's bias. */
static void weigh(void **state, double *penalised, double *others)
{
    cnn_file model;
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];

    *penalised = *others = 0;
    assert_ok(cnn_read(in(state, "run"), &model));
    for (unsigned i = 0, count = pace__cnn_tensors(&model.net, tensors); i < count; i++) {
        for (size_t at = tensors[i].at; !tensors[i].stats && at < tensors[i].at + tensors[i].size; at++)
            *(tensors[i].decays ? penalised : others) += pow(model.weights[at], 2);
    }
    cnn_release(&model);
}

/* In every mode alike. */
static void a_penalty_shrinks_weights(void **state)
{
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < 4; l += l == 1 ? 2 : 1) {
        double penalised[2], others[2];

        for (int with = 0; with < 2; with++) {
            pace_train_config config = settings(state);

            lay_out(&config, layouts[l]);
            config.optimiser.rule = PACE_SGD;
            config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
            config.optimiser.lr = 0.1;
            config.length.epochs = 5;
            config.optimiser.l2 = with ? 0.05 : 0;
            train(&config);
            weigh(state, &penalised[with], &others[with]);
        }
        /* (1 - lr l2) ^ (2 x 40 steps) = 0.67, if nothing else pulls; gamma is pulled by nothing. */
        if (!(penalised[1] < 0.8 * penalised[0] && penalised[1] > 0.4 * penalised[0] &&
              fabs(others[1] / others[0] - 1) < 0.2))
            fail_msg("layout %zu: squares %g, with the penalty %g; others %g and %g", l, penalised[0],
                     penalised[1], others[0], others[1]);
    }
}

/* All-reduce bounds the same gradient as one process does; statistics are no gradient. */
static void a_bound_on_the_gradient_works(void **state)
{
    double one[STEPS], more[STEPS];

    make_set(state, "set", plain_set);
    pace_train_config config = settings(state);

    config.length.epochs = STEPS / PER_EPOCH;
    config.records.log_every = 1;
    config.optimiser.rule = PACE_SGD;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    config.optimiser.lr = 1;
    config.optimiser.clip = 1e-6;
    for (size_t l = 0; l < 4; l++) {
        cnn_file model;
        bool moved = false;

        lay_out(&config, layouts[l]);
        train(&config);
        read_losses(state, one, STEPS);
        assert_true(fabs(one[STEPS - 2] - one[0]) < 0.3); /* 24 steps of next to nothing */
        assert_ok(cnn_read(in(state, "run"), &model));
        for (size_t i = 0; i < model.net.stats; i++)
            moved = moved || (model.stats[i] != 0 && fabs(model.stats[i] - 1) > 0.1);
        assert_true(moved);
        cnn_release(&model);
    }
    config.optimiser.clip = 0.05;
    lay_out(&config, layouts[0]);
    train(&config);
    read_losses(state, one, STEPS);
    lay_out(&config, layouts[1]);
    train(&config);
    read_losses(state, more, STEPS);
    assert_true(loss_distance(one, more) < 1e-3);
}

/* --- what is refused --- */

static void a_model_is_not_applied_to_another_kind_of_set(void **state)
{
    tiny_pictures_plan larger = plain_set, colours = plain_set, classes = plain_set;
    static const char *const sets[] = {"larger", "colours", "classes", "clicks"};
    static const char *const reasons[] = {"8 x 9 x 1", "x 3", "classes", "pictures"};

    larger.side++;
    colours.channels = 3;
    classes.classes = 4;
    make_set(state, "set", plain_set);
    make_set(state, "larger", larger);
    make_set(state, "colours", colours);
    make_set(state, "classes", classes);
    make_clicks(state, "clicks");
    pace_train_config config = settings(state);

    config.length.epochs = 1;
    train_alone(&config);
    for (size_t i = 0; i < 4; i++) {
        pace_eval_config eval = {.run = in(state, "run"), .data = in(state, sets[i])};
        pace_scores scores;

        said_clear();
        assert_failed(pace_eval(&eval, &said_log, NULL, &scores), PACE_BAD_DATA, reasons[i]);
    }
}

static void what_does_not_go_together_is_named(void **state)
{
    pace_train_config cnn = settings(state), linear = settings(state), rnn = settings(state);
    tiny_pictures_plan tiny = plain_set;

    tiny.side = 3;
    make_set(state, "set", plain_set);
    make_set(state, "tiny", tiny);
    make_clicks(state, "clicks");
    make_texts(state, "texts");
    linear.model = PACE_MODEL_LOGREG;
    linear.own = (pace_model_options){0};
    linear.optimiser.dropout = -1;
    rnn = linear;
    rnn.model = PACE_MODEL_RNN;
    linear.data = in(state, "clicks");
    rnn.data = in(state, "texts");
    struct {
        pace_train_config config;
        const char *message;
    } cases[] = {
        {cnn, "--l1"},
        {cnn, "--train 'nonsense'"},
        {cnn, "--pretrained"},
        {cnn, "--pretrained"},
        {cnn, "--name-map"},
        {cnn, "--feature-cache"},
        {cnn, "--augment 'sideways'"},
        {cnn, "ftrl"},
        {cnn, "--exact"},
        {cnn, "--dropout"},
        {cnn, "--head logit"},
        {cnn, "--class-weight"},
        {cnn, "--class-weight 'nonsense'"},
        {cnn, "no pictures"},
        {cnn, "no pictures"},
        {cnn, "too small"},
        {cnn, "too small"},
        {linear, "holds pictures"},
        {rnn, "has no texts"},
    };
    size_t i = 0;

    cases[i++].config.optimiser.l1 = 0.1;
    cases[i++].config.own.cnn.train = "nonsense";
    cases[i++].config.own.cnn.train = "top";
    cases[i++].config.own.cnn.train = "from:conv2";
    cases[i++].config.own.cnn.name_map = "map";
    cases[i++].config.own.cnn.feature_cache = "cache";
    cases[i++].config.own.cnn.augment = "flip,sideways";
    cases[i++].config.optimiser.rule = PACE_FTRL;
    cases[i++].config.optimiser.exact = true;
    cases[i++].config.optimiser.dropout = -0.5;
    cases[i++].config.own.cnn.head = PACE_HEAD_LOGIT;
    cases[i++].config.optimiser.class_weight = "2";
    cases[i++].config.optimiser.class_weight = "nonsense";
    cases[i++].config.data = in(state, "clicks");
    cases[i++].config.data = in(state, "texts");
    cases[i++].config.data = in(state, "tiny");
    cases[i++].config.own.cnn.arch = PACE_ARCH_MOBILENET_V2;
    cases[i++].config.data = in(state, "set");
    cases[i++].config.data = in(state, "set");
    assert_int_equal(i, sizeof cases / sizeof *cases);
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        fail_to_train(&cases[i].config, PACE_USAGE, cases[i].message);
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
        TEST(mobilenets_run),
        TEST(any_number_of_threads_gives_the_same_model),
        TEST(any_number_of_servers_gives_the_same_model),
        TEST(more_workers_compute_the_same),
        TEST(local_batch_norm_is_another_one),
        TEST(workers_without_rows_do_no_harm),
        TEST(an_interrupted_run_ends_like_an_undisturbed_one),
        TEST(others_may_go_on),
        TEST(another_job_cannot_resume),
        TEST(a_run_that_gets_worse_stops_early),
        TEST(two_classes_have_one_logit_or_two),
        TEST(balanced_classes_weigh_the_same),
        TEST(smoothing_makes_modest),
        TEST(a_penalty_shrinks_weights),
        TEST(a_bound_on_the_gradient_works),
        TEST(a_model_is_not_applied_to_another_kind_of_set),
        TEST(what_does_not_go_together_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

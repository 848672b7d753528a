/* A model that begins with another one: what goes where by its name, what begins as it would without, what is carried. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "warm/warm.h"

#include "data/store/describe.h"

#include "checkpoints.h"
#include "model_files.h"
#include "tiny_pictures.h"
#include "tiny_texts.h"

#define FEW  20
#define MANY 30

/* --- data sets, options, plans --- */

static pace__store clicks(void **state, const char *name, uint32_t ids)
{
    tiny_set set = tiny_make((tiny_plan){.train = 40, .ids = ids, .columns = 4, .seed = ids});
    pace__store store;

    tiny_write(&set, in(state, name));
    tiny_free(&set);
    assert_ok(pace__store_open(in(state, name), &store, &said_log));
    return store;
}

/* Words w<from> and so on. */
static pace__store texts(void **state, const char *name, uint32_t words, uint32_t from)
{
    tiny_texts set =
        tiny_texts_make((tiny_texts_plan){.train = 40, .words = words, .length = 6, .seed = words});
    pace__store store;

    pace__vocabulary_free(set.vocabulary);
    set.vocabulary = tiny_vocabulary(words, from);
    set.info.encoding.vocabulary = pace__vocabulary_checksum(set.vocabulary);
    tiny_texts_write(&set, in(state, name));
    tiny_texts_free(&set);
    assert_ok(pace__store_open(in(state, name), &store, &said_log));
    return store;
}

static pace__store pictures(void **state, const char *name, uint32_t classes)
{
    tiny_pictures set =
        tiny_pictures_make((tiny_pictures_plan){.train = 12, .side = 8, .classes = classes, .seed = classes});
    pace__store store;

    tiny_pictures_write(&set, in(state, name));
    tiny_pictures_free(&set);
    assert_ok(pace__store_open(in(state, name), &store, &said_log));
    return store;
}

static pace_train_config options_of(int model)
{
    pace_train_config config;

    pace_train_defaults(model, &config);
    config.seed = 3;
    if (model == PACE_MODEL_FM)
        config.own.fm.factors = 3;
    if (model == PACE_MODEL_CNN)
        config.own.cnn.width = 0.25;
    if (model == PACE_MODEL_RNN) {
        config.own.rnn.hidden = config.own.rnn.embed = 5;
        config.own.rnn.dense = 2;
    }
    return config;
}

static pace_status try_plan(pace_train_config *config, const pace__store *store,
                            const pace__forerunner *begins, pace__model_plan *plan)
{
    const pace__kind *kind = pace__kind_at(config->model);
    pace__dataset data = pace__store_describe(&store->info);
    pace__plan_request request = {.config = config,
                                  .data = &data,
                                  .describe = pace__describe_encoding,
                                  .computes = true,
                                  .begins = begins};

    kind->settle(config, &data);
    return pace__model_plan_make(kind, &request, &said_log, plan);
}

static pace__model_plan plan_of(int model, const pace__store *store, const pace__forerunner *begins)
{
    pace_train_config config = options_of(model);
    pace__model_plan plan;

    assert_ok(try_plan(&config, store, begins, &plan));
    return plan;
}

/* --- the other model --- */

static float value_of(uint64_t place)
{
    return (float)((double)(pace__mix64(place + 5) >> 11) * 0x1p-53 + 0.25); /* valid as a variance, too */
}

/* Of a model with hashes for n-grams most are 0, as they usually are. */
static bool is_zero(size_t i, size_t count)
{
    return count > 1 << 20 && i > 100 && i % 1009 != 0 && i + 1 < count;
}

/* Writes a model of these rows, whose value i of all keys is value_of(i), and opens it for others. */
static void make_other(void **state, int model, const pace__store *theirs, const pace__store *ours,
                       pace__warm *warm)
{
    pace__model_plan plan = plan_of(model, theirs, NULL);
    size_t count = (size_t)plan.shape.keys * plan.shape.dim;
    float *weights = tiny_alloc(count * sizeof *weights);
    pace__origin origin;

    for (size_t i = 0; i < count; i++)
        weights[i] = is_zero(i, count) ? 0 : value_of(i);
    assert_ok(pace__origin_read(theirs, &said_log, &origin));
    assert_ok(pace__model_write(&plan, weights, &origin, in(state, "other"), NULL, &said_log));
    pace__origin_release(&origin);
    pace__model_plan_release(&plan);
    free(weights);
    assert_ok(pace__warm_open(in(state, "other"), &ours->info.encoding, &said_log, warm));
}

/* A model on `ours` that begins with one on `theirs`. */
typedef struct begun {
    pace__store theirs, ours;
    pace__warm warm;
    pace__model_plan plan;
    float *cold, *rows; /* first values without and with it, (keys, dim) */
} begun;

static float *first_values(const pace__model_plan *plan)
{
    float *rows = tiny_alloc((size_t)plan->shape.keys * plan->shape.dim * sizeof *rows);

    if (pace__model_begins_random(plan))
        assert_ok(pace__model_first_weights(plan, plan->shape.dim, rows, &said_log));
    return rows;
}

static void begin(void **state, int model, begun *self)
{
    make_other(state, model, &self->theirs, &self->ours, &self->warm);
    pace__model_plan without = plan_of(model, &self->ours, NULL);

    self->cold = first_values(&without);
    pace__model_plan_release(&without);
    self->plan = plan_of(model, &self->ours, &self->warm.forerunner);
    self->rows = first_values(&self->plan);
    assert_ok(
        pace__warm_begin(&self->warm, &self->ours, &self->plan, self->plan.shape.dim, self->rows, &said_log));
    pace__warm_say(&self->warm, &self->plan, &said_log);
}

static void end(begun *self)
{
    pace__warm_close(&self->warm);
    pace__model_plan_release(&self->plan);
    pace__store_close(&self->theirs);
    pace__store_close(&self->ours);
    free(self->cold);
    free(self->rows);
}

static void assert_overlap(const begun *self, uint64_t taken, uint64_t fresh, uint64_t left)
{
    const pace__warm *warm = &self->warm;

    if (warm->overlap.taken != taken || warm->fresh != fresh || warm->overlap.left != left)
        fail_msg("%llu taken, %llu fresh, %llu left instead of %llu, %llu, %llu",
                 (unsigned long long)warm->overlap.taken, (unsigned long long)warm->fresh,
                 (unsigned long long)warm->overlap.left, (unsigned long long)taken, (unsigned long long)fresh,
                 (unsigned long long)left);
}

/* Row `key` is the other model's row `theirs`. */
static void assert_taken(const begun *self, size_t key, size_t theirs)
{
    size_t dim = self->plan.shape.dim;

    for (size_t i = 0; i < dim; i++)
        assert_true(self->rows[key * dim + i] == value_of(theirs * dim + i));
}

static void assert_fresh(const begun *self, size_t key)
{
    size_t dim = self->plan.shape.dim;

    assert_memory_equal(self->rows + key * dim, self->cold + key * dim, dim * sizeof *self->rows);
}

/* --- clicks --- */

static const int sparse_kinds[] = {PACE_MODEL_LOGREG, PACE_MODEL_FM};

static void ids_go_by_what_they_were(void **state)
{
    for (size_t k = 0; k < 2; k++) {
        begun self = {.theirs = clicks(state, "few", FEW), .ours = clicks(state, "many", MANY)};

        begin(state, sparse_kinds[k], &self);
        size_t dim = self.plan.shape.dim;

        for (size_t id = 0; id < FEW; id++)
            assert_taken(&self, id, id);
        for (size_t id = FEW; id < MANY; id++)
            assert_fresh(&self, id);
        assert_true(self.rows[MANY * dim] == value_of(FEW * dim)); /* the bias */
        assert_overlap(&self, FEW * dim, (MANY - FEW) * dim, 0);
        assert_int_equal(self.warm.carried, 0);
        end(&self);
        assert_said(k ? "weights: 80 of 120 taken from" : "weights: 20 of 30 taken from");
    }
}

/* What does not occur today is in the model that is written, as it was. */
static void ids_that_do_not_occur_are_carried(void **state)
{
    for (size_t k = 0; k < 2; k++) {
        begun self = {.theirs = clicks(state, "many", MANY), .ours = clicks(state, "few", FEW)};
        pace__origin origin;
        pace__saved saved;

        begin(state, sparse_kinds[k], &self);
        size_t dim = self.plan.shape.dim;

        assert_overlap(&self, FEW * dim, 0, (MANY - FEW) * dim);
        assert_int_equal(self.warm.carried, MANY - FEW);
        for (size_t i = 0; i < FEW * dim; i++)
            self.rows[i] += 1; /* as if it had been trained */
        assert_ok(pace__origin_read(&self.ours, &said_log, &origin));
        assert_ok(pace__warm_carry(&self.warm, &origin, &said_log));
        assert_ok(pace__model_write(&self.plan, self.rows, &origin, in(state, "new"), NULL, &said_log));
        pace__origin_release(&origin);
        assert_ok(pace__saved_open(in(state, "new"), &said_log, &saved));
        assert_int_equal(saved.model.count, MANY);
        assert_int_equal(saved.encoding.features, 5 * MANY + 3);
        for (size_t id = 0; id < MANY; id++) {
            assert_true(saved.model.ids[id] == 5 * id + 3);
            for (size_t i = 0; i < dim; i++)
                assert_true(saved.model.weights[id * dim + i] == value_of(id * dim + i) + (id < FEW));
        }
        assert_true(saved.model.weights[MANY * dim] == value_of(MANY * dim));
        pace__saved_close(&saved);
        end(&self);
        assert_said("of it are not in this data set, and stay in the model as they are");
    }
}

/* FTRL computes weights from its state: that has to be one from which these follow. */
static void ftrl_keeps_weights_that_it_is_given(void **state)
{
    static const float weights[] = {0.5F, -1.25F, 0, 1e-3F};
    pace__optim optim = pace__optim_make(PACE_FTRL, 0.1, 0, 0.3, 0.2);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        float row[3];

        pace__optim_init_row(&optim, 1, row);
        row[0] = weights[i];
        pace__optim_adopt_row(&optim, 1, row);
        assert_true(row[0] == weights[i]);
        pace__optim_update(&optim, row, 0);
        assert_float_equal(row[0], weights[i], 1e-6);
    }
}

/* --- texts --- */

static void words_go_by_the_word(void **state)
{
    static const size_t specials = PACE__ID_WORDS;
    begun self = {.theirs = texts(state, "old", FEW, 0), .ours = texts(state, "new", FEW, 5)};

    begin(state, PACE_MODEL_RNN, &self);
    const pace__shape *shape = &self.plan.shape;
    size_t words = self.ours.info.ids_seen, known = specials + FEW - 5;

    assert_int_equal(words, specials + FEW);
    for (size_t id = 0; id < specials; id++)
        assert_taken(&self, id, id);
    for (size_t word = 0; word < FEW; word++) { /* w5 is the first of ours, and the sixth of theirs */
        if (word + 5 < FEW)
            assert_taken(&self, specials + word, specials + word + 5);
        else
            assert_fresh(&self, specials + word);
    }
    for (size_t i = 0; i < shape->dense; i++)
        assert_true(self.rows[words * shape->dim + i] == value_of(words * shape->dim + i));
    assert_overlap(&self, known * shape->dim + shape->dense, 5 * (size_t)shape->dim, 5 * (size_t)shape->dim);
    end(&self);
}

static void ngrams_go_with_their_vocabulary(void **state)
{
    for (uint32_t from = 0; from < 6; from += 5) {
        begun self = {.theirs = texts(state, "old", FEW, 0), .ours = texts(state, "new", FEW, from)};

        begin(state, PACE_MODEL_LOGREG, &self);
        size_t words = self.ours.info.ids_seen, keys = (size_t)self.plan.shape.keys, hashed = 0;

        assert_taken(&self, PACE__ID_WORDS, PACE__ID_WORDS + from);
        assert_taken(&self, keys - 1, keys - 1);
        for (size_t i = words; i < keys - 1; i++) {
            hashed += !is_zero(i, keys);
            if (self.rows[i] != (from || is_zero(i, keys) ? 0 : value_of(i)))
                fail_msg("n-gram %zu is %g", i, (double)self.rows[i]);
        }
        if (from)
            assert_overlap(&self, words - 5, keys - 1 - (words - 5), hashed + 5);
        else
            assert_overlap(&self, words + hashed, keys - 1 - words - hashed, 0);
        assert_true(!self.warm.overlap.note == !from);
        end(&self);
    }
    assert_said("prep reviews --like keeps it");
}

/* --- pictures --- */

static void classes_go_by_their_names(void **state)
{
    begun self = {.theirs = pictures(state, "three", 3), .ours = pictures(state, "four", 4)};
    pace__cnn_file theirs, begins;

    begin(state, PACE_MODEL_CNN, &self);
    const pace__cnn_own *own = self.plan.own;
    size_t row = own->net.features, at = own->net.head_weight_at, all = own->net.weights + own->net.stats;
    pace__dataset data = pace__store_describe(&self.theirs.info);
    pace__model_file file;
    float *values = tiny_alloc(2 * all * sizeof *values), *cold = values + all;

    assert_ok(pace__model_file_open(in(state, "other"), &file, &said_log));
    assert_ok(pace__cnn_file_read(&file, &data, &theirs, &said_log));
    pace__model_file_close(&file);
    begins = (pace__cnn_file){.weights = values, .stats = values + own->net.weights};
    pace__cnn_from_rows(&own->net, self.rows, begins.weights, begins.stats);
    pace__cnn_from_rows(&own->net, self.cold, cold, cold + own->net.weights);
    assert_memory_equal(begins.weights, theirs.weights, at * sizeof(float));
    assert_memory_equal(begins.stats, theirs.stats, own->net.stats * sizeof(float));
    assert_memory_equal(begins.weights + at, theirs.weights + at, 3 * row * sizeof(float));
    assert_memory_equal(begins.weights + at + 3 * row, cold + at + 3 * row, row * sizeof(float));
    for (size_t i = 0; i < 3; i++)
        assert_true(begins.weights[own->net.head_bias_at + i] == theirs.weights[theirs.net.head_bias_at + i]);
    assert_true(begins.weights[own->net.head_bias_at + 3] == cold[own->net.head_bias_at + 3]);
    assert_overlap(&self, own->net.weights - row - 1, row + 1, 0);
    free(values);
    pace__cnn_file_release(&theirs);
    end(&self);
}

/* A frozen layer has its values from the other model, though it is no parameter. */
static void frozen_layers_come_along(void **state)
{
    begun self = {.theirs = pictures(state, "two", 2), .ours = pictures(state, "too", 2)};
    pace_train_config config = options_of(PACE_MODEL_CNN);
    pace__model_plan plan;

    make_other(state, PACE_MODEL_CNN, &self.theirs, &self.ours, &self.warm);
    config.init = "other";
    config.own.cnn.train = "top";
    assert_ok(try_plan(&config, &self.ours, &self.warm.forerunner, &plan));
    const pace__cnn_own *own = plan.own;
    const pace__loaded *model = &self.warm.saved.model;
    const pace__cnn_net *net = &((const pace__cnn_own *)model->plan.own)->net;
    size_t head_at = net->head_weight_at, weights = net->weights, stats = net->stats;
    float *values = tiny_alloc((weights + stats) * sizeof *values);

    pace__cnn_from_rows(net, model->weights, values, values + weights);
    assert_memory_equal(own->weights, values, head_at * sizeof *values);
    assert_memory_equal(own->stats, values + weights, stats * sizeof *values);
    assert_string_equal(own->pretrained, self.warm.sha256);
    float *rows = first_values(&plan);

    assert_ok(
        pace__warm_begin(&self.warm, &self.ours, &plan, plan.shape.dim, rows, &said_log)); /* frees `model` */
    assert_memory_equal(rows, values + head_at, (weights - head_at) * sizeof *values);
    self.plan = plan;
    self.rows = rows;
    assert_overlap(&self, plan.weights, 0, 0);
    free(values);
    end(&self);
}

/* --- what an optimiser has kept --- */

#define STEPS 9

/* What the other model's run has left: a checkpoint of its keys, numbered as its data set numbers them. */
static void leave_checkpoint(void **state, const begun *self, const char *words, uint64_t keys,
                             unsigned width)
{
    pace__manifest manifest = make_manifest(STEPS, 1, keys, width, 2);
    float *parameters = tiny_alloc(keys * width * sizeof *parameters);

    free(manifest.job);
    manifest.job = pace__format("model=any %s data=%016llx steps=0", words,
                                (unsigned long long)pace__store_content(&self->theirs));
    for (size_t i = 0; i < keys * width; i++)
        parameters[i] = value_of(i);
    char *path = write_checkpoint(in(state, "run/checkpoints"), parameters, &manifest);

    pace__manifest_release(&manifest);
    free(parameters);
    free(path);
}

static pace__warm_source source_of(void **state, const char *data, const char *words)
{
    return (pace__warm_source){
        .run = in(state, "run"), .data = in(state, data), .steps = STEPS, .samples = 77, .job = words};
}

/* Each float of a weight's state is where its weight is; what was not there begins. */
static void state_goes_with_its_weights(void **state)
{
    begun self = {.theirs = clicks(state, "few", FEW), .ours = clicks(state, "many", MANY)};
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0.1); /* one float more: a stamp */
    static const char words[] = "optimizer=adagrad exact=false";
    pace__warm_source source = source_of(state, "few", words);

    make_other(state, PACE_MODEL_FM, &self.theirs, &self.ours, &self.warm);
    self.plan = plan_of(PACE_MODEL_FM, &self.ours, &self.warm.forerunner);
    size_t dim = self.plan.shape.dim, stride = 3 * dim;

    leave_checkpoint(state, &self, words, FEW + 1, (unsigned)stride);
    assert_ok(pace__warm_read_state(&self.warm, &source, &optim, &said_log));
    assert_int_equal(self.warm.state.updates, 77);
    self.rows = tiny_alloc((size_t)self.plan.shape.keys * stride * sizeof *self.rows);
    for (size_t key = 0; key < self.plan.shape.keys; key++)
        pace__optim_init_row(&optim, (unsigned)dim, self.rows + key * stride);
    assert_ok(pace__warm_begin(&self.warm, &self.ours, &self.plan, stride, self.rows, &said_log));
    for (size_t key = 0; key <= MANY; key++) {
        for (size_t i = 0; i < dim; i++) {
            const float *row = self.rows + key * stride;
            size_t from = key == MANY ? FEW : key;
            bool taken = key < FEW || key == MANY;

            assert_true(row[dim + i] == (taken ? value_of(from * stride + dim + i) : 1));
            assert_true(row[2 * dim + i] == 0); /* stamps are of a run */
            assert_true(key == MANY || row[i] == (taken ? value_of(from * dim + i) : 0));
        }
    }
    end(&self);
}

static void state_of_networks_goes_key_by_key(void **state)
{
    begun self = {.theirs = texts(state, "old", FEW, 0), .ours = texts(state, "new", FEW, 5)};
    pace__optim optim = pace__optim_make(PACE_ADAM, 0.1, 0.9, 0, 0);
    static const char words[] = "optimizer=adam exact=true";
    pace__warm_source source = source_of(state, "old", words);

    make_other(state, PACE_MODEL_RNN, &self.theirs, &self.ours, &self.warm);
    size_t keys = (size_t)self.warm.saved.model.plan.shape.keys, dim = 5;

    leave_checkpoint(state, &self, words, keys, 15);
    assert_ok(pace__warm_read_state(&self.warm, &source, &optim, &said_log));
    assert_int_equal(self.warm.state.updates, STEPS);
    assert_int_equal(self.warm.state.planes, 2);
    for (size_t i = 0; i < keys * dim; i++) {
        for (size_t p = 0; p < 2; p++)
            assert_true(self.warm.state.plane[p][i] == value_of(i / dim * 15 + (p + 1) * dim + i % dim));
    }
    pace__warm_close(&self.warm);
    pace__store_close(&self.theirs);
    pace__store_close(&self.ours);
}

static void state_that_is_not_there_is_missed(void **state)
{
    begun self = {.theirs = clicks(state, "few", FEW), .ours = clicks(state, "many", MANY)};
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    pace__warm_source source = source_of(state, "few", "optimizer=adagrad"), other;

    make_other(state, PACE_MODEL_LOGREG, &self.theirs, &self.ours, &self.warm);
    assert_failed(pace__warm_read_state(&self.warm, &source, &optim, &said_log), PACE_NO_INPUT,
                  "has no checkpoint");
    leave_checkpoint(state, &self, "optimizer=adagrad", FEW + 1, 2);
    other = source;
    other.job = "optimizer=ftrl";
    assert_failed(pace__warm_read_state(&self.warm, &other, &optim, &said_log), PACE_USAGE,
                  "--optimizer adagrad, and here it is ftrl");
    other = source;
    other.steps = 8;
    assert_failed(pace__warm_read_state(&self.warm, &other, &optim, &said_log), PACE_BAD_DATA,
                  "step 9, and its model that of step 8");
    other = source;
    other.data = in(state, "many");
    assert_failed(pace__warm_read_state(&self.warm, &other, &optim, &said_log), PACE_BAD_DATA,
                  "is not the data set that");
    pace__warm_close(&self.warm);
    make_other(state, PACE_MODEL_LOGREG, &self.theirs, &self.ours, &self.warm);
    assert_ok(pace__warm_read_state(&self.warm, &source, &optim, &said_log));
    pace__warm_close(&self.warm);
    pace__store_close(&self.theirs);
    pace__store_close(&self.ours);
}

/* What adam has kept had its start in another run. */
static void adam_starts_once(void **state)
{
    pace__optim whole = pace__optim_make(PACE_ADAM, 0.1, 0.9, 0, 0), second = whole;

    (void)state;
    second.before = 40;
    for (uint64_t step = 0; step < 50; step += 7) {
        pace__optim_begin_step(&whole, 0.1, 40 + step);
        pace__optim_begin_step(&second, 0.1, step);
        assert_true(whole.correction1 == second.correction1 && whole.correction2 == second.correction2);
    }
}

/* --- what does not fit --- */

static void refuse_option(void **state, int model, pace__store theirs, pace_train_config config,
                          const char *what)
{
    pace__store ours = theirs;
    pace__warm warm;
    pace__model_plan plan;

    make_other(state, model, &theirs, &ours, &warm);
    assert_failed(try_plan(&config, &ours, &warm.forerunner, &plan), PACE_USAGE, what);
    pace__warm_close(&warm);
    pace__store_close(&theirs);
}

static void other_sizes_are_refused(void **state)
{
    pace_train_config config = options_of(PACE_MODEL_FM);

    config.own.fm.factors = 4;
    refuse_option(state, PACE_MODEL_FM, clicks(state, "clicks", FEW), config,
                  "--factors 3, and here it is 4");
    config = options_of(PACE_MODEL_LOGREG);
    refuse_option(state, PACE_MODEL_FM, clicks(state, "clicks2", FEW), config,
                  "is a model of kind fm, and this one is of kind logreg");
    config = options_of(PACE_MODEL_RNN);
    config.own.rnn.hidden = 6;
    refuse_option(state, PACE_MODEL_RNN, texts(state, "texts", FEW, 0), config,
                  "--hidden 5, and here it is 6");
    config = options_of(PACE_MODEL_RNN);
    config.own.rnn.cell = PACE_CELL_GRU;
    refuse_option(state, PACE_MODEL_RNN, texts(state, "texts2", FEW, 0), config,
                  "--cell lstm, and here it is gru");
    config = options_of(PACE_MODEL_RNN);
    config.own.rnn.bidirectional = true;
    refuse_option(state, PACE_MODEL_RNN, texts(state, "texts3", FEW, 0), config,
                  "--bidirectional false, and here it is true");
    config = options_of(PACE_MODEL_CNN);
    config.own.cnn.width = 0.5;
    refuse_option(state, PACE_MODEL_CNN, pictures(state, "pictures", 2), config,
                  "--width 0.25, and here it is 0.5");
    config = options_of(PACE_MODEL_CNN);
    config.own.cnn.arch = PACE_ARCH_RESNET20;
    refuse_option(state, PACE_MODEL_CNN, pictures(state, "pictures2", 2), config,
                  "--arch small, and here it is resnet20");
}

static void other_rows_are_refused(void **state)
{
    pace__store theirs = clicks(state, "clicks", FEW), ours = texts(state, "texts", FEW, 0);
    pace__encoding criteo;
    pace__warm warm;

    make_other(state, PACE_MODEL_LOGREG, &theirs, &theirs, &warm);
    pace__warm_close(&warm);
    assert_failed(pace__warm_open(in(state, "other"), &ours.info.encoding, &said_log, &warm), PACE_BAD_DATA,
                  "other: ");
    assert_ok(pace__encoding_criteo(5000, 0, &criteo, &said_log));
    assert_failed(pace__warm_open(in(state, "other"), &criteo, &said_log, &warm), PACE_BAD_DATA, "Criteo");
    assert_failed(pace__warm_open(in(state, "missing"), &ours.info.encoding, &said_log, &warm), PACE_NO_INPUT,
                  "missing");
    assert_false(warm.is_open);
    pace__store_close(&theirs);
    pace__store_close(&ours);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ids_go_by_what_they_were),
        TEST(ids_that_do_not_occur_are_carried),
        cmocka_unit_test(ftrl_keeps_weights_that_it_is_given),
        TEST(words_go_by_the_word),
        TEST(ngrams_go_with_their_vocabulary),
        TEST(classes_go_by_their_names),
        TEST(frozen_layers_come_along),
        TEST(state_goes_with_its_weights),
        TEST(state_of_networks_goes_key_by_key),
        TEST(state_that_is_not_there_is_missed),
        cmocka_unit_test(adam_starts_once),
        TEST(other_sizes_are_refused),
        TEST(other_rows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

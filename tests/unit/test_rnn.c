/* The recurrent network in its plain form: gradients against finite differences, what padding, order and
 * batches may change. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/rnn/rnn.h"

#include "support.h"

#define SLOTS 7
#define ROWS  6

/* Rows and parameters of a small network, and room for its gradients. */
typedef struct problem {
    pace__rnn_config config;
    pace__rows rows;
    uint32_t *ids, *length;
    uint8_t *label;
    size_t embedding_count, dense_count;
    float *embedding, *dense, *embedding_sums, *dense_sums;
    pace__rnn_batch batch;
} problem;

/* Multiples of 2^-12, so that adding a smaller power of 2 is exact. */
static void draw_parameters(float *values, size_t count, pace__random *random)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((int)pace__random_below(random, 12289) - 6144) * 0x1p-12f;
}

/* Biases of the ReLU layer above 0: most of its units let something through. */
static void wake(const pace__rnn_config *config, float *dense)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(config, tensors);
    const pace__rnn_tensor *bias = &tensors[count - 3];

    for (size_t i = 0; config->dense && i < bias->size; i++)
        dense[bias->at + i] = fabsf(dense[bias->at + i]);
}

/* Words stand in front; what is behind them must not be looked at. */
static void draw_rows(problem *self, pace__random *random)
{
    uint32_t columns = self->config.length;

    for (size_t row = 0; row < ROWS; row++) {
        self->length[row] = row == 0   ? 1
                            : row == 1 ? columns
                                       : 1 + (uint32_t)pace__random_below(random, columns);
        self->label[row] = row != 1; /* not as many of both: gradients of a hinge would cancel */
        for (uint32_t word = 0; word < columns; word++)
            self->ids[row * columns + word] =
                word < self->length[row] ? (uint32_t)pace__random_below(random, SLOTS) : UINT32_MAX;
    }
}

static void set_batch(problem *self)
{
    self->rows = (pace__rows){.rows = ROWS,
                              .columns = self->config.length,
                              .ids = self->ids,
                              .label = self->label,
                              .length = self->length};
    self->batch = (pace__rnn_batch){.rows = &self->rows,
                                    .place = 1000,
                                    .slots = SLOTS,
                                    .embedding = self->embedding,
                                    .dense = self->dense,
                                    .embedding_sums = self->embedding_sums,
                                    .dense_sums = self->dense_sums};
}

static problem *make_problem(const pace__rnn_config *config, uint64_t seed)
{
    problem *self = tiny_alloc(sizeof *self);
    pace__random random = pace__random_at(seed, 77);

    self->config = *config;
    self->embedding_count = (size_t)SLOTS * config->embed;
    self->dense_count = pace__rnn_dense(config);
    self->ids = tiny_alloc(ROWS * config->length * sizeof *self->ids);
    self->length = tiny_alloc(ROWS * sizeof *self->length);
    self->label = tiny_alloc(ROWS);
    self->embedding = tiny_alloc(self->embedding_count * sizeof(float));
    self->embedding_sums = tiny_alloc(self->embedding_count * sizeof(float));
    self->dense = tiny_alloc(self->dense_count * sizeof(float));
    self->dense_sums = tiny_alloc(self->dense_count * sizeof(float));
    draw_rows(self, &random);
    draw_parameters(self->embedding, self->embedding_count, &random);
    draw_parameters(self->dense, self->dense_count, &random);
    wake(config, self->dense);
    set_batch(self);
    return self;
}

static void free_problem(problem *self)
{
    free(self->ids);
    free(self->length);
    free(self->label);
    free(self->embedding);
    free(self->embedding_sums);
    free(self->dense);
    free(self->dense_sums);
    free(self);
}

/* Leaves the gradients in the sums. */
static double compute(problem *self)
{
    assert_ok(pace__rnn_plain_gradient(&self->config, &self->batch, &said_log));
    return self->batch.loss;
}

static void compute_logits(problem *self, float *logits)
{
    assert_ok(pace__rnn_plain_logits(&self->config, &self->batch, logits, &said_log));
}

static const pace__rnn_config usual = {.words = 100,
                                       .length = 4,
                                       .embed = 3,
                                       .hidden = 2,
                                       .layers = 2,
                                       .dense = 3,
                                       .both = true,
                                       .focal = 2,
                                       .weight = {1, 1},
                                       .seed = 5};

/* The 72 architectures. */
#define SHAPES 72
static pace__rnn_config shape(unsigned index)
{
    pace__rnn_config config = usual;

    config.cell = index % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
    config.both = index / 2 % 2;
    config.dense = index / 4 % 2 ? 3 : 0;
    config.layers = 1 + index / 8 % 3;
    config.pooling = (int)(index / 24);
    return config;
}

static const char *describe(const pace__rnn_config *config)
{
    static char text[160];

    snprintf(text, sizeof text, "%s, %u layers, %s, pooling %d, dense %u, loss %d, dropout %g",
             config->cell == PACE_CELL_GRU ? "GRU" : "LSTM", config->layers,
             config->both ? "both directions" : "one direction", config->pooling, config->dense, config->loss,
             (double)config->dropout);
    return text;
}

/* --- gradients --- */

#define STEP 0x1p-14f

/* The sums are floats: half a unit of their last place, and as much again; the third derivative is small. */
static void check_number(problem *self, const char *name, size_t index, float *parameter, double gradient)
{
    float value = *parameter;

    *parameter = value + STEP;
    double above = compute(self);

    *parameter = value - STEP;
    double below = compute(self), expected = (above - below) / (2 * (double)STEP);

    *parameter = value;
    if (!(fabs(expected - gradient) <= 1.2e-7 * fabs(gradient) + 5e-8))
        fail_msg("%s: %s[%zu]: gradient %.10g, by differences %.10g", describe(&self->config), name, index,
                 gradient, expected);
}

static void check_tensor(problem *self, const char *name, float *parameters, const float *sums, size_t count)
{
    float *gradient = tiny_alloc(count * sizeof *gradient);

    compute(self);
    memcpy(gradient, sums, count * sizeof *gradient); /* checking writes over the sums */
    for (size_t i = 0; i < count; i++)
        check_number(self, name, i, parameters + i, (double)gradient[i]);
    free(gradient);
}

/* Has every tensor a gradient that is worth a check? In so small a network chance can leave one without:
 * units that are dropped or below 0 in every row, a maximum that is always at the first word. */
static bool is_alive(problem *self)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(&self->config, tensors);
    bool alive = true;

    compute(self);
    for (unsigned t = 0; t < count; t++) {
        float largest = 0;

        for (size_t i = 0; i < tensors[t].size; i++)
            largest = fmaxf(largest, fabsf(self->dense_sums[tensors[t].at + i]));
        alive = alive && largest > 1e-3f;
    }
    return alive;
}

static problem *make_living_problem(const pace__rnn_config *config, uint64_t seed)
{
    for (unsigned tries = 0; tries < 50; tries++) {
        problem *self = make_problem(config, seed + 1000 * tries);

        if (is_alive(self))
            return self;
        free_problem(self);
    }
    fail_msg("%s: some tensor never has a gradient", describe(config));
    return NULL;
}

static void check_gradients(const pace__rnn_config *config, uint64_t seed)
{
    problem *self = make_living_problem(config, seed);
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(config, tensors);

    for (unsigned t = 0; t < count; t++)
        check_tensor(self, tensors[t].name, self->dense + tensors[t].at, self->dense_sums + tensors[t].at,
                     tensors[t].size);
    check_tensor(self, "embedding", self->embedding, self->embedding_sums, self->embedding_count);
    free_problem(self);
}

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);

        config.loss = (int)((index / 2 + index / 24) % 3);
        check_gradients(&config, index);
    }
}

static void gradients_are_right_with_dropout_and_weights(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);

        config.loss = (int)((index + index / 24) % 3);
        config.dropout = index % 3 ? 0.25f : 0.4f;
        config.weight[0] = 0.625f;
        config.weight[1] = 3;
        check_gradients(&config, 100 + index);
    }
}

static void gradients_of_wider_networks_are_right(void **state)
{
    (void)state;
    for (int cell = PACE_CELL_LSTM; cell <= PACE_CELL_GRU; cell++) {
        pace__rnn_config config = usual;

        config.cell = cell;
        config.length = 9;
        config.embed = 2;
        config.hidden = 5;
        config.dense = 4;
        config.pooling = cell == PACE_CELL_LSTM ? PACE_POOL_MEAN : PACE_POOL_LAST;
        check_gradients(&config, 300 + (uint64_t)cell);
    }
}

/* --- what a cell computes, written down once more for one unit --- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* A network of one unit per gate: parameters of gate k are w[k], u[k], b[k], c[k]. */
typedef struct unit {
    double w[4], u[4], b[4], c[4];
} unit;

static double lstm_unit(const unit *p, const double *x, int words)
{
    double h = 0, cell = 0;

    for (int t = 0; t < words; t++) {
        double i = sigmoid(p->w[0] * x[t] + p->b[0] + p->u[0] * h + p->c[0]);
        double f = sigmoid(p->w[1] * x[t] + p->b[1] + p->u[1] * h + p->c[1]);
        double g = tanh(p->w[2] * x[t] + p->b[2] + p->u[2] * h + p->c[2]);
        double o = sigmoid(p->w[3] * x[t] + p->b[3] + p->u[3] * h + p->c[3]);

        cell = f * cell + i * g;
        h = o * tanh(cell);
    }
    return h;
}

static double gru_unit(const unit *p, const double *x, int words)
{
    double h = 0;

    for (int t = 0; t < words; t++) {
        double r = sigmoid(p->w[0] * x[t] + p->b[0] + p->u[0] * h + p->c[0]);
        double z = sigmoid(p->w[1] * x[t] + p->b[1] + p->u[1] * h + p->c[1]);
        double n = tanh(p->w[2] * x[t] + p->b[2] + r * (p->u[2] * h + p->c[2]));

        h = (1 - z) * n + z * h;
    }
    return h;
}

static unit unit_from(const float *dense, int gates)
{
    unit p = {{0}};

    for (int k = 0; k < gates; k++) {
        p.w[k] = (double)dense[k];
        p.u[k] = (double)dense[gates + k];
        p.b[k] = (double)dense[2 * gates + k];
        p.c[k] = (double)dense[3 * gates + k];
    }
    return p;
}

static void cells_compute_what_their_formulas_say(void **state)
{
    (void)state;
    for (int cell = PACE_CELL_LSTM; cell <= PACE_CELL_GRU; cell++) {
        pace__rnn_config config = usual;
        int gates = cell == PACE_CELL_LSTM ? 4 : 3;

        config.cell = cell;
        config.layers = config.embed = config.hidden = 1;
        config.dense = 0;
        problem *self = make_problem(&config, 8);
        float logits[ROWS];
        unit there = unit_from(self->dense, gates), back = unit_from(self->dense + 4 * gates, gates);
        const float *out = self->dense + 8 * gates; /* two weights and the bias */

        compute_logits(self, logits);
        for (size_t row = 0; row < ROWS; row++) {
            double x[4], turned[4];
            int words = (int)self->length[row];

            for (int t = 0; t < words; t++)
                x[t] = turned[words - 1 - t] = (double)self->embedding[self->ids[row * 4 + (size_t)t]];
            double (*compute_unit)(const unit *, const double *, int) = gates == 4 ? lstm_unit : gru_unit;
            double expected = (double)out[0] * compute_unit(&there, x, words) +
                              (double)out[1] * compute_unit(&back, turned, words) + (double)out[2];

            assert_true(logits[row] == (float)expected);
        }
        free_problem(self);
    }
}

/* --- what does not matter --- */

/* The same texts in rows of other length, with padding in front or behind. */
static problem *pad_otherwise(const problem *from, uint32_t columns, bool front, uint64_t seed)
{
    pace__rnn_config config = from->config;

    config.length = columns;
    problem *self = make_problem(&config, seed);

    for (size_t row = 0; row < ROWS; row++) {
        uint32_t words = from->length[row], first = front ? columns - words : 0;

        for (uint32_t i = 0; i < columns; i++)
            self->ids[row * columns + i] = UINT32_MAX - i;
        memcpy(self->ids + row * columns + first, from->ids + row * from->config.length,
               words * sizeof *self->ids);
        self->length[row] = words;
        self->label[row] = from->label[row];
    }
    memcpy(self->embedding, from->embedding, from->embedding_count * sizeof(float));
    memcpy(self->dense, from->dense, from->dense_count * sizeof(float));
    self->rows.front = front;
    return self;
}

static void assert_same_results(problem *left, problem *right)
{
    float logits[2][ROWS];

    compute_logits(left, logits[0]);
    compute_logits(right, logits[1]);
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_true(compute(left) == compute(right));
    assert_memory_equal(left->dense_sums, right->dense_sums, left->dense_count * sizeof(float));
    assert_memory_equal(left->embedding_sums, right->embedding_sums, left->embedding_count * sizeof(float));
}

static void padding_changes_nothing(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);

        config.dropout = index % 2 ? 0.5f : 0;
        problem *self = make_problem(&config, 500 + index);

        for (int other = 0; other < 3; other++) {
            problem *padded = pad_otherwise(self, other ? 11 : config.length, other != 1, 7);

            assert_same_results(self, padded);
            free_problem(padded);
        }
        free_problem(self);
    }
}

static void rows_do_not_see_each_other(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);
        problem *self = make_problem(&config, 600 + index);
        float whole[ROWS], alone;

        compute_logits(self, whole);
        for (size_t row = ROWS; row-- > 0;) {
            pace__rows all = self->rows;

            self->rows = pace__rows_slice(&all, row, 1);
            compute_logits(self, &alone);
            assert_memory_equal(&alone, &whole[row], sizeof alone);
            self->rows = all;
        }
        free_problem(self);
    }
}

static void assert_near(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.12g instead of %.12g", what, found, expected);
}

/* Adds the results of rows first .. first + count to sums and *loss. */
static void add_part(problem *self, size_t first, size_t count, float *sums, double *loss)
{
    pace__rows all = self->rows;

    self->rows = pace__rows_slice(&all, first, count);
    self->batch.place += first;
    *loss += compute(self);
    self->batch.place -= first;
    self->rows = all;
    for (size_t i = 0; i < self->dense_count; i++)
        sums[i] += self->dense_sums[i];
    for (size_t i = 0; i < self->embedding_count; i++)
        sums[self->dense_count + i] += self->embedding_sums[i];
}

static void what_is_dropped_depends_on_the_place_alone(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);

        config.dropout = 0.5f;
        problem *self = make_problem(&config, 700 + index);
        float *sums = tiny_alloc((self->dense_count + self->embedding_count) * sizeof *sums);
        double loss = 0;

        add_part(self, 0, 1, sums, &loss);
        add_part(self, 1, ROWS - 1, sums, &loss);
        assert_near(loss, compute(self), 1e-14, "loss");
        for (size_t i = 0; i < self->dense_count; i++)
            assert_near((double)sums[i], (double)self->dense_sums[i], 1e-6, "dense");
        for (size_t i = 0; i < self->embedding_count; i++)
            assert_near((double)sums[self->dense_count + i], (double)self->embedding_sums[i], 1e-6, "word");
        self->batch.place += 12345;
        assert_true(compute(self) != loss);
        free(sums);
        free_problem(self);
    }
}

/* Half of the values are twice as large: the pooled vector's mean stays. */
static void dropout_keeps_the_scale(void **state)
{
    (void)state;
    pace__rnn_config config = usual;

    config.layers = 1;
    config.dense = 0;
    config.loss = PACE_LOSS_HINGE; /* as long as margins are below 1 the loss is linear in the logit */
    problem *self = make_problem(&config, 3);
    double expected = compute(self), sum = 0;
    int tries = 4000;

    self->config.dropout = 0.5f;
    for (int i = 0; i < tries; i++) {
        self->batch.place = (uint64_t)i * ROWS;
        sum += compute(self);
    }
    assert_near(sum / tries, expected, 0.01, "mean loss");
    free_problem(self);
}

/* Without dropout, the loss of gradient() is that of logits(). */
static void both_passes_agree(void **state)
{
    (void)state;
    for (unsigned index = 0; index < SHAPES; index++) {
        pace__rnn_config config = shape(index);

        config.loss = (int)(index % 3);
        problem *self = make_problem(&config, 800 + index);
        float logits[ROWS], gradient;
        double loss = 0;

        compute_logits(self, logits);
        for (size_t row = 0; row < ROWS; row++)
            loss += pace__rnn_loss(&config, logits[row], self->label[row], &gradient);
        assert_near(compute(self), loss, 1e-6, "loss");
        free_problem(self);
    }
}

/* --- the object in front of it --- */

static pace_status note_ready(void *user, size_t first)
{
    size_t *noted = user;

    noted[0]++;
    noted[1] = first;
    return noted[2] ? PACE_INTERRUPTED : PACE_OK;
}

static void the_plain_object_computes_the_same(void **state)
{
    (void)state;
    pace__rnn_config config = usual;
    problem *self = make_problem(&config, 1), *direct = make_problem(&config, 1);
    size_t noted[3] = {0};
    float logits[2][ROWS];
    pace__rnn *rnn;

    assert_ok(pace__rnn_create(&config, ROWS, 1, true, &said_log, &rnn));
    self->batch.ready = note_ready;
    self->batch.user = noted;
    noted[1] = 99;
    assert_ok(pace__rnn_gradient(rnn, &self->batch));
    assert_true(self->batch.loss == compute(direct));
    assert_memory_equal(self->dense_sums, direct->dense_sums, self->dense_count * sizeof(float));
    assert_true(noted[0] >= 1 && noted[1] == 0);
    assert_ok(pace__rnn_logits(rnn, &self->batch, logits[0]));
    compute_logits(direct, logits[1]);
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    noted[2] = 1;
    assert_int_equal(pace__rnn_gradient(rnn, &self->batch), PACE_INTERRUPTED);
    pace__rnn_free(rnn);
    pace__rnn_free(NULL);
    free_problem(direct);
    free_problem(self);
}

/* Sums are set, not added to, those of slots that no row has included. */
static void no_rows_are_no_gradient(void **state)
{
    (void)state;
    pace__rnn_config config = usual;
    problem *self = make_problem(&config, 1);

    self->rows.rows = 0;
    self->dense_sums[3] = self->embedding_sums[5] = 7;
    assert_true(compute(self) == 0);
    for (size_t i = 0; i < self->dense_count; i++)
        assert_true(self->dense_sums[i] == 0);
    for (size_t i = 0; i < self->embedding_count; i++)
        assert_true(self->embedding_sums[i] == 0);
    free_problem(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(gradients_are_right_with_dropout_and_weights),
        cmocka_unit_test(gradients_of_wider_networks_are_right),
        cmocka_unit_test(cells_compute_what_their_formulas_say),
        cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(rows_do_not_see_each_other),
        cmocka_unit_test(what_is_dropped_depends_on_the_place_alone),
        cmocka_unit_test(dropout_keeps_the_scale),
        cmocka_unit_test(both_passes_agree),
        cmocka_unit_test(the_plain_object_computes_the_same),
        cmocka_unit_test(no_rows_are_no_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

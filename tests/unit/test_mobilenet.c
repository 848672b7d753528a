/*
 * MobileNet computed a second time: from a file in Keras' layout, by code that shares nothing with the model
 * but the file. (out, in, ...) never occurs here: pictures are (height, width, channels) and kernels (height,
 * width, in, out), as in the papers' own programs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"
#include "model/cnn/pretrained.h"
#include "model/convnet/cnn.h"

#include "support.h"

#define SIDE    64
#define CLASSES 40
#define ROWS    3

/* --- a file --- */

#define TENSORS_MAX 160

typedef struct keras_file {
    pace__tensor tensors[TENSORS_MAX];
    char names[TENSORS_MAX][64];
    float *data[TENSORS_MAX];
    size_t count;
} keras_file;

static void add(keras_file *to, pace__random *random, double low, double high, const char *layer,
                const char *name, unsigned rank, const uint64_t *shape)
{
    size_t at = to->count++, size = 1;

    assert_true(at < TENSORS_MAX);
    for (unsigned i = 0; i < rank; i++)
        size *= shape[i];
    to->data[at] = tiny_alloc(size * sizeof(float));
    for (size_t i = 0; i < size; i++)
        to->data[at][i] = (float)(low + (high - low) * pace__random_unit(random));
    snprintf(to->names[at], sizeof to->names[at], "%s/%s", layer, name);
    to->tensors[at] =
        (pace__tensor){.name = to->names[at], .dtype = PACE__F32, .rank = rank, .data = to->data[at]};
    memcpy(to->tensors[at].shape, shape, rank * sizeof *shape);
}

/* Weights that keep values about as large as they are. */
static void add_layer(keras_file *to, pace__random *random, const char *layer, bool depthwise,
                      uint64_t kernel, uint64_t in, uint64_t out)
{
    double bound = 2 / sqrt((double)(kernel * kernel * (depthwise ? 1 : in)));
    char norm[64];

    add(to, random, -bound, bound, layer, depthwise ? "depthwise_kernel" : "kernel", 4,
        (uint64_t[]){kernel, kernel, in, depthwise ? 1 : out});
    snprintf(norm, sizeof norm, "%s_bn", layer);
    add(to, random, 0.5, 1.5, norm, "gamma", 1, &out);
    add(to, random, -0.5, 1.5, norm, "beta", 1, &out);
    add(to, random, -0.3, 0.3, norm, "moving_mean", 1, &out);
    add(to, random, 0.3, 1.5, norm, "moving_variance", 1, &out);
}

static const uint64_t channels_of[14] = {8, 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256};
static const int stride_of[14] = {2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};

static keras_file *make_file(pace__random *random)
{
    keras_file *file = tiny_alloc(sizeof *file);
    char layer[32];

    add_layer(file, random, "conv1", false, 3, 3, 8);
    for (int i = 1; i <= 13; i++) {
        snprintf(layer, sizeof layer, "conv_dw_%d", i);
        add_layer(file, random, layer, true, 3, channels_of[i - 1], channels_of[i - 1]);
        snprintf(layer, sizeof layer, "conv_pw_%d", i);
        add_layer(file, random, layer, false, 1, channels_of[i - 1], channels_of[i]);
    }
    add(file, random, -0.3, 0.3, "conv_preds", "kernel", 4, (uint64_t[]){1, 1, 256, CLASSES});
    add(file, random, -1, 1, "conv_preds", "bias", 1, (uint64_t[]){CLASSES});
    return file;
}

static void free_file(keras_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        free(file->data[i]);
    free(file);
}

/* --- the naive computation --- */

static const float *tensor(const keras_file *file, const char *layer, const char *name)
{
    char whole[128];

    snprintf(whole, sizeof whole, "%s/%s", layer, name);
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->names[i], whole) == 0)
            return file->data[i];
    }
    fail_msg("no tensor %s", whole);
    return NULL;
}

typedef struct image {
    int side, channels;
    double *values; /* (side, side, channels) */
} image;

static double pixel(const image *of, int y, int x, int c)
{
    if (y < 0 || y >= of->side || x < 0 || x >= of->side)
        return 0;
    return of->values[(y * of->side + x) * of->channels + c];
}

/* Convolution with SAME padding, batch norm with epsilon .001, ReLU6. Takes the input's memory. */
static image layer(const keras_file *file, const char *name, image in, int kernel, int stride, int out,
                   bool depthwise)
{
    char norm[64];

    snprintf(norm, sizeof norm, "%s_bn", name);
    const float *weight = tensor(file, name, depthwise ? "depthwise_kernel" : "kernel");
    const float *gamma = tensor(file, norm, "gamma"), *beta = tensor(file, norm, "beta");
    const float *mean = tensor(file, norm, "moving_mean"), *variance = tensor(file, norm, "moving_variance");
    image result = {.side = (in.side + stride - 1) / stride, .channels = out};
    int outside = (result.side - 1) * stride + kernel - in.side, before = outside > 0 ? outside / 2 : 0;

    result.values = tiny_alloc((size_t)(result.side * result.side * out) * sizeof(double));
    for (int y = 0; y < result.side; y++) {
        for (int x = 0; x < result.side; x++) {
            for (int o = 0; o < out; o++) {
                double sum = 0;

                for (int i = 0; i < (depthwise ? 1 : in.channels); i++) {
                    for (int k = 0; k < kernel * kernel; k++) {
                        int from_y = y * stride - before + k / kernel,
                            from_x = x * stride - before + k % kernel;
                        double w = (double)(depthwise ? weight[k * out + o]
                                                      : weight[(k * in.channels + i) * out + o]);

                        sum += w * pixel(&in, from_y, from_x, depthwise ? o : i);
                    }
                }
                sum = (sum - (double)mean[o]) / sqrt((double)variance[o] + 0.001) * (double)gamma[o] +
                      (double)beta[o];
                result.values[(y * result.side + x) * out + o] = fmin(fmax(sum, 0), 6);
            }
        }
    }
    free(in.values);
    return result;
}

static void naive_logits(const keras_file *file, const uint8_t *pixels, double logits[CLASSES])
{
    image at = {.side = SIDE, .channels = 3, .values = tiny_alloc(SIDE * SIDE * 3 * sizeof(double))};
    const float *kernel = tensor(file, "conv_preds", "kernel"), *bias = tensor(file, "conv_preds", "bias");
    char name[32];

    for (int i = 0; i < SIDE * SIDE * 3; i++)
        at.values[i] = pixels[i] / 127.5 - 1;
    at = layer(file, "conv1", at, 3, 2, 8, false);
    for (int i = 1; i <= 13; i++) {
        snprintf(name, sizeof name, "conv_dw_%d", i);
        at = layer(file, name, at, 3, stride_of[i], at.channels, true);
        snprintf(name, sizeof name, "conv_pw_%d", i);
        at = layer(file, name, at, 1, 1, (int)channels_of[i], false);
    }
    for (int o = 0; o < CLASSES; o++) {
        logits[o] = (double)bias[o];
        for (int i = 0; i < at.channels; i++) {
            double sum = 0;

            for (int p = 0; p < at.side * at.side; p++)
                sum += at.values[p * at.channels + i];
            logits[o] += sum / (at.side * at.side) * (double)kernel[i * CLASSES + o];
        }
    }
    free(at.values);
}

/* --- comparison --- */

typedef struct loaded {
    pace__cnn_config config;
    pace__cnn_net net;
    float *weights, *stats;
} loaded;

static loaded load(const char *path)
{
    loaded self = {.config = {.arch = PACE_ARCH_MOBILENET_V1,
                              .width = 0.25f,
                              .height = SIDE,
                              .side = SIDE,
                              .channels = 3,
                              .classes = CLASSES,
                              .momentum = 0.1f,
                              .weight = {1, 1}}};
    pace__pretrained *file;
    pace__pretrained_report report;

    assert_ok(pace__pretrained_open(path, NULL, pace__describe_encoding, &said_log, &file));
    assert_ok(pace__pretrained_settle(file, &self.config));
    assert_ok(pace__cnn_net_make(&self.config, &said_log, &self.net));
    self.weights = tiny_alloc(self.net.weights * sizeof(float));
    self.stats = tiny_alloc(self.net.stats * sizeof(float));
    assert_ok(pace__pretrained_load(file, &self.config, &self.net, self.weights, self.stats, &report));
    assert_true(report.head && report.missing_count == 0);
    pace__pretrained_close(file);
    return self;
}

static void compare(const loaded *self, const uint8_t *pixels, const double *expected, bool plain)
{
    pace__cnn_plan plan = {.config = &self->config, .rows_max = 2, .threads = 1, .plain = plain};
    pace__rows rows = {.rows = ROWS, .columns = SIDE * SIDE * 3, .pixels = pixels};
    float found[ROWS * CLASSES];
    double largest = 0, worst = 0;
    pace__cnn *cnn;

    assert_ok(pace__cnn_create(&plan, &said_log, &cnn));
    assert_ok(pace__cnn_logits(cnn, &rows, self->weights, self->stats, found));
    pace__cnn_free(cnn);
    for (int i = 0; i < ROWS * CLASSES; i++) {
        largest = fmax(largest, fabs(expected[i]));
        worst = fmax(worst, fabs((double)found[i] - expected[i]));
    }
    if (!(worst <= (plain ? 1e-6 : 1e-4) * largest))
        fail_msg("%s: the logits differ by %g of %g", plain ? "plain" : "fast", worst, largest);
}

static void mobilenet_is_what_others_compute(void **state)
{
    pace__random random = pace__random_at(31, 0);
    keras_file *file = make_file(&random);
    uint8_t *pixels = tiny_alloc(ROWS * SIDE * SIDE * 3);
    double expected[ROWS * CLASSES];

    assert_ok(pace__safetensors_write(in(state, "m"), file->tensors, file->count, NULL, 0, NULL, &said_log));
    loaded self = load(in(state, "m"));

    for (int i = 0; i < ROWS * SIDE * SIDE * 3; i++)
        pixels[i] = (uint8_t)(pace__random_next(&random) >> 56);
    for (int row = 0; row < ROWS; row++)
        naive_logits(file, pixels + row * SIDE * SIDE * 3, expected + row * CLASSES);
    for (int i = 1; i < CLASSES; i++)
        assert_true(expected[i] != expected[0]); /* the network is not dead */
    compare(&self, pixels, expected, true);
    compare(&self, pixels, expected, false);
    free(self.weights);
    free(self.stats);
    free(pixels);
    free_file(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mobilenet_is_what_others_compute, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

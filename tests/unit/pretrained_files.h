/*
 * pretrained_files.h - weights as others write them. The names are written down here a second time, as the frameworks
 * build them: unit after unit, in the order of their modules. Include it behind <cmocka.h>.
 */
#ifndef UNIT_PRETRAINED_FILES_H
#define UNIT_PRETRAINED_FILES_H

#include "data/tensors/safetensors.h"
#include "model/cnn/pretrained.h"

#include "model_files.h"
#include "support.h"
#include "tiny_cnn.h"

#define NAME_BYTES 80

/* --- names --- */

typedef struct names {
    char conv[PACE__CNN_UNITS_MAX][NAME_BYTES], norm[PACE__CNN_UNITS_MAX][NAME_BYTES];
    const char *head;
    unsigned count;
} names;

__attribute__((format(printf, 3, 4))) static void push(names *to, const char *norm_end, const char *format,
                                                       ...)
{
    va_list arguments;
    char block[NAME_BYTES / 2];

    va_start(arguments, format);
    vsnprintf(block, sizeof block, format, arguments);
    va_end(arguments);
    /* "A|B": the convolution is `block` + A, the batch norm `block` + B. */
    const char *bar = strchr(norm_end, '|');

    snprintf(to->conv[to->count], NAME_BYTES, "%s%.*s", block, (int)(bar - norm_end), norm_end);
    snprintf(to->norm[to->count++], NAME_BYTES, "%s%s", block, bar + 1);
}

static const unsigned v2_repeats[7] = {1, 2, 3, 4, 3, 3, 1};
static const unsigned v1_repeats[5] = {1, 2, 2, 6, 2};

static inline names torchvision_v2(void)
{
    names to = {.head = "classifier.1"};

    push(&to, "0|1", "features.0.");
    push(&to, "0.0|0.1", "features.1.conv.");
    push(&to, "1|2", "features.1.conv.");
    for (unsigned i = 2; i <= 17; i++) {
        push(&to, "0.0|0.1", "features.%u.conv.", i);
        push(&to, "1.0|1.1", "features.%u.conv.", i);
        push(&to, "2|3", "features.%u.conv.", i);
    }
    push(&to, "0|1", "features.18.");
    return to;
}

static inline names timm_v2(void)
{
    names to = {.head = "classifier"};

    push(&to, "conv_stem|bn1", "%s", "");
    push(&to, "conv_dw|bn1", "blocks.0.0.");
    push(&to, "conv_pw|bn2", "blocks.0.0.");
    for (unsigned stage = 1; stage < 7; stage++) {
        for (unsigned i = 0; i < v2_repeats[stage]; i++) {
            push(&to, "conv_pw|bn1", "blocks.%u.%u.", stage, i);
            push(&to, "conv_dw|bn2", "blocks.%u.%u.", stage, i);
            push(&to, "conv_pwl|bn3", "blocks.%u.%u.", stage, i);
        }
    }
    push(&to, "conv_head|bn2", "%s", "");
    return to;
}

static inline names timm_v1(void)
{
    names to = {.head = "classifier"};

    push(&to, "conv_stem|bn1", "%s", "");
    for (unsigned stage = 0; stage < 5; stage++) {
        for (unsigned i = 0; i < v1_repeats[stage]; i++) {
            push(&to, "conv_dw|bn1", "blocks.%u.%u.", stage, i);
            push(&to, "conv_pw|bn2", "blocks.%u.%u.", stage, i);
        }
    }
    return to;
}

static inline names keras_v1(void)
{
    names to = {.head = "conv_preds"};

    push(&to, "|_bn", "conv1");
    for (unsigned i = 1; i <= 13; i++) {
        push(&to, "|_bn", "conv_dw_%u", i);
        push(&to, "|_bn", "conv_pw_%u", i);
    }
    return to;
}

static inline names keras_v2(void)
{
    names to = {.head = "predictions"};

    push(&to, "Conv1|bn_Conv1", "%s", "");
    push(&to, "depthwise|depthwise_BN", "expanded_conv_");
    push(&to, "project|project_BN", "expanded_conv_");
    for (unsigned i = 1; i <= 16; i++) {
        push(&to, "expand|expand_BN", "block_%u_", i);
        push(&to, "depthwise|depthwise_BN", "block_%u_", i);
        push(&to, "project|project_BN", "block_%u_", i);
    }
    push(&to, "|_bn", "Conv_1");
    return to;
}

static inline names resnet_of(const char *shortcut, const char *head)
{
    names to = {.head = head};

    push(&to, "conv1|bn1", "%s", "");
    for (unsigned stage = 1; stage <= 3; stage++) {
        for (unsigned i = 0; i < 3; i++) {
            push(&to, "conv1|bn1", "layer%u.%u.", stage, i);
            if (stage > 1 && i == 0)
                push(&to, "0|1", "layer%u.0.%s.", stage, shortcut);
            push(&to, "conv2|bn2", "layer%u.%u.", stage, i);
        }
    }
    return to;
}

static inline names resnet(void)
{
    return resnet_of("downsample", "fc");
}

static inline names resnet_of_scripts(void)
{
    return resnet_of("shortcut", "linear");
}

/* --- files --- */

/* A file in the making: the tensors of a network under other names. */
typedef struct sheet {
    pace__tensor tensors[PACE__CNN_TENSORS_MAX + 2];
    char text[PACE__CNN_TENSORS_MAX + 2][2 * NAME_BYTES];
    float *data[PACE__CNN_TENSORS_MAX + 2];
    size_t count;
} sheet;

static inline void sheet_add(sheet *to, const char *prefix, const char *stem, const char *end, unsigned rank,
                             const uint64_t *shape, float *data)
{
    size_t at = to->count++;

    snprintf(to->text[at], sizeof to->text[at], "%s%s%s", prefix, stem, end);
    to->tensors[at] = (pace__tensor){.name = to->text[at], .dtype = PACE__F32, .rank = rank, .data = data};
    memcpy(to->tensors[at].shape, shape, rank * sizeof *shape);
    to->data[at] = data;
}

static inline float *copied(const float *values, size_t count)
{
    float *copy = tiny_alloc(count * sizeof *copy);

    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

/* (out, in, h, w) as TensorFlow has it: (h, w, in, out), or of depthwise ones (h, w, channels, 1). */
static inline float *turned(const float *values, uint64_t shape[4], bool depthwise)
{
    uint64_t out = shape[0], in = shape[1], h = shape[2], w = shape[3], at = 0;
    float *turn = tiny_alloc(out * in * h * w * sizeof *turn);

    for (uint64_t y = 0; y < h; y++) {
        for (uint64_t x = 0; x < w; x++) {
            for (uint64_t i = 0; i < in; i++) {
                for (uint64_t o = 0; o < out; o++)
                    turn[at++] = values[((o * in + i) * h + y) * w + x];
            }
        }
    }
    shape[0] = h;
    shape[1] = w;
    shape[2] = depthwise ? out : in;
    shape[3] = depthwise ? 1 : out;
    return turn;
}

static inline void sheet_unit(sheet *to, const tiny_cnn *net, uint32_t u, const names *by, const char *prefix,
                              bool keras)
{
    static const char *const ends[2][4] = {{".weight", ".bias", ".running_mean", ".running_var"},
                                           {"/gamma", "/beta", "/moving_mean", "/moving_variance"}};
    const pace__cnn_unit *unit = &net->net.unit[u];
    uint64_t shape[4] = {unit->channels, unit->depthwise ? 1 : unit->in_channels, unit->kernel, unit->kernel};
    const float *weight = net->weights + unit->weight_at;
    const float *vectors[4] = {net->weights + unit->gamma_at, net->weights + unit->beta_at,
                               net->stats + unit->mean_at, net->stats + unit->variance_at};
    float *data =
        keras ? turned(weight, shape, unit->depthwise) : copied(weight, unit->gamma_at - unit->weight_at);

    sheet_add(to, prefix, by->conv[u],
              !keras            ? ".weight"
              : unit->depthwise ? "/depthwise_kernel"
                                : "/kernel",
              4, shape, data);
    for (int i = 0; i < 4; i++)
        sheet_add(to, prefix, by->norm[u], ends[keras][i], 1, (uint64_t[]){unit->channels},
                  copied(vectors[i], unit->channels));
}

static inline sheet *sheet_make(const tiny_cnn *net, const names *by, const char *prefix, bool keras,
                                bool flat_head)
{
    sheet *to = tiny_alloc(sizeof *to);
    uint64_t shape[4] = {net->net.outputs, net->net.features, 1, 1};
    const float *weight = net->weights + net->net.head_weight_at;

    assert_int_equal(by->count, net->net.units);
    for (uint32_t u = 0; u < net->net.units; u++)
        sheet_unit(to, net, u, by, prefix, keras);
    float *data = keras ? turned(weight, shape, false) : copied(weight, shape[0] * shape[1]);

    sheet_add(to, prefix, by->head, keras ? "/kernel" : ".weight", flat_head ? 2 : 4,
              keras && flat_head ? shape + 2 : shape, data);
    sheet_add(to, prefix, by->head, keras ? "/bias" : ".bias", 1, (uint64_t[]){net->net.outputs},
              copied(net->weights + net->net.head_bias_at, net->net.outputs));
    return to;
}

static inline void sheet_write(const sheet *self, const char *path, const char *key, const char *value)
{
    pace__text_pair metadata[] = {{"source", "a test"}, {key, value}};

    assert_ok(
        pace__safetensors_write(path, self->tensors, self->count, metadata, key ? 2 : 1, NULL, &said_log));
}

static inline void sheet_free(sheet *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->data[i]);
    free(self);
}

/* The tensor whose name ends so. */
static inline size_t sheet_find(const sheet *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp(self->text[i], name) == 0)
            return i;
    }
    fail_msg("no tensor %s", name);
    return 0;
}

static inline void sheet_drop(sheet *self, const char *name)
{
    size_t at = sheet_find(self, name);

    free(self->data[at]);
    self->count--;
    for (size_t i = at; i < self->count; i++) { /* names are pointed to: they move, too */
        memcpy(self->text[i], self->text[i + 1], sizeof self->text[i]);
        self->tensors[i] = self->tensors[i + 1];
        self->tensors[i].name = self->text[i];
        self->data[i] = self->data[i + 1];
    }
}

/* --- loading --- */

/* A network with first values, into which a file is loaded. */
typedef struct target {
    pace__cnn_config config;
    pace__cnn_net net;
    float *weights, *stats, *first;
    pace__pretrained_report report;
} target;

static inline target target_make(const tiny_cnn *like)
{
    target self = {.config = like->config, .net = like->net};

    self.weights = tiny_alloc(self.net.weights * sizeof(float));
    self.first = tiny_alloc(self.net.weights * sizeof(float));
    self.stats = tiny_alloc(self.net.stats * sizeof(float));
    pace__cnn_init(&self.config, &self.net, self.weights, self.stats);
    memcpy(self.first, self.weights, self.net.weights * sizeof(float));
    return self;
}

static inline void target_free(target *self)
{
    free(self->weights);
    free(self->first);
    free(self->stats);
}

static inline pace_status load(target *self, const char *path, const char *map, const char *layout)
{
    pace__pretrained *file = NULL;
    pace_status status = pace__pretrained_open(path, map, pace__describe_encoding, &said_log, &file);

    if (status)
        return status;
    if (layout)
        assert_string_equal(pace__pretrained_layout(file), layout);
    status =
        pace__pretrained_load(file, &self->config, &self->net, self->weights, self->stats, &self->report);
    pace__pretrained_close(file);
    return status;
}

static inline void assert_taken(const target *self, const tiny_cnn *from, bool head)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];

    for (unsigned t = 0, count = pace__cnn_tensors(&self->net, tensors); t < count; t++) {
        const float *found = (tensors[t].stats ? self->stats : self->weights) + tensors[t].at;
        const float *expected = (tensors[t].stats ? from->stats : from->weights) + tensors[t].at;

        if (!head && t >= count - 2)
            expected = self->first + tensors[t].at;
        for (size_t i = 0; i < tensors[t].size; i++) {
            if (found[i] != expected[i])
                fail_msg("value %zu of %s is %g, not %g", i, tensors[t].name, (double)found[i],
                         (double)expected[i]);
        }
    }
    assert_int_equal(self->report.head, head);
    assert_int_equal(self->report.tensors, 5 * self->net.units + (head ? 2 : 0));
    assert_int_equal(self->report.missing_count, 0);
}

typedef struct layout {
    const char *title;
    int arch;
    names (*make)(void);
    bool keras, flat_head;
} layout;

static const layout layouts[] = {
    {"torchvision", PACE_ARCH_MOBILENET_V2, torchvision_v2, false, true},
    {"timm", PACE_ARCH_MOBILENET_V2, timm_v2, false, true},
    {"timm", PACE_ARCH_MOBILENET_V1, timm_v1, false, true},
    {"keras", PACE_ARCH_MOBILENET_V1, keras_v1, true, false},
    {"keras", PACE_ARCH_MOBILENET_V2, keras_v2, true, true},
    {"resnet", PACE_ARCH_RESNET20, resnet, false, true},
    {"resnet", PACE_ARCH_RESNET20, resnet_of_scripts, false, true},
};

static inline tiny_cnn make_like(int arch, uint32_t channels, uint32_t classes)
{
    float width = arch == PACE_ARCH_RESNET20 ? 0.3f : 0.1f;

    return tiny_cnn_make((pace__cnn_config){.arch = arch, .width = width}, 32, channels, classes);
}

static inline sheet *make_sheet(const layout *by, const tiny_cnn *net, const char *prefix)
{
    names called = by->make();

    return sheet_make(net, &called, prefix, by->keras, by->flat_head);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

#endif

/* Weights of others: every tensor of every naming lands where it belongs, in the right order of its numbers;
 * what the file says about pixels, padding and epsilon; and what is refused. The names are written down here
 * a second time, as the frameworks build them: unit after unit, in the order of their modules. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

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

static names torchvision_v2(void)
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

static names timm_v2(void)
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

static names timm_v1(void)
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

static names keras_v1(void)
{
    names to = {.head = "conv_preds"};

    push(&to, "|_bn", "conv1");
    for (unsigned i = 1; i <= 13; i++) {
        push(&to, "|_bn", "conv_dw_%u", i);
        push(&to, "|_bn", "conv_pw_%u", i);
    }
    return to;
}

static names keras_v2(void)
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

static names resnet_of(const char *shortcut, const char *head)
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

static names resnet(void)
{
    return resnet_of("downsample", "fc");
}

static names resnet_of_scripts(void)
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

static void sheet_add(sheet *to, const char *prefix, const char *stem, const char *end, unsigned rank,
                      const uint64_t *shape, float *data)
{
    size_t at = to->count++;

    snprintf(to->text[at], sizeof to->text[at], "%s%s%s", prefix, stem, end);
    to->tensors[at] = (pace__tensor){.name = to->text[at], .dtype = PACE__F32, .rank = rank, .data = data};
    memcpy(to->tensors[at].shape, shape, rank * sizeof *shape);
    to->data[at] = data;
}

static float *copied(const float *values, size_t count)
{
    float *copy = tiny_alloc(count * sizeof *copy);

    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

/* (out, in, h, w) as TensorFlow has it: (h, w, in, out), or of depthwise ones (h, w, channels, 1). */
static float *turned(const float *values, uint64_t shape[4], bool depthwise)
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

static void sheet_unit(sheet *to, const tiny_cnn *net, uint32_t u, const names *by, const char *prefix,
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

static sheet *sheet_make(const tiny_cnn *net, const names *by, const char *prefix, bool keras, bool flat_head)
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

static void sheet_write(const sheet *self, const char *path, const char *key, const char *value)
{
    pace__text_pair metadata[] = {{"source", "a test"}, {key, value}};

    assert_ok(
        pace__safetensors_write(path, self->tensors, self->count, metadata, key ? 2 : 1, NULL, &said_log));
}

static void sheet_free(sheet *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->data[i]);
    free(self);
}

/* The tensor whose name ends so. */
static size_t sheet_find(const sheet *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp(self->text[i], name) == 0)
            return i;
    }
    fail_msg("no tensor %s", name);
    return 0;
}

static void sheet_drop(sheet *self, const char *name)
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

static target target_make(const tiny_cnn *like)
{
    target self = {.config = like->config, .net = like->net};

    self.weights = tiny_alloc(self.net.weights * sizeof(float));
    self.first = tiny_alloc(self.net.weights * sizeof(float));
    self.stats = tiny_alloc(self.net.stats * sizeof(float));
    pace__cnn_init(&self.config, &self.net, self.weights, self.stats);
    memcpy(self.first, self.weights, self.net.weights * sizeof(float));
    return self;
}

static void target_free(target *self)
{
    free(self->weights);
    free(self->first);
    free(self->stats);
}

static pace_status load(target *self, const char *path, const char *map, const char *layout)
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

static void assert_taken(const target *self, const tiny_cnn *from, bool head)
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

static tiny_cnn make_like(int arch, uint32_t channels, uint32_t classes)
{
    float width = arch == PACE_ARCH_RESNET20 ? 0.3f : 0.1f;

    return tiny_cnn_make((pace__cnn_config){.arch = arch, .width = width}, 32, channels, classes);
}

static sheet *make_sheet(const layout *by, const tiny_cnn *net, const char *prefix)
{
    names called = by->make();

    return sheet_make(net, &called, prefix, by->keras, by->flat_head);
}

static void every_tensor_lands(void **state)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        tiny_cnn net = make_like(layouts[i].arch, 3, 6);
        target self = target_make(&net);
        sheet *file = make_sheet(&layouts[i], &net, !layouts[i].keras && i % 2 ? "module." : "");

        sheet_write(file, in(state, "m"), NULL, NULL);
        assert_ok(load(&self, in(state, "m"), NULL, layouts[i].title));
        assert_taken(&self, &net, true);
        assert_false(self.report.grey);
        /* All layers may be needed, too. */
        self.config.first_trained = self.net.units;
        assert_ok(load(&self, in(state, "m"), NULL, layouts[i].title));
        sheet_free(file);
        target_free(&self);
        tiny_cnn_free(&net);
    }
}

/* Another number of classes: everything but the head. */
static void heads_of_others_stay(void **state)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        tiny_cnn net = make_like(layouts[i].arch, 3, 6), other = make_like(layouts[i].arch, 3, 5);
        target self = target_make(&other);
        sheet *file = make_sheet(&layouts[i], &net, "");

        sheet_write(file, in(state, "m"), NULL, NULL);
        assert_ok(load(&self, in(state, "m"), NULL, NULL));
        assert_taken(&self, &net, false);
        sheet_free(file);
        target_free(&self);
        tiny_cnn_free(&net);
        tiny_cnn_free(&other);
    }
}

static void a_file_without_a_head_has_none(void **state)
{
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    target self = target_make(&net);
    sheet *file = make_sheet(&layouts[3], &net, "");

    sheet_drop(file, "conv_preds/bias");
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_ok(load(&self, in(state, "m"), NULL, NULL));
    assert_taken(&self, &net, false);
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

/* The first convolution of colours, for grey pictures. */
static void colours_are_added_up_for_grey(void **state)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        tiny_cnn net = make_like(layouts[i].arch, 3, 6), grey = make_like(layouts[i].arch, 1, 6);
        target self = target_make(&grey);
        sheet *file = make_sheet(&layouts[i], &net, "");
        uint32_t channels = net.net.unit[0].channels;

        sheet_write(file, in(state, "m"), NULL, NULL);
        assert_ok(load(&self, in(state, "m"), NULL, NULL));
        assert_true(self.report.grey && self.report.head);
        for (uint32_t c = 0; c < channels; c++) {
            for (uint32_t k = 0; k < 9; k++) {
                const float *from = net.weights + c * 27 + k;

                assert_true(self.weights[c * 9 + k] == from[0] + from[9] + from[18]);
            }
        }
        /* What is behind it lies 18 x channels further in front. */
        assert_memory_equal(self.weights + self.net.unit[0].gamma_at, net.weights + net.net.unit[0].gamma_at,
                            (net.net.weights - net.net.unit[0].gamma_at) * sizeof(float));
        sheet_free(file);
        target_free(&self);
        tiny_cnn_free(&net);
        tiny_cnn_free(&grey);
    }
}

/* --- paceline's own --- */

static void own_models_are_taken(void **state)
{
    tiny_cnn net =
        tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_SMALL, .width = 0.1f, .same = true}, 8, 3, 3);
    target self = target_make(&net);
    pace__cnn_config settled = {.channels = 3};
    pace__pretrained *file;

    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    cnn_write(in(state, "run/model.safetensors"), &net.config, &net.encoding, &net.names, net.weights,
              net.stats, NULL);
    assert_ok(load(&self, in(state, "run"), NULL, "paceline"));
    assert_taken(&self, &net, true);
    assert_ok(pace__pretrained_open(in(state, "run"), NULL, pace__describe_encoding, &said_log, &file));
    assert_ok(pace__pretrained_settle(file, &settled));
    assert_true(settled.same && settled.epsilon == 1e-3f && settled.mean[2] == 100 &&
                settled.deviation[1] == 50);
    char found[PACE__SHA256_HEX], expected[PACE__SHA256_HEX];

    assert_ok(pace__pretrained_sha256(file, found));
    hash_file(in(state, "run/model.safetensors"), expected);
    assert_string_equal(found, expected);

    /* Three other classes: the shape of its head is no reason to take it. */
    pace__pretrained_expect(file, net.encoding.class_names ^ 1);
    memcpy(self.weights, self.first, self.net.weights * sizeof(float));
    assert_ok(pace__pretrained_load(file, &self.config, &self.net, self.weights, self.stats, &self.report));
    assert_taken(&self, &net, false);
    pace__pretrained_expect(file, net.encoding.class_names);
    assert_ok(pace__pretrained_load(file, &self.config, &self.net, self.weights, self.stats, &self.report));
    assert_taken(&self, &net, true);
    pace__pretrained_close(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

/* --- name maps --- */

/* Weights are known by the map, too: it decides which of them are taken. */
static void maps_are_part_of_the_checksum(void **state)
{
    static const char *const maps[] = {NULL, "a b\n", "a c\n", "a b\n"};
    tiny_cnn net = make_like(PACE_ARCH_RESNET20, 3, 4);
    sheet *file = make_sheet(&layouts[5], &net, "");
    char found[4][PACE__SHA256_HEX];

    sheet_write(file, in(state, "m"), NULL, NULL);
    for (size_t i = 0; i < 4; i++) {
        pace__pretrained *open;

        if (maps[i])
            put_text(in(state, "map"), maps[i]);
        assert_ok(pace__pretrained_open(in(state, "m"), maps[i] ? in(state, "map") : NULL,
                                        pace__describe_encoding, &said_log, &open));
        assert_ok(pace__pretrained_sha256(open, found[i]));
        pace__pretrained_close(open);
    }
    assert_string_not_equal(found[0], found[1]);
    assert_string_not_equal(found[1], found[2]);
    assert_string_equal(found[1], found[3]);
    sheet_free(file);
    tiny_cnn_free(&net);
}

/* Names that nobody knows, and a map that knows them all. */
static void maps_name_everything(void **state)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    tiny_cnn net = make_like(PACE_ARCH_RESNET20, 3, 4);
    target self = target_make(&net);
    unsigned count = pace__cnn_tensors(&net.net, tensors);
    sheet *file = tiny_alloc(sizeof *file);
    char *map = tiny_alloc(65536), end[16];
    size_t used = (size_t)sprintf(map, "# ours theirs\n\n");

    for (unsigned t = 0; t < count; t++) {
        const float *values = (tensors[t].stats ? net.stats : net.weights) + tensors[t].at;

        snprintf(end, sizeof end, "%u", t);
        sheet_add(file, "", "thing", end, tensors[t].rank, tensors[t].shape, copied(values, tensors[t].size));
        used += (size_t)sprintf(map + used, "%s \t thing%u%s\n", tensors[t].name, t, t % 2 ? "\r" : " ");
    }
    sheet_write(file, in(state, "m"), NULL, NULL);
    put_text(in(state, "map"), map);
    assert_ok(load(&self, in(state, "m"), in(state, "map"), "name map"));
    assert_taken(&self, &net, true);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA,
                  "names tensors like thing0; --name-map");
    free(map);
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

/* Known names, of which a map changes one; the layout stays theirs. */
static void maps_come_first(void **state)
{
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    target self = target_make(&net);
    sheet *file = make_sheet(&layouts[3], &net, "");

    strcpy(file->text[sheet_find(file, "conv_pw_3/kernel")], "strange");
    sheet_write(file, in(state, "m"), NULL, NULL);
    put_text(in(state, "map"), "pw3.weight strange");
    assert_ok(load(&self, in(state, "m"), NULL, NULL));
    assert_string_equal(self.report.missing, "pw3.weight");
    assert_int_equal(self.report.missing_count, 1);
    assert_ok(load(&self, in(state, "m"), in(state, "map"), "name map"));
    assert_taken(&self, &net, true);
    put_text(in(state, "map"), "pw3.weight strange\npw4.weight stranger\n");
    assert_failed(load(&self, in(state, "m"), in(state, "map"), NULL), PACE_BAD_DATA,
                  "no tensor stranger, which the name map's line 2 names");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

static void bad_maps_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } maps[] = {{"pw3.weight\n", "map:1: not two names"},
                {"\npw3.weight a b\n", "map:2: not two names"},
                {"pw3.weight a\npw3.weight b\n", "map:2: pw3.weight is named a second time"},
                {"pw3.weight a\001\n", "control characters"},
                {"pw33.weight a\n", "line 1: this network has no tensor pw33.weight"}};
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    target self = target_make(&net);
    sheet *file = make_sheet(&layouts[3], &net, "");

    sheet_write(file, in(state, "m"), NULL, NULL);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        put_text(in(state, "map"), maps[i].text);
        assert_failed(load(&self, in(state, "m"), in(state, "map"), NULL), PACE_BAD_DATA, maps[i].message);
    }
    assert_failed(load(&self, in(state, "m"), in(state, "no map"), NULL), PACE_NO_INPUT, "no map");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

/* --- settings --- */

static pace__cnn_config settle_as(int arch, const char *path, uint32_t channels)
{
    pace__cnn_config config = {.arch = arch, .channels = channels};
    pace__pretrained *file;

    assert_ok(pace__pretrained_open(path, NULL, pace__describe_encoding, &said_log, &file));
    assert_ok(pace__pretrained_settle(file, &config));
    pace__pretrained_close(file);
    return config;
}

static pace__cnn_config settle(const char *path, uint32_t channels)
{
    return settle_as(PACE_ARCH_MOBILENET_V2, path, channels);
}

/* One author, two kinds of pixels. */
static void settings_of_timm_follow_the_network(void **state)
{
    for (size_t i = 1; i < 3; i++) {
        tiny_cnn net = make_like(layouts[i].arch, 3, 6);
        sheet *file = make_sheet(&layouts[i], &net, "");

        sheet_write(file, in(state, "m"), NULL, NULL);
        pace__cnn_config found = settle_as(layouts[i].arch, in(state, "m"), 3);

        assert_true(!found.same && found.epsilon == 1e-5f);
        assert_true((found.mean[0] == 127.5f) == (layouts[i].arch == PACE_ARCH_MOBILENET_V1));
        sheet_write(file, in(state, "m"), "preprocess", "imagenet");
        assert_true(settle_as(layouts[i].arch, in(state, "m"), 3).mean[0] < 124);
        sheet_free(file);
        tiny_cnn_free(&net);
    }
}

static void settings_follow_the_file(void **state)
{
    tiny_cnn v1 = make_like(PACE_ARCH_MOBILENET_V1, 3, 6), v2 = make_like(PACE_ARCH_MOBILENET_V2, 3, 6);
    sheet *keras = make_sheet(&layouts[3], &v1, ""), *torch = make_sheet(&layouts[0], &v2, "");

    sheet_write(keras, in(state, "m"), NULL, NULL);
    pace__cnn_config found = settle(in(state, "m"), 3);

    assert_true(found.same && found.epsilon == 1e-3f && found.mean[0] == 127.5f &&
                found.deviation[2] == 127.5f);
    sheet_write(torch, in(state, "m"), NULL, NULL);
    found = settle(in(state, "m"), 3);
    assert_true(!found.same && found.epsilon == 1e-5f);
    assert_true(fabsf(found.mean[0] - 123.675f) < 1e-3f && fabsf(found.deviation[2] - 57.375f) < 1e-3f);
    found = settle(in(state, "m"), 1);
    assert_true(fabsf(found.mean[0] - 114.495f) < 1e-3f && fabsf(found.deviation[0] - 57.63f) < 1e-3f);

    sheet_write(torch, in(state, "m"), "preprocess", "X / 127.5 - 1, RGB");
    assert_true(settle(in(state, "m"), 3).mean[1] == 127.5f);
    sheet_write(torch, in(state, "m"), "preprocess", "x/255");
    found = settle(in(state, "m"), 3);
    assert_true(found.mean[1] == 0 && found.deviation[1] == 255);
    sheet_write(torch, in(state, "m"), "bn_eps", "0.001");
    assert_true(settle(in(state, "m"), 3).epsilon == 1e-3f);
    sheet_write(torch, in(state, "m"), "padding", "SAME");
    assert_true(settle(in(state, "m"), 3).same);
    sheet_write(keras, in(state, "m"), "padding", "symmetric");
    assert_false(settle(in(state, "m"), 3).same);
    sheet_free(keras);
    sheet_free(torch);
    tiny_cnn_free(&v1);
    tiny_cnn_free(&v2);
}

static void bad_settings_are_refused(void **state)
{
    static const char *const pairs[][2] = {{"preprocess", "x/127.5-1, BGR"},
                                           {"preprocess", "whatever"},
                                           {"bn_eps", "small"},
                                           {"bn_eps", "-1"},
                                           {"bn_eps", "nan"},
                                           {"padding", "VALID"}};
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    sheet *file = make_sheet(&layouts[3], &net, "");

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        pace__cnn_config config = {.channels = 3};
        pace__pretrained *open;

        sheet_write(file, in(state, "m"), pairs[i][0], pairs[i][1]);
        assert_ok(pace__pretrained_open(in(state, "m"), NULL, pace__describe_encoding, &said_log, &open));
        assert_failed(pace__pretrained_settle(open, &config), PACE_BAD_DATA, pairs[i][0]);
        pace__pretrained_close(open);
    }
    sheet_free(file);
    tiny_cnn_free(&net);
}

/* --- what is refused --- */

static void what_is_frozen_must_be_there(void **state)
{
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    target self = target_make(&net);
    sheet *file = make_sheet(&layouts[3], &net, "");

    sheet_drop(file, "conv_dw_5_bn/moving_mean");
    sheet_drop(file, "conv_pw_13/kernel");
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_ok(load(&self, in(state, "m"), NULL, NULL));
    assert_string_equal(self.report.missing, "dw5.mean");
    assert_int_equal(self.report.missing_count, 2);
    assert_int_equal(self.report.tensors, 5 * 27 + 2 - 2);
    self.config.first_trained = pace__cnn_find_unit(&self.net, "dw5");
    assert_ok(load(&self, in(state, "m"), NULL, NULL));
    self.config.first_trained++;
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA, "no tensor for dw5.mean");
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA, "conv_dw_5_bn/moving_mean");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

static void other_shapes_are_refused(void **state)
{
    tiny_cnn net =
        tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_MOBILENET_V1, .width = 0.25f}, 32, 3, 6);
    tiny_cnn wider =
        tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_MOBILENET_V1, .width = 0.5f}, 32, 3, 6);
    target self = target_make(&wider);
    sheet *file = make_sheet(&layouts[3], &net, "");

    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA,
                  "m: tensor conv1/kernel is (3, 3, 3, 8); for conv0.weight of this network it would be "
                  "(3, 3, 3, 16)");
    target_free(&self);
    self = target_make(&net);
    /* As PyTorch would have it. */
    memcpy(file->tensors[sheet_find(file, "conv_dw_2/depthwise_kernel")].shape, (uint64_t[4]){16, 1, 3, 3},
           4 * sizeof(uint64_t));
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA, "(16, 1, 3, 3)");
    size_t at = sheet_find(file, "conv1_bn/beta");

    file->tensors[at].dtype = PACE__I32;
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA, "conv1_bn/beta is I32; only F32");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
    tiny_cnn_free(&wider);
}

static void other_networks_are_told(void **state)
{
    tiny_cnn net = make_like(PACE_ARCH_MOBILENET_V2, 3, 6), v1 = make_like(PACE_ARCH_MOBILENET_V1, 3, 6);
    target self = target_make(&v1);
    sheet *file = make_sheet(&layouts[4], &net, "");

    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, "keras"), PACE_BAD_DATA,
                  "no tensor is one of mobilenet-v1; it seems to be mobilenet-v2, by keras names");
    sheet_free(file);
    target_free(&self);
    self = target_make(&net);
    file = make_sheet(&layouts[3], &v1, "");
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, "keras"), PACE_BAD_DATA, "it seems to be mobilenet-v1");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
    tiny_cnn_free(&v1);
}

static void bad_numbers_are_refused(void **state)
{
    tiny_cnn net = make_like(PACE_ARCH_RESNET20, 3, 6);
    target self = target_make(&net);
    sheet *file = make_sheet(&layouts[5], &net, "");
    size_t weight = sheet_find(file, "layer1.1.conv2.weight"), variance = sheet_find(file, "bn1.running_var");
    float kept = file->data[weight][3];

    file->data[weight][3] = INFINITY;
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA,
                  "value 3 of layer1.1.conv2.weight is not a number");
    file->data[weight][3] = kept;
    file->data[variance][1] = -1;
    sheet_write(file, in(state, "m"), NULL, NULL);
    assert_failed(load(&self, in(state, "m"), NULL, NULL), PACE_BAD_DATA,
                  "value 1 of bn1.running_var is below 0");
    sheet_free(file);
    target_free(&self);
    tiny_cnn_free(&net);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_tensor_lands),
        TEST(heads_of_others_stay),
        TEST(a_file_without_a_head_has_none),
        TEST(colours_are_added_up_for_grey),
        TEST(own_models_are_taken),
        TEST(maps_name_everything),
        TEST(maps_come_first),
        TEST(bad_maps_are_refused),
        TEST(settings_of_timm_follow_the_network),
        TEST(maps_are_part_of_the_checksum),
        TEST(settings_follow_the_file),
        TEST(bad_settings_are_refused),
        TEST(what_is_frozen_must_be_there),
        TEST(other_shapes_are_refused),
        TEST(other_networks_are_told),
        TEST(bad_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

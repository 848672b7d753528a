/* Weights of others: every tensor of every naming lands where it belongs, in the right order of its numbers; and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pretrained_files.h"

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

/* Keras 3 calls all kernels so, those of depthwise convolutions, too. */
static void kernels_of_keras_3_land(void **state)
{
    static const char before[] = "/depthwise_kernel";

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!layouts[i].keras)
            continue;
        tiny_cnn net = make_like(layouts[i].arch, 3, 6);
        target self = target_make(&net);
        sheet *file = make_sheet(&layouts[i], &net, "");

        for (size_t t = 0; t < file->count; t++) {
            char *end = strstr(file->text[t], before);

            if (end)
                strcpy(end, "/kernel");
        }
        sheet_write(file, in(state, "m"), NULL, NULL);
        assert_ok(load(&self, in(state, "m"), NULL, "keras"));
        assert_taken(&self, &net, true);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_tensor_lands),
        TEST(kernels_of_keras_3_land),
        TEST(heads_of_others_stay),
        TEST(a_file_without_a_head_has_none),
        TEST(colours_are_added_up_for_grey),
        TEST(own_models_are_taken),
        TEST(what_is_frozen_must_be_there),
        TEST(other_shapes_are_refused),
        TEST(other_networks_are_told),
        TEST(bad_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

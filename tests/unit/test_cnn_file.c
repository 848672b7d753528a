/* Files of convolutional networks: what comes back, equal models in equal bytes, and everything that is
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"

#include "model_files.h"
#include "support.h"
#include "tiny_cnn.h"

static tiny_cnn make_small(void)
{
    return tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_SMALL, .width = 0.1f}, 8, 3, 4);
}

static void write_model(const char *path, const tiny_cnn *self)
{
    cnn_write(path, &self->config, &self->encoding, &self->names, self->weights, self->stats, NULL);
}

static void assert_is(const cnn_file *found, const tiny_cnn *expected)
{
    const pace__cnn_config *a = &found->config, *b = &expected->config;

    assert_true(a->arch == b->arch && a->width == b->width && a->epsilon == b->epsilon && a->same == b->same);
    assert_true(a->height == b->height && a->side == b->side && a->channels == b->channels);
    assert_true(a->classes == b->classes && a->one_logit == b->one_logit && a->first_trained == 0);
    for (uint32_t i = 0; i < b->channels; i++)
        assert_true(a->mean[i] == b->mean[i] && a->deviation[i] == b->deviation[i]);
    assert_true(a->dropout == 0 && a->seed == 0 && a->weight[0] == 1 && a->weight[1] == 1 && !a->flip);
    assert_ok(pace__encoding_fits(&found->encoding, &expected->encoding, &said_log));
    assert_int_equal(found->net.weights, expected->net.weights);
    assert_memory_equal(found->weights, expected->weights, expected->net.weights * sizeof(float));
    assert_memory_equal(found->stats, expected->stats, expected->net.stats * sizeof(float));
    assert_ptr_equal(found->stats, found->weights + found->net.weights);
    assert_int_equal(found->names.count, expected->names.count);
    for (uint32_t i = 0; i < found->names.count; i++)
        assert_string_equal(found->names.items[i], expected->names.items[i]);
}

/* --- what comes back --- */

static void models_come_back(void **state)
{
    const struct {
        pace__cnn_config config;
        uint32_t side, channels, classes;
    } networks[] = {
        {{.arch = PACE_ARCH_SMALL, .width = 0.1f}, 8, 1, 3},
        {{.arch = PACE_ARCH_SMALL, .width = 0.05f, .one_logit = true, .epsilon = 1e-5f}, 9, 3, 2},
        {{.arch = PACE_ARCH_RESNET20, .width = 0.3f, .mean = {123.675f, 116.28f, 103.53f}}, 12, 3, 2},
        {{.arch = PACE_ARCH_MOBILENET_V1, .width = 0.25f, .same = true, .deviation = {127.5f, 1, 1e-3f}},
         32,
         3,
         7},
        {{.arch = PACE_ARCH_MOBILENET_V2, .width = 0.35f}, 40, 3, 5},
    };

    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        tiny_cnn self =
            tiny_cnn_make(networks[i].config, networks[i].side, networks[i].channels, networks[i].classes);
        cnn_file model;

        write_model(in(state, "m"), &self);
        assert_ok(cnn_read(in(state, "m"), &model));
        assert_is(&model, &self);
        cnn_release(&model);
        cnn_release(&model); /* twice is fine */
        tiny_cnn_free(&self);
    }
}

static void a_run_directory_stands_for_its_model(void **state)
{
    tiny_cnn self = make_small();
    cnn_file model;

    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    write_model(in(state, "run/model.safetensors"), &self);
    assert_ok(cnn_read(in(state, "run"), &model));
    assert_is(&model, &self);
    cnn_release(&model);
    tiny_cnn_free(&self);
}

/* What was set for training only is not in the file. */
static void equal_models_are_equal_bytes(void **state)
{
    tiny_cnn self = make_small();
    char first[PACE__SHA256_HEX], second[PACE__SHA256_HEX];

    cnn_write(in(state, "a"), &self.config, &self.encoding, &self.names, self.weights, self.stats, first);
    self.config.seed = 8;
    self.config.dropout = 0.5f;
    self.config.smoothing = 0.1f;
    self.config.first_trained = 2;
    self.config.weight[1] = 5;
    self.config.momentum = 0.3f;
    self.config.flip = true;
    self.config.crop = 4;
    self.config.colour = 0.1f;
    cnn_write(in(state, "b"), &self.config, &self.encoding, &self.names, self.weights, self.stats, second);
    assert_string_equal(first, second);
    assert_same_file(in(state, "a"), in(state, "b"));
    self.stats[3] += 1;
    cnn_write(in(state, "b"), &self.config, &self.encoding, &self.names, self.weights, self.stats, second);
    assert_string_not_equal(first, second);
    tiny_cnn_free(&self);
}

/* The names and the text that others read. */
static void the_file_is_as_documented(void **state)
{
    tiny_cnn self = tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_MOBILENET_V1,
                                                     .width = 0.25f,
                                                     .same = true,
                                                     .mean = {127.5f, 127.5f, 127.5f},
                                                     .deviation = {127.5f, 127.5f, 127.5f}},
                                  32, 3, 4);
    pace__safetensors *file;

    write_model(in(state, "m"), &self);
    assert_ok(pace__safetensors_open(in(state, "m"), &said_log, &file));
    assert_string_equal(pace__safetensors_metadata(file, "model"), "cnn");
    assert_string_equal(pace__safetensors_metadata(file, "config"),
                        "{\"arch\":\"mobilenet-v1\",\"width\":0.25,\"head\":\"softmax\",\"padding\":\"same\","
                        "\"epsilon\":0.001,\"mean\":[127.5,127.5,127.5],\"deviation\":[127.5,127.5,127.5]}");
    const pace__tensor_info *dw = pace__safetensors_find(file, "dw3.weight");

    assert_non_null(dw);
    assert_true(dw->rank == 4 && dw->shape[0] == 32 && dw->shape[1] == 1 && dw->shape[2] == 3);
    assert_non_null(pace__safetensors_find(file, "pw13.variance"));
    assert_non_null(pace__safetensors_find(file, "head.bias"));
    assert_int_equal(pace__safetensors_find(file, "classes")->bytes, strlen("class0\n") * 4);
    pace__safetensors_close(file);
    tiny_cnn_free(&self);
}

/* --- what is refused --- */

/* Reads the model with one text in it replaced by another of the same length. */
static void refused(void **state, const tiny_cnn *self, const char *from, const char *to, const char *message)
{
    cnn_file model = {.config = {.classes = 77}};
    size_t size, length = strlen(from);
    char *bytes, *at = NULL;

    assert_int_equal(length, strlen(to));
    write_model(in(state, "m"), self);
    assert_ok(pace__read_file(in(state, "m"), 1 << 26, &bytes, &size, &said_log));
    for (size_t i = 0; i + length <= size && !at; i++)
        at = memcmp(bytes + i, from, length) == 0 ? bytes + i : NULL;
    if (!at)
        fail_msg("the file has no %s", from);
    memcpy(at, to, length);
    assert_ok(pace__write_file_atomically(in(state, "bad"), bytes, size, &said_log));
    free(bytes);
    assert_failed(cnn_read(in(state, "bad"), &model), PACE_BAD_DATA, message);
    assert_int_equal(model.config.classes, 77); /* set only on success */
}

static void damaged_configs_are_refused(void **state)
{
    tiny_cnn self = make_small();

    refused(state, &self, "\\\"small\\\"", "\\\"smell\\\"", "no valid \"arch\"");
    refused(state, &self, "\\\"width\\\":0.1", "\\\"width\\\":-.1", "no valid \"width\"");
    refused(state, &self, "\\\"width\\\":0.1", "\\\"width\\\":0e1", "no valid \"width\"");
    refused(state, &self, "\\\"width\\\":0.1", "\\\"width\\\":0.2", "weights, and its config asks for");
    refused(state, &self, "\\\"width\\\":0.1", "\\\"width\\\":9e9", "no such network");
    refused(state, &self, "softmax", "sofamax", "no valid \"head\"");
    refused(state, &self, "symmetric", "asymmetry", "no valid \"padding\"");
    refused(state, &self, "0.001", "-.001", "no valid \"epsilon\"");
    refused(state, &self, "0.001", "1e-99", "no valid \"epsilon\"");
    refused(state, &self, "[50,50,50]", "[50,50, 0]", "no valid \"deviation\"");
    refused(state, &self, "[50,50,50]", "[50,  500]", "no valid \"deviation\"");
    refused(state, &self, "[100,100,100]", "[100,1e99,10]", "no valid \"mean\"");
    refused(state, &self, "\\\"epsilon\\\"", "\\\"epsilom\\\"", "no valid \"epsilon\"");
    refused(state, &self, "\"cnn\"", "\"ann\"", "not a model that paceline trained");
    tiny_cnn_free(&self);
    self = tiny_cnn_make((pace__cnn_config){.arch = PACE_ARCH_SMALL, .width = 0.1f}, 8, 3, 2);
    /* One output where there are weights of two. */
    refused(state, &self, "\\\"head\\\":\\\"softmax\\\"", "\\\"head\\\":  \\\"logit\\\"", "asks for");
    tiny_cnn_free(&self);
}

static void damaged_tensors_are_refused(void **state)
{
    tiny_cnn self = make_small();

    refused(state, &self, "conv2.gamma", "conv2.gemma", "tensor conv2.gamma is missing");
    refused(state, &self, "[3,3,3,3]", "[9,3,1,3]", "tensor conv1.weight");
    refused(state, &self, "\"classes\"", "\"glasses\"", "it has no classes");
    refused(state, &self, "class2\n", "class7\n", "class names are not those of its encoding");
    refused(state, &self, "class2\n", "class1\n", "class names");
    tiny_cnn_free(&self);
}

static void bad_numbers_are_refused(void **state)
{
    tiny_cnn self = make_small();
    size_t variance = self.net.unit[1].variance_at + 2;
    cnn_file model;
    float kept = self.weights[10];

    self.weights[10] = NAN;
    write_model(in(state, "m"), &self);
    assert_failed(cnn_read(in(state, "m"), &model), PACE_BAD_DATA,
                  "value 10 of conv1.weight is not a number");
    self.weights[10] = kept;
    self.stats[variance] = -1e-3f;
    write_model(in(state, "m"), &self);
    assert_failed(cnn_read(in(state, "m"), &model), PACE_BAD_DATA, "value 2 of conv2.variance is below 0");
    self.stats[variance] = 0; /* a channel that never moves */
    write_model(in(state, "m"), &self);
    assert_ok(cnn_read(in(state, "m"), &model));
    cnn_release(&model);
    tiny_cnn_free(&self);
}

static void a_missing_file_is_no_input(void **state)
{
    cnn_file model;

    assert_failed(cnn_read(in(state, "nothing"), &model), PACE_NO_INPUT, "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(models_come_back, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_run_directory_stands_for_its_model, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(equal_models_are_equal_bytes, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(the_file_is_as_documented, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(damaged_configs_are_refused, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(damaged_tensors_are_refused, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(bad_numbers_are_refused, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_missing_file_is_no_input, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Weights of others: files that map names, and what the file says about pixels, padding and epsilon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pretrained_files.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_name_everything),          TEST(maps_come_first),
        TEST(bad_maps_are_refused),          TEST(settings_of_timm_follow_the_network),
        TEST(maps_are_part_of_the_checksum), TEST(settings_follow_the_file),
        TEST(bad_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

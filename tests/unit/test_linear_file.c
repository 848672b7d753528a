/* Model files: weights by original id, equal models in equal bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"

#include "model_files.h"
#include "support.h"

#define COUNT 3000

typedef struct sample {
    pace__encoding encoding;
    uint64_t ids[COUNT];
    float weights[COUNT];
} sample;

/* Distinct ids below `space`, in no order. */
static sample *make_sample(uint64_t space)
{
    sample *self = tiny_alloc(sizeof *self);
    uint64_t step = space / COUNT;

    self->encoding = (pace__encoding){.kind = PACE__NUMBERED, .features = space};
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t place = i * 1009 % COUNT; /* 1009 and 3000 have no common factor */

        self->ids[i] = place * step + pace__mix64(place) % step;
        self->weights[i] = (float)(int64_t)pace__mix64(self->ids[i]) * 0x1p-60f;
    }
    return self;
}

static void write_sample(const char *path, const sample *from, char sha256[PACE__SHA256_HEX])
{
    linear_write(path, &from->encoding, from->ids, from->weights, 1, COUNT, -1.5f, sha256);
}

static void weights_come_back_by_id(void **state)
{
    static const uint64_t spaces[] = {COUNT, 70000, UINT64_C(1) << 33, PACE__FEATURES_MAX};

    for (size_t s = 0; s < 4; s++) {
        sample *from = make_sample(spaces[s]);
        linear_file model;

        write_sample(in(state, "m"), from, NULL);
        assert_ok(linear_read(in(state, "m"), &model));
        assert_int_equal(model.count, COUNT);
        assert_true(model.bias == -1.5f);
        assert_int_equal(model.encoding.features, spaces[s]);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(linear_find(&model, from->ids[i]) == from->weights[i]);
            assert_true(i == 0 || model.ids[i] > model.ids[i - 1]);
        }
        linear_release(&model);
        linear_release(&model); /* twice is fine */
        free(from);
    }
}

static void what_is_not_listed_weighs_nothing(void **state)
{
    sample *from = make_sample(UINT64_C(1) << 33);
    linear_file model;

    write_sample(in(state, "m"), from, NULL);
    assert_ok(linear_read(in(state, "m"), &model));
    for (uint32_t i = 0; i + 1 < COUNT; i++) {
        if (model.ids[i] + 1 < model.ids[i + 1])
            assert_true(linear_find(&model, model.ids[i] + 1) == 0);
    }
    assert_true(linear_find(&model, model.ids[COUNT - 1] + 1) == 0);
    assert_true(linear_find(&model, UINT64_C(1) << 52) == 0);
    assert_true(linear_find(&model, UINT64_MAX) == 0);
    linear_release(&model);
    free(from);
}

static void a_model_may_be_empty(void **state)
{
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = 5};
    linear_file model;

    linear_write(in(state, "m"), &encoding, NULL, NULL, 1, 0, 0.25f, NULL);
    assert_ok(linear_read(in(state, "m"), &model));
    assert_int_equal(model.count, 0);
    assert_true(model.bias == 0.25f);
    assert_true(linear_find(&model, 0) == 0 && linear_find(&model, 4) == 0);
    linear_release(&model);
}

/* Compact ids come in any order and at any stride; the file knows neither. */
static void equal_models_are_equal_bytes(void **state)
{
    sample *from = make_sample(1 << 20), *turned = tiny_alloc(sizeof *turned);
    float *wide = tiny_alloc(COUNT * 3 * sizeof *wide);
    char hash[3][PACE__SHA256_HEX], file[PACE__SHA256_HEX];

    turned->encoding = from->encoding;
    for (size_t i = 0; i < COUNT; i++) {
        turned->ids[i] = from->ids[COUNT - 1 - i];
        turned->weights[i] = from->weights[COUNT - 1 - i];
        wide[3 * i] = from->weights[i];
        wide[3 * i + 1] = 99;
    }
    write_sample(in(state, "a"), from, hash[0]);
    write_sample(in(state, "b"), turned, hash[1]);
    linear_write(in(state, "c"), &from->encoding, from->ids, wide, 3, COUNT, -1.5f, hash[2]);
    assert_string_equal(hash[0], hash[1]);
    assert_string_equal(hash[0], hash[2]);
    hash_file(in(state, "a"), file);
    assert_string_equal(hash[0], file);
    turned->weights[7] += 1;
    write_sample(in(state, "b"), turned, hash[1]);
    assert_string_not_equal(hash[0], hash[1]);
    free(wide);
    free(turned);
    free(from);
}

static void criteo_encodings_come_back(void **state)
{
    sample *from = make_sample(1 << 20);
    linear_file model;

    assert_ok(pace__encoding_criteo(1 << 20, 0, &from->encoding, &said_log));
    write_sample(in(state, "m"), from, NULL);
    assert_ok(linear_read(in(state, "m"), &model));
    assert_int_equal(model.encoding.kind, PACE__CRITEO);
    assert_memory_equal(model.encoding.column_base, from->encoding.column_base,
                        sizeof model.encoding.column_base);
    linear_release(&model);
    free(from);
}

static void a_run_directory_stands_for_its_model(void **state)
{
    sample *from = make_sample(1 << 20);
    linear_file model;

    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    write_sample(in(state, "run/model.safetensors"), from, NULL);
    assert_ok(linear_read(in(state, "run"), &model));
    assert_int_equal(model.count, COUNT);
    linear_release(&model);
    free(from);
}

/* --- damage --- */

static void refuse(const char *path, pace_status expected, const char *message)
{
    linear_file model = {.count = 77};

    said_clear();
    pace_status status = linear_read(path, &model);

    assert_said(path);
    assert_failed(status, expected, message);
    assert_int_equal(model.count, 77);
}

static void missing_models_are_named(void **state)
{
    refuse(in(state, "none"), PACE_NO_INPUT, in(state, "none"));
    assert_int_equal(mkfifo(in(state, "pipe"), 0600), 0); /* must not be waited for */
    refuse(in(state, "pipe"), PACE_NO_INPUT, in(state, "pipe"));
    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    refuse(in(state, "run"), PACE_NO_INPUT, in(state, "run/model.safetensors"));
}

static void cut_files_are_refused(void **state)
{
    sample *from = make_sample(1 << 20);
    struct stat info;

    write_sample(in(state, "m"), from, NULL);
    assert_int_equal(stat(in(state, "m"), &info), 0);
    for (off_t size = info.st_size - 1; size >= 0; size -= 1 + size / 5) {
        assert_int_equal(truncate(in(state, "m"), size), 0);
        refuse(in(state, "m"), PACE_BAD_DATA, "");
    }
    free(from);
}

/* Refused, or another model that is a valid one. */
static void every_flipped_byte_is_survived(void **state)
{
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = 100};
    const char *path = in(state, "m");
    unsigned whole = 0, refused = 0;
    char *bytes;
    size_t size;

    linear_write(path, &encoding, (uint64_t[]){3, 7, 99}, (float[]){1, 2, 3}, 1, 3, 0.5f, NULL);
    assert_ok(pace__read_file(path, 1 << 16, &bytes, &size, &said_log));
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (size_t at = 0; at < size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char flipped = (char)(bytes[at] ^ (1 << bit));
            linear_file model = {.count = 77};

            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            said_clear();
            pace_status status = linear_read(path, &model);

            if (status) {
                assert_failed(status, PACE_BAD_DATA, path);
                assert_int_equal(model.count, 77);
                refused++;
                continue;
            }
            for (uint32_t i = 0; i < model.count; i++)
                assert_true(model.ids[i] < model.encoding.features &&
                            linear_find(&model, model.ids[i]) == linear_weight_at(&model, i));
            linear_release(&model);
            whole++;
        }
        assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
    }
    assert_true(whole > 0 && refused > 0);
    close(fd);
    free(bytes);
}

/* Writes what another program might: the same tensors with other numbers, types or names. */
static void write_tensors(const char *path, const uint64_t *ids, uint64_t id_count, const float *weights,
                          uint64_t weight_count, float bias, const char *kind, const char *encoding)
{
    pace__tensor tensors[] = {
        {.name = "ids", .dtype = PACE__U64, .rank = 1, .shape = {id_count}, .data = ids},
        {.name = "weight", .dtype = PACE__F32, .rank = 1, .shape = {weight_count}, .data = weights},
        {.name = "bias", .dtype = PACE__F32, .rank = 1, .shape = {1}, .data = &bias},
    };
    pace__text_pair metadata[] = {{"model", kind}, {"encoding", encoding}};

    assert_ok(pace__safetensors_write(path, tensors, 3, metadata, 2, NULL, &said_log));
}

static void wrong_numbers_are_refused(void **state)
{
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = 100};
    char *json = pace__encoding_to_json(&encoding);
    uint64_t ids[] = {3, 7, 99};
    float weights[] = {1, 2, 3};
    const char *path = in(state, "m");
    linear_file model;

    write_tensors(path, ids, 3, weights, 3, 0.5f, "logreg", json);
    assert_ok(linear_read(path, &model));
    linear_release(&model);
    write_tensors(path, (uint64_t[]){3, 3, 99}, 3, weights, 3, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "entry 1");
    write_tensors(path, (uint64_t[]){7, 3, 99}, 3, weights, 3, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "entry 1");
    write_tensors(path, (uint64_t[]){3, 7, 100}, 3, weights, 3, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "id 100");
    write_tensors(path, ids, 3, (float[]){1, NAN, 3}, 3, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "id 7");
    write_tensors(path, ids, 3, (float[]){1, 2, INFINITY}, 3, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "id 99");
    write_tensors(path, ids, 3, weights, 2, 0.5f, "logreg", json);
    refuse(path, PACE_BAD_DATA, "size");
    write_tensors(path, ids, 3, weights, 3, NAN, "logreg", json);
    refuse(path, PACE_BAD_DATA, "bias");
    write_tensors(path, ids, 3, weights, 3, 0.5f, "ann", json);
    refuse(path, PACE_BAD_DATA, "not a model that paceline trained");
    write_tensors(path, ids, 3, weights, 3, 0.5f, "logreg", "{");
    refuse(path, PACE_BAD_DATA, "");
    write_tensors(path, ids, 3, weights, 3, 0.5f, "logreg", "{\"kind\":\"a\\u001b[2J\"}");
    refuse(path, PACE_BAD_DATA, "unexpected characters");
    write_tensors(path, ids, 3, weights, 3, 0.5f, "logreg", "{\"kind\":\"a\nb\"}");
    refuse(path, PACE_BAD_DATA, "unexpected characters");
    free(json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weights_come_back_by_id),        TEST(what_is_not_listed_weighs_nothing),
        TEST(a_model_may_be_empty),           TEST(equal_models_are_equal_bytes),
        TEST(criteo_encodings_come_back),     TEST(a_run_directory_stands_for_its_model),
        TEST(missing_models_are_named),       TEST(cut_files_are_refused),
        TEST(every_flipped_byte_is_survived), TEST(wrong_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of linear models on texts: words, n-grams and the vocabulary. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"

#include "model_files.h"
#include "support.h"
#include "tiny_texts.h"

#define WORDS 40

typedef struct sample {
    pace__vocabulary *vocabulary;
    pace__encoding encoding;
    unsigned ngram;
    uint32_t ids;
    float *weight; /* (ids) most of them 0 */
} sample;

static sample make_sample(unsigned ngram)
{
    sample self = {.vocabulary = tiny_vocabulary(WORDS, 0), .ngram = ngram};

    self.encoding = (pace__encoding){.kind = PACE__TEXT,
                                     .features = pace__vocabulary_ids(self.vocabulary),
                                     .length = 12,
                                     .vocabulary = pace__vocabulary_checksum(self.vocabulary)};
    self.ids = pace__ngram_ids((uint32_t)self.encoding.features, ngram);
    self.weight = tiny_alloc(self.ids * sizeof *self.weight);
    for (uint32_t id = 5; id < self.ids; id += 1 + id / 8)
        self.weight[id] = tiny_weight(id);
    self.weight[self.ids - 1] = 1;
    return self;
}

static void free_sample(sample *self)
{
    pace__vocabulary_free(self->vocabulary);
    free(self->weight);
}

static void write_sample(const char *path, const sample *from, char sha256[PACE__SHA256_HEX])
{
    linear_write_text(path, &from->encoding, from->vocabulary, from->ngram, from->weight, from->ids, -0.25f,
                      sha256);
}

static void models_on_texts_come_back(void **state)
{
    for (unsigned ngram = 1; ngram <= 3; ngram++) {
        sample from = make_sample(ngram);
        uint32_t used = 0;
        linear_file model;

        write_sample(in(state, "m"), &from, NULL);
        assert_ok(linear_read(in(state, "m"), &model));
        for (uint32_t id = 0; id < from.ids; id++) {
            used += from.weight[id] != 0;
            if (from.weight[id] != 0 || id < 1000)
                assert_true(linear_find(&model, id) == from.weight[id]);
        }
        assert_int_equal(model.count, used); /* what weighs nothing is not there */
        assert_int_equal(model.ngram, ngram);
        assert_true(model.bias == -0.25f);
        assert_int_equal(pace__vocabulary_ids(model.vocabulary), WORDS + PACE__ID_WORDS);
        assert_int_equal(pace__vocabulary_stops(model.vocabulary), 2);
        assert_ok(pace__encoding_fits(&model.encoding, &from.encoding, &said_log));
        linear_release(&model);
        free_sample(&from);
    }
}

static void equal_models_are_equal_bytes(void **state)
{
    char one[PACE__SHA256_HEX], two[PACE__SHA256_HEX], file[PACE__SHA256_HEX];
    sample from = make_sample(2);

    write_sample(in(state, "a"), &from, one);
    write_sample(in(state, "b"), &from, two);
    hash_file(in(state, "a"), file);
    assert_string_equal(one, two);
    assert_string_equal(one, file);
    free_sample(&from);
}

static void a_model_without_weights_is_one(void **state)
{
    sample from = make_sample(1);
    linear_file model;

    memset(from.weight, 0, from.ids * sizeof *from.weight);
    write_sample(in(state, "m"), &from, NULL);
    assert_ok(linear_read(in(state, "m"), &model));
    assert_int_equal(model.count, 0);
    assert_true(linear_find(&model, 7) == 0);
    linear_release(&model);
    free_sample(&from);
}

/* --- files that someone else has written --- */

typedef struct parts {
    const char *ngram; /* NULL: not there */
    const char *vocabulary;
    uint64_t features, checksum, id;
    pace__dtype type;
} parts;

static pace_status write_parts(const char *path, const parts *from)
{
    pace__encoding encoding = {
        .kind = PACE__TEXT, .features = from->features, .length = 5, .vocabulary = from->checksum};
    char *json = pace__encoding_to_json(&encoding);
    float weight = 2, bias = 0;
    pace__tensor tensors[] = {
        {.name = "ids", .dtype = PACE__U64, .rank = 1, .shape = {1}, .data = &from->id},
        {.name = "weight", .dtype = PACE__F32, .rank = 1, .shape = {1}, .data = &weight},
        {.name = "bias", .dtype = PACE__F32, .rank = 1, .shape = {1}, .data = &bias},
        {.name = "vocabulary",
         .dtype = from->type,
         .rank = 1,
         .shape = {from->vocabulary ? strlen(from->vocabulary) : 0},
         .data = from->vocabulary},
    };
    pace__text_pair metadata[] = {{"model", "logreg"}, {"encoding", json}, {"ngram", from->ngram}};

    assert_non_null(json);
    assert_ok(pace__safetensors_write(path, tensors, from->vocabulary ? 4 : 3, metadata, from->ngram ? 3 : 2,
                                      NULL, &said_log));
    free(json);
    linear_file model = {.count = 77};

    said_clear();
    pace_status status = linear_read(path, &model);

    if (!status)
        linear_release(&model);
    return status;
}

static void wrong_parts_are_refused(void **state)
{
    const char *path = in(state, "m");
    pace__vocabulary *vocabulary = tiny_vocabulary(2, 0);
    char *bytes;
    size_t size;

    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &bytes, &size));
    char *text = strndup(bytes, size);

    free(bytes);
    assert_non_null(text);
    parts right = {"2", text, 5, pace__vocabulary_checksum(vocabulary), 4 + (1 << 22), PACE__U8};
    static const char *const ngrams[] = {NULL, "", "0", "9", "22", "2 ", "x", "-1"};

    assert_ok(write_parts(path, &right));
    for (size_t i = 0; i < sizeof ngrams / sizeof *ngrams; i++) {
        parts wrong = right;

        wrong.ngram = ngrams[i];
        assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "n-grams");
    }
    parts wrong = right;

    wrong.vocabulary = NULL;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "vocabulary");
    wrong = right;
    wrong.type = PACE__I8;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "vocabulary");
    wrong = right;
    wrong.vocabulary = "no vocabulary";
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, path);
    wrong = right;
    wrong.checksum++;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "not the one of its encoding");
    wrong = right;
    wrong.features++;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "not the one of its encoding");
    wrong = right;
    wrong.id++;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "beyond its 4194309 features");
    wrong = right;
    wrong.ngram = "1";
    wrong.id = 5;
    assert_failed(write_parts(path, &wrong), PACE_BAD_DATA, "beyond its 5 features");
    wrong.id = 4;
    assert_ok(write_parts(path, &wrong));
    free(text);
    pace__vocabulary_free(vocabulary);
}

/* Refused, or another model that is a valid one. */
static void every_flipped_byte_is_survived(void **state)
{
    sample from = make_sample(1);
    const char *path = in(state, "m");
    unsigned whole = 0, refused = 0;
    char *bytes;
    size_t size;

    write_sample(path, &from, NULL);
    assert_ok(pace__read_file(path, 1 << 16, &bytes, &size, &said_log));
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (size_t at = 0; at < size; at++) {
        char flipped = (char)(bytes[at] ^ (1 << at % 8));
        linear_file model;

        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        said_clear();
        pace_status status = linear_read(path, &model);

        if (status) {
            assert_failed(status, PACE_BAD_DATA, path);
            refused++;
        } else {
            linear_release(&model);
            whole++;
        }
        assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
    }
    close(fd);
    assert_true(whole > 0 && refused > 0);
    free(bytes);
    free_sample(&from);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(models_on_texts_come_back),      TEST(equal_models_are_equal_bytes),
        TEST(a_model_without_weights_is_one), TEST(wrong_parts_are_refused),
        TEST(every_flipped_byte_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

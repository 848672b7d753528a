/* Files of recurrent networks: what comes back, equal models in equal bytes, and everything that is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"

#include "model_files.h"
#include "support.h"

#include <paceline/prep.h>

/* A network and everything that belongs into its file. */
typedef struct sample {
    pace__rnn_config config;
    pace__encoding encoding;
    char *text; /* the vocabulary's */
    size_t text_size;
    size_t embedding_count, dense_count;
    float *embedding, *dense;
} sample;

static const pace__rnn_config networks[] = {
    {.embed = 3, .hidden = 2, .layers = 1, .cell = PACE_CELL_LSTM},
    {.embed = 1, .hidden = 1, .layers = 1, .cell = PACE_CELL_GRU, .pooling = PACE_POOL_MEAN},
    {.embed = 5,
     .hidden = 4,
     .layers = 3,
     .cell = PACE_CELL_GRU,
     .pooling = PACE_POOL_MAX,
     .both = true,
     .dense = 7,
     .loss = PACE_LOSS_FOCAL},
    {.embed = 50, .hidden = 20, .layers = 2, .cell = PACE_CELL_LSTM, .both = true, .loss = PACE_LOSS_HINGE},
};
#define NETWORKS (sizeof networks / sizeof *networks)

/* A vocabulary of the words aaa, aab, ... and two stop words. */
static void make_vocabulary(sample *self, uint32_t count)
{
    pace__word *words = tiny_alloc(count * sizeof *words);
    char(*spelling)[4] = tiny_alloc(count * sizeof *spelling);
    static const pace__word stops[] = {{"an", 2, 0}, {"the", 3, 0}};
    pace__vocabulary *vocabulary;

    for (uint32_t i = 0; i < count; i++) {
        spelling[i][0] = (char)('a' + i / 676 % 26);
        spelling[i][1] = (char)('a' + i / 26 % 26);
        spelling[i][2] = (char)('a' + i % 26);
        words[i] = (pace__word){spelling[i], 3, 10000 - i};
    }
    assert_ok(pace__vocabulary_create(words, count, stops, 2, &said_log, &vocabulary));
    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &self->text, &self->text_size));
    self->encoding = (pace__encoding){.kind = PACE__TEXT,
                                      .features = pace__vocabulary_ids(vocabulary),
                                      .length = 40,
                                      .truncate = PACE_TRUNCATE_BOTH,
                                      .pad_front = true,
                                      .vocabulary = pace__vocabulary_checksum(vocabulary)};
    pace__vocabulary_free(vocabulary);
    free(spelling);
    free(words);
}

static sample make_sample(const pace__rnn_config *config, uint32_t words)
{
    sample self = {.config = *config};

    make_vocabulary(&self, words);
    self.config.words = (uint32_t)self.encoding.features;
    self.config.length = self.encoding.length;
    self.config.seed = 4;
    self.embedding_count = (size_t)self.config.words * config->embed;
    self.dense_count = pace__rnn_dense(config);
    self.embedding = tiny_alloc(self.embedding_count * sizeof(float));
    self.dense = tiny_alloc(self.dense_count * sizeof(float));
    for (uint32_t word = 0; word < self.config.words; word++)
        pace__rnn_init_word(&self.config, word, self.embedding + (size_t)word * config->embed);
    pace__rnn_init_dense(&self.config, self.dense);
    return self;
}

static void free_sample(sample *self)
{
    free(self->text);
    free(self->embedding);
    free(self->dense);
}

static void write_sample(const char *path, const sample *self, char sha256[PACE__SHA256_HEX])
{
    rnn_write(path, &self->config, &self->encoding, self->text, self->text_size, self->embedding,
              self->config.embed, self->dense, sha256);
}

/* --- what comes back --- */

static void assert_is(const rnn_file *found, const sample *expected)
{
    const pace__rnn_config *a = &found->config, *b = &expected->config;

    assert_true(a->words == b->words && a->length == b->length && a->embed == b->embed);
    assert_true(a->hidden == b->hidden && a->layers == b->layers && a->dense == b->dense);
    assert_true(a->cell == b->cell && a->pooling == b->pooling && a->both == b->both && a->loss == b->loss);
    assert_true(a->dropout == 0 && a->focal == 0 && a->seed == 0 && a->weight[0] == 1 && a->weight[1] == 1);
    assert_ok(pace__encoding_fits(&found->encoding, &expected->encoding, &said_log));
    assert_memory_equal(found->embedding, expected->embedding, expected->embedding_count * sizeof(float));
    assert_memory_equal(found->dense, expected->dense, expected->dense_count * sizeof(float));
    assert_true(pace__vocabulary_checksum(found->vocabulary) == expected->encoding.vocabulary);
    assert_int_equal(pace__vocabulary_stops(found->vocabulary), 2);
}

static void models_come_back(void **state)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        sample self = make_sample(&networks[i], i == 3 ? 9000 : 20);
        rnn_file model;

        write_sample(in(state, "m"), &self, NULL);
        assert_ok(rnn_read(in(state, "m"), &model));
        assert_is(&model, &self);
        rnn_release(&model);
        rnn_release(&model); /* twice is fine */
        free_sample(&self);
    }
}

static void a_run_directory_stands_for_its_model(void **state)
{
    sample self = make_sample(&networks[2], 5);
    rnn_file model;

    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    write_sample(in(state, "run/model.safetensors"), &self, NULL);
    assert_ok(rnn_read(in(state, "run"), &model));
    assert_is(&model, &self);
    rnn_release(&model);
    free_sample(&self);
}

/* What was set for training only, and what stands between the rows, is not in the file. */
static void equal_models_are_equal_bytes(void **state)
{
    sample self = make_sample(&networks[3], 9000), other = self;
    uint32_t embed = self.config.embed;
    float *wide = tiny_alloc(self.config.words * 3 * embed * sizeof *wide);
    char hash[3][PACE__SHA256_HEX], file[PACE__SHA256_HEX];

    write_sample(in(state, "a"), &self, hash[0]);
    hash_file(in(state, "a"), file);
    assert_string_equal(hash[0], file);
    for (size_t i = 0; i < self.config.words * 3 * (size_t)embed; i++)
        wide[i] = i / embed % 3 ? NAN : self.embedding[i / embed / 3 * embed + i % embed];
    other.config.seed = 99;
    other.config.dropout = 0.5f;
    other.config.weight[1] = 3;
    other.config.focal = 7;
    rnn_write(in(state, "b"), &other.config, &self.encoding, self.text, self.text_size, wide, 3 * embed,
              self.dense, hash[1]);
    assert_string_equal(hash[0], hash[1]);
    self.dense[self.dense_count - 1] += 1;
    write_sample(in(state, "c"), &self, hash[2]);
    assert_string_not_equal(hash[0], hash[2]);
    free(wide);
    free_sample(&self);
}

/* Names and shapes are what other programs look for. */
static void tensors_have_the_names_of_pytorch(void **state)
{
    static const struct {
        const char *name;
        unsigned rank;
        uint64_t shape[2];
    } expected[] = {
        {"embedding.weight", 2, {23, 5}},
        {"rnn.weight_ih_l0", 2, {12, 5}},
        {"rnn.weight_ih_l2_reverse", 2, {12, 8}},
        {"rnn.bias_hh_l1", 1, {12}},
        {"dense.weight", 2, {7, 8}},
        {"out.weight", 2, {1, 7}},
        {"out.bias", 1, {1}},
    };
    sample self = make_sample(&networks[2], 20);
    pace__safetensors *file;

    write_sample(in(state, "m"), &self, NULL);
    assert_ok(pace__safetensors_open(in(state, "m"), &said_log, &file));
    assert_int_equal(pace__safetensors_count(file), 2 + PACE__RNN_TENSORS_MAX);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const pace__tensor_info *tensor = pace__safetensors_find(file, expected[i].name);

        assert_true(tensor && tensor->dtype == PACE__F32 && tensor->rank == expected[i].rank);
        assert_true(tensor->shape[0] == expected[i].shape[0] &&
                    (tensor->rank == 1 || tensor->shape[1] == expected[i].shape[1]));
    }
    assert_string_equal(pace__safetensors_metadata(file, "model"), "rnn");
    assert_string_equal(pace__safetensors_metadata(file, "config"),
                        "{\"cell\":\"gru\",\"layers\":3,\"both\":true,\"embed\":5,\"hidden\":4,\"dense\":7,"
                        "\"pooling\":\"max\",\"loss\":\"focal\"}");
    pace__safetensors_close(file);
    free_sample(&self);
}

/* --- damage --- */

static void refuse(const char *path, pace_status expected, const char *message)
{
    rnn_file model = {.config = {.words = 77}};

    said_clear();
    pace_status status = rnn_read(path, &model);

    assert_said(path);
    assert_failed(status, expected, message);
    assert_int_equal(model.config.words, 77);
}

static void missing_models_are_named(void **state)
{
    refuse(in(state, "none"), PACE_NO_INPUT, in(state, "none"));
    assert_ok(pace__make_dirs(in(state, "run"), &said_log));
    refuse(in(state, "run"), PACE_NO_INPUT, in(state, "run/model.safetensors"));
}

static void cut_files_are_refused(void **state)
{
    sample self = make_sample(&networks[2], 20);
    struct stat info;

    write_sample(in(state, "m"), &self, NULL);
    assert_int_equal(stat(in(state, "m"), &info), 0);
    for (off_t size = info.st_size - 1; size >= 0; size -= 1 + size / 5) {
        assert_int_equal(truncate(in(state, "m"), size), 0);
        refuse(in(state, "m"), PACE_BAD_DATA, "");
    }
    free_sample(&self);
}

/* Refused, or another model that is a valid one. */
static void every_flipped_byte_is_survived(void **state)
{
    sample self = make_sample(&networks[1], 2);
    const char *path = in(state, "m");
    unsigned whole = 0, refused = 0;
    char *bytes;
    size_t size;

    write_sample(path, &self, NULL);
    assert_ok(pace__read_file(path, 1 << 16, &bytes, &size, &said_log));
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (size_t i = 0; i < size * 8; i++) {
        char flipped = (char)(bytes[i / 8] ^ (1 << i % 8));
        rnn_file model = {.config = {.words = 77}};

        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)(i / 8)), 1);
        said_clear();
        pace_status status = rnn_read(path, &model);

        if (status)
            assert_failed(status, PACE_BAD_DATA, path);
        refused += status != PACE_OK;
        whole += status == PACE_OK;
        assert_int_equal(model.config.words, status ? 77 : 5);
        if (!status)
            rnn_release(&model);
        assert_int_equal(pwrite(fd, bytes + i / 8, 1, (off_t)(i / 8)), 1);
    }
    assert_true(whole > 0 && refused > 0);
    close(fd);
    free(bytes);
    free_sample(&self);
}

/* Another program's file: what to write instead of the right thing; NULL or 0 is the right thing. */
typedef struct changes {
    const char *model, *encoding, *config;
    const char *tensor; /* this one ... */
    const char *renamed;
    pace__dtype dtype;
    unsigned rank;
    uint64_t shape[2];
    const char *vocabulary;
} changes;

static void change_tensor(const changes *change, pace__tensor *tensor)
{
    if (change->renamed)
        tensor->name = change->renamed;
    if (change->dtype)
        tensor->dtype = change->dtype;
    if (change->rank) {
        tensor->rank = change->rank;
        memcpy(tensor->shape, change->shape, sizeof change->shape);
    }
}

static void write_changed(const char *path, const sample *self, const char *json, changes change)
{
    pace__rnn_tensor parts[PACE__RNN_TENSORS_MAX];
    pace__tensor tensors[PACE__RNN_TENSORS_MAX + 2];
    unsigned count = pace__rnn_tensors(&self->config, parts);
    const char *vocabulary = change.vocabulary ? change.vocabulary : self->text;

    for (unsigned i = 0; i < count; i++)
        tensors[i] = (pace__tensor){.name = parts[i].name,
                                    .dtype = PACE__F32,
                                    .rank = parts[i].rank,
                                    .shape = {parts[i].shape[0], parts[i].shape[1]},
                                    .data = self->dense + parts[i].at};
    tensors[count] = (pace__tensor){.name = "embedding.weight",
                                    .dtype = PACE__F32,
                                    .rank = 2,
                                    .shape = {self->config.words, self->config.embed},
                                    .data = self->embedding};
    tensors[count + 1] = (pace__tensor){.name = "vocabulary",
                                        .dtype = PACE__U8,
                                        .rank = 1,
                                        .shape = {change.vocabulary ? strlen(vocabulary) : self->text_size},
                                        .data = vocabulary};
    for (unsigned i = 0; i < count + 2; i++) {
        if (change.tensor && strcmp(tensors[i].name, change.tensor) == 0)
            change_tensor(&change, &tensors[i]);
    }
    pace__text_pair metadata[] = {
        {"model", change.model ? change.model : "rnn"},
        {"encoding", change.encoding ? change.encoding : json},
        {"config",
         change.config
             ? change.config
             : "{\"cell\":\"lstm\",\"layers\":1,\"both\":false,\"embed\":3,\"hidden\":2,\"dense\":0,"
               "\"pooling\":\"last\",\"loss\":\"bce\"}"}};

    assert_ok(pace__safetensors_write(path, tensors, count + 2, metadata, 3, NULL, &said_log));
}

static void wrong_files_are_refused(void **state)
{
    static const struct {
        changes change;
        const char *message;
    } cases[] = {
        {{.model = "ann"}, "not a model that paceline trained"},
        {{.encoding = "{"}, "encoding"},
        {{.encoding = "{\"kind\":\"numbered\",\"hashed\":true,\"features\":23}"}, "not one of texts"},
        {{.encoding = "{\"kind\":\"a\\u001b[2J\"}"}, "unexpected characters"},
        {{.config = "{\"cell\":\"a\nb\"}"}, "unexpected characters"},
        {{.config = "{"}, "config is damaged"},
        {{.config = "[1,2,3,4,5,6,7,8]"}, "config is damaged"},
        {{.tensor = "rnn.bias_ih_l0", .renamed = "rnn.bias_ih"}, "tensor rnn.bias_ih_l0 is missing"},
        {{.tensor = "embedding.weight", .renamed = "weight"}, "tensor embedding.weight is missing"},
        {{.tensor = "embedding.weight", .rank = 2, .shape = {3, 23}},
         "embedding.weight is missing, or not as"},
        {{.tensor = "embedding.weight", .rank = 1, .shape = {69}}, "embedding.weight is missing, or not as"},
        {{.tensor = "embedding.weight", .rank = 2, .shape = {22, 3}}, "its config asks for"},
        {{.tensor = "rnn.weight_hh_l0", .rank = 2, .shape = {2, 8}},
         "rnn.weight_hh_l0 is missing, or not as"},
        {{.tensor = "rnn.weight_hh_l0", .dtype = PACE__I32}, "its config asks for"},
        {{.tensor = "vocabulary", .renamed = "words"}, "no vocabulary"},
        {{.tensor = "vocabulary", .dtype = PACE__I8}, "no vocabulary"},
        {{.vocabulary = "aaa\t10000\n\n"}, "not the one of its encoding"},
        {{.vocabulary = "aaa"}, ""},
    };
    sample self = make_sample(&networks[0], 20);
    char *json = pace__encoding_to_json(&self.encoding);
    const char *path = in(state, "m");
    rnn_file model;

    write_changed(path, &self, json, (changes){0});
    assert_ok(rnn_read(path, &model));
    assert_is(&model, &self);
    rnn_release(&model);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_changed(path, &self, json, cases[i].change);
        refuse(path, PACE_BAD_DATA, cases[i].message);
    }
    free(json);
    free_sample(&self);
}

/* Every member in turn: missing, or with another value. */
static void wrong_configs_are_refused(void **state)
{
    static const char *const right[][2] = {{"cell", "\"lstm\""},    {"layers", "1"},    {"both", "false"},
                                           {"embed", "3"},          {"hidden", "2"},    {"dense", "0"},
                                           {"pooling", "\"last\""}, {"loss", "\"bce\""}};
    static const char *const wrong[][4] = {
        {"\"rnn\"", "0"},           {"0", "4", "1.5", "true"},    {"1", "\"no\""},
        {"0", "4097", "-3", "nul"}, {"0", "1e9", "2.5", "\"2\""}, {"-1", "4097", "null", "0.5"},
        {"\"first\"", "0"},         {"\"mse\"", "null"}};
    sample self = make_sample(&networks[0], 20);
    char *json = pace__encoding_to_json(&self.encoding);

    for (size_t member = 0; member < 8; member++) {
        for (size_t value = 0; value < 5; value++) { /* the last: another name */
            char config[256] = "{";

            if (value < 4 && !wrong[member][value])
                continue;
            for (size_t i = 0; i < 8; i++)
                snprintf(config + strlen(config), sizeof config - strlen(config), "%s\"%s%s\":%s",
                         i ? "," : "", right[i][0], i == member && value == 4 ? "s" : "",
                         i == member && value < 4 ? wrong[i][value] : right[i][1]);
            strcat(config, "}");
            write_changed(in(state, "m"), &self, json, (changes){.config = config});
            refuse(in(state, "m"), PACE_BAD_DATA,
                   strstr(config, "nul}") || strstr(config, "nul,") ? "config is damaged" : right[member][0]);
        }
    }
    write_changed(in(state, "m"), &self, json,
                  (changes){.config =
                                "{\"cell\":\"lstm\",\"layers\":1,\"both\":false,\"embed\":3,\"hidden\":2,"
                                "\"dense\":0,\"pooling\":\"last\",\"loss\":\"bce\",\"attention\":1}"});
    refuse(in(state, "m"), PACE_BAD_DATA, "newer paceline");
    /* More memory than there is: refused before it is asked for. */
    write_changed(in(state, "m"), &self, json,
                  (changes){.config =
                                "{\"cell\":\"lstm\",\"layers\":3,\"both\":true,\"embed\":4096,"
                                "\"hidden\":4096,\"dense\":4096,\"pooling\":\"last\",\"loss\":\"bce\"}"});
    refuse(in(state, "m"), PACE_BAD_DATA, "its config asks for");
    free(json);
    free_sample(&self);
}

static void numbers_that_are_none_are_refused(void **state)
{
    sample self = make_sample(&networks[0], 20);

    self.embedding[7] = NAN;
    write_sample(in(state, "m"), &self, NULL);
    refuse(in(state, "m"), PACE_BAD_DATA, "value 7 of embedding.weight is not a number");
    self.embedding[7] = 0;
    self.dense[self.dense_count - 1] = INFINITY;
    write_sample(in(state, "m"), &self, NULL);
    refuse(in(state, "m"), PACE_BAD_DATA, "value 0 of out.bias is not a number");
    free_sample(&self);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(models_come_back),
        TEST(a_run_directory_stands_for_its_model),
        TEST(equal_models_are_equal_bytes),
        TEST(tensors_have_the_names_of_pytorch),
        TEST(missing_models_are_named),
        TEST(cut_files_are_refused),
        TEST(every_flipped_byte_is_survived),
        TEST(wrong_files_are_refused),
        TEST(wrong_configs_are_refused),
        TEST(numbers_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

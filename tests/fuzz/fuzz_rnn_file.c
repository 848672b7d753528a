/*
 * Any bytes as the file of a recurrent network: refused with a message, or a model that computes. Tried
 * twice: as the file itself, and as what a file is made from, so that the search need not guess headers,
 * lengths and checksums: the number of words, the network, its config's text if it is not the right one, the
 * vocabulary's text (both up to a NUL), weights.
 */
#include "data/tensors/safetensors.h"
#include "model/rnn/kind.h"

#include "model_bytes.h"
#include "saved_bytes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define BYTES_MAX 65536

/* The logit of a text of all words. */
static void compute(const pace__saved *model, const char *path, const pace_log *log)
{
    const pace__rnn_config *config = &((const pace__rnn_own *)model->model.plan.own)->config;
    float *embedding = model->model.weights;
    uint32_t length = config->length < 9 ? config->length : 9, ids[9];
    pace__rows rows = {.rows = 1, .columns = length, .ids = ids, .length = &length, .label = (uint8_t[]){1}};
    pace__rnn_batch batch = {.rows = &rows,
                             .slots = config->words,
                             .embedding = embedding,
                             .dense = embedding + (size_t)config->words * config->embed};
    float logit;

    (void)path;
    assert(pace__vocabulary_ids(model->vocabulary) == config->words);
    for (uint32_t i = 0; i < length; i++)
        ids[i] = i % config->words;
    if (config->hidden <= 64 && config->embed <= 64) /* larger ones take long */
        assert(pace__rnn_plain_logits(config, &batch, &logit, log) == PACE_OK);
}

static void try_model(const void *bytes, size_t size)
{
    unnamed file = unnamed_make(bytes, size);

    try_saved(file.path, "rnn", compute);
    close(file.fd);
}

static pace__rnn_config network_of(const uint8_t choice[4])
{
    return (pace__rnn_config){.words = choice[0] % 32u,
                              .cell = choice[1] & 1,
                              .both = choice[1] & 2,
                              .dense = choice[1] >> 2 & 3,
                              .layers = 1 + (choice[1] >> 4) % 3u,
                              .embed = 1 + choice[2] % 8u,
                              .hidden = 1 + choice[3] % 4u};
}

static void append_metadata(char *header, const pace__rnn_config *config, const char *text,
                            const char *vocabulary, size_t size)
{
    char right[256];
    pace__encoding encoding = {.kind = PACE__TEXT,
                               .features = config->words,
                               .length = 5,
                               .vocabulary = XXH3_64bits(vocabulary, size)};
    char *json = pace__encoding_to_json(&encoding);

    snprintf(right, sizeof right,
             "{\"cell\":\"%s\",\"layers\":%u,\"both\":%s,\"embed\":%u,\"hidden\":%u,\"dense\":%u,"
             "\"pooling\":\"max\",\"loss\":\"bce\"}",
             config->cell ? "gru" : "lstm", config->layers, config->both ? "true" : "false", config->embed,
             config->hidden, config->dense);
    strcpy(header, "{\"__metadata__\":{\"model\":\"rnn\",\"encoding\":\"");
    append_text(header, json);
    strcat(header, "\",\"config\":\"");
    append_text(header, *text ? text : right);
    strcat(header, "\"}");
    free(json);
}

static void try_contents(const uint8_t *data, size_t size)
{
    static char header[16384];
    static uint8_t whole[BYTES_MAX];
    uint8_t choice[4];
    char text[TEXT_MAX], vocabulary[TEXT_MAX];
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    size_t offset = 0;

    take(&data, &size, choice, sizeof choice);
    pace__rnn_config config = network_of(choice);
    unsigned count = pace__rnn_tensors(&config, tensors);

    take_text(&data, &size, text);
    uint64_t words[2] = {take_text(&data, &size, vocabulary)}, shape[2] = {config.words, config.embed};

    append_metadata(header, &config, text, vocabulary, words[0]);
    append_tensor(header, "embedding.weight", "F32", 2, shape, &offset, shape[0] * shape[1] * 4);
    for (unsigned i = 0; i < count; i++)
        append_tensor(header, tensors[i].name, "F32", tensors[i].rank, tensors[i].shape, &offset,
                      tensors[i].size * 4);
    append_tensor(header, "vocabulary", "U8", 1, words, &offset, words[0]);
    strcat(header, "}");
    uint64_t header_bytes = strlen(header);

    assert(8 + header_bytes + offset <= sizeof whole);
    memcpy(whole, &header_bytes, sizeof header_bytes);
    memcpy(whole + 8, header, header_bytes);
    take(&data, &size, whole + 8 + header_bytes, offset - words[0]);
    memcpy(whole + 8 + header_bytes + offset - words[0], vocabulary, words[0]);
    try_model(whole, 8 + header_bytes + offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_model(data, size);
    try_contents(data, size);
    return 0;
}

/*
 * Any bytes as model.safetensors: refused with a message, or a model that can be searched, compared with data
 * sets and used to predict. Tried twice: as the file itself, and as what a file is made from, so that the
 * search need not guess headers and lengths: the number of weights, the length of the encoding's text, the
 * text, ids, weights and the bias.
 */
#include "data/tensors/safetensors.h"
#include "model/ids.h"

#include "saved_bytes.h"

#include <assert.h>
#include <math.h>
#include <paceline/prep.h>
#include <paceline/score.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT_MAX 40

/* What eval does: compact ids of a set to weights. */
static void search(const pace__saved *model, const pace_log *log)
{
    const pace__loaded *loaded = &model->model;
    uint64_t features = model->vocabulary ? loaded->plan.shape.keys - 1 : model->encoding.features;
    pace__id_index index;

    assert(pace__id_index_init(&index, loaded->ids, loaded->count, log) == PACE_OK);
    for (uint32_t i = 0; i < loaded->count; i++) {
        uint64_t id = loaded->ids[i];

        assert(id < features && (i == 0 || loaded->ids[i - 1] < id));
        assert(isfinite(loaded->weights[model->vocabulary ? id : i]) && pace__id_place(&index, id) == i);
        (void)pace__id_place(&index, id + 1);
        (void)pace__id_place(&index, id - 1);
    }
    assert(pace__id_place(&index, UINT64_MAX) == loaded->count);
    pace__id_index_release(&index);
}

static void compare_encodings(const pace__saved *model, const pace_log *log)
{
    pace__encoding criteo, again, numbered = {.kind = PACE__NUMBERED, .features = 100};
    char *json = pace__encoding_to_json(&model->encoding);

    assert(json && pace__encoding_from_json(json, "encoding", &again, log) == PACE_OK);
    assert(pace__encoding_fits(&model->encoding, &again, log) == PACE_OK);
    assert(pace__encoding_criteo(5000, PACE_NUMERIC_BINS, &criteo, log) == PACE_OK);
    (void)pace__encoding_fits(&model->encoding, &criteo, log);
    (void)pace__encoding_fits(&model->encoding, &numbered, log);
    free(json);
}

static void predict(const char *run, int kind, const pace_log *log)
{
    static const int formats[] = {[PACE__CRITEO] = PACE_FORMAT_CRITEO,
                                  [PACE__NUMBERED] = PACE_FORMAT_SVMLIGHT,
                                  [PACE__TEXT] = PACE_PREDICT_LINES};
    static const char texts[] = "not a good book\nthe\nGood <br> bad\n";
    static const char numbered_rows[] = "1 3:0.5 7:1 99:-2\n0 0:1\n1 9007199254740991:1\n";
    static const char criteo_rows[] =
        "1\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\ta\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq"
        "\tr\ts\tt\tu\tv\tw\tx\ty\tz\n0" /* and one with nothing in it */
        "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n";
    const char *text = kind == PACE__TEXT ? texts : kind == PACE__CRITEO ? criteo_rows : numbered_rows;
    unnamed input = unnamed_make(text, strlen(text));
    const char *inputs[] = {input.path};
    pace_predict_config config = {
        .inputs = {inputs, 1}, .run = run, .output = "/dev/null", .format = formats[kind]};
    uint64_t rows = 0;

    assert(pace_predict(&config, log, NULL, &rows) == PACE_OK && rows == (kind == PACE__CRITEO ? 2 : 3));
    close(input.fd);
}

static void look_at(const pace__saved *model, const char *path, const pace_log *log)
{
    search(model, log);
    compare_encodings(model, log);
    if (model->encoding.kind == PACE__SHEET) /* their rows are what fuzz_tables is about */
        return;
    predict(path, (int)model->encoding.kind, log);
}

static void try_model(const void *bytes, size_t size)
{
    unnamed file = unnamed_make(bytes, size);

    try_saved(file.path, "logreg", look_at);
    close(file.fd);
}

static void try_contents(const uint8_t *data, size_t size)
{
    uint8_t lengths[2], whole[8192];
    char text[256] = "", header[2048];
    uint64_t ids[COUNT_MAX], header_bytes;
    float weights[COUNT_MAX + 1]; /* the bias is the last */

    take(&data, &size, lengths, sizeof lengths);
    unsigned count = lengths[0] % COUNT_MAX, text_bytes = lengths[1] % sizeof text, escaped = 0;

    take(&data, &size, text, text_bytes);
    take(&data, &size, ids, count * sizeof *ids);
    take(&data, &size, weights, (count + 1) * sizeof *weights);
    char json[2 * sizeof text];

    for (unsigned i = 0; i < text_bytes; i++) { /* as a text in the header */
        if (text[i] == '"' || text[i] == '\\')
            json[escaped++] = '\\';
        json[escaped++] = text[i];
    }
    header_bytes = (uint64_t)snprintf(
        header, sizeof header,
        "{\"__metadata__\":{\"model\":\"logreg\",\"encoding\":\"%.*s\"},"
        "\"ids\":{\"dtype\":\"U64\",\"shape\":[%u],\"data_offsets\":[0,%u]},"
        "\"weight\":{\"dtype\":\"F32\",\"shape\":[%u],\"data_offsets\":[%u,%u]},"
        "\"bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%u,%u]}}",
        (int)escaped, json, count, 8 * count, count, 8 * count, 12 * count, 12 * count, 12 * count + 4);
    uint8_t *at = whole;

    memcpy(at, &header_bytes, sizeof header_bytes);
    memcpy(at += sizeof header_bytes, header, header_bytes);
    memcpy(at += header_bytes, ids, count * sizeof *ids);
    memcpy(at += count * sizeof *ids, weights, (count + 1) * sizeof *weights);
    try_model(whole, (size_t)(at - whole) + (count + 1) * sizeof *weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_model(data, size);
    try_contents(data, size);
    return 0;
}

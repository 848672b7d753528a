/*
 * Any bytes as the file of a factorization machine: refused with a message, or a model that predicts. Tried twice: as
 * the file itself, and as what a file is made from, so that the search need not guess headers and lengths: the number
 * of weights and of factors, the texts of encoding and config if they are not the right ones (each up to a NUL), ids,
 * floats.
 */
#include "model_bytes.h"
#include "saved_bytes.h"

#include <math.h>
#include <paceline/prep.h>
#include <paceline/score.h>

#define COUNT_MAX   40
#define FACTORS_MAX 9
#define BYTES_MAX   8192

static void check_rows(const pace__loaded *model)
{
    for (uint32_t i = 0; i < model->count; i++)
        assert(i == 0 || model->ids[i - 1] < model->ids[i]);
    for (uint64_t i = 0; i < model->plan.shape.keys * model->plan.shape.dim; i++)
        assert(isfinite(model->weights[i]));
}

static void predict(const char *path, const pace__encoding *encoding, const pace_log *log)
{
    static const char rows[] = "1 3:0.5 7:1 99:-2\n0 0:1\n1 9007199254740991:1\n";
    unnamed input = unnamed_make(rows, sizeof rows - 1);
    const char *inputs[] = {input.path};
    pace_predict_config config = {
        .inputs = {inputs, 1}, .run = path, .output = "/dev/null", .format = PACE_FORMAT_SVMLIGHT};
    uint64_t count = 0;

    if (encoding->kind == PACE__NUMBERED)
        assert(pace_predict(&config, log, NULL, &count) == PACE_OK && count == 3);
    close(input.fd);
}

static void look_at(const pace__saved *model, const char *path, const pace_log *log)
{
    check_rows(&model->model);
    predict(path, &model->encoding, log);
}

static void try_model(const void *bytes, size_t size)
{
    unnamed file = unnamed_make(bytes, size);

    try_saved(file.path, "fm", look_at);
    close(file.fd);
}

static void append_metadata(char *header, const char *encoding, const char *config, unsigned factors)
{
    pace__encoding usual = {.kind = PACE__NUMBERED, .features = 100};
    char *json = pace__encoding_to_json(&usual), right[32];

    snprintf(right, sizeof right, "{\"factors\":%u}", factors);
    strcpy(header, "{\"__metadata__\":{\"model\":\"fm\",\"encoding\":\"");
    append_text(header, *encoding ? encoding : json);
    strcat(header, "\",\"config\":\"");
    append_text(header, *config ? config : right);
    strcat(header, "\"}");
    free(json);
}

static void try_contents(const uint8_t *data, size_t size)
{
    static char header[8192];
    static uint8_t whole[sizeof header + BYTES_MAX];
    char encoding[TEXT_MAX], config[TEXT_MAX];
    uint8_t numbers[2];
    size_t offset = 0;

    take(&data, &size, numbers, sizeof numbers);
    take_text(&data, &size, encoding);
    take_text(&data, &size, config);
    uint64_t count = numbers[0] % COUNT_MAX, factors = 1 + numbers[1] % FACTORS_MAX;
    uint64_t shape[2] = {count, factors}, one = 1;

    append_metadata(header, encoding, config, (unsigned)factors);
    append_tensor(header, "ids", "U64", 1, shape, &offset, count * sizeof(uint64_t));
    append_tensor(header, "weight", "F32", 1, shape, &offset, count * sizeof(float));
    append_tensor(header, "factors", "F32", 2, shape, &offset, count * factors * sizeof(float));
    append_tensor(header, "bias", "F32", 1, &one, &offset, sizeof(float));
    strcat(header, "}");
    uint64_t header_bytes = strlen(header);

    assert(offset <= BYTES_MAX);
    memcpy(whole, &header_bytes, sizeof header_bytes);
    memcpy(whole + 8, header, header_bytes);
    take(&data, &size, whole + 8 + header_bytes, offset);
    try_model(whole, 8 + header_bytes + offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_model(data, size);
    try_contents(data, size);
    return 0;
}

/*
 * Any bytes as the file of a convolutional network: refused with a message, or a model that computes; and as
 * pretrained weights: refused, or taken. Tried twice: as the file itself, and as what a file is made from, so
 * that the search need not guess headers, lengths and checksums: the network, its config's text if it is not
 * the right one, the text of the class names (both up to a NUL), weights.
 */
#include "data/tensors/safetensors.h"
#include "model/cnn/kind.h"
#include "model/cnn/pretrained.h"

#include "model_bytes.h"
#include "saved_bytes.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX 262144
#define COMPUTED  ((size_t)1 << 16) /* weights: larger networks take long */

/* The logits of a picture. Among the parameters statistics come first. */
static void compute(const pace__saved *model, const char *path, const pace_log *log)
{
    const pace__cnn_own *own = model->model.plan.own;
    const pace__cnn_config *config = &own->config;
    const pace__shape *shape = &model->model.plan.shape;
    const float *stats = model->model.weights, *weights = stats + (size_t)shape->stats_rows * shape->dim;
    pace__cnn_plan plan = {.config = config, .rows_max = 1, .threads = 1, .plain = true};
    size_t bytes = (size_t)config->height * config->side * config->channels;

    (void)path;
    assert(model->names.count == config->classes && own->net.outputs >= 1);
    if (own->net.weights > COMPUTED || bytes > 4096)
        return;
    uint8_t *pixels = calloc(bytes, 1);
    float *logits = calloc(own->net.outputs, sizeof *logits);
    pace__rows rows = {.rows = 1, .columns = (uint32_t)bytes, .pixels = pixels};

    assert(pixels && logits);
    assert(pace__cnn_plain_logits(&plan, &own->net, &rows, weights, stats, false, logits, log) == PACE_OK);
    free(pixels);
    free(logits);
}

static void try_pretrained(const char *path)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace__cnn_config config = {
        .arch = PACE_ARCH_SMALL, .width = 0.03f, .height = 4, .side = 4, .channels = 1};
    pace__pretrained *file = NULL;
    pace_status status = pace__pretrained_open(path, NULL, pace__describe_encoding, &log, &file);

    if (!status) {
        pace__pretrained_report report;
        pace__cnn_net net;

        config.classes = 2;
        status = pace__pretrained_settle(file, &config);
        if (!status) {
            assert(config.epsilon > 0 && isfinite(config.mean[0]) && config.deviation[2] > 0);
            assert(pace__cnn_net_make(&config, &log, &net) == PACE_OK);
            float *weights = calloc(net.weights + net.stats, sizeof *weights);

            status = pace__pretrained_load(file, &config, &net, weights, weights + net.weights, &report);
            assert(status || report.tensors > 0);
            free(weights);
        }
        pace__pretrained_close(file);
    }
    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(errors == (status != PACE_OK));
}

static void try_model(const void *bytes, size_t size)
{
    unnamed file = unnamed_make(bytes, size);

    try_saved(file.path, "cnn", compute);
    try_pretrained(file.path);
    close(file.fd);
}

/* Small ones: the last layer of a mobilenet-v2 is never narrow. */
static pace__cnn_config network_of(const uint8_t choice[4])
{
    pace__cnn_config config = {.arch = choice[0] % 3,
                               .channels = choice[1] & 1 ? 3 : 1,
                               .one_logit = choice[1] & 2,
                               .same = choice[1] & 4,
                               .width = 0.03f * (float)(1 + choice[2] % 2)};

    config.height = config.side = (config.arch == PACE_ARCH_MOBILENET_V1 ? 32u : 4u) + choice[3] % 4u;
    return config;
}

static void append_metadata(char *header, const pace__cnn_config *config, const char *text,
                            const pace__class_names *names)
{
    static const char *const archs[] = {"small", "resnet20", "mobilenet-v1"};
    const char *list = config->channels == 3 ? "[1,2,3]" : "[1]";
    char right[256];
    pace__encoding encoding = {.kind = PACE__IMAGE,
                               .height = config->height,
                               .width = config->side,
                               .channels = config->channels,
                               .classes = names->count,
                               .class_names = pace__class_names_checksum(names)};
    char *json = pace__encoding_to_json(&encoding);

    snprintf(
        right, sizeof right,
        "{\"arch\":\"%s\",\"width\":%.2f,\"head\":\"%s\",\"padding\":\"%s\",\"epsilon\":0.001,\"mean\":%s,"
        "\"deviation\":%s}",
        archs[config->arch], (double)config->width, config->one_logit ? "logit" : "softmax",
        config->same ? "same" : "symmetric", list, list);
    strcpy(header, "{\"__metadata__\":{\"model\":\"cnn\",\"encoding\":\"");
    append_text(header, json);
    strcat(header, "\",\"config\":\"");
    append_text(header, *text ? text : right);
    strcat(header, "\"}");
    free(json);
}

static void put_together(const pace__cnn_config *config, const char *text, const pace__class_names *names,
                         const char *classes, const uint8_t *data, size_t size)
{
    static char header[65536];
    static uint8_t whole[BYTES_MAX];
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    uint64_t bytes[1] = {strlen(classes)};
    pace__cnn_net net;
    size_t offset = 0;

    assert(pace__cnn_net_make(config, NULL, &net) == PACE_OK);
    append_metadata(header, config, text, names);
    for (unsigned i = 0, count = pace__cnn_tensors(&net, tensors); i < count; i++)
        append_tensor(header, tensors[i].name, "F32", tensors[i].rank, tensors[i].shape, &offset,
                      tensors[i].size * 4);
    append_tensor(header, "classes", "U8", 1, bytes, &offset, bytes[0]);
    strcat(header, "}");
    uint64_t header_bytes = strlen(header);

    assert(header_bytes < sizeof header && 8 + header_bytes + offset <= sizeof whole);
    memcpy(whole, &header_bytes, sizeof header_bytes);
    memcpy(whole + 8, header, header_bytes);
    take(&data, &size, whole + 8 + header_bytes, offset - bytes[0]);
    memcpy(whole + 8 + header_bytes + offset - bytes[0], classes, bytes[0]);
    try_model(whole, 8 + header_bytes + offset);
}

static void try_contents(const uint8_t *data, size_t size)
{
    uint8_t choice[4];
    char text[TEXT_MAX], classes[TEXT_MAX];
    pace__class_names names = {0};

    take(&data, &size, choice, sizeof choice);
    pace__cnn_config config = network_of(choice);

    take_text(&data, &size, text);
    size_t bytes = take_text(&data, &size, classes);

    if (pace__class_names_parse(classes, bytes, "names", NULL, &names))
        return; /* the encoding needs their checksum */
    config.classes = names.count;
    config.one_logit = config.one_logit && names.count == 2;
    put_together(&config, text, &names, classes, data, size);
    pace__class_names_release(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_model(data, size);
    try_contents(data, size);
    return 0;
}

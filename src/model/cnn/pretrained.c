#include "model/cnn/pretrained.h"

#include "model/cnn/cnn_file.h"
#include "model/cnn/pretrained_internal.h"
#include "model/cnn/pretrained_map.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_BYTES 128

struct pace__pretrained {
    pace__model_file file;
    const pace_log *log;
    pace__names names;
    const char *prefix;   /* in front of all of its names */
    bool tensorflow;      /* layout of weights: the outputs come last */
    const char *map_path; /* NULL: there is no map */
    pace__name_map map;
    pace__cnn_config own; /* of PACE__NAMES_OWN */
    uint64_t class_names; /* of PACE__NAMES_OWN: their checksum */
    bool expects;
    uint64_t expected; /* checksum of class names */
};

/* --- what it is --- */

static const pace__tensor_info *find_named(const pace__pretrained *self, const char *prefix, const char *name)
{
    char whole[PACE__FOREIGN_NAME_BYTES + 16];

    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return pace__safetensors_find(self->file.tensors, whole);
}

/* Do these names, with something in front of them, occur? Frameworks that wrap a network put it there. */
static bool recognise(pace__pretrained *self, pace__names names)
{
    static const char *const prefixes[] = {"", "module.", "model."};

    for (int arch = 0; arch < 4; arch++) {
        const char *mark = pace__names_mark(names, arch);

        for (int i = 0; mark && i < 3; i++) {
            if (find_named(self, prefixes[i], mark)) {
                self->names = names;
                self->prefix = prefixes[i];
                return true;
            }
        }
    }
    return false;
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);

    return length >= size && strcmp(text + length - size, end) == 0;
}

/* As the metadata say; else as the names do. */
static bool is_tensorflow(const pace__pretrained *self)
{
    const char *layout = pace__safetensors_metadata(self->file.tensors, "layout");

    if (layout && (strcmp(layout, "HWIO") == 0 || strcmp(layout, "OIHW") == 0))
        return layout[0] == 'H';
    if (self->names != PACE__NAMES_UNKNOWN)
        return self->names == PACE__NAMES_KERAS;
    for (size_t i = 0; i < pace__safetensors_count(self->file.tensors); i++) {
        if (ends_in(pace__safetensors_at(self->file.tensors, i)->name, "kernel"))
            return true;
    }
    return false;
}

/* Reads all of it, to be sure that it is whole, and keeps what decides. */
static pace_status open_own(pace__pretrained *self, pace__describe_fn *describe)
{
    const char *encoding = NULL;
    pace__dataset data;
    pace__cnn_file model;
    pace_status status = pace__model_file_json(&self->file, "encoding", &encoding, self->log);

    if (!status)
        status = describe(encoding, self->file.path, &data, self->log);
    if (!status)
        status = pace__cnn_file_read(&self->file, &data, &model, self->log);
    if (status)
        return status;
    self->names = PACE__NAMES_OWN;
    self->own = model.config;
    self->class_names = data.class_names;
    pace__cnn_file_release(&model);
    return PACE_OK;
}

static pace_status detect(pace__pretrained *self, pace__describe_fn *describe)
{
    if (strcmp(pace__model_file_kind(&self->file), "cnn") == 0)
        return open_own(self, describe);
    for (pace__names names = PACE__NAMES_TORCHVISION; names < PACE__NAMES_UNKNOWN; names++) {
        if (recognise(self, names))
            return PACE_OK;
    }
    if (self->map_path)
        return PACE_OK;
    size_t count = pace__safetensors_count(self->file.tensors);

    return pace_fail(self->log, PACE_BAD_DATA,
                     "%s: nobody known names tensors like %s; --name-map can say which is which",
                     self->file.path, count ? pace__safetensors_at(self->file.tensors, 0)->name : "(none)");
}

pace_status pace__pretrained_open(const char *path, const char *map, pace__describe_fn *describe,
                                  const pace_log *log, pace__pretrained **file)
{
    pace__pretrained *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *self = (pace__pretrained){.log = log, .names = PACE__NAMES_UNKNOWN, .prefix = "", .map_path = map};
    pace_status status = pace__model_file_open(path, &self->file, log);

    if (!status && map)
        status = pace__name_map_read(map, log, &self->map);
    if (!status)
        status = detect(self, describe);
    if (status) {
        pace__pretrained_close(self);
    } else {
        self->tensorflow = is_tensorflow(self);
        *file = self;
    }
    return status;
}

void pace__pretrained_close(pace__pretrained *file)
{
    if (!file)
        return;
    pace__name_map_release(&file->map);
    pace__model_file_close(&file->file);
    free(file);
}

void pace__pretrained_expect(pace__pretrained *file, uint64_t class_names)
{
    file->expects = true;
    file->expected = class_names;
}

const char *pace__pretrained_layout(const pace__pretrained *file)
{
    return pace__names_title(file->map_path ? PACE__NAMES_UNKNOWN : file->names);
}

pace_status pace__pretrained_sha256(const pace__pretrained *file, char sha256[PACE__SHA256_HEX])
{
    char map[PACE__SHA256_HEX];
    pace_status status = pace__sha256_file(file->file.path, sha256, file->log);

    if (status || !file->map_path)
        return status;
    status = pace__sha256_file(file->map_path, map, file->log);
    if (status)
        return status;
    pace__sha256 *both = pace__sha256_create();

    if (!both)
        return pace_fail(file->log, PACE_FAILED, "out of memory");
    pace__sha256_update(both, sha256, strlen(sha256));
    pace__sha256_update(both, map, strlen(map));
    pace__sha256_finish(both, sha256);
    return PACE_OK;
}

/* --- what it decides --- */

static void set_pixels(pace__cnn_config *config, const float mean[3], const float deviation[3])
{
    for (int i = 0; i < 3; i++) {
        bool grey = config->channels == 1;

        config->mean[i] = grey ? (mean[0] + mean[1] + mean[2]) / 3 : mean[i];
        config->deviation[i] = grey ? (deviation[0] + deviation[1] + deviation[2]) / 3 : deviation[i];
    }
}

/* In lower case, without blanks. */
static void simplify(const char *text, char *to, size_t size)
{
    size_t used = 0;

    for (; *text && used + 1 < size; text++) {
        if (*text != ' ')
            to[used++] = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    }
    to[used] = '\0';
}

static pace_status bad_metadata(const pace__pretrained *self, const char *key, const char *what)
{
    return pace_fail(self->log, PACE_BAD_DATA, "%s: \"%s\" of its metadata %s", self->file.path, key, what);
}

static pace_status settle_preprocess(const pace__pretrained *self, pace__cnn_config *config)
{
    static const float imagenet[2][3] = {{0.485f * 255, 0.456f * 255, 0.406f * 255},
                                         {0.229f * 255, 0.224f * 255, 0.225f * 255}};
    static const float halves[3] = {127.5f, 127.5f, 127.5f}, whole[3] = {255, 255, 255}, none[3] = {0};
    const char *said = pace__safetensors_metadata(self->file.tensors, "preprocess");
    /* timm's mobilenetv1_* were trained like that, too. */
    bool by_halves =
        self->tensorflow || (self->names == PACE__NAMES_TIMM && config->arch == PACE_ARCH_MOBILENET_V1);
    char text[64];

    if (!said) {
        set_pixels(config, by_halves ? halves : imagenet[0], by_halves ? halves : imagenet[1]);
        return PACE_OK;
    }
    simplify(said, text, sizeof text);
    if (strstr(text, "bgr"))
        return bad_metadata(self, "preprocess", "asks for blue first, which pictures here have last");
    if (strncmp(text, "x/127.5-1", 9) == 0 || strncmp(text, "(x-127.5)/127.5", 15) == 0)
        set_pixels(config, halves, halves);
    else if (strncmp(text, "x/255", 5) == 0 && (text[5] == '\0' || text[5] == ','))
        set_pixels(config, none, whole);
    else if (strncmp(text, "imagenet", 8) == 0)
        set_pixels(config, imagenet[0], imagenet[1]);
    else
        return bad_metadata(self, "preprocess", "is none of x/127.5-1, x/255, imagenet");
    return PACE_OK;
}

static pace_status settle_epsilon(const pace__pretrained *self, pace__cnn_config *config)
{
    const char *said = pace__safetensors_metadata(self->file.tensors, "bn_eps");
    char *end = NULL;

    config->epsilon = self->tensorflow ? 1e-3f : 1e-5f;
    if (!said)
        return PACE_OK;
    config->epsilon = strtof(said, &end);
    if (end == said || *end || !(config->epsilon > 0) || !(config->epsilon < 1))
        return bad_metadata(self, "bn_eps", "is no number between 0 and 1");
    return PACE_OK;
}

static pace_status settle_padding(const pace__pretrained *self, pace__cnn_config *config)
{
    const char *said = pace__safetensors_metadata(self->file.tensors, "padding");
    char text[64];

    config->same = self->tensorflow;
    if (!said)
        return PACE_OK;
    simplify(said, text, sizeof text);
    config->same = strcmp(text, "same") == 0;
    if (!config->same && strcmp(text, "symmetric") != 0)
        return bad_metadata(self, "padding", "is neither SAME nor symmetric");
    return PACE_OK;
}

pace_status pace__pretrained_settle(const pace__pretrained *file, pace__cnn_config *config)
{
    if (file->names == PACE__NAMES_OWN) {
        config->same = file->own.same;
        config->epsilon = file->own.epsilon;
        set_pixels(config, file->own.mean, file->own.deviation);
        return PACE_OK;
    }
    pace_status status = settle_preprocess(file, config);

    if (!status)
        status = settle_epsilon(file, config);
    return status ? status : settle_padding(file, config);
}

/* --- one tensor --- */

static void write_shape(char text[SHAPE_BYTES], const uint64_t *shape, unsigned rank)
{
    size_t used = (size_t)snprintf(text, SHAPE_BYTES, "(");

    for (unsigned i = 0; i < rank && used < SHAPE_BYTES; i++)
        used += (size_t)snprintf(text + used, SHAPE_BYTES - used, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (used < SHAPE_BYTES)
        snprintf(text + used, SHAPE_BYTES - used, ")");
}

static pace_status wrong_shape(const pace__pretrained *self, const pace__wanted *of,
                               const pace__tensor_info *tensor)
{
    char found[SHAPE_BYTES], needed[SHAPE_BYTES];
    uint64_t shape[4];
    unsigned rank = pace__wanted_shape(self->tensorflow, of, shape);

    if (tensor->dtype != PACE__F32)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: tensor %s is %s; only F32 is read", self->file.path,
                         tensor->name, pace__dtype_name(tensor->dtype));
    write_shape(found, tensor->shape, tensor->rank);
    write_shape(needed, shape, rank);
    return pace_fail(self->log, PACE_BAD_DATA,
                     "%s: tensor %s is %s; for %s of this network it would be %s: another --arch or --width?",
                     self->file.path, tensor->name, found, of->tensor->name, needed);
}

static pace_status check_values(const pace__pretrained *self, const pace__wanted *of,
                                const pace__tensor_info *tensor, const float *values)
{
    bool is_variance = ends_in(of->tensor->name, ".variance");

    for (uint64_t i = 0; i < tensor->elements; i++) {
        if (!isfinite(values[i]) || (is_variance && values[i] < 0))
            return pace_fail(self->log, PACE_BAD_DATA, "%s: value %" PRIu64 " of %s is %s", self->file.path,
                             i, tensor->name, isfinite(values[i]) ? "below 0: no variance" : "not a number");
    }
    return PACE_OK;
}

static pace_status take_tensor(const pace__pretrained *self, const pace__wanted *of,
                               const pace__tensor_info *tensor, float *to)
{
    float *values = malloc((size_t)tensor->bytes + 1);
    pace_status status = values ? pace__safetensors_read(self->file.tensors, tensor, 0, values,
                                                         (size_t)tensor->bytes, self->log)
                                : pace_fail(self->log, PACE_FAILED, "%s: out of memory", self->file.path);

    if (!status)
        status = check_values(self, of, tensor, values);
    if (!status)
        pace__wanted_place(self->tensorflow, of, values, to);
    free(values);
    return status;
}

/* --- all of them --- */

/* Where the network's values go, and what was found so far. */
typedef struct loading {
    const pace__pretrained *file;
    const pace__cnn_config *config;
    const pace__cnn_net *net;
    float *weights, *stats;
    pace__pretrained_report report;
} loading;

/* The file's tensor for ours; *tensor is NULL if it has none. What a map names must be there. */
static pace_status find_tensor(const loading *self, const pace__cnn_tensor *ours, unsigned number,
                               const pace__tensor_info **tensor)
{
    const pace__pretrained *file = self->file;
    const pace__name_pair *pair = pace__name_map_find(&file->map, ours->name);
    char name[PACE__FOREIGN_NAME_BYTES];

    *tensor = pace__safetensors_find(file->file.tensors, pair ? pair->theirs : ours->name);
    if (pair)
        return *tensor ? PACE_OK
                       : pace_fail(file->log, PACE_BAD_DATA,
                                   "%s: it has no tensor %s, which the name map's line %u names",
                                   file->file.path, pair->theirs, pair->line);
    if (file->names != PACE__NAMES_OWN)
        *tensor = NULL;
    for (unsigned variant = 0; !*tensor && pace__names_find(file->names, self->net, number, variant, name);
         variant++)
        *tensor = find_named(file, file->prefix, name);
    return PACE_OK;
}

static pace_status missing_tensor(loading *self, const pace__cnn_tensor *ours, unsigned number)
{
    const pace__pretrained *file = self->file;
    char name[PACE__FOREIGN_NAME_BYTES] = "", shape[SHAPE_BYTES];

    if (number / PACE__UNIT_TENSORS >= self->config->first_trained) {
        if (self->report.missing_count++ == 0)
            snprintf(self->report.missing, sizeof self->report.missing, "%.*s",
                     (int)sizeof self->report.missing - 1, ours->name);
        return PACE_OK;
    }
    write_shape(shape, ours->shape, ours->rank);
    bool named = pace__names_find(file->names, self->net, number, 0, name);

    return pace_fail(file->log, PACE_BAD_DATA, "%s: no tensor for %s %s%s%s%s, and that layer is not trained",
                     file->file.path, ours->name, shape, named ? " (" : "", name, named ? ")" : "");
}

static pace_status load_unit_tensor(loading *self, const pace__cnn_tensor *ours, unsigned number)
{
    const pace__tensor_info *tensor = NULL;
    pace__wanted of = pace__wanted_of(self->net, ours, number);
    pace_status status = find_tensor(self, ours, number, &tensor);

    if (status)
        return status;
    if (!tensor)
        return missing_tensor(self, ours, number);
    /* Three colours of a grey pixel are the same. */
    if (ours->rank == 4 && of.in == 1 && !of.depthwise &&
        !pace__wanted_fits(self->file->tensorflow, &of, tensor)) {
        of.adds_colours = true;
        of.adds_colours = pace__wanted_fits(self->file->tensorflow, &of, tensor);
        self->report.grey |= of.adds_colours;
    }
    if (tensor->dtype != PACE__F32 || !pace__wanted_fits(self->file->tensorflow, &of, tensor))
        return wrong_shape(self->file, &of, tensor);
    self->report.tensors++;
    return take_tensor(self->file, &of, tensor, (ours->stats ? self->stats : self->weights) + ours->at);
}

/* Both tensors of it, or none. */
static pace_status load_head(loading *self, const pace__cnn_tensor *ours)
{
    const pace__pretrained *file = self->file;
    unsigned first = self->net->units * PACE__UNIT_TENSORS;
    bool others = file->names == PACE__NAMES_OWN && file->expects && file->expected != file->class_names;
    const pace__tensor_info *tensor[2];
    pace_status status = PACE_OK;
    bool fits = !others;

    for (unsigned i = 0; i < 2 && !status; i++) {
        pace__wanted of = pace__wanted_of(self->net, &ours[i], first + i);

        status = find_tensor(self, &ours[i], first + i, &tensor[i]);
        fits = fits && !status && tensor[i] && tensor[i]->dtype == PACE__F32 &&
               pace__wanted_fits(file->tensorflow, &of, tensor[i]);
    }
    for (unsigned i = 0; i < 2 && !status && fits; i++) {
        pace__wanted of = pace__wanted_of(self->net, &ours[i], first + i);

        status = take_tensor(file, &of, tensor[i], self->weights + ours[i].at);
    }
    self->report.head = !status && fits;
    self->report.tensors += self->report.head ? 2 : 0;
    return status;
}

/* Every line of the map is about a tensor of this network. */
static pace_status check_map(const pace__pretrained *self, const pace__cnn_tensor *tensors, unsigned count)
{
    for (size_t i = 0; i < self->map.count; i++) {
        bool known = false;

        for (unsigned t = 0; t < count && !known; t++)
            known = strcmp(tensors[t].name, self->map.pairs[i].ours) == 0;
        if (!known)
            return pace_fail(self->log, PACE_BAD_DATA,
                             "the name map's line %u: this network has no tensor %s", self->map.pairs[i].line,
                             self->map.pairs[i].ours);
    }
    return PACE_OK;
}

/* No tensor was found: it is another network. */
static pace_status another_network(const loading *self)
{
    const pace__pretrained *file = self->file;
    const char *seems =
        file->names == PACE__NAMES_OWN ? pace__cnn_arch_names[file->own.arch] : "something else";

    for (int arch = 3; arch >= 0 && file->names != PACE__NAMES_OWN; arch--) {
        const char *mark = pace__names_mark(file->names, arch);

        if (mark && find_named(file, file->prefix, mark)) {
            seems = pace__cnn_arch_names[arch];
            break;
        }
    }
    return pace_fail(file->log, PACE_BAD_DATA, "%s: no tensor is one of %s; it seems to be %s, by %s names",
                     file->file.path, pace__cnn_arch_names[self->config->arch], seems,
                     pace__pretrained_layout(file));
}

/* Before anything else is said about it. */
static pace_status check_any(const loading *self, const pace__cnn_tensor *tensors)
{
    for (unsigned t = 0; t < self->net->units * PACE__UNIT_TENSORS; t++) {
        const pace__tensor_info *tensor = NULL;
        pace_status status = find_tensor(self, &tensors[t], t, &tensor);

        if (status || tensor)
            return status;
    }
    return another_network(self);
}

pace_status pace__pretrained_load(const pace__pretrained *file, const pace__cnn_config *config,
                                  const pace__cnn_net *net, float *weights, float *stats,
                                  pace__pretrained_report *report)
{
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned count = pace__cnn_tensors(net, tensors);
    loading self = {.file = file, .config = config, .net = net, .weights = weights, .stats = stats};
    pace_status status = check_map(file, tensors, count);

    if (!status)
        status = check_any(&self, tensors);
    for (unsigned t = 0; t < count - 2 && !status; t++)
        status = load_unit_tensor(&self, &tensors[t], t);
    if (!status)
        status = load_head(&self, &tensors[count - 2]);
    if (!status)
        *report = self.report;
    return status;
}

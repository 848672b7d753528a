/* The options of convolutional networks: what they are, what goes together, what they default to. */
#include "files/output.h"
#include "model/cnn/kind.h"
#include "model/defaults.h"
#include "model/settings.h"

#include <string.h>

#define ADAM_RATE     0.003
#define TOP_RATE      0.01
#define MOMENTUM_RATE 0.05
#define TOP_EPOCHS    50
#define WARM_EPOCHS   10 /* of weights that have learned something */

#define FIELD(name) offsetof(pace_cnn_options, name)

const pace_option pace__cnn_options[] = {
    {"arch", 0, PACE_OPT_CHOICE, FIELD(arch), "small", "A", "the network",
     "small|resnet20|mobilenet-v1|mobilenet-v2", .mark = PACE_MARK_IDENTITY,
     .group = "Convolutional networks"},
    {"width", 0, PACE_OPT_REAL, FIELD(width), "1", "X", "factor of the number of channels", .min = 0.05,
     .max = 8, .mark = PACE_MARK_IDENTITY},
    {"pretrained", 0, PACE_OPT_TEXT, FIELD(pretrained), NULL, "FILE",
     "begin with the weights of this safetensors file (of a run; of torchvision, timm or Keras)",
     .mark = PACE_MARK_SURFACE},
    {"name-map", 0, PACE_OPT_TEXT, FIELD(name_map), NULL, "FILE",
     "how the tensors of --pretrained are called: lines \"OURS THEIRS\"", .mark = PACE_MARK_SURFACE},
    {"train", 0, PACE_OPT_TEXT, FIELD(train), "all", "all|top|from:LAYER",
     "train everything, only the head (the rest runs once per picture), or the layers from LAYER on",
     .mark = PACE_MARK_IDENTITY},
    {"feature-cache", 0, PACE_OPT_TEXT, FIELD(feature_cache), NULL, "DIR",
     "--train top: where to keep what the frozen layers make of the pictures, if not in the run directory",
     .mark = PACE_MARK_SURFACE},
    {"bn", 0, PACE_OPT_CHOICE, FIELD(bn), "global", "B",
     "batch norm over the rows of all workers of a step, or over each worker's own; asynchronous modes "
     "always do the latter",
     "global|local", .mark = PACE_MARK_IDENTITY},
    {"head", 0, PACE_OPT_CHOICE, FIELD(head), "auto", "H",
     "an output per class, or one logit (of two classes); auto: one logit for two classes",
     "auto|softmax|logit", .mark = PACE_MARK_IDENTITY},
    {"smoothing", 0, PACE_OPT_REAL, FIELD(smoothing), "0", "X",
     "label smoothing: part of the target that goes to all classes alike", .min = 0, .max = 0.9,
     .mark = PACE_MARK_IDENTITY},
    {"augment", 0, PACE_OPT_TEXT, FIELD(augment), "auto", "LIST",
     "what is changed at random in training: none, or some of flip,crop,colour; none with --train top",
     .mark = PACE_MARK_IDENTITY},
    {0},
};

/* The comma-separated words of --augment. */
pace_status pace__cnn_parse_augment(const char *text, const pace_log *log, pace__cnn_config *config)
{
    if (!text || strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) /* auto: nothing to check */
        text = "";
    while (*text) {
        size_t size = strcspn(text, ",");

        if (size == 4 && strncmp(text, "flip", size) == 0)
            config->flip = true;
        else if (size == 4 && strncmp(text, "crop", size) == 0) /* an eighth in each direction */
            config->crop = (config->height < config->side ? config->height : config->side) / 8;
        else if ((size == 6 && strncmp(text, "colour", size) == 0) ||
                 (size == 5 && strncmp(text, "color", size) == 0))
            config->colour = 0.3F;
        else
            return pace_fail(log, PACE_USAGE, "--augment '%.*s': none, or some of flip,crop,colour",
                             (int)size, text);
        text += size;
        text += *text == ',';
    }
    return PACE_OK;
}

pace_status pace__cnn_check(const pace_train_config *config, const pace_log *log)
{
    const char *train = config->own.cnn.train;
    bool top = train && strcmp(train, "top") == 0, from = train && strncmp(train, "from:", 5) == 0;

    if (config->optimiser.l1 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 is for --model logreg; a cnn has --l2 and --dropout");
    if (train && strcmp(train, "all") != 0 && !top && !from)
        return pace_fail(log, PACE_USAGE, "--train '%s': all, top, or from:LAYER, like from:pw12", train);
    if ((top || from) && !config->own.cnn.pretrained && !config->init)
        return pace_fail(log, PACE_USAGE,
                         "--train %s leaves layers as they are: they need weights, by --pretrained FILE or "
                         "--init RUN",
                         train);
    if (config->init && config->own.cnn.pretrained)
        return pace_fail(log, PACE_USAGE,
                         "--init begins with all of a model of paceline, --pretrained with the layers of a "
                         "file that they fit: choose one");
    if (config->own.cnn.name_map && !config->own.cnn.pretrained)
        return pace_fail(log, PACE_USAGE, "--name-map is for the tensors of --pretrained");
    if (config->force && pace__output_apart(config->run, &config->own.cnn.pretrained, 1, log))
        return PACE_USAGE; /* the run that is replaced would take its weights along */
    if (config->own.cnn.feature_cache && !top)
        return pace_fail(log, PACE_USAGE, "--feature-cache is for --train top");
    if (top && config->own.cnn.augment && strcmp(config->own.cnn.augment, "auto") != 0 &&
        strcmp(config->own.cnn.augment, "none") != 0)
        return pace_fail(
            log, PACE_USAGE,
            "--augment %s: --train top sees every picture once, as it is; --train from:LAYER can "
            "change them",
            config->own.cnn.augment);
    pace_status status = pace__cnn_parse_augment(config->own.cnn.augment, log, &(pace__cnn_config){0});

    return status ? status : pace__check_network(config, "a cnn", log);
}

void pace__cnn_settle(pace_train_config *config, const pace__dataset *data)
{
    if (!config->own.cnn.train)
        config->own.cnn.train = "all";
    bool top = strcmp(config->own.cnn.train, "top") == 0;
    bool mobile =
        config->own.cnn.arch == PACE_ARCH_MOBILENET_V1 || config->own.cnn.arch == PACE_ARCH_MOBILENET_V2;

    if (data->classes > 0) /* else nobody knows yet */
        pace__choose(&config->own.cnn.head, PACE_HEAD_AUTO,
                     data->classes == 2 ? PACE_HEAD_LOGIT : PACE_HEAD_SOFTMAX);
    pace__choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAM);
    pace__choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_COSINE);
    pace__choose_integer(&config->length.batch, 0, mobile && !top ? 32 : 128);
    pace__choose_integer(&config->length.epochs, 0,
                         top ? TOP_EPOCHS
                         : config->own.cnn.pretrained || config->init
                             ? WARM_EPOCHS
                             : pace__picture_epochs(data, config->length.batch));
    if (config->optimiser.rule == PACE_ADAM)
        pace__choose_real(&config->optimiser.lr, 0, top ? TOP_RATE : ADAM_RATE);
    if (config->optimiser.rule == PACE_MOMENTUM)
        pace__choose_real(&config->optimiser.lr, 0, MOMENTUM_RATE);
    pace__choose_real(&config->optimiser.dropout, -1, mobile && !top ? 0.2 : 0);
    if (!config->own.cnn.augment || strcmp(config->own.cnn.augment, "auto") == 0)
        config->own.cnn.augment = top ? "none" : "flip,crop";
    pace__choose_real(&config->optimiser.clip, -1, 0);
}

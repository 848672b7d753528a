/* The options that say what to train: what goes together, what they default to, and the model they make. */
#include "data/text/vocabulary.h"
#include "train/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NGRAM_DEFAULT     2
#define RNN_ADAM_RATE     0.004
#define CNN_ADAM_RATE     0.003
#define CNN_TOP_RATE      0.01
#define CNN_MOMENTUM_RATE 0.05

/* --- what goes together --- */

/* An option that only some models have, if it was given. */
typedef struct own_option {
    const char *name;
    bool given;
} own_option;

static pace_status refuse(const own_option *options, size_t count, const char *theirs, const char *own,
                          const pace_log *log)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i].given)
            return pace_fail(log, PACE_USAGE, "%s is for --model %s, not for %s", options[i].name, theirs,
                             own);
    }
    return PACE_OK;
}

static pace_status refuse_cnn_options(const pace_train_config *config, const char *own, const pace_log *log)
{
    own_option options[] = {{"--arch", config->arch != PACE_ARCH_SMALL},
                            {"--width", config->width != 1 && config->width != 0},
                            {"--pretrained", config->pretrained != NULL},
                            {"--name-map", config->name_map != NULL},
                            {"--train", config->train && strcmp(config->train, "all") != 0},
                            {"--feature-cache", config->feature_cache != NULL},
                            {"--bn", config->bn != PACE_BN_GLOBAL},
                            {"--head", config->head != PACE_HEAD_AUTO},
                            {"--smoothing", config->smoothing > 0},
                            {"--augment", config->augment && strcmp(config->augment, "auto") != 0}};

    return refuse(options, sizeof options / sizeof *options, "cnn", own, log);
}

/* What reads words. */
static pace_status refuse_rnn_options(const pace_train_config *config, const char *own, const pace_log *log)
{
    own_option options[] = {{"--preset", config->preset != PACE_PRESET_NONE},
                            {"--cell", config->cell != PACE_CELL_LSTM},
                            {"--layers", config->layers != 0},
                            {"--hidden", config->hidden != 0},
                            {"--embed", config->embed != 0},
                            {"--dense", config->dense > 0},
                            {"--bidirectional", config->bidirectional},
                            {"--word-dropout", config->word_dropout > 0},
                            {"--loss", config->loss != PACE_LOSS_BCE},
                            {"--embeddings", config->embeddings != NULL}};

    return refuse(options, sizeof options / sizeof *options, "rnn", own, log);
}

static pace_status check_logreg(const pace_train_config *config, const pace_log *log)
{
    own_option networks[] = {{"--dropout", config->dropout > 0},
                             {"--class-weight", config->class_weight != NULL},
                             {"--clip", config->clip > 0}};
    pace_status status = refuse_rnn_options(config, "logreg", log);

    if (!status)
        status = refuse_cnn_options(config, "logreg", log);
    return status ? status
                  : refuse(networks, sizeof networks / sizeof *networks, "rnn or cnn", "logreg", log);
}

/* What all networks have in common. */
static pace_status check_network(const pace_train_config *config, const char *own, const pace_log *log)
{
    if (config->optimizer == PACE_FTRL)
        return pace_fail(log, PACE_USAGE,
                         "--optimizer ftrl computes weights anew from all gradients, which forgets what %s "
                         "begins with: take adam, adagrad, momentum or sgd",
                         own);
    if (config->exact)
        return pace_fail(log, PACE_USAGE, "--exact: %s always has one update per step", own);
    if ((config->dropout < 0 && config->dropout != -1) ||
        (config->word_dropout < 0 && config->word_dropout != -1) || (config->clip < 0 && config->clip != -1))
        return pace_fail(log, PACE_USAGE,
                         "--dropout, --word-dropout and --clip are 0 or more, or -1 for the default");
    if (config->ngram != 0 && config->ngram != NGRAM_DEFAULT)
        return pace_fail(log, PACE_USAGE, "--ngram is for --model logreg, not for %s", own);
    return PACE_OK;
}

static pace_status check_rnn(const pace_train_config *config, const pace_log *log)
{
    if (config->l1 > 0 || config->l2 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 and --l2 are for --model logreg; an rnn has --dropout");
    pace_status status = refuse_cnn_options(config, "an rnn", log);

    return status ? status : check_network(config, "an rnn", log);
}

/* The comma-separated words of --augment. */
pace_status pace__parse_augment(const char *text, const pace_log *log, pace__cnn_config *config)
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

static pace_status check_cnn(const pace_train_config *config, const pace_log *log)
{
    const char *train = config->train;
    bool top = train && strcmp(train, "top") == 0, from = train && strncmp(train, "from:", 5) == 0;
    pace_status status = refuse_rnn_options(config, "a cnn", log);

    if (status)
        return status;
    if (config->l1 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 is for --model logreg; a cnn has --l2 and --dropout");
    if (train && strcmp(train, "all") != 0 && !top && !from)
        return pace_fail(log, PACE_USAGE, "--train '%s': all, top, or from:LAYER, like from:pw12", train);
    if ((top || from) && !config->pretrained)
        return pace_fail(log, PACE_USAGE,
                         "--train %s leaves layers as they are: they need weights, by --pretrained FILE",
                         train);
    if (config->name_map && !config->pretrained)
        return pace_fail(log, PACE_USAGE, "--name-map is for the tensors of --pretrained");
    if (config->feature_cache && !top)
        return pace_fail(log, PACE_USAGE, "--feature-cache is for --train top");
    if (top && config->augment && strcmp(config->augment, "auto") != 0 &&
        strcmp(config->augment, "none") != 0)
        return pace_fail(
            log, PACE_USAGE,
            "--augment %s: --train top sees every picture once, as it is; --train from:LAYER can "
            "change them",
            config->augment);
    status = pace__parse_augment(config->augment, log, &(pace__cnn_config){0});
    return status ? status : check_network(config, "a cnn", log);
}

/* A weight above 0, or 0 for "balanced"; false: neither. */
static bool parse_class_weight(const char *text, double *weight)
{
    char *end;

    *weight = 0;
    if (strcmp(text, "balanced") == 0)
        return true;
    *weight = strtod(text, &end);
    return end != text && !*end && *weight > 0 && *weight <= 1e6;
}

pace_status pace__check_settings(const pace_train_config *config, const pace_log *log)
{
    double weight;

    if (config->class_weight && !parse_class_weight(config->class_weight, &weight))
        return pace_fail(log, PACE_USAGE,
                         "--class-weight '%s': \"balanced\", or how much a positive row weighs against a "
                         "negative one, like 0.2",
                         config->class_weight);
    return config->model == PACE_MODEL_CNN   ? check_cnn(config, log)
           : config->model == PACE_MODEL_RNN ? check_rnn(config, log)
                                             : check_logreg(config, log);
}

/* --- defaults --- */

static void choose_integer(int64_t *field, int64_t open, int64_t value)
{
    if (*field == open)
        *field = value;
}

static void choose_real(double *field, double open, double value)
{
    if (*field == open)
        *field = value;
}

static void choose(int *field, int open, int value)
{
    if (*field == open)
        *field = value;
}

/* The published settings: 128 rows on each worker, and a weight that makes both classes count the same. */
static void apply_reviews_2019(pace_train_config *config)
{
    choose_integer(&config->layers, 0, 2);
    choose_integer(&config->hidden, 0, 32);
    choose_integer(&config->embed, 0, 100);
    choose_integer(&config->dense, -1, 32);
    choose_real(&config->dropout, -1, 0.5);
    choose_real(&config->word_dropout, -1, 0);
    choose_real(&config->clip, -1, 0);
    choose(&config->pooling, PACE_POOL_AUTO, PACE_POOL_LAST);
    choose(&config->optimizer, PACE_OPTIMIZER_AUTO, PACE_MOMENTUM);
    choose(&config->schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    if (config->optimizer == PACE_MOMENTUM)
        choose_real(&config->lr, 0, 0.1);
    choose_integer(&config->batch, 0, 128 * config->workers);
    choose_integer(&config->epochs, 0, 10);
    if (!config->class_weight)
        config->class_weight = "0.2";
}

static void settle_cnn(pace_train_config *config)
{
    bool top = strcmp(config->train, "top") == 0;
    bool mobile = config->arch == PACE_ARCH_MOBILENET_V1 || config->arch == PACE_ARCH_MOBILENET_V2;

    choose(&config->optimizer, PACE_OPTIMIZER_AUTO, PACE_ADAM);
    choose(&config->schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_COSINE);
    choose_integer(&config->batch, 0, mobile && !top ? 32 : 128);
    choose_integer(&config->epochs, 0, top ? 50 : 10);
    if (config->optimizer == PACE_ADAM)
        choose_real(&config->lr, 0, top ? CNN_TOP_RATE : CNN_ADAM_RATE);
    if (config->optimizer == PACE_MOMENTUM)
        choose_real(&config->lr, 0, CNN_MOMENTUM_RATE);
    choose_real(&config->dropout, -1, mobile && !top ? 0.2 : 0);
    if (!config->augment || strcmp(config->augment, "auto") == 0)
        config->augment = top ? "none" : "flip,crop";
    choose_real(&config->clip, -1, 0);
}

void pace__settle_settings(pace_train_config *config, bool text)
{
    bool rnn = config->model == PACE_MODEL_RNN;

    if (!config->train)
        config->train = "all";
    if (config->model == PACE_MODEL_CNN)
        settle_cnn(config);
    if (config->preset == PACE_PRESET_REVIEWS_2019)
        apply_reviews_2019(config);
    choose(&config->optimizer, PACE_OPTIMIZER_AUTO, rnn ? PACE_ADAM : PACE_ADAGRAD);
    choose(&config->schedule, PACE_SCHEDULE_AUTO, rnn ? PACE_SCHEDULE_LINEAR : PACE_SCHEDULE_CONSTANT);
    choose_integer(&config->batch, 0, text ? 128 : 512);
    choose_integer(&config->epochs, 0, rnn ? 4 : text ? 10 : 1);
    choose_integer(&config->ngram, 0, NGRAM_DEFAULT);
    if (!rnn)
        return;
    if (config->optimizer == PACE_ADAM)
        choose_real(&config->lr, 0, RNN_ADAM_RATE);
    choose_integer(&config->layers, 0, 1);
    choose_integer(&config->hidden, 0, 64);
    choose_integer(&config->embed, 0, 64);
    choose_integer(&config->dense, -1, 0);
    choose_real(&config->dropout, -1, 0.5);
    choose_real(&config->word_dropout, -1, 0.2);
    choose_real(&config->clip, -1, 5);
    choose(&config->pooling, PACE_POOL_AUTO, PACE_POOL_LAST);
}

/* --- the model --- */

/* Weights of a row by its label: "balanced" gives both classes the same sum, and rows 1 on average. */
pace_status pace__job_class_weights(const pace__job *job, float weight[2])
{
    const pace__store_info *info = &job->store.info;
    double rows = (double)info->rows[PACE__TRAIN], positives = (double)info->positives[PACE__TRAIN], positive;

    weight[0] = weight[1] = 1;
    if (!job->config->class_weight)
        return PACE_OK;
    parse_class_weight(job->config->class_weight, &positive);
    if (positive > 0) {
        weight[1] = (float)positive;
        return PACE_OK;
    }
    if (positives == 0 || positives >= rows)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: --class-weight balanced needs rows of both classes",
                         job->config->data);
    weight[0] = (float)(rows / (2 * (rows - positives)));
    weight[1] = (float)(rows / (2 * positives));
    return PACE_OK;
}

static pace_status plan_rnn(pace__job *job)
{
    const pace_train_config *config = job->config;
    const pace__store_info *info = &job->store.info;
    pace__rnn_config *rnn = &job->model.rnn;

    *rnn = (pace__rnn_config){.words = info->ids_seen,
                              .length = info->columns,
                              .embed = (uint32_t)config->embed,
                              .hidden = (uint32_t)config->hidden,
                              .layers = (uint32_t)config->layers,
                              .dense = (uint32_t)config->dense,
                              .cell = config->cell,
                              .pooling = config->pooling,
                              .both = config->bidirectional,
                              .dropout = (float)config->dropout,
                              .loss = config->loss,
                              .focal = (float)config->focal,
                              .seed = config->seed};
    return pace__job_class_weights(job, rnn->weight);
}

bool pace__job_goes_by_columns(const pace__job *job)
{
    return job->mode == PACE_MODE_LOCAL && job->config->model == PACE_MODEL_LOGREG &&
           (job->store.info.encoding.kind == PACE__CRITEO || job->store.info.encoding.kind == PACE__NUMBERED);
}

static pace_status check_rows(const pace__job *job)
{
    static const char *const makers[] = {"clicks", "reviews", "images"};
    static const char *const kinds[] = {"rows of features", "texts", "pictures"};
    int kind = job->store.info.encoding.kind, model = job->config->model;
    int is = kind == PACE__IMAGE || kind == PACE__FEATURES ? 2 : kind == PACE__TEXT;
    int wants = model == PACE_MODEL_CNN ? 2 : model == PACE_MODEL_RNN ? 1 : is == 2 ? 0 : is;

    if (is == wants)
        return PACE_OK;
    if (model == PACE_MODEL_LOGREG)
        return pace_fail(job->log, PACE_USAGE, "%s: holds pictures: give --model cnn", job->config->data);
    return pace_fail(job->log, PACE_USAGE,
                     "%s: has no %s: --model %s needs a data set made by 'paceline prep %s'",
                     job->config->data, kinds[wants],
                     model == PACE_MODEL_CNN   ? "cnn"
                     : model == PACE_MODEL_RNN ? "rnn"
                                               : "logreg",
                     makers[wants]);
}

pace_status pace__job_plan_model(pace__job *job)
{
    const pace__store_info *info = &job->store.info;
    pace_status status = check_rows(job);

    if (status)
        return status;
    job->model = (pace__model_plan){.kind = job->config->model,
                                    .info = info,
                                    .ngram = (unsigned)job->config->ngram,
                                    .word_dropout = job->config->word_dropout,
                                    .optim = pace__job_optim(job)};
    if (job->config->model == PACE_MODEL_RNN)
        status = plan_rnn(job);
    if (job->config->model == PACE_MODEL_CNN)
        status = pace__job_plan_cnn(job);
    if (status)
        return status;
    job->by_columns = pace__job_goes_by_columns(job);
    job->shape = pace__model_shape(&job->model);
    job->floats = (size_t)job->shape.dim * job->model.optim.width;
    return PACE_OK;
}

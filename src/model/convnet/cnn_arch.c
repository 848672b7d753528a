/* The four architectures as lists of units, and everything that follows from such a list alone. */
#include "model/convnet/cnn.h"

#include "math/draws.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Two sums per channel go through batch->sum at once. */
#define CHANNELS_MAX (PACE__CNN_SUM_MAX / 2)

const char *const pace__cnn_arch_names[4] = {[PACE_ARCH_SMALL] = "small",
                                             [PACE_ARCH_RESNET20] = "resnet20",
                                             [PACE_ARCH_MOBILENET_V1] = "mobilenet-v1",
                                             [PACE_ARCH_MOBILENET_V2] = "mobilenet-v2"};

typedef struct builder {
    const pace__cnn_config *config;
    pace__cnn_net *net;
} builder;

/* --- widths --- */

/* The multiple of 8 next to it, but not less than 90 % of it: as the mobilenets' authors round. */
static uint32_t divisible(double channels)
{
    uint32_t rounded = (uint32_t)(channels + 4) / 8 * 8;

    if (rounded < 8)
        rounded = 8;
    return rounded < 0.9 * channels ? rounded + 8 : rounded;
}

static bool is_mobilenet(const pace__cnn_config *config)
{
    return config->arch == PACE_ARCH_MOBILENET_V1 || config->arch == PACE_ARCH_MOBILENET_V2;
}

static uint32_t scaled(const pace__cnn_config *config, uint32_t channels)
{
    /* A width of .35 means .35, not the float next to it: the borders of rounding are to be hit. */
    double wanted = round((double)config->width * 1e6) / 1e6 * channels;

    if (is_mobilenet(config))
        return divisible(wanted);
    return wanted < 1 ? 1 : (uint32_t)lround(wanted);
}

/* --- units --- */

/* What is read around the input, and how large the output becomes, in one direction. */
static uint32_t place_kernel(const pace__cnn_config *config, uint32_t kernel, uint32_t stride, uint32_t in,
                             uint32_t *before, uint32_t *behind)
{
    uint32_t out = (in + stride - 1) / stride, reach = (out - 1) * stride + kernel;

    if (config->same) {
        uint32_t outside = reach > in ? reach - in : 0;

        *before = outside / 2;
        *behind = outside - *before;
    } else {
        *before = *behind = kernel / 2;
    }
    return out;
}

/* A unit behind the others, which reads `from`. Returns its number. The name is `block`, then `name`. */
static uint32_t add_unit(builder *to, uint32_t from, const char *block, const char *name, pace__cnn_unit wish)
{
    const pace__cnn_config *config = to->config;
    pace__cnn_net *net = to->net;
    pace__cnn_unit *unit = &net->unit[net->units];
    const pace__cnn_unit *input = from == PACE__CNN_PIXELS ? NULL : &net->unit[from];

    assert(net->units < PACE__CNN_UNITS_MAX);
    *unit = wish;
    snprintf(unit->name, sizeof unit->name, "%s%s", block, name);
    unit->from = from;
    unit->add = PACE__CNN_NOTHING;
    unit->in_channels = input ? input->channels : config->channels;
    unit->in_height = input ? input->height : config->height;
    unit->in_width = input ? input->width : config->side;
    if (unit->depthwise)
        unit->channels = unit->in_channels;
    unit->height =
        place_kernel(config, unit->kernel, unit->stride, unit->in_height, &unit->pad_top, &unit->pad_bottom);
    unit->width =
        place_kernel(config, unit->kernel, unit->stride, unit->in_width, &unit->pad_left, &unit->pad_right);
    return net->units++;
}

static uint32_t add_conv(builder *to, uint32_t from, const char *block, const char *name, uint32_t kernel,
                         uint32_t channels, uint32_t stride, pace__cnn_act act)
{
    return add_unit(to, from, block, name,
                    (pace__cnn_unit){.kernel = kernel, .channels = channels, .stride = stride, .act = act});
}

static uint32_t add_depthwise(builder *to, uint32_t from, const char *block, const char *name,
                              uint32_t stride)
{
    return add_unit(
        to, from, block, name,
        (pace__cnn_unit){.kernel = 3, .stride = stride, .depthwise = true, .act = PACE__ACT_RELU6});
}

static bool same_shape(const pace__cnn_unit *left, const pace__cnn_unit *right)
{
    return left->channels == right->channels && left->height == right->height && left->width == right->width;
}

/* --- architectures --- */

static void make_small(builder *to)
{
    static const struct {
        uint32_t channels, stride;
    } convs[] = {{32, 1}, {64, 2}, {64, 1}, {128, 2}};
    uint32_t last = PACE__CNN_PIXELS;
    char name[32];

    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "conv%u", i + 1);
        last = add_conv(to, last, "", name, 3, scaled(to->config, convs[i].channels), convs[i].stride,
                        PACE__ACT_RELU);
    }
}

static uint32_t add_residual(builder *to, uint32_t from, const char *block, uint32_t channels,
                             uint32_t stride)
{
    uint32_t conv1 = add_conv(to, from, block, "conv1", 3, channels, stride, PACE__ACT_RELU);
    uint32_t added = from;

    /* In front of what it is added to; behind conv1, so that a block is trained as a whole from there on. */
    if (!same_shape(&to->net->unit[from], &to->net->unit[conv1]))
        added = add_conv(to, from, block, "shortcut", 1, channels, stride, PACE__ACT_NONE);
    uint32_t conv2 = add_conv(to, conv1, block, "conv2", 3, channels, 1, PACE__ACT_RELU);

    to->net->unit[conv2].add = added;
    return conv2;
}

static void make_resnet20(builder *to)
{
    uint32_t last = add_conv(to, PACE__CNN_PIXELS, "", "conv0", 3, scaled(to->config, 16), 1, PACE__ACT_RELU);
    char block[32];

    for (unsigned stage = 0; stage < 3; stage++) {
        for (unsigned i = 0; i < 3; i++) {
            snprintf(block, sizeof block, "stage%u.block%u.", stage + 1, i);
            last = add_residual(to, last, block, scaled(to->config, 16u << stage), stage && i == 0 ? 2 : 1);
        }
    }
}

static void make_mobilenet_v1(builder *to)
{
    static const uint32_t channels[13] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
    static const uint8_t stride[13] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    uint32_t last =
        add_conv(to, PACE__CNN_PIXELS, "", "conv0", 3, scaled(to->config, 32), 2, PACE__ACT_RELU6);
    char name[32];

    for (unsigned i = 0; i < 13; i++) {
        snprintf(name, sizeof name, "dw%u", i + 1);
        last = add_depthwise(to, last, "", name, stride[i]);
        snprintf(name, sizeof name, "pw%u", i + 1);
        last = add_conv(to, last, "", name, 1, scaled(to->config, channels[i]), 1, PACE__ACT_RELU6);
    }
}

static uint32_t add_inverted(builder *to, uint32_t from, const char *block, uint32_t factor,
                             uint32_t channels, uint32_t stride)
{
    uint32_t wide = from;

    if (factor > 1)
        wide =
            add_conv(to, from, block, "expand", 1, factor * to->net->unit[from].channels, 1, PACE__ACT_RELU6);
    uint32_t depthwise = add_depthwise(to, wide, block, "depthwise", stride);
    uint32_t project = add_conv(to, depthwise, block, "project", 1, channels, 1, PACE__ACT_NONE);

    if (stride == 1 && same_shape(&to->net->unit[from], &to->net->unit[project]))
        to->net->unit[project].add = from;
    return project;
}

static void make_mobilenet_v2(builder *to)
{
    static const struct {
        uint8_t factor, blocks, stride;
        uint32_t channels;
    } rows[] = {{1, 1, 1, 16}, {6, 2, 2, 24},  {6, 3, 2, 32}, {6, 4, 2, 64},
                {6, 3, 1, 96}, {6, 3, 2, 160}, {6, 1, 1, 320}};
    uint32_t last =
        add_conv(to, PACE__CNN_PIXELS, "", "conv0", 3, scaled(to->config, 32), 2, PACE__ACT_RELU6);
    unsigned number = 0;
    char block[32];

    for (unsigned row = 0; row < sizeof rows / sizeof *rows; row++) {
        for (unsigned i = 0; i < rows[row].blocks; i++) {
            snprintf(block, sizeof block, "block%u.", number++);
            last = add_inverted(to, last, block, rows[row].factor, scaled(to->config, rows[row].channels),
                                i == 0 ? rows[row].stride : 1);
        }
    }
    add_conv(to, last, "", "last", 1, to->config->width < 1 ? 1280 : scaled(to->config, 1280), 1,
             PACE__ACT_RELU6);
}

/* --- the network --- */

static size_t filter_size(const pace__cnn_unit *unit)
{
    return (size_t)unit->kernel * unit->kernel * (unit->depthwise ? 1 : unit->in_channels);
}

static void place_values(pace__cnn_net *net)
{
    size_t weights = 0, stats = 0;

    for (uint32_t u = 0; u < net->units; u++) {
        pace__cnn_unit *unit = &net->unit[u];

        unit->weight_at = weights;
        unit->gamma_at = unit->weight_at + unit->channels * filter_size(unit);
        unit->beta_at = unit->gamma_at + unit->channels;
        weights = unit->beta_at + unit->channels;
        unit->mean_at = stats;
        unit->variance_at = unit->mean_at + unit->channels;
        stats = unit->variance_at + unit->channels;
    }
    net->head_weight_at = weights;
    net->head_bias_at = weights + (size_t)net->outputs * net->features;
    net->weights = net->head_bias_at + net->outputs;
    net->stats = stats;
}

static pace_status check_config(const pace__cnn_config *config, const pace_log *log)
{
    /* Nothing is left of smaller ones in front of the last convolutions. */
    uint32_t least = is_mobilenet(config) ? 32 : 4;

    assert(config->channels == 1 || config->channels == 3);
    assert(config->classes >= 2 && (config->classes == 2 || !config->one_logit));
    if (config->height < least || config->side < least)
        return pace_fail(log, PACE_USAGE,
                         "pictures of %" PRIu32 " x %" PRIu32
                         " pixels are too small for this network, which needs %" PRIu32 " x %" PRIu32,
                         config->height, config->side, least, least);
    if (!(config->width > 0 && config->width <= 100))
        return pace_fail(log, PACE_USAGE, "a network's width is a factor above 0, not %g",
                         (double)config->width);
    return PACE_OK;
}

static pace_status check_channels(const pace__cnn_config *config, const pace__cnn_net *net,
                                  const pace_log *log)
{
    for (uint32_t u = 0; u < net->units; u++) {
        if (net->unit[u].channels > CHANNELS_MAX)
            return pace_fail(log, PACE_USAGE,
                             "width %g gives %s %" PRIu32 " channels; at most %d are possible",
                             (double)config->width, net->unit[u].name, net->unit[u].channels, CHANNELS_MAX);
    }
    return PACE_OK;
}

pace_status pace__cnn_net_make(const pace__cnn_config *config, const pace_log *log, pace__cnn_net *net)
{
    static void (*const make[])(builder *) = {[PACE_ARCH_SMALL] = make_small,
                                              [PACE_ARCH_RESNET20] = make_resnet20,
                                              [PACE_ARCH_MOBILENET_V1] = make_mobilenet_v1,
                                              [PACE_ARCH_MOBILENET_V2] = make_mobilenet_v2};
    pace_status status = check_config(config, log);

    if (status)
        return status;
    assert(config->arch >= 0 && (size_t)config->arch < sizeof make / sizeof *make);
    net->units = 0;
    make[config->arch](&(builder){config, net});
    status = check_channels(config, net, log);
    if (status)
        return status;
    net->features = net->unit[net->units - 1].channels;
    net->outputs = config->one_logit ? 1 : config->classes;
    place_values(net);
    bool head_only = config->first_trained == net->units;

    assert(config->first_trained <= net->units);
    net->trained_at = head_only ? net->head_weight_at : net->unit[config->first_trained].weight_at;
    net->stats_trained_at = head_only ? net->stats : net->unit[config->first_trained].mean_at;
    return PACE_OK;
}

uint32_t pace__cnn_find_unit(const pace__cnn_net *net, const char *name)
{
    for (uint32_t u = 0; u < net->units; u++) {
        if (strcmp(net->unit[u].name, name) == 0)
            return u;
    }
    return strcmp(name, "head") == 0 ? net->units : UINT32_MAX;
}

/* --- tensors --- */

static void add_tensor(pace__cnn_tensor *tensors, unsigned *count, const char *unit, const char *name,
                       pace__cnn_tensor wish)
{
    pace__cnn_tensor *tensor = &tensors[(*count)++];

    *tensor = wish;
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", unit, name);
    tensor->size = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        tensor->size *= tensor->shape[i];
}

unsigned pace__cnn_tensors(const pace__cnn_net *net, pace__cnn_tensor *tensors)
{
    unsigned count = 0;

    for (uint32_t u = 0; u < net->units; u++) {
        const pace__cnn_unit *unit = &net->unit[u];
        uint64_t out = unit->channels, kernel = unit->kernel, in = unit->depthwise ? 1 : unit->in_channels;

        add_tensor(tensors, &count, unit->name, "weight",
                   (pace__cnn_tensor){
                       .rank = 4, .shape = {out, in, kernel, kernel}, .decays = true, .at = unit->weight_at});
        add_tensor(tensors, &count, unit->name, "gamma",
                   (pace__cnn_tensor){.rank = 1, .shape = {out}, .at = unit->gamma_at});
        add_tensor(tensors, &count, unit->name, "beta",
                   (pace__cnn_tensor){.rank = 1, .shape = {out}, .at = unit->beta_at});
        add_tensor(tensors, &count, unit->name, "mean",
                   (pace__cnn_tensor){.rank = 1, .shape = {out}, .stats = true, .at = unit->mean_at});
        add_tensor(tensors, &count, unit->name, "variance",
                   (pace__cnn_tensor){.rank = 1, .shape = {out}, .stats = true, .at = unit->variance_at});
    }
    add_tensor(
        tensors, &count, "head", "weight",
        (pace__cnn_tensor){
            .rank = 2, .shape = {net->outputs, net->features}, .decays = true, .at = net->head_weight_at});
    add_tensor(tensors, &count, "head", "bias",
               (pace__cnn_tensor){.rank = 1, .shape = {net->outputs}, .at = net->head_bias_at});
    return count;
}

/* --- first values --- */

static void fill(float *values, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        values[i] = value;
}

/* The stream is that of the unit, so that a layer does not depend on those in front of it. */
static void init_unit(const pace__cnn_config *config, const pace__cnn_net *net, uint32_t u, float *weights,
                      float *stats)
{
    const pace__cnn_unit *unit = &net->unit[u];
    pace__random random = pace__draw(config->seed, PACE__DRAW_WEIGHTS, u);
    double outputs = (double)unit->kernel * unit->kernel * (unit->depthwise ? 1 : unit->channels);
    double deviation = sqrt(2 / outputs);
    bool silent = config->arch == PACE_ARCH_RESNET20 && unit->add != PACE__CNN_NOTHING;

    for (size_t i = unit->weight_at; i < unit->gamma_at; i++)
        weights[i] = (float)(deviation * pace__random_normal(&random));
    fill(weights + unit->gamma_at, unit->channels, silent ? 0 : 1);
    fill(weights + unit->beta_at, unit->channels, 0);
    fill(stats + unit->mean_at, unit->channels, 0);
    fill(stats + unit->variance_at, unit->channels, 1);
}

void pace__cnn_init(const pace__cnn_config *config, const pace__cnn_net *net, float *weights, float *stats)
{
    pace__random random = pace__draw(config->seed, PACE__DRAW_WEIGHTS, UINT32_MAX);
    double bound = 1 / sqrt(net->features);

    for (uint32_t u = 0; u < net->units; u++)
        init_unit(config, net, u, weights, stats);
    for (size_t i = net->head_weight_at; i < net->head_bias_at; i++)
        weights[i] = (float)(bound * (2 * pace__random_unit(&random) - 1));
    fill(weights + net->head_bias_at, net->outputs, 0);
}

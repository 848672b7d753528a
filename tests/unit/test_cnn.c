/* What a convolutional network is made of before anything is computed: shapes, counts, names, first values;
 * and the pieces that both implementations share: loss, dropout, augmentation. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/convnet/cnn.h"

#include "support.h"

static pace__cnn_config make_config(int arch, uint32_t side, uint32_t classes)
{
    return (pace__cnn_config){.arch = arch,
                              .width = 1,
                              .height = side,
                              .side = side,
                              .channels = 3,
                              .classes = classes,
                              .epsilon = 1e-5f,
                              .momentum = 0.1f,
                              .deviation = {1, 1, 1},
                              .weight = {1, 1},
                              .seed = 3};
}

static pace__cnn_net make_net(const pace__cnn_config *config)
{
    pace__cnn_net net;

    assert_ok(pace__cnn_net_make(config, &said_log, &net));
    return net;
}

static const pace__cnn_unit *unit_of(const pace__cnn_net *net, const char *name)
{
    uint32_t u = pace__cnn_find_unit(net, name);

    if (u >= net->units)
        fail_msg("no unit %s", name);
    return &net->unit[u];
}

static void assert_shape(const pace__cnn_net *net, const char *name, uint32_t channels, uint32_t side)
{
    const pace__cnn_unit *unit = unit_of(net, name);

    if (unit->channels != channels || unit->height != side || unit->width != side)
        fail_msg("%s is %u x %u x %u", name, unit->channels, unit->height, unit->width);
}

/* --- architectures --- */

static void knows_the_sizes_of_the_mobilenets(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V2, 224, 1000);
    pace__cnn_net net = make_net(&config);

    (void)state;
    /* Published: torchvision's mobilenet_v2. */
    assert_int_equal(net.weights, 3504872);
    assert_int_equal(net.units, 52);
    assert_shape(&net, "conv0", 32, 112);
    assert_shape(&net, "block0.project", 16, 112);
    assert_shape(&net, "block1.depthwise", 96, 56);
    assert_shape(&net, "block16.project", 320, 7);
    assert_shape(&net, "last", 1280, 7);
    /* Keras counts the running statistics, too. */
    assert_int_equal(net.weights + net.stats, 3538984);
    config.width = 1.4f;
    net = make_net(&config);
    assert_int_equal(net.weights + net.stats, 6156712);
    assert_int_equal(net.features, 1792);
    config.width = 0.35f; /* 32 x .35 is 11.2: 8 would be less than 90 % of it */
    net = make_net(&config);
    assert_shape(&net, "conv0", 16, 112);
    assert_shape(&net, "block15.project", 56, 7);
    assert_int_equal(net.features, 1280);

    /* Keras: MobileNet. */
    config = make_config(PACE_ARCH_MOBILENET_V1, 224, 1000);
    net = make_net(&config);
    assert_int_equal(net.weights + net.stats, 4253864);
    config.width = 0.25f;
    net = make_net(&config);
    assert_int_equal(net.weights + net.stats, 475544);
    assert_int_equal(net.units, 27);
    assert_shape(&net, "conv0", 8, 112);
    assert_shape(&net, "pw1", 16, 112);
    assert_shape(&net, "dw12", 128, 7);
    assert_shape(&net, "pw13", 256, 7);
}

static void counts_resnet20(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 32, 10);
    pace__cnn_net net = make_net(&config);
    size_t expected = 27 * 16 + 32, channels = 16;

    (void)state;
    for (size_t out = 16; out <= 64; out *= 2) {
        for (int block = 0; block < 3; block++) {
            expected += 9 * channels * out + 2 * out + 9 * out * out + 2 * out;
            expected += channels != out ? channels * out + 2 * out : 0;
            channels = out;
        }
    }
    assert_int_equal(net.weights, expected + 64 * 10 + 10);
    assert_int_equal(net.weights, 272474); /* 269,722 and the two shortcuts */
    assert_int_equal(net.units, 21);
    assert_shape(&net, "stage1.block2.conv2", 16, 32);
    assert_shape(&net, "stage2.block0.shortcut", 32, 16);
    assert_shape(&net, "stage3.block2.conv2", 64, 8);
    assert_int_equal(pace__cnn_find_unit(&net, "stage1.block0.shortcut"), UINT32_MAX);
    const pace__cnn_unit *conv2 = unit_of(&net, "stage2.block0.conv2");

    assert_string_equal(net.unit[conv2->add].name, "stage2.block0.shortcut");
    assert_string_equal(net.unit[conv2->from].name, "stage2.block0.conv1");
    assert_int_equal(net.unit[conv2->add].act, PACE__ACT_NONE);
    assert_int_equal(conv2->act, PACE__ACT_RELU);
}

static void counts_small(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 20, 2);

    (void)state;
    config.channels = 1;
    config.one_logit = true;
    config.height = 13;
    pace__cnn_net net = make_net(&config);

    assert_int_equal(net.weights, 9 * (32 + 32 * 64 + 64 * 64 + 64 * 128) + 2 * (32 + 64 + 64 + 128) + 129);
    assert_int_equal(net.outputs, 1);
    assert_int_equal(unit_of(&net, "conv4")->height, 4);
    assert_int_equal(unit_of(&net, "conv4")->width, 5);
    config.width = 0.05f; /* no layer without channels */
    net = make_net(&config);
    assert_int_equal(unit_of(&net, "conv1")->channels, 2);
    assert_int_equal(unit_of(&net, "conv4")->channels, 6);
}

/* Everything adds up: inputs come first and fit, additions have the same shape, tensors fill both arrays. */
static void check_net(const pace__cnn_config *config)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    pace__cnn_net net = make_net(config);
    unsigned count = pace__cnn_tensors(&net, tensors);
    size_t filled[2] = {0};

    for (uint32_t u = 0; u < net.units; u++) {
        const pace__cnn_unit *unit = &net.unit[u];

        assert_true(unit->from == PACE__CNN_PIXELS ? u == 0 : unit->from < u);
        assert_true(pace__cnn_find_unit(&net, unit->name) == u);
        if (unit->from != PACE__CNN_PIXELS)
            assert_int_equal(unit->in_channels, net.unit[unit->from].channels);
        if (unit->add != PACE__CNN_NOTHING) {
            assert_true(unit->add < u);
            assert_int_equal(unit->channels, net.unit[unit->add].channels);
            assert_int_equal(unit->height, net.unit[unit->add].height);
        }
        assert_int_equal((unit->in_height + unit->pad_top + unit->pad_bottom - unit->kernel) / unit->stride +
                             1,
                         unit->height);
    }
    for (unsigned t = 0; t < count; t++) {
        assert_int_equal(tensors[t].at, filled[tensors[t].stats]);
        filled[tensors[t].stats] += tensors[t].size;
        assert_int_equal(tensors[t].decays, strstr(tensors[t].name, ".weight") != NULL);
    }
    assert_int_equal(count, 5 * net.units + 2);
    assert_int_equal(filled[0], net.weights);
    assert_int_equal(filled[1], net.stats);
    assert_int_equal(pace__cnn_find_unit(&net, "head"), net.units);
    assert_int_equal(pace__cnn_find_unit(&net, "conv"), UINT32_MAX);
}

static void networks_add_up(void **state)
{
    (void)state;
    for (int arch = PACE_ARCH_SMALL; arch <= PACE_ARCH_MOBILENET_V2; arch++) {
        for (int same = 0; same < 2; same++) {
            pace__cnn_config config = make_config(arch, 33, 5);

            config.same = same;
            config.width = 0.3f;
            check_net(&config);
            config.height = 50;
            check_net(&config);
        }
    }
}

static void pads_as_tensorflow_does(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V1, 64, 5);

    (void)state;
    config.same = true;
    config.height = 33;
    pace__cnn_net net = make_net(&config);

    /* Stride 2: 64 columns need one more, behind; 33 rows one on each side. */
    assert_int_equal(net.unit[0].pad_left, 0);
    assert_int_equal(net.unit[0].pad_right, 1);
    assert_int_equal(net.unit[0].pad_top, 1);
    assert_int_equal(net.unit[0].pad_bottom, 1);
    assert_int_equal(net.unit[1].pad_left, 1); /* stride 1 */
    assert_int_equal(net.unit[2].pad_left, 0); /* a kernel of 1 */
    config.same = false;
    net = make_net(&config);
    assert_int_equal(net.unit[0].pad_left, 1);
    assert_int_equal(net.unit[2].pad_left, 0);
}

static void freezes_a_prefix(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V1, 32, 5);
    pace__cnn_net net = make_net(&config);

    (void)state;
    assert_int_equal(net.trained_at, 0);
    assert_int_equal(net.stats_trained_at, 0);
    config.first_trained = pace__cnn_find_unit(&net, "dw13");
    net = make_net(&config);
    assert_int_equal(net.trained_at, unit_of(&net, "dw13")->weight_at);
    assert_int_equal(net.stats_trained_at, unit_of(&net, "dw13")->mean_at);
    config.first_trained = pace__cnn_find_unit(&net, "head");
    net = make_net(&config);
    assert_int_equal(net.trained_at, net.head_weight_at);
    assert_int_equal(net.stats_trained_at, net.stats);
}

static void refuses_what_makes_no_sense(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V2, 31, 5);
    pace__cnn_net net;

    (void)state;
    assert_failed(pace__cnn_net_make(&config, &said_log, &net), PACE_USAGE, "31 x 31");
    config = make_config(PACE_ARCH_SMALL, 3, 5);
    assert_failed(pace__cnn_net_make(&config, &said_log, &net), PACE_USAGE, "too small");
    const float widths[] = {0, -1, NAN, INFINITY, 1e9f};

    config = make_config(PACE_ARCH_SMALL, 32, 5);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        config.width = widths[i];
        assert_failed(pace__cnn_net_make(&config, &said_log, &net), PACE_USAGE, "width");
    }
    config.width = 40;
    assert_failed(pace__cnn_net_make(&config, &said_log, &net), PACE_USAGE, "conv4 5120 channels");
}

/* --- first values --- */

static void assert_moments(const char *name, const float *values, size_t count, double mean, double deviation)
{
    double sum = 0, squares = 0, error = deviation / sqrt((double)count);

    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    }
    if (fabs(sum / (double)count - mean) > 5 * error ||
        fabs(sqrt(squares / (double)count) - deviation) > 5 * error)
        fail_msg("%s has mean %g, deviation %g", name, sum / (double)count, sqrt(squares / (double)count));
}

static void assert_all(const float *values, size_t count, float expected)
{
    for (size_t i = 0; i < count; i++)
        assert_true(values[i] == expected);
}

static void begins_as_told(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_RESNET20, 32, 10);
    pace__cnn_net net = make_net(&config);
    float *weights = tiny_alloc(net.weights * 4), *again = tiny_alloc(net.weights * 4);
    float *stats = tiny_alloc(net.stats * 4);

    (void)state;
    pace__cnn_init(&config, &net, weights, stats);
    for (uint32_t u = 0; u < net.units; u++) {
        const pace__cnn_unit *unit = &net.unit[u];

        assert_moments(unit->name, weights + unit->weight_at, unit->gamma_at - unit->weight_at, 0,
                       sqrt(2.0 / (unit->kernel * unit->kernel * unit->channels)));
        assert_all(weights + unit->gamma_at, unit->channels, unit->add == PACE__CNN_NOTHING ? 1 : 0);
        assert_all(weights + unit->beta_at, unit->channels, 0);
        assert_all(stats + unit->mean_at, unit->channels, 0);
        assert_all(stats + unit->variance_at, unit->channels, 1);
    }
    assert_moments("head", weights + net.head_weight_at, net.head_bias_at - net.head_weight_at, 0,
                   1 / sqrt(64.0) / sqrt(3.0));
    assert_all(weights + net.head_bias_at, net.outputs, 0);
    pace__cnn_init(&config, &net, again, stats);
    assert_memory_equal(weights, again, net.weights * 4);
    config.seed++;
    pace__cnn_init(&config, &net, again, stats);
    assert_memory_not_equal(weights, again, net.weights * 4);
    free(weights);
    free(again);
    free(stats);
}

static void begins_depthwise_as_told(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_MOBILENET_V2, 32, 10);
    pace__cnn_net net = make_net(&config);
    float *weights = tiny_alloc(net.weights * 4), *stats = tiny_alloc(net.stats * 4);
    const pace__cnn_unit *unit = unit_of(&net, "block5.depthwise"), *ends = unit_of(&net, "block5.project");

    (void)state;
    pace__cnn_init(&config, &net, weights, stats);
    assert_moments(unit->name, weights + unit->weight_at, unit->gamma_at - unit->weight_at, 0, sqrt(2.0 / 9));
    assert_true(ends->add != PACE__CNN_NOTHING);
    assert_all(weights + ends->gamma_at, ends->channels, 1);
    free(weights);
    free(stats);
}

/* --- loss --- */

static double loss_at(const pace__cnn_config *config, const double *logits, uint16_t label)
{
    double gradient[8];

    return pace__cnn_loss_exact(config, logits, label, gradient);
}

static void check_loss(const pace__cnn_config *config, uint16_t label)
{
    uint32_t outputs = config->one_logit ? 1 : config->classes;
    double logits[8] = {0.3, -1.7, 2.25, 0.5, -0.25}, gradient[8], step = 1e-5;
    float rounded[8], rounded_gradient[8];
    double loss = pace__cnn_loss_exact(config, logits, label, gradient);

    for (uint32_t o = 0; o < outputs; o++) {
        double centre = logits[o];

        rounded[o] = (float)centre;
        logits[o] = centre + step;
        double above = loss_at(config, logits, label);

        logits[o] = centre - step;
        assert_true(fabs((above - loss_at(config, logits, label)) / (2 * step) - gradient[o]) < 1e-8);
        logits[o] = centre;
    }
    assert_true(fabs(pace__cnn_loss(config, rounded, label, rounded_gradient) - loss) < 1e-6);
    for (uint32_t o = 0; o < outputs; o++)
        assert_true(fabs((double)rounded_gradient[o] - gradient[o]) < 1e-6);
}

static void losses_have_their_slopes(void **state)
{
    (void)state;
    for (uint32_t classes = 2; classes <= 5; classes += 3) {
        for (int one = 0; one <= (classes == 2); one++) {
            pace__cnn_config config = make_config(PACE_ARCH_SMALL, 32, classes);

            config.one_logit = one;
            config.weight[0] = 0.5f;
            config.weight[1] = 3;
            for (uint16_t label = 0; label < classes; label++) {
                config.smoothing = 0;
                check_loss(&config, label);
                config.smoothing = 0.2f;
                check_loss(&config, label);
            }
        }
    }
}

static void losses_are_the_known_ones(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 32, 4);
    float logits[4] = {0}, gradient[4];

    (void)state;
    assert_true(fabs(pace__cnn_loss(&config, logits, 2, gradient) - log(4)) < 1e-12);
    assert_true(gradient[2] == -0.75f && gradient[0] == 0.25f);
    config.smoothing = 0.4f; /* the targets are .1 .1 .7 .1 */
    logits[2] = 1;
    assert_true(fabs(pace__cnn_loss(&config, logits, 2, gradient) - (log(3 + exp(1)) - 0.7)) < 1e-7);
    config = make_config(PACE_ARCH_SMALL, 32, 2);
    config.one_logit = true;
    config.weight[1] = 3;
    assert_true(fabs(pace__cnn_loss(&config, logits, 1, gradient) - 3 * log(2)) < 1e-12);
    assert_true(gradient[0] == -1.5f);
    assert_true(fabs(pace__cnn_loss(&config, logits, 0, gradient) - log(2)) < 1e-12);
}

/* No overflow, wherever the logits are. */
static void losses_are_finite(void **state)
{
    const float extremes[] = {-3e38f, -1e4f, -90, 90, 1e4f, 3e38f};

    (void)state;
    for (int one = 0; one < 2; one++) {
        pace__cnn_config config = make_config(PACE_ARCH_SMALL, 32, 2);

        config.one_logit = one;
        config.smoothing = 0.1f;
        for (size_t i = 0; i < 36; i++) {
            float logits[2] = {extremes[i / 6], extremes[i % 6]}, gradient[2] = {0};

            for (uint16_t label = 0; label < 2; label++) {
                assert_true(isfinite(pace__cnn_loss(&config, logits, label, gradient)));
                assert_true(isfinite(gradient[0]) && isfinite(gradient[1]));
            }
        }
    }
}

/* --- dropout --- */

static void drops_its_part(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 32, 2);
    size_t kept = 0, repeated = 0, count = 200 * 500;

    (void)state;
    config.dropout = 0.3f;
    for (uint64_t place = 0; place < 200; place++) {
        for (uint32_t feature = 0; feature < 500; feature++) {
            bool keeps = pace__cnn_keeps(&config, place, feature);

            assert_int_equal(keeps, pace__cnn_keeps(&config, place, feature));
            kept += keeps;
            repeated += keeps == pace__cnn_keeps(&config, place + 1, feature);
        }
    }
    assert_true(fabs((double)kept / (double)count - 0.7) < 5 * sqrt(0.21 / (double)count));
    assert_true(fabs((double)repeated / (double)count - 0.58) < 0.02); /* .7^2 + .3^2 */
    config.dropout = 0;
    assert_true(pace__cnn_keeps(&config, 5, 7));
}

/* --- augmentation --- */

/* A picture whose pixels tell where they come from. */
static uint8_t *make_picture(const pace__cnn_config *config)
{
    uint8_t *picture = tiny_alloc((size_t)config->height * config->side * config->channels);

    for (uint32_t y = 0; y < config->height; y++) {
        for (uint32_t x = 0; x < config->side; x++) {
            for (uint32_t c = 0; c < config->channels; c++)
                picture[(y * config->side + x) * config->channels + c] = (uint8_t)(c == 0   ? x
                                                                                   : c == 1 ? y
                                                                                            : 77);
        }
    }
    return picture;
}

static int clamp(int value, int last)
{
    return value < 0 ? 0 : value > last ? last : value;
}

/* Is the result the picture, mirrored or not, moved by that much? */
static bool is_moved(const pace__cnn_config *config, const uint8_t *result, bool flip, int down, int across)
{
    for (uint32_t y = 0; y < config->height; y++) {
        for (uint32_t x = 0; x < config->side; x++) {
            const uint8_t *at = result + (y * config->side + x) * 3;
            int column = flip ? (int)(config->side - 1 - x) : (int)x;

            if (at[0] != clamp(column + across, (int)config->side - 1) ||
                at[1] != clamp((int)y + down, (int)config->height - 1) || at[2] != 77)
                return false;
        }
    }
    return true;
}

static void moves_and_mirrors(void **state)
{
    enum { CROP = 2, SPAN = 2 * CROP + 1, PLACES = 2000 };
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 24, 2);
    unsigned seen[2][SPAN][SPAN] = {0}, kinds = 0;

    (void)state;
    config.height = 17;
    config.flip = true;
    config.crop = CROP;
    uint8_t *picture = make_picture(&config), *result = make_picture(&config);

    for (uint64_t place = 0; place < PLACES; place++) {
        unsigned found = 0;

        pace__cnn_augment(&config, place, picture, result);
        for (int i = 0; i < 2 * SPAN * SPAN; i++) {
            int flip = i / (SPAN * SPAN), down = i / SPAN % SPAN, across = i % SPAN;

            if (is_moved(&config, result, flip, down - CROP, across - CROP)) {
                seen[flip][down][across]++;
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
    /* Each of the 50 ways comes about 40 times. */
    for (int i = 0; i < 2 * SPAN * SPAN; i++)
        kinds += (&seen[0][0][0])[i] >= 15 && (&seen[0][0][0])[i] <= 75;
    assert_int_equal(kinds, 2 * SPAN * SPAN);
    free(picture);
    free(result);
}

static void moves_further_than_the_picture(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 5, 2);
    uint8_t *picture = make_picture(&config), *result = make_picture(&config);
    bool all_left = false, all_right = false;

    (void)state;
    config.crop = 20;
    for (uint64_t place = 0; place < 200; place++) {
        pace__cnn_augment(&config, place, picture, result);
        all_left |= is_moved(&config, result, false, -20, -20);
        all_right |= is_moved(&config, result, false, 20, 20);
    }
    assert_true(all_left && all_right);
    free(picture);
    free(result);
}

static void nothing_wanted_changes_nothing(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 24, 2);
    uint8_t *picture = make_picture(&config), *result = tiny_alloc(24 * 24 * 3);

    (void)state;
    assert_false(pace__cnn_augments(&config));
    for (uint64_t place = 0; place < 20; place++) {
        pace__cnn_augment(&config, place, picture, result);
        assert_memory_equal(picture, result, 24 * 24 * 3);
    }
    config.crop = 1;
    assert_true(pace__cnn_augments(&config));
    config.crop = 0;
    config.flip = true;
    assert_true(pace__cnn_augments(&config));
    config.flip = false;
    config.colour = 0.1f;
    assert_true(pace__cnn_augments(&config));
    /* A function of place and seed. */
    uint8_t *again = tiny_alloc(24 * 24 * 3);

    pace__cnn_augment(&config, 5, picture, result);
    pace__cnn_augment(&config, 5, picture, again);
    assert_memory_equal(result, again, 24 * 24 * 3);
    pace__cnn_augment(&config, 6, picture, again);
    assert_memory_not_equal(result, again, 24 * 24 * 3);
    config.seed++;
    pace__cnn_augment(&config, 5, picture, again);
    assert_memory_not_equal(result, again, 24 * 24 * 3);
    free(picture);
    free(result);
    free(again);
}

static double mean_of(const uint8_t *bytes, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += bytes[i];
    return sum / (double)count;
}

static double spread_of(const uint8_t *bytes, size_t count)
{
    double sum = 0, mean = mean_of(bytes, count);

    for (size_t i = 0; i < count; i++)
        sum += (bytes[i] - mean) * (bytes[i] - mean);
    return sqrt(sum / (double)count);
}

/* How far the colours of a pixel lie apart, on average. */
static double colour_of(const uint8_t *bytes, size_t pixels)
{
    double sum = 0;

    for (size_t i = 0; i < pixels; i++)
        sum += abs(bytes[3 * i] - bytes[3 * i + 2]);
    return sum / (double)pixels;
}

static void widen(double value, double range[2])
{
    range[0] = fmin(range[0], value);
    range[1] = fmax(range[1], value);
}

/* The mean moves with brightness alone, the spread with contrast, too, the distance of colours with all
 * three; each over the whole of its range and not beyond it. */
static void colours_vary_as_told(void **state)
{
    enum { SIDE = 24, PIXELS = SIDE * SIDE };
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, SIDE, 2);
    uint8_t picture[PIXELS * 3], result[PIXELS * 3];
    double brightness[2] = {9, 0}, contrast[2] = {9, 0}, saturation[2] = {9, 0};
    pace__random random = pace__random_at(11, 0);

    (void)state;
    config.colour = 0.2f;
    for (int i = 0; i < PIXELS; i++) { /* away from the ends, so that nothing is cut */
        int grey = 90 + (int)pace__random_below(&random, 50);

        picture[3 * i] = (uint8_t)(grey + 20);
        picture[3 * i + 1] = (uint8_t)grey;
        picture[3 * i + 2] = (uint8_t)(grey - 20);
    }
    for (uint64_t place = 0; place < 300; place++) {
        pace__cnn_augment(&config, place, picture, result);
        double mean = mean_of(result, sizeof result) / mean_of(picture, sizeof picture);
        uint8_t greens[2][PIXELS];

        for (int i = 0; i < PIXELS; i++) {
            greens[0][i] = picture[3 * i + 1];
            greens[1][i] = result[3 * i + 1];
        }
        double spread = spread_of(greens[1], PIXELS) / spread_of(greens[0], PIXELS);

        widen(mean, brightness);
        widen(spread / mean, contrast);
        widen(colour_of(result, PIXELS) / colour_of(picture, PIXELS) / spread, saturation);
    }
    const double *ranges[] = {brightness, contrast, saturation};

    for (int i = 0; i < 3; i++) {
        if (!(ranges[i][0] > 0.77 && ranges[i][0] < 0.83 && ranges[i][1] > 1.17 && ranges[i][1] < 1.23))
            fail_msg("range %d is %g .. %g", i, ranges[i][0], ranges[i][1]);
    }
}

static void grey_pictures_have_no_saturation(void **state)
{
    pace__cnn_config config = make_config(PACE_ARCH_SMALL, 16, 2);
    uint8_t picture[256], result[256];

    (void)state;
    config.channels = 1;
    config.colour = 0.5f;
    config.flip = true;
    config.crop = 3;
    for (int i = 0; i < 256; i++)
        picture[i] = 100;
    for (uint64_t place = 0; place < 50; place++) {
        pace__cnn_augment(&config, place, picture, result);
        for (int i = 1; i < 256; i++)
            assert_int_equal(result[i], result[0]); /* contrast has nothing to stretch */
        assert_in_range(result[0], 50, 150);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_sizes_of_the_mobilenets),
        cmocka_unit_test(counts_resnet20),
        cmocka_unit_test(counts_small),
        cmocka_unit_test(networks_add_up),
        cmocka_unit_test(pads_as_tensorflow_does),
        cmocka_unit_test(freezes_a_prefix),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(begins_as_told),
        cmocka_unit_test(begins_depthwise_as_told),
        cmocka_unit_test(losses_have_their_slopes),
        cmocka_unit_test(losses_are_the_known_ones),
        cmocka_unit_test(losses_are_finite),
        cmocka_unit_test(drops_its_part),
        cmocka_unit_test(moves_and_mirrors),
        cmocka_unit_test(moves_further_than_the_picture),
        cmocka_unit_test(nothing_wanted_changes_nothing),
        cmocka_unit_test(colours_vary_as_told),
        cmocka_unit_test(grey_pictures_have_no_saturation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

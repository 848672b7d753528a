#include "model/cnn/pretrained_internal.h"

#include <stdio.h>
#include <string.h>

/* Tensors of a unit, in the order of pace__cnn_tensors. */
enum { WEIGHT, GAMMA, BETA, MEAN, VARIANCE, TENSORS };

#define PREFIX_BYTES 64

/* What stands in front of the names of a unit's convolution and batch norm. */
typedef struct prefixes {
    char conv[PREFIX_BYTES], norm[PREFIX_BYTES];
} prefixes;

const char *pace__names_title(pace__names names)
{
    static const char *const titles[] = {"paceline", "torchvision", "timm", "keras", "resnet", "name map"};

    return titles[names];
}

const char *pace__names_mark(pace__names names, int arch)
{
    static const struct {
        pace__names names;
        int arch;
        const char *tensor;
    } marks[] = {{PACE__NAMES_TORCHVISION, PACE_ARCH_MOBILENET_V2, "features.1.conv.0.0.weight"},
                 {PACE__NAMES_TIMM, PACE_ARCH_MOBILENET_V2, "blocks.1.0.conv_pwl.weight"},
                 {PACE__NAMES_TIMM, PACE_ARCH_MOBILENET_V1, "blocks.1.0.conv_dw.weight"},
                 {PACE__NAMES_KERAS, PACE_ARCH_MOBILENET_V1, "conv_pw_1/kernel"},
                 {PACE__NAMES_KERAS, PACE_ARCH_MOBILENET_V2, "expanded_conv_project/kernel"},
                 {PACE__NAMES_RESNET, PACE_ARCH_RESNET20, "layer1.0.conv1.weight"}};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (marks[i].names == names && marks[i].arch == arch)
            return marks[i].tensor;
    }
    return NULL;
}

/* --- units --- */

/* What a unit of ours is: its place in the name, and which of a block's. */
typedef struct place {
    unsigned block, stage;
    const char *part; /* behind the last point: "expand"; or the whole name */
} place;

static place place_of(const pace__cnn_unit *unit)
{
    const char *point = strrchr(unit->name, '.');
    place at = {.part = point ? point + 1 : unit->name};

    if (sscanf(unit->name, "stage%u.block%u.", &at.stage, &at.block) != 2 &&
        sscanf(unit->name, "block%u.", &at.block) != 1 && sscanf(unit->name, "dw%u", &at.block) != 1)
        sscanf(unit->name, "pw%u", &at.block);
    return at;
}

static bool is(const place *at, const char *part)
{
    return strcmp(at->part, part) == 0;
}

static void put(prefixes *to, const char *block, const char *conv, const char *norm)
{
    snprintf(to->conv, PREFIX_BYTES, "%s%s", block, conv);
    snprintf(to->norm, PREFIX_BYTES, "%s%s", block, norm);
}

/* mobilenet_v2: features.B.conv.N; the block that does not expand begins one place earlier. */
static bool torchvision(const pace__cnn_unit *unit, prefixes *to)
{
    place at = place_of(unit);
    char block[PREFIX_BYTES / 2], digits[16], norm[16];
    bool expands = at.block > 0;

    if (is(&at, "conv0") || is(&at, "last")) {
        put(to, is(&at, "last") ? "features.18." : "features.0.", "0", "1");
        return true;
    }
    snprintf(block, sizeof block, "features.%u.conv.", at.block + 1);
    if (is(&at, "project")) { /* without an activation it is not wrapped */
        snprintf(digits, sizeof digits, "%d", 1 + expands);
        snprintf(norm, sizeof norm, "%d", 2 + expands);
    } else {
        int number = is(&at, "depthwise") && expands;

        snprintf(digits, sizeof digits, "%d.0", number);
        snprintf(norm, sizeof norm, "%d.1", number);
    }
    put(to, block, digits, norm);
    return true;
}

/* blocks.S.B: blocks counted within stages, of which each architecture has its own. */
static bool timm(const pace__cnn_unit *unit, prefixes *to)
{
    static const unsigned of_v1[] = {1, 2, 2, 6, 2, 0}, of_v2[] = {1, 2, 3, 4, 3, 3, 1, 0};
    place at = place_of(unit);
    char block[PREFIX_BYTES / 2];
    bool v1 = unit->name[0] == 'd' || unit->name[0] == 'p';
    const unsigned *stages = v1 ? of_v1 : of_v2;
    unsigned stage = 0, number = v1 ? at.block - 1 : at.block;
    bool expands = !v1 && at.block > 0;

    if (is(&at, "conv0") || is(&at, "last")) {
        put(to, "", is(&at, "last") ? "conv_head" : "conv_stem", is(&at, "last") ? "bn2" : "bn1");
        return true;
    }
    for (; stages[stage] && number >= stages[stage]; stage++)
        number -= stages[stage];
    snprintf(block, sizeof block, "blocks.%u.%u.", stage, number);
    if (is(&at, "expand"))
        put(to, block, "conv_pw", "bn1");
    else if (is(&at, "depthwise") || unit->name[0] == 'd')
        put(to, block, "conv_dw", expands ? "bn2" : "bn1");
    else
        put(to, block, expands ? "conv_pwl" : "conv_pw", expands ? "bn3" : "bn2");
    return true;
}

static bool keras(const pace__cnn_net *net, const pace__cnn_unit *unit, prefixes *to)
{
    place at = place_of(unit);
    char block[PREFIX_BYTES / 2], norm[PREFIX_BYTES / 2];
    bool v1 = strcmp(net->unit[1].name, "dw1") == 0;

    if (is(&at, "conv0")) {
        put(to, "", v1 ? "conv1" : "Conv1", v1 ? "conv1_bn" : "bn_Conv1");
    } else if (is(&at, "last")) {
        put(to, "", "Conv_1", "Conv_1_bn");
    } else if (v1) {
        snprintf(block, sizeof block, "conv_%.2s_%u", unit->name, at.block);
        put(to, block, "", "_bn");
    } else {
        snprintf(block, sizeof block, "block_%u_", at.block);
        snprintf(norm, sizeof norm, "%s_BN", at.part);
        put(to, at.block ? block : "expanded_conv_", at.part, norm);
    }
    return true;
}

/* Shortcuts are called in two ways. */
static bool resnet(const pace__cnn_unit *unit, unsigned variant, prefixes *to)
{
    place at = place_of(unit);
    char block[PREFIX_BYTES / 2];

    if (is(&at, "conv0")) {
        put(to, "", "conv1", "bn1");
        return variant == 0;
    }
    snprintf(block, sizeof block, "layer%u.%u.", at.stage, at.block);
    if (is(&at, "shortcut")) {
        put(to, block, variant ? "shortcut.0" : "downsample.0", variant ? "shortcut.1" : "downsample.1");
        return variant < 2;
    }
    put(to, block, at.part, is(&at, "conv1") ? "bn1" : "bn2");
    return variant == 0;
}

static bool find_prefixes(pace__names names, const pace__cnn_net *net, const pace__cnn_unit *unit,
                          unsigned variant, prefixes *to)
{
    bool is_resnet = strncmp(net->unit[1].name, "stage", 5) == 0;
    bool v1 = strcmp(net->unit[1].name, "dw1") == 0, v2 = strncmp(net->unit[1].name, "block0", 6) == 0;

    if (names == PACE__NAMES_RESNET)
        return is_resnet && resnet(unit, variant, to);
    if (variant > 0)
        return false;
    if (names == PACE__NAMES_TORCHVISION)
        return v2 && torchvision(unit, to);
    if (names == PACE__NAMES_TIMM)
        return (v1 || v2) && timm(unit, to);
    return names == PACE__NAMES_KERAS && (v1 || v2) && keras(net, unit, to);
}

/* --- tensors --- */

static bool find_head(pace__names names, bool bias, unsigned variant, char *name)
{
    static const char *const heads[][3] = {[PACE__NAMES_TORCHVISION] = {"classifier.1"},
                                           [PACE__NAMES_TIMM] = {"classifier"},
                                           [PACE__NAMES_KERAS] = {"conv_preds", "predictions", "Logits"},
                                           [PACE__NAMES_RESNET] = {"fc", "linear"}};

    if (names >= PACE__NAMES_UNKNOWN || variant >= 3 || !heads[names][variant])
        return false;
    const char *weight = names == PACE__NAMES_KERAS ? "/kernel" : ".weight";
    const char *end = !bias ? weight : names == PACE__NAMES_KERAS ? "/bias" : ".bias";

    snprintf(name, PACE__FOREIGN_NAME_BYTES, "%s%s", heads[names][variant], end);
    return true;
}

bool pace__names_find(pace__names names, const pace__cnn_net *net, unsigned tensor, unsigned variant,
                      char name[PACE__FOREIGN_NAME_BYTES])
{
    static const char *const torch[] = {".weight", ".weight", ".bias", ".running_mean", ".running_var"};
    static const char *const tensorflow[] = {"/kernel", "/gamma", "/beta", "/moving_mean",
                                             "/moving_variance"};
    unsigned kind = tensor % TENSORS, number = tensor / TENSORS;
    prefixes found;

    if (names == PACE__NAMES_OWN || names == PACE__NAMES_UNKNOWN)
        return false;
    if (number >= net->units)
        return find_head(names, kind == 1, variant, name);
    const pace__cnn_unit *unit = &net->unit[number];

    bool depthwise = names == PACE__NAMES_KERAS && kind == WEIGHT && unit->depthwise;

    if (!find_prefixes(names, net, unit, depthwise && variant == 1 ? 0 : variant, &found))
        return false;
    const char *end = names == PACE__NAMES_KERAS ? tensorflow[kind] : torch[kind];

    if (depthwise && variant == 0) /* Keras 3 has all kernels called so */
        end = "/depthwise_kernel";
    snprintf(name, PACE__FOREIGN_NAME_BYTES, "%s%s", kind == WEIGHT ? found.conv : found.norm, end);
    return true;
}

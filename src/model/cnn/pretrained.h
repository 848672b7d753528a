/*
 * pretrained.h - weights of a network that others have trained, or an earlier run, to begin with.
 *
 * The file is safetensors; how its tensors are called and laid out is found by looking:
 *
 *     paceline      model.safetensors of a run (its "config" tells all)
 *     torchvision   features.0.0.weight, features.1.conv.0.0.weight ... (mobilenet_v2), classifier.1.weight
 *     timm          conv_stem.weight, blocks.1.0.conv_pw.weight, bn1.running_mean ... (mobilenetv2_*,
 *                   mobilenetv1_*), classifier.weight
 *     keras         conv1/kernel, conv_dw_1/depthwise_kernel, conv_pw_1_bn/gamma ... (MobileNet), and
 *                   Conv1/kernel, expanded_conv_project/kernel, block_1_expand/kernel ... (MobileNetV2);
 *                   since Keras 3, depthwise kernels are called kernel, too
 *     resnet20 of common PyTorch scripts (conv1, bn1, layer1.0.conv1, layer1.0.bn1 ..., fc or linear)
 *
 * PyTorch's convolutions are (out, in, height, width); TensorFlow's (height, width, in, out), depthwise ones
 * (height, width, channels, 1), dense ones (in, out). Layout follows the naming, or the metadata where they
 * say so. With --name-map FILE names are looked up there first: lines "OURS THEIRS", both tensor names.
 *
 * What the file's metadata tell (paceline's own, or "preprocess": "x/127.5-1, RGB"; "bn_eps"; "padding":
 * "SAME") goes into the configuration. Without metadata: TensorFlow layouts have SAME padding, epsilon .001
 * and x / 127.5 - 1; PyTorch's epsilon 1e-5 and ImageNet's means and deviations (but timm's mobilenetv1_*
 * x / 127.5 - 1).
 */
#ifndef MODEL_CNN_PRETRAINED_H
#define MODEL_CNN_PRETRAINED_H

#include "files/sha256.h"
#include "math/dataset.h"
#include "model/convnet/cnn.h"

typedef struct pace__pretrained pace__pretrained;

/* Reads names and shapes. `map`: a name map's path, which stays in place, or NULL; `describe` understands the
 * encoding of an earlier run. */
pace_status pace__pretrained_open(const char *path, const char *map, pace__describe_fn *describe,
                                  const pace_log *log, pace__pretrained **file);
void pace__pretrained_close(pace__pretrained *file); /* NULL is allowed */

/* The class names of the data (pace__class_names_checksum). A file that has others keeps its head to itself;
 * not called: whoever has the shape fits. */
void pace__pretrained_expect(pace__pretrained *file, uint64_t class_names);

/* What it is called: "paceline", "torchvision", "timm", "keras", "resnet" or "name map". */
const char *pace__pretrained_layout(const pace__pretrained *file);
/* Of the whole file; with a name map, of that and the map. */
pace_status pace__pretrained_sha256(const pace__pretrained *file, char sha256[PACE__SHA256_HEX]);

/* Sets what the file decides: same, epsilon, mean, deviation (of grey pictures: the mean of the three). */
pace_status pace__pretrained_settle(const pace__pretrained *file, pace__cnn_config *config);

typedef struct pace__pretrained_report {
    unsigned tensors; /* taken from the file */
    bool head;        /* the head, too: it has as many outputs */
    bool grey;        /* the first convolution's weights of three colours were added up */
    char missing[64]; /* the first tensor that the file has not; only of layers that are trained */
    unsigned missing_count;
} pace__pretrained_report;

/*
 * Takes the place of first values. Every unit below config->first_trained must be in the file. A unit's
 * tensor that is there must have the shape, trained or not: the wrong --width is no reason to begin with half
 * a network (PACE_BAD_DATA names the tensor, its shape and the file's). The head is taken if its shape fits
 * and the file's class names, if it has some, are the same or unknown; else it stays as it is. A file of
 * which no tensor is one of the network's is PACE_BAD_DATA with what it seems to be. Values must be finite,
 * variances not below 0.
 */
pace_status pace__pretrained_load(const pace__pretrained *file, const pace__cnn_config *config,
                                  const pace__cnn_net *net, float *weights, float *stats,
                                  pace__pretrained_report *report);

#endif

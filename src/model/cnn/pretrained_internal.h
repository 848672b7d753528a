/* pretrained_internal.h - what files of pretrained weights call their tensors, and how those lie in them.
 * Pure. */
#ifndef MODEL_CNN_PRETRAINED_INTERNAL_H
#define MODEL_CNN_PRETRAINED_INTERNAL_H

#include "data/tensors/safetensors.h"
#include "model/convnet/cnn.h"

typedef enum pace__names {
    PACE__NAMES_OWN,
    PACE__NAMES_TORCHVISION,
    PACE__NAMES_TIMM,
    PACE__NAMES_KERAS,
    PACE__NAMES_RESNET,
    PACE__NAMES_UNKNOWN /* only a name map helps */
} pace__names;

/* "torchvision"; of unknown ones "name map". */
const char *pace__names_title(pace__names names);

#define PACE__FOREIGN_NAME_BYTES 96

/*
 * What tensor number `tensor` of pace__cnn_tensors is called. Some have several names: variants are tried
 * from 0 on. False: there is none with that number, or the network has no such names.
 */
bool pace__names_find(pace__names names, const pace__cnn_net *net, unsigned tensor, unsigned variant,
                      char name[PACE__FOREIGN_NAME_BYTES]);

/* A tensor that a file with these names has, if it is a network of `arch`; NULL: these names do not have it.
 * */
const char *pace__names_mark(pace__names names, int arch);

/* Tensors of a unit, in the order of pace__cnn_tensors; a head's are the first and second behind them. */
#define PACE__UNIT_TENSORS 5

/* A weight of ours as (out, in, kernel, kernel); a head has a kernel of 1, a vector only outputs. */
typedef struct pace__wanted {
    const pace__cnn_tensor *tensor;
    uint64_t out, in, kernel;
    bool depthwise, dense;
    bool adds_colours; /* of grey pictures: the file's has three inputs */
} pace__wanted;

pace__wanted pace__wanted_of(const pace__cnn_net *net, const pace__cnn_tensor *tensor, unsigned number);

/* The shape that it has in PyTorch or in TensorFlow; returns the rank. */
unsigned pace__wanted_shape(bool tensorflow, const pace__wanted *of, uint64_t shape[4]);
bool pace__wanted_fits(bool tensorflow, const pace__wanted *of, const pace__tensor_info *tensor);
/* From the file's order to ours. */
void pace__wanted_place(bool tensorflow, const pace__wanted *of, const float *from, float *to);

#endif

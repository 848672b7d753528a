/*
 * cnn_file.h - the file of a convolutional network, model.safetensors.
 *
 *     the tensors of pace__cnn_tensors, F32, by their names (weights and running statistics)
 *     classes        U8 (bytes)   the text of class_names.h
 * and in the metadata "model" = "cnn"; "encoding", how pictures become pixels; and "config", the network:
 *
 *     {"arch":"mobilenet-v1","width":0.25,"head":"softmax","padding":"same","epsilon":0.001,
 *      "mean":[127.5,127.5,127.5],"deviation":[127.5,127.5,127.5]}
 *
 * It holds what logits depend on, and nothing about when, where or how the model was trained: equal models
 * are equal bytes.
 */
#ifndef MODEL_CNN_CNN_FILE_H
#define MODEL_CNN_CNN_FILE_H

#include "model/convnet/cnn.h"
#include "model/file.h"

typedef struct pace__cnn_file {
    pace__cnn_config config; /* nothing is frozen; the settings of training: none, weights of 1 */
    pace__cnn_net net;
    float *weights, *stats; /* of everything; `weights` owns both, `stats` is right behind */
} pace__cnn_file;

pace_status pace__cnn_file_write(const char *path, const pace__cnn_config *config, const pace__origin *origin,
                                 const float *weights, const float *stats, char sha256[PACE__SHA256_HEX],
                                 const pace_log *log);

/* Checks that all tensors are there, fit the network and are finite, variances not below 0. `data` is what its
 * encoding says. */
pace_status pace__cnn_file_read(const pace__model_file *file, const pace__dataset *data,
                                pace__cnn_file *model, const pace_log *log);
void pace__cnn_file_release(pace__cnn_file *model);

#endif

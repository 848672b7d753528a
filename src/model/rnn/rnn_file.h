/*
 * rnn_file.h - the file of a recurrent network, model.safetensors.
 *
 *     embedding.weight  F32 (words, embed)
 *     the tensors of pace__rnn_tensors, F32, by their names: those of PyTorch's modules
 *     vocabulary        U8 (bytes)   the text of vocabulary.h
 * and in the metadata "model" = "rnn"; "encoding", how texts become ids; and "config", the network:
 *
 *     {"cell":"lstm","layers":1,"both":false,"embed":50,"hidden":64,"dense":0,"pooling":"last","loss":"bce"}
 *
 * It holds what logits depend on, and nothing about when, where or how the model was trained: equal models are
 * equal bytes. The loss is there for people, whom inspect shows it. No score depends on it: predict makes
 * 1 / (1 + exp(-logit)) of every logit, although one of a model that was trained with hinge is no log-odds.
 */
#ifndef MODEL_RNN_RNN_FILE_H
#define MODEL_RNN_RNN_FILE_H

#include "model/file.h"
#include "model/rnn/rnn.h"

typedef struct pace__rnn_file {
    pace__rnn_config config; /* words and length are the encoding's; the settings of training: none, and
                                weights of 1 */
    /* All weights in one piece, as pace__model_use takes them: */
    float *embedding; /* (words, embed), owns the rest, too */
    float *dense;     /* pace__rnn_dense, right behind it */
} pace__rnn_file;

/* A word's embedding begins at every stride-th float. */
pace_status pace__rnn_file_write(const char *path, const pace__rnn_config *config, const pace__origin *origin,
                                 const float *embedding, size_t stride, const float *dense,
                                 char sha256[PACE__SHA256_HEX], const pace_log *log);

/* Checks that all tensors are there, fit the network and are finite. `data` is what its encoding says. */
pace_status pace__rnn_file_read(const pace__model_file *file, const pace__dataset *data,
                                pace__rnn_file *model, const pace_log *log);
void pace__rnn_file_release(pace__rnn_file *model);

#endif

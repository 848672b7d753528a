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
 * It holds what logits depend on (and the loss, which says whether a logit is one of a probability), nothing
 * about when, where or how the model was trained: equal models are equal bytes.
 */
#ifndef MODEL_RNN_FILE_H
#define MODEL_RNN_FILE_H

#include "base/sha256.h"
#include "data/vocabulary.h"
#include "model/rnn.h"

typedef struct pace__rnn_file {
    pace__encoding encoding;
    pace__rnn_config config; /* words and length are the encoding's; the settings of training: none, and
                                weights of 1 */
    pace__vocabulary *vocabulary;
    float *embedding; /* (words, embed) */
    float *dense;     /* pace__rnn_dense */
} pace__rnn_file;

/* A word's embedding begins at every stride-th float; `vocabulary` is the encoding's, as text. */
pace_status pace__rnn_file_write(const char *path, const pace__rnn_config *config,
                                 const pace__encoding *encoding, const char *vocabulary,
                                 size_t vocabulary_size, const float *embedding, size_t stride,
                                 const float *dense, char sha256[PACE__SHA256_HEX], const pace_log *log);

/* RUN/model.safetensors, or the file itself. Checks that all tensors are there, fit the network and are
 * finite, and that the vocabulary is the encoding's. */
pace_status pace__rnn_file_read(const char *path, pace__rnn_file *model, const pace_log *log);
void pace__rnn_file_release(pace__rnn_file *model);

#endif

/*
 * linear_file.h - the file of a linear model, model.safetensors: weights by original id.
 *
 *     ids     U64 (n)  original ids, rising: every id that occurs in the training rows, and those of the model that it
 *                      began with
 *     weight  F32 (n)
 *     bias    F32 (1)
 * and in the metadata "model" = "logreg" and "encoding", how raw rows become ids. Whatever is not listed has
 * weight 0. It holds nothing about when, where or how often the model was trained: equal models are equal
 * bytes.
 *
 * Of a model on texts the ids are those of words and n-grams (model/linear/ngrams.h), and only those with a weight
 * are listed. It has besides
 *     ngrams      U32 (n, ngram)   the words of heavy n-grams, if any are known (model/linear/phrases.h)
 *     vocabulary  U8 (bytes)       the text of vocabulary.h
 * and in the metadata "ngram", the number of words that a feature has at most.
 */
#ifndef MODEL_LINEAR_LINEAR_FILE_H
#define MODEL_LINEAR_LINEAR_FILE_H

#include "model/file.h"
#include "model/linear/phrases.h"

#include <stddef.h>

typedef struct pace__linear {
    uint32_t count;
    uint64_t *ids; /* rising */
    float *weight; /* with room for two more */
    float bias;
    unsigned ngram; /* of texts; 0: no texts */
    pace__phrases phrases;
} pace__linear;

/* The weights (every stride-th float) of origin->original, in any order, `count` of them, and what the origin carries
 * along. Needs 8 bytes per id besides, and with these 16. */
pace_status pace__linear_write(const char *path, const pace__origin *origin, const float *weight,
                               size_t stride, uint32_t count, float bias, char sha256[PACE__SHA256_HEX],
                               const pace_log *log);

/* A model on texts: the weights of all pace__ngram_ids, `count` of them, by id; and phrases, if there are any. */
pace_status pace__linear_write_text(const char *path, const pace__origin *origin, unsigned ngram,
                                    const float *weight, uint32_t count, float bias,
                                    const pace__phrases *phrases, char sha256[PACE__SHA256_HEX],
                                    const pace_log *log);

/* Checks that ids rise and lie in the id space, that weights are finite and phrases are some. Outputs are set on success. */
pace_status pace__linear_read(const pace__model_file *file, const pace__dataset *data, pace__linear *model,
                              const pace_log *log);
void pace__linear_release(pace__linear *model);

#endif

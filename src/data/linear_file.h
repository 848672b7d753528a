/*
 * linear_file.h - the file of a linear model, model.safetensors: weights by original id.
 *
 *     ids     U64 (n)  original ids, rising: every id that occurs in the training rows
 *     weight  F32 (n)
 *     bias    F32 (1)
 * and in the metadata "model" = "logreg" and "encoding", how raw rows become ids. Whatever is not listed has
 * weight 0. It holds nothing about when, where or how often the model was trained: equal models are equal
 * bytes.
 */
#ifndef DATA_LINEAR_FILE_H
#define DATA_LINEAR_FILE_H

#include "base/sha256.h"
#include "data/encoding.h"

#include <stddef.h>

typedef struct pace__linear {
    pace__encoding encoding;
    uint32_t count;
    uint64_t *ids; /* rising */
    float *weight;
    float bias;
    uint32_t *index; /* where to start looking: see pace__linear_find */
    unsigned shift;
} pace__linear;

/* `original` and `weight` (every stride-th float) in any order, `count` of them. Needs 8 bytes per id
 * besides. */
pace_status pace__linear_write(const char *path, const pace__encoding *encoding, const uint64_t *original,
                               const float *weight, size_t stride, uint32_t count, float bias,
                               char sha256[PACE__SHA256_HEX], const pace_log *log);

/* RUN/model.safetensors, or the file itself. Checks that ids rise and lie in the id space, and that weights
 * are finite. */
pace_status pace__linear_read(const char *path, pace__linear *model, const pace_log *log);
void pace__linear_release(pace__linear *model);

/* The weight of an id, 0 if it is not listed. */
float pace__linear_find(const pace__linear *model, uint64_t id);

#endif

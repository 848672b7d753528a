/*
 * fm_file.h - the file of a factorization machine, model.safetensors: parameters by original id.
 *
 *     ids      U64 (n)           original ids, rising: every id that occurs in the training rows, and those of the
 *                                model that it began with
 *     weight   F32 (n)
 *     factors  F32 (n, factors)
 *     bias     F32 (1)
 * and in the metadata "model" = "fm"; "encoding", how raw rows become ids; and "config", {"factors":8}.
 */
#ifndef MODEL_FM_FM_FILE_H
#define MODEL_FM_FM_FILE_H

#include "model/file.h"

typedef struct pace__fm_file {
    unsigned factors;
    uint32_t count;
    uint64_t *ids;  /* rising */
    float *weights; /* (count + 2, 1 + factors): those of the ids, the bias, and a row of zeros */
} pace__fm_file;

/* Rows of 1 + factors floats: those of origin->original, in any order, `count` of them, then the bias; and what the
 * origin carries along. */
pace_status pace__fm_file_write(const char *path, const pace__origin *origin, const float *weights,
                                unsigned factors, uint32_t count, char sha256[PACE__SHA256_HEX],
                                const pace_log *log);

/* Checks that ids rise and lie in the id space, and that everything is finite. Outputs are set on success. */
pace_status pace__fm_file_read(const pace__model_file *file, const pace__dataset *data, pace__fm_file *model,
                               const pace_log *log);
void pace__fm_file_release(pace__fm_file *model);

#endif

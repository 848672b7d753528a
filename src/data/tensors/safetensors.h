/*
 * safetensors.h - named arrays in one file, in the format that Hugging Face's `safetensors` reads and writes.
 *
 * A file is: the header's length (8 bytes, little-endian); the header, JSON that gives each tensor's type,
 * shape and place and, under "__metadata__", pairs of texts; then the tensors' bytes, little-endian,
 * row-major, one behind the other.
 *
 * Writing. The bytes depend on nothing but the arguments: tensors and metadata stand in the order given, and
 * the header is padded with spaces so that the data begins at a multiple of 8. The file appears complete or
 * not at all.
 *
 *     pace__tensor tensors[] = {
 *         {"weight", PACE__F32, 1, {features}, .fill = copy_weights, .user = model},
 *         {"bias", PACE__F32, 1, {1}, .data = &bias}};
 *     pace__text_pair metadata[] = {{"model", "logreg"}};
 *     char sha256[PACE__SHA256_HEX];
 *     status = pace__safetensors_write(path, tensors, 2, metadata, 1, sha256, log);
 *
 * Reading. Opening checks everything that can be wrong with a file but the numbers in it; what opens is safe
 * to read. Reads are thread-safe.
 *
 *     pace__safetensors *file;
 *     status = pace__safetensors_open(path, log, &file);
 *     const pace__tensor_info *weight = pace__safetensors_find(file, "weight");
 *     if (weight && weight->dtype == PACE__F32 && weight->rank == 1)
 *         status = pace__safetensors_read(file, weight, 0, weights, weight->bytes, log);
 *     pace__safetensors_close(file);
 *
 * Stricter than the format: numbers in the header are plain integers below 2^53, an entry has the three known
 * keys and no others, names have no control characters, and the limits below.
 */
#ifndef DATA_TENSORS_SAFETENSORS_H
#define DATA_TENSORS_SAFETENSORS_H

#include "files/sha256.h"

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__TENSOR_RANK_MAX        8
#define PACE__TENSOR_NAME_MAX        512 /* bytes, without the NUL */
#define PACE__TENSORS_MAX            (1u << 20)
#define PACE__TENSOR_METADATA_MAX    (1u << 16)
#define PACE__SAFETENSORS_HEADER_MAX ((size_t)16 << 20)

typedef enum pace__dtype {
    PACE__BOOL,
    PACE__U8,
    PACE__I8,
    PACE__U16,
    PACE__I16,
    PACE__F16,
    PACE__BF16,
    PACE__U32,
    PACE__I32,
    PACE__F32,
    PACE__U64,
    PACE__I64,
    PACE__F64,
    PACE__DTYPES
} pace__dtype;

/* "F32" */
const char *pace__dtype_name(pace__dtype dtype);
size_t pace__dtype_bytes(pace__dtype dtype);

/* A tensor to be written. Either `data` or `fill`; a tensor without elements needs neither. */
typedef struct pace__tensor {
    const char *name;
    pace__dtype dtype;
    unsigned rank;
    uint64_t shape[PACE__TENSOR_RANK_MAX];
    const void *data;
    /*
     * Puts the bytes offset .. offset + bytes of the tensor into `buffer`. Called with ascending offsets and
     * at most PACE__TENSOR_PIECE_BYTES; pieces hold whole elements. What it returns other than PACE_OK ends
     * the writing; it has then said why.
     */
    pace_status (*fill)(void *user, uint64_t offset, void *buffer, size_t bytes);
    void *user;
} pace__tensor;

#define PACE__TENSOR_PIECE_BYTES ((size_t)1 << 20)

typedef struct pace__text_pair {
    const char *key, *value;
} pace__text_pair;

/*
 * The file appears whole or not at all (files/new_file.h). Names must be distinct UTF-8 without
 * control characters, not "__metadata__", and within the limits; anything else is a bug and aborts. `sha256`,
 * of the whole file, may be NULL.
 */
pace_status pace__safetensors_write(const char *path, const pace__tensor *tensors, size_t count,
                                    const pace__text_pair *metadata, size_t metadata_count,
                                    char sha256[PACE__SHA256_HEX], const pace_log *log);

/* A tensor in an open file; lives as long as it is open. */
typedef struct pace__tensor_info {
    const char *name;
    pace__dtype dtype;
    unsigned rank;
    uint64_t shape[PACE__TENSOR_RANK_MAX];
    uint64_t elements, bytes;
    uint64_t begin; /* in the data part */
} pace__tensor_info;

typedef struct pace__safetensors pace__safetensors;

/* PACE_NO_INPUT if there is no such file, PACE_BAD_DATA if anything in it is not as it should be. */
pace_status pace__safetensors_open(const char *path, const pace_log *log, pace__safetensors **file);

/*
 * The same for a file's bytes, which must stay in place while it is open. `name` takes the path's part in
 * messages.
 */
pace_status pace__safetensors_open_memory(const void *bytes, size_t size, const char *name,
                                          const pace_log *log, pace__safetensors **file);
void pace__safetensors_close(pace__safetensors *file); /* NULL is allowed */

/* Tensors in the order of their data. */
size_t pace__safetensors_count(const pace__safetensors *file);
const pace__tensor_info *pace__safetensors_at(const pace__safetensors *file, size_t index);

/* NULL if there is none of that name / key. */
const pace__tensor_info *pace__safetensors_find(const pace__safetensors *file, const char *name);
const char *pace__safetensors_metadata(const pace__safetensors *file, const char *key);

/* Reads bytes offset .. offset + bytes of the tensor, which must lie within it. */
pace_status pace__safetensors_read(const pace__safetensors *file, const pace__tensor_info *tensor,
                                   uint64_t offset, void *buffer, size_t bytes, const pace_log *log);

#endif

/*
 * file.h - what the files of all models have in common: model.safetensors.
 *
 * In the metadata "format" = "paceline", "model" = the kind, "encoding" and one more text of the kind's own;
 * the kind's tensors; and behind them what the model carries along of its data set (math/dataset.h):
 *     vocabulary  U8 (bytes)    of models on texts: the text of data/text/vocabulary.h
 *     classes     U8 (bytes)    of models on pictures: the text of data/picture/class_names.h
 * What those texts mean is for those who know data sets (saved/saved.h); here they are bytes.
 *
 *     pace__model_file file;
 *     if (!(status = pace__model_file_open("run1", &file, log)))
 *         status = pace__model_file_json(&file, "config", &config, log);
 *     pace__model_file_close(&file);
 */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include "data/tensors/safetensors.h"
#include "math/dataset.h"

#include <stdbool.h>

/* Of a file that a finished run had. */
#define PACE__GONE_TEXT                                                                                      \
    "%s: is gone, though the run has finished: train --resume writes it again from the last checkpoint"

typedef struct pace__model_file {
    char *path; /* of the file itself, as messages name it */
    pace__safetensors *tensors;
} pace__model_file;

/*
 * RUN/model.safetensors, or the file itself. The model of a run is compared with the SHA-256 that its summary.json
 * has (a run without one: a warning); a file that is named itself is not. A failure leaves it zeroed.
 */
pace_status pace__model_file_open(const char *path, pace__model_file *file, const pace_log *log);
void pace__model_file_close(pace__model_file *file); /* a zeroed one is allowed */

/* "model" of the metadata; "" if it has none. */
const char *pace__model_file_kind(const pace__model_file *file);

/* A text of the metadata, which lives as long as the file is open. PACE_BAD_DATA if it is missing or has
 * characters that JSON by paceline has not: messages may quote what is in it. */
pace_status pace__model_file_json(const pace__model_file *file, const char *key, const char **json,
                                  const pace_log *log);

/* The bytes of a tensor of text, at most bytes_max; the caller frees them. */
pace_status pace__model_file_text(const pace__model_file *file, const char *name, uint64_t bytes_max,
                                  char **text, size_t *size, const pace_log *log);

/* Weights that a network's config asks for: F32, of this name and shape, finite. */
pace_status pace__model_file_weights(const pace__model_file *file, const char *name, unsigned rank,
                                     const uint64_t *shape, float *values, const pace_log *log);
/* PACE_BAD_DATA if it does not have so many in all. A config alone may ask for any amount of memory: what is
 * allocated behind this check is what the file can fill. */
pace_status pace__model_file_holds(const pace__model_file *file, uint64_t weights, const pace_log *log);

/* --- writing --- */

typedef struct pace__model_contents {
    const char *kind;
    pace__text_pair own; /* of the metadata; key NULL: none */
    const pace__tensor *tensors;
    size_t count;
} pace__model_contents;

pace_status pace__model_file_write(const char *path, const pace__model_contents *contents,
                                   const pace__origin *origin, char sha256[PACE__SHA256_HEX],
                                   const pace_log *log);

#endif

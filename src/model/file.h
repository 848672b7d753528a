/*
 * file.h - what the files of all models have in common: where they are, and in them the kind of model,
 * its encoding, and the vocabulary of models on texts, the class names of those on pictures. linear_file.h,
 * model/rnn/rnn_file.h and model/cnn/cnn_file.h have the rest.
 *
 *     pace__model_file file;
 *     if (!(status = pace__model_file_open("run1", &file, log)))
 *         status = pace__model_file_encoding(&file, "logreg", &encoding, log);
 *     pace__model_file_close(&file);
 */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include "data/picture/class_names.h"
#include "data/tensors/safetensors.h"
#include "data/text/vocabulary.h"

typedef struct pace__model_file {
    char *path; /* of the file itself, as messages name it */
    pace__safetensors *tensors;
} pace__model_file;

/* RUN/model.safetensors, or the file itself. A failure leaves it zeroed. */
pace_status pace__model_file_open(const char *path, pace__model_file *file, const pace_log *log);
void pace__model_file_close(pace__model_file *file); /* a zeroed one is allowed */

/* "model" of the metadata is `kind`: "logreg", "rnn" or "cnn". */
bool pace__model_file_is(const pace__model_file *file, const char *kind);

/* A text of the metadata, which lives as long as the file is open. PACE_BAD_DATA if it is missing or has
 * characters that JSON by paceline has not: messages may quote what is in it. */
pace_status pace__model_file_json(const pace__model_file *file, const char *key, const char **json,
                                  const pace_log *log);

/* PACE_BAD_DATA if it is no model of this kind. */
pace_status pace__model_file_encoding(const pace__model_file *file, const char *kind,
                                      pace__encoding *encoding, const pace_log *log);

/* Checks that it is the encoding's. */
pace_status pace__model_file_vocabulary(const pace__model_file *file, const pace__encoding *encoding,
                                        pace__vocabulary **vocabulary, const pace_log *log);
pace_status pace__model_file_class_names(const pace__model_file *file, const pace__encoding *encoding,
                                         pace__class_names *names, const pace_log *log);

/* Weights that a network's config asks for: F32, of this name and shape, finite. */
pace_status pace__model_file_weights(const pace__model_file *file, const char *name, unsigned rank,
                                     const uint64_t *shape, float *values, const pace_log *log);
/* PACE_BAD_DATA if it does not have so many in all. A config alone may ask for any amount of memory: what is
 * allocated behind this check is what the file can fill. */
pace_status pace__model_file_holds(const pace__model_file *file, uint64_t weights, const pace_log *log);

#endif

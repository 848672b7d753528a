/*
 * saved.h - a trained model as its file has it, of whatever kind, together with what it says of data: how raw
 * rows become those it knows, its vocabulary, its class names.
 *
 *     pace__saved saved;
 *     if (!(status = pace__saved_open("run1", log, &saved)))
 *         use(&saved.model.plan, saved.model.weights, saved.vocabulary);
 *     pace__saved_close(&saved);
 *
 * Where models and data meet again: the model side (model/file.h) has read the weights, and carries texts
 * that only the data side understands.
 */
#ifndef SAVED_SAVED_H
#define SAVED_SAVED_H

#include "data/picture/class_names.h"
#include "data/text/vocabulary.h"
#include "model/model.h"

typedef struct pace__saved {
    pace__loaded model;
    pace__encoding encoding;
    pace__vocabulary *vocabulary; /* NULL: the model knows no texts */
    pace__class_names names;      /* none: the model says yes or no */
} pace__saved;

/* RUN/model.safetensors, or the file itself. Checks that all of it is there, fits together and is finite. A
 * failure leaves it zeroed. */
pace_status pace__saved_open(const char *path, const pace_log *log, pace__saved *saved);
/* The same of a file that is open. */
pace_status pace__saved_read(const pace__model_file *file, const pace_log *log, pace__saved *saved);
void pace__saved_close(pace__saved *saved); /* a zeroed one is allowed */

/* Words of the vocabulary, with spaces between; cut if there is no room. */
void pace__saved_phrase(const pace__saved *saved, const uint32_t *words, unsigned count, char *text,
                        size_t size);

/* --- for those who want the origin alone --- */

pace_status pace__saved_encoding(const pace__model_file *file, pace__encoding *encoding, const pace_log *log);
/* Check that it is the encoding's. */
pace_status pace__saved_vocabulary(const pace__model_file *file, const pace__encoding *encoding,
                                   pace__vocabulary **vocabulary, const pace_log *log);
pace_status pace__saved_class_names(const pace__model_file *file, const pace__encoding *encoding,
                                    pace__class_names *names, const pace_log *log);

#endif

/*
 * click_format.h - a drawn click as bytes of a Criteo, svmlight or TFRecord file.
 *
 * Criteo: label, 13 integers, 26 categories, separated by tabs; empty if missing. The text of a category is 8
 *     hexadecimal digits that belong to its column and rank alone; no two categories share one.
 * svmlight and TFRecord have numbered features: 1 .. 13 are log(1 + integer), rounded to 4 decimals, and left
 *     out if missing or negative; PACE__CLICK_FIRST_CATEGORY + offset of the column + rank is 1 for a row's
 *     category. A TFRecord holds a tf.Example {label: int64 -1 or +1, index: int64[], value: float[]}.
 */
#ifndef GEN_CLICK_FORMAT_H
#define GEN_CLICK_FORMAT_H

#include "gen/click_model.h"

#define PACE__CLICK_FIRST_CATEGORY (PACE__CRITEO_INTEGERS + 1)

/* No row of any format is longer; a writer may touch that many bytes. */
#define PACE__CLICK_BYTES_MAX 512

/* Writes the row to `at`; returns the byte behind it. */
typedef char *pace__click_write_fn(const pace__click_model *model, const pace__click_row *row, char *at);

pace__click_write_fn pace__click_write_criteo;
pace__click_write_fn pace__click_write_svmlight;
pace__click_write_fn pace__click_write_tfrecord;

#endif

/*
 * describe.h - a data set as models see it: numbers to plan by, and what a trained model carries along.
 *
 *     pace__dataset data = pace__store_describe(&store.info);
 *     pace__origin origin;
 *     if (!(status = pace__origin_read(&store, log, &origin)))
 *         status = pace__model_write(&plan, weights, &origin, path, sha256, log);
 *     pace__origin_release(&origin);
 */
#ifndef DATA_STORE_DESCRIBE_H
#define DATA_STORE_DESCRIBE_H

#include "data/store/store.h"
#include "math/dataset.h"

pace__dataset pace__store_describe(const pace__store_info *info);

/* Vocabulary, class names or original ids are read from the set's files. Features stand for the pictures that
 * they were made of: the encoding is that of those. A failure leaves it zeroed. */
pace_status pace__origin_read(const pace__store *store, const pace_log *log, pace__origin *origin);
void pace__origin_release(pace__origin *origin); /* a zeroed one is allowed */

#endif

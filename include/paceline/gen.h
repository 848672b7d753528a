/*
 * gen.h - synthetic raw data with a known signal.
 *
 * pace_gen_clicks writes click logs in Criteo's layout: label, 13 integers, 26 hexadecimal categories. Each
 * category column has the cardinality of the public Kaggle set (together 33,762,577) and Zipf-distributed
 * values; the label is drawn from a planted logistic model, so the best log-loss that any model can reach is
 * known and returned. Equal rows, seed and format give equal bytes, whatever the number of threads.
 */
#ifndef PACELINE_GEN_H
#define PACELINE_GEN_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

enum { PACE_GEN_CRITEO, PACE_GEN_SVMLIGHT, PACE_GEN_TFRECORD };

typedef struct pace_gen_clicks_config {
    const char *output; /* a path, or "-" for standard output */
    int64_t rows;
    int64_t seed;
    int format;      /* PACE_GEN_* */
    int64_t threads; /* 0: one per core */
    bool force;      /* replace an existing file */
} pace_gen_clicks_config;

extern const pace_option pace_gen_clicks_options[];

typedef struct pace_gen_clicks_result {
    uint64_t rows, bytes;
    double positive_rate; /* mean label */
    double best_logloss;  /* mean log-loss of the planted probabilities on the labels drawn */
    double null_logloss;  /* of the constant positive_rate */
    double seconds;
} pace_gen_clicks_result;

pace_status pace_gen_clicks(const pace_gen_clicks_config *config, const pace_log *log,
                            pace_registry *registry, pace_gen_clicks_result *result);

#endif

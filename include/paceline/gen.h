/*
 * gen.h - synthetic raw data with a known signal.
 *
 * pace_gen_clicks writes click logs in Criteo's layout: label, 13 integers, 26 hexadecimal categories. Each
 * category column has the cardinality of the public Kaggle set (together 33,762,577) and Zipf-distributed
 * values; the label is drawn from a planted logistic model, so the best log-loss that any model can reach is
 * known and returned.
 *
 * pace_gen_reviews writes product reviews as JSON-lines with the fields of the public sets: reviewerID, asin,
 * helpful, reviewText, overall (1.0 to 5.0), summary, unixReviewTime. Four or five stars are positive, about
 * 78 in 100; everything else is negative, also the three stars of one negative review in five. Whether a
 * review is positive is drawn from a probability that follows from its text by known rules, so the best
 * accuracy that any model can reach is known and returned. The rules need the order of words: negations turn
 * praise into blame over a distance of up to four words, so counting words or pairs of words falls short of
 * it. No other field tells anything about the stars.
 *
 * pace_gen_images draws pictures as JPEG files, a folder per class. In the variant `shapes` the class is what is
 * drawn (disc, square, triangle, ring, cross, stripes, checks, dots ...: `classes` of them) at any place, size,
 * colour and angle, on a textured background. In the variant `quality` every picture is such a scene, and the
 * class is what became of it: `good`, or `bad` by blur, noise, compression or over-exposure.
 *
 * Equal rows, seed and format give equal bytes, whatever the number of threads.
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
    int format;              /* PACE_GEN_* */
    int64_t threads;         /* 0: one per core */
    bool force;              /* replace an existing file */
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
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

typedef struct pace_gen_reviews_config {
    const char *output; /* a path, or "-" for standard output */
    int64_t rows;
    int64_t seed;
    int64_t threads;         /* 0: one per core */
    bool force;              /* replace an existing file */
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
} pace_gen_reviews_config;

extern const pace_option pace_gen_reviews_options[];

typedef struct pace_gen_reviews_result {
    uint64_t rows, bytes;
    double positive_rate; /* share of reviews with four or five stars */
    double best_accuracy; /* of always saying what the planted probability makes likelier, on average */
    double null_accuracy; /* of always saying what is more frequent */
    double best_logloss;  /* mean log-loss of the planted probabilities on the labels drawn */
    double null_logloss;  /* of the constant positive_rate */
    double seconds;
} pace_gen_reviews_result;

pace_status pace_gen_reviews(const pace_gen_reviews_config *config, const pace_log *log,
                             pace_registry *registry, pace_gen_reviews_result *result);

enum { PACE_GEN_SHAPES, PACE_GEN_QUALITY };

typedef struct pace_gen_images_config {
    const char *output; /* a directory */
    int64_t rows;
    int64_t seed;
    int variant;             /* PACE_GEN_SHAPES, PACE_GEN_QUALITY */
    int64_t classes;         /* of shapes: 2 .. 10 */
    int64_t size;            /* pixels of a side, about: pictures differ in size and shape */
    int64_t threads;         /* 0: one per core */
    bool force;              /* replace an existing directory */
    const _Atomic int *stop; /* as above */
} pace_gen_images_config;

extern const pace_option pace_gen_images_options[];

typedef struct pace_gen_images_result {
    uint64_t rows, bytes, classes;
    double seconds;
} pace_gen_images_result;

pace_status pace_gen_images(const pace_gen_images_config *config, const pace_log *log,
                            pace_registry *registry, pace_gen_images_result *result);

#endif

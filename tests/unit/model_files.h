/*
 * model_files.h - model files as the tests of models write and read them: the kind's part beside what it says
 * of data. Everything is read through pace__saved_open, as the program does. Include it behind <cmocka.h>.
 */
#ifndef UNIT_MODEL_FILES_H
#define UNIT_MODEL_FILES_H

#include "model/cnn/cnn_file.h"
#include "model/cnn/kind.h"
#include "model/ids.h"
#include "model/linear/kind.h"
#include "model/linear/linear_file.h"
#include "model/linear/ngrams.h"
#include "model/rnn/kind.h"
#include "model/rnn/rnn_file.h"
#include "saved/saved.h"

#include "support.h"

/* PACE_BAD_DATA, with a message, if it is of another kind. */
static inline pace_status open_saved(const char *path, const char *kind, pace__saved *saved)
{
    pace_status status = pace__saved_open(path, &said_log, saved);

    if (status || strcmp(saved->model.plan.kind->info.name, kind) == 0)
        return status;
    pace__saved_close(saved);
    return pace_fail(&said_log, PACE_BAD_DATA, "%s: not a model that paceline trained as %s", path, kind);
}

static inline pace__origin make_origin(const pace__encoding *encoding)
{
    pace__origin origin = {.encoding = pace__encoding_to_json(encoding)};

    assert_non_null(origin.encoding);
    return origin;
}

/* --- linear models --- */

typedef struct linear_file {
    pace__encoding encoding;
    const pace__vocabulary *vocabulary;
    uint32_t count;
    const uint64_t *ids;
    float bias;
    unsigned ngram; /* 0: no texts */
    pace__id_index index;
    pace__saved saved;
} linear_file;

static inline float linear_weight_at(const linear_file *model, uint32_t place)
{
    return model->saved.model.weights[model->vocabulary ? model->ids[place] : place];
}

static inline float linear_find(const linear_file *model, uint64_t id)
{
    uint32_t place = pace__id_place(&model->index, id);

    return place < model->count ? linear_weight_at(model, place) : 0;
}

static inline pace_status linear_read(const char *path, linear_file *model)
{
    pace__saved saved;
    pace_status status = open_saved(path, "logreg", &saved);

    if (status)
        return status;
    const pace__loaded *loaded = &saved.model;

    *model = (linear_file){.encoding = saved.encoding,
                           .vocabulary = saved.vocabulary,
                           .count = loaded->count,
                           .ids = loaded->ids,
                           .bias = loaded->weights[loaded->plan.shape.keys - 1],
                           .ngram = ((const pace__logreg_own *)loaded->plan.own)->ngram,
                           .saved = saved};
    return pace__id_index_init(&model->index, model->ids, model->count, &said_log);
}

static inline void linear_release(linear_file *model)
{
    pace__id_index_release(&model->index);
    pace__saved_close(&model->saved);
}

static inline void linear_write(const char *path, const pace__encoding *encoding, const uint64_t *original,
                                const float *weight, size_t stride, uint32_t count, float bias,
                                char sha256[PACE__SHA256_HEX])
{
    pace__origin origin = make_origin(encoding);

    origin.original = (uint64_t *)original;
    assert_ok(pace__linear_write(path, &origin, weight, stride, count, bias, sha256, &said_log));
    free(origin.encoding);
}

static inline void linear_write_text(const char *path, const pace__encoding *encoding,
                                     const pace__vocabulary *vocabulary, unsigned ngram, const float *weight,
                                     uint32_t count, float bias, char sha256[PACE__SHA256_HEX])
{
    pace__origin origin = make_origin(encoding);

    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &origin.vocabulary, &origin.vocabulary_size));
    assert_ok(pace__linear_write_text(path, &origin, ngram, weight, count, bias, &(pace__phrases){0}, sha256,
                                      &said_log));
    free(origin.vocabulary);
    free(origin.encoding);
}

/* --- recurrent networks --- */

typedef struct rnn_file {
    pace__encoding encoding;
    pace__rnn_config config;
    const pace__vocabulary *vocabulary;
    float *embedding, *dense;
    pace__saved saved;
} rnn_file;

static inline pace_status rnn_read(const char *path, rnn_file *model)
{
    pace__saved saved;
    pace_status status = open_saved(path, "rnn", &saved);

    if (status)
        return status;
    const pace__rnn_config *config = &((const pace__rnn_own *)saved.model.plan.own)->config;

    *model = (rnn_file){.encoding = saved.encoding,
                        .config = *config,
                        .vocabulary = saved.vocabulary,
                        .embedding = saved.model.weights,
                        .dense = saved.model.weights + (size_t)config->words * config->embed,
                        .saved = saved};
    return PACE_OK;
}

static inline void rnn_release(rnn_file *model)
{
    pace__saved_close(&model->saved);
}

static inline void rnn_write(const char *path, const pace__rnn_config *config, const pace__encoding *encoding,
                             const char *vocabulary, size_t size, const float *embedding, size_t stride,
                             const float *dense, char sha256[PACE__SHA256_HEX])
{
    pace__origin origin = make_origin(encoding);

    origin.vocabulary = (char *)vocabulary;
    origin.vocabulary_size = size;
    assert_ok(pace__rnn_file_write(path, config, &origin, embedding, stride, dense, sha256, &said_log));
    free(origin.encoding);
}

/* --- convolutional networks --- */

typedef struct cnn_file {
    pace__encoding encoding;
    pace__class_names names;
    pace__cnn_config config;
    pace__cnn_net net;
    float *weights, *stats;
    pace__cnn_file network; /* as two arrays */
    pace__saved saved;
} cnn_file;

static inline pace_status cnn_read(const char *path, cnn_file *model)
{
    pace__saved saved;
    pace__model_file file;
    pace__cnn_file network;
    pace_status status = open_saved(path, "cnn", &saved);

    if (status)
        return status;
    pace__dataset data = pace__encoding_describe(&saved.encoding);

    assert_ok(pace__model_file_open(path, &file, &said_log));
    assert_ok(pace__cnn_file_read(&file, &data, &network, &said_log));
    pace__model_file_close(&file);
    *model = (cnn_file){.encoding = saved.encoding,
                        .names = saved.names,
                        .config = network.config,
                        .net = network.net,
                        .weights = network.weights,
                        .stats = network.stats,
                        .network = network,
                        .saved = saved};
    return PACE_OK;
}

static inline void cnn_release(cnn_file *model)
{
    pace__cnn_file_release(&model->network);
    pace__saved_close(&model->saved);
}

static inline void cnn_write(const char *path, const pace__cnn_config *config, const pace__encoding *encoding,
                             const pace__class_names *names, const float *weights, const float *stats,
                             char sha256[PACE__SHA256_HEX])
{
    pace__origin origin = make_origin(encoding);

    origin.class_names = pace__class_names_text(names, &origin.class_names_size);
    assert_non_null(origin.class_names);
    assert_ok(pace__cnn_file_write(path, config, &origin, weights, stats, sha256, &said_log));
    free(origin.class_names);
    free(origin.encoding);
}

#endif

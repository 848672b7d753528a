/* kind.h - the convolutional network as a kind of model (model/model.h): its own part of a plan. */
#ifndef MODEL_CNN_KIND_H
#define MODEL_CNN_KIND_H

#include "model/convnet/cnn.h"
#include "model/model.h"

typedef struct pace__cnn_own {
    pace__cnn_config config;
    pace__cnn_net net;
    /* All values at the beginning, frozen ones included, in one piece; NULL where nobody computes (a ps), and
     * where nothing is frozen and all values are at hand (a loaded model). */
    float *weights, *stats;
    double decay; /* each row adds decay x w^2 / 2 to its loss, over the weights of convolutions and head */
    bool bf16;    /* --precision */
    char pretrained[PACE__SHA256_HEX]; /* of the file and its name map; empty: none */
} pace__cnn_own;

/* cnn_network.c: the network that the options ask for, and the values that it begins with. */
pace_status pace__cnn_configure(const pace__plan_request *request, const pace_log *log, pace__cnn_own *own);

/* A model that it begins with: arch, width and channels are the same. */
pace_status pace__cnn_fits(const pace__plan_request *request, const pace_log *log);
/* kind.c: what is trained, from rows of parameters to its places in the arrays of all values. */
void pace__cnn_from_rows(const pace__cnn_net *net, const float *rows, float *weights, float *stats);

/* cnn_settings.c */
extern const pace_option pace__cnn_options[];
pace_status pace__cnn_check(const pace_train_config *config, const pace_log *log);
void pace__cnn_settle(pace_train_config *config, const pace__dataset *data);
/* The augmentation that a text asks for; heights and sides are set. PACE_USAGE names what it is not. */
pace_status pace__cnn_parse_augment(const char *text, const pace_log *log, pace__cnn_config *config);

/* cnn_describe.c: what inspect says of it. */
void pace__cnn_describe(const pace__loaded *loaded, const pace__portrait *portrait);

extern const pace__kind pace__kind_cnn;

#endif

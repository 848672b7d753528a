/*
 * tiny_cnn.h - a convolutional network with everything that belongs into its file, for tests. Every value of
 * it differs from the others, so that one in the wrong place is found. Include it behind support.h.
 */
#ifndef UNIT_TINY_CNN_H
#define UNIT_TINY_CNN_H

#include "data/picture/class_names.h"
#include "model/convnet/cnn.h"

#include "support.h"

typedef struct tiny_cnn {
    pace__cnn_config config;
    pace__cnn_net net;
    pace__encoding encoding;
    pace__class_names names;
    float *weights, *stats;
} tiny_cnn;

static inline void tiny_cnn_names(tiny_cnn *self, const char *stem)
{
    size_t used = 0, room = (size_t)self->config.classes * 32;
    char *text = tiny_alloc(room);

    for (uint32_t i = 0; i < self->config.classes; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%u\n", stem, i);
    assert_ok(pace__class_names_parse(text, used, "a test", &said_log, &self->names));
    free(text);
}

static inline pace__encoding tiny_cnn_encoding(const tiny_cnn *self)
{
    return (pace__encoding){.kind = PACE__IMAGE,
                            .height = self->config.height,
                            .width = self->config.side,
                            .channels = self->config.channels,
                            .classes = self->config.classes,
                            .class_names = pace__class_names_checksum(&self->names)};
}

static inline float tiny_cnn_value(const pace__cnn_tensor *tensor, size_t i)
{
    double unit = (double)(pace__mix64((tensor->at + i) * 2 + tensor->stats + 99) >> 11) * 0x1p-53;

    return (float)(strstr(tensor->name, ".variance") ? unit + 0.25 : 2 * unit - 1);
}

/* `config`: what is not 0 of it. */
static inline tiny_cnn tiny_cnn_make(pace__cnn_config config, uint32_t side, uint32_t channels,
                                     uint32_t classes)
{
    static pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    tiny_cnn self = {.config = config};

    self.config.height = self.config.side = side;
    self.config.channels = channels;
    self.config.classes = classes;
    self.config.epsilon = config.epsilon > 0 ? config.epsilon : 1e-3f;
    for (int i = 0; i < 3; i++) {
        self.config.mean[i] = config.mean[i] > 0 ? config.mean[i] : 100;
        self.config.deviation[i] = config.deviation[i] > 0 ? config.deviation[i] : 50;
    }
    tiny_cnn_names(&self, "class");
    self.encoding = tiny_cnn_encoding(&self);
    assert_ok(pace__cnn_net_make(&self.config, &said_log, &self.net));
    self.weights = tiny_alloc(self.net.weights * sizeof(float));
    self.stats = tiny_alloc(self.net.stats * sizeof(float));
    for (unsigned t = 0, count = pace__cnn_tensors(&self.net, tensors); t < count; t++) {
        for (size_t i = 0; i < tensors[t].size; i++)
            (tensors[t].stats ? self.stats : self.weights)[tensors[t].at + i] =
                tiny_cnn_value(&tensors[t], i);
    }
    return self;
}

static inline void tiny_cnn_free(tiny_cnn *self)
{
    pace__class_names_release(&self->names);
    free(self->weights);
    free(self->stats);
}

#endif

#include "model/cnn/pretrained_internal.h"

#include <string.h>

pace__wanted pace__wanted_of(const pace__cnn_net *net, const pace__cnn_tensor *tensor, unsigned number)
{
    uint32_t u = number / PACE__UNIT_TENSORS;
    pace__wanted self = {.tensor = tensor, .out = tensor->shape[0], .in = 1, .kernel = 1};

    if (tensor->rank == 1)
        return self;
    self.in = tensor->shape[1];
    self.dense = u >= net->units;
    self.kernel = self.dense ? 1 : tensor->shape[2];
    self.depthwise = !self.dense && net->unit[u].depthwise;
    return self;
}

unsigned pace__wanted_shape(bool tensorflow, const pace__wanted *of, uint64_t shape[4])
{
    uint64_t in = of->adds_colours ? 3 : of->in, kernel = of->kernel;
    /* A depthwise one has its channels where others have inputs, in TensorFlow. */
    uint64_t inputs = of->depthwise ? of->out : in, outputs = of->depthwise ? 1 : of->out;

    if (of->tensor->rank == 1) {
        shape[0] = of->out;
        return 1;
    }
    if (tensorflow)
        memcpy(shape, (uint64_t[4]){kernel, kernel, inputs, outputs}, 4 * sizeof *shape);
    else
        memcpy(shape, (uint64_t[4]){of->out, in, kernel, kernel}, 4 * sizeof *shape);
    return 4;
}

/* A dense weight has two dimensions, or is a convolution with a kernel of 1. */
bool pace__wanted_fits(bool tensorflow, const pace__wanted *of, const pace__tensor_info *tensor)
{
    uint64_t shape[4];
    unsigned rank = pace__wanted_shape(tensorflow, of, shape);

    if (tensor->rank == rank)
        return memcmp(tensor->shape, shape, rank * sizeof *shape) == 0;
    const uint64_t *plain = tensorflow ? shape + 2 : shape;

    return of->dense && tensor->rank == 2 && memcmp(tensor->shape, plain, 2 * sizeof *plain) == 0;
}

/* Where the file's weight of that place is. */
static size_t their_place(bool tensorflow, const pace__wanted *of, uint64_t out, uint64_t in, uint64_t k)
{
    uint64_t inputs = of->adds_colours ? 3 : of->in, taps = of->kernel * of->kernel;

    if (!tensorflow)
        return (size_t)((out * inputs + in) * taps + k);
    return (size_t)((k * inputs + in) * of->out + out); /* depthwise: one input, channels by `out` */
}

void pace__wanted_place(bool tensorflow, const pace__wanted *of, const float *from, float *to)
{
    uint64_t taps = of->kernel * of->kernel;

    for (uint64_t i = 0; i < of->tensor->size; i++) {
        uint64_t out = i / (of->in * taps), in = i / taps % of->in, k = i % taps;

        to[i] = from[their_place(tensorflow, of, out, in, k)];
        for (uint64_t colour = 1; of->adds_colours && colour < 3; colour++)
            to[i] += from[their_place(tensorflow, of, out, colour, k)];
    }
}

/* Behind the pooling: [dense + ReLU] and the logit, there and back. */
#include "model/rnn/rnn_fast.h"

#define BLOCK PACE__RNN_BLOCK

/* What out.weight multiplies. */
static const float *last_vector(const pace__rnn_fast *self, const pace__rnn_space *space, size_t row)
{
    return self->head.units ? space->relu + row * self->head.blocks * BLOCK
                            : space->pooled + row * self->wide_stride;
}

static size_t last_size(const pace__rnn_fast *self)
{
    return BLOCK * (self->head.units ? self->head.blocks : self->sides * self->blocks);
}

/* Sums by lane first: that is how compilers make vectors of it. */
static float dot(const float *a, const float *b, size_t count)
{
    float lanes[BLOCK] = {0}, sum = 0;

    for (size_t i = 0; i < count; i += BLOCK) {
        for (size_t lane = 0; lane < BLOCK; lane++)
            lanes[lane] += a[i + lane] * b[i + lane];
    }
    for (size_t lane = 0; lane < BLOCK; lane++)
        sum += lanes[lane];
    return sum;
}

void pace__rnn_head_forward(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                            float *logits)
{
    const pace__rnn_head *head = &self->head;
    size_t units = head->blocks * BLOCK;

    if (head->units) {
        self->products->product(&(pace__rnn_product){
            .rows = chunk->rows,
            .columns = units,
            .factor = {{.a = space->pooled,
                        .a_stride = self->wide_stride,
                        .inner = self->sides * self->blocks * BLOCK,
                        .panels = head->forward}},
            .start = head->start,
            .result = space->relu,
            .result_stride = units,
        });
        for (size_t i = 0; i < chunk->rows * units; i++)
            space->relu[i] = space->relu[i] < 0 ? 0 : space->relu[i]; /* what is no number stays none */
    }
    for (uint32_t row = 0; row < chunk->rows; row++)
        logits[row] = dot(head->out, last_vector(self, space, row), last_size(self)) +
                      self->batch->dense[head->out_bias];
}

/* From d_relu to d_pooled, and the derivatives of the dense layer. */
static void dense_back(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                       float *sums)
{
    const pace__rnn_head *head = &self->head;
    size_t units = head->blocks * BLOCK, wide = self->sides * self->blocks * BLOCK;

    for (uint32_t row = 0; row < chunk->rows; row++) {
        for (size_t u = 0; u < units; u++)
            sums[head->d_bias + u] += space->d_relu[row * units + u];
    }
    self->products->outer(&(pace__rnn_outer){
        .words = chunk->rows,
        .rows = wide,
        .columns = units,
        .a = space->pooled,
        .a_stride = self->wide_stride,
        .b = space->d_relu,
        .b_stride = units,
        .sums = sums + head->d_weight,
        .sums_rows = wide,
    });
    self->products->product(&(pace__rnn_product){
        .rows = chunk->rows,
        .columns = wide,
        .factor = {{.a = space->d_relu, .a_stride = units, .inner = units, .panels = head->back}},
        .result = space->d_pooled,
        .result_stride = self->wide_stride,
    });
}

void pace__rnn_head_back(pace__rnn_fast *self, pace__rnn_space *space, const pace__rnn_chunk *chunk,
                         const float *d_logits, float *sums)
{
    const pace__rnn_head *head = &self->head;
    size_t size = last_size(self), stride = head->units ? head->blocks * BLOCK : self->wide_stride;
    float *d_last = head->units ? space->d_relu : space->d_pooled;

    for (uint32_t row = 0; row < chunk->rows; row++) {
        const float *last = last_vector(self, space, row);
        float d = d_logits[row];

        sums[head->d_out_bias] += d;
        for (size_t u = 0; u < size; u++) {
            sums[head->d_out + u] += d * last[u];
            d_last[row * stride + u] = head->units && !(last[u] > 0) ? 0 : d * head->out[u];
        }
    }
    if (head->units)
        dense_back(self, space, chunk, sums);
}

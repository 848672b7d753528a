/*
 * cnn_fast.h - the parts of the fast implementation of cnn.h.
 *
 * Tensors are in blocks of 16 channels (math/conv/conv.h). Rows are cut into *tasks*, which threads share out, and
 * a task's rows into *tiles*, which stay in the cache while they go from one thing to the next: some rows,
 * or, of large pictures, a piece of one row: a *slice* of blocks, if the unit is depthwise, or a *strip* of
 * pixels, if its kernel is 1 x 1. All this depends on shapes and the number of rows alone.
 *
 * Batch norm wants sums over all rows before it gives anything, so a step is a row of phases, with a meeting
 * of all threads (and of all workers: batch->sum) between them:
 *
 *     prepare    weights into the order of the convolutions; the frozen units, whose batch norm is folded
 *                into their weights, as a whole                                   (cnn_fast_infer.c)
 *     unit k     y of the unit below from its z; convolution; sums of z        (cnn_fast_forward.c)
 *     head       mean over the picture, logits, loss, and back                 (cnn_fast_head.c)
 *     unit k     batch norm and convolution back; derivatives of the unit below in front of its activation,
 *                and their sums                                                (cnn_fast_back.c)
 *
 * 1. Of a unit z is kept; y is computed again where it is needed, which is cheaper than to fetch it. It is
 * *stored* only if several units read it, or if something is added.
 * 2. `d` of a unit collects what its users give back, in falling order of users; the last of them takes it
 * through the activation. Its memory is used again by units whose derivatives do not live at the same time.
 * 3. What is summed, and in which order, depends on shapes and rows alone: tiles of a task in their order,
 * then tasks in theirs. So the bits do not depend on the number of threads.
 * 4. Behind the last row there is room for a whole tile: its last rows are computed, and nobody looks.
 */
#ifndef MODEL_CONVNET_CNN_FAST_H
#define MODEL_CONVNET_CNN_FAST_H

#include "math/conv/conv.h"
#include "model/convnet/cnn.h"
#include "model/convnet/cnn_fast_kernels.h"
#include "threads/crew.h"
#include "watch/spans.h"

#define PACE__CNN_TASKS_MAX 32
#define PACE__CNN_TILE_MAX  8

/* What a tile of a unit reads and writes. On the way back about four times as much is alive, which is to stay
 * in the second level of the cache (256 to 768 KiB were within 5 %). Without training half more. */
#define PACE__CNN_TILE_BYTES ((size_t)512 << 10)

/* How what a unit gives back to another meets what others give. */
typedef struct pace__cnn_giving {
    bool first, last;
} pace__cnn_giving;

/* A unit as it is computed. */
typedef struct pace__cnn_part {
    const pace__cnn_unit *unit;
    uint32_t number;
    uint32_t blocks;
    size_t pixels, size, in_size; /* floats of a row of z; of x */
    bool trained;
    bool stored;         /* y is, for all rows */
    uint32_t first_user; /* unit; the number of units: the head */
    uint32_t last_user;
    bool gives_from; /* derivatives to the unit below, to the one that is added */
    bool gives_add;
    pace__cnn_giving to_from, to_add;
    uint32_t tile;       /* rows; of training */
    uint32_t slice;      /* blocks of a piece of a row; 0: it has all blocks */
    size_t strip;        /* pixels of a piece; 0: it has all pixels */
    unsigned pieces;     /* of a row */
    bool streams;        /* z and d are written past the cache, which they would leave before they are read */
    uint32_t fused_tile; /* of the network that is not in training */
    bool crosses;        /* y is read by units of other tiles */
    size_t infer_at;     /* where y is in a thread's memory */
    pace__conv *forward, *data, *weigh, *fused;
    size_t forward_size, data_size, weigh_size, fused_size; /* of packed weights */
    float *w_forward, *w_data, *w_fused, *bias;
    float *z, *y, *d; /* (rows, size) */
    size_t d_at;
    float *gamma, *beta;   /* (blocks x 16) as all that follow */
    float *scale, *shift;  /* y = act(scale z + shift) */
    float *mean, *inverse; /* of the batch; 1 / deviation */
    float *p, *q, *r;      /* derivatives of z = p d + q z + r */
    double *sums;          /* (tasks, 2, blocks x 16) of z, later of derivatives */
    unsigned sums_tasks;
    uint64_t forward_ns, back_ns; /* processor time of thread 0 in the last step */
    /* For a profile. */
    const char *forward_name, *back_name, *infer_name, *shape;
    uint64_t flops; /* of a row, forward */
} pace__cnn_part;

/* A thread's memory. */
typedef struct pace__cnn_space {
    float *x, *d_x, *d_z, *extra; /* a tile each */
    float *weights;               /* derivatives of a tile; or folded weights */
    float *infer;                 /* y of units that are not stored */
    float *features;              /* (TILE_MAX, features), of tasks that do not train */
    float *d_features;
    void *conv;
} pace__cnn_space;

struct pace__cnn_fast {
    pace__cnn_config config;
    pace__cnn_net net;
    const pace__cnn_kernels *kernels;
    const pace_log *log;
    uint64_t rows_max, rows_room;
    size_t tile_bytes;
    int threads;
    bool trains;
    const struct pace__bf16_kernels *bf16;
    pace__cnn_part part[PACE__CNN_UNITS_MAX];
    pace__conv_context *convs;
    pace__crew *crew;
    size_t d_size; /* floats of all derivatives of units at a time */
    size_t infer_size;
    size_t scratch_size; /* bytes of a convolution */
    float *d;
    float *gradients[2];     /* (tasks, weights) of the unit at hand and of the one before, packed */
    float *head_turned;      /* (features, outputs); NULL: few outputs */
    float *features;         /* (rows, features), after dropout */
    float *d_logits;         /* (rows, outputs) */
    float *logits;           /* (rows, outputs) */
    double *loss;            /* (rows) */
    float *values;           /* (PACE__CNN_SUM_MAX) that go through batch->sum */
    pace__cnn_space *spaces; /* (threads) */
    void *memory;
    size_t memory_size;
    const char *head_shape; /* for a profile */

    /* What is at hand. */
    pace__cnn_batch *batch;
    const pace__rows *rows;
    const float *weights, *stats; /* the tails, moved so that places in the whole arrays can be used */
    float *found;                 /* of logits */
    bool wants_features;
    uint32_t unit;        /* of the phase; on the way back the one above it */
    double pixels_weight; /* rows of all workers */
    size_t ready_first;
    pace_status status;
};

/* Rows; or a piece of one row. */
typedef struct pace__cnn_range {
    size_t first, rows;
    uint32_t block, blocks; /* blocks 0: all of them */
    size_t pixel, pixels;   /* pixels 0: all of them */
} pace__cnn_range;

/* Planes that are `stride` floats apart. */
typedef struct pace__cnn_view {
    float *at;
    size_t stride;
} pace__cnn_view;

/* How a range lies in the tensors of a unit: `planes` of n pixels each. */
typedef struct pace__cnn_planes {
    size_t first, count, n;
    size_t at, stride; /* floats of the tensor before the first, and from one to the next */
    size_t dense;      /* floats from one to the next where nothing else lies in between */
} pace__cnn_planes;

static inline pace__cnn_planes pace__cnn_planes_of(const pace__cnn_part *part, pace__cnn_range rows)
{
    pace__cnn_planes it = {.first = rows.block,
                           .count = rows.rows * (rows.blocks ? rows.blocks : part->blocks),
                           .n = rows.pixels ? rows.pixels : part->pixels,
                           .stride = part->pixels * PACE__CNN_LANES};

    it.at = rows.first * part->size + rows.block * it.stride + rows.pixel * PACE__CNN_LANES;
    it.dense = it.n * PACE__CNN_LANES;
    return it;
}

/* The first channel of a plane. */
static inline size_t pace__cnn_channel(const pace__cnn_part *part, const pace__cnn_planes *planes,
                                       size_t plane)
{
    return (planes->first + plane) % part->blocks * PACE__CNN_LANES;
}

/* As pace__cnn_fast_create, with these kernels, and tiles of that size instead of TILE_BYTES. */
pace_status pace__cnn_fast_create_with(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                       const pace__cnn_kernels *kernels, size_t tile_bytes,
                                       const pace_log *log, pace__cnn_fast **fast);

/* --- cnn_fast_plan.c: what follows from the shapes alone --- */

void pace__cnn_plan_parts(pace__cnn_fast *self);
/* Sizes of what is shared between units; after the convolutions have been made. */
void pace__cnn_plan_memory(pace__cnn_fast *self);
unsigned pace__cnn_tasks(size_t rows, uint32_t tile);
pace__cnn_range pace__cnn_task(size_t rows, uint32_t tile, unsigned index);
/* The tiles of a task of a unit. */
unsigned pace__cnn_tiles(const pace__cnn_part *part, pace__cnn_range task);
pace__cnn_range pace__cnn_tile(const pace__cnn_part *part, pace__cnn_range task, unsigned index);

/* --- cnn_fast_forward.c --- */

/* Pixels of rows as floats, (rows, channels, height, width). */
void pace__cnn_pixels(const pace__cnn_fast *self, size_t first, size_t rows, float *to);
/* y of rows of a unit: where it is stored, or computed into `room`. */
pace__cnn_view pace__cnn_y(const pace__cnn_fast *self, pace__cnn_space *space, uint32_t unit,
                           pace__cnn_range rows, float *room);
/* What a unit reads, dense. `making`: y that is stored for it is computed now. */
float *pace__cnn_x(const pace__cnn_fast *self, pace__cnn_space *space, const pace__cnn_part *part,
                   pace__cnn_range rows, bool making);
void pace__cnn_forward_task(void *fast, int thread, unsigned index);
/* From the sums of all tasks to scale and shift. On thread 0. */
void pace__cnn_forward_settle(pace__cnn_fast *self, pace__cnn_part *part);

/* --- cnn_fast_back.c --- */

/* Derivatives for a unit, by user: collects them, and ends them if the user is the last one. y, dense, may be
 * NULL. */
void pace__cnn_give(pace__cnn_fast *self, pace__cnn_space *space, pace__cnn_part *to, pace__cnn_giving giving,
                    pace__cnn_range rows, unsigned task, pace__cnn_view d_y, const float *y);
/* Of the unit below `above`; and one that settles the weights of `above` itself. */
unsigned pace__cnn_back_tasks(const pace__cnn_fast *self, uint32_t above);
void pace__cnn_back_task(void *fast, int thread, unsigned index);
/* From the sums of all tasks to p, q, r. On thread 0. */
void pace__cnn_back_settle(pace__cnn_fast *self, pace__cnn_part *part);

/* --- cnn_fast_head.c --- */

unsigned pace__cnn_head_tasks(const pace__cnn_fast *self);
void pace__cnn_head_task(void *fast, int thread, unsigned index);
unsigned pace__cnn_head_back_tasks(const pace__cnn_fast *self);
void pace__cnn_head_back_task(void *fast, int thread, unsigned index);
void pace__cnn_head_turn(pace__cnn_fast *self); /* weights */
/* features (rows, features) of y of the last unit */
void pace__cnn_means(const pace__cnn_fast *self, size_t rows, const float *y, float *features);
/* logits (rows, outputs) of features (rows, features) */
void pace__cnn_head_forward(const pace__cnn_fast *self, size_t rows, const float *features, float *logits);

/* --- cnn_fast_infer.c --- */

/* Weights and batch norm of a unit into one. */
void pace__cnn_fold(pace__cnn_fast *self, int thread, pace__cnn_part *part, const float *weights,
                    const float *stats);
/* Rows through units below `units`, up to TILE_MAX of them. Returns y of the last one. */
float *pace__cnn_infer(pace__cnn_fast *self, int thread, uint32_t units, pace__cnn_range rows);
/* Groups of TILE_MAX rows, of all rows. */
unsigned pace__cnn_groups(const pace__cnn_fast *self);
pace__cnn_range pace__cnn_group(const pace__cnn_fast *self, unsigned index);

#endif

#include "roles/buckets.h"

#include "base/clock.h"
#include "base/memory.h"
#include "ps/wire.h"
#include "watch/spans.h"

#include <stdlib.h>

/* Of a bucket for each of its owners: a message. Small enough that the first set out early and need no handshake (MPI's
 * messages over TCP do from 64 KiB on), large enough that messages do not cost more than bytes. */
#define PIECE_FLOATS ((size_t)8 << 10)

pace_status pace__buckets_open(pace__buckets *buckets, const pace__job *job, pace__link *link)
{
    const pace__shape *shape = &job->plan.model.shape;
    uint32_t first = (uint32_t)(shape->keys - shape->dense_rows);

    buckets->bytes = (size_t)shape->dense_rows * shape->dim * sizeof *buckets->sums;
    buckets->sums = pace__pages_alloc(buckets->bytes);
    buckets->keys = calloc(shape->dense_rows, sizeof *buckets->keys);
    buckets->bounds = calloc(PACE__REDUCE_BUCKETS_MAX + 1, sizeof *buckets->bounds);
    if (!buckets->sums || !buckets->keys || !buckets->bounds)
        return pace_fail(job->log, PACE_FAILED, "out of memory for %u rows of dense gradients",
                         shape->dense_rows);
    for (uint32_t i = 0; i < shape->dense_rows; i++)
        buckets->keys[i] = first + i;
    buckets->count =
        pace__reduce_cut(shape->dense, PIECE_FLOATS * (size_t)job->plan.cluster.workers, buckets->bounds);
    pace__reduce_plan plan = {.workers = job->plan.cluster.workers,
                              .by_mpi = job->config->cluster.reduce == PACE_REDUCE_MPI,
                              .tag = PACE__TAG_REDUCE,
                              .gradients = buckets->sums,
                              .bounds = buckets->bounds,
                              .buckets = buckets->count};

    return pace__reduce_create(link, &plan, job->log, &buckets->reduce);
}

void pace__buckets_close(pace__buckets *buckets)
{
    pace__reduce_free(buckets->reduce);
    pace__pages_free(buckets->sums, buckets->bytes);
    free(buckets->keys);
    free(buckets->bounds);
    *buckets = (pace__buckets){0};
}

void pace__buckets_begin(pace__buckets *buckets)
{
    buckets->left = buckets->count;
}

bool pace__buckets_due(const pace__buckets *buckets, size_t first)
{
    return buckets->left > 0 && buckets->bounds[buckets->left - 1] >= first;
}

pace_status pace__buckets_start(pace__buckets *buckets, size_t first)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_OK;

    while (!status && pace__buckets_due(buckets, first)) {
        const size_t *bounds = &buckets->bounds[--buckets->left];
        PACE__SPAN_OF("send to be summed", NULL, 0, (bounds[1] - bounds[0]) * sizeof(float));

        status = pace__reduce_start(buckets->reduce, buckets->left);
    }
    if (!status)
        status = pace__reduce_poll(buckets->reduce);
    buckets->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__buckets_poll(pace__buckets *buckets)
{
    return buckets->reduce ? pace__reduce_poll(buckets->reduce) : PACE_OK;
}

pace_status pace__buckets_finish(pace__buckets *buckets)
{
    return buckets->reduce ? pace__reduce_finish(buckets->reduce) : PACE_OK;
}

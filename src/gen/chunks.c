#include "gen/chunks.h"

#include "files/file.h"
#include "files/output.h"
#include "threads/thread.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Progress records come once in so many chunks, and at the end. */
#define PROGRESS_CHUNKS 16

typedef struct generation {
    const pace__chunk_plan *plan;
    uint64_t chunks;
    size_t chunk_bytes_max;
    pace__output *output;
    pace_registry *registry;
    char *buffers;        /* one per thread, of chunk_bytes_max */
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t turn;
    uint64_t next_chunk; /* to be made */
    uint64_t next_write; /* whose turn it is; only that thread touches output and sum */
    pace_status status;
    pace__made sum;
} generation;

/* Fills `buffer` with the rows of a chunk and describes them in `made`. */
static void make_chunk(const generation *job, uint64_t chunk, char *buffer, pace__made *made)
{
    const pace__chunk_plan *plan = job->plan;
    pace__random random = pace__random_at((uint64_t)plan->seed, chunk);
    uint64_t left = (uint64_t)plan->rows - chunk * plan->chunk_rows;
    uint64_t rows = left < plan->chunk_rows ? left : plan->chunk_rows;
    char *at = buffer;

    *made = (pace__made){.rows = rows};
    for (uint64_t i = 0; i < rows; i++) {
        char *end = plan->make_row(plan->population, &random, at, made);

        assert((size_t)(end - at) <= plan->row_bytes_max);
        at = end;
    }
    made->bytes = (uint64_t)(at - buffer);
}

static void tell_progress(const generation *job, uint64_t chunk)
{
    pace_field fields[] = {PACE_TEXT("phase", "gen"), PACE_INT("done", job->sum.rows),
                           PACE_INT("total", job->plan->rows), PACE_TEXT("unit", "rows")};

    if ((chunk + 1) % PROGRESS_CHUNKS == 0 || chunk + 1 == job->chunks)
        pace_registry_emit(job->registry, "progress", fields, sizeof fields / sizeof *fields);
}

static void add(pace__made *sum, const pace__made *made)
{
    sum->rows += made->rows;
    sum->bytes += made->bytes;
    sum->positives += made->positives;
    sum->loss += made->loss;
    sum->right += made->right;
}

/* Waits for the chunk's turn: bytes and sums are added in order, whoever made the chunk. */
static pace_status write_chunk(generation *job, uint64_t chunk, const char *buffer, const pace__made *made)
{
    pthread_mutex_lock(&job->lock);
    while (job->next_write != chunk && !job->status)
        pthread_cond_wait(&job->turn, &job->lock);
    const _Atomic int *stop = job->plan->stop;
    pace_status status = job->status;

    pthread_mutex_unlock(&job->lock);
    if (status)
        return status;
    status = stop && *stop
                 ? PACE_INTERRUPTED
                 : pace__write_all(job->output->fd, buffer, made->bytes, job->output->name, job->output->log);
    if (!status) {
        add(&job->sum, made);
        tell_progress(job, chunk);
    }
    pthread_mutex_lock(&job->lock);
    job->status = status;
    job->next_write++;
    pthread_cond_broadcast(&job->turn);
    pthread_mutex_unlock(&job->lock);
    return status;
}

/* False: nothing is left to be made, or another thread has failed. */
static bool take_chunk(generation *job, uint64_t *chunk)
{
    pthread_mutex_lock(&job->lock);
    bool taken = job->next_chunk < job->chunks && !job->status;

    *chunk = job->next_chunk;
    job->next_chunk += taken;
    pthread_mutex_unlock(&job->lock);
    return taken;
}

static pace_status make_chunks(void *arg, int thread)
{
    generation *job = arg;
    char *buffer = job->buffers + (size_t)thread * job->chunk_bytes_max;
    pace_status status = PACE_OK;
    uint64_t chunk;

    while (!status && take_chunk(job, &chunk)) {
        pace__made made;

        make_chunk(job, chunk, buffer, &made);
        status = write_chunk(job, chunk, buffer, &made);
    }
    return status;
}

static pace_status check_plan(const pace__chunk_plan *plan, const pace_log *log)
{
    if (!plan->output || !*plan->output)
        return pace_fail(log, PACE_USAGE, "no output: name a file to write");
    if (plan->rows < 1 || plan->rows > PACE__GEN_ROWS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld rows: between 1 and %.0f are possible", (long long)plan->rows,
                         PACE__GEN_ROWS_MAX);
    if (plan->threads < 0 || plan->threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld threads: between 0 and %d are possible",
                         (long long)plan->threads, PACE_THREADS_MAX);
    return PACE_OK;
}

/* Makes and writes all chunks with as many threads as there is work for. */
static pace_status run_job(generation *job, int64_t threads)
{
    const pace_log *log = job->output->log;

    if (threads == 0)
        threads = pace__cores();
    if ((uint64_t)threads > job->chunks)
        threads = (int64_t)job->chunks;
    job->buffers = malloc((size_t)threads * job->chunk_bytes_max);
    if (!job->buffers)
        return pace_fail(log, PACE_FAILED, "out of memory for the buffers of %lld threads",
                         (long long)threads);
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->turn, NULL);
    pace_status status = pace__team((int)threads, make_chunks, job, log);

    pthread_cond_destroy(&job->turn);
    pthread_mutex_destroy(&job->lock);
    free(job->buffers);
    return status;
}

pace_status pace__write_chunks(const pace__chunk_plan *plan, const pace_log *log, pace_registry *registry,
                               pace__made *made)
{
    pace__output output;
    pace_status status = check_plan(plan, log);

    if (!status)
        status = pace__output_open(&output, plan->output, plan->force, log);
    if (status)
        return status;
    generation job = {.plan = plan,
                      .chunks = ((uint64_t)plan->rows + plan->chunk_rows - 1) / plan->chunk_rows,
                      .chunk_bytes_max = plan->chunk_rows * plan->row_bytes_max,
                      .output = &output,
                      .registry = registry};

    status = pace__output_close(&output, run_job(&job, plan->threads));
    if (status == PACE_INTERRUPTED)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    if (!status)
        *made = job.sum;
    return status;
}

double pace__made_rate(const pace__made *made)
{
    return (double)made->positives / (double)made->rows;
}

/* The entropy of a coin; 0 if one side never comes. */
double pace__made_null_logloss(const pace__made *made)
{
    double rate = pace__made_rate(made);

    if (rate <= 0 || rate >= 1)
        return 0;
    return -(rate * log(rate) + (1 - rate) * log(1 - rate));
}

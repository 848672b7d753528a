#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/thread.h"
#include "gen/click_format.h"
#include "gen/output.h"

#include <assert.h>
#include <math.h>
#include <paceline/gen.h>
#include <pthread.h>
#include <stdlib.h>

/* Rows of a chunk come from one random stream: another size would give other rows for the same seed. */
#define CHUNK_ROWS 2048
/* Progress records come once in so many chunks, and at the end. */
#define PROGRESS_CHUNKS 16
#define ROWS_MAX        1e12

const pace_option pace_gen_clicks_options[] = {
    {"output", 'o', PACE_OPT_TEXT, offsetof(pace_gen_clicks_config, output), NULL, "FILE",
     "file to write; - for standard output", .required = true},
    {"rows", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, rows), "1000000", "N", "rows to write",
     .min = 1, .max = ROWS_MAX},
    {"seed", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, seed), "1", "N",
     "which rows; the population that they are drawn from is always the same", .min = 0, .max = 0x1p53},
    {"format", 0, PACE_OPT_CHOICE, offsetof(pace_gen_clicks_config, format), "criteo", NULL,
     "layout of the file", .choices = "criteo|svmlight|tfrecord"},
    {"threads", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, threads), "0", "N", "0: one per core",
     .min = 0, .max = PACE_THREADS_MAX},
    {"force", 0, PACE_OPT_FLAG, offsetof(pace_gen_clicks_config, force), "false", NULL,
     "replace an existing file", .required = false},
    {0}};

typedef struct totals {
    uint64_t rows, bytes, positives;
    double loss;
} totals;

typedef struct generation {
    const pace__click_model *model;
    pace__click_write_fn *write;
    uint64_t seed, rows, chunks;
    pace__output *output;
    pace_registry *registry;
    char *buffers;        /* one per thread, of chunk_bytes */
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t turn;
    uint64_t next_chunk; /* to be made */
    uint64_t next_write; /* whose turn it is; only that thread touches output and sum */
    pace_status status;
    totals sum;
} generation;

#define CHUNK_BYTES ((size_t)CHUNK_ROWS * PACE__CLICK_BYTES_MAX)

/* Fills `buffer` with the rows of a chunk and describes them in `made`. */
static void make_chunk(const generation *job, uint64_t chunk, char *buffer, totals *made)
{
    pace__random random = pace__random_at(job->seed, chunk);
    uint64_t first = chunk * CHUNK_ROWS;
    uint64_t rows = job->rows - first < CHUNK_ROWS ? job->rows - first : CHUNK_ROWS;
    char *at = buffer;

    *made = (totals){.rows = rows};
    for (uint64_t i = 0; i < rows; i++) {
        pace__click_row row;

        pace__click_draw(job->model, &random, &row);
        at = job->write(job->model, &row, at);
        made->positives += row.clicked;
        made->loss += row.loss;
    }
    made->bytes = (uint64_t)(at - buffer);
    assert(made->bytes <= CHUNK_BYTES);
}

static void tell_progress(const generation *job, uint64_t chunk)
{
    pace_field fields[] = {PACE_TEXT("phase", "gen"), PACE_INT("done", job->sum.rows),
                           PACE_INT("total", job->rows), PACE_TEXT("unit", "rows")};

    if ((chunk + 1) % PROGRESS_CHUNKS == 0 || chunk + 1 == job->chunks)
        pace_registry_emit(job->registry, "progress", fields, sizeof fields / sizeof *fields);
}

/* Waits for the chunk's turn: bytes and sums are added in order, whoever made the chunk. */
static pace_status write_chunk(generation *job, uint64_t chunk, const char *buffer, const totals *made)
{
    pthread_mutex_lock(&job->lock);
    while (job->next_write != chunk && !job->status)
        pthread_cond_wait(&job->turn, &job->lock);
    pace_status status = job->status;

    pthread_mutex_unlock(&job->lock);
    if (status)
        return status;
    status = pace__write_all(job->output->fd, buffer, made->bytes, job->output->name, job->output->log);
    if (!status) {
        job->sum.rows += made->rows;
        job->sum.bytes += made->bytes;
        job->sum.positives += made->positives;
        job->sum.loss += made->loss;
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
    char *buffer = job->buffers + (size_t)thread * CHUNK_BYTES;
    pace_status status = PACE_OK;
    uint64_t chunk;

    while (!status && take_chunk(job, &chunk)) {
        totals made;

        make_chunk(job, chunk, buffer, &made);
        status = write_chunk(job, chunk, buffer, &made);
    }
    return status;
}

static pace_status check_config(const pace_gen_clicks_config *config, const pace_log *log)
{
    if (!config->output || !*config->output)
        return pace_fail(log, PACE_USAGE, "no output: name a file to write");
    if (config->rows < 1 || config->rows > ROWS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld rows: between 1 and %.0f are possible",
                         (long long)config->rows, ROWS_MAX);
    if (config->threads < 0 || config->threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld threads: between 0 and %d are possible",
                         (long long)config->threads, PACE_THREADS_MAX);
    return PACE_OK;
}

static pace__click_write_fn *writer_of(int format)
{
    switch (format) {
    case PACE_GEN_CRITEO:
        return pace__click_write_criteo;
    case PACE_GEN_SVMLIGHT:
        return pace__click_write_svmlight;
    default:
        assert(format == PACE_GEN_TFRECORD);
        return pace__click_write_tfrecord;
    }
}

/* The entropy of a coin; 0 if one side never comes. */
static double constant_logloss(double rate)
{
    if (rate <= 0 || rate >= 1)
        return 0;
    return -(rate * log(rate) + (1 - rate) * log(1 - rate));
}

static void describe(const totals *sum, uint64_t start_ns, pace_gen_clicks_result *result)
{
    double rate = (double)sum->positives / (double)sum->rows;

    *result = (pace_gen_clicks_result){
        .rows = sum->rows,
        .bytes = sum->bytes,
        .positive_rate = rate,
        .best_logloss = sum->loss / (double)sum->rows,
        .null_logloss = constant_logloss(rate),
        .seconds = pace__seconds_since(start_ns),
    };
}

/* Makes and writes all chunks with as many threads as there is work for. */
static pace_status run_job(generation *job, int64_t threads)
{
    const pace_log *log = job->output->log;

    if (threads == 0)
        threads = pace__cores();
    if ((uint64_t)threads > job->chunks)
        threads = (int64_t)job->chunks;
    job->buffers = malloc((size_t)threads * CHUNK_BYTES);
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

pace_status pace_gen_clicks(const pace_gen_clicks_config *config, const pace_log *log,
                            pace_registry *registry, pace_gen_clicks_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace__output output;
    pace_status status = check_config(config, log);

    if (status)
        return status;
    pace__click_model *model = pace__click_model_create();

    if (!model)
        return pace_fail(log, PACE_FAILED, "out of memory for the planted model");
    status = pace__output_open(&output, config->output, config->force, log);
    if (status)
        goto free_model;
    generation job = {.model = model,
                      .write = writer_of(config->format),
                      .seed = (uint64_t)config->seed,
                      .rows = (uint64_t)config->rows,
                      .chunks = ((uint64_t)config->rows + CHUNK_ROWS - 1) / CHUNK_ROWS,
                      .output = &output,
                      .registry = registry};

    status = pace__output_close(&output, run_job(&job, config->threads));
    if (!status)
        describe(&job.sum, start_ns, result);
free_model:
    pace__click_model_free(model);
    return status;
}

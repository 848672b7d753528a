#include "base/clock.h"
#include "base/locale.h"
#include "gen/chunks.h"
#include "gen/click_format.h"
#include "threads/thread.h"

#include <assert.h>
#include <paceline/gen.h>

#define CHUNK_ROWS 2048

const pace_option pace_gen_clicks_options[] = {
    {"output", 'o', PACE_OPT_TEXT, offsetof(pace_gen_clicks_config, output), NULL, "FILE",
     "file to write; - for standard output", .required = true},
    {"rows", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, rows), "1000000", "N", "rows to write",
     .min = 1, .max = PACE__GEN_ROWS_MAX},
    {"seed", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, seed), "1", "N",
     "which rows; the population that they are drawn from is always the same", .min = 0, .max = 0x1p53},
    {"format", 0, PACE_OPT_CHOICE, offsetof(pace_gen_clicks_config, format), "criteo", NULL,
     "layout of the file", .choices = "criteo|svmlight|tfrecord"},
    {"threads", 0, PACE_OPT_INT, offsetof(pace_gen_clicks_config, threads), "0", "N", "0: one per core",
     .min = 0, .max = PACE_THREADS_MAX},
    {"force", 0, PACE_OPT_FLAG, offsetof(pace_gen_clicks_config, force), "false", NULL,
     "replace an existing file", .required = false},
    {0}};

typedef struct population {
    pace__click_model *model;
    pace__click_write_fn *write;
} population;

static char *make_row(const void *user, pace__random *random, char *at, pace__made *made)
{
    const population *clicks = user;
    pace__click_row row;

    pace__click_draw(clicks->model, random, &row);
    made->positives += row.clicked;
    made->loss += row.loss;
    return clicks->write(clicks->model, &row, at);
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

static void describe(const pace__made *made, uint64_t start_ns, pace_gen_clicks_result *result)
{
    *result = (pace_gen_clicks_result){
        .rows = made->rows,
        .bytes = made->bytes,
        .positive_rate = pace__made_rate(made),
        .best_logloss = made->loss / (double)made->rows,
        .null_logloss = pace__made_null_logloss(made),
        .seconds = pace__seconds_since(start_ns),
    };
}

pace_status pace_gen_clicks(const pace_gen_clicks_config *config, const pace_log *log,
                            pace_registry *registry, pace_gen_clicks_result *result)
{
    PACE__C_LOCALE();
    uint64_t start_ns = pace__now_ns();
    population clicks = {pace__click_model_create(), writer_of(config->format)};
    pace__chunk_plan plan = {.output = config->output,
                             .force = config->force,
                             .stop = config->stop,
                             .rows = config->rows,
                             .seed = config->seed,
                             .threads = config->threads,
                             .chunk_rows = CHUNK_ROWS,
                             .row_bytes_max = PACE__CLICK_BYTES_MAX,
                             .make_row = make_row,
                             .population = &clicks};
    pace__made made;

    if (!clicks.model)
        return pace_fail(log, PACE_FAILED, "out of memory for the planted model");
    pace_status status = pace__write_chunks(&plan, log, registry, &made);

    if (!status)
        describe(&made, start_ns, result);
    pace__click_model_free(clicks.model);
    return status;
}

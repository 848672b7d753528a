#include "prep/images/images.h"

#include "base/locale.h"

#include "prep/options.h"
#include "prep/start.h"
#include "threads/thread.h"

#include <stdlib.h>

#define THREAD_MEMORY_MIN ((uint64_t)64 << 20)

#define FIELD(name) offsetof(pace_prep_images_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from names and first bytes", "auto|folders|idx|cifar|tfrecord|csv",
     .mark = PACE_MARK_DATA, .group = ""},
    {"path-field", 0, PACE_OPT_TEXT, FIELD(path_field), NULL, "COLUMN",
     "csv: the column of the paths, which start from the folder of the csv file", .usual = PACE__PATH_FIELD,
     .mark = PACE_MARK_DATA},
    {"label-field", 0, PACE_OPT_TEXT, FIELD(label_field), NULL, "COLUMN", "csv: the column of the classes",
     .usual = PACE__CLASS_FIELD, .mark = PACE_MARK_DATA},
    {"size", 0, PACE_OPT_INT, FIELD(size), "0", "PIXELS",
     "height and width of the rows, 8 to 4096; 0: that of IDX and CIFAR pictures, else 160", .min = 0,
     .max = PACE__PICTURE_SIDE_MAX, .mark = PACE_MARK_DATA, .group = "Pictures"},
    {"fit", 0, PACE_OPT_CHOICE, FIELD(fit), "crop", "F",
     "how other shapes become square: cut, with black beside them, or distorted", "crop|pad|stretch",
     .mark = PACE_MARK_DATA},
    {"channels", 0, PACE_OPT_CHOICE, FIELD(channels), "auto", "C",
     "colours of the rows; auto: grey if all pictures are", "auto|grey|rgb", .mark = PACE_MARK_DATA},
    {0},
};

static const pace_option limits[] = {
    PACE__PREP_LIMITS(67108864, ": it has no more threads than have 64 MiB each", "100")};

const pace_option_table pace_prep_images_tables[] = {
    {pace__prep_input_options, 0}, {own_options, 0}, {pace__prep_work_options, 0}, {limits, 0}, {0}};

/* --- processes and threads --- */

static pace_status run_rank(void *prep, pace__link *link, void *result)
{
    pace__images *job = prep;
    const pace_prep_common *config = &job->config->common;
    const pace_log *log = pace__link_rank(link) > 0 ? NULL : job->prep.log;

    job->threads = pace__prep_threads(config->threads, job->prep.many ? 1 : pace__cores(), config->memory,
                                      THREAD_MEMORY_MIN, log);
    return pace__images_run(job, link, result);
}

/* --- all of it --- */

#define RESULT(name) offsetof(pace_prep_images_result, name)

static const pace__result_field result_fields[] = {
    {"train_rows", RESULT(train_rows)},
    {"test_rows", RESULT(test_rows)},
    {"validation_rows", RESULT(validation_rows)},
    {"bad_rows", RESULT(bad_rows)},
    {"classes", RESULT(classes)},
    {"height", RESULT(height)},
    {"width", RESULT(width)},
    {"channels", RESULT(channels)},
    {"turned", RESULT(turned)},
    {"bytes_read", RESULT(bytes_read)},
    {"bytes_written", RESULT(bytes_written)},
    {"ranks", RESULT(ranks)},
    {"processes", RESULT(processes)},
    {"skew", RESULT(skew), .real = true},
    {0},
};

static const pace__prep_kind kind = {
    .verb = "prep images",
    .tables = pace_prep_images_tables,
    .config_bytes = sizeof(pace_prep_images_config),
    .fields = result_fields,
    .result_bytes = sizeof(pace_prep_images_result),
    .elsewhere_at = RESULT(elsewhere),
    .seconds_at = RESULT(seconds),
    .ranks_at = RESULT(ranks),
    .settle = pace__images_settle,
    .run_rank = run_rank,
};

static void release(pace__images *job)
{
    pace__images_close_parts(job);
    pace__pictures_close(&job->pictures);
    pace__picture_sources_release(&job->sources);
    pace__class_names_release(&job->like);
    pace__prep_job_release(&job->prep);
    pthread_mutex_destroy(&job->lock);
    free(job->info.command);
    free(job->holes);
    free(job->all);
    free(job);
}

pace_status pace_prep_images(const pace_prep_images_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_images_result *result)
{
    PACE__C_LOCALE();
    pace__images *job = calloc(1, sizeof *job);

    if (!job)
        return pace_fail(log, PACE_FAILED, "out of memory");
    job->config = config;
    pace__prep_job_init(&job->prep, &kind, job, &config->common, log, registry);
    pthread_mutex_init(&job->lock, NULL);
    pace_status status = pace__prep_run(&job->prep, result);

    release(job);
    return status;
}

#include "prep/images/images.h"

#include "base/clock.h"
#include "prep/options.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_MEMORY_MIN ((uint64_t)64 << 20)

#define FIELD(name) offsetof(pace_prep_images_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from names and first bytes", "auto|folders|idx|cifar|tfrecord",
     .group = ""},
    {"size", 0, PACE_OPT_INT, FIELD(size), "0", "PIXELS",
     "height and width of the rows, 8 to 4096; 0: that of IDX and CIFAR pictures, else 160", .min = 0,
     .max = PACE__PICTURE_SIDE_MAX, .group = "Pictures"},
    {"fit", 0, PACE_OPT_CHOICE, FIELD(fit), "crop", "F",
     "how other shapes become square: cut, with black beside them, or distorted", "crop|pad|stretch"},
    {"channels", 0, PACE_OPT_CHOICE, FIELD(channels), "auto", "C",
     "colours of the rows; auto: grey if all pictures are", "auto|grey|rgb"},
    {0},
};

static const pace_option limits[] = {
    PACE__PREP_LIMITS(67108864, ": it has no more threads than have 64 MiB each", "100")};

const pace_option_table pace_prep_images_tables[] = {
    {pace__prep_input_options, 0}, {own_options, 0}, {pace__prep_work_options, 0}, {limits, 0}, {0}};

/* --- processes and threads --- */

static int threads_of(const pace_prep_images_config *config, bool many, const pace_log *log)
{
    return pace__prep_threads(config->common.threads, many ? 1 : pace__cores(), config->common.memory,
                              THREAD_MEMORY_MIN, log);
}

static pace_status run_here(pace__images *job, pace_prep_images_result *result)
{
    pace__link *link = NULL;
    pace_status status = pace__images_settle(job, job->party.log);

    if (status)
        return status;
    job->threads = threads_of(job->config, false, job->party.log);
    status = pace__party_open_threads(&job->party, 1, &link);
    return status ? status : pace__images_run(job, link, result);
}

static pace_status run_process(pace__images *job, pace_prep_images_result *result)
{
    pace__link *link = NULL;
    pace_status status = pace__party_open_process(&job->party, job->config->common.processes, &link);

    result->elsewhere = link && pace__link_rank(link) > 0;
    job->threads = threads_of(job->config, true, result->elsewhere ? NULL : job->party.log);
    if (!status)
        return pace__images_run(job, link, result);
    pace__link_close(link);
    return status;
}

/* --- the result as a record --- */

#define RESULT(name) offsetof(pace_prep_images_result, name)

static const pace__result_field result_fields[] = {
    {"train_rows", RESULT(train_rows)},
    {"test_rows", RESULT(test_rows)},
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
    {"seconds", RESULT(seconds), .real = true},
    {"skew", RESULT(skew), .real = true},
};

#define FIELDS (sizeof result_fields / sizeof *result_fields)

static void take_record(void *user, const pace_record *record)
{
    if (strcmp(record->kind, "prepared") == 0)
        pace__result_take(record, result_fields, FIELDS, user);
}

/* The checks that can be made here are made here: their messages need no launcher. All else rank 0 tells. */
static pace_status start_processes(pace__images *job, pace_prep_images_result *result)
{
    const pace_prep_images_config *config = job->config;
    pace_log errors = {pace__party_only_errors, (void *)(uintptr_t)job->party.log};
    pace_prep_images_config ranks = *config;
    pace__party_plan plan = {.verb = "prep images",
                             .tables = pace_prep_images_tables,
                             .config = &ranks,
                             .common = &config->common,
                             .sink = {take_record, result},
                             .made = &result->ranks};
    pace_status status = pace__images_settle(job, &errors);

    ranks.common.mpirun = NULL;
    return status ? status : pace__party_launch(&plan, job->party.log, job->party.registry);
}

/* --- all of it --- */

static void release(pace__images *job)
{
    pace__images_close_parts(job);
    pace__pictures_close(&job->pictures);
    pace__picture_sources_release(&job->sources);
    pace__class_names_release(&job->like);
    pace__party_release(&job->party);
    pthread_mutex_destroy(&job->lock);
    free(job->info.command);
    free(job->holes);
    free(job->all);
    free(job);
}

pace_status pace_prep_images(const pace_prep_images_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_images_result *result)
{
    pace__images *job = calloc(1, sizeof *job);
    pace_prep_images_result reached = {0};
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_OK;
    int rank, size;

    if (!job)
        return pace_fail(log, PACE_FAILED, "out of memory");
    bool launched = pace__launched(&rank, &size) && size != 1;

    job->config = config;
    pace__party_init(&job->party, config->common.output, config->common.force, config->common.stop, log,
                     registry);
    pthread_mutex_init(&job->lock, NULL);
    if (launched)
        status = run_process(job, &reached);
    else if (config->common.processes > 1)
        status = start_processes(job, &reached);
    else
        status = run_here(job, &reached);
    release(job);
    if (!reached.elsewhere)
        reached.seconds = pace__seconds_since(start_ns);
    if (!status && launched && !reached.elsewhere)
        pace__result_emit(registry, "prepared", result_fields, FIELDS, &reached);
    if (!status || reached.elsewhere)
        *result = reached;
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}

#include "prep/images/images.h"

#include "base/clock.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_MEMORY_MIN ((uint64_t)64 << 20)

#define FIELD(name) offsetof(pace_prep_images_config, name)

const pace_option pace_prep_images_options[] = {
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "DIR", "data set directory to write",
     .group = "Input and output"},
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from names and first bytes", "auto|folders|idx|cifar|tfrecord"},
    {"test", 0, PACE_OPT_LIST, FIELD(test), NULL, "IN",
     "pictures of this folder or file become the test set (may be repeated)"},
    {"holdout", 0, PACE_OPT_REAL, FIELD(holdout), "0", "FRACTION",
     "this fraction of the pictures, chosen at random, becomes the test set", .min = 0, .max = 0.999999},
    {"like", 0, PACE_OPT_TEXT, FIELD(like), NULL, "DIR|RUN",
     "take size, channels, fit and classes from this data set or run, so that its model can score the new "
     "set"},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing data set"},
    {"size", 0, PACE_OPT_INT, FIELD(size), "0", "PIXELS",
     "height and width of the rows, 8 to 4096; 0: that of IDX and CIFAR pictures, else 160", .min = 0,
     .max = PACE__PICTURE_SIDE_MAX, .group = "Pictures"},
    {"fit", 0, PACE_OPT_CHOICE, FIELD(fit), "crop", "F",
     "how other shapes become square: cut, with black beside them, or distorted", "crop|pad|stretch"},
    {"channels", 0, PACE_OPT_CHOICE, FIELD(channels), "auto", "C",
     "colours of the rows; auto: grey if all pictures are", "auto|grey|rgb"},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of the shuffle and the hold-out",
     .group = "Shuffle and parts"},
    {"parts", 0, PACE_OPT_INT, FIELD(parts), "8", "N", "files to write", .min = 1, .max = PACE__PARTS_MAX},
    {"on-part", 0, PACE_OPT_TEXT, FIELD(on_part), NULL, "CMD",
     "shell command to run on each finished part, before the data set appears under its name; its path is in "
     "$PACELINE_PART"},
    {"processes", 'n', PACE_OPT_INT, FIELD(processes), "1", "N",
     "processes to start through mpirun; the result is the same for any number", .min = 1,
     .max = PACE__RANKS_MAX, .group = "Resources"},
    {"threads", 0, PACE_OPT_INT, FIELD(threads), "0", "T",
     "of each process; 0: one per core, or one in each of several processes; the result is the same for any "
     "number",
     .min = 0, .max = PACE_THREADS_MAX},
    {"memory", 0, PACE_OPT_SIZE, FIELD(memory), "1G", "BYTES",
     "memory for each process: it has no more threads than have 64 MiB each", .min = 67108864, .max = 1e15},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build"},
    {"max-bad-rows", 0, PACE_OPT_INT, FIELD(max_bad_rows), "100", "N",
     "leave out and count up to N pictures that cannot be read; with more of them, fail", .min = 0,
     .max = 1e15},
    {0},
};

/* --- processes and threads --- */

static int threads_of(const pace_prep_images_config *config, bool many, const pace_log *log)
{
    return pace__prep_threads(config->threads, many ? 1 : pace__cores(), config->memory, THREAD_MEMORY_MIN,
                              log);
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
    pace_status status = pace__party_open_process(&job->party, job->config->processes, &link);

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
    pace__party_plan plan = {.what = "images",
                             .table = pace_prep_images_options,
                             .config = &ranks,
                             .inputs = &config->inputs,
                             .processes = config->processes,
                             .mpirun = config->mpirun,
                             .output = config->output,
                             .stop = config->stop,
                             .sink = {take_record, result},
                             .made = &result->ranks};
    pace_status status = pace__images_settle(job, &errors);

    ranks.mpirun = NULL;
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
    pace__party_init(&job->party, config->output, config->force, config->stop, log, registry);
    pthread_mutex_init(&job->lock, NULL);
    if (launched)
        status = run_process(job, &reached);
    else if (config->processes > 1)
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

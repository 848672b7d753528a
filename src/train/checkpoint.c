/* One file per checkpoint: checkpoints/step-000000001234.safetensors. */
#include "base/file.h"
#include "data/safetensors.h"
#include "train/job.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define NAME_FORMAT     "step-%012" PRIu64 ".safetensors"
#define CHECKPOINTS_MAX 4096

/* Everything that decides the bits of the result: a checkpoint can only be continued by a job that agrees. */
static char *fingerprint(const pace__job *job)
{
    const pace_train_config *config = job->config;
    /* A constant rate may go on for longer than planned; any other was laid out over the steps. */
    uint64_t steps = config->schedule == PACE_SCHEDULE_CONSTANT ? 0 : job->steps;

    return pace__format("rows=%" PRIu64 " ids=%u optimizer=%d lr=%.9g momentum=%.9g l1=%.9g l2=%.9g"
                        " schedule=%d warmup=%" PRId64 " steps=%" PRIu64 " batch=%" PRIu64 " seed=%" PRId64
                        " rule=%s",
                        job->order.rows, job->model.ids, config->optimizer, job->lr, config->momentum,
                        config->l1, config->l2, config->schedule, config->warmup, steps, job->order.batch,
                        config->seed, job->exact ? "exact" : "block");
}

/* Of everything that a checkpoint restores. */
static char *checksum_of(const pace__logreg *model, const uint64_t numbers[3], const double reals[3])
{
    uint64_t sum = XXH3_64bits(model->parameters, pace__logreg_bytes(model));

    sum = XXH3_64bits_withSeed(model->bias, sizeof model->bias, sum);
    sum = XXH3_64bits_withSeed(numbers, 3 * sizeof *numbers, sum);
    sum = XXH3_64bits_withSeed(reals, 3 * sizeof *reals, sum);
    return pace__format("%016" PRIx64, sum);
}

/* Steps of the checkpoints that are there, newest first. */
static size_t list_steps(const char *directory, uint64_t *steps)
{
    DIR *listing = opendir(directory);
    size_t count = 0;

    for (struct dirent *entry; listing && (entry = readdir(listing)) && count < CHECKPOINTS_MAX;) {
        uint64_t step;
        int end = 0;

        if (sscanf(entry->d_name, "step-%12" SCNu64 ".safetensors%n", &step, &end) == 1 && end > 0 &&
            !entry->d_name[end])
            steps[count++] = step;
    }
    if (listing)
        closedir(listing);
    for (size_t i = 1; i < count; i++) { /* a handful */
        uint64_t moved = steps[i];
        size_t to = i;

        for (; to > 0 && steps[to - 1] < moved; to--)
            steps[to] = steps[to - 1];
        steps[to] = moved;
    }
    return count;
}

/* Keeps the newest ones up to the one just written; what lies beyond it was passed over when the run was
 * resumed. */
static void remove_old(const pace__job *job, const char *directory)
{
    uint64_t *steps = malloc(CHECKPOINTS_MAX * sizeof *steps);
    size_t count = steps ? list_steps(directory, steps) : 0;
    int64_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (steps[i] <= job->position.step && kept++ < job->config->keep)
            continue;
        char *path = pace__format("%s/" NAME_FORMAT, directory, steps[i]);

        if (path)
            unlink(path);
        free(path);
    }
    free(steps);
}

pace_status pace__checkpoint_write(const pace__job *job)
{
    const pace__logreg *model = &job->model;
    const pace__position *at = &job->position;
    const char *directory = pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS);
    uint64_t numbers[] = {at->step, at->worse, at->epoch_rows};
    double reals[] = {at->best_logloss, at->epoch_loss, at->last_epoch_loss};
    pace__tensor tensors[] = {
        {.name = "parameters",
         .dtype = PACE__F32,
         .rank = 2,
         .shape = {(uint64_t)model->ids + 1, model->optim.width},
         .data = model->parameters},
        {.name = "bias",
         .dtype = PACE__F32,
         .rank = 1,
         .shape = {PACE__OPTIM_WIDTH_MAX},
         .data = model->bias},
        {.name = "position", .dtype = PACE__U64, .rank = 1, .shape = {3}, .data = numbers},
        {.name = "losses", .dtype = PACE__F64, .rank = 1, .shape = {3}, .data = reals},
    };
    char *path = pace__format("%s/" NAME_FORMAT, directory, at->step), *job_text = fingerprint(job);
    char *checksum = checksum_of(model, numbers, reals);
    pace__text_pair metadata[] = {
        {"format", "paceline checkpoint"}, {"job", job_text}, {"checksum", checksum}};
    pace_status status = path && job_text && checksum ? pace__make_dirs(directory, job->log)
                                                      : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__safetensors_write(path, tensors, 4, metadata, 3, NULL, job->log);
    if (!status)
        remove_old(job, directory);
    free(checksum);
    free(job_text);
    free(path);
    return status;
}

static bool read_tensor(const pace__safetensors *file, const char *name, pace__dtype dtype, void *into,
                        size_t bytes, const pace_log *log)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file, name);

    return tensor && tensor->dtype == dtype && tensor->bytes == bytes &&
           pace__safetensors_read(file, tensor, 0, into, bytes, log) == PACE_OK;
}

static pace_status read_state(pace__job *job, const pace__safetensors *file, const char *path)
{
    pace__logreg *model = &job->model;
    const char *checksum = pace__safetensors_metadata(file, "checksum");
    uint64_t numbers[3];
    double reals[3];

    if (!checksum || !read_tensor(file, "position", PACE__U64, numbers, sizeof numbers, job->log) ||
        !read_tensor(file, "losses", PACE__F64, reals, sizeof reals, job->log) ||
        !read_tensor(file, "bias", PACE__F32, model->bias, sizeof model->bias, job->log) ||
        !read_tensor(file, "parameters", PACE__F32, model->parameters, pace__logreg_bytes(model), job->log))
        return pace_fail(job->log, PACE_BAD_DATA, "%s: damaged: a tensor is missing or has another shape",
                         path);
    char *found = checksum_of(model, numbers, reals);
    bool same = found && strcmp(found, checksum) == 0;

    free(found);
    if (!same)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: damaged: its checksum is wrong", path);
    job->position = (pace__position){numbers[0], reals[0], numbers[1], reals[1], numbers[2], reals[2]};
    return PACE_OK;
}

/* Names the first "name=value" word in which two fingerprints differ. */
static pace_status say_difference(const pace__job *job, const char *path, const char *own, const char *theirs)
{
    size_t word = 0;

    for (size_t i = 0; own[i] && own[i] == theirs[i]; i++) {
        if (own[i] == ' ')
            word = i + 1;
    }
    return pace_fail(
        job->log, PACE_USAGE,
        "%s: made by a job with other options or data: %.*s there, %.*s here; repeat those, or start "
        "over with --force",
        path, (int)strcspn(theirs + word, " "), theirs + word, (int)strcspn(own + word, " "), own + word);
}

/* PACE_BAD_DATA: damaged, an older one may do. */
static pace_status load(pace__job *job, const char *path)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, job->log, &file);

    if (status)
        return status;
    char *own = fingerprint(job);
    const char *theirs = pace__safetensors_metadata(file, "job");

    if (!own || !theirs || strcmp(own, theirs) != 0)
        status = say_difference(job, path, own ? own : "", theirs ? theirs : "");
    else
        status = read_state(job, file, path);
    if (!status && job->position.step > job->steps)
        status =
            pace_fail(job->log, PACE_USAGE, "%s: is at step %" PRIu64 ", but this job ends at step %" PRIu64,
                      path, job->position.step, job->steps);
    free(own);
    pace__safetensors_close(file);
    return status;
}

/* What a killed process was writing. The run directory is locked: it is nobody's any more. */
static void remove_unfinished(const char *directory)
{
    DIR *listing = opendir(directory);

    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        const char *ending = strrchr(entry->d_name, '.');

        if (strncmp(entry->d_name, "step-", 5) == 0 && ending && strcmp(ending, ".tmp") == 0)
            unlinkat(dirfd(listing), entry->d_name, 0);
    }
    if (listing)
        closedir(listing);
}

pace_status pace__checkpoint_restore(pace__job *job)
{
    const char *directory = pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS);

    remove_unfinished(directory);
    uint64_t *steps = malloc(CHECKPOINTS_MAX * sizeof *steps);
    size_t count = steps ? list_steps(directory, steps) : 0;
    pace_status status = PACE_NO_INPUT;

    for (size_t i = 0; i < count; i++) {
        char *path = pace__format("%s/" NAME_FORMAT, directory, steps[i]);

        status = path ? load(job, path) : PACE_FAILED;
        if (!status)
            pace_say(job->log, PACE_INFO, "resuming from %s", path);
        else if (status == PACE_BAD_DATA && i + 1 < count)
            pace_say(job->log, PACE_WARN, "%s: not usable, trying the one before", path);
        free(path);
        if (status != PACE_BAD_DATA)
            break;
    }
    free(steps);
    if (count == 0)
        pace_fail(job->log, PACE_NO_INPUT, "%s: no checkpoint to resume from; start over with --force",
                  directory);
    else if (status == PACE_BAD_DATA)
        pace_fail(job->log, PACE_BAD_DATA,
                  "%s: none of its %zu checkpoints is usable; start over with --force", directory, count);
    return status;
}

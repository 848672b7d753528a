#include "prep/job.h"

#include "base/random.h"
#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/store/checksums.h"
#include "data/store/store.h"
#include "data/text/vocabulary.h"
#include "files/crc32c.h"
#include "files/file.h"
#include "files/open.h"
#include "files/output.h"
#include "prep/common.h"
#include "prep/options.h"
#include "prep/start.h"
#include "ranks/hello.h"
#include "ranks/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
/* At each end of an input, to know it by. */
#define KNOWN_BYTES 65536
#define MARK_NAME   "ranks" /* in the directory: shows others that they see the same one */

/* A process that has died is noticed by its launcher; this is for one that hangs. Threads do not get lost. */
#define DEADLINE_S       600.0
#define FIRST_DEADLINE_S 120.0
#define THREADS_S        1e8

/* --- one process --- */

void pace__prep_job_init(pace__prep_job *job, const pace__prep_kind *kind, void *prep,
                         const pace_prep_common *config, const pace_log *log, pace_registry *registry)
{
    *job = (pace__prep_job){
        .kind = kind, .prep = prep, .config = config, .registry = registry, .staging.lock = -1};
    pace__once_init(&job->once, log); /* threads may meet the same trouble */
    job->log = &job->once.log;
}

void pace__prep_job_release(pace__prep_job *job)
{
    pace__staging_abandon(&job->staging, NULL);
    free(job->directory);
    job->directory = NULL;
}

/* Replacing a set must not destroy what it is made of. */
static pace_status check_apart(const pace_prep_common *config, const pace_log *log)
{
    pace_status status = pace__output_apart(config->output, config->inputs.items, config->inputs.count, log);

    if (!status)
        status = pace__output_apart(config->output, config->test.items, config->test.count, log);
    return status ? status : pace__output_apart(config->output, &config->like, 1, log);
}

pace_status pace__prep_settle(const pace__prep_job *job, const pace_log *log)
{
    if (!job->config->output)
        return pace_fail(log, PACE_USAGE, "--output is missing: the data set directory to write");
    if (job->config->holdout > 0 && job->config->test.count > 0)
        return pace_fail(log, PACE_USAGE,
                         "--holdout and --test: the test set can come from one of them only");
    pace_status status = check_apart(job->config, log);

    return status ? status : job->kind->settle(job->prep, log);
}

pace_status pace__prep_open_process(pace__prep_job *job, pace__link **link)
{
    int64_t processes = job->config->processes;
    pace__link_options options = {.deadline_ns = (uint64_t)(DEADLINE_S * 1e9),
                                  .first_deadline_ns = (uint64_t)(FIRST_DEADLINE_S * 1e9),
                                  .log = job->log};
    pace_status status = pace__link_open_mpi(1, &options, link);

    if (status)
        return status;
    job->many = true;
    job->parent = getppid();
    job->ranks = pace__link_size(*link);
    /* Every process finds these; one tells. */
    const pace_log *log = pace__link_rank(*link) > 0 ? NULL : job->log;

    if (job->ranks > PACE__RANKS_MAX)
        status =
            pace_fail(log, PACE_USAGE, "%d processes: at most %d are possible", job->ranks, PACE__RANKS_MAX);
    else if (processes > 1 && processes != job->ranks)
        status = pace_fail(log, PACE_USAGE, "%d process%s started, but --processes is %" PRId64, job->ranks,
                           job->ranks == 1 ? " was" : "es were", processes);
    if (status) /* the others may be content, and wait */
        pace__link_fail(*link, status, "a rank was started for another number of processes");
    return status;
}

pace_status pace__prep_open_threads(pace__prep_job *job, int ranks, pace__link **links)
{
    pace__link_options options = {.deadline_ns = (uint64_t)(THREADS_S * 1e9),
                                  .first_deadline_ns = (uint64_t)(THREADS_S * 1e9),
                                  .log = job->log};

    job->ranks = ranks;
    return pace__link_open_threads(ranks, ranks, &options, links);
}

pace_status pace__prep_look_around(void *self)
{
    const pace__prep_job *job = self;

    if (job->config->stop && *job->config->stop)
        return PACE_INTERRUPTED;
    return (pace_status)atomic_load(&job->failed);
}

pace_status pace__prep_give_up(pace__prep_job *job, pace_status status)
{
    int none = PACE_OK;

    atomic_compare_exchange_strong(&job->failed, &none, (int)status);
    return status;
}

/* --- the directory --- */

static bool is_part(const char *name)
{
    char again[32];
    unsigned index;

    if (sscanf(name, "part-%u.", &index) != 1)
        return false;
    snprintf(again, sizeof again, PACE__PART_NAME, index);
    return strcmp(name, again) == 0;
}

static bool is_of_a_set(const char *name)
{
    return is_part(name) || strcmp(name, "ids.h5") == 0 || strcmp(name, PACE__CHECKSUMS_NAME) == 0 ||
           strcmp(name, PACE__VOCABULARY_NAME) == 0 || strcmp(name, PACE__CLASS_NAMES_FILE) == 0 ||
           strcmp(name, PACE__IMAGE_NAMES_FILE) == 0;
}

/* Replacing a data set must not take along what someone put beside its parts. */
static pace_status check_older(const char *target, const pace_log *log)
{
    if (!pace__is_store(target))
        return pace_fail(log, PACE_USAGE, "%s: exists and is not a data set: choose another directory",
                         target);
    DIR *directory = opendir(target);
    pace_status status =
        directory ? PACE_OK : pace_fail(log, PACE_IO, "%s: cannot open: %s", target, strerror(errno));

    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        const char *name = entry->d_name;

        if (!pace__is_dots(name) && !is_of_a_set(name))
            status = pace_fail(log, PACE_USAGE,
                               "%s: holds %s besides a data set: move it away, or choose another directory",
                               target, name);
    }
    if (directory)
        closedir(directory);
    return status;
}

const pace__staging_kind pace__prep_staging = {"prep", "data set", check_older};

/* What rank 0 tells about it. */
typedef struct meeting_place {
    char directory[PATH_BYTES], mark[64];
} meeting_place;

/* Whoever finds this file with this text in it sees the same directory. */
static pace_status leave_mark(const pace__rank *rank, meeting_place *place)
{
    struct timespec now;
    char *path = pace__format("%s/%s", place->directory, MARK_NAME);

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(place->mark, sizeof place->mark, "%ld %lld %ld", (long)getpid(), (long long)now.tv_sec,
             now.tv_nsec);
    pace_status status = path ? pace__write_file_atomically(path, place->mark, strlen(place->mark), rank->log)
                              : pace_fail(rank->log, PACE_FAILED, "out of memory");

    free(path);
    return status;
}

static pace_status make_directory(pace__prep_job *job, const pace__rank *rank, meeting_place *place)
{
    const char *output = job->config->output;
    pace_status status =
        pace__staging_begin(&pace__prep_staging, output, job->config->force, &job->staging, rank->log);

    if (status)
        return status;
    if ((size_t)snprintf(place->directory, sizeof place->directory, "%s", job->staging.directory) >=
        sizeof place->directory)
        return pace_fail(rank->log, PACE_USAGE, "%s: the name is too long", output);
    return job->many ? leave_mark(rank, place) : PACE_OK;
}

/* Another host may have another directory of that name, or none. */
static pace_status check_directory(const pace__prep_job *job, const pace__rank *rank,
                                   const meeting_place *place)
{
    char *path = pace__format("%s/%s", place->directory, MARK_NAME), *mark = NULL;
    size_t size;
    bool same = path && pace__read_file(path, sizeof place->mark, &mark, &size, NULL) == PACE_OK &&
                strcmp(mark, place->mark) == 0;

    free(mark);
    free(path);
    return same ? PACE_OK
                : pace_fail(rank->log, PACE_USAGE,
                            "%s: not the same directory here: --output must be on a file system that all "
                            "processes share",
                            job->config->output);
}

static pace_status meet(pace__prep_job *job, const pace__rank *rank)
{
    meeting_place *place = calloc(1, sizeof *place);
    pace_status status = place ? PACE_OK : pace_fail(rank->log, PACE_FAILED, "out of memory");

    if (!status && rank->number == 0)
        status = make_directory(job, rank, place);
    if (!status)
        status = pace__ranks_share(rank->link, place, sizeof *place);
    if (!status && job->many && rank->number > 0)
        status = check_directory(job, rank, place);
    if (!status && pace__prep_is_first(job, rank) && !(job->directory = strdup(place->directory)))
        status = pace_fail(rank->log, PACE_FAILED, "out of memory");
    free(place);
    return status ? status : pace__ranks_meet(rank->link);
}

void pace__prep_say_memory(const pace__prep_job *job, const pace__rank *rank)
{
    if (rank->number == 0)
        pace_say(rank->log, PACE_INFO,
                 "memory: at most %.2f GB%s; what does not fit goes to temporary files in %s",
                 (double)job->config->memory / 1e9, job->many ? " in each process" : "", job->directory);
}

pace_status pace__prep_commit(pace__prep_job *job, const pace__rank *rank)
{
    char *mark = pace__format("%s/%s", job->directory, MARK_NAME);

    if (mark)
        unlink(mark);
    free(mark);
    pace_status status = pace__store_seal(job->directory, rank->log);

    if (!status && job->many && getppid() != job->parent)
        status = pace_fail(rank->log, PACE_LOST, "the launcher is gone: nothing is kept");
    if (status)
        return status;
    if (!job->many || !pace_relay_wanted())
        return pace__staging_commit(&job->staging, rank->log);
    pace__staging_leave(&job->staging); /* who has started us does it, if that is still there */
    return PACE_OK;
}

/* --- one rank --- */

/* Some bytes of a file, by which it is known: those at `at`, as far as they are there. */
static uint64_t sum_up(int fd, uint64_t at, uint64_t sum)
{
    char bytes[KNOWN_BYTES];
    ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)at);

    return pace__mix64(sum ^ (size > 0 ? pace__masked_crc32c(bytes, (size_t)size) : 0));
}

/* Size, beginning and end of every input, as this rank sees them. What is no regular file is known by its name alone. */
static uint64_t known_by(const char *const *paths, size_t count)
{
    uint64_t sum = count;

    for (size_t i = 0; i < count; i++) {
        char why[PACE__WHY_BYTES];
        int fd = pace__try_open(paths[i], PACE__TO_READ, why);
        struct stat info;

        if (fd >= 0 && fstat(fd, &info) == 0) {
            uint64_t size = (uint64_t)info.st_size;

            sum = sum_up(fd, 0, pace__mix64(sum ^ size));
            sum = sum_up(fd, size > KNOWN_BYTES ? size - KNOWN_BYTES : 0, sum);
        }
        if (fd >= 0)
            close(fd);
    }
    return sum;
}

/* Each rank cuts the inputs by what it sees of them: that must be the same, or rows would belong to nobody. `before` is
 * what it saw before it cut. */
static pace_status compare_inputs(const pace__prep_job *job, const pace__rank *rank, const char *const *paths,
                                  size_t count, uint64_t before)
{
    uint64_t now = known_by(paths, count), *all = calloc((size_t)job->ranks, sizeof *all);
    pace_status status = all ? pace__ranks_exchange(rank->link, &now, sizeof now, all)
                             : pace_fail(rank->log, PACE_FAILED, "out of memory");

    if (!status && now != before)
        status = pace_fail(rank->log, PACE_BAD_DATA, "the inputs have changed while they were opened");
    for (int i = 1; i < job->ranks && !status && rank->number == 0; i++) {
        if (all[i] != all[0])
            status = pace_fail(
                rank->log, PACE_USAGE,
                "%s sees other inputs than the chief, or they are changing: all processes must read the "
                "same files",
                pace__link_name(rank->link, i));
    }
    free(all);
    return status ? status : pace__ranks_meet(rank->link);
}

pace_status pace__prep_open_input(const pace__prep_job *job, const pace__rank *rank, const char *const *paths,
                                  size_t count, int boundary, pace__input **input)
{
    pace__unit *units = NULL;
    size_t unit_count = 0;

    uint64_t before = job->many ? known_by(paths, count) : 0;
    pace_status status = job->many ? pace__units_cut(paths, count, boundary, rank->number, job->ranks,
                                                     rank->log, &units, &unit_count)
                                   : pace__input_open(paths, count, boundary, rank->log, input);

    if (!status && job->many)
        status = compare_inputs(job, rank, paths, count, before);
    if (!status && job->many)
        status = pace__input_open_units(paths, count, boundary, units, unit_count, rank->log, input);
    free(units);
    if (!status)
        pace__input_watch(*input, (pace__watch){pace__prep_look_around, (void *)(uintptr_t)job});
    return status;
}

static pace_status compare_options(const pace__prep_job *job, pace__rank *rank)
{
    char *words = pace__prep_words(job->kind->tables, job->config);
    pace_status status =
        words ? pace__rank_greet(rank, words, "inputs") : pace_fail(rank->log, PACE_FAILED, "out of memory");

    free(words);
    return status;
}

pace_status pace__prep_begin(pace__prep_job *job, pace__rank *rank, pace__link *link)
{
    pace__cluster cluster = {.workers = job->ranks};
    pace_status status = PACE_OK;

    pace__rank_open(rank, link, &cluster, !job->many, job->log);
    pace__rank_watch(rank, pace__prep_look_around, job);
    if (job->many)
        status = compare_options(job, rank);
    if (!status && job->many)
        status = pace__prep_settle(job, rank->log);
    rank->warns = true; /* rank 0 has told what all have seen */
    return status ? status : meet(job, rank);
}

void pace__prep_end(pace__prep_job *job, pace__rank *rank, pace_status status)
{
    if (status == PACE_INTERRUPTED)
        pace_say(rank->log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    if (status)
        pace__prep_give_up(job, status);
    if (status && job->many && rank->number == 0) /* this process ends in the next line */
        pace__staging_abandon(&job->staging, NULL);
    if (status)
        pace__rank_fail(rank, status);
    pace__rank_close(rank);
}

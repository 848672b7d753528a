/* The life of one process of the job: all phases, with the others. */
#include "base/clock.h"
#include "base/shares.h"
#include "files/file.h"
#include "prep/images/images.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOLES_BYTES_MAX ((size_t)1 << 40)

/* --- before decoding --- */

static pace_status fill_info(pace__images *job, const pace__image_word *word)
{
    const pace_prep_images_config *config = job->config;
    pace__store_info *info = &job->info;

    info->encoding = job->encoding;
    info->columns = info->row_entries_max = pace__encoding_columns(&job->encoding);
    info->like = config->common.like != NULL;
    info->parts = (uint32_t)config->common.parts;
    info->seed = config->common.seed;
    for (int set = 0; set < PACE__SETS; set++) {
        info->rows[set] = word->rows[set];
        info->positives[set] = word->positives[set];
        info->entries[set] = info->rows[set] * info->columns;
    }
    info->command = pace__images_command(job);
    return info->command ? PACE_OK : pace_fail(job->rank.log, PACE_FAILED, "out of memory");
}

static pace_status prepare(pace__images *job)
{
    pace__image_word word;
    pace_status status = pace__images_list(job, &word);

    if (!status)
        status = fill_info(job, &word);
    return status ? status : pace__images_open_parts(job);
}

/* --- after decoding --- */

static char *holes_path(const pace__images *job, int rank)
{
    return pace__format("%s/holes-%d", job->prep.directory, rank);
}

static pace_status write_holes(const pace__images *job)
{
    char *path = holes_path(job, job->rank.number);
    pace_status status =
        path ? pace__write_file_atomically(path, job->hole_count ? job->holes : (void *)"",
                                           job->hole_count * sizeof *job->holes, job->rank.log)
             : pace_fail(job->rank.log, PACE_FAILED, "out of memory");

    free(path);
    return status;
}

static int by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Those of all processes, sorted. */
static pace_status read_holes(const pace__images *job, uint64_t **holes, size_t *count)
{
    const pace_log *log = job->rank.log;
    uint64_t total = 0;
    pace_status status = PACE_OK;

    for (int rank = 0; rank < job->prep.ranks; rank++)
        total += job->all[rank].bad;
    *count = 0;
    *holes = malloc(total * sizeof **holes + 1);
    if (!*holes)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (int rank = 0; rank < job->prep.ranks && !status; rank++) {
        char *path = holes_path(job, rank), *bytes = NULL;
        size_t size = 0;

        status = path ? pace__read_file(path, HOLES_BYTES_MAX, &bytes, &size, log)
                      : pace_fail(log, PACE_FAILED, "out of memory");
        if (!status && size != job->all[rank].bad * sizeof **holes)
            status = pace_fail(log, PACE_IO, "%s: was changed by someone else", path);
        if (!status)
            memcpy(*holes + *count, bytes, size);
        *count += size / sizeof **holes;
        free(bytes);
        free(path);
    }
    if (!status)
        qsort(*holes, *count, sizeof **holes, by_number);
    return status;
}

/* What one process alone cannot see: too many bad pictures in all. */
static pace_status compare_notes(pace__images *job)
{
    uint64_t bad = 0, most = (uint64_t)job->config->common.max_bad_rows;
    pace_status status = pace__ranks_exchange(job->rank.link, &job->counts, sizeof job->counts, job->all);

    for (int rank = 0; rank < job->prep.ranks && !status; rank++)
        bad += job->all[rank].bad;
    if (!status && bad > most)
        status = pace_fail(job->rank.log, PACE_BAD_DATA,
                           "%" PRIu64 " bad pictures, but --max-bad-rows is %" PRIu64
                           ": look at them, or give a higher one to leave them out",
                           bad, most);
    return status;
}

static pace_status finish_parts(pace__images *job)
{
    uint64_t *holes = NULL;
    size_t count = 0;
    pace_status status = write_holes(job);

    if (!status)
        status = compare_notes(job); /* and meet */
    if (!status)
        status = read_holes(job, &holes, &count);
    if (!status)
        status = pace__images_finish_parts(job, holes, count);
    free(holes);
    return status;
}

/* --- the end --- */

static void fill_result(const pace__images *job, pace_prep_images_result *result)
{
    pace__shares busy = {0};

    *result = (pace_prep_images_result){.train_rows = job->info.rows[PACE__TRAIN],
                                        .test_rows = job->info.rows[PACE__TEST],
                                        .validation_rows = job->info.rows[PACE__VALIDATION],
                                        .classes = job->encoding.classes,
                                        .height = job->encoding.height,
                                        .width = job->encoding.width,
                                        .channels = job->encoding.channels,
                                        .processes = job->prep.many ? (uint64_t)job->prep.ranks : 1};
    for (int rank = 0; rank < job->prep.ranks; rank++) {
        const pace__image_counts *one = &job->all[rank];

        result->bad_rows += one->bad;
        result->turned += one->turned;
        result->bytes_read += one->bytes_read;
        result->bytes_written += one->bytes_written;
        result->ranks += one->threads;
        busy.count += one->threads;
        busy.sum += one->busy_s;
        busy.largest = one->busiest_s > busy.largest ? one->busiest_s : busy.largest;
    }
    result->skew = pace__shares_skew(&busy);
}

/* Rank 0, when nobody writes any more. */
static pace_status commit(pace__images *job)
{
    pace_status status = pace__pictures_write_names(&job->pictures, job->prep.directory, job->rank.log);

    for (int rank = 0; rank < job->prep.ranks; rank++) {
        char *path = holes_path(job, rank);

        if (path)
            unlink(path);
        free(path);
    }
    pace__pictures_remove(job->prep.directory);
    return status ? status : pace__prep_commit(&job->prep, &job->rank);
}

static void end_phase(const pace__images *job, const char *phase, uint64_t start_ns, uint64_t rows,
                      uint64_t bytes)
{
    pace_field fields[] = {PACE_TEXT("phase", phase), PACE_REAL("seconds", pace__seconds_since(start_ns)),
                           PACE_INT("rows", rows), PACE_INT("bytes", bytes)};

    if (job->rank.number == 0)
        pace_registry_emit(job->prep.registry, "phase", fields, 4);
}

static pace_status finish(pace__images *job, pace_prep_images_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = finish_parts(job);

    pace__images_close_parts(job);
    if (!status)
        status = pace__ranks_gather(job->rank.link, &job->counts, sizeof job->counts, job->all);
    if (!status && job->rank.number == 0)
        status = commit(job);
    if (!status && job->rank.number == 0) {
        fill_result(job, result);
        end_phase(job, "finish", start_ns, pace__store_rows(&job->info), result->bytes_written);
    }
    return status;
}

/* --- all phases --- */

static pace_status run_phases(pace__images *job, pace_prep_images_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = prepare(job);

    if (!status)
        end_phase(job, "list", start_ns, pace__image_rows(job), job->pictures.facts.bytes);
    start_ns = pace__now_ns();
    if (!status)
        status = pace__images_decode(job);
    if (!status)
        end_phase(job, "decode", start_ns, job->counts.decoded, job->counts.bytes_read);
    return status ? status : finish(job, result);
}

pace_status pace__images_run(pace__images *job, pace__link *link, pace_prep_images_result *result)
{
    pace__rank *rank = &job->rank;
    pace_status status = pace__prep_begin(&job->prep, rank, link);

    job->all = calloc((size_t)job->prep.ranks, sizeof *job->all);
    if (!status && !job->all)
        status = pace_fail(rank->log, PACE_FAILED, "out of memory");
    if (!status)
        status = run_phases(job, result);
    pace__prep_end(&job->prep, rank, status);
    return status;
}

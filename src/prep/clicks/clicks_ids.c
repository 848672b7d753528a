/*
 * The ids that occur get their numbers. They depend on ids and counts alone, so a few processes each merge what all have found,
 * and number it for themselves: nobody waits for another's numbering. But then each reads the files of all; of many
 * processes, rank 0 alone does, and the others take its numbering over.
 */
#include "files/file.h"
#include "prep/clicks/clicks.h"

#include <stdlib.h>
#include <unistd.h>

/* So many read the files of all. */
#define EACH_MERGES_MAX 8

#define IDS_BYTES_MAX ((size_t)UINT32_MAX * sizeof(uint64_t))

static pace_status out_of_memory(const pace__clicks *job)
{
    return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
}

/* What a process has found. */
static char *ids_path(const pace__clicks *job, int rank)
{
    return pace__format("%s/ids-%d", job->prep.directory, rank);
}

/* What came out of it, where rank 0 numbers for all. */
static char *numbers_path(const pace__clicks *job)
{
    return pace__format("%s/numbers", job->prep.directory);
}

static void remove_file(char *path)
{
    if (path)
        unlink(path);
    free(path);
}

static pace_status save(const pace__clicks *job)
{
    char *path = ids_path(job, job->rank.number);
    pace_status status = path ? pace__idmap_save(job->idmap, path) : out_of_memory(job);

    free(path);
    return status;
}

static pace_status merge(pace__clicks *job, int rank)
{
    char *path = ids_path(job, rank);
    pace_status status = path ? pace__idmap_merge(job->idmap, path) : out_of_memory(job);

    free(path);
    return status ? status : pace__rank_pulse(&job->rank);
}

static pace_status merge_others(pace__clicks *job)
{
    pace_status status = PACE_OK;

    for (int rank = 0; rank < job->prep.ranks && !status; rank++) {
        if (rank != job->rank.number)
            status = merge(job, rank);
    }
    return status;
}

static pace_status number(pace__clicks *job)
{
    uint32_t columns = job->packing.count;

    return pace__idmap_number(job->idmap, columns ? job->encoding.column_base : NULL, columns);
}

static pace_status publish(const pace__clicks *job)
{
    char *path = numbers_path(job);
    pace_status status =
        path ? pace__write_file_atomically(path, pace__idmap_original(job->idmap),
                                           pace__idmap_count(job->idmap) * sizeof(uint64_t), job->rank.log)
             : out_of_memory(job);

    free(path);
    return status;
}

static pace_status adopt(pace__clicks *job)
{
    char *path = numbers_path(job), *ids = NULL;
    size_t size = 0;
    pace_status status =
        path ? pace__read_file(path, IDS_BYTES_MAX, &ids, &size, job->rank.log) : out_of_memory(job);

    if (!status)
        status = pace__idmap_adopt(job->idmap, (const uint64_t *)ids, (uint32_t)(size / sizeof(uint64_t)));
    free(ids);
    free(path);
    return status;
}

/* Rank 0 has the numbers. */
static pace_status take_over(pace__clicks *job)
{
    bool first = job->rank.number == 0;
    pace_status status = first ? publish(job) : PACE_OK;

    if (!status)
        status = pace__ranks_meet(job->rank.link);
    return !status && !first ? adopt(job) : status;
}

static pace_status number_together(pace__clicks *job)
{
    bool each = job->prep.ranks <= EACH_MERGES_MAX, first = job->rank.number == 0;
    pace_status status = each || !first ? save(job) : PACE_OK;

    if (!status)
        status = pace__ranks_meet(job->rank.link);
    if (!status && (each || first))
        status = merge_others(job);
    if (!status && (each || first))
        status = number(job);
    if (!status && !each)
        status = take_over(job);
    if (!status)
        status = pace__ranks_meet(job->rank.link);
    if (status) /* others may still read: what is missing then would be told as another error */
        return status;
    remove_file(ids_path(job, job->rank.number));
    if (first)
        remove_file(numbers_path(job));
    return PACE_OK;
}

pace_status pace__clicks_number_ids(pace__clicks *job)
{
    return job->prep.many ? number_together(job) : number(job);
}

/* The ids that occur get their numbers: rank 0 numbers those of all processes, the others take that over. */
#include "files/file.h"
#include "prep/clicks/clicks.h"

#include <stdlib.h>
#include <unistd.h>

#define IDS_BYTES_MAX ((size_t)UINT32_MAX * sizeof(uint64_t))

static pace_status out_of_memory(const pace__clicks *job)
{
    return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
}

/* What a process has found; of rank 0, what came out of it. */
static char *ids_path(const pace__clicks *job, int rank)
{
    return pace__format("%s/ids-%d", job->prep.directory, rank);
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

    if (path)
        unlink(path);
    free(path);
    return status ? status : pace__rank_pulse(&job->rank);
}

static pace_status number(pace__clicks *job)
{
    bool criteo = job->encoding.kind == PACE__CRITEO;

    return pace__idmap_number(job->idmap, criteo ? job->encoding.column_base : NULL,
                              criteo ? PACE__CRITEO_COLUMNS : 0);
}

static pace_status publish(const pace__clicks *job)
{
    char *path = ids_path(job, 0);
    pace_status status =
        path ? pace__write_file_atomically(path, pace__idmap_original(job->idmap),
                                           pace__idmap_count(job->idmap) * sizeof(uint64_t), job->rank.log)
             : out_of_memory(job);

    free(path);
    return status;
}

static pace_status adopt(pace__clicks *job)
{
    char *path = ids_path(job, 0), *ids = NULL;
    size_t size = 0;
    pace_status status =
        path ? pace__read_file(path, IDS_BYTES_MAX, &ids, &size, job->rank.log) : out_of_memory(job);

    if (!status)
        status = pace__idmap_adopt(job->idmap, (const uint64_t *)ids, (uint32_t)(size / sizeof(uint64_t)));
    free(ids);
    free(path);
    return status;
}

static void remove_published(const pace__clicks *job)
{
    char *path = ids_path(job, 0);

    if (path)
        unlink(path);
    free(path);
}

pace_status pace__clicks_number_ids(pace__clicks *job)
{
    bool first = job->rank.number == 0;
    pace_status status = PACE_OK;

    if (!job->prep.many)
        return number(job);
    if (!first)
        status = save(job);
    if (!status)
        status = pace__ranks_meet(job->rank.link);
    for (int rank = 1; rank < job->prep.ranks && !status && first; rank++)
        status = merge(job, rank);
    if (!status && first)
        status = number(job);
    if (!status && first)
        status = publish(job);
    if (!status)
        status = pace__ranks_meet(job->rank.link);
    if (!status && !first)
        status = adopt(job);
    if (!status)
        status = pace__ranks_meet(job->rank.link);
    if (!status && first)
        remove_published(job);
    return status;
}

/* Which reader of several gets what of the files. */
#include "data/input/input.h"
#include "data/input/input_files.h"
#include "files/open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With at least so many chunks for each reader, half a chunk more or less does not matter. */
#define ALIGNED_CHUNKS_MIN 8

typedef struct file_plan {
    uint64_t bytes;
    uint32_t file;
    bool cut;
    int owner; /* of a file that is not cut */
} file_plan;

/*
 * Files that are cut are taken as one long row of bytes. Reader i has cut[i] .. cut[i + 1] - 1 of it, with the
 * cuts moved as place_of says.
 */
typedef struct division {
    file_plan *files; /* (count) */
    uint64_t *load;   /* (ranks) bytes of files that are not cut */
    uint64_t *cut;    /* (ranks + 1) */
    bool aligned;
} division;

static pace_status look_at(const char *path, int boundary, file_plan *plan, const pace_log *log)
{
    pace__input_facts facts;
    pace_status status = pace__input_check(path, &facts, log);

    plan->owner = facts.regular ? -1 : 0;
    plan->bytes = facts.bytes;
    plan->cut = false;
    if (status || boundary != PACE__LINES || facts.bytes == 0)
        return status;
    int fd;

    status = pace__open(path, PACE__TO_READ, log, &fd);
    if (status)
        return status;
    plan->cut = pace__input_is_plain(fd);
    close(fd);
    return PACE_OK;
}

static int by_size(const void *left, const void *right)
{
    const file_plan *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->file < b->file ? -1 : 1;
}

static int by_file(const void *left, const void *right)
{
    const file_plan *a = left, *b = right;

    return a->file < b->file ? -1 : a->file > b->file;
}

/* Gives away the files that are not cut. */
static void share_whole_files(const division *plan, size_t count, int ranks)
{
    qsort(plan->files, count, sizeof *plan->files, by_size);
    for (size_t i = 0; i < count; i++) {
        file_plan *file = &plan->files[i];
        int least = 0;

        if (file->cut)
            continue;
        for (int rank = 1; rank < ranks; rank++)
            least = plan->load[rank] < plan->load[least] ? rank : least;
        if (file->owner < 0)
            file->owner = least;
        plan->load[file->owner] += file->bytes;
    }
    qsort(plan->files, count, sizeof *plan->files, by_file);
}

/* What it takes to bring every reader up to `level`. */
static uint64_t bytes_below(const uint64_t *load, int ranks, uint64_t level)
{
    uint64_t bytes = 0;

    for (int rank = 0; rank < ranks; rank++)
        bytes += load[rank] < level ? level - load[rank] : 0;
    return bytes;
}

/* Cuts `bytes` so that all readers come to the same level, except those who are above it already. */
static void share_cut_files(division *plan, uint64_t bytes, int ranks)
{
    uint64_t low = 0, high = bytes, at = 0;

    for (int rank = 0; rank < ranks; rank++)
        high = plan->load[rank] + bytes > high ? plan->load[rank] + bytes : high;
    while (low < high) {
        uint64_t level = low + (high - low) / 2;

        if (bytes_below(plan->load, ranks, level) < bytes)
            low = level + 1;
        else
            high = level;
    }
    for (int rank = 0; rank < ranks; rank++) {
        plan->cut[rank] = at < bytes ? at : bytes;
        at += plan->load[rank] < low ? low - plan->load[rank] : 0;
    }
    plan->cut[ranks] = bytes;
    plan->aligned = bytes / (uint64_t)ranks >= ALIGNED_CHUNKS_MIN * PACE__CHUNK_BYTES;
}

/* Where in a file, whose first byte is byte `begin` of the row, a cut of the row is. */
static uint64_t place_of(const division *plan, uint64_t cut, uint64_t begin, uint64_t bytes)
{
    if (cut <= begin)
        return 0;
    uint64_t place = cut - begin;

    if (plan->aligned && place < bytes)
        place = (place + PACE__CHUNK_BYTES / 2) / PACE__CHUNK_BYTES * PACE__CHUNK_BYTES;
    return place < bytes ? place : bytes;
}

static size_t collect(const division *plan, size_t count, int rank, pace__unit *units)
{
    size_t unit_count = 0;
    uint64_t begin = 0;

    for (size_t i = 0; i < count; i++) {
        const file_plan *file = &plan->files[i];
        uint64_t first = 0, last = UINT64_MAX;

        if (!file->cut && file->owner != rank)
            continue;
        if (file->cut) {
            first = place_of(plan, plan->cut[rank], begin, file->bytes);
            last = place_of(plan, plan->cut[rank + 1], begin, file->bytes);
            begin += file->bytes;
        }
        if (first < last)
            units[unit_count++] =
                (pace__unit){file->file, first, file->cut && last == file->bytes ? UINT64_MAX : last};
    }
    return unit_count;
}

static pace_status divide(division *plan, const char *const *paths, size_t count, int boundary, int ranks,
                          const pace_log *log)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        plan->files[i].file = (uint32_t)i;
        pace_status status = look_at(paths[i], boundary, &plan->files[i], log);

        if (status)
            return status;
        bytes += plan->files[i].cut ? plan->files[i].bytes : 0;
    }
    share_whole_files(plan, count, ranks);
    share_cut_files(plan, bytes, ranks);
    return PACE_OK;
}

pace_status pace__units_cut(const char *const *paths, size_t count, int boundary, int rank, int ranks,
                            const pace_log *log, pace__unit **units, size_t *unit_count)
{
    assert(rank >= 0 && rank < ranks);
    if (count > PACE__INPUT_FILES_MAX)
        return pace_fail(log, PACE_USAGE, "%zu input files: at most %u are possible", count,
                         PACE__INPUT_FILES_MAX);
    division plan = {.files = malloc(count * sizeof *plan.files + 1),
                     .load = calloc((size_t)ranks, sizeof *plan.load),
                     .cut = calloc((size_t)ranks + 1, sizeof *plan.cut)};
    pace__unit *mine = malloc(count * sizeof *mine + 1);
    pace_status status =
        plan.files && plan.load && plan.cut && mine
            ? divide(&plan, paths, count, boundary, ranks, log)
            : pace_fail(log, PACE_FAILED, "out of memory for the division of %zu files", count);

    if (!status) {
        *unit_count = collect(&plan, count, rank, mine);
        *units = mine;
        mine = NULL;
    }
    free(plan.files);
    free(plan.load);
    free(plan.cut);
    free(mine);
    return status;
}

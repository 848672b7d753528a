#include "prep/spills.h"

#include <stdio.h>
#include <stdlib.h>

/* As its process has called it. */
static void name_spill(const pace__spills *self, int rank, char name[sizeof self->name + 16])
{
    snprintf(name, sizeof self->name + 16, "%s-%d", self->name, rank);
}

pace_status pace__spills_create(pace__spills *self, const pace__prep_job *job, const pace__rank *rank,
                                const char *name, size_t memory, size_t keep)
{
    char own[sizeof self->name + 16];

    *self = (pace__spills){.memory = memory};
    snprintf(self->name, sizeof self->name, "%s", name);
    name_spill(self, rank->number, own);
    pace_status status = pace__spill_create(job->directory, own, memory, rank->log, &self->own);

    return status || job->many ? status : pace__spill_keep(self->own, keep);
}

static pace_status open_others(pace__spills *self, const pace__prep_job *job, const pace__rank *rank,
                               const pace__spill_index *indexes)
{
    pace_status status = PACE_OK;

    for (int other = 0; other < job->ranks && !status; other++) {
        char name[sizeof self->name + 16];

        name_spill(self, other, name);
        if (other == rank->number)
            self->all[other] = self->own;
        else
            status = pace__spill_open(job->directory, name, &indexes[other], self->memory, rank->log,
                                      &self->all[other]);
    }
    return status;
}

pace_status pace__spills_share(pace__spills *self, const pace__prep_job *job, const pace__rank *rank)
{
    size_t count = job->many ? (size_t)job->ranks : 1;
    pace__spill_index own, *all = calloc(count, sizeof *all);
    pace_status status = PACE_OK;

    self->all = calloc(count, sizeof *self->all);
    self->count = self->all ? count : 0;
    if (!all || !self->all)
        status = pace_fail(rank->log, PACE_FAILED, "out of memory");
    else if (!job->many)
        self->all[0] = self->own;
    else
        status = pace__spill_publish(self->own, &own);
    if (!status && job->many)
        status = pace__ranks_exchange(rank->link, &own, sizeof own, all);
    if (!status && job->many)
        status = open_others(self, job, rank, all);
    free(all);
    return status;
}

void pace__spills_close(pace__spills *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->all[i] != self->own)
            pace__spill_free(self->all[i]);
    }
    pace__spill_free(self->own);
    free(self->all);
    *self = (pace__spills){0};
}

uint64_t pace__spills_rows(const pace__spills *self, uint32_t bucket)
{
    uint64_t rows = 0;

    for (size_t i = 0; i < self->count; i++)
        rows += pace__spill_rows(self->all[i], bucket);
    return rows;
}

uint64_t pace__spills_weight(const pace__spills *self, uint32_t bucket)
{
    uint64_t weight = 0;

    for (size_t i = 0; i < self->count; i++)
        weight += pace__spill_weight(self->all[i], bucket);
    return weight;
}

/* Of the others' only what this process has split. */
uint64_t pace__spills_bytes(const pace__spills *self)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < self->count; i++)
        bytes += pace__spill_bytes(self->all[i]);
    return bytes;
}

void pace__spills_drop(const pace__spills *self, uint32_t bucket)
{
    for (size_t i = 0; i < self->count; i++)
        pace__spill_drop(self->all[i], bucket);
}

/* The first exchange: all ranks greet each other (ranks/hello.h), and the chief sends them on their way. */
#include "files/file.h"
#include "options/internal.h"
#include "ranks/aside.h"
#include "ranks/hello.h"
#include "ranks/ranks.h"
#include "roles/process.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/kernels.h>
#include <paceline/version.h>
#include <stdlib.h>

/* What a ps needs to know of the data set, and where everyone begins. */
typedef struct go {
    uint64_t first_step, over, is_warm;
    uint64_t updates_before; /* of another run (optim.h) */
    pace__dataset data;
} go;

/* What must be the same everywhere; NULL when out of memory. A ps does not know yet what was left open, and has no
 * data set. */
static char *words_of(const pace__process *process, bool with_data)
{
    const pace__job *job = process->job;
    static const unsigned marks =
        PACE_MARK_BIT(PACE_MARK_IDENTITY) | PACE_MARK_BIT(PACE_MARK_LAYOUT) | PACE_MARK_BIT(PACE_MARK_LENGTH);
    const pace__store_info *info = &job->store.info;
    pace_train_config given = *job->given; /* a server does not know yet what was left open */
    pace_option_part parts[3];

    given.mode = job->plan.mode;
    given.cluster.ps = job->plan.cluster.ps;
    pace__train_parts(&given, parts);
    char *options = pace__options_marked(parts, marks), *words = NULL;
    const char *kernels = pace_kernels_name(pace_kernels_asked());

    if (options && !with_data)
        words = pace__format("%s kernels=%s", options, kernels);
    else if (options)
        words = pace__format("%s kernels=%s data-rows=%" PRIu64 " data-test-rows=%" PRIu64
                             " data-ids=%u data-entries=%" PRIu64 " data-seed=%" PRId64
                             " data-content=%016" PRIx64 " weights=%.16s",
                             options, kernels, info->rows[PACE__TRAIN], info->rows[PACE__TEST],
                             info->ids_seen, info->entries[PACE__TRAIN], info->seed, process->content,
                             job->plan.model.begins_with ? job->plan.model.begins_with : "none");

    free(options);
    return words;
}

static pace_status greet(pace__process *process)
{
    char *words = words_of(process, process->role != PACE__PS);
    pace_status status = words ? pace__rank_greet(&process->self, words, "data set")
                               : pace_fail(process->self.log, PACE_FAILED, "out of memory");

    free(words);
    return status;
}

static pace_status write_cluster(void *user)
{
    const pace__process *process = user;
    pace__job *job = process->job;
    int size = pace__cluster_size(&job->plan.cluster);
    size_t capacity = 256 + (size_t)size * (128 + 6 * PACE__HOST_TEXT); /* all of it escaped */
    char *text = malloc(capacity), role[PACE__ROLE_TEXT];
    pace__json json = {.text = text, .capacity = capacity};

    if (!text)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    pace__json_raw(&json, "{\"version\": ");
    pace__json_string(&json, pace_version());
    pace__json_raw(&json, ", \"ranks\": [");
    for (int rank = 0; rank < size; rank++) {
        pace__role_name(&job->plan.cluster, rank, role);
        pace__json_raw(&json, rank ? ",\n  {\"rank\": " : "\n  {\"rank\": ");
        pace__json_integer(&json, rank);
        pace__json_raw(&json, ", \"role\": ");
        pace__json_string(&json, role);
        pace__json_raw(&json, ", \"host\": ");
        pace__json_string(&json, process->self.hosts[rank]);
        pace__json_raw(&json, "}");
    }
    pace__json_raw(&json, "\n]}\n");
    assert(json.size <= capacity);
    pace_status status = pace__write_file_atomically(pace__rundir_path(job->run, PACE__RUN_CLUSTER), text,
                                                     json.size, process->self.log);

    free(text);
    return status;
}

static go facts_of(const pace__job *job)
{
    return (go){.first_step = job->position.step,
                .over = pace__job_is_over(job),
                .is_warm = job->is_warm,
                .updates_before = job->plan.model.optim.before,
                .data = job->plan.model.data};
}

pace_status pace__process_welcome(pace__process *process)
{
    pace_status status = greet(process);
    go facts = facts_of(process->job);

    if (!status && process->job->run) /* a dry run has none */
        status = pace__rank_aside(&process->self, "writing cluster.json", write_cluster, process);
    return status ? status : pace__ranks_share(process->self.link, &facts, sizeof facts);
}

/* Where the job begins, and, for a ps, what the data set is like. */
static pace_status learn(pace__process *process, const go *facts)
{
    pace__job *job = process->job;
    pace_status status = PACE_OK;

    if (process->role == PACE__PS)
        status = pace__plan_make(&job->settled, &facts->data, &(pace__planner){.computes = false}, job->log,
                                 &job->plan);
    if (!status && facts->first_step > job->plan.steps)
        status = pace_fail(process->self.log, PACE_BUG,
                           "%s begins at step %" PRIu64 ", but the job ends at step %" PRIu64,
                           pace__link_name(process->self.link, 0), facts->first_step, job->plan.steps);
    job->position.step = facts->first_step;
    job->over = facts->over;
    job->is_warm = facts->is_warm;
    job->plan.model.optim.before = facts->updates_before;
    return status;
}

pace_status pace__process_greet(pace__process *process)
{
    go facts;
    pace_status status = greet(process);

    if (!status)
        status = pace__ranks_share(process->self.link, &facts, sizeof facts);
    return status ? status : learn(process, &facts);
}

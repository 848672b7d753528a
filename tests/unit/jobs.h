/*
 * jobs.h - jobs of several ranks that are threads of a test, and what tests of training say about them.
 *
 *     pace_train_config config = ...;
 *     lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 1, -1, false});
 *     pace_train_result result = train(&config);
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_JOBS_H
#define UNIT_JOBS_H

#include "localsgd/localsgd.h"

#include "interrupting.h"

#include <cjson/cJSON.h>
#include <paceline/train.h>

#define RANKS_MAX 5

/* --- who takes part --- */

typedef struct layout {
    int mode;
    int64_t workers, ps, staleness;
    bool evaluator;
} layout;

static inline void lay_out(pace_train_config *config, layout as)
{
    config->mode = as.mode;
    config->cluster.workers = as.workers;
    config->cluster.ps = as.ps;
    config->cluster.staleness = as.staleness;
    config->cluster.outer_momentum = -1; /* not given */
    config->cluster.evaluator = as.evaluator;
}

/* --- ranks, each a thread --- */

typedef struct crew {
    const pace_train_config *config;
    pace_registry *registry; /* the chief's */
    pace__link *links[RANKS_MAX];
    pace_train_result result;
    pace_status status[RANKS_MAX];
} crew;

typedef struct crew_rank {
    crew *crew;
    int rank;
} crew_rank;

static inline void *run_rank(void *user)
{
    crew_rank *self = user;
    const pace_train_config *config = self->crew->config;
    pace_train_result elsewhere;
    pace_registry *registry = self->rank ? pace_registry_create() : self->crew->registry;
    pace__job job = {.given = config, .settled = *config, .log = &said_log, .registry = registry};

    job.config = &job.settled;
    require(pace__plan_cluster(config, job.log, &job.plan) == PACE_OK);
    job.craft = job.plan.mode == PACE_MODE_LOCAL_SGD ? &pace__localsgd : NULL;
    self->crew->status[self->rank] =
        pace__process_run(&job, self->crew->links[self->rank], self->rank ? &elsewhere : &self->crew->result);
    if (self->rank)
        pace_registry_free(registry);
    return NULL;
}

/* As pace_train does it with processes. */
static inline pace_status train_ranks(const pace_train_config *config, pace_registry *registry,
                                      pace_train_result *result)
{
    int ranks = (int)config->cluster.workers + (config->cluster.ps > 0 ? (int)config->cluster.ps : 0) +
                config->cluster.evaluator;
    pace__link_options options = {.deadline_ns = (uint64_t)(config->cluster.deadline * 1e9),
                                  .first_deadline_ns = 60000000000u,
                                  .log = &said_log};
    crew all = {.config = config, .registry = registry ? registry : pace_registry_create()};
    crew_rank members[RANKS_MAX];
    pthread_t threads[RANKS_MAX];

    assert_in_range(ranks, 1, RANKS_MAX);
    assert_ok(pace__link_open_threads(ranks, (int)config->cluster.workers, &options, all.links));
    for (int rank = 0; rank < ranks; rank++) {
        members[rank] = (crew_rank){&all, rank};
        assert_int_equal(pthread_create(&threads[rank], NULL, run_rank, &members[rank]), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
    if (!registry)
        pace_registry_free(all.registry);
    for (int rank = 1; rank < ranks; rank++)
        assert_int_equal(all.status[rank], all.status[0]);
    *result = all.result;
    return all.status[0];
}

static inline pace_train_result train(const pace_train_config *config)
{
    pace_train_result result;

    said_clear();
    assert_ok(train_ranks(config, NULL, &result));
    return result;
}

static inline double number_in_summary(void **state, const char *name)
{
    char *text = get_text(in(state, "run/summary.json"));
    cJSON *summary = cJSON_Parse(text), *item = cJSON_GetObjectItem(summary, name);

    assert_non_null(item);
    double value = item->valuedouble;

    cJSON_Delete(summary);
    free(text);
    return value;
}

typedef struct sha {
    char hex[65];
} sha;

static inline sha sha_of(const pace_train_config *config)
{
    pace_train_result result = train(config);
    sha found;

    memcpy(found.hex, result.model_sha256, sizeof found.hex);
    return found;
}

static inline void assert_sha(const pace_train_config *config, sha expected)
{
    assert_string_equal(sha_of(config).hex, expected.hex);
}

/* --- the same numbers --- */

/* Losses of all "step" records. */
static inline int read_losses(void **state, double losses[], int most)
{
    char *text = get_text(in(state, "run/metrics.jsonl")), *rest = text;
    int count = 0;

    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        cJSON *record = cJSON_Parse(line);

        if (strcmp(cJSON_GetObjectItem(record, "kind")->valuestring, "step") == 0) {
            assert_in_range(count, 0, most - 1);
            assert_int_equal((int)cJSON_GetObjectItem(record, "step")->valuedouble, count + 1);
            losses[count++] = cJSON_GetObjectItem(record, "loss")->valuedouble;
        }
        cJSON_Delete(record);
    }
    free(text);
    return count;
}

/* --- interruption --- */

static inline void interrupt(pace_train_config config, int64_t step)
{
    interrupt_run(train_ranks, config, step);
}

static inline pace_train_config resumed(pace_train_config config)
{
    config.force = false;
    config.resume = true;
    return config;
}

/* Stopped at a step and resumed, scored and saved on the way: the same bytes as without any of it. */
static inline void ends_like_an_undisturbed_one(void **state, pace_train_config config, int64_t step,
                                                int64_t eval_rows)
{
    config.records.log_every = 1000000;
    pace_train_result quiet = train(&config);

    config.records.log_every = 1;
    config.records.eval_every = 3;
    config.records.eval_rows = eval_rows;
    config.faults.checkpoint_every = 4;
    interrupt(config, step);
    assert_false(pace__exists(in(state, "run/model.safetensors")));
    pace_train_config again = resumed(config);
    pace_train_result busy = train(&again);

    assert_string_equal(busy.model_sha256, quiet.model_sha256);
    assert_true(busy.test.logloss == quiet.test.logloss);
    assert_true(fabs(busy.train_loss - quiet.train_loss) < 1e-9);
    assert_int_equal(busy.samples, quiet.samples);
}

#endif

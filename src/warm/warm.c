#include "warm/warm.h"

#include "base/kept.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the other model --- */

pace_status pace__warm_identify(const char *path, const pace_log *log, char sha256[PACE__SHA256_HEX])
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    if (!status)
        status = pace__sha256_file(file.path, sha256, log);
    pace__model_file_close(&file);
    return status;
}

/* Words and classes are compared name by name; ids have to be made in the same way. A larger space of ids that are as they
 * were given changes none of them. */
static pace_status check_encoding(const char *path, const pace__encoding *model, const pace__encoding *data,
                                  const pace_log *log)
{
    char reason[PACE_LOG_TEXT_MAX] = "";
    pace__encoding alike = *model;
    pace__kept kept;

    if ((model->kind == PACE__TEXT && data->kind == PACE__TEXT) ||
        (pace__has_classes(model) && pace__has_classes(data)))
        return PACE_OK;
    if (model->kind == data->kind && model->hashed && data->hashed && model->features != data->features)
        return pace_fail(log, PACE_BAD_DATA,
                         "--init %s: its features are hashed to %" PRIu64
                         " ids, those of the data to %" PRIu64 ": prepare the data with --features %" PRIu64,
                         path, model->features, data->features, model->features);
    if (!model->hashed && alike.features < data->features)
        alike.features = data->features;
    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace__encoding_fits(&alike, data, &kept.log);

    return status ? pace_fail(log, status, "--init %s: %s", path, reason) : PACE_OK;
}

static pace_status read_model(const char *path, const pace_log *log, pace__warm *warm)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    if (!status)
        status = pace__sha256_file(file.path, warm->sha256, log);
    if (!status)
        status = pace__saved_read(&file, log, &warm->saved);
    pace__model_file_close(&file);
    return status;
}

pace_status pace__warm_open(const char *path, const pace__encoding *data, const pace_log *log,
                            pace__warm *warm)
{
    *warm = (pace__warm){.forerunner = {path, warm->sha256, &warm->saved.model}};
    pace_status status = read_model(path, log, warm);

    if (!status)
        status = check_encoding(path, &warm->saved.encoding, data, log);
    warm->is_open = !status;
    if (status)
        pace__warm_close(warm);
    return status;
}

static void release_state(pace__warm *warm)
{
    for (unsigned p = 0; p < PACE__WARM_PLANES_MAX; p++)
        free(warm->state.plane[p]);
    warm->state = (pace__warm_state){.updates = warm->state.updates};
}

void pace__warm_close(pace__warm *warm)
{
    release_state(warm);
    pace__saved_close(&warm->saved);
    free(warm->carried_ids);
    free(warm->carried_weights);
    *warm = (pace__warm){0};
}

/* --- what is carried --- */

/* A bit for each id of the other model that has a place in this one. */
static uint8_t *mark_taken(const pace__names *names, uint32_t count)
{
    uint8_t *taken = calloc(count / 8 + (size_t)1, 1);

    for (uint32_t i = 0; taken && i < names->count; i++) {
        uint32_t place = names->place[i];

        if (place != PACE__NAME_NEW)
            taken[place / 8] |= (uint8_t)(1U << place % 8);
    }
    return taken;
}

static bool is_marked(const uint8_t *marks, uint32_t place)
{
    return marks[place / 8] >> place % 8 & 1;
}

static pace_status copy_left(pace__warm *warm, const uint8_t *taken, const pace_log *log)
{
    const pace__loaded *model = &warm->saved.model;
    size_t dim = model->plan.shape.dim, count = 0, at = 0;

    for (uint32_t i = 0; i < model->count; i++)
        count += !is_marked(taken, i);
    warm->carried_ids = malloc((count + 1) * sizeof *warm->carried_ids);
    warm->carried_weights = malloc((count * dim + 1) * sizeof *warm->carried_weights);
    if (!warm->carried_ids || !warm->carried_weights)
        return pace_fail(log, PACE_FAILED, "out of memory: %zu weights to carry along", count * dim);
    for (uint32_t i = 0; i < model->count; i++) {
        if (is_marked(taken, i))
            continue;
        warm->carried_ids[at] = model->ids[i];
        memcpy(warm->carried_weights + at++ * dim, model->weights + i * dim,
               dim * sizeof *warm->carried_weights);
    }
    warm->carried = (uint32_t)count;
    warm->carried_weights_count = count * dim;
    return PACE_OK;
}

/* Of sparse rows. A file lists less than 2^32 ids. */
static pace_status carry_left(pace__warm *warm, const pace__names *names, const pace_log *log)
{
    const pace__loaded *model = &warm->saved.model;

    if ((uint64_t)model->count + names->count >= UINT32_MAX - 1)
        return pace_fail(log, PACE_USAGE, "--init %s: its %u features and the %u of the data are too many",
                         warm->forerunner.path, model->count, names->count);
    uint8_t *taken = mark_taken(names, model->count);
    pace_status status = taken ? copy_left(warm, taken, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(taken);
    return status;
}

/* The space of ids as they were given is large enough for both. */
static pace_status widen_encoding(const pace__warm *warm, pace__origin *origin, const pace_log *log)
{
    pace__encoding encoding;
    pace_status status = pace__encoding_from_json(origin->encoding, "the data set", &encoding, log);

    if (status || encoding.features >= warm->saved.encoding.features)
        return status;
    encoding.features = warm->saved.encoding.features;
    char *json = pace__encoding_to_json(&encoding);

    if (!json)
        return pace_fail(log, PACE_FAILED, "out of memory");
    free(origin->encoding);
    origin->encoding = json;
    return PACE_OK;
}

pace_status pace__warm_carry(const pace__warm *warm, pace__origin *origin, const pace_log *log)
{
    if (warm->carried == 0)
        return PACE_OK;
    origin->carried = warm->carried;
    origin->carried_ids = warm->carried_ids;
    origin->carried_weights = warm->carried_weights;
    return widen_encoding(warm, origin, log);
}

/* --- values --- */

/* All weights of a row come first, then all of their first floats of state, and so on. */
static pace_status adopt_state(const pace__warm *warm, const pace__model_plan *plan, const pace__names *names,
                               size_t stride, float *rows, const pace_log *log)
{
    pace__overlap same;
    pace_status status = PACE_OK;

    for (unsigned p = 0; p < warm->state.planes && !status; p++)
        status = pace__model_adopt(plan, &warm->saved.model, names, warm->state.plane[p], stride,
                                   rows + (size_t)(p + 1) * plan->shape.dim, log, &same);
    return status;
}

pace_status pace__warm_begin(pace__warm *warm, const pace__store *store, const pace__model_plan *plan,
                             size_t stride, float *rows, const pace_log *log)
{
    pace__loaded *model = &warm->saved.model;
    pace__names names = {0};

    assert(warm->is_open && model->weights && !warm->carried_ids);
    pace_status status = pace__warm_names(store, &warm->saved, log, &names);

    if (!status)
        status = pace__model_adopt(plan, model, &names, model->weights, stride, rows, log, &warm->overlap);
    if (!status)
        status = adopt_state(warm, plan, &names, stride, rows, log);
    if (!status && plan->data.kind == PACE__ROWS_SPARSE)
        status = carry_left(warm, &names, log);
    warm->fresh = plan->weights - warm->overlap.taken;
    free(names.place);
    pace__loaded_release(model);
    release_state(warm);
    return status;
}

void pace__warm_say(const pace__warm *warm, const pace__model_plan *plan, const pace_log *log)
{
    const pace__overlap *overlap = &warm->overlap;
    char left[160] = "";

    if (overlap->left > 0)
        snprintf(left, sizeof left, "; %" PRIu64 " of it are not in this data set%s", overlap->left,
                 warm->carried ? ", and stay in the model as they are" : "");
    pace_say(log, PACE_INFO, "weights: %" PRIu64 " of %" PRIu64 " taken from %s; %" PRIu64 " start fresh%s",
             overlap->taken, plan->weights, warm->forerunner.path, warm->fresh, left);
    if (overlap->note)
        pace_say(log, PACE_INFO, "%s", overlap->note);
}

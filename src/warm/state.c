/*
 * What the optimiser of a run has kept, from the checkpoint of the state that its model is: the last, or the best. Checkpoints
 * hold parameters by the keys of a job, which of sparse rows are the numbers of one data set: its ids.h5 tells whose they are. A
 * rule's floats stand behind the weights, and behind these what a mode or a penalty has besides, which is of that run alone.
 */
#include "checkpoint/checkpoint.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "model/ids.h"
#include "warm/warm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_TEXT 64

typedef struct reading {
    pace__warm *warm;
    const pace__warm_source *source;
    const pace__optim *optim;
    const pace_log *log;
    char *path; /* of the checkpoint */
    pace__manifest manifest;
    float *parameters; /* (keys, width) */
    unsigned planes;
} reading;

/* --- which checkpoint --- */

/* The newest one of the step that the model is of; without any, the last one. */
static size_t place_of(const reading *self, const pace__checkpoint_entry *entries, size_t count)
{
    for (size_t place = 0; place < count; place++) {
        if (entries[place].step == self->source->steps)
            return place;
    }
    return 0;
}

static pace_status find(reading *self)
{
    char *root = pace__format("%s/checkpoints", self->source->run);
    pace__checkpoint_entry *entries = NULL;
    size_t count = 0;
    pace_status status = root ? pace__checkpoint_list(root, self->log, &entries, &count, NULL)
                              : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status && count == 0)
        status = pace_fail(self->log, PACE_NO_INPUT,
                           "--init-state: %s has no checkpoint with the state of its optimiser "
                           "(--checkpoint-seconds 0 writes none); without --init-state its weights alone are "
                           "taken",
                           self->source->run);
    if (!status) {
        char **path = &entries[place_of(self, entries, count)].path;

        self->path = *path;
        *path = NULL;
        status = pace__manifest_read(self->path, self->log, &self->manifest);
    }
    if (!status && self->manifest.position.step != self->source->steps)
        status = pace_fail(self->log, PACE_BAD_DATA,
                           "--init-state: the last checkpoint of %s is that of step %" PRIu64
                           ", and its model that of step %" PRIu64,
                           self->source->run, self->manifest.position.step, self->source->steps);
    pace__checkpoint_list_free(entries, count);
    free(root);
    return status;
}

/* The value of a word "name=value"; "" if there is none. */
static void find_value(const char *words, const char *name, char value[WORD_TEXT])
{
    size_t length = strlen(name);

    value[0] = '\0';
    for (const char *word = words; *word; word += strspn(word, " ")) {
        size_t size = strcspn(word, " ");

        if (size > length && strncmp(word, name, length) == 0 && word[length] == '=')
            snprintf(value, WORD_TEXT, "%.*s", (int)(size - length - 1), word + length + 1);
        word += size;
    }
}

static pace_status check_rule(const reading *self)
{
    char here[WORD_TEXT], there[WORD_TEXT];

    find_value(self->source->job, "optimizer", here);
    find_value(self->manifest.job, "optimizer", there);
    if (strcmp(here, there) == 0)
        return PACE_OK;
    return pace_fail(
        self->log, PACE_USAGE,
        "--init-state: %s was trained with --optimizer %s, and here it is %s, to which its state "
        "means nothing",
        self->source->run, there, here);
}

static pace_status check_shape(const reading *self)
{
    const pace__shape *shape = &self->warm->saved.model.plan.shape;
    const pace__loaded *model = &self->warm->saved.model;
    bool sparse = model->plan.data.kind == PACE__ROWS_SPARSE;

    if (!sparse && self->manifest.keys != shape->keys)
        return pace_fail(self->log, PACE_USAGE,
                         "--init-state: %s has state of %" PRIu64 " rows of parameters, and its model has "
                         "%" PRIu64 ": layers that were not trained have none",
                         self->source->run, self->manifest.keys, shape->keys);
    if (self->manifest.width < (1 + self->planes) * shape->dim || self->manifest.width % shape->dim != 0)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: has %u floats of a key, which is not what its rule keeps", self->path,
                         self->manifest.width);
    return PACE_OK;
}

/* --- from keys of the checkpoint to those of the model --- */

static void move(const reading *self, size_t from, size_t to)
{
    size_t dim = self->warm->saved.model.plan.shape.dim, width = self->manifest.width;

    for (unsigned p = 0; p < self->planes; p++)
        memcpy(self->warm->state.plane[p] + to * dim, self->parameters + from * width + (p + 1) * dim,
               dim * sizeof *self->parameters);
}

/* Is it the data set that the run was trained on? */
static pace_status check_data(const reading *self, const pace__store *store)
{
    char expected[WORD_TEXT], found[WORD_TEXT];
    uint64_t content = pace__store_content(store);

    find_value(self->manifest.job, "data", expected);
    snprintf(found, sizeof found, "%016" PRIx64, content);
    if ((uint64_t)store->info.ids_seen + 1 == self->manifest.keys && (!content || !strcmp(found, expected)))
        return PACE_OK;
    return pace_fail(
        self->log, PACE_BAD_DATA,
        "--init-state: %s is not the data set that %s was trained on: numbers of features are in "
        "that alone; without --init-state the weights are taken, which need none",
        self->source->data, self->source->run);
}

static pace_status move_ids(const reading *self, const pace__store *store)
{
    const pace__loaded *model = &self->warm->saved.model;
    pace__id_index index = {0};
    uint64_t *original = NULL;
    pace_status status = check_data(self, store);

    if (!status)
        status = pace__store_read_ids(store, &original, self->log);
    if (!status)
        status = pace__id_index_init(&index, model->ids, model->count, self->log);
    for (uint32_t id = 0; !status && id < store->info.ids_seen; id++) {
        uint32_t place = pace__id_place(&index, original[id]);

        if (place < model->count)
            move(self, id, place);
    }
    if (!status)
        move(self, store->info.ids_seen, model->count); /* the bias */
    pace__id_index_release(&index);
    free(original);
    return status;
}

static pace_status move_sparse(const reading *self)
{
    pace__store store;
    pace_status status = pace__store_open(self->source->data, &store, self->log);

    if (status)
        return status;
    status = move_ids(self, &store);
    pace__store_close(&store);
    return status;
}

/* --- all of it --- */

/* What is in no checkpoint, like what was carried, is as it begins. */
static pace_status make_planes(const reading *self)
{
    const pace__shape *shape = &self->warm->saved.model.plan.shape;
    size_t count = ((size_t)shape->keys + 1) * shape->dim;
    float first[PACE__OPTIM_WIDTH_MAX];

    pace__optim_init(self->optim, first);
    for (unsigned p = 0; p < self->planes; p++) {
        float *plane = self->warm->state.plane[p] = malloc(count * sizeof *plane);

        if (!plane)
            return pace_fail(self->log, PACE_FAILED, "out of memory: the state of %zu weights", count);
        for (size_t i = 0; i < count; i++)
            plane[i] = first[p + 1];
    }
    self->warm->state.planes = self->planes;
    return PACE_OK;
}

static pace_status load(reading *self)
{
    const pace__shape *shape = &self->warm->saved.model.plan.shape;
    size_t floats = (size_t)self->manifest.keys * self->manifest.width;

    self->parameters = malloc(floats * sizeof *self->parameters);
    if (!self->parameters)
        return pace_fail(self->log, PACE_FAILED, "out of memory: a checkpoint of %zu floats", floats);
    pace_status status = pace__checkpoint_load(self->path, &self->manifest, self->parameters, self->log);

    if (!status)
        status = make_planes(self);
    if (!status && self->warm->saved.model.plan.data.kind == PACE__ROWS_SPARSE)
        return move_sparse(self);
    for (size_t key = 0; !status && key < shape->keys; key++)
        move(self, key, key);
    return status;
}

pace_status pace__warm_read_state(pace__warm *warm, const pace__warm_source *source, const pace__optim *optim,
                                  const pace_log *log)
{
    reading self = {
        .warm = warm, .source = source, .optim = optim, .log = log, .planes = pace__optim_planes(optim)};
    char exact[WORD_TEXT] = "";
    pace_status status = find(&self);

    if (!status)
        status = check_rule(&self);
    if (!status)
        status = check_shape(&self);
    if (!status)
        status = load(&self);
    if (!status)
        find_value(self.manifest.job, "exact", exact);
    warm->state.updates = strcmp(exact, "true") == 0 ? source->steps : source->samples;
    pace__manifest_release(&self.manifest);
    free(self.parameters);
    free(self.path);
    return status;
}

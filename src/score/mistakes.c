#include "score/mistakes.h"

#include "data/picture/image_names.h"

#include <stdlib.h>
#include <string.h>

/* Names are looked up for so many at a time: each time the file of names is read once. */
#define PENDING_MAX ((size_t)1 << 16)

pace_status pace__mistakes_open(const pace__store *store, const pace__class_names *names,
                                const pace_eval_config *config, pace__mistakes *mistakes, const pace_log *log)
{
    const char *read[] = {config->data, config->run};

    *mistakes = (pace__mistakes){.store = store, .classes = names, .log = log};
    if (!config->errors)
        return PACE_OK;
    mistakes->pending = malloc(PENDING_MAX * sizeof *mistakes->pending);
    if (!mistakes->pending)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status =
        pace__predictions_open(config->errors, config->force, &(pace_texts){read, 2}, log, &mistakes->file);

    if (status)
        free(mistakes->pending);
    return status;
}

/* The pictures' names, to be freed by pace__image_names_free and free. */
static pace_status find_names(const pace__mistakes *self, const pace__mistake *mistakes, size_t count,
                              char ***names)
{
    uint32_t *sources = malloc(count * sizeof *sources + 1);
    char **found = calloc(count + 1, sizeof *found);
    pace_status status = PACE_OK;

    for (size_t i = 0; sources && i < count; i++)
        sources[i] = mistakes[i].source;
    if (!sources || !found)
        status = pace_fail(self->log, PACE_FAILED, "out of memory for the names of %zu pictures", count);
    else if (count > 0)
        status = pace__image_names_read(self->store->path, sources, count, self->log, found);
    free(sources);
    if (status)
        free(found);
    else
        *names = found;
    return status;
}

static pace_status write_pending(pace__mistakes *self)
{
    char **classes = self->classes->items, **names;
    pace_status status = find_names(self, self->pending, self->pending_count, &names);

    if (status)
        return status;
    for (size_t i = 0; i < self->pending_count; i++) {
        const pace__mistake *mistake = &self->pending[i];

        fprintf(self->file.file, "%s\t%s\t%s\t%.9g\n", names[i], classes[mistake->actual],
                classes[mistake->predicted], mistake->probability);
    }
    pace__image_names_free(names, self->pending_count);
    free(names);
    self->pending_count = 0;
    return pace__predictions_flush(&self->file);
}

pace_status pace__mistakes_add(void *user, const pace__mistake *mistake, const pace__rows *rows, size_t at)
{
    pace__mistakes *self = user;

    pace__worst_add(&self->worst, mistake, rows, at);
    if (!self->pending)
        return PACE_OK;
    self->pending[self->pending_count++] = *mistake;
    return self->pending_count == PENDING_MAX ? write_pending(self) : PACE_OK;
}

static pace_status fill_worst(const pace__mistakes *self, pace_eval_result *result)
{
    char **names;
    pace_mistake *worst = calloc(PACE_EVAL_WORST, sizeof *worst);
    pace_status status = worst ? find_names(self, self->worst.items, self->worst.count, &names)
                               : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (status) {
        free(worst);
        return status;
    }
    for (size_t i = 0; i < self->worst.count; i++) /* the names are the result's from here on */
        worst[i] = (pace_mistake){names[i], self->worst.items[i].actual, self->worst.items[i].predicted,
                                  self->worst.items[i].probability};
    free(names);
    result->worst = worst;
    result->worst_count = self->worst.count;
    result->mistakes = self->worst.total;
    return PACE_OK;
}

pace_status pace__mistakes_close(pace__mistakes *mistakes, pace_status status, pace_eval_result *result)
{
    if (!status)
        status = fill_worst(mistakes, result);
    if (!status && mistakes->pending)
        status = write_pending(mistakes);
    if (mistakes->pending)
        status = pace__predictions_close(&mistakes->file, status);
    free(mistakes->pending);
    return status;
}

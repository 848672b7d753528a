#include "base/clock.h"
#include "base/locale.h"

#include <assert.h>
#include <paceline/registry.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pace_registry {
    pthread_mutex_t lock;
    uint64_t start_ns;
    size_t count;
    pace_sink sinks[PACE_REGISTRY_SINKS_MAX];
};

pace_registry *pace_registry_create(void)
{
    pace_registry *registry = calloc(1, sizeof *registry);

    if (!registry)
        return NULL;
    pthread_mutex_init(&registry->lock, NULL);
    registry->start_ns = pace__now_ns();
    return registry;
}

void pace_registry_free(pace_registry *registry)
{
    if (!registry)
        return;
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

void pace_registry_attach(pace_registry *registry, const pace_sink *sink)
{
    pthread_mutex_lock(&registry->lock);
    assert(registry->count < PACE_REGISTRY_SINKS_MAX);
    registry->sinks[registry->count++] = *sink;
    pthread_mutex_unlock(&registry->lock);
}

void pace_registry_detach(pace_registry *registry, const pace_sink *sink)
{
    pthread_mutex_lock(&registry->lock);
    for (size_t i = 0; i < registry->count; i++) {
        if (registry->sinks[i].record != sink->record || registry->sinks[i].user != sink->user)
            continue;
        memmove(&registry->sinks[i], &registry->sinks[i + 1],
                (registry->count - i - 1) * sizeof *registry->sinks);
        registry->count--;
        break;
    }
    pthread_mutex_unlock(&registry->lock);
}

void pace_registry_emit(pace_registry *registry, const char *kind, const pace_field *fields, size_t count)
{
    PACE__C_LOCALE();
    if (!registry)
        return;
    pthread_mutex_lock(&registry->lock);
    pace_record record = {kind, pace__seconds_since(registry->start_ns), fields, count};

    for (size_t i = 0; i < registry->count; i++)
        registry->sinks[i].record(registry->sinks[i].user, &record);
    pthread_mutex_unlock(&registry->lock);
}

const pace_field *pace_record_find(const pace_record *record, const char *name)
{
    for (size_t i = 0; i < record->count; i++) {
        if (strcmp(record->fields[i].name, name) == 0)
            return &record->fields[i];
    }
    return NULL;
}

#include "model/heaviest.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

/* The `count` heaviest places in a heap whose root is the lightest of them. */
typedef struct heap {
    const pace__loaded *loaded;
    float (*weight)(const pace__loaded *loaded, uint32_t place);
    uint32_t *places;
    size_t count;
} heap;

static float size_at(const heap *self, size_t at)
{
    return fabsf(self->weight(self->loaded, self->places[at]));
}

static void sift_down(heap *self, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= self->count)
            return;
        if (child + 1 < self->count && size_at(self, child + 1) < size_at(self, child))
            child++;
        if (size_at(self, at) <= size_at(self, child))
            return;
        uint32_t swap = self->places[at];

        self->places[at] = self->places[child];
        self->places[child] = swap;
        at = child;
    }
}

static void fill(heap *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        self->places[i] = i;
    for (size_t at = self->count; at-- > 0;)
        sift_down(self, at);
    for (uint32_t i = (uint32_t)self->count; self->count > 0 && i < self->loaded->count; i++) {
        if (fabsf(self->weight(self->loaded, i)) <= size_at(self, 0))
            continue;
        self->places[0] = i;
        sift_down(self, 0);
    }
}

static cJSON *feature_at(const heap *self, size_t at, const pace__portrait *portrait)
{
    uint64_t id = self->loaded->ids[self->places[at]];
    cJSON *each = cJSON_CreateObject();
    char name[PACE__FEATURE_NAME_MAX];

    portrait->name(portrait->user, id, name, sizeof name);
    cJSON_AddStringToObject(each, "feature", name);
    cJSON_AddNumberToObject(each, "id", (double)id);
    cJSON_AddNumberToObject(each, "weight", (double)self->weight(self->loaded, self->places[at]));
    return each;
}

void pace__add_heaviest(const pace__loaded *loaded, const pace__portrait *portrait,
                        float (*weight)(const pace__loaded *loaded, uint32_t place))
{
    heap self = {loaded, weight, NULL, portrait->top < loaded->count ? portrait->top : loaded->count};
    cJSON *list = cJSON_AddArrayToObject(portrait->to, "heaviest");

    self.places = malloc((self.count + 1) * sizeof *self.places);
    if (!self.places)
        return;
    fill(&self);
    while (self.count > 0) { /* the root is the lightest: the list is filled from its end */
        cJSON_InsertItemInArray(list, 0, feature_at(&self, 0, portrait));
        self.places[0] = self.places[--self.count];
        sift_down(&self, 0);
    }
    free(self.places);
}

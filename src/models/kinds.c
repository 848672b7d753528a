#include "models/kinds.h"

#include "model/model.h"

#include <assert.h>

#define DECLARE(name) extern const pace__kind pace__kind_##name;
PACE__KINDS(DECLARE)

#define POINT(name) &pace__kind_##name,
static const pace__kind *const kinds[] = {PACE__KINDS(POINT)};
#define KINDS (sizeof kinds / sizeof *kinds)

_Static_assert(KINDS <= PACE_MODELS_MAX, "a command line has room for the options of so many kinds");

#define SPELL(name) "|" #name
const char pace__kind_names[] = PACE__KINDS(SPELL);

const pace__kind *pace__kind_at(int index)
{
    assert(index >= 0 && (size_t)index < KINDS);
    return kinds[index];
}

const pace_model_info *pace_model_at(int model)
{
    return model >= 0 && (size_t)model < KINDS ? &kinds[model]->info : NULL;
}

const pace__kind *pace__kind_named(const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i]->info.name, name) == 0)
            return kinds[i];
    }
    return NULL;
}

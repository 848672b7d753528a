/*
 * saved_bytes.h - what the fuzz targets of model files share: a file that is refused with one message, or holds a model.
 */
#ifndef FUZZ_SAVED_BYTES_H
#define FUZZ_SAVED_BYTES_H

#include "saved/saved.h"

#include "fuzzing.h"

typedef void look_at_fn(const pace__saved *model, const char *path, const pace_log *log);

/* Calls look_at if the file holds a model of that kind. */
static inline void try_saved(const char *path, const char *kind, look_at_fn *look_at)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace__saved model;
    pace_status status = pace__saved_open(path, &log, &model);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(errors == (status != PACE_OK));
    if (!status && strcmp(model.model.plan.kind->info.name, kind) == 0)
        look_at(&model, path, &log);
    pace__saved_close(&model);
}

#endif

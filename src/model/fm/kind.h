/* kind.h - the factorization machine as a kind of model (model/model.h): its options, its part of a plan. */
#ifndef MODEL_FM_KIND_H
#define MODEL_FM_KIND_H

#include "model/model.h"

typedef struct pace__fm_own {
    unsigned factors;
    int64_t seed; /* of first values */
} pace__fm_own;

/* On sparse rows. */
pace_status pace__fm_model_plan(const pace__dataset *data, unsigned factors, int64_t seed,
                                const pace_log *log, pace__model_plan *plan);

/* Of the kind: pace__model_terms. (fm_terms.c) */
pace_status pace__fm_terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                           void *user);

extern const pace__kind pace__kind_fm;

#endif

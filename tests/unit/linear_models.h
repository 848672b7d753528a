/* linear_models.h - small models of logistic regression, every layout and optimiser. Include it behind <cmocka.h>. */
#ifndef UNIT_LINEAR_MODELS_H
#define UNIT_LINEAR_MODELS_H

#include "model/linear/logreg.h"

#include "optimisers.h"
#include "support.h"

static inline void assert_near(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.9g instead of %.9g", what, found, expected);
}

/* The four layouts of a small set. */
static inline tiny_plan layout(int which, uint64_t rows)
{
    return (tiny_plan){.train = rows,
                       .ids = 97,
                       .columns = which & 1 ? 11 : 0,
                       .has_values = which & 2,
                       .seed = 40 + (uint64_t)which};
}

static const char *const layout_names[] = {"rows of any length", "columns", "rows of any length with values",
                                           "columns with values"};

static inline void make_model(pace__logreg *model, const tiny_set *set, const pace__optim *optim, bool plain)
{
    assert_ok(pace__logreg_init(model, set->info.ids_seen, set->info.columns, set->info.has_values, optim,
                                plain, &said_log));
}

static inline void randomise(pace__logreg *model, double size)
{
    pace__random random = pace__random_at(3, 9);

    for (uint32_t id = 0; id < model->ids; id++)
        model->parameters[(size_t)id * model->optim.width] =
            (float)(size * (2 * pace__random_unit(&random) - 1));
    model->bias[0] = (float)(size * 0.3);
}

#endif

/* review_preps.h - prep reviews, for the tests of it. Include it behind <cmocka.h>. */
#ifndef UNIT_REVIEW_PREPS_H
#define UNIT_REVIEW_PREPS_H

#include "support.h"

#include <paceline/prep.h>

/* What options leave open: every word counts, rows are as long as the texts, and the format is found. */
static inline pace_prep_reviews_config settings_of(const char **inputs, size_t count, const char *output)
{
    return (pace_prep_reviews_config){.common.inputs = {inputs, count},
                                      .common.output = output,
                                      .text_field = "reviewText",
                                      .label_field = "overall",
                                      .positive = "auto",
                                      .vocab = 10000,
                                      .stopwords = "none",
                                      .keep_negations = true,
                                      .common.processes = 1,
                                      .common.threads = 2,
                                      .common.memory = (uint64_t)128 << 20,
                                      .common.parts = 3,
                                      .common.seed = 1};
}

static inline pace_prep_reviews_result prepare(const pace_prep_reviews_config *config)
{
    pace_prep_reviews_result result;

    said_clear();
    assert_ok(pace_prep_reviews(config, &said_log, NULL, &result));
    return result;
}

#endif

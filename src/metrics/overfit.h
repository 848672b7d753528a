/*
 * overfit.h - has a model learned its training rows by heart?
 *
 *     pace__fit fit = {.epochs = 10, .train = 0.05, .test = 0.61, .best = 0.48, .always_mean = 0.69};
 *     if (pace__fit_is_over(&fit)) ...
 *
 * A model that knows rows by heart is sure of them, and as sure of others, where it is often wrong. So what it costs is
 * that others cost more than they did, or would have, after fewer passes. That training rows cost less than others is no
 * sign of it alone: text models do so from their second pass on, and become better all the while.
 * docs/decisions/0063 has the runs that the bounds were chosen on.
 *
 * Plain values, mean log-losses of a row; what is not known is NAN, and then nothing is claimed.
 */
#ifndef METRICS_OVERFIT_H
#define METRICS_OVERFIT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pace__fit {
    double epochs;      /* passes over the training rows */
    double train;       /* of the last pass, each row as it was when it was learned from */
    const char *rows;   /* the others that were scored: "test" or "validation" */
    double test;        /* of these at the end */
    double best;        /* the lowest of those on the way; INFINITY: none was taken */
    double always_mean; /* of the same, for whoever always says the mean */
} pace__fit;

bool pace__fit_is_over(const pace__fit *fit);

/*
 * A line that says so, and what to try: passes that would have done, then `remedies`, words of the kind of model. "" if
 * there is nothing to say.
 */
void pace__fit_line(const pace__fit *fit, const char *remedies, char *text, size_t size);

#endif

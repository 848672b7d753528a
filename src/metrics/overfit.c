#include "metrics/overfit.h"

#include <math.h>
#include <stdio.h>

#define EPOCHS_LEAST 2.0

/* Where test rows were scored on the way: what they cost at the end, in times of the best score, and of what training rows cost. */
#define ABOVE_BEST  1.05
#define ABOVE_TRAIN 1.2

/* Where they were not: in times of what training rows cost, and of what saying the mean costs. What a model is as sure of as of
 * rows that it knows by heart, and wrong, has cost it most of what it had learned. */
#define FAR_ABOVE_TRAIN 1.8
#define NEAR_THE_MEAN   0.85

bool pace__fit_is_over(const pace__fit *fit)
{
    bool known = isfinite(fit->train) && isfinite(fit->test) && fit->always_mean > 0;

    if (!known || fit->epochs < EPOCHS_LEAST)
        return false;
    return isfinite(fit->best)
               ? fit->test > ABOVE_BEST * fit->best && fit->test > ABOVE_TRAIN * fit->train
               : fit->test > NEAR_THE_MEAN * fit->always_mean && fit->test > FAR_ABOVE_TRAIN * fit->train;
}

void pace__fit_line(const pace__fit *fit, const char *remedies, char *text, size_t size)
{
    char best[64] = "";

    text[0] = '\0';
    if (!pace__fit_is_over(fit))
        return;
    if (isfinite(fit->best))
        snprintf(best, sizeof best, ", at best %.3g on the way", fit->best);
    snprintf(text, size,
             "it has learned training rows by heart: they cost %.3g, %s rows %.3g%s. Try --epochs %.0f, %s%s",
             fit->train, fit->rows, fit->test, best, fmax(1, floor(fit->epochs / 2)), remedies,
             isfinite(fit->best) ? "" : "; --eval-every N shows when it begins");
}

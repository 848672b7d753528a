/* softplus.h - log(1 + exp(x)): the loss of a logit. */
#ifndef MATH_SOFTPLUS_H
#define MATH_SOFTPLUS_H

#include <math.h>

/* For every x; what is no number stays none. */
static inline double pace__softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

#endif

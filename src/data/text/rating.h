/* rating.h - what a review's label says. */
#ifndef DATA_TEXT_RATING_H
#define DATA_TEXT_RATING_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A finite decimal number, or pos, positive, true (1), neg, negative, false (0) in any case, with blanks
 * around it. False if it is none of these. Does not depend on the locale.
 */
bool pace__rating_parse(const char *text, size_t size, double *rating);

#endif

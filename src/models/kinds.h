/*
 * kinds.h - the list of kinds: the one place that names them all. A line is all that a new one needs outside
 * its room; the order is that of PACE_MODEL_* in <paceline/models.h>.
 */
#ifndef MODELS_KINDS_H
#define MODELS_KINDS_H

/* clang-format off */
#define PACE__KINDS(kind) \
    kind(logreg) \
    kind(rnn) \
    kind(cnn) \
    kind(fm)
/* clang-format on */

#endif

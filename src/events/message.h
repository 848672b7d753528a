/*
 * message.h - the events that TensorBoard reads, each a whole record. What the messages and their fields are called there
 * stands in message.c.
 */
#ifndef EVENTS_MESSAGE_H
#define EVENTS_MESSAGE_H

#include "events/proto.h"
#include "events/scalars.h"

/* Seconds since 1970; where training stands. */
typedef struct pace__stamp {
    double wall_s;
    uint64_t step;
} pace__stamp;

/* An option of the run, as the hparams tab shows it. */
typedef struct pace__hparam {
    const char *name;
    enum { PACE__HPARAM_NUMBER, PACE__HPARAM_FLAG, PACE__HPARAM_TEXT } type;
    double number; /* of a flag: 0 or 1 */
    char text[64]; /* of a text; a longer one is cut */
} pace__hparam;

/* The first one of a file. */
void pace__event_version(pace__proto *out, pace__stamp stamp);
/* What was written of this step and later ones, in files before, is going to be repeated. */
void pace__event_restart(pace__proto *out, pace__stamp stamp);
void pace__event_scalars(pace__proto *out, pace__stamp stamp, const pace__scalars *scalars);
/* Markdown. */
void pace__event_text(pace__proto *out, pace__stamp stamp, const char *tag, const char *text);
/* Lines of a file, without comments, which stay as they are. To be freed; NULL when out of memory. */
char *pace__config_as_markdown(const char *config);

/* The hparams tab: what there is to compare; the options of this run; how it ended. */
void pace__event_experiment(pace__proto *out, pace__stamp stamp, const pace__hparam *hparams, size_t count);
void pace__event_session_start(pace__proto *out, pace__stamp stamp, const pace__hparam *hparams,
                               size_t count);
void pace__event_session_end(pace__proto *out, pace__stamp stamp, bool success);

#endif

/*
 * events.h - RUN/events/ROLE: what a run measures, for TensorBoard. `tensorboard --logdir RUN/events` shows it.
 *
 *     pace__events *events = pace__events_open(&plan, log);       // NULL: out of memory; the run goes on
 *     pace_registry_attach(registry, pace__events_sink(events));
 *     ... train ...
 *     pace_registry_detach(registry, pace__events_sink(events));
 *     pace__events_close(events, PACE__EVENTS_SUCCESS);
 *
 * Each role is a run of TensorBoard's. The first, which leads, has the loss, the scores, the options (tab HParams) and
 * config.yaml (tab Text); all have what their samples tell (scalars.h).
 *
 * 1. It is never a reason to end a run. What cannot be made or written costs a warning, once; what comes later is tried.
 * 2. A file has whole records only. They are put together in memory, and written once a second: who is killed has lost
 *    the last one. After the opening nothing is allocated.
 * 3. A start of the run writes new files, behind those of earlier ones (directory.h). If training goes on from a
 *    step, they begin with the word that later ones come again, upon which TensorBoard drops what it knows of them.
 * 4. However long the run, all files together stay below about 20 MiB (base/thinning.h). From the first 5 MiB on, samples
 *    are taken every 2 s, then 4 s, and so on, which makes their means longer, and in that time at most 16 steps and 16
 *    scores are written; the last of each always is. The log says so, and a text among the events.
 * 5. Steps and scores stand at their own step, samples at the step that training has reached as far as was told. Time is
 *    that of the wall when the first record came, and goes on by the registry's clock, which never jumps.
 */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include "events/message.h"
#include "events/writer.h"

#include <paceline/log.h>
#include <paceline/registry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known when training begins. Nothing of it is kept. */
typedef struct pace__events_plan {
    const char *directory;
    size_t roles;                              /* at least 1 */
    const char (*role)[PACE__EVENT_ROLE_TEXT]; /* (roles) names as in launch/cluster.h */
    bool goes_on;                              /* after an earlier start, from `step` */
    uint64_t step;
    const char *config; /* text of config.yaml; NULL: unknown */
    const pace__hparam *hparams;
    size_t hparams_count;
} pace__events_plan;

typedef enum pace__events_end {
    PACE__EVENTS_OPEN, /* it may go on */
    PACE__EVENTS_SUCCESS,
    PACE__EVENTS_FAILURE
} pace__events_end;

typedef struct pace__events pace__events;

/* `log` must outlive it. */
pace__events *pace__events_open(const pace__events_plan *plan, const pace_log *log);
void pace__events_close(pace__events *events, pace__events_end end); /* NULL is allowed */

const pace_sink *pace__events_sink(const pace__events *events);

#endif

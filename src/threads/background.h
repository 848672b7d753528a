/*
 * background.h - one thread that does one thing at a time while its owner goes on.
 *
 *     pace__background_start(background, write_part, &part);
 *     ...
 *     if (pace__background_idle(background) && part.started)     // what it wrote into part can be read now
 */
#ifndef THREADS_BACKGROUND_H
#define THREADS_BACKGROUND_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pace__background pace__background;

pace_status pace__background_create(const pace_log *log, pace__background **background);
/* Waits for what is under way. NULL is allowed. */
void pace__background_free(pace__background *background);

/* Nothing may be under way. `user` belongs to the task until idle() or wait() has said that it is over. */
void pace__background_start(pace__background *background, void (*task)(void *user), void *user);
bool pace__background_idle(pace__background *background);
void pace__background_wait(pace__background *background);
/* The same for so long at most. True: it is idle. */
bool pace__background_wait_for(pace__background *background, uint64_t most_ns);

#endif

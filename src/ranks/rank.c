#include "ranks/aside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE_TEXT (PACE__LINK_NAME_MAX + 48)

/* --- what it says --- */

/* "worker1 (rank 1, host b), step 7" */
static void name_place(const pace__rank *self, char text[PLACE_TEXT])
{
    int size = snprintf(text, PLACE_TEXT, "%s (rank %d, host %.200s)", self->role, self->number, self->host);

    if (self->step != PACE__NO_STEP)
        snprintf(text + size, PLACE_TEXT - (size_t)size, ", step %" PRIu64, self->step);
}

static void keep(pace__rank *self, const char *text, bool named)
{
    char place[PLACE_TEXT];

    if (atomic_exchange(&self->kept, true))
        return;
    name_place(self, place);
    if (named)
        snprintf(self->reason, sizeof self->reason, "%s", text);
    else
        snprintf(self->reason, sizeof self->reason, "%s: %s", place, text);
}

static void speak(const pace__rank *self, pace_level level, const char *text)
{
    char place[PLACE_TEXT];

    if (level != PACE_ERROR || self->step == PACE__NO_STEP || strstr(text, "(rank ") ||
        strstr(text, "step ")) {
        pace_say(self->outer_log, level, "%s", text);
        return;
    }
    name_place(self, place);
    pace_say(self->outer_log, level, "%s: %s", place, text);
}

static void pass(pace__rank *self, pace_level level, const char *text, bool named)
{
    if (self->speaks)
        speak(self, level, text);
    else if (level == PACE_ERROR)
        keep(self, text, named);
    else if (level == PACE_WARN && self->warns)
        pace_say(self->outer_log, level, "%s", text);
}

static void write_own(void *user, pace_level level, const char *text)
{
    pass(user, level, text, false);
}

/* The link's words name everyone already where they speak of a rank. */
static void write_link(void *user, pace_level level, const char *text)
{
    pass(user, level, text, strstr(text, "(rank ") != NULL);
}

/* The first cause, once: another rank's error and one from here may come at the same time (aside.h). */
static void write_caller(void *user, pace_level level, const char *text)
{
    pace__rank *self = user;

    if (level != PACE_ERROR || !atomic_exchange(&self->told, true))
        pace_say(self->given_log, level, "%s", text);
}

/* --- opening and closing --- */

void pace__rank_set_name(pace__rank *self, int rank, const char *host)
{
    char role[PACE__ROLE_TEXT], name[PACE__LINK_NAME_MAX];

    pace__role_name(&self->cluster, rank, role);
    snprintf(name, sizeof name, host ? "%s (rank %d, host %.200s)" : "%s (rank %d)", role, rank, host);
    pace__link_set_name(self->link, rank, name);
}

void pace__rank_open(pace__rank *self, pace__link *link, const pace__cluster *cluster, bool speaks,
                     const pace_log *log)
{
    int number = pace__link_rank(link);

    *self = (pace__rank){.link = link,
                         .number = number,
                         .cluster = *cluster,
                         .given_log = log,
                         .caller_log = {write_caller, self},
                         .outer_log = &self->caller_log,
                         .own_log = {write_own, self},
                         .link_log = {write_link, self},
                         .log = &self->own_log,
                         .speaks = speaks || number == 0,
                         .step = PACE__NO_STEP,
                         .aside_max_s = PACE__ASIDE_MAX_S};
    pace__role_name(cluster, number, self->role);
    if (gethostname(self->host, sizeof self->host - 1) != 0)
        snprintf(self->host, sizeof self->host, "unknown");
    for (int rank = 0; rank < pace__link_size(link); rank++)
        pace__rank_set_name(self, rank, rank == number ? self->host : NULL);
    pace__link_set_log(link, &self->link_log);
}

void pace__rank_close(pace__rank *self)
{
    pace__background_free(self->background);
    pace__link_close(self->link);
    free(self->hosts);
    self->link = NULL;
    self->hosts = NULL;
    self->background = NULL;
}

/* --- on the way --- */

static pace_status idle(void *user, bool *busy)
{
    const pace__rank *self = user;

    *busy = false;
    return self->look(self->look_user);
}

void pace__rank_watch(pace__rank *self, pace_status (*look)(void *user), void *user)
{
    self->look = look;
    self->look_user = user;
    pace__link_on_idle(self->link, idle, self);
}

pace_status pace__rank_pulse(void *rank)
{
    const pace__rank *self = rank;
    pace_status status = self->look ? self->look(self->look_user) : PACE_OK;

    return status ? status : pace__link_pulse(self->link);
}

void pace__rank_set_log(pace__rank *self, const pace_log *log)
{
    self->outer_log = log ? log : &self->caller_log;
}

void pace__rank_set_step(pace__rank *self, uint64_t step)
{
    self->step = step;
    if (step != PACE__NO_STEP)
        pace__link_set_step(self->link, step);
}

void pace__rank_fail(pace__rank *self, pace_status status)
{
    if (!self->failed)
        pace__link_fail(self->link, status, self->reason);
    self->failed = true;
}

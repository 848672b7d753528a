/*
 * view.h - what there is to see of a run at one moment: where it stands, and what each role does. Every screen, page and
 * list of figures is made of this, so that they agree.
 *
 *     pace__view view;
 *     if (pace__view_make(history, &view)) {
 *         ... view.roles[0].rows_per_s ...
 *         pace__view_release(&view);
 *     }
 *
 * A pure function of a history, whose names it points to: the history must outlive it, and must not be updated meanwhile.
 *
 * 1. Rates and shares of a run that goes on are those of its last PACE__VIEW_RECENT_S seconds, in which a role that is silent
 *    has done nothing since it spoke; of any other, of its whole last start. Amounts are those of the newest sample: since the role's process began to train.
 * 2. What cannot be told is NAN. A role that has said nothing since the last start has nothing but its name.
 * 3. Shares of a role's time add up to 1; shares of rows, over all roles, too.
 */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include "history/history.h"
#include "verdict/verdict.h"

#define PACE__VIEW_RECENT_S 10.0
#define PACE__VIEW_VERDICT_S                                                                                 \
    60.0                        /* the verdict, and the time that is left, are by the last so many seconds */
#define PACE__VIEW_SILENT_S 5.0 /* a role without a sample for so long is named silent */

typedef struct pace__role_view {
    const char *name, *host; /* host: "" if nobody has said */
    bool is_known;           /* it has sent a sample since the last start */
    double silent_s;         /* since that came, in the time of the records */
    bool is_silent;          /* that is longer than it usually is: records of long runs are thinned */
    pace__sample newest;     /* all zero if there is none */
    double recent_rows;      /* in the time that rates are of */
    double rows_per_s, row_share;
    double cores;                                   /* processors in use: 1.5 is 150 % */
    double sent_per_s, received_per_s;              /* bytes with other roles */
    double disk_read_per_s, disk_write_per_s;       /* bytes */
    double data, compute, communicate, still, wait; /* shares of its time */
    int waits_for;                                  /* a role; -1: nobody */
    double queue, staleness; /* of a shard: requests at a look; pushes behind at a push */
} pace__role_view;

typedef struct pace__view {
    const pace__history *history;
    pace__standing standing;
    uint64_t step; /* of the newest record of a step, or at which the run has started */
    double
        position; /* steps that are taken, by the rows of the newest samples: ahead of `step` while it goes on */
    uint64_t steps;                  /* 0: unknown */
    double left_s;                   /* until the last step; of a run that goes on */
    double rows_per_s;               /* of all roles */
    const pace__step_record *newest; /* NULL: no steps yet */
    const pace__eval_record *scored; /* on the way, by pace__history_scored; NULL: no scores yet */
    pace__verdict verdict;
    pace__role_view *roles;
    size_t role_count;
} pace__view;

/* False: out of memory. */
bool pace__view_make(const pace__history *history, pace__view *view);
void pace__view_release(pace__view *view);

/* The course of the loss: means of `count` stretches of equally many steps, the last of which ends now. Returns how many
 * there are to show: as many, or fewer if there are fewer records. */
size_t pace__view_losses(const pace__history *history, size_t count, double *losses);

/* From one sample to another of the same role: as pace__sample_since, as rates and shares. `earlier` may be NULL. */
void pace__view_between(const pace__history *history, const pace__sample *later, const pace__sample *earlier,
                        pace__role_view *view);

/* view_json.c: all of it as one JSON object, for `top --json` and the page. */
struct pace__json;
void pace__view_put(struct pace__json *json, const pace__view *view);

#endif

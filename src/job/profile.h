/*
 * profile.h - --profile: which steps are recorded, and what becomes of the spans.
 *
 * Every process of a job records (watch/spans.h) from a few steps behind its start on, for as many steps as asked
 * for; the leader puts together what all have recorded, and writes RUN/profile:
 *
 *     pace__profile_open(&profile, job, threads);               // everyone; nothing happens without --profile
 *     pace__profile_at(&profile, step);                         // before each step
 *     ...
 *     pace__profile_book_open(&book, job, &profile);             // the leader
 *     for (each rank)
 *         pace__profile_book_add(&book, rank, host, pack, bytes, &clock);
 *     pace__profile_book_write(&book);                          // trace.json.gz, ops.json
 *     pace__profile_book_peak(&book);                           // when nobody computes any more: ops.json, with the peak
 *     pace__profile_book_note(&book, seconds);                  // what the verdict needs of it
 *     pace__profile_book_close(&book);
 *     pace__profile_close(&profile);
 *
 * 1. A profile that cannot be written, or put together, is a warning: no run ends for it.
 * 2. Nothing is recorded behind the last step of the window, nor before the first; only the evaluator, who has no
 *    steps, records until it is asked for its spans.
 */
#ifndef JOB_PROFILE_H
#define JOB_PROFILE_H

#include "base/kept.h"
#include "job/job.h"
#include "watch/ops.h"
#include "watch/trace.h"

#define PACE__PROFILE_WARMUP 10

typedef struct pace__profile {
    pace__spans *spans;   /* NULL: nobody wants one */
    uint64_t first, last; /* steps first .. last - 1 are recorded */
    uint64_t base_ns;     /* before anything was */
    bool over;            /* the last of them was taken */
} pace__profile;

/* Which steps, of a job that takes first .. last - 1: a tenth of them, but at most PACE__PROFILE_WARMUP, are left out. */
void pace__profile_window(uint64_t first, uint64_t last, uint64_t wanted, uint64_t window[2]);

/* The calling thread is recorded as "main" from now on, and so are those that it starts. Without memory it says so, and
 * nothing is recorded. */
void pace__profile_open(pace__profile *profile, const pace__job *job, int threads);
void pace__profile_close(pace__profile *profile);

void pace__profile_reach(pace__profile *profile, uint64_t step);
static inline void pace__profile_at(pace__profile *profile, uint64_t step)
{
    if (profile->spans && !profile->over)
        pace__profile_reach(profile, step);
}
/* Nothing more is recorded. Without a recorder nothing happens. */
void pace__profile_stop(pace__profile *profile);

/* --- the leader --- */

typedef struct pace__profile_book {
    const pace__job *job;
    uint64_t base_ns;
    uint64_t steps[2];
    int ranks;
    char (*roles)[PACE__ROLE_TEXT]; /* (ranks) */
    const char **names;             /* (ranks) they, again */
    pace__clock_offset *clocks;     /* (ranks) */
    bool *has;                      /* (ranks) its spans are in it */
    pace__trace *trace;
    pace__ops *ops;
    pace__peak peak;
    char *text;         /* of ops.json */
    pace_status status; /* the first failure, which was told: nothing more is written */
    bool written;
    pace__kept kept; /* what is said of it meanwhile */
    char reason[PACE_LOG_TEXT_MAX];
} pace__profile_book;

/* It must not move until it is closed. A zeroed one may be closed, too. */
void pace__profile_book_open(pace__profile_book *book, const pace__job *job, const pace__profile *profile);
/* `host` may be NULL. The pack, of so many bytes, is checked. */
void pace__profile_book_add(pace__profile_book *book, int rank, const char *host, const pace__span_pack *pack,
                            size_t bytes, const pace__clock_offset *clock);
void pace__profile_book_write(pace__profile_book *book);
void pace__profile_book_peak(pace__profile_book *book);
/* A record for the verdict: what of it is bound by memory, and how long it took to make the profile when training was over. */
void pace__profile_book_note(const pace__profile_book *book, double seconds);
void pace__profile_book_close(pace__profile_book *book);

/* All of it, for a process without others. */
void pace__profile_write_own(pace__profile *profile, pace__profile_book *book, const pace__job *job);

#endif

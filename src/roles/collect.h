/*
 * collect.h - a profile of all ranks: each records for itself; the chief finds out how their clocks go, and collects
 * what they have recorded.
 *
 * When the chief has taken the last step of the window, or at the end of the job, it goes from rank to rank. It sends
 * PINGS words, one after the other, which the rank answers with the time of its clock: in the shortest of these
 * exchanges, the rank's time was that of half way, give or take half the exchange. Then it asks for the spans. All of
 * that happens in waits, while the job goes on.
 *
 * 1. One word is under way at a time, and is answered before the next.
 * 2. A rank that is lost is passed over, and so is one that has nothing to send.
 * 3. Before the job ends, everyone still there has been asked: pace__process_finish_profile comes before any END.
 */
#ifndef ROLES_COLLECT_H
#define ROLES_COLLECT_H

#include "job/profile.h"
#include "net/link.h"

/* Of the chief to a rank. */
typedef enum pace__clock_word { PACE__CLOCK_TELL = 1, PACE__CLOCK_SEND = 2 } pace__clock_word;

/* And back; if bytes is above 0, so many follow. */
typedef struct pace__clock_answer {
    uint64_t now_ns, bytes;
} pace__clock_answer;

typedef struct pace__collection {
    /* Others. */
    bool listens, word_came;
    pace__span_pack *pack; /* on its way */
    pace__request pack_send;

    /* The chief. */
    bool begun, ended;
    int rank;  /* whom it is at */
    int pings; /* that were answered */
    uint64_t best_ns;
    pace__clock_offset clock;
    uint64_t sent_ns;
    pace__span_pack *room;       /* for what comes */
    pace__clock_answer *answers; /* (ranks) that of a lost one may still be written to */
    bool kept;                   /* so they stay for ever */
    pace__profile_book book;

    /* Both: the word; others: its answer. */
    uint64_t word;
    pace__clock_answer answer;
    pace__request send, receive;
} pace__collection;

typedef struct pace__process pace__process;

/* Everyone, before anything is held or started. */
void pace__process_open_profile(pace__process *process);
/* In every turn of waiting. */
pace_status pace__process_poll_profile(pace__process *process, bool *busy);
/* The chief: what is missing is collected, and all of it written, with the machine's peak. */
pace_status pace__process_finish_profile(pace__process *process);
/* Of a job that has ended: nothing is on its way any more. */
void pace__process_close_profile(pace__process *process);

/* What the nth answer tells of a clock: asked at sent_ns, answered at came_ns. Keeps the best. */
void pace__clock_judge(uint64_t sent_ns, uint64_t came_ns, uint64_t their_ns, uint64_t *best_ns,
                       pace__clock_offset *clock);

#endif

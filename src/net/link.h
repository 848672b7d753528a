/*
 * link.h - messages between the processes of a job: sent and received without blocking, waited for with a
 * deadline.
 *
 * A job is `size` ranks. A link is one rank's end of it: over MPI (link_mpi.c), or between threads of one
 * process (link_threads.c), which is how strategies are tested under the thread sanitizer, and how a job of
 * one process runs without any launcher. It knows nothing of models: a message is bytes with a tag.
 *
 *     pace__link_receive(link, server, TAG_REPLY, weights, sizeof weights, &reply);   // post first ...
 *     pace__link_send(link, server, TAG_PUSH, gradients, bytes, &push);
 *     find_next_keys();                                                               // ... work ...
 *     status = pace__link_wait(link, &reply, "the weights");                          // ... then wait
 *
 * 1. One thread per link. Messages of one sender and tag arrive in the order they were sent.
 * 2. A buffer belongs to the link from send or receive until done() or wait() has said that it is over. A
 *    send may last until the peer receives it: nothing may rely on messages being kept somewhere in between.
 * 3. Nobody waits for ever, and nobody spins for long. Every wait polls, then yields, then sleeps for longer
 *    and longer; it ends with PACE_LOST when the peer has given no sign of life for `deadline_ns`. Any
 *    message is a sign of life; besides, everyone who waits or calls pulse() sends an "alive" to all
 *    ranks it has a relation with (who ever sent to it, were sent to or were to be received from), six times
 *    per deadline. So a peer that is slow but calls pulse() is waited for, and one that hangs, was stopped or
 *    was cut off is named. Silence counts only while this rank listens, which it does in wait, turn and
 *    pulse: a rank that was away for half a deadline begins to count anew.
 *    Signs of those who only wait themselves keep nobody waiting for ever: an "alive" says for how long its
 *    sender, and whoever that waits for, have done nothing but wait. Work is what ends a wait, what idle was
 *    busy with, and whatever pulse() is called in; who waits for nobody in particular (turn for no peers: its
 *    own disk, say) works, too. A wait ends with PACE_LOST, too, when nobody that it depends on has worked for
 *    PACE__LINK_STANDSTILL deadlines: they wait for each other. A rank that others wait for while a thread of
 *    its own does something calls pulse().
 * 4. The message of a missed deadline names the peer (by its name, see set_name), what was waited for, and
 *    the step.
 * 5. A rank that fails tells rank 0 why (pace__link_fail), and rank 0 ends the job: see there.
 * 6. A rank that has died may be given up (pace__link_lose), if the job can go on without it.
 * 7. The first failure stays: from then on done, wait, turn and pulse return it, without another message.
 */
#ifndef NET_LINK_H
#define NET_LINK_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__LINK_TAGS_MAX    24 /* tags are 0 .. 23 */
#define PACE__LINK_MESSAGE_MAX ((size_t)1 << 30)
#define PACE__LINK_REASON_MAX  768
#define PACE__LINK_NAME_MAX    320  /* longer names are cut */
#define PACE__LINK_ANY         (-1) /* a receive from whoever sends with the tag */
/* Deadlines without work of anybody who is waited for: what somebody does is known to the second in line up to two later. */
#define PACE__LINK_STANDSTILL 4

typedef struct pace__link pace__link;

/* An operation under way. Owned by the caller; zeroed: nothing is. It must not move while active. */
typedef struct pace__request {
    uintptr_t native;
    int peer; /* of a receive from ANY: who sent, once it is done */
    int tag;
    bool active, receives;
    size_t bytes; /* of a receive: what came, once it is done */
} pace__request;

/* What went over a link, by peer and tag, since it was opened. Sums (pace__link_sum) are not in it. */
typedef struct pace__traffic {
    uint64_t messages_sent, messages_received, bytes_sent, bytes_received;
} pace__traffic;

/* --- opening and ending --- */

typedef struct pace__link_options {
    uint64_t deadline_ns;       /* without a sign of life of the peer that is waited for; above 0 */
    uint64_t first_deadline_ns; /* the same while a peer has never been heard of */
    const pace_log *log;
    /* Ranks may be lost: an error of a single message is no failure yet, since its peer may have died. If it
     * has not, the deadline finds it. */
    bool outlives;
} pace__link_options;

/*
 * Starts MPI (funneled: only the calling thread may use the link). `workers` is how many of the first ranks
 * take part in pace__link_sum. Errors of MPI are returned, not fatal. To be called once per process. After an
 * error the process must end without MPI_Finalize: just exit.
 */
pace_status pace__link_open_mpi(int workers, const pace__link_options *options, pace__link **link);

/*
 * True if a launcher (mpirun of Open MPI or MPICH, srun) has started this process; *size is how many it says
 * it started (0: it does not say), *rank which one this is (-1: it does not say). Looks only at the
 * environment. False in the body of an sbatch script.
 */
bool pace__launched(int *rank, int *size);

/* `size` links between threads of this process, links[rank] each for the thread of that rank. */
pace_status pace__link_open_threads(int size, int workers, const pace__link_options *options,
                                    pace__link **links);

/*
 * After a job that went well: all ranks call it, none has an operation under way. Over MPI it waits for all
 * ranks; if one of them does not come, it ends the job as pace__link_fail does. After a failure: frees the
 * link; operations under way are given up, and their buffers are the caller's again. NULL is allowed.
 */
void pace__link_close(pace__link *link);

/*
 * After a failure, before close. Rank 0: ends all ranks with that exit code (MPI_Abort) and does not
 * return; between threads, makes every other link's waits fail. Other ranks: tells rank 0 first, who finds it
 * in its next wait or pulse, says `reason` (which names rank, host and step already) as its own error and
 * calls this; if rank 0 has not ended the job within two seconds, ends it itself. Only between threads does
 * it return.
 */
void pace__link_fail(pace__link *link, pace_status status, const char *reason);

/* Where messages go from now on; until then, to the log that the link was opened with. Last words, of a rank
 * whose reason nobody has heard, always go there. */
void pace__link_set_log(pace__link *link, const pace_log *log);

int pace__link_rank(const pace__link *link);
int pace__link_size(const pace__link *link);
/* Its number among the ranks of its machine. */
int pace__link_neighbour(const pace__link *link);

/* After how long without a sign of life a rank counts as lost. */
uint64_t pace__link_deadline_ns(const pace__link *link);

/* How messages call a rank: "worker1 (rank 1, host b)". Until set: "rank 1". The text is copied. */
void pace__link_set_name(pace__link *link, int rank, const char *name);
const char *pace__link_name(const pace__link *link, int rank);

/* The step that messages name from now on. Until set they name none. */
void pace__link_set_step(pace__link *link, uint64_t step);

/*
 * What else this rank has to do while it waits: called in every turn of every wait. Sets *busy if there was
 * something to do. A status other than PACE_OK ends the wait. NULL: nothing. It may send, receive and ask
 * done; waits inside it do not call it again.
 */
typedef pace_status pace__idle_fn(void *user, bool *busy);
void pace__link_on_idle(pace__link *link, pace__idle_fn *idle, void *user);

/* --- messages --- */

/* The request must not be active. Bytes are at most PACE__LINK_MESSAGE_MAX: more is a bug and aborts. */
void pace__link_send(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                     pace__request *request);
/* A message that is longer than `capacity` is an error that done() and wait() tell: PACE_BUG. */
void pace__link_receive(pace__link *link, int peer, int tag, void *buffer, size_t capacity,
                        pace__request *request);

/* Sets *done to whether the operation is over (true for a request that is not active). Never blocks. Fails
 * with the failure of another rank, if one was told. */
pace_status pace__link_done(pace__link *link, pace__request *request, bool *done);

/* Is what came as long as it has to be? If not, that is the link's failure: PACE_BUG, which names the peer, and `what`
 * it was to be. */
pace_status pace__link_fits(pace__link *link, const pace__request *received, size_t bytes, const char *what);

/* Waits until it is over; `what` is for the message: "its weights". A receive from ANY fails when nobody at
 * all has given a sign of life. */
pace_status pace__link_wait(pace__link *link, pace__request *request, const char *what);

/*
 * One turn of a wait loop of the caller's own, who waits for `peers` (rank numbers, count of them; none: for
 * anybody; the caller looks for itself whether what it waits for has come): sends signs of life, looks for
 * failures of others, calls idle, backs off. `*turns` is 0 in the first turn of a wait and whenever something
 * was achieved. Fails like wait: one silent peer of several is enough, and among several this rank itself is
 * passed over.
 */
pace_status pace__link_turn(pace__link *link, const int *peers, size_t count, const char *what,
                            unsigned *turns);

/* Fails like a wait if the peer has been silent for too long, without waiting: for one that is not waited
 * for, but must be there. Cheap: looks at the clock first. */
pace_status pace__link_check(pace__link *link, int peer, const char *what);

/* To be called every second or so by whoever computes or reads for long: signs of life, failures of others.
 * Cheap: looks at the clock first. */
pace_status pace__link_pulse(pace__link *link);

/* Gives up a receive that will never be answered: at the end of a job. */
void pace__link_cancel(pace__link *link, pace__request *request);

/* Waits for a send to be over, at the end of a job; if it has failed, lets go of it. */
void pace__link_settle(pace__link *link, pace__request *request);

/*
 * The sum of every worker's buffer, element by element, into all of them, in MPI's order (MPI_Iallreduce).
 * Workers only, all with the same count and in the same order of calls.
 */
void pace__link_sum(pace__link *link, float *buffer, size_t count, pace__request *request);

/*
 * Goes on without a rank that has died. Nobody is told: every rank that had to do with it calls this. From
 * now on no sign is sent to it or waited for; a wait for it alone ends with PACE_LOST, in silence. Whoever
 * has operations with it under way must let go of them.
 */
void pace__link_lose(pace__link *link, int rank);
/* The same for one that is only slow, or hangs, until the job ends (dismiss): should it come back, it waits in peace, since it is
 * still given signs of life. */
void pace__link_let_go(pace__link *link, int rank);
bool pace__link_is_lost(const pace__link *link, int rank);

/* Close will not wait for the others, and leave MPI as it is: with a dead rank all of them could only wait
 * for ever. The callers have made sure that nobody needs anybody any more. */
void pace__link_leave_alone(pace__link *link);

/* Has that rank given no sign of life for longer than it may? Then a wait for it would fail. */
bool pace__link_is_silent(pace__link *link, int rank);

/*
 * Rank 0, of a job that is done, and of which some ranks were lost that have not died: close waits for nobody, and whoever
 * is left is ended when this process exits, with its exit code. Can it? Between threads it cannot, nor where a launcher that
 * takes that for a failure alone would tell the code: MPICH's, srun.
 */
void pace__link_dismiss(pace__link *link);
bool pace__link_can_dismiss(const pace__link *link);

/* Lets go of an operation with a lost rank, which may never end. False: the carrier may still write to its
 * buffer, which must stay where it is until the process ends. */
bool pace__link_abandon(pace__link *link, pace__request *request);

/* --- what was measured --- */

pace__traffic pace__link_traffic(const pace__link *link, int peer, int tag);
/* Time spent in wait() and turn() for that peer, without the turns in which idle was busy; of a turn for
 * several, for the first of them. */
uint64_t pace__link_wait_ns(const pace__link *link, int peer);
/* Time in which this rank had nothing to do but wait for others. Less than the sum of the above where it need not spin: then moving
 * messages on, and having to wait for a processor for that, is work. */
uint64_t pace__link_idle_ns(const pace__link *link);
/* Is it on a processor while it waits? */
bool pace__link_spins(const pace__link *link);

#endif

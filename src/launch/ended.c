/*
 * ended.c - the last words on a job: the first cause, once, last. In this order, the first that there is:
 *
 *     our verdict        we have ended it, and know why
 *     a silent death     a rank was killed by a signal, and nobody had said anything before
 *     the first error    that a rank has said
 *     from outside       a program that is not there, a host that cannot be reached, exit codes
 *
 * A job is done if the chief has left with PACE_OK and there is no verdict. Any other is not, whatever the
 * launcher's exit code: then there is always a message, and a status that is not PACE_OK.
 */
#include "launch/internal.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define NAMES_MAX 8 /* ranks that a message lists by name */

const char *pace__who(const pace__launch_job *job, int rank, char text[PACE__WHO_TEXT])
{
    char role[PACE__ROLE_TEXT];

    pace__role_name(&job->plan->cluster, rank, role);
    snprintf(text, PACE__WHO_TEXT, "%s (rank %d, host %s)", role, rank, job->ranks[rank].host);
    return text;
}

const char *pace__missing_ranks(const pace__launch_job *job, char text[PACE__LIST_TEXT])
{
    int named = 0, missing = job->size - job->hellos;
    size_t used = 0;

    text[0] = '\0';
    for (int rank = 0; rank < job->size && named < NAMES_MAX && used < PACE__LIST_TEXT - 1; rank++) {
        char role[PACE__ROLE_TEXT];

        if (job->ranks[rank].hello)
            continue;
        pace__role_name(&job->plan->cluster, rank, role);
        used += (size_t)snprintf(text + used, PACE__LIST_TEXT - used, "%s%s on %.60s", named++ ? ", " : "",
                                 role, job->ranks[rank].host);
    }
    if (missing > named && used < PACE__LIST_TEXT - 1)
        snprintf(text + used, PACE__LIST_TEXT - used, " and %d more", missing - named);
    return text;
}

static pace_status known_status(int code)
{
    static const pace_status known[] = {PACE_USAGE, PACE_BAD_DATA, PACE_NO_INPUT,   PACE_LOST,
                                        PACE_BUG,   PACE_IO,       PACE_INTERRUPTED};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((int)known[i] == code)
            return known[i];
    }
    return PACE_FAILED;
}

/* Nobody has said why: it may have been the launcher itself, or its host. */
static pace_status silent_status(int code)
{
    pace_status status = known_status(code);

    return status == PACE_FAILED ? PACE_LOST : status;
}

/* The launcher's exit code; one above 128 for a signal, as shells count. */
static int launcher_code(const pace__launch_job *job)
{
    return WIFSIGNALED(job->launcher.code) ? 128 + WTERMSIG(job->launcher.code)
                                           : WEXITSTATUS(job->launcher.code);
}

/* A rank that was told to stop, and was killed because others took too long for that, has not said how it would end. */
static pace_status status_of(const pace__launch_job *job, int rank)
{
    if (job->ranks[rank].left && job->ranks[rank].status)
        return known_status(job->ranks[rank].status);
    if (job->stop_passed_on && job->kills)
        return PACE_INTERRUPTED;
    return known_status(job->obituary.abort_code ? job->obituary.abort_code : launcher_code(job));
}

static void show_noise(const pace__launch_job *job)
{
    size_t first = job->noise_count > PACE__NOISE_LINES ? job->noise_count - PACE__NOISE_LINES : 0;

    for (size_t i = first; i < job->noise_count; i++)
        pace_say(job->log, PACE_WARN, "launcher: %s", job->noise[i % PACE__NOISE_LINES]);
}

/* What a rank has told, with its name; failures that it has told other ranks too name it already. */
static void tell(const pace__launch_job *job, pace_level level, const pace__held_error *error)
{
    char name[PACE__WHO_TEXT];

    if (strstr(error->text, "(rank "))
        pace_say(job->log, level, "%s", error->text);
    else
        pace_say(job->log, level, "%s: %s", pace__who(job, error->rank, name), error->text);
}

static void show_errors(const pace__launch_job *job, int first)
{
    for (int i = first; i < job->error_count; i++)
        tell(job, PACE_WARN, &job->errors[i]);
}

/* MPICH may tell only the process: which rank said hello with that number? Machines number their own, so
 * it may be several. */
static void name_the_dead(pace__launch_job *job)
{
    pace__obituary *obituary = &job->obituary;
    int fitting = 0;

    if (obituary->signal || !obituary->process || obituary->process_code < 1 ||
        obituary->process_code > SIGRTMAX)
        return;
    obituary->signal = obituary->process_code;
    for (int rank = 0; rank < job->size; rank++) {
        if (job->ranks[rank].process == obituary->process) {
            obituary->rank = rank;
            fitting++;
        }
    }
    obituary->rank_known = fitting == 1;
}

/*
 * Did a rank die without a word before anybody said why? Launchers tell the signal only if that is what
 * ended the job; but a rank that said what was wrong, and left or aborted the job, was before it.
 */
static bool died_in_silence(const pace__launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;

    if (!obituary->signal || obituary->aborted)
        return false;
    for (int rank = 0; rank < job->size; rank++) {
        if (job->ranks[rank].left && job->ranks[rank].status != 0)
            return false;
    }
    for (int i = 0; i < job->error_count && obituary->rank_known; i++) {
        if (job->errors[i].rank == obituary->rank)
            return false;
    }
    return true;
}

/* "chief, worker1": ranks with the exit code of that signal, where the launcher gives codes but not the
 * first rank. */
static const char *possibly_killed(const pace__launch_job *job, char text[PACE__LIST_TEXT])
{
    int named = 0;
    size_t used = 0;

    text[0] = '\0';
    for (int rank = 0; rank < job->size && named < NAMES_MAX; rank++) {
        char role[PACE__ROLE_TEXT];

        if (!pace__obituary_fits(&job->obituary, rank))
            continue;
        pace__role_name(&job->plan->cluster, rank, role);
        used += (size_t)snprintf(text + used, PACE__LIST_TEXT - used, "%s%s", named++ ? ", " : "", role);
    }
    return text;
}

static pace_status tell_death(const pace__launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;
    const char *meaning = strsignal(obituary->signal);
    char name[PACE__WHO_TEXT], list[PACE__LIST_TEXT];

    if (obituary->rank_known)
        return pace_fail(job->log, PACE_LOST, "%s was killed by signal %d (%s)",
                         pace__who(job, obituary->rank, name), obituary->signal, meaning);
    possibly_killed(job, list);
    if (obituary->signal == SIGTERM && !list[0]) /* which ends the others: MPICH names one of them at times */
        return pace_fail(job->log, PACE_LOST,
                         "a process of the job was killed; the launcher names only one that it ended itself, "
                         "by signal %d (%s)",
                         obituary->signal, meaning);
    return pace_fail(job->log, PACE_LOST, "a process of the job was killed by signal %d (%s)%s%s",
                     obituary->signal, meaning, list[0] ? ", the first of: " : "", list);
}

static pace_status tell_rank_status(const pace__launch_job *job)
{
    char name[PACE__WHO_TEXT];

    for (int rank = 0; rank < job->size; rank++) {
        if (job->ranks[rank].left && job->ranks[rank].status != 0)
            return pace_fail(job->log, status_of(job, rank), "%s ended with exit code %d and did not say why",
                             pace__who(job, rank, name), job->ranks[rank].status);
    }
    return PACE_OK;
}

/* It has ended by itself, and not one process has said hello: it is no launcher, or cannot start anything here. One that
 * has done so before may have met with something that passes. */
static bool never_started(const pace__launch_job *job)
{
    return job->hellos == 0 && !job->plan->again && WIFEXITED(job->launcher.code) &&
           launcher_code(job) <= 128;
}

static bool has_no_answer(const pace__launch_job *job)
{
    return job->obituary.no_answer_host[0] && job->hellos < job->size;
}

/* A host that has answered before may do so again; a job that has never run is not tried again for it. */
static pace_status tell_no_answer(const pace__launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;
    char list[PACE__LIST_TEXT];

    return pace_fail(job->log, job->hellos == 0 && !job->plan->again ? PACE_FAILED : PACE_LOST,
                     "host %s cannot be reached%s%s; not started: %s", obituary->no_answer_host,
                     obituary->no_answer_why[0] ? ": " : "", obituary->no_answer_why,
                     pace__missing_ranks(job, list));
}

/* Nobody has said anything: what can be told from the outside. */
static pace_status tell_from_outside(const pace__launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;
    char list[PACE__LIST_TEXT];
    int code = launcher_code(job);

    if (obituary->no_program[0])
        return pace_fail(job->log, PACE_FAILED, PACE__NO_PROGRAM_TEXT,
                         obituary->no_program_host[0] ? obituary->no_program_host : "(unknown)",
                         obituary->no_program);
    if (has_no_answer(job))
        return tell_no_answer(job);
    if (never_started(job))
        return pace_fail(job->log, PACE_FAILED,
                         "%s ended with exit code %d and has started no process: is it the mpirun of an MPI?",
                         job->plan->launcher ? job->plan->launcher : PACE_MPIRUN, code);
    if (job->hellos < job->size)
        return pace_fail(job->log, silent_status(code),
                         "the launcher ended with exit code %d before all processes had started: %s", code,
                         pace__missing_ranks(job, list));
    pace_status status = tell_rank_status(job);

    if (status)
        return status;
    if (code > 128 && code <= 128 + SIGRTMAX)
        return pace_fail(job->log, PACE_LOST, "the launcher ended as if by signal %d (%s)", code - 128,
                         strsignal(code - 128));
    if (code == 0)
        return pace_fail(job->log, PACE_LOST,
                         "the launcher ended well, but the chief never said that the job is done");
    if (pace__never_began(job)) /* as MPI would end it again: a wrong setting of its own, for one */
        return pace_fail(job->log, known_status(code),
                         "the launcher ended with exit code %d before training began, and no process said "
                         "why: its own words are above",
                         code);
    return pace_fail(job->log, silent_status(code),
                     "the launcher ended with exit code %d, and no process said why", code);
}

static pace_status tell_failure(const pace__launch_job *job)
{
    bool named = (died_in_silence(job) && job->obituary.rank_known) ||
                 (has_no_answer(job) && job->obituary.no_answer_why[0] && !job->verdict);

    if (job->error_count == 0 && !named) /* else the launcher's words say no more */
        show_noise(job);
    if (job->verdict) {
        show_errors(job, 0);
        return pace_fail(job->log, job->verdict, "%s", job->verdict_text);
    }
    if (died_in_silence(job)) {
        show_errors(job, 0);
        return tell_death(job);
    }
    if (job->error_count == 0)
        return tell_from_outside(job);
    show_errors(job, 1);
    tell(job, PACE_ERROR, &job->errors[0]);
    return status_of(job, job->errors[0].rank);
}

pace_status pace__conclude(pace__launch_job *job)
{
    bool done = job->ranks[0].left && job->ranks[0].status == 0 && !job->verdict;
    int code = launcher_code(job);

    assert(job->launcher.ended);
    name_the_dead(job);
    if (!done) {
        pace_status status = tell_failure(job);

        assert(status != PACE_OK);
        return status;
    }
    show_errors(job, 0);
    if (code != 0 && !(job->outlives && job->kills))
        pace_say(job->log, PACE_WARN, "the job is done, but the launcher ended with exit code %d", code);
    return PACE_OK;
}

/*
 * noise.c - the sentences of Open MPI's mpirun (4.1) and MPICH's mpiexec (Hydra, 4.0) that matter.
 *
 *     mpirun noticed that process rank 1 with PID 0 on node b exited on signal 9 (Killed).
 *     mpirun was unable to launch the specified application as it could not access or execute an executable:
 *     Executable: /path/paceline
 *     Node: b
 *     A process or daemon was unable to complete a TCP connection
 *     Local host: b
 *     ssh: connect to host b port 22: No route to host
 *     ssh: Could not resolve hostname b: Name or service not known
 *
 *     [mpiexec@a] Exit codes: [a] 9,11
 *     [b] 0
 *     YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
 *     [proxy:0:1@b] HYDU_create_process (...): execvp error on file /path/paceline (No such file ...)
 *
 *     =   PID 123 RUNNING AT b
 *     =   EXIT CODE: 9
 *
 * The last two name the first rank that did not end well, which on a single host may be one that was killed
 * in the clean-up: they count only where MPICH says nothing else.
 *
 * With --enable-recovery mpirun says none of its sentences. With state_base_verbose it and its daemons say
 *
 *     [b:00090] [[4609,0],1] ACTIVATE PROC [[4609,1],2] STATE ABORTED BY SIGNAL AT ../odls.c:1746
 *     [a:00083] [[4609,0],0] ACTIVATE PROC [[4609,0],1] STATE COMMUNICATION FAILURE AT ../oob.c:1086
 *
 * host, process, [[job family, job], number] of who speaks and of whom: daemons are job 0, ranks job 1.
 *
 * 1. Of everything the first word stays: what follows may come from the clean-up.
 * 2. Words that stretch over lines leave a mark of what is expected next (expects_*); the lines between them
 *    may be anybody's.
 * 3. A rank is known only if there is one of that number, and it is the only one that it can be.
 */
#include "launch/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies up to the first of `ends`, without blanks at either end. */
static void copy_until(char *to, size_t room, const char *from, const char *ends)
{
    from += strspn(from, " \t");
    size_t length = strcspn(from, ends);

    while (length > 0 && (from[length - 1] == ' ' || from[length - 1] == '\t'))
        length--;
    snprintf(to, room, "%.*s", (int)length, from);
}

/* The first signal is the one that counts: others may follow from the clean-up. */
static void take_open_mpi_signal(pace__obituary *obituary, const char *line)
{
    const char *sentence = strstr(line, "noticed that process rank ");
    int rank, signal;

    if (!sentence || obituary->signal)
        return;
    if (sscanf(sentence, "noticed that process rank %d with PID %*d on node %*s exited on signal %d", &rank,
               &signal) != 2 ||
        rank < 0 || rank >= obituary->ranks)
        return;
    obituary->rank = rank;
    obituary->rank_known = true;
    obituary->signal = signal;
}

static void take_open_mpi_program(pace__obituary *obituary, const char *line)
{
    const char *name = strstr(line, "Executable: "), *node = strstr(line, "Node: ");

    if (strstr(line, "was unable to launch") || strstr(line, "or execute an executable"))
        obituary->expects_program = true;
    else if (name && obituary->expects_program && !obituary->no_program[0])
        copy_until(obituary->no_program, sizeof obituary->no_program, name + strlen("Executable: "), "");
    else if (node && obituary->no_program[0] && !obituary->no_program_host[0])
        copy_until(obituary->no_program_host, sizeof obituary->no_program_host, node + strlen("Node: "), "");
}

static void take_no_answer(pace__obituary *obituary, const char *line)
{
    static const char *const sentences[] = {"ssh: connect to host ", "ssh: Could not resolve hostname "};
    const char *host = strstr(line, "Local host:");

    if (obituary->no_answer_host[0])
        return;
    if (strstr(line, "unable to complete a TCP connection"))
        obituary->expects_host = true;
    else if (host && obituary->expects_host)
        copy_until(obituary->no_answer_host, sizeof obituary->no_answer_host, host + strlen("Local host:"),
                   "");
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        const char *found = strstr(line, sentences[i]),
                   *why = found ? strstr(found + strlen(sentences[i]), ": ") : NULL;

        if (found)
            copy_until(obituary->no_answer_host, sizeof obituary->no_answer_host,
                       found + strlen(sentences[i]), " :");
        if (why)
            copy_until(obituary->no_answer_why, sizeof obituary->no_answer_why, why + 2, "\r");
    }
}

/* "[a] 9,11": adds the numbers behind the bracket. False: the line is something else. */
static bool take_codes(pace__obituary *obituary, const char *codes)
{
    assert(obituary->code_count <= obituary->ranks && obituary->ranks <= PACE__LAUNCHED_MAX);
    codes = *codes == '[' ? strchr(codes, ']') : NULL;
    if (!codes || strspn(codes, "] ,0123456789") != strlen(codes))
        return false;
    for (codes++; *codes && obituary->code_count < obituary->ranks; codes++) {
        char *end;
        long code = strtol(codes, &end, 10);

        if (end == codes)
            continue;
        obituary->codes[obituary->code_count++] = (int)code;
        codes = end - 1;
    }
    return true;
}

/* One line for each run of ranks on a host, in their order; the numbers are those of wait(). */
static void take_mpich_codes(pace__obituary *obituary, const char *line)
{
    const char *codes = strstr(line, "Exit codes: ");

    if (codes)
        line = codes + strlen("Exit codes: ");
    if (codes || obituary->expects_codes)
        obituary->expects_codes = take_codes(obituary, line);
}

bool pace__obituary_fits(const pace__obituary *obituary, int rank)
{
    int core_dumped = 0x80;

    assert(rank >= 0 && rank < obituary->ranks);
    return rank < obituary->code_count && (obituary->codes[rank] & ~core_dumped) == obituary->signal;
}

static void take_mpich_signal(pace__obituary *obituary, const char *line)
{
    const char *sentence = strstr(line, "TERMINATED WITH THE EXIT STRING: ");
    const char *word = sentence ? strstr(sentence, "(signal ") : NULL;
    int fitting = 0;

    if (!word || obituary->signal)
        return;
    obituary->signal = atoi(word + strlen("(signal "));
    for (int rank = 0; rank < obituary->ranks; rank++) {
        if (pace__obituary_fits(obituary, rank)) {
            obituary->rank = rank;
            fitting++;
        }
    }
    obituary->rank_known = fitting == 1 && obituary->code_count == obituary->ranks;
}

static void take_mpich_process(pace__obituary *obituary, const char *line)
{
    const char *process = strstr(line, "=   PID "), *code = strstr(line, "=   EXIT CODE: ");

    if (process && !obituary->process)
        obituary->process = atol(process + strlen("=   PID "));
    else if (code && !obituary->process_code)
        obituary->process_code = atoi(code + strlen("=   EXIT CODE: "));
}

static void take_mpich_program(pace__obituary *obituary, const char *line)
{
    const char *name = strstr(line, "execvp error on file "), *host = strchr(line, '@');

    if (!name || obituary->no_program[0])
        return;
    copy_until(obituary->no_program, sizeof obituary->no_program, name + strlen("execvp error on file "),
               "(");
    if (host && host < name)
        copy_until(obituary->no_program_host, sizeof obituary->no_program_host, host + 1, "]");
}

static void take_abort(pace__obituary *obituary, const char *line)
{
    const char *code = strstr(line, "with errorcode ");

    if (strstr(line, "MPI_ABORT was invoked on rank ") || strstr(line, "application called MPI_Abort("))
        obituary->aborted = true;
    if (code && obituary->aborted && !obituary->abort_code)
        obituary->abort_code = atoi(code + strlen("with errorcode "));
}

void pace__obituary_line(pace__obituary *obituary, const char *line)
{
    assert(obituary->ranks > 0 && obituary->ranks <= PACE__LAUNCHED_MAX);
    take_abort(obituary, line);
    take_open_mpi_signal(obituary, line);
    take_open_mpi_program(obituary, line);
    take_no_answer(obituary, line);
    take_mpich_codes(obituary, line);
    take_mpich_signal(obituary, line);
    take_mpich_process(obituary, line);
    take_mpich_program(obituary, line);
    assert(!obituary->rank_known || (obituary->rank >= 0 && obituary->rank < obituary->ranks));
}

bool pace__obituary_tells(const pace__obituary *obituary)
{
    return obituary->signal || obituary->aborted || obituary->process || obituary->no_program[0];
}

/* ---- the state machine ---- */

static pace__event_kind rank_event(const char *state)
{
    static const struct {
        const char *name;
        pace__event_kind kind;
    } states[] = {
        {"RUNNING", PACE__EVENT_RUNNING},
        {"ABORTED BY SIGNAL", PACE__EVENT_KILLED},
        {"TERMINATED WITHOUT SYNC", PACE__EVENT_LEFT},
        {"EXITED WITH NON-ZERO STATUS", PACE__EVENT_LEFT},
        {"CALLED ABORT", PACE__EVENT_ABORTED},
        {"FAILED TO LAUNCH", PACE__EVENT_NO_PROGRAM},
        {"KILLED BY INTERNAL COMMAND", PACE__EVENT_ENDING},
    };

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strncmp(state, states[i].name, strlen(states[i].name)) == 0)
            return states[i].kind;
    }
    return PACE__EVENT_NONE;
}

/* Daemons lose each other when the job ends, too: only the launcher's word counts. */
static pace__event_kind daemon_event(const char *state, const pace__event *event)
{
    bool lost = strncmp(state, "COMMUNICATION FAILURE", strlen("COMMUNICATION FAILURE")) == 0;

    return lost && event->speaker == 0 && event->number > 0 ? PACE__EVENT_NO_DAEMON : PACE__EVENT_NONE;
}

/* `line` from an opening bracket on. */
static bool read_event(const char *line, pace__event *event)
{
    int used = 0, job;

    *event = (pace__event){.kind = PACE__EVENT_NONE};
    if (sscanf(line, "[%*[^]:[]:%*d] [[%*d,0],%d] ACTIVATE %n", &event->speaker, &used) != 1 || used == 0)
        return false;
    line += used;
    used = 0;
    if (sscanf(line, "PROC [[%*d,%d],%d] STATE %n", &job, &event->number, &used) != 2 || used == 0)
        return true; /* about the job as a whole */
    if (job == 0)
        event->kind = daemon_event(line + used, event);
    else if (job == 1)
        event->kind = rank_event(line + used);
    return true;
}

bool pace__event_line(const char *line, pace__event *event)
{
    bool found = false;

    *event = (pace__event){.kind = PACE__EVENT_NONE};
    /* What it complains of whenever a rank is lost. */
    if (strstr(line, "PMIX ERROR: BAD-PARAM in file ") && strstr(line, "pmix_event_notification.c"))
        return true;
    if (!strstr(line, "] ACTIVATE "))
        return false;
    /* Somebody may have written a line without an end before it. */
    for (const char *at = strchr(line, '['); at && !found; at = strchr(at + 1, '['))
        found = read_event(at, event);
    return found;
}

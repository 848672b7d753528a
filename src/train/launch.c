#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "train/launch_internal.h"

#include <assert.h>
#include <errno.h>
#include <paceline/relay.h>
#include <paceline/version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOISE_LINES  50
#define NOISE_TEXT   256
#define ERRORS_MAX   32
#define NAMES_MAX    8 /* ranks that a message lists by name */
#define LIST_TEXT    700
#define WHO_TEXT     (PACE__ROLE_TEXT + PACE__HOST_TEXT + 32)
#define VERSION_S    20.0
#define KILL_AFTER_S 3.0 /* mpirun needs a second to end its ranks after SIGTERM */
#define DRAIN_S      2.0 /* for what is left in the pipes of a launcher that has ended */
#define ENDING_S     5.0
#define GOODBYE_S    60.0 /* for those who are left when the chief is done */

/* ---- which launcher ---- */

typedef struct version_text {
    char text[4096];
} version_text;

static void add_version_line(void *user, const char *line)
{
    version_text *version = user;
    size_t used = strlen(version->text);

    snprintf(version->text + used, sizeof version->text - used, "%s\n", line);
}

static void ignore_message(void *user, const pace_relay_message *message)
{
    (void)user;
    (void)message;
}

/* What `launcher --version` prints: it also shows that the launcher is there. */
static pace_status read_version(const char *launcher, char *const *environment, const pace_log *log,
                                version_text *version)
{
    pace_relay_target target = {ignore_message, add_version_line, version};
    pace_relay_reader *readers[2] = {pace_relay_reader_create(1, &target),
                                     pace_relay_reader_create(1, &target)};
    char *words[] = {(char *)(uintptr_t)launcher, (char[]){"--version"}, NULL};
    pace__child process = {.fds = {-1, -1}};
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_FAILED;

    if (!readers[0] || !readers[1])
        pace_fail(log, PACE_FAILED, "out of memory");
    else
        status = pace__child_start(words, environment, SIGKILL, log, &process);
    bool started = !status;

    while (!status && (!process.ended || pace__child_open(&process))) {
        pace__child_serve(&process, readers);
        if (pace__seconds_since(start_ns) > VERSION_S)
            status = pace_fail(log, PACE_FAILED, "%s --version has not answered within %.0f s", launcher,
                               VERSION_S);
    }
    if (started && !process.ended) {
        kill(-process.pid, SIGKILL);
        waitpid(process.pid, NULL, 0);
    }
    pace__child_close(&process);
    pace_relay_reader_free(readers[0]);
    pace_relay_reader_free(readers[1]);
    return status;
}

/* ---- the job ---- */

typedef struct rank_state {
    bool hello, left; /* said hello; said its exit status */
    int status;
    long process;
    char host[PACE__HOST_TEXT];
} rank_state;

typedef struct held_error {
    int rank;
    char text[PACE_LOG_TEXT_MAX];
} held_error;

typedef struct launch_job {
    const pace__launch_plan *plan;
    const pace_log *log;
    pace_registry *registry;
    int size;
    rank_state *ranks;
    int hellos;
    char own_host[PACE__HOST_TEXT];
    char mpi_job[80]; /* Open MPI's number of the job, or "" */
    held_error errors[ERRORS_MAX];
    int error_count;
    char noise[NOISE_LINES][NOISE_TEXT]; /* a ring */
    size_t noise_count;
    pace__obituary obituary;
    pace__child launcher;
    uint64_t start_ns;
    uint64_t failed_ns; /* when a rank spoke last, since one has said that something is wrong */
    uint64_t done_ns;   /* when the chief has said that it is done */
    bool stop_passed_on;
    int kills; /* signals sent to end it: SIGTERM, then SIGKILL */
    uint64_t kill_ns;
    pace_status verdict; /* why we ended it ourselves, and the message */
    char verdict_text[PACE_LOG_TEXT_MAX];
} launch_job;

/* "worker1 (rank 1, host b)" */
static const char *who(const launch_job *job, int rank, char text[WHO_TEXT])
{
    char role[PACE__ROLE_TEXT];

    pace__role_name(&job->plan->cluster, rank, role);
    snprintf(text, WHO_TEXT, "%s (rank %d, host %s)", role, rank, job->ranks[rank].host);
    return text;
}

/* "worker1 on b, ps0 on c and 3 more": the ranks that have not said hello. */
static const char *missing_ranks(const launch_job *job, char text[LIST_TEXT])
{
    int named = 0, missing = job->size - job->hellos;
    size_t used = 0;

    text[0] = '\0';
    for (int rank = 0; rank < job->size && named < NAMES_MAX && used < LIST_TEXT - 1; rank++) {
        char role[PACE__ROLE_TEXT];

        if (job->ranks[rank].hello)
            continue;
        pace__role_name(&job->plan->cluster, rank, role);
        used += (size_t)snprintf(text + used, LIST_TEXT - used, "%s%s on %.60s", named++ ? ", " : "", role,
                                 job->ranks[rank].host);
    }
    if (missing > named && used < LIST_TEXT - 1)
        snprintf(text + used, LIST_TEXT - used, " and %d more", missing - named);
    return text;
}

/* ---- ending it ---- */

static void kill_job(launch_job *job)
{
    if (job->launcher.ended || job->kills > 0)
        return;
    job->kills = 1;
    job->kill_ns = pace__now_ns();
    kill(job->launcher.pid, SIGTERM);
}

/* The first reason stays. */
__attribute__((format(printf, 3, 4))) static void end_job(launch_job *job, pace_status status,
                                                          const char *format, ...)
{
    va_list arguments;

    if (!job->verdict) {
        va_start(arguments, format);
        vsnprintf(job->verdict_text, sizeof job->verdict_text, format, arguments);
        va_end(arguments);
        job->verdict = status;
    }
    kill_job(job);
}

static void press_on(launch_job *job)
{
    if (job->kills == 1 && !job->launcher.ended && pace__seconds_since(job->kill_ns) > KILL_AFTER_S) {
        job->kills = 2;
        kill(-job->launcher.pid, SIGKILL);
    }
}

/* A rank that has not said hello may not have its signal handler yet: it would die of the signal. */
static void look_at_stop(launch_job *job)
{
    int stop = job->plan->stop ? atomic_load(job->plan->stop) : 0;

    if (stop > 1)
        end_job(job, PACE_FAILED, "killed on a second request to stop");
    if (stop && !job->stop_passed_on && job->hellos == job->size && !job->launcher.ended && !job->kills) {
        job->stop_passed_on = true;
        kill(job->launcher.pid, SIGUSR1);
    }
}

static void look_at_contact(launch_job *job)
{
    char list[LIST_TEXT];

    if (job->hellos == job->size || job->kills || job->launcher.ended ||
        pace__seconds_since(job->start_ns) <= job->plan->first_contact_s)
        return;
    end_job(job, PACE_FAILED, "%d of %d processes did not start within %.3g s: %s", job->size - job->hellos,
            job->size, job->plan->first_contact_s, missing_ranks(job, list));
}

/* Launchers do not always end a job of which one rank has failed: MPICH lets the others wait in MPI_Init, and
 * Open MPI waits for hosts that are out of reach. */
static void look_at_ends(launch_job *job)
{
    double ending_s = job->plan->ending_s > 0 ? job->plan->ending_s : ENDING_S;

    if ((job->failed_ns && pace__seconds_since(job->failed_ns) > ending_s) ||
        (job->done_ns && pace__seconds_since(job->done_ns) > GOODBYE_S))
        kill_job(job);
}

/* ---- what the ranks say ---- */

/* Several ranks may tell the same failure, and the chief tells that of others with their name before it:
 * the longest form of it stays, at the place of the first. */
static void hold_error(launch_job *job, int rank, const char *text)
{
    for (int i = 0; i < job->error_count; i++) {
        held_error *error = &job->errors[i];

        if (strstr(error->text, text))
            return;
        if (strstr(text, error->text)) {
            snprintf(error->text, sizeof error->text, "%s", text);
            return;
        }
    }
    if (job->error_count == ERRORS_MAX)
        return;
    job->errors[job->error_count].rank = rank;
    snprintf(job->errors[job->error_count++].text, PACE_LOG_TEXT_MAX, "%s", text);
}

static void take_hello(launch_job *job, const pace_relay_message *message)
{
    rank_state *rank = &job->ranks[message->rank];
    char text[WHO_TEXT];

    if (!rank->hello)
        job->hellos++;
    rank->hello = true;
    rank->process = message->hello.process;
    snprintf(rank->host, sizeof rank->host, "%s", message->hello.host);
    if (strcmp(message->hello.job, "-") != 0)
        snprintf(job->mpi_job, sizeof job->mpi_job, "%s", message->hello.job);
    if (strcmp(message->hello.version, pace_version()) != 0)
        end_job(job, PACE_FAILED, "%s runs paceline %.40s, but this is paceline %s: all hosts need the same",
                who(job, message->rank, text), message->hello.version, pace_version());
}

static void take_log(launch_job *job, const pace_relay_message *message)
{
    char role[PACE__ROLE_TEXT];

    pace__role_name(&job->plan->cluster, message->rank, role);
    if (message->level == PACE_ERROR)
        hold_error(job, message->rank, message->text);
    else if (message->rank == 0)
        pace_say(job->log, message->level, "%s", message->text);
    else
        pace_say(job->log, message->level, "%s: %s", role, message->text);
}

static void take_exit(launch_job *job, const pace_relay_message *message)
{
    job->ranks[message->rank].left = true;
    job->ranks[message->rank].status = message->status;
    if (message->status == 0 && message->rank == 0)
        job->done_ns = pace__now_ns();
}

static void take_message(void *user, const pace_relay_message *message)
{
    launch_job *job = user;
    bool fails = (message->kind == PACE_RELAY_LOG && message->level == PACE_ERROR) ||
                 (message->kind == PACE_RELAY_EXIT && message->status != 0);

    if (fails || job->failed_ns)
        job->failed_ns = pace__now_ns();
    switch (message->kind) {
    case PACE_RELAY_HELLO:
        take_hello(job, message);
        return;
    case PACE_RELAY_LOG:
        take_log(job, message);
        return;
    case PACE_RELAY_RECORD:
        if (message->rank == 0)
            pace_relay_emit(message->text, job->registry);
        return;
    case PACE_RELAY_EXIT:
        take_exit(job, message);
        return;
    }
}

/* Rulers and blank lines say nothing. */
static void take_noise(void *user, const char *line)
{
    launch_job *job = user;

    pace__obituary_line(&job->obituary, line);
    if (strspn(line, " \t-=") < strlen(line))
        snprintf(job->noise[job->noise_count++ % NOISE_LINES], NOISE_TEXT, "%s", line);
}

/* ---- how it ended ---- */

static pace_status known_status(int code)
{
    static const pace_status known[] = {PACE_USAGE, PACE_BAD_DATA, PACE_NO_INPUT,
                                        PACE_BUG,   PACE_IO,       PACE_INTERRUPTED};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((int)known[i] == code)
            return known[i];
    }
    return PACE_FAILED;
}

/* The launcher's exit code; one above 128 for a signal, as shells count. */
static int launcher_code(const launch_job *job)
{
    return WIFSIGNALED(job->launcher.code) ? 128 + WTERMSIG(job->launcher.code)
                                           : WEXITSTATUS(job->launcher.code);
}

static pace_status status_of(const launch_job *job, int rank)
{
    return known_status(job->ranks[rank].left && job->ranks[rank].status ? job->ranks[rank].status
                                                                         : launcher_code(job));
}

static void show_noise(const launch_job *job)
{
    size_t first = job->noise_count > NOISE_LINES ? job->noise_count - NOISE_LINES : 0;

    for (size_t i = first; i < job->noise_count; i++)
        pace_say(job->log, PACE_WARN, "launcher: %s", job->noise[i % NOISE_LINES]);
}

/* What a rank has told, with its name; failures that it has told other ranks too name it already. */
static void tell(const launch_job *job, pace_level level, const held_error *error)
{
    char name[WHO_TEXT];

    if (strstr(error->text, "(rank "))
        pace_say(job->log, level, "%s", error->text);
    else
        pace_say(job->log, level, "%s: %s", who(job, error->rank, name), error->text);
}

static void show_errors(const launch_job *job, int first)
{
    for (int i = first; i < job->error_count; i++)
        tell(job, PACE_WARN, &job->errors[i]);
}

/* MPICH may tell only the process: which rank said hello with that number? Machines number their own, so
 * it may be several. */
static void name_the_dead(launch_job *job)
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
static bool died_in_silence(const launch_job *job)
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
static const char *possibly_killed(const launch_job *job, char text[LIST_TEXT])
{
    int named = 0;
    size_t used = 0;

    text[0] = '\0';
    for (int rank = 0; rank < job->size && named < NAMES_MAX; rank++) {
        char role[PACE__ROLE_TEXT];

        if (!pace__obituary_fits(&job->obituary, rank))
            continue;
        pace__role_name(&job->plan->cluster, rank, role);
        used += (size_t)snprintf(text + used, LIST_TEXT - used, "%s%s", named++ ? ", " : "", role);
    }
    return text;
}

static pace_status tell_death(const launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;
    const char *meaning = strsignal(obituary->signal);
    char name[WHO_TEXT], list[LIST_TEXT];

    if (obituary->rank_known)
        return pace_fail(job->log, PACE_FAILED, "%s was killed by signal %d (%s)",
                         who(job, obituary->rank, name), obituary->signal, meaning);
    possibly_killed(job, list);
    return pace_fail(job->log, PACE_FAILED, "a process of the job was killed by signal %d (%s)%s%s",
                     obituary->signal, meaning, list[0] ? ", the first of: " : "", list);
}

static pace_status tell_rank_status(const launch_job *job)
{
    char name[WHO_TEXT];

    for (int rank = 0; rank < job->size; rank++) {
        if (job->ranks[rank].left && job->ranks[rank].status != 0)
            return pace_fail(job->log, status_of(job, rank), "%s ended with exit code %d and did not say why",
                             who(job, rank, name), job->ranks[rank].status);
    }
    return PACE_OK;
}

/* Nobody has said anything: what can be told from the outside. */
static pace_status tell_from_outside(const launch_job *job)
{
    const pace__obituary *obituary = &job->obituary;
    char list[LIST_TEXT];
    int code = launcher_code(job);

    if (obituary->no_program[0])
        return pace_fail(
            job->log, PACE_FAILED, "host %s cannot run %s: the program must have this path on every host",
            obituary->no_program_host[0] ? obituary->no_program_host : "(unknown)", obituary->no_program);
    if (obituary->no_answer_host[0] && job->hellos < job->size)
        return pace_fail(job->log, PACE_FAILED, "host %s cannot be reached; not started: %s",
                         obituary->no_answer_host, missing_ranks(job, list));
    if (job->hellos < job->size)
        return pace_fail(job->log, known_status(code),
                         "the launcher ended with exit code %d before all processes had started: %s", code,
                         missing_ranks(job, list));
    pace_status status = tell_rank_status(job);

    if (status)
        return status;
    if (code > 128 && code <= 128 + SIGRTMAX)
        return pace_fail(job->log, PACE_FAILED, "the launcher ended as if by signal %d (%s)", code - 128,
                         strsignal(code - 128));
    if (code == 0)
        return pace_fail(job->log, PACE_FAILED,
                         "the launcher ended well, but the chief never said that the job is done");
    return pace_fail(job->log, known_status(code),
                     "the launcher ended with exit code %d, and no process said why", code);
}

static pace_status tell_failure(const launch_job *job)
{
    if (job->error_count == 0)
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

static pace_status conclude(const launch_job *job)
{
    bool done = job->ranks[0].left && job->ranks[0].status == 0 && !job->verdict;
    int code = launcher_code(job);

    if (!done)
        return tell_failure(job);
    show_errors(job, 0);
    if (code != 0)
        pace_say(job->log, PACE_WARN, "the job is done, but the launcher ended with exit code %d", code);
    return PACE_OK;
}

/* ---- what a killed job leaves ---- */

/* Shared memory of Open MPI's ranks, by name; only of this job, and only on this machine. */
static void remove_segments(const launch_job *job)
{
    unsigned long number = strtoul(job->mpi_job, NULL, 10);

    for (int rank = 0; rank < job->size && number; rank++) {
        char path[PACE__HOST_TEXT + 80];

        if (strcmp(job->ranks[rank].host, job->own_host) != 0)
            continue;
        snprintf(path, sizeof path, "/dev/shm/vader_segment.%s.%u.%lx.%d", job->own_host, (unsigned)geteuid(),
                 number, rank);
        unlink(path);
    }
}

/* The session directory of our mpirun: it is named after its process. */
static void remove_session(const launch_job *job)
{
    static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
    const char *root = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !root; i++)
        root = getenv(names[i]);
    char *path = pace__format("%s/ompi.%s.%u/pid.%ld", root ? root : "/tmp", job->own_host,
                              (unsigned)geteuid(), (long)job->launcher.pid);

    if (path)
        pace__remove_tree(path, NULL);
    free(path);
}

/* ---- running it ---- */

static void supervise(launch_job *job, pace_relay_reader *const readers[2])
{
    uint64_t ended_ns = 0;

    while (!job->launcher.ended || pace__child_open(&job->launcher)) {
        pace__child_serve(&job->launcher, readers);
        look_at_stop(job);
        look_at_contact(job);
        look_at_ends(job);
        press_on(job);
        if (job->launcher.ended && !ended_ns)
            ended_ns = pace__now_ns();
        /* A process that mpirun has left behind may hold the pipes open. */
        if (ended_ns && pace__seconds_since(ended_ns) > DRAIN_S)
            break;
    }
}

static pace_status run_launcher(launch_job *job, char *const *words, char *const *environment,
                                pace__engine engine)
{
    pace_relay_target target = {take_message, take_noise, job};
    pace_relay_reader *readers[2] = {pace_relay_reader_create(job->size, &target),
                                     pace_relay_reader_create(job->size, &target)};
    pace_status status;

    if (!readers[0] || !readers[1])
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    else
        /* mpirun ends its ranks and cleans up after SIGTERM. MPICH's mpiexec only passes that on, and
         * ranks see to it in their own time; but they do not survive it. */
        status = pace__child_start(words, environment, engine == PACE__OPEN_MPI ? SIGTERM : SIGKILL, job->log,
                                   &job->launcher);
    if (!status) {
        job->start_ns = pace__now_ns();
        supervise(job, readers);
        for (int i = 0; i < 2; i++) /* a last line without an end */
            pace_relay_reader_end(readers[i]);
        pace__child_close(&job->launcher);
        name_the_dead(job);
        status = conclude(job);
        if (status && engine == PACE__OPEN_MPI) {
            remove_segments(job);
            remove_session(job);
        }
    }
    pace_relay_reader_free(readers[0]);
    pace_relay_reader_free(readers[1]);
    return status;
}

/* Until a rank says where it is, it is where it was sent. */
static pace_status place_ranks(launch_job *job, pace__host **hosts, int *host_of)
{
    const char *path = job->plan->hosts;
    size_t count;
    pace_status status = path ? pace__hosts_read(path, job->log, hosts, &count) : PACE_OK;

    if (!status && path)
        status = pace__hosts_place(&job->plan->cluster, *hosts, count, host_of, job->log);
    for (int rank = 0; rank < job->size && !status; rank++)
        snprintf(job->ranks[rank].host, PACE__HOST_TEXT, "%s",
                 path ? (*hosts)[host_of[rank]].name : job->own_host);
    return status;
}

static pace_status run_job(launch_job *job, pace__host **hosts, int *host_of)
{
    const char *launcher = job->plan->launcher ? job->plan->launcher : PACE_MPIRUN;
    char directory[4096];
    version_text version = {""};
    pace_status status = place_ranks(job, hosts, host_of);

    if (status)
        return status;
    if (!getcwd(directory, sizeof directory))
        return pace_fail(job->log, PACE_FAILED, "the current directory has no name: %s", strerror(errno));
    char **environment = pace__launcher_environment(
        environ, job->size, job->plan->hosts ? job->size : pace__cores(), geteuid() == 0);

    if (!environment)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    status = read_version(launcher, environment, job->log, &version);
    if (!status) {
        pace__engine engine = pace__engine_of(launcher, version.text);
        char **words = pace__launcher_words(engine, launcher, job->plan, directory, *hosts, host_of);

        status = words ? run_launcher(job, words, environment, engine)
                       : pace_fail(job->log, PACE_FAILED, "out of memory");
        pace_options_free_words(words);
    }
    pace_options_free_words(environment);
    return status;
}

pace_status pace__launch(const pace__launch_plan *plan, const pace_log *log, pace_registry *registry)
{
    int size = pace__cluster_size(&plan->cluster);
    launch_job *job = calloc(1, sizeof *job);
    rank_state *ranks = calloc((size_t)size, sizeof *ranks);
    int *host_of = calloc((size_t)size, sizeof *host_of);
    pace__host *hosts = NULL;
    pace_status status = PACE_FAILED;

    assert(size > 0 && plan->words && plan->words[0]);
    if (!job || !ranks || !host_of) {
        pace_fail(log, PACE_FAILED, "out of memory");
        goto free_all;
    }
    job->plan = plan;
    job->log = log;
    job->registry = registry;
    job->size = job->obituary.ranks = size;
    job->ranks = ranks;
    job->launcher = (pace__child){.fds = {-1, -1}, .ended = true};
    gethostname(job->own_host, sizeof job->own_host - 1);
    status = run_job(job, &hosts, host_of);
free_all:
    free(hosts);
    free(host_of);
    free(ranks);
    free(job);
    return status;
}

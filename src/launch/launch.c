/*
 * launch.c - a job from the first word of its launcher to the last.
 *
 *     starting -> running    every rank has said hello
 *     any      -> failing    a rank has said an error, or left with one (failed_ns): the others have a little
 *                            time to say theirs, from whatever was said last, then the job is ended
 *     running  -> done       the chief has left with PACE_OK (done_ns): the others have a minute to leave
 *     any      -> told       the launcher has said how a rank has ended the job (told_ns): it has a little time to end
 *     any      -> ending     we end it: SIGTERM for the launcher (kills is 1), later SIGKILL (2)
 *     any      -> over       the launcher has ended, and its pipes have, or a moment later
 *
 * A rank says hello, then messages and records, then its exit status (left); deaths.c has the rest.
 *
 * 1. `hellos` counts the ranks that have said it. A stop is passed on only when all have.
 * 2. The verdict is the first reason for which we end the job ourselves; its text comes with it.
 * 3. Signals are sent only to a launcher that has not been waited for, so that its number is no one else's.
 * 4. What a rank that is gone still says is told, and changes nothing: it is no failure of the job.
 * 5. Errors are held back, each cause once, in the order in which the causes came.
 */
#include "base/clock.h"
#include "files/file.h"
#include "launch/internal.h"
#include "launch/leftovers.h"
#include "launch/orders.h"
#include "threads/thread.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <paceline/relay.h>
#include <paceline/version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION_S    20.0
#define KILL_AFTER_S 3.0 /* mpirun needs a second to end its ranks after SIGTERM */
#define KILL_LATE_S  1.5 /* the same, when we are about to be ended ourselves */
#define DRAIN_S      2.0 /* for what is left in the pipes of a launcher that has ended */
#define ENDING_S     5.0
#define GOODBYE_S    60.0 /* for those who are left when the chief is done */
#define CHIEF_LEFT_S 0.5  /* for what the others say when the chief has given up */
#define ALL_LEFT_S   1.0  /* for mpirun to notice that all ranks have ended */

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
    pace__child process = PACE__NO_CHILD;
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_FAILED;

    if (!readers[0] || !readers[1])
        pace_fail(log, PACE_FAILED, "out of memory");
    else
        status = pace__child_start(words, environment, SIGKILL, false, log, &process);
    bool started = !status;

    while (!status && (!process.ended || pace__child_open(&process))) {
        pace__child_serve(&process, readers);
        if (pace__seconds_since(start_ns) > VERSION_S)
            status = pace_fail(log, PACE_FAILED, "%s --version has not answered within %.0f s", launcher,
                               VERSION_S);
    }
    if (started && !process.ended) {
        assert(process.pid > 1);
        kill(-process.pid, SIGKILL);
        waitpid(process.pid, NULL, 0);
    }
    pace__child_close(&process);
    pace_relay_reader_free(readers[0]);
    pace_relay_reader_free(readers[1]);
    return status;
}

/* ---- ending it ---- */

static bool passed(uint64_t since_ns, double seconds)
{
    return since_ns && pace__seconds_since(since_ns) > seconds;
}

void pace__kill_job(pace__launch_job *job)
{
    if (job->launcher.ended || job->kills > 0)
        return;
    assert(job->launcher.pid > 1); /* invariant 3 */
    job->kills = 1;
    job->kill_ns = pace__now_ns();
    kill(job->launcher.pid, SIGTERM);
}

void pace__end_job(pace__launch_job *job, pace_status status, const char *format, ...)
{
    va_list arguments;

    assert(status != PACE_OK);
    if (!job->verdict) { /* invariant 2 */
        va_start(arguments, format);
        vsnprintf(job->verdict_text, sizeof job->verdict_text, format, arguments);
        va_end(arguments);
        job->verdict = status;
    }
    pace__kill_job(job);
}

static int stop_level(const pace__launch_job *job)
{
    return job->plan->stop ? atomic_load(job->plan->stop) : 0;
}

static void press_on(pace__launch_job *job)
{
    double wait_s = stop_level(job) > 2 ? KILL_LATE_S : KILL_AFTER_S;

    assert(job->kills >= 0 && job->kills <= 2);
    if (job->kills == 1 && !job->launcher.ended && pace__seconds_since(job->kill_ns) > wait_s) {
        assert(job->launcher.pid > 1);
        job->kills = 2;
        kill(-job->launcher.pid, SIGKILL);
    }
}

/* A rank that has not said hello may not have its signal handler yet: it would die of the signal. */
static void look_at_stop(pace__launch_job *job)
{
    int stop = stop_level(job);

    if (stop > 2)
        pace__end_job(job, PACE_INTERRUPTED, "told to stop, and not done within the time for it: killed");
    else if (stop > 1)
        pace__end_job(job, PACE_FAILED, "killed on a second request to stop");
    if (stop && !job->stop_passed_on && job->hellos == job->size && !job->launcher.ended && !job->kills) {
        job->stop_passed_on = true;
        kill(job->launcher.pid, SIGUSR1);
    }
}

static void look_at_contact(pace__launch_job *job)
{
    char list[PACE__LIST_TEXT];

    if (job->hellos == job->size || job->kills || job->launcher.ended ||
        pace__seconds_since(job->start_ns) <= job->plan->first_contact_s)
        return;
    pace__end_job(job, PACE_LOST, "%d of %d processes did not start within %.3g s: %s",
                  job->size - job->hellos, job->size, job->plan->first_contact_s,
                  pace__missing_ranks(job, list));
}

/* Launchers do not always end a job of which one rank has failed: MPICH lets the others wait in MPI_Init, and
 * Open MPI waits for hosts that are out of reach. */
static void look_at_ends(pace__launch_job *job)
{
    double ending_s = job->plan->ending_s > 0 ? job->plan->ending_s : ENDING_S;

    if (passed(job->failed_ns, ending_s) || passed(job->told_ns, ending_s) || passed(job->done_ns, GOODBYE_S))
        pace__kill_job(job);
    /* With --enable-recovery mpirun ends no job, and may not notice that all of its ranks have left; and where it does end
     * one, because ranks died before they were connected, it may wait for them for ever. */
    if (job->outlives && (passed(job->gave_up_ns, CHIEF_LEFT_S) || passed(job->broken_ns, ending_s) ||
                          passed(job->ends_itself_ns, ending_s) || passed(job->all_ended_ns, ALL_LEFT_S)))
        pace__kill_job(job);
}

/* ---- what the ranks say ---- */

/* Several ranks may tell the same failure, and the chief tells that of others with their name before it:
 * the longest form of it stays, at the place of the first. */
static void hold_error(pace__launch_job *job, int rank, const char *text)
{
    for (int i = 0; i < job->error_count; i++) {
        pace__held_error *error = &job->errors[i];

        if (strstr(error->text, text))
            return;
        if (strstr(text, error->text)) {
            snprintf(error->text, sizeof error->text, "%s", text);
            return;
        }
    }
    assert(job->error_count <= PACE__ERRORS_MAX);
    if (job->error_count == PACE__ERRORS_MAX)
        return;
    job->errors[job->error_count].rank = rank;
    snprintf(job->errors[job->error_count++].text, PACE_LOG_TEXT_MAX, "%s", text);
}

static void take_hello(pace__launch_job *job, const pace_relay_message *message)
{
    pace__rank_state *rank = &job->ranks[message->rank];
    char text[PACE__WHO_TEXT];

    if (!rank->hello)
        job->hellos++;
    assert(job->hellos <= job->size); /* invariant 1 */
    rank->hello = true;
    rank->process = message->hello.process;
    snprintf(rank->host, sizeof rank->host, "%s", message->hello.host);
    if (strcmp(message->hello.job, "-") != 0)
        snprintf(job->mpi_job, sizeof job->mpi_job, "%s", message->hello.job);
    if (strcmp(message->hello.version, pace_version()) != 0)
        pace__end_job(job, PACE_FAILED,
                      "%s runs paceline %.40s, but this is paceline %s: all hosts need the same",
                      pace__who(job, message->rank, text), message->hello.version, pace_version());
}

static void take_log(pace__launch_job *job, const pace_relay_message *message)
{
    char role[PACE__ROLE_TEXT];

    pace__role_name(&job->plan->cluster, message->rank, role);
    if (message->level == PACE_ERROR && !job->ranks[message->rank].gone) {
        job->ranks[message->rank].complained = true;
        hold_error(job, message->rank, message->text);
    } else if (message->rank == 0)
        pace_say(job->log, message->level, "%s", message->text);
    else
        pace_say(job->log, message->level == PACE_ERROR ? PACE_WARN : message->level, "%s: %s", role,
                 message->text);
}

static void take_exit(pace__launch_job *job, const pace_relay_message *message)
{
    pace__rank_state *rank = &job->ranks[message->rank];
    bool fails = message->status != PACE_OK && message->status != PACE_INTERRUPTED;

    if (rank->gone) /* invariant 4 */
        return;
    rank->left = true;
    rank->status = message->status;
    if (message->status == 0 && message->rank == 0)
        job->done_ns = pace__now_ns();
    if (fails && message->rank == 0)
        job->gave_up_ns = pace__now_ns();
    if (fails && !job->broken_ns)
        job->broken_ns = pace__now_ns();
    pace__look_whether_all_ended(job);
}

static void take_record(pace__launch_job *job, const pace_relay_message *message)
{
    static const char start[] = "{\"kind\":\"start\",";

    if (message->rank != 0)
        return;
    if (strncmp(message->text, start, sizeof start - 1) == 0)
        job->started = true;
    pace_relay_emit(message->text, job->registry);
}

static void take_message(void *user, const pace_relay_message *message)
{
    pace__launch_job *job = user;
    bool fails = (message->kind == PACE_RELAY_LOG && message->level == PACE_ERROR) ||
                 (message->kind == PACE_RELAY_EXIT && message->status != 0);

    assert(message->rank >= 0 && message->rank < job->size);
    if ((fails && !job->ranks[message->rank].gone) || job->failed_ns)
        job->failed_ns = pace__now_ns();
    switch (message->kind) {
    case PACE_RELAY_HELLO:
        take_hello(job, message);
        return;
    case PACE_RELAY_LOG:
        take_log(job, message);
        return;
    case PACE_RELAY_RECORD:
        take_record(job, message);
        return;
    case PACE_RELAY_EXIT:
        take_exit(job, message);
        return;
    }
}

/* Rulers and blank lines say nothing. */
static void take_noise(void *user, const char *line)
{
    pace__launch_job *job = user;
    pace__event event;

    if (job->outlives && pace__event_line(line, &event)) {
        pace__take_event(job, &event);
        return;
    }
    pace__obituary_line(&job->obituary, line);
    if (!job->told_ns && pace__obituary_tells(&job->obituary))
        job->told_ns = pace__now_ns();
    if (strspn(line, " \t-=") < strlen(line))
        snprintf(job->noise[job->noise_count++ % PACE__NOISE_LINES], PACE__NOISE_TEXT, "%s", line);
}

/* ---- what a killed job leaves ---- */

/* Shared memory of Open MPI's ranks, by name; only of this job, and only on this machine. */
static void remove_segments(const pace__launch_job *job)
{
    unsigned long number = strtoul(job->mpi_job, NULL, 10);

    for (int rank = 0; rank < job->size && number; rank++) {
        if (strcmp(job->ranks[rank].host, job->own_host) == 0)
            pace__remove_segment(job->own_host, number, rank);
    }
}

/* The session directory of our mpirun: it is named after its process. */
static void remove_session(const pace__launch_job *job)
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

static void supervise(pace__launch_job *job, pace_relay_reader *const readers[2])
{
    uint64_t ended_ns = 0;

    while (!job->launcher.ended || pace__child_open(&job->launcher)) {
        pace__child_serve(&job->launcher, readers);
        look_at_stop(job);
        look_at_contact(job);
        pace__look_at_deaths(job, false);
        look_at_ends(job);
        press_on(job);
        if (job->launcher.ended && !ended_ns)
            ended_ns = pace__now_ns();
        /* A process that mpirun has left behind may hold the pipes open. */
        if (ended_ns && pace__seconds_since(ended_ns) > DRAIN_S)
            break;
    }
}

static pace_status check_file_size(const pace__launch_job *job, pace__engine engine)
{
    struct rlimit limit;

    if (engine != PACE__OPEN_MPI || getrlimit(RLIMIT_FSIZE, &limit) ||
        limit.rlim_cur >= PACE__OPEN_MPI_FILE_SIZE)
        return PACE_OK;
    return pace_fail(job->log, PACE_IO,
                     "files of %" PRIu64 " KiB are allowed (ulimit -f), and mpirun needs %" PRIu64
                     " KiB to start several processes",
                     (uint64_t)limit.rlim_cur >> 10, PACE__OPEN_MPI_FILE_SIZE >> 10);
}

static pace_status run_launcher(pace__launch_job *job, char *const *words, char *const *environment,
                                pace__engine engine)
{
    pace_relay_target target = {take_message, take_noise, job};
    pace_relay_reader *readers[2] = {pace_relay_reader_create(job->size, &target),
                                     pace_relay_reader_create(job->size, &target)};
    pace_status status;

    if (!readers[0] || !readers[1])
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    else
        status = check_file_size(job, engine);
    if (!status)
        /* mpirun ends its ranks and cleans up after SIGTERM. MPICH's mpiexec only passes that on, and
         * ranks see to it in their own time; but they do not survive it. */
        status = pace__child_start(words, environment, engine == PACE__OPEN_MPI ? SIGTERM : SIGKILL,
                                   job->outlives, job->log, &job->launcher);
    if (!status) {
        job->start_ns = pace__now_ns();
        supervise(job, readers);
        assert(job->launcher.ended);
        for (int i = 0; i < 2; i++) /* a last line without an end */
            pace_relay_reader_end(readers[i]);
        pace__child_close(&job->launcher);
        pace__look_at_deaths(job, true);
        status = pace__conclude(job);
        if ((status || job->outlives) && engine == PACE__OPEN_MPI) {
            remove_segments(job);
            remove_session(job);
        }
    }
    pace_relay_reader_free(readers[0]);
    pace_relay_reader_free(readers[1]);
    return status;
}

/* By the plan, or by the host file; *read is to be freed. *hosts stays NULL where all are on this machine. */
static pace_status place_ranks(const pace__launch_job *job, pace__host **read, const pace__host **hosts,
                               int *host_of)
{
    const pace__launch_plan *plan = job->plan;
    size_t count;

    if (plan->placed) {
        *hosts = plan->placed;
        memcpy(host_of, plan->host_of, (size_t)job->size * sizeof *host_of);
        return PACE_OK;
    }
    pace_status status = plan->hosts ? pace__hosts_read(plan->hosts, job->log, read, &count) : PACE_OK;

    if (!status && plan->hosts)
        status = pace__hosts_place(&plan->cluster, *read, count, host_of, job->log);
    *hosts = *read;
    return status;
}

/* This machine, as host files call it: by its name, with a domain or without, or as what it is to itself. */
static bool is_here(const char *host, const char *own)
{
    size_t length = strcspn(own, ".");
    bool same_name = strncmp(host, own, length) == 0 && (host[length] == '\0' || host[length] == '.');

    return same_name || strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0;
}

/* Where ranks are is known. */
static pace_status check_files(const pace__launch_job *job)
{
    struct rlimit limit;
    int here = 0;

    for (int rank = 0; rank < job->size; rank++)
        here += is_here(job->ranks[rank].host, job->own_host);
    uint64_t wanted = pace__launcher_files(here);

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
        return PACE_OK;
    return pace_fail(job->log, PACE_IO,
                     "%" PRIu64 " open files are allowed (ulimit -n), and %" PRIu64
                     " are needed to start %d process%s on this machine",
                     (uint64_t)limit.rlim_cur, wanted, here, here == 1 ? "" : "es");
}

static pace_status run_job(pace__launch_job *job, pace__host **read, int *host_of)
{
    const pace__host *hosts = NULL;
    const char *launcher = job->plan->launcher ? job->plan->launcher : PACE_MPIRUN;
    char directory[4096];
    version_text version = {""};
    pace_status status = place_ranks(job, read, &hosts, host_of);

    if (status)
        return status;
    for (int rank = 0; rank < job->size; rank++) /* until a rank says where it is, it is where it was sent */
        snprintf(job->ranks[rank].host, PACE__HOST_TEXT, "%s",
                 hosts ? hosts[host_of[rank]].name : job->own_host);
    status = check_files(job);
    if (status)
        return status;
    if (!getcwd(directory, sizeof directory))
        return pace_fail(job->log, PACE_FAILED, "the current directory has no name: %s", strerror(errno));
    char **environment = pace__launcher_environment(
        environ, job->plan->attempts, job->size, hosts ? job->size : pace__cores(), !hosts, geteuid() == 0);

    if (!environment)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    status = read_version(launcher, environment, job->log, &version);
    if (!status) {
        pace__engine engine = pace__engine_of(launcher, version.text);
        job->outlives = job->plan->outlives_workers && engine == PACE__OPEN_MPI;
        char **words = pace__launcher_words(engine, launcher, job->plan, directory, hosts, host_of);

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
    pace__launch_job *job = calloc(1, sizeof *job);
    pace__rank_state *ranks = calloc((size_t)size, sizeof *ranks);
    int *host_of = calloc((size_t)size, sizeof *host_of);
    pace__host *hosts = NULL;
    pace_status status = PACE_FAILED;

    assert(size > 0 && size <= PACE__LAUNCHED_MAX && plan->words && plan->words[0]);
    if (!job || !ranks || !host_of) {
        pace_fail(log, PACE_FAILED, "out of memory");
        goto free_all;
    }
    job->plan = plan;
    job->log = log;
    job->registry = registry;
    job->size = job->obituary.ranks = size;
    job->ranks = ranks;
    job->launcher = PACE__NO_CHILD;
    gethostname(job->own_host, sizeof job->own_host - 1);
    status = run_job(job, &hosts, host_of);
free_all:
    free(hosts);
    free(host_of);
    free(ranks);
    free(job);
    return status;
}

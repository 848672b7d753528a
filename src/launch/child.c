/*
 * child.c - the launcher as a child process that writes into our pipes, and may listen to us.
 *
 *     none -> running -> ended    ended: it was waited for, and its number may be another process's
 *
 * Apart from that, each pipe is open until its end was read: a child that has ended may have left words in
 * it, and others that it has started may hold it open.
 */
#include "launch/child.h"

#include "files/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 100

/* Pairs of (our end, the child's end). */
enum { INPUT, OUTPUT, ERRORS, REPORT, PAIRS }; /* REPORT: exec's error number */

/* In the child, between fork and exec: nothing but system calls. Does not return. */
static void become(char *const *words, char *const *environment, int pairs[PAIRS][2], int death_signal,
                   pid_t parent)
{
    sigset_t none;
    int input = pairs[INPUT][1] >= 0 ? pairs[INPUT][1] : open("/dev/null", O_RDONLY);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) /* it died before it could matter */
        _exit(127);
    dup2(input, STDIN_FILENO);
    dup2(pairs[OUTPUT][1], STDOUT_FILENO);
    dup2(pairs[ERRORS][1], STDERR_FILENO);
    execvpe(words[0], words, environment);
    int error = errno;
    ssize_t told = write(pairs[REPORT][1], &error, sizeof error);

    _exit(told == sizeof error ? 127 : 126);
}

/* A socket, not a pipe, for what we say: a launcher that has ended then is no signal for us. */
static int make_pair(int which, int pair[2])
{
    if (which == INPUT)
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ? errno : 0;
    return pipe2(pair, O_CLOEXEC) ? errno : 0;
}

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

/* The first that goes by that name, executable or not: as it is, or in the PATH. */
static bool find_program(const char *program, struct stat *info)
{
    const char *path = getenv("PATH"), *next = path ? path : "";
    bool found = strchr(program, '/') && stat(program, info) == 0;

    while (*next && !found && !strchr(program, '/')) {
        size_t length = strcspn(next, ":");
        char *file = pace__format("%.*s/%s", (int)length, next, program);

        found = file && stat(file, info) == 0;
        free(file);
        next += length + (next[length] == ':');
    }
    return found;
}

/* The error number that exec ended with; 0 if it went well. */
static int exec_error(int report)
{
    int error = 0;
    ssize_t size;

    do
        size = read(report, &error, sizeof error);
    while (size < 0 && errno == EINTR);
    return size == sizeof error ? error : 0;
}

static int fork_child(char *const *words, char *const *environment, int death_signal, int pairs[PAIRS][2],
                      pace__child *process)
{
    pid_t parent = getpid();

    process->pid = fork();
    if (process->pid < 0)
        return errno;
    if (process->pid == 0)
        become(words, environment, pairs, death_signal, parent);
    close_end(&pairs[REPORT][1]);
    int error = exec_error(pairs[REPORT][0]);

    if (error)
        waitpid(process->pid, NULL, 0);
    return error;
}

/* Hands over our ends. */
static void keep_ends(pace__child *process, int pairs[PAIRS][2])
{
    assert(process->pid > 0 && pairs[OUTPUT][0] >= 0 && pairs[ERRORS][0] >= 0);
    process->input = pairs[INPUT][0];
    for (int i = 0; i < 2; i++) {
        process->fds[i] = pairs[OUTPUT + i][0];
        fcntl(process->fds[i], F_SETFL, O_NONBLOCK);
    }
    pairs[INPUT][0] = pairs[OUTPUT][0] = pairs[ERRORS][0] = -1;
    process->ended = false;
}

/* exec says "permission denied" of a directory, and of a program that is not there if some directory of the PATH may not
 * be searched. */
static const char *explain(int error, const char *program)
{
    struct stat info;

    if (error != ENOENT && error != EACCES)
        return strerror(error);
    if (!find_program(program, &info))
        return strchr(program, '/') ? "there is no such file" : "there is no such program in the PATH";
    return S_ISDIR(info.st_mode) ? "it is a directory" : strerror(error);
}

pace_status pace__child_start(char *const *words, char *const *environment, int death_signal, bool listens,
                              const pace_log *log, pace__child *process)
{
    int pairs[PAIRS][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int error = 0;

    assert(process->ended && !pace__child_open(process) && words[0]);
    for (int i = listens ? INPUT : OUTPUT; i < PAIRS && !error; i++)
        error = make_pair(i, pairs[i]);
    if (!error)
        error = fork_child(words, environment, death_signal, pairs, process);
    if (!error)
        keep_ends(process, pairs);
    for (int i = 0; i < PAIRS; i++) {
        close_end(&pairs[i][0]);
        close_end(&pairs[i][1]);
    }
    return error ? pace_fail(log, PACE_FAILED, "cannot start %s: %s", words[0], explain(error, words[0]))
                 : PACE_OK;
}

/* A line is far shorter than what a socket takes at once: it goes as a whole or not at all. */
bool pace__child_tell(const pace__child *process, const char *text, size_t size)
{
    return process->input >= 0 &&
           send(process->input, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

/* Reads what there is. False: that pipe has ended. */
static bool read_pipe(pace__child *process, int which, pace_relay_reader *reader)
{
    char bytes[16384];
    ssize_t size = read(process->fds[which], bytes, sizeof bytes);

    if (size > 0)
        pace_relay_reader_feed(reader, bytes, (size_t)size);
    if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)))
        return true;
    pace_relay_reader_end(reader);
    close_end(&process->fds[which]);
    return false;
}

void pace__child_serve(pace__child *process, pace_relay_reader *const readers[2])
{
    struct pollfd polls[2];

    assert(process->ended || process->pid > 0);
    bool open = process->fds[0] >= 0 || process->fds[1] >= 0;

    for (int i = 0; i < 2; i++)
        polls[i] = (struct pollfd){.fd = process->fds[i], .events = POLLIN};
    poll(polls, 2, open ? POLL_MS : POLL_MS / 20);
    for (int i = 0; i < 2; i++) {
        if (process->fds[i] >= 0 && polls[i].revents)
            read_pipe(process, i, readers[i]);
    }
    if (process->ended)
        return;
    pid_t pid = waitpid(process->pid, &process->code, WNOHANG);

    if (pid < 0 && errno == ECHILD)
        process->code = 0; /* somebody else took it: the ranks' own words have to do */
    process->ended = pid == process->pid || (pid < 0 && errno == ECHILD);
}

bool pace__child_open(const pace__child *process)
{
    return process->fds[0] >= 0 || process->fds[1] >= 0;
}

void pace__child_close(pace__child *process)
{
    close_end(&process->input);
    for (int i = 0; i < 2; i++)
        close_end(&process->fds[i]);
}

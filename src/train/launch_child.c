/* launch_child.c - the launcher as a child process that writes into our pipes. */
#include "train/launch_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 100

/* In the child, between fork and exec: nothing but system calls. Does not return. */
static void become(char *const *words, char *const *environment, const int out[2], int report,
                   int death_signal, pid_t parent)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) /* it died before it could matter */
        _exit(127);
    dup2(null, STDIN_FILENO);
    dup2(out[0], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    execvpe(words[0], words, environment);
    int error = errno;
    ssize_t told = write(report, &error, sizeof error);

    _exit(told == sizeof error ? 127 : 126);
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
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

/* The pipes are (read, write): standard output, standard error, exec's error number. */
static int fork_child(char *const *words, char *const *environment, int death_signal, int pipes[3][2],
                      pace__child *process)
{
    pid_t parent = getpid();

    process->pid = fork();
    if (process->pid < 0)
        return errno;
    if (process->pid == 0)
        become(words, environment, (int[]){pipes[0][1], pipes[1][1]}, pipes[2][1], death_signal, parent);
    close(pipes[2][1]);
    pipes[2][1] = -1;
    int error = exec_error(pipes[2][0]);

    if (error)
        waitpid(process->pid, NULL, 0);
    return error;
}

pace_status pace__child_start(char *const *words, char *const *environment, int death_signal,
                              const pace_log *log, pace__child *process)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int error = 0;

    for (int i = 0; i < 3 && !error; i++)
        error = pipe2(pipes[i], O_CLOEXEC) ? errno : 0;
    if (!error)
        error = fork_child(words, environment, death_signal, pipes, process);
    for (int i = 0; i < 2 && !error; i++) {
        process->fds[i] = pipes[i][0];
        fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
        pipes[i][0] = -1;
    }
    for (int i = 0; i < 3; i++)
        close_pair(pipes[i]);
    if (error)
        return pace_fail(log, PACE_FAILED, "cannot start %s: %s", words[0], strerror(error));
    process->ended = false;
    return PACE_OK;
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
    close(process->fds[which]);
    process->fds[which] = -1;
    return false;
}

void pace__child_serve(pace__child *process, pace_relay_reader *const readers[2])
{
    struct pollfd polls[2];
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
    for (int i = 0; i < 2; i++) {
        if (process->fds[i] >= 0)
            close(process->fds[i]);
    }
}

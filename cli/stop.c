/*
 * Requests to stop, from the first signal to the last resort.
 *
 *     asked     SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU: said at once, and noted for whoever works to look at (1)
 *     again     a second SIGTERM or SIGHUP: others are not waited for any more (2). A second SIGINT ends the process here,
 *               as it would if nobody caught it, but for a word
 *     late      SIGTERM or SIGHUP, and the time for an orderly end is over: what was started is killed (3)
 *     ended     a little later: nobody has looked. The process ends here, whatever it was doing
 *
 * The time is for those who cannot ask again: a scheduler, a service manager. Who presses Ctrl-C sees that it was heard,
 * and may wait for a slow disk, or press again; SIGUSR1 is a warning that SIGTERM will follow, and SIGXCPU (ulimit -t)
 * that SIGKILL will.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <paceline/relay.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_S 3 /* for an end that was asked for twice */
#define LATE_S  2 /* from `late` to `ended` */
#define TEXT    256

/* All that a signal handler can reach; threads look at the first. */
static _Atomic int stop_requested;
static _Atomic int terminations, interrupts, heard;
/* Set before the handlers are. By key, by order, as a warning: SIGINT; SIGTERM and SIGHUP; SIGUSR1 and SIGXCPU. */
static char key_text[TEXT], order_text[TEXT], warning_text[TEXT];
static char cut_text[TEXT], ended_text[TEXT];
static unsigned limit_s; /* 0: none */

const cli_stop_words cli_stop_nothing_kept = {"stopping: nothing will be kept", ""};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may set only what needs no lock");

static void raise_to(int level)
{
    if (stop_requested < level)
        stop_requested = level;
}

static void say(const char *text)
{
    ssize_t said = write(STDERR_FILENO, text, strlen(text));

    (void)said; /* nobody is left to be told */
}

/* With the signal's default, behind the handler: whoever waits for the process sees what it ended by. */
static void end_here(int signal_number)
{
    say(cut_text);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static bool is_warning(int signal_number)
{
    return signal_number == SIGUSR1 || signal_number == SIGXCPU;
}

/* A warning, and what it warns of, are one request. */
static void request_stop(int signal_number)
{
    int level = is_warning(signal_number) || terminations++ == 0 ? 1 : 2, error = errno;

    raise_to(level);
    if (limit_s && (signal_number == SIGTERM || signal_number == SIGHUP))
        alarm(level == 1 ? limit_s : AGAIN_S);
    if (heard++ == 0)
        say(signal_number == SIGINT ? key_text : is_warning(signal_number) ? warning_text : order_text);
    if (signal_number == SIGINT && interrupts++ > 0)
        end_here(signal_number);
    errno = error;
}

static void time_is_over(int signal_number)
{
    (void)signal_number;
    if (stop_requested == 3) {
        say(ended_text);
        _exit(PACE_INTERRUPTED);
    }
    raise_to(3);
    alarm(LATE_S);
}

/* A line of its own, where a live line may stand. */
static void compose(char text[TEXT], const char *prefix, const char *words)
{
    snprintf(text, TEXT, "%s%s%s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", prefix, words);
}

/* Whoever has started this process may have blocked them. */
static void let_through(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU, SIGALRM};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Of many processes of a job one speaks; and one that was started by a supervisor hears of a stop from it. */
static void prepare(const cli_context *cli, const cli_stop_words *words, double seconds)
{
    char late[TEXT - 64];

    cut_text[0] = '\0';
    limit_s = (unsigned)ceil(fmin(fmax(seconds, 1), 1e6));
    snprintf(late, sizeof late, "told to stop, and not done within %u s: ended at once", limit_s);
    compose(ended_text, "paceline: error: ", late);
    if (cli->quiet || pace_relay_rank() != 0)
        return;
    compose(warning_text, words->what, "");
    snprintf(late, sizeof late, "; Ctrl-C again ends at once%s", words->at_once);
    compose(key_text, words->what, late);
    snprintf(late, sizeof late, "; ends in %u s at the latest", limit_s + LATE_S);
    compose(order_text, words->what, late);
    compose(cut_text, "ended at once", words->at_once);
}

void cli_answer_interrupt(void)
{
    struct sigaction action = {.sa_handler = end_here, .sa_flags = SA_RESTART}, before;

    if (!isatty(STDERR_FILENO) || sigaction(SIGINT, NULL, &before) != 0 || before.sa_handler == SIG_IGN)
        return;
    compose(cut_text, "interrupted", "");
    sigaction(SIGINT, &action, NULL);
}

const _Atomic int *cli_stop_on_signals(const cli_context *cli, const cli_stop_words *words, double seconds)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART},
                     late = {.sa_handler = time_is_over, .sa_flags = SA_RESTART};

    /* A rank under a supervisor hears of a stop by SIGUSR1; SIGTERM is the launcher ending a job that is lost. */
    if (!pace_relay_wanted()) {
        struct sigaction before;

        prepare(cli, words, seconds);
        sigaction(SIGALRM, &late, NULL);
        sigaction(SIGTERM, &action, NULL);
        if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* not under nohup */
            sigaction(SIGHUP, &action, NULL);
    }
    sigaction(SIGUSR1, &action, NULL); /* mpirun passes it on and, unlike SIGTERM, does not kill then */
    sigaction(SIGXCPU, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    let_through();
    return &stop_requested;
}

const _Atomic int *cli_stop_if_file(const cli_context *cli, const char *output)
{
    struct stat info;

    if (!output || cli_is_standard(output) || (stat(output, &info) == 0 && !S_ISREG(info.st_mode)))
        return NULL;
    return cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
}

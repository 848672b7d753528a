#include "cli.h"

#include <paceline/relay.h>
#include <signal.h>
#include <stdatomic.h>

/* All that a signal handler can reach; threads look at the first. */
static _Atomic int stop_requested;
static _Atomic int terminations;

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may set only what needs no lock");

/* 1: end in an orderly way; 2: asked again, do not wait for others any more. SIGUSR1 is a scheduler's
 * warning that SIGTERM will follow: the two of them are one request. */
static void request_stop(int signal_number)
{
    int level = signal_number == SIGUSR1 || terminations++ == 0 ? 1 : 2;

    if (stop_requested < level)
        stop_requested = level;
}

const _Atomic int *cli_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};

    /* A rank under a supervisor hears of a stop by SIGUSR1; SIGTERM is the launcher ending a job that is lost. */
    if (!pace_relay_wanted()) {
        struct sigaction before;

        sigaction(SIGTERM, &action, NULL);
        if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* not under nohup */
            sigaction(SIGHUP, &action, NULL);
    }
    sigaction(SIGUSR1, &action, NULL);    /* mpirun passes it on and, unlike SIGTERM, does not kill then */
    action.sa_flags |= (int)SA_RESETHAND; /* the default comes back for the second one */
    sigaction(SIGINT, &action, NULL);
    return &stop_requested;
}

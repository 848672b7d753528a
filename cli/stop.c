#include "cli.h"

#include <signal.h>
#include <stdatomic.h>

/* The one thing that a signal handler can reach; threads look at it. */
static _Atomic int stop_requested;

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may set only what needs no lock");

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

const _Atomic int *cli_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};

    sigaction(SIGTERM, &action, NULL);
    action.sa_flags |= (int)SA_RESETHAND; /* the default comes back for the second one */
    sigaction(SIGINT, &action, NULL);
    return &stop_requested;
}

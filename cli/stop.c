#include "cli.h"

#include <signal.h>

/* The one thing that a signal handler can reach. */
static volatile sig_atomic_t stop_requested;

_Static_assert(_Generic(stop_requested, int : 1, default : 0), "the library polls an int");

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

const volatile int *cli_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};

    sigaction(SIGTERM, &action, NULL);
    action.sa_flags |= (int)SA_RESETHAND; /* the default comes back for the second one */
    sigaction(SIGINT, &action, NULL);
    return &stop_requested;
}

/* ranks.h - what the programs that run under mpirun share. They assert, and an abort ends all ranks. */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#include "base/clock.h"
#include "net/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS      1000000u
#define LONG_NS (60000 * (uint64_t)MS) /* a deadline that no test meets */

#define require(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                    \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#include "send_now.h"

static void to_stderr(void *user, pace_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "%c %s\n", "EWID"[level], text);
}

static const pace_log stderr_log = {.write = to_stderr};

/* Says which process this is, so that it can be seen whether it was left behind. */
static inline pace__link *open_link(int workers, uint64_t deadline_ns)
{
    pace__link_options options = {deadline_ns, LONG_NS, .log = &stderr_log};
    pace__link *link;

    printf("pid %ld\n", (long)getpid());
    fflush(stdout);
    if (pace__link_open_mpi(workers, &options, &link))
        abort();
    return link;
}

#endif

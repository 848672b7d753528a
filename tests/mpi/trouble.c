/* Jobs over MPI in which something goes wrong, or nearly: expect.sh checks how they end. */
#include "ranks.h"

#include <signal.h>

/* Long enough for a busy machine where nobody may miss it. */
#define DEADLINE_NS (400 * (uint64_t)MS)
#define KEPT_NS     (1000 * (uint64_t)MS)

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

/* Waits for a message that does not come, and ends as a job should. */
static _Noreturn void wait_in_vain(pace__link *link, int peer)
{
    pace__request request = {0};
    char byte, reason[200];

    pace__link_receive(link, peer, 1, &byte, 1, &request);
    pace_status status = pace__link_wait(link, &request, "its weights");

    require(status != PACE_OK);
    snprintf(reason, sizeof reason, "rank %d: told already", pace__link_rank(link));
    pace__link_fail(link, status, reason);
    abort(); /* it does not return */
}

/* All have heard of all. */
static void greet(pace__link *link)
{
    for (int i = 0; i < pace__link_size(link); i++) {
        pace__request in = {0};

        pace__link_receive(link, i, 0, NULL, 0, &in);
        send_now(link, i, 0, NULL, 0);
        require(pace__link_wait(link, &in, "a greeting") == PACE_OK);
    }
}

static pace__link *open_greeted(uint64_t deadline_ns)
{
    pace__link *link = open_link(1, deadline_ns);

    greet(link);
    for (int i = 0; i < pace__link_size(link); i++) {
        char name[40];

        snprintf(name, sizeof name, "worker%d (rank %d)", i, i);
        pace__link_set_name(link, i, name);
    }
    pace__link_set_step(link, 77);
    return link;
}

static void compute(pace__link *link, uint64_t ns)
{
    uint64_t begin = pace__now_ns();

    while (pace__now_ns() - begin < ns) {
        require(pace__link_pulse(link) == PACE_OK);
        usleep(1000); /* a rank at work must not take the cores from the others */
    }
}

/* --- the jobs --- */

/* Rank 1 hangs; rank 0 waits for it, the rest for rank 0. */
static void one_hangs(void)
{
    pace__link *link = open_greeted(DEADLINE_NS);

    if (pace__link_rank(link) == 1)
        hang();
    wait_in_vain(link, pace__link_rank(link) == 0);
}

/* All wait for the next one, and give signs of life. */
static void all_wait(void)
{
    pace__link *link = open_greeted(DEADLINE_NS);

    wait_in_vain(link, (pace__link_rank(link) + 1) % pace__link_size(link));
}

/* The same, found by a rank that is not rank 0. */
static void chief_hangs(void)
{
    pace__link *link = open_greeted(DEADLINE_NS);

    if (pace__link_rank(link) == 0)
        hang();
    wait_in_vain(link, 0);
}

/* Rank 1 stops as a whole: nothing of it runs any more. */
static void one_stops(void)
{
    pace__link *link = open_greeted(DEADLINE_NS);

    if (pace__link_rank(link) == 1)
        raise(SIGSTOP);
    wait_in_vain(link, pace__link_rank(link) == 0);
}

/* The last rank fails; all others wait for the next one. */
static void last_fails(void)
{
    pace__link *link = open_greeted(LONG_NS);
    int rank = pace__link_rank(link), last = pace__link_size(link) - 1;

    if (rank == last)
        pace__link_fail(link, PACE_BAD_DATA, "worker3 (rank 3, host c): step 5: part-00001.h5 is damaged");
    wait_in_vain(link, rank + 1);
}

static void chief_fails(void)
{
    pace__link *link = open_greeted(LONG_NS);

    if (pace__link_rank(link) == 0)
        pace__link_fail(link, PACE_INTERRUPTED, "stopped");
    wait_in_vain(link, 0);
}

/* Rank 0 computes without a pulse, so that it does not hear of the failure. */
static void fails_unheard(void)
{
    pace__link *link = open_greeted(LONG_NS);

    if (pace__link_rank(link) == 0)
        hang();
    if (pace__link_rank(link) == 1)
        pace__link_fail(link, PACE_IO, "disk full");
    wait_in_vain(link, 0);
}

static void too_long(void)
{
    pace__link *link = open_greeted(LONG_NS);
    int rank = pace__link_rank(link);
    pace__request in = {0}, out = {0};
    char bytes[100] = {0};

    if (rank == 1)
        pace__link_send(link, 0, 2, bytes, sizeof bytes, &out);
    if (rank != 0)
        wait_in_vain(link, 0);
    pace__link_receive(link, 1, 2, bytes, 10, &in);
    pace_status status = pace__link_wait(link, &in, "something short");

    require(status == PACE_BUG);
    pace__link_fail(link, status, "told");
}

/* Rank 1 is slow, but alive: both a wait and the end of the job bear with it. */
static void one_is_slow(void)
{
    pace__link *link = open_greeted(KEPT_NS);

    if (pace__link_rank(link) == 1) {
        compute(link, 3 * KEPT_NS / 2);
        send_now(link, 0, 1, NULL, 0);
        compute(link, 3 * KEPT_NS / 2);
    } else if (pace__link_rank(link) == 0) {
        receive_now(link, 1, 1, NULL, 0);
    }
    pace__link_close(link);
}

static void one_never_closes(void)
{
    pace__link *link = open_greeted(DEADLINE_NS);

    if (pace__link_rank(link) == 1)
        hang();
    pace__link_close(link);
}

static const struct {
    const char *name;
    void (*run)(void);
} jobs[] = {
    {"one_hangs", one_hangs},   {"chief_hangs", chief_hangs}, {"one_stops", one_stops},
    {"last_fails", last_fails}, {"chief_fails", chief_fails}, {"fails_unheard", fails_unheard},
    {"too_long", too_long},     {"one_is_slow", one_is_slow}, {"one_never_closes", one_never_closes},
    {"all_wait", all_wait},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(jobs[i].name, argv[1]) == 0) {
            jobs[i].run();
            return 0;
        }
    }
    fprintf(stderr, "Usage: mpi_trouble JOB\n");
    return 64;
}

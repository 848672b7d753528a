#include "localsgd/localsgd.h"

#include "ps/wire.h"

static const pace__craft *craft_of(const pace__process *process)
{
    return process->job->plan.by_steps ? &pace__localsgd_by_steps : &pace__localsgd_by_rows;
}

pace_status pace__localsgd_meet(pace__process *process)
{
    pace__link *link = process->self.link;
    int chief = process->self.number == 0, others = chief ? process->job->plan.cluster.workers : 1;
    pace_status status = PACE_OK;

    for (int other = chief; other < others && !status; other++) {
        pace__request request = {0};
        uint64_t word = 0;

        if (chief)
            pace__link_receive(link, other, PACE__TAG_GO, &word, sizeof word, &request);
        else
            pace__link_send(link, 0, PACE__TAG_GO, &word, sizeof word, &request);
        status = pace__link_wait(link, &request, "word that it is ready");
        if (!status && chief)
            status = pace__link_fits(link, &request, sizeof word, "word that it is ready");
    }
    return status;
}

static pace_status open_process(pace__process *process)
{
    pace_status status = craft_of(process)->open(process);

    /* Nobody's time of training begins while others still make room: the chief hears of all, and then gives the start. */
    return status ? status : pace__localsgd_meet(process);
}

static pace_status run(pace__process *process, pace__boundary *boundary)
{
    return craft_of(process)->run(process, boundary);
}

static void close_process(pace__process *process)
{
    craft_of(process)->close(process);
}

const pace__craft pace__localsgd = {.open = open_process, .run = run, .close = close_process};

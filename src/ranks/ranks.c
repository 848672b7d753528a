#include "ranks/ranks.h"

#include <assert.h>
#include <string.h>

/* Whatever comes of it, the buffer is the caller's again. */
static pace_status wait_for(pace__link *link, pace__request *request, const char *what)
{
    pace_status status = pace__link_wait(link, request, what);

    if (status)
        pace__link_settle(link, request);
    return status;
}

pace_status pace__ranks_send(pace__link *link, int to, const void *bytes, size_t size, const char *what)
{
    pace__request request = {0};

    pace__link_send(link, to, PACE__TAG_RANKS, bytes, size, &request);
    return wait_for(link, &request, what);
}

pace_status pace__ranks_receive(pace__link *link, int from, void *bytes, size_t capacity, const char *what,
                                size_t *got)
{
    pace__request request = {0};

    pace__link_receive(link, from, PACE__TAG_RANKS, bytes, capacity, &request);
    pace_status status = wait_for(link, &request, what);

    *got = status ? 0 : request.bytes;
    return status;
}

pace_status pace__ranks_receive_whole(pace__link *link, int from, void *bytes, size_t size, const char *what)
{
    pace__request request = {0};

    pace__link_receive(link, from, PACE__TAG_RANKS, bytes, size, &request);
    pace_status status = wait_for(link, &request, what);

    return status ? status : pace__link_fits(link, &request, size, what);
}

pace_status pace__ranks_gather(pace__link *link, const void *mine, size_t size, void *all)
{
    int ranks = pace__link_size(link);
    pace_status status = PACE_OK;

    if (pace__link_rank(link) > 0)
        return pace__ranks_send(link, 0, mine, size, "its report to leave");
    memcpy(all, mine, size);
    for (int from = 1; from < ranks && !status; from++)
        status = pace__ranks_receive_whole(link, from, (char *)all + (size_t)from * size, size, "its report");
    return status;
}

pace_status pace__ranks_share(pace__link *link, void *bytes, size_t size)
{
    int ranks = pace__link_size(link);
    pace_status status = PACE_OK;

    if (pace__link_rank(link) > 0)
        return pace__ranks_receive_whole(link, 0, bytes, size, "its word to go on");
    for (int to = 1; to < ranks && !status; to++)
        status = pace__ranks_send(link, to, bytes, size, "a message to leave");
    return status;
}

pace_status pace__ranks_exchange(pace__link *link, const void *mine, size_t size, void *all)
{
    pace_status status = pace__ranks_gather(link, mine, size, all);

    return status ? status : pace__ranks_share(link, all, size * (size_t)pace__link_size(link));
}

pace_status pace__ranks_meet(pace__link *link)
{
    char nothing = 0, all[PACE__RANKS_MAX];

    assert(pace__link_size(link) <= PACE__RANKS_MAX);
    return pace__ranks_exchange(link, &nothing, 1, all);
}

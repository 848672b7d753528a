#include "ranks/ranks.h"

#include <assert.h>
#include <string.h>

enum { TAG_GATHER, TAG_SHARE };

/* Whatever comes of it, the buffer is the caller's again. */
static pace_status wait_for(pace__link *link, pace__request *request, const char *what)
{
    pace_status status = pace__link_wait(link, request, what);

    if (status)
        pace__link_settle(link, request);
    return status;
}

pace_status pace__ranks_gather(pace__link *link, const void *mine, size_t size, void *all)
{
    int rank = pace__link_rank(link), ranks = pace__link_size(link);
    pace_status status = PACE_OK;
    pace__request request = {0};

    if (rank > 0) {
        pace__link_send(link, 0, TAG_GATHER, mine, size, &request);
        return wait_for(link, &request, "its report to leave");
    }
    memcpy(all, mine, size);
    for (int from = 1; from < ranks && !status; from++) {
        pace__link_receive(link, from, TAG_GATHER, (char *)all + (size_t)from * size, size, &request);
        status = wait_for(link, &request, "its report");
    }
    return status;
}

pace_status pace__ranks_share(pace__link *link, void *bytes, size_t size)
{
    int rank = pace__link_rank(link), ranks = pace__link_size(link);
    pace_status status = PACE_OK;
    pace__request request = {0};

    if (rank > 0) {
        pace__link_receive(link, 0, TAG_SHARE, bytes, size, &request);
        return wait_for(link, &request, "its word to go on");
    }
    for (int to = 1; to < ranks && !status; to++) {
        pace__link_send(link, to, TAG_SHARE, bytes, size, &request);
        status = wait_for(link, &request, "a message to leave");
    }
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

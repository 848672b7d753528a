/*
 * send_now.h - a message that is sent, or received, before the test goes on. Include it behind what defines require.
 */
#ifndef UNIT_SEND_NOW_H
#define UNIT_SEND_NOW_H

#include "net/link.h"

static inline void send_now(pace__link *link, int peer, int tag, const void *bytes, size_t size)
{
    pace__request request = {0};

    pace__link_send(link, peer, tag, bytes, size, &request);
    require(pace__link_wait(link, &request, "a send") == PACE_OK);
}

static inline size_t receive_now(pace__link *link, int peer, int tag, void *buffer, size_t capacity)
{
    pace__request request = {0};

    pace__link_receive(link, peer, tag, buffer, capacity, &request);
    require(pace__link_wait(link, &request, "a message") == PACE_OK);
    return request.bytes;
}

#endif

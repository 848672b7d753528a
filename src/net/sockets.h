/*
 * sockets.h - sleeping that ends when something comes over the network.
 *
 * MPI has no call that waits without testing again and again, and hides its connections. But they are descriptors of
 * this process: whoever has nothing to do until a message comes sleeps here, and is woken by the first byte on any
 * connection, or when one has room to send again. What has come is MPI's to read.
 *
 *     pace__sockets_sleep(&sockets, 2000000);     // 2 ms at most
 *
 * Connections are found by looking at the lowest descriptors, once a second: MPI makes them when it first needs them.
 * What is not found (shared memory, another kind of network) wakes nobody, and the sleep is just that.
 */
#ifndef NET_SOCKETS_H
#define NET_SOCKETS_H

#include <stdint.h>

typedef struct pace__sockets {
    int watch;          /* epoll's descriptor; -1: there is none, and nothing is watched */
    uint64_t looked_ns; /* for new connections; 0: never */
} pace__sockets;

void pace__sockets_open(pace__sockets *sockets);
void pace__sockets_close(pace__sockets *sockets);

/* For `ns` at most. */
void pace__sockets_sleep(pace__sockets *sockets, uint64_t ns);

#endif

/*
 * address.h - where the page is served: what --dashboard says, as an address. Pure, but for opening the socket.
 *
 *     auto               127.0.0.1, port 8640, or any other if that is taken
 *     8640               127.0.0.1, that port
 *     0.0.0.0:8640       any numeric IPv4 address and port; port 0: any that is free
 *     [::1]:8640         the same for IPv6; "localhost" is 127.0.0.1
 *
 * Names are not looked up: nothing here asks a network.
 */
#ifndef SERVE_ADDRESS_H
#define SERVE_ADDRESS_H

#include <netinet/in.h>
#include <paceline/log.h>
#include <stdbool.h>

#define PACE__SERVE_AUTO   "auto"
#define PACE__SERVE_PORT   8640
#define PACE__ADDRESS_TEXT 64 /* "[" INET6_ADDRSTRLEN "]:65535" */

typedef struct pace__address {
    bool is_v6;
    bool any_port_will_do; /* if the one that it has is taken */
    struct in_addr v4;     /* in network order */
    struct in6_addr v6;
    unsigned port;
} pace__address;

/* False: it is none of these. */
bool pace__address_parse(const char *text, pace__address *address);

/* Can nobody but this machine reach it? */
bool pace__address_is_loopback(const pace__address *address);

/* "127.0.0.1:8640" */
void pace__address_text(const pace__address *address, char text[PACE__ADDRESS_TEXT]);

/* A socket that listens there; address->port becomes the one that it has. PACE_IO with a message. */
pace_status pace__address_listen(pace__address *address, const pace_log *log, int *fd);

#endif

#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64
#define SEND_BYTES                                                                                           \
    (64 << 10) /* of each connection: who does not read is noticed when the kernel holds that much for him */

/* --- text --- */

static bool parse_port(const char *text, unsigned *port)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 5 || text[digits] != '\0' || strtoul(text, NULL, 10) > 65535)
        return false;
    *port = (unsigned)strtoul(text, NULL, 10);
    return true;
}

static bool parse_host(const char *host, pace__address *address)
{
    address->is_v6 = strchr(host, ':') != NULL;
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    return inet_pton(address->is_v6 ? AF_INET6 : AF_INET, host,
                     address->is_v6 ? (void *)&address->v6 : (void *)&address->v4) == 1;
}

/* "HOST:PORT", "[HOST]:PORT", "HOST" and "[HOST]": the host goes into `host`, *port points to the port or is NULL. */
static bool split(const char *text, char host[PACE__ADDRESS_TEXT], const char **port)
{
    bool has_brackets = text[0] == '[';
    const char *begin = text + has_brackets, *end = has_brackets ? strchr(text, ']') : strchr(text, ':');

    if (!end && has_brackets)
        return false;
    if (!end)
        end = text + strlen(text);
    const char *rest = end + has_brackets;

    if ((size_t)(end - begin) >= PACE__ADDRESS_TEXT || end == begin || (*rest != '\0' && *rest != ':'))
        return false;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *port = *rest == ':' ? rest + 1 : NULL;
    return !has_brackets || strchr(host, ':');
}

bool pace__address_parse(const char *text, pace__address *address)
{
    pace__address parsed = {.port = PACE__SERVE_PORT, .v4.s_addr = htonl(INADDR_LOOPBACK)};
    char host[PACE__ADDRESS_TEXT];
    const char *port;

    if (strcmp(text, PACE__SERVE_AUTO) == 0)
        parsed.any_port_will_do = true;
    else if (!parse_port(text, &parsed.port) && (!split(text, host, &port) || !parse_host(host, &parsed) ||
                                                 (port && !parse_port(port, &parsed.port))))
        return false;
    *address = parsed;
    return true;
}

bool pace__address_is_loopback(const pace__address *address)
{
    return address->is_v6 ? IN6_IS_ADDR_LOOPBACK(&address->v6) : ntohl(address->v4.s_addr) >> 24 == 127;
}

void pace__address_text(const pace__address *address, char text[PACE__ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN];

    inet_ntop(address->is_v6 ? AF_INET6 : AF_INET,
              address->is_v6 ? (const void *)&address->v6 : (const void *)&address->v4, host, sizeof host);
    snprintf(text, PACE__ADDRESS_TEXT, address->is_v6 ? "[%s]:%u" : "%s:%u", host, address->port);
}

/* --- the socket --- */

typedef union any_address {
    struct sockaddr plain;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static socklen_t fill(const pace__address *address, any_address *to)
{
    memset(to, 0, sizeof *to);
    if (address->is_v6) {
        to->v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)address->port), .sin6_addr = address->v6};
        return sizeof to->v6;
    }
    to->v4 = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)address->port), .sin_addr = address->v4};
    return sizeof to->v4;
}

/* -1 and errno. Ranks that are started later do not inherit it. */
static int try_listen(pace__address *address)
{
    any_address to;
    socklen_t size = fill(address, &to);
    int on = 1, send_bytes = SEND_BYTES,
        fd = socket(to.plain.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes); /* inherited by what is accepted */
    if (bind(fd, &to.plain, size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &to.plain, &size) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    address->port = ntohs(address->is_v6 ? to.v6.sin6_port : to.v4.sin_port);
    return fd;
}

pace_status pace__address_listen(pace__address *address, const pace_log *log, int *fd)
{
    char text[PACE__ADDRESS_TEXT];

    *fd = try_listen(address);
    if (*fd < 0 && errno == EADDRINUSE && address->any_port_will_do) {
        address->port = 0;
        *fd = try_listen(address);
    }
    if (*fd >= 0)
        return PACE_OK;
    int error = errno;

    pace__address_text(address, text);
    return pace_fail(log, PACE_IO, "--dashboard: cannot listen on %s: %s%s", text, strerror(error),
                     error == EADDRINUSE ? ": another port, or --dashboard without one, may be free" : "");
}

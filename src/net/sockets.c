#include "net/sockets.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of descriptors that are looked at: connections are among the first that a process opens. */
#define DESCRIPTORS   1024
#define GAP           64 /* so many that are not open: there are no more */
#define LOOK_EVERY_NS UINT64_C(200000000)
#define EVENTS        64

void pace__sockets_open(pace__sockets *sockets)
{
    *sockets = (pace__sockets){.watch = epoll_create1(EPOLL_CLOEXEC)};
}

void pace__sockets_close(pace__sockets *sockets)
{
    if (sockets->watch >= 0)
        close(sockets->watch);
    sockets->watch = -1;
}

/* Is this a TCP connection? */
static bool is_connection(int fd)
{
    int domain, type, listens;
    socklen_t size = sizeof domain;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
        (domain != AF_INET && domain != AF_INET6))
        return false;
    size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return false;
    size = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens;
}

/* Edges only: bytes that nobody reads must not keep anyone awake. What is watched already is refused, which is fine; and
 * who closes a connection ends its watch. */
static void find_connections(pace__sockets *sockets)
{
    int gap = 0;

    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS && gap < GAP; fd++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET};

        errno = 0;
        bool connection = is_connection(fd);

        gap = !connection && errno == EBADF ? gap + 1 : 0;
        if (connection)
            epoll_ctl(sockets->watch, EPOLL_CTL_ADD, fd, &event);
    }
}

bool pace__sockets_sleep(pace__sockets *sockets, uint64_t ns)
{
    struct pollfd woken = {.fd = sockets->watch, .events = POLLIN}; /* a negative one is not looked at */
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    struct epoll_event events[EVENTS];
    uint64_t now_ns = pace__now_ns();

    if (sockets->watch >= 0 && (sockets->looked_ns == 0 || now_ns - sockets->looked_ns >= LOOK_EVERY_NS)) {
        sockets->looked_ns = now_ns;
        find_connections(sockets);
    }
    if (ppoll(&woken, 1, &time, NULL) <= 0)
        return false;
    epoll_wait(sockets->watch, events, EVENTS, 0); /* forgets them: MPI will look */
    return true;
}

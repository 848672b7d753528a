/* Sleeping until something comes over a connection. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_NS  UINT64_C(20000000000) /* a test that sleeps for so long has failed */
#define SHORT_NS UINT64_C(2000000)

typedef struct connection {
    int here, there;
} connection;

/* Over loopback, as MPI's are. */
static connection connect_ends(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int door = socket(AF_INET, SOCK_STREAM, 0), there = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(door, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(getsockname(door, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(there, (struct sockaddr *)&address, size), 0);
    int here = accept(door, NULL, NULL);

    assert_true(here >= 0);
    close(door);
    return (connection){here, there};
}

static void disconnect(connection *ends)
{
    close(ends->here);
    close(ends->there);
}

static uint64_t slept(pace__sockets *sockets, uint64_t ns)
{
    uint64_t start_ns = pace__now_ns();

    pace__sockets_sleep(sockets, ns);
    return pace__now_ns() - start_ns;
}

/* What is new is told once: that a connection can be written to. */
static void settle(pace__sockets *sockets)
{
    for (int i = 0; i < 3; i++)
        pace__sockets_sleep(sockets, 0);
}

static void *write_byte(void *user)
{
    const connection *ends = user;

    assert_int_equal(write(ends->there, "x", 1), 1);
    return NULL;
}

static void a_byte_wakes(void **state)
{
    connection ends = connect_ends();
    pace__sockets sockets;
    pthread_t writer;

    (void)state;
    pace__sockets_open(&sockets);
    settle(&sockets);
    for (int turn = 0; turn < 100; turn++) {
        assert_int_equal(pthread_create(&writer, NULL, write_byte, &ends), 0);
        assert_true(slept(&sockets, LONG_NS) < LONG_NS / 2);
        pthread_join(writer, NULL);
        settle(&sockets);
    }
    pace__sockets_close(&sockets);
    disconnect(&ends);
}

/* Of bytes that nobody reads it is told once, or whoever sleeps would spin. */
static void unread_bytes_do_not(void **state)
{
    connection ends = connect_ends();
    pace__sockets sockets;

    (void)state;
    pace__sockets_open(&sockets);
    write_byte(&ends);
    settle(&sockets);
    assert_true(slept(&sockets, SHORT_NS) >= SHORT_NS);
    pace__sockets_close(&sockets);
    disconnect(&ends);
}

/* Connections behind descriptors that are closed are found. */
static void a_gap_hides_no_connection(void **state)
{
    connection ends = connect_ends();
    int far = fcntl(ends.here, F_DUPFD, 60);
    pace__sockets sockets;
    pthread_t writer;

    (void)state;
    assert_true(far >= 60);
    close(ends.here);
    ends.here = far;
    pace__sockets_open(&sockets);
    settle(&sockets);
    assert_int_equal(pthread_create(&writer, NULL, write_byte, &ends), 0);
    assert_true(slept(&sockets, LONG_NS) < LONG_NS / 2);
    pthread_join(writer, NULL);
    pace__sockets_close(&sockets);
    disconnect(&ends);
}

static void a_sleep_without_connections_is_a_sleep(void **state)
{
    pace__sockets sockets;

    (void)state;
    pace__sockets_open(&sockets);
    assert_true(slept(&sockets, SHORT_NS) >= SHORT_NS);
    pace__sockets_close(&sockets);
    assert_true(slept(&sockets, SHORT_NS) >= SHORT_NS); /* as where there is no epoll */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_wakes),
        cmocka_unit_test(unread_bytes_do_not),
        cmocka_unit_test(a_gap_hides_no_connection),
        cmocka_unit_test(a_sleep_without_connections_is_a_sleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Orders on standard input, as the chief reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launch/orders.h"

#include <fcntl.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What stands behind standard input, and the end to write to. */
static int kept, end;

static int make_input(void **state)
{
    int ends[2];

    (void)state;
    kept = dup(STDIN_FILENO);
    if (pipe(ends) || dup2(ends[0], STDIN_FILENO) < 0)
        return -1;
    close(ends[0]);
    end = ends[1];
    return setenv(PACE_RELAY_VARIABLE, "1", 1);
}

static int restore_input(void **state)
{
    (void)state;
    if (end >= 0)
        close(end);
    dup2(kept, STDIN_FILENO);
    close(kept);
    return unsetenv(PACE_RELAY_VARIABLE);
}

static void give(const char *text)
{
    assert_int_equal(write(end, text, strlen(text)), (ssize_t)strlen(text));
}

/* -1: there is none. A call may take more than one read to come to a line's end. */
static int next(pace__orders *orders)
{
    int rank = -1;

    for (int i = 0; i < 100; i++) {
        if (pace__orders_next(orders, &rank))
            return rank;
    }
    assert_int_equal(rank, -1);
    return -1;
}

static void test_orders(void **state)
{
    pace__orders orders;
    char text[PACE__ORDER_TEXT];

    (void)state;
    pace__orders_open(&orders);
    assert_int_equal(next(&orders), -1);
    assert_int_equal(pace__order_lost(2047, text), strlen("lost 2047\n"));
    give(text);
    give("lost 3\nlo");
    assert_int_equal(next(&orders), 2047);
    assert_int_equal(next(&orders), 3);
    assert_int_equal(next(&orders), -1);
    give("st 1");
    assert_int_equal(next(&orders), -1);
    give("2\n");
    assert_int_equal(next(&orders), 12);
    give("lost 5\nlost 6\n");
    close(end);
    end = -1;
    assert_int_equal(next(&orders), 5);
    assert_int_equal(next(&orders), 6);
    assert_int_equal(next(&orders), -1);
    assert_int_equal(orders.fd, -1); /* and nobody asks again */
}

static void test_other_lines(void **state)
{
    pace__orders orders;

    (void)state;
    pace__orders_open(&orders);
    give("\nlost\nlost \nlost x\nlost 1x\nlost -1\n lost 1\nfound 1\nlost 99999\nlost 0000000001\n");
    give("this line is much longer than an order and ends with lost 1\n");
    give("0123456789012345678901234567890lost 2\n"); /* which begins a buffer */
    give("lost 4\n");
    assert_int_equal(next(&orders), 4);
    assert_int_equal(next(&orders), -1);
}

static void test_nobody_gives_orders(void **state)
{
    pace__orders orders;

    (void)state;
    unsetenv(PACE_RELAY_VARIABLE);
    give("lost 1\n");
    pace__orders_open(&orders);
    assert_int_equal(orders.fd, -1);
    assert_int_equal(next(&orders), -1);
    assert_false(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK);
}

int main(void)
{
#define ORDERS_TEST(name) cmocka_unit_test_setup_teardown(name, make_input, restore_input)
    const struct CMUnitTest tests[] = {
        ORDERS_TEST(test_orders),
        ORDERS_TEST(test_other_lines),
        ORDERS_TEST(test_nobody_gives_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

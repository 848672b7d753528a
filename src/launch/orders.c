#include "launch/orders.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <paceline/relay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOST "lost "

size_t pace__order_lost(int rank, char text[PACE__ORDER_TEXT])
{
    assert(rank >= 0 && rank < PACE_RELAY_RANKS_MAX);
    return (size_t)snprintf(text, PACE__ORDER_TEXT, LOST "%d\n", rank);
}

void pace__orders_open(pace__orders *orders)
{
    int flags = fcntl(STDIN_FILENO, F_GETFL);

    *orders = (pace__orders){.fd = -1};
    if (pace_relay_wanted() && flags >= 0 && fcntl(STDIN_FILENO, F_SETFL, flags | O_NONBLOCK) == 0)
        orders->fd = STDIN_FILENO;
}

/* "lost 2", and nothing else. */
static bool read_order(const char *line, int *rank)
{
    const char *digits = line + strlen(LOST);

    if (strncmp(line, LOST, strlen(LOST)) != 0)
        return false;
    size_t count = strspn(digits, "0123456789");

    if (count < 1 || count > 5 || digits[count] != '\0' || atoi(digits) >= PACE_RELAY_RANKS_MAX)
        return false;
    *rank = atoi(digits);
    return true;
}

/* Takes lines from what has been read, up to the first order. */
static bool take_order(pace__orders *orders, int *rank)
{
    char *end;

    assert(orders->size <= sizeof orders->line);
    while ((end = memchr(orders->line, '\n', orders->size))) {
        size_t length = (size_t)(end - orders->line) + 1;
        char line[PACE__ORDER_TEXT];

        memcpy(line, orders->line, length);
        line[length - 1] = '\0';
        orders->size -= length;
        memmove(orders->line, orders->line + length, orders->size);
        if (read_order(line, rank))
            return true;
    }
    return false;
}

bool pace__orders_next(pace__orders *orders, int *rank)
{
    if (take_order(orders, rank))
        return true;
    if (orders->fd < 0)
        return false;
    if (orders->size == sizeof orders->line) {
        orders->line[0] = '?'; /* longer than any order: what is left of the line will be none either */
        orders->size = 1;
    }
    ssize_t size = read(orders->fd, orders->line + orders->size, sizeof orders->line - orders->size);

    if (size > 0)
        orders->size += (size_t)size;
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        orders->fd = -1;
    return take_order(orders, rank);
}

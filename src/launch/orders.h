/*
 * orders.h - what the supervisor tells the chief while the job runs: lines on the chief's standard input,
 * which mpirun passes on to rank 0.
 *
 *     lost 2        rank 2 has died; go on without it
 */
#ifndef LAUNCH_ORDERS_H
#define LAUNCH_ORDERS_H

#include <stdbool.h>
#include <stddef.h>

#define PACE__ORDER_TEXT 32

/* The supervisor's side: the line for a lost rank; returns its length. */
size_t pace__order_lost(int rank, char text[PACE__ORDER_TEXT]);

/* The chief's side. */
typedef struct pace__orders {
    int fd; /* -1: nobody gives orders */
    char line[PACE__ORDER_TEXT];
    size_t size;
} pace__orders;

/* Standard input, if a supervisor has started this process (<paceline/relay.h>); it is made non-blocking. */
void pace__orders_open(pace__orders *orders);
/* Never blocks. True: *rank has been lost. Lines that are no order are ignored. One system call. */
bool pace__orders_next(pace__orders *orders, int *rank);

#endif

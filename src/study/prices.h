/*
 * prices.h - what machines cost: a small file, a machine type a line.
 *
 *     # name     an hour  currency  processes that it has room for, and how fast it is beside the machines of the study
 *     small      0.085    USD       slots=2
 *     large      0.34     USD       slots=8 speed=1.1
 *
 * All prices are in one currency: nothing here knows what a dollar is in euros.
 */
#ifndef STUDY_PRICES_H
#define STUDY_PRICES_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__PRICES_MAX     64
#define PACE__PRICE_TEXT     48
#define PACE__CURRENCY_TEXT  8
#define PACE__PRICES_BYTES   ((size_t)1 << 16)
#define PACE__PRICE_HOUR_MAX 1e6
#define PACE__SPEED_MAX      1e4

typedef struct pace__price {
    char name[PACE__PRICE_TEXT];
    char currency[PACE__CURRENCY_TEXT]; /* three capital letters */
    double hour;
    int64_t slots; /* processes of a job that one machine takes; 1 if nothing is said */
    double speed;  /* 1 if nothing is said */
} pace__price;

typedef struct pace__prices {
    pace__price of[PACE__PRICES_MAX];
    size_t count;
} pace__prices;

/* Errors are PACE_USAGE, and name file and line; a file that is not there is PACE_NO_INPUT. */
pace_status pace__prices_read(const char *path, const pace_log *log, pace__prices *prices);

/* The same of a text; `path` is for messages. */
pace_status pace__prices_parse(const char *text, const char *path, const pace_log *log, pace__prices *prices);

/* What a job costs that has so many processes, and took so long here. */
typedef struct pace__bill {
    int64_t machines;
    double seconds, money;
} pace__bill;
pace__bill pace__bill_of(const pace__price *price, int64_t processes, double seconds);

#endif

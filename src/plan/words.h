/* words.h - what plan is told in words: lists of numbers, speeds of links, times, prices. Whatever is impossible is PACE_USAGE
 * with a message that names the option. */
#ifndef PLAN_WORDS_H
#define PLAN_WORDS_H

#include <paceline/log.h>
#include <paceline/options.h>

#define PACE__LIST_MAX 64

/* "1,2,4": whole numbers from `least` to `most`, at most PACE__LIST_MAX of them. */
typedef struct pace__number_list {
    uint64_t items[PACE__LIST_MAX];
    size_t count;
} pace__number_list;

pace_status pace__words_numbers(const char *option, const char *text, double least, double most,
                                const pace_log *log, pace__number_list *numbers);

/* Modes (PACE_MODE_*), by name. */
pace_status pace__words_modes(const char *text, const pace_log *log, pace__number_list *modes);

/* "1gbit", "100mbit": bytes a second. */
pace_status pace__words_net(const char *text, const pace_log *log, double *bytes_s);
/* "50us", "1ms". */
pace_status pace__words_latency(const char *text, const pace_log *log, double *seconds);

/* Of a machine and hour. */
typedef struct pace__hourly {
    double worker, ps; /* below 0: none was given */
    char currency[8];
} pace__hourly;

/* "0.35EUR" of all machines, "ps=0.2EUR" of those with servers alone. One currency. */
pace_status pace__words_prices(const pace_texts *texts, const pace_log *log, pace__hourly *prices);

#endif

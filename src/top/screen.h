/*
 * screen.h - a view of a run as lines of text for a given width and height. Pure: tested without a terminal.
 *
 *     run1                                   running, 12:34 min
 *     step 1,200 of 1,758 (68 %)   1.07M rows/s   3:05 min left
 *     loss 0.49054 ▇▆▅▄▃▂▁▁
 *     test at step 1,000: log-loss 0.49123, AUC 0.74706, accuracy 0.76819
 *
 *     role     rows/s  share  CPU  memory   net/s  wait for
 *     chief     12.3k    50%  98%  512MiB  1.2MiB    3% ps0
 *     ...
 *
 *     network: chief and 3 workers wait 71 % of the time ...
 *     What would help: --batch 1000 instead of 100 ...
 *
 * 1. Columns of the table come by their importance, as many as the width has room for; the first few are always there.
 * 2. A screen of limited height shows the head; a few roles come before the words below, and more of them behind these.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "top/line.h"
#include "view/view.h"

#include <paceline/top.h>

typedef struct pace__screen {
    pace_top_line *lines;
    size_t count, capacity;
    size_t first; /* roles that are scrolled away */
    bool failed;  /* out of memory */
} pace__screen;

/* What a view does not know. */
typedef struct pace__screen_news {
    double quiet_s; /* since anything new came, of a run that goes on; NAN: nobody knows */
    bool is_gone;   /* the run directory is not there any more */
} pace__screen_news;

void pace__screen_draw(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                       const pace_top_size *size);
void pace__screen_release(pace__screen *screen);

/* --- the parts --- */

void pace__screen_add(pace__screen *screen, const char *text, pace_top_style style);
/* As many lines as the text needs. */
void pace__screen_wrap(pace__screen *screen, const char *text, const pace_top_size *size,
                       pace_top_style style);

/* table.c: the heading and the lines of roles [first, first + count). */
void pace__table_draw(pace__screen *screen, const pace__view *view, const pace_top_size *size, size_t first,
                      size_t count);

/* head.c: the lines above the table. */
void pace__head_draw(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                     const pace_top_size *size);

#endif

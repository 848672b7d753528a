/*
 * told.h - what a search tells: its table, the winner and how to train it; DIR/table.md, DIR/table.csv, DIR/table.json.
 */
#ifndef TUNE_TOLD_H
#define TUNE_TOLD_H

#include "tune/search.h"

/* Files, and the result. There is a winner. */
pace_status pace__search_tell(const pace__search *search, const pace_log *log, pace_tune_result *result);

/* Of a dry run: candidates, rungs, what it would cost. */
pace_status pace__search_tell_dry(const pace__search *search, const pace_log *log, pace_tune_result *result);

/* The entries, the best first: those who came further before others, then by loss; the failed last. */
void pace__search_rank(const pace__search *search, size_t *order);

#endif

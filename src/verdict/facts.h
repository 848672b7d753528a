/*
 * facts.h - what a verdict is made of, from the records of a run: its last start, from the first sample to the last step,
 * or from a moment on (for whoever looks at a run that goes on: the last minute tells more than the mean of a day).
 *
 *     pace__verdict verdict;
 *     pace__verdict_from(history, 0, &verdict);
 */
#ifndef VERDICT_FACTS_H
#define VERDICT_FACTS_H

#include "history/history.h"
#include "verdict/verdict.h"

/* Of what happened from `since_t` on. */
void pace__verdict_from(const pace__history *history, double since_t, pace__verdict *verdict);

/* The cause and its words as a JSON object, for summary.json and the page: {"cause": "network", "who": "ps0",
 * "seconds": ..., "seconds_without": ..., "taken": {"compute": ..., ...}, "evidence": ..., "advice": ...}; null if there
 * is none. */
struct pace__json;
void pace__verdict_put(struct pace__json *json, const pace__history *history, const pace__verdict *verdict);

#endif

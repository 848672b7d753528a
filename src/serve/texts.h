/*
 * texts.h - what is served, as texts: made of a view, and of nothing else.
 *
 * Each writes into a text that grows; `failed` says that memory ran out, and the text is to be thrown away.
 */
#ifndef SERVE_TEXTS_H
#define SERVE_TEXTS_H

#include "base/json.h"
#include "view/view.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pace__served_text {
    char *bytes;
    size_t size, capacity;
    bool failed;
} pace__served_text;

void pace__served_add(pace__served_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pace__served_add_bytes(pace__served_text *text, const void *bytes, size_t size);
/* JSON of unknown size: `put` is called with a writer that measures, and again with one that writes. */
void pace__served_add_json(pace__served_text *text, void (*put)(pace__json *json, const void *user),
                           const void *user);
void pace__served_release(pace__served_text *text);

/* metrics.c: Prometheus's text format. */
void pace__metrics_put(pace__served_text *text, const pace__view *view);

/* series.c: the course of a run so far, thinned, as JSON: what a page begins with. */
void pace__series_put(pace__json *json, const pace__history *history);

/* page.c: the page with all it needs, and the policy that lets it run that and nothing else. False: out of memory. */
#define PACE__POLICY_TEXT 512
bool pace__served_page_make(pace__served_text *text, char policy[PACE__POLICY_TEXT]);

#endif

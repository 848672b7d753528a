/*
 * document.h - the frame of a page that needs nothing else: its head, its style, and behind everything its scripts.
 *
 *     status = pace__document_begin(out, "run1", &script, log);
 *     ... <main>...</main>, <script type="application/json" id="data">...</script> ...
 *     pace__document_end(out, &script);
 *
 * Scripts and styles are the build's own, and the document's policy (Content-Security-Policy) allows those alone, by their
 * SHA-256: nothing that is put between can become code or be loaded.
 */
#ifndef REPORT_DOCUMENT_H
#define REPORT_DOCUMENT_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdio.h>

typedef struct pace__asset {
    const unsigned char *bytes;
    size_t size;
} pace__asset;

/* `script` is the page's own; Chart.js comes before it. The title is any text. */
pace_status pace__document_begin(FILE *out, const char *title, const pace__asset *script,
                                 const pace_log *log);
void pace__document_end(FILE *out, const pace__asset *script);

#endif

/*
 * ledger.h - DIR/results.jsonl: a line that says which study or search it is, and one for every job that has ended.
 *
 *     status = pace__ledger_open(dir, "study", "scaling --data d ...", false, log, &ledger);
 *     for (char *line = ledger.lines; (line = pace__ledger_next(&ledger)); )
 *     status = pace__ledger_add(&ledger, json, log);            // on disk when it returns
 *
 * 1. It holds whole lines; one that a crash has cut is removed when it is opened.
 * 2. Its first line says what was studied. Another study is refused, unless it may be replaced; a file that is no ledger of
 *    this kind is never touched.
 * 3. It is locked: two do not write into one directory.
 */
#ifndef SERIES_LEDGER_H
#define SERIES_LEDGER_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>

#define PACE__LEDGER_NAME      "results.jsonl"
#define PACE__LEDGER_BYTES_MAX ((size_t)256 << 20)

typedef struct pace__ledger {
    const char *kind;
    char *path;
    int fd;
    char *text; /* what was in it, behind the first line */
    char *next;
} pace__ledger;

#define PACE__NO_LEDGER ((pace__ledger){.fd = -1})

/* `kind` is the noun of messages, and outlives the ledger. */
pace_status pace__ledger_open(const char *directory, const char *kind, const char *which, bool replace,
                              const pace_log *log, pace__ledger *ledger);
void pace__ledger_close(pace__ledger *ledger);

/* The next line that was there, without its end; NULL: no more. */
char *pace__ledger_next(pace__ledger *ledger);

/* One line, without an end. */
pace_status pace__ledger_add(pace__ledger *ledger, const char *line, const pace_log *log);

#endif

/*
 * guess.h - what the columns of a table are: as somebody says, and else as its first rows look.
 *
 * Not named: a column is a number if all its cells in the first rows are numbers or missing, none of them with a leading
 * zero that has to stay (007); but a category if these are whole and few different ones (PACE__CODES_MAX) that occur
 * often: codes, hours, stars. Everything else is a category. Columns without a name are left out. Only the given bytes
 * are looked at, so the answer is the same for any number of processes and threads, packed files and pipes.
 *
 * Numbers get their steps (data/formats/sheet.h) from the same rows: whole ones are counted from 0, one by one, unless they go beyond
 * seven digits; of others the usual size has two. If nine of ten values lie closer together than to 0 (years), the
 * middle one is the origin.
 */
#ifndef DATA_GUESS_GUESS_H
#define DATA_GUESS_GUESS_H

#include "data/formats/sheet.h"

#include <paceline/options.h>

/* How much of the first file is looked at: whole rows only. */
#define PACE__GUESS_BYTES ((size_t)1 << 20)

#define PACE__CODES_MAX 32

#define PACE__LABEL_FIELD "label"

/* What was said. Items are names, or lists of them with commas between. */
typedef struct pace__sheet_wish {
    const char *label; /* NULL: PACE__LABEL_FIELD */
    const pace_texts *numbers, *categories, *ignored;
} pace__sheet_wish;

/*
 * `bytes` are the first ones of the file; `complete`: all. PACE_USAGE if a name that was said is not there, or said
 * twice. What the columns are is said as PACE_INFO; of which little is to be expected, as PACE_WARN.
 */
pace_status pace__sheet_guess(const pace__sheet_wish *wish, char separator, const char *path,
                              const char *bytes, size_t size, bool complete, const pace_log *log,
                              pace__sheet *sheet);

/*
 * Whether that is certainly a table: a header of several different names, one of which is the label's, and a second
 * line, if there is one, of as many cells.
 */
bool pace__sheet_is_certain(const char *label, char separator, const char *bytes, size_t size, bool complete);

#endif

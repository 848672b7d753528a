/*
 * shares.h - RUN/shares.jsonl: how the rows of steps were divided among the workers, a line for each division.
 *
 *     {"from": 120, "rows": [38, 38, 39, 13], "gain": 0.41, "sum": "1f2e3d4c"}
 *
 * From step 120 on worker 0 has 38 of the 128 rows of a whole step, and so on; steps were expected to become shorter by .41 of
 * what they took. A line is on disk before any step goes by it: whatever dies, the run ends with the model of the divisions
 * that stand here, and another run can repeat them (--balance replay:RUN).
 *
 * Lines only follow each other: one takes the place of all before it that begin with its step or later (a run that was
 * resumed with other options). One that was cut short was not yet in use, and is removed; any other damage is found by its sum,
 * which is that of its text and of the sum before it: no line can be missing between two others. How many there are, and the last
 * sum, a finished run has in its summary.json.
 */
#ifndef RUN_SHARES_H
#define RUN_SHARES_H

#include "checkpoint/divisions.h"

#include <paceline/log.h>

/* A larger file is not read, and none becomes larger: of two workers it has three million divisions, more than any run has needed.
 * With it full, shares stay as they are. */
#define PACE__SHARES_BYTES_MAX ((size_t)256 << 20)

/* What a record comes to; all zeros: there is none. */
typedef struct pace__shares_facts {
    uint64_t lines;
    uint32_t
        sum; /* of the last line, and so of all: that lines are missing at the end, only who knows it can tell */
    double gain;        /* the largest that was expected ... */
    uint64_t gain_from; /* ... of the division from this step on */
} pace__shares_facts;

/* All that a run has recorded; a missing file has none. PACE_BAD_DATA names the line. `divisions` is empty, or zeroed; `facts` may
 * be NULL. */
pace_status pace__shares_read(const char *path, const pace_log *log, pace__divisions *divisions,
                              pace__shares_facts *facts);

/* Does the file end with a whole line? Of a run that has ended, one that was cut short was damaged since. */
bool pace__shares_are_whole(const char *path);

/* The same of its text; `name` takes the path's part in messages. */
pace_status pace__shares_parse(const char *text, size_t size, const char *name, const pace_log *log,
                               pace__divisions *divisions, pace__shares_facts *facts);

/* The file with these alone, all at once. PACE_IO: they are too many, or cannot be written. */
pace_status pace__shares_write(const char *path, const pace__divisions *divisions, const pace_log *log);

/* One more line, synced; or, after a failure, none: nobody may find a division that no step went by. PACE_IO also for a file
 * that is full. */
pace_status pace__shares_append(const char *path, uint64_t from, unsigned workers, const uint32_t *rows,
                                double gain, const pace_log *log);

#endif

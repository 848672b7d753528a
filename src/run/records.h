/*
 * records.h - metrics.jsonl: what a run has measured, a line for each record.
 *
 * A line is {"kind":"step","t":1.25,"step":100,...}: t is the record's time in seconds since the run began,
 * without the time between its processes. Numbers that are not finite are null. Records of kind
 * "progress" are for terminals and left out.
 *
 *     status = pace__records_open(&records, "run/metrics.jsonl", log);
 *     pace_registry_attach(registry, &records.sink);
 *
 * 1. The file holds whole lines, or ends in one incomplete line after a crash; opening cuts that off, so that every
 *    record begins a line.
 * 2. A record is one write, without allocation. When that fails (disk full) a warning is given once, the record is
 *    lost, and the next one is tried.
 * 3. However long the run, the file stays below about 20 MiB, if it is not a great many scores that fill it: of what comes
 *    all the time, less is written the larger it is (base/thinning.h). Of samples, flows and costs those of whole seconds that
 *    2^level divides; of steps (with their resources) at most 16 in 2^level seconds, so that those of a run that has few
 *    all stay. When the level rises the log says so, and a record: {"kind":"thinned","t":...,"one_in":4}.
 */
#ifndef RUN_RECORDS_H
#define RUN_RECORDS_H

#include <paceline/log.h>
#include <paceline/registry.h>
#include <stdbool.h>

/* A record whose line would be longer loses its last fields and gets "cut":true. */
#define PACE__RECORD_LINE_MAX 4096
/* A larger file cannot be gone back in. */
#define PACE__METRICS_BYTES_MAX ((size_t)128 << 20)

typedef struct pace__records {
    pace_sink sink;
    uint64_t lost;
    /* private */
    const char *path;
    const pace_log *log;
    int fd;
    uint64_t bytes;   /* whole lines */
    double earlier_s; /* of processes before this one */
    unsigned level;   /* rises between two seconds, so that all ranks have samples of the same ones */
    uint64_t second;  /* of the last record */
    double step_s;    /* when the last step was, that was written */
    bool step_kept;   /* whether the last of them was */
} pace__records;

/* Makes the file if need be. Path and log must outlive it, and it must not move. */
pace_status pace__records_open(pace__records *self, const char *path, const pace_log *log);
void pace__records_close(pace__records *self); /* also one that could not be opened */

/* The run goes on from this step: records of later ones are removed, and the clock of those to come goes on
 * from the last that stays. */
pace_status pace__records_go_back(pace__records *self, uint64_t step);

#endif

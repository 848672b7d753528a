/*
 * writer.h - the files that one start of a run writes into RUN/events: records are gathered in memory, and go into the file
 * all together.
 *
 * A file has whole records only. Whatever fails is a warning, once for all files of a start, and nobody else's matter.
 */
#ifndef EVENTS_WRITER_H
#define EVENTS_WRITER_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__EVENT_ROLE_TEXT    24
#define PACE__EVENT_BUFFER_BYTES 4096

/* What the files of a start have in common. */
typedef struct pace__event_output {
    const pace_log *log;
    char *directory;
    uint64_t number; /* in their names */
    uint64_t bytes;  /* of all files that are there, of earlier starts, too */
    bool warned;
} pace__event_output;

/* One of them. */
typedef struct pace__event_writer {
    char role[PACE__EVENT_ROLE_TEXT];
    bool end;       /* it tells how the run ended */
    int fd;         /* -1: there is none */
    uint64_t bytes; /* whole records in the file */
    size_t used;
    uint8_t buffer[PACE__EVENT_BUFFER_BYTES]; /* whole records that are not yet there */
} pace__event_writer;

void pace__event_warn(pace__event_output *output, const char *reason);

/* RUN/events/ROLE. */
bool pace__event_directory_make(pace__event_output *output, const char *role);

/* Makes the file. Where that fails there is none, and what is written to it is gone. */
void pace__event_writer_open(pace__event_writer *writer, pace__event_output *output, const char *role,
                             bool end);
void pace__event_writer_close(pace__event_writer *writer, pace__event_output *output);

/* A record, of at most PACE__EVENT_BUFFER_BYTES; and what has come together. */
void pace__event_writer_append(pace__event_writer *writer, pace__event_output *output, const uint8_t *record,
                               size_t size);
void pace__event_writer_flush(pace__event_writer *writer, pace__event_output *output);

/* Records of any size, at once; nothing has been appended. */
void pace__event_writer_put(pace__event_writer *writer, pace__event_output *output, const uint8_t *records,
                            size_t size);

#endif

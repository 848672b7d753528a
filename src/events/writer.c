#include "events/writer.h"

#include "base/kept.h"
#include "events/directory.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void pace__event_warn(pace__event_output *output, const char *reason)
{
    if (!output->warned)
        pace_say(output->log, PACE_WARN, "%s: event files lack something, training goes on", reason);
    output->warned = true;
}

/* A path that is too long is none: what is left of it would be another file's. */
static void make_path(const pace__event_writer *writer, const pace__event_output *output, char path[PATH_MAX])
{
    char name[PACE__EVENT_NAME_MAX];

    pace__event_file_name(output->number, writer->end, name);
    int size = snprintf(path, PATH_MAX, "%s/%s/%s", output->directory, writer->role, name);

    if (size < 0 || size >= PATH_MAX)
        path[0] = '\0';
}

bool pace__event_directory_make(pace__event_output *output, const char *role)
{
    char path[PATH_MAX], reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    snprintf(path, sizeof path, "%s/%s", output->directory, role);
    if (pace__make_own_dir(path, &kept.log) == PACE_OK)
        return true;
    pace__event_warn(output, reason);
    return false;
}

void pace__event_writer_open(pace__event_writer *writer, pace__event_output *output, const char *role,
                             bool end)
{
    char path[PATH_MAX], reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    assert(pace__is_event_role(role));
    *writer = (pace__event_writer){.fd = -1, .end = end};
    snprintf(writer->role, sizeof writer->role, "%s", role);
    make_path(writer, output, path);
    pace__kept_init(&kept, reason, sizeof reason);
    if (path[0] == '\0')
        pace__event_warn(output, "the name of the run directory is too long");
    else if (pace__open(path, PACE__TO_CREATE, &kept.log, &writer->fd) != PACE_OK)
        pace__event_warn(output, reason);
}

void pace__event_writer_put(pace__event_writer *writer, pace__event_output *output, const uint8_t *records,
                            size_t size)
{
    char path[PATH_MAX], reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    if (writer->fd < 0 || size == 0)
        return;
    make_path(writer, output, path);
    pace__kept_init(&kept, reason, sizeof reason);
    if (pace__pwrite_all(writer->fd, records, size, writer->bytes, path, &kept.log) == PACE_OK) {
        writer->bytes += size;
        output->bytes += size;
        return;
    }
    int ignored = ftruncate(writer->fd, (off_t)writer->bytes); /* what was written of it goes */

    (void)ignored;
    pace__event_warn(output, reason);
}

void pace__event_writer_flush(pace__event_writer *writer, pace__event_output *output)
{
    pace__event_writer_put(writer, output, writer->buffer, writer->used);
    writer->used = 0;
}

void pace__event_writer_append(pace__event_writer *writer, pace__event_output *output, const uint8_t *record,
                               size_t size)
{
    assert(size <= sizeof writer->buffer);
    if (size > sizeof writer->buffer - writer->used)
        pace__event_writer_flush(writer, output);
    memcpy(writer->buffer + writer->used, record, size);
    writer->used += size;
}

void pace__event_writer_close(pace__event_writer *writer, pace__event_output *output)
{
    pace__event_writer_flush(writer, output);
    if (writer->fd >= 0)
        close(writer->fd);
    writer->fd = -1;
}

#include "run/records.h"

#include "base/json.h"
#include "base/thinning.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BACK_BYTES 4096
#define STEPS_IN_A_SPAN 16

static void write_value(pace__json *json, const pace_field *field)
{
    switch (field->type) {
    case PACE_FIELD_INT:
        pace__json_integer(json, field->value.integer);
        break;
    case PACE_FIELD_REAL:
        pace__json_real(json, field->value.real);
        break;
    case PACE_FIELD_TEXT:
        if (field->value.text)
            pace__json_string(json, field->value.text);
        else
            pace__json_raw(json, "null");
        break;
    }
}

/* Fills `line` and returns its size. Fields that do not fit are left out, and with them all behind. */
static size_t write_line(const pace_record *record, double seconds, char line[PACE__RECORD_LINE_MAX])
{
    static const char cut[] = ",\"cut\":true", end[] = "}\n";
    pace__json json = {.text = line, .capacity = PACE__RECORD_LINE_MAX - sizeof cut - sizeof end};

    pace__json_raw(&json, "{\"kind\":");
    pace__json_string(&json, record->kind);
    pace__json_raw(&json, ",\"t\":");
    pace__json_real(&json, seconds);
    assert(json.size <= json.capacity); /* kinds are short words of our own */
    for (size_t i = 0; i < record->count; i++) {
        size_t before = json.size;

        pace__json_raw(&json, ",");
        pace__json_string(&json, record->fields[i].name);
        pace__json_raw(&json, ":");
        write_value(&json, &record->fields[i]);
        if (json.size > json.capacity) {
            json.size = before;
            json.capacity = PACE__RECORD_LINE_MAX;
            pace__json_raw(&json, cut);
            break;
        }
    }
    json.capacity = PACE__RECORD_LINE_MAX;
    pace__json_raw(&json, end);
    return json.size;
}

static bool write_whole(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, bytes + done, size - done);

        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static void lose_record(pace__records *self, int error)
{
    /* 1: what was written of the line goes, so that a later record does not continue it. */
    int ignored = ftruncate(self->fd, (off_t)self->bytes);

    (void)ignored;
    if (self->lost++ == 0)
        pace_say(self->log, PACE_WARN, "%s: cannot write: %s: records are lost, training goes on", self->path,
                 strerror(error));
}

static void append_line(pace__records *self, const pace_record *record)
{
    char line[PACE__RECORD_LINE_MAX];
    size_t size = write_line(record, self->earlier_s + record->seconds, line);

    if (write_whole(self->fd, line, size))
        self->bytes += size;
    else
        lose_record(self, errno);
}

/* --- which records --- */

static bool is(const pace_record *record, const char *kind)
{
    return strcmp(record->kind, kind) == 0;
}

/* Invariant 3. */
static bool is_kept(pace__records *self, const pace_record *record)
{
    uint64_t one_in = UINT64_C(1) << self->level;

    if (is(record, "progress"))
        return false;
    if (is(record, "sample") || is(record, "flow") || is(record, "cost"))
        return self->second % one_in == 0;
    if (is(record, "step")) {
        double seconds = self->earlier_s + record->seconds;

        self->step_kept = self->level == 0 || seconds >= self->step_s + (double)one_in / STEPS_IN_A_SPAN;
        self->step_s = self->step_kept ? seconds : self->step_s;
    }
    return self->step_kept || !(is(record, "step") || is(record, "resources"));
}

static void thin(pace__records *self, double seconds)
{
    unsigned one_in = 1u << pace__thinning_level(self->bytes);
    pace_field fields[] = {PACE_INT("one_in", one_in)};

    self->level = pace__thinning_level(self->bytes);
    append_line(self, &(pace_record){"thinned", seconds, fields, 1});
    pace_say(
        self->log, PACE_INFO,
        "%s has grown to %.1f MiB: from now on samples are recorded every %u s, and at most %d steps in that "
        "time",
        self->path, (double)self->bytes / 1048576, one_in, STEPS_IN_A_SPAN);
}

/* The registry calls its sinks one at a time. */
static void append_record(void *user, const pace_record *record)
{
    pace__records *self = user;
    uint64_t second = (uint64_t)(self->earlier_s + record->seconds);

    if (second > self->second && pace__thinning_level(self->bytes) > self->level)
        thin(self, record->seconds);
    self->second = second;
    if (is_kept(self, record))
        append_line(self, record);
}

/* --- life --- */

/* Where the incomplete last line of a file of `size` bytes starts: `size` if there is none. */
static pace_status find_lines_end(int fd, const char *path, uint64_t size, uint64_t *end, const pace_log *log)
{
    char block[READ_BACK_BYTES];
    uint64_t at = size;

    while (at > 0) {
        size_t bytes = at < sizeof block ? (size_t)at : sizeof block;
        pace_status status = pace__pread_all(fd, block, bytes, at - bytes, path, log);

        if (status)
            return status;
        const char *newline = memrchr(block, '\n', bytes);

        if (newline) {
            *end = at - bytes + (uint64_t)(newline - block) + 1;
            return PACE_OK;
        }
        at -= bytes;
    }
    *end = 0;
    return PACE_OK;
}

static pace_status open_lines(pace__records *self)
{
    struct stat info;
    pace_status status = pace__open(self->path, PACE__TO_APPEND, self->log, &self->fd);

    if (status)
        return status;
    if (fstat(self->fd, &info) != 0)
        return pace_fail(self->log, PACE_IO, "%s: cannot read: %s", self->path, strerror(errno));
    status = find_lines_end(self->fd, self->path, (uint64_t)info.st_size, &self->bytes, self->log);
    if (!status && self->bytes < (uint64_t)info.st_size && ftruncate(self->fd, (off_t)self->bytes) != 0)
        status = pace_fail(self->log, PACE_IO, "%s: cannot cut the incomplete last line: %s", self->path,
                           strerror(errno));
    self->level = pace__thinning_level(self->bytes);
    return status;
}

pace_status pace__records_open(pace__records *self, const char *path, const pace_log *log)
{
    *self = (pace__records){.sink = {append_record, self}, .path = path, .log = log, .fd = -1};
    return open_lines(self);
}

void pace__records_close(pace__records *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
}

/* A record about a step that is going to be repeated? Also notes the time of one that is not. */
static bool is_repeated(const char *line, uint64_t step, double *last_s)
{
    cJSON *record = cJSON_Parse(line);
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(record, "step"),
                *time = cJSON_GetObjectItemCaseSensitive(record, "t");
    bool later = cJSON_IsNumber(at) && at->valuedouble > (double)step;

    if (!later && cJSON_IsNumber(time))
        *last_s = time->valuedouble;
    cJSON_Delete(record);
    return later;
}

/* The lines that stay, moved to the front; returns their bytes. */
static size_t keep_lines(char *text, uint64_t step, double *last_s)
{
    size_t kept = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t bytes = (size_t)(end - line) + 1;

        *end = '\0';
        bool repeated = is_repeated(line, step, last_s);

        *end = '\n';
        if (repeated)
            continue;
        memmove(text + kept, line, bytes);
        kept += bytes;
    }
    return kept;
}

pace_status pace__records_go_back(pace__records *self, uint64_t step)
{
    char *text;
    size_t size;
    pace_status status = pace__read_file(self->path, PACE__METRICS_BYTES_MAX, &text, &size, self->log);

    if (status)
        return status;
    size_t kept = keep_lines(text, step, &self->earlier_s);

    assert(kept <= size);
    if (kept < size) {
        status = pace__write_file_atomically(self->path, text, kept, self->log);
        pace__records_close(self); /* of the file that was replaced */
        if (!status)
            status = open_lines(self);
    }
    free(text);
    return status;
}

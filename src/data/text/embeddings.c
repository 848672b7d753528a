#include "data/text/embeddings.h"

#include "data/formats/svmlight.h"
#include "data/input/input.h"
#include "data/input/shown.h"
#include "files/open.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct reading {
    const char *path;
    uint32_t dimensions;
    pace_status (*found)(void *user, const char *word, size_t size, const float *values);
    void *user;
    const pace_log *log;
    uint64_t line; /* counted from 1 */
    bool any;      /* vectors have come */
    float *values; /* (dimensions) */
} reading;

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static const char *skip_field(const char *at, const char *end)
{
    while (at < end && !is_blank(*at))
        at++;
    return at;
}

/* The number between two blanks: all of at .. end. Lines end with a newline, somewhere behind `end`. */
static bool take_number(const char **at, const char *end, float *value)
{
    return *at < end && pace__svmlight_value(at, value) && (*at == end || is_blank(**at));
}

/* Are there `dimensions` numbers, and nothing else? */
static bool take_values(reading *self, const char *at, const char *end)
{
    for (uint32_t i = 0; i < self->dimensions; i++) {
        at = skip_blanks(at, end);
        if (!take_number(&at, end, &self->values[i]))
            return false;
    }
    return at == end;
}

/* The end of the fields in front of the last `dimensions` ones; NULL if there are no more. */
static const char *find_word_end(const reading *self, const char *line, const char *end)
{
    for (uint32_t i = 0; i < self->dimensions; i++) {
        while (end > line && !is_blank(end[-1]))
            end--;
        while (end > line && is_blank(end[-1]))
            end--;
        if (end == line)
            return NULL;
    }
    return end;
}

/* Then the line has more numbers than it should, not a word of several parts. */
static bool ends_with_number(const char *line, const char *end)
{
    const char *last = end;
    float value;

    while (last > line && !is_blank(last[-1]))
        last--;
    return take_number(&last, end, &value) && last == end;
}

static pace_status fail_line(const reading *self, const char *line, const char *end)
{
    const char *at = skip_field(line, end);
    uint64_t count = 0;

    for (const char *next = at; (next = skip_blanks(next, end)) < end; next = skip_field(next, end))
        count++;
    if (count != self->dimensions)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: line %" PRIu64 ": %" PRIu64 " values behind the word, where %u are wanted",
                         self->path, self->line, count, self->dimensions);
    const char *field;
    float value;

    do
        field = at = skip_blanks(at, end);
    while (take_number(&at, end, &value)); /* one of them is none */
    return pace_fail(self->log, PACE_BAD_DATA, "%s: line %" PRIu64 ": '%s' is no finite number", self->path,
                     self->line, pace__show(field, (size_t)(skip_field(field, end) - field)).text);
}

static bool take_whole(const char **at, const char *end, uint64_t *number)
{
    const char *first = *at;

    for (*number = 0; *at < end && **at >= '0' && **at <= '9' && *at - first < 18; ++*at)
        *number = *number * 10 + (uint64_t)(**at - '0');
    return *at > first && (*at == end || is_blank(**at));
}

/* The first line of word2vec and fastText: how many words, how many dimensions. */
static bool is_header(const char *line, const char *end, uint64_t *dimensions)
{
    const char *at = line;
    uint64_t words;

    if (!take_whole(&at, end, &words))
        return false;
    at = skip_blanks(at, end);
    return take_whole(&at, end, dimensions) && at == end;
}

/* From `line` to `end`, where a newline, or blanks and a newline, follow. */
static pace_status read_line(reading *self, const char *line, const char *end)
{
    const char *word_end = skip_field(line, end);
    uint64_t dimensions;

    if (self->line == 1 && is_header(line, end, &dimensions)) {
        if (dimensions == self->dimensions)
            return PACE_OK;
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: line 1: vectors of %" PRIu64 " dimensions, where %u are wanted", self->path,
                         dimensions, self->dimensions);
    }
    if (!take_values(self, word_end, end)) {
        word_end = find_word_end(self, line, end);
        if (!word_end || ends_with_number(line, word_end) || !take_values(self, word_end, end))
            return fail_line(self, line, end);
    }
    self->any = true;
    return word_end > line ? self->found(self->user, line, (size_t)(word_end - line), self->values) : PACE_OK;
}

/* A line that ends at its newline, `end`. */
static pace_status trim_line(reading *self, const char *line, const char *end)
{
    self->line++;
    end -= end > line && end[-1] == '\r';
    while (end > line && is_blank(end[-1]))
        end--;
    return end > line ? read_line(self, line, end) : PACE_OK;
}

/* The last line of a file that does not end with a newline, in a copy that does. */
static pace_status read_rest(reading *self, const char *line, size_t size)
{
    char *copy = calloc(size + 1 + PACE__CHUNK_SLACK, 1);

    if (!copy)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    memcpy(copy, line, size);
    copy[size] = '\n';
    pace_status status = trim_line(self, copy, copy + size);

    free(copy);
    return status;
}

static pace_status read_chunk(reading *self, const pace__chunk *chunk)
{
    const char *at = chunk->data, *end = at + chunk->size, *newline;
    pace_status status = PACE_OK;

    for (; !status && at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        status = trim_line(self, at, newline);
    return status || at == end ? status : read_rest(self, at, (size_t)(end - at));
}

pace_status pace__embeddings_read(const char *path, uint32_t dimensions,
                                  pace_status (*found)(void *user, const char *word, size_t size,
                                                       const float *values),
                                  void *user, const pace_log *log)
{
    assert(dimensions > 0);
    reading self = {.path = path, .dimensions = dimensions, .found = found, .user = user, .log = log};
    pace__input *input = NULL;
    pace__chunk chunk = {0};
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd); /* a file: every process reads it */

    if (status)
        return status;
    close(fd);
    status = pace__input_open(&path, 1, PACE__LINES, log, &input);
    if (status)
        return status;
    self.values = malloc(dimensions * sizeof *self.values);
    if (!self.values)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    while (!status && !(status = pace__input_next(input, &chunk)) && chunk.size > 0)
        status = read_chunk(&self, &chunk);
    if (!status && !self.any)
        status = pace_fail(log, PACE_BAD_DATA, "%s: no word vectors in it", path);
    free(self.values);
    pace__chunk_release(&chunk);
    pace__input_close(input);
    return status;
}

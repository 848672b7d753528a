#include "run/shares.h"

#include "base/json.h"
#include "files/crc32c.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUM_START ", \"sum\": \""
#define SUM_BYTES (sizeof SUM_START - 1 + 8 + 2) /* with eight digits, and "} */

/* --- reading --- */

static bool read_rows(const cJSON *list, uint32_t *rows, unsigned *workers)
{
    const cJSON *item;

    *workers = 0;
    cJSON_ArrayForEach(item, list)
    {
        double value = cJSON_IsNumber(item) ? item->valuedouble : -1;

        if (*workers == PACE__SHARES_MAX || !(value >= 0 && value <= UINT32_MAX) || value != floor(value))
            return false;
        rows[(*workers)++] = (uint32_t)value;
    }
    return *workers > 0 && pace__division_batch(rows, *workers) > 0;
}

/* Of a line's text, behind another one with the sum `before`; the first: 0. */
static uint32_t sum_of(const char *text, size_t size, uint32_t before)
{
    uint32_t sums[] = {before, pace__masked_crc32c(text, size)};

    return pace__masked_crc32c(sums, sizeof sums);
}

static bool has_sum(const char *line, size_t size, uint32_t *before)
{
    char sum[9];

    if (size <= SUM_BYTES || memcmp(line + size - SUM_BYTES, SUM_START, sizeof SUM_START - 1) != 0)
        return false;
    *before = sum_of(line, size - SUM_BYTES, *before);
    snprintf(sum, sizeof sum, "%08" PRIx32, *before);
    return memcmp(line + size - 10, sum, 8) == 0;
}

/* A line that takes the place of the one with the largest gain is the largest, as long as there is none that is larger. */
static void note_gain(pace__shares_facts *facts, uint64_t from, const cJSON *gain)
{
    double value = cJSON_IsNumber(gain) ? gain->valuedouble : 0;

    if (from <= facts->gain_from || value > facts->gain) {
        facts->gain = value;
        facts->gain_from = from;
    }
}

/* NULL, or what is wrong with it. */
static const char *read_line(const char *line, size_t size, uint32_t *rows, pace__divisions *divisions,
                             pace__shares_facts *facts)
{
    if (!has_sum(line, size, &facts->sum))
        return "damaged: it does not have the checksum that it ends with, or the line before it is missing";
    /* cJSON reads too far in some texts that have no NUL behind them; one among them is nothing that we write. */
    char *copy = memchr(line, '\0', size) ? NULL : strndup(line, size);
    cJSON *root = copy ? cJSON_ParseWithLength(copy, size + 1) : NULL;
    uint64_t from;
    unsigned workers;
    const char *wrong = NULL;

    if (!pace__json_count(root, "from", &from) ||
        !read_rows(cJSON_GetObjectItemCaseSensitive(root, "rows"), rows, &workers))
        wrong = "it is not a step and the rows of each worker";
    else if (!pace__divisions_add(divisions, from, workers, rows))
        wrong = "out of memory";
    else
        note_gain(facts, from, cJSON_GetObjectItemCaseSensitive(root, "gain"));
    cJSON_Delete(root);
    free(copy);
    return wrong;
}

pace_status pace__shares_parse(const char *text, size_t size, const char *name, const pace_log *log,
                               pace__divisions *divisions, pace__shares_facts *facts)
{
    uint32_t rows[PACE__SHARES_MAX];
    const char *end = text + size, *behind, *wrong = NULL;
    pace__shares_facts found = {0};

    assert(divisions->count == 0);
    for (const char *line = text; !wrong && line < end && (behind = memchr(line, '\n', (size_t)(end - line)));
         line = behind + 1) {
        found.lines++;
        wrong = read_line(line, (size_t)(behind - line), rows, divisions, &found);
    }
    if (wrong) {
        pace__divisions_release(divisions);
        return pace_fail(log, PACE_BAD_DATA, "%s: line %" PRIu64 ": %s", name, found.lines, wrong);
    }
    if (facts)
        *facts = found;
    return PACE_OK;
}

bool pace__shares_are_whole(const char *path)
{
    char why[PACE__WHY_BYTES], last = '\n';
    int fd = pace__try_open(path, PACE__TO_READ, why);
    off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    bool read = end == 0 || pread(fd, &last, 1, end - 1) == 1;

    if (fd >= 0)
        close(fd);
    return read && last == '\n';
}

pace_status pace__shares_read(const char *path, const pace_log *log, pace__divisions *divisions,
                              pace__shares_facts *facts)
{
    char *text;
    size_t size;

    if (!pace__exists(path)) {
        if (facts)
            *facts = (pace__shares_facts){0};
        return PACE_OK;
    }
    pace_status status = pace__read_file(path, PACE__SHARES_BYTES_MAX, &text, &size, log);

    if (!status) {
        status = pace__shares_parse(text, size, path, log, divisions, facts);
        free(text);
    }
    return status;
}

/* --- writing --- */

static void write_line(pace__json *json, uint64_t from, unsigned workers, const uint32_t *rows, double gain)
{
    pace__json_raw(json, "{\"from\": ");
    pace__json_unsigned(json, from);
    pace__json_raw(json, ", \"rows\": [");
    for (unsigned i = 0; i < workers; i++) {
        pace__json_raw(json, i ? ", " : "");
        pace__json_unsigned(json, rows[i]);
    }
    pace__json_raw(json, "], \"gain\": ");
    pace__json_real(json, gain);
}

static pace_status is_full(const char *path, const pace_log *log)
{
    return pace_fail(log, PACE_IO, "%s: has %zu MiB of divisions, and may not become larger", path,
                     PACE__SHARES_BYTES_MAX >> 20);
}

/* With its sum and the end of the line; to be freed. NULL: out of memory. */
static char *line_of(uint64_t from, unsigned workers, const uint32_t *rows, double gain, uint32_t *before,
                     size_t *size)
{
    pace__json json = {0};

    write_line(&json, from, workers, rows, gain);
    size_t body = json.size;
    char *text = malloc(body + SUM_BYTES + 2);

    if (!text)
        return NULL;
    json = (pace__json){.text = text, .capacity = body};
    write_line(&json, from, workers, rows, gain);
    *before = sum_of(text, body, *before);
    snprintf(text + body, SUM_BYTES + 2, SUM_START "%08" PRIx32 "\"}\n", *before);
    *size = body + SUM_BYTES + 1;
    return text;
}

pace_status pace__shares_write(const char *path, const pace__divisions *divisions, const pace_log *log)
{
    char *text = NULL;
    size_t bytes = 0;
    uint32_t before = 0;

    for (size_t i = 0; i < divisions->count; i++) {
        size_t size = 0;
        char *line = line_of(divisions->from[i], divisions->workers, divisions->rows + i * divisions->workers,
                             0, &before, &size);
        char *longer = line ? realloc(text, bytes + size) : NULL;

        if (longer) {
            memcpy(longer + bytes, line, size);
            text = longer;
            bytes += size;
        }
        free(line);
        if (!longer) {
            free(text);
            return pace_fail(log, PACE_FAILED, "out of memory");
        }
    }
    pace_status status = bytes > PACE__SHARES_BYTES_MAX ? is_full(path, log)
                                                        : pace__write_file_atomically(path, text, bytes, log);

    free(text);
    return status;
}

/* Bytes of whole lines; what is behind them was cut short. */
static off_t whole_bytes(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char last;

    while (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n')
        end--;
    return end;
}

/* That the last whole line ends with; 0: there is none. */
static uint32_t last_sum(int fd, off_t end)
{
    char text[12] = "";

    if (end < 11 || pread(fd, text, 11, end - 11) != 11)
        return 0;
    return (uint32_t)strtoul(text, NULL, 16); /* up to the quote behind it */
}

/* Behind the whole lines. */
static pace_status append(int fd, const char *path, const char *line, size_t size, off_t end,
                          const pace_log *log)
{
    if ((size_t)end + size > PACE__SHARES_BYTES_MAX)
        return is_full(path, log);
    errno = ENOSPC; /* if less is written */
    if (ftruncate(fd, end) == 0 && write(fd, line, size) == (ssize_t)size && fsync(fd) == 0)
        return pace__sync_parent(path, log);
    return pace_fail(log, PACE_IO, "%s: cannot be written: %s", path, strerror(errno));
}

pace_status pace__shares_append(const char *path, uint64_t from, unsigned workers, const uint32_t *rows,
                                double gain, const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_APPEND, log, &fd);

    if (status)
        return status;
    off_t end = whole_bytes(fd);
    uint32_t before = last_sum(fd, end);
    size_t size = 0;
    char *line = line_of(from, workers, rows, gain, &before, &size);

    status = end < 0 ? pace_fail(log, PACE_IO, "%s: cannot be read: %s", path, strerror(errno))
             : line  ? append(fd, path, line, size, end, log)
                     : pace_fail(log, PACE_FAILED, "out of memory");
    if (status && end >= 0) /* where that fails, too, nothing is left to be done */
        status = ftruncate(fd, end) == 0 ? status : PACE_IO;
    free(line);
    close(fd);
    return status;
}

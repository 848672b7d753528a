#include "data/formats/encoding.h"
#include "data/input/input.h"
#include "data/input/input_files.h"
#include "data/input/tfrecord.h"

#include <ctype.h>
#include <paceline/prep.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DETECT_BYTES ((size_t)64 << 10)

static bool looks_like_tfrecord(const char *bytes, size_t size)
{
    uint64_t length;

    return size >= PACE__RECORD_HEADER && pace__record_length(bytes, &length) &&
           length < PACE__RECORD_BYTES_MAX;
}

/* `line` ends with a NUL. */
static bool looks_like_criteo(const char *line)
{
    unsigned fields = 1;

    for (; *line; line++)
        fields += *line == '\t';
    return fields == PACE__CRITEO_COLUMNS || fields == PACE__CRITEO_COLUMNS + 1;
}

/* A number, blanks, digits, ':', a number. */
static bool looks_like_svmlight(const char *line)
{
    char *end;

    strtod(line, &end);
    if (end == line || (*end != ' ' && *end != '\t'))
        return false;
    line = end + strspn(end, " \t");
    size_t digits = strspn(line, "0123456789");

    if (digits == 0 || line[digits] != ':')
        return false;
    line += digits + 1;
    strtod(line, &end);
    return end > line && (*end == '\0' || isspace((unsigned char)*end));
}

static bool has_no_row(const char *line)
{
    line += strspn(line, " \t\r");
    return *line == '\0' || *line == '#';
}

/* `text` is NUL-terminated and gets cut at its newlines. */
static int format_of_text(char *text)
{
    char *line = strsep(&text, "\n");

    if (looks_like_criteo(line) && !looks_like_svmlight(line))
        return PACE_FORMAT_CRITEO;
    while (has_no_row(line) && text)
        line = strsep(&text, "\n");
    return looks_like_svmlight(line) ? PACE_FORMAT_SVMLIGHT : PACE_FORMAT_AUTO;
}

pace_status pace__input_detect(const char *path, int *format, const pace_log *log)
{
    char bytes[DETECT_BYTES + 1];
    struct stat info;
    size_t size;

    /* Looking at a pipe would take its bytes away. */
    if (strcmp(path, "-") == 0 ||
        (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        *format = PACE_FORMAT_AUTO;
        return PACE_OK;
    }
    pace__input_facts facts;
    pace_status status = pace__input_check(path, &facts, log);

    if (!status)
        status = pace__input_read_head(path, bytes, DETECT_BYTES, &size, log);

    if (status)
        return status;
    bytes[size] = '\0';
    *format = looks_like_tfrecord(bytes, size) ? PACE_FORMAT_TFRECORD : format_of_text(bytes);
    return PACE_OK;
}

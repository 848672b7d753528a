/* Files that paceline has not made: what they look like, and who takes them. */
#include "data/input/input.h"
#include "data/input/input_files.h"
#include "files/open.h"
#include "score/inspect.h"

#include <paceline/prep.h>
#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 512

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);

    return length >= tail && strcmp(path + length - tail, end) == 0;
}

/* A header of JSON follows the eight bytes of its length. */
bool pace__looks_raw(const char *path)
{
    char first[9];
    FILE *file;

    if (ends_with(path, ".safetensors") || pace__open_stdio(path, PACE__TO_READ, NULL, &file))
        return false;
    bool raw = fread(first, sizeof first, 1, file) != 1 || first[8] != '{';

    fclose(file);
    return raw;
}

static bool begins_with(const char *bytes, size_t size, const char *start, size_t length)
{
    return size >= length && memcmp(bytes, start, length) == 0;
}

/* Line breaks, tabs and everything from the blank on, UTF-8 among it. */
static bool is_text(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte == 0x7f || (byte < ' ' && byte != '\n' && byte != '\r' && byte != '\t'))
            return false;
    }
    return true;
}

static const char *kind_of(const char *path, const char *bytes, size_t size)
{
    static const char *const clicks[] = {
        [PACE_FORMAT_CRITEO] = "a click log (criteo), which 'paceline prep clicks' takes",
        [PACE_FORMAT_SVMLIGHT] = "rows in svmlight format, which 'paceline prep clicks' takes",
        [PACE_FORMAT_TFRECORD] = "TFRecords, which 'paceline prep clicks' or 'prep images' take",
    };
    int format;

    if (size == 0)
        return "nothing: it is empty";
    if (begins_with(bytes, size, "\xff\xd8\xff", 3) || begins_with(bytes, size, "\x89PNG", 4))
        return "a picture, which 'paceline prep images' or 'predict' take";
    if (!pace__input_detect(path, &format, NULL) && format != PACE_FORMAT_AUTO)
        return clicks[format];
    if (!is_text(bytes, size))
        return "binary data of no kind that is known here";
    if (ends_with(path, ".csv") || ends_with(path, ".tsv"))
        return "a table, which 'paceline prep clicks' or 'prep reviews' take";
    bytes += pace__bom_size(bytes, size);
    return bytes[strspn(bytes, " \r\n\t")] == '{' ? "JSON lines, which 'paceline prep reviews' takes"
                                                  : "a text";
}

pace_status pace__refuse_raw(const char *path, const pace_log *log)
{
    char head[HEAD_BYTES + 1];
    size_t size;
    pace_status status = pace__input_read_head(path, head, HEAD_BYTES, &size, log);

    if (status)
        return status;
    head[size] = '\0';
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: neither a data set nor a run, checkpoint or model of paceline: it looks like %s",
                     path, kind_of(path, head, size));
}

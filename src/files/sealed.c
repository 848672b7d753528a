#include "files/sealed.h"

#include "files/file.h"
#include "files/sha256.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OPENING      ",\n  \"checksum\": \""
#define CLOSING      "\"\n}\n"
#define LAST_BEFORE  "\"model_sha256\": \""
#define ENDING_BYTES (sizeof OPENING - 1 + PACE__SHA256_HEX - 1 + sizeof CLOSING - 1)
#define COMMENT      "# checksum: "
#define COMMENT_SIZE (sizeof COMMENT - 1 + PACE__SHA256_HEX - 1 + 1)

/* What follows a text of that size; NULL when out of memory. */
static char *make_ending(const char *text, size_t size, const char *opening, const char *closing)
{
    char hex[PACE__SHA256_HEX];
    pace__sha256 *sha = pace__sha256_create();

    if (!sha)
        return NULL;
    pace__sha256_update(sha, text, size);
    pace__sha256_finish(sha, hex);
    return pace__format("%s%s%s", opening, hex, closing);
}

static pace_status write_with(const char *path, const char *text, size_t size, char *ending,
                              const pace_log *log)
{
    char *whole = ending ? pace__format("%.*s%s", (int)size, text, ending) : NULL;
    pace_status status = whole ? pace__write_file_atomically(path, whole, size + strlen(ending), log)
                               : pace_fail(log, PACE_FAILED, "%s: out of memory", path);

    free(whole);
    free(ending);
    return status;
}

pace_status pace__write_sealed(const char *path, const char *text, size_t size, const pace_log *log)
{
    return write_with(path, text, size, make_ending(text, size, OPENING, CLOSING), log);
}

pace_status pace__write_sealed_lines(const char *path, const char *text, size_t size, const pace_log *log)
{
    return write_with(path, text, size, make_ending(text, size, COMMENT, "\n"), log);
}

/* Known by its digits as well: damage before them must not make it a text that never had any. Texts of before end with
 * the digits of a model. */
static bool has_checksum(const char *text, size_t size)
{
    size_t name = strlen(LAST_BEFORE), tail = sizeof CLOSING - 1 + PACE__SHA256_HEX - 1;
    const char *digits = size >= name + tail ? text + size - tail : NULL;

    return strstr(text, OPENING) || (digits && strspn(digits, "0123456789abcdef") == PACE__SHA256_HEX - 1 &&
                                     memcmp(digits - name, LAST_BEFORE, name) != 0);
}

static bool ends_with(const char *text, size_t size, const char *opening, const char *closing, size_t bytes)
{
    char *ending = size >= bytes ? make_ending(text, size - bytes, opening, closing) : NULL;
    bool same = ending && memcmp(text + size - bytes, ending, bytes) == 0;

    free(ending);
    return same;
}

/* Whether it has no checksum, or the right one. */
static bool is_whole(const char *text, size_t size)
{
    if (strlen(text) == size && !has_checksum(text, size))
        return true;
    return ends_with(text, size, OPENING, CLOSING, ENDING_BYTES);
}

bool pace__has_sealed_lines(const char *path, size_t size_max)
{
    char *text;
    size_t size;

    if (pace__read_file(path, size_max, &text, &size, NULL))
        return false;
    bool whole = ends_with(text, size, COMMENT, "\n", COMMENT_SIZE);

    free(text);
    return whole;
}

pace_status pace__read_sealed(const char *path, size_t size_max, char **text, size_t *size,
                              const pace_log *log)
{
    char *found;
    pace_status status = pace__read_file(path, size_max, &found, size, log);

    if (!status && !is_whole(found, *size)) {
        free(found);
        status = pace_fail(log, PACE_BAD_DATA,
                           "%s: damaged: it is not what was written, by the checksum at its end", path);
    }
    if (!status)
        *text = found;
    return status;
}

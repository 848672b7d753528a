#include "data/picture/class_names.h"

#include "data/text/tokens.h"
#include "files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* --- what a name may be --- */

/* ASCII's control characters, and those that two bytes make: U+0080 to U+009F. */
static bool has_control(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)name[i], next = i + 1 < size ? (unsigned char)name[i + 1] : 0;

        if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next < 0xa0))
            return true;
    }
    return false;
}

const char *pace__class_name_fault(const char *name, size_t size)
{
    if (size == 0)
        return "is empty";
    if (size > PACE__CLASS_NAME_BYTES_MAX)
        return "is too long for the name of a class";
    if (pace__utf8_find_invalid(name, size) != size)
        return "is no UTF-8";
    return has_control(name, size) ? "has a control character" : NULL;
}

/* Cuts the copy of the text into lines. */
static pace_status cut(pace__class_names *names, size_t size, const char *where, const pace_log *log)
{
    for (size_t at = 0, end; at < size; at = end + 1) {
        char *line = names->text + at, *newline = memchr(line, '\n', size - at);

        end = newline ? (size_t)(newline - names->text) : size;
        const char *fault = pace__class_name_fault(line, end - at);

        if (fault)
            return pace_fail(log, PACE_BAD_DATA, "%s: line %u of the class names %s", where, names->count + 1,
                             fault);
        names->text[end] = '\0';
        names->items[names->count++] = line;
    }
    return PACE_OK;
}

/* By name, equal ones by their place: pointers into one text. */
static int by_name(const void *left, const void *right)
{
    const char *a = *(char *const *)left, *b = *(char *const *)right;
    int order = strcmp(a, b);

    return order ? order : (a > b) - (a < b);
}

static uint32_t line_of(const pace__class_names *names, const char *item)
{
    uint32_t line = 0;

    while (names->items[line] != item)
        line++;
    return line + 1;
}

static pace_status check_distinct(const pace__class_names *names, const char *where, const pace_log *log)
{
    char **sorted = malloc(names->count * sizeof *sorted);
    pace_status status = PACE_OK;

    if (!sorted)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memcpy(sorted, names->items, names->count * sizeof *sorted);
    qsort(sorted, names->count, sizeof *sorted, by_name);
    for (uint32_t i = 1; i < names->count && !status; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = pace_fail(log, PACE_BAD_DATA, "%s: lines %u and %u of the class names are the same: %s",
                               where, line_of(names, sorted[i - 1]), line_of(names, sorted[i]), sorted[i]);
    }
    free(sorted);
    return status;
}

static size_t count_lines(const char *text, size_t size)
{
    size_t count = size > 0 && text[size - 1] != '\n';

    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n';
    return count;
}

pace_status pace__class_names_parse(const char *text, size_t size, const char *where, const pace_log *log,
                                    pace__class_names *names)
{
    size_t count = count_lines(text, size);

    if (count < 2 || count > PACE__CLASSES_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: has the names of %zu classes, but 2 to %d are possible",
                         where, count, PACE__CLASSES_MAX);
    pace__class_names found = {.items = malloc(count * sizeof *found.items), .text = malloc(size + 1)};
    pace_status status = PACE_OK;

    if (found.items && found.text) {
        memcpy(found.text, text, size);
        found.text[size] = '\0';
        status = cut(&found, size, where, log);
    } else {
        status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (!status)
        status = check_distinct(&found, where, log);
    if (status)
        pace__class_names_release(&found);
    else
        *names = found;
    return status;
}

void pace__class_names_release(pace__class_names *names)
{
    free(names->items);
    free(names->text);
    *names = (pace__class_names){0};
}

/* --- as a text --- */

char *pace__class_names_text(const pace__class_names *names, size_t *size)
{
    size_t bytes = 0, at = 0;

    for (uint32_t i = 0; i < names->count; i++)
        bytes += strlen(names->items[i]) + 1;
    char *text = malloc(bytes + 1);

    if (!text)
        return NULL;
    for (uint32_t i = 0; i < names->count; i++) {
        size_t length = strlen(names->items[i]);

        memcpy(text + at, names->items[i], length);
        text[at + length] = '\n';
        at += length + 1;
    }
    text[at] = '\0';
    *size = at;
    return text;
}

char *pace__class_names_table(const pace__class_names *names, size_t *width)
{
    size_t longest = 1;

    for (uint32_t i = 0; i < names->count; i++)
        longest = strlen(names->items[i]) > longest ? strlen(names->items[i]) : longest;
    char *table = calloc(names->count, longest);

    for (uint32_t i = 0; table && i < names->count; i++)
        memcpy(table + i * longest, names->items[i], strlen(names->items[i]));
    *width = longest;
    return table;
}

/* Chained over the names, each with its zero, so that no text has to be made. */
uint64_t pace__class_names_checksum(const pace__class_names *names)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < names->count; i++)
        sum = XXH3_64bits_withSeed(names->items[i], strlen(names->items[i]) + 1, sum);
    return sum;
}

/* --- in a data set --- */

pace_status pace__class_names_write(const char *directory, const pace__class_names *names,
                                    const pace_log *log)
{
    size_t size = 0;
    char *path = pace__format("%s/" PACE__CLASS_NAMES_FILE, directory);
    char *text = pace__class_names_text(names, &size);
    pace_status status = path && text ? pace__write_file_atomically(path, text, size, log)
                                      : pace_fail(log, PACE_FAILED, "out of memory");

    free(text);
    free(path);
    return status;
}

static pace_status read_path(const char *path, const pace__encoding *encoding, const pace_log *log,
                             pace__class_names *names)
{
    char *text;
    size_t size;
    pace_status status = pace__read_file(path, PACE__CLASS_NAMES_BYTES_MAX, &text, &size, log);

    if (status)
        return status;
    status = pace__class_names_parse(text, size, path, log, names);
    free(text);
    if (status)
        return status;
    uint64_t checksum = pace__class_names_checksum(names);

    if (names->count == encoding->classes && checksum == encoding->class_names)
        return PACE_OK;
    status = pace_fail(log, PACE_BAD_DATA,
                       "%s: not the classes of the data beside it: %u with the checksum %016" PRIx64
                       ", but the data has %u and %016" PRIx64,
                       path, names->count, checksum, encoding->classes, encoding->class_names);
    pace__class_names_release(names);
    return status;
}

pace_status pace__class_names_read(const char *directory, const pace__encoding *encoding, const pace_log *log,
                                   pace__class_names *names)
{
    char *path = pace__format("%s/" PACE__CLASS_NAMES_FILE, directory);
    pace_status status =
        path ? read_path(path, encoding, log, names) : pace_fail(log, PACE_FAILED, "out of memory");

    free(path);
    return status;
}

/* --- two lists --- */

#define LIST_SHOWN 5

static bool has_name(const pace__class_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return true;
    }
    return false;
}

/* "good, bad, ..." of those that `other` has not; "none". Returns how many it has found. */
static unsigned list_own(const pace__class_names *names, const pace__class_names *other, char *text,
                         size_t size)
{
    unsigned found = 0;

    snprintf(text, size, "none");
    for (uint32_t i = 0; i < names->count && found <= LIST_SHOWN; i++) {
        size_t used = found ? strlen(text) : 0;

        if (has_name(other, names->items[i]))
            continue;
        snprintf(text + used, size - used, "%s%.60s", found ? ", " : "",
                 found == LIST_SHOWN ? "..." : names->items[i]);
        found++;
    }
    return found;
}

pace_status pace__class_names_fit(const pace__class_names *model, const pace__class_names *data,
                                  const char *set, const pace_log *log)
{
    char only_model[(LIST_SHOWN + 1) * 64], only_data[sizeof only_model];
    uint32_t first = 0;

    while (first < model->count && first < data->count &&
           strcmp(model->items[first], data->items[first]) == 0)
        first++;
    if (first == model->count && first == data->count)
        return PACE_OK;
    unsigned others = list_own(model, data, only_model, sizeof only_model);

    others += list_own(data, model, only_data, sizeof only_data);
    if (others == 0 && model->count == data->count)
        return pace_fail(
            log, PACE_BAD_DATA,
            "%s: its classes are those of the model in another order: class %u is %s there, and %s here; "
            "prepare the data with --like",
            set, first, model->items[first], data->items[first]);
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: the model knows other classes than this data set has: only the model knows %s; "
                     "only the data set "
                     "has %s; prepare the data with --like",
                     set, only_model, only_data);
}

#include "model/cnn/pretrained_map.h"

#include "files/file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

/* What can stand in a message, and in the name of a tensor. */
static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] < 0x20 && !strchr(BLANKS "\n", text[i])) || text[i] == 0x7f || !text[i])
            return false;
    }
    return true;
}

static pace_status add_pair(pace__name_map *map, char *line, unsigned number, const char *path,
                            const pace_log *log)
{
    char *rest = NULL, *ours = strtok_r(line, BLANKS, &rest), *theirs = strtok_r(NULL, BLANKS, &rest);

    if (!ours || *ours == '#')
        return PACE_OK;
    if (!theirs || strtok_r(NULL, BLANKS, &rest))
        return pace_fail(log, PACE_BAD_DATA, "%s:%u: not two names: the network's and the file's", path,
                         number);
    if (pace__name_map_find(map, ours))
        return pace_fail(log, PACE_BAD_DATA, "%s:%u: %s is named a second time", path, number, ours);
    if (map->count == PACE__NAME_MAP_PAIRS_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s:%u: more than %d names: no network has so many tensors",
                         path, number, PACE__NAME_MAP_PAIRS_MAX);
    map->pairs[map->count++] = (pace__name_pair){ours, theirs, number};
    return PACE_OK;
}

static size_t count_lines(const char *text, size_t size)
{
    size_t lines = 1;

    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

static pace_status parse(pace__name_map *map, size_t size, const char *path, const pace_log *log)
{
    pace_status status = PACE_OK;
    unsigned number = 0;
    char *line = map->text;

    map->pairs = malloc(count_lines(map->text, size) * sizeof *map->pairs);
    if (!map->pairs)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (!is_plain(map->text, size))
        return pace_fail(log, PACE_BAD_DATA, "%s: not a text: it has control characters", path);
    while (line && !status) {
        char *end = strchr(line, '\n');

        if (end)
            *end = '\0';
        status = add_pair(map, line, ++number, path, log);
        line = end ? end + 1 : NULL;
    }
    return status;
}

pace_status pace__name_map_read(const char *path, const pace_log *log, pace__name_map *map)
{
    pace__name_map found = {0};
    size_t size = 0;
    pace_status status = pace__read_file(path, PACE__NAME_MAP_BYTES_MAX, &found.text, &size, log);

    if (!status)
        status = parse(&found, size, path, log);
    if (status)
        pace__name_map_release(&found);
    else
        *map = found;
    return status;
}

void pace__name_map_release(pace__name_map *map)
{
    free(map->pairs);
    free(map->text);
    *map = (pace__name_map){0};
}

const pace__name_pair *pace__name_map_find(const pace__name_map *map, const char *ours)
{
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].ours, ours) == 0)
            return &map->pairs[i];
    }
    return NULL;
}

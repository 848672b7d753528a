#include "run/holder.h"

#include "base/json.h"
#include "files/file.h"
#include "files/open.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOLDER_BYTES_MAX ((size_t)16 << 10)

static void put(pace__json *json, const pace__leftovers *own)
{
    pace__json_raw(json, "{\"process\": ");
    pace__json_integer(json, getpid());
    pace__json_raw(json, ", \"host\": ");
    pace__json_string(json, own->host);
    pace__json_raw(json, ", \"job\": ");
    pace__json_unsigned(json, own->job);
    pace__json_raw(json, ", \"ranks\": ");
    pace__json_integer(json, own->ranks);
    pace__json_raw(json, ", \"session\": ");
    pace__json_string(json, own->session);
    pace__json_raw(json, "}\n");
}

void pace__holder_write(const char *path)
{
    pace__leftovers own = pace__leftovers_of_this_job();
    char text[HOLDER_BYTES_MAX];
    pace__json json = {.text = text, .capacity = sizeof text};

    put(&json, &own);
    /* Not synced: a machine that stops has no holders any more. */
    int fd;

    if (json.size > json.capacity || pace__open(path, PACE__TO_CREATE, NULL, &fd))
        return;
    pace__write_all(fd, text, json.size, path, NULL);
    close(fd);
}

/* 0 if it is none, or above INT_MAX. */
static int number_of(const cJSON *object, const char *name)
{
    uint64_t value;

    return pace__json_count(object, name, &value) && value <= INT_MAX ? (int)value : 0;
}

static void copy_text(const cJSON *object, const char *name, char *text, size_t room)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    snprintf(text, room, "%s", value ? value : "");
}

pace__holder pace__holder_read(const char *path)
{
    pace__holder found = {0};
    char *text;
    size_t size;

    if (!pace__exists(path) || pace__read_file(path, HOLDER_BYTES_MAX, &text, &size, NULL))
        return found;
    cJSON *object = cJSON_Parse(text);

    uint64_t number;

    found.process = number_of(object, "process");
    found.leftovers.job = pace__json_count(object, "job", &number) ? number : 0;
    found.leftovers.ranks = number_of(object, "ranks");
    copy_text(object, "host", found.leftovers.host, sizeof found.leftovers.host);
    copy_text(object, "session", found.leftovers.session, sizeof found.leftovers.session);
    cJSON_Delete(object);
    free(text);
    return found;
}

const char *pace__holder_name(const pace__holder *holder, char text[PACE__HOLDER_TEXT])
{
    if (holder->process)
        snprintf(text, PACE__HOLDER_TEXT, "process %ld on %s", holder->process, holder->leftovers.host);
    else
        snprintf(text, PACE__HOLDER_TEXT, "another process");
    return text;
}

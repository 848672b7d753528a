/*
 * directory.h - what is in a directory, in the order of the names: the system lists them in any.
 *
 *     pace__dir_list list;
 *     status = pace__dir_read("photos", log, &list);
 *     for (size_t i = 0; !status && i < list.count; i++)
 *         if (list.items[i].directory) ...
 *     pace__dir_release(&list);                              // only after success
 */
#ifndef DATA_INPUT_DIRECTORY_H
#define DATA_INPUT_DIRECTORY_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>

/* Neither file nor directory: a link that leads nowhere, a pipe and the like. */
typedef struct pace__dir_entry {
    char *name;
    bool file, directory;
    bool link; /* to such a one */
} pace__dir_entry;

typedef struct pace__dir_list {
    pace__dir_entry *items; /* by name; those that are not hidden */
    size_t count;
    size_t hidden; /* how many were left out */
} pace__dir_list;

/* Links are followed. */
pace_status pace__dir_read(const char *path, const pace_log *log, pace__dir_list *list);
void pace__dir_release(pace__dir_list *list);

#endif

/*
 * stage_files.h - the directory with local copies of parts, which all processes of a host share. Internal to data.
 *
 *     DIR/paceline-stage-1000/            1000: the user; nobody else may look into it
 *         lock                            who holds it, copies; the others use what is there
 *         part-(32 digits).h5             a whole copy; its name is that of what it holds (pace__part_content)
 *         part-(32 digits).h5.tmp-...     one that is being written (files/new_file.h)
 *
 * 1. A copy has its name when all of it is on disk and was compared with its sums. What else is there was left by somebody
 *    who was killed, and nobody locks it.
 * 2. Who reads a copy holds a shared lock on it. Only what nobody holds is removed to make room.
 * 3. Only files of such names are ever removed, and only regular ones; a link in their place is left.
 */
#ifndef DATA_STAGE_STAGE_FILES_H
#define DATA_STAGE_STAGE_FILES_H

#include "data/stage/stage_plan.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Of the directory below DIR, and of a copy in it; to be freed. NULL when out of memory. */
char *pace__stage_directory(const char *parent);
char *pace__stage_copy_path(const char *directory, const char *name);

/* Makes it, if need be; a dry one only looks. PACE_IO: DIR is missing or read-only, or what has its name is not a directory of this
 * user. */
pace_status pace__stage_make(const char *parent, const char *directory, bool dry, const pace_log *log);

/* Does not wait; closing it gives it back. *fd is -1: another process has it. PACE_IO: nobody can have it, since it cannot be made,
 * or what has its name is no file; a link is not followed. */
pace_status pace__stage_lock(const char *directory, const pace_log *log, int *fd);

/* A whole copy, open and locked for reading; -1: there is none of that size. */
int pace__stage_open_copy(const char *path, uint64_t bytes);
bool pace__stage_has_copy(const char *path, uint64_t bytes);

/* Removes it if nobody uses it. False: it is still there. */
bool pace__stage_remove(const char *path);
/* Removes it if it is the file that is open as `fd`, whoever uses it: it is damaged. False: somebody else has. */
bool pace__stage_remove_damaged(const char *path, int fd);

/* Removes lock and directory, if nothing else is left in it and nobody copies. */
void pace__stage_remove_directory(const char *directory);

/* What lies there. */
typedef struct pace__stage_list {
    uint32_t count;
    pace__stage_file *files; /* (count) */
    char **paths;            /* (count) */
    uint64_t bytes;          /* of all copies, those that are being written, too */
} pace__stage_list;

/* Lists whole copies; what dead copiers have left is removed, if `sweep`. A directory that is missing has none. */
bool pace__stage_scan(const char *directory, bool sweep, pace__stage_list *list);
void pace__stage_list_release(pace__stage_list *list);
uint64_t pace__stage_list_bytes(const pace__stage_list *list); /* of the whole ones */

/* --- room --- */

typedef struct pace__stage_place {
    const char *parent, *directory;
    uint64_t bytes_max; /* of all copies there; 0: as the disk allows */
    char **own;         /* (own_count): paths of this data set's copies, by pace__stage_sort */
    uint32_t own_count;
} pace__stage_place;

void pace__stage_sort(char **paths, uint32_t count);

/* Bytes that may be added, and the copies of other data sets there. False: the disk cannot be asked. */
bool pace__stage_look(const pace__stage_place *place, bool sweep, uint64_t *room, pace__stage_list *others);

/* Removes copies that nobody uses, so that there is room for so many bytes, if that can be (stage_plan.h). */
void pace__stage_make_room(pace__stage_list *others, uint64_t room, uint64_t bytes);

#endif

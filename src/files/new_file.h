/*
 * new_file.h - a file that appears whole or not at all: readers see the old one or the new one.
 *
 *     pace__new_file file;
 *     status = pace__new_file_begin(path, log, &file);
 *     if (status)
 *         return status;
 *     status = pace__write_all(file.fd, bytes, size, path, log);
 *     return pace__new_file_end(&file, status);             // it has its name, or there is nothing of it
 *
 * 1. Until it is whole it is called PATH.tmp-XXXXXXXXXXXXXXXX, a name that nobody can know before: it is made by this
 *    process, never found, so a file or link that somebody has put there is neither followed nor cut.
 * 2. Its writer holds a lock on it. One that nobody locks has a dead writer, and may be removed.
 * 3. It has its name only when its bytes are on disk, and has succeeded only when its name is.
 */
#ifndef FILES_NEW_FILE_H
#define FILES_NEW_FILE_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pace__new_file {
    const char *path;
    char *temporary;
    int fd;
    const pace_log *log;
} pace__new_file;

/* `path` must outlive it. Failures are PACE_IO. */
pace_status pace__new_file_begin(const char *path, const pace_log *log, pace__new_file *file);

/* `status` is what became of the writing, and is returned if it is not PACE_OK: then nothing is kept. */
pace_status pace__new_file_end(pace__new_file *file, pace_status status);

/* For a library that opens and locks the temporary file by its name, once it is made; and when that has closed it. */
void pace__new_file_unlock(const pace__new_file *file);
void pace__new_file_lock(const pace__new_file *file);

/* Removes what dead writers of this path have left, without a word. */
void pace__new_file_sweep(const char *path);

/* A number unlike that of any other process, here or on another host that shares the directory. */
uint64_t pace__draw_number(void);

/* Is this the name that a file has until it is whole? *stem is how many bytes of it are the file's own name. */
bool pace__is_temporary_name(const char *name, size_t *stem);

#endif

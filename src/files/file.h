/*
 * file.h - whole reads and writes with messages, and files that appear complete or not at all.
 */
#ifndef FILES_FILE_H
#define FILES_FILE_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Full-length I/O: a short count is an error that names `path` and the offset. */
pace_status pace__pread_all(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path,
                            const pace_log *log);
pace_status pace__pwrite_all(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path,
                             const pace_log *log);
pace_status pace__write_all(int fd, const void *buffer, size_t bytes, const char *path, const pace_log *log);

/* Creates DIR and its missing parents. An existing directory is fine. */
pace_status pace__make_dirs(const char *path, const pace_log *log);

/* Removes a file or a whole tree; a missing one is fine. */
pace_status pace__remove_tree(const char *path, const pace_log *log);

bool pace__exists(const char *path);

/* fsync of the directory that holds `path`, so that a rename in it is durable. */
pace_status pace__sync_parent(const char *path, const pace_log *log);

/* Writes bytes to PATH.tmp, syncs, renames to PATH, syncs the directory: readers see the old file or the new
 * one. */
pace_status pace__write_file_atomically(const char *path, const void *bytes, size_t size,
                                        const pace_log *log);

/* The whole file, with a NUL behind it, to be freed by the caller. Files above `size_max` are PACE_BAD_DATA.
 */
pace_status pace__read_file(const char *path, size_t size_max, char **bytes, size_t *size,
                            const pace_log *log);

/* snprintf into a new string; NULL when out of memory. */
char *pace__format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

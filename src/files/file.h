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

/* PACE_IO if ".." leads out of a directory that does not exist: whoever looks there finds nothing, and finds another place
 * once that directory is made. To be asked before what is at a path is looked at, if what is missing will be made. */
pace_status pace__check_way(const char *path, const pace_log *log);

/* Creates DIR and its missing parents, if pace__check_way lets it. An existing directory is fine. */
pace_status pace__make_dirs(const char *path, const pace_log *log);

/* The same in a directory of ours: a link to another one is PACE_IO, so that nothing is written elsewhere. One that
 * another process takes away meanwhile, because it gives it a name, is made again. */
pace_status pace__make_own_dir(const char *path, const pace_log *log);

/* "." and "..", which every directory has; and has one, below `parent` or AT_FDCWD, nothing else? A link has not. */
bool pace__is_dots(const char *name);
bool pace__is_empty_at(int parent, const char *name);

/* Removes a file or a whole tree; a missing one is fine. Links are removed, never followed. */
pace_status pace__remove_tree(const char *path, const pace_log *log);

/* The same below a directory (or AT_FDCWD), and all that is in a directory, `but` for an entry, or NULL. False: errno. */
bool pace__remove_at(int parent, const char *name);
bool pace__clear_directory(int fd, const char *but);

bool pace__exists(const char *path);

/* PACE_NO_INPUT, with the reason, unless what is in the directory can be looked for: to be asked before something is
 * said to be missing from it. In a file there is nothing to look for, and no reason to complain. */
pace_status pace__check_directory(const char *path, const pace_log *log);

/* fsync of the directory that holds `path`, so that a rename in it is durable. */
pace_status pace__sync_parent(const char *path, const pace_log *log);

/* A file of these bytes, as new_file.h has it: readers see the old file or the new one. */
pace_status pace__write_file_atomically(const char *path, const void *bytes, size_t size,
                                        const pace_log *log);

/* The whole file, with a NUL behind it, to be freed by the caller. Files above `size_max` are PACE_BAD_DATA; open.h has
 * the rest. */
pace_status pace__read_file(const char *path, size_t size_max, char **bytes, size_t *size,
                            const pace_log *log);

/* snprintf into a new string; NULL when out of memory. */
char *pace__format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

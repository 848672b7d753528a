/*
 * sealed.h - a JSON object that ends with a checksum of itself, as summary.json does:
 *
 *     {
 *       "steps": 1200,
 *       "checksum": "(64 digits)"
 *     }
 *
 * The checksum is the SHA-256 of everything before the comma in front of it. A text without one, of an earlier
 * version or another program, is taken as it is.
 */
#ifndef FILES_SEALED_H
#define FILES_SEALED_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes the object whose members are `text`, which has neither its closing brace nor a comma behind it. */
pace_status pace__write_sealed(const char *path, const char *text, size_t size, const pace_log *log);

/* The same of lines in which # begins a comment, as config.yaml: the last one is "# checksum: (64 digits)", of all before.
 * Whoever changes a line by hand breaks it, and may: it says that the file is as it was written. */
pace_status pace__write_sealed_lines(const char *path, const char *text, size_t size, const pace_log *log);
bool pace__has_sealed_lines(const char *path, size_t size_max);

/* As pace__read_file; PACE_BAD_DATA, too, if the text is not what was sealed. */
pace_status pace__read_sealed(const char *path, size_t size_max, char **text, size_t *size,
                              const pace_log *log);

#endif

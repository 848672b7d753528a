/*
 * image_names.h - the names of a data set's pictures: DIR/images.txt, one per line, line i (from 0) is the
 * picture whose `source` is i. Of a folder of pictures it is the file's path, of another source what tells
 * its place there. There may be millions of them: only those that are asked for are kept.
 *
 *     char *names[2];
 *     status = pace__image_names_read(directory, (uint32_t[]){7, 3}, 2, log, names);
 *     puts(names[0]);
 *     pace__image_names_free(names, 2);
 */
#ifndef DATA_PICTURE_IMAGE_NAMES_H
#define DATA_PICTURE_IMAGE_NAMES_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__IMAGE_NAMES_FILE     "images.txt"
#define PACE__IMAGE_NAME_BYTES_MAX 8192

/*
 * names[i] is the line `sources[i]`, without its end; in any order, some perhaps the same. One pass over the
 * file up to the last of them. A line that is not there, or longer than PACE__IMAGE_NAME_BYTES_MAX, is
 * PACE_BAD_DATA. Nothing is set if it fails.
 */
pace_status pace__image_names_read(const char *directory, const uint32_t *sources, size_t count,
                                   const pace_log *log, char **names);
void pace__image_names_free(char **names, size_t count); /* not the array itself */

#endif

/*
 * picture_files.h - the files that the words of a command stand for: each file itself, whatever it is called,
 * and all files of a folder and the folders in it, sorted by name, that are called as pictures are
 * (pace__is_picture_name) and are not hidden. Internal to score.
 */
#ifndef SCORE_PICTURE_FILES_H
#define SCORE_PICTURE_FILES_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <stddef.h>

#define PACE__FOLDERS_DEEP_MAX 32 /* less than the links that the system follows */

typedef struct pace__picture_files {
    size_t count;
    char **paths;
    /* private */
    size_t room;
    size_t skipped; /* files in folders that are called otherwise */
    char *example;  /* of them */
} pace__picture_files;

/* PACE_NO_INPUT for what is not there, or a folder without pictures; PACE_USAGE for a data set. */
pace_status pace__picture_files_find(const pace_texts *words, const pace_log *log,
                                     pace__picture_files *files);
void pace__picture_files_release(pace__picture_files *files); /* a zeroed one is allowed */

#endif

/*
 * input_files.h - what can be told of input files before they are read, and by looking at them again.
 */
#ifndef DATA_INPUT_INPUT_FILES_H
#define DATA_INPUT_INPUT_FILES_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

bool pace__is_standard_input(const char *path);

typedef struct pace__input_facts {
    bool regular;   /* false: a pipe, a device, standard input: its size says nothing, it is read only once */
    uint64_t bytes; /* on disk; 0 if it is not regular */
} pace__input_facts;

/* PACE_NO_INPUT if it is not there, not readable or a directory. Standard input is always there. */
pace_status pace__input_check(const char *path, pace__input_facts *facts, const pace_log *log);

/* How the parts of a data set are called, from 0 on. */
#define PACE__PART_NAME "part-%05u.h5"

/* True if the directory looks like a data set (has a first part): what prep has made is no input of its own. */
bool pace__is_store(const char *directory);
/* And if it has lost that one: it still has its checksums. */
bool pace__was_store(const char *directory);

/* Whether an open regular file is neither compressed nor empty. */
bool pace__input_is_plain(int fd);

/* The first bytes of a regular file, decompressed: *size < room only if that is all of it. */
pace_status pace__input_read_head(const char *path, char *bytes, size_t room, size_t *size,
                                  const pace_log *log);

/* Bytes of the byte order mark that a text may begin with: 3 or 0. */
static inline size_t pace__bom_size(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Newlines among these bytes. */
static inline uint64_t pace__count_lines(const char *bytes, size_t size)
{
    uint64_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}

/* The 1-based line that holds the byte at `offset`, by reading the file from its start; 0 if it cannot be
 * told: the file is not regular, or not that long. */
uint64_t pace__line_at(const char *path, uint64_t offset);

#endif

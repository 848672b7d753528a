/*
 * words_file.h - the file of a generation of counted words, and a merge of many of them. For words*.c, and
 * for their tests.
 *
 * The file: pace__words_header, then the words by (hash, spelling), each an entry of PACE__WORDS_ENTRY bytes,
 * {hash, local id, count, size} without gaps, and its spelling. The header is written last: without it a file
 * is no such file. What is read is checked: sizes, limits, the order, and that the hash is that of the
 * spelling.
 */
#ifndef PREP_REVIEWS_WORDS_FILE_H
#define PREP_REVIEWS_WORDS_FILE_H

#include "data/text/vocabulary.h"

#define PACE__WORDS_MAGIC     UINT64_C(0x316473726f576350)
#define PACE__WORDS_ENTRY     17
#define PACE__WORDS_ENTRY_MAX (PACE__WORDS_ENTRY + PACE__TOKEN_BYTES_MAX)
#define PACE__WORDS_RANGES    256

typedef struct pace__words_header {
    uint64_t magic;
    uint64_t words;
    uint64_t range_at[PACE__WORDS_RANGES + 1]; /* where hashes with this first byte begin; the file's size */
} pace__words_header;

/* A word, and what is known of it. The text is the caller's, or valid until the next one is asked for. */
typedef struct pace__counted {
    pace__word word;
    uint64_t hash;
    uint32_t local;
} pace__counted;

/* --- writing --- */

typedef struct pace__words_writer {
    int fd;
    const char *path; /* the caller's */
    const pace_log *log;
    char *buffer;
    size_t used;
    uint64_t written; /* bytes in front of the buffer */
    uint64_t last_hash;
    pace__words_header header;
} pace__words_writer;

pace_status pace__words_writer_open(pace__words_writer *writer, const char *path, const pace_log *log);
/* In the order of (hash, spelling), counts below 2^32. */
pace_status pace__words_writer_put(pace__words_writer *writer, const pace__counted *word);
/* Completes the file; *bytes is its size. To be called once if open succeeded, also after a failed put; then
 * `status` is what failed, and the file is left without a header. */
pace_status pace__words_writer_close(pace__words_writer *writer, pace_status status, uint64_t *bytes);

/* --- reading --- */

/* Checks it against the file's size. */
pace_status pace__words_header_read(const char *path, pace__words_header *header, const pace_log *log);

/* The words of one partition of many files, each once, in the order of (hash, spelling). */
typedef struct pace__words_merge pace__words_merge;

pace_status pace__words_merge_open(const char *const *paths, size_t count, uint32_t partition,
                                   uint32_t partitions, const pace_log *log, pace__words_merge **merge);
void pace__words_merge_free(pace__words_merge *merge); /* NULL is allowed */
/* *found is false behind the last one. The count is the sum over the files, `local` that of one of them. */
pace_status pace__words_merge_next(pace__words_merge *merge, pace__counted *word, bool *found);

#endif

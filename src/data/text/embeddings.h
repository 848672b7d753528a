/*
 * embeddings.h - word vectors from elsewhere, in the text format of GloVe, fastText and word2vec.
 *
 * A line is a word and as many numbers as the vectors have dimensions, with blanks or tabs between them:
 *
 *     the 0.418 0.24968 -0.41242
 *
 * A first line of two whole numbers (word2vec's and fastText's: words, dimensions) is checked and passed
 * over, and so are empty lines. The numbers are the last ones of the line, so a word may have blanks in it,
 * as a few of GloVe's do; but a line whose word would then end in a number has too many. An empty word is
 * left out. The file may be gzip or zstd, and of any size: it is read as a stream, on the calling thread.
 */
#ifndef DATA_TEXT_EMBEDDINGS_H
#define DATA_TEXT_EMBEDDINGS_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Calls `found` for each line, in their order, with the word as it is written there (size bytes, no NUL) and
 * its `dimensions` numbers, all finite; a word that occurs twice comes twice. What `found` returns other than
 * PACE_OK ends the reading; it has then said why. PACE_BAD_DATA names file and line.
 */
pace_status pace__embeddings_read(const char *path, uint32_t dimensions,
                                  pace_status (*found)(void *user, const char *word, size_t size,
                                                       const float *values),
                                  void *user, const pace_log *log);

#endif

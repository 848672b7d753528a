/*
 * words.h - counting words in bounded memory: map and reduce of a vocabulary.
 *
 * Map. A counter gives each word that it meets a *local id*, 0, 1, 2, ..., and counts it. When its memory is
 * full it writes (word, count) of all its words to a file and starts over with local id 0: a new
 * *generation*. Whoever keeps local ids of words keeps the generation with them.
 *
 * Reduce. A generation's words are written in the order of their hash, so that a file is cut into
 * partitions, ranges of the hash, without being sorted again. A reducer merges one partition of all files:
 * every occurrence of a word is there. It keeps its `words` most frequent ones; the best of all reducers'
 * together are the vocabulary. So is the memory of a reducer bounded: it merges streams.
 *
 * Translate. The vocabulary known, each generation's local ids become ids by a table, read from its file.
 *
 * The result depends on the texts alone: not on how they were split among counters, nor on memory.
 */
#ifndef PREP_REVIEWS_WORDS_H
#define PREP_REVIEWS_WORDS_H

#include "data/text/tokens.h"
#include "data/text/vocabulary.h"

#include <stdio.h>

typedef struct pace__word_counter_plan {
    const char *directory;   /* of the files NAME-GENERATION */
    const char *name;        /* "words-3" */
    size_t memory;           /* for words and table; at least PACE__WORDS_MEMORY_MIN; see make_room */
    const pace__word *stops; /* get no local id */
    uint32_t stop_count;
} pace__word_counter_plan;

#define PACE__WORDS_MEMORY_MIN ((size_t)4 << 20)

typedef struct pace__word_counter pace__word_counter;

pace_status pace__word_counter_create(const pace__word_counter_plan *plan, const pace_log *log,
                                      pace__word_counter **counter);
/* Removes its files. NULL is allowed. */
void pace__word_counter_free(pace__word_counter *counter);

/*
 * May begin a new generation first: to be called before a text, so that all its words are of one. Room is
 * made for as many different words of the greatest size. If a single text has more than the planned memory
 * can hold then, there is more memory until the next text.
 */
pace_status pace__word_counter_make_room(pace__word_counter *counter, size_t words);

/*
 * Counts all words of a text. ids[] (room for tokens->count) gets the local ids of those that are no stop
 * words, in order; returns how many. There must be room (make_room).
 */
size_t pace__word_counter_add(pace__word_counter *counter, const pace__tokens *tokens, uint32_t *ids);

uint32_t pace__word_counter_generation(const pace__word_counter *counter);

/* Ends the last generation: all words are in files then. */
pace_status pace__word_counter_finish(pace__word_counter *counter);

typedef struct pace__word_stats {
    uint64_t words;    /* counted, stop words included */
    uint64_t stopped;  /* of them stop words */
    uint64_t distinct; /* over all generations, one that occurs in two counts twice */
    uint64_t bytes;    /* of files */
    uint32_t generations;
} pace__word_stats;

pace__word_stats pace__word_counter_stats(const pace__word_counter *counter);

/* The paths of its files, as many as there are generations; the array and each of them are to be freed. NULL
 * when out of memory. */
char **pace__word_counter_paths(const pace__word_counter *counter);

/* --- reduce --- */

/* A generation's file of any counter, of this process or another. */
char *pace__words_path(const char *directory, const char *name, uint32_t generation);

/*
 * The `keep` most frequent words (ties by spelling) of partition `partition` of `partitions` over all these
 * files, most frequent first, into the file `output`; *distinct is how many different words it has.
 */
pace_status pace__words_reduce(const char *const *paths, size_t count, uint32_t partition,
                               uint32_t partitions, uint32_t keep, const char *output, uint64_t *distinct,
                               const pace_log *log);

/* The vocabulary of all reducers' outputs: the `keep` most frequent of all. */
pace_status pace__words_join(const char *const *outputs, size_t count, uint32_t keep, const pace__word *stops,
                             uint32_t stop_count, const pace_log *log, pace__vocabulary **vocabulary);

/* --- translate --- */

/* ids[local] for all words of a generation's file; to be freed by the caller. */
pace_status pace__words_translate(const char *path, const pace__vocabulary *vocabulary, const pace_log *log,
                                  uint32_t **ids, uint32_t *count);

/* --- a vocabulary from elsewhere --- */

/*
 * A file of "word<TAB>count" lines in any order, as `prep reviews --reduce` writes them, or of words alone
 * (the earlier, the more frequent; they get the counts n, n - 1, ...): its `keep` most frequent that are no
 * stop words. Behind an empty line may be words alone: the stop words of a vocabulary.txt, which are not
 * taken. A word of the vocabulary that is there a second time is PACE_BAD_DATA. Errors name file and line.
 * The file is read twice, in memory for what is kept.
 */
pace_status pace__words_read(const char *path, uint32_t keep, const pace__word *stops, uint32_t stop_count,
                             const pace_log *log, pace__vocabulary **vocabulary);

/* Stop words from a file, one a line, blank lines and lines that begin with '#' passed over; each becomes
 * what the tokeniser makes of it (a line of two words is two stop words, one of signs none). By spelling,
 * each once. Freed by pace__stops_free. */
#define PACE__STOPS_BYTES_MAX ((size_t)1 << 20)
pace_status pace__stops_read(const char *path, const pace_log *log, pace__word **stops, uint32_t *count);
void pace__stops_free(pace__word *stops, uint32_t count);

/* --- filters: the same for Hadoop Streaming --- */

/*
 * "word<TAB>count" of all words that a counter holds or has in files, each once, to `out`. They come in the
 * order of their hashes, which needs no memory: Hadoop sorts between map and reduce, in a shell `sort` does.
 * Finishes the counter. `stop` may be NULL; if it is set meanwhile, that is PACE_INTERRUPTED.
 */
pace_status pace__words_print(pace__word_counter *counter, FILE *out, const _Atomic int *stop,
                              const pace_log *log);
/* Sums the counts of lines "word<TAB>count" whose words come grouped (sorted input); the same form out. Lines
 * that are not of that form are PACE_BAD_DATA with their number, and so are counts and sums above
 * PACE__COUNT_MAX. The memory is constant. */
#define PACE__COUNT_MAX (UINT64_C(1) << 63)
pace_status pace__words_sum(FILE *in, const char *in_name, FILE *out, const pace_log *log);

#endif

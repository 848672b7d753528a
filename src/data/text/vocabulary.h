/*
 * vocabulary.h - the words that a data set of texts knows, their numbers, and the words that it leaves out.
 *
 * Ids are the special ones below, then the words by falling frequency, equal ones by spelling (bytes). Stop
 * words have no id: they vanish from texts, whereas any other word that has none becomes PACE__ID_UNKNOWN.
 * A text none of whose words is left is PACE__ID_EMPTY alone, so that no row has length 0.
 *
 * As text, in DIR/vocabulary.txt of a data set and in models, it is one line per id from PACE__ID_WORDS on,
 * "word<TAB>count", then an empty line, then the stop words, one a line, by spelling. There is no other way
 * to write the same vocabulary: reading is as strict. Its checksum is that of those bytes. Words are as
 * pace__tokenise makes them: lower case, 1 .. PACE__TOKEN_BYTES_MAX bytes of UTF-8.
 */
#ifndef DATA_TEXT_VOCABULARY_H
#define DATA_TEXT_VOCABULARY_H

#include "data/formats/encoding.h"
#include "data/text/tokens.h"

#define PACE__ID_STOP              UINT32_MAX
#define PACE__VOCABULARY_NAME      "vocabulary.txt"
#define PACE__VOCABULARY_BYTES_MAX ((size_t)1 << 31)

typedef struct pace__vocabulary pace__vocabulary;

/* A word in bytes of the caller's. */
typedef struct pace__word {
    const char *text;
    uint32_t size;
    uint64_t count;
} pace__word;

/* The order of spelling: by bytes, a word before those that go on behind it. Below 0, 0 or above. */
static inline int pace__word_compare(const pace__word *left, const pace__word *right)
{
    int order = memcmp(left->text, right->text, left->size < right->size ? left->size : right->size);

    return order ? order : (left->size > right->size) - (left->size < right->size);
}

/* Could it be one that pace__tokenise makes? By its size; UTF-8, of ASCII only a .. z, 0 .. 9 and ' . */
bool pace__is_word(const char *text, size_t size);
/* A count as it is printed: digits alone, no zeros in front. */
bool pace__count_read(const char *text, size_t size, uint64_t *count);

/* Words in the order of their ids, from PACE__ID_WORDS on; stop words in any order. All are copied. A word
 * that occurs twice, or is none, is PACE_BAD_DATA. */
pace_status pace__vocabulary_create(const pace__word *words, uint32_t count, const pace__word *stops,
                                    uint32_t stop_count, const pace_log *log, pace__vocabulary **vocabulary);
void pace__vocabulary_free(pace__vocabulary *vocabulary); /* NULL is allowed */

/* The text form, to be freed by the caller; and back. Errors name `where` and the line. */
pace_status pace__vocabulary_to_text(const pace__vocabulary *vocabulary, const pace_log *log, char **text,
                                     size_t *size);
pace_status pace__vocabulary_from_text(const char *text, size_t size, const char *where, const pace_log *log,
                                       pace__vocabulary **vocabulary);
uint64_t pace__vocabulary_checksum(const pace__vocabulary *vocabulary);

/* DIR/vocabulary.txt. Reading compares it with the encoding: PACE_BAD_DATA if it is another one. */
pace_status pace__vocabulary_write(const pace__vocabulary *vocabulary, const char *directory,
                                   const pace_log *log);
pace_status pace__vocabulary_read(const char *directory, const pace__encoding *encoding, const pace_log *log,
                                  pace__vocabulary **vocabulary);

uint32_t pace__vocabulary_ids(const pace__vocabulary *vocabulary); /* special ones included */
uint32_t pace__vocabulary_stops(const pace__vocabulary *vocabulary);
/* The word of an id; of the special ones "<pad>", "<unknown>", "<empty>". */
pace__word pace__vocabulary_word(const pace__vocabulary *vocabulary, uint32_t id);
pace__word pace__vocabulary_stop(const pace__vocabulary *vocabulary, uint32_t index);

/* The id of a word, PACE__ID_UNKNOWN or PACE__ID_STOP. `hash` is pace__token_hash of it (pace__word_hash of
 * one that stands anywhere). Any number of threads. */
uint32_t pace__vocabulary_find(const pace__vocabulary *vocabulary, uint64_t hash, const char *word,
                               uint32_t size);

/*
 * One text: its ids in order, stop words left out, cut as the encoding says. ids has room for
 * encoding->length; what is behind the words is not touched. Returns how many, 1 or more.
 */
uint32_t pace__vocabulary_encode(const pace__vocabulary *vocabulary, const pace__encoding *encoding,
                                 const pace__tokens *tokens, uint32_t *ids);

/* Which of `count` words a cut keeps: the first *head and the last *tail of them, at most `length` in all. */
void pace__truncation(int truncate, uint64_t count, uint32_t length, uint32_t *head, uint32_t *tail);

/* --- stop words --- */

/* The built-in English list, by spelling. With keep_negations those that turn a meaning around (not, no, nor,
 * never, but, don't, ...) are left out of it. Any of the outputs' texts are constants. */
const pace__word *pace__english_stops(bool keep_negations, uint32_t *count);
/* Is it one of those that keep_negations keeps? */
bool pace__is_negation(const char *word, uint32_t size);

#endif

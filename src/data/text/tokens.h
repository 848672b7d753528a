/*
 * tokens.h - a text becomes words: lower-cased, each with a hash, ready to be counted.
 *
 * The rules:
 * 1. A word is a maximal run of letters and digits: the Unicode categories L and N. Marks (M) behind one of
 *    them belong to the word. Everything else separates words, '_' and '-' too.
 * 2. An apostrophe, ' or U+2019, directly between the characters of a word belongs to it and becomes ':
 *    don't, rock'n'roll. At the edge of a word it separates.
 * 3. Upper case becomes lower case by Unicode's simple mapping, one character for one; a final sigma becomes
 *    a sigma. There is no normalisation: an accent that is a character of its own stays one.
 * 4. What looks like an HTML tag separates: '<', a letter, '/' and a letter or '!', and no other '<' up to a
 *    '>' that comes within PACE__TAG_BYTES_MAX bytes. Any other '<' is a character like others: "I <3 it".
 * 5. An entity stands for its character: &#39; &#x2019; (numbers of 7 digits at most, 128 to 159 as in
 *    Windows-1252, where HTML has them from), and the names of the 5 of XML, Latin-1 and common punctuation.
 *    It ends with a ';', and what it stands for begins no tag or entity. Any other '&' separates.
 * 6. What has more than PACE__TOKEN_BYTES_MAX bytes (lower-cased, in UTF-8) is no word: it is dropped, and
 *    counted.
 * Tokens hold no NUL, which separates. Text that is no UTF-8 is for the caller to find before; here such a
 * byte separates.
 *
 * The hash is good in all its bits. It is part of no file: it may be another one in the next version.
 *
 * Together with jsonl.h, a prep of reviews reads like this. Words of a line are hashed first and looked up
 * afterwards, so that the table's memory can be on its way for all of them:
 *
 *     const char *names[] = {"reviewText", "overall"};
 *     pace__jsonl_fields fields;
 *     pace__jsonl_fields_init(&fields, names, 2, log);
 *     for each line of a chunk {                         // readable for PACE__TEXT_PADDING bytes behind it
 *         pace__jsonl_value value[2];
 *         pace__jsonl_error error;
 *         if (!pace__jsonl_find(&fields, line, size, value, &error)) {
 *             pace__bad_row(bad, chunk, at, "byte %zu: %s", error.offset + 1, error.reason);
 *             continue;
 *         }
 *         if (value[0].kind != PACE__JSONL_STRING || value[1].kind != PACE__JSONL_NUMBER) ...
 *         const char *text = value[0].text;
 *         size_t bytes = value[0].size;
 *         if (value[0].escaped) {
 *             bytes = pace__jsonl_decode(text, bytes, buffer);   // room: line size + PACE__TEXT_PADDING
 *             text = buffer;
 *         }
 *         pace__tokenise(&tokens, text, bytes, log);
 *         for (size_t i = 0; i < tokens.count; i++)
 *             __builtin_prefetch(slot_of(table, tokens.hash[i]));
 *         for (size_t i = 0; i < tokens.count; i++)
 *             count(table, tokens.hash[i], tokens.text + tokens.span[i].begin, pace__token_size(&tokens, i));
 *     }
 *     pace__tokens_release(&tokens);
 */
#ifndef DATA_TEXT_TOKENS_H
#define DATA_TEXT_TOKENS_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Vector loads overrun: so many bytes, of any value, are readable behind any text that is given here. */
#define PACE__TEXT_PADDING 64
/* Lines are shorter (PACE__RECORD_BYTES_MAX). */
#define PACE__TEXT_BYTES_MAX  ((size_t)1 << 30)
#define PACE__TOKEN_BYTES_MAX 64
#define PACE__TAG_BYTES_MAX   1024

/* Bytes begin .. end - 1 of pace__tokens.text. */
typedef struct pace__token_span {
    uint32_t begin, end;
} pace__token_span;

/* Begins as {0}. The arrays grow to what the largest text needs and are used again for every text. */
typedef struct pace__tokens {
    size_t count;
    size_t dropped; /* words that were too long */
    uint64_t *hash;
    uint64_t *first,
        *second; /* bytes 0 to 7 and 8 to 15, zeros behind a shorter one's; see PACE__TOKEN_LONG */
    pace__token_span *span;
    char *text;            /* readable for PACE__TOKEN_BYTES_MAX bytes from the begin of any token */
    size_t text_bytes_max; /* for which there is room */
} pace__tokens;

/* Instead of the second 8 bytes of a token of 16 and more, of which its first ones do not say all. No token has such
 * bytes: they are no UTF-8. */
#define PACE__TOKEN_LONG UINT64_MAX

/* Replaces what is in `tokens` by the words of the text, in order. Fails only when out of memory. */
pace_status pace__tokenise(pace__tokens *tokens, const char *text, size_t size, const pace_log *log);
void pace__tokens_release(pace__tokens *tokens);

static inline uint32_t pace__token_size(const pace__tokens *tokens, size_t token)
{
    return tokens->span[token].end - tokens->span[token].begin;
}

/*
 * The hash takes a token as words of 8 bytes, the last one filled with zeros, two at least. Multiplication
 * carries bits up only; shifts between bring the high ones down.
 */
#define PACE__TOKEN_HASH_FIRST 0x9e3779b97f4a7c15u
#define PACE__TOKEN_HASH_NEXT  0xc2b2ae3d27d4eb4fu
#define PACE__TOKEN_HASH_LAST  0xd6e8feb86659fd93u

/* The first `size` (up to 8) of 8 readable bytes. */
static inline uint64_t pace__token_word(const char *text, size_t size)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
    return size >= 8 ? word : size == 0 ? 0 : word & (UINT64_MAX >> (64 - 8 * size));
}

/* What pace__tokens.second has; 16 bytes are readable. */
static inline uint64_t pace__token_second(const char *text, size_t size)
{
    return size >= 16 ? PACE__TOKEN_LONG : pace__token_word(text + 8, size > 8 ? size - 8 : 0);
}

/* size <= PACE__TOKEN_BYTES_MAX; 16 bytes are readable, and whole words of 8. */
static inline uint64_t pace__token_hash(const char *text, size_t size)
{
    uint64_t hash = pace__token_word(text, size) * PACE__TOKEN_HASH_FIRST;

    hash ^= hash >> 32;
    for (size_t at = 8; at < 16 || at < size; at += 8) {
        hash = (hash + pace__token_word(text + at, size > at ? size - at : 0)) * PACE__TOKEN_HASH_NEXT;
        hash ^= hash >> 32;
    }
    hash *= PACE__TOKEN_HASH_LAST;
    return hash ^ hash >> 32;
}

/* The same of a word that stands anywhere, with nothing readable behind it. */
static inline uint64_t pace__word_hash(const char *text, size_t size)
{
    char copy[PACE__TOKEN_BYTES_MAX] = {0};

    memcpy(copy, text, size);
    return pace__token_hash(copy, size);
}

/*
 * Where the first sequence begins that is no UTF-8, or `size` if all of it is. This one needs no padding
 * behind the text.
 */
size_t pace__utf8_find_invalid(const char *text, size_t size);

/* Writes a character up to U+10FFFF, that is no surrogate, to utf8[0..4); returns its bytes, 1 to 4. */
unsigned pace__utf8_encode(uint32_t character, char *utf8);

#endif

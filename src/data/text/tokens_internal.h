/*
 * tokens_internal.h - what the plain and the fast tokeniser share. For tokens*.c, and for their tests.
 *
 * The plain one follows the rules of tokens.h character by character. The fast one first rewrites the text
 * into one in which every byte tells by itself whether it belongs to a word, then works on bytes alone. Both
 * ask pace__text_special about what begins with '<', '&' or a byte that is not ASCII: such a character costs
 * its own time only, not that of its text.
 */
#ifndef DATA_TEXT_TOKENS_INTERNAL_H
#define DATA_TEXT_TOKENS_INTERNAL_H

#include "base/cpu.h"
#include "data/text/tokens.h"

#include <stdbool.h>

enum { PACE__SEPARATOR, PACE__WORD, PACE__MARK, PACE__APOSTROPHE };

/*
 * What stands at some place of a text: its lower-case character, and above it its kind. One number, because a
 * small structure would go through memory and wait there.
 */
typedef uint32_t pace__character;

#define PACE__KIND_SHIFT 24

static inline uint32_t pace__kind_of(pace__character character)
{
    return character >> PACE__KIND_SHIFT;
}

static inline uint32_t pace__code_of(pace__character character)
{
    return character & ((1u << PACE__KIND_SHIFT) - 1);
}

/* The bytes of a character in UTF-8, the first one lowest. */
static inline uint32_t pace__utf8_bytes(uint32_t code, unsigned *size)
{
    uint32_t last = 0x80 | (code & 0x3f), second = 0x80 | (code >> 6 & 0x3f),
             third = 0x80 | (code >> 12 & 0x3f);

    *size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (code < 0x80)
        return code;
    if (code < 0x800)
        return last << 8 | 0xc0 | code >> 6;
    if (code < 0x10000)
        return last << 16 | second << 8 | 0xe0 | code >> 12;
    return last << 24 | second << 16 | third << 8 | 0xf0 | code >> 18;
}

/* Bytes that need a closer look. */
static inline bool pace__is_special(char byte)
{
    return (byte & 0x80) || byte == '<' || byte == '&';
}

/* The character at text[0], for which pace__is_special holds, and how many bytes it takes there; size > 0. */
pace__character pace__text_special(const char *text, size_t size, size_t *bytes);

/*
 * Bytes that pace__tokens.text holds at most: lower case may need 3 bytes where upper case has 2 (U+023A),
 * and the fast tokeniser puts a space in front.
 */
static inline size_t pace__tokens_text_bytes(size_t size)
{
    return size + size / 2 + 1;
}

/* Makes room for the tokens of any text of `size` bytes. */
pace_status pace__tokens_reserve(pace__tokens *tokens, size_t size, const pace_log *log);

typedef struct pace__tokens_kernels {
    /* With room for the text. */
    void (*tokenise)(pace__tokens *tokens, const char *text, size_t size);
    /* pace__utf8_find_invalid */
    size_t (*find_invalid)(const char *text, size_t size);
} pace__tokens_kernels;

PACE__TABLES(pace__tokens_kernels, pace__tokens)

#endif

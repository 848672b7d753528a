/*
 * The fast walker over a line of JSON. A string is looked at 64 bytes at a time; most end in its first vector,
 * which is one load, three comparisons and one branch. Loads overrun the line's end; what is found there does
 * not count.
 */
#include "data/text/jsonl_internal.h"
#include "data/text/tokens_utf8_lanes.h"

#include <assert.h>

/* What a string does not consist of: quotes, backslashes, control characters; and all that is not ASCII. */
INLINE marks is_odd(bytes it)
{
    return bytes_equal(it, '"') | bytes_equal(it, '\\') | bytes_between(it, 0x80, ' ' - 1);
}

/*
 * The part of a block up to `stops`, its quotes, backslashes and control characters: how many bytes of it are
 * good and done with, TEXT64_BYTES + 1 if they are no UTF-8.
 */
static inline unsigned good_bytes(text64 block, uint64_t stops)
{
    unsigned good = stops ? (unsigned)__builtin_ctzll(stops) : TEXT64_BYTES;

    if (bits_first(text64_high(block), good) == 0)
        return good;
    pace__utf8_block check = pace__utf8_check(block);

    if (!stops && check.cut)
        good = (unsigned)__builtin_ctzll(check.cut);
    /* With the byte at the stop or the cut: in front of it all is complete. */
    return bits_first(check.wrong, good < 64 ? good + 1 : 64) ? TEXT64_BYTES + 1 : good;
}

/*
 * The closing quote of the string whose first byte is line[at]; 0 if it is not valid, and anything from
 * `size` on if it does not end.
 */
static __attribute__((noinline)) size_t find_quote(const char *line, size_t size, size_t at, bool *escaped)
{
    uint32_t character;

    while (at < size) {
        text64 block = text64_load(line + at);
        uint64_t stops = text64_bits(block, is_odd);

        if (stops == 0) {
            at += TEXT64_BYTES;
            continue;
        }
        stops &= ~text64_high(block);
        unsigned good = good_bytes(block, stops);

        if (good > TEXT64_BYTES)
            return 0;
        at += good;
        if (stops == 0)
            continue;
        if (line[at] == '"')
            return at;
        if (line[at] != '\\' || at >= size)
            return 0;
        unsigned escape = pace__jsonl_escape(line + at, size - at, &character);

        if (escape == 0)
            return 0;
        *escaped = true;
        at += escape;
    }
    return 0;
}

/* The same, at <= size, but 0 whatever is wrong. */
static inline size_t string_end(const char *line, size_t size, size_t at, bool *escaped)
{
    bytes block = bytes_load(line + at);
    uint64_t quotes = marks_bits(bytes_equal(block, '"')), stops = marks_bits(is_odd(block));

    *escaped = false;
    size_t end =
        quotes & stops & -stops ? at + (size_t)__builtin_ctzll(stops) : find_quote(line, size, at, escaped);

    return end < size ? end : 0;
}

/* For pace__jsonl_walk_value. */
static bool string_fast(pace__jsonl_walk *walk, bool *escaped)
{
    size_t end = string_end(walk->line, walk->size, walk->at, escaped);

    walk->at = end + 1;
    return end > 0;
}

static bool nested_value(const char *line, size_t size, size_t *at, pace__jsonl_value *value)
{
    pace__jsonl_walk walk = {.line = line, .size = size, .at = *at, .depth = 1, .string = string_fast};
    bool good = pace__jsonl_walk_value(&walk, value);

    *at = walk.at;
    return good;
}

static __attribute__((noinline)) size_t skip_slowly(const char *line, size_t size, size_t at, char byte)
{
    at = pace__jsonl_skip_blanks(line, size, at);
    if (at >= size || line[at] != byte)
        return 0;
    at = pace__jsonl_skip_blanks(line, size, at + 1);
    return at < size ? at : 0;
}

/*
 * Behind the byte, which is expected at line[at], at <= size, and the blanks around it; 0 if there is none or
 * nothing follows. Branches that can be foreseen: to add up what is there would make each position wait for
 * the bytes of the one before. The empty statement keeps the compiler from doing so.
 */
static inline size_t skip(const char *line, size_t size, size_t at, char byte)
{
    if (line[at] == byte && line[at + 1] == ' ' && (unsigned char)line[at + 2] > ' ' && at + 2 < size) {
        __asm__ volatile("");
        return at + 2;
    }
    if (line[at] == byte && (unsigned char)line[at + 1] > ' ' && at + 1 < size)
        return at + 1;
    return skip_slowly(line, size, at, byte);
}

static inline bool read_value(const char *line, size_t size, size_t *at, pace__jsonl_value *value)
{
    size_t begin = *at, end;
    char first = line[begin];

    value->escaped = false;
    value->text = line + begin;
    if (first == '"') {
        end = string_end(line, size, begin + 1, &value->escaped);
        *value = (pace__jsonl_value){line + begin + 1, end - begin - 1, PACE__JSONL_STRING, value->escaped};
        *at = end + 1;
        return end > 0;
    }
    if (first == '-' || (unsigned)(first - '0') < 10) {
        *value = (pace__jsonl_value){.text = line + begin, .kind = PACE__JSONL_NUMBER};
        bool good = pace__jsonl_number(line, size, at);

        value->size = *at - begin;
        return good;
    }
    return nested_value(line, size, at, value);
}

static inline bool read_member(const pace__jsonl_fields *fields, const char *line, size_t size, size_t *at,
                               pace__jsonl_value *values)
{
    size_t name = *at + 1;
    bool escaped;
    pace__jsonl_value value;

    if (line[*at] != '"')
        return false;
    size_t end = string_end(line, size, name, &escaped);

    if (end == 0)
        return false;
    int field = escaped ? pace__jsonl_match_escaped(fields, line + name, end - name)
                        : pace__jsonl_match(fields, line + name, end - name);

    *at = skip(line, size, end + 1, ':');
    if (*at == 0 || !read_value(line, size, at, &value))
        return false;
    if (field >= 0)
        values[field] = value;
    return true;
}

static bool find(const pace__jsonl_fields *fields, const char *line, size_t size, pace__jsonl_value *values)
{
    size_t at = skip(line, size, 0, '{'), end;

    for (unsigned i = 0; i < fields->count; i++)
        values[i] = (pace__jsonl_value){.kind = PACE__JSONL_MISSING};
    /* Here, too, an object without members is left to the plain one. */
    if (at == 0)
        return false;
    do {
        if (!read_member(fields, line, size, &at, values))
            return false;
        end = at;
        at = line[end] == '}' ? 0 : skip(line, size, end, ',');
    } while (at > 0);
    end = pace__jsonl_skip_blanks(line, size, end);
    return end < size && line[end] == '}' && pace__jsonl_skip_blanks(line, size, end + 1) == size;
}

static size_t decode(const char *text, size_t size, char *out)
{
    const char *end = text + size;
    char *to = out;

    while (text < end) {
        size_t left = (size_t)(end - text), taken = left < TEXT64_BYTES ? left : TEXT64_BYTES;
        text64 block = text64_load(text);
        uint64_t backslashes = bits_first(text64_equal(block, '\\'), (unsigned)taken);
        uint32_t character;

        text64_store(to, block);
        if (backslashes)
            taken = (size_t)__builtin_ctzll(backslashes);
        text += taken;
        to += taken;
        if (backslashes) {
            unsigned escape = pace__jsonl_escape(text, (size_t)(end - text), &character);

            assert(escape > 0);
            text += escape;
            to += pace__utf8_encode(character, to);
        }
    }
    return (size_t)(to - out);
}

const pace__jsonl_kernels PACE__SET(pace__jsonl) = {.find = find, .decode = decode};

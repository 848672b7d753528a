/*
 * The fast walker over a line of JSON. A string is looked at 64 bytes at a time; most end in the first 32,
 * which is one load, three comparisons and one branch. Loads overrun the line's end; what is found there does
 * not count.
 */
#include "data/text/jsonl_internal.h"
#include "data/text/tokens_utf8_avx512.h"

#include <assert.h>

#define BLOCK_BYTES 64

static inline uint64_t bytes_equal(__m512i block, char byte)
{
    return _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte));
}

/* Control characters and, as they are negative, all that is not ASCII. */
static inline uint64_t bytes_odd(__m512i block)
{
    return _mm512_cmplt_epi8_mask(block, _mm512_set1_epi8(' '));
}

/*
 * The part of a block up to `stops`, its quotes, backslashes and control characters: how many bytes of it are
 * good and done with, BLOCK_BYTES + 1 if they are no UTF-8.
 */
static inline unsigned good_bytes(__m512i block, uint64_t stops)
{
    unsigned bytes = stops ? (unsigned)__builtin_ctzll(stops) : BLOCK_BYTES;

    if (_bzhi_u64(_mm512_movepi8_mask(block), bytes) == 0)
        return bytes;
    pace__utf8_block check = pace__utf8_check(block);

    if (!stops && check.cut)
        bytes = (unsigned)__builtin_ctzll(check.cut);
    /* With the byte at the stop or the cut: in front of it all is complete. */
    return _bzhi_u64(check.wrong, bytes + 1) ? BLOCK_BYTES + 1 : bytes;
}

/*
 * The closing quote of the string whose first byte is line[at]; 0 if it is not valid, and anything from
 * `size` on if it does not end.
 */
static __attribute__((noinline)) size_t find_quote(const char *line, size_t size, size_t at, bool *escaped)
{
    uint32_t character;

    while (at < size) {
        __m512i block = _mm512_loadu_si512(line + at);
        uint64_t quotes = bytes_equal(block, '"'), backslashes = bytes_equal(block, '\\');
        uint64_t stops = quotes | backslashes | bytes_odd(block);

        if (stops == 0) {
            at += BLOCK_BYTES;
            continue;
        }
        stops &= ~_mm512_movepi8_mask(block);
        unsigned bytes = good_bytes(block, stops);

        if (bytes > BLOCK_BYTES)
            return 0;
        at += bytes;
        if (stops == 0)
            continue;
        uint64_t first = stops & -stops;

        if (first & quotes)
            return at;
        if (!(first & backslashes) || at >= size)
            return 0;
        unsigned escape = pace__jsonl_escape(line + at, size - at, &character);

        if (escape == 0)
            return 0;
        *escaped = true;
        at += escape;
    }
    return 0;
}

/* The same, at <= size, but 0 whatever is wrong. Half a block: it seldom crosses a cache line. */
static inline size_t string_end(const char *line, size_t size, size_t at, bool *escaped)
{
    __m256i block = _mm256_loadu_si256((const void *)(line + at));
    uint32_t quotes = _mm256_cmpeq_epi8_mask(block, _mm256_set1_epi8('"'));
    uint32_t stops = quotes | _mm256_cmpeq_epi8_mask(block, _mm256_set1_epi8('\\')) |
                     _mm256_cmplt_epi8_mask(block, _mm256_set1_epi8(' '));

    *escaped = false;
    size_t end =
        quotes & stops & -stops ? at + (size_t)__builtin_ctz(stops) : find_quote(line, size, at, escaped);

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

bool pace__jsonl_find_avx512(const pace__jsonl_fields *fields, const char *line, size_t size,
                             pace__jsonl_value *values)
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

size_t pace__jsonl_decode_avx512(const char *text, size_t size, char *out)
{
    const char *end = text + size;
    char *to = out;

    while (text < end) {
        size_t left = (size_t)(end - text), bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;
        __m512i block = _mm512_loadu_si512(text);
        uint64_t backslashes = _bzhi_u64(bytes_equal(block, '\\'), (unsigned)bytes);
        uint32_t character;

        _mm512_storeu_si512(to, block);
        if (backslashes)
            bytes = (size_t)__builtin_ctzll(backslashes);
        text += bytes;
        to += bytes;
        if (backslashes) {
            unsigned escape = pace__jsonl_escape(text, (size_t)(end - text), &character);

            assert(escape > 0);
            text += escape;
            to += pace__utf8_encode(character, to);
        }
    }
    return (size_t)(to - out);
}

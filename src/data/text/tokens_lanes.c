/*
 * The fast tokeniser. Three passes over a text that fits into the cache: rewrite it so that each byte tells
 * by itself what it is; find where words begin and end, 64 bytes at a time; hash them, several at a time. No
 * branch depends on how long words are, unless one is above 16 bytes.
 */
#include "data/text/tokens_internal.h"
#include "data/text/tokens_utf8_lanes.h"
#include "lanes/longs.h"

/* Words that are hashed at the same time. */
#define GROUP (LANES / 2)

INLINE text64 lower_case(text64 block)
{
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        block.part[i] = bytes_add_where(block.part[i], bytes_between(block.part[i], 'A', 'Z'), 'a' - 'A');
    return block;
}

/* pace__is_special */
INLINE marks is_special(bytes it)
{
    return bytes_high(it) | bytes_equal(it, '<') | bytes_equal(it, '&');
}

/* Of a rewritten text: lower-case letters, digits, and all that is not ASCII. */
INLINE marks is_word(bytes it)
{
    return bytes_high(it) | bytes_between(it, 'a', 'z') | bytes_between(it, '0', '9');
}

static inline bool is_word_byte(char byte)
{
    return (byte & 0x80) || (unsigned)(byte - 'a') < 26 || (unsigned)(byte - '0') < 10;
}

/* Appends the character; separators become a space. There is a byte in front of `to`. */
static inline char *put(char *to, pace__character character)
{
    uint32_t kind = pace__kind_of(character);
    unsigned size;

    if (kind == PACE__WORD || (kind == PACE__MARK && is_word_byte(to[-1]))) {
        uint32_t utf8 = pace__utf8_bytes(pace__code_of(character), &size);

        memcpy(to, &utf8, sizeof utf8);
        return to + size;
    }
    *to = kind == PACE__APOSTROPHE ? '\'' : ' ';
    return to + 1;
}

/*
 * Writes the text to `out`: lower-cased, tags and entities replaced, of other than ASCII only what belongs to
 * words. With a space in front and a block of them behind. Returns its size, without those behind.
 */
static size_t rewrite(const char *text, size_t size, char *out)
{
    const char *end = text + size;
    char *to = out;

    *to++ = ' ';
    while (text < end) {
        size_t left = (size_t)(end - text), taken = left < TEXT64_BYTES ? left : TEXT64_BYTES;
        text64 block = text64_load(text);
        uint64_t special = bits_first(text64_bits(block, is_special), (unsigned)taken);

        text64_store(to, lower_case(block));
        if (special)
            taken = (size_t)__builtin_ctzll(special);
        text += taken;
        to += taken;
        while (special && text < end && pace__is_special(*text)) {
            to = put(to, pace__text_special(text, (size_t)(end - text), &taken));
            text += taken;
        }
    }
    memset(to, ' ', TEXT64_BYTES);
    return (size_t)(to - out);
}

/*
 * Where a word begins, and where it ends, its bytes differ from the one in front: the changes, in order, are
 * the spans. Returns how many there are.
 */
static size_t find_words(const char *text, size_t size, pace__token_span *spans)
{
    uint32_t *changes = &spans->begin;
    uint64_t before = 0, inside = 0; /* the last byte: is a word's without apostrophes; with them */

    for (size_t at = 0; at <= size; at += TEXT64_BYTES) {
        text64 block = text64_load(text + at);
        uint64_t alone = text64_bits(block, is_word), apostrophes = text64_equal(block, '\'');
        uint64_t next = is_word_byte(text[at + TEXT64_BYTES]);
        uint64_t all = alone | (apostrophes & (alone << 1 | before) & (alone >> 1 | next << 63));

        changes += places_add(changes, (uint32_t)at, all ^ (all << 1 | inside));
        before = alone >> 63;
        inside = all >> 63;
    }
    return (size_t)(changes - &spans->begin) / 2;
}

/* Where hashes and bytes of tokens go. */
typedef struct results {
    uint64_t *hash, *first, *second;
} results;

/* Of GROUP tokens of 1 to 15 bytes. Two neighbours' sizes share 16 bytes of a vector, as their pieces do in two. */
INLINE void hash_short(const char *text, const pace__token_span *spans, longs sizes, results to)
{
    const char *from[GROUP];

    UNROLL
    for (int i = 0; i < GROUP; i++)
        from[i] = text + spans[i].begin;
    longs even = pieces_first(longs_load_pieces(from), pieces_repeat((bytes)sizes, 0));
    longs odd = pieces_first(longs_load_pieces(from + 1), pieces_repeat((bytes)sizes, 8));
    longs first = longs_zip_first(even, odd), second = longs_zip_second(even, odd);
    longs hash = first * PACE__TOKEN_HASH_FIRST;

    hash = ((hash ^ hash >> 32) + second) * PACE__TOKEN_HASH_NEXT;
    hash = (hash ^ hash >> 32) * PACE__TOKEN_HASH_LAST;
    longs_store(to.hash, hash ^ hash >> 32);
    longs_store(to.first, first);
    longs_store(to.second, second);
}

/* One by one. Returns how many are not too long: they are at `kept_spans` and `to` then. */
static __attribute__((noinline)) size_t hash_any(const char *text, const pace__token_span *spans,
                                                 size_t count, pace__token_span *kept_spans, results to)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        pace__token_span span = spans[i];
        const char *token = text + span.begin;
        size_t size = span.end - span.begin;

        if (size > PACE__TOKEN_BYTES_MAX)
            continue;
        to.hash[kept] = pace__token_hash(token, size);
        to.first[kept] = pace__token_word(token, size);
        to.second[kept] = pace__token_second(token, size);
        kept_spans[kept++] = span;
    }
    return kept;
}

/* Hashes the words at tokens->span, and closes the gaps that too long ones leave. There is room for a group behind the
 * last one. */
static void hash_words(pace__tokens *tokens, size_t found)
{
    pace__token_span *spans = tokens->span;
    size_t count = 0;

    for (int i = 0; i < GROUP; i++)
        spans[found + (size_t)i] = (pace__token_span){0, 1};
    for (size_t at = 0; at < found; at += GROUP) {
        size_t left = found - at < GROUP ? found - at : GROUP;
        longs both = longs_load(spans + at); /* the begin is in the lower half */
        longs sizes = (both >> 32) - (both & UINT32_MAX);
        results to = {tokens->hash + count, tokens->first + count, tokens->second + count};

        if (longs_high(15 - sizes)) {
            count += hash_any(tokens->text, spans + at, left, spans + count, to);
            continue;
        }
        hash_short(tokens->text, spans + at, sizes, to);
        longs_store(spans + count, both); /* never behind what is read next */
        count += left;
    }
    tokens->count = count;
    tokens->dropped = found - count;
}

static void tokenise(pace__tokens *tokens, const char *text, size_t size)
{
    size_t rewritten = rewrite(text, size, tokens->text);

    hash_words(tokens, find_words(tokens->text, rewritten, tokens->span));
}

static size_t find_invalid(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t left = size - at;
        /* What is missing reads as NUL: a sequence that the end cuts is not valid. */
        text64 block = left < TEXT64_BYTES ? text64_load_first(text + at, left) : text64_load(text + at);

        if (text64_high(block) == 0) {
            at += TEXT64_BYTES;
            continue;
        }
        pace__utf8_block check = pace__utf8_check(block);
        unsigned good = check.cut ? (unsigned)__builtin_ctzll(check.cut) : TEXT64_BYTES;

        /* With the bit of the cut itself: what is in front of it must be complete. */
        if (bits_first(check.wrong, good < 64 ? good + 1 : 64))
            return at + pace__tokens_plain.find_invalid(text + at, size - at);
        at += good;
    }
    return size;
}

const pace__tokens_kernels PACE__SET(pace__tokens) = {.tokenise = tokenise, .find_invalid = find_invalid};

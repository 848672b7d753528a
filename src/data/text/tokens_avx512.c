/*
 * The fast tokeniser. Three passes over a text that fits into the cache: rewrite it so that each byte tells
 * by itself what it is; find where words begin and end, 64 bytes at a time; hash them, 8 at a time. No branch
 * depends on how long words are, unless one is above 16 bytes.
 */
#include "data/text/tokens_internal.h"
#include "data/text/tokens_utf8_avx512.h"

#define BLOCK_BYTES 64
#define LANES       8

static inline __m512i lower_case(__m512i block)
{
    __mmask64 upper =
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(block, _mm512_set1_epi8('A')), _mm512_set1_epi8(26));

    return _mm512_mask_add_epi8(block, upper, block, _mm512_set1_epi8('a' - 'A'));
}

static inline uint64_t special_bytes(__m512i block)
{
    return _mm512_movepi8_mask(block) | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('<')) |
           _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('&'));
}

/* Of a rewritten text: lower-case letters, digits, and all that is not ASCII. */
static inline uint64_t word_bytes(__m512i block)
{
    __m512i letters = _mm512_sub_epi8(block, _mm512_set1_epi8('a'));
    __m512i digits = _mm512_sub_epi8(block, _mm512_set1_epi8('0'));

    return _mm512_movepi8_mask(block) | _mm512_cmplt_epu8_mask(letters, _mm512_set1_epi8(26)) |
           _mm512_cmplt_epu8_mask(digits, _mm512_set1_epi8(10));
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
        uint32_t bytes = pace__utf8_bytes(pace__code_of(character), &size);

        memcpy(to, &bytes, sizeof bytes);
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
        size_t left = (size_t)(end - text), bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;
        __m512i block = _mm512_loadu_si512(text);
        uint64_t special = special_bytes(block);

        _mm512_storeu_si512(to, lower_case(block));
        if (special && (size_t)__builtin_ctzll(special) < bytes)
            bytes = (size_t)__builtin_ctzll(special);
        else
            special = 0;
        text += bytes;
        to += bytes;
        while (special && text < end && pace__is_special(*text)) {
            to = put(to, pace__text_special(text, (size_t)(end - text), &bytes));
            text += bytes;
        }
    }
    _mm512_storeu_si512(to, _mm512_set1_epi8(' '));
    return (size_t)(to - out);
}

/* Appends the places of the bits, `at` on; returns the end. Stores whole vectors. */
static inline uint32_t *add_places(uint32_t *places, uint32_t at, uint64_t bits)
{
    __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)at),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));

    for (unsigned quarter = 0; quarter < 4; quarter++) {
        __mmask16 mask = (__mmask16)(bits >> (16 * quarter));

        _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(mask, place));
        places += _mm_popcnt_u32(mask);
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
    return places;
}

/*
 * Where a word begins, and where it ends, its bytes differ from the one in front: the changes, in order, are
 * the spans. Returns how many there are.
 */
static size_t find_words(const char *text, size_t size, pace__token_span *spans)
{
    uint32_t *changes = &spans->begin;
    uint64_t before = 0, inside = 0; /* the last byte: is a word's without apostrophes; with them */

    for (size_t at = 0; at <= size; at += BLOCK_BYTES) {
        __m512i block = _mm512_loadu_si512(text + at);
        uint64_t words = word_bytes(block);
        uint64_t next = is_word_byte(text[at + BLOCK_BYTES]);
        uint64_t apostrophes = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\''));
        uint64_t all = words | (apostrophes & (words << 1 | before) & (words >> 1 | next << 63));

        changes = add_places(changes, (uint32_t)at, all ^ (all << 1 | inside));
        before = words >> 63;
        inside = all >> 63;
    }
    return (size_t)(changes - &spans->begin) / 2;
}

/* 8 bytes of each token, zeros behind its last; `size` is how much of it is left, which may be below 0. */
static inline __m512i load_words(const char *text, __m512i begin, __m512i size, __mmask8 lanes)
{
    __m512i word = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), lanes, begin, text, 1);
    __m512i missing = _mm512_sub_epi64(_mm512_set1_epi64(8), _mm512_min_epi64(size, _mm512_set1_epi64(8)));

    /* A shift by 64 bits or more gives 0. */
    return _mm512_and_si512(word, _mm512_srlv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64(missing, 3)));
}

static inline __m512i fold(__m512i hash)
{
    return _mm512_xor_si512(hash, _mm512_srli_epi64(hash, 32));
}

/* pace__token_hash of tokens up to 16 bytes. */
static inline __m512i hash_short(const char *text, __m512i begin, __m512i size, __mmask8 lanes)
{
    __m512i first = load_words(text, begin, size, lanes);
    __m512i second = load_words(text + 8, begin, _mm512_sub_epi64(size, _mm512_set1_epi64(8)), lanes);
    __m512i hash = fold(_mm512_mullo_epi64(first, _mm512_set1_epi64((int64_t)PACE__TOKEN_HASH_FIRST)));

    hash =
        _mm512_mullo_epi64(_mm512_add_epi64(hash, second), _mm512_set1_epi64((int64_t)PACE__TOKEN_HASH_NEXT));
    return fold(_mm512_mullo_epi64(fold(hash), _mm512_set1_epi64((int64_t)PACE__TOKEN_HASH_LAST)));
}

/* Corrects the hashes of longer tokens, one by one. */
static __attribute__((noinline)) __m512i hash_long(const char *text, __m512i spans, unsigned lanes,
                                                   __m512i hash)
{
    pace__token_span span[LANES];
    uint64_t hashes[LANES];

    _mm512_storeu_si512(span, spans);
    _mm512_storeu_si512(hashes, hash);
    for (; lanes; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);

        hashes[lane] = pace__token_hash(text + span[lane].begin, span[lane].end - span[lane].begin);
    }
    return _mm512_loadu_si512(hashes);
}

/* Hashes the words at tokens->span, and closes the gaps that too long ones leave. */
static void hash_words(pace__tokens *tokens, size_t words)
{
    size_t count = 0;

    for (size_t at = 0; at < words; at += LANES) {
        unsigned left = words - at < LANES ? (1u << (words - at)) - 1 : 0xff;
        __m512i spans = _mm512_loadu_si512(tokens->span + at);
        __m512i begin = _mm512_and_si512(spans, _mm512_set1_epi64(0xffffffff));
        __m512i size = _mm512_sub_epi64(_mm512_srli_epi64(spans, 32), begin);
        unsigned above_16 = left & _cvtmask8_u32(_mm512_cmpgt_epi64_mask(size, _mm512_set1_epi64(16)));
        unsigned kept =
            left & _cvtmask8_u32(_mm512_cmple_epi64_mask(size, _mm512_set1_epi64(PACE__TOKEN_BYTES_MAX)));
        __m512i hash = hash_short(tokens->text, begin, size, (__mmask8)left);

        if (above_16)
            hash = hash_long(tokens->text, spans, above_16 & kept, hash);
        /* Never behind what is read next. */
        _mm512_storeu_si512(tokens->span + count, _mm512_maskz_compress_epi64((__mmask8)kept, spans));
        _mm512_storeu_si512(tokens->hash + count, _mm512_maskz_compress_epi64((__mmask8)kept, hash));
        count += (size_t)__builtin_popcount(kept);
    }
    tokens->count = count;
    tokens->dropped = words - count;
}

void pace__tokenise_avx512(pace__tokens *tokens, const char *text, size_t size)
{
    size_t bytes = rewrite(text, size, tokens->text);

    hash_words(tokens, find_words(tokens->text, bytes, tokens->span));
}

size_t pace__utf8_find_invalid_avx512(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t left = size - at;
        /* What is masked reads as NUL: a sequence that the end cuts is not valid. */
        __mmask64 mask = left < BLOCK_BYTES ? _bzhi_u64(UINT64_MAX, (unsigned)left) : UINT64_MAX;
        __m512i block = _mm512_maskz_loadu_epi8(mask, text + at);

        if (_mm512_movepi8_mask(block) == 0) {
            at += BLOCK_BYTES;
            continue;
        }
        pace__utf8_block check = pace__utf8_check(block);
        unsigned bytes = check.cut ? (unsigned)__builtin_ctzll(check.cut) : BLOCK_BYTES;

        /* With the bit of the cut itself: what is in front of it must be complete. */
        if (_bzhi_u64(check.wrong, bytes + 1))
            return at + pace__utf8_find_invalid_plain(text + at, size - at);
        at += bytes;
    }
    return size;
}

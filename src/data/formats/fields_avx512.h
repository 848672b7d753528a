/*
 * fields_avx512.h - the parts that the vector parsers share: where the fields are, and what numbers they
 * spell.
 *
 * A segment of text is scanned once, 64 bytes at a time, into a list of its delimiters' positions. Rows
 * then take their fields from the list, eight at a time, without a branch that depends on how long they
 * are. For *_avx512.c only.
 */
#ifndef DATA_FORMATS_FIELDS_AVX512_H
#define DATA_FORMATS_FIELDS_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__BLOCK_BYTES   64
#define PACE__SEGMENT_BYTES 8192
/* Compressed vectors are stored whole. */
#define PACE__DELIMITERS_MAX (PACE__SEGMENT_BYTES + PACE__BLOCK_BYTES)
#define PACE__LANES          8

/* One bit for each delimiter of a segment: whether it is of some kind. */
typedef struct pace__marks {
    uint64_t word[PACE__DELIMITERS_MAX / 64 + 2];
} pace__marks;

/*
 * position[1 .. count] are the places, from `text` on, of the delimiters, and position[0] is -1, so that the
 * field in front of position[i] begins at position[i - 1] + 1. Bit i of marks is about position[i + 1].
 */
typedef struct pace__segment {
    const char *text;
    uint32_t bytes;
    uint32_t count;
    int32_t position[1 + PACE__DELIMITERS_MAX];
} pace__segment;

static inline void pace__segment_begin(pace__segment *segment, const char *text, size_t bytes)
{
    segment->text = text;
    segment->bytes = (uint32_t)(bytes < PACE__SEGMENT_BYTES ? bytes : PACE__SEGMENT_BYTES);
    segment->count = 0;
    segment->position[0] = -1;
}

/*
 * The bits of a block that are in the segment: what is behind the chunk's end is readable but means
 * nothing.
 */
static inline uint64_t pace__segment_mask(const pace__segment *segment, uint32_t at)
{
    uint32_t left = segment->bytes - at;

    return left < PACE__BLOCK_BYTES ? _bzhi_u64(UINT64_MAX, left) : UINT64_MAX;
}

/* Appends the delimiters of the block at `at`. */
static inline void pace__segment_add(pace__segment *segment, uint32_t at, uint64_t delimiters)
{
    __m512i positions = _mm512_add_epi32(
        _mm512_set1_epi32((int)at), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    int32_t *end = &segment->position[segment->count + 1];

    for (unsigned quarter = 0; quarter < 4; quarter++) {
        __mmask16 mask = (__mmask16)(delimiters >> (16 * quarter));

        _mm512_storeu_si512(end, _mm512_maskz_compress_epi32(mask, positions));
        end += _mm_popcnt_u32(mask);
        positions = _mm512_add_epi32(positions, _mm512_set1_epi32(16));
    }
    segment->count += (uint32_t)_mm_popcnt_u64(delimiters);
}

/*
 * Appends the marks of a block to those of the `count` delimiters before it. `marked` is a subset of
 * `delimiters`.
 */
static inline void pace__marks_add(pace__marks *marks, uint32_t count, uint64_t delimiters, uint64_t marked)
{
    uint64_t *word = &marks->word[count / 64], bits = _pext_u64(marked, delimiters);
    uint32_t shift = count % 64;

    word[0] = _bzhi_u64(word[0], shift) | bits << shift;
    word[1] = bits >> 1 >> (63 - shift);
}

/* The marks of 64 delimiters, from position[next + 1] on; undefined beyond the last one. */
static inline uint64_t pace__marks_at(const pace__marks *marks, uint32_t next)
{
    const uint64_t *word = &marks->word[next / 64];

    return word[0] >> (next % 64) | word[1] << 1 << (63 - next % 64);
}

/* Eight fields: their first 8 bytes (with whatever follows a shorter field), and their sizes. */
typedef struct pace__field_lanes {
    __m512i text, size;
} pace__field_lanes;

/* True for fields that begin with a minus, which is taken off. */
static inline __mmask8 pace__take_minus(pace__field_lanes *fields)
{
    __m512i first = _mm512_and_si512(fields->text, _mm512_set1_epi64(0xff));
    __mmask8 filled = _mm512_test_epi64_mask(fields->size, fields->size);
    __mmask8 minus = _mm512_mask_cmpeq_epi64_mask(filled, first, _mm512_set1_epi64('-'));

    fields->text = _mm512_mask_srli_epi64(fields->text, minus, fields->text, 8);
    fields->size = _mm512_mask_sub_epi64(fields->size, minus, fields->size, _mm512_set1_epi64(1));
    return minus;
}

/*
 * The bytes of each field less '0', the last one highest, zeros below the first: what is up to 9 everywhere
 * is a number with leading zeros. Fields above 8 bytes give rubbish.
 */
static inline __m512i pace__field_digits(pace__field_lanes fields)
{
    __m512i shift = _mm512_slli_epi64(_mm512_sub_epi64(_mm512_set1_epi64(8), fields.size), 3);

    return _mm512_sllv_epi64(_mm512_xor_si512(fields.text, _mm512_set1_epi8('0')), shift);
}

/* Neighbours are joined to 4 numbers below 100, then to 2 below 10,000, then to one. */
static inline __m512i pace__join_digits(__m512i digits)
{
    digits = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(1 << 8 | 10));
    digits = _mm512_madd_epi16(digits, _mm512_set1_epi32(1 << 16 | 100));
    return _mm512_add_epi64(_mm512_mul_epu32(digits, _mm512_set1_epi64(10000)),
                            _mm512_srli_epi64(digits, 32));
}

/*
 * The fields that hold a byte above 9. (By a detour over the vector, because gcc 12 at -O3 keeps rubbish
 * above an 8-bit mask that it joins with a 64-bit one.)
 */
static inline __mmask8 pace__not_digits(__m512i digits)
{
    __m512i wrong = _mm512_movm_epi8(_mm512_cmpgt_epu8_mask(digits, _mm512_set1_epi8(9)));

    return _mm512_test_epi64_mask(wrong, wrong);
}

#endif

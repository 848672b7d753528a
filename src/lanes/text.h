/*
 * text.h - 64 bytes of text at a time, as bits: which of them are tabs, where those are. For *_lanes.c only.
 *
 *     text64 block = text64_load(text + at);                    // 64 bytes, all of which are readable
 *     uint64_t tabs = text64_equal(block, '\t');                // bit i: byte i
 *     end += places_add(end, at, tabs);                         // appends at + i for every bit i
 */
#ifndef LANES_TEXT_H
#define LANES_TEXT_H

#include "lanes/lanes.h"

#define TEXT64_BYTES 64
#define TEXT64_PARTS (TEXT64_BYTES / LANES_BYTES)

typedef struct text64 {
    bytes part[TEXT64_PARTS];
} text64;

INLINE text64 text64_load(const char *from)
{
    text64 it;

    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        it.part[i] = bytes_load(from + i * LANES_BYTES);
    return it;
}

/* The first `count` bytes, at most 64, and NULs behind them, whose memory is not touched. */
INLINE text64 text64_load_first(const char *from, size_t count)
{
#if LANES_BYTES == 64
    return (text64){{(bytes)_mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, (unsigned)count), from)}};
#else
    char copy[TEXT64_BYTES] = {0};

    memcpy(copy, from, count);
    return text64_load(copy);
#endif
}

INLINE void text64_store(char *to, text64 it)
{
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        bytes_store(to + i * LANES_BYTES, it.part[i]);
}

/* The highest bit of every byte: of what a comparison gives, or of what is not ASCII. */
INLINE uint64_t text64_high(text64 it)
{
#if LANES_BYTES == 64
    return _mm512_movepi8_mask((__m512i)it.part[0]);
#elif LANES_BYTES == 32
    return (uint32_t)_mm256_movemask_epi8((__m256i)it.part[0]) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8((__m256i)it.part[1]) << 32;
#elif defined __x86_64__
    uint64_t bits = 0;

    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)it.part[i]) << (16 * i);
    return bits;
#else
    /* Each byte keeps the bit of its place among 8; three additions of neighbours bring 8 bytes into one. */
    const uint8x16_t place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t kept[4];

    for (int i = 0; i < 4; i++)
        kept[i] = vandq_u8((uint8x16_t)(it.part[i] >= 128), place);
    uint8x16_t sums = vpaddq_u8(vpaddq_u8(kept[0], kept[1]), vpaddq_u8(kept[2], kept[3]));

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
#endif
}

/* AVX-512 compares into bits; others into bytes, whose highest bits are taken. (GCC 12 goes from bits to bytes and back
 * if it is left to find that out.) */
#if LANES_BYTES == 64
#define PACE__TEXT64_COMPARE(it, operator, name, byte)                                                       \
    return _mm512_##name##_epu8_mask((__m512i)(it).part[0], _mm512_set1_epi8((char)(byte)))
#else
#define PACE__TEXT64_COMPARE(it, operator, name, byte)                                                       \
    UNROLL                                                                                                   \
    for (int i = 0; i < TEXT64_PARTS; i++)                                                                   \
        (it).part[i] = (bytes)((it).part[i] operator bytes_all((uint8_t)(byte)));                            \
    return text64_high(it)
#endif

INLINE uint64_t text64_equal(text64 it, char byte)
{
    PACE__TEXT64_COMPARE(it, ==, cmpeq, byte);
}

/* As unsigned numbers. */
INLINE uint64_t text64_up_to(text64 it, uint8_t byte)
{
    PACE__TEXT64_COMPARE(it, <=, cmple, byte);
}

INLINE uint64_t text64_from(text64 it, uint8_t byte)
{
    PACE__TEXT64_COMPARE(it, >=, cmpge, byte);
}

/* first <= byte <= last. */
INLINE uint64_t text64_between(text64 it, uint8_t first, uint8_t last)
{
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        it.part[i] -= bytes_all(first);
    return text64_up_to(it, (uint8_t)(last - first));
}

/* --- several conditions on a byte ---
 *
 * `marks` say of each byte of a vector whether something holds. They are combined by | and become bits once:
 *
 *     INLINE marks is_sign(bytes it) { return bytes_equal(it, '<') | bytes_equal(it, '&'); }
 *     uint64_t signs = text64_bits(block, is_sign);
 */
#if LANES_BYTES == 64
typedef uint64_t marks;
#else
typedef bytes marks; /* -1 or 0, but of bytes_high, whose highest bit counts */
#endif

INLINE marks bytes_equal(bytes it, char byte)
{
#if LANES_BYTES == 64
    return _mm512_cmpeq_epi8_mask((__m512i)it, _mm512_set1_epi8(byte));
#else
    return (marks)(it == bytes_all((uint8_t)byte));
#endif
}

/* From first on upwards to last, which may be beyond 255: (0x80, 0x1f) is all that is not from 0x20 to 0x7f. Signed
 * numbers are compared, for which SSE and AVX2 have an instruction. */
INLINE marks bytes_between(bytes it, uint8_t first, uint8_t last)
{
    bytes above = it - bytes_all((uint8_t)(first - 128));
    int8_t end = (int8_t)((uint8_t)(last - first) - 127);

#if LANES_BYTES == 64
    return _mm512_cmplt_epi8_mask((__m512i)above, _mm512_set1_epi8(end));
#else
    typedef int8_t signed_bytes __attribute__((vector_size(LANES_BYTES)));

    return (marks)((signed_bytes)above < (signed_bytes)bytes_all((uint8_t)end));
#endif
}

/* All that is not ASCII. */
INLINE marks bytes_high(bytes it)
{
#if LANES_BYTES == 64
    return _mm512_movepi8_mask((__m512i)it);
#else
    return it;
#endif
}

/* `marks` of comparisons. */
INLINE bytes bytes_add_where(bytes it, marks where, uint8_t what)
{
#if LANES_BYTES == 64
    return (bytes)_mm512_mask_add_epi8((__m512i)it, where, (__m512i)it, _mm512_set1_epi8((char)what));
#else
    return it + (where & bytes_all(what));
#endif
}

/* Bit i: byte i of the vector. */
INLINE uint64_t marks_bits(marks it)
{
#if LANES_BYTES == 64
    return it;
#elif LANES_BYTES == 32
    return (uint32_t)_mm256_movemask_epi8((__m256i)it);
#elif defined __x86_64__
    return (uint32_t)_mm_movemask_epi8((__m128i)it);
#else
    return text64_high((text64){{it}});
#endif
}

INLINE uint64_t text64_bits(text64 it, marks (*holds)(bytes))
{
#if LANES_BYTES == 64
    return holds(it.part[0]);
#else
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        it.part[i] = holds(it.part[i]);
    return text64_high(it);
#endif
}

/* --- words ---
 *
 * Pieces of 16 bytes side by side: from[0], from[2], and so on, LANES / 4 of them. Two such vectors, even and odd, have
 * the first and the second 8 bytes of LANES / 2 pieces in order by:
 *
 *     longs_zip_first(even, odd), longs_zip_second(even, odd)
 */
INLINE longs longs_load_pieces(const char *const *from)
{
#if LANES_BYTES == 64
    __m256i low = _mm256_loadu2_m128i((const void *)from[2], (const void *)from[0]);
    __m256i high = _mm256_loadu2_m128i((const void *)from[6], (const void *)from[4]);

    return (longs)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#elif LANES_BYTES == 32
    return (longs)_mm256_loadu2_m128i((const void *)from[2], (const void *)from[0]);
#else
    return longs_load(from[0]);
#endif
}

INLINE longs longs_zip_first(longs even, longs odd)
{
#if defined __x86_64__
    return (longs)X86(unpacklo_epi64, (INTEGERS)even, (INTEGERS)odd);
#else
    return (longs)vzip1q_u64((uint64x2_t)even, (uint64x2_t)odd);
#endif
}

INLINE longs longs_zip_second(longs even, longs odd)
{
#if defined __x86_64__
    return (longs)X86(unpackhi_epi64, (INTEGERS)even, (INTEGERS)odd);
#else
    return (longs)vzip2q_u64((uint64x2_t)even, (uint64x2_t)odd);
#endif
}

/* In every piece of 16 bytes, 16 times its byte `from`, 0 or 8. */
INLINE bytes pieces_repeat(bytes it, int from)
{
#if defined __x86_64__
    return (bytes)X86(shuffle_epi8, (INTEGERS)it, (INTEGERS)bytes_all((uint8_t)from));
#else
    return (bytes)(from == 0 ? vdupq_laneq_u8((uint8x16_t)it, 0) : vdupq_laneq_u8((uint8x16_t)it, 8));
#endif
}

/* Of every piece of 16 bytes as many of the first ones as its bytes of `sizes` say, at most 16, and zeros behind them. */
INLINE longs pieces_first(longs it, bytes sizes)
{
#if LANES_BYTES == 64
    const __m512i place =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));

    return (longs)_mm512_maskz_mov_epi8(_mm512_cmplt_epi8_mask(place, (__m512i)sizes), (__m512i)it);
#elif LANES_BYTES == 32
    const __m256i place =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));

    return it & (longs)_mm256_cmpgt_epi8((__m256i)sizes, place);
#else
    const bytes place = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

    return it & (longs)(place < sizes);
#endif
}

/* --- bits --- */

/* The lowest `count` bits, at most 64. */
INLINE uint64_t bits_first(uint64_t bits, unsigned count)
{
#ifdef __BMI2__
    return _bzhi_u64(bits, count);
#else
    return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
#endif
}

/* Those of `bits` that are set in `mask`, side by side from the lowest on. */
INLINE uint64_t bits_extract(uint64_t bits, uint64_t mask)
{
#ifdef __BMI2__
    return _pext_u64(bits, mask);
#else
    uint64_t extracted = 0;

    for (uint64_t to = 1; mask; mask &= mask - 1, to <<= 1)
        extracted |= bits & mask & -mask ? to : 0;
    return extracted;
#endif
}

/*
 * Appends at + i for every bit i to `places`; returns how many. Stores whole vectors: behind the last place there is
 * room for PLACES_SLACK more.
 */
#define PLACES_SLACK 16

#if LANES_BYTES == 32
/* Of every byte the places of its bits, a byte each, from the lowest on. */
#define PACE__PLACE(byte, i)                                                                                 \
    (uint64_t)((byte) >> (i)&1) * (i) << 8 * __builtin_popcount((byte) & ((1 << (i)) - 1))
#define PACE__PLACES(byte)                                                                                   \
    PACE__PLACE(byte, 1) | PACE__PLACE(byte, 2) | PACE__PLACE(byte, 3) | PACE__PLACE(byte, 4) |              \
        PACE__PLACE(byte, 5) | PACE__PLACE(byte, 6) | PACE__PLACE(byte, 7)
#define PACE__PLACES_4(byte)                                                                                 \
    PACE__PLACES(byte), PACE__PLACES((byte) + 1), PACE__PLACES((byte) + 2), PACE__PLACES((byte) + 3)
#define PACE__PLACES_16(byte)                                                                                \
    PACE__PLACES_4(byte), PACE__PLACES_4((byte) + 4), PACE__PLACES_4((byte) + 8), PACE__PLACES_4((byte) + 12)
#define PACE__PLACES_64(byte)                                                                                \
    PACE__PLACES_16(byte), PACE__PLACES_16((byte) + 16), PACE__PLACES_16((byte) + 32),                       \
        PACE__PLACES_16((byte) + 48)
static const uint64_t pace__places[256] = {PACE__PLACES_64(0), PACE__PLACES_64(64), PACE__PLACES_64(128),
                                           PACE__PLACES_64(192)};
#endif

INLINE unsigned places_add(uint32_t *places, uint32_t at, uint64_t bits)
{
    unsigned count = (unsigned)__builtin_popcountll(bits);

#if LANES_BYTES == 64
    __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)at),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));

    UNROLL
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        __mmask16 mask = (__mmask16)(bits >> (16 * quarter));

        _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(mask, place));
        places += __builtin_popcount(mask);
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
#elif LANES_BYTES == 32
    /* No branch: 6.1 ns for 64 bytes with a bit in every third; 8.6 if they are taken one by one,
     * and reviews have their words found 1.2 times as fast. */
    UNROLL
    for (unsigned part = 0; part < 8; part++) {
        uint8_t byte = (uint8_t)(bits >> (8 * part));
        __m256i place = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)&pace__places[byte]));

        _mm256_storeu_si256((void *)places, _mm256_add_epi32(place, _mm256_set1_epi32((int)(at + 8 * part))));
        places += __builtin_popcount(byte);
    }
#else
    /* Eight at a time, needed or not: how many there are is hard to foresee. */
    for (unsigned done = 0; done < count; done += 8) {
        UNROLL
        for (unsigned i = 0; i < 8; i++) {
            places[done + i] = at + (unsigned)__builtin_ctzll(bits | UINT64_C(1) << 63);
            bits &= bits - 1;
        }
    }
#endif
    return count;
}

#endif

/*
 * tokens_utf8_avx512.h - which bytes of a block of 64 are no UTF-8. For *_avx512.c only.
 *
 * Blocks begin where a character begins, so that nothing has to be remembered between them: what the end of
 * a block cuts in two belongs to the next one.
 */
#ifndef DATA_TEXT_TOKENS_UTF8_AVX512_H
#define DATA_TEXT_TOKENS_UTF8_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef struct pace__utf8_block {
    uint64_t wrong; /* a bit at, or up to 3 bytes behind, the start of each sequence that is not valid */
    uint64_t cut;   /* starts of sequences that the block's end cuts */
} pace__utf8_block;

static inline pace__utf8_block pace__utf8_check(__m512i block)
{
    uint64_t high = _mm512_movepi8_mask(block);
    uint64_t lead = _mm512_cmpge_epu8_mask(block, _mm512_set1_epi8((char)0xc0));
    uint64_t lead3 = _mm512_cmpge_epu8_mask(block, _mm512_set1_epi8((char)0xe0));
    uint64_t lead4 = _mm512_cmpge_epu8_mask(block, _mm512_set1_epi8((char)0xf0));
    uint64_t below_90 = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8((char)0x90));
    uint64_t below_a0 = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8((char)0xa0));
    uint64_t below_c2 = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8((char)0xc2));
    uint64_t above_f4 = _mm512_cmpgt_epu8_mask(block, _mm512_set1_epi8((char)0xf4));
    uint64_t e0 = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8((char)0xe0));
    uint64_t ed = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8((char)0xed));
    uint64_t f0 = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8((char)0xf0));
    uint64_t f4 = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8((char)0xf4));
    uint64_t following = lead << 1 | lead3 << 2 | lead4 << 3;
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF; the last two need more than the lead. */
    uint64_t second =
        (e0 << 1 & below_a0) | (ed << 1 & ~below_a0) | (f0 << 1 & below_90) | (f4 << 1 & ~below_90);

    return (pace__utf8_block){
        .wrong = (following ^ (high & ~lead)) | (lead & below_c2) | above_f4 | second,
        .cut = (lead & 1ull << 63) | (lead3 & 3ull << 62) | (lead4 & 7ull << 61),
    };
}

#endif

/*
 * tokens_utf8_lanes.h - which bytes of a block of 64 are no UTF-8. For *_lanes.c only.
 *
 * Blocks begin where a character begins, so that nothing has to be remembered between them: what the end of
 * a block cuts in two belongs to the next one.
 */
#ifndef DATA_TEXT_TOKENS_UTF8_LANES_H
#define DATA_TEXT_TOKENS_UTF8_LANES_H

#include "lanes/text.h"

typedef struct pace__utf8_block {
    uint64_t wrong; /* a bit at, or up to 3 bytes behind, the start of each sequence that is not valid */
    uint64_t cut;   /* starts of sequences that the block's end cuts */
} pace__utf8_block;

static inline pace__utf8_block pace__utf8_check(text64 block)
{
    uint64_t high = text64_high(block), from_90 = text64_from(block, 0x90),
             from_a0 = text64_from(block, 0xa0);
    uint64_t lead = text64_from(block, 0xc0), lead3 = text64_from(block, 0xe0);
    uint64_t lead4 = text64_from(block, 0xf0);
    uint64_t following = lead << 1 | lead3 << 2 | lead4 << 3;
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF; the last two need more than the lead. */
    uint64_t never = text64_between(block, 0xc0, 0xc1) | text64_from(block, 0xf5);
    uint64_t second =
        (text64_equal(block, '\xe0') << 1 & ~from_a0) | (text64_equal(block, '\xed') << 1 & from_a0) |
        (text64_equal(block, '\xf0') << 1 & ~from_90) | (text64_equal(block, '\xf4') << 1 & from_90);

    return (pace__utf8_block){
        .wrong = (following ^ (high & ~lead)) | never | second,
        .cut = (lead & 1ull << 63) | (lead3 & 3ull << 62) | (lead4 & 7ull << 61),
    };
}

#endif

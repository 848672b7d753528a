/*
 * The lengths of ids vary, so a loop that finds an id's end before it can look at the next one waits for each, and one
 * that branches on bytes is mispredicted. Here the ends come from a mask of 64 bytes at once.
 */
#include "data/formats/varints.h"
#include "lanes/text.h"

/* The varint in the low `length` bytes of `word`, 1 to 8, without a branch. */
INLINE uint64_t decode(uint64_t word, unsigned length)
{
    word &= UINT64_C(0x7f7f7f7f7f7f7f7f) >> (64 - 8 * length);
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

static pace__packed unpack(pace__span packed, uint64_t *ids, size_t room, size_t *count)
{
    size_t done = 0;

    for (const uint8_t *block = packed.at; block < packed.end; block += TEXT64_BYTES) {
        size_t left = (size_t)(packed.end - block);
        uint64_t ends = ~text64_high(text64_load((const char *)block));

        ends = bits_first(ends, left < TEXT64_BYTES ? (unsigned)left : TEXT64_BYTES);
        for (; ends; ends &= ends - 1) {
            const uint8_t *next = block + __builtin_ctzll(ends) + 1;
            uint64_t word;

            if (done == room)
                return PACE__PACKED_TOO_MANY;
            memcpy(&word, packed.at, sizeof word);
            if (next - packed.at <= 8)
                ids[done++] = decode(word, (unsigned)(next - packed.at));
            else if (!pace__wire_long_varint(&packed, &ids[done++]))
                return PACE__PACKED_MALFORMED;
            packed.at = next;
        }
    }
    *count = done;
    return packed.at == packed.end ? PACE__PACKED_SOUND : PACE__PACKED_MALFORMED;
}

const pace__varint_kernels PACE__SET(pace__varints) = {.unpack = unpack};

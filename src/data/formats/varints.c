#include "data/formats/varints.h"

static pace__packed unpack(pace__span packed, uint64_t *ids, size_t room, size_t *count)
{
    *count = 0;
    for (const uint8_t *at = packed.at; at < packed.end; at++) {
        if (*at >= 0x80)
            continue;
        if (*count == room)
            return PACE__PACKED_TOO_MANY;
        if (!pace__wire_long_varint(&packed, &ids[(*count)++]))
            return PACE__PACKED_MALFORMED;
    }
    return packed.at == packed.end ? PACE__PACKED_SOUND : PACE__PACKED_MALFORMED;
}

const pace__varint_kernels pace__varints_plain = {.unpack = unpack};

#include "files/crc32c.h"

#include "base/machine.h"

#include <isa-l/crc.h>

uint32_t pace__masked_crc32c(const void *bytes, size_t size)
{
    /* ISA-L neither inverts its start value nor its result, and takes the length as an int. */
    unsigned char *next = (unsigned char *)bytes;
    uint32_t crc = 0xffffffffu;

    for (; size > 1 << 30; size -= 1 << 30, next += 1 << 30)
        crc = crc32_iscsi(next, 1 << 30, crc);
    crc = ~crc32_iscsi(next, (int)size, crc);
    pace__clear_upper_halves();
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

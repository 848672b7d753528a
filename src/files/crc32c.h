/* crc32c.h - the checksum of TFRecord files, and of lines of ours: CRC-32C, masked as that format wants it. */
#ifndef FILES_CRC32C_H
#define FILES_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t pace__masked_crc32c(const void *bytes, size_t size);

#endif

/* jpeg.h - pixels as the bytes of a JPEG file. */
#ifndef GEN_JPEG_H
#define GEN_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * RGB (height, width, 3) as a JPEG file in memory that the caller frees; quality 1 .. 100. Colours have half the
 * resolution, as cameras write them. False: out of memory. Equal pixels give equal bytes with one release of
 * the library.
 */
bool pace__jpeg_encode(const uint8_t *pixels, uint32_t height, uint32_t width, int quality, uint8_t **bytes,
                       size_t *size);

#endif

/*
 * thumbnail.h - a stored picture, small, as a PNG file in memory: for pages.
 */
#ifndef DATA_PICTURE_THUMBNAIL_H
#define DATA_PICTURE_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#define PACE__THUMBNAIL_SIDE 96 /* larger pictures are thinned until they fit */

/* `pixels`: height x width x channels bytes, of 1 or 3 channels. To be freed; NULL when out of memory. */
uint8_t *pace__thumbnail_png(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                             size_t *bytes);

#endif

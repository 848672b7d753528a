/*
 * picture.h - a JPEG or PNG file's bytes become pixels of a given size. libjpeg-turbo and libpng are touched
 * only in picture_jpeg.c and picture_png.c.
 *
 *     pace__picture_loader *loader;                          // one per thread
 *     pace__picture_loader_create(&(pace__picture_plan){160, 160, 3, PACE_FIT_CROP}, log, &loader);
 *     const char *reason = pace__picture_load(loader, bytes, size, pixels);   // NULL: pixels are set
 *     pace__picture_loader_free(loader);
 *
 * What is done: the picture is turned as its EXIF orientation says; colours become RGB or grey (CMYK and YCCK
 * as Adobe writes them, 16 bits, palettes and transparency, which is put on white, included); then it is
 * brought to the plan's size by a filter that weighs all the pixels that fall into the new one (no aliasing).
 * JPEG is decoded at the smallest of 1/8, 1/4, 1/2 and 1 (the scales that libjpeg-turbo is fast at) which is not
 * smaller than what is needed.
 *
 *     PACE_FIT_CROP      the middle is cut out that has the plan's shape: nothing is distorted or added
 *     PACE_FIT_PAD       the whole picture, with black beside it
 *     PACE_FIT_STRETCH   the whole picture, distorted
 *
 * Hostile files are expected: more than PACE__PICTURE_PIXELS_MAX pixels, or data that ends early, are reasons (a
 * JPEG whose end is missing, too: half a picture is none). Equal bytes give equal pixels on every CPU.
 */
#ifndef DATA_PICTURE_PICTURE_H
#define DATA_PICTURE_PICTURE_H

#include <paceline/log.h>
#include <paceline/prep.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__PICTURE_PIXELS_MAX ((uint64_t)1 << 28) /* width x height of a file */
#define PACE__FILE_SIDE_MAX      65535               /* of a file; of a plan, too */

typedef struct pace__picture_plan {
    uint32_t height, width;
    uint32_t channels; /* 1 or 3 */
    int fit;           /* PACE_FIT_* */
} pace__picture_plan;

typedef struct pace__picture_loader pace__picture_loader;

pace_status pace__picture_loader_create(const pace__picture_plan *plan, const pace_log *log,
                                        pace__picture_loader **loader);
void pace__picture_loader_free(pace__picture_loader *loader); /* NULL is allowed */

/* NULL, and pixels (height, width, channels) are set; or why not, a text that lives until the next call. */
const char *pace__picture_load(pace__picture_loader *loader, const void *bytes, size_t size, uint8_t *pixels);

/* The same for pixels that are there already, (height, width, channels) of the source. */
const char *pace__picture_resize(pace__picture_loader *loader, const uint8_t *from, uint32_t height,
                                 uint32_t width, uint32_t channels, uint8_t *pixels);

/* How many pictures so far were turned by their EXIF orientation. */
uint64_t pace__picture_loader_turned(const pace__picture_loader *loader);

/* By its first bytes. */
bool pace__is_picture(const void *bytes, size_t size);

/* --- behind --- */

/* Rows of a picture, without gaps. */
typedef struct pace__bitmap {
    uint32_t height, width, channels;
    uint8_t *pixels;
    size_t room; /* bytes; the buffer is kept from picture to picture */
} pace__bitmap;

#endif

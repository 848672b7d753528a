/*
 * pictures.h - pixels, and JPEG and PNG files in memory, as tests want them. Include it behind <cmocka.h>.
 */
#ifndef UNIT_PICTURES_H
#define UNIT_PICTURES_H

#include "base/random.h"
#include "data/picture/picture.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* ---- pixels ---- */

static inline pace__picture_loader *make_loader(uint32_t height, uint32_t width, uint32_t channels, int fit)
{
    pace__picture_loader *loader;

    assert_int_equal(
        pace__picture_loader_create(&(pace__picture_plan){height, width, channels, fit}, NULL, &loader),
        PACE_OK);
    return loader;
}

static inline uint8_t *make_pixels(uint64_t seed, size_t count)
{
    pace__random random = pace__random_at(seed, 0);
    uint8_t *pixels = malloc(count);

    assert_non_null(pixels);
    for (size_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)pace__random_next(&random);
    return pixels;
}

/* Smooth, and different in every direction and channel. */
static inline uint8_t *make_slopes(uint32_t height, uint32_t width, uint32_t channels)
{
    uint8_t *pixels = malloc((size_t)height * width * channels), *at = pixels;

    assert_non_null(pixels);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            for (uint32_t c = 0; c < channels; c++)
                *at++ = (uint8_t)(c == 0   ? 40 + x * 180 / width
                                  : c == 1 ? 40 + y * 180 / height
                                           : 220 - (x + y) * 90 / (width + height) - c * 20);
        }
    }
    return pixels;
}

static inline double mean_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += abs(a[i] - b[i]);
    return sum / (double)count;
}

/* ---- files ---- */

typedef struct encoded {
    unsigned char *bytes; /* to be freed */
    unsigned long size;
} encoded;

typedef struct raw {
    uint32_t height, width, channels; /* 4: CMYK of JPEG, RGB + alpha of PNG; 2: grey + alpha of PNG */
    const uint8_t *pixels;
} raw;

typedef struct jpeg_kind {
    int quality; /* 0: 100 */
    bool progressive, halved, adobe, ycck, arithmetic;
    int restart;         /* MCUs */
    const uint8_t *exif; /* a whole APP1 */
    unsigned exif_size;
} jpeg_kind;

static inline J_COLOR_SPACE jpeg_space(uint32_t channels)
{
    return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
}

static inline encoded encode_jpeg(raw from, jpeg_kind kind)
{
    struct jpeg_compress_struct library;
    struct jpeg_error_mgr errors;
    encoded to = {0};

    library.err = jpeg_std_error(&errors);
    jpeg_create_compress(&library);
    jpeg_mem_dest(&library, &to.bytes, &to.size);
    library.image_width = from.width;
    library.image_height = from.height;
    library.input_components = (int)from.channels;
    library.in_color_space = jpeg_space(from.channels);
    jpeg_set_defaults(&library);
    if (kind.ycck)
        jpeg_set_colorspace(&library, JCS_YCCK);
    jpeg_set_quality(&library, kind.quality ? kind.quality : 100, TRUE);
    for (int i = 0; i < library.num_components && !kind.halved; i++)
        library.comp_info[i].h_samp_factor = library.comp_info[i].v_samp_factor = 1;
    library.arith_code = kind.arithmetic;
    library.restart_interval = (unsigned)kind.restart;
    library.write_Adobe_marker = kind.adobe || kind.ycck;
    if (kind.progressive)
        jpeg_simple_progression(&library);
    jpeg_start_compress(&library, TRUE);
    if (kind.exif)
        jpeg_write_marker(&library, JPEG_APP0 + 1, kind.exif, kind.exif_size);
    while (library.next_scanline < library.image_height) {
        JSAMPROW row = (JSAMPROW)from.pixels + (size_t)library.next_scanline * from.width * from.channels;

        jpeg_write_scanlines(&library, &row, 1);
    }
    jpeg_finish_compress(&library);
    jpeg_destroy_compress(&library);
    return to;
}

typedef struct png_kind {
    int type, depth; /* PNG_COLOR_TYPE_*, 1 .. 16; pixels are packed as the file has them, big end first */
    bool interlaced;
    const png_color *palette;
    int colours;
    const uint8_t *alphas; /* of the palette */
    int alpha_count;
    int clear_grey; /* above 0: this value is transparent */
    const uint8_t *exif;
    unsigned exif_size;
} png_kind;

static inline void grow(png_structp library, png_bytep bytes, size_t size)
{
    encoded *to = png_get_io_ptr(library);

    to->bytes = realloc(to->bytes, to->size + size);
    assert_non_null(to->bytes);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static inline void flush_nothing(png_structp library)
{
    (void)library;
}

/* `stride` bytes of `pixels` are a row of the file. */
static inline encoded encode_png(uint32_t height, uint32_t width, size_t stride, const uint8_t *pixels,
                                 png_kind kind)
{
    encoded to = {0};
    png_structp library = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(library);
    int passes = kind.interlaced ? 7 : 1;

    png_set_write_fn(library, &to, grow, flush_nothing);
    png_set_IHDR(library, info, width, height, kind.depth, kind.type,
                 kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind.palette)
        png_set_PLTE(library, info, kind.palette, kind.colours);
    if (kind.alphas)
        png_set_tRNS(library, info, kind.alphas, kind.alpha_count, NULL);
    if (kind.clear_grey > 0)
        png_set_tRNS(library, info, NULL, 0, &(png_color_16){.gray = (png_uint_16)kind.clear_grey});
    if (kind.exif)
        png_set_eXIf_1(library, info, kind.exif_size, (png_bytep)kind.exif);
    png_write_info(library, info);
    png_set_interlace_handling(library);
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++)
            png_write_row(library, pixels + y * stride);
    }
    png_write_end(library, info);
    png_destroy_write_struct(&library, &info);
    return to;
}

#endif

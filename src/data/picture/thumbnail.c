#include "data/picture/thumbnail.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* Every `step`-th pixel of every `step`-th row. */
static uint8_t *thin(const uint8_t *pixels, uint32_t width, uint32_t channels, uint32_t step,
                     const png_image *image)
{
    uint8_t *thinned = malloc(PNG_IMAGE_SIZE(*image)), *to = thinned;

    for (uint32_t y = 0; thinned && y < image->height; y++) {
        for (uint32_t x = 0; x < image->width; x++, to += channels)
            memcpy(to, pixels + ((size_t)y * step * width + (size_t)x * step) * channels, channels);
    }
    return thinned;
}

uint8_t *pace__thumbnail_png(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                             size_t *bytes)
{
    uint32_t side = height > width ? height : width,
             step = (side + PACE__THUMBNAIL_SIDE - 1) / PACE__THUMBNAIL_SIDE;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (width + step - 1) / step,
                       .height = (height + step - 1) / step,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    uint8_t *thinned = thin(pixels, width, channels, step, &image), *file = NULL;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);

    if (thinned)
        file = malloc(size);
    if (file && !png_image_write_to_memory(&image, file, &size, 0, thinned, 0, NULL)) {
        free(file);
        file = NULL;
    }
    png_image_free(&image);
    free(thinned);
    *bytes = file ? size : 0;
    return file;
}

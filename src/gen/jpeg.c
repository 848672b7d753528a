#include "gen/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct encoder {
    struct jpeg_compress_struct library;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    unsigned char *bytes;
    unsigned long size;
} encoder;

/* Of what can go wrong only memory is left: sides and quality are known to be good. */
static void on_error(j_common_ptr library)
{
    encoder *self = library->client_data;

    longjmp(self->failed, 1);
}

/* setjmp stands here, beside no local variable that changes. */
static bool encode(encoder *self, const uint8_t *pixels, uint32_t height, uint32_t width, int quality)
{
    struct jpeg_compress_struct *library = &self->library;

    if (setjmp(self->failed))
        return false;
    jpeg_create_compress(library);
    jpeg_mem_dest(library, &self->bytes, &self->size);
    library->image_width = width;
    library->image_height = height;
    library->input_components = 3;
    library->in_color_space = JCS_RGB;
    jpeg_set_defaults(library);
    jpeg_set_quality(library, quality, TRUE);
    jpeg_start_compress(library, TRUE);
    while (library->next_scanline < height) {
        JSAMPROW row = (JSAMPROW)pixels + (size_t)library->next_scanline * width * 3;

        jpeg_write_scanlines(library, &row, 1);
    }
    jpeg_finish_compress(library);
    return true;
}

bool pace__jpeg_encode(const uint8_t *pixels, uint32_t height, uint32_t width, int quality, uint8_t **bytes,
                       size_t *size)
{
    encoder self = {0};

    self.library.err = jpeg_std_error(&self.errors);
    self.errors.error_exit = on_error;
    self.library.client_data = &self;
    bool done = encode(&self, pixels, height, width, quality);

    jpeg_destroy_compress(&self.library);
    if (!done) {
        free(self.bytes);
        return false;
    }
    *bytes = self.bytes;
    *size = self.size;
    return true;
}

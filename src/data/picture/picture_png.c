/*
 * PNG by libpng: whatever it holds becomes rows of 8-bit grey, grey + alpha, RGB or RGB + alpha in the bitmap,
 * which is then made shorter in place. Errors come back by longjmp; what is alive then is in the struct below.
 */
#include "data/picture/picture_internal.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Of texts, profiles and the like, which nobody here reads. */
#define CHUNK_BYTES_MAX (8u << 20)
#define CHUNKS_KEPT_MAX 64

typedef struct source {
    const uint8_t *bytes;
    size_t left;
    png_structp library;
    png_infop info;
    jmp_buf failed;
    pace__decoded *to;
} source;

static void fail(source *self, const char *reason)
{
    snprintf(self->to->reason, sizeof self->to->reason, "%s", reason);
    longjmp(self->failed, 1);
}

static void on_error(png_structp library, png_const_charp text)
{
    fail(png_get_error_ptr(library), text);
}

static void on_warning(png_structp library, png_const_charp text)
{
    (void)library;
    (void)text;
}

static void on_read(png_structp library, png_bytep to, size_t size)
{
    source *self = png_get_io_ptr(library);

    if (size > self->left)
        fail(self, "it ends too early");
    memcpy(to, self->bytes, size);
    self->bytes += size;
    self->left -= size;
}

static void set_limits(png_structp library)
{
    png_set_user_limits(library, PACE__FILE_SIDE_MAX, PACE__FILE_SIDE_MAX);
    png_set_chunk_cache_max(library, CHUNKS_KEPT_MAX);
    png_set_chunk_malloc_max(library, CHUNK_BYTES_MAX);
}

static int find_orientation(source *self)
{
    png_uint_32 size;
    png_bytep exif;

    if (!png_get_eXIf_1(self->library, self->info, &size, &exif))
        return 1;
    return pace__exif_orientation(exif, size);
}

/* Palettes, few bits, 16 bits and one transparent colour become 8-bit channels. */
static void begin(source *self)
{
    pace__decoded *to = self->to;
    pace__bitmap *bitmap = &to->bitmap;

    png_read_info(self->library, self->info);
    to->width = png_get_image_width(self->library, self->info);
    to->height = png_get_image_height(self->library, self->info);
    if ((uint64_t)to->height * to->width > PACE__PICTURE_PIXELS_MAX)
        fail(self, "it has too many pixels");
    png_set_scale_16(self->library);
    png_set_expand(self->library);
    png_set_interlace_handling(self->library);
    png_read_update_info(self->library, self->info);
    to->eighths = 8;
    bitmap->height = to->height;
    bitmap->width = to->width;
    bitmap->channels = png_get_channels(self->library, self->info);
    if (bitmap->channels < 1 || bitmap->channels > 4 ||
        png_get_rowbytes(self->library, self->info) != (size_t)bitmap->width * bitmap->channels)
        fail(self, "its colours are of an unknown kind");
    if (!pace__picture_reserve(&bitmap->pixels, &bitmap->room,
                               (size_t)bitmap->height * bitmap->width * bitmap->channels))
        fail(self, "out of memory");
}

static void read_rows(source *self)
{
    const pace__bitmap *bitmap = &self->to->bitmap;
    size_t stride = (size_t)bitmap->width * bitmap->channels;
    /* An interlaced picture comes in seven passes, each of which touches some pixels of the rows. */
    int passes = png_get_interlace_type(self->library, self->info) == PNG_INTERLACE_NONE ? 1 : 7;

    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < bitmap->height; y++)
            png_read_row(self->library, bitmap->pixels + y * stride, NULL);
    }
    png_read_end(self->library, self->info); /* whatever comes behind the pixels, to the very end */
    self->to->orientation = find_orientation(self);
}

static uint8_t on_white(uint32_t value, uint32_t alpha)
{
    return (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* The last channel goes; what is transparent is white. */
static void drop_alpha(pace__bitmap *bitmap)
{
    size_t count = (size_t)bitmap->height * bitmap->width;
    uint32_t colours = bitmap->channels - 1;
    const uint8_t *from = bitmap->pixels;
    uint8_t *to = bitmap->pixels;

    for (size_t i = 0; i < count; i++, from += colours + 1, to += colours) {
        uint32_t alpha = from[colours];

        for (uint32_t c = 0; c < colours; c++)
            to[c] = on_white(from[c], alpha);
    }
    bitmap->channels = colours;
}

/* setjmp stands here, beside no local variable that changes. */
static bool decode(source *self)
{
    if (setjmp(self->failed))
        return false;
    self->library = png_create_read_struct(PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
    if (self->library)
        self->info = png_create_info_struct(self->library);
    if (!self->info)
        fail(self, "out of memory");
    set_limits(self->library);
    png_set_read_fn(self->library, self, on_read);
    begin(self);
    read_rows(self);
    return true;
}

bool pace__decode_png(pace__decoded *self, const pace__picture_plan *plan, const void *bytes, size_t size)
{
    source state = {.bytes = bytes, .left = size, .to = self};
    bool done = decode(&state);

    (void)plan; /* colour becomes grey later, and nothing is smaller at this point */
    png_destroy_read_struct(&state.library, &state.info, NULL);
    if (done && self->bitmap.channels % 2 == 0)
        drop_alpha(&self->bitmap);
    return done;
}

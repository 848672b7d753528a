/*
 * JPEG by libjpeg-turbo. It reports errors by a call that must not return; what is alive then is in the struct
 * below, and one longjmp leads back to pace__decode_jpeg. A decompressor is made for each picture: one that
 * is used again would lend the tables of a picture to the next, if that has none.
 */
#include "data/picture/picture_internal.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> /* behind it: the list of messages depends on how the library was built */

/* The library's own memory: progressive files need all their coefficients at once. */
#define LIBRARY_BYTES_MAX ((long)1 << 30)
/* A progressive file can go over its pixels as often as it likes. */
#define SCANS_MAX    200
#define ROWS_AT_ONCE 8

typedef struct jpeg {
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    pace__decoded *to;
} jpeg;

static void fail(jpeg *self, const char *reason)
{
    snprintf(self->to->reason, sizeof self->to->reason, "%s", reason);
    longjmp(self->failed, 1);
}

static void on_error(j_common_ptr library)
{
    char text[JMSG_LENGTH_MAX];

    library->err->format_message(library, text);
    fail(library->client_data, text);
}

/* Complaints about data that is missing or wrong: a part of the picture would be grey. */
static void on_message(j_common_ptr library, int level)
{
    if (level >= 0)
        return;
    switch (library->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_JPEG_EOF:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
        on_error(library);
        break;
    default:
        library->err->num_warnings++;
    }
}

static void on_progress(j_common_ptr library)
{
    jpeg *self = library->client_data;

    if (self->library.input_scan_number > SCANS_MAX)
        fail(self, "it goes over its pixels too often");
}

static int find_orientation(const struct jpeg_decompress_struct *library)
{
    for (jpeg_saved_marker_ptr marker = library->marker_list; marker; marker = marker->next) {
        if (marker->data_length >= 6 && memcmp(marker->data, "Exif\0", 6) == 0)
            return pace__exif_orientation(marker->data + 6, marker->data_length - 6);
    }
    return 1;
}

/* The smallest scale at which no side has to grow. The library is fast at these; the others cost more than all. */
static uint32_t choose_scale(const pace__frame *frame)
{
    for (uint32_t eighths = 1; eighths < 8; eighths *= 2) {
        if (frame->height * eighths >= 8.0 * frame->rows && frame->width * eighths >= 8.0 * frame->columns)
            return eighths;
    }
    return 8;
}

static void choose_colours(jpeg *self, const pace__picture_plan *plan)
{
    struct jpeg_decompress_struct *library = &self->library;

    switch (library->jpeg_color_space) {
    case JCS_GRAYSCALE:
        library->out_color_space = JCS_GRAYSCALE;
        break;
    case JCS_YCbCr:
    case JCS_RGB:
        library->out_color_space = plan->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        library->out_color_space = JCS_CMYK;
        break;
    default:
        fail(self, "its colours are of an unknown kind");
    }
}

static void begin(jpeg *self, const pace__picture_plan *plan)
{
    struct jpeg_decompress_struct *library = &self->library;
    pace__decoded *to = self->to;

    jpeg_read_header(library, TRUE);
    if (library->arith_code) /* nobody writes it, and one cannot tell where its data ends too early */
        fail(self, "it is arithmetic-coded, which is not supported");
    to->height = library->image_height;
    to->width = library->image_width;
    if ((uint64_t)to->height * to->width > PACE__PICTURE_PIXELS_MAX)
        fail(self, "it has too many pixels");
    to->orientation = find_orientation(library);
    choose_colours(self, plan);
    pace__frame frame = pace__picture_frame(plan, to->height, to->width, to->orientation);

    to->eighths = choose_scale(&frame);
    library->scale_num = to->eighths;
    library->scale_denom = 8;
    jpeg_start_decompress(library);
    to->bitmap.height = library->output_height;
    to->bitmap.width = library->output_width;
    to->bitmap.channels = library->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (!pace__picture_reserve(&to->bitmap.pixels, &to->bitmap.room,
                               (size_t)to->bitmap.height * to->bitmap.width * to->bitmap.channels))
        fail(self, "out of memory");
}

static void read_rows(jpeg *self)
{
    struct jpeg_decompress_struct *library = &self->library;
    const pace__bitmap *bitmap = &self->to->bitmap;
    size_t stride = (size_t)bitmap->width * bitmap->channels;

    while (library->output_scanline < bitmap->height) {
        JSAMPROW rows[ROWS_AT_ONCE];
        uint32_t left = bitmap->height - library->output_scanline;
        uint32_t count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;

        for (uint32_t i = 0; i < count; i++)
            rows[i] = bitmap->pixels + (library->output_scanline + i) * stride;
        jpeg_read_scanlines(library, rows, count);
    }
}

/* Adobe writes how much light there is, not how much ink. */
static void ink_to_light(const uint8_t *from, size_t count, bool inverted, uint8_t *to)
{
    uint8_t flip = inverted ? 0 : 255;

    for (size_t i = 0; i < count; i++) {
        uint32_t black = from[4 * i + 3] ^ flip;

        for (size_t c = 0; c < 3; c++)
            to[3 * i + c] = (uint8_t)(((from[4 * i + c] ^ flip) * black + 127) / 255);
    }
}

static void read_ink(jpeg *self)
{
    struct jpeg_decompress_struct *library = &self->library;
    pace__decoded *to = self->to;
    size_t stride = (size_t)to->bitmap.width * 3;

    if (!pace__picture_reserve(&to->row, &to->row_room, (size_t)to->bitmap.width * 4))
        fail(self, "out of memory");
    while (library->output_scanline < to->bitmap.height) {
        uint8_t *pixels = to->bitmap.pixels + library->output_scanline * stride;

        jpeg_read_scanlines(library, &to->row, 1);
        ink_to_light(to->row, to->bitmap.width, library->saw_Adobe_marker, pixels);
    }
}

/* setjmp stands here, beside no local variable that changes. */
static bool decode(jpeg *self, const pace__picture_plan *plan, const void *bytes, size_t size)
{
    struct jpeg_decompress_struct *library = &self->library;

    if (setjmp(self->failed))
        return false;
    jpeg_create_decompress(library);
    library->mem->max_memory_to_use = LIBRARY_BYTES_MAX;
    library->progress = &self->progress;
    jpeg_mem_src(library, bytes, size);
    jpeg_save_markers(library, JPEG_APP0 + 1, 0xffff);
    begin(self, plan);
    if (library->out_color_space == JCS_CMYK)
        read_ink(self);
    else
        read_rows(self);
    jpeg_finish_decompress(library); /* goes on to the end of the file */
    return true;
}

bool pace__decode_jpeg(pace__decoded *self, const pace__picture_plan *plan, const void *bytes, size_t size)
{
    jpeg state = {.to = self, .progress.progress_monitor = on_progress};

    state.library.err = jpeg_std_error(&state.errors);
    state.errors.error_exit = on_error;
    state.errors.emit_message = on_message;
    state.library.client_data = &state;
    bool done = decode(&state, plan, bytes, size);

    jpeg_destroy_decompress(&state.library);
    return done;
}

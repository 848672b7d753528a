/*
 * bench_picture [REPEAT]: what it takes to make pixels of JPEG files, on one thread. 200 pictures of each size
 * are drawn and encoded in memory (quality 90, colours at half size as cameras write them); then, per size:
 *
 *     bare     libjpeg-turbo, every pixel to RGB
 *     scaled   libjpeg-turbo, at the scale that the loader takes
 *     load     pace__picture_load to 160 x 160, decoding included
 *     plain    the same, without the kernels for this CPU
 *
 * Prints pictures a second of CPU time (best of REPEAT), and load as a part of bare; CPU time, because the
 * ratios should hold on a busy machine too.
 */
#include "base/random.h"
#include "data/picture/picture_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define PICTURES 200
#define SIDE     160
#define QUALITY  90

typedef struct file {
    unsigned char *bytes;
    unsigned long size;
} file;

typedef struct bench {
    uint32_t width, height;
    file files[PICTURES];
    uint8_t *pixels; /* of a whole picture */
    pace__picture_loader *loader;
    pace__decoded decoded;
    pace__resizer resizer;
    uint64_t sum; /* keeps the compiler from leaving out work */
} bench;

static const pace__picture_plan plan = {SIDE, SIDE, 3, PACE_FIT_CROP};

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Edges, slopes and a little grain: about as many bytes a pixel as photographs have. */
static void draw(bench *self, uint64_t number)
{
    pace__random random = pace__random_at(1, number);
    uint32_t cells = 8 + (uint32_t)pace__random_below(&random, 16);
    uint32_t cell = (self->width + cells - 1) / cells;
    uint8_t *at = self->pixels;

    for (uint32_t y = 0; y < self->height; y++) {
        for (uint32_t x = 0; x < self->width; x++) {
            uint64_t here = pace__mix64(number << 32 | (y / cell) << 16 | x / cell);
            uint64_t grain = pace__random_next(&random);

            for (int c = 0; c < 3; c++)
                *at++ = (uint8_t)((here >> 8 * c & 127) + (x + y * 2) * 64 / self->width % 64 + (grain & 15) +
                                  (grain >> (4 + 3 * c) & 7));
        }
    }
}

static void encode(bench *self, file *to)
{
    struct jpeg_compress_struct library;
    struct jpeg_error_mgr errors;

    library.err = jpeg_std_error(&errors);
    jpeg_create_compress(&library);
    jpeg_mem_dest(&library, &to->bytes, &to->size);
    library.image_width = self->width;
    library.image_height = self->height;
    library.input_components = 3;
    library.in_color_space = JCS_RGB;
    jpeg_set_defaults(&library);
    jpeg_set_quality(&library, QUALITY, TRUE);
    jpeg_start_compress(&library, TRUE);
    while (library.next_scanline < library.image_height) {
        JSAMPROW row = self->pixels + (size_t)library.next_scanline * self->width * 3;

        jpeg_write_scanlines(&library, &row, 1);
    }
    jpeg_finish_compress(&library);
    jpeg_destroy_compress(&library);
}

static void run_bare(bench *self, const file *from)
{
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;

    library.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&library);
    jpeg_mem_src(&library, from->bytes, from->size);
    jpeg_read_header(&library, TRUE);
    library.out_color_space = JCS_RGB;
    jpeg_start_decompress(&library);
    while (library.output_scanline < library.output_height) {
        JSAMPROW rows[8];

        for (uint32_t i = 0; i < 8; i++)
            rows[i] = self->pixels + ((size_t)library.output_scanline + i) * self->width * 3;
        jpeg_read_scanlines(&library, rows, 8);
    }
    jpeg_finish_decompress(&library);
    jpeg_destroy_decompress(&library);
    self->sum += self->pixels[1000];
}

static void run_scaled(bench *self, const file *from)
{
    bool done = pace__decode_jpeg(&self->decoded, &plan, from->bytes, from->size);

    assert(done);
    self->sum += self->decoded.bitmap.pixels[1000];
}

static void run_load(bench *self, const file *from)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    const char *reason = pace__picture_load(self->loader, from->bytes, from->size, pixels);

    assert(!reason);
    self->sum += pixels[1000];
}

static void run_plain(bench *self, const file *from)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    const pace__decoded *decoded = &self->decoded;

    run_scaled(self, from);
    pace__frame frame = pace__picture_frame(&plan, decoded->height, decoded->width, decoded->orientation);
    double scale = decoded->eighths / 8.0;
    pace__resize_job job = {&decoded->bitmap,
                            frame.top * scale,
                            frame.left * scale,
                            frame.height * scale,
                            frame.width * scale,
                            frame.rows,
                            frame.columns,
                            pixels,
                            SIDE * 3};
    bool done = pace__resize(&self->resizer, &job, &pace__mix_plain);

    assert(done);
    self->sum += pixels[1000];
}

typedef void step_fn(bench *self, const file *from);

enum { BARE, SCALED, LOAD, PLAIN, STEPS };

static void run(bench *self, int repeat)
{
    static step_fn *const steps[STEPS] = {run_bare, run_scaled, run_load, run_plain};
    double best[STEPS], bytes = 0;

    for (int turn = 0; turn < repeat; turn++) {
        for (int step = 0; step < STEPS; step++) {
            double begin = cpu_ns();

            for (int i = 0; i < PICTURES; i++)
                steps[step](self, &self->files[i]);
            double ns = cpu_ns() - begin;

            best[step] = turn == 0 || ns < best[step] ? ns : best[step];
        }
    }
    for (int i = 0; i < PICTURES; i++)
        bytes += (double)self->files[i].size;
    printf(
        "%4u x %4u  %6.0f bytes, scale %u/8  bare %6.0f  scaled %6.0f  load %6.0f  plain %6.0f pictures/s, "
        "load is %.2f of bare\n",
        self->width, self->height, bytes / PICTURES, self->decoded.eighths, PICTURES / best[BARE] * 1e9,
        PICTURES / best[SCALED] * 1e9, PICTURES / best[LOAD] * 1e9, PICTURES / best[PLAIN] * 1e9,
        best[BARE] / best[LOAD]);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[][2] = {{1600, 1200}, {640, 480}, {500, 375}, {320, 240},
                                        {256, 256},   {200, 200}, {160, 160}, {128, 128}};
    static bench self;

    if (pace__picture_loader_create(&plan, NULL, &self.loader))
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        self.width = sizes[i][0];
        self.height = sizes[i][1];
        /* Rows that the last call of jpeg_read_scanlines is offered, but does not fill. */
        self.pixels = malloc(((size_t)self.height + 8) * self.width * 3);
        if (!self.pixels)
            return 1;
        for (uint64_t picture = 0; picture < PICTURES; picture++) {
            draw(&self, picture);
            encode(&self, &self.files[picture]);
        }
        run(&self, argc > 1 ? atoi(argv[1]) : 5);
        for (int picture = 0; picture < PICTURES; picture++) {
            free(self.files[picture].bytes);
            self.files[picture] = (file){0};
        }
        free(self.pixels);
    }
    pace__picture_loader_free(self.loader);
    pace__resizer_release(&self.resizer);
    free(self.decoded.bitmap.pixels);
    free(self.decoded.row);
    return self.sum == 0;
}

/* JPEG and PNG files become pixels: every kind of colour, turned upright, in size; damage gives a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/picture/picture_internal.h"
#include "pictures.h"

#include <math.h>

static void load(pace__picture_loader *loader, encoded file, uint8_t *pixels)
{
    const char *reason = pace__picture_load(loader, file.bytes, file.size, pixels);

    if (reason)
        fail_msg("cannot be loaded: %s", reason);
}

static void assert_reason(pace__picture_loader *loader, const void *bytes, size_t size, const char *part)
{
    uint8_t pixels[64 * 64 * 3];
    const char *reason = pace__picture_load(loader, bytes, size, pixels);

    if (!reason || !strstr(reason, part))
        fail_msg("\"%s\" is the reason, not \"%s\"", reason ? reason : "nothing", part);
}

/* ---- JPEG ---- */

static void check_jpeg(uint32_t channels, uint32_t wanted, jpeg_kind kind)
{
    uint8_t *from = make_slopes(48, 56, channels), to[48 * 56 * 3], same[48 * 56 * 3];
    encoded file = encode_jpeg((raw){48, 56, channels, from}, kind);
    pace__picture_loader *loader = make_loader(48, 56, wanted, PACE_FIT_CROP);

    load(loader, file, to);
    assert_null(pace__picture_resize(loader, from, 48, 56, channels, same));
    assert_true(mean_difference(to, same, 48 * 56 * wanted) < 1.5);
    pace__picture_loader_free(loader);
    free(file.bytes);
    free(from);
}

static void test_jpeg_kinds(void **state)
{
    (void)state;
    for (uint32_t wanted = 1; wanted <= 3; wanted += 2) {
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            check_jpeg(channels, wanted, (jpeg_kind){0});
            check_jpeg(channels, wanted, (jpeg_kind){.progressive = true});
            check_jpeg(channels, wanted, (jpeg_kind){.halved = true, .restart = 2});
        }
    }
}

/* Ink as Adobe writes it is inverted; as others do, it is not. */
static void test_jpeg_ink(void **state)
{
    uint8_t light[32 * 32 * 4], ink[32 * 32 * 4], want[32 * 32 * 3], to[32 * 32 * 3];
    pace__picture_loader *loader = make_loader(32, 32, 3, PACE_FIT_CROP);
    uint8_t *slopes = make_slopes(32, 32, 4);

    (void)state;
    memcpy(light, slopes, sizeof light);
    for (size_t i = 0; i < 32 * 32; i++) {
        for (size_t c = 0; c < 3; c++)
            want[3 * i + c] = (uint8_t)(light[4 * i + c] * light[4 * i + 3] / 255);
        for (size_t c = 0; c < 4; c++)
            ink[4 * i + c] = (uint8_t)(255 - light[4 * i + c]);
    }
    const struct {
        const uint8_t *pixels;
        jpeg_kind kind;
    } kinds[] = {{light, {.adobe = true}}, {light, {.ycck = true}}, {ink, {0}}};

    for (int i = 0; i < 3; i++) {
        encoded file = encode_jpeg((raw){32, 32, 4, kinds[i].pixels}, kinds[i].kind);

        load(loader, file, to);
        assert_true(mean_difference(to, want, sizeof to) < 2);
        free(file.bytes);
    }
    pace__picture_loader_free(loader);
    free(slopes);
}

/* Decoded at a scale it is nearly what it would have been. */
static void test_jpeg_scales(void **state)
{
    static const uint32_t sides[] = {40, 63, 80, 99, 160, 161, 333, 700};
    static const uint32_t eighths[] = {8, 8, 4, 4, 2, 2, 1, 1};
    pace__picture_plan plan = {40, 40, 3, PACE_FIT_CROP};
    pace__picture_loader *loader = make_loader(40, 40, 3, PACE_FIT_CROP);
    pace__decoded decoded = {0};

    (void)state;
    for (int i = 0; i < 8; i++) {
        uint32_t height = sides[i], width = sides[i] * 3 / 2;
        uint8_t *from = make_slopes(height, width, 3), want[40 * 40 * 3], to[40 * 40 * 3];
        encoded file = encode_jpeg((raw){height, width, 3, from}, (jpeg_kind){.quality = 95, .halved = true});

        assert_true(pace__decode_jpeg(&decoded, &plan, file.bytes, file.size));
        assert_int_equal(decoded.eighths, eighths[i]);
        assert_int_equal(decoded.bitmap.height, (height * eighths[i] + 7) / 8);
        assert_null(pace__picture_resize(loader, from, height, width, 3, want));
        load(loader, file, to);
        assert_true(mean_difference(to, want, sizeof to) < 2);
        free(file.bytes);
        free(from);
    }
    free(decoded.bitmap.pixels);
    free(decoded.row);
    pace__picture_loader_free(loader);
}

/* ---- orientation ---- */

#define EXIF_BYTES 40

/* An APP1 block with two entries, the second of which is the orientation. */
static void make_exif(bool big, int orientation, uint8_t exif[EXIF_BYTES])
{
    static const uint8_t little_end[EXIF_BYTES] =
        "Exif\0\0II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0A\0\0\0\x12\x01\x03\0\x01\0\0\0";
    static const uint8_t big_end[EXIF_BYTES] = "Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x01"
                                               "A\0\0\0\x01\x12\0\x03\0\0\0\x01";

    memcpy(exif, big ? big_end : little_end, EXIF_BYTES);
    exif[big ? 37 : 36] = (uint8_t)orientation;
}

/* Where pixel (y, x) of a file (height, width) belongs, by the words of the standard. */
static void turn_upright(int orientation, uint32_t height, uint32_t width, uint32_t y, uint32_t x,
                         uint32_t to[2])
{
    uint32_t down = height - 1 - y, right = width - 1 - x;
    const uint32_t places[9][2] = {{0},    {y, x},    {y, right},    {down, right}, {down, x},
                                   {x, y}, {x, down}, {right, down}, {right, y}};

    to[0] = places[orientation][0];
    to[1] = places[orientation][1];
}

/* `up` is (H, W, 3) upright; returns it as a file with that orientation stores it. */
static uint8_t *store_turned(const uint8_t *up, uint32_t up_width, int orientation, uint32_t height,
                             uint32_t width)
{
    uint8_t *stored = malloc((size_t)height * width * 3);

    assert_non_null(stored);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint32_t to[2];

            turn_upright(orientation, height, width, y, x, to);
            memcpy(stored + ((size_t)y * width + x) * 3, up + ((size_t)to[0] * up_width + to[1]) * 3, 3);
        }
    }
    return stored;
}

static void check_orientation(int orientation, uint32_t up_height, uint32_t up_width, int fit)
{
    bool swap = orientation >= 5;
    uint32_t height = swap ? up_width : up_height, width = swap ? up_height : up_width;
    uint8_t *up = make_slopes(up_height, up_width, 3), want[24 * 40 * 3], to[24 * 40 * 3];
    uint8_t *stored = store_turned(up, up_width, orientation, height, width), exif[EXIF_BYTES];
    pace__picture_loader *loader = make_loader(24, 40, 3, fit);

    assert_null(pace__picture_resize(loader, up, up_height, up_width, 3, want));
    for (int big = 0; big < 2; big++) {
        make_exif(big, orientation, exif);
        encoded jpeg =
            encode_jpeg((raw){height, width, 3, stored}, (jpeg_kind){.exif = exif, .exif_size = EXIF_BYTES});
        encoded png = encode_png(
            height, width, (size_t)width * 3, stored,
            (png_kind){
                .type = PNG_COLOR_TYPE_RGB, .depth = 8, .exif = exif + 6, .exif_size = EXIF_BYTES - 6});

        load(loader, jpeg, to);
        assert_true(mean_difference(to, want, sizeof to) < 2);
        load(loader, png, to);
        assert_true(mean_difference(to, want, sizeof to) < 0.2);
        free(jpeg.bytes);
        free(png.bytes);
    }
    pace__picture_loader_free(loader);
    free(stored);
    free(up);
}

static void test_orientations(void **state)
{
    (void)state;
    for (int orientation = 1; orientation <= 8; orientation++) {
        for (int fit = PACE_FIT_CROP; fit <= PACE_FIT_STRETCH; fit++) {
            check_orientation(orientation, 24, 40, fit);
            check_orientation(orientation, 60, 50, fit);
            check_orientation(orientation, 200, 555, fit);
        }
    }
}

static void test_bad_exif_is_upright(void **state)
{
    uint8_t exif[EXIF_BYTES];
    pace__random random = pace__random_at(11, 0);

    (void)state;
    make_exif(false, 9, exif);
    assert_int_equal(pace__exif_orientation(exif + 6, EXIF_BYTES - 6), 1);
    make_exif(true, 0, exif);
    assert_int_equal(pace__exif_orientation(exif + 6, EXIF_BYTES - 6), 1);
    for (int big = 0; big < 2; big++) {
        make_exif(big, 6, exif);
        assert_int_equal(pace__exif_orientation(exif + 6, EXIF_BYTES - 6), 6);
        for (size_t size = 0; size < EXIF_BYTES - 6; size++) { /* cut off, in memory of just that size */
            uint8_t *exact = malloc(size + !size);

            assert_non_null(exact);
            memcpy(exact, exif + 6, size);
            assert_int_equal(pace__exif_orientation(exact, size), 1);
            free(exact);
        }
        for (int i = 0; i < 2000; i++) { /* damaged, seed 11 */
            uint8_t damaged[EXIF_BYTES];

            memcpy(damaged, exif, EXIF_BYTES);
            damaged[6 + pace__random_below(&random, 26)] = (uint8_t)pace__random_next(&random);
            damaged[6 + pace__random_below(&random, 26)] = (uint8_t)pace__random_next(&random);
            int orientation = pace__exif_orientation(damaged + 6, EXIF_BYTES - 6);

            assert_in_range(orientation, 1, 8);
        }
    }
}

/* ---- PNG ---- */

static uint8_t white_below(uint32_t value, uint32_t alpha)
{
    return (uint8_t)floor((value * alpha + 255.0 * (255 - alpha)) / 255 + 0.5);
}

/* 8 or 16 bits, any channels, at its own size: pixels are exact. */
static void check_png(int type, uint32_t channels, int depth, bool interlaced)
{
    uint32_t bytes = (uint32_t)depth / 8, colours = channels % 2 ? channels : channels - 1;
    uint8_t *from = make_pixels(channels, 19 * 23 * channels * bytes), to[19 * 23 * 3];
    encoded file = encode_png(19, 23, 23 * channels * bytes, from,
                              (png_kind){.type = type, .depth = depth, .interlaced = interlaced});
    pace__picture_loader *loader = make_loader(19, 23, 3, PACE_FIT_CROP);

    load(loader, file, to);
    for (size_t i = 0; i < 19 * 23; i++) {
        uint32_t value[4];

        for (uint32_t c = 0; c < channels; c++) {
            const uint8_t *at = from + (i * channels + c) * bytes;

            value[c] = depth == 8 ? at[0] : (uint32_t)((at[0] << 8 | at[1]) / 257.0 + 0.5);
        }
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t is = value[colours == 1 ? 0 : c];

            assert_int_equal(to[3 * i + c], channels % 2 ? is : white_below(is, value[colours]));
        }
    }
    pace__picture_loader_free(loader);
    free(file.bytes);
    free(from);
}

static void test_png_kinds(void **state)
{
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        for (int depth = 8; depth <= 16; depth += 8) {
            check_png(PNG_COLOR_TYPE_GRAY, 1, depth, interlaced);
            check_png(PNG_COLOR_TYPE_GRAY_ALPHA, 2, depth, interlaced);
            check_png(PNG_COLOR_TYPE_RGB, 3, depth, interlaced);
            check_png(PNG_COLOR_TYPE_RGB_ALPHA, 4, depth, interlaced);
        }
    }
}

static void test_png_few_bits(void **state)
{
    uint8_t row[16], to[4 * 8];
    pace__picture_loader *loader = make_loader(4, 8, 1, PACE_FIT_CROP);

    (void)state;
    for (int i = 0; i < 16; i++)
        row[i] = (uint8_t)pace__mix64((uint64_t)i + 3);
    for (int depth = 1; depth <= 4; depth *= 2) {
        encoded file =
            encode_png(4, 8, (size_t)depth, row, (png_kind){.type = PNG_COLOR_TYPE_GRAY, .depth = depth});

        load(loader, file, to);
        for (int i = 0; i < 4 * 8; i++) {
            int most = (1 << depth) - 1, value = row[i * depth / 8] >> (8 - depth - i * depth % 8) & most;

            assert_int_equal(to[i], value * 255 / most);
        }
        free(file.bytes);
    }
    pace__picture_loader_free(loader);
}

static void test_png_palettes(void **state)
{
    static const png_color palette[] = {{10, 20, 30}, {200, 100, 0}, {0, 255, 77}, {1, 2, 3}};
    static const uint8_t alphas[] = {255, 0, 128};
    uint8_t row[6 * 5], to[6 * 5 * 3];
    pace__picture_loader *loader = make_loader(6, 5, 3, PACE_FIT_CROP);

    (void)state;
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * 7 % 4);
    for (int clear = 0; clear < 2; clear++) {
        encoded file = encode_png(6, 5, 5, row,
                                  (png_kind){.type = PNG_COLOR_TYPE_PALETTE,
                                             .depth = 8,
                                             .palette = palette,
                                             .colours = 4,
                                             .alphas = clear ? alphas : NULL,
                                             .alpha_count = 3});

        load(loader, file, to);
        for (size_t i = 0; i < sizeof row; i++) {
            png_color colour = palette[row[i]];
            uint32_t alpha = clear && row[i] < 3 ? alphas[row[i]] : 255;

            assert_int_equal(to[3 * i], white_below(colour.red, alpha));
            assert_int_equal(to[3 * i + 1], white_below(colour.green, alpha));
            assert_int_equal(to[3 * i + 2], white_below(colour.blue, alpha));
        }
        free(file.bytes);
    }
    encoded file =
        encode_png(6, 5, 5, row, (png_kind){.type = PNG_COLOR_TYPE_GRAY, .depth = 8, .clear_grey = 2});

    load(loader, file, to);
    for (size_t i = 0; i < sizeof row; i++)
        assert_int_equal(to[3 * i + 1], row[i] == 2 ? 255 : row[i]);
    free(file.bytes);
    pace__picture_loader_free(loader);
}

/* ---- damage ---- */

static encoded make_small(int which)
{
    uint8_t *from = make_slopes(20, 24, 3), exif[EXIF_BYTES];
    encoded file;

    make_exif(true, 6, exif);
    if (which < 3 || which == 5)
        file = encode_jpeg((raw){20, 24, 3, from}, (jpeg_kind){.progressive = which == 1,
                                                               .halved = which == 2,
                                                               .restart = which == 2,
                                                               .arithmetic = which == 5,
                                                               .quality = 80,
                                                               .exif = exif,
                                                               .exif_size = EXIF_BYTES});
    else
        file = encode_png(20, 24, 72, from,
                          (png_kind){.type = PNG_COLOR_TYPE_RGB, .depth = 8, .interlaced = which == 4});
    free(from);
    return file;
}

static void test_cut_off_anywhere(void **state)
{
    uint8_t pixels[8 * 8 * 3];
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_CROP);

    (void)state;
    for (int which = 0; which < 5; which++) {
        encoded file = make_small(which);

        load(loader, file, pixels);
        for (size_t size = 0; size < file.size; size++) {
            uint8_t *exact = malloc(size + !size); /* a sanitizer sees every byte read beyond it */

            assert_non_null(exact);
            memcpy(exact, file.bytes, size);
            const char *reason = pace__picture_load(loader, exact, size, pixels);

            if (!reason || !*reason)
                fail_msg("the first %zu of %lu bytes of file %d make a picture", size, file.size, which);
            free(exact);
        }
        load(loader, file, pixels); /* the loader is still good */
        free(file.bytes);
    }
    pace__picture_loader_free(loader);
}

/* Anything may come out, but nothing may break, and it is the same each time. */
static void test_damaged_bytes(void **state)
{
    uint8_t pixels[8 * 8 * 3], again[8 * 8 * 3];
    pace__random random = pace__random_at(21, 0);
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_PAD);
    pace__picture_loader *other = make_loader(8, 8, 3, PACE_FIT_PAD);

    (void)state;
    for (int i = 0; i < 3000; i++) {
        encoded file = make_small((int)pace__random_below(&random, 5));
        uint64_t hits = 1 + pace__random_below(&random, 4);

        for (; hits > 0; hits--)
            file.bytes[pace__random_below(&random, file.size)] = (uint8_t)pace__random_next(&random);
        bool good = !pace__picture_load(loader, file.bytes, file.size, pixels);

        if (i % 7 == 0) { /* what a loader has seen does not matter */
            assert_int_equal(!pace__picture_load(other, file.bytes, file.size, again), good);
            if (good)
                assert_memory_equal(pixels, again, sizeof pixels);
        }
        free(file.bytes);
    }
    pace__picture_loader_free(loader);
    pace__picture_loader_free(other);
}

/* Takes the segment with this marker out of a JPEG file. */
static void cut_segment(encoded *file, int marker)
{
    for (size_t at = 2; at + 4 <= file->size && file->bytes[at + 1] != 0xda;) {
        size_t size = 2 + (size_t)(file->bytes[at + 2] << 8 | file->bytes[at + 3]);

        if (file->bytes[at + 1] == marker) {
            memmove(file->bytes + at, file->bytes + at + size, file->size - at - size);
            file->size -= size;
        } else {
            at += size;
        }
    }
}

static void test_arithmetic_coding_is_refused(void **state)
{
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_CROP);
    encoded file = make_small(5);

    (void)state;
    assert_reason(loader, file.bytes, file.size, "arithmetic");
    free(file.bytes);
    pace__picture_loader_free(loader);
}

static void test_tables_are_not_lent(void **state)
{
    uint8_t pixels[8 * 8 * 3];
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_CROP);
    encoded file = make_small(0);

    (void)state;
    load(loader, file, pixels);
    cut_segment(&file, 0xdb); /* quantisation */
    assert_reason(loader, file.bytes, file.size, "uantization table");
    free(file.bytes);
    pace__picture_loader_free(loader);
}

/* The checksum of PNG, a bit at a time. */
static uint32_t crc32_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void put_big_end(uint8_t *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* Other sides in the header of a PNG or JPEG file than it has. */
static void lie_about_png(encoded *file, uint32_t width, uint32_t height)
{
    put_big_end(file->bytes + 16, width);
    put_big_end(file->bytes + 20, height);
    put_big_end(file->bytes + 29, crc32_of(file->bytes + 12, 17));
}

static void lie_about_jpeg(encoded *file)
{
    for (size_t at = 2; file->bytes[at + 1] != 0xda;) {
        if (file->bytes[at + 1] == 0xc0)
            memset(file->bytes + at + 5, 0xf0, 4);
        at += 2 + (size_t)(file->bytes[at + 2] << 8 | file->bytes[at + 3]);
    }
}

static void test_giants(void **state)
{
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_CROP);
    encoded jpeg = make_small(0), png = make_small(3);

    (void)state;
    lie_about_jpeg(&jpeg);
    assert_reason(loader, jpeg.bytes, jpeg.size, "it has too many pixels");
    lie_about_png(&png, 65535, 65535);
    assert_reason(loader, png.bytes, png.size, "it has too many pixels");
    lie_about_png(&png, 65536, 1);
    assert_reason(loader, png.bytes, png.size, "IHDR");
    lie_about_png(&png, 24, 21);
    assert_reason(loader, png.bytes, png.size, "ot enough");
    free(jpeg.bytes);
    free(png.bytes);
    pace__picture_loader_free(loader);
}

/* Large on the way down, so that weights are small and many. */
static void test_long_and_thin(void **state)
{
    uint8_t *row = malloc(65535), to[4 * 4];
    pace__picture_loader *loader = make_loader(4, 4, 1, PACE_FIT_STRETCH);

    (void)state;
    assert_non_null(row);
    for (int i = 0; i < 65535; i++)
        row[i] = i % 2 ? 255 : 0;
    encoded file = encode_png(1, 65535, 65535, row, (png_kind){.type = PNG_COLOR_TYPE_GRAY, .depth = 8});

    load(loader, file, to);
    for (int i = 0; i < 4 * 4; i++)
        assert_in_range(to[i], 126, 129);
    free(file.bytes);
    free(row);
    pace__picture_loader_free(loader);
}

static void test_other_bytes(void **state)
{
    pace__picture_loader *loader = make_loader(8, 8, 3, PACE_FIT_CROP);
    encoded jpeg = make_small(0), png = make_small(3);

    (void)state;
    assert_reason(loader, "", 0, "neither");
    assert_reason(loader, "GIF89a and so on", 16, "neither");
    assert_true(pace__is_picture(jpeg.bytes, jpeg.size));
    assert_true(pace__is_picture(png.bytes, png.size));
    assert_false(pace__is_picture(png.bytes, 7));
    assert_false(pace__is_picture(jpeg.bytes, 2));
    assert_false(pace__is_picture("GIF89a..", 8));
    free(jpeg.bytes);
    free(png.bytes);
    pace__picture_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jpeg_kinds),
        cmocka_unit_test(test_jpeg_ink),
        cmocka_unit_test(test_jpeg_scales),
        cmocka_unit_test(test_orientations),
        cmocka_unit_test(test_bad_exif_is_upright),
        cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_png_few_bits),
        cmocka_unit_test(test_png_palettes),
        cmocka_unit_test(test_cut_off_anywhere),
        cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_arithmetic_coding_is_refused),
        cmocka_unit_test(test_tables_are_not_lent),
        cmocka_unit_test(test_giants),
        cmocka_unit_test(test_long_and_thin),
        cmocka_unit_test(test_other_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

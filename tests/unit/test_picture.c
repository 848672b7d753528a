/* Pixels change their size: against the definition, all kernels, every fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/picture/picture_internal.h"
#include "pictures.h"

#include <math.h>

/* ---- resize ---- */

typedef struct side {
    uint32_t from, to;
    double start, length;
} side;

/* The definition: what pixel `i` of the source counts for pixel `o` of the result. */
static double weight(side s, uint32_t o, uint32_t i)
{
    double step = s.length / s.to, radius = step > 1 ? step : 1, centre = s.start + (o + 0.5) * step;

    return fmax(0, 1 - fabs(i + 0.5 - centre) / radius);
}

static double reference(const uint8_t *from, uint32_t channels, side rows, side columns, uint32_t y,
                        uint32_t x, uint32_t c)
{
    double sum = 0, weights = 0;

    for (uint32_t i = 0; i < rows.from; i++) {
        double down = weight(rows, y, i);

        for (uint32_t j = 0; j < columns.from && down > 0; j++) {
            double both = down * weight(columns, x, j);

            sum += both * from[((size_t)i * columns.from + j) * channels + c];
            weights += both;
        }
    }
    return sum / weights;
}

/* The kernels of every set, against each other and the definition. */
static void check_resize(side rows, side columns, uint32_t channels, uint64_t seed)
{
    uint8_t *from = make_pixels(seed, (size_t)rows.from * columns.from * channels);
    size_t count = (size_t)rows.to * columns.to * channels;
    uint8_t *plain = malloc(count), *fast = malloc(count);
    pace__resizer resizer = {0};
    pace__bitmap bitmap = {rows.from, columns.from, channels, from, 0};
    pace__resize_job job = {&bitmap,     rows.start,     columns.start,
                            rows.length, columns.length, rows.to,
                            columns.to,  plain,          (size_t)columns.to * channels};

    assert_true(plain && fast && pace__resize(&resizer, &job, &pace__mix_plain));
    job.to = fast;
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        memset(fast, 77, count);
        assert_true(pace__resize(&resizer, &job, pace__mix_of(set)));
        assert_memory_equal(plain, fast, count);
    }
    pace__random random = pace__random_at(seed, 1);

    for (int i = 0; i < 200; i++) {
        uint32_t y = (uint32_t)pace__random_below(&random, rows.to);
        uint32_t x = (uint32_t)pace__random_below(&random, columns.to);
        uint32_t c = (uint32_t)pace__random_below(&random, channels);
        double right = reference(from, channels, rows, columns, y, x, c);
        double is = plain[((size_t)y * columns.to + x) * channels + c];

        if (fabs(is - right) > 0.6)
            fail_msg("%ux%u to %ux%u, %u channels, seed %llu: (%u, %u, %u) is %.0f, not %.3f", rows.from,
                     columns.from, rows.to, columns.to, channels, (unsigned long long)seed, y, x, c, is,
                     right);
    }
    pace__resizer_release(&resizer);
    free(from);
    free(plain);
    free(fast);
}

static void test_resize_is_exact(void **state)
{
    static const uint32_t sizes[][4] = {{50, 70, 20, 30},  {33, 47, 32, 46}, {200, 200, 16, 12},
                                        {61, 53, 1, 1},    {7, 9, 40, 50},   {1, 1, 20, 20},
                                        {2, 300, 9, 9},    {300, 2, 9, 9},   {90, 90, 160, 33},
                                        {123, 77, 61, 76}, {40, 40, 40, 41}, {17, 260, 17, 131}};

    (void)state;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t *s = sizes[i];

        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            check_resize((side){s[0], s[2], 0, s[0]}, (side){s[1], s[3], 0, s[1]}, channels, i);
            /* A part of it, not on a pixel's edge. */
            check_resize((side){s[0], s[2], s[0] * 0.13, s[0] * 0.7},
                         (side){s[1], s[3], s[1] * 0.29, s[1] * 0.71}, channels, i + 100);
        }
    }
}

static void test_flat_stays_flat(void **state)
{
    uint8_t from[100 * 37 * 3], to[31 * 20 * 3];
    pace__picture_loader *loader = make_loader(31, 20, 3, PACE_FIT_STRETCH);

    (void)state;
    for (int level = 0; level < 256; level += 51) {
        memset(from, level, sizeof from);
        assert_null(pace__picture_resize(loader, from, 100, 37, 3, to));
        for (size_t i = 0; i < sizeof to; i++)
            assert_int_equal(to[i], level);
    }
    pace__picture_loader_free(loader);
}

static void test_same_size_is_a_copy(void **state)
{
    uint8_t *from = make_pixels(5, 24 * 32 * 3), to[24 * 32 * 3];

    (void)state;
    for (int fit = PACE_FIT_CROP; fit <= PACE_FIT_STRETCH; fit++) {
        pace__picture_loader *loader = make_loader(24, 32, 3, fit);

        assert_null(pace__picture_resize(loader, from, 24, 32, 3, to));
        assert_memory_equal(from, to, sizeof to);
        pace__picture_loader_free(loader);
    }
    free(from);
}

static void test_channels_change(void **state)
{
    uint8_t *from = make_pixels(6, 16 * 16 * 3), grey[16 * 16], colour[16 * 16 * 3];
    pace__picture_loader *to_grey = make_loader(16, 16, 1, PACE_FIT_CROP);
    pace__picture_loader *to_colour = make_loader(16, 16, 3, PACE_FIT_CROP);

    (void)state;
    assert_null(pace__picture_resize(to_grey, from, 16, 16, 3, grey));
    assert_null(pace__picture_resize(to_colour, grey, 16, 16, 1, colour));
    for (size_t i = 0; i < 16 * 16; i++) {
        double luma = 0.299 * from[3 * i] + 0.587 * from[3 * i + 1] + 0.114 * from[3 * i + 2];

        assert_true(fabs(grey[i] - luma) <= 0.51);
        for (size_t c = 0; c < 3; c++)
            assert_int_equal(colour[3 * i + c], grey[i]);
    }
    pace__picture_loader_free(to_grey);
    pace__picture_loader_free(to_colour);
    free(from);
}

/* ---- fits ---- */

/* Grey (height, width): `inside` where the middle (of a part) is, else `outside`. */
static uint8_t *make_framed(uint32_t height, uint32_t width, uint32_t middle_height, uint32_t middle_width,
                            uint8_t inside, uint8_t outside)
{
    uint8_t *pixels = malloc((size_t)height * width);
    uint32_t top = (height - middle_height) / 2, left = (width - middle_width) / 2;

    assert_non_null(pixels);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++)
            pixels[y * width + x] = y - top < middle_height && x - left < middle_width ? inside : outside;
    }
    return pixels;
}

static void test_crop_takes_the_middle(void **state)
{
    static const uint32_t shapes[][2] = {{100, 300}, {300, 100}, {100, 102}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        uint32_t height = shapes[i][0], width = shapes[i][1];
        /* A little more than the middle, which the filter may touch. */
        uint8_t *from =
            make_framed(height, width, height < 110 ? height : 110, width < 110 ? width : 110, 200, 0);
        uint8_t to[40 * 40];
        pace__picture_loader *loader = make_loader(40, 40, 1, PACE_FIT_CROP);

        assert_null(pace__picture_resize(loader, from, height, width, 1, to));
        for (size_t j = 0; j < sizeof to; j++)
            assert_int_equal(to[j], 200);
        free(from);
        from = make_framed(height, width, height < 90 ? height : 90, width < 90 ? width : 90, 200, 0);
        assert_null(pace__picture_resize(loader, from, height, width, 1, to));
        assert_int_equal(to[20 * 40 + 20], 200);
        assert_true(to[0] < 200 || height <= 110); /* and it is the whole middle */
        free(from);
        pace__picture_loader_free(loader);
    }
}

static void test_pad_keeps_all(void **state)
{
    uint8_t from[20 * 60], to[30 * 30];
    pace__picture_loader *loader = make_loader(30, 30, 1, PACE_FIT_PAD);

    (void)state;
    memset(from, 90, sizeof from);
    memset(to, 1, sizeof to);
    assert_null(pace__picture_resize(loader, from, 20, 60, 1, to));
    for (uint32_t y = 0; y < 30; y++) {
        for (uint32_t x = 0; x < 30; x++)
            assert_int_equal(to[y * 30 + x], y >= 10 && y < 20 ? 90 : 0);
    }
    assert_null(pace__picture_resize(loader, from, 60, 20, 1, to));
    for (uint32_t y = 0; y < 30; y++) {
        for (uint32_t x = 0; x < 30; x++)
            assert_int_equal(to[y * 30 + x], x >= 10 && x < 20 ? 90 : 0);
    }
    /* However thin it is, something is left. */
    assert_null(pace__picture_resize(loader, from, 1, 1200, 1, to));
    assert_int_equal(to[14 * 30 + 15], 90);
    pace__picture_loader_free(loader);
}

static void test_bad_sizes(void **state)
{
    uint8_t pixel = 0, to[4];
    pace__picture_loader *loader = make_loader(2, 2, 1, PACE_FIT_CROP);

    (void)state;
    assert_string_equal(pace__picture_resize(loader, &pixel, 0, 5, 1, to), "it has no pixels");
    assert_string_equal(pace__picture_resize(loader, &pixel, 70000, 1, 1, to), "it has too many pixels");
    assert_string_equal(pace__picture_resize(loader, &pixel, 65535, 65535, 1, to), "it has too many pixels");
    pace__picture_loader_free(loader);
    pace__picture_loader_free(NULL);
    assert_int_equal(pace__picture_loader_create(&(pace__picture_plan){0, 2, 1, 0}, NULL, &loader),
                     PACE_USAGE);
    assert_int_equal(pace__picture_loader_create(&(pace__picture_plan){2, 65536, 1, 0}, NULL, &loader),
                     PACE_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize_is_exact),
        cmocka_unit_test(test_flat_stays_flat),
        cmocka_unit_test(test_same_size_is_a_copy),
        cmocka_unit_test(test_channels_change),
        cmocka_unit_test(test_crop_takes_the_middle),
        cmocka_unit_test(test_pad_keeps_all),
        cmocka_unit_test(test_bad_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Synthetic pictures: equal bytes for any threads, balanced classes that differ in what they should differ in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/picture/picture.h"
#include "gen/canvas.h"
#include "gen/jpeg.h"
#include "support.h"

#include <paceline/gen.h>
#include <sys/file.h>

#define SIDE 64

static pace_status run(const char *path, int64_t rows, pace_gen_images_config config,
                       pace_gen_images_result *result)
{
    config.output = path;
    config.rows = rows;
    config.classes = config.classes ? config.classes : 4;
    config.size = config.size ? config.size : 48;
    return pace_gen_images(&config, &said_log, NULL, result);
}

static const char *const shape_names[] = {"disc",    "square", "triangle", "ring", "cross",
                                          "stripes", "checks", "dots",     "star", "moon"};
static const char *const quality_names[] = {"good", "bad"};

static const char *picture_path(const char *directory, const char *class, unsigned number)
{
    static char paths[8][600];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s/%06u.jpg", directory, class, number);
    return path;
}

/* ---- files ---- */

static void assert_same_pictures(const char *left, const char *right, unsigned rows, unsigned classes,
                                 const char *const *names)
{
    for (unsigned i = 0; i < rows; i++)
        assert_same_file(picture_path(left, names[i % classes], i),
                         picture_path(right, names[i % classes], i));
}

static void test_same_bytes_for_any_threads(void **state)
{
    const char *one = in(state, "one"), *many = in(state, "many"), *fewer = in(state, "fewer");
    pace_gen_images_result a, b;

    for (int variant = PACE_GEN_SHAPES; variant <= PACE_GEN_QUALITY; variant++) {
        const char *const *names = variant == PACE_GEN_SHAPES ? shape_names : quality_names;
        unsigned classes = variant == PACE_GEN_SHAPES ? 5 : 2;
        pace_gen_images_config config = {
            .seed = 3, .variant = variant, .classes = classes, .threads = 1, .force = true};

        assert_ok(run(one, 43, config, &a));
        config.threads = 4;
        assert_ok(run(many, 43, config, &b));
        assert_int_equal(a.bytes, b.bytes);
        assert_same_pictures(one, many, 43, classes, names);
        assert_ok(run(fewer, 20, config, &b)); /* the beginning of more */
        assert_same_pictures(one, fewer, 20, classes, names);
    }
}

static void test_seeds_differ(void **state)
{
    const char *one = in(state, "one"), *two = in(state, "two");
    char a[PACE__SHA256_HEX], b[PACE__SHA256_HEX];
    pace_gen_images_result result;

    assert_ok(run(one, 8, (pace_gen_images_config){.seed = 1}, &result));
    assert_ok(run(two, 8, (pace_gen_images_config){.seed = 2}, &result));
    for (unsigned i = 0; i < 8; i++) {
        hash_file(picture_path(one, shape_names[i % 4], i), a);
        hash_file(picture_path(two, shape_names[i % 4], i), b);
        assert_string_not_equal(a, b);
    }
}

static void test_classes_are_balanced(void **state)
{
    const char *path = in(state, "set");
    pace_gen_images_result result;

    assert_ok(run(path, 47, (pace_gen_images_config){.classes = 10, .size = 24}, &result));
    assert_int_equal(result.rows, 47);
    assert_int_equal(result.classes, 10);
    assert_int_equal(count_entries(path), 10);
    for (unsigned class = 0; class < 10; class ++) {
        char folder[600];

        snprintf(folder, sizeof folder, "%s/%s", path, shape_names[class]);
        assert_int_equal(count_entries(folder), class < 7 ? 5 : 4);
    }
    assert_int_equal(count_entries(*state), 1); /* nothing is left beside it */
}

static void load(pace__picture_loader *loader, const char *path, uint8_t *pixels)
{
    char *bytes;
    size_t size;

    assert_ok(pace__read_file(path, 1 << 24, &bytes, &size, &said_log));
    const char *reason = pace__picture_load(loader, bytes, size, pixels);

    if (reason)
        fail_msg("%s: %s", path, reason);
    free(bytes);
}

static pace__picture_loader *make_loader(int fit)
{
    pace__picture_loader *loader;

    assert_ok(pace__picture_loader_create(&(pace__picture_plan){SIDE, SIDE, 3, fit}, &said_log, &loader));
    return loader;
}

static void test_bytes_are_counted(void **state)
{
    const char *path = in(state, "set");
    pace_gen_images_result result;
    uint64_t sum = 0;

    assert_ok(run(path, 12, (pace_gen_images_config){.seed = 9}, &result));
    for (unsigned i = 0; i < 12; i++) {
        struct stat info;

        assert_int_equal(stat(picture_path(path, shape_names[i % 4], i), &info), 0);
        sum += (uint64_t)info.st_size;
    }
    assert_int_equal(sum, result.bytes);
}

/* ---- what is on them ---- */

static double brightness(const uint8_t *pixels)
{
    double sum = 0;

    for (size_t i = 0; i < SIDE * SIDE * 3; i++)
        sum += pixels[i];
    return sum / (SIDE * SIDE * 3);
}

/* Mean square of the difference to the right neighbour. */
static double roughness(const uint8_t *pixels)
{
    double sum = 0;

    for (size_t i = 0; i < SIDE * SIDE - 1; i++) {
        double step = (double)pixels[3 * i] - pixels[3 * i + 3];

        sum += (i + 1) % SIDE ? step * step : 0;
    }
    return sum / (SIDE * SIDE);
}

static double white(const uint8_t *pixels)
{
    double count = 0;

    for (size_t i = 0; i < SIDE * SIDE * 3; i++)
        count += pixels[i] >= 250;
    return count / (SIDE * SIDE * 3);
}

/* Means over the pictures of a kind: 0 good, else 1 + what is wrong. */
static void test_damage_shows(void **state)
{
    enum { ROWS = 240, KINDS = 5, SIZE = 96 };
    const char *path = in(state, "set");
    pace__picture_loader *loader = make_loader(PACE_FIT_CROP);
    double rough[KINDS] = {0}, clipped[KINDS] = {0}, bright[KINDS] = {0}, bytes[KINDS] = {0},
           count[KINDS] = {0};
    pace_gen_images_result result;
    uint8_t pixels[SIDE * SIDE * 3];

    assert_ok(run(path, ROWS, (pace_gen_images_config){.variant = PACE_GEN_QUALITY, .size = SIZE}, &result));
    assert_int_equal(result.classes, 2);
    for (unsigned i = 0; i < ROWS; i++) {
        const char *file = picture_path(path, quality_names[i % 2], i);
        unsigned kind = i % 2 ? 1 + i / 2 % 4 : 0;
        struct stat info;

        load(loader, file, pixels);
        assert_int_equal(stat(file, &info), 0);
        count[kind]++;
        rough[kind] += roughness(pixels);
        clipped[kind] += white(pixels);
        bright[kind] += brightness(pixels);
        bytes[kind] += (double)info.st_size;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        rough[kind] /= count[kind];
        clipped[kind] /= count[kind];
        bright[kind] /= count[kind];
        bytes[kind] /= count[kind];
        print_message("kind %d: %.0f pictures, roughness %.0f, clipped %.2f, brightness %.0f, %.0f bytes\n",
                      kind, count[kind], rough[kind], clipped[kind], bright[kind], bytes[kind]);
    }
    assert_true(count[0] == ROWS / 2 && count[1] == ROWS / 8 && count[4] == ROWS / 8);
    assert_true(rough[1] < 0.5 * rough[0]); /* blur */
    assert_true(rough[2] > 1.2 * rough[0]); /* noise */
    assert_true(bytes[3] < 0.4 * bytes[0]); /* compression */
    assert_true(clipped[4] > 0.2);          /* over-exposure */
    for (int kind = 0; kind < 4; kind++) {  /* and nothing but that is brighter than usual */
        assert_true(clipped[kind] < 0.1);
        assert_true(fabs(bright[kind] - bright[0]) < 20);
    }
    pace__picture_loader_free(loader);
}

/* The mean colours of two classes are alike: colours do not tell what is drawn. */
static void test_colours_do_not_tell(void **state)
{
    enum { ROWS = 400, CLASSES = 4 };
    const char *path = in(state, "set");
    pace__picture_loader *loader = make_loader(PACE_FIT_STRETCH);
    double bright[CLASSES] = {0};
    pace_gen_images_result result;
    uint8_t pixels[SIDE * SIDE * 3];

    assert_ok(run(path, ROWS, (pace_gen_images_config){.seed = 5}, &result));
    for (unsigned i = 0; i < ROWS; i++) {
        load(loader, picture_path(path, shape_names[i % CLASSES], i), pixels);
        bright[i % CLASSES] += brightness(pixels) / (ROWS / CLASSES);
    }
    for (int class = 1; class < CLASSES; class ++) /* one picture deviates by about 45, a hundred by 4.5 */
        assert_true(fabs(bright[class] - bright[0]) < 25);
    pace__picture_loader_free(loader);
}

/* Every shape has an inside and an outside, and keeps within its reach. */
static void test_shapes_are_closed(void **state)
{
    (void)state;
    for (unsigned shape = 0; shape < PACE__SHAPES; shape++) {
        assert_string_equal(pace__shape_name(shape), shape_names[shape]);
        for (int squarely = 0; squarely < 2; squarely++) {
            unsigned inside = 0;

            for (int y = -160; y <= 160; y++) {
                for (int x = -160; x <= 160; x++) {
                    bool is = pace__shape_distance(shape, squarely, (float)x / 100, (float)y / 100) < 0;

                    inside += is;
                    if (is && (abs(x) > 130 || abs(y) > 130))
                        fail_msg("%s goes to (%d, %d)", shape_names[shape], x, y);
                }
            }
            /* In units of the radius squared. */
            if (inside < 6000 || inside > 32000)
                fail_msg("%s has an area of %.2f", shape_names[shape], inside / 1e4);
        }
    }
}

/* ---- bad input, and what happens to directories ---- */

static void test_existing_directories(void **state)
{
    const char *path = in(state, "set");
    pace_gen_images_config force = {.force = true};
    pace_gen_images_result result;

    assert_int_equal(mkdir(path, 0777), 0); /* empty: fine */
    assert_ok(run(path, 3, (pace_gen_images_config){0}, &result));
    assert_failed(run(path, 3, (pace_gen_images_config){0}, &result), PACE_USAGE,
                  "already holds a set of pictures (--force");
    force.variant = PACE_GEN_QUALITY;
    assert_ok(run(path, 4, force, &result));
    assert_int_equal(count_entries(path), 2); /* nothing of the old one is left */
    put_text(in(state, "set/good/notes.txt"), "mine");
    assert_failed(run(path, 3, force, &result), PACE_USAGE, "holds other things");
    assert_int_equal(count_entries(in(state, "set/good")), 3);
    assert_int_equal(count_entries(*state), 1);
}

static void test_left_overs_are_removed(void **state)
{
    pace_gen_images_result result;

    assert_ok(pace__make_dirs(in(state, ".set.partial/disc"), &said_log));
    put_text(in(state, ".set.partial/disc/000000.jpg"), "half");
    put_text(in(state, ".set.partial/disc/000999.jpg"), "half");
    assert_ok(run(in(state, "set"), 8, (pace_gen_images_config){0}, &result));
    assert_int_equal(count_entries(in(state, "set/disc")), 2);
    assert_int_equal(count_entries(*state), 1);
}

static void test_two_at_once(void **state)
{
    pace_gen_images_result result;

    assert_ok(pace__make_dirs(in(state, ".set.partial"), &said_log));
    int lock = open(in(state, ".set.partial"), O_RDONLY | O_DIRECTORY);

    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_failed(run(in(state, "set"), 3, (pace_gen_images_config){0}, &result), PACE_FAILED,
                  "another gen is writing");
    assert_true(pace__exists(in(state, ".set.partial"))); /* it is the other one's */
    close(lock);
}

static void test_bad_targets(void **state)
{
    pace_gen_images_config config = {.force = true};
    pace_gen_images_result result;
    const char *path = in(state, "kept");

    put_text(path, "mine");
    assert_failed(run(path, 3, config, &result), PACE_USAGE, "is not a directory");
    char *kept = get_text(path);

    assert_string_equal(kept, "mine");
    free(kept);
    assert_failed(run(NULL, 3, config, &result), PACE_USAGE, "no output");
    assert_failed(run(in(state, "kept/set"), 3, config, &result), PACE_IO, "kept");
    assert_failed(run("/", 3, config, &result), PACE_USAGE, "a name");
    assert_failed(run(in(state, "x"), 0, config, &result), PACE_USAGE, "0 rows");
    config.threads = -1;
    assert_failed(run(in(state, "x"), 3, config, &result), PACE_USAGE, "-1 threads");
    config = (pace_gen_images_config){.classes = 11};
    assert_failed(run(in(state, "x"), 3, config, &result), PACE_USAGE, "11 classes");
    config = (pace_gen_images_config){.size = 5};
    assert_failed(run(in(state, "x"), 3, config, &result), PACE_USAGE, "a size of 5");
    assert_int_equal(count_entries(*state), 1);
}

static void test_jpeg_quality(void **state)
{
    uint8_t pixels[40 * 30 * 3], *fine, *coarse;
    size_t fine_size, coarse_size;

    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)pace__mix64(i);
    assert_true(pace__jpeg_encode(pixels, 40, 30, 95, &fine, &fine_size));
    assert_true(pace__jpeg_encode(pixels, 40, 30, 5, &coarse, &coarse_size));
    assert_true(coarse_size < fine_size);
    assert_true(pace__is_picture(fine, fine_size));
    free(fine);
    free(coarse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bytes_for_any_threads, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_seeds_differ, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_classes_are_balanced, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_bytes_are_counted, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_damage_shows, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_colours_do_not_tell, make_directory, remove_directory),
        cmocka_unit_test(test_shapes_are_closed),
        cmocka_unit_test_setup_teardown(test_existing_directories, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_left_overs_are_removed, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_two_at_once, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_bad_targets, make_directory, remove_directory),
        cmocka_unit_test(test_jpeg_quality),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

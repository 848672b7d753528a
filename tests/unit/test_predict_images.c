/* Predictions for pictures in files and folders, and those that are none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "pictures.h"
#include "tiny_network.h"

#include <paceline/score.h>

/* Of the model's size, and nothing is lost in a PNG: its pixels are those of the row. */
static void write_picture(const fixture *self, size_t row, const char *path)
{
    encoded png = encode_png(SIDE, SIDE + 1, (SIDE + 1) * 3, self->set.pixels[PACE__TRAIN] + row * COLUMNS,
                             (png_kind){.type = PNG_COLOR_TYPE_RGB, .depth = 8});

    assert_ok(pace__write_file_atomically(path, png.bytes, png.size, &said_log));
    free(png.bytes);
}

/* Where row i is; sorted by name they come as 0, 1, 2 ... */
static void name_picture(size_t row, char name[64])
{
    snprintf(name, 64,
             row < 25   ? "album/1/%03zu.png"
             : row < 45 ? "album/2/in/%03zu.png"
                        : "album/picture %03zu.png",
             row);
}

static void write_album(void **state, const fixture *self)
{
    char name[64];

    assert_ok(pace__make_dirs(in(state, "album/1"), &said_log));
    assert_ok(pace__make_dirs(in(state, "album/2/in"), &said_log));
    for (size_t i = ROWS; i-- > 0;) {
        name_picture(i, name);
        write_picture(self, i, in(state, name));
    }
    put_text(in(state, "album/.hidden"), "no picture");
}

static uint64_t predict(void **state, const char **inputs, size_t count, int64_t top, int64_t bad)
{
    uint64_t rows = 0;

    assert_ok(pace_predict(&(pace_predict_config){.inputs = {inputs, count},
                                                  .run = in(state, "model"),
                                                  .output = in(state, "out"),
                                                  .max_bad_rows = bad,
                                                  .top = top,
                                                  .force = true},
                           &said_log, NULL, &rows));
    return rows;
}

/* The line of a row that was read from `path`; returns what is behind it. */
static const char *assert_line(const fixture *self, const float *logits, size_t row, const char *path,
                               const char *line)
{
    double probability, found;
    uint32_t class = predicted(self, logits, row, &probability);
    const char *name = class_name(self, class);
    char *end;

    assert_memory_equal(line, name, strlen(name));
    found = strtod(line + strlen(name) + 1, &end);
    assert_float_equal(found, probability, TOLERANCE);
    assert_int_equal(*end, '\t');
    assert_memory_equal(end + 1, path, strlen(path));
    return end + 1 + strlen(path);
}

static void predict_folders(void **state)
{
    for (int one = 0; one < 2; one++) {
        fixture self = make_fixture(state, one ? 2 : 5, one);
        const float *logits = expected_logits(&self, PACE__TRAIN);
        char name[64];

        write_album(state, &self);
        const char *album = in(state, "album");

        assert_int_equal(predict(state, &album, 1, 0, 0), ROWS);
        char *text = get_text(in(state, "out"));
        const char *line = text;

        for (size_t i = 0; i < ROWS; i++) {
            name_picture(i, name);
            line = assert_line(&self, logits, i, in(state, name), line);
            assert_int_equal(*line++, '\n');
        }
        assert_int_equal(*line, 0);
        free(text);
        free_fixture(&self);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

/* More than a batch: the same files again and again, in the order of the words. */
static void predict_many(void **state)
{
    fixture self = make_fixture(state, 4, false);
    const float *logits = expected_logits(&self, PACE__TRAIN);
    const char *paths[530];
    char name[64];

    for (size_t i = 0; i < 530; i++) {
        snprintf(name, sizeof name, "%zu.png", i % 10);
        paths[i] = i < 10 ? strdup(in(state, name)) : paths[i % 10];
        if (i < 10)
            write_picture(&self, i, paths[i]);
    }
    assert_int_equal(predict(state, paths, 530, 1, 0), 530);
    char *text = get_text(in(state, "out"));
    const char *line = text;

    for (size_t i = 0; i < 530; i++) {
        line = assert_line(&self, logits, i % 10, paths[i], line);
        assert_int_equal(*line++, '\n');
    }
    for (size_t i = 0; i < 10; i++)
        free((char *)paths[i]);
    free(text);
    free_fixture(&self);
}

/* The classes behind the first one follow the path, each less likely than the one before. */
static void predict_top(void **state)
{
    fixture self = make_fixture(state, 4, false);
    const float *logits = expected_logits(&self, PACE__TRAIN);
    const char *path = in(state, "one.png");

    write_picture(&self, 0, path);
    for (int64_t top = 1; top <= 6; top++) {
        double last, sum;

        assert_int_equal(predict(state, &path, 1, top, 0), 1);
        char *text = get_text(in(state, "out"));
        const char *line = assert_line(&self, logits, 0, path, text);
        int columns = 1;

        predicted(&self, logits, 0, &last);
        for (sum = last; *line == '\t'; columns++) {
            double probability;
            unsigned class;
            int used;

            assert_int_equal(sscanf(line, "\tclass %u\t%lf%n", &class, &probability, &used), 2);
            assert_true(probability <= last + TOLERANCE);
            last = probability;
            sum += probability;
            line += used;
        }
        assert_string_equal(line, "\n");
        assert_int_equal(columns, top < 4 ? top : 4);
        if (columns == 4)
            assert_float_equal(sum, 1, 2 * TOLERANCE);
        free(text);
    }
    free_fixture(&self);
}

static void refuse(void **state, const char *input, pace_status status, const char *message)
{
    uint64_t rows = 77;
    pace_predict_config config = {
        .inputs = {&input, 1}, .run = in(state, "model"), .output = in(state, "refused")};

    said_clear();
    assert_failed(pace_predict(&config, &said_log, NULL, &rows), status, message);
    assert_int_equal(rows, 77);
    assert_false(pace__exists(config.output));
}

static void pictures_that_cannot_be_read(void **state)
{
    fixture self = make_fixture(state, 3, false);
    const char *folder = in(state, "folder");
    char *text;

    assert_ok(pace__make_dirs(folder, &said_log));
    refuse(state, folder, PACE_NO_INPUT, "no pictures");
    put_text(in(state, "folder/notes.txt"), "not called as a picture: passed over");
    refuse(state, folder, PACE_NO_INPUT, "no pictures");
    refuse(state, in(state, "folder/notes.txt"), PACE_BAD_DATA, "neither JPEG nor PNG"); /* but named */
    for (size_t i = 0; i < 3; i++)
        write_picture(&self, i,
                      in(state, i == 0   ? "folder/a.png"
                                : i == 1 ? "folder/c.png"
                                         : "folder/e.png"));
    put_text(in(state, "folder/b.jpg"), "this is no picture");
    assert_int_equal(symlink("nowhere", in(state, "folder/d.png")), 0);
    uint64_t rows = 77;
    pace_predict_config config = {
        .inputs = {&folder, 1}, .run = in(state, "model"), .output = in(state, "most")};

    said_clear(); /* more than are allowed: the others have their lines, the status says so */
    assert_int_equal(pace_predict(&config, &said_log, NULL, &rows), PACE_BAD_DATA);
    assert_said("E 2 of 5 pictures cannot be read: all others have their line");
    text = get_text(config.output);
    assert_non_null(strstr(text, "folder/e.png\n"));
    free(text);
    said_clear();
    assert_int_equal(predict(state, &folder, 1, 0, 2), 3);
    assert_said("folder/b.jpg: ");
    assert_said("folder/d.png: ");
    assert_said("pictures cannot be read: they have no line");
    assert_said("I 1 files were passed over");
    assert_said("folder/notes.txt");
    text = get_text(in(state, "out"));
    assert_non_null(strstr(text, "folder/e.png\n"));
    assert_null(strstr(text, "folder/b.jpg"));
    free(text);
    refuse(state, in(state, "folder/missing.png"), PACE_NO_INPUT, "missing.png");
    refuse(state, in(state, "set"), PACE_USAGE, "paceline eval");
    refuse(state, "-", PACE_USAGE, "not standard input");
    assert_int_equal(symlink(".", in(state, "folder/f")), 0);
    refuse(state, folder, PACE_BAD_DATA, "folders deep");
    free_fixture(&self);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(predict_folders),
        test(predict_many),
        test(predict_top),
        test(pictures_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

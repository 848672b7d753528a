/* Heat maps: what it costs to cover a place of a picture. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "score/heat.h"

#include "pictures.h"
#include "tiny_network.h"

#include <paceline/score.h>

#define CELLS 3 /* of 3, 4 and 4 rows, and of 4 columns */

static void mean_colour(const uint8_t *pixels, uint8_t *colour)
{
    for (size_t c = 0; c < 3; c++) {
        unsigned sum = COLUMNS / 6; /* half of a step, for rounding */

        for (size_t i = c; i < COLUMNS; i += 3)
            sum += pixels[i];
        colour[c] = (uint8_t)(sum / (COLUMNS / 3));
    }
}

static void paint(uint8_t *pixels, size_t cell, const uint8_t *colour)
{
    static const size_t edges[] = {0, 3, 7, 11};

    for (size_t y = edges[cell / CELLS]; y < edges[cell / CELLS + 1]; y++) {
        for (size_t x = 4 * (cell % CELLS); x < 4 * (cell % CELLS) + 4; x++)
            memcpy(pixels + 3 * (y * (SIDE + 1) + x), colour, 3);
    }
}

/* The first training rows become the first one, painted; their logits are new. */
static void paint_rows(fixture *self, const uint8_t *first)
{
    uint8_t colour[3];

    mean_colour(first, colour);
    for (size_t cell = 0; cell < CELLS * CELLS; cell++) {
        uint8_t *pixels = self->set.pixels[PACE__TRAIN] + cell * COLUMNS;

        memcpy(pixels, first, COLUMNS);
        paint(pixels, cell, colour);
    }
    free(self->logits[PACE__TRAIN]);
    self->logits[PACE__TRAIN] = NULL;
}

static double probability_of(const fixture *self, const float *logits, size_t row, uint32_t class)
{
    float pair[2] = {0, logits[row]};
    const float *all = self->net.outputs == 1 ? pair : logits + row * self->net.outputs;
    pace__softmax found;

    assert_true(pace__softmax_of(all, self->set.plan.classes, &found));
    return pace__softmax_probability(&found, all[class]);
}

/* The first picture as it is, what it is taken for, and the map that follows from painting it. */
static uint32_t expected_map(fixture *self, uint8_t *first, double *cells)
{
    double whole;
    uint32_t class = predicted(self, expected_logits(self, PACE__TRAIN), 0, &whole);

    memcpy(first, self->set.pixels[PACE__TRAIN], COLUMNS);
    paint_rows(self, first);
    for (size_t cell = 0; cell < CELLS * CELLS; cell++)
        cells[cell] = whole - probability_of(self, expected_logits(self, PACE__TRAIN), cell, class);
    return class;
}

static void cells_are_what_covering_costs(void **state)
{
    for (int one = 0; one < 2; one++) {
        fixture self = make_fixture(state, one ? 2 : 5, one);
        uint8_t first[COLUMNS];
        double cells[CELLS * CELLS], largest = 0;
        uint32_t class = expected_map(&self, first, cells);
        pace__scorer scorer;
        pace__heat heat;

        assert_ok(pace__scorer_open(in(state, "model"), &said_log, &scorer));
        assert_ok(pace__heat_init(&heat, &scorer, CELLS, &said_log));
        for (int round = 0; round < 2; round++) { /* the same whenever it is asked for */
            assert_ok(pace__heat_map(&heat, first, class));
            for (size_t cell = 0; cell < CELLS * CELLS; cell++)
                assert_float_equal(heat.cells[cell], cells[cell], 2 * TOLERANCE);
        }
        for (size_t cell = 0; cell < CELLS * CELLS; cell++)
            largest = fmax(largest, fabs(cells[cell]));
        assert_true(largest > 10 * TOLERANCE); /* else there is nothing to see */
        pace__heat_release(&heat);
        pace__heat_release(&heat); /* twice is fine */
        pace__scorer_close(&scorer);
        free_fixture(&self);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

static void there_are_not_more_cells_than_pixels(void **state)
{
    fixture self = make_fixture(state, 3, false);
    pace__scorer scorer;
    pace__heat heat;

    assert_ok(pace__scorer_open(in(state, "model"), &said_log, &scorer));
    assert_failed(pace__heat_init(&heat, &scorer, SIDE + 1, &said_log), PACE_USAGE, "at most 11 x 11 cells");
    assert_ok(pace__heat_init(&heat, &scorer, SIDE, &said_log));
    pace__heat_release(&heat);
    pace__scorer_close(&scorer);
    free_fixture(&self);
}

/* Behind path and classes: a field for each row of cells. */
static void predict_writes_them(void **state)
{
    fixture self = make_fixture(state, 5, false);
    uint8_t first[COLUMNS];
    double cells[CELLS * CELLS];
    const char *path = in(state, "one.png");
    uint64_t rows = 0;

    expected_map(&self, first, cells);
    encoded png =
        encode_png(SIDE, SIDE + 1, (SIDE + 1) * 3, first, (png_kind){.type = PNG_COLOR_TYPE_RGB, .depth = 8});

    assert_ok(pace__write_file_atomically(path, png.bytes, png.size, &said_log));
    assert_ok(pace_predict(&(pace_predict_config){.inputs = {&path, 1},
                                                  .run = in(state, "model"),
                                                  .output = in(state, "out"),
                                                  .top = 2,
                                                  .explain = CELLS},
                           &said_log, NULL, &rows));
    char *text = get_text(in(state, "out")), *at = text;

    for (int fields = 0; fields < 5; fields++) /* two classes, their probabilities, the path */
        at += strcspn(at + 1, "\t") + 1;
    for (size_t cell = 0; cell < CELLS * CELLS; cell++) {
        assert_int_equal(*at, cell % CELLS == 0 ? '\t' : ' ');
        assert_float_equal(strtod(at + 1, &at), cells[cell], 2 * TOLERANCE + 5e-5);
    }
    assert_string_equal(at, "\n");
    free(text);
    free(png.bytes);
    free_fixture(&self);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cells_are_what_covering_costs),
        TEST(there_are_not_more_cells_than_pixels),
        TEST(predict_writes_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The fast svmlight parsers against the plain one: the same rows, bad rows and messages on any bytes. And
 * rows are within the limits that the parser promises, and every line gives the same row alone as in its
 * chunk. The first byte of an input chooses the options, the rest is the text.
 */
#include "../unit/parsed.h"
#include "data/formats/svmlight.h"

#include <math.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t feature_choices[] = {0, 1, 1000, PACE__FEATURES_MAX};

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        abort();
    }
}

static void check_limits(const parse_case *test, const parsed_text *all)
{
    const pace__encoding *encoding = test->encoding;
    bool bounded = encoding->features > 0 && !test->ids_unbounded;
    uint64_t limit = encoding->hashed || bounded ? encoding->features : PACE__FEATURES_MAX;

    for (size_t i = 0; i < all->rows; i++) {
        check(all->label[i] <= 1, "label");
        check(all->offset[i] < test->size && (i == 0 || all->offset[i] > all->offset[i - 1]), "offset");
        check(all->start[i] <= all->start[i + 1], "start");
    }
    for (size_t i = 0; i < all->entries; i++)
        check(all->ids[i] < limit && isfinite(all->values[i]), "id or value");
}

/* Parses one line; what it gives must be the row `row` of all, if it is one. Returns how many rows it was. */
static size_t check_line(const parse_case *test, const parsed_text *all, size_t row, uint64_t *bad)
{
    parsed_text alone;

    parsed_run(test, &alone);
    check(alone.rows + alone.bad <= 1 && row + alone.rows <= all->rows, "rows of a line");
    *bad += alone.bad;
    if (alone.rows == 1) {
        size_t first = all->start[row];

        check(alone.label[0] == all->label[row], "label of a line");
        check(alone.entries == all->start[row + 1] - first, "entries of a line");
        check(memcmp(alone.ids, all->ids + first, alone.entries * sizeof *alone.ids) == 0, "ids of a line");
        check(memcmp(alone.values, all->values + first, alone.entries * sizeof *alone.values) == 0,
              "values of a line");
    }
    size_t rows = alone.rows;

    parsed_release(&alone);
    return rows;
}

static void check_lines(parse_case test, const parsed_text *all)
{
    const char *end = test.text + test.size;
    uint64_t bad = 0;
    size_t row = 0;

    while (test.text < end) {
        const char *newline = memchr(test.text, '\n', (size_t)(end - test.text));

        /* Without its newline: the end of a file that lacks one. */
        test.size = (size_t)((newline ? newline : end) - test.text);
        row += check_line(&test, all, row, &bad);
        test.text += test.size + (newline != NULL);
    }
    check(row == all->rows && bad == all->bad, "number of rows or bad rows");
}

static void check_fast(parse_case test, const parsed_text *all)
{
    parsed_text fast;

    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        test.parse = pace__svmlight_of(set)->parse;
        parsed_run(&test, &fast);
        const char *difference = parsed_difference(all, &fast, true);

        check(!difference, difference);
        parsed_release(&fast);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    pace__encoding encoding = {
        .kind = PACE__NUMBERED, .hashed = data[0] & 1, .features = feature_choices[data[0] >> 1 & 3]};
    parse_case test = {.parse = pace__parse_svmlight_plain,
                       .encoding = &encoding,
                       .labels_optional = data[0] >> 3 & 1,
                       .ids_unbounded = data[0] >> 4 & 1,
                       .bad_max = UINT64_MAX,
                       .text = (const char *)data + 1,
                       .size = size - 1};
    parsed_text all;

    if (encoding.hashed && encoding.features == 0)
        encoding.features = 77;
    parsed_run(&test, &all);
    check(all.status == PACE_OK, "status");
    check_limits(&test, &all);
    check_fast(test, &all);
    check_lines(test, &all);
    parsed_release(&all);
    return 0;
}

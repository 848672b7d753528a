/* prep reviews, where nobody says how long rows are: the texts do, with the bytes of who had said it; and what is said of
 * texts that were cut, and of ratings that go further than to 5. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/reviews/lengths.h"

#include "review_preps.h"

#define TEXTS 40

static pace_prep_reviews_config settings(const char **inputs, const char *output)
{
    pace_prep_reviews_config config = settings_of(inputs, 1, output);

    config.format = PACE_REVIEWS_TAB;
    config.common.threads = 3;
    config.common.parts = 1;
    config.common.force = true;
    return config;
}

/* TEXTS lines, of which the first `longer` have so many words, no two texts alike, and the others 5. */
static void put_texts(const char *path, unsigned longer, unsigned words, int best)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (unsigned text = 0; text < TEXTS; text++) {
        fprintf(file, "%d\t", text % 2 ? 1 : best);
        for (unsigned word = 0; word < (text < longer ? words : 5); word++)
            fprintf(file, "w%u ", (text * 37 + word * (text + 1)) % 500);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

/* Rows are as long as somebody might have said, to the byte, whatever is kept of longer texts. */
static void texts_tell_how_long_rows_are(void **state)
{
    static const struct {
        unsigned longer, words;
        int truncate, pad;
        int64_t length;
        uint64_t cut;
    } cases[] = {{9, 243, PACE_TRUNCATE_HEAD, PACE_PAD_END, 250, 0},
                 {8, 243, PACE_TRUNCATE_BOTH, PACE_PAD_END, 100, 8},
                 {2, 1300, PACE_TRUNCATE_TAIL, PACE_PAD_FRONT, 100, 2},
                 {9, 1300, PACE_TRUNCATE_BOTH, PACE_PAD_END, 1000, 9}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *inputs[] = {in(state, "in")};
        pace_prep_reviews_config open = settings(inputs, in(state, "open")), given;

        put_texts(inputs[0], cases[i].longer, cases[i].words, 5);
        open.truncate = cases[i].truncate;
        open.pad = cases[i].pad;
        pace_prep_reviews_result result = prepare(&open);

        assert_said("words (--length)");
        assert_int_equal(result.length, cases[i].length);
        assert_int_equal(result.cut, cases[i].cut);
        given = open;
        given.length = cases[i].length;
        given.common.threads = 1;
        given.common.output = in(state, "given");
        assert_int_equal(prepare(&given).cut, cases[i].cut);
        assert_same_file(in(state, "open/part-00000.h5"), in(state, "given/part-00000.h5"));
    }
}

/* Later rows are like those of the set, however long they are. */
static void like_has_a_length(void **state)
{
    const char *inputs[] = {in(state, "in")}, *others[] = {in(state, "others")};
    pace_prep_reviews_config config = settings(inputs, in(state, "set"));

    put_texts(inputs[0], 0, 0, 5);
    put_texts(others[0], TEXTS, 300, 5);
    prepare(&config);
    config.common.inputs.items = others;
    config.common.output = in(state, "later");
    config.common.like = in(state, "set");
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.length, 100);
    assert_int_equal(result.cut, TEXTS);
    assert_null(strstr(said, "would keep")); /* nobody can choose another */
}

static void cut_texts_are_said(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, in(state, "set"));

    put_texts(inputs[0], 3, 243, 5);
    config.length = 100;
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.length_whole, 250);
    assert_said("3 of 40 texts were cut");
    assert_said("--length 250 would keep 95 % of them whole");
    put_texts(inputs[0], 2, 243, 5); /* few enough */
    prepare(&config);
    assert_null(strstr(said, "were cut"));
}

static void ratings_up_to_10_are_said(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, in(state, "set"));

    put_texts(inputs[0], 0, 0, 10);
    assert_int_equal(prepare(&config).train_positives, TEXTS / 2);
    assert_said("W 20 ratings are above 5");
    assert_said("--positive");
    config.positive = "4"; /* who says it means it */
    prepare(&config);
    assert_null(strstr(said, "above 5"));
    config.positive = "auto";
    config.drop = (pace_texts){(const char *[]){"10"}, 1};
    prepare(&config);
    assert_null(strstr(said, "above 5"));
    put_texts(inputs[0], 0, 0, 5);
    config.drop.count = 0;
    prepare(&config);
    assert_null(strstr(said, "above 5"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(texts_tell_how_long_rows_are),
        TEST(like_has_a_length),
        TEST(cut_texts_are_said),
        TEST(ratings_up_to_10_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

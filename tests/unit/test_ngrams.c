/* Texts as bags of words and n-grams, against a version that compares every feature with all before it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/linear/ngrams.h"

#include "support.h"
#include "tiny_texts.h"

static bool contains(const uint32_t *list, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == id)
            return true;
    }
    return false;
}

/* Every run of words, one length at a time. */
static size_t naive(const uint32_t *ids, uint32_t length, uint32_t words, unsigned ngram, uint32_t *found)
{
    size_t count = 0;

    for (unsigned n = 1; n <= ngram; n++) {
        for (uint32_t i = 0; i + n <= length; i++) {
            bool whole = true;

            for (uint32_t j = i; j < i + n; j++)
                whole = whole && ids[j] != PACE__ID_PAD && ids[j] != PACE__ID_EMPTY;
            uint32_t id = n == 1 ? ids[i] : pace__ngram_id(ids + i, n, words);

            if (whole && !contains(found, count, id))
                found[count++] = id;
        }
    }
    return count;
}

static int by_id(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static void assert_same(const pace__rows *texts, uint32_t words, unsigned ngram, pace__ngram_rows *features)
{
    uint32_t *expected = tiny_alloc(texts->columns * ngram * 4),
             *found = tiny_alloc(texts->columns * ngram * 4);

    assert_ok(pace__ngrams_expand(texts, words, ngram, features, &said_log));
    const pace__rows *rows = &features->rows;

    assert_int_equal(rows->rows, texts->rows);
    assert_int_equal(rows->columns, 0);
    assert_int_equal(rows->start[0], 0);
    assert_null(rows->values);
    assert_null(rows->length);
    assert_ptr_equal(rows->label, texts->label);
    for (size_t row = 0; row < texts->rows; row++) {
        size_t count = naive(pace__row_words(texts, row), texts->length[row], words, ngram, expected);

        assert_int_equal(rows->start[row + 1] - rows->start[row], count);
        memcpy(found, rows->ids + rows->start[row], count * 4);
        qsort(found, count, 4, by_id);
        qsort(expected, count, 4, by_id);
        assert_memory_equal(found, expected, count * 4);
        assert_true(count == 0 || found[count - 1] < pace__ngram_ids(words, ngram));
    }
    free(found);
    free(expected);
}

static void features_are_those_of_the_naive_version(void **state)
{
    static const tiny_texts_plan plans[] = {
        {.train = 400, .words = 30, .length = 40, .seed = 11},
        {.train = 400, .words = 5, .length = 9, .front = true, .seed = 12},
        {.train = 6, .words = 5000, .length = 700, .seed = 13},
        {.train = 50, .words = 1, .length = 1, .seed = 14},
        {.train = 0, .words = 1, .length = 1, .seed = 15},
    };
    pace__ngram_rows features = {0};

    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        tiny_texts set = tiny_texts_make(plans[i]);
        pace__rows texts = tiny_texts_view(&set, PACE__TRAIN);

        for (unsigned ngram = 1; ngram <= PACE__NGRAM_MAX; ngram += ngram < 3 ? 1 : 5)
            assert_same(&texts, set.info.ids_seen, ngram, &features);
        tiny_texts_free(&set);
    }
    pace__ngram_rows_release(&features);
}

static void padding_and_empty_texts_have_no_features(void **state)
{
    uint32_t ids[] = {9, 9, 2, 0, 7, 7, 5, 0, 1};
    uint32_t length[] = {1, 1, 3};
    uint8_t label[3] = {0};
    pace__rows texts = {.rows = 3, .columns = 3, .ids = ids, .label = label, .length = length, .front = true};
    pace__ngram_rows features = {0};

    (void)state;
    assert_ok(pace__ngrams_expand(&texts, 10, 2, &features, &said_log));
    assert_int_equal(features.rows.start[1], 0);
    assert_int_equal(features.rows.start[2], 1);
    assert_int_equal(features.rows.start[3], 3); /* what padding is between are no neighbours */
    assert_int_equal(features.rows.ids[0], 7);
    assert_int_equal(features.rows.ids[1], 5);
    assert_int_equal(features.rows.ids[2], 1);
    pace__ngram_rows_release(&features);
}

static void spaces_have_room_for_hashes(void **state)
{
    (void)state;
    assert_int_equal(pace__ngram_ids(103, 1), 103);
    assert_int_equal(pace__ngram_ids(103, 2), 103 + (1 << 22));
    assert_int_equal(pace__ngram_ids(103, 5), 103 + (1 << 22));
}

/* Models on disk hold these numbers. */
static void ids_never_change(void **state)
{
    (void)state;
    assert_int_equal(pace__ngram_id((uint32_t[]){3, 4}, 2, 1000), 17735);
    assert_int_equal(pace__ngram_id((uint32_t[]){4, 3}, 2, 1000), 3171123);
    assert_int_equal(pace__ngram_id((uint32_t[]){1, 77777, 5}, 3, 1000), 1496903);
}

/* 64 buckets of bigrams of the first words should be about equally full, and few pairs collide. */
static void hashes_are_spread(void **state)
{
    enum { WORDS = 500, BUCKETS = 64 };
    unsigned counts[BUCKETS] = {0}, collisions = 0;
    uint8_t *used = tiny_alloc((size_t)1 << PACE__NGRAM_BITS);

    (void)state;
    for (uint32_t left = 0; left < WORDS; left++) {
        for (uint32_t right = 0; right < WORDS; right++) {
            uint32_t id = pace__ngram_id((uint32_t[]){left + 3, right + 3}, 2, 0);

            assert_true(id < 1u << PACE__NGRAM_BITS);
            counts[id % BUCKETS]++;
            collisions += used[id];
            used[id] = 1;
        }
    }
    for (unsigned i = 0; i < BUCKETS; i++)
        assert_in_range(counts[i], 3906 - 300, 3906 + 300); /* 5 standard deviations are 312 */
    /* 250,000 in 2^22 places: n^2 / (2 m) = 7,450 collisions. */
    assert_in_range(collisions, 6800, 7800);
    free(used);
}

static void nothing_is_allocated_for_the_same_rows_again(void **state)
{
    tiny_texts set = tiny_texts_make((tiny_texts_plan){.train = 200, .words = 50, .length = 30, .seed = 3});
    pace__rows texts = tiny_texts_view(&set, PACE__TRAIN), fewer = pace__rows_slice(&texts, 50, 100);
    pace__ngram_rows features = {0};

    (void)state;
    assert_ok(pace__ngrams_expand(&texts, set.info.ids_seen, 3, &features, &said_log));
    void *before[] = {features.start, features.ids, features.marks};

    for (int i = 0; i < 20; i++)
        assert_ok(pace__ngrams_expand(i % 2 ? &fewer : &texts, set.info.ids_seen, 3, &features, &said_log));
    assert_ptr_equal(features.start, before[0]);
    assert_ptr_equal(features.ids, before[1]);
    assert_ptr_equal(features.marks, before[2]);
    pace__ngram_rows_release(&features);
    tiny_texts_free(&set);
}

static void the_numbers_of_rows_may_run_out(void **state)
{
    tiny_texts set = tiny_texts_make((tiny_texts_plan){.train = 100, .words = 9, .length = 20, .seed = 4});
    pace__rows texts = tiny_texts_view(&set, PACE__TRAIN);
    pace__ngram_rows features = {0};

    (void)state;
    assert_same(&texts, set.info.ids_seen, 2, &features);
    features.row = UINT32_MAX - 50;
    assert_same(&texts, set.info.ids_seen, 2, &features);
    assert_true(features.row < 100);
    assert_same(&texts, set.info.ids_seen, 2, &features);
    pace__ngram_rows_release(&features);
    tiny_texts_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_those_of_the_naive_version),
        cmocka_unit_test(padding_and_empty_texts_have_no_features),
        cmocka_unit_test(spaces_have_room_for_hashes),
        cmocka_unit_test(ids_never_change),
        cmocka_unit_test(hashes_are_spread),
        cmocka_unit_test(nothing_is_allocated_for_the_same_rows_again),
        cmocka_unit_test(the_numbers_of_rows_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

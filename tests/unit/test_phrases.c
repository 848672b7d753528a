/* The words of heavy n-grams: found in rows as they are counted here, kept in the model, told by inspect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/store/describe.h"
#include "model/linear/phrases.h"

#include "text_models.h"

#define NGRAM 3

typedef struct found {
    pace__store store;
    pace__origin origin;
    uint32_t words;
    float *weight;
    pace__phrases phrases;
} found;

/* In the rows of the fixture's set; of every n-gram whose place is a multiple of `step` a weight. */
static found find_phrases(void **state, uint32_t step)
{
    found self = {0};

    assert_ok(pace__store_open(in(state, "set"), &self.store, &said_log));
    assert_ok(pace__origin_read(&self.store, &said_log, &self.origin));
    self.words = self.store.info.ids_seen;
    uint32_t ids = pace__ngram_ids(self.words, NGRAM);

    self.weight = tiny_alloc(ids * sizeof *self.weight);
    for (uint32_t id = 0; id < ids; id += step)
        self.weight[id] = (float)(1 + pace__mix64(id) % 100) / 8;
    assert_ok(pace__phrases_find(self.weight, self.words, NGRAM, &self.origin, &said_log, &self.phrases));
    return self;
}

static void free_found(found *self)
{
    pace__phrases_release(&self->phrases);
    pace__phrases_release(&self->phrases); /* twice is fine */
    pace__origin_release(&self->origin);
    pace__store_close(&self->store);
    free(self->weight);
}

/* How often these words occur one behind the other. */
static unsigned count_of(const pace__rows *rows, const uint32_t *words, unsigned count)
{
    unsigned sum = 0;

    for (size_t row = 0; row < rows->rows; row++) {
        for (uint32_t i = 0; i + count <= rows->length[row]; i++)
            sum += memcmp(pace__row_words(rows, row) + i, words, count * sizeof *words) == 0;
    }
    return sum;
}

static void what_occurs_has_words(void **state)
{
    fixture self = make_fixture(state, true);
    pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
    found all = find_phrases(state, 97);

    assert_true(pace__phrases_check(&all.phrases, all.words));
    for (uint32_t i = 0; i < all.phrases.count; i++) {
        const uint32_t *words = all.phrases.words + (size_t)i * NGRAM;
        unsigned count = words[2] == PACE__ID_PAD ? 2 : 3, told;
        uint32_t id = pace__ngram_id(words, count, all.words);

        assert_true(all.weight[id] != 0);
        assert_ptr_equal(pace__phrase_of(&all.phrases, all.words, id, &told), words);
        assert_int_equal(told, count);
        assert_true(count_of(&rows, words, count) > 0);
    }
    for (size_t row = 0; row < ROWS; row++) { /* and nothing that occurs and weighs is without */
        for (uint32_t i = 0; i + 2 <= rows.length[row]; i++) {
            uint32_t id = pace__ngram_id(pace__row_words(&rows, row) + i, 2, all.words);
            unsigned count;

            assert_true((pace__phrase_of(&all.phrases, all.words, id, &count) != NULL) ==
                        (all.weight[id] != 0));
        }
    }
    assert_true(all.phrases.count > 20);
    free_found(&all);
    free_fixture(&self);
}

/* The weight above which are fewer than are kept: there are a hundred of them. */
static float least_kept(const found *all)
{
    uint32_t counts[801] = {0}, above = 0;
    int size = 800;

    for (uint32_t id = all->words; id < pace__ngram_ids(all->words, NGRAM); id++)
        counts[(int)(all->weight[id] * 8)]++;
    while (above + counts[size] < PACE__PHRASES_MAX)
        above += counts[size--];
    return (float)size / 8;
}

/* Of more than are kept, the heaviest. */
static void the_heaviest_are_kept(void **state)
{
    fixture self = make_fixture(state, false);
    found all = find_phrases(state, 1);
    pace__rows rows = tiny_texts_view(&self.set, PACE__TRAIN);
    float least = least_kept(&all);
    unsigned kept = 0, left_out = 0;

    for (size_t row = 0; row < ROWS; row++) {
        for (uint32_t i = 0; i + 2 <= rows.length[row]; i++) {
            uint32_t id = pace__ngram_id(pace__row_words(&rows, row) + i, 2, all.words);
            unsigned count;
            bool there = pace__phrase_of(&all.phrases, all.words, id, &count) != NULL;

            assert_true(there || all.weight[id] <= least);
            kept += there;
            left_out += !there;
        }
    }
    assert_true(kept > 0 && left_out > kept);
    free_found(&all);
    free_fixture(&self);
}

/* Two runs of three words that share an id: one in 150 does. */
static uint32_t find_twins(uint32_t words, uint32_t one[NGRAM], uint32_t other[NGRAM])
{
    uint32_t *seen = tiny_alloc((size_t)pace__ngram_ids(words, NGRAM) * sizeof *seen),
             all = WORDS * WORDS * WORDS;

    for (uint32_t i = 0; i < all; i++) {
        uint32_t ids[] = {PACE__ID_WORDS + i % WORDS, PACE__ID_WORDS + i / WORDS % WORDS,
                          PACE__ID_WORDS + i / (WORDS * WORDS)};
        uint32_t id = pace__ngram_id(ids, NGRAM, words), twin = seen[id];

        seen[id] = i + 1;
        if (twin == 0)
            continue;
        twin--;
        memcpy(other, ids, sizeof ids);
        one[0] = PACE__ID_WORDS + twin % WORDS;
        one[1] = PACE__ID_WORDS + twin / WORDS % WORDS;
        one[2] = PACE__ID_WORDS + twin / (WORDS * WORDS);
        free(seen);
        return id;
    }
    fail_msg("no two n-grams share an id");
    return 0;
}

#define TWINS 9

/* `set`: so many texts of three words. */
static pace_status give_rows(const void *set, uint64_t rows_max, pace__take_rows_fn *take, void *user,
                             const pace_log *log)
{
    static const uint32_t length[TWINS] = {NGRAM, NGRAM, NGRAM, NGRAM, NGRAM, NGRAM, NGRAM, NGRAM, NGRAM};

    (void)log;
    assert_int_equal(rows_max, PACE__PHRASES_ROWS_MAX);
    return take(user, &(pace__rows){.rows = TWINS, .columns = NGRAM, .ids = set, .length = length});
}

/* In whatever order they come, five of nine are most. */
static void most_occurrences_decide(void **state)
{
    uint32_t words = WORDS + PACE__ID_WORDS, twins[2][NGRAM], texts[TWINS * NGRAM],
             id = find_twins(words, twins[0], twins[1]);
    float *weight = tiny_alloc(pace__ngram_ids(words, NGRAM) * sizeof *weight);
    pace__origin origin = {.read_rows = give_rows, .set = texts};

    (void)state;
    weight[id] = 1;
    for (unsigned order = 0; order < 1u << TWINS; order += 7) {
        unsigned others = (unsigned)__builtin_popcount(order), count;
        pace__phrases phrases;

        if (others != 4 && others != 5)
            continue;
        for (unsigned i = 0; i < TWINS; i++)
            memcpy(texts + i * NGRAM, twins[order >> i & 1], sizeof twins[0]);
        assert_ok(pace__phrases_find(weight, words, NGRAM, &origin, &said_log, &phrases));
        assert_int_equal(phrases.count, 1);
        assert_memory_equal(pace__phrase_of(&phrases, words, id, &count), twins[others > 4], sizeof twins[0]);
        pace__phrases_release(&phrases);
    }
    free(weight);
}

/* --- in the model --- */

/* With weights of the first ids, so many. */
static void write_model(void **state, fixture *self, const pace__phrases *phrases, uint32_t ids)
{
    pace__origin origin = make_origin(&self->set.info.encoding);
    float *weight = tiny_alloc(ids * sizeof *weight);

    for (uint32_t i = 0; i < phrases->count; i++) {
        const uint32_t *words = phrases->words + (size_t)i * NGRAM;
        uint32_t id = pace__ngram_id(words, words[2] ? 3 : 2, self->set.info.ids_seen);

        if (id < ids)
            weight[id] = (float)(i + 1);
    }
    weight[ids - 1] = 1000; /* that nobody knows */
    assert_ok(pace__vocabulary_to_text(self->set.vocabulary, &said_log, &origin.vocabulary,
                                       &origin.vocabulary_size));
    assert_ok(pace__linear_write_text(in(state, "model"), &origin, NGRAM, weight, ids, 0, phrases, NULL,
                                      &said_log));
    free(origin.vocabulary);
    free(origin.encoding);
    free(weight);
}

/* Rising ids, as the file wants them. */
static pace__phrases make_phrases(const fixture *self, uint32_t *words)
{
    uint32_t first = PACE__ID_WORDS, all = self->set.info.ids_seen;
    uint32_t some[] = {first, first + 1, 0, first + 2, PACE__ID_UNKNOWN, first + 3};
    bool swap = pace__ngram_id(some, 2, all) > pace__ngram_id(some + 3, 3, all);

    memcpy(words, swap ? some + 3 : some, 3 * sizeof *words);
    memcpy(words + 3, swap ? some : some + 3, 3 * sizeof *words);
    return (pace__phrases){NGRAM, 2, words};
}

static void inspect_tells_them(void **state)
{
    fixture self = make_fixture(state, false);
    uint32_t words[2 * NGRAM];
    pace__phrases phrases = make_phrases(&self, words);
    char *json;

    write_model(state, &self, &phrases, pace__ngram_ids(self.set.info.ids_seen, NGRAM));
    assert_ok(pace_inspect(&(pace_inspect_config){.path = in(state, "model"), .top = 5}, &said_log, &json));
    assert_non_null(strstr(json, "\"w0 w1\""));
    assert_non_null(strstr(json, "\"w2 <unknown> w3\""));
    assert_non_null(strstr(json, "\"n-gram 4194303\""));
    free(json);
    free_fixture(&self);
}

static void other_words_are_refused(void **state)
{
    fixture self = make_fixture(state, false);
    uint32_t right[2 * NGRAM], wrong[2 * NGRAM];
    pace__phrases phrases = make_phrases(&self, right);
    const struct {
        size_t at;
        uint32_t word;
    } changes[] = {{0, 0}, {1, 0}, {1, PACE__ID_EMPTY}, {4, self.set.info.ids_seen}, {3, UINT32_MAX}};
    pace__saved saved;

    write_model(state, &self, &phrases, 1);
    assert_ok(pace__saved_open(in(state, "model"), &said_log, &saved));
    pace__saved_close(&saved);
    for (size_t i = 0; i <= sizeof changes / sizeof *changes; i++) {
        memcpy(wrong, right, sizeof wrong);
        if (i < sizeof changes / sizeof *changes)
            wrong[changes[i].at] = changes[i].word;
        else
            memcpy(wrong, right + NGRAM, NGRAM * sizeof *wrong); /* twice the same */
        write_model(state, &self, &(pace__phrases){NGRAM, 2, wrong}, 1);
        said_clear();
        assert_failed(pace__saved_open(in(state, "model"), &said_log, &saved), PACE_BAD_DATA,
                      "has no words of n-grams");
    }
    free_fixture(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_occurs_has_words), TEST(the_heaviest_are_kept),   TEST(most_occurrences_decide),
        TEST(inspect_tells_them),    TEST(other_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

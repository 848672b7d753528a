/* What models are told of data sets, and what they carry along; the list of kinds. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/describe.h"
#include "model/model.h"

#include "support.h"
#include "tiny_pictures.h"
#include "tiny_texts.h"

static void sparse_rows_are_described(void **state)
{
    tiny_set set = tiny_make((tiny_plan){
        .train = 30, .test = 10, .ids = 20, .columns = 4, .has_values = true, .parts = 2, .seed = 1});
    pace__store store;
    pace__origin origin;

    tiny_write(&set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    pace__dataset data = pace__store_describe(&store.info);

    assert_int_equal(data.kind, PACE__ROWS_SPARSE);
    assert_true(data.rows == 30 && data.test_rows == 10 && data.ids == 20 && data.columns == 4);
    assert_true(data.has_values && !data.like && data.features == store.info.encoding.features);
    assert_ok(pace__origin_read(&store, &said_log, &origin));
    for (uint32_t id = 0; id < 20; id++)
        assert_int_equal(origin.original[id], 5 * id + 3);
    assert_true(!origin.vocabulary && !origin.class_names);
    pace__origin_release(&origin);
    pace__origin_release(&origin); /* twice is fine */
    pace__store_close(&store);
    tiny_free(&set);
}

/* The same from the text that a model file has, as far as there are no rows yet. */
static void compare_with_text(const pace__store *store)
{
    pace__dataset data = pace__store_describe(&store->info), from_text;
    pace__origin origin;

    assert_ok(pace__origin_read(store, &said_log, &origin));
    assert_ok(pace__describe_encoding(origin.encoding, "here", &from_text, &said_log));
    assert_int_equal(from_text.kind, data.kind);
    assert_int_equal(from_text.columns, data.columns);
    assert_int_equal(from_text.ids, data.ids);
    assert_int_equal(from_text.classes, data.classes);
    assert_true(from_text.class_names == data.class_names && from_text.rows == 0);
    assert_failed(pace__describe_encoding("{", "here", &from_text, &said_log), PACE_BAD_DATA, "here");
    pace__origin_release(&origin);
}

static void texts_bring_their_vocabulary(void **state)
{
    tiny_texts set = tiny_texts_make((tiny_texts_plan){.train = 20, .words = 30, .length = 8, .seed = 2});
    pace__store store;
    pace__origin origin;

    tiny_texts_write(&set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_int_equal(pace__store_describe(&store.info).kind, PACE__ROWS_TEXT);
    compare_with_text(&store);
    assert_ok(pace__origin_read(&store, &said_log, &origin));
    assert_true(origin.vocabulary && origin.vocabulary_size > 0 && !origin.original);
    pace__origin_release(&origin);
    pace__store_close(&store);
    tiny_texts_free(&set);
}

static void pictures_bring_their_class_names(void **state)
{
    tiny_pictures set = tiny_pictures_make(
        (tiny_pictures_plan){.train = 12, .side = 8, .classes = 3, .channels = 3, .parts = 1, .seed = 5});
    pace__store store;
    pace__origin origin;

    tiny_pictures_write(&set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_int_equal(pace__store_describe(&store.info).kind, PACE__ROWS_PICTURES);
    compare_with_text(&store);
    assert_ok(pace__origin_read(&store, &said_log, &origin));
    assert_true(origin.class_names && !origin.vocabulary);
    pace__origin_release(&origin);
    /* Features stand for the pictures that they were made of. */
    store.info.encoding.kind = PACE__FEATURES;
    store.info.encoding.features = 7;
    assert_int_equal(pace__store_describe(&store.info).kind, PACE__ROWS_FEATURES);
    assert_ok(pace__origin_read(&store, &said_log, &origin));
    assert_non_null(strstr(origin.encoding, "image"));
    pace__origin_release(&origin);
    pace__store_close(&store);
    tiny_pictures_free(&set);
}

/* --- kinds --- */

static void kinds_have_the_places_of_the_api(void **state)
{
    (void)state;
    assert_string_equal(pace_model_at(PACE_MODEL_LOGREG)->name, "logreg");
    assert_string_equal(pace_model_at(PACE_MODEL_RNN)->name, "rnn");
    assert_string_equal(pace_model_at(PACE_MODEL_CNN)->name, "cnn");
    assert_null(pace_model_at(-1));
    assert_null(pace__kind_named("ann"));
    assert_null(pace__kind_named(""));
}

/* The choices of --model are the names in their order, and each is found by it. */
static void the_list_names_all(void **state)
{
    char names[256] = "";

    (void)state;
    for (int i = 0; pace_model_at(i); i++) {
        const pace__kind *kind = pace__kind_at(i);

        snprintf(names + strlen(names), sizeof names - strlen(names), "|%s", kind->info.name);
        assert_ptr_equal(pace__kind_named(kind->info.name), kind);
        assert_ptr_equal(pace_model_at(i), &kind->info);
    }
    assert_string_equal(names, pace__kind_names);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sparse_rows_are_described),        TEST(texts_bring_their_vocabulary),
        TEST(pictures_bring_their_class_names), cmocka_unit_test(kinds_have_the_places_of_the_api),
        cmocka_unit_test(the_list_names_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
